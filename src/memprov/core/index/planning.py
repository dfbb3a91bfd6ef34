"""The plan of an index: which sources it may hold, what they are cut into, and what has to change for that.

What is searchable is decided here, once for a sync and for a rebuild (docs: Index): memory files but not what memprov
and OpenClaw keep for themselves (B16), transcripts but not those of forgotten and internal sessions. What the index
holds beyond that goes, whatever brought it there. The plan is a value; what embedding adds to it is looked up by chunk
hash, so that nothing here waits for a model, and the fences of its effects decide at the end what may become visible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from attrs import evolve, field, frozen

from memprov.core.index.chunking import ChunkBudget, Piece, chunk_id, chunk_lines, chunk_text, is_entry_file
from memprov.core.index.effects import CachedEmbedding, DropSource, IndexedChunk, PublishSource, ReplaceIndex
from memprov.core.index.fences import Change, Fence
from memprov.core.records import OriginClass, Provenance, SessionRecord, chunk_provenance, path_class, string_set
from memprov.core.text import SessionMatcher, digest, to_bytes
from memprov.core.writing import (
    Admission,
    ContentLine,
    Message,
    Purpose,
    content_hash,
    decide_admission,
    read_transcript,
)

__all__ = [
    "DroppedSource",
    "EmbedderIdentity",
    "IndexPlan",
    "IndexState",
    "IndexedSource",
    "SourceText",
    "embedded",
    "indexable_sessions",
    "is_own_artifact",
    "memory_text",
    "missing_texts",
    "plan_index",
    "plan_rebuild",
    "session_path",
    "session_text",
    "sessions_to_repair",
]


@frozen
class EmbedderIdentity:
    """Which embedder made a vector. Vectors of different identities are never compared.

    ``key`` tells apart what else matters: an end point, a revision of the weights, a prompt.
    """

    provider: str
    model: str
    key: str = ""

    @property
    def name(self) -> str:
        """The model as a chunk names it."""
        return f"{self.provider}/{self.model}" + (f"#{self.key}" if self.key else "")


@frozen
class IndexedSource:
    """What the index holds of a source: the digest it was made from, how many chunks, of which models and class."""

    path: str
    source: str
    hash: str
    chunks: int = 0
    models: frozenset[str] = field(default=frozenset(), converter=string_set)
    classes: frozenset[OriginClass] = frozenset()


@frozen
class IndexState:
    """What a plan of the index is computed from. ``sessions`` are the whole catalogue, with inherited kinds."""

    agent_id: str
    revision: int = 0
    tombstones: frozenset[str] = field(default=frozenset(), converter=string_set)
    sessions: tuple[SessionRecord, ...] = ()
    indexed: tuple[IndexedSource, ...] = ()


@frozen
class SourceText:
    """A source as it was read. Of a file ``text`` and class; of a session its lines, each with its own provenance."""

    path: str
    source: str
    hash: str
    mtime_ms: int = 0
    size: int = 0
    text: str = field(default="", repr=False)
    provenance: Provenance = field(factory=Provenance)
    lines: tuple[ContentLine, ...] = field(default=(), repr=False)
    session_id: str | None = None

    @property
    def blank(self) -> bool:
        """Whether there is nothing to be found in it."""
        return not (self.lines or self.text.strip())

    def pieces(self, budget: ChunkBudget | None) -> Iterable[tuple[Piece, Provenance]]:
        """The chunks with their provenance: that of the file, or of the lines that a chunk spans (docs: Trust)."""
        if self.session_id is None:
            for piece in chunk_text(self.text, budget, entries=is_entry_file(self.path)):
                yield piece, self.provenance
            return
        for piece in chunk_lines((line.text for line in self.lines), budget):
            spanned = self.lines[piece.start_line - 1 : piece.end_line]
            numbered = evolve(piece, start_line=spanned[0].number, end_line=spanned[-1].number)
            yield numbered, chunk_provenance(line.provenance for line in spanned)


@frozen
class DroppedSource:
    """A source that the index held and may not hold, and why."""

    path: str
    source: str
    change: Change


@frozen
class IndexPlan:
    """Effects in order, what is not indexed and why, and how many sources are as the index has them already."""

    effects: tuple[PublishSource | DropSource | ReplaceIndex, ...]
    dropped: tuple[DroppedSource, ...] = ()
    excluded: tuple[Admission, ...] = ()
    unchanged: int = 0

    @property
    def publications(self) -> tuple[PublishSource, ...]:
        """Every source that is to be published, also those of a new generation."""
        found: list[PublishSource] = []
        for effect in self.effects:
            if isinstance(effect, ReplaceIndex):
                found.extend(effect.sources)
            elif isinstance(effect, PublishSource):
                found.append(effect)
        return tuple(found)


# --- what may be indexed ----------------------------------------------------------------------------------------------


def is_own_artifact(path: str) -> bool:
    """Whether a file of the memory folder is the memory system's own: corpus and state, in any letter case (B16)."""
    parts = [part.casefold() for part in path.split("/")]
    return parts[:2] == ["memory", ".dreams"]


