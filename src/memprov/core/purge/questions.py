"""What a purge plan needs to know, as values: a closed set of questions, and the values that answer them.

Effects are what the core wants done; questions are what it wants to know (docs: Planning by asking). The planner
yields a question and is sent its answer, until the plan stands. A store answers as narrowly as it can. An answer may
hold too much, never too little: whatever it holds besides changes no plan (I16). Where it lists things, it keeps the
order of the snapshot.

``answer_from`` answers every question with all that a snapshot has: the meaning of each question, and the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Generic, TypeVar, cast

from attrs import frozen

from memprov.core.lineage import OriginTable
from memprov.core.purge.review import has_old_highlights
from memprov.core.purge.scrub import ScrubRules, promotion_keys
from memprov.core.records import CuratedWrite, HostEvent, IndexSource, MemoryFile, Preimage, RecallEntry, RewindBatch
from memprov.core.state import ChunkTable, MemorySnapshot, RetainedText, Sibling, StaleCopy, sibling_views
from memprov.core.text import SessionMatcher, digest, is_readable

__all__ = [
    "Answer",
    "Asking",
    "Carriers",
    "CarriersOf",
    "CorpusOf",
    "FileFacts",
    "IndexPart",
    "IndexUnder",
    "KeyOwners",
    "KnownKeys",
    "MemoryTexts",
    "OriginsOf",
    "Place",
    "Question",
    "RecallUnder",
    "RestOf",
    "SaidBy",
    "StatePart",
    "StateUnder",
    "Surroundings",
    "TextsUnder",
    "answer_from",
    "answered",
    "ask",
    "facts_of",
]

A = TypeVar("A")
R = TypeVar("R")

#: Where a recall row found its text: path, first line, last line.
Place = tuple[str, int, int]


class _Asks(Generic[A]):
    """A question with the type of its answer."""

    __slots__ = ()


# --- answers ----------------------------------------------------------------------------------------------------------


@frozen
class KnownKeys:
    """Entry keys with an origin in this agent's ledger, and in that of another agent of the workspace (D17)."""

    mine: frozenset[str] = frozenset()
    siblings: frozenset[str] = frozenset()


@frozen
class FileFacts:
    """What the report says of a file in which nothing goes: the keys of its live promotion markers, whether it has
    consolidation highlights of the old format, and whether some of it is no text that can be read (F06).
    """

    path: str
    keys: frozenset[str] = frozenset()
    untraceable: bool = False
    unreadable: bool = False


