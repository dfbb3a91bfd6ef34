"""A store whose vectors are copied to LanceDB. Collected where LanceDB is installed (`nox -s lancedb`), but for the
tests of how a store does without it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from memprov.errors import PartialError, SchemaError
from memprov.shell.index import rebuild_index, search, use_lancedb
from memprov.shell.native import NativeWriter
from memprov.shell.native import ledger as agent
from memprov.shell.vectors import LanceVectors
from memprov.shell.vectors.mirror import mirror_directory, trusted_mirror
from memprov.testing import ToyEmbedder
from tests.shell.index.world import CANARY, TWIN, World

INSTALLED = importlib.util.find_spec("lancedb") is not None


def directory(world: World) -> Path:
    return Path(mirror_directory(world.store._layout.ledger.path))


def held(world: World) -> frozenset[str]:
    return LanceVectors(str(directory(world)), 64).ids()


def in_the_ledger(world: World) -> frozenset[str]:
    return frozenset(chunk.id for chunk in world.store.snapshot().chunks.rows() if chunk.vector)


def trusted(world: World) -> bool:
    return trusted_mirror(world.store._layout.ledger.path, world.store.snapshot().revision, 64) is not None


def leaves_no_byte(world: World, ids: frozenset[str]) -> bool:
    files = [path.read_bytes() for path in directory(world).rglob("*") if path.is_file()]
    return not any(name.encode() in data for name in ids for data in files)


if INSTALLED:

    def test_the_copy_follows_the_ledger_and_is_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        use_lancedb(world.store)
        world.sync()
        assert held(world) == in_the_ledger(world)
        assert trusted(world)
        asked: list[int] = []
        nearest = LanceVectors.nearest

        def counted(index: LanceVectors, *args: object, **kwargs: object) -> object:
            asked.append(1)
            return nearest(index, *args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(LanceVectors, "nearest", counted)
        found = search(world.store, "sails", embedder=world.embedder)
        assert asked
        assert found == search(world.store, "sails", embedder=world.embedder, engine="exact")
        world.say("s2", "some more")
        world.sync()
        assert held(world) == in_the_ledger(world)

    def test_report_B72_a_purge_leaves_no_byte_of_its_rows_in_the_copy(world: World) -> None:
        world.sync()
        use_lancedb(world.store)
        before = in_the_ledger(world)
        world.forget("s1")
        assert held(world) == in_the_ledger(world)
        gone = before - in_the_ledger(world)
        assert gone
        assert leaves_no_byte(world, gone)
        assert trusted(world)
        assert not world.finds(CANARY)
        assert world.finds(TWIN)
        rebuild_index(world.store, world.embedder, world.reader)
        assert held(world) == in_the_ledger(world)
        assert not world.finds(CANARY)

    @pytest.mark.parametrize("when", ["before the ledger", "after the ledger"])
    def test_a_purge_that_is_interrupted_is_finished_by_the_next(
        world: World, monkeypatch: pytest.MonkeyPatch, when: str
    ) -> None:
        use_lancedb(world.store)
        world.sync()
        before = in_the_ledger(world)
        purge_index, apply = agent.purge_index, NativeWriter.apply

        def dying(*args: object) -> bool:
            if when == "after the ledger":
                purge_index(*args)  # type: ignore[arg-type]
            raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr(agent, "purge_index", dying)
            with pytest.raises(RuntimeError):
                world.forget("s1")
        assert not trusted(world)
        assert not any("sail" in hit.text and hit.source == "sessions" for hit in search(world.store, CANARY))
        world.forget("s1")
        assert held(world) == in_the_ledger(world)
        assert leaves_no_byte(world, before - in_the_ledger(world))
        assert apply is NativeWriter.apply

    def test_orphans_of_the_copy_go_with_the_next_purge(world: World) -> None:
        use_lancedb(world.store)
        world.sync()
        copy = LanceVectors(str(directory(world)), 64)
        copy.put(["orphan"], copy_row(world))
        world.forget("s1")
        assert "orphan" not in held(world)

    def test_a_model_of_another_width_makes_the_copy_anew(world: World) -> None:
        use_lancedb(world.store)
        world.sync()
        world.embedder = ToyEmbedder(dimensions=16)
        world.sync()
        assert LanceVectors(str(directory(world)), 16).ids() == in_the_ledger(world)
        assert world.finds(TWIN)

    def test_a_copy_that_is_behind_is_not_asked(world: World) -> None:
        use_lancedb(world.store)
        world.sync()
        (directory(world) / "revision").write_text("0")
        LanceVectors(str(directory(world)), 64).delete(in_the_ledger(world))
        assert world.finds(TWIN)
        world.sync()
        world.say("s2", "more")
        world.sync()
        assert held(world) == in_the_ledger(world)

    def copy_row(world: World):  # type: ignore[no-untyped-def]
        return world.embedder.embed(["orphan"])


@pytest.fixture
def without_lancedb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lancedb", None)


@pytest.mark.usefixtures("without_lancedb")
def test_without_lancedb_it_cannot_be_used_and_a_purge_removes_a_copy_whole(world: World) -> None:
    with pytest.raises(SchemaError, match="lancedb"):
        use_lancedb(world.store)
    world.sync()
    directory(world).mkdir(exist_ok=True)
    (directory(world) / "vectors.lance").write_bytes(b"what another process had copied")
    world.say("s2", "more")
    world.sync()
    assert not trusted(world)
    assert world.finds(TWIN)
    world.forget("s1")
    assert not directory(world).exists()
    assert not world.finds(CANARY)


@pytest.mark.usefixtures("without_lancedb")
def test_a_copy_that_cannot_be_removed_stops_the_purge_which_can_be_run_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sync()
    directory(world).mkdir()

    def refuse(path: object) -> None:
        raise OSError(13, "no")

    with monkeypatch.context() as patch:
        patch.setattr("memprov.shell.vectors.mirror.shutil.rmtree", refuse)
        with pytest.raises(PartialError, match="cannot be removed"):
            world.forget("s1")
    world.forget("s1")
    assert not directory(world).exists()
    assert not world.finds(CANARY)
