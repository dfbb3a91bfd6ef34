"""Narrow answers of an OpenClaw installation: rows by key or by what SQLite finds in them, files by bytes (docs:
Planning by asking).

Each question is answered in a transaction of its own. What the host's own limits keep small (the short-term store, its
signals, preimages) is read whole. When more sessions are asked for than it pays to look for one by one, all rows of
their kind are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TypeVar

from attrs import frozen

from memprov.core.lineage import OriginTable
from memprov.core.purge import (
    Answer,
    Carriers,
    CarriersOf,
    CorpusOf,
    IndexPart,
    IndexUnder,
    KeyOwners,
    KnownKeys,
    Mapper,
    MemoryTexts,
    OriginsOf,
    Question,
    RecallUnder,
    RestOf,
    SaidBy,
    ScrubRules,
    Selection,
    StateUnder,
    Surroundings,
    TextsUnder,
    gate_within,
)
from memprov.core.records import OriginClass, Preimage, Roots, SessionKind
from memprov.core.state import ChunkTable
from memprov.core.text import Gate, SessionMatcher, to_bytes
from memprov.shell.openclaw.curated import TranscriptSearch, search_transcripts
from memprov.shell.openclaw.index import count_cache, memory_texts, paths_like, read_chunks, read_sources
from memprov.shell.openclaw.layout import Layout
from memprov.shell.openclaw.origins import entry_keys_of, origins_of
from memprov.shell.openclaw.reader import (
    elsewhere,
    find_session_database,
    left_overs,
    read_catalogue,
    read_sibling_indexes,
    read_sibling_keys,
)
from memprov.shell.openclaw.sessions import SessionList
from memprov.shell.openclaw.state import read_ledger_writes, read_part, read_preimages, read_recall
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.sqlite import Access, Database, Reader
from memprov.shell.statements import json_array
from memprov.shell.workspace import Calls, WorkspaceReading, reading_of

__all__ = ["OpenClawAnswering", "narrow_answers"]

_A = TypeVar("_A")

#: For how many sessions a table is searched by name before all of it is read.
_FEW = 16


@frozen
class OpenClawAnswering:
    """Answers the questions of one plan for one selection."""

    layout: Layout
    access: Access
    selection: Selection
    workspace: WorkspaceReading
    now: float
    remembered: Remembered
    known: Remembered

    def __call__(self, question: Question) -> Answer:
        """See ``memprov.shell.port.Answering``."""
        read, shared, keys, agent_id = self.access.read, self._shared, self.layout.place.keys, self.layout.agent_id
        match question:
            case OriginsOf():
                return self._own(question, partial(_origins, question=question, agent_id=agent_id))
            case KeyOwners():
                mine = self._own(question, partial(entry_keys_of, agent_id=agent_id, among=question.entry_keys))
                return KnownKeys(mine, read_sibling_keys(self.layout, self.access, question.entry_keys))
            case CorpusOf():
                return self.workspace.corpus(question.sessions)
            case SaidBy():
                return self._transcripts.retained
            case TextsUnder():
                files, facts = self.workspace.memory(question)
                return MemoryTexts(files, _under(self._preimages, question.rules), facts)
            case RecallUnder():
                return read(shared, lambda r: read_recall(r, keys, self._now_ms))
            case IndexUnder():
                return self._index(question)
            case CarriersOf():
                gate = Gate(question.entry_keys)
                return Carriers(_sifted(self._preimages, gate), self._own(question, partial(_carriers, gate=gate)))
            case StateUnder():
                ids, events = question.rules.session_ids, _events_gate(question)
                return read(shared, lambda r: read_part(r, keys, self._now_ms, ids, events))
            case RestOf():
                return self._rest(question)

    def _own(self, question: Question, use: Callable[[Reader], _A]) -> _A:
        """Read the agent's own database."""
        standing = standing_of([self._agent.path])
        return self.remembered.recall(question, standing, lambda: self.access.read(self._agent, use))

    @property
    def _agent(self) -> Database:
        return self.layout.config.agent_database(self.layout.agent_id)

    @property
    def _shared(self) -> Database:
        return self.layout.config.shared_database

    @property
    def _now_ms(self) -> int:
        return int(self.now * 1000)

    @cached_property
    def _preimages(self) -> tuple[Preimage, ...]:
        keys, now_ms = self.layout.place.keys, self._now_ms
        return self.access.read(self._shared, lambda reader: read_preimages(reader, keys, now_ms))

    @cached_property
    def _sessions_standing(self) -> object | None:
        """Of the sessions and their transcripts, wherever those are."""
        sessions = self.layout.sessions
        found = standing_of([self._agent.path, sessions.database])
        beside = standing_of(path for top in sessions.archive_directories for path in _files_in(top))
        return None if found is None or beside is None else (found, beside)

    @cached_property
    def _sessions(self) -> SessionList:
        return read_catalogue(self.layout, self.access, self.known)

    @cached_property
    def _transcripts(self) -> TranscriptSearch:
        if not self.selection.session_ids:
            return TranscriptSearch((), (), frozenset(), ())
        name = ("transcripts", self.selection.session_ids)
        return self.remembered.recall(name, self._sessions_standing, self._search)

    def _search(self) -> TranscriptSearch:
        head = f"sessions/{self.layout.agent_id}/"
        where, bindings = "c.path >= ? AND c.path < ?", (head, f"{head[:-1]}0")  # what begins with the head
        database, _ = find_session_database(self.layout, self.access)
        return search_transcripts(
            self.access,
            database,
            self._sessions,
            agent_id=self.layout.agent_id,
            selected=frozenset(self.selection.session_ids),
            directories=self.layout.sessions.archive_directories,
            roots=Roots(self.layout.place.spellings),
            indexed=self.access.read(self._agent, lambda reader: tuple(paths_like(reader, where, bindings))),
            owned_only=self.layout.sessions.fixed,
        )

    def _index(self, question: IndexUnder) -> IndexPart:
        """Whole paths: of changed files, of selected and internal sessions, of memory chunks that may change."""
        if not question.rules.session_ids:
            return IndexPart(ChunkTable.from_rows(()))
        agent_id = self.layout.agent_id
        mine = frozenset(session_id for owner, session_id in self._sessions.internal if owner == agent_id)
        internal = mine | self._transcripts.internal
        return self._own(question, partial(_index, question=question, internal=internal))

    def _rest(self, question: RestOf) -> Surroundings:
        keys, config = self.layout.place.keys, self.layout.config
        named = frozenset((*question.session_ids, *question.session_keys))
        writes, doubts = self.access.read(
            self._shared,
            lambda r: (read_ledger_writes(r, keys, self._now_ms, named), elsewhere(r, keys, config)),
        )
        return Surroundings(
            corpus_files=len(self.workspace.places.corpus),
            cache_rows=self.access.read(self._agent, count_cache),
            stale_copies=self.workspace.stale_copies(self.now),
            ledger_writes=writes,
            transcript_writes=self._transcripts.writes,
            unscanned=(*self.workspace.places.notes, *doubts, *left_overs(self.layout), *self._transcripts.unread),
            siblings=self.workspace.siblings(read_sibling_indexes(self.layout, self.access)),
        )


