"""What is finished in the core can be reached: every function and class, from the public names (F62).

References are read off the source by name, so that a function counts as reached wherever its name is used by something
that is reached itself. This finds only sure cases; a name that two things share hides one of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import field, frozen

import memprov

PACKAGE = Path(memprov.__file__).parent
CORE = PACKAGE / "core"
#: The test kit is public, too, but what only it uses nobody's memory depends on.
OUTSIDE = (PACKAGE / "testing",)
#: Reached by no name: Python itself calls it.
CALLED_BY_PYTHON = ("__getattr__", "__dir__")
#: What the core answers to a guard among the tests alone.
ASKED_BY_GUARDS = ("is_declared",)


@frozen
class Definition:
    """A function, class or constant of a module, and all names that stand in it."""

    module: str
    name: str
    names: frozenset[str] = field(repr=False)
    constant: bool = False


def names_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for top in nodes:
        for node in ast.walk(top):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name
                case ast.Constant(value=str(text)) if text.isidentifier():
                    yield text  # an annotation in quotes, or a name that is looked up


def read(source: str, module: str) -> tuple[list[Definition], frozenset[str]]:
    """The definitions of a module, and the names that are used when it is imported, but for imports and ``__all__``."""
    definitions, used = [], []
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                definitions.append(Definition(module, name, frozenset(names_in(ast.iter_child_nodes(node)))))
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                pass
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                definitions.append(Definition(module, name, frozenset(names_in([value])), constant=True))
            case _:
                used.append(node)
    return definitions, frozenset(names_in(used))


def unreached(modules: Iterable[tuple[str, str]], roots: Iterable[str]) -> list[Definition]:
    """The functions and classes whose names nothing mentions that is reached from these names."""
    definitions: dict[str, list[Definition]] = {}
    waiting = set(roots)
    for module, source in modules:
        found, used = read(source, module)
        waiting |= used
        for definition in found:
            definitions.setdefault(definition.name, []).append(definition)
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            for definition in definitions.get(name, ()):
                waiting |= definition.names - reached
    return [d for name in sorted(definitions.keys() - reached) for d in definitions[name] if not d.constant]


def test_F62_everything_in_the_core_is_reached_from_a_public_name() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if not any(path.is_relative_to(place) for place in OUTSIDE)]
    modules = [(str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")) for path in sorted(paths)]
    lost = unreached(modules, (*memprov.__all__, *CALLED_BY_PYTHON, *ASKED_BY_GUARDS))
    assert [f"{d.module}: {d.name}" for d in lost if (PACKAGE / d.module).is_relative_to(CORE)] == []


def test_the_guard_rings() -> None:
    source = """
__all__ = ["public", "forgotten"]
LIMIT = 5
def public() -> "Kind":
    return _used()
def _used():
    return LIMIT
class Kind: ...
def forgotten():
    return _only_here()
def _only_here(): ...
TABLE = {"x": forgotten}
"""
    assert [d.name for d in unreached([("m.py", source)], ["public"])] == ["_only_here", "forgotten"]
    assert unreached([("m.py", source + "\nprint(TABLE)\n")], ["public"]) == []
