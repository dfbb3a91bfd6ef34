"""The index at up to 10^5 chunks: bringing it up, searching it, and deleting 1 % of it.

    python -m benchmarks.indexing [--chunks 3000 10000 30000 100000] [--dimensions 128] [--json FILE]

The toy embedder stands in for a model, so that what is measured is memprov. The three vector engines answer the same
queries in the same run; sqlite-vec's own table type (vec0) is measured beside them, and LanceDB where it is installed.
The host says when its transcripts changed. CPU seconds, those of the threads that NumPy uses for a product included.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np

from benchmarks.measure import Tables, median_cpu, options, timed
from memprov import Selectors, SessionRecord, forget, open_store
from memprov.core.writing import Message
from memprov.shell.index import Embedder, rebuild_index, reconcile, search, sync_index
from memprov.shell.native import NativeStore
from memprov.shell.vectors import ExactVectors, LanceVectors, SqliteVecVectors, VectorIndex, VectorMemory, unit_rows
from memprov.shell.vectors.sqlite_vec import load_sqlite_vec
from memprov.testing import ToyEmbedder

__all__ = ["main", "measure_store", "measure_vectors"]

WORDS = [f"word{number:04d}" for number in range(4000)]
PER_SESSION = 50
REPEATS = 7

Found = tuple[str, float]


def sentence(rng: np.random.Generator) -> str:
    return " ".join(WORDS[number] for number in rng.zipf(1.3, 60) % len(WORDS))


def transcripts(chunks: int) -> dict[str, list[Message]]:
    """Sessions whose messages make about so many chunks of a few hundred characters each."""
    rng = np.random.default_rng(chunks)
    return {
        f"s{number:05d}": [
            Message("user", f"{sentence(rng)}. {sentence(rng)}", place, 1000 * place, sender_is_owner=True)
            for place in range(1, PER_SESSION + 1)
        ]
        for number in range(max(chunks // (2 * PER_SESSION), 1))
    }


@contextmanager
def stored(chats: Iterable[str]) -> Iterator[NativeStore]:
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory) / "state", workspace=Path(directory) / "workspace")
        with store._layout.ledger.writing() as ledger:  # one transaction instead of one for each session
            ledger.execute("BEGIN")
            ledger.executemany(
                "INSERT INTO sessions (session_id, session_key, kind, state, created_at_ms, updated_at_ms) "
                "VALUES (?, ?, 'interactive', 'live', 0, 0)",
                [(name, f"agent:main:telegram:{name}") for name in chats],
            )
            ledger.executemany(
                "INSERT INTO transcripts (session_id, changed, version) VALUES (?, '1', 1)", [(name,) for name in chats]
            )
            ledger.execute("COMMIT")
        yield store


def measure_store(chunks: int, dimensions: int) -> Iterator[Found]:
    """What a host does with an index of this size."""
    chats = transcripts(chunks)
    embedder: Embedder = ToyEmbedder(dimensions)

    def reader(session: SessionRecord, /) -> list[Message] | None:
        return chats.get(session.session_id)

    with stored(chats) as store:
        yield "first sync", timed(lambda: sync_index(store, embedder, reader))[1]
        yield "sync, nothing new", timed(lambda: sync_index(store, embedder, reader))[1]
        one = next(iter(chats))
        chats[one].append(Message("user", "one more word0001", 999, 1000, sender_is_owner=True))
        store.record_session(SessionRecord("main", one, changed=2))
        yield "sync of one session", timed(lambda: sync_index(store, embedder, reader))[1]
        memory = VectorMemory()
        query = "word0003 word0917 word2711"
        for name, ask in {
            "search, text": lambda: search(store, query),
            "search, exact": lambda: search(store, query, embedder=embedder, engine="exact"),
            "search, exact, vectors kept": lambda: search(
                store, query, embedder=embedder, engine="exact", memory=memory
            ),
            "search, sqlite-vec": lambda: search(store, query, embedder=embedder, engine="sqlite-vec"),
            "search, automatic": lambda: search(store, query, embedder=embedder, automatic=True, memory=memory),
        }.items():
            yield name, median_cpu(ask, REPEATS)
        gone = sorted(chats)[: max(len(chats) // 100, 1)]
        yield "forget 1 % of the sessions", timed(lambda: forget(store, Selectors(sessions=gone)))[1]
        yield "rebuild", timed(lambda: rebuild_index(store, embedder, reader))[1]
        yield "reconcile", timed(lambda: reconcile(store))[1]
        assert reconcile(store).sound


class Vec0:
    """sqlite-vec's own table type, for comparison; it is no part of memprov."""

    def __init__(self, path: str, dimensions: int) -> None:
        self.connection = apsw.Connection(path)
        load_sqlite_vec(self.connection)
        self.connection.execute(f"CREATE VIRTUAL TABLE v USING vec0 (id TEXT PRIMARY KEY, e FLOAT[{dimensions}])")
        self.dimensions = dimensions

    def put(self, ids: list[str], matrix: np.ndarray) -> None:
        with self.connection:
            self.connection.executemany(
                "INSERT INTO v VALUES (?, ?)", zip(ids, (row.tobytes() for row in matrix), strict=True)
            )

    def delete(self, ids: list[str]) -> None:
        with self.connection:
            self.connection.executemany("DELETE FROM v WHERE id = ?", [(name,) for name in ids])

    def nearest(self, vector: np.ndarray, limit: int) -> list[object]:
        statement = "SELECT id, distance FROM v WHERE e MATCH ? AND k = ?"
        return list(self.connection.execute(statement, (vector.tobytes(), limit)))


