"""What was prepared before something happened, and is published after it: every order, and each fence by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, evolve, field
from hypothesis import settings

from memprov import SessionRecord
from memprov.core.index import Change
from memprov.core.lineage import Basis
from memprov.core.purge import PurgeEffect as Effect
from memprov.errors import PartialError
from memprov.shell.index import PreparedIndex, prepare_index, publish_index, rebuild_index, reconcile, sync_index
from memprov.shell.native import NativeWriter
from tests.shell.index.world import CANARY, TWIN, World, schedules
from tests.shell.native.loading import rows, scratch

EVERY_TABLE = ("chunks", "vectors", "embedding_cache", "chunks_text_docsize")


def test_report_B01_an_embedding_that_arrives_after_the_purge_is_refused_as_forgotten(world: World) -> None:
    (world.workspace / "MEMORY.md").unlink()
    prepared = prepare_index(world.store, world.embedder, world.reader, sessions=["s1"])
    world.forget("s1")
    report = publish_index(world.store, prepared)
    (refusal,) = report.refused
    assert (refusal.path, refusal.change, refusal.queued) == ("sessions/main/s1.jsonl", Change.FORGOTTEN, False)
    assert "forgotten" in str(refusal)
    assert report.published == ()
    assert [len(rows(world.store._layout.ledger, table)) for table in EVERY_TABLE] == [0, 0, 0, 0]


def test_case_G17_a_rebuild_begun_before_a_purge_is_refused_and_asks_for_a_retry(world: World) -> None:
    world.sync()
    prepared = prepare_index(world.store, world.embedder, world.reader, rebuild=True)
    world.forget("s1")
    before = world.store.snapshot()
    report = publish_index(world.store, prepared)
    (refusal,) = report.refused
    assert (refusal.change, refusal.queued) == (Change.REVISION, True)
    assert (report.published, report.dropped, report.queued) == ((), (), (refusal,))
    assert world.store.snapshot() == before
    assert rebuild_index(world.store, world.embedder, world.reader).queued == ()
    assert not world.finds(CANARY)
    assert world.finds(TWIN)


def test_case_G18_a_session_prepared_before_it_was_forgotten_is_refused_with_that_message(world: World) -> None:
    world.sync()
    world.say("s1", f"again: {CANARY}")
    prepared = prepare_index(world.store, world.embedder, world.reader)
    world.forget("s1")
    refused = {refusal.path: refusal for refusal in publish_index(world.store, prepared).refused}
    assert "forgotten while it was being indexed" in str(refused["sessions/main/s1.jsonl"])
    assert not refused["sessions/main/s1.jsonl"].queued
    assert not world.finds(CANARY)


def test_a_file_that_changed_since_is_refused_queued_and_prepared_again(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    prepared = prepare_index(world.store, world.embedder, world.reader)
    world.write("memory/a.md", "omega\n")
    (refusal,) = publish_index(world.store, prepared).refused
    assert (refusal.path, refusal.change, refusal.queued) == ("memory/a.md", Change.SOURCE, True)
    assert str(refusal) == "memory/a.md: source changed; queued again"
    assert not world.finds("alpha")
    world.sync()
    assert world.finds("omega")


def test_a_file_whose_record_fell_since_is_refused(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    prepared = prepare_index(world.store, world.embedder)
    with world.store.observe_write("s2", "memory/a.md", sender_is_owner=False):
        world.write("memory/a.md", "alpha\n")
    (refusal,) = publish_index(world.store, prepared).refused
    assert (refusal.path, refusal.detail, refusal.queued) == ("memory/a.md", "its class", True)


def test_a_file_that_is_gone_and_a_session_that_is_no_more_are_refused_for_good(world: World) -> None:
    world.write("memory/a.md", "alpha\n")
    world.say("x1", "a word")
    world.say("x2", "another")
    prepared = prepare_index(world.store, world.embedder, world.reader)
    (world.workspace / "memory/a.md").unlink()
    world.store.delete_session("x1")
    world.store.record_session(SessionRecord("main", "x2", kind="heartbeat"))
    report = publish_index(world.store, prepared)
    assert {(refusal.path, refusal.change) for refusal in report.refused} == {
        ("memory/a.md", Change.GONE),
        ("sessions/main/x1.jsonl", Change.GONE),
        ("sessions/main/x2.jsonl", Change.EXCLUDED),
    }
    assert report.queued == ()


def test_the_later_of_two_states_of_a_transcript_wins_whatever_is_published_first(world: World) -> None:
    older = prepare_index(world.store, world.embedder, world.reader)
    world.say("s2", "a newer word")
    world.sync()
    refused = {refusal.path: refusal for refusal in publish_index(world.store, older).refused}
    assert refused["sessions/main/s2.jsonl"].change is Change.OVERTAKEN
    assert refused["sessions/main/s2.jsonl"].queued
    assert world.finds("newer")


def test_publishing_twice_is_publishing_once(world: World) -> None:
    prepared = prepare_index(world.store, world.embedder, world.reader)
    publish_index(world.store, prepared)
    before = world.store.snapshot()
    assert publish_index(world.store, prepared).added_chunks == 0
    assert evolve(world.store.snapshot(), revision=0) == evolve(before, revision=0)


def test_a_sync_tries_again_what_changed_under_it(world: World) -> None:
    left = [2]

    def restless(session: SessionRecord, /) -> object:
        if left[0] and session.session_id == "s2":
            left[0] -= 1
            world.write("MEMORY.md", f"- version {left[0]}\n")
        return world.reader(session)

    report = sync_index(world.store, world.embedder, restless)  # type: ignore[arg-type]
    assert report.queued == ()
    assert world.finds("version 0")
    assert not world.finds("version 1")


def test_a_sync_gives_up_on_what_never_holds_still_and_says_so(world: World) -> None:
    count = iter(range(1000))

    def restless(session: SessionRecord, /) -> object:
        world.write("MEMORY.md", f"- version {next(count)}\n")
        return world.reader(session)

    report = sync_index(world.store, world.embedder, restless)  # type: ignore[arg-type]
    assert [refusal.path for refusal in report.queued] == ["MEMORY.md"]


# --- every order ------------------------------------------------------------------------------------------------------


class KilledError(Exception):
    """The process died."""


@define
class Actors:
    """The steps of those who take part. Each step is what one of them does without being interrupted."""

    world: World
    crash_at: int
    prepared: dict[str, PreparedIndex] = field(factory=dict)
    forgotten: bool = False

    def steps(self) -> dict[str, list[Callable[[], None]]]:
        return {
            "sync": [lambda: self.prepare("sync"), lambda: self.publish("sync")],
            "rebuild": [lambda: self.prepare("rebuild"), lambda: self.publish("rebuild")],
            "purge": [self.purge_and_die, self.purge],
            "editor": [self.edit],
        }

    def prepare(self, name: str) -> None:
        store, embedder, reader = self.world.store, self.world.embedder, self.world.reader
        self.prepared[name] = prepare_index(store, embedder, reader, rebuild=name == "rebuild")

    def publish(self, name: str) -> None:
        publish_index(self.world.store, self.prepared[name])

    def purge_and_die(self) -> None:
        apply, done = NativeWriter.apply, iter(range(100))

        def dying(writer: NativeWriter, effect: Effect, basis: Basis) -> bool:
            if next(done) == self.crash_at:
                raise KilledError
            return apply(writer, effect, basis)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NativeWriter, "apply", dying)
            with pytest.raises((KilledError, PartialError)):
                self.world.forget("s1")
        self.forgotten = self.crash_at > 0

    def purge(self) -> None:
        self.world.forget("s1")
        self.forgotten = True

    def edit(self) -> None:
        memory = self.world.workspace / "MEMORY.md"
        memory.write_text(memory.read_text() + "- The owner likes mornings.\n")


#: Who takes part. All orders in every run, each with one of the moments at which the purge dies; the long profile
#: (`nox -s fuzz`) has all four together and every moment.
CASTS = [
    {"sync": 2, "purge": 2, "editor": 1},
    {"rebuild": 2, "purge": 2, "editor": 1},
    {"sync": 2, "rebuild": 2, "purge": 1},
]
LONG = settings().max_examples >= 1000


@pytest.mark.hypothesis
@pytest.mark.parametrize("cast", [*CASTS, {"sync": 2, "rebuild": 2, "purge": 2, "editor": 1}] if LONG else CASTS)
def test_I6_no_order_of_preparing_purging_and_publishing_brings_anything_back(cast: dict[str, int]) -> None:
    for number, order in enumerate(schedules(cast)):
        for crash_at in range(4) if LONG else [number % 4]:
            with scratch() as directory:
                run(World.at(directory), order, crash_at)


def run(world: World, order: tuple[str, ...], crash_at: int) -> None:
    actors = Actors(world, crash_at)
    steps = actors.steps()
    for name in (*order, "purge"):
        if steps[name]:
            steps[name].pop(0)()
        if actors.forgotten:
            paths = [chunk.path for chunk in world.store.snapshot().chunks.rows() if CANARY in chunk.text]
            assert set(paths) <= {"MEMORY.md"}, order  # the file itself, until the purge has cut it
    actors.purge()
    ledger = world.store._layout.ledger
    assert CANARY not in repr([rows(ledger, table) for table in ("chunks", "sources")]), order
    world.sync()
    assert not world.finds(CANARY), order
    assert world.finds(TWIN), order
    assert reconcile(world.store).sound, order


def test_the_schedules_are_all_orders_with_few_interruptions() -> None:
    assert sorted(schedules({"a": 1, "b": 1})) == [("a", "b"), ("b", "a")]
    assert len(list(schedules({"a": 2, "b": 2}, 0))) == 2
    assert len(list(schedules({"a": 2, "b": 2}, 9))) == 6
    assert ("a", "b", "a", "b") in set(schedules({"a": 2, "b": 2}, 2))
    assert ("sync", "purge", "purge", "sync", "editor") in set(schedules(CASTS[0]))


def test_a_generation_is_replaced_whole_or_not_at_all(world: World, tmp_path: Path) -> None:
    world.sync()
    world.write("memory/a.md", "alpha\n")
    prepared = prepare_index(world.store, world.embedder, world.reader, rebuild=True)
    world.write("memory/a.md", "omega\n")
    report = publish_index(world.store, prepared)
    assert [refusal.path for refusal in report.queued] == ["memory/a.md"]
    assert not world.finds("alpha")
    assert world.finds(TWIN)
    assert rebuild_index(world.store, world.embedder, world.reader).queued == ()
    assert world.finds("omega")