@frozen
class MemoryTexts:
    """Memory files and preimages that may change; of every other memory file that holds a marker or old highlights, or
    cannot be read as text, the facts.
    """

    files: tuple[MemoryFile, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    facts: tuple[FileFacts, ...] = ()


@frozen
class IndexPart:
    """Chunks, all of a path or none; sources; and which of the agent's sessions may never be indexed."""

    chunks: ChunkTable
    sources: tuple[IndexSource, ...] = ()
    internal_sessions: frozenset[str] = frozenset()


@frozen
class Carriers:
    """Preimages, and chunks of memory."""

    preimages: tuple[Preimage, ...]
    chunks: ChunkTable


@frozen
class StatePart:
    """Derived rows other than recall rows."""

    signals: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    seen_scopes: tuple[str, ...] = ()
    rewinds: tuple[RewindBatch, ...] = ()
    events: tuple[HostEvent, ...] = ()


@frozen
class Surroundings:
    """What the report says beside the memory itself. ``corpus_files`` counts all of them."""

    corpus_files: int = 0
    cache_rows: int = 0
    stale_copies: tuple[StaleCopy, ...] = ()
    ledger_writes: tuple[CuratedWrite, ...] = ()
    transcript_writes: tuple[CuratedWrite, ...] = ()
    unscanned: tuple[str, ...] = ()
    siblings: tuple[Sibling, ...] = ()


# --- questions --------------------------------------------------------------------------------------------------------


@frozen
class OriginsOf(_Asks[OriginTable]):
    """Every origin row, of whichever session, of the entries that have one in these sessions, and of these entries."""

    session_ids: tuple[str, ...] = ()
    entry_keys: tuple[str, ...] = ()


@frozen
class KeyOwners(_Asks[KnownKeys]):
    """Which of these entry keys have an origin, and whose."""

    entry_keys: frozenset[str]


@frozen
class CorpusOf(_Asks[tuple[MemoryFile, ...]]):
    """The corpus files that may hold a line of these sessions (D1), and those that cannot be read as text (F06)."""

    sessions: SessionMatcher


@frozen
class SaidBy(_Asks[tuple[RetainedText, ...]]):
    """What these sessions said by their transcripts, one value for each that could be read (D23)."""

    session_ids: tuple[str, ...]


@frozen
class TextsUnder(_Asks[MemoryTexts]):
    """The memory files and preimages that may change under these rules; the files that name one of the entry keys in
    any way (F08), or may hold a suspect by the rules: what quotes a retained snippet (D23) or looks like a quotation of
    any (F09); and those that name one of ``citing``, paths of corpus files that lose lines (D22). Of the other files
    the facts.
    """

    rules: ScrubRules
    citing: tuple[str, ...] = ()


@frozen
class RecallUnder(_Asks[tuple[RecallEntry, ...]]):
    """The recall rows that may be of these sessions or entries or quote one of the snippets, retained ones included,
    and every row that stands at the same place as one of those.
    """

    rules: ScrubRules


@frozen
class IndexUnder(_Asks[IndexPart]):
    """The chunks at these paths, at paths of selected sessions, of sessions that may never be indexed, and at the paths
    of memory chunks whose text may change under the rules, or which are of the diary and quote a retained snippet
    (D23); the sources at ``removed`` and at any path of these chunks.

    Asked of a selection of no session, nothing is needed.
    """

    rules: ScrubRules
    changed: frozenset[str]
    removed: frozenset[str]


@frozen
class CarriersOf(_Asks[Carriers]):
    """The preimages and the chunks of memory that may carry a live promotion marker of one of these keys."""

    entry_keys: frozenset[str]


@frozen
class StateUnder(_Asks[StatePart]):
    """The signals of these keys; the checkpoints, seen scopes and rewind batches that may be of the sessions; the
    events that may name a key, session or place, or may quote a snippet.
    """

    rules: ScrubRules
    keys: frozenset[str]
    places: frozenset[Place]


@frozen
class RestOf(_Asks[Surroundings]):
    """The surroundings; of curated writes those of these sessions, known by id or by key."""

    session_ids: tuple[str, ...]
    session_keys: tuple[str, ...]


Question = (
    OriginsOf | KeyOwners | CorpusOf | SaidBy | TextsUnder | RecallUnder | IndexUnder | CarriersOf | StateUnder | RestOf
)
Answer = (
    OriginTable
    | KnownKeys
    | tuple[MemoryFile, ...]
    | tuple[RetainedText, ...]
    | MemoryTexts
    | tuple[RecallEntry, ...]
    | IndexPart
    | Carriers
    | StatePart
    | Surroundings
)
#: A dialogue: it yields questions, is sent their answers, and returns its result.
Asking = Generator[Question, Answer, R]


def ask(question: _Asks[A]) -> Asking[A]:
    """Put one question; what `yield from` it gives has the type of its answer."""
    answer = yield cast("Question", question)
    return cast("A", answer)


def answered(asking: Asking[R], answer: Callable[[Question], Answer]) -> R:
    """Lead a dialogue to its end. Whatever the answering raises passes through, and the dialogue is closed."""
    try:
        question = next(asking)
        while True:
            question = asking.send(answer(question))
    except StopIteration as end:
        return cast("R", end.value)
    finally:
        asking.close()


def facts_of(path: str, text: str) -> FileFacts:
    """What the report needs of a file that does not change."""
    return FileFacts(path, frozenset(promotion_keys(text)), has_old_highlights(text), not is_readable(text))


def answer_from(snapshot: MemorySnapshot, question: Question) -> Answer:
    """Answer with all that the snapshot has, whatever was asked: by definition enough.

    Origins of other agents say only which entries are theirs (I11, D17).
    """
    match question:
        case OriginsOf():
            return snapshot.origins.of_agent(snapshot.store.agent_id)
        case KeyOwners():
            return _known_keys(snapshot)
        case CorpusOf():
            return snapshot.corpus
        case SaidBy():
            return snapshot.retained
        case TextsUnder():
            return MemoryTexts(snapshot.files, snapshot.preimages)
        case RecallUnder():
            return snapshot.recall
        case IndexUnder():
            return IndexPart(snapshot.chunks, snapshot.sources, snapshot.internal_sessions)
        case CarriersOf():
            return Carriers(snapshot.preimages, snapshot.chunks)
        case StateUnder():
            return StatePart(
                snapshot.signals, snapshot.checkpoints, snapshot.seen_scopes, snapshot.rewinds, snapshot.events
            )
        case RestOf():
            return Surroundings(
                corpus_files=len(snapshot.corpus),
                cache_rows=snapshot.cache_rows,
                stale_copies=snapshot.stale_copies,
                ledger_writes=snapshot.ledger_writes,
                transcript_writes=snapshot.transcript_writes,
                unscanned=snapshot.unscanned,
                siblings=sibling_views(snapshot.siblings, _digests(snapshot.files)),
            )


def _digests(files: Iterable[MemoryFile]) -> dict[str, str]:
    return {path: digest(file.text) for file in files for path in (file.path, *file.aliases)}


def _known_keys(snapshot: MemorySnapshot) -> KnownKeys:
    agent = snapshot.store.agent_id
    mine = snapshot.origins.of_agent(agent)
    if mine is snapshot.origins:
        return KnownKeys(mine.keys, snapshot.sibling_keys)
    theirs = frozenset(row.entry_key for row in snapshot.origins.rows() if row.agent_id != agent)
    return KnownKeys(mine.keys, snapshot.sibling_keys | theirs)
