"""What a workspace holds: its memory files, its session corpus, left-over copies, and what could not be read.

First every place is listed, then every file is read once; should something be moved away in between, the whole is
done again, since it may now lie where the listing had already been. Reading changes nothing (I3). Whatever must
be read and cannot be is an error: what was not seen is never taken for clean.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import itemgetter
from typing import TypeVar

from attrs import Factory, frozen

from memprov.core.records import MemoryFile
from memprov.core.state import StaleCopy
from memprov.core.text import to_text
from memprov.errors import StaleStateError, StoreNotFoundError
from memprov.shell.workspace.copies import judge
from memprov.shell.workspace.listing import Listing, MovedError, list_places, places_inside, refusal
from memprov.shell.workspace.tree import CALLS, Calls, Inode, Tree, sha256, shown

__all__ = ["WorkspaceScan", "scan", "settle"]

_ATTEMPTS = 8
_ELSEWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

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
    return _steadily(root, calls, lambda tree: _Reader(tree).read(list_places(tree, extra), now()), WorkspaceScan())


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
                if error.errno in _ELSEWHERE:
                    raise MovedError from None
                raise refusal("/".join(parts) or ".", error, "make durable") from error

    _steadily(root, calls, sync, None)


def _steadily(root: str | os.PathLike[str], calls: Calls, read: Callable[[Tree], T], nothing: T) -> T:
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


@frozen
class _Group:
    """One file, under all the names that were listed. ``text`` is what was made of its bytes."""

    names: list[str]
    info: os.stat_result
    text: str


_Groups = dict[Inode, _Group]


@frozen
class _Reader:
    """Reads what was listed, each file once."""

    tree: Tree
    named: Counter[Inode] = Factory(Counter)

    def read(self, listing: Listing, now: float) -> WorkspaceScan:
        """The files with their text. Links to them that were not listed are noted."""
        memory: _Groups = {}
        corpus: _Groups = {}
        copies: _Groups = {}
        for path in listing.memory:
            self._visit(path, memory, to_text)
        for path in listing.corpus:
            self._visit(path, corpus, to_text)
        for path in sorted(listing.copies):
            with suppress(MovedError):  # its writer was just done with it
                self._visit(path, copies, sha256)
        notes = listing.notes.union(*(self._links_elsewhere(groups) for groups in (memory, corpus, copies)))
        return WorkspaceScan(
            files=self._files(memory),
            corpus=self._files(corpus),
            stale_copies=tuple(
                judge(path, group.text, now - group.info.st_mtime)
                for path, group in sorted(
                    ((path, group) for group in copies.values() for path in group.names), key=itemgetter(0)
                )
            ),
            unscanned=tuple(sorted(notes)),
        )

    def _visit(self, path: str, groups: _Groups, convert: Callable[[bytes], str]) -> None:
        *above, name = path.split("/")
        try:
            with self.tree.directory(tuple(above)) as directory, self.tree.file(directory, name) as handle:
                if handle is None:
                    raise MovedError
                self.named[handle.inode] += 1
                if handle.inode in groups:
                    groups[handle.inode].names.append(path)
                else:
                    groups[handle.inode] = _Group([path], handle.info, convert(handle.read()))
        except OSError as error:
            if error.errno in _ELSEWHERE:
                raise MovedError from None
            raise refusal(path, error) from error

    def _unnamed(self, inode: Inode, group: _Group) -> int:
        """How many of its hard links have no listed name; on a case-blind disk there are more names than links."""
        return max(0, group.info.st_nlink - self.named[inode])

    def _files(self, groups: _Groups) -> tuple[MemoryFile, ...]:
        return tuple(
            MemoryFile(group.names[0], group.text, tuple(group.names[1:]), self._unnamed(inode, group))
            for inode, group in groups.items()
        )

    def _links_elsewhere(self, groups: _Groups) -> list[str]:
        return [
            f"{shown(group.names[0])} has {count} more hard link{'s' * (count > 1)} whose name was not found."
            for inode, group in groups.items()
            if (count := self._unnamed(inode, group))
        ]
