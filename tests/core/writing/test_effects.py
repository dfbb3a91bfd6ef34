"""The effects of the write path, each on its own and as a model of the whole (I15)."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import MemoryFile, MemorySnapshot, Origin, OriginClass, OriginTable, Preimage, RecallEntry, StoreIdentity
from memprov.core.purge import DropOrigins, DropRecall, DropSignals, rewind_key
from memprov.core.records import CuratedWrite, RewindBatch
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.state import after_all as apply_writes
from memprov.core.text import digest
from memprov.core.writing import (
    AddSeenHashes,
    AppendCorpus,
    DropSeenHashes,
    MarkPromoted,
    RecordArtifact,
    RecordOrigins,
    RecordRewind,
    ReleaseArtifact,
    ReleaseOrigins,
    ReplaceText,
    RequireAdmitted,
    SetCheckpoints,
    StageEntries,
    StorePreimage,
    TakeRewinds,
    WriteEffect,
    append_lines,
    replaced_text,
)
from memprov.errors import ConflictError, StaleStateError
from tests.core.ledger_model import Ledger
from tests.core.write_world import host
from tests.core.writing.test_ingest import conversations

EMPTY = MemorySnapshot(StoreIdentity("native", "main", "/state", "/ws"))
BATCH = RewindBatch(rewind_key(["1"]), ("1",))


def origin(key: str, session: str, agent: str = "main", origin_class: str = "owner") -> Origin:
    return Origin(key, agent, session, None, OriginClass(origin_class), 5)


ROWS = (origin("k1", "s1"), origin("k1", "s2"), origin("k2", "s1"))


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (None, None, "a\nb\n"),
        ("", digest(""), "a\nb\n"),
        ("x\n", digest("x\n"), "x\na\nb\n"),
        ("x", digest("x"), "x\na\nb\n"),
        ("a\nb\n", digest("a\nb\n"), "a\nb\na\nb\n"),
        ("x\na\nb\n", digest("x\n"), "x\na\nb\n"),
        ("a\nb\n", None, "a\nb\n"),
    ],
)
def test_lines_are_appended_once_whatever_the_end_of_the_file(text: str | None, before: str | None, after: str) -> None:
    effect = AppendCorpus("p", before, ("a", "b"))
    assert append_lines(text, effect) == after
    if before != digest(after):
        assert append_lines(after, effect) == after


@pytest.mark.parametrize(
    ("text", "before"), [("x\n", None), (None, digest("x")), ("x\na\n", digest("x\n")), ("xa\nb\n", digest("x"))]
)
def test_a_corpus_file_that_changed_is_left_alone(text: str | None, before: str | None) -> None:
    with pytest.raises(ConflictError, match="p changed"):
        append_lines(text, AppendCorpus("p", before, ("a", "b")))


def test_report_B21_a_file_that_another_writer_changed_is_left_as_it_is() -> None:
    effect = ReplaceText("MEMORY.md", digest("one"), "two")
    assert replaced_text("one", effect) == replaced_text("two", effect) == "two"
    assert replaced_text(None, ReplaceText("x", None, "new")) == "new"
    for now in ("three", None, ""):
        with pytest.raises(ConflictError, match=r"MEMORY\.md changed"):
            replaced_text(now, effect)


def test_the_fence_asks_for_this_agent_s_sessions_only() -> None:
    snapshot = evolve(EMPTY, tombstones=frozenset({"s1"}))
    assert RequireAdmitted("main", ["s2"]).applied_to(snapshot) is snapshot
    assert RequireAdmitted("helper", ["s1"]).applied_to(snapshot) is snapshot
    with pytest.raises(StaleStateError, match="s1"):
        RequireAdmitted("main", ["s1", "s2"]).applied_to(snapshot)


def test_origins_join_and_are_released_row_by_row() -> None:
    snapshot = RecordOrigins("main", ROWS).applied_to(EMPTY)
    weaker = RecordOrigins("main", (origin("k1", "s1", origin_class="untrusted"),)).applied_to(snapshot)
    assert [str(row.origin_class) for row in weaker.origins.rows()] == ["untrusted", "owner", "owner"]
    released = ReleaseOrigins("main", (("k1", "s1"), ("k9", "s9"))).applied_to(weaker)
    assert [(row.entry_key, row.session_id) for row in released.origins.rows()] == [("k1", "s2"), ("k2", "s1")]
    pruned = DropOrigins("main", ("k1",)).applied_to(released)
    assert [row.entry_key for row in pruned.origins.rows()] == ["k2"]


def test_of_another_agent_s_origins_the_keys_are_known() -> None:
    snapshot = RecordOrigins("helper", (origin("k1", "h1", "helper"),)).applied_to(EMPTY)
    assert snapshot.sibling_keys == {"k1"}
    assert len(snapshot.origins) == 0
    assert ReleaseOrigins("helper", (("k1", "h1"),)).applied_to(snapshot).sibling_keys == {"k1"}
    assert DropOrigins("helper", ("k1",)).applied_to(snapshot).sibling_keys == frozenset()


def test_entries_are_written_whole_and_evicted_ones_go() -> None:
    snapshot = evolve(EMPTY, recall=(RecallEntry("a", "p", "old"), RecallEntry("b", "p", "b")), signals=("a", "b"))
    new = tuple(StagedEntry(key, "q", 2, 3, "new") for key in ("a", "c"))
    staged = StageEntries(new, ("b",)).applied_to(snapshot)
    assert staged.recall == (RecallEntry("a", "q", "new", 2, 3), RecallEntry("c", "q", "new", 2, 3))
    assert StageEntries(new, ("b", "c")).applied_to(staged).recall == staged.recall[:1]
    assert MarkPromoted(["a"]).applied_to(staged) is staged
    assert apply_writes(staged, (DropSignals(("a",)), DropRecall(("a",)))).signals == ("b",)


def test_progress_is_names_in_order() -> None:
    snapshot = apply_writes(
        EMPTY,
        (SetCheckpoints((Checkpoint("b"), Checkpoint("a"))), AddSeenHashes("s", ["1"]), AddSeenHashes("r", ["1"])),
    )
    assert (snapshot.checkpoints, snapshot.seen_scopes) == (("a", "b"), ("r", "s"))
    assert DropSeenHashes("s", ["1"]).applied_to(snapshot).seen_scopes == ("r", "s")
    assert DropSeenHashes("s", ["1"], emptied=True).applied_to(snapshot).seen_scopes == ("r",)


def test_rewind_rows_are_filed_under_their_content() -> None:
    snapshot = apply_writes(EMPTY, (RecordRewind(BATCH), RecordRewind(BATCH)))
    assert snapshot.rewinds == (BATCH,)
    assert TakeRewinds([BATCH.key, "x"]).applied_to(snapshot).rewinds == ()


def test_the_newest_preimages_are_kept_and_an_equal_one_is_not_stored_again() -> None:
    old = tuple(Preimage(f"2026-11-2{n}T00:00:00.000Z:{n}", f"text {n}") for n in range(8))
    snapshot = StorePreimage("new").applied_to(evolve(EMPTY, preimages=old))
    assert [preimage.content for preimage in snapshot.preimages] == [f"text {n}" for n in range(1, 8)] + ["new"]
    assert StorePreimage("new").applied_to(snapshot) == snapshot
    assert [p.content for p in StorePreimage("x", keep=2).applied_to(snapshot).preimages] == ["new", "x"]
    assert [p.content for p in StorePreimage("x").applied_to(EMPTY).preimages] == ["x"]


def test_a_file_has_one_record_and_a_failed_write_none() -> None:
    record = RecordArtifact("USER.md", OriginClass.AGENT, "h1", "s1")
    snapshot = apply_writes(EMPTY, (record, evolve(record, path="MEMORY.md"), evolve(record, session_id="s2")))
    assert snapshot.ledger_writes == (CuratedWrite("MEMORY.md", 0, "s1"), CuratedWrite("USER.md", 0, "s2"))
    assert ReleaseArtifact("USER.md", "h1").applied_to(snapshot).ledger_writes == snapshot.ledger_writes[:1]


# --- the model and a store agree (I15) --------------------------------------------------------------------------------


def as_snapshot(ledger: Ledger) -> MemorySnapshot:
    """What a store with this content would read."""
    return evolve(
        EMPTY,
        files=tuple(MemoryFile(path, ledger.files[path]) for path in sorted(ledger.files)),
        corpus=tuple(MemoryFile(path, ledger.corpus[path]) for path in sorted(ledger.corpus)),
        origins=OriginTable.from_rows(ledger.origins.values()),
        recall=tuple(
            RecallEntry(e.key, e.path, e.snippet, e.start_line, e.end_line) for _, e in sorted(ledger.entries.items())
        ),
        signals=tuple(sorted(ledger.signals)),
        checkpoints=tuple(sorted(ledger.checkpoints)),
        seen_scopes=tuple(sorted(ledger.seen)),
        rewinds=tuple(ledger.rewinds[key] for key in sorted(ledger.rewinds)),
        tombstones=frozenset(ledger.tombstones),
    )


@given(conversations, st.sampled_from(["sweep", "apply", "diary", "rollback"]))
def test_I15_the_model_and_the_ledger_agree_effect_by_effect(sessions: dict[str, list[object]], what: str) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    if what == "rollback":
        made.backfill()
    before = made.ledger.copy()
    if what == "sweep":
        effects: tuple[WriteEffect, ...] = made.sweep().effects
    elif what == "rollback":
        effects = made.rollback().effects
    else:
        effects = made.backfill(what).effects
    snapshot = as_snapshot(before)
    for effect in effects:
        snapshot = effect.applied_to(snapshot)
        before.apply([effect])
        assert snapshot == as_snapshot(before)
        assert effect.applied_to(snapshot) == snapshot
    assert before.content() == made.ledger.content()
