"""Embedded stores for the tests: a snapshot written into one, and hands that wait for nothing."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
from attrs import define, evolve, field

from memprov.core.records import MemoryFile, SessionRecord
from memprov.core.state import MemorySnapshot, StagedEntry
from memprov.core.text import to_bytes
from memprov.shell.native import NativeStore, NativeWriter, open_store
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.state import put_entry
from memprov.shell.statements import transaction
from memprov.shell.workspace import CALLS

__all__ = [
    "NOW",
    "Clock",
    "canonical",
    "copied",
    "fresh_store",
    "hasty",
    "rows",
    "scratch",
    "tables",
    "unhurried",
    "write_snapshot",
]

_MEMORY = Path("/dev/shm")  # noqa: S108  # where there is one

#: The time at which everything happens.
NOW = 1_795_000_000_000


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


def hasty(store: NativeStore, clock: Clock | None = None) -> NativeStore:
    """The store with hands that do not wait for the disk or the clock."""
    clock = clock or Clock()
    return evolve(store, clock=clock, sleep=clock.sleep, calls=evolve(CALLS, sync=lambda _: None))


@contextmanager
def unhurried(store: NativeStore) -> Iterator[NativeWriter]:
    """A writer of that store whose commits do not wait for the disk."""
    with store.exclusive() as writer:
        for connection in (writer._ledger, writer._shared):
            list(connection.execute("PRAGMA synchronous = OFF"))
        yield writer


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory where there is one: examples come by the hundred."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as directory:
        yield Path(directory)


@functools.cache
def _template() -> Path:
    top = Path(tempfile.mkdtemp(prefix="memprov-template-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    open_store(top / "state", workspace=top / "workspace")
    return top


def fresh_store(directory: Path, agent_id: str = "main") -> NativeStore:
    """An empty store in ``directory/state`` with its files in ``directory/workspace``."""
    if agent_id == "main" and not directory.exists():
        shutil.copytree(_template(), directory)
    return hasty(open_store(directory / "state", agent_id, directory / "workspace"))


def copied(store: NativeStore, directory: Path) -> NativeStore:
    """The store as a crash at this moment would leave it: what is on disk, in another place."""
    top = Path(store._layout.directory).parent
    shutil.copytree(top, directory, symlinks=True, ignore=shutil.ignore_patterns("*-shm"))
    return hasty(open_store(directory / "state", store._layout.agent_id))


def write_snapshot(
    store: NativeStore, snapshot: MemorySnapshot, sessions: Iterable[SessionRecord] = ()
) -> MemorySnapshot:
    """Write a snapshot into an empty store, and return it as that store holds it."""
    for file in (*snapshot.files, *snapshot.corpus):
        _write_file(Path(store._layout.workspace), file)
    with unhurried(store) as writer:
        with transaction(writer._ledger):
            _write_agent_part(writer._ledger, snapshot, tuple(sessions))
        with transaction(writer._shared):
            _write_shared_part(writer._shared, snapshot)
    return canonical(evolve(snapshot, store=store.identity, stale_copies=(), sibling_keys=frozenset(), events=()))


def canonical(snapshot: MemorySnapshot) -> MemorySnapshot:
    """The snapshot without what the model does not promise: the order of rows, empty files' places, the revision."""
    return evolve(
        snapshot,
        files=tuple(sorted(snapshot.files, key=lambda file: file.path)),
        corpus=tuple(sorted(snapshot.corpus, key=lambda file: file.path)),
        recall=tuple(sorted(snapshot.recall, key=lambda row: row.row_key)),
        signals=tuple(sorted(snapshot.signals)),
        checkpoints=tuple(sorted(snapshot.checkpoints)),
        seen_scopes=tuple(sorted(snapshot.seen_scopes)),
        rewinds=tuple(sorted(snapshot.rewinds, key=lambda row: row.key)),
        sources=tuple(sorted(snapshot.sources, key=lambda row: (row.path, row.source))),
        ledger_writes=tuple(
            sorted(snapshot.ledger_writes, key=lambda w: (w.path, w.session_id or "", w.session_key or ""))
        ),
        revision=0,
    )


