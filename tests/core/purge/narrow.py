"""Answers that hold what a question asks for and nothing else: as little as a store may ever answer (I16)."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from memprov import ChunkTable, MemorySnapshot, OriginTable, RecallEntry, ScrubRules, scrub_text
from memprov.core.purge import (
    Answer,
    Carriers,
    CarriersOf,
    CorpusOf,
    IndexPart,
    IndexUnder,
    KeyOwners,
    KnownKeys,
    MemoryTexts,
    OriginsOf,
    Question,
    RecallUnder,
    RestOf,
    SaidBy,
    StatePart,
    StateUnder,
    Surroundings,
    TextsUnder,
    facts_of,
    promotion_keys,
)
from memprov.core.purge.derived import event_words
from memprov.core.purge.texts import scrub_file
from memprov.core.records import is_diary, is_machine_path, is_phase_report
from memprov.core.state import sibling_views
from memprov.core.text import corpus_owner, digest, is_readable, scan_corpus

__all__ = ["least_from", "nothing_for"]


def least_from(snapshot: MemorySnapshot, question: Question) -> Answer:
    """The least sufficient answer, found by the decisions themselves. Slow."""
    match question:
        case OriginsOf():
            mine = snapshot.origins.of_agent(snapshot.store.agent_id)
            keys = {row.entry_key for row in mine.touching(question.session_ids, question.entry_keys).rows()}
            return mine.touching(entry_keys=keys)
        case KeyOwners():
            mine = snapshot.origins.of_agent(snapshot.store.agent_id)
            others = {row.entry_key for row in snapshot.origins.rows() if row.agent_id != snapshot.store.agent_id}
            asked = question.entry_keys
            return KnownKeys(mine.keys & asked, (snapshot.sibling_keys | others) & asked)
        case CorpusOf():
            return tuple(
                file
                for file in snapshot.corpus
                if scan_corpus(file, question.sessions) is not None or not is_readable(file.text)
            )
        case SaidBy():
            return tuple(text for text in snapshot.retained if text.session_id in question.session_ids)
        case TextsUnder():
            return _texts(snapshot, question)
        case RecallUnder():
            return _recall(snapshot.recall, question.rules)
        case IndexUnder():
            return _index(snapshot, question)
        case CarriersOf():
            carried = question.entry_keys
            return Carriers(
                tuple(p for p in snapshot.preimages if not carried.isdisjoint(promotion_keys(p.content))),
                ChunkTable.from_rows(
                    chunk
                    for chunk in snapshot.chunks.rows()
                    if chunk.source == "memory" and not carried.isdisjoint(promotion_keys(chunk.text))
                ),
            )
        case StateUnder():
            return _state(snapshot, question)
        case RestOf():
            return Surroundings(
                corpus_files=len(snapshot.corpus),
                cache_rows=snapshot.cache_rows,
                stale_copies=snapshot.stale_copies,
                ledger_writes=tuple(
                    w
                    for w in snapshot.ledger_writes
                    if w.session_id in question.session_ids
                    or (w.session_id is None and w.session_key in question.session_keys)
                ),
                transcript_writes=snapshot.transcript_writes,
                unscanned=snapshot.unscanned,
                siblings=sibling_views(snapshot.siblings, {f.path: digest(f.text) for f in snapshot.files}),
            )


def _texts(snapshot: MemorySnapshot, question: TextsUnder) -> MemoryTexts:
    needed = [
        scrub_file(file, question.rules).suspects
        or scrub_file(file, question.rules).broken
        or scrub_text(file.text, question.rules, phase_report=is_phase_report(file.path)).changed
        or (is_phase_report(file.path) and any(path in file.text for path in question.citing))
        for file in snapshot.files
    ]
    facts = (facts_of(file.path, file.text) for file, read in zip(snapshot.files, needed, strict=True) if not read)
    return MemoryTexts(
        files=tuple(file for file, read in zip(snapshot.files, needed, strict=True) if read),
        preimages=tuple(p for p in snapshot.preimages if scrub_text(p.content, question.rules).changed),
        facts=tuple(known for known in facts if known.keys or known.untraceable or known.unreadable),
    )


def _recall(recall: Iterable[RecallEntry], rules: ScrubRules) -> tuple[RecallEntry, ...]:
    rows = tuple(recall)
    chosen = [
        row
        for row in rows
        if not rules.entry_keys.isdisjoint((row.key, row.row_key))
        or rules.sessions.owns_path(row.path)
        or corpus_owner(row.snippet, rules.agent_id) in rules.session_ids
        or rules.quotations.quoted_lines(row.snippet.replace("\n", " "))
        or (is_machine_path(row.path) and rules.machine_quotations.quoted_lines(row.snippet.replace("\n", " ")))
    ]
    places = {(row.path, row.start_line, row.end_line) for row in chosen}
    return tuple(row for row in rows if (row.path, row.start_line, row.end_line) in places)


def _index(snapshot: MemorySnapshot, question: IndexUnder) -> IndexPart:
    rules, agent = question.rules, snapshot.store.agent_id
    if not rules.session_ids:
        return IndexPart(ChunkTable.from_rows(()))
    internal = evolve(rules, session_ids=snapshot.internal_sessions).sessions
    paths = {
        chunk.path
        for chunk in snapshot.chunks.rows()
        if chunk.path in question.changed
        or rules.sessions.owns_path(chunk.path)
        or (
            chunk.source == "memory"
            and (
                scrub_text(chunk.text, rules, phase_report=is_phase_report(chunk.path)).changed
                or (is_diary(chunk.path) and rules.machine_quotations.quoted_lines(chunk.text))
            )
        )
        or (
            chunk.source == "sessions"
            and (
                chunk.origin_class == "system"
                or chunk.session_kind in ("cron", "heartbeat")
                or internal.owns_path(chunk.path)
            )
        )
    }
    return IndexPart(
        ChunkTable.from_rows(chunk for chunk in snapshot.chunks.rows() if chunk.path in paths),
        tuple(s for s in snapshot.sources if s.path in question.removed or s.path in paths),
        frozenset(i for i in snapshot.internal_sessions if any(i in path for path in paths) and agent),
    )


def _state(snapshot: MemorySnapshot, question: StateUnder) -> StatePart:
    sessions, keys = question.rules.sessions, question.keys

    def may_name(payload: str) -> bool:
        return (
            any(key in payload for key in keys)
            or any(place[0] in payload for place in question.places)
            or any(session_id in payload for session_id in question.rules.session_ids)
        )

    return StatePart(
        signals=tuple(key for key in snapshot.signals if key in keys),
        checkpoints=tuple(filter(sessions.owns_state, snapshot.checkpoints)),
        seen_scopes=tuple(filter(sessions.owns_state, snapshot.seen_scopes)),
        rewinds=tuple(r for r in snapshot.rewinds if any(i in c for c in r.candidates for i in sessions.session_ids)),
        events=tuple(
            row
            for row in snapshot.events
            if may_name(row.payload)
            or any(question.rules.quotations.quoted_lines(words.replace("\n", " ")) for words in event_words(row))
        ),
    )


def nothing_for(question: Question) -> Answer:
    """The empty answer to a question, which is too little unless nothing there is of the selection."""
    chunks = ChunkTable.from_rows(())
    match question:
        case OriginsOf():
            return OriginTable.from_rows(())
        case KeyOwners():
            return KnownKeys()
        case CorpusOf() | RecallUnder() | SaidBy():
            return ()
        case TextsUnder():
            return MemoryTexts()
        case IndexUnder():
            return IndexPart(chunks)
        case CarriersOf():
            return Carriers((), chunks)
        case StateUnder():
            return StatePart()
        case RestOf():
            return Surroundings()
