"""Small OpenClaw installations, made by the tests: the format's tables and columns, and as few rows as a test needs.

`Lab` writes a state directory and a workspace. The schema is worded for the tests (`TABLES`): column names and keys are
what the format fixes, the rest is left out. `triggers=False` leaves out the triggers and cascades of a real store too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import zstandard
from attrs import define, evolve, field

from memprov.core.text import json_text
from memprov.shell.openclaw import OpenClawStore, open_openclaw
from memprov.shell.vectors.sqlite_vec import load_sqlite_vec

__all__ = ["NOW", "Clock", "Lab", "Leftover", "fingerprint", "sha"]

#: The time at which everything in a lab happens.
NOW = 1_795_000_000_000

AGENT_TABLES = {
    "schema_meta": "meta_key TEXT PRIMARY KEY, agent_id TEXT",
    "session_nodes": """session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT,
        parent_session_key TEXT, spawned_by TEXT""",
    "session_windows": """session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER, chat_type TEXT,
        channel TEXT, session_entry_provenance INTEGER, hook_external_content_source TEXT,
        parent_session_key TEXT, spawned_by TEXT""",
    "session_participants": """session_key TEXT, identity_namespace TEXT, actor_id TEXT,
        PRIMARY KEY (session_key, identity_namespace, actor_id)""",
    "session_transcript_archives": """session_id TEXT, generation TEXT, session_key TEXT, encoding TEXT,
        archive_blob BLOB, archive_name TEXT, created_at INTEGER, PRIMARY KEY (session_id, generation)""",
    "session_transcript_cold_archives": "session_id TEXT PRIMARY KEY, archive_name TEXT, archive_blob BLOB",
    "transcript_events": """session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB,
        PRIMARY KEY (session_id, seq)""",
    "memory_entry_origins": """entry_key TEXT, agent_id TEXT, session_id TEXT, session_key TEXT, origin_class TEXT,
        observed_at INTEGER, PRIMARY KEY (entry_key, agent_id, session_id)""",
    "memory_index_sources": """id INTEGER PRIMARY KEY, path TEXT, source TEXT, hash TEXT, mtime REAL, size INTEGER,
        UNIQUE (path, source)""",
    "memory_index_chunks": """chunk_rowid INTEGER PRIMARY KEY, id TEXT UNIQUE, path TEXT, source TEXT,
        start_line INTEGER, end_line INTEGER, hash TEXT, model TEXT, text TEXT, embedding BLOB, updated_at INTEGER""",
    "memory_index_chunk_provenance": """chunk_id TEXT PRIMARY KEY {cascade}, origin_class TEXT, session_kind TEXT,
        observed_at INTEGER""",
    "memory_index_chunk_recall_metadata": "chunk_id TEXT PRIMARY KEY {cascade}, triggers TEXT",
    "memory_embedding_cache": "provider TEXT, hash TEXT, embedding BLOB, PRIMARY KEY (provider, hash)",
    "memory_index_state": "id INTEGER PRIMARY KEY, revision INTEGER",
}
CASCADE = "REFERENCES memory_index_chunks (id) ON DELETE CASCADE"
FULL_TEXT = (
    "CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5 (text, id UNINDEXED)",
    "CREATE VIRTUAL TABLE memory_index_paths_fts USING fts5 (path, source UNINDEXED)",
)
TRIGGERS = (
    """CREATE TRIGGER chunk_gone AFTER DELETE ON memory_index_chunks BEGIN
        DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid; END""",
    """CREATE TRIGGER source_gone AFTER DELETE ON memory_index_sources BEGIN
        DELETE FROM memory_index_paths_fts WHERE rowid = OLD.id; END""",
    """CREATE TRIGGER chunk_fence AFTER DELETE ON memory_index_chunks BEGIN
        UPDATE memory_index_state SET revision = revision + 1; END""",
)
SHARED_TABLES = {
    "agent_databases": "agent_id TEXT, path TEXT, PRIMARY KEY (agent_id, path)",
    "plugin_state_entries": """plugin_id TEXT, namespace TEXT, entry_key TEXT, value_json TEXT, created_at INTEGER,
        expires_at INTEGER, PRIMARY KEY (plugin_id, namespace, entry_key)""",
}

#: Empty agent databases, so that each kind is made once.
MADE: dict[tuple[str, bool, bool], bytes] = {}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@define
class Clock:
    """A time that passes only when somebody sleeps."""

    now: float = NOW / 1000
    slept: list[float] = field(factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@define
class Lab:
    """An installation with one agent `main`, or the agents that `config` names."""

    root: Path
    triggers: bool = True
    vectors: bool = False
    config: dict[str, Any] = field(factory=dict)
    agents: list[str] = field(factory=list)
    clock: Clock = field(factory=Clock)
    open_databases: dict[Path, apsw.Connection] | None = None

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def workspace(self) -> Path:
        return self.root / "ws"

    def __attrs_post_init__(self) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.config = self.config or {"agents": {"entries": {"main": {"workspace": str(self.workspace)}}}}
        self.state.mkdir(exist_ok=True)
        self.write_config(self.config)
        self.make_database(self.shared, SHARED_TABLES, 18)
        self.add_agent("main")

    def write_config(self, config: dict[str, Any]) -> None:
        self.config = config
        (self.state / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")

    @property
    def shared(self) -> Path:
        return self.state / "state" / "openclaw.sqlite"

    def agent(self, agent: str = "main") -> Path:
        return self.state / "agents" / agent / "agent" / "openclaw-agent.sqlite"

    def add_agent(self, agent: str) -> None:
        self.agents.append(agent)
        self.make_agent_database(self.agent(agent), agent)

    def make_agent_database(self, path: Path, agent: str = "main") -> None:
        made = MADE.get((agent, self.triggers, self.vectors))
        if made is None:
            self._make_agent_database(path, agent)
            MADE[agent, self.triggers, self.vectors] = path.read_bytes()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made)

    def _make_agent_database(self, path: Path, agent: str) -> None:
        cascade = CASCADE if self.triggers else ""
        tables = {name: columns.format(cascade=cascade) for name, columns in AGENT_TABLES.items()}
        statements = [*FULL_TEXT, *(TRIGGERS if self.triggers else ())]
        if self.vectors:
            statements.append(
                "CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0 (id TEXT PRIMARY KEY, embedding FLOAT[4])"
            )
        self.make_database(path, tables, 23, statements)
        self.insert(path, "schema_meta", meta_key="primary", agent_id=agent)
        self.insert(path, "memory_index_state", id=1, revision=7)

    def make_database(self, path: Path, tables: dict[str, str], version: int, more: Iterable[str] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = apsw.Connection(str(path))
        if self.vectors:
            load_sqlite_vec(connection)
        for statement in (
            "PRAGMA synchronous = OFF",
            "PRAGMA journal_mode = WAL",
            "BEGIN",
            f"PRAGMA user_version = {version}",
            *(f"CREATE TABLE {name} ({columns})" for name, columns in tables.items()),
            *more,
            "COMMIT",
        ):
            list(connection.execute(statement))
        connection.close()

    def sql(self, path: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement, committed; the file is left without a WAL."""
        if self.open_databases is not None:
            if path not in self.open_databases:
                self.open_databases[path] = connection = apsw.Connection(str(path))
                list(connection.execute("PRAGMA synchronous = OFF"))
                if self.vectors:
                    load_sqlite_vec(connection)
                connection.execute("BEGIN")
            return list(self.open_databases[path].execute(statement, values))
        connection = apsw.Connection(str(path))
        try:
            list(connection.execute("PRAGMA synchronous = OFF"))
            if self.vectors and "_vec" in statement:
                load_sqlite_vec(connection)
            return list(connection.execute(statement, values))
        finally:
            connection.close()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Many statements as one transaction: the same rows, much sooner."""
        self.open_databases = {}
        try:
            yield
        finally:
            for connection in self.open_databases.values():
                connection.execute("COMMIT")
                connection.close()
            self.open_databases = None

    def main(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.sql(self.agent(), statement, *values)

    def insert(self, path: Path, table: str, /, **values: Any) -> None:
        marks = ", ".join("?" * len(values))
        self.sql(path, f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", *values.values())  # noqa: S608

    # -- sessions

    def session(
        self,
        session_id: str,
        key: str | None = None,
        *,
        current: bool = True,
        entry: dict[str, Any] | None = None,
        created: int = NOW,
        database: Path | None = None,
        **columns: Any,
    ) -> str:
        path = database or self.agent()
        key = key or f"agent:main:dashboard:{session_id}"
        self.insert(path, "session_windows", session_id=session_id, session_key=key, created_at=created, **columns)
        if current:
            record = json.dumps({"sessionId": session_id, **(entry or {})})
            self.insert(path, "session_nodes", session_key=key, current_session_id=session_id, entry_json=record)
        return key

    def says(self, session_id: str, *records: dict[str, Any], packed: bool = False) -> None:
        """Append records to a session's transcript."""
        (count,) = self.main("SELECT count(*) FROM transcript_events WHERE session_id = ?", session_id)[0]
        for seq, record in enumerate(records, count):
            source = json.dumps(record)
            blob = zstandard.ZstdCompressor().compress(source.encode()) if packed else None
            values = {"event_zstd": blob} if packed else {"event_json": source}
            self.insert(self.agent(), "transcript_events", session_id=session_id, seq=seq, **values)

    def archive(
        self, session_id: str, records: Iterable[dict[str, Any]] = (), key: str | None = None, created: int = NOW
    ) -> str:
        """An archived generation, as a row."""
        name = f"{session_id}.jsonl.deleted.2026-11-01T10-00-00.000Z.zst"
        content = "".join(json.dumps(record) + "\n" for record in records).encode()
        self.insert(
            self.agent(),
            "session_transcript_archives",
            session_id=session_id,
            generation="g",
            session_key=key or f"agent:main:dashboard:{session_id}",
            encoding="zstd",
            archive_blob=zstandard.ZstdCompressor().compress(content),
            archive_name=name,
            created_at=created,
        )
        return name

    # -- the index

    def chunk(self, path: str, text: str, *, source: str = "memory", cls: str = "agent", kind: str = "unknown") -> str:
        """A chunk with all that hangs on it; returns its id."""
        identifier = sha(f"{source}:{path}:{text}")
        db = self.agent()
        self.insert(db, "memory_index_chunks", id=identifier, path=path, source=source, text=text, model="fts-only")
        (row_id,) = self.main("SELECT chunk_rowid FROM memory_index_chunks WHERE id = ?", identifier)[0]
        self.insert(db, "memory_index_chunk_provenance", chunk_id=identifier, origin_class=cls, session_kind=kind)
        self.insert(db, "memory_index_chunk_recall_metadata", chunk_id=identifier, triggers="tea")
        self.insert(db, "memory_index_chunks_fts", rowid=row_id, text=text, id=identifier)
        if self.vectors:
            self.insert(db, "memory_index_chunks_vec", id=identifier, embedding=bytes(16))
        return identifier

    def source(self, path: str, source: str = "memory") -> None:
        db = self.agent()
        self.insert(db, "memory_index_sources", path=path, source=source)
        (row_id,) = self.main("SELECT id FROM memory_index_sources WHERE path = ? AND source = ?", path, source)[0]
        self.insert(db, "memory_index_paths_fts", rowid=row_id, path=path, source=source)

    def origin(self, entry: str, session_id: str, agent: str = "main", *, of: str | None = None) -> None:
        self.insert(
            self.agent(agent),
            "memory_entry_origins",
            entry_key=entry,
            agent_id=of or agent,
            session_id=session_id,
            origin_class="owner",
            observed_at=NOW,
        )

    # -- plugin state

    def row(self, namespace: str, key: str, payload: Any, workspace: str | Path | None = None) -> str:
        """A wrapped row of memory-core; returns its entry key."""
        path = str(workspace or self.workspace)
        entry_key = f"{sha(path)}:{sha(key)}"
        value = {"version": 1, "workspaceKey": sha(path), "workspaceDir": path, "key": key, "value": payload}
        self.state_row(namespace, entry_key, json_text(value))
        return entry_key

    def state_row(
        self, namespace: str, entry_key: str, value: str, *, plugin: str = "memory-core", expires: int | None = None
    ) -> None:
        self.insert(
            self.shared,
            "plugin_state_entries",
            plugin_id=plugin,
            namespace=namespace,
            entry_key=entry_key,
            value_json=value,
            created_at=NOW,
            expires_at=expires,
        )

    def host_event(self, number: int, event: dict[str, Any], workspace: str | Path | None = None) -> str:
        key = f"{sha(str(workspace or self.workspace))[:24]}:event:1:{number:016}"
        value = {"kind": "event", "event": event, "recordedAt": NOW, "sequence": number}
        self.state_row("memory-host.events", key, json_text(value))
        return key

    def observation(self, path: str, workspace: str | Path | None = None, **fields: Any) -> None:
        """What the observer records of a write to a memory file."""
        key = sha(str(workspace or self.workspace))
        value = {
            "version": 1,
            "workspaceKey": key,
            "relativePath": path,
            "fileHash": sha("content"),
            "originClass": "agent",
            "observedAt": NOW,
            "reservationId": "r",
            **fields,
        }
        plugin = "core:memory-artifact-provenance"
        self.state_row("workspace-files", f"{key}:{sha(path)}", json_text(value), plugin=plugin)

    def stored(self, namespace: str) -> dict[str, Any]:
        """Logical key -> payload."""
        rows = self.sql(self.shared, "SELECT value_json FROM plugin_state_entries WHERE namespace = ?", namespace)
        return {row["key"]: row["value"] for (source,) in rows for row in [json.loads(source)]}

    # -- the store

    def open(self, agent: str = "main", **arguments: Any) -> OpenClawStore:
        """The store, with the lab's clock."""
        store = open_openclaw(self.state, agent, **arguments)
        return evolve(store, clock=self.clock, sleep=self.clock.sleep)


class Leftover:
    """A WAL with committed frames, as a killed process leaves it."""

    def __init__(self, path: Path, statement: str, *, keep_index: bool = False) -> None:
        writer = apsw.Connection(str(path))
        list(writer.execute("PRAGMA wal_autocheckpoint = 0"))
        writer.execute(statement)
        wal, index = Path(f"{path}-wal"), Path(f"{path}-shm")
        frames, shared = wal.read_bytes(), index.read_bytes()
        database = path.read_bytes()
        writer.close()
        path.write_bytes(database)
        wal.write_bytes(frames)
        if keep_index:
            index.write_bytes(shared)


def fingerprint(*tops: Path) -> dict[str, tuple[object, ...]]:
    """Everything below the directories: names, sizes, modes, times of change, and content."""
    found: dict[str, tuple[object, ...]] = {}
    for top in tops:
        for path in (top, *sorted(top.rglob("*"))):
            info = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_uid, content)
    return found
