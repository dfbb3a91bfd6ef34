"""One suite over every vector index: what is promised in `memprov.shell.vectors.port`.

LanceDB takes part where it is installed (`nox -s lancedb`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov.errors import InputError
from memprov.shell.vectors import (
    ExactVectors,
    LanceVectors,
    Near,
    SqliteVecVectors,
    VectorIndex,
    VectorMemory,
    unit_rows,
)
from tests.shell.native.loading import scratch

DIMENSIONS = 8
TABLE = "CREATE TABLE IF NOT EXISTS vectors (chunk_id TEXT PRIMARY KEY, dimensions INTEGER, embedding BLOB) STRICT"


def over_ledger(kind: type[ExactVectors | SqliteVecVectors]) -> Callable[[Path], VectorIndex]:
    def opened(directory: Path) -> VectorIndex:
        connection = apsw.Connection(str(directory / "ledger.sqlite"))
        list(connection.execute("PRAGMA secure_delete = ON"))
        connection.execute(TABLE)
        return kind(connection, DIMENSIONS)

    return opened


OPENERS: dict[str, Callable[[Path], VectorIndex]] = {
    "exact": over_ledger(ExactVectors),
    "sqlite-vec": over_ledger(SqliteVecVectors),
}
if importlib.util.find_spec("lancedb"):
    OPENERS["lancedb"] = lambda directory: LanceVectors(str(directory / "vectors.lance"), DIMENSIONS)

every_kind = pytest.mark.parametrize("kind", sorted(OPENERS))


@contextmanager
def fresh(kind: str) -> Iterator[tuple[VectorIndex, Callable[[], VectorIndex]]]:
    """An empty index, and how another process opens it."""
    with scratch() as directory:
        yield OPENERS[kind](directory), lambda: OPENERS[kind](directory)


def rows(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> np.ndarray:
    return unit_rows(np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32))


def names(count: int) -> list[str]:
    return [f"c{number:04d}" for number in range(count)]


@every_kind
def test_report_B64_every_survivor_is_its_own_nearest_neighbour(kind: str) -> None:
    ids, matrix = names(400), rows(400)
    with fresh(kind) as (index, _):
        index.put(ids, matrix)
        index.delete(ids[::2])
        kept = ids[1::2]
        moved = kept[: len(kept) * 3 // 10]
        index.put(moved, rows(len(moved), 9))
        expected = {**dict(zip(ids, matrix, strict=True)), **dict(zip(moved, rows(len(moved), 9), strict=True))}
        assert index.ids() == frozenset(kept)
        for name in kept:
            (near,) = index.nearest(expected[name], 1)
            assert (near.id, near.distance) == (name, 0.0)


@every_kind
def test_report_B67_dead_rows_are_out_before_anything_is_ranked(kind: str) -> None:
    ids, matrix = names(5), rows(5)
    with fresh(kind) as (index, _):
        index.put(ids, matrix)
        ranked = [near.id for near in index.nearest(matrix[2], 5)]
        assert ranked[0] == ids[2]
        assert [near.id for near in index.nearest(matrix[2], 1, skip=frozenset(ranked[:3]))] == [ranked[3]]
        index.delete(ranked[:2])
        assert [near.id for near in index.nearest(matrix[2], 1)] == [ranked[2]]
        assert index.nearest(matrix[2], 3, skip=frozenset(ranked)) == ()


@every_kind
def test_report_B70_what_is_put_and_deleted_is_so_for_whoever_opens_it_next(kind: str) -> None:
    ids, matrix = names(6), rows(6)
    with fresh(kind) as (index, reopened):
        index.put(ids, matrix)
        assert reopened().ids() == frozenset(ids)
        index.delete(ids[:2])
        assert reopened().ids() == frozenset(ids[2:])
        assert reopened().nearest(matrix[0], 1)[0].id != ids[0]


@every_kind
def test_report_B72_no_file_keeps_a_deleted_row_in_any_version(kind: str) -> None:
    ids, matrix = [f"canary-{number:06d}" for number in range(300)], rows(300)
    with scratch() as directory:
        index = OPENERS[kind](directory)
        for start in range(0, 300, 100):  # several versions
            index.put(ids[start : start + 100], matrix[start : start + 100])
        index.put([ids[7]], rows(1, 5))  # a version that holds the row in another state

        def held(needle: bytes) -> bool:
            return any(needle in path.read_bytes() for path in directory.rglob("*") if path.is_file())

        assert held(ids[7].encode())
        assert held(matrix[8].tobytes())
        index.delete([ids[7], ids[8]])
        for gone in (ids[7].encode(), ids[8].encode(), matrix[7].tobytes(), matrix[8].tobytes(), rows(1, 5).tobytes()):
            assert not held(gone)
        assert held(ids[9].encode())


@every_kind
def test_ties_are_broken_by_id_and_a_limit_cuts_them_the_same_way(kind: str) -> None:
    same = np.repeat(rows(1), 7, axis=0)
    with fresh(kind) as (index, _):
        index.put(names(7), same)
        assert [near.id for near in index.nearest(same[0], 3)] == names(3)


@every_kind
def test_what_is_not_there_is_no_error(kind: str) -> None:
    with fresh(kind) as (index, _):
        index.delete(["nobody"])
        assert index.ids() == frozenset()
        assert index.nearest(rows(1)[0], 3) == ()
        index.put([], np.zeros((0, DIMENSIONS), dtype=np.float32))
        index.put(names(1), rows(1))
        index.delete(["nobody", "x' OR '1'='1"])
        assert index.ids() == frozenset(names(1))


BAD_ROWS = [
    (["a"], rows(2)),
    (["a"], rows(1, dimensions=7)),
    (["a", "a"], rows(2)),
    (["a"], rows(1)[0]),
    (["a"], rows(1) * np.float32("nan")),
    (["a"], rows(1).astype(np.float64) * 1e300),
    (["a"], rows(1).astype(np.int64)),
    ("a", rows(1)),
    ([1], rows(1)),
]


@every_kind
def test_bad_input_is_refused_and_changes_nothing(kind: str) -> None:
    with fresh(kind) as (index, _):
        index.put(["b"], rows(1, 3))
        for ids, matrix in BAD_ROWS:
            with pytest.raises(InputError):
                index.put(ids, matrix)  # type: ignore[arg-type]
        for vector in (rows(1), rows(1, dimensions=9)[0], rows(1)[0] * np.float32("inf")):
            with pytest.raises(InputError):
                index.nearest(vector, 1)
        for limit in (0, -1, True, 1.0):
            with pytest.raises(InputError):
                index.nearest(rows(1)[0], limit)  # type: ignore[arg-type]
        assert index.ids() == frozenset(["b"])


@every_kind
@settings(max_examples=15)
@given(st.data())
def test_any_history_ends_like_a_dictionary_of_vectors(kind: str, data: st.DataObject) -> None:
    known: dict[str, np.ndarray] = {}
    with fresh(kind) as (index, reopened):
        for _ in range(data.draw(st.integers(1, 5))):
            chosen = data.draw(st.lists(st.sampled_from(names(12)), unique=True, max_size=8))
            if data.draw(st.booleans()):
                matrix = rows(len(chosen), data.draw(st.integers(0, 99)))
                index.put(chosen, matrix)
                known.update(zip(chosen, matrix, strict=True))
            else:
                index.delete(chosen)
                known = {name: row for name, row in known.items() if name not in chosen}
        query, skip = rows(1, 1000)[0], frozenset(data.draw(st.lists(st.sampled_from(names(12)))))
        distances = {name: float(np.linalg.norm(row.astype(float) - query)) for name, row in known.items()}
        wanted = sorted((name for name in known if name not in skip), key=lambda name: (distances[name], name))
        for opened in (index, reopened()):
            found = opened.nearest(query, 20, skip=skip)
            assert [near.id for near in found] == wanted
            assert all(abs(near.distance - distances[near.id]) < 1e-4 for near in found)


def test_a_memory_is_used_for_its_own_revision_only() -> None:
    with scratch() as directory:
        connection = apsw.Connection(str(directory / "l.sqlite"))
        connection.execute(TABLE)
        memory = VectorMemory()
        ExactVectors(connection, DIMENSIONS).put(names(2), rows(2))
        first = ExactVectors(connection, DIMENSIONS, memory, ("l", 1))
        assert first.nearest(rows(2)[1], 1) == (Near("c0001", 0.0),)
        connection.execute("DELETE FROM vectors")
        assert first.nearest(rows(2)[1], 1) == (Near("c0001", 0.0),)
        assert ExactVectors(connection, DIMENSIONS, memory, ("l", 2)).nearest(rows(2)[1], 1) == ()
        assert ExactVectors(connection, DIMENSIONS, memory).nearest(rows(2)[1], 1) == ()


def test_lengths_are_one_or_nothing() -> None:
    scaled = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]], dtype=np.float32))
    assert scaled.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0], [1.0, 0.0]]
