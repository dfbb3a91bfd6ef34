"""What a purge leaves in the bytes: canaries counted before it, after ``logical``, and after ``erase``.

    python -m benchmarks.canaries [--sessions 40] [--json FILE]

Each session says one sentence that nobody else says, and memory makes of it what it makes of everything. One session
goes. Counted in every file below the roots, by the reader behind ``verify``: its sentence and id where nothing retains
them, and the vectors of its chunks, as their bytes. In half of the stores another program freed pages before, without
overwriting them, as SQLite does unless it is told not to.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from benchmarks.measure import Tables, options
from memprov import (
    Message,
    NativeStore,
    OpenClawStore,
    Selectors,
    SessionRecord,
    Thresholds,
    forget,
    ingest,
    open_openclaw,
    open_store,
    preview,
    promote,
    sync_index,
    use_lancedb,
    verify,
)
from memprov.core.purge import PurgeIndex
from memprov.core.text import corpus_owner, strip_prefix
from memprov.shell.vectors.sqlite_vec import load_sqlite_vec
from memprov.testing import ToyEmbedder, synthetic_sessions, synthetic_snapshot, write_openclaw_store

__all__ = ["main"]

NOW = 1_795_597_200_000
Case = tuple[NativeStore | OpenClawStore, str, list[str]]


def embedded(directory: Path, sessions: int, *, lancedb: bool = False) -> Case:
    store = open_store(directory / "state", workspace=directory / "workspace")
    names = [f"session-{number:05d}" for number in range(sessions)]
    for name in names:
        store.record_session(SessionRecord("main", name, f"agent:main:{name}", created_at_ms=NOW))

    def said(session: SessionRecord) -> list[Message]:
        text = f"The heron of {session.session_id} nests beside the violet lighthouse."
        return [Message("user", text, number=2, timestamp_ms=NOW, sender_is_owner=True)]

    ingest(store, said, now_ms=NOW)
    promote(store, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)
    sync_index(store, embedder=ToyEmbedder(32), reader=said)
    if lancedb:
        use_lancedb(store)
    return store, names[0], [f"The heron of {names[0]} nests beside the violet lighthouse."]


def openclaw(directory: Path, sessions: int) -> Case:
    snapshot = synthetic_snapshot(sessions, 5, vectors=True)
    write_openclaw_store(directory, snapshot, synthetic_sessions(sessions))
    store = open_openclaw(directory / "state")
    lines = [line for file in snapshot.corpus for line in file.text.splitlines()]
    owners = [corpus_owner(line, "main") for line in lines]
    chosen = next(owner for owner in owners if owner is not None)
    mine = {strip_prefix(line, "main") for line, owner in zip(lines, owners, strict=True) if owner == chosen}
    others = {strip_prefix(line, "main") for line, owner in zip(lines, owners, strict=True) if owner != chosen}
    return store, chosen, sorted(mine - others)


def careless(directory: Path, text: str) -> None:
    """Free pages with the text on them in every database, as a program does that overwrites nothing."""
    for path in (directory / "state").rglob("*.sqlite"):
        connection = apsw.Connection(str(path))
        list(connection.execute("PRAGMA secure_delete = OFF"))
        connection.execute("CREATE TABLE freed AS SELECT ? AS x", (text * 9,))
        connection.execute("DROP TABLE freed")
        connection.close()


def vectors(store: NativeStore | OpenClawStore, directory: Path, session: str) -> list[bytes]:
    """The vectors of the chunks that go, as the store keeps them, but for those that a chunk that stays has too."""
    plan = preview(store, Selectors(sessions=[session]))
    gone = {name for effect in plan.effects if isinstance(effect, PurgeIndex) for name in effect.chunk_ids}
    table, key = ("vectors", "chunk_id") if isinstance(store, NativeStore) else ("memory_index_chunks_vec", "id")
    (path,) = (p for p in (directory / "state" / "agents" / "main").rglob("*.sqlite") if p.stat().st_size > 8192)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    load_sqlite_vec(connection)
    rows = list(connection.execute(f"SELECT {key}, embedding FROM {table}"))  # noqa: S608  # of two tables
    connection.close()
    staying = {blob for name, blob in rows if name not in gone}
    return [blob for name, blob in rows if name in gone and isinstance(blob, bytes) and blob not in staying]


def count(case: Case, directory: Path, blobs: list[bytes]) -> str:
    store, session, said = case
    texts = sum(hit.count for hit in verify(store, Selectors(sessions=[session]), said).residue)
    data = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return f"{texts} / {sum(piece.count(blob) for piece in data for blob in blobs)}"


def cases() -> Iterator[str]:
    yield from ("embedded (exact and sqlite-vec read its ledger)", "OpenClaw (vec0)")
    if importlib.util.find_spec("lancedb"):
        yield "embedded with a LanceDB copy"


def main(arguments: list[str] | None = None) -> None:
    chosen = options(__doc__, "sessions", [40]).parse_args(arguments)
    tables = Tables(chosen.json)
    for freed in (False, True):
        for case in cases():
            row: dict[str, float | int | str] = {"store": case, "freed by others": "yes" if freed else "no"}
            with tempfile.TemporaryDirectory() as place:
                top = Path(place)
                make: Callable[..., Case] = openclaw if case.startswith("OpenClaw") else embedded
                more = {"lancedb": True} if "LanceDB" in case else {}
                made = make(top, chosen.sessions[0], **more)
                if freed:
                    careless(top, made[2][0])
                blobs = vectors(made[0], top, made[1])
                row["before"] = count(made, top, blobs)
                for level in ("logical", "erase"):
                    forget(made[0], Selectors(sessions=[made[1]]), level=level)
                    row[level] = count(made, top, blobs)
            tables.add("Canaries left: texts and ids / vectors", row)
    tables.keep()


if __name__ == "__main__":
    main(sys.argv[1:])
