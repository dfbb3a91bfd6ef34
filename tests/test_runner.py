"""The runner: lock, plan, re-check, bounded re-plan, apply, resume; saved plans (docs: order, Saved plans)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    ConflictError,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    PartialError,
    PurgePlan,
    SchemaError,
    Selection,
    SelectorError,
    Selectors,
    SessionRecord,
    StalePlanError,
    StaleStateError,
    StoreIdentity,
    apply_plan,
    apply_to_snapshot,
    forget,
    preview,
)
from memprov.core.purge import PurgeEffect as Effect
from memprov.core.purge import RecordTombstones
from memprov.shell.runner import MAX_ATTEMPTS
from tests.core.purge.test_planning import K, N, origins, settled, world
from tests.core.worlds import CORPUS, SENTENCES, corpus_line, selections, snapshots
from tests.model_store import ModelStore

CATALOGUE = (SessionRecord("main", "s1", "agent:main:s1"), SessionRecord("main", "s2", "agent:main:s2"))
S1 = Selectors(sessions=["s1"])


class Killed(BaseException):
    """The process died here."""


def small_world() -> MemorySnapshot:
    return world(
        origins=origins((K, "s1"), (N, "s2")),
        corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0]) + corpus_line("s2", SENTENCES[1])),),
        files=(MemoryFile("MEMORY.md", f"- User: {SENTENCES[0]}\n- by hand\n"),),
    )


def store() -> ModelStore:
    return ModelStore(small_world(), CATALOGUE)


def add_origin(target: ModelStore, key: str, session: str) -> None:
    rows = [*target.state.origins.rows(), Origin(key, "main", session)]
    target.state = evolve(target.state, origins=OriginTable.from_rows(rows))


def test_preview_and_forget_give_one_report_but_for_dry_run() -> None:
    # case-G2
    target = store()
    plan = preview(target, S1)
    report = forget(target, S1)
    assert plan.report.dry_run
    assert not report.dry_run
    assert evolve(report, dry_run=True) == plan.report
    assert target.state == apply_to_snapshot(small_world(), plan)


@pytest.mark.parametrize("selectors", [Selectors(), Selectors(since="2026-11-25")])
def test_case_B1_no_selector_is_an_error_before_anything_is_read(selectors: Selectors) -> None:
    class Untouchable(ModelStore):
        def catalogue(self) -> tuple[SessionRecord, ...]:
            raise AssertionError("the store was read")

    target = Untouchable(small_world())
    for call in (preview, forget):
        with pytest.raises(SelectorError):
            call(target, selectors)
    assert target.locked == 0


def test_case_B14_a_selection_of_nobody_writes_nothing_and_takes_no_lock() -> None:
    target = store()
    report = forget(target, Selectors(hook_sources=["gmail"]))
    assert (report.session_ids, report.dry_run) == ((), False)
    assert target.state == small_world()
    assert target.locked == 0


def test_case_G13_report_B10_an_origin_that_appears_after_planning_is_purged_too() -> None:
    target = store()

    def interfere(number: int, effect: Effect) -> None:
        if number == 0 and isinstance(effect, RecordTombstones) and "late" not in target.state.origins.keys:
            add_origin(target, "late", "s1")

    target.before = interfere
    report = forget(target, S1)
    assert report.entry_keys == ("late", K)
    assert target.state.origins.keys == {N}


def test_selected_keys_only_grow_while_replanning() -> None:
    target = store()
    seen: list[Effect] = []

    def interfere(number: int, effect: Effect) -> None:
        if isinstance(effect, RecordTombstones) and not seen:
            seen.append(effect)
            target.state = evolve(target.state, origins=origins((N, "s2")))  # somebody pruned K's row

    target.before = interfere
    assert forget(target, S1).entry_keys == (K,)


def test_replanning_is_bounded_and_then_a_stale_state_error() -> None:
    target = store()
    attempts = []

    def interfere(number: int, effect: Effect) -> None:
        attempts.append(number)
        add_origin(target, f"late{len(attempts)}", "s1")

    target.before = interfere
    with pytest.raises(StaleStateError, match="again"):
        forget(target, S1)
    assert len(attempts) == MAX_ATTEMPTS
    assert target.applied == []


@given(snapshots(), selections, st.integers(0, 20), st.booleans())
def test_I5_a_crash_at_any_effect_then_a_rerun_ends_as_if_uninterrupted(
    snapshot: MemorySnapshot, chosen: Selection, at: int, after: bool
) -> None:
    uninterrupted = ModelStore(snapshot)
    selectors = Selectors(sessions=chosen.session_ids)
    forget(uninterrupted, selectors)
    target = ModelStore(snapshot)

    def die(number: int, effect: Effect) -> None:
        if number == at:
            raise Killed

    if after:
        target.after = die
    else:
        target.before = die
    try:
        forget(target, selectors)
    except Killed:
        target.before = target.after = lambda number, effect: None
        target.applied = []
        forget(target, selectors)
    assert settled(target.state) == settled(uninterrupted.state)


def test_a_conflict_part_way_names_what_remains_and_a_retry_completes() -> None:
    # case-G14
    target = store()

    def edit(number: int, effect: Effect) -> None:
        if getattr(effect, "path", "") == "MEMORY.md":
            raise ConflictError("MEMORY.md changed")

    target.before = edit
    with pytest.raises(ConflictError, match=r"MEMORY.md changed.*Running the same command again is safe") as caught:
        forget(target, S1)
    assert caught.value.remaining == ("rewrite MEMORY.md", f"rewrite {CORPUS}", "origin rows")
    assert target.state.tombstones == {"s1"}
    assert target.state.corpus == small_world().corpus
    assert target.state.origins == small_world().origins
    target.before = lambda number, effect: None
    forget(target, S1)
    assert preview(target, S1).removes_nothing


def test_a_refusal_before_the_first_effect_stays_a_refusal_and_later_is_a_partial_failure() -> None:
    for at, kind in ((0, SchemaError), (1, PartialError)):
        target = store()

        def refuse(number: int, effect: Effect, at: int = at) -> None:
            if number == at:
                raise SchemaError("no")

        target.before = refuse
        with pytest.raises(kind):
            forget(target, S1)


def test_a_saved_plan_is_applied_when_it_still_says_what_would_be_done() -> None:
    target = store()
    plan = PurgePlan.from_json(preview(target, S1).to_json())
    assert evolve(apply_plan(target, plan), dry_run=True) == plan.report


def test_a_saved_plan_goes_ahead_after_an_interruption_as_a_subset() -> None:
    for at in range(len(preview(store(), S1).effects)):
        target = store()
        plan = preview(target, S1)

        def die(number: int, effect: Effect, at: int = at) -> None:
            if number == at:
                raise Killed

        target.after = die
        with pytest.raises(Killed):
            apply_plan(target, plan)
        target.after = lambda number, effect: None
        apply_plan(target, plan)
        assert preview(target, S1).removes_nothing


def test_the_revision_and_the_cache_are_no_part_of_the_comparison() -> None:
    target = store()
    plan = preview(target, S1)
    target.state = evolve(target.state, revision=99, cache_rows=7)
    apply_plan(target, plan)
    assert target.state.cache_rows == 0


@pytest.mark.parametrize(
    "change",
    [
        {"files": (MemoryFile("MEMORY.md", f"- User: {SENTENCES[0]}\n- edited by hand\n"),)},
        {"origins": origins((K, "s1"), (N, "s1"))},
        {"signals": (K,)},
    ],
)
def test_a_plan_that_no_longer_describes_the_purge_is_refused_and_nothing_changes(change: dict[str, Any]) -> None:
    target = store()
    plan = preview(target, S1)
    target.state = evolve(target.state, **change)
    before = target.state
    with pytest.raises(StalePlanError, match=r"nothing was changed"):
        apply_plan(target, plan)
    assert target.state == before


def test_a_plan_of_another_store_or_of_sessions_that_changed_is_refused() -> None:
    target = store()
    plan = preview(target, Selectors(sessions=["s1"], hook_sources=["gmail"]))
    other = ModelStore(evolve(small_world(), store=StoreIdentity("model", "main", "/state", "/elsewhere")))
    with pytest.raises(StalePlanError, match=re.escape("/workspace")):
        apply_plan(other, plan)
    target.sessions = (*CATALOGUE, SessionRecord("main", "s9", hook_source="gmail"))
    with pytest.raises(StalePlanError, match="s9"):
        apply_plan(target, plan)
    assert target.applied == []


def test_errors_hold_no_memory_text() -> None:
    target = store()
    plan = preview(target, S1)
    target.state = evolve(target.state, files=(MemoryFile("MEMORY.md", f"- User: {SENTENCES[0]}\nsecret words\n"),))
    with pytest.raises(StalePlanError) as caught:
        apply_plan(target, plan)
    assert SENTENCES[0] not in str(caught.value)
    assert "secret" not in str(caught.value)
