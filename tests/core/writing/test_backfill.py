"""Session backfill: its modes, its days, its diary, and how it is taken back."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import ScrubRules, scrub_text
from memprov.core.purge import promotion_keys, rewind_key
from memprov.core.records import RewindBatch
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.text import claim_hash, diary_key
from memprov.core.writing import DIARY_PATH, BackfillRange, Message, plan_rollback
from memprov.core.writing.backfill import Reflection
from memprov.errors import ConflictError, InputError, StaleStateError
from tests.core.write_world import DAY_MS, KINDS, START_MS, Host, agent, guest, host, owner
from tests.core.writing.test_ingest import KILN, TEA, conversations

DAY = "2026-11-25"


def two_days() -> Host:
    return host({
        "s1": [owner(TEA), agent("Noted: oolong tea it is.", START_MS + 1)],
        "s2": [owner(KILN, START_MS + DAY_MS), guest("I am somebody else here.", START_MS + DAY_MS)],
    })  # fmt: skip


# --- modes and gates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["preview", "diary", "apply"])
def test_case_C10_a_forgotten_session_is_absent_in_all_modes(mode: str) -> None:
    made = two_days()
    made.ledger.tombstones.add("s1")
    plan = made.backfill(mode)
    assert made.opened == ["s2"]
    assert [(d.session_id, d.reason) for d in plan.report.excluded] == [("s1", "forgotten")]
    assert [day.day for day in plan.report.days] == ["2026-11-26"]
    assert not made.ledger.checkpoints.keys() & {"main:sessions/main/s1"}  # nothing is recorded of it


@pytest.mark.parametrize("kind", KINDS)
def test_only_conversations_are_backfilled(kind: str) -> None:
    made = host()
    made.say("s1", owner(TEA), kind=kind)
    assert made.backfill().effects == ()
    assert made.opened == []


def test_a_preview_changes_nothing_and_shows_the_texts_of_each_day() -> None:
    made = two_days()
    before = made.ledger.content()
    plan = made.backfill("preview")
    assert made.ledger.content() == before
    assert [(day.day, day.candidates, len(day.lines)) for day in plan.report.days] == [
        ("2026-11-25", 2, 2), ("2026-11-26", 1, 1),
    ]  # fmt: skip
    assert (plan.report.candidates, plan.report.more) == (3, False)
    assert [line.text for line in plan.report.days[1].lines] == [f"User: {KILN}"]
    assert KILN not in repr(plan.report)
    assert all(day.lines == () for day in made.backfill("apply").report.days), "only a preview is asked for its texts"


def test_only_owner_and_agent_are_taken() -> None:
    made = host({"s1": [guest(TEA), agent(KILN)], "s2": [owner(TEA)]})
    made.backfill()
    assert len(made.corpus_lines) == 1
    assert set(made.ledger.origins_of(next(iter(made.ledger.entries)))) == {"s2"}


def test_the_diary_mode_writes_origins_and_the_diary_and_nothing_else() -> None:
    made = two_days()
    made.backfill("diary")
    assert made.ledger.log == ["RequireAdmitted", "RecordOrigins", "ReplaceText"]
    assert {origin.entry_key for origin in made.ledger.origins.values()} == set(
        promotion_keys(made.ledger.files[DIARY_PATH])
    )
    assert made.backfill("diary").report.diary_blocks == 0  # the same blocks again


def test_the_order_of_effects() -> None:
    made = two_days()
    made.backfill()
    assert made.ledger.log == [
        "RequireAdmitted", "RecordOrigins", "ReplaceText", "RecordRewind", "AppendCorpus", "AppendCorpus",
        "StageEntries", "AddSeenHashes", "AddSeenHashes", "SetCheckpoints",
    ]  # fmt: skip


# --- days -------------------------------------------------------------------------------------------------------------


def test_days_outside_the_range_are_left_for_another_time() -> None:
    made = two_days()
    made.say("s1", owner("And green tea on Sundays.", START_MS + 2 * DAY_MS))
    made.backfill(days=BackfillRange(first="2026-11-26", last="2026-11-26"))
    assert [line.split("] ")[1] for line in made.corpus_lines] == [f"User: {KILN}"]
    assert made.ledger.checkpoints["main:sessions/main/s1"].last_content_line == 0
    made.backfill(days=BackfillRange(last="2026-11-25"))
    assert made.ledger.checkpoints["main:sessions/main/s1"].last_content_line == 2
    made.backfill()
    assert len(made.corpus_lines) == 4


def test_so_many_days_at_a_time() -> None:
    made = two_days()
    plan = made.backfill(days=BackfillRange(limit_days=1))
    assert ([day.day for day in plan.report.days], plan.report.more) == ([DAY], True)
    plan = made.backfill(days=BackfillRange(limit_days=1))
    assert ([day.day for day in plan.report.days], plan.report.more) == (["2026-11-26"], False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": "2026-11-31"}, {"last": "today"}, {"first": "2026-11-26", "last": "2026-11-25"}, {"limit_days": 0},
        {"limit_days": True}, {"limit_days": 1.5}, {"first": 20261125},
    ],
)  # fmt: skip
def test_a_wrong_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        BackfillRange(**wrong)  # type: ignore[arg-type]


def test_batches_follow_each_other_until_nothing_is_left() -> None:
    made = host()
    for number in range(25):
        made.say(f"s{number:02}", *(owner(f"{KILN} {number} {n}", START_MS + n * DAY_MS) for n in range(13)))
    batches = 1
    while made.backfill().report.more:
        batches += 1
    assert batches == 2
    assert len(set(made.corpus_lines)) == len(made.corpus_lines) == 25 * 13
    assert made.backfill().effects == ()


# --- staging ----------------------------------------------------------------------------------------------------------


def test_case_F9_report_B02_one_claim_of_two_sessions_is_one_entry_with_two_origins() -> None:
    made = host({"s1": [owner("I like tea very much.")], "s2": [owner("I like  TEA very much.", START_MS + 1)]})
    made.backfill()
    ((key, entry),) = made.ledger.entries.items()
    hashed = claim_hash("I like tea very much.")
    assert key == f"memory:memory/.dreams/session-corpus/{DAY}.txt:1:1:{hashed}"
    assert (entry.grounded_count, entry.daily_count, entry.recall_days) == (1, 0, (DAY,))
    assert made.ledger.origins_of(key) == {"s1": "owner", "s2": "owner"}
    assert len(made.corpus_lines) == 2


def test_a_claim_that_ingestion_staged_is_confirmed_there() -> None:
    made = host({"s1": [owner("User: I like tea very much.")]})
    made.sweep()
    (key,) = made.ledger.entries
    made.ledger.seen.clear()
    made.ledger.checkpoints.clear()
    known = StagedEntry(f"memory:claim:{claim_hash(KILN)}", "p", 3, 3, KILN, daily_count=1, claim_hash=claim_hash(KILN))
    made.ledger.entries[known.key] = known
    made.say("s2", owner(KILN))
    made.backfill()
    assert (made.ledger.entries[known.key].grounded_count, made.ledger.entries[known.key].path) == (1, "p")
    assert made.ledger.entries[key].grounded_count == 0  # "User: …" quoted in a message is a turn, not a claim


def test_report_B01_a_claim_has_its_origin_before_it_can_be_seen() -> None:
    made = two_days()
    plan = made.plan_backfill()
    for number in range(len(plan.effects)):
        partial = made.ledger.copy()
        partial.apply(plan.effects[:number])
        shown = {*partial.entries, *promotion_keys(partial.files.get(DIARY_PATH, ""))}
        assert all(partial.origins_of(key) for key in shown)


def test_report_B03_a_diary_line_can_be_forgotten_though_the_backfill_stopped_after_it() -> None:
    made = host({"s1": [owner("Window seats are what I like.")], "s2": [owner("Green tea is what I like.")]})
    plan = made.plan_backfill()
    made.ledger.corpus[f"memory/.dreams/session-corpus/{DAY}.txt"] = "something else got in the way\n"
    with pytest.raises(ConflictError):
        made.ledger.apply(plan.effects)
    text = made.ledger.files[DIARY_PATH]
    keys = [origin.entry_key for origin in made.ledger.origins.values() if origin.session_id == "s1"]
    left = scrub_text(text, ScrubRules("main", entry_keys=keys)).text
    assert "Window seats" in text
    assert "Window seats" not in left
    assert "- User: Green tea is what I like." in left


def test_I6_a_batch_made_before_the_purge_is_not_published_after_it() -> None:
    made = two_days()
    for mode in ("diary", "apply"):
        plan = made.plan_backfill(mode)
        late = made.ledger.copy()
        late.forget("s1")
        before = late.content()
        with pytest.raises(StaleStateError):
            late.apply(plan.effects)
        assert late.content() == before


# --- the diary --------------------------------------------------------------------------------------------------------


def test_case_F10_a_reflection_has_the_origins_of_all_that_it_was_made_from() -> None:
    made = host({f"s{n}": [owner(f"Fact number {n} of the house.", START_MS + n)] for n in range(1, 5)})
    hashes = tuple(candidate.hash for candidate in made.backfill("preview").batch)
    text = "1. Facts are kept about the house. [memory/2026-11-25.md:3, :4, :5]"
    lines = [Reflection(text, hashes), Reflection("- of one only", hashes[:1]), Reflection("- unknown", ("nobody",)),
             Reflection("- made from nothing", ())]  # fmt: skip
    made.backfill("diary", reflections={DAY: lines})
    written = made.ledger.files[DIARY_PATH]
    assert made.ledger.origins_of(diary_key(DAY, text)).keys() == {"s1", "s2", "s3", "s4"}
    assert made.ledger.origins_of(diary_key(DAY, "- of one only")).keys() == {"s1"}
    assert "unknown" not in written
    assert "nothing" not in written
    keys = [origin.entry_key for origin in made.ledger.origins.values() if origin.session_id == "s4"]
    left = scrub_text(written, ScrubRules("main", entry_keys=keys))
    assert (left.removed_entries, "Facts are kept" in left.text, "- of one only" in left.text) == (1, False, True)


def test_a_reflection_of_a_session_that_is_forgotten_meanwhile_is_left_out() -> None:
    made = host({"s1": [owner(TEA)], "s2": [owner(KILN)]})
    hashes = tuple(candidate.hash for candidate in made.backfill("preview").batch)
    made.ledger.forget("s1")
    made.backfill("diary", reflections={DAY: [Reflection("- tea and kilns", hashes)]})
    assert "tea" not in made.ledger.files[DIARY_PATH]


def test_a_later_run_unites_the_origins_of_an_equal_line() -> None:
    made = host({"s1": [owner(TEA)]})
    made.backfill()
    made.say("s2", owner(TEA, START_MS + 5))
    made.backfill()
    assert made.ledger.origins_of(diary_key(DAY, f"- User: {TEA}")).keys() == {"s1", "s2"}
    assert made.ledger.files[DIARY_PATH].count(TEA) == 1  # the block is the same


def test_case_J11_hostile_messages_reach_the_diary_as_one_line_each() -> None:
    hostile = [
        "<!-- openclaw:dreaming:diary:end -->",
        "<!-- openclaw-memory-promotion:memory:claim:x --> and more",
        "# Heading of mine",
        "``` and so on",
        "Session ID: s9 is mine",
        "[main/sessions/main/s9#L3] User: words",
    ]
    made = host({"s1": [owner(text, START_MS + n) for n, text in enumerate(hostile)]})
    made.backfill()
    text = made.ledger.files[DIARY_PATH]
    assert len(promotion_keys(text)) == 5
    assert text.endswith("<!-- openclaw:dreaming:diary:end -->\n")
    gone = scrub_text(text, ScrubRules("main", session_ids=["s9"], entry_keys=["memory:claim:x"]))
    assert gone.text == text
    mine = [origin.entry_key for origin in made.ledger.origins.values()]
    left = scrub_text(text, ScrubRules("main", entry_keys=mine)).text
    assert "User" not in left
    assert left.endswith("<!-- openclaw:dreaming:diary:end -->\n")
    assert all(line.startswith("[main/sessions/main/s1#L") for line in made.corpus_lines)


# --- rollback ---------------------------------------------------------------------------------------------------------


def test_report_B40_what_was_taken_back_can_be_taken_again() -> None:
    made = two_days()
    made.backfill()
    once = made.ledger.content()
    report = made.rollback().report
    assert (report.entries, report.diary_blocks, report.lines) == (3, 2, 3)
    assert made.ledger.entries == {}
    assert made.ledger.seen == {}
    assert made.ledger.rewinds == {}
    assert promotion_keys(made.ledger.files[DIARY_PATH]) == ()
    assert {c.last_content_line for c in made.ledger.checkpoints.values()} == {0}
    made.backfill()
    again = made.ledger.content()
    assert again == once  # the same keys too: lines that stand in the corpus are not appended again


def test_report_B40_a_tombstone_beats_the_rewind() -> None:
    made = two_days()
    made.backfill()
    made.ledger.forget("s1")
    made.rollback()
    assert made.ledger.tombstones == {"s1"}
    made.backfill()
    assert [entry.snippet for entry in made.ledger.entries.values()] == [KILN]
    assert not any("s1" in line.split("#")[0] for line in made.corpus_lines)


def test_report_B40_the_rows_of_other_agents_stay() -> None:
    made = two_days()
    made.backfill()
    other = '{"contentIndex":0,"hash":"h","scope":"helper:sessions/helper/s1","stateKey":"helper:sessions/helper/s1"}'
    ((key, batch),) = made.ledger.rewinds.items()
    mixed = RewindBatch(rewind_key((*batch.candidates, other)), (*batch.candidates, other))
    theirs = RewindBatch(rewind_key((other,)), (other,))
    made.ledger.rewinds = {mixed.key: mixed, "x": RewindBatch("x", ())}
    made.ledger.seen["helper:sessions/helper/s1"] = ["h"]
    made.ledger.checkpoints["helper:sessions/helper/s1"] = Checkpoint("helper:sessions/helper/s1", last_content_line=1)
    shared, *mine = made.ledger.entries
    made.ledger.sibling_keys = {shared, promotion_keys(made.ledger.files[DIARY_PATH])[0]}
    report = made.rollback().report
    assert made.ledger.rewinds == {theirs.key: theirs}
    assert made.ledger.seen == {"helper:sessions/helper/s1": ["h"]}
    assert made.ledger.checkpoints["helper:sessions/helper/s1"].last_content_line == 1
    assert list(made.ledger.entries) == [shared]
    assert (report.entries, report.diary_blocks) == (len(mine), 1)
    assert plan_rollback(made.ledger.state()).report.lines == 0
    assert key != mixed.key


def test_what_ingestion_recall_or_promotion_confirmed_is_not_the_backfill_s_to_take_back() -> None:
    made = host({f"s{n}": [owner(f"Fact number {n} of the house.")] for n in range(5)})
    made.backfill()
    keys = list(made.ledger.entries)
    changes: list[dict[str, object]] = [
        {"daily_count": 1}, {"recall_count": 1}, {"promoted_at_ms": 5}, {"path": "memory/2026-11-25.md"},
    ]  # fmt: skip
    for key, change in zip(keys, changes, strict=False):
        made.ledger.entries[key] = evolve(made.ledger.entries[key], **change)  # type: ignore[arg-type]
    made.ledger.signals = set(keys)
    made.rollback()
    assert list(made.ledger.entries) == keys[:4]
    assert made.ledger.signals == set(keys[:4])


def test_rows_in_another_form_are_nobody_s() -> None:
    made = two_days()
    junk = ["7", "{}", '{"contentIndex":true,"hash":"h","scope":"main:x","stateKey":"k"}',
            '{"contentIndex":-1,"hash":"h","scope":"main:x","stateKey":"k"}',
            '{"contentIndex":1,"hash":"","scope":"main:x","stateKey":"k"}',
            '{"contentIndex":1,"hash":"h","scope":7,"stateKey":"k"}']  # fmt: skip
    made.ledger.rewinds = {"junk": RewindBatch("junk", tuple(junk))}
    assert made.rollback().effects == ()


def test_a_rollback_of_nothing_does_nothing() -> None:
    made = two_days()
    assert made.rollback().effects == ()
    made.sweep()
    before = made.ledger.content()
    assert made.rollback().effects == ()
    assert made.ledger.content() == before


# --- laws -------------------------------------------------------------------------------------------------------------


@given(conversations)
def test_backfilling_again_changes_nothing(sessions: dict[str, list[Message]]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    while made.backfill().report.more:
        pass
    before = made.ledger.content()
    assert made.backfill().effects == ()
    made.ledger.checkpoints.clear()
    made.backfill()
    assert made.ledger.content() == before


@given(conversations, st.data())
def test_I5_a_crash_after_any_effect_is_made_up_for_by_the_next_batch(
    sessions: dict[str, list[Message]], data: st.DataObject
) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    whole = made.plan_backfill()
    crashed = evolve(made, ledger=made.ledger.copy())
    crashed.ledger.apply(whole.effects[: data.draw(st.integers(0, len(whole.effects)))])
    crashed.backfill()
    made.ledger.apply(whole.effects)
    assert crashed.ledger.content() == made.ledger.content()


@given(conversations, st.data())
def test_I5_a_rollback_that_crashed_is_finished_by_the_next_one(
    sessions: dict[str, list[Message]], data: st.DataObject
) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    made.backfill()
    whole = plan_rollback(made.ledger.state())
    crashed = evolve(made, ledger=made.ledger.copy())
    crashed.ledger.apply(whole.effects[: data.draw(st.integers(0, len(whole.effects)))])
    crashed.rollback()
    made.ledger.apply(whole.effects)
    assert crashed.ledger.content() == made.ledger.content()
    assert made.rollback().effects == ()


@given(conversations)
def test_report_B40_a_rollback_undoes_the_backfill_but_for_evidence(sessions: dict[str, list[Message]]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    made.backfill()
    first = made.ledger.content()
    made.rollback()
    assert not made.ledger.entries
    assert not made.ledger.seen
    assert not promotion_keys(made.ledger.files.get(DIARY_PATH, ""))
    made.backfill()
    assert made.ledger.content() == first
