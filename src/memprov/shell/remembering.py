"""What was read once need not be read again while it stands: the pass under the lock follows one before it.

A *standing* is what the system says of the files that an answer was read from. Equal standings mean the same content,
unless a file changed so recently that the clock of its file system may not show the next change; then there is none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar, cast

from attrs import Factory, frozen

__all__ = ["Remembered", "has_settled", "standing_of"]

T = TypeVar("T")

#: A file changed this recently may change again without its time stamp showing it.
TICK_NS = 20_000_000
_AGAIN = ("", "-wal", "-journal")


@frozen(eq=False)
class Remembered:
    """Answers with their standings."""

    known: dict[Hashable, tuple[object, object]] = Factory(dict)

    def recall(self, name: Hashable, standing: object, read: Callable[[], T]) -> T:
        """What was read under this name, if it stands; else what ``read`` gives now. ``None`` is no standing.

        Where each of many files stands for itself, keep a dictionary under the name: it stands always.
        """
        before = self.known.get(name)
        if standing is not None and before is not None and before[0] == standing:
            return cast("T", before[1])
        value = read()
        self.known[name] = standing, value
        return value


def standing_of(databases: Iterable[str]) -> object | None:
    """The standing of database files, with what lies beside them. Take it before reading."""
    found: list[tuple[str, int, int, int, int]] = []
    newest = 0
    for path in databases:
        for ending in _AGAIN:
            try:
                info = os.stat(os.path.realpath(path) + ending)
            except OSError:
                continue
            if ending and not info.st_size:
                continue  # an empty log is no log
            newest = max(newest, info.st_mtime_ns, info.st_ctime_ns)
            found.append((path + ending, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
    return tuple(found) if has_settled(newest) else None


def has_settled(changed_ns: int) -> bool:
    """Whether the next change of a file that was last changed then would show in its time."""
    return changed_ns < time.time_ns() - TICK_NS
