"""The walls of the house, read off the source with `ast`.

What the core may import is a closed list: everything that is not on it (I/O, clocks, chance, threads,
logging, the shell) is outside. Each guard has a twin that feeds it a bad module and sees it ring.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import memprov

SRC = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SRC / "memprov"
CORE = PACKAGE / "core"

# Values and algorithms only. A module that can reach a file, a clock, a random source, the environment,
# another process or a log does not belong here.
CORE_MAY_IMPORT = frozenset({
    "__future__", "abc", "array", "base64", "binascii", "bisect", "codecs", "collections", "contextlib",
    "copy", "dataclasses", "datetime", "difflib", "enum", "functools", "hashlib", "heapq", "hmac", "html",
    "itertools", "json", "math", "numbers", "operator", "re", "string", "struct", "textwrap", "types",
    "typing", "unicodedata", "ahocorasick_rs", "attr", "attrs", "cattrs", "numpy", "memprov.core",
    "memprov.errors",
})  # fmt: skip
CORE_MAY_NOT_NAME = frozenset({"__import__", "breakpoint", "eval", "exec", "input", "open", "print"})
CLOCK_READERS = frozenset({"now", "today", "utcnow"})
NUMPY_IMPURE = frozenset({
    "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "random", "save", "savetxt", "savez",
    "savez_compressed", "tofile",
})  # fmt: skip

# Package -> the only modules below which it may be imported. SQLite is reached through apsw alone: two SQLite
# libraries on one database file in one process break its locks.
ONLY_BELOW = {
    "apsw": ("memprov.shell", "memprov.testing"),
    "click": ("memprov.cli",),
    "filelock": ("memprov.shell",),
    "hypothesis": ("memprov.testing",),
    "lancedb": ("memprov.shell",),
    "pyarrow": ("memprov.shell",),
    "pytest": (),
    "rich": ("memprov.cli",),
    "sqlite3": (),
    "sqlite_vec": ("memprov.shell",),
}

SHELL_MAY_NOT_IMPORT = ("memprov.cli", "memprov.testing")

VAGUE = frozenset({
    "base", "bases", "common", "commons", "helper", "helpers", "manager", "managers", "misc", "util", "utils",
})  # fmt: skip

LONGEST = 400


def modules_below(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*.py") if "__pycache__" not in path.parts)


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def within(name: str, roots: frozenset[str] | tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(root + ".") for root in roots)


def imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[str]:
    """Absolute names of what the source imports; of `from X import n` where X is a memprov package, `X.n`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parents = module.split(".")
                up = node.level - is_package
                source = ".".join([*parents[: len(parents) - up], *filter(None, [node.module])])
            if source == "memprov":
                yield from (f"memprov.{alias.name}" for alias in node.names)
            else:
                yield source


def numpy_names(tree: ast.Module) -> set[str]:
    aliases = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
    return {alias.asname or alias.name for alias in aliases if alias.name.split(".")[0] == "numpy"}


