"""Consolidation, pure: what is decided is validated, what is merged keeps its lineage, what is written is read back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    Chunk,
    ChunkTable,
    InputError,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginClass,
    OriginTable,
    Preimage,
    RecallEntry,
    Selectors,
    SessionKind,
    StoreIdentity,
    apply_to_snapshot,
    plan_purge,
    select_sessions,
)
from memprov.core.consolidation import (
    ConsolidationLimits,
    ConsolidationPlan,
    Decision,
    Rejected,
    Rejection,
    SiblingEntries,
    entries_of_interest,
    named_keys,
    plan_consolidation,
    plan_request,
    read_decisions,
)
from memprov.core.consolidation.decisions import Action, claim_of, prior_entries
from memprov.core.consolidation.prune import plan_prune, prune_candidates
from memprov.core.lineage import PublicationOutcome, TransferEdge, edges_after_drop, edges_to, entry_classes
from memprov.core.purge import promotion_keys
from memprov.core.records import TRUST_ORDER, Provenance
from memprov.core.state import StagedEntry
from memprov.core.state import after_all as apply_writes
from memprov.core.text import Document, lineage_marker, promotion_marker
from memprov.core.writing import (
    Gate,
    Highlight,
    MarkPromoted,
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    ReplaceText,
    RequireAdmitted,
    StorePreimage,
    Thresholds,
    add_history,
)
from memprov.core.writing.diary import MAX_HIGHLIGHTS
from tests.core.worlds import CORPUS
from tests.core.writing.test_promote import HOSTILE, NOW

ANY = Thresholds(score=0, signals=0, unique_queries=0)
LOOSE = ConsolidationLimits(loss=1.0)
TODAY = "2026-11-29"
TEA, KILN, BIKE, RED = (
    "I prefer oolong tea over coffee in the morning.",
    "The kiln runs at nine hundred degrees.",
    "My bicycle is a green touring model.",
    "My bicycle is now a red racing model.",
)


def said(session: str, sentence: str, number: int = 2) -> str:
    return f"[main/sessions/main/{session}#L{number}] User: {sentence}"


def staged(key: str, session: str, sentence: str, lineage: str | None = None, **fields: Any) -> StagedEntry:
    known = Provenance(OriginClass.OWNER, SessionKind.INTERACTIVE, supersedes_key=lineage)
    entry = StagedEntry(
        key, CORPUS, 1, 1, said(session, sentence), grounded_count=1, total_score=0.58, provenance=known
    )
    return evolve(entry, last_recalled_at_ms=NOW, **fields)


def marked(key: str, session: str, sentence: str, lineage: str | None = None) -> str:
    """An entry as an earlier consolidation wrote it."""
    above = f"{lineage_marker(lineage)}\n" if lineage else ""
    line = f"- {said(session, sentence)} Source: {CORPUS}#L9-L9 <!-- trigger: tea --> <!-- importance: 5 -->"
    return f"{above}{promotion_marker(key)}\n{line}\n"


def world(
    *entries: StagedEntry, memory: str | None = None, origins: Iterable[Origin] = (), **fields: Any
) -> MemorySnapshot:
    corpus = "".join(dict.fromkeys(f"{entry.snippet}\n" for entry in entries))
    files = () if memory is None else (MemoryFile("MEMORY.md", memory),)
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=(*files, *fields.pop("files", ())),
        corpus=(MemoryFile(CORPUS, corpus),),
        origins=OriginTable.from_rows(origins),
        **fields,
    )


def owner(key: str, session: str, agent: str = "main", **fields: Any) -> Origin:
    return Origin(key, agent, session, origin_class=fields.pop("origin_class", "owner"), **fields)


def plan(
    snapshot: MemorySnapshot, entries: Iterable[StagedEntry], *decisions: Decision, **options: Any
) -> ConsolidationPlan:
    entries = tuple(entries)
    options = {"asked": [e.key for e in entries], "thresholds": ANY, "limits": LOOSE, **options}
    return plan_consolidation(snapshot, entries, decisions, now_ms=NOW, today=TODAY, **options)


def line_of(memory: str, key: str) -> str:
    return next(e.line for e in prior_entries(Document(memory)) if key in e.keys)


def origins_of(snapshot: MemorySnapshot, key: str) -> set[str]:
    return {row.session_id for row in snapshot.origins.touching(entry_keys=[key]).rows()}


def text_of(snapshot: MemorySnapshot, path: str = "MEMORY.md") -> str:
    return next(file.text for file in snapshot.files if file.path == path)


# --- the merge --------------------------------------------------------------------------------------------------------


def merged_world() -> tuple[MemorySnapshot, StagedEntry, Decision]:
    memory = f"# Mine\n\nby hand\n\n{marked('prior', 's1', TEA)}{marked('other', 's9', KILN)}"
    entry = staged("candidate", "s2", TEA)
    origins = [owner("prior", "s1"), owner("candidate", "s2"), owner("other", "s9")]
    return (
        world(entry, memory=memory, origins=origins),
        entry,
        Decision("candidate", "merged", [line_of(memory, "prior")]),
    )


def test_case_F3_report_B46_a_merge_is_one_entry_with_the_origins_of_both() -> None:
    snapshot, entry, decision = merged_world()
    made = plan(snapshot, [entry], decision)
    after = apply_writes(snapshot, made.effects)
    assert made.report.merged == ("candidate",)
    assert origins_of(after, "candidate") == {"s1", "s2"}
    assert promotion_keys(text_of(after)) == ("other", "candidate")
    assert text_of(after).count(TEA) == 1
    assert text_of(after).startswith(
        f"# Mine\n\nby hand\n\n{marked('other', 's9', KILN)}\n## Consolidated Memory ({TODAY})\n\n"
    )
    # the prior stays known while its preimage does, and goes with it
    assert origins_of(after, "prior") == {"s1"}
    gone = evolve(after, preimages=())
    assert plan_prune(gone, prune_candidates(after)) == (PruneOrigins("main", ["prior"]),)
    pruned = apply_writes(gone, plan_prune(gone, prune_candidates(after)))
    assert origins_of(pruned, "prior") == set()
    assert [e.parent for e in edges_to(pruned.transfers, "candidate")] == ["prior"]


def test_case_F4_superseding_hands_the_lineage_on_and_leaves_the_unrelated_alone() -> None:
    memory = marked("stale", "s1", BIKE, "bike-model") + marked("unrelated", "s3", KILN)
    entry = staged("new", "s2", RED, "bike-model")
    snapshot = world(entry, memory=memory, origins=[owner("stale", "s1"), owner("new", "s2"), owner("unrelated", "s3")])
    made = plan(snapshot, [entry], Decision("new", Action.SUPERSEDED, [line_of(memory, "stale")]))
    after = apply_writes(snapshot, made.effects)
    assert made.report.superseded == ("new",)
    assert origins_of(after, "new") == {"s1", "s2"}
    assert origins_of(after, "unrelated") == {"s3"}
    assert f"{lineage_marker('bike-model')}\n{promotion_marker('new')}\n" in text_of(after)
    assert BIKE not in text_of(after)


def test_the_effects_come_in_the_one_safe_order() -> None:
    snapshot, entry, decision = merged_world()
    kinds = [type(effect) for effect in plan(snapshot, [entry], decision).effects]
    assert kinds == [
        RequireAdmitted, RecordOrigins, RecordTransfers, StorePreimage, ReplaceText, ReplaceText, MarkPromoted,
    ]  # fmt: skip
    assert plan(snapshot, [entry], decision).effects[0] == RequireAdmitted("main", ["s1", "s2"])


def test_every_agent_of_the_workspace_hands_its_origins_on_and_is_fenced() -> None:
    snapshot, entry, decision = merged_world()
    helper = SiblingEntries("helper", (owner("prior", "h1", "helper"), owner("elsewhere", "h2", "helper")))
    effects = plan(snapshot, [entry], decision, siblings=[helper]).effects
    assert RequireAdmitted("helper", ["h1"]) in effects
    assert RecordOrigins("helper", (owner("candidate", "h1", "helper"),)) in effects
    assert any(isinstance(e, RecordTransfers) and e.agent_id == "helper" for e in effects)


def test_D14_the_survivor_is_as_weak_as_its_weakest_parent() -> None:
    snapshot, entry, decision = merged_world()
    weak = OriginTable.from_rows([*snapshot.origins.rows(), owner("prior", "s4", origin_class="untrusted")])
    after = apply_writes(
        evolve(snapshot, origins=weak), plan(evolve(snapshot, origins=weak), [entry], decision).effects
    )
    assert entry_classes(after.origins.rows())["candidate"] is OriginClass.UNTRUSTED


def test_equal_lines_are_written_once_with_their_markers_stacked() -> None:
    one, two = staged("a", "s1", TEA), staged("b", "s1", TEA)
    snapshot = world(one, two, origins=[owner("a", "s1"), owner("b", "s1")])
    text = text_of(apply_writes(snapshot, plan(snapshot, [one, two], Decision("a"), Decision("b")).effects))
    assert text.endswith(f"{promotion_marker('a')}\n{promotion_marker('b')}\n{text.splitlines()[-1]}\n")
    assert [e.keys for e in Document(text).entries] == [("a", "b")]
    # and a merge of such an entry has both as parents
    third = staged("c", "s3", TEA)
    later = world(third, memory=text, origins=[owner("a", "s1"), owner("b", "s2"), owner("c", "s3")])
    after = apply_writes(later, plan(later, [third], Decision("c", Action.MERGED, [line_of(text, "a")])).effects)
    assert origins_of(after, "c") == {"s1", "s2", "s3"}


def test_an_entry_that_would_be_superseded_again_keeps_its_lineage_through_a_merge() -> None:
    memory = marked("old", "s1", BIKE, "bike-model")
    again = staged("again", "s2", BIKE)
    snapshot = world(again, memory=memory, origins=[owner("old", "s1"), owner("again", "s2")])
    after = apply_writes(
        snapshot, plan(snapshot, [again], Decision("again", Action.MERGED, [line_of(memory, "old")])).effects
    )
    assert prior_entries(Document(text_of(after)))[0].lineages == ("bike-model",)


def test_a_section_of_ours_that_is_left_empty_goes_and_any_other_heading_stays() -> None:
    memory = f"# Long-Term Memory\n\n## Consolidated Memory (2026-11-01)\n\n{marked('p', 's1', TEA)}\n## By hand\n\n"
    entry = staged("k", "s2", TEA)
    snapshot = world(entry, memory=memory, origins=[owner("p", "s1"), owner("k", "s2")])
    text = text_of(
        apply_writes(snapshot, plan(snapshot, [entry], Decision("k", Action.MERGED, [line_of(memory, "p")])).effects)
    )
    assert "2026-11-01" not in text
    assert text.startswith("# Long-Term Memory\n\n## By hand\n\n\n## Consolidated Memory (2026-11-29)\n\n")


# --- validation -------------------------------------------------------------------------------------------------------


def rejected(
    snapshot: MemorySnapshot, entries: Iterable[StagedEntry], *decisions: Decision, **options: Any
) -> Rejected:
    made = plan(snapshot, entries, *decisions, **options)
    assert made.report.rejected is not None
    assert (made.report.added, made.report.merged, made.report.superseded) == ((), (), ())
    # what was rejected is appended instead, and nothing that stands in the file is touched
    assert made.publication is None
    assert made.append is not None
    after = apply_writes(snapshot, made.effects)
    before = next((file.text for file in snapshot.files if file.path == "MEMORY.md"), "")
    assert all(text_of(after).startswith(before) for _ in made.append.effects[:1])
    return made.report.rejected.reason


def test_each_structural_fault_rejects_the_answer_and_the_candidates_are_appended() -> None:
    snapshot, entry, good = merged_world()
    prior, other = good.prior_entries[0], line_of(text_of(snapshot), "other")

    def with_(*decisions: Decision, **options: Any) -> Rejected:
        return rejected(snapshot, [entry], *decisions, **options)

    assert plan(snapshot, [entry], good).report.rejected is None
    assert with_() is Rejected.UNDECIDED
    assert with_(good, good) is Rejected.UNDECIDED
    assert with_(good, Decision("unasked")) is Rejected.UNDECIDED
    assert with_(evolve(good, prior_entries=[prior + " "])) is Rejected.NO_ENTRY
    assert with_(evolve(good, prior_entries=["by hand"])) is Rejected.NO_ENTRY
    assert with_(evolve(good, prior_entries=[prior, prior])) is Rejected.NAMED_TWICE
    assert with_(evolve(good, prior_entries=[])) is Rejected.WRONG_COUNT
    assert with_(evolve(good, action="added")) is Rejected.WRONG_COUNT
    assert with_(evolve(good, prior_entries=[other])) is Rejected.OTHER_CLAIM
    assert with_(evolve(good, text="User: I prefer coffee.")) is Rejected.OTHER_CLAIM
    assert with_(evolve(good, prior_entries=[f"{prior}\0"])) is Rejected.NUL
    assert with_(evolve(good, action="superseded")) is Rejected.OTHER_LINEAGE
    assert with_(good, limits=ConsolidationLimits(file_characters=300)) is Rejected.BUDGET
    assert plan(snapshot, [entry], evolve(good, text=said("s2", TEA))).report.rejected is None


def test_a_file_that_cannot_be_read_back_or_holds_a_nul_is_only_appended_to() -> None:
    snapshot, entry, good = merged_world()
    nul = evolve(snapshot, files=(MemoryFile("MEMORY.md", text_of(snapshot).replace("by hand", "by\0hand")),))
    assert rejected(nul, [entry], good) is Rejected.NUL
    # what stands in fenced code shows an entry and is none
    memory = f"```\n{marked('prior', 's1', TEA)}```\n"
    assert rejected(world(entry, memory=memory, origins=[owner("candidate", "s2")]), [entry], good) is Rejected.NO_ENTRY
    unreadable = evolve(entry, key="memory:claim:x -->")
    origins = [owner(unreadable.key, "s2")]
    assert rejected(world(unreadable, origins=origins), [unreadable], Decision(unreadable.key)) is Rejected.UNREADABLE


def test_no_candidates_are_no_effects() -> None:
    snapshot, _, _ = merged_world()
    assert plan(snapshot, []).effects == ()


def test_a_prior_entry_is_exact_unique_and_without_continuations() -> None:
    entry = staged("k", "s2", TEA)
    origins = [owner("p", "s1"), owner("q", "s1"), owner("k", "s2")]
    once = marked("p", "s1", TEA)
    decision = Decision("k", Action.MERGED, [line_of(once, "p")])
    continued = world(entry, memory=once + "  and more\n", origins=origins)
    assert rejected(continued, [entry], decision) is Rejected.CONTINUED
    twice = world(entry, memory=once + "\n" + marked("q", "s1", TEA), origins=origins)
    assert rejected(twice, [entry], decision) is Rejected.AMBIGUOUS
    copied_by_hand = world(entry, memory=once + "\n" + once.splitlines()[1] + "\n", origins=origins)
    assert rejected(copied_by_hand, [entry], decision) is Rejected.AMBIGUOUS
    unmarked = world(entry, memory=once.splitlines()[1] + "\n", origins=origins)
    assert rejected(unmarked, [entry], decision) is Rejected.NO_ENTRY


def test_two_candidates_cannot_take_one_prior_entry() -> None:
    memory = marked("p", "s1", TEA)
    one, two = staged("a", "s2", TEA), staged("b", "s3", TEA)
    snapshot = world(one, two, memory=memory, origins=[owner("p", "s1"), owner("a", "s2"), owner("b", "s3")])
    both = [Decision(key, Action.MERGED, [line_of(memory, "p")]) for key in "ab"]
    assert rejected(snapshot, [one, two], *both) is Rejected.NAMED_TWICE


def test_superseding_takes_all_of_one_lineage_and_nothing_else() -> None:
    memory = (
        marked("p", "s1", BIKE, "bike")
        + marked("q", "s2", "My bicycle is blue, they say.", "bike")
        + marked("t", "s3", TEA, "tea")
    )
    entry = staged("k", "s4", RED, "bike")
    snapshot = world(entry, memory=memory, origins=[*(owner(k, f"s{i}") for i, k in enumerate("pqtk", 1))])
    p, q, t = (line_of(memory, key) for key in "pqt")
    for some in ([p], [p, q, t], [t]):
        assert rejected(snapshot, [entry], Decision("k", Action.SUPERSEDED, some)) is Rejected.OTHER_LINEAGE
    whole = Decision("k", Action.SUPERSEDED, [q, p])
    assert plan(snapshot, [entry], whole).report.superseded == ("k",)
    assert rejected(snapshot, [entry], whole, limits=ConsolidationLimits(loss=0.5)) is Rejected.LOSS
    assert rejected(snapshot, [entry], whole, limits=ConsolidationLimits()) is Rejected.LOSS


def test_what_belongs_to_another_project_is_not_merged() -> None:
    memory = marked("p", "s1", TEA)
    entry = staged("k", "s2", TEA, project_key="github.com/x/y")
    snapshot = world(entry, memory=memory, origins=[owner("p", "s1"), owner("k", "s2")])
    merge = Decision("k", Action.MERGED, [line_of(memory, "p")])
    assert rejected(snapshot, [entry], merge) is Rejected.OTHER_PROJECT
    alone = text_of(apply_writes(snapshot, plan(snapshot, [entry], Decision("k")).effects))
    assert "<!-- project: github.com/x/y -->" in alone


def test_report_B54_B10_what_changed_since_the_model_was_asked_rejects() -> None:
    snapshot, entry, decision = merged_world()
    edited = evolve(snapshot, files=(MemoryFile("MEMORY.md", text_of(snapshot).replace("oolong", "green")),))
    assert rejected(edited, [entry], decision) is Rejected.NO_ENTRY
    unstaged = plan(snapshot, [], decision, asked=["candidate"])
    assert unstaged.report.rejected is not None
    assert unstaged.report.rejected.reason is Rejected.CHANGED
    assert unstaged.effects == ()


def test_report_B55_I6_what_is_forgotten_is_no_source_of_a_merge() -> None:
    snapshot, entry, decision = merged_world()
    gone = plan(evolve(snapshot, tombstones=frozenset(["s2"])), [entry], decision)
    assert gone.effects == ()
    assert dict(gone.report.refused) == {"candidate": Gate.FORGOTTEN}
    assert rejected(evolve(snapshot, tombstones=frozenset(["s1"])), [entry], decision) is Rejected.FORGOTTEN
    helper = SiblingEntries("helper", (owner("prior", "h1", "helper"),), forgotten=["h1"])
    assert rejected(snapshot, [entry], decision, siblings=[helper]) is Rejected.FORGOTTEN


def test_case_D11_report_B29_the_gates_of_promotion_hold_here_and_siblings_are_asked() -> None:
    snapshot, entry, decision = merged_world()

    def gate_of(one: StagedEntry, **options: Any) -> Gate:
        made = plan(snapshot, [one], decision, **options)
        assert made.report.rejected is not None
        return dict(made.report.refused)["candidate"]

    guest = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE)
    assert gate_of(evolve(entry, provenance=guest)) is Gate.UNTRUSTED
    assert gate_of(evolve(entry, provenance=Provenance(OriginClass.OWNER, SessionKind.CRON))) is Gate.NOT_INTERACTIVE
    assert gate_of(evolve(entry, promoted_at_ms=1)) is Gate.PROMOTED
    weak = SiblingEntries("helper", (owner("candidate", "h1", "helper", origin_class="system"),))
    assert gate_of(entry, siblings=[weak]) is Gate.UNTRUSTED
    assert plan(snapshot, [entry], decision, siblings=[weak]).effects == ()
    gone = SiblingEntries("helper", (owner("candidate", "h1", "helper"),), forgotten=["h1"])
    assert gate_of(entry, siblings=[gone]) is Gate.FORGOTTEN


def test_the_request_shows_the_strongest_candidates_and_names_the_others() -> None:
    entries = [staged(f"k{n}", "s1", f"sentence number {n}", total_score=n / 10) for n in range(4)]
    snapshot = world(*entries, memory=marked("p", "s1", TEA), origins=[owner(e.key, "s1") for e in entries])
    request, refused = plan_request(
        snapshot, entries, now_ms=NOW, thresholds=ANY, limits=ConsolidationLimits(entries=2)
    )
    assert [candidate.key for candidate in request.candidates] == ["k3", "k2"]
    assert request.candidates[0].text == said("s1", "sentence number 3")
    assert dict(refused) == {"k0": Gate.NO_ROOM, "k1": Gate.NO_ROOM}
    assert [entry.keys for entry in request.entries] == [("p",)]
    assert request.entries[0].replaceable
    assert request.memory == text_of(snapshot)
    assert entries_of_interest(snapshot, entries) == ("k0", "k1", "k2", "k3", "p")


def test_decisions_are_read_from_the_json_that_models_answer_with() -> None:
    document = '{"operations": [{"candidateKey": "k", "action": "merged", "priorEntries": ["- x"]}]}'
    assert read_decisions(document) == (Decision("k", Action.MERGED, ["- x"]),)
    nonsense = ["", "[]", "{}", '{"operations": 1}', '{"operations": [{"action": "added"}]}',
                '{"operations": [{"candidateKey": 1, "action": "added"}]}',
                '{"operations": [{"candidateKey": "k", "action": "delete"}]}',
                '{"operations": [{"candidateKey": "k", "action": "merged", "priorEntries": "- x"}]}']  # fmt: skip
    for answer in nonsense:
        with pytest.raises(InputError, match="holds no decisions"):
            read_decisions(answer)


def test_a_claim_is_the_same_whoever_cited_it_and_however_it_is_annotated() -> None:
    promoted = (
        f"- {said('s1', TEA)} [score=0.477 signals=1 recalls=0 avg=0.580 source={CORPUS}:1-1] <!-- importance: 5 -->"
    )
    consolidated = f"- {said('s3', TEA, 7)} Source: {CORPUS}#L3-L3 <!-- trigger: prefer, oolong, tea -->"
    assert claim_of(promoted) == claim_of(consolidated) == f"user: {TEA.lower()}"
    assert claim_of("- Assistant: " + TEA) != claim_of("- User: " + TEA)
    assert claim_of("-  User:  CAFE\u0301 au lait ") == claim_of("- user: café au lait")


# --- outcomes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", list(PublicationOutcome))
def test_case_F6_report_B09_reserved_origins_are_given_back_only_when_the_file_certainly_stayed(
    outcome: PublicationOutcome,
) -> None:
    snapshot, entry, decision = merged_world()
    made = plan(snapshot, [entry], decision)
    reserved = apply_writes(snapshot, made.before)
    assert origins_of(reserved, "candidate") == {"s1", "s2"}
    after = apply_writes(reserved, made.rollback(outcome))
    certain = outcome in (PublicationOutcome.NOT_ATTEMPTED, PublicationOutcome.REFUSED)
    assert origins_of(after, "candidate") == ({"s2"} if certain else {"s1", "s2"})
    assert bool(after.transfers) is not certain
    kinds = [type(effect) for effect in made.rollback(outcome)]
    assert kinds == ([ReleaseOrigins, ReleaseTransfers] if certain else [])


# --- pruning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("none", {}),
        ("preimage", {"preimages": (Preimage("p", promotion_marker("old") + "\n- x\n"),)}),
        ("diary", {"files": (MemoryFile("DREAMS.md", promotion_marker("old") + "\n- x\n"),)}),
        ("old diary", {"files": (MemoryFile("dreams.md", f"```\n{promotion_marker('old')}\n```\n"),)}),
        ("report", {"files": (MemoryFile("memory/dreaming/light/2026-11-29.md", f"x {promotion_marker('old')}\n"),)}),
        ("note", {"files": (MemoryFile("memory/2026-11-29.md", f"x {promotion_marker('old')}\n"),)}),
        ("index", {"chunks": ChunkTable.from_rows([Chunk("c", "MEMORY.md", text=f"{promotion_marker('old')}\n- x")])}),
    ],
)
def test_case_F7_D13_I9_a_replaced_key_is_pruned_when_no_place_shows_it(place: str, fields: dict[str, Any]) -> None:
    snapshot = world(origins=[owner("old", "s1"), owner("unasked", "s1")], **fields)
    assert plan_prune(snapshot, ["old"]) == ((PruneOrigins("main", ["old"]),) if place == "none" else ())


def test_case_F7_a_recall_row_keeps_a_key_and_each_index_speaks_for_its_own_agent() -> None:
    entry = staged("old", "s1", TEA)
    snapshot = world(entry, origins=[owner("old", "s1")])
    assert plan_prune(evolve(snapshot, recall=()), ["old"]) == (PruneOrigins("main", ["old"]),)
    assert plan_prune(evolve(snapshot, recall=(RecallEntry("old", CORPUS, "x"),)), ["old"]) == ()
    helper = SiblingEntries("helper", (owner("old", "h1", "helper"),), indexed=["old"])
    assert plan_prune(snapshot, ["old"], siblings=[helper]) == (PruneOrigins("main", ["old"]),)
    assert plan_prune(snapshot, ["old"], siblings=[evolve(helper, indexed=())]) == (
        PruneOrigins("main", ["old"]),
        PruneOrigins("helper", ["old"]),
    )


def test_pruning_is_bounded_and_what_is_left_is_found_again() -> None:
    edges = tuple(TransferEdge("heir", f"old{n}", "t") for n in range(5))
    snapshot = world(origins=[owner("heir", "s1"), *(owner(f"old{n}", "s1") for n in range(5))], transfers=edges)
    rounds = 0
    while effects := plan_prune(snapshot, prune_candidates(snapshot) - {"heir"}, limit=2):
        snapshot, rounds = apply_writes(snapshot, effects), rounds + 1
    assert rounds == 3
    assert snapshot.origins.keys == {"heir"}
    assert snapshot.transfers == edges


# --- edges ------------------------------------------------------------------------------------------------------------


def test_edges_lead_back_over_transfers_of_transfers_and_around_cycles() -> None:
    edges = (
        TransferEdge("c", "b", "2"),
        TransferEdge("b", "a", "1"),
        TransferEdge("a", "c", "3"),
        TransferEdge("x", "y", "4"),
    )
    assert [(e.survivor, e.parent) for e in edges_to(edges, "c")] == [("c", "b"), ("b", "a"), ("a", "c")]
    assert edges_to(edges, "y") == ()


def test_an_edge_lives_as_long_as_what_it_leads_to() -> None:
    edges = (TransferEdge("b", "a", "1"), TransferEdge("c", "b", "2"), TransferEdge("x", "y", "3"))
    assert edges_after_drop(edges, {"c"}) == edges[:2]
    assert edges_after_drop(edges, {"a", "b"}) == edges[:1]
    assert edges_after_drop(edges, {"a", "b", "c", "x"}, named={"b"}) == edges[2:]


# --- what a purge finds -----------------------------------------------------------------------------------------------

NAMES = "abcdef"


@st.composite
def merges(draw: st.DrawFn) -> list[tuple[int, str, bool]]:
    """Rounds of consolidation: which sentence, which session says it, and whether it is merged or added."""
    return draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["s1", "s2", "s3"]), st.booleans()), max_size=7))


def after_rounds(rounds: list[tuple[int, str, bool]]) -> MemorySnapshot:
    snapshot = world(memory="# Mine\n\n- by hand, and nobody's\n", origins=[])
    sentences = (TEA, KILN, BIKE)
    for number, (which, session, merge) in enumerate(rounds):
        entry = staged(f"k{number}", session, f"{sentences[which]}")
        snapshot = evolve(
            snapshot,
            corpus=(MemoryFile(CORPUS, text_of_corpus(snapshot) + entry.snippet + "\n"),),
            origins=OriginTable.from_rows([*snapshot.origins.rows(), owner(entry.key, session)]),
        )
        entries = prior_entries(Document(text_of(snapshot)))
        claim = claim_of(f"- {entry.snippet}")
        same = [e.line for e in entries if e.replaceable and e.claim == claim] if merge else []
        decision = Decision(entry.key, Action.MERGED if same else Action.ADDED, same)
        before = {(r.entry_key, r.session_id): r.origin_class for r in snapshot.origins.rows()}
        made = plan_consolidation(
            snapshot,
            [entry],
            [decision],
            asked=[entry.key],
            now_ms=NOW + number,
            today=TODAY,
            thresholds=ANY,
            limits=LOOSE,
        )
        assert made.report.rejected is None
        snapshot = apply_writes(snapshot, made.effects)
        # I7: no merge takes an origin of a visible entry away, or raises trust
        now = {(r.entry_key, r.session_id): r.origin_class for r in snapshot.origins.rows()}
        shown = set(named_keys(text_of(snapshot)))
        for row, origin_class in before.items():
            if row in now:
                assert TRUST_ORDER.index(now[row]) >= TRUST_ORDER.index(origin_class)
            else:
                assert row[0] not in shown
        # I9: what any text names has its origins
        everywhere = [file.text for file in snapshot.files] + [p.content for p in snapshot.preimages]
        assert snapshot.origins.keys >= {key for text in everywhere for key in named_keys(text)}
        # I8: again is the same
        assert apply_writes(snapshot, made.before) == snapshot
    return snapshot


def text_of_corpus(snapshot: MemorySnapshot) -> str:
    return "".join(file.text for file in snapshot.corpus)


@given(merges(), st.sampled_from(["s1", "s2", "s3"]))
def test_I7_I8_I9_whatever_was_merged_a_purge_finds_the_survivor_whole_and_leaves_the_rest(
    rounds: list[tuple[int, str, bool]], gone: str
) -> None:
    snapshot = after_rounds(rounds)
    purge = plan_purge(snapshot, select_sessions((), Selectors(sessions=[gone])))
    after = apply_to_snapshot(snapshot, purge)
    assert not any(row.session_id == gone for row in after.origins.rows())
    for file in after.files:
        assert f"/{gone}#" not in file.text
    assert "- by hand, and nobody's\n" in text_of(after)
    selected = {row.entry_key for row in snapshot.origins.rows() if row.session_id == gone}
    for text in [file.text for file in after.files] + [p.content for p in after.preimages]:
        assert selected.isdisjoint(named_keys(text))
    # no edge names what was forgotten, or leads nowhere
    assert not any({edge.survivor, edge.parent} & selected for edge in after.transfers)
    assert edges_after_drop(after.transfers, after.origins.keys) == after.transfers
    assert plan_purge(after, select_sessions((), Selectors(sessions=[gone]))).removes_nothing
    # an entry of nobody's but others' stays
    quoted = {TEA, KILN, BIKE} & {s for s in (TEA, KILN, BIKE) if said(gone, s) in text_of_corpus(snapshot)}
    for entry in prior_entries(Document(text_of(snapshot))):
        mine = selected.intersection(entry.keys) or any(sentence in entry.line for sentence in quoted)
        assert (entry.line in text_of(after)) is not bool(mine)


@given(HOSTILE, HOSTILE)
def test_case_J11_what_is_composed_is_read_back_as_exactly_these_entries(words: str, more: str) -> None:
    one, two = (
        staged("memory:claim:one", "s1", f"twelve units one {words}"),
        staged("memory:claim:two", "s2", f"{more} twelve units two"),
    )
    one, two = (
        evolve(e, snippet=e.snippet.replace("\n", " ").replace("\u2028", " ").replace("\r", " ")) for e in (one, two)
    )
    memory = f"# Before\n\n{marked('prior', 's3', TEA)}{more}\n- the next line"
    snapshot = world(
        one, two, memory=memory, origins=[owner(k, "s1") for k in ("memory:claim:one", "memory:claim:two", "prior")]
    )
    made = plan(snapshot, [one, two], Decision(one.key), Decision(two.key))
    clean = evolve(snapshot, files=(MemoryFile("MEMORY.md", marked("prior", "s3", TEA)),))
    assert plan(clean, [one, two], Decision(one.key), Decision(two.key)).report.rejected is None
    if made.publication is None:  # what stands in the file would take the new entries in
        assert made.report.rejected == Rejection(Rejected.UNREADABLE)
        return
    after = apply_writes(snapshot, made.effects)
    wanted = [e.keys for e in Document(memory).entries] + [(s,) for s in made.report.added]
    assert sorted(e.keys for e in Document(text_of(after)).entries) == sorted(wanted)
    assert text_of(after).startswith(memory)
    diary = Document(text_of(after, "DREAMS.md"))
    assert [e.keys for e in diary.entries] == [(key,) for key in made.report.added]
    assert [line.text for line in diary.lines if line.level] == [
        "## Memory Consolidation History",
        "### " + diary.lines[2].text[4:],
    ]


def test_a_real_consolidation_composes_the_lines_that_openclaw_wrote() -> None:
    """The third one of a store of OpenClaw 2026.9.6: a bicycle superseded, a sentence that is known added."""
    head = "# Long-Term Memory\n\n## Consolidated Memory (2026-11-29)\n\n"
    corpus = "memory/.dreams/session-corpus/2026-11-{}.txt"
    tea = "User: I prefer oolong tea over coffee in the morning."
    prior = (
        f"<!-- openclaw-memory-promotion:memory:{corpus.format(25)}:3:3:e29c9bf8c23a -->\n"
        f"- [main/sessions/main/k1#L2] {tea} Source: {corpus.format(25)}#L3-L3 "
        "<!-- trigger: prefer, oolong, tea --> <!-- importance: 5 -->\n"
    )
    stale = (
        "<!-- openclaw-memory-lineage:bike-model -->\n"
        f"<!-- openclaw-memory-promotion:memory:{corpus.format(26)}:3:3:43dc2a243cfb -->\n"
        f"- [main/sessions/main/k2#L2] User: {BIKE} Source: {corpus.format(26)}#L3-L3 <!-- importance: 5 -->\n"
    )
    path, now = corpus.format(28), "User: My bicycle is now a red Kestrelwing racing model."
    lines = [f"[main/sessions/main/k4#L2] {now}", f"[main/sessions/main/k4#L3] {tea}"]
    keys = [f"memory:{path}:1:1:abc62af7a26e", f"memory:{path}:2:2:e29c9bf8c23a"]
    tags = [("bicycle", "now", "red"), ("prefer", "oolong", "tea")]
    entries = [
        evolve(
            staged(key, "k4", "", lineage),
            path=path, start_line=n, end_line=n, snippet=line, concept_tags=tag, recall_days=("2026-11-28",),
        )
        for n, (key, line, tag, lineage) in enumerate(zip(keys, lines, tags, ("bike-model", None), strict=True), 1)
    ]  # fmt: skip
    snapshot = evolve(
        world(memory=head + prior + stale, origins=[owner(key, "k4") for key in keys]),
        corpus=(MemoryFile(path, "".join(f"{line}\n" for line in lines)),),
    )
    old = stale.splitlines()[-1]
    made = plan(snapshot, entries, Decision(keys[0], Action.SUPERSEDED, [old]), Decision(keys[1]))
    assert text_of(apply_writes(snapshot, made.effects)) == (
        f"{head}{prior}\n## Consolidated Memory (2026-11-29)\n\n"
        "<!-- openclaw-memory-lineage:bike-model -->\n"
        f"<!-- openclaw-memory-promotion:{keys[0]} -->\n"
        f"- {lines[0]} Source: {path}#L1-L1 <!-- trigger: bicycle, now, red --> <!-- importance: 5 -->\n"
        f"<!-- openclaw-memory-promotion:{keys[1]} -->\n"
        f"- {lines[1]} Source: {path}#L2-L2 <!-- trigger: prefer, oolong, tea --> <!-- importance: 5 -->\n"
    )


# --- the history ------------------------------------------------------------------------------------------------------


def test_the_history_is_what_openclaw_writes_and_each_excerpt_can_be_forgotten() -> None:
    # as in a real store (consol, 2026-11-29T21:07:26.509Z), the annotations left out
    new, old = f"- {said('s4', RED)} Source: {CORPUS}#L1-L1", f"- {said('s2', BIKE)} `x` Source: {CORPUS}#L3-L3"
    counts = (("Added", 0), ("Merged", 0), ("Superseded", 1))
    text = add_history(
        "# Dream Diary\n", "2026-11-29T21:07:26.509Z", counts, [Highlight("k", new, True), Highlight("k", old, False)]
    )
    assert text == (
        "# Dream Diary\n\n## Memory Consolidation History\n\n### 2026-11-29T21:07:26.509Z\n\n"
        "- Added: 0\n- Merged: 0\n- Superseded: 1\n"
        f"{promotion_marker('k')}\n- `+ {new}`\n{promotion_marker('k')}\n- `- {old.replace('`', chr(39))}`\n"
    )
    again = add_history(text, "2026-11-30T00:00:00.000Z", counts, [Highlight("other", new, True)])
    assert again.startswith(text + "\n### 2026-11-30T00:00:00.000Z\n\n")
    many = add_history(None, "x", (), [Highlight(f"k{n}", "y" * 500, True) for n in range(20)])
    assert len(promotion_keys(many)) == MAX_HIGHLIGHTS
    assert max(map(len, many.splitlines())) == 180 + len("- `+ `")


def test_the_history_ends_where_the_next_section_begins() -> None:
    text = "## Memory Consolidation History\r\n\r\n### old\r\n\r\n- Added: 1\r\n\r\n## Mine\r\n\r\nx\r\n"
    after = add_history(text, "new", (("Added", 1),), ())
    assert after == text.replace("## Mine", "### new\r\n\r\n- Added: 1\r\n\r\n## Mine")
