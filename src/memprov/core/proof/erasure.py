"""What erasure reached, and what it could not: two lists of sentences, and the names of left-over rebuilds."""

from __future__ import annotations

import re

from attrs import frozen

__all__ = ["Erasure", "is_stale_rebuild"]


@frozen
class Erasure:
    """What was erased and what could not be, in sentences without memory text. ``a + b`` is both."""

    reached: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()

    def __add__(self, other: Erasure) -> Erasure:
        return Erasure(self.reached + other.reached, self.unreached + other.unreached)


_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SIDES = r"(?:-wal|-shm|-journal)?"


def is_stale_rebuild(name: str, database: str) -> bool:
    """Whether a file is what a killed rebuild of this database's index left behind, by its exact name (F18a, D18)."""
    return re.fullmatch(rf"{re.escape(database)}\.memory-reindex-{_UUID}{_SIDES}", name) is not None
