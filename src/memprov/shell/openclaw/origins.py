"""The ledger of one agent: origins and tombstones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memprov.core.lineage import OriginTable
from memprov.shell.cells import Row, Value, integer, text
from memprov.shell.sqlite import Reader
from memprov.shell.statements import batches

__all__ = ["OWN_TOMBSTONES", "TOMBSTONES", "entry_keys_of", "read_origins", "read_tombstones"]

ORIGINS = "memory_entry_origins"
TOMBSTONES = "memory_session_tombstones"
#: Where a tombstone goes whose place in OpenClaw's table another agent's row of the same id has taken (D9).
OWN_TOMBSTONES = "memprov_session_tombstones"


def read_origins(reader: Reader, agent_id: str) -> OriginTable:
    """The agent's origins as columns."""
    return _table(_rows(reader, "WHERE +agent_id = ?", (agent_id,)), agent_id)


def origins_of(reader: Reader, agent_id: str, session_ids: Iterable[str], entry_keys: Iterable[str]) -> OriginTable:
    """Every origin of the agent's entries that have one in these sessions, and of these entries."""
    keys = set(entry_keys)
    for batch in batches(session_ids):
        # No index leads from a session to its rows: one pass over the table, whatever is asked.
        where = "WHERE +agent_id = ? AND session_id IN (SELECT value FROM json_each(?))"
        keys.update(text(row[0]) for row in _rows(reader, where, (agent_id, batch)))
    rows: list[Row] = []
    for batch in batches(sorted(keys)):
        where = "WHERE entry_key IN (SELECT value FROM json_each(?)) AND agent_id = ?"
        rows += _rows(reader, where, (batch, agent_id))
    return _table(rows, agent_id)


def _rows(reader: Reader, where: str, bindings: tuple[Value, ...]) -> Iterator[Row]:
    columns = "entry_key session_id session_key origin_class observed_at agent_id"
    return reader.rows(ORIGINS, columns, where=where, bindings=bindings)


def _table(rows: Iterable[Row], agent_id: str) -> OriginTable:
    rows = list(rows)
    entries, sessions, keys, classes, observed = zip(*(row[:5] for row in rows), strict=True) if rows else ((),) * 5
    return OriginTable.from_columns(
        tuple(map(text, entries)),
        map(text, sessions),
        (None if key is None else text(key) for key in keys),
        map(text, classes),
        map(integer, observed),
        agent_id,
    )


def entry_keys_of(reader: Reader, agent_id: str, among: Iterable[str] | None = None) -> frozenset[str]:
    """The entries that an agent's ledger knows, all or those among these."""
    if among is None:
        rows = reader.rows(ORIGINS, "entry_key agent_id", where="WHERE agent_id = ?", bindings=(agent_id,))
        return frozenset(text(key) for key, _ in rows)
    where = "WHERE entry_key IN (SELECT value FROM json_each(?)) AND agent_id = ?"
    return frozenset(text(row[0]) for batch in batches(among) for row in _rows(reader, where, (batch, agent_id)))


def read_tombstones(reader: Reader, agent_id: str) -> frozenset[str]:
    """The sessions of the agent that are forgotten."""

    def rows() -> Iterator[str]:
        for table in (TOMBSTONES, OWN_TOMBSTONES):
            for session_id, _ in reader.rows(
                table, "session_id agent_id", where="WHERE agent_id = ?", bindings=(agent_id,)
            ):
                yield text(session_id)

    return frozenset(rows())
