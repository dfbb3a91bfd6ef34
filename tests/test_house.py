"""The rooms of the core: their size, their names, their doors, and the drawing of the house."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_architecture import CORE, PACKAGE, imports, module_name, modules_below

REPOSITORY = PACKAGE.parent.parent
ROOMS = sorted(path.name for path in CORE.iterdir() if (path / "__init__.py").is_file())


def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", REPOSITORY / "docs" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def windows(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What the source imports of another room otherwise than through its face."""
    found = []
    for name in imports(ast.parse(source), module, is_package=is_package):
        parts = name.split(".")
        if (
            parts[:2] == ["memprov", "core"]
            and len(parts) > 3
            and not f"{module}.".startswith(".".join(parts[:3]) + ".")
        ):
            found.append(name)
    return found


def test_a_room_is_entered_through_its_face() -> None:
    rung = {
        module_name(path): found
        for path in modules_below(PACKAGE)
        if (found := windows(path.read_text("utf-8"), module_name(path), is_package=path.stem == "__init__"))
    }
    assert not rung


def test_an_entry_by_the_window_rings() -> None:
    by_the_window = "from memprov.core.text.lines import cut"
    assert windows(by_the_window, "memprov.core.purge.scrub") == ["memprov.core.text.lines"]
    assert windows(by_the_window, "memprov.shell.runner")
    assert windows(by_the_window, "memprov.core.text.document") == []
    assert windows("from memprov.core.text import cut", "memprov.core.purge.scrub") == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_holds_three_to_fifteen_modules_that_do_not_repeat_its_name(room: str) -> None:
    names = [path.stem for path in (CORE / room).glob("*.py") if path.stem != "__init__"]
    assert 3 <= len(names) <= 15
    assert not [name for name in names if room in name.split("_")]


def test_the_tests_have_the_same_rooms() -> None:
    assert {path.name for path in (REPOSITORY / "tests" / "core").iterdir() if path.is_dir()} - {"__pycache__"} == {
        *ROOMS
    }


def test_the_drawing_is_that_of_the_code() -> None:
    drawn: str = house().drawing()
    assert (REPOSITORY / "docs" / "house.svg").read_text("utf-8") == drawn, "run: python docs/house.py"


def test_a_circle_among_rooms_rings() -> None:
    with pytest.raises(ValueError, match="circle"):
        house().floors({"a": {"b"}, "b": {"a"}, "c": set()})
    assert house().floors({"a": {"b"}, "b": set()}) == [["b"], ["a"]]


def test_a_reading_path_is_at_most_four_files_that_exist() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    paths = [re.findall(r"`([\w/]+\.py)`", line) for line in page.splitlines() if "→" in line]
    assert len(paths) == 3
    assert all(2 <= len(path) <= 4 for path in paths)
    assert not [name for path in paths for name in path if not (PACKAGE / name).is_file()]


def test_both_stores_use_one_name_for_one_duty() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    duties = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert len(duties) > 8
    lacking = [
        str(Path(store) / f"{duty}.py")
        for duty in duties
        for store in ("native", "openclaw")
        if not (PACKAGE / "shell" / store / f"{duty}.py").is_file()
    ]
    assert not lacking
