"""The ledger of one agent: origins and tombstones."""

from __future__ import annotations

from collections.abc import Iterator

from memprov.core.lineage import OriginTable
from memprov.shell.openclaw.values import integer, text
from memprov.shell.sqlite import Reader

__all__ = ["OWN_TOMBSTONES", "TOMBSTONES", "entry_keys_of", "read_origins", "read_tombstones"]

ORIGINS = "memory_entry_origins"
TOMBSTONES = "memory_session_tombstones"
#: Where a tombstone goes whose place in OpenClaw's table another agent's row of the same id has taken (D9).
OWN_TOMBSTONES = "memprov_session_tombstones"


def read_origins(reader: Reader, agent_id: str) -> OriginTable:
    """The agent's origins as columns."""
    rows = list(
        reader.rows(
            ORIGINS,
            "entry_key session_id session_key origin_class observed_at agent_id",
            where="WHERE +agent_id = ?",
            bindings=(agent_id,),
        )
    )
    entries, sessions, keys, classes, observed = zip(*(row[:5] for row in rows), strict=True) if rows else ((),) * 5
    return OriginTable.from_columns(
        tuple(map(text, entries)),
        map(text, sessions),
        (None if key is None else text(key) for key in keys),
        map(text, classes),
        map(integer, observed),
        agent_id,
    )


def entry_keys_of(reader: Reader, agent_id: str) -> frozenset[str]:
    """The entries that an agent's ledger knows."""
    return frozenset(
        text(key)
        for key, _ in reader.rows(ORIGINS, "entry_key agent_id", where="WHERE agent_id = ?", bindings=(agent_id,))
    )


def read_tombstones(reader: Reader, agent_id: str) -> frozenset[str]:
    """The sessions of the agent that are forgotten."""

    def rows() -> Iterator[str]:
        for table in (TOMBSTONES, OWN_TOMBSTONES):
            for session_id, _ in reader.rows(
                table, "session_id agent_id", where="WHERE agent_id = ?", bindings=(agent_id,)
            ):
                yield text(session_id)

    return frozenset(rows())