def ledger_like(directory: str) -> apsw.Connection:
    connection = apsw.Connection(f"{directory}/vectors.sqlite")
    list(connection.execute("PRAGMA journal_mode = WAL"))
    list(connection.execute("PRAGMA secure_delete = ON"))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS vectors (chunk_id TEXT PRIMARY KEY, dimensions INTEGER, embedding BLOB) STRICT"
    )
    return connection


def measure_vectors(rows: int, dimensions: int) -> Iterator[Found]:
    """The vector engines alone, over the same rows."""
    ids = [f"{number:064x}" for number in range(rows)]
    matrix = unit_rows(np.random.default_rng(0).standard_normal((rows, dimensions)).astype(np.float32))
    gone = ids[::100]
    kinds: dict[str, Callable[[str], VectorIndex | Vec0]] = {
        "exact": lambda directory: ExactVectors(ledger_like(directory), dimensions, VectorMemory(), ("bench",)),
        "sqlite-vec": lambda directory: SqliteVecVectors(ledger_like(directory), dimensions),
        "vec0": lambda directory: Vec0(f"{directory}/vec0.sqlite", dimensions),
    }
    if importlib.util.find_spec("lancedb"):
        kinds["lancedb"] = lambda directory: LanceVectors(f"{directory}/vectors.lance", dimensions)
    yield "one matrix product", median_cpu(lambda: matrix @ matrix[1], REPEATS)
    for name, opened in kinds.items():
        with tempfile.TemporaryDirectory() as directory:
            index = opened(directory)
            yield f"{name}: put", timed(lambda index=index: index.put(ids, matrix))[1]  # type: ignore[misc]
            yield (
                f"{name}: ten nearest",
                median_cpu(lambda index=index: index.nearest(matrix[1], 10), REPEATS),  # type: ignore[misc]
            )
            yield f"{name}: delete 1 %", timed(lambda index=index: index.delete(gone))[1]  # type: ignore[misc]


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, "chunks", (3000, 10_000, 30_000, 100_000))
    parser.add_argument("--dimensions", type=int, default=128)
    given = parser.parse_args(arguments)
    tables = Tables(given.json)
    for title, measure in (("The index", measure_store), ("Vectors", measure_vectors)):
        for chunks in sorted(given.chunks):
            for name, seconds in measure(chunks, given.dimensions):
                tables.add(title, {"what": name, "chunks": chunks, "CPU s": seconds})
    tables.keep()


if __name__ == "__main__":
    main()