def narrow_answers(
    layout: Layout,
    access: Access,
    selection: Selection,
    now: float,
    mapper: Mapper,
    calls: Calls,
    remembered: Remembered | None,
    known: Remembered,
) -> OpenClawAnswering:
    """What answers the questions of one plan for a selection. The workspace is listed now. ``known`` are sessions."""
    remembered = remembered or Remembered()
    workspace = reading_of(layout.place.workspace, mapper, calls, remembered)
    return OpenClawAnswering(layout, access, selection, workspace, now, remembered, known)


def _files_in(directory: str) -> Iterator[str]:
    try:
        yield from sorted(entry.path for entry in os.scandir(directory))
    except OSError:
        return


def _origins(reader: Reader, question: OriginsOf, agent_id: str) -> OriginTable:
    return origins_of(reader, agent_id, question.session_ids, question.entry_keys)


def _under(preimages: tuple[Preimage, ...], rules: ScrubRules) -> tuple[Preimage, ...]:
    gate = gate_within(rules, sum(len(preimage.content) for preimage in preimages))
    return preimages if gate is None else _sifted(preimages, gate)


def _sifted(preimages: tuple[Preimage, ...], gate: Gate) -> tuple[Preimage, ...]:
    return tuple(preimage for preimage in preimages if gate.may_hold(to_bytes(preimage.content)))


def _events_gate(question: StateUnder) -> Gate | None:
    """What an event that matters holds: an id, a key, the path of a place, or a quotation."""
    literals = question.rules.session_ids | question.keys | {path for path, _, _ in question.places}
    return Gate(literals, question.rules.quotations) if len(question.rules.session_ids) <= _FEW else None


def _index(reader: Reader, question: IndexUnder, internal: frozenset[str]) -> IndexPart:
    rules = question.rules
    paths = {*question.changed, *_owned_paths(reader, rules.sessions)}
    paths.update(_internal_paths(reader, SessionMatcher(rules.agent_id, internal)))
    texts = [(path, body) for _, path, body in memory_texts(reader)]
    gate = gate_within(rules, sum(len(body) for _, body in texts))
    paths.update((path for path, _ in texts) if gate is None else gate.sift(texts))
    among = "path IN (SELECT value FROM json_each(?))"
    return IndexPart(
        chunks=read_chunks(reader, f"WHERE c.{among}", (json_array(paths),)),
        sources=read_sources(reader, f"WHERE {among}", (json_array(paths | question.removed),)),
        internal_sessions=internal,
    )


def _owned_paths(reader: Reader, sessions: SessionMatcher) -> Iterator[str]:
    """The paths that name a selected session, whatever chunks they are of."""
    if len(sessions.session_ids) <= _FEW:
        where = "EXISTS (SELECT 1 FROM json_each(?) AS named WHERE instr(c.path, named.value))"
        found = paths_like(reader, where, (json_array(sessions.session_ids),))
    else:
        found = paths_like(reader, "TRUE")
    return filter(sessions.owns_path, found)


def _internal_paths(reader: Reader, internal: SessionMatcher) -> Iterator[str]:
    """The paths of session chunks that should not be there (docs: Index)."""
    kinds = ", ".join(repr(kind.value) for kind in (SessionKind.CRON, SessionKind.HEARTBEAT))
    marked = f"(p.origin_class = '{OriginClass.SYSTEM}' OR p.session_kind IN ({kinds}))"
    yield from paths_like(reader, f"c.source = 'sessions' AND {marked}")
    if internal.session_ids:
        yield from filter(internal.owns_path, paths_like(reader, "c.source = 'sessions'"))


def _carriers(reader: Reader, gate: Gate) -> ChunkTable:
    found = gate.sift((identifier, body) for identifier, _, body in memory_texts(reader))
    return read_chunks(reader, "WHERE c.id IN (SELECT value FROM json_each(?))", (json_array(found),))
