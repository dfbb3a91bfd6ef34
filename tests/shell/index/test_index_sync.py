"""What is indexed, what is not, and what a sync, a rebuild and a purge make of that."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

from memprov import OriginClass, SessionRecord
from memprov.core.consolidation import named_keys
from memprov.core.index import FULL_TEXT_ONLY, Change, ChunkBudget, EmbedderIdentity
from memprov.core.writing import Message
from memprov.errors import InputError
from memprov.shell.index import prepare_index, publish_index, rebuild_index, reconcile, search, sync_index
from memprov.testing import ToyEmbedder
from tests.shell.index.world import CANARY, TWIN, World
from tests.shell.native.loading import fresh_store, rows, tables

INDEX_TABLES = ("chunks", "chunk_provenance", "vectors", "sources", "embedding_cache")


def indexed(world: World) -> dict[str, str]:
    """Path -> class, of everything in the index."""
    return {row.path: row.origin_class.value for row in world.store.snapshot().chunks.rows()}


def test_a_sync_indexes_memory_and_transcripts_with_their_classes(world: World) -> None:
    world.write("DREAMS.md", "a dream\n")
    world.write("memory/dreaming/rem/2026-01-02.md", "a report\n")
    world.write("memory/2026-01-02.md", "a note\n")
    world.write("users/u1/USER.md", "a profile\n")
    world.say("s3", "stranger here", owner=False)
    report = world.sync()
    assert indexed(world) == {
        "DREAMS.md": "system",
        "MEMORY.md": "agent",
        "memory/2026-01-02.md": "agent",
        "memory/dreaming/rem/2026-01-02.md": "system",
        "sessions/main/s1.jsonl": "owner",
        "sessions/main/s2.jsonl": "owner",
        "sessions/main/s3.jsonl": "untrusted",
        "users/u1/USER.md": "agent",
    }
    assert set(report.published) == set(indexed(world))
    assert reconcile(world.store).sound


def test_a_second_sync_changes_nothing_and_asks_nobody(world: World) -> None:
    world.sync()
    asked, before = world.embedder.calls, world.store.snapshot()
    report = world.sync()
    assert (report.published, report.added_chunks, report.removed_chunks, report.unchanged) == ((), 0, 0, 3)
    assert world.embedder.calls == asked
    assert world.store.snapshot() == before


def test_only_what_changed_is_embedded_again(world: World) -> None:
    world.sync()
    world.say("s2", "and it is green")
    report = world.sync()
    assert report.published == ("sessions/main/s2.jsonl",)
    assert (report.asked_texts, report.added_chunks, report.removed_chunks) == (1, 1, 1)


def test_a_file_that_is_removed_or_emptied_leaves_the_index(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    world.write("memory/b.md", "beta\n")
    world.sync()
    (world.workspace / "memory/a.md").unlink()
    world.write("memory/b.md", " \n")
    assert {(drop.path, drop.change) for drop in world.sync().dropped} == {
        ("memory/a.md", Change.GONE),
        ("memory/b.md", Change.GONE),
    }
    assert "memory/a.md" not in indexed(world)
    assert not world.finds("alpha")


def test_a_class_that_was_recorded_later_is_taken_over_without_the_embedder(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    world.sync()
    asked = world.embedder.calls
    with world.store.observe_write("s2", "memory/a.md", sender_is_owner=False):
        world.write("memory/a.md", "alpha\n")
    assert world.sync().published == ("memory/a.md",)
    assert indexed(world)["memory/a.md"] == "untrusted"
    assert world.embedder.calls == asked
    assert not any("alpha" in text for text in world.found("alpha", automatic=True))


def test_report_B16_own_artifacts_are_never_indexed_in_any_case_or_through_a_link(world: World) -> None:
    world.write("memory/2026-01-02.md", "a note\n")
    for path in (
        "memory/.dreams/session-corpus/2026-01-02.txt",
        "memory/.dreams/session-corpus/2026-01-03.md",
        "memory/.Dreams/x.txt",
        "memory/.Dreams/y.md",
        "memory/.dreams/notes.md",
    ):
        world.write(path, "corpus\n")
    (world.workspace / "memory/link.md").symlink_to(world.workspace / "memory/.dreams/notes.md")
    (world.workspace / "memory/folder").symlink_to(world.workspace / "memory/.dreams", target_is_directory=True)
    (world.workspace / "outside.md").write_text("secret\n")
    (world.workspace / "memory/out.md").symlink_to(world.workspace / "outside.md")
    world.sync()
    assert set(indexed(world)) == {
        "MEMORY.md",
        "memory/2026-01-02.md",
        "sessions/main/s1.jsonl",
        "sessions/main/s2.jsonl",
    }


@pytest.mark.parametrize("rebuild", [False, True])
def test_forgotten_and_internal_sessions_are_never_read_and_their_stale_rows_go(world: World, rebuild: bool) -> None:
    world.say("c1", "tidy up", kind="cron", session_key="agent:main:cron:tidy:run:c1")
    world.say("h1", "ping", kind="heartbeat")
    world.say("d1", "dream", session_key="agent:main:dreaming-narrative-light-abc123")
    world.say("x1", "turns into a job later")
    world.sync()
    assert {"c1", "h1", "d1"}.isdisjoint(world.read)
    assert "sessions/main/x1.jsonl" in indexed(world)
    world.store.record_session(SessionRecord("main", "x1", kind="cron"))
    again = rebuild_index if rebuild else sync_index
    report = again(world.store, world.embedder, world.reader)
    assert [(drop.path, drop.change) for drop in report.dropped] == [("sessions/main/x1.jsonl", Change.EXCLUDED)]
    world.forget("s1")
    world.read.clear()
    report = again(world.store, world.embedder, world.reader)
    assert set(world.read) == {"s2"}
    assert {decision.session_id for decision in report.excluded} == {"c1", "h1", "d1", "x1", "s1"}
    assert set(indexed(world)) == {"MEMORY.md", "sessions/main/s2.jsonl"}


def test_a_transcript_of_nothing_but_system_text_is_no_source(world: World) -> None:
    world.store.record_session(SessionRecord("main", "y1", "agent:main:telegram:y1", created_at_ms=1))
    world.chats["y1"] = [Message("user", "housekeeping", 1, 1, provenance_kind="internal_system")]
    world.sync()
    assert "sessions/main/y1.jsonl" not in indexed(world)


def test_report_B13_a_deleted_session_is_not_found_from_that_moment_on(world: World) -> None:
    world.sync()
    world.store.archive_session("s1")
    assert any(hit.path == "sessions/main/s1.jsonl" for hit in search(world.store, CANARY))
    world.store.delete_session("s1")
    assert not any(hit.path == "sessions/main/s1.jsonl" for hit in search(world.store, CANARY))
    assert reconcile(world.store).origin_missing
    assert [(drop.path, drop.change) for drop in world.sync().dropped] == [("sessions/main/s1.jsonl", Change.GONE)]
    assert reconcile(world.store).sound
    world.forget("s1")
    assert not world.finds(CANARY)


def test_report_B47_after_a_purge_no_read_path_finds_anything(world: World) -> None:
    world.sync()
    assert world.finds(CANARY)
    world.forget("s1")
    assert not world.finds(CANARY)
    assert world.finds(TWIN)
    snapshot = world.store.snapshot()
    assert not any(CANARY in chunk.text for chunk in snapshot.chunks.rows())
    held = [rows(world.store._layout.ledger, table) for table in tables(world.store._layout.ledger)]
    assert CANARY not in repr(held)
    assert snapshot.cache_rows == 0


def test_report_B53_a_rebuild_from_what_remains_brings_nothing_back(world: World) -> None:
    world.sync()
    world.forget("s1")
    for again in (sync_index, rebuild_index):
        again(world.store, world.embedder, world.reader)
        assert not world.finds(CANARY)
        assert world.finds(TWIN)
        assert not any(CANARY in repr(row) for table in INDEX_TABLES for row in rows(world.store._layout.ledger, table))


def test_report_B60_no_byte_of_the_words_is_left_in_any_file_of_the_ledger(world: World) -> None:
    world.sync()
    ledger = Path(world.store._layout.ledger.path)
    assert CANARY.encode() in ledger.read_bytes()
    vector = next(bytes(row[2]) for row in rows(world.store._layout.ledger, "vectors"))  # type: ignore[call-overload]
    assert vector in ledger.read_bytes()
    world.forget("s1")
    for path in ledger.parent.iterdir():
        assert CANARY.encode() not in path.read_bytes()


def test_report_B65_a_source_that_goes_leaves_no_row_in_any_table(world: World) -> None:
    world.write("memory/big.md", "".join(f"line {number} of the big note\n" for number in range(400)))
    world.sync()
    assert world.store.snapshot().chunks.paths.count("memory/big.md") == 1
    (world.workspace / "memory/big.md").unlink()
    (world.workspace / "MEMORY.md").unlink()
    world.chats.clear()
    world.sync()
    left = {table: len(rows(world.store._layout.ledger, table)) for table in ("chunks", "chunk_provenance", "vectors")}
    assert left == {"chunks": 0, "chunk_provenance": 0, "vectors": 0}
    assert rows(world.store._layout.ledger, "sources") == []
    assert rows(world.store._layout.ledger, "chunks_text_docsize") == []


def test_report_B38_the_cache_of_an_abandoned_rebuild_is_never_written(world: World) -> None:
    prepare_index(world.store, world.embedder, world.reader, rebuild=True)
    assert world.store.snapshot().cache_rows == 0


def test_report_B37_a_rebuild_that_is_abandoned_leaves_no_file(world: World) -> None:
    top = Path(world.store._layout.directory)
    before = sorted(str(path) for path in top.rglob("*"))
    prepare_index(world.store, world.embedder, world.reader, rebuild=True)
    assert sorted(str(path) for path in top.rglob("*")) == before


def test_report_B36_a_publication_that_fails_half_way_changes_nothing(world: World) -> None:
    world.sync()
    before = {table: rows(world.store._layout.ledger, table) for table in INDEX_TABLES}
    world.say("s1", "more")
    world.write("memory/a.md", "alpha\n")
    prepared = prepare_index(world.store, world.embedder, world.reader)
    *effects, last = prepared._plan.effects
    broken: Any = evolve(cast("Any", last), chunks=(*cast("Any", last).chunks, None))
    with pytest.raises(AttributeError):
        publish_index(world.store, evolve(prepared, plan=evolve(prepared._plan, effects=(*effects, broken))))
    assert {table: rows(world.store._layout.ledger, table) for table in INDEX_TABLES} == before


def test_without_an_embedder_there_is_full_text_and_with_another_model_everything_is_embedded_anew(
    world: World,
) -> None:
    sync_index(world.store, None, world.reader)
    assert {row[7] for row in rows(world.store._layout.ledger, "chunks")} == {FULL_TEXT_ONLY}
    assert any(TWIN in hit.text for hit in search(world.store, TWIN))
    world.sync()
    assert len(rows(world.store._layout.ledger, "vectors")) == len(rows(world.store._layout.ledger, "chunks"))
    world.embedder = ToyEmbedder(dimensions=32)
    assert len(world.sync().published) == 3
    assert {row[1] for row in rows(world.store._layout.ledger, "vectors")} == {32}
    assert reconcile(world.store).vector_missing == ()


def test_going_back_to_an_earlier_model_costs_no_embedding(world: World) -> None:
    world.sync()
    asked = world.embedder.calls
    sync_index(world.store, ToyEmbedder(model="other"), world.reader)
    report = world.sync()
    assert (report.asked_texts, report.cached_texts) == (0, 5)
    assert world.embedder.calls == asked


def test_named_sessions_are_read_alone_and_without_a_reader_none(world: World) -> None:
    world.sync()
    world.say("s1", "one")
    world.say("s2", "two")
    world.read.clear()
    report = sync_index(world.store, world.embedder, world.reader, sessions=["s2"])
    assert (world.read, report.published) == (["s2"], ("sessions/main/s2.jsonl",))
    assert sync_index(world.store, world.embedder).dropped == ()
    assert "sessions/main/s1.jsonl" in indexed(world)
    rebuild_index(world.store, world.embedder)
    assert set(indexed(world)) == {"MEMORY.md"}


def test_a_session_whose_transcript_is_gone_leaves_the_index(world: World) -> None:
    world.sync()
    del world.chats["s1"]
    assert [drop.path for drop in world.sync().dropped] == ["sessions/main/s1.jsonl"]


@pytest.mark.parametrize("name", ["a.jsonl", "b.trajectory", "c d", "e/f", "g.jsonl.deleted.2026-08-26T10-00-00.000Z"])
def test_whatever_a_session_is_called_a_purge_finds_it_in_the_index(world: World, name: str) -> None:
    world.say(name, "oolong tea")
    world.sync()
    paths = [path for path in indexed(world) if path.startswith(f"sessions/main/{name}")]
    if paths:
        assert any("oolong" in hit.text for hit in search(world.store, "oolong"))
    world.forget(name)
    assert not any("oolong" in text for text in world.found("oolong"))
    assert not any(path in indexed(world) for path in paths)


def test_a_file_that_is_not_utf8_is_indexed_as_it_is(world: World) -> None:
    (world.workspace / "memory").mkdir()
    (world.workspace / "memory/latin.md").write_bytes(b"caf\xe9 oolong\r\n")
    (world.workspace / os.fsdecode(b"memory/\xff.md")).write_bytes(b"pu-erh\n")
    world.sync()
    (hit,) = search(world.store, "oolong")
    assert hit.text.encode("utf-8", "surrogateescape") == b"caf\xe9 oolong\r\n"
    assert search(world.store, "erh")[0].path == os.fsdecode(b"memory/\xff.md")
    assert world.sync().published == ()


def test_two_names_of_one_file_are_one_source(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    (world.workspace / "memory/b.md").hardlink_to(world.workspace / "memory/a.md")
    world.sync()
    assert [hit.path for hit in search(world.store, "alpha")] == ["memory/a.md"]


def test_another_stores_result_is_refused(world: World, tmp_path: Path) -> None:
    prepared = prepare_index(world.store, world.embedder)
    with pytest.raises(InputError, match="another store"):
        publish_index(fresh_store(tmp_path / "other"), prepared)
    with pytest.raises(InputError, match="all sessions"):
        prepare_index(world.store, rebuild=True, sessions=["s1"])


def test_agents_of_one_workspace_have_an_index_each(world: World, tmp_path: Path) -> None:
    sibling = evolve(world, store=fresh_store(tmp_path / "store", "work"), chats={})
    world.sync()
    sync_index(sibling.store, world.embedder)
    before = sibling.store.snapshot()
    world.forget("s1")
    after = sibling.store.snapshot()
    assert (after.chunks, after.sources) == (before.chunks, before.sources)
    # The file was cut, so what the sibling's index holds of it is stale: it is not shown, and a sync replaces it.
    assert not any(CANARY in hit.text for hit in search(sibling.store, CANARY))
    sync_index(sibling.store, world.embedder)
    assert not any(CANARY in chunk.text for chunk in sibling.store.snapshot().chunks.rows())


def test_long_sources_are_cut_by_the_budget_given(world: World) -> None:
    world.write("memory/long.md", "".join(f"row {number}\n" for number in range(100)))
    sync_index(world.store, budget=ChunkBudget(20, 5))
    spans = sorted((hit.start_line, hit.end_line) for hit in search(world.store, "row", limit=100))
    assert len(spans) > 5
    assert spans[0][0] == 1
    assert all(start <= end + 1 for (_, end), (start, _) in pairwise(spans))


class Broken(ToyEmbedder):
    """Returns what no embedder should."""

    def embed(self, texts):  # type: ignore[no-untyped-def]
        return self.wrong(super().embed(texts))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: rows[:-1],
        lambda rows: rows * float("nan"),
        lambda rows: rows[0],
        lambda rows: rows.astype("int64"),
        lambda rows: rows[:, :0],
    ],
)
def test_what_an_embedder_returns_is_checked_before_anything_is_written(world: World, wrong: object) -> None:
    embedder = type("Wrong", (Broken,), {"wrong": staticmethod(wrong)})()  # type: ignore[arg-type]
    before = world.store.snapshot()
    with pytest.raises(InputError):
        sync_index(world.store, embedder, world.reader)
    assert world.store.snapshot() == before


def test_the_identity_of_an_embedder_has_a_name() -> None:
    assert EmbedderIdentity("p", "m").name == "p/m"
    assert EmbedderIdentity("p", "m", "k").name == "p/m#k"
    assert OriginClass("agent") == "agent"


def test_case_F7_the_index_names_the_keys_that_its_chunks_show_until_it_is_synced(world: World) -> None:
    def shown() -> frozenset[str]:
        return frozenset().union(*(named_keys(chunk.text) for chunk in world.store.snapshot().chunks.rows()))

    world.sync()
    assert shown() == {"k1", "k2"}
    world.write("MEMORY.md", "# Memory\n")
    assert shown() == {"k1", "k2"}
    world.sync()
    assert shown() == set()
