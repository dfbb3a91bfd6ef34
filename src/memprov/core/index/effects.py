"""The effects on the index.

Each is prepared outside the lock, sometimes long before, since embedding takes time. So none is carried out blindly:
``fences`` says of each, inside the transaction that publishes it, whether it may still become visible.

They carry text and vectors, and no time. The model (``applied_to``) takes every fence as open; it knows chunks by id,
and of the cache it counts what comes in and cannot tell what leaves it. What an effect is says ``state.effect``.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, field, frozen

from memprov.core.index.fences import Fence
from memprov.core.records import IndexSource, Provenance
from memprov.core.state import Chunk, ChunkTable, MemorySnapshot

__all__ = [
    "CachedEmbedding",
    "DropSource",
    "IndexEffect",
    "IndexedChunk",
    "PublishSource",
    "ReplaceIndex",
]


@frozen
class IndexedChunk:
    """A chunk as it is published. ``embedding`` is a vector of unit length as little-endian 32-bit numbers."""

    id: str
    start_line: int
    end_line: int
    hash: str
    model: str
    text: str = field(repr=False)
    provenance: Provenance = field(factory=Provenance)
    embedding: bytes | None = field(default=None, repr=False)


@frozen
class CachedEmbedding:
    """A row of the embedding cache: of which embedder, of which chunk hash, and the vector."""

    provider: str
    model: str
    provider_key: str
    hash: str
    embedding: bytes = field(repr=False)


@frozen
class PublishSource:
    """Put these chunks in place of all that the index holds of a source, and note the source, if its fence is open."""

    fence: Fence
    mtime_ms: int
    size: int
    chunks: tuple[IndexedChunk, ...]
    cache: tuple[CachedEmbedding, ...] = field(default=(), repr=False)

    def words(self) -> str:
        """What is done, in words."""
        return f"publish {self.fence.path} in the index"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return _with_source(snapshot, self)


@frozen
class DropSource:
    """Drop a source and all chunks of it. There is no fence: to drop what may stay costs a sync, never a secret."""

    path: str
    source: str

    def words(self) -> str:
        """What is done, in words."""
        return f"drop {self.path} from the index"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        named = (self.path, self.source)
        if not any((s.path, s.source) == named for s in snapshot.sources) and not any(
            (c.path, c.source) == named for c in snapshot.chunks.rows()
        ):
            return snapshot
        return _raised(_without_sources(snapshot, [named]))


@frozen
class ReplaceIndex:
    """Put a whole new generation in place of the index, if the revision is still the one that it was begun at.

    Everything that is not among ``sources`` goes. Each of these has a fence of its own besides.
    """

    agent_id: str
    revision: int
    sources: tuple[PublishSource, ...]

    def words(self) -> str:
        """What is done, in words."""
        return f"replace the index by {len(self.sources)} sources"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        replaced = evolve(snapshot, chunks=ChunkTable.from_rows(()), sources=())
        for source in self.sources:
            replaced = _with_source(replaced, source)
        return evolve(replaced, revision=snapshot.revision + 1)


IndexEffect = PublishSource | DropSource | ReplaceIndex


def _with_source(snapshot: MemorySnapshot, effect: PublishSource) -> MemorySnapshot:
    path, source = effect.fence.path, effect.fence.source
    vectors = {chunk.id for chunk in snapshot.chunks.rows() if chunk.vector}
    bare = _without_sources(snapshot, [(path, source)])
    chunks = (
        Chunk(
            chunk.id,
            path,
            source,
            "" if source == "sessions" else chunk.text,
            chunk.provenance.origin_class,
            chunk.provenance.session_kind,
            vector=chunk.embedding is not None or chunk.id in vectors,
        )
        for chunk in effect.chunks
    )
    return _raised(
        evolve(
            bare,
            chunks=ChunkTable.from_rows((*bare.chunks.rows(), *chunks)),
            sources=tuple(sorted((*bare.sources, IndexSource(path, source)), key=lambda s: (s.path, s.source))),
            cache_rows=bare.cache_rows + len(effect.cache),
        )
    )


def _without_sources(snapshot: MemorySnapshot, gone: Iterable[tuple[str, str]]) -> MemorySnapshot:
    dropped = frozenset(gone)
    return evolve(
        snapshot,
        chunks=ChunkTable.from_rows(c for c in snapshot.chunks.rows() if (c.path, c.source) not in dropped),
        sources=tuple(s for s in snapshot.sources if (s.path, s.source) not in dropped),
    )


def _raised(snapshot: MemorySnapshot) -> MemorySnapshot:
    return evolve(snapshot, revision=snapshot.revision + 1)
