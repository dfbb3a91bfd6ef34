"""The index at 10^4 and 10^5 chunks: bringing it up, searching it, and deleting 1 % of it.

    python -m benchmarks.indexing [--chunks 10000 100000] [--dimensions 128]

The toy embedder stands in for a model, so that what is measured is memprov. The three vector engines answer the same
queries in the same run; sqlite-vec's own table type (vec0) is measured beside them, and LanceDB where it is installed.
Times are medians on whatever machine this is: compare within a run, do not quote.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np

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

Row = tuple[str, int, float]


def timed(what: Callable[[], object], repeats: int = 1) -> float:
    """The median of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        what()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


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
        with store.layout.ledger.writing() as ledger:  # one transaction instead of one for each session
            ledger.execute("BEGIN")
            ledger.executemany(
                "INSERT INTO sessions VALUES (?, ?, 'interactive', 'live', NULL, NULL, NULL, NULL, 0, 0)",
                [(name, f"agent:main:telegram:{name}") for name in chats],
            )
            ledger.execute("COMMIT")
        yield store


def measure_store(chunks: int, dimensions: int) -> Iterator[Row]:
    """What a host does with an index of this size."""
    chats = transcripts(chunks)
    embedder: Embedder = ToyEmbedder(dimensions)

    def reader(session: SessionRecord, /) -> list[Message] | None:
        return chats.get(session.session_id)

    with stored(chats) as store:
        yield "first sync", chunks, timed(lambda: sync_index(store, embedder, reader))
        held = len(store.snapshot().chunks)
        yield "chunks", chunks, float(held)
        yield "sync, nothing new", chunks, timed(lambda: sync_index(store, embedder, reader))
        one = next(iter(chats))
        chats[one].append(Message("user", "one more word0001", 999, 1000, sender_is_owner=True))
        yield "sync of one session", chunks, timed(lambda: sync_index(store, embedder, reader, sessions=[one]))
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
            yield name, chunks, timed(ask, REPEATS)
        gone = sorted(chats)[: max(len(chats) // 100, 1)]
        yield "forget 1 % of the sessions", chunks, timed(lambda: forget(store, Selectors(sessions=gone)))
        yield "rebuild", chunks, timed(lambda: rebuild_index(store, embedder, reader))
        yield "reconcile", chunks, timed(lambda: reconcile(store))
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


def measure_vectors(rows: int, dimensions: int) -> Iterator[Row]:
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
    for name, opened in kinds.items():
        with tempfile.TemporaryDirectory() as directory:
            index = opened(directory)
            yield f"{name}: put", rows, timed(lambda index=index: index.put(ids, matrix))  # type: ignore[misc]
            yield (
                f"{name}: ten nearest",
                rows,
                timed(lambda index=index: index.nearest(matrix[1], 10), REPEATS),  # type: ignore[misc]
            )
            yield f"{name}: delete 1 %", rows, timed(lambda index=index: index.delete(gone))  # type: ignore[misc]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=128)
    options = parser.parse_args(arguments)
    found: dict[str, dict[int, float]] = {}
    for size in options.chunks:
        for measure in (measure_store, measure_vectors):
            for name, _, value in measure(size, options.dimensions):
                found.setdefault(name, {})[size] = value
                print(f"{size:>8}  {name:<32} {value:10.4f}", flush=True)
    smallest, largest = min(options.chunks), max(options.chunks)
    if largest > smallest:
        print(f"\ngrowth from {smallest} to {largest} chunks, {largest / smallest:g} times as many:")
        for name, values in found.items():
            print(f"  {name:<34} {values[largest] / max(values[smallest], 1e-9):8.1f}")


if __name__ == "__main__":
    main()