def session_path(agent_id: str, session_id: str) -> str | None:
    """What the index calls a session's transcript; ``None`` for one that a purge would not find again by any name."""
    for path in (f"sessions/{agent_id}/{session_id}.jsonl", f"sessions/{agent_id}/{session_id}"):
        if "\0" not in path and path.isprintable() and SessionMatcher(agent_id, (session_id,)).owns_path(path):
            return path
    return None


def indexable_sessions(state: IndexState) -> tuple[tuple[SessionRecord, ...], tuple[Admission, ...]]:
    """The sessions whose transcripts may be read for the index, and the decisions against the others (I10)."""
    admitted: list[SessionRecord] = []
    excluded: list[Admission] = []
    for session in state.sessions:
        decision = decide_admission(session, None, state.tombstones, Purpose.INDEXING)
        if decision.admitted and session_path(state.agent_id, session.session_id) is None:
            decision = evolve(decision, reason="unattributable")
        if decision.admitted:
            admitted.append(session)
        else:
            excluded.append(decision)
    return tuple(admitted), tuple(excluded)


def sessions_to_repair(state: IndexState, model: str) -> frozenset[str]:
    """The sessions that the index holds nothing of though it did, or holds with another model's chunks."""
    broken = {known.path for known in state.indexed if not known.chunks or known.models != {model}}
    if not broken:
        return frozenset()
    paths = ((session.session_id, session_path(state.agent_id, session.session_id)) for session in state.sessions)
    return frozenset(name for name, path in paths if path in broken)


def memory_text(path: str, text: str, *, mtime_ms: int = 0, recorded: OriginClass | None = None) -> SourceText | None:
    """A memory file as a source; ``None`` for the memory system's own. ``recorded`` is its class in the file ledger."""
    if is_own_artifact(path):
        return None
    known = Provenance(path_class(path, recorded), observed_at_ms=mtime_ms)
    return SourceText(path, "memory", digest(text), mtime_ms, len(to_bytes(text)), text, known)


def session_text(session: SessionRecord, messages: Iterable[Message]) -> SourceText | None:
    """A transcript as a source; ``None`` for what turns out to be no conversation, or holds nothing but system text."""
    path = session_path(session.agent_id, session.session_id)
    reading = read_transcript(messages, modified_ms=session.created_at_ms or 0, archived=session.state == "archived")
    if path is None or not reading.lines:
        return None
    lines = tuple(evolve(line, provenance=evolve(line.provenance, session_kind=session.kind)) for line in reading.lines)
    if all(line.provenance.origin_class is OriginClass.SYSTEM for line in lines):
        return None
    hashed = hashlib.sha256(f"{content_hash(lines)}:{session.kind}".encode()).hexdigest()
    return SourceText(
        path,
        "sessions",
        hashed,
        max(line.timestamp_ms for line in lines),
        sum(len(to_bytes(line.text)) + 1 for line in lines),
        lines=lines,
        session_id=session.session_id,
    )


# --- the plans --------------------------------------------------------------------------------------------------------


def plan_index(
    state: IndexState,
    sources: Iterable[SourceText],
    *,
    model: str,
    budget: ChunkBudget | None = None,
    read_sessions: Iterable[str] = (),
) -> IndexPlan:
    """What an incremental sync has to do.

    ``sources`` are all indexable memory files, and of the sessions in ``read_sessions`` those whose transcripts hold
    anything. Of other admitted sessions the index keeps what it has.
    """
    texts = {(source.path, source.source): source for source in sources if not source.blank}
    indexed = {(known.path, known.source): known for known in state.indexed}
    dropped = tuple(_dropped(state, texts, string_set(read_sessions)))
    unwanted = {(drop.path, drop.source) for drop in dropped}
    published = tuple(
        _publication(texts[place], indexed.get(place), model, budget)
        for place in sorted(texts)
        if place not in unwanted and not _is_current(texts[place], indexed.get(place), model)
    )
    drops = tuple(DropSource(drop.path, drop.source) for drop in dropped)
    _, excluded = indexable_sessions(state)
    return IndexPlan((*drops, *published), dropped, excluded, len(texts.keys() - unwanted) - len(published))