def impurities(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What in the source of a core module reaches outside of it, in words."""
    tree = ast.parse(source)
    found = [
        f"imports {name}"
        for name in imports(tree, module, is_package=is_package)
        if not within(name, CORE_MAY_IMPORT) or within(name, ("numpy.random",))
    ]
    numpy = numpy_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in CORE_MAY_NOT_NAME:
                found.append(f"names {name}")
            case ast.Attribute(attr=name) if name in CLOCK_READERS:
                found.append(f"reads the clock by .{name}")
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in numpy and name in NUMPY_IMPURE:
                found.append(f"uses {owner}.{name}")
            case ast.ImportFrom(module=str(package), names=names) if package.split(".")[0] == "numpy":
                found.extend(f"imports numpy {a.name}" for a in names if a.name in NUMPY_IMPURE)
            case ast.Call(func=ast.Attribute(attr="astimezone" | "fromtimestamp" as name), args=args, keywords=[]) if (
                len(args) < (1 if name == "astimezone" else 2)
            ):
                found.append(f"uses the local time zone by .{name}")
            case _:
                pass
    return found


def test_the_core_exists() -> None:
    assert (CORE / "__init__.py").is_file()
    assert (PACKAGE / "py.typed").is_file()


def test_the_core_is_pure() -> None:
    modules = modules_below(CORE)
    assert modules
    rung = {
        module_name(path): found
        for path in modules
        if (found := impurities(path.read_text("utf-8"), module_name(path), is_package=path.stem == "__init__"))
    }
    assert not rung


@pytest.mark.parametrize(
    "outside",
    [
        "os", "os.path", "io", "time", "random", "secrets", "sqlite3", "apsw", "pathlib", "tempfile",
        "logging", "subprocess", "socket", "threading", "asyncio", "shutil", "glob", "uuid", "sys",
        "signal", "ctypes", "concurrent.futures", "multiprocessing", "importlib", "warnings", "pickle",
        "zoneinfo", "locale", "getpass", "filelock", "sqlite_vec", "numpy.random", "memprov",
        "memprov.shell", "memprov.shell.runner", "memprov.cli", "memprov.testing",
    ],
)  # fmt: skip
def test_an_import_from_outside_rings(outside: str) -> None:
    assert impurities(f"import {outside}", "memprov.core.m")
    assert impurities(f"from {outside} import thing", "memprov.core.m")
    assert impurities(f"def f():\n    import {outside} as x", "memprov.core.m")


@pytest.mark.parametrize(
    ("source", "module", "is_package"),
    [
        ("from .. import shell", "memprov.core.m", False),
        ("from ..shell import runner", "memprov.core.m", False),
        ("from ...shell import runner", "memprov.core.scrub", True),
        ("from ..shell import runner", "memprov.core", True),
        ("from memprov import shell", "memprov.core.m", False),
        ("from memprov import open_store", "memprov.core.m", False),
        ("open('x')", "memprov.core.m", False),
        ("print('x')", "memprov.core.m", False),
        ("reader = open", "memprov.core.m", False),
        ("eval('1')", "memprov.core.m", False),
        ("__import__('os')", "memprov.core.m", False),
        ("import datetime\ndatetime.datetime.now()", "memprov.core.m", False),
        ("from datetime import datetime, UTC\ndatetime.now(tz=UTC)", "memprov.core.m", False),
        ("from datetime import date\ndate.today()", "memprov.core.m", False),
        ("from datetime import datetime\ndatetime.utcnow()", "memprov.core.m", False),
        ("from datetime import datetime\ndatetime.fromtimestamp(0)", "memprov.core.m", False),
        ("from datetime import datetime\ndatetime(2026, 1, 1).astimezone()", "memprov.core.m", False),
        ("import numpy as np\nnp.random.default_rng()", "memprov.core.m", False),
        ("import numpy as np\nnp.load('x')", "memprov.core.m", False),
        ("from numpy import random", "memprov.core.m", False),
    ],
)
def test_a_reach_outside_rings(source: str, module: str, is_package: bool) -> None:
    assert impurities(source, module, is_package=is_package)


@pytest.mark.parametrize(
    ("source", "module", "is_package"),
    [
        (
            "from . import records\nfrom .records import Origin\nfrom ..errors import InputError",
            "memprov.core.m",
            False,
        ),
        ("from .. import errors", "memprov.core.m", False),
        ("from . import lines\nfrom ..records import Origin", "memprov.core.scrub", True),
        ("import numpy as np\nnp.unique([1])", "memprov.core.m", False),
        ("from memprov.core.records import Origin", "memprov.core.m", False),
        ("import re\nre.compile('x')", "memprov.core.m", False),
        (
            "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC).astimezone(UTC)",
            "memprov.core.m",
            False,
        ),
        ("from datetime import datetime, UTC\ndatetime.fromtimestamp(0, tz=UTC)", "memprov.core.m", False),
    ],
)
def test_what_is_pure_stays_silent(source: str, module: str, is_package: bool) -> None:
    assert impurities(source, module, is_package=is_package) == []


def misplaced(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Imports that belong to another part of the house."""
    found = []
    for name in imports(ast.parse(source), module, is_package=is_package):
        allowed = ONLY_BELOW.get(name.split(".")[0])
        if allowed is not None and not within(module, allowed):
            found.append(name)
        if within(module, ("memprov.shell",)) and within(name, SHELL_MAY_NOT_IMPORT):
            found.append(name)
    return found


def test_each_dependency_stays_in_its_part_of_the_house() -> None:
    rung = {
        module_name(path): found
        for path in modules_below(PACKAGE)
        if (found := misplaced(path.read_text("utf-8"), module_name(path), is_package=path.stem == "__init__"))
    }
    assert not rung


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import sqlite3", "memprov.shell.native"),
        ("import apsw", "memprov.cli"),
        ("from rich.console import Console", "memprov.shell.runner"),
        ("import click", "memprov.errors"),
        ("from hypothesis import strategies", "memprov.shell.runner"),
        ("import pytest", "memprov.testing"),
        ("from ..testing import corpora", "memprov.shell.runner"),
        ("from memprov import cli", "memprov.shell.runner"),
    ],
)
def test_a_misplaced_import_rings(source: str, module: str) -> None:
    assert misplaced(source, module)


