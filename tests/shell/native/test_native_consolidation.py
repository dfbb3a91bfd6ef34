"""Consolidation on the embedded store: a model that may be late or wrong, files that cannot be replaced, crashes."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov import PartialError, Selectors, Thresholds, forget
from memprov.core.consolidation import (
    ConsolidationLimits,
    ConsolidationReport,
    ConsolidationRequest,
    Decision,
    ModelFailure,
    Rejected,
    named_keys,
)
from memprov.core.consolidation.decisions import Action, claim_of
from memprov.core.lineage import PublicationOutcome, TransferEdge
from memprov.core.purge import DropOrigins, promotion_keys
from memprov.core.state import StagedEntry
from memprov.core.text import digest
from memprov.core.writing import (
    AppendCorpus,
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    ReplaceText,
    StageEntries,
    StorePreimage,
)
from memprov.shell.consolidation import consolidate
from memprov.shell.native import NativeStore
from memprov.shell.workspace import CALLS
from memprov.shell.workspace.publish import PublicationError
from tests.core.consolidation.test_planning import BIKE, KILN, RED, TEA, owner, staged
from tests.core.worlds import CORPUS
from tests.shell.native.loading import NOW, fresh_store, rows, scratch, unhurried

ANY = Thresholds(score=0, signals=0, unique_queries=0)
LOOSE = ConsolidationLimits(loss=1.0)
Model = Callable[[ConsolidationRequest], Iterable[Decision]]


def stage(store: NativeStore, *entries: StagedEntry, agent: str = "main") -> None:
    """What a sweep leaves: the line in the corpus, the entry, and its origin before both."""
    with unhurried(store) as writer:
        for entry in entries:
            session = entry.snippet.split("/")[3].split("#")[0]
            corpus = next((f.text for f in writer.snapshot().corpus if f.path == CORPUS), None)
            writer.write(RecordOrigins(agent, (owner(entry.key, session, agent),)))
            writer.write(AppendCorpus(CORPUS, None if corpus is None else digest(corpus), [entry.snippet]))
            number = 1 + (corpus or "").count("\n")
            writer.write(StageEntries((evolve(entry, start_line=number, end_line=number),)))


def merging(request: ConsolidationRequest) -> Iterator[Decision]:
    """A model that merges what says the same, and supersedes what is of its lineage."""
    taken: set[str] = set()
    for candidate in request.candidates:
        open_ = [e for e in request.entries if e.replaceable and e.line not in taken]
        lineage = [e.line for e in open_ if candidate.lineage and candidate.lineage in e.lineages]
        same = [e.line for e in open_ if e.claim == claim_of(f"- {candidate.text}")]
        taken.update(lineage or same)
        action = Action.SUPERSEDED if lineage else Action.MERGED if same else Action.ADDED
        yield Decision(candidate.key, action, lineage or same)


def run(store: NativeStore, model: Model = merging, **options: Any) -> ConsolidationReport:
    return consolidate(store, model, **{"thresholds": ANY, "limits": LOOSE, "now_ms": NOW, **options})


def memory(store: NativeStore) -> str:
    path = Path(store._layout.workspace, "MEMORY.md")
    return path.read_text("utf-8") if path.exists() else ""


def origins(store: NativeStore, key: str) -> set[str]:
    return {row.session_id for row in store.snapshot().origins.touching(entry_keys=[key]).rows()}


@pytest.fixture
def store(tmp_path: Path) -> NativeStore:
    return fresh_store(tmp_path / "store")


@pytest.fixture
def merged(store: NativeStore) -> NativeStore:
    """Prior {s1} consolidated, candidate {s2} staged."""
    stage(store, staged("prior", "s1", TEA), staged("other", "s9", KILN))
    assert set(run(store).added) == {"prior", "other"}
    stage(store, staged("candidate", "s2", TEA))
    return store


# --- end to end -------------------------------------------------------------------------------------------------------


def test_case_F3_a_merge_keeps_both_sessions_and_either_takes_the_survivor_along(merged: NativeStore) -> None:
    report = run(merged)
    assert (report.outcome, report.merged) == (PublicationOutcome.COMMITTED, ("candidate",))
    assert origins(merged, "candidate") == {"s1", "s2"}
    assert promotion_keys(memory(merged)) == ("other", "candidate")
    assert [edge.parent for edge in merged.snapshot().transfers] == ["prior"]
    assert len(merged.snapshot().preimages) == 1
    assert run(merged) == ConsolidationReport(refused=run(merged).refused)
    forget(merged, Selectors(sessions=["s1"]))
    assert TEA not in memory(merged)
    assert promotion_keys(memory(merged)) == ("other",)
    assert rows(merged._layout.ledger, "transfers") == []
    everywhere = "".join(
        path.read_text("utf-8") for path in Path(merged._layout.workspace).rglob("*") if path.is_file()
    )
    assert "/s1#" not in everywhere
    assert {row.entry_key for row in merged.snapshot().origins.rows()} == {"other"}


def test_case_F4_superseded_entries_hand_their_sessions_on(store: NativeStore) -> None:
    stage(store, staged("old", "s1", BIKE, "bike-model"), staged("other", "s9", KILN))
    run(store)
    stage(store, staged("new", "s2", RED, "bike-model"))
    assert run(store).superseded == ("new",)
    assert origins(store, "new") == {"s1", "s2"}
    assert origins(store, "other") == {"s9"}
    forget(store, Selectors(sessions=["s1"]))
    assert RED not in memory(store)
    assert KILN in memory(store)


def test_a_transfer_of_transfers_is_flat_to_query_and_its_edges_tell_the_way(store: NativeStore) -> None:
    for number, session in enumerate(["s1", "s2", "s3", "s4"]):
        stage(store, staged(f"k{number}", session, TEA))
        run(store, now_ms=NOW + number)
    assert origins(store, "k3") == {"s1", "s2", "s3", "s4"}
    assert [(e.survivor, e.parent) for e in store.snapshot().transfers] == [("k1", "k0"), ("k2", "k1"), ("k3", "k2")]
    assert all(edge.at_ms > 0 for edge in store.snapshot().transfers)


def test_siblings_hand_their_origins_on_in_their_own_ledger(tmp_path: Path) -> None:
    main, helper = fresh_store(tmp_path / "store"), fresh_store(tmp_path / "store", "helper")
    stage(main, staged("prior", "s1", TEA))
    run(main)
    with unhurried(helper) as writer:
        writer.write(RecordOrigins("helper", (owner("prior", "h1", "helper"),)))
    stage(main, staged("candidate", "s2", TEA))
    run(main)
    assert origins(main, "candidate") == {"s1", "s2"}
    assert origins(helper, "candidate") == {"h1"}
    assert [e.parent for e in helper.snapshot().transfers] == ["prior"]
    forget(helper, Selectors(sessions=["h1"]))
    assert TEA not in memory(main)
    assert helper.snapshot().transfers == ()
    assert origins(main, "candidate") == {"s1", "s2"}  # I11


def test_case_F7_replaced_keys_are_pruned_when_their_last_preimage_goes(store: NativeStore) -> None:
    stage(store, staged("k0", "s0", TEA))
    run(store)
    for number in range(1, 12):
        stage(store, staged(f"k{number}", f"s{number}", TEA))
        with unhurried(store) as writer:  # as when newer entries have driven it out
            writer.write(StageEntries((), [f"k{number - 1}"]))
        run(store, now_ms=NOW + number)
    kept = {row.entry_key for row in store.snapshot().origins.rows()}
    preimages = {key for p in store.snapshot().preimages for key in named_keys(p.content)}
    diary = {key for f in store.snapshot().files for key in named_keys(f.text)}
    assert kept == preimages | diary
    assert len(store.snapshot().preimages) == 8
    assert origins(store, "k11") == {f"s{number}" for number in range(12)}


# --- the model --------------------------------------------------------------------------------------------------------


def raising(_: ConsolidationRequest) -> Iterable[Decision]:
    raise SystemExit


def raising_late(request: ConsolidationRequest) -> Iterator[Decision]:
    yield Decision(request.candidates[0].key)
    raise ValueError


@pytest.mark.parametrize(
    ("model", "failure"),
    [
        (raising, ModelFailure.RAISED),
        (raising_late, ModelFailure.RAISED),
        (lambda _: None, ModelFailure.NONSENSE),
        (lambda _: "merge them all", ModelFailure.NONSENSE),
        (lambda _: [{"candidateKey": "candidate"}], ModelFailure.NONSENSE),
        (lambda _: [Decision("candidate", "delete")], ModelFailure.RAISED),
    ],
)
def test_a_model_that_raises_or_answers_nonsense_changes_nothing(
    merged: NativeStore, model: Model, failure: ModelFailure
) -> None:
    before, text = merged.snapshot(), memory(merged)
    report = run(merged, model)
    assert (report.failure, report.outcome) == (failure, PublicationOutcome.NOT_ATTEMPTED)
    assert (merged.snapshot(), memory(merged)) == (before, text)


def test_a_model_that_hangs_is_not_waited_for_and_its_late_answer_is_nobodys(merged: NativeStore) -> None:
    released, answered = threading.Event(), threading.Event()

    def hanging(request: ConsolidationRequest) -> list[Decision]:
        released.wait(30)
        decisions = list(merging(request))
        answered.set()
        return decisions

    before = merged.snapshot()
    assert run(merged, hanging, deadline=0.05).failure is ModelFailure.TIMED_OUT
    released.set()
    assert answered.wait(30)
    assert merged.snapshot() == before


def test_an_endless_answer_is_cut(merged: NativeStore) -> None:
    def endless(request: ConsolidationRequest) -> Iterator[Decision]:
        while True:
            yield Decision(request.candidates[0].key)

    report = run(merged, endless)
    assert report.rejected is not None
    assert report.rejected.reason is Rejected.UNDECIDED


def test_a_rejected_answer_is_an_append_for_that_run_with_its_reason(merged: NativeStore) -> None:
    before = memory(merged)
    report = run(merged, lambda request: [Decision(request.candidates[0].key, Action.MERGED, ["- made up"])])
    assert report.rejected is not None
    assert (report.rejected.reason, report.rejected.candidate_key) == (Rejected.NO_ENTRY, "candidate")
    assert report.promoted == ("candidate",)
    assert memory(merged).startswith(before)
    assert memory(merged).count(TEA) == 2
    assert merged.snapshot().transfers == ()


def test_without_candidates_no_model_is_asked(store: NativeStore) -> None:
    assert run(store, raising) == ConsolidationReport()


def test_report_B54_B10_a_session_that_is_forgotten_while_the_model_thinks_is_in_nothing_it_decides(
    merged: NativeStore,
) -> None:
    def forgetful(request: ConsolidationRequest) -> list[Decision]:
        decisions = list(merging(request))
        forget(merged, Selectors(sessions=["s1"]))
        return decisions

    report = run(merged, forgetful)
    assert report.rejected is not None
    assert origins(merged, "candidate") <= {"s2"}
    assert "/s1#" not in memory(merged)
    # B55: and the next one does not bring it back
    run(merged)
    assert "/s1#" not in memory(merged)
    assert not any(row.session_id == "s1" for row in merged.snapshot().origins.rows())


def test_report_B21_an_edit_while_the_model_thinks_is_seen_under_the_lock(merged: NativeStore) -> None:
    def edited(request: ConsolidationRequest) -> list[Decision]:
        path = Path(merged._layout.workspace, "MEMORY.md")
        path.write_text(path.read_text("utf-8").replace(TEA, TEA + " (really)") + "\nby hand\n", "utf-8")
        return list(merging(request))

    report = run(merged, edited)
    assert report.rejected is not None
    assert report.rejected.reason is Rejected.NO_ENTRY
    assert "\nby hand\n" in memory(merged)
    assert "(really)" in memory(merged)


class CrashError(Exception):
    pass


class Interfering:
    """A store whose writer does something before its effects."""

    def __init__(self, store: NativeStore) -> None:
        self.store = store
        self.done: bool = False

    def before(self, effect: object) -> None: ...

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    @contextmanager
    def exclusive(self) -> Iterator[object]:
        with unhurried(self.store) as writer:
            outer = self

            class Writer:
                def __getattr__(self, name: str) -> object:
                    return getattr(writer, name)

                def write(self, effect: Any) -> None:
                    outer.before(effect)
                    writer.write(effect)

            yield Writer()


# --- the file ---------------------------------------------------------------------------------------------------------


@define
class Renames:
    """Renames of MEMORY.md that go wrong."""

    how: str
    store: NativeStore
    done: int = 0

    def __call__(self, source: bytes, target: bytes, **held: int) -> None:
        if target == b"MEMORY.md":
            self.done += 1
            if self.how == "committed":
                CALLS.rename(source, target, **held)
            if self.how == "unknown":
                Path(self.store._layout.workspace, "MEMORY.md").write_text("something else", "utf-8")
            raise OSError(errno.EIO, "input/output error")
        CALLS.rename(source, target, **held)


@pytest.mark.parametrize(
    ("how", "outcome", "kept"),
    [
        ("not attempted", PublicationOutcome.NOT_ATTEMPTED, False),
        ("committed", PublicationOutcome.COMMITTED_THEN_FAILED, True),
        ("unknown", PublicationOutcome.UNKNOWN, True),
    ],
)
def test_case_F6_report_B09_B08_what_a_failed_replacement_means_for_the_lineage(
    merged: NativeStore, how: str, outcome: PublicationOutcome, kept: bool
) -> None:
    renames = Renames(how, merged)
    broken = evolve(merged, calls=evolve(merged._calls, rename=renames))
    with pytest.raises(PublicationError) as raised:
        run(broken)
    assert raised.value.outcome is outcome
    assert renames.done == 1  # never again, as an append
    assert origins(merged, "candidate") == ({"s1", "s2"} if kept else {"s2"})
    assert bool(merged.snapshot().transfers) is kept
    assert memory(merged).count(TEA) <= 1
    if how == "committed":
        assert promotion_keys(memory(merged)) == ("other", "candidate")
        run(merged)
        assert memory(merged).count(TEA) == 1
        forget(merged, Selectors(sessions=["s1"]))
        assert TEA not in memory(merged)


def test_case_F6_report_B21_a_file_that_changed_before_the_rename_is_refused_and_appended_to(
    merged: NativeStore,
) -> None:
    path = Path(merged._layout.workspace, "MEMORY.md")

    class Editing(Interfering):
        def before(self, effect: object) -> None:
            if isinstance(effect, ReplaceText) and not self.done:
                self.done = True
                path.write_text(path.read_text("utf-8") + "\nby hand\n", "utf-8")

    report = run(Editing(merged))  # type: ignore[arg-type]  # stands in for it
    assert report.outcome is PublicationOutcome.REFUSED
    assert report.rejected is not None
    assert report.rejected.reason is Rejected.CONFLICT
    assert report.promoted == ("candidate",)
    assert origins(merged, "candidate") == {"s2"}
    assert merged.snapshot().transfers == ()
    assert "\nby hand\n" in memory(merged)
    assert promotion_keys(memory(merged)) == ("other", "prior", "candidate")


def test_a_diary_that_cannot_be_written_is_a_warning(merged: NativeStore) -> None:
    def refuse(source: bytes, target: bytes, **held: int) -> None:
        if target == b"DREAMS.md":
            raise OSError(errno.EIO, "input/output error")
        CALLS.rename(source, target, **held)

    report = run(evolve(merged, calls=evolve(merged._calls, rename=refuse)))
    assert report.merged == ("candidate",)
    assert [warning.split(":")[0] for warning in report.warnings] == ["no excerpt was left in the diary"]
    assert TEA not in "".join(report.warnings)


# --- crashes ----------------------------------------------------------------------------------------------------------


class Dying(Interfering):
    def __init__(self, store: NativeStore, left: int, error: Callable[[], Exception] = CrashError) -> None:
        super().__init__(store)
        self.left, self.error = left, error

    def before(self, effect: object) -> None:
        self.left -= 1
        if self.left == -1 or (self.left < 0 and self.error is CrashError):
            raise self.error()


@pytest.mark.parametrize("left", range(8))
def test_I5_I9_dead_at_any_effect_no_text_is_without_its_origins_and_a_rerun_ends_the_same(
    tmp_path: Path, left: int
) -> None:
    store = fresh_store(tmp_path / "store")
    stage(store, staged("prior", "s1", TEA), staged("other", "s9", KILN))
    run(store)
    stage(store, staged("candidate", "s2", TEA))
    try:
        run(Dying(store, left))  # type: ignore[arg-type]  # stands in for it
    except CrashError:
        assert left < 7
    shown = set(promotion_keys(memory(store)))
    if "candidate" in shown:
        assert origins(store, "candidate") == {"s1", "s2"}
    assert memory(store).count(TEA) == 1
    run(store)
    assert promotion_keys(memory(store)) == ("other", "candidate")
    assert origins(store, "candidate") == {"s1", "s2"}
    forget(store, Selectors(sessions=["s1"]))
    assert TEA not in memory(store)
    assert KILN in memory(store)


@pytest.mark.parametrize("left", range(8))
def test_a_ledger_that_fails_at_any_effect_gives_back_what_was_not_published(tmp_path: Path, left: int) -> None:
    store = fresh_store(tmp_path / "store")
    stage(store, staged("prior", "s1", TEA), staged("other", "s9", KILN))
    run(store)
    stage(store, staged("candidate", "s2", TEA))
    before = memory(store)
    try:
        run(Dying(store, left, lambda: PartialError("the disk is full")))  # type: ignore[arg-type]  # stands in for it
    except PartialError:
        published = memory(store) != before
        if left < 4:
            assert not published
            assert origins(store, "candidate") == {"s2"}
            assert store.snapshot().transfers == ()
        else:
            assert origins(store, "candidate") == {"s1", "s2"}


def test_what_cannot_be_given_back_is_a_note_on_the_first_error(merged: NativeStore) -> None:
    class Failing(Interfering):
        def before(self, effect: object) -> None:
            if isinstance(effect, StorePreimage):
                raise PartialError("the disk is full")
            if isinstance(effect, ReleaseOrigins):
                raise PartialError("and stays full")

    with pytest.raises(PartialError, match="the disk is full") as raised:
        run(Failing(merged))  # type: ignore[arg-type]  # stands in for it
    assert raised.value.__notes__ == ["the origins that were reserved for it could not be taken back: and stays full"]
    assert origins(merged, "candidate") == {"s1", "s2"}


# --- effects on the ledger --------------------------------------------------------------------------------------------


def test_I15_edges_in_the_ledger_are_those_of_the_model(store: NativeStore) -> None:
    edges = (TransferEdge("b", "a", "1"), TransferEdge("c", "b", "2"), TransferEdge("x", "y", "3"))
    effects = (
        RecordOrigins("main", tuple(owner(key, "s1") for key in "abcx")),
        RecordTransfers("main", edges),
        RecordTransfers("main", edges),
        PruneOrigins("main", ["a"]),
        ReleaseTransfers("main", ["3"]),
        PruneOrigins("main", ["b"]),
        DropOrigins("main", ("c",)),
    )
    model = store.snapshot()
    left = []
    for effect in effects:
        with unhurried(store) as writer:
            writer.write(effect)
        model = effect.applied_to(model)
        assert store.snapshot().transfers == model.transfers
        assert store.snapshot().origins == model.origins
        left.append(len(model.transfers))
    assert left == [0, 3, 3, 3, 2, 2, 0]


@settings(max_examples=max(settings().max_examples // 4, 10))
@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.sampled_from("12")), max_size=8),
    st.sets(st.sampled_from("abcde")),
    st.sets(st.sampled_from("abcde"), min_size=1),
    st.booleans(),
)
def test_I15_forgetting_and_pruning_reach_the_same_edges_in_ledger_and_model(
    named: list[tuple[str, str, str]], known: set[str], gone: set[str], forgotten: bool
) -> None:
    with scratch() as directory:
        store = fresh_store(directory / "store")
        dropped = DropOrigins("main", tuple(sorted(gone))) if forgotten else PruneOrigins("main", sorted(gone))
        with unhurried(store) as writer:
            writer.write(RecordOrigins("main", tuple(owner(key, "s1") for key in sorted(known))))
            writer.write(RecordTransfers("main", tuple(TransferEdge(*edge) for edge in named)))
            before = writer.snapshot()
            writer.write(dropped)
            after = writer.snapshot()
        assert after.transfers == dropped.applied_to(before).transfers
        assert after.origins == dropped.applied_to(before).origins
        if forgotten:
            assert not any({edge.survivor, edge.parent} & gone for edge in after.transfers)


def test_a_ledger_of_the_first_schema_gets_the_table(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    first = evolve(store._layout.agent_schema, steps=store._layout.agent_schema.steps[:1])
    path = Path(store._layout.ledger.path)
    path.unlink()
    old = evolve(store._layout, agent_schema=first)

    def remember(connection: Any) -> None:
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("agent", "main"), ("workspace", store._layout.place)]
        )

    old.ledger.create(remember)
    assert store.snapshot().transfers == ()
    stage(store, staged("prior", "s1", TEA))
    assert run(store).added == ("prior",)
