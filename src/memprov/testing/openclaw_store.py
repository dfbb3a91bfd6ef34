"""Writing a snapshot as an OpenClaw state directory and workspace, so that it can be read, purged and scanned on disk.

Reading the store back gives the snapshot that was written; ``tests/test_testing.py`` holds the two to that. What a
snapshot does not say (line numbers, hashes, times, the words of a transcript) is made up or taken from its corpus.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import compress
from pathlib import Path

import apsw
from attrs import evolve, frozen

from memprov.core.records import MemoryFile, OriginClass, SessionRecord, SessionState, StoreIdentity, identity_json
from memprov.core.state import MemorySnapshot
from memprov.core.text import corpus_owner, json_text, strip_prefix, to_bytes
from memprov.errors import InputError
from memprov.shell.openclaw.layout import workspace_key
from memprov.shell.vectors.sqlite_vec import load_sqlite_vec
from memprov.testing.openclaw_schema import (
    AGENT_VERSION,
    SHARED_VERSION,
    agent_tables,
    agent_triggers,
    shared_tables,
)
from memprov.testing.openclaw_state import state_rows
from memprov.testing.pages import LINES_PER_CHUNK

__all__ = ["write_openclaw_store"]

_VERSION = "2026.9.6"
_WRITTEN_MS = 1_796_000_000_000
_CORPUS = "memory/.dreams/session-corpus/"
_DIMENSIONS = 8


def write_openclaw_store(
    directory: str | os.PathLike[str], snapshot: MemorySnapshot, sessions: Iterable[SessionRecord] = ()
) -> MemorySnapshot:
    """Write ``directory/state`` and ``directory/workspace``, and return the snapshot as that store holds it.

    It is the given one with the identity of its new home, where host events are filed under too. Open it with
    ``open_openclaw(directory / "state")``. ``sessions`` is the catalogue; without one, the sessions are those that the
    origins and ``internal_sessions`` name. Chunks with vectors need ``memprov[openclaw]``.

    Only the tables that memprov reads are there, so that OpenClaw itself does not open the result.

    Raises ``InputError`` for what cannot be written: stale copies, links that nobody knows, findings in transcripts,
    another agent's keys, notes of an earlier scan; and for a directory that already holds a store.
    """
    _refuse_unwritable(snapshot)
    top = Path(os.path.realpath(directory))
    state, workspace = top / "state", top / "workspace"
    if state.exists() or workspace.exists():
        raise InputError(f"{top} already holds a store")
    agent = snapshot.store.agent_id
    for file in (*snapshot.files, *snapshot.corpus):
        _write_file(workspace, file)
    workspace.mkdir(parents=True, exist_ok=True)
    home = state / "agents" / agent / "agent"
    home.mkdir(parents=True)
    (state / "state").mkdir()
    config = {"agents": {"entries": {agent: {"workspace": str(workspace)}}}}
    (state / "openclaw.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    written = _settled(snapshot, StoreIdentity("openclaw", agent, str(state), str(workspace)))
    with _new_database(home / "openclaw-agent.sqlite", agent_tables(), AGENT_VERSION) as connection:
        _AgentWriter(connection, written, str(workspace)).write(tuple(sessions) or tuple(_named_sessions(written)))
    with _new_database(state / "state" / "openclaw.sqlite", shared_tables(), SHARED_VERSION) as connection:
        _insert(connection, "schema_meta", [("primary", "state", SHARED_VERSION, None, _VERSION, *[_WRITTEN_MS] * 2)])
        row = (agent, f"agents/{agent}/agent/openclaw-agent.sqlite", AGENT_VERSION, _WRITTEN_MS, None)
        _insert(connection, "agent_databases", [row])
        rows = state_rows(written, str(workspace))
        _insert(connection, "plugin_state_entries", ((*row, _WRITTEN_MS, None) for row in rows))
    return written


def _refuse_unwritable(snapshot: MemorySnapshot) -> None:
    unwritable = {
        "stale copies": snapshot.stale_copies,
        "keys of sibling agents": snapshot.sibling_keys,
        "writes found in transcripts": snapshot.transcript_writes,
        "text of transcripts": snapshot.retained,
        "notes of what was not scanned": snapshot.unscanned,
        "links without a name": [f for f in (*snapshot.files, *snapshot.corpus) if f.unnamed_links],
    }
    if found := [name for name, values in unwritable.items() if values]:
        raise InputError(f"a synthetic store cannot hold {' or '.join(found)}")


def _settled(snapshot: MemorySnapshot, identity: StoreIdentity) -> MemorySnapshot:
    """The snapshot in its new home, every part in the order in which it is read back."""
    prefix = workspace_key(identity.workspace_root)[:24]
    events = (evolve(event, key=f"{prefix}:event:{event.key.partition(':event:')[2]}") for event in snapshot.events)
    return evolve(
        snapshot,
        store=identity,
        files=tuple(sorted(snapshot.files, key=lambda file: _rank(file.path))),
        corpus=tuple(sorted(snapshot.corpus, key=lambda file: file.path)),
        recall=tuple(sorted(snapshot.recall, key=lambda row: row.row_key)),
        signals=tuple(sorted(snapshot.signals)),
        checkpoints=tuple(sorted(snapshot.checkpoints)),
        seen_scopes=tuple(sorted(snapshot.seen_scopes)),
        rewinds=tuple(sorted(snapshot.rewinds, key=lambda row: row.key)),
        events=tuple(sorted(events, key=lambda row: row.key)),
        preimages=tuple(sorted(snapshot.preimages, key=lambda row: row.key)),
        sources=tuple(sorted(snapshot.sources, key=lambda row: (row.path, row.source))),
        ledger_writes=tuple(sorted(snapshot.ledger_writes, key=lambda write: (write.path, write.observed_at_ms))),
    )


def _rank(path: str) -> tuple[int, str]:
    """Where the scan of a workspace comes to this file (D7)."""
    first = ("MEMORY.md", "memory.md", "USER.md")
    if path in first:
        return first.index(path), ""
    if path.startswith("users/") and path.endswith("/USER.md"):
        return 3, path
    if path.startswith("memory/") and path.endswith(".md") and not path.startswith(_CORPUS):
        return 4, path
    if path in ("DREAMS.md", "dreams.md"):
        return 5, path
    raise InputError(f"{path} is no place where memory is looked for")


def _write_file(workspace: Path, file: MemoryFile) -> None:
    path = workspace / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(file.text))
    for alias in file.aliases:
        (workspace / alias).parent.mkdir(parents=True, exist_ok=True)
        (workspace / alias).hardlink_to(path)


def _named_sessions(snapshot: MemorySnapshot) -> Iterator[SessionRecord]:
    """The sessions that a snapshot names, with nothing known of them but their keys."""
    agent, table = snapshot.store.agent_id, snapshot.origins
    keys = {table.sessions[s]: table.session_keys[k] for s, k in zip(table.session_codes, table.key_codes, strict=True)}
    for session_id, key in keys.items():
        if session_id not in snapshot.internal_sessions:
            yield SessionRecord(agent, session_id, key or f"agent:{agent}:dashboard:{session_id}", created_at_ms=0)
    for number, session_id in enumerate(sorted(snapshot.internal_sessions)):
        yield SessionRecord(agent, session_id, f"agent:{agent}:cron:tidy:run:{number}", "cron", created_at_ms=0)


@contextmanager
def _new_database(path: Path, tables: Iterable[str], version: int) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        for pragma in ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = OFF"):
            list(connection.execute(f"PRAGMA {pragma}"))
        connection.execute("BEGIN")
        for statement in tables:
            connection.execute(statement)
        yield connection
        list(connection.execute(f"PRAGMA user_version = {version}"))
        connection.execute("COMMIT")
        list(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    finally:
        connection.close()


def _insert(connection: apsw.Connection, table: str, rows: Iterable[tuple[apsw.SQLiteValue, ...]]) -> None:
    rows = iter(rows)
    if (first := next(rows, None)) is not None:
        statement = f"INSERT INTO {table} VALUES ({', '.join('?' * len(first))})"
        connection.execute(statement, first)
        connection.executemany(statement, rows)


@frozen
class _AgentWriter:
    """Fills an agent's own database."""

    connection: apsw.Connection
    snapshot: MemorySnapshot
    workspace: str

    def write(self, sessions: tuple[SessionRecord, ...]) -> None:
        """All tables."""
        agent = self.snapshot.store.agent_id
        self._into("schema_meta", [("primary", "agent", AGENT_VERSION, agent, _VERSION, _WRITTEN_MS, _WRITTEN_MS)])
        spoken = self._spoken()
        self._write_sessions(sessions)
        self._write_transcripts(sessions, spoken)
        self._write_origins()
        self._write_index(spoken)
        for statement in agent_triggers():
            self.connection.execute(statement)
        chunks = self.snapshot.chunks
        unlisted = ((name,) for name in compress(chunks.ids, (~chunks.full_text).tolist()))
        self.connection.executemany(
            "DELETE FROM memory_index_chunks_fts WHERE rowid = "
            "(SELECT chunk_rowid FROM memory_index_chunks WHERE id = ?)",
            unlisted,
        )

    def _into(self, table: str, rows: Iterable[tuple[apsw.SQLiteValue, ...]]) -> None:
        _insert(self.connection, table, rows)

    def _spoken(self) -> dict[str, list[str]]:
        """What was said in each session, as far as the corpus has it."""
        agent = self.snapshot.store.agent_id
        spoken: dict[str, list[str]] = {}
        for file in self.snapshot.corpus:
            for line in file.text.split("\n"):
                if (owner := corpus_owner(line, agent)) is not None:
                    spoken.setdefault(owner, []).append(strip_prefix(line, agent))
        return spoken

    def _write_sessions(self, sessions: tuple[SessionRecord, ...]) -> None:
        windows = [record for record in sessions if record.state is not SessionState.ARCHIVED]
        keys: dict[str, SessionRecord | None] = dict.fromkeys(_key(record) for record in windows)
        keys |= {_key(record): record for record in windows if record.state is SessionState.LIVE}
        self._into("session_nodes", (_node(key, current) for key, current in keys.items()))
        self._into(
            "session_windows",
            (
                (
                    record.session_id,
                    _key(record),
                    record.created_at_ms or 0,
                    *[record.created_at_ms or 0] * 2,
                    1,
                    0,
                    None,
                    {None: None, "gmail": "gmail"}.get(record.hook_source, "webhook"),
                    record.chat_type,
                    record.channel,
                    None,
                    record.parent_key,
                    None,
                )
                for record in windows
            ),
        )
        self._into(
            "session_participants",
            {
                (_key(record), _namespace(identity_json(who)), who.id, 1, record.created_at_ms, record.created_at_ms)
                for record in windows
                for who in record.participants
            },
        )

    def _write_transcripts(self, sessions: tuple[SessionRecord, ...], spoken: dict[str, list[str]]) -> None:
        archived = [record for record in sessions if record.state is SessionState.ARCHIVED]
        self._into(
            "transcript_events",
            (
                (record.session_id, seq, event, record.created_at_ms or 0, None, len(event.encode()))
                for record in sessions
                if record.state is not SessionState.ARCHIVED
                for seq, event in enumerate(self._events(record, spoken))
            ),
        )
        self._into("session_transcript_archives", (self._archive(record, spoken) for record in archived))

    def _events(self, record: SessionRecord, spoken: dict[str, list[str]]) -> Iterator[str]:
        """A transcript: its head, then a message for each snippet."""
        yield json_text({"type": "session", "version": 4, "id": record.session_id, "cwd": self.workspace})
        owner = record.hook_source is None and record.chat_type != "group"
        for number, snippet in enumerate(spoken.get(record.session_id, ())):
            speaker, _, text = snippet.partition(": ")
            at = (record.created_at_ms or 0) + 1000 * (number + 1)
            message: dict[str, object] = {"role": speaker.lower(), "content": [{"type": "text", "text": text}]}
            message["timestamp"] = at
            if speaker == "User":
                message["__openclaw"] = {"senderIsOwner": owner}
            yield json_text({"type": "message", "id": f"{record.session_id}-{number}", "message": message})

    def _archive(self, record: SessionRecord, spoken: dict[str, list[str]]) -> tuple[apsw.SQLiteValue, ...]:
        content = "".join(f"{event}\n" for event in self._events(record, spoken)).encode()
        generation = hashlib.sha256(content).hexdigest()
        name = f"{record.session_id}.jsonl.deleted.2026-11-28T23-00-00.000Z"
        key, created = record.session_key or "", record.created_at_ms or 0
        return (
            record.session_id,
            generation[:32],
            key,
            "deleted",
            "identity",
            content,
            generation,
            name,
            created,
            None,
        )

    def _write_origins(self) -> None:
        self._into(
            "memory_entry_origins",
            (
                (o.entry_key, o.agent_id, o.session_id, o.session_key, o.origin_class.value, o.observed_at_ms)
                for o in self.snapshot.origins.rows()
            ),
        )
        agent = self.snapshot.store.agent_id
        rows = ((session_id, agent, "forgotten", _WRITTEN_MS) for session_id in sorted(self.snapshot.tombstones))
        self._into("memory_session_tombstones", rows)

    def _write_index(self, spoken: dict[str, list[str]]) -> None:
        snapshot = self.snapshot
        agent, model = snapshot.store.agent_id, "synthetic" if snapshot.chunks.vectors.any() else "fts-only"
        self._into("memory_index_state", [(1, snapshot.revision)])
        self._into("memory_index_meta", [("memory_index_meta_v1", json_text({"model": model, "provider": "none"}))])
        self._into(
            "memory_index_sources",
            (
                (number + 1, source.path, source.source, hashlib.sha256(source.path.encode()).hexdigest(), 0.0, 0)
                for number, source in enumerate(snapshot.sources)
            ),
        )
        seen: dict[str, int] = {}
        chunks, provenance, with_vector = [], [], []
        for number, chunk in enumerate(snapshot.chunks.rows()):
            text, start = chunk.text, seen.get(chunk.path, 0)
            if chunk.source == "sessions":
                said = spoken.get(chunk.path.removeprefix(f"sessions/{agent}/").removesuffix(".jsonl"), [])
                text = "\n".join(said[start : start + LINES_PER_CHUNK])
            seen[chunk.path] = start + LINES_PER_CHUNK
            content = to_bytes(text)
            digest = hashlib.sha256(content).hexdigest()
            row = (number + 1, chunk.id, chunk.path, chunk.source, start + 1, start + LINES_PER_CHUNK, digest)
            chunks.append((*row, model, text, b"", _WRITTEN_MS))
            provenance.append((chunk.id, chunk.origin_class.value, chunk.session_kind.value, _WRITTEN_MS, None))
            if chunk.vector:
                with_vector.append((chunk.id, _embedding(digest)))
        self._into("memory_index_chunks", chunks)
        self._into("memory_index_chunk_provenance", provenance)
        trusted = OriginClass.AGENT.value
        self._into(
            "memory_index_chunk_recall_metadata",
            ((name, 5, "note", None) for name, origin_class, *_ in provenance if origin_class == trusted),
        )
        self._write_vectors(with_vector)

    def _write_vectors(self, rows: list[tuple[str, bytes]]) -> None:
        if rows:
            load_sqlite_vec(self.connection)
            self.connection.execute(
                f"CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0(id TEXT PRIMARY KEY, "
                f"embedding FLOAT[{_DIMENSIONS}])"
            )
            self._into("memory_index_chunks_vec", rows)
        cached = (hashlib.sha256(b"%d" % number).hexdigest() for number in range(self.snapshot.cache_rows))
        self._into(
            "memory_embedding_cache",
            (("synthetic", "synthetic", "", name, _embedding(name), _DIMENSIONS, _WRITTEN_MS) for name in cached),
        )


def _key(record: SessionRecord) -> str:
    return record.session_key or record.session_id


def _node(key: str, current: SessionRecord | None) -> tuple[apsw.SQLiteValue, ...]:
    """A logical session; without a current window when only rotated ones are known."""
    if current is None:
        return (key, "", "{}", _WRITTEN_MS, None, None, None)
    entry: dict[str, object] = {"sessionId": current.session_id, "updatedAt": current.created_at_ms}
    if current.hook_source is not None:
        entry["hookExternalContentSource"] = current.hook_source
    created = current.created_at_ms
    return (key, current.session_id, json_text(entry), created or 0, created, current.parent_key, None)


def _namespace(identity: dict[str, object]) -> str:
    """A participant's identity without its id."""
    return json_text({name: value for name, value in identity.items() if name != "id"})


def _embedding(digest: str) -> bytes:
    """A vector that depends on nothing but a hexadecimal digest."""
    return struct.pack(f"<{_DIMENSIONS}f", *(byte / 255 for byte in bytes.fromhex(digest)[:_DIMENSIONS]))
