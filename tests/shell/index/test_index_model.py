"""The effects on the index do to a store what they do to the model (I15)."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov import MemorySnapshot, Selection, Selectors, forget, plan_purge
from memprov.core.index import DropSource, PublishSource, ReplaceIndex
from memprov.shell.index import prepare_index, publish_index, reconcile, search
from tests.shell.index.world import World
from tests.shell.native.loading import canonical, scratch

PATHS = ["MEMORY.md", "memory/a.md", "memory/sub/b.md", "DREAMS.md"]
WORDS = st.sampled_from(["oolong", "kestrel", "zambujal", "- row", "# Head", "", "boat house"])
TEXTS = st.lists(WORDS, max_size=6).map("\n".join)


def plain(snapshot: MemorySnapshot) -> MemorySnapshot:
    return evolve(canonical(snapshot), cache_rows=0)


@settings(max_examples=12)
@given(st.data())
def test_I15_publishing_does_to_the_store_what_it_does_to_the_model(data: st.DataObject) -> None:
    with scratch() as directory:
        world = World.at(directory)
        for _ in range(data.draw(st.integers(1, 3))):
            for path in data.draw(st.lists(st.sampled_from(PATHS), unique=True)):
                world.write(path, data.draw(TEXTS))
            if data.draw(st.booleans()):
                world.say(data.draw(st.sampled_from(["s1", "s2", "s3"])), data.draw(WORDS) or "word")
            prepared = prepare_index(
                world.store,
                data.draw(st.sampled_from([None, world.embedder])),
                data.draw(st.sampled_from([None, world.reader])),
                rebuild=data.draw(st.booleans()),
            )
            before = world.store.snapshot()
            modelled = before
            for effect in prepared._plan.effects:
                assert isinstance(effect, PublishSource | DropSource | ReplaceIndex)
                modelled = effect.applied_to(modelled)
                assert plain(effect.applied_to(modelled)) == plain(modelled)
            publish_index(world.store, prepared)
            after = world.store.snapshot()
            assert plain(after) == plain(modelled)
            assert (after.revision > before.revision) == (plain(after) != plain(before) or bool(prepared._plan.effects))
            assert reconcile(world.store).sound


@settings(max_examples=10)
@given(st.data())
def test_I1_I15_a_purge_after_indexing_is_the_models_and_leaves_nothing_to_find(data: st.DataObject) -> None:
    with scratch() as directory:
        world = World.at(directory)
        for path in data.draw(st.lists(st.sampled_from(PATHS[1:]), unique=True)):
            world.write(path, data.draw(TEXTS) + "\nThe owner sails to zanzibar.\nUser: I sail to zanzibar in spring\n")
        world.sync()
        selection = Selection("main", Selectors(sessions=["s1"]), ("s1",))
        before = world.store.snapshot()
        plan = plan_purge(before, selection)
        modelled = before
        for effect in plan.effects:
            modelled = effect.applied_to(modelled)
        forget(world.store, Selectors(sessions=["s1"]))
        assert canonical(world.store.snapshot()).chunks == canonical(modelled).chunks
        assert canonical(world.store.snapshot()).sources == canonical(modelled).sources
        assert not any(hit.path.startswith("sessions/main/s1") for hit in search(world.store, "zanzibar"))
        world.sync()
        assert reconcile(world.store).sound
