"""The effects on an agent's own database: tombstones, the index, origins.

Ids travel through a temporary table in memory, never as one variable each (D11). Whatever a trigger or a cascade of
OpenClaw's schema would do is done here as well, since a schema may lack either; done twice it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import apsw

from memprov.core.lineage import Basis, lineage_digest
from memprov.core.purge import DropOrigins, PurgeIndex, RecordTombstones
from memprov.errors import PartialError, RefusedError, SchemaError
from memprov.shell.cells import is_storable, text
from memprov.shell.openclaw.index import (
    CACHE,
    CHUNKS,
    FULL_TEXT,
    PATHS_FULL_TEXT,
    PROVENANCE,
    RECALL_METADATA,
    SOURCES,
    STATE,
    VECTORS,
)
from memprov.shell.openclaw.origins import ORIGINS, OWN_TOMBSTONES, TOMBSTONES
from memprov.shell.sqlite import Access, Database, Reader, writing

__all__ = [
    "VectorLoader",
    "check_index",
    "check_writable",
    "drop_origins",
    "purge_index",
    "record_tombstones",
]

VectorLoader = Callable[[apsw.Connection], None]


def record_tombstones(database: Database, effect: RecordTombstones, basis: Basis, now_ms: int) -> bool:
    """Step 0: nothing is destroyed before the exclusion is durable. ``False`` when the basis is no longer true."""
    with writing(database) as reader:
        connection = reader.connection
        if not _is_current(reader, effect.agent_id, basis):
            connection.execute("ROLLBACK")
            return False
        _fill(connection, "chosen", effect.session_ids)
        _create(connection, TOMBSTONES, "session_id")
        columns = reader.columns(TOMBSTONES)
        known = {"session_id": "value", "agent_id": ":agent", "reason": "'forgotten'", "created_at": ":now"}
        names = [name for name in known if name in columns]
        values: dict[str, str | int] = {"agent": effect.agent_id, "now": now_ms}
        connection.execute(
            f"INSERT OR IGNORE INTO {TOMBSTONES} ({', '.join(names)}) "
            f"SELECT {', '.join(known[name] for name in names)} FROM temp.chosen",
            values,
        )
        _record_beside(connection, values)
        _raise_revision(reader)
    return True


def purge_index(
    database: Database, effect: PurgeIndex, basis: Basis, agent_id: str, load_vectors: VectorLoader
) -> bool:
    """Step 1: chunks with all that hangs on them, sources, and the whole embedding cache."""

    def prepare(connection: apsw.Connection) -> None:
        if effect.chunk_ids and _stands(connection, VECTORS):
            _open_table(connection, database, VECTORS, load_vectors)
        if not all(_stands(connection, table) for table in (FULL_TEXT, PATHS_FULL_TEXT)):
            # OpenClaw's triggers would look for the missing table; what else they do is done here.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)

    with writing(database, prepare) as reader:
        connection = reader.connection
        if not _is_current(reader, agent_id, basis):
            connection.execute("ROLLBACK")
            return False
        _fill(connection, "chosen", effect.chunk_ids)
        if effect.chunk_ids and reader.has(CHUNKS):
            _delete_chunks(reader)
        if effect.sources and reader.has(SOURCES):
            _delete_sources(reader, effect.sources)
        if reader.has(CACHE):
            connection.execute(f"DELETE FROM {CACHE}")
        if not connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, -1):
            _raise_revision(reader)
    return True


def drop_origins(database: Database, effect: DropOrigins) -> None:
    """Step 5: the evidence, this agent's rows only (I11)."""
    with writing(database) as reader:
        if reader.has(ORIGINS):
            _fill(reader.connection, "chosen", effect.entry_keys)
            reader.connection.execute(
                f"DELETE FROM {ORIGINS} WHERE agent_id = ? AND entry_key IN (SELECT value FROM temp.chosen)",
                (effect.agent_id,),
            )


def check_writable(database: Database) -> None:
    """Refuse a database that takes no transaction. Raises ``RefusedError``."""
    try:
        with writing(database):
            pass
    except PartialError as error:  # nothing has begun
        raise RefusedError(f"{error}; nothing was changed") from error


def check_index(database: Database, access: Access, effect: PurgeIndex, load_vectors: VectorLoader) -> None:
    """Refuse what ``purge_index`` could not carry out (case-G16). Raises ``SchemaError``."""
    if not effect.chunk_ids:
        return

    def check(reader: Reader) -> None:
        for table in (VECTORS, FULL_TEXT, PATHS_FULL_TEXT):
            if reader.has(table):
                _open_table(reader.connection, database, table, load_vectors)
        for table in (PROVENANCE, RECALL_METADATA):
            next(reader.rows(table, "chunk_id", where="LIMIT 1"), None)

    access.read(database, check)


def _stands(connection: apsw.Connection, table: str) -> bool:
    return bool(list(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,))))


