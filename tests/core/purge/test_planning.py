"""What a purge plan promises, on the model (docs: order, invariants)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given

from memprov import (
    Chunk,
    ChunkTable,
    CuratedWrite,
    HostEvent,
    IndexSource,
    InputError,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    Preimage,
    PurgePlan,
    RecallEntry,
    Selection,
    Selectors,
    SessionRecord,
    StaleCopy,
    StoreIdentity,
    apply_to_snapshot,
    plan_purge,
    select_sessions,
)
from memprov.core.purge import (
    CutFile,
    DropOrigins,
    DropRecall,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    plan_atoms,
    promotion_keys,
)
from memprov.core.purge.effects import Step
from memprov.core.text import promotion_marker
from tests.core.worlds import CORPUS, KEYS, SENTENCES, corpus_line, heard_snapshots, selection, selections

IDENTITY = StoreIdentity("model", "main", "/state", "/workspace")
K, N, M = KEYS[:3]


def world(**fields: Any) -> MemorySnapshot:
    """A snapshot with these fields and nothing else."""
    return evolve(MemorySnapshot(IDENTITY), **fields)


def origins(*pairs: tuple[str, str]) -> OriginTable:
    """Origin rows of agent main."""
    return OriginTable.from_rows(Origin(key, "main", session) for key, session in pairs)


def prefixes(snapshot: MemorySnapshot, plan: PurgePlan) -> Iterator[MemorySnapshot]:
    """The states that a crash can leave: after none, one, … all of the effects."""
    yield snapshot
    for effect in plan.effects:
        snapshot = effect.applied_to(snapshot)
        yield snapshot


def settled(snapshot: MemorySnapshot) -> MemorySnapshot:
    """A snapshot without what a repeated purge may change: the revision only grows."""
    return evolve(snapshot, revision=0)


@given(heard_snapshots(), selections)
def test_I1_after_apply_a_plan_for_the_same_selection_removes_nothing(
    snapshot: MemorySnapshot, chosen: Selection
) -> None:
    after = apply_to_snapshot(snapshot, plan_purge(snapshot, chosen))
    again = plan_purge(after, chosen)
    assert again.removes_nothing
    assert settled(apply_to_snapshot(after, again)) == settled(after)


@given(heard_snapshots(), selections)
def test_I2_files_that_hold_nothing_selected_are_not_in_the_plan(snapshot: MemorySnapshot, chosen: Selection) -> None:
    plan = plan_purge(snapshot, chosen)
    touched = {effect.path for effect in plan.effects if isinstance(effect, CutFile | RemoveFile)}
    after = {file.path: file.text for file in (*apply_to_snapshot(snapshot, plan).files,)}
    for file in snapshot.files:
        assert (after[file.path] != file.text) == (file.path in touched)
    for effect in plan.effects:
        if isinstance(effect, CutFile):
            assert effect.before != effect.after


@given(heard_snapshots(), selections)
def test_I4_tombstones_come_first_and_steps_never_go_back(snapshot: MemorySnapshot, chosen: Selection) -> None:
    effects = plan_purge(snapshot, chosen).effects
    assert isinstance(effects[0], RecordTombstones)
    assert set(effects[0].session_ids) == set(chosen.session_ids)
    assert [effect.step for effect in effects] == sorted(effect.step for effect in effects)


@given(heard_snapshots(), selections)
def test_I5_every_effect_prefix_converges_to_the_uninterrupted_end(snapshot: MemorySnapshot, chosen: Selection) -> None:
    plan = plan_purge(snapshot, chosen)
    end = settled(apply_to_snapshot(snapshot, plan))
    for crashed in prefixes(snapshot, plan):
        rerun = plan_purge(crashed, chosen)
        assert plan_atoms(rerun) <= plan_atoms(plan), "a resumed purge does nothing that was not reviewed"
        assert settled(apply_to_snapshot(crashed, rerun)) == end


@given(heard_snapshots(), selections)
def test_I5_every_effect_is_idempotent(snapshot: MemorySnapshot, chosen: Selection) -> None:
    for effect in plan_purge(snapshot, chosen).effects:
        snapshot = effect.applied_to(snapshot)
        assert settled(effect.applied_to(snapshot)) == settled(snapshot)


@given(heard_snapshots(), selections)
def test_I5_evidence_outlives_what_cites_it(snapshot: MemorySnapshot, chosen: Selection) -> None:
    plan = plan_purge(snapshot, chosen)
    selected = set(plan.report.entry_keys)
    for state in prefixes(snapshot, plan):
        cited = {key for file in state.files for key in promotion_keys(file.text)} & selected
        assert cited <= state.origins.keys


@given(heard_snapshots(), selections)
def test_I11_nothing_of_a_sibling_agent_goes_but_what_is_selected(snapshot: MemorySnapshot, chosen: Selection) -> None:
    snapshot = evolve(
        snapshot,
        sibling_keys=frozenset(KEYS),
        recall=tuple(evolve(row, snippet=f"no quotation here {number}") for number, row in enumerate(snapshot.recall)),
    )
    plan = plan_purge(snapshot, chosen)
    after = apply_to_snapshot(snapshot, plan)
    kept = {row.key for row in snapshot.recall} - set(plan.report.entry_keys)
    assert {row.key for row in after.recall} == kept
    assert set(snapshot.signals) - set(after.signals) <= set(plan.report.entry_keys)


def test_I11_rows_of_another_agent_in_one_table_stay() -> None:
    rows = OriginTable.from_rows([Origin(K, "main", "s1"), Origin(K, "helper", "s1"), Origin(N, "helper", "s1")])
    text = f"{promotion_marker(K)}\n- mine\n{promotion_marker(N)}\n- of the helper\n"
    snapshot = world(origins=rows, files=(MemoryFile("MEMORY.md", text),))
    plan = plan_purge(snapshot, selection("s1"))
    assert plan.report.entry_keys == (K,)
    assert plan.report.sibling_entry_keys == (K, N), "F12: the first goes, though the helper knows it too"
    after = apply_to_snapshot(snapshot, plan)
    assert {(row.entry_key, row.agent_id) for row in after.origins.rows()} == {(K, "helper"), (N, "helper")}


@given(heard_snapshots(), selections)
def test_I14_equal_snapshots_give_byte_equal_plans_on_any_executor(snapshot: MemorySnapshot, chosen: Selection) -> None:
    plan = plan_purge(snapshot, chosen)
    with ThreadPoolExecutor(3) as pool:
        assert plan_purge(snapshot, chosen, mapper=pool.map).to_json() == plan.to_json()
    reordered = evolve(snapshot, recall=snapshot.recall[::-1], signals=snapshot.signals[::-1])
    assert plan_purge(reordered, chosen).digest == plan.digest


@given(heard_snapshots(), selections)
def test_a_plan_survives_json_and_holds_no_memory_text(snapshot: MemorySnapshot, chosen: Selection) -> None:
    plan = plan_purge(snapshot, chosen)
    text = plan.to_json()
    assert PurgePlan.from_json(text) == plan
    assert not any(sentence in text for sentence in SENTENCES)


@given(heard_snapshots(), selections, selections)
def test_forgetting_is_monotone_in_selectors(snapshot: MemorySnapshot, one: Selection, other: Selection) -> None:
    both = selection(*{*one.session_ids, *other.session_ids})
    assert set(plan_purge(snapshot, one).report.entry_keys) <= set(plan_purge(snapshot, both).report.entry_keys)


def test_an_empty_selection_plans_nothing_and_still_reports_what_to_review() -> None:
    # case-B14
    snapshot = world(files=(MemoryFile("MEMORY.md", f"{promotion_marker(K)}\n- x\n"),), cache_rows=5)
    nobody = select_sessions([], Selectors(hook_sources=["gmail"]))
    plan = plan_purge(snapshot, nobody)
    assert plan.effects == ()
    assert plan.removes_nothing
    assert plan.report.untargetable_entry_keys == (K,)
    assert plan.report.artifacts.embedding_cache_rows == 0


def test_case_G3_a_key_with_other_origins_goes_whole_and_is_named_mixed() -> None:
    plan = plan_purge(world(origins=origins((K, "s1"), (K, "s2"))), selection("s1"))
    assert plan.report.entry_keys == plan.report.mixed_lineage_entry_keys == (K,)
    assert plan.report.artifacts.origin_rows == 2


def test_case_G4_D17_markers_without_origins_are_listed_and_a_siblings_are_told_apart() -> None:
    text = f"{promotion_marker(K)}\n- old\n{promotion_marker(N)}\n- of a sibling\n"
    plan = plan_purge(world(files=(MemoryFile("MEMORY.md", text),), sibling_keys=frozenset([N])), selection("s1"))
    assert plan.report.untargetable_entry_keys == tuple(sorted([K, N]))
    assert plan.report.sibling_entry_keys == (N,)
    assert not any(isinstance(effect, CutFile) for effect in plan.effects)


def test_case_G5_D6_an_emptied_corpus_file_goes_with_its_source() -> None:
    snapshot = world(
        corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0]) + " \n"),), sources=(IndexSource(CORPUS, "memory"),)
    )
    plan = plan_purge(snapshot, selection("s1"))
    assert [effect.path for effect in plan.effects if isinstance(effect, RemoveFile)] == [CORPUS]
    assert plan.report.artifacts.index_sources == 1
    after = apply_to_snapshot(snapshot, plan)
    assert after.corpus == ()
    assert after.sources == ()


def test_case_G6_D1_a_line_that_only_mentions_the_session_stays_and_is_no_snippet() -> None:
    line = corpus_line("s2", "look at sessions/main/s1 now please")
    files = (MemoryFile("MEMORY.md", "- look at sessions/main/s1 now please\n"),)
    plan = plan_purge(world(corpus=(MemoryFile(CORPUS, line),), files=files), selection("s1"))
    assert plan.report.artifacts.session_corpus_lines == 0
    assert plan.report.artifacts.memory_lines == 0


def test_D1_a_recall_row_is_owned_by_its_bracket_prefix_alone() -> None:
    recall = (
        RecallEntry(K, CORPUS, "[main/sessions/main/s1#L2] User: of the forgotten"),
        RecallEntry(N, CORPUS, "[main/sessions/main/s2#L2] User: see sessions/main/s1 there"),
    )
    plan = plan_purge(world(recall=recall), selection("s1"))
    assert [effect.row_keys for effect in plan.effects if isinstance(effect, DropRecall)] == [(K,)]


def test_case_G9_internal_sessions_rows_go_with_any_selection_and_other_kinds_stay() -> None:
    kinds = ("cron", "heartbeat", "subagent", "unknown")
    chunks = [Chunk(kind, f"sessions/main/{kind}.jsonl", "sessions", session_kind=kind) for kind in kinds]
    chunks.append(Chunk("system", "sessions/main/x.jsonl", "sessions", origin_class="system"))
    chunks.append(Chunk("narrative", "sessions/main/n.jsonl", "sessions"))
    snapshot = world(chunks=ChunkTable.from_rows(chunks), internal_sessions=frozenset(["n"]))
    plan = plan_purge(snapshot, selection("s1"))
    index = next(effect for effect in plan.effects if isinstance(effect, PurgeIndex))
    assert index.chunk_ids == ("cron", "heartbeat", "narrative", "system")
    assert plan_purge(snapshot, select_sessions([], Selectors(hook_sources=["none"]))).effects == ()


def test_case_G10_the_whole_embedding_cache_of_the_agent_goes() -> None:
    # also report B38: results of an aborted rebuild hang on no chunk
    snapshot = world(cache_rows=5)
    plan = plan_purge(snapshot, selection("s1"))
    assert plan.report.artifacts.embedding_cache_rows == 5
    assert apply_to_snapshot(snapshot, plan).cache_rows == 0


def test_case_G11_G12_an_unknown_id_is_forgotten_all_the_same_and_repeating_changes_only_the_revision() -> None:
    chosen = select_sessions([], Selectors(sessions=["nope"]))
    plan = plan_purge(world(revision=7), chosen)
    once = apply_to_snapshot(world(revision=7), plan)
    assert (once.tombstones, once.revision) == (frozenset(["nope"]), 8)
    assert plan.removes_nothing
    twice = apply_to_snapshot(once, plan_purge(once, chosen))
    assert (twice.tombstones, twice.revision) == (once.tombstones, 9)


def test_case_G13_keys_of_an_earlier_attempt_stay_selected() -> None:
    plan = plan_purge(world(origins=origins((K, "s1"))), selection("s1"), entry_keys=[N])
    assert plan.report.entry_keys == (K, N)


def test_case_G19_old_consolidation_highlights_are_a_refusal_that_does_not_block() -> None:
    text = f"## Memory Consolidation History\r\n\r\n  - `+ - old highlight`\r\n- User: {SENTENCES[0]}\r\n"
    snapshot = world(
        files=(MemoryFile("DREAMS.md", text),), corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0])),)
    )
    plan = plan_purge(snapshot, selection("s1"))
    assert plan.report.refusals == (
        "Cannot trace historical consolidation highlights in DREAMS.md; review them manually.",
    )
    assert plan.report.artifacts.memory_lines == 1


def test_case_H1_H2_ledger_writes_by_session_id_or_else_by_key_the_ledger_before_transcripts() -> None:
    chosen = select_sessions([SessionRecord("main", "s1", "agent:main:k")], Selectors(sessions=["s1"]))
    snapshot = world(
        ledger_writes=(
            CuratedWrite("USER.md", 5, session_id="s1"),
            CuratedWrite("memory/a.md", 6, session_key="agent:main:k"),
            CuratedWrite("memory/b.md", 7, session_id="s2", session_key="agent:main:k"),
        ),
        transcript_writes=(CuratedWrite("USER.md", 9, session_id="s1"), CuratedWrite("MEMORY.md", 9, session_id="s1")),
    )
    writes = plan_purge(snapshot, chosen).report.curated_writes
    assert [(w.relative_path, w.observed_at) for w in writes] == [("MEMORY.md", 9), ("USER.md", 5), ("memory/a.md", 6)]


def test_D4_collateral_entries_lose_their_rows_unless_a_surviving_text_carries_them() -> None:
    quote = f"- User: {SENTENCES[0]}\n"
    snapshot = world(
        corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0])),),
        files=(
            MemoryFile("MEMORY.md", f"{promotion_marker(N)}\n{quote}{promotion_marker(M)}\n{quote}"),
            MemoryFile("memory/a.md", f"{promotion_marker(M)}\n- paraphrased\n"),
        ),
        origins=origins((K, "s1"), (N, "s2"), (M, "s2")),
        recall=(RecallEntry(N, "memory/n.md", "other words"), RecallEntry(M, "memory/m.md", "other words")),
        signals=(N, M),
    )
    plan = plan_purge(snapshot, selection("s1"))
    after = apply_to_snapshot(snapshot, plan)
    assert plan.report.collateral_entry_keys == (N, M)
    assert plan.report.artifacts.origin_rows == 2
    assert plan.report.artifacts.short_term_entries == 1
    assert after.origins.keys == {M}
    assert [row.key for row in after.recall] == [M]
    assert after.signals == (M,)
    steps = [effect.step for effect in plan.effects if isinstance(effect, DropOrigins)]
    assert steps == [Step.DERIVED, Step.ORIGINS]


def test_D4_a_recall_row_that_quotes_a_selected_line_goes_or_promotion_would_bring_it_back() -> None:
    recall = (RecallEntry(N, "memory/2026-11-25.md", f"as I said, {SENTENCES[0]}"),)
    corpus = (MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0])),)
    plan = plan_purge(world(recall=recall, corpus=corpus), selection("s1"))
    assert plan.report.artifacts.short_term_entries == 1
    assert plan.report.collateral_entry_keys == (N,)


def test_D16_nested_rows_go_with_their_candidate_in_a_phase_report_and_stay_elsewhere() -> None:
    text = f"- Candidate: User: {SENTENCES[0]}\n  - confidence: 0.58\n- Candidate: other\n"
    corpus = (MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0])),)
    paths = ("memory/dreaming/light/2026-11-25.md", "memory/2026-11-25.md")
    snapshot = world(corpus=corpus, files=tuple(MemoryFile(path, text) for path in paths))
    after = apply_to_snapshot(snapshot, plan_purge(snapshot, selection("s1")))
    assert [file.text for file in after.files] == [
        "- Candidate: other\n",
        "  - confidence: 0.58\n- Candidate: other\n",
    ]


def test_D18_copies_go_when_their_writer_is_gone_or_they_are_old_and_never_else() -> None:
    copies = (
        StaleCopy("a.tmp", "1", writer_gone=True),
        StaleCopy("b.tmp", "2", over_an_hour=True),
        StaleCopy("c.tmp", "3"),
    )
    plan = plan_purge(world(stale_copies=copies), selection("s1"))
    assert [effect.path for effect in plan.effects if isinstance(effect, RemoveFile)] == ["a.tmp", "b.tmp"]
    assert plan.report.extra_artifacts.stale_copies == 2
    assert any("c.tmp" in warning for warning in plan.report.warnings)


def test_D21_events_lose_what_belongs_to_the_selection_and_empty_ones_go() -> None:
    def event(number: int, *keys: str) -> HostEvent:
        listed = ",".join(f'{{"key":"{key}"}}' for key in keys)
        text = f'{{"kind":"event","event":{{"applied":{len(keys)},"candidates":[{listed}]}},"sequence":{number}}}'
        return HostEvent(f"e{number}", text)

    snapshot = world(origins=origins((K, "s1"), (N, "s2")), events=(event(1, K, N), event(2, K), event(3, N)))
    plan = plan_purge(snapshot, selection("s1"))
    after = apply_to_snapshot(snapshot, plan)
    assert after.events == (event(1, N), event(3, N))
    assert plan.report.extra_artifacts.events == 2


def test_D22_phase_report_rows_that_cite_a_removed_corpus_line_are_warned_of() -> None:
    report = f"- Theme: tea\n  - evidence: {CORPUS}:1-1, {CORPUS}:2-2\n"
    corpus = corpus_line("s2", SENTENCES[1]) + corpus_line("s1", SENTENCES[0])
    snapshot = world(
        corpus=(MemoryFile(CORPUS, corpus),), files=(MemoryFile("memory/dreaming/rem/2026-11-25.md", report),)
    )
    warnings = plan_purge(snapshot, selection("s1")).report.warnings
    assert len(warnings) == 1
    assert f"{CORPUS}:2-2" in warnings[0]


def test_a_siblings_cleaned_file_leaves_a_stale_snapshot_in_this_agents_index_that_goes() -> None:
    # report B06: the file is clean already, the index of this agent is not
    chunks = ChunkTable.from_rows(
        [Chunk("c", "MEMORY.md", text=f"{promotion_marker(K)}\n- tea\n"), Chunk("d", "USER.md")]
    )
    snapshot = world(origins=origins((K, "s1")), files=(MemoryFile("MEMORY.md", "# clean\n"),), chunks=chunks)
    index = next(e for e in plan_purge(snapshot, selection("s1")).effects if isinstance(e, PurgeIndex))
    assert index.chunk_ids == ("c",)


def test_preimages_are_scrubbed_under_their_key() -> None:
    snapshot = world(origins=origins((K, "s1")), preimages=(Preimage("p", f"# M\n{promotion_marker(K)}\n- x\n- y\n"),))
    plan = plan_purge(snapshot, selection("s1"))
    assert apply_to_snapshot(snapshot, plan).preimages == (Preimage("p", "# M\n- y\n"),)
    assert plan.report.artifacts.backups == 1
    assert plan.report.artifacts.memory_entries == 0


def test_a_workspace_without_any_trace_of_known_entries_is_warned_of() -> None:
    bare = world(origins=origins((K, "s1")))
    assert any("/workspace has no corpus file" in w for w in plan_purge(bare, selection("s1")).report.warnings)
    marked = evolve(bare, files=(MemoryFile("MEMORY.md", f"{promotion_marker(K)}\n- x\n"),))
    assert not any("no corpus file" in w for w in plan_purge(marked, selection("s1")).report.warnings)


@pytest.mark.parametrize("level", ["physical", "", "LOGICAL"])
def test_an_unknown_level_is_refused_by_name(level: str) -> None:
    with pytest.raises(InputError, match="level"):
        plan_purge(world(), selection("s1"), level=level)


def test_a_selection_of_another_agent_is_refused() -> None:
    other = select_sessions([], Selectors(sessions=["s1"]), agent_id="helper")
    with pytest.raises(InputError, match="helper"):
        plan_purge(world(), other)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format":"memprov purge plan 1"}', "[" * 100_000, "nul\0"])
def test_what_is_no_plan_is_refused_as_input(text: str) -> None:
    with pytest.raises(InputError):
        PurgePlan.from_json(text)


def test_an_altered_plan_is_refused() -> None:
    text = plan_purge(world(origins=origins((K, "s1"))), selection("s1")).to_json()
    with pytest.raises(InputError, match="altered"):
        PurgePlan.from_json(text.replace(f'"{K}"\n   ],\n   "step"', f'"{N}"\n   ],\n   "step"', 1).replace(K, N))
