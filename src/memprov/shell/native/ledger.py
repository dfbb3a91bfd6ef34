"""The effects on an agent's ledger: tombstones, index, origins; one transaction each.

Ids travel as JSON arrays of thousands, one variable each (D11). What an effect finds done already it leaves untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from memprov.core.lineage import Basis, join_origins, lineage_digest
from memprov.core.purge import DropOrigins, PurgeIndex, RecordTombstones
from memprov.core.records import Origin
from memprov.core.text import to_bytes
from memprov.core.writing import (
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    RequireAdmitted,
)
from memprov.errors import InputError, StaleStateError
from memprov.shell.cells import integer, is_storable, text
from memprov.shell.native.sessions import forgotten_ids
from memprov.shell.native.transcripts import forget_marks
from memprov.shell.statements import batches, transaction

__all__ = [
    "FULL_TEXTS",
    "delete_chunks",
    "drop_origins",
    "origins_of",
    "prune_origins",
    "purge_index",
    "raise_revision",
    "record_origins",
    "record_tombstones",
    "record_transfers",
    "release_origins",
    "release_transfers",
    "require_admitted",
]

#: Each full text of the chunks, and the chunks that belong into it.
FULL_TEXTS = (("chunks_text", "chunks"), ("chunks_text_pieces", "unspaced_chunks"))
#: How many chunks a full text merges while it overwrites one in place.
_CHEAPER_MERGED = 700


def record_tombstones(connection: apsw.Connection, effect: RecordTombstones, basis: Basis, now_ms: int) -> bool:
    """Step 0: nothing is destroyed before the exclusion is durable. ``False`` when the basis is no longer true."""
    with transaction(connection):
        if not _is_current(connection, basis):
            return False
        for batch in batches(effect.session_ids):
            connection.execute(
                "INSERT OR IGNORE INTO tombstones SELECT value, 'forgotten', ? FROM json_each(?)", (now_ms, batch)
            )
        forget_marks(connection, effect.session_ids)
        raise_revision(connection)
    return True


def purge_index(connection: apsw.Connection, effect: PurgeIndex, basis: Basis) -> bool:
    """Step 1: chunks with all that hangs on them, sources, and the whole embedding cache.

    The revision rises again: a rebuild that began after the tombstones may have read files that are yet to be cut.
    """
    with transaction(connection):
        if not _is_current(connection, basis):
            return False
        before = connection.total_changes()
        delete_chunks(connection, effect.chunk_ids)
        connection.executemany(
            "DELETE FROM sources WHERE path = CAST(? AS TEXT) AND source = CAST(? AS TEXT)",
            ((to_bytes(path), to_bytes(source)) for path, source in effect.sources),
        )
        connection.execute("DELETE FROM embedding_cache")
        if connection.total_changes() != before:
            raise_revision(connection)
    return True


def drop_origins(connection: apsw.Connection, effect: DropOrigins) -> None:
    """Step 5: the evidence, and every edge that names it."""
    with transaction(connection):
        for batch in batches(effect.entry_keys):
            for column in ("survivor", "parent"):
                connection.execute(
                    f"DELETE FROM transfers WHERE {column} IN (SELECT value FROM json_each(?))", (batch,)
                )
        _delete_origins(connection, effect.entry_keys)


def prune_origins(connection: apsw.Connection, effect: PruneOrigins) -> None:
    """Drop origins of what nothing shows; edges to what is left stay."""
    with transaction(connection):
        _delete_origins(connection, effect.entry_keys)


def record_transfers(connection: apsw.Connection, effect: RecordTransfers, now_ms: int) -> None:
    """Remember the edges; one that is there keeps its time."""
    with transaction(connection):
        connection.executemany(
            "INSERT OR IGNORE INTO transfers VALUES (?, ?, ?, ?, ?)",
            ((e.survivor, e.parent, e.transfer_id, e.action, now_ms) for e in effect.edges),
        )


def release_transfers(connection: apsw.Connection, effect: ReleaseTransfers) -> None:
    """Forget these transfers."""
    with transaction(connection):
        for batch in batches(effect.transfer_ids):
            connection.execute("DELETE FROM transfers WHERE transfer_id IN (SELECT value FROM json_each(?))", (batch,))


def _delete_origins(connection: apsw.Connection, entry_keys: Iterable[str]) -> None:
    """Delete the rows of these entries, then the edges from which no way leads to an entry with origins."""
    for batch in batches(entry_keys):
        connection.execute("DELETE FROM origins WHERE entry_key IN (SELECT value FROM json_each(?))", (batch,))
    connection.execute(
        """
        WITH RECURSIVE reached (entry_key) AS (
            SELECT survivor FROM transfers WHERE EXISTS (SELECT 1 FROM origins WHERE entry_key = survivor)
            UNION SELECT t.parent FROM transfers AS t JOIN reached ON t.survivor = reached.entry_key)
        DELETE FROM transfers WHERE survivor NOT IN (SELECT entry_key FROM reached)
        """
    )


def require_admitted(connection: apsw.Connection, effect: RequireAdmitted) -> None:
    """Stop a plan that carries text of a forgotten session. Raises ``StaleStateError``."""
    if gone := forgotten_ids(connection, effect.session_ids):
        raise StaleStateError(f"forgotten while this was being prepared: {', '.join(sorted(gone))}")


def record_origins(connection: apsw.Connection, effect: RecordOrigins) -> None:
    """Join the rows into the ledger; one that would not change is not written (D14)."""
    for row in effect.origins:
        if row.agent_id != effect.agent_id:
            raise InputError(f"origins of agent {effect.agent_id!r} hold one of agent {row.agent_id!r}")
        if not (is_storable(row.entry_key) and is_storable(row.session_id) and is_storable(row.session_key or "")):
            raise InputError(f"the origin of {row.entry_key!r} in {row.session_id!r} is no valid text")
    with transaction(connection):
        known = tuple(origins_of(connection, {row.entry_key for row in effect.origins}, effect.agent_id))
        there = frozenset(known)
        connection.executemany(
            "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?)",
            (
                (row.entry_key, row.session_id, row.session_key, row.origin_class.value, row.observed_at_ms)
                for row in join_origins((*known, *effect.origins))
                if row not in there
            ),
        )


def release_origins(connection: apsw.Connection, effect: ReleaseOrigins) -> None:
    """Delete exactly these rows."""
    with transaction(connection):
        connection.executemany(
            "DELETE FROM origins WHERE entry_key = ? AND session_id = ?",
            (row for row in effect.rows if all(map(is_storable, row))),
        )


def delete_chunks(connection: apsw.Connection, chunk_ids: tuple[str, ...]) -> None:
    """Chunks with their provenance, vectors and full text.

    To overwrite one chunk's words in place costs a full text as much as to merge seven hundred chunks (measured). So
    where many go, they are only marked, and the full text is merged into one segment, in which nothing of them is left.
    """
    merged = [index for index, _ in FULL_TEXTS if _is_cheaper_merged(connection, index, chunk_ids)]
    for index in merged:
        connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('secure-delete', 0)")
    for batch in batches(chunk_ids):
        connection.execute("DELETE FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))", (batch,))
    for index in merged:
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('secure-delete', 1)")


def _is_cheaper_merged(connection: apsw.Connection, index: str, chunk_ids: tuple[str, ...]) -> bool:
    listed = sum(
        _count(
            connection,
            f"{index}_docsize WHERE id IN "
            "(SELECT chunk_rowid FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?)))",
            batch,
        )
        for batch in batches(chunk_ids)
    )
    return listed * _CHEAPER_MERGED > _count(connection, f"{index}_docsize")


def _count(connection: apsw.Connection, what: str, *bindings: str) -> int:
    return integer(next(iter(connection.execute(f"SELECT count(*) FROM {what}", bindings)))[0])


def origins_of(connection: apsw.Connection, entry_keys: Iterable[str], agent_id: str) -> Iterator[Origin]:
    """The rows of these entries."""
    for batch in batches(sorted(entry_keys)):
        rows = connection.execute(
            "SELECT entry_key, session_id, session_key, origin_class, observed_at_ms FROM origins "
            "WHERE entry_key IN (SELECT value FROM json_each(?))",
            (batch,),
        )
        for entry, session, key, origin_class, observed in rows:
            yield Origin(
                text(entry),
                agent_id,
                text(session),
                None if key is None else text(key),
                text(origin_class),
                integer(observed),
            )


def _is_current(connection: apsw.Connection, basis: Basis) -> bool:
    """Whether the lineage is still what the plan was computed from."""
    pairs: set[tuple[str, str]] = set()
    for column, values in (("session_id", basis.session_ids), ("entry_key", basis.entry_keys)):
        for batch in batches(values):
            rows = connection.execute(
                f"SELECT entry_key, session_id FROM origins WHERE {column} IN (SELECT value FROM json_each(?))",
                (batch,),
            )
            pairs.update((text(entry), text(session)) for entry, session in rows)
    return lineage_digest(pairs) == basis.lineage


def raise_revision(connection: apsw.Connection) -> None:
    """One up, so that an index that is being rebuilt can never be published (docs: Index)."""
    connection.execute("UPDATE index_state SET revision = revision + 1")
