"""Narrow answers of an embedded store: by index where there is one, by bytes where there is none (docs: Planning by
asking).

Each question is answered in a transaction of its own. Where a row is known by its text only, SQLite or a gate tells
which may matter, and the planner decides. When more sessions are asked for than it pays to look for one by one, all
rows of their kind are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import apsw
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
    StatePart,
    StateUnder,
    Surroundings,
    TextsUnder,
    gate_within,
)
from memprov.core.records import IndexSource, Preimage, RecallEntry, RewindBatch
from memprov.core.state import ChunkTable
from memprov.core.text import Gate, SessionMatcher, json_text, to_bytes
from memprov.shell.cells import Value, from_raw, integer, text
from memprov.shell.native.curated import read_ledger_writes
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.layout import Layout
from memprov.shell.native.reader import (
    TELLING,
    Access,
    read_chunks,
    read_place,
    read_preimages,
    read_recall,
    read_rewinds,
    read_sibling_indexes,
    require_workspace,
)
from memprov.shell.native.sessions import read_internal_ids
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.statements import batches, json_array
from memprov.shell.workspace import Calls, WorkspaceReading, reading_of

__all__ = ["NativeAnswering", "narrow_answers"]

_A = TypeVar("_A")

#: For how many sessions a table is searched by name before all of it is read.
_FEW = 16


@frozen
class NativeAnswering:
    """Answers the questions of one plan."""

    layout: Layout
    access: Access
    workspace: WorkspaceReading
    now: float
    remembered: Remembered

    def __call__(self, question: Question) -> Answer:
        """See ``memprov.shell.port.Answering``."""
        match question:
            case OriginsOf():
                return self._ledger(question, partial(_origins, question=question, agent_id=self.layout.agent_id))
            case KeyOwners():
                mine = self._ledger(question, partial(_known, entry_keys=question.entry_keys))
                return KnownKeys(mine, self._sibling_keys(question.entry_keys))
            case CorpusOf():
                return self.workspace.corpus(question.sessions)
            case SaidBy():
                return ()  # transcripts are the host's
            case TextsUnder():
                files, facts = self.workspace.memory(question)
                return MemoryTexts(files, self._shared(question, partial(_preimages, rules=question.rules)), facts)
            case RecallUnder():
                return self._shared(question, partial(_recall, rules=question.rules))
            case IndexUnder():
                return self._ledger(question, partial(_index, question=question, agent_id=self.layout.agent_id))
            case CarriersOf():
                gate = Gate(question.entry_keys)
                chunks = self._ledger(question, partial(_carriers, gate=gate))
                return Carriers(self._shared(question, partial(_sifted_preimages, gate=gate)), chunks)
            case StateUnder():
                return self._shared(question, partial(_state, question=question))
            case RestOf():
                return self._rest(question)

    def _ledger(self, question: Question, use: Callable[[apsw.Connection], _A]) -> _A:
        return self._read(self.layout.ledger, question, use)

    def _shared(self, question: Question, use: Callable[[apsw.Connection], _A]) -> _A:
        return self._read(self.layout.shared, question, use)

    def _read(self, file: LedgerFile, question: Question, use: Callable[[apsw.Connection], _A]) -> _A:
        standing = standing_of([file.path])
        return self.remembered.recall((file.path, question), standing, lambda: self.access.read(file, use))

    def _sibling_keys(self, entry_keys: frozenset[str]) -> frozenset[str]:
        """Which of these have an origin in the ledger of another agent of the same workspace (D17)."""
        place, found = self.layout.place, set[str]()

        def known(connection: apsw.Connection) -> frozenset[str]:
            return _known(connection, entry_keys) if read_place(connection) == place else frozenset()

        for agent_id in self.layout.other_agents():
            file = self.layout.ledger_of(agent_id)
            if self.access.exists(file):
                found |= self.access.read(file, known)
        return frozenset(found)

    def _rest(self, question: RestOf) -> Surroundings:
        agent_id = self.layout.agent_id
        rows = "SELECT count(*) FROM embedding_cache"
        return Surroundings(
            corpus_files=len(self.workspace.places.corpus),
            cache_rows=self.access.read(self.layout.ledger, lambda c: integer(next(iter(c.execute(rows)))[0])),
            stale_copies=self.workspace.stale_copies(self.now),
            ledger_writes=self.access.read(
                self.layout.shared,
                lambda c: read_ledger_writes(c, agent_id, question.session_ids, question.session_keys),
            ),
            unscanned=self.workspace.places.notes,
            siblings=self.workspace.siblings(read_sibling_indexes(self.layout, self.access)),
        )


def narrow_answers(
    layout: Layout, access: Access, now: float, mapper: Mapper, calls: Calls, remembered: Remembered | None = None
) -> NativeAnswering:
    """What answers the questions of one plan. The workspace is listed now."""
    require_workspace(layout)
    remembered = remembered or Remembered()
    return NativeAnswering(layout, access, reading_of(layout.workspace, mapper, calls, remembered), now, remembered)


def _origins(connection: apsw.Connection, question: OriginsOf, agent_id: str) -> OriginTable:
    keys = set(question.entry_keys)
    for batch in batches(question.session_ids):
        rows = connection.execute(
            "SELECT DISTINCT entry_key FROM origins WHERE session_id IN (SELECT value FROM json_each(?))", (batch,)
        )
        keys.update(text(row[0]) for row in rows)
    columns: tuple[list[Value], ...] = ([], [], [], [], [])
    for batch in batches(sorted(keys)):
        rows = connection.execute(
            "SELECT entry_key, session_id, session_key, origin_class, observed_at_ms FROM origins "
            "WHERE entry_key IN (SELECT value FROM json_each(?)) ORDER BY entry_key, session_id",
            (batch,),
        )
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    entries, sessions, session_keys, classes, observed = columns
    return OriginTable.from_columns(
        list(map(text, entries)),
        map(text, sessions),
        (None if key is None else text(key) for key in session_keys),
        map(text, classes),
        map(integer, observed),
        agent_id,
    )


def _known(connection: apsw.Connection, entry_keys: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for batch in batches(entry_keys):
        rows = connection.execute(
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM origins WHERE entry_key = value)", (batch,)
        )
        found.update(text(row[0]) for row in rows)
    return frozenset(found)


def _preimages(connection: apsw.Connection, rules: ScrubRules) -> tuple[Preimage, ...]:
    gate = gate_within(rules, _size(connection, "preimages", "content"))
    return read_preimages(connection) if gate is None else _sifted_preimages(connection, gate)


def _sifted_preimages(connection: apsw.Connection, gate: Gate) -> tuple[Preimage, ...]:
    return tuple(p for p in read_preimages(connection) if gate.may_hold(to_bytes(p.content)))


def _recall(connection: apsw.Connection, rules: ScrubRules) -> tuple[RecallEntry, ...]:
    """The rows that may be of the rules, and those at the same places."""
    rows = read_recall(connection)
    gate = gate_within(rules, sum(len(row.snippet) for row in rows))
    if gate is None:
        return rows
    chosen = gate.sift((row, to_bytes(f"{row.key} {row.path} {row.snippet}".replace("\n", " "))) for row in rows)
    places = {(row.path, row.start_line, row.end_line) for row in chosen}
    return tuple(row for row in rows if (row.path, row.start_line, row.end_line) in places)


def _index(connection: apsw.Connection, question: IndexUnder, agent_id: str) -> IndexPart:
    """Whole paths: of changed files, of selected and internal sessions, of memory chunks that may change."""
    rules = question.rules
    if not rules.session_ids:
        return IndexPart(ChunkTable.from_rows(()))
    internal = read_internal_ids(connection, agent_id)
    paths = {to_bytes(path) for path in question.changed}
    paths.update(_owned_paths(connection, rules.sessions))
    paths.update(_internal_paths(connection, SessionMatcher(agent_id, internal)))
    gate = gate_within(rules, _size(connection, "chunks WHERE source = 'memory'", "text"))
    rows = connection.execute("SELECT CAST(path AS BLOB), CAST(text AS BLOB) FROM chunks WHERE source = 'memory'")
    found = ((_bytes(path), _bytes(body)) for path, body in rows)
    paths.update((path for path, _ in found) if gate is None else gate.sift(found))
    chosen = "(SELECT CAST(unhex(value) AS TEXT) FROM json_each(?))"
    sources = connection.execute(
        f"SELECT CAST(path AS BLOB), source FROM sources WHERE path IN {chosen} ORDER BY path, source",
        (_hexadecimal(paths.union(map(to_bytes, question.removed))),),
    )
    return IndexPart(
        chunks=read_chunks(connection, f"WHERE c.path IN {chosen}", (_hexadecimal(paths),)),
        sources=tuple(IndexSource(from_raw(path), text(source)) for path, source in sources),
        internal_sessions=internal,
    )


def _owned_paths(connection: apsw.Connection, sessions: SessionMatcher) -> Iterator[bytes]:
    """The paths that name a selected session, whatever chunks they are of."""
    naming, bindings = _naming("chunks.path", sessions.session_ids)
    for (path,) in connection.execute(f"SELECT DISTINCT CAST(path AS BLOB) FROM chunks WHERE {naming}", bindings):
        if sessions.owns_path(from_raw(path)):
            yield _bytes(path)


def _internal_paths(connection: apsw.Connection, internal: SessionMatcher) -> Iterator[bytes]:
    """The paths of session chunks that should not be there (docs: Index)."""
    marked = """
        SELECT DISTINCT CAST(c.path AS BLOB)
        FROM chunk_provenance AS p CROSS JOIN chunks AS c ON c.chunk_id = p.chunk_id
        WHERE (p.origin_class = 'system' OR p.session_kind IN ('cron', 'heartbeat')) AND c.source = 'sessions'"""
    yield from (_bytes(path) for (path,) in connection.execute(marked))
    if internal.session_ids:
        rows = connection.execute("SELECT DISTINCT CAST(path AS BLOB) FROM chunks WHERE source = 'sessions'")
        yield from (_bytes(path) for (path,) in rows if internal.owns_path(from_raw(path)))


def _carriers(connection: apsw.Connection, gate: Gate) -> ChunkTable:
    rows = connection.execute("SELECT chunk_rowid, CAST(text AS BLOB) FROM chunks WHERE source = 'memory'")
    numbers = list(gate.sift((integer(number), _bytes(body)) for number, body in rows))
    return read_chunks(connection, "WHERE c.chunk_rowid IN (SELECT value FROM json_each(?))", (json_text(numbers),))


def _state(connection: apsw.Connection, question: StateUnder) -> StatePart:
    ids = question.rules.session_ids
    signals = connection.execute(
        "SELECT entry_key FROM signals WHERE entry_key IN (SELECT value FROM json_each(?)) ORDER BY entry_key",
        (json_array(question.keys),),
    )
    return StatePart(
        signals=tuple(text(row[0]) for row in signals),
        checkpoints=_keys_naming(connection, "checkpoints", "state_key", ids, TELLING),
        seen_scopes=_keys_naming(connection, "seen_scopes", "scope", ids, "TRUE"),
        rewinds=_rewinds(connection, ids),
    )


def _keys_naming(
    connection: apsw.Connection, table: str, column: str, ids: frozenset[str], condition: str
) -> tuple[str, ...]:
    naming, bindings = _naming(f"{table}.{column}", ids)
    where = f"{naming} AND {condition}"
    rows = connection.execute(f"SELECT {column} FROM {table} WHERE {where} ORDER BY {column}", bindings)
    return tuple(text(row[0]) for row in rows)


def _rewinds(connection: apsw.Connection, ids: frozenset[str]) -> tuple[RewindBatch, ...]:
    """A candidate is JSON: it holds the text of an id, or a backslash, behind which anything may be."""
    naming, bindings = _naming("rewind_candidates.candidate", ids)
    where = f"SELECT batch_key FROM rewind_candidates WHERE {naming} OR instr(candidate, char(92))"
    return read_rewinds(connection, f"WHERE b.batch_key IN ({where})", bindings)


def _naming(column: str, ids: frozenset[str]) -> tuple[str, tuple[Value, ...]]:
    """A condition that holds where the column's text has one of the ids in it; or everywhere, for many.

    The column is named with its table: ``json_each`` has columns of its own, ``path`` among them.
    """
    if len(ids) > _FEW:
        return "TRUE", ()
    named = f"instr(CAST({column} AS BLOB), unhex(named.value))"
    return f"EXISTS (SELECT 1 FROM json_each(?) AS named WHERE {named})", (_hexadecimal(map(to_bytes, ids)),)


def _size(connection: apsw.Connection, rows: str, column: str) -> int:
    """How many bytes a column holds."""
    (size,) = next(iter(connection.execute(f"SELECT sum(octet_length({column})) FROM {rows}")))
    return integer(size)


def _hexadecimal(values: Iterable[bytes]) -> str:
    """What need not be valid text, as one variable."""
    return json_text([value.hex() for value in values])


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else b""
