"""The store fixtures themselves: copies are fresh, the shared tree is watched, absence is not a skip."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_stores import fingerprint, store_archives, unpack

pytest_plugins = ("pytester",)


def make_archive(directory: Path, name: str) -> Path:
    tree = directory / "tree" / name / "before" / "ws"
    tree.mkdir(parents=True)
    (tree / "MEMORY.md").write_text("- oolong\n")
    archive = directory / f"{name}.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(directory / "tree" / name, arcname=name)
    return archive


def test_archives_are_found_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make_archive(tmp_path, "tiny")
    monkeypatch.setenv("MEMPROV_STORES", str(tmp_path))
    assert store_archives() == {"tiny": archive}


def test_a_named_directory_without_archives_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPROV_STORES", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no store archive"):
        store_archives()


def test_an_archive_unpacks_to_its_top_directory(tmp_path: Path) -> None:
    top = unpack(make_archive(tmp_path, "tiny"), tmp_path / "out")
    assert top.name == "tiny"
    assert (top / "before" / "ws" / "MEMORY.md").read_text() == "- oolong\n"


def test_the_fingerprint_sees_a_write_and_a_new_file(tmp_path: Path) -> None:
    top = unpack(make_archive(tmp_path, "tiny"), tmp_path / "out")
    before = fingerprint(top)
    assert fingerprint(top) == before
    (top / "before" / "ws" / "USER.md").write_text("")
    with_new_file = fingerprint(top)
    (top / "before" / "ws" / "MEMORY.md").write_text("- sencha tea\n")
    assert before != with_new_file != fingerprint(top)


def test_every_found_store_has_a_before_tree(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    assert (unpacked_store(store_name) / "before" / "state").is_dir()


def test_a_copy_is_fresh_each_time(store_name: str, store_copy: Callable[..., Path]) -> None:
    first, second = store_copy(store_name), store_copy(store_name)
    assert first != second
    assert fingerprint(first) == fingerprint(second)


INNER = """
import pytest

def test_plain(): pass
def test_per_store(store_name): pass
def test_copy(store_copy): pass
@pytest.mark.needs_store("no-such-store")
def test_particular(): pass
@pytest.mark.parametrize("name", [pytest.param("x", marks=pytest.mark.needs_store("no-such-store")), "y"])
def test_one_parameter(name): pass
"""


def test_without_stores_the_tests_are_absent_and_not_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMPROV_STORES", raising=False)
    here = Path(__file__).parent
    inner = pytester.mkdir("tests")
    for name in ("conftest.py", "real_stores.py"):
        (inner / name).write_text((here / name).read_text())
    (inner / "test_inner.py").write_text(INNER)
    pytester.makeini("[pytest]\npythonpath = .\nmarkers = needs_store\naddopts = --import-mode=importlib\n")
    result = pytester.runpytest_subprocess("--strict-markers", "tests")
    assert result.parseoutcomes() == {"passed": 2}
    result.stdout.fnmatch_lines(["real stores: none*", "not collected for want of a real store: 4*"])