def plan_rebuild(
    state: IndexState, sources: Iterable[SourceText], *, model: str, budget: ChunkBudget | None = None
) -> IndexPlan:
    """A new generation of the whole index, made from these sources and nothing else (B53)."""
    admitted, excluded = indexable_sessions(state)
    allowed = {session.session_id for session in admitted}
    indexed = {(known.path, known.source): known for known in state.indexed}
    texts = {
        (source.path, source.source): source
        for source in sources
        if not source.blank and (source.session_id is None or source.session_id in allowed)
    }
    published = tuple(_publication(texts[place], indexed.get(place), model, budget) for place in sorted(texts))
    dropped = tuple(_dropped(state, texts, frozenset(session.session_id for session in state.sessions)))
    return IndexPlan((ReplaceIndex(state.agent_id, state.revision, published),), dropped, excluded)


def _dropped(
    state: IndexState, texts: Mapping[tuple[str, str], SourceText], read: AbstractSet[str]
) -> Iterable[DroppedSource]:
    """What the index holds of sources that it may not hold or that are not there any more."""
    admitted, excluded = indexable_sessions(state)
    paths = {session_path(state.agent_id, session.session_id): session.session_id for session in admitted}
    forgotten = SessionMatcher(state.agent_id, state.tombstones)
    kept_out = SessionMatcher(state.agent_id, (decision.session_id for decision in excluded))
    for known in state.indexed:
        if known.source == "memory":
            if (known.path, known.source) not in texts:
                yield DroppedSource(known.path, known.source, Change.GONE)
        elif forgotten.owns_path(known.path):
            yield DroppedSource(known.path, known.source, Change.FORGOTTEN)
        elif kept_out.owns_path(known.path):
            yield DroppedSource(known.path, known.source, Change.EXCLUDED)
        elif known.path not in paths or (paths[known.path] in read and (known.path, known.source) not in texts):
            yield DroppedSource(known.path, known.source, Change.GONE)


def _is_current(source: SourceText, known: IndexedSource | None, model: str) -> bool:
    return (
        known is not None
        and known.hash == source.hash
        and known.chunks > 0
        and known.models == {model}
        and (source.session_id is not None or known.classes == {source.provenance.origin_class})
    )


def _publication(
    source: SourceText, known: IndexedSource | None, model: str, budget: ChunkBudget | None
) -> PublishSource:
    chunks: dict[str, IndexedChunk] = {}
    for piece, known_of in source.pieces(budget):
        identifier = chunk_id(source.source, source.path, piece, model)
        twin = chunks.get(identifier)  # pieces of one long line may be equal
        provenance = chunk_provenance((twin.provenance, known_of)) if twin else known_of
        chunks[identifier] = IndexedChunk(
            identifier, piece.start_line, piece.end_line, piece.hash, model, piece.text, provenance
        )
    fence = Fence(
        source.path,
        source.source,
        source.hash,
        known.hash if known else None,
        source.session_id,
        source.provenance.origin_class if source.session_id is None else None,
    )
    return PublishSource(fence, source.mtime_ms, source.size, tuple(chunks.values()))


# --- vectors ----------------------------------------------------------------------------------------------------------


def missing_texts(plan: IndexPlan) -> dict[str, str]:
    """Chunk hash -> text, of every chunk that a vector is needed for, in order."""
    return {chunk.hash: chunk.text for source in plan.publications for chunk in source.chunks}


def embedded(
    plan: IndexPlan, identity: EmbedderIdentity, vectors: Mapping[str, bytes], fresh: AbstractSet[str]
) -> IndexPlan:
    """The plan with its vectors, given by chunk hash. The ``fresh`` ones go into the cache, each with one source."""
    noted: set[str] = set()

    def filled(source: PublishSource) -> PublishSource:
        new = dict.fromkeys(c.hash for c in source.chunks if c.hash in fresh and c.hash not in noted)
        noted.update(new)
        return evolve(
            source,
            chunks=tuple(evolve(chunk, embedding=vectors[chunk.hash]) for chunk in source.chunks),
            cache=tuple(
                CachedEmbedding(identity.provider, identity.model, identity.key, name, vectors[name]) for name in new
            ),
        )

    def of(effect: PublishSource | DropSource | ReplaceIndex) -> PublishSource | DropSource | ReplaceIndex:
        if isinstance(effect, ReplaceIndex):
            return evolve(effect, sources=tuple(map(filled, effect.sources)))
        return filled(effect) if isinstance(effect, PublishSource) else effect

    return evolve(plan, effects=tuple(map(of, plan.effects)))
