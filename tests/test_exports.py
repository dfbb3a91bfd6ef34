"""Whatever a public name can hand out is public: type hints, followed from `memprov.__all__` to a fixpoint.

What a class hands out are its fields, its properties and its public methods, those that it inherits among them. What
begins with an underscore is nobody's business, and so is a class that is only inherited from.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

import pytest
from attrs import field, frozen

import memprov


def names_for_type_checkers(module: ModuleType) -> dict[str, object]:
    """What a module imports only where types are checked."""
    imports = (
        node
        for branch in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module
    )
    return {
        alias.asname or alias.name: getattr(import_module(node.module or ""), alias.name)
        for node in imports
        for alias in node.names
    }


def hints(value: Any) -> Iterator[tuple[str, object]]:
    known = names_for_type_checkers(sys.modules[value.__module__])
    yield from get_type_hints(value, localns=known).items()


def classes_in(hint: object) -> Iterator[type]:
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from classes_in(part)
    elif isinstance(hint, TypeVar):
        yield from classes_in(hint.__bound__ or hint.__constraints__)
    elif (origin := get_origin(hint)) is not None:
        if origin is not Literal:
            yield from classes_in((origin, *get_args(hint)))
    elif isinstance(hint, type):
        yield hint


def handed_out_by(value: Any) -> Iterator[type]:
    """Every class in the hints of a function, or of what a class shows."""
    if inspect.isfunction(value):
        yield from classes_in([hint for _, hint in hints(value)])
    elif isinstance(value, type):
        for base in (base for base in value.__mro__ if base.__module__ == value.__module__ or is_ours(base)):
            yield from classes_in([hint for name, hint in hints(base) if not name.startswith("_")])
            for name, part in vars(base).items():
                function = getattr(part, "fget", None) or getattr(part, "func", None) or getattr(part, "__func__", part)
                if (name in {"__enter__", "__iter__", "__call__"} or not name.startswith("_")) and callable(function):
                    yield from handed_out_by(function) if inspect.isfunction(function) else ()


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "memprov"


def unexported(public: Iterable[object], home: str = "memprov") -> set[str]:
    """The classes of ours that can be had from these without being one of them."""
    exported = list(public)
    seen, waiting = list(exported), list(exported)
    while waiting:
        for kind in handed_out_by(waiting.pop()):
            if kind not in seen and kind.__module__.split(".")[0] == home:
                seen.append(kind)
                waiting.append(kind)
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in seen[len(exported) :] if isinstance(kind, type)}


def test_whatever_a_public_name_hands_out_is_public() -> None:
    assert not unexported(getattr(memprov, name) for name in memprov.__all__)


HERE = __name__.partition(".")[0]


class Inner:
    pass


@frozen
class Outer:
    shown: tuple[Inner, ...] = ()


@frozen
class Private:
    _held: Inner = field(factory=Inner)

    def _give(self) -> Inner:
        return self._held


class WithProperty:
    @property
    def given(self) -> dict[str, Inner | None]:
        return {}


class WithMethod:
    def take(self, taken: list[Outer]) -> None:
        pass


class Heir(WithMethod):
    pass


class Port(Protocol):
    def __call__(self, *, inner: Inner) -> None: ...


def function(port: Port) -> None:
    pass


@pytest.mark.parametrize(
    ("public", "missing"),
    [
        (Outer, {"Inner"}),
        (WithProperty, {"Inner"}),
        (WithMethod, {"Outer", "Inner"}),
        (Heir, {"Outer", "Inner"}),
        (function, {"Port", "Inner"}),
        (Private, set()),
    ],
)
def test_a_class_that_is_handed_out_and_not_public_rings(public: object, missing: set[str]) -> None:
    assert unexported([public], HERE) == {f"{__name__}.{name}" for name in missing}
    assert unexported([public, Outer, Inner, Port], HERE) == set()


def test_the_version_is_that_of_the_installed_package_and_is_read_when_it_is_asked_for() -> None:
    assert memprov.__version__ == version("memprov")
    code = "import sys, memprov; print('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("store", [memprov.NativeStore, memprov.OpenClawStore])
def test_a_store_shows_what_it_does_and_not_what_it_works_with(store: type) -> None:
    shown = {name for name in dir(store) if not name.startswith("_")}
    assert not shown & {"calls", "clock", "known", "layout", "load_vectors", "reads", "sleep"}
    assert {"catalogue", "exclusive", "identity", "snapshot"} <= shown
