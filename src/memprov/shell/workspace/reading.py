"""The files of a workspace as answers to a plan's questions: told apart by their bytes, read as text where it matters.

Reading changes nothing (I3). ``MovedError`` says that files were moved about and the plan must be asked for anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from attrs import evolve, frozen

from memprov.core.purge import FileFacts, Mapper, Sifting, TextsUnder, sifting_of
from memprov.core.records import MemoryFile
from memprov.core.state import Sibling, SiblingIndex, StaleCopy, sibling_views
from memprov.core.text import Gate, SessionMatcher, corpus_gate, is_readable, to_text
from memprov.shell.remembering import Remembered, has_settled
from memprov.shell.workspace.listing import MovedError, list_places
from memprov.shell.workspace.places import Listed, Places, places_of, read_each
from memprov.shell.workspace.scan import read_copies, steadily
from memprov.shell.workspace.tree import Calls, Tree, mounted, shown

__all__ = ["WorkspaceReading", "reading_of"]

_A = TypeVar("_A")

#: How many bytes go to a worker at once, and what it costs to open a file, in bytes that could be read meanwhile.
_BATCH = 4 << 20
_OPENING = 1 << 13


@frozen
class WorkspaceReading:
    """A workspace, listed once. ``mapper`` maps a function over batches of files."""

    root: str
    places: Places
    mapper: Mapper
    calls: Calls
    remembered: Remembered

    def corpus(self, sessions: SessionMatcher) -> tuple[MemoryFile, ...]:
        """The corpus files that may hold a line of these sessions."""
        if not sessions.session_ids:
            return ()
        use = partial(_corpus_file, corpus_gate(sessions))
        return tuple(self._each(("corpus", sessions), self.places.corpus, use))

    def memory(self, question: TextsUnder) -> tuple[tuple[MemoryFile, ...], tuple[FileFacts, ...]]:
        """The memory files that may change, and what the report needs of the others."""
        sifting = sifting_of(question, sum(file.size for file in self.places.memory))
        found = list(self._each(("memory", question), self.places.memory, partial(_memory_file, sifting)))
        files = tuple(file for file in found if isinstance(file, MemoryFile))
        return files, tuple(facts for facts in found if isinstance(facts, FileFacts))

    def siblings(self, indexes: tuple[SiblingIndex, ...]) -> tuple[Sibling, ...]:
        """The other agents of the workspace, their indexes compared with the files that they were made from."""
        paths = frozenset(path for index in indexes for path, _ in index.sources)
        files = [file for file in self.places.memory if not paths.isdisjoint(file.names)]
        return sibling_views(
            indexes, {name: digest for names, digest in self._each("digests", files, _digest) for name in names}
        )

    def stale_copies(self, now: float) -> tuple[StaleCopy, ...]:
        """What is known of left-over copies (D18)."""
        if not self.places.copies:
            return ()
        with Tree(self.root, self.calls) as tree:
            return read_copies(tree, self.places.copies, now)

    def _each(self, name: Hashable, files: Iterable[Listed], use: Callable[[Listed, bytes], _A | None]) -> Iterator[_A]:
        """What ``use`` makes of each file, if anything, in order. What it made of one that stands is remembered."""
        listed = tuple(files)
        known: dict[Listed, _A | None] = self.remembered.recall(name, standing="files", read=dict)
        found = {file: known[file] for file in listed if file in known}
        batches = tuple(_batches(file for file in listed if file not in found))
        for batch, results in zip(
            batches, self.mapper(partial(_work, self.root, self.calls, use), batches), strict=True
        ):
            found.update(zip(batch, results, strict=True))
        known.clear()
        known.update((file, made) for file, made in found.items() if has_settled(file.touched_ns))
        yield from (made for file in listed if (made := found[file]) is not None)


def reading_of(root: str, mapper: Mapper, calls: Calls, remembered: Remembered) -> WorkspaceReading:
    """List a workspace; what is not there is empty. Raises as ``scan`` does."""
    places = steadily(root, calls, lambda tree: places_of(list_places(tree, ())), Places())
    named = (name for file in (*places.memory, *places.corpus) for name in file.names)
    if alone := mounted(root, named):
        notes = (
            f"{shown(path)} is mounted by itself, so it cannot be replaced; mount the directory that holds it instead."
            for path in alone
        )
        places = evolve(places, notes=tuple(sorted({*places.notes, *notes})))
    return WorkspaceReading(root, places, mapper, calls, remembered)


def _batches(files: Iterable[Listed]) -> Iterator[tuple[Listed, ...]]:
    """The files in order, in parts of about as many bytes."""
    batch: list[Listed] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.size + _OPENING
        if size >= _BATCH:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def _work(
    root: str, calls: Calls, use: Callable[[Listed, bytes], _A | None], batch: tuple[Listed, ...]
) -> list[_A | None]:
    """One batch, wherever this runs."""
    try:
        tree = Tree(root, calls)
    except (FileNotFoundError, NotADirectoryError):
        raise MovedError from None
    with tree:
        return list(read_each(batch, tree, use))


def _digest(listed: Listed, data: bytes) -> tuple[tuple[str, ...], str]:
    return listed.names, hashlib.sha256(data).hexdigest()


def _corpus_file(gate: Gate, listed: Listed, data: bytes) -> MemoryFile | None:
    if gate.may_hold(data) or b"\0" in data:
        return listed.with_text(data)
    return None if data.isascii() or is_readable(to_text(data)) else listed.with_text(data)


def _memory_file(sifting: Sifting, listed: Listed, data: bytes) -> MemoryFile | FileFacts | None:
    return listed.with_text(data) if sifting.needs(listed.path, data) else sifting.facts(listed.path, data)