def vague_parts(path: Path) -> set[str]:
    words = {word for part in path.relative_to(SRC).with_suffix("").parts for word in part.split("_")}
    return words & VAGUE


def test_every_module_is_named_after_its_idea() -> None:
    assert not {module_name(path): vague_parts(path) for path in modules_below(PACKAGE) if vague_parts(path)}


@pytest.mark.parametrize("name", ["util.py", "utils/__init__.py", "core/misc.py", "shell/path_helpers.py"])
def test_a_vague_name_rings(name: str) -> None:
    assert vague_parts(PACKAGE / name)
    assert not vague_parts(PACKAGE / "core" / "base64_needles.py")


def test_modules_are_short() -> None:
    lengths = {module_name(path): path.read_text("utf-8").count("\n") for path in modules_below(PACKAGE)}
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


def lacks_head(source: str) -> list[str]:
    """Every module opens with what it is for, and says which of its names are public."""
    tree = ast.parse(source)
    targets = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    says_public = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
    return [
        *(["docstring"] if not ast.get_docstring(tree) else []),
        *(["__all__"] if not says_public else []),
    ]


def test_every_module_has_a_docstring_and_all() -> None:
    modules = [path for path in modules_below(PACKAGE) if path.stem != "__main__"]
    assert not {module_name(path): lacks for path in modules if (lacks := lacks_head(path.read_text("utf-8")))}


def test_a_module_without_a_head_rings() -> None:
    assert lacks_head("x = 1") == ["docstring", "__all__"]
    assert lacks_head('"""Why."""\n__all__: list[str] = []') == []


def undocumented(namespace: dict[str, object], public: list[str]) -> dict[str, str]:
    """Public name -> what is wrong with it. A plain value has its `#:` comment where it is defined."""
    wrong = {name: "listed twice" for name in public if public.count(name) > 1}
    for name in public:
        if name not in namespace:
            wrong[name] = "does not exist"
        elif isinstance(value := namespace[name], type) or callable(value):
            inherited = [base.__doc__ for base in value.__mro__[1:]] if isinstance(value, type) else []
            if not (value.__doc__ or "").strip() or value.__doc__ in inherited:
                wrong[name] = "has no docstring of its own"
    return wrong


def test_every_public_name_exists_and_is_documented() -> None:
    assert not undocumented({name: getattr(memprov, name) for name in memprov.__all__}, list(memprov.__all__))


def test_the_public_names_are_those_that_a_type_checker_sees_from_where_it_sees_them() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    typed = {
        name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memprov.")
        for name in node.names
    }
    assert typed == memprov._HOMES, "a public name stands in the imports, in __all__ and in _HOMES"
    assert sorted(typed) == sorted(memprov.__all__)


def test_importing_memprov_loads_none_of_its_rooms() -> None:
    code = "import sys, memprov; print([name for name in sys.modules if name.startswith(('memprov.', 'numpy'))])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[]"


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'purge_everything'"):
        getattr(memprov, "purge_" + "everything")
    assert {*memprov.__all__} <= {*dir(memprov)}


def test_an_undocumented_or_missing_public_name_rings() -> None:
    namespace: dict[str, object] = {}
    source = '''
        class Documented(ValueError):
            """Said."""
        class Heir(Documented): pass
        def silent(): pass
        def spoken():
            """Said."""
        LIMIT = 3
    '''
    exec(dedent(source), namespace)  # noqa: S102
    public = ["Documented", "Heir", "silent", "spoken", "LIMIT", "missing", "spoken"]
    assert undocumented(namespace, public) == {
        "Heir": "has no docstring of its own",
        "silent": "has no docstring of its own",
        "missing": "does not exist",
        "spoken": "listed twice",
    }