def _open_table(connection: apsw.Connection, database: Database, table: str, load_vectors: VectorLoader) -> None:
    """Make sure that a virtual table can be used."""
    try:
        if table == VECTORS:
            load_vectors(connection)
        read = "*" if table == VECTORS else "1"  # the text of a full-text row may be undecodable
        list(connection.execute(f"SELECT {read} FROM {table} LIMIT 1"))
    except (ImportError, OSError, apsw.Error) as error:
        hint = "; memprov[openclaw] brings sqlite-vec" if table == VECTORS else ""
        raise SchemaError(f"{database.name}: table {table} cannot be opened: {error}{hint}") from error


def _is_current(reader: Reader, agent_id: str, basis: Basis) -> bool:
    """Whether the lineage is still what the plan was computed from."""
    if not reader.has(ORIGINS):
        return lineage_digest(()) == basis.lineage
    _fill(reader.connection, "sessions", basis.session_ids)
    _fill(reader.connection, "entries", basis.entry_keys)
    rows = reader.rows(
        ORIGINS,
        "entry_key session_id agent_id",
        where="WHERE agent_id = ? AND (session_id IN (SELECT value FROM temp.sessions) "
        "OR entry_key IN (SELECT value FROM temp.entries))",
        bindings=(agent_id,),
    )
    return lineage_digest((text(entry), text(session)) for entry, session, _ in rows) == basis.lineage


def _fill(connection: apsw.Connection, name: str, values: Iterable[str]) -> None:
    """A temporary table of distinct texts. What is no valid text stands in no table, and is left out."""
    connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
    connection.execute(f"CREATE TEMP TABLE {name} (value TEXT PRIMARY KEY) WITHOUT ROWID")
    rows = ((value,) for value in values if is_storable(value))
    connection.executemany(f"INSERT OR IGNORE INTO temp.{name} VALUES (?)", rows)


def _create(connection: apsw.Connection, table: str, key: str) -> None:
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table} (session_id TEXT NOT NULL, agent_id TEXT NOT NULL, reason TEXT NOT NULL, "
        f"created_at INTEGER NOT NULL, PRIMARY KEY ({key})) STRICT"
    )


def _record_beside(connection: apsw.Connection, values: dict[str, str | int]) -> None:
    """Record in a table of our own what another agent's row of the same id keeps out of OpenClaw's (D9)."""
    missing = (
        f"FROM temp.chosen WHERE NOT EXISTS "
        f"(SELECT 1 FROM {TOMBSTONES} AS t WHERE t.session_id = value AND t.agent_id = :agent)"
    )
    if next(iter(connection.execute(f"SELECT 1 {missing} LIMIT 1", values)), None):
        _create(connection, OWN_TOMBSTONES, "agent_id, session_id")
        connection.execute(
            f"INSERT OR IGNORE INTO {OWN_TOMBSTONES} (session_id, agent_id, reason, created_at) "
            f"SELECT value, :agent, 'forgotten', :now {missing}",
            values,
        )


def _raise_revision(reader: Reader) -> None:
    """One up, so that an index that is being rebuilt can never be published (docs: Index)."""
    connection = reader.connection
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {STATE} (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL) STRICT"
    )
    connection.execute(
        f"INSERT INTO {STATE} (id, revision) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET revision = revision + 1"
    )


def _delete_chunks(reader: Reader) -> None:
    connection = reader.connection
    row_id = "chunk_rowid" if "chunk_rowid" in reader.columns(CHUNKS) else "rowid"
    connection.execute("DROP TABLE IF EXISTS temp.row_ids")
    connection.execute("CREATE TEMP TABLE row_ids (value INTEGER PRIMARY KEY)")
    connection.execute(
        f"INSERT INTO temp.row_ids SELECT {row_id} FROM {CHUNKS} WHERE id IN (SELECT value FROM temp.chosen)"
    )
    if reader.has(VECTORS):
        ids = list(connection.execute("SELECT value FROM temp.chosen"))
        connection.executemany(f"DELETE FROM {VECTORS} WHERE id = ?", ids)
    for table in (PROVENANCE, RECALL_METADATA):
        if reader.has(table):
            connection.execute(f"DELETE FROM {table} WHERE chunk_id IN (SELECT value FROM temp.chosen)")
    connection.execute(f"DELETE FROM {CHUNKS} WHERE id IN (SELECT value FROM temp.chosen)")
    if reader.has(FULL_TEXT):
        connection.execute(f"DELETE FROM {FULL_TEXT} WHERE rowid IN (SELECT value FROM temp.row_ids)")


def _delete_sources(reader: Reader, sources: Iterable[tuple[str, str]]) -> None:
    connection = reader.connection
    rows = [pair for pair in sources if all(map(is_storable, pair))]
    if reader.has(PATHS_FULL_TEXT):
        connection.executemany(
            f"DELETE FROM {PATHS_FULL_TEXT} WHERE rowid IN (SELECT rowid FROM {SOURCES} WHERE path = ? AND source = ?)",
            rows,
        )
    connection.executemany(f"DELETE FROM {SOURCES} WHERE path = ? AND source = ?", rows)
