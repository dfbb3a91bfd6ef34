"""The files of a workspace as they were listed: each once, under all its names, and read without a trace.

What a listing says of a file is held against the file's own handle when it is opened. Should something have been moved
away in between, ``MovedError`` says that everything must be done again, since it may now lie where the listing had
already been.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import TypeVar

from attrs import frozen

from memprov.core.records import MemoryFile
from memprov.core.text import to_text
from memprov.shell.workspace.listing import ELSEWHERE, Listing, MovedError, refusal
from memprov.shell.workspace.tree import Inode, Tree, shown

__all__ = ["Listed", "Places", "places_of", "read_each"]

_A = TypeVar("_A")


@frozen
class Listed:
    """One file under all the names that were listed, the first of them before the others."""

    names: tuple[str, ...]
    inode: Inode
    size: int
    modified_ns: int
    changed_ns: int
    unnamed_links: int

    @property
    def path(self) -> str:
        """The name that the report uses."""
        return self.names[0]

    @property
    def touched_ns(self) -> int:
        """When its content or anything else about it last changed."""
        return max(self.modified_ns, self.changed_ns)

    def with_text(self, data: bytes) -> MemoryFile:
        """The file as a plan reads it."""
        return MemoryFile(self.names[0], to_text(data), self.names[1:], self.unnamed_links)


@frozen
class Places:
    """What lies in a workspace. ``notes`` are sentences for the report (D6)."""

    memory: tuple[Listed, ...] = ()
    corpus: tuple[Listed, ...] = ()
    copies: tuple[Listed, ...] = ()
    notes: tuple[str, ...] = ()


def places_of(listing: Listing) -> Places:
    """The files of a listing, each once, and notes on links to them that were not listed."""
    parts = (listing.memory, listing.corpus, listing.copies)
    named = Counter(_inode(info) for part in parts for info in part.values())
    memory, corpus = _grouped(listing.memory, named), _grouped(listing.corpus, named)
    links = (
        f"{shown(file.path)} has {file.unnamed_links} more hard link{'s' * (file.unnamed_links > 1)} "
        "whose name was not found."
        for file in chain(memory, corpus)
        if file.unnamed_links
    )
    return Places(memory, corpus, _grouped(listing.copies, named), tuple(sorted({*listing.notes, *links})))


def _inode(info: os.stat_result) -> Inode:
    return info.st_dev, info.st_ino


def _grouped(files: Mapping[str, os.stat_result], named: Counter[Inode]) -> tuple[Listed, ...]:
    groups: dict[Inode, list[str]] = {}
    for path, info in files.items():
        groups.setdefault(_inode(info), []).append(path)
    return tuple(
        Listed(
            names=tuple(names),
            inode=inode,
            size=files[names[0]].st_size,
            modified_ns=files[names[0]].st_mtime_ns,
            changed_ns=files[names[0]].st_ctime_ns,
            # on a case-blind disk there are more names than links
            unnamed_links=max(0, files[names[0]].st_nlink - named[inode]),
        )
        for inode, names in groups.items()
    )


def read_each(files: Iterable[Listed], tree: Tree, use: Callable[[Listed, bytes], _A]) -> Iterator[_A]:
    """What ``use`` makes of each file's bytes, in order.

    Raises ``MovedError``, and ``RefusedError`` (``CorruptStoreError``) for what is there and cannot be read.
    """
    for parent, group in groupby(files, key=lambda file: file.path.rpartition("/")[0]):
        try:
            with tree.directory(tuple(parent.split("/")) if parent else ()) as directory:
                for listed in group:
                    yield use(listed, _content(tree, directory, listed))
        except OSError as error:
            raise _explained(error, parent) from error


def _content(tree: Tree, directory: int, listed: Listed) -> bytes:
    try:
        with tree.file(directory, listed.path.rpartition("/")[2]) as handle:
            if handle is None or handle.inode != listed.inode:
                raise MovedError
            return handle.read()
    except OSError as error:
        raise _explained(error, listed.path) from error


def _explained(error: OSError, path: str) -> Exception:
    return MovedError() if error.errno in ELSEWHERE else refusal(path, error)
