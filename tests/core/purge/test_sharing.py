"""What a purge of one agent means for the others of its workspace: F12, F50."""

from __future__ import annotations

from attrs import evolve

from memprov import (
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    SharedEntry,
    SiblingIndex,
    StoreIdentity,
    apply_to_snapshot,
    plan_purge,
)
from memprov.core.text import digest, promotion_marker
from tests.core.worlds import CORPUS, SENTENCES, corpus_line, selection

TEA, KILN = SENTENCES[0], SENTENCES[1]


def world(memory: str, *keys: str, siblings: tuple[str, ...] = ()) -> MemorySnapshot:
    """Agent ``main`` with origins of these keys in session s1, and agent ``other`` with some in its own."""
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=(MemoryFile("MEMORY.md", memory),),
        corpus=(MemoryFile(CORPUS, corpus_line("s1", TEA)),),
        origins=OriginTable.from_rows(Origin(key, "main", "s1") for key in keys),
        sibling_keys=frozenset(siblings),
        siblings=(SiblingIndex("other"),),
    )


def test_F12_an_entry_that_another_agent_knows_by_the_same_key_is_named_before_anything_is_done() -> None:
    memory = f"# Mine\n\n{promotion_marker('k')}\n- User: {TEA}\n"
    report = plan_purge(world(memory, "k", siblings=("k",)), selection("s1")).report
    assert report.entry_keys == report.sibling_entry_keys == ("k",)
    assert report.shared_entries == (SharedEntry("k", ("MEMORY.md:3",), ("other",)),)
    (warning,) = [w for w in report.warnings if "known to another agent" in w]
    assert "'other'" in warning
    assert "k (MEMORY.md:3)" in warning
    assert TEA not in report.to_json()


def test_F12_an_entry_of_another_agent_that_goes_because_it_says_the_same_is_named_too() -> None:
    memory = f"{promotion_marker('theirs')}\n- User: {TEA}\n"
    report = plan_purge(world(memory, siblings=("theirs",)), selection("s1")).report
    assert report.artifacts.memory_entries + report.artifacts.memory_lines
    assert report.collateral_entry_keys == report.sibling_entry_keys == ("theirs",)
    assert report.shared_entries == (SharedEntry("theirs", ("MEMORY.md:1",), ("other",)),)
    assert any("known to another agent" in w for w in report.warnings)


def test_F12_a_collateral_entry_of_the_agent_itself_is_named_with_its_place_and_is_no_siblings() -> None:
    memory = f"{promotion_marker('mine')}\n- User: {TEA}\n"
    snapshot = world(memory)
    snapshot = evolve(snapshot, origins=OriginTable.from_rows([Origin("mine", "main", "s2")]))
    report = plan_purge(snapshot, selection("s1")).report
    assert report.shared_entries == (SharedEntry("mine", ("MEMORY.md:1",), ("main",)),)
    assert report.sibling_entry_keys == ()
    assert not any("known to another agent" in w for w in report.warnings)


def test_F12_what_no_other_agent_knows_is_shared_with_nobody() -> None:
    memory = f"{promotion_marker('k')}\n- User: {TEA}\n\n{promotion_marker('theirs')}\n- User: {KILN}\n"
    report = plan_purge(world(memory, "k", siblings=("theirs",)), selection("s1")).report
    assert report.shared_entries == ()
    assert report.sibling_entry_keys == ("theirs",), "D17: it stays, and is no target"
    assert not any("known to another agent" in w for w in report.warnings)


def index_warnings(snapshot: MemorySnapshot) -> list[str]:
    return [w for w in plan_purge(snapshot, selection("s1")).report.warnings if w.startswith("the index of agent")]


def test_F50_I11_an_idle_purge_names_the_index_that_still_shows_the_text_and_what_clears_it() -> None:
    memory = f"{promotion_marker('k')}\n- User: {TEA}\n"
    snapshot = evolve(
        world(memory, "k"), siblings=(SiblingIndex("other", (("MEMORY.md", digest(memory)),)), SiblingIndex("third"))
    )
    (before,) = index_warnings(snapshot)
    assert "'other'" in before
    assert "MEMORY.md" in before
    left = apply_to_snapshot(snapshot, plan_purge(snapshot, selection("s1")))
    assert plan_purge(left, selection("s1")).removes_nothing
    assert index_warnings(left) == [before], "a second preview is no certificate"
    assert "sync_index" in before
    claw = evolve(left, store=StoreIdentity("openclaw", "main", "/state", "/workspace"))
    assert "openclaw memory index --agent other --force" in index_warnings(claw)[0]
    fresh = evolve(left, siblings=(SiblingIndex("other", (("MEMORY.md", digest(left.files[0].text)),)),))
    assert index_warnings(fresh) == [], "its index was made anew"
    gone = evolve(left, siblings=(SiblingIndex("other", (("memory/gone.md", "0"),)),))
    assert "memory/gone.md" in index_warnings(gone)[0]
