"""Whether the parts of an index belong together, and what a repair makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov.shell.index import ReconcileReport, reconcile
from memprov.shell.native import NativeStore
from tests.shell.index.world import CANARY, TWIN, World
from tests.shell.native.loading import fresh_store, scratch


@contextmanager
def by_another_hand(store: NativeStore) -> Iterator[apsw.Connection]:
    """The ledger without memprov's care: no foreign keys, no triggers of ours in the way."""
    connection = apsw.Connection(store._layout.ledger.path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        yield connection
    finally:
        connection.close()


def put_numbers(store: NativeStore, chunks: set[int], vectors: set[int], full_text: set[int], cache: set[int]) -> None:
    """Rows of these numbers: chunk and vector `n`, hash `n`, full-text row `n`."""
    with by_another_hand(store) as ledger:
        for n in sorted(chunks | full_text):
            ledger.execute(
                "INSERT INTO chunks VALUES (?, ?, 'a.md', 'memory', 1, 1, ?, 'm', 'word', 0)", (n, str(n), str(n))
            )
            ledger.execute("INSERT INTO chunk_provenance VALUES (?, 'agent', 'unknown', 0, NULL)", (str(n),))
        for n in sorted(chunks - full_text):
            ledger.execute("INSERT INTO chunks_text (chunks_text, rowid, text) VALUES ('delete', ?, 'word')", (n,))
        (trigger,) = ledger.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_deleted'")
        ledger.execute("DROP TRIGGER chunks_deleted")
        for n in sorted(full_text - chunks):
            ledger.execute("DELETE FROM chunk_provenance WHERE chunk_id = ?", (str(n),))
            ledger.execute("DELETE FROM chunks WHERE chunk_rowid = ?", (n,))
        ledger.execute(str(trigger[0]))
        for n in sorted(vectors):
            ledger.execute("INSERT INTO vectors VALUES (?, 1, x'0000803f')", (str(n),))
        for n in sorted(cache):
            ledger.execute("INSERT INTO embedding_cache VALUES ('p', 'm', '', ?, 1, x'0000803f', 0)", (str(n),))
        if chunks:
            ledger.execute(
                "INSERT INTO sources (path, source, hash, mtime_ms, size) VALUES ('a.md', 'memory', 'h', 0, 0)"
            )


def test_report_B30_orphans_and_what_is_missing_are_told_in_both_directions(world: World) -> None:
    put_numbers(world.store, {1, 2}, {1, 2, 3}, {1, 3}, {2, 9})
    report = reconcile(world.store)
    assert report == ReconcileReport(
        vector_orphans=("3",), full_text_orphans=(3,), full_text_missing=("2",), cache_orphans=("9",)
    )
    assert not report.sound


numbers = st.sets(st.integers(1, 6))


@settings(max_examples=25)
@given(numbers, numbers, numbers, numbers)
def test_a_repair_leaves_a_sound_index_and_touches_nothing_sound(
    chunks: set[int], vectors: set[int], full_text: set[int], cache: set[int]
) -> None:
    with scratch() as directory:
        store = fresh_store(directory / "store")
        put_numbers(store, chunks, vectors, full_text, cache)
        report = reconcile(store)
        assert report.vector_orphans == tuple(sorted(map(str, vectors - chunks)))
        assert report.vector_missing == tuple(sorted(map(str, chunks - vectors)))
        assert report.full_text_orphans == tuple(sorted(full_text - chunks))
        assert report.full_text_missing == tuple(sorted(map(str, chunks - full_text)))
        assert report.cache_orphans == tuple(sorted(map(str, cache - chunks)))
        assert report.sound == (chunks == vectors == full_text and cache <= chunks)
        repaired = reconcile(store, repair=True)
        assert repaired.repaired != repaired.sound
        assert reconcile(store).sound
        if chunks <= vectors:
            assert set(store.snapshot().chunks.ids) == set(map(str, chunks))


def test_after_a_repair_a_sync_brings_back_what_was_missing(world: World) -> None:
    world.sync()
    before = world.store.snapshot()
    with by_another_hand(world.store) as ledger:
        ledger.execute(
            "DELETE FROM vectors WHERE chunk_id = (SELECT min(chunk_id) FROM chunks WHERE path = 'MEMORY.md')"
        )
        ledger.execute(
            "DELETE FROM chunk_provenance WHERE chunk_id IN (SELECT chunk_id FROM chunks WHERE path LIKE '%s2%')"
        )
        ledger.execute("DELETE FROM sources WHERE path LIKE '%s1%'")
    report = reconcile(world.store, repair=True)
    assert len(report.vector_missing) == 1
    assert len(report.origin_missing) == 1
    assert report.source_missing == (("sessions/main/s1.jsonl", "sessions"),)
    assert reconcile(world.store).sound
    world.sync()
    assert world.store.snapshot().chunks == before.chunks
    assert world.finds(TWIN)


def test_rows_of_forgotten_and_unknown_sessions_have_no_origin(world: World) -> None:
    world.sync()
    with by_another_hand(world.store) as ledger:
        ledger.execute("INSERT INTO tombstones VALUES ('s1', 'forgotten', 0)")
        ledger.execute("UPDATE sessions SET kind = 'cron' WHERE session_id = 's2'")
    assert len(reconcile(world.store).origin_missing) == 2
    assert reconcile(world.store, repair=True).repaired
    assert {chunk.path for chunk in world.store.snapshot().chunks.rows()} == {"MEMORY.md"}


def test_a_look_changes_nothing_and_a_repair_of_a_sound_index_neither(world: World) -> None:
    world.sync()
    before = world.store.snapshot()
    assert reconcile(world.store).sound
    assert not reconcile(world.store, repair=True).repaired
    assert world.store.snapshot() == before


def test_report_B30_a_purge_leaves_no_orphan_of_the_selection(world: World) -> None:
    world.sync()
    world.forget("s1")
    assert reconcile(world.store).sound
    assert not world.finds(CANARY)


@pytest.mark.parametrize("table", ["vectors", "chunk_provenance"])
def test_a_chunk_cannot_be_removed_without_what_hangs_on_it(world: World, table: str) -> None:
    world.sync()
    (world.workspace / "MEMORY.md").unlink()
    world.sync()
    with by_another_hand(world.store) as ledger:
        rows = ledger.execute(f"SELECT count(*) FROM {table} WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)")  # noqa: S608
        assert next(iter(rows))[0] == 0
