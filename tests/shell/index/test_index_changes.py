"""A sync follows what changed: of transcripts by the host's word, of files by their times and sizes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from memprov import SessionRecord
from memprov.shell.index import publish_index, rebuild_index, reconcile, sync_index
from memprov.shell.index.sync import prepare_index
from memprov.shell.workspace.tree import CALLS
from memprov.testing import ToyEmbedder
from tests.shell.index.world import CANARY, TWIN, World
from tests.shell.native.test_native_changes import session

LONG_AGO = 1_000_000_000


def grown(world: World, name: str) -> None:
    world.store.record_session(SessionRecord("main", name, changed=len(world.chats[name])))


def settled(world: World) -> World:
    """The world with a word about every transcript, and files that have not been touched for long."""
    for name in world.chats:
        grown(world, name)
    aged(world)
    return world


def aged(world: World) -> None:
    for path in world.workspace.rglob("*.md"):
        os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture(autouse=True)
def _coarse_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are never old: their times are taken for exact."""
    monkeypatch.setattr("memprov.shell.index.files._SETTLED_NS", -(10**18))


def opened(world: World) -> list[bytes]:
    """Which files are opened from now on."""
    names: list[bytes] = []

    def noting(path: bytes, flags: int, **options: int) -> int:
        names.append(path)
        return CALLS.open(path, flags, **options)

    world.store = evolve(world.store, calls=evolve(CALLS, open=noting))
    return names


def test_a_sync_with_nothing_new_asks_for_nothing_opens_no_file_and_writes_nothing(world: World) -> None:
    settled(world).sync()
    world.read.clear()
    names = opened(world)
    before = Path(world.store._layout.ledger.path).read_bytes()
    report = world.sync()
    assert (report.unchanged, report.published, world.read) == (3, (), [])
    assert not [name for name in names if name.endswith(b".md")]
    assert Path(world.store._layout.ledger.path).read_bytes() == before


def test_a_transcript_that_changed_is_read_and_no_other(world: World) -> None:
    settled(world).sync()
    world.read.clear()
    world.say("s2", "a new sentence about the marmalade")
    grown(world, "s2")
    assert world.sync().published == ("sessions/main/s2.jsonl",)
    assert world.read == ["s2"]
    assert world.finds("marmalade")


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.write("MEMORY.md", "# Memory\n\n- a quince\n"),
        lambda world: world.write("memory/2026-01-01.md", "a quince\n"),
        lambda world: (world.workspace / "MEMORY.md").unlink(),
        lambda world: world.forget("s1"),
        lambda world: world.store.record_session(session("s1", kind="cron")),
        lambda world: world.store.delete_session("s1"),
        lambda world: world.say("s3", "a session of which the host says nothing"),
    ],
)
def test_whatever_changes_what_may_be_found_is_seen(world: World, change: Callable[[World], object]) -> None:
    settled(world).sync()
    change(world)
    report = world.sync()
    assert report.published or report.dropped or report.unchanged < 3


def test_a_file_that_keeps_its_size_and_time_is_told_by_what_the_system_notes_itself(world: World) -> None:
    settled(world).sync()
    path = world.workspace / "MEMORY.md"
    path.write_bytes(path.read_bytes().replace(TWIN.encode(), TWIN[::-1].encode()))
    aged(world)
    assert world.sync().published == ("MEMORY.md",)


def test_a_file_that_changed_a_moment_ago_is_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memprov.shell.index.files._SETTLED_NS", 10**18)
    settled(world).sync()
    names = opened(world)
    world.sync()
    assert b"MEMORY.md" in names


def test_another_embedder_and_none_are_looked_at_anew(world: World) -> None:
    settled(world).sync()
    for embedder in (ToyEmbedder(dimensions=5), None):
        world.read.clear()
        report = sync_index(world.store, embedder, world.reader)
        assert len(report.published) == 3
        assert world.read == ["s1", "s2"]
        assert not sync_index(world.store, embedder, world.reader).published


def test_what_the_index_lost_is_read_again_though_the_transcript_did_not_change(world: World) -> None:
    settled(world).sync()
    with world.store.exclusive() as writer:
        writer._ledger.execute("DELETE FROM chunk_provenance WHERE chunk_id IN (SELECT chunk_id FROM chunks LIMIT 5)")
    assert reconcile(world.store, repair=True).repaired
    world.sync()
    assert world.finds(TWIN)
    assert world.finds(CANARY)


def test_a_transcript_that_was_not_there_is_asked_for_again(world: World) -> None:
    settled(world)
    chat = world.chats.pop("s2")
    world.sync()
    world.chats["s2"] = chat
    world.sync()
    assert world.finds(f"bicycle is a {TWIN}")


def test_I6_a_mark_that_was_on_its_way_does_not_outlive_a_purge(world: World) -> None:
    prepared = prepare_index(settled(world).store, world.embedder, world.reader)
    world.forget("s1")
    publish_index(world.store, prepared)
    world.read.clear()
    world.sync()
    world.sync()
    assert "s1" not in world.read
    assert world.read == []
    assert not world.finds(CANARY)


def test_a_rebuild_reads_everything(world: World) -> None:
    settled(world).sync()
    world.read.clear()
    rebuild_index(world.store, world.embedder, world.reader)
    assert world.read == ["s1", "s2"]
    world.read.clear()
    world.sync()
    assert world.read == []