def rows(file: LedgerFile, table: str) -> list[tuple[object, ...]]:
    """Every row of a table, by a reader of its own."""
    connection = apsw.Connection(file.path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return [tuple(row) for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
    finally:
        connection.close()


def tables(file: LedgerFile) -> list[str]:
    """The ledger's own tables, those of the full text left out."""
    found = rows(file, "(SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%fts5%')")
    return sorted(str(name) for (name,) in found if not str(name).startswith("chunks_text"))


def _write_file(workspace: Path, file: MemoryFile) -> None:
    path = workspace / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(file.text))
    for alias in file.aliases:
        (workspace / alias).parent.mkdir(parents=True, exist_ok=True)
        (workspace / alias).hardlink_to(path)


def _write_agent_part(
    connection: apsw.Connection, snapshot: MemorySnapshot, sessions: tuple[SessionRecord, ...]
) -> None:
    many = connection.executemany
    internal = [(name, f"agent:main:cron:tidy:run:{name}", "cron") for name in sorted(snapshot.internal_sessions)]
    known = [
        (s.session_id, s.session_key, s.kind.value) for s in sessions if s.session_id not in snapshot.internal_sessions
    ]
    many("INSERT INTO sessions VALUES (?, ?, ?, 'live', NULL, NULL, NULL, NULL, 0, 0)", [*internal, *known])
    many(
        "INSERT INTO origins VALUES (?, ?, ?, ?, ?)",
        [
            (o.entry_key, o.session_id, o.session_key, o.origin_class.value, o.observed_at_ms)
            for o in snapshot.origins.rows()
        ],
    )
    many("INSERT INTO tombstones VALUES (?, 'forgotten', 0)", [(name,) for name in sorted(snapshot.tombstones)])
    many(
        "INSERT INTO sources (path, source, hash, mtime_ms, size) VALUES (CAST(? AS TEXT), ?, 'h', 0, 0)",
        [(to_bytes(s.path), s.source) for s in snapshot.sources],
    )
    for chunk in snapshot.chunks.rows():
        connection.execute(
            "INSERT INTO chunks (chunk_id, path, source, start_line, end_line, hash, model, text, updated_at_ms) "
            "VALUES (?, CAST(? AS TEXT), ?, 1, 1, 'h', 'none', CAST(? AS TEXT), 0)",
            (chunk.id, to_bytes(chunk.path), chunk.source, to_bytes(chunk.text)),
        )
        connection.execute(
            "INSERT INTO chunk_provenance VALUES (?, ?, ?, 0, NULL)",
            (chunk.id, chunk.origin_class.value, chunk.session_kind.value),
        )
        if not chunk.full_text:
            connection.execute(
                "INSERT INTO chunks_text (chunks_text, rowid, text) "
                "SELECT 'delete', chunk_rowid, text FROM chunks WHERE chunk_id = ?",
                (chunk.id,),
            )
        if chunk.vector:
            connection.execute("INSERT INTO vectors VALUES (?, 1, x'0000803f')", (chunk.id,))
    many(
        "INSERT INTO embedding_cache VALUES ('p', 'm', '', ?, 1, x'0000803f', 0)",
        [(str(number),) for number in range(snapshot.cache_rows)],
    )
    many(
        "INSERT INTO transfers VALUES (?, ?, ?, ?, ?)",
        [(e.survivor, e.parent, e.transfer_id, e.action, e.at_ms) for e in snapshot.transfers],
    )
    connection.execute("UPDATE index_state SET revision = ?", (snapshot.revision,))


def _write_shared_part(connection: apsw.Connection, snapshot: MemorySnapshot) -> None:
    many = connection.executemany
    for row in snapshot.recall:
        entry = StagedEntry(row.row_key, row.path, row.start_line, row.end_line, row.snippet, daily_count=1)
        put_entry(connection, entry, NOW)
    many("INSERT INTO signals VALUES (?, 4, 0, NULL, NULL, NULL)", [(key,) for key in snapshot.signals])
    many("INSERT INTO checkpoints VALUES (?, 0, 0, '', 0, 0, NULL)", [(key,) for key in snapshot.checkpoints])
    for scope in snapshot.seen_scopes:
        connection.execute("INSERT INTO seen_scopes (scope) VALUES (?)", (scope,))
        connection.execute("INSERT INTO seen_hashes (scope_id, hash) VALUES (last_insert_rowid(), 'h')")
    for batch in snapshot.rewinds:
        connection.execute("INSERT INTO rewind_batches VALUES (?, 0)", (batch.key,))
        many(
            "INSERT INTO rewind_candidates VALUES (?, ?, CAST(? AS TEXT))",
            [(batch.key, position, to_bytes(candidate)) for position, candidate in enumerate(batch.candidates)],
        )
    many(
        "INSERT INTO preimages VALUES (?, ?, CAST(? AS TEXT))",
        [(p.key, number, to_bytes(p.content)) for number, p in enumerate(snapshot.preimages)],
    )
    many(
        "INSERT INTO writes (path, agent_id, session_id, session_key, origin_class, file_hash, observed_at_ms) "
        "VALUES (CAST(? AS TEXT), ?, ?, ?, 'agent', 'h', ?)",
        [
            (to_bytes(w.path), snapshot.store.agent_id, w.session_id, w.session_key, w.observed_at_ms)
            for w in snapshot.ledger_writes
        ],
    )
