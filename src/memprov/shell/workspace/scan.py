"""What a workspace holds: its memory files, its session corpus, left-over copies, and what could not be read.

First every place is listed, then every file is read once; should something be moved away in between, the whole is
done again, since it may now lie where the listing had already been. Reading changes nothing (I3). Whatever must
be read and cannot be is an error: what was not seen is never taken for clean.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import attrgetter
from typing import TypeVar

from attrs import frozen

from memprov.core.records import MemoryFile
from memprov.core.state import StaleCopy
from memprov.errors import StaleStateError, StoreNotFoundError
from memprov.shell.workspace.copies import judge
from memprov.shell.workspace.listing import ELSEWHERE, MovedError, list_places, places_inside, refusal
from memprov.shell.workspace.places import Listed, places_of, read_each
from memprov.shell.workspace.tree import CALLS, Calls, Tree, sha256, shown

__all__ = ["WorkspaceScan", "read_copies", "scan", "settle", "steadily"]

_ATTEMPTS = 8

T = TypeVar("T")


@frozen
class WorkspaceScan:
    """The files of a workspace, each in a fixed order. ``unscanned`` are sentences for the report (D6)."""

    files: tuple[MemoryFile, ...] = ()
    corpus: tuple[MemoryFile, ...] = ()
    stale_copies: tuple[StaleCopy, ...] = ()
    unscanned: tuple[str, ...] = ()


def scan(
    root: str | os.PathLike[str],
    extra_paths: Iterable[str] = (),
    *,
    now: Callable[[], float] = time.time,
    calls: Calls = CALLS,
) -> WorkspaceScan:
    """Read the workspace at ``root`` (D7). ``extra_paths`` are files, or folders whose Markdown is memory too.

    What is not there is empty. Raises ``InputError`` for an extra path outside the root, ``RefusedError``
    (``CorruptStoreError`` where the disk is damaged) for what is there and cannot be read, and
    ``StaleStateError`` when files kept being moved about.
    """
    extra = places_inside(root, extra_paths)

    def read(tree: Tree) -> WorkspaceScan:
        places = places_of(list_places(tree, extra))
        return WorkspaceScan(
            files=tuple(read_each(places.memory, tree, Listed.with_text)),
            corpus=tuple(read_each(places.corpus, tree, Listed.with_text)),
            stale_copies=read_copies(tree, places.copies, now()),
            unscanned=places.notes,
        )

    return steadily(root, calls, read, WorkspaceScan())


def settle(root: str | os.PathLike[str], extra_paths: Iterable[str] = (), *, calls: Calls = CALLS) -> None:
    """Make every earlier renaming and removal in the workspace durable.

    A run that was killed after a rename leaves a file that looks done. The next run finds nothing to do there and
    drops the evidence, while the rename itself may still be lost with the power. So an exclusive run begins with
    this; nothing that can be read is changed. Raises as ``scan`` does.
    """
    extra = places_inside(root, extra_paths)

    def sync(tree: Tree) -> None:
        for parts in list_places(tree, extra).directories:
            try:
                with tree.directory(parts) as directory:
                    tree.sync(directory)
            except OSError as error:
                if error.errno in ELSEWHERE:
                    raise MovedError from None
                raise refusal("/".join(parts) or ".", error, "make durable") from error

    steadily(root, calls, sync, None)


def steadily(root: str | os.PathLike[str], calls: Calls, read: Callable[[Tree], T], nothing: T) -> T:
    """``read`` the tree, again when something was moved meanwhile; ``nothing`` where there is no workspace."""
    for _ in range(_ATTEMPTS):
        try:
            tree = Tree(root, calls)
        except FileNotFoundError:
            return nothing
        except NotADirectoryError:
            raise StoreNotFoundError(f"the workspace {shown(os.fspath(root))} is no directory") from None
        except OSError as error:
            raise refusal(os.fspath(root), error) from error
        try:
            with tree:
                return read(tree)
        except MovedError:
            continue
    raise StaleStateError(f"files below {shown(os.fspath(root))} were moved about while they were being read")


def read_copies(tree: Tree, copies: Iterable[Listed], now: float) -> tuple[StaleCopy, ...]:
    """What is known of left-over copies (D18). One whose writer was just done with it is passed over."""
    found: list[StaleCopy] = []
    for listed in copies:
        with suppress(MovedError):
            (digest,) = read_each((listed,), tree, lambda _, data: sha256(data))
            found += (judge(path, digest, now - listed.modified_ns / 1e9) for path in listed.names)
    return tuple(sorted(found, key=attrgetter("path")))
