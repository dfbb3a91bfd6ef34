"""What a place in a store is, and what it is to be a surface: a place that holds memory text or session ids.

Patterns are globs over paths relative to a root and over table names; ``{agent}`` is the agent whose store it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from attrs import field, frozen

__all__ = ["ANY", "NeedleKind", "Root", "Spot", "Surface", "holds_spot", "in_files"]

ANY = ("**",)


class NeedleKind(StrEnum):
    """What ``verify`` looks for: a session's id, or something that was said in it."""

    ID = "id"
    TEXT = "text"


class Root(StrEnum):
    """Which of a store's two directories a path is relative to."""

    STATE = "state"
    WORKSPACE = "workspace"


@frozen
class Spot:
    """A place within a store: a file, and within a database the table (or ``free`` pages) and the group of rows."""

    root: Root
    path: str
    table: str = ""
    rows: str = ""

    def __str__(self) -> str:
        inner = " ".join(filter(None, (self.table, self.rows)))
        return f"{self.root}/{self.path}" + (f" ({inner})" if inner else "")


@frozen
class Surface:
    """One place, what it holds and what becomes of it. ``retained`` are the kinds of needles that stay by contract."""

    name: str
    store: str
    root: Root
    files: str
    holds: str
    purged: str = ""
    erased: str = ""
    tables: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    retained: frozenset[NeedleKind] = frozenset()
    why: str = field(default="")
    removal: str = field(default="")


def holds_spot(surface: Surface, agent_id: str, spot: Spot) -> bool:
    """Whether a spot is of this surface. What is no table (free pages, say) is in a surface of whole files only."""
    if surface.root is not spot.root or not _glob(surface.files, agent_id).fullmatch(spot.path):
        return False
    if surface.tables and surface.tables != ANY and (" " in spot.table or not _matches(surface.tables, spot.table)):
        return False
    return not surface.rows or _matches(surface.rows, spot.rows)


def in_files(surface: Surface, agent_id: str, path: str) -> bool:
    """Whether a path is one of the surface's files."""
    return _glob(surface.files, agent_id).fullmatch(path) is not None


def _matches(patterns: Iterable[str], name: str) -> bool:
    return any(_glob(pattern, "").fullmatch(name) for pattern in patterns)


_GLOB = re.compile(r"(\*\*|\*|\[!\w+\]|!\{agent\}|\{agent\})")


@lru_cache(maxsize=512)
def _glob(pattern: str, agent_id: str) -> re.Pattern[str]:
    """A glob as an expression: ``*`` within a name, ``**`` across folders, ``!{agent}`` any other agent's name."""
    agent = re.escape(agent_id)
    meaning = {"**": ".*", "*": "[^/]*", "{agent}": agent, "!{agent}": rf"(?!{agent}/)[^/]+"}
    parts = _GLOB.split(pattern)
    return re.compile(
        "".join(meaning.get(p) or (p.replace("!", "^") if p.startswith("[!") else re.escape(p)) for p in parts),
        re.DOTALL,
    )
