"""The closed set of effects on the index, and their model. The sibling of ``effects`` and ``write_effects``.

Each is prepared outside the lock, sometimes long before, since embedding takes time. So none is carried out blindly:
``fences`` says of each, inside the transaction that publishes it, whether it may still become visible.

Effects carry text and vectors, and no time. Every effect is idempotent. ``apply_index`` is the model that the store is
tested against (I15). It knows chunks by id; of the cache it counts what comes in, and cannot tell what leaves it.
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
    "apply_index",
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


@frozen
class DropSource:
    """Drop a source and all chunks of it. There is no fence: to drop what may stay costs a sync, never a secret."""

    path: str
    source: str


@frozen
class ReplaceIndex:
    """Put a whole new generation in place of the index, if the revision is still the one that it was begun at.

    Everything that is not among ``sources`` goes. Each of these has a fence of its own besides.
    """

    agent_id: str
    revision: int
    sources: tuple[PublishSource, ...]


IndexEffect = PublishSource | DropSource | ReplaceIndex


def apply_index(snapshot: MemorySnapshot, effect: IndexEffect) -> MemorySnapshot:
    """The snapshot after one effect whose fences are open. Pure."""
    match effect:
        case PublishSource():
            return _with_source(snapshot, effect)
        case DropSource():
            if not any((s.path, s.source) == (effect.path, effect.source) for s in snapshot.sources) and not any(
                (c.path, c.source) == (effect.path, effect.source) for c in snapshot.chunks.rows()
            ):
                return snapshot
            return _raised(_without_sources(snapshot, [(effect.path, effect.source)]))
    replaced = evolve(snapshot, chunks=ChunkTable.from_rows(()), sources=())
    for source in effect.sources:
        replaced = _with_source(replaced, source)
    return evolve(replaced, revision=snapshot.revision + 1)


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
