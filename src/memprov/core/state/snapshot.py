"""What a store holds, as one frozen value: the only thing a purge plan is computed from.

A shell reads a store into a ``MemorySnapshot``; a notebook can build one from plain values. Rows that come by the
million (origins, chunks) are columns here, and everything else is a tuple of nouns. ``store.agent_id`` is the agent
whose ledger and index this is; recall rows, signals, checkpoints, events, preimages and files belong to the workspace,
which other agents may share (docs: The report).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from memprov.core.lineage import OriginTable, TransferEdge
from memprov.core.records import (
    CuratedWrite,
    HostEvent,
    IndexSource,
    MemoryFile,
    OriginClass,
    Preimage,
    RecallEntry,
    RewindBatch,
    SessionKind,
    StoreIdentity,
)
from memprov.core.state.siblings import SiblingIndex
from memprov.core.text import Snippet

__all__ = ["Chunk", "ChunkTable", "MemorySnapshot", "RetainedText", "StaleCopy"]

_CLASSES = tuple(OriginClass)
_KINDS = tuple(SessionKind)


@frozen
class Chunk:
    """One row of the index. ``text`` is read for memory chunks only; session chunks are found by their path."""

    id: str
    path: str
    source: str = "memory"
    text: str = ""
    origin_class: OriginClass = field(default=OriginClass.AGENT, converter=OriginClass)
    session_kind: SessionKind = field(default=SessionKind.UNKNOWN, converter=SessionKind)
    full_text: bool = True
    vector: bool = False


@frozen(eq=False)
class ChunkTable:
    """Index rows as columns; row ``i`` of every column is one chunk. ``rows()`` gives objects."""

    ids: tuple[str, ...]
    paths: tuple[str, ...]
    path_codes: NDArray[np.int32]
    is_session: NDArray[np.bool_]
    classes: NDArray[np.int8]
    kinds: NDArray[np.int8]
    texts: tuple[str, ...]
    full_text: NDArray[np.bool_]
    vectors: NDArray[np.bool_]

    @classmethod
    def from_rows(cls, rows: Iterable[Chunk]) -> ChunkTable:
        """Build the columns from objects."""
        rows = tuple(rows)
        pool: dict[str, int] = {}
        codes = [pool.setdefault(row.path, len(pool)) for row in rows]
        return cls(
            ids=tuple(row.id for row in rows),
            paths=tuple(pool),
            path_codes=np.array(codes, dtype=np.int32),
            is_session=np.array([row.source == "sessions" for row in rows], dtype=np.bool_),
            classes=np.array([_CLASSES.index(row.origin_class) for row in rows], dtype=np.int8),
            kinds=np.array([_KINDS.index(row.session_kind) for row in rows], dtype=np.int8),
            texts=tuple(row.text for row in rows),
            full_text=np.array([row.full_text for row in rows], dtype=np.bool_),
            vectors=np.array([row.vector for row in rows], dtype=np.bool_),
        )

    def __repr__(self) -> str:
        return f"<ChunkTable: {len(self)} chunks of {len(self.paths)} paths>"

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self) -> Iterator[Chunk]:
        """The rows as objects, in order."""
        for i, identifier in enumerate(self.ids):
            yield Chunk(
                id=identifier,
                path=self.paths[self.path_codes[i]],
                source="sessions" if self.is_session[i] else "memory",
                text=self.texts[i],
                origin_class=_CLASSES[self.classes[i]],
                session_kind=_KINDS[self.kinds[i]],
                full_text=bool(self.full_text[i]),
                vector=bool(self.vectors[i]),
            )

    def class_mask(self, origin_class: OriginClass) -> NDArray[np.bool_]:
        """Which rows have this origin class."""
        mask: NDArray[np.bool_] = self.classes == _CLASSES.index(origin_class)
        return mask

    def kind_mask(self, *kinds: SessionKind) -> NDArray[np.bool_]:
        """Which rows have one of these session kinds."""
        mask: NDArray[np.bool_] = np.isin(self.kinds, [_KINDS.index(kind) for kind in kinds])
        return mask

    def without(self, ids: Collection[str]) -> ChunkTable:
        """The table less the rows with these ids."""
        gone = frozenset(ids)
        return ChunkTable.from_rows(row for row in self.rows() if row.id not in gone)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChunkTable):
            return NotImplemented
        return sorted(self.rows(), key=lambda row: row.id) == sorted(other.rows(), key=lambda row: row.id)

    __hash__ = None  # type: ignore[assignment]  # mutable columns inside: comparable, never a key


@frozen
class StaleCopy:
    """A copy of a memory file that a rewrite left behind (D18), with what is known of its writer (D19)."""

    path: str
    digest: str
    writer_gone: bool = False
    over_an_hour: bool = False


@frozen
class RetainedText:
    """What a session said, read once more from its retained transcript as ingestion reads it (D23).

    ``snippets`` are as its corpus lines would have them; there are none for a session that said nothing to ingest.
    """

    session_id: str
    snippets: tuple[Snippet, ...] = ()


@frozen
class MemorySnapshot:
    """Everything the purge of one agent in one workspace reads. All fields are plain values.

    ``sibling_keys`` are the entry keys with an origin in another agent's ledger of the same workspace (D17), and
    ``siblings`` are those agents, with what their indexes were made from.
    ``internal_sessions`` are the ids that may never be indexed: cron, heartbeat, dream narratives (docs: Index).
    ``unscanned`` are places that could not be read to the bottom, as sentences for the report (D6). ``transfers`` are
    the edges of this agent's ledger. ``retained`` has a value for each selected session whose transcript could be
    read (D23); what it said is looked for in machine-written places, with corpus lines or without.
    """

    store: StoreIdentity
    files: tuple[MemoryFile, ...] = ()
    corpus: tuple[MemoryFile, ...] = ()
    stale_copies: tuple[StaleCopy, ...] = ()
    origins: OriginTable = field(factory=lambda: OriginTable.from_rows(()))
    sibling_keys: frozenset[str] = frozenset()
    recall: tuple[RecallEntry, ...] = ()
    signals: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    seen_scopes: tuple[str, ...] = ()
    rewinds: tuple[RewindBatch, ...] = ()
    events: tuple[HostEvent, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    chunks: ChunkTable = field(factory=lambda: ChunkTable.from_rows(()))
    sources: tuple[IndexSource, ...] = ()
    cache_rows: int = 0
    tombstones: frozenset[str] = frozenset()
    revision: int = 0
    internal_sessions: frozenset[str] = frozenset()
    ledger_writes: tuple[CuratedWrite, ...] = ()
    transcript_writes: tuple[CuratedWrite, ...] = ()
    unscanned: tuple[str, ...] = ()
    transfers: tuple[TransferEdge, ...] = ()
    siblings: tuple[SiblingIndex, ...] = ()
    retained: tuple[RetainedText, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<MemorySnapshot of agent {self.store.agent_id!r}: {len(self.files)} files, {len(self.corpus)} of corpus, "
            f"{len(self.origins)} origins, {len(self.recall)} recall rows, {len(self.chunks)} chunks>"
        )
