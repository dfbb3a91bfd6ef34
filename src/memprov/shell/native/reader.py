"""The snapshot of an embedded store: its two ledgers and its workspace as one value.

Each ledger is read in one transaction of its own. Origins and chunks, which come by the million, are read a column at a
time, so that no row becomes an object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Protocol, TypeVar

import apsw
import numpy as np
from attrs import evolve, frozen

from memprov.core.consolidation import SiblingEntries, named_keys
from memprov.core.lineage import OriginTable, TransferEdge
from memprov.core.records import IndexSource, Origin, OriginClass, Preimage, RecallEntry, RewindBatch, SessionKind
from memprov.core.state import ChunkTable, MemorySnapshot, SiblingIndex
from memprov.errors import StoreNotFoundError
from memprov.shell.cells import Value, from_raw, integer, text
from memprov.shell.native.curated import read_ledger_writes
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.layout import Layout
from memprov.shell.native.sessions import forgotten_ids, read_internal_ids
from memprov.shell.sqlite import Access as DatabaseAccess
from memprov.shell.sqlite import QuietAccess
from memprov.shell.statements import batches
from memprov.shell.workspace import Calls, scan

__all__ = [
    "TELLING",
    "Access",
    "QuietReading",
    "read_checkpoint_keys",
    "read_chunks",
    "read_place",
    "read_preimages",
    "read_recall",
    "read_rewinds",
    "read_sibling_indexes",
    "read_sibling_keys",
    "read_siblings",
    "read_signals",
    "read_snapshot",
    "require_workspace",
]

T = TypeVar("T")

_CLASSES = {str(value): code for code, value in enumerate(OriginClass)}
_KINDS = {str(value): code for code, value in enumerate(SessionKind)}
#: What is known of a chunk without provenance: nothing (docs: Trust).
_CLASSES[""] = _CLASSES[OriginClass.UNTRUSTED]
_KINDS[""] = _KINDS[SessionKind.UNKNOWN]
#: Which checkpoints tell something of a session. One that only notes that it is forgotten says what the tombstone says:
#: every sweep writes it anew, and a purge that dropped it would never be idle.
TELLING = "excluded_reason IS NOT 'forgotten'"


class Access(Protocol):
    """How a ledger is read: without a trace, or as part of work under the lock."""

    def read(self, file: LedgerFile, use: Callable[[apsw.Connection], T]) -> T:
        """What ``use`` makes of the ledger, read in one transaction. It may be called again, so it has no effect."""

    def exists(self, file: LedgerFile) -> bool:
        """Whether the ledger was made; another process may be about to."""


@frozen
class QuietReading:
    """Reading that changes no byte and creates no file (I3), but for what ``made_of`` does beside a busy writer."""

    sleep: Callable[[float], None]
    made_of: Callable[[Callable[[float], None]], DatabaseAccess] = QuietAccess

    def read(self, file: LedgerFile, use: Callable[[apsw.Connection], T]) -> T:
        """See ``Access``."""
        return file.read(use, self.made_of(self.sleep))

    def exists(self, file: LedgerFile) -> bool:
        """See ``Access``."""
        return file.exists(self.made_of(self.sleep))


def read_snapshot(layout: Layout, access: Access, now: Callable[[], float], calls: Calls) -> MemorySnapshot:
    """Everything that a purge reads."""
    require_workspace(layout)
    snapshot = access.read(layout.ledger, lambda connection: _agent_part(connection, layout))
    shared = access.read(layout.shared, lambda connection: _shared_part(connection, layout, snapshot))
    files = scan(layout.workspace, now=now, calls=calls)
    return evolve(
        shared,
        files=files.files,
        corpus=files.corpus,
        stale_copies=files.stale_copies,
        unscanned=files.unscanned,
        sibling_keys=read_sibling_keys(layout, access),
        siblings=read_sibling_indexes(layout, access),
    )


def require_workspace(layout: Layout) -> None:
    """A workspace that is not there is never taken for an empty one: its evidence would be dropped."""
    if not os.path.isdir(layout.workspace):
        raise StoreNotFoundError(f"there is no workspace {layout.workspace} of agent {layout.agent_id}")


def read_place(connection: apsw.Connection) -> str:
    """The workspace that a ledger remembers."""
    rows = connection.execute("SELECT CAST(value AS BLOB) FROM meta WHERE name = 'workspace'")
    return next((from_raw(row[0]) for row in rows), "")


def read_signals(connection: apsw.Connection) -> tuple[str, ...]:
    """The keys of entries with ranking signals."""
    return _texts(connection, "SELECT entry_key FROM signals ORDER BY entry_key")


def read_checkpoint_keys(connection: apsw.Connection) -> tuple[str, ...]:
    """The state keys of all checkpoints."""
    return _texts(connection, "SELECT state_key FROM checkpoints ORDER BY state_key")


def read_rewinds(
    connection: apsw.Connection, where: str = "", bindings: tuple[Value, ...] = ()
) -> tuple[RewindBatch, ...]:
    """What backfills can take back: the batches for which the condition holds."""
    rows = connection.execute(
        "SELECT b.batch_key, CAST(c.candidate AS BLOB) FROM rewind_batches AS b "
        f"LEFT JOIN rewind_candidates AS c ON c.batch_key = b.batch_key {where} ORDER BY b.batch_key, c.position",
        bindings,
    )
    return tuple(
        RewindBatch(text(key), tuple(from_raw(row[1]) for row in group if row[1] is not None))
        for key, group in groupby(rows, key=itemgetter(0))
    )


def _agent_part(connection: apsw.Connection, layout: Layout) -> MemorySnapshot:
    sources = connection.execute("SELECT CAST(path AS BLOB), source FROM sources ORDER BY path, source")
    return MemorySnapshot(
        store=layout.identity,
        origins=_read_origins(connection, layout.agent_id),
        tombstones=forgotten_ids(connection),
        chunks=read_chunks(connection),
        sources=tuple(IndexSource(from_raw(path), text(source)) for path, source in sources),
        cache_rows=_number(connection, "SELECT count(*) FROM embedding_cache"),
        revision=_number(connection, "SELECT revision FROM index_state"),
        internal_sessions=read_internal_ids(connection, layout.agent_id),
        transfers=tuple(
            TransferEdge(text(survivor), text(parent), text(transfer_id), text(action), integer(at_ms))
            for survivor, parent, transfer_id, action, at_ms in connection.execute(
                "SELECT survivor, parent, transfer_id, action, at_ms FROM transfers ORDER BY 1, 2, 3"
            )
        ),
    )


def read_recall(connection: apsw.Connection) -> tuple[RecallEntry, ...]:
    """Every recall row, by key."""
    rows = connection.execute(
        "SELECT entry_key, CAST(path AS BLOB), CAST(snippet AS BLOB), start_line, end_line "
        "FROM recall ORDER BY entry_key"
    )
    return tuple(
        RecallEntry(text(key), from_raw(path), from_raw(snippet), integer(start), integer(end))
        for key, path, snippet, start, end in rows
    )


def read_preimages(connection: apsw.Connection) -> tuple[Preimage, ...]:
    """Every preimage, oldest first."""
    rows = connection.execute("SELECT preimage_key, CAST(content AS BLOB) FROM preimages ORDER BY created_at_ms")
    return tuple(Preimage(text(key), from_raw(content)) for key, content in rows)


def _shared_part(connection: apsw.Connection, layout: Layout, snapshot: MemorySnapshot) -> MemorySnapshot:
    return evolve(
        snapshot,
        recall=read_recall(connection),
        signals=read_signals(connection),
        checkpoints=_texts(connection, f"SELECT state_key FROM checkpoints WHERE {TELLING} ORDER BY state_key"),
        seen_scopes=_texts(connection, "SELECT scope FROM seen_scopes ORDER BY scope"),
        rewinds=read_rewinds(connection),
        preimages=read_preimages(connection),
        ledger_writes=read_ledger_writes(connection, layout.agent_id),
    )


def _read_origins(connection: apsw.Connection, agent_id: str) -> OriginTable:
    def column(name: str) -> Iterator[object]:
        for (value,) in connection.execute(f"SELECT {name} FROM origins ORDER BY entry_key, session_id"):
            yield value

    entries: list[str] = []
    for key, count in connection.execute("SELECT entry_key, count(*) FROM origins GROUP BY entry_key ORDER BY 1"):
        entries.extend([text(key)] * integer(count))
    return OriginTable.from_columns(
        entries,
        map(str, column("session_id")),
        (None if value is None else str(value) for value in column("session_key")),
        map(str, column("origin_class")),
        map(integer, column("observed_at_ms")),
        agent_id,
    )


def read_chunks(connection: apsw.Connection, where: str = "", bindings: tuple[Value, ...] = ()) -> ChunkTable:
    """The chunks for which the condition holds, by id; text of memory chunks only.

    FTS5's own tables say which have a full-text row.
    """
    ids: list[str] = []
    texts: list[str] = []
    codes: list[int] = []
    classes: list[int] = []
    kinds: list[int] = []
    flags: tuple[list[bool], ...] = ([], [], [])
    pool: dict[str, int] = {}
    rows = connection.execute(
        f"""
        SELECT c.chunk_id, CAST(c.path AS BLOB),
               CASE WHEN c.source = 'sessions' THEN NULL ELSE CAST(c.text AS BLOB) END,
               p.origin_class, p.session_kind, c.source = 'sessions',
               EXISTS (SELECT 1 FROM chunks_text_docsize AS t WHERE t.id = c.chunk_rowid),
               EXISTS (SELECT 1 FROM vectors AS v WHERE v.chunk_id = c.chunk_id)
        FROM chunks AS c LEFT JOIN chunk_provenance AS p ON p.chunk_id = c.chunk_id {where} ORDER BY c.chunk_id""",
        bindings,
    )
    for chunk_id, path, body, origin_class, kind, *marks in rows:
        ids.append(text(chunk_id))
        codes.append(pool.setdefault(from_raw(path), len(pool)))
        texts.append(from_raw(body))
        classes.append(_CLASSES[text(origin_class)])
        kinds.append(_KINDS[text(kind)])
        for values, mark in zip(flags, marks, strict=True):
            values.append(bool(mark))
    session, full_text, vectors = (np.array(values, dtype=np.bool_) for values in flags)
    return ChunkTable(
        ids=tuple(ids),
        paths=tuple(pool),
        path_codes=np.array(codes, dtype=np.int32),
        is_session=session,
        classes=np.array(classes, dtype=np.int8),
        kinds=np.array(kinds, dtype=np.int8),
        texts=tuple(texts),
        full_text=full_text,
        vectors=vectors,
    )


def read_sibling_indexes(layout: Layout, access: Access) -> tuple[SiblingIndex, ...]:
    """The other agents of the same workspace, and what the texts in their indexes were made from."""

    def indexed(connection: apsw.Connection) -> tuple[tuple[str, str], ...] | None:
        if read_place(connection) != layout.place:
            return None
        rows = connection.execute(
            "SELECT CAST(path AS BLOB), hash FROM sources AS s WHERE source = 'memory' AND EXISTS "
            "(SELECT 1 FROM chunks AS c WHERE c.path = s.path AND c.source = 'memory') ORDER BY path"
        )
        return tuple((from_raw(path), text(made_from)) for path, made_from in rows)

    found: list[SiblingIndex] = []
    for agent_id in layout.other_agents():
        file = layout.ledger_of(agent_id)
        if access.exists(file) and (sources := access.read(file, indexed)) is not None:
            found.append(SiblingIndex(agent_id, sources))
    return tuple(found)


def read_sibling_keys(layout: Layout, access: Access) -> frozenset[str]:
    """The entries with an origin in the ledger of another agent of the same workspace (D17)."""

    def keys(connection: apsw.Connection) -> Iterator[str]:
        if read_place(connection) == layout.place:
            yield from _texts(connection, "SELECT DISTINCT entry_key FROM origins")

    found: set[str] = set()
    for agent_id in layout.other_agents():
        file = layout.ledger_of(agent_id)
        if access.exists(file):
            found |= access.read(file, lambda connection: frozenset(keys(connection)))
    return frozenset(found)


def read_siblings(layout: Layout, access: Access, entry_keys: tuple[str, ...]) -> tuple[SiblingEntries, ...]:
    """The other agents of the same workspace: their origins of these entries, and what their indexes show."""

    def view(connection: apsw.Connection, agent_id: str) -> SiblingEntries | None:
        if read_place(connection) != layout.place:
            return None
        rows = tuple(
            Origin(text(key), agent_id, text(session), None if name is None else text(name), text(kind), integer(at))
            for batch in batches(entry_keys)
            for key, session, name, kind, at in connection.execute(
                "SELECT entry_key, session_id, session_key, origin_class, observed_at_ms FROM origins "
                "WHERE entry_key IN (SELECT value FROM json_each(?))",
                (batch,),
            )
        )
        shown = connection.execute(
            "SELECT CAST(text AS BLOB) FROM chunks WHERE source = 'memory' AND text LIKE '%openclaw-memory-promotion%'"
        )
        keys = frozenset(key for (body,) in shown for key in named_keys(from_raw(body)))
        return SiblingEntries(agent_id, rows, keys, forgotten_ids(connection, {row.session_id for row in rows}))

    found: list[SiblingEntries] = []
    for agent_id in layout.other_agents():
        file = layout.ledger_of(agent_id)
        if access.exists(file):
            sibling = access.read(file, partial(view, agent_id=agent_id))
            found += [] if sibling is None else [sibling]
    return tuple(found)


def _texts(connection: apsw.Connection, statement: str) -> tuple[str, ...]:
    return tuple(text(row[0]) for row in connection.execute(statement))


def _number(connection: apsw.Connection, statement: str) -> int:
    return integer(next(iter(connection.execute(statement)))[0])
