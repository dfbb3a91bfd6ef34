"""Automatic ingestion: what may be read, what is taken, and in which order it is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, timezone

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import AdmissionPolicy, OriginClass, SessionRecord
from memprov.core.records import Provenance, SessionKind, SessionState
from memprov.core.state import Checkpoint, IngestState, StagedEntry, evicted_entries, evicted_scopes, outdated_hashes
from memprov.core.text import (
    SessionMatcher,
    claim_hash,
    claim_key,
    query_hash,
    ranged_key,
    seen_hash,
    strip_speaker,
    u16_length,
)
from memprov.core.text.concepts import concept_tags
from memprov.core.writing import (
    Message,
    SetCheckpoints,
    Transcript,
    admit_sources,
    plan_ingestion,
    read_admitted,
    session_source,
)
from memprov.core.writing.candidates import per_source_limit, snippet_of, truncated
from memprov.core.writing.recording import Claim, SignalKind, stage_claims
from memprov.errors import InputError, StaleStateError
from tests.core.write_world import DAY_MS, KINDS, START_MS, Host, agent, guest, host, owner

TEA = "I prefer oolong tea over coffee in the morning."
Speaker = Callable[[str], Message]
KILN = "The kiln runs at nine hundred degrees."


# --- keys and hashes --------------------------------------------------------------------------------------------------


def test_case_E1_blanks_do_not_change_a_claim() -> None:
    for text in ("User: Please remember  violet.", "User: Please remember violet."):
        assert claim_key(claim_hash(text)) == "memory:claim:795dc552e612"
    assert ranged_key("./memory\\x.md", 1, 2, "ab") == "memory:memory/x.md:1:2:ab"


def test_case_C14_a_message_is_known_again_by_its_time_and_text() -> None:
    args = ("main:sessions/main/s1", 1_700_000_000_000, 7, "User: Please remember violet.")
    assert seen_hash(*args) == "40d4158d8109396ac55ef9a6953d215d07a400eb"
    assert seen_hash(*args[:2], 8, args[3]) == seen_hash(*args)
    assert seen_hash(args[0], 0, 7, args[3]) != seen_hash(args[0], 0, 8, args[3])


def test_queries_are_hashed_without_regard_to_case() -> None:
    assert query_hash(" __Dreaming_sessions__:2026-11-28") == "9a486633dc8e"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [("User: x", "x"), ("assistant:x", "x"), ("User: User: x", "User: x"), ("Users: x", "Users: x")],
)
def test_one_speaker_label_is_taken_off(text: str, stripped: str) -> None:
    assert strip_speaker(text) == stripped


# --- what may be read (I10) -------------------------------------------------------------------------------------------


def test_case_C1_I10_a_policy_keeps_a_session_out_before_it_is_opened() -> None:
    made = host({"chat": [owner(TEA)]})
    made.say("mail", guest("Invoice from Plumtree Couriers"), hook_source="gmail")
    made.policy = AdmissionPolicy(hook_sources=["gmail"])
    plan = made.sweep()
    assert made.opened == ["chat"]
    assert [(d.session_id, d.reason) for d in plan.report.excluded] == [("mail", "hookExternalContentSource:gmail")]
    source = made.source("mail")
    assert made.ledger.checkpoints[source.state_key] == Checkpoint(
        source.state_key, mtime_ms=source.updated_at_ms, excluded_reason="hookExternalContentSource:gmail"
    )


def test_case_C2_forgotten_comes_before_the_policy() -> None:
    made = host()
    made.say("mail", guest(TEA), hook_source="gmail")
    made.policy = AdmissionPolicy(hook_sources=["gmail"])
    made.ledger.tombstones.add("mail")
    assert [d.reason for d in made.sweep().report.excluded] == ["forgotten"]
    assert made.opened == []


def test_case_C3_channel_comes_before_chat_type() -> None:
    made = host()
    made.say("room", guest(TEA), channel="slack", chat_type="group")
    made.policy = AdmissionPolicy(channels=["slack"], chat_types=["group"])
    assert [d.reason for d in made.sweep().report.excluded] == ["channel:slack"]


@pytest.mark.parametrize("kind", KINDS)
def test_case_C8_other_kinds_are_no_source_and_leave_no_checkpoint(kind: SessionKind) -> None:
    made = host()
    made.say("s1", owner(TEA), kind=kind)
    assert made.sweep().effects == ()
    assert made.opened == []


@pytest.mark.parametrize("state", [SessionState.ARCHIVED, SessionState.RETAINED])
def test_case_C9_archives_and_rotated_sessions_are_skipped(state: SessionState) -> None:
    made = host()
    made.say("s1", owner(TEA), state=state)
    assert made.sweep().effects == ()
    assert made.opened == []


def test_a_session_comes_back_when_its_rule_goes_and_never_when_it_is_forgotten() -> None:
    made = host()
    made.say("mail", owner(TEA), hook_source="gmail")
    made.policy = AdmissionPolicy(hook_sources=["gmail"])
    made.sweep()
    assert made.corpus_lines == []
    made.policy = None
    made.sweep()
    assert len(made.corpus_lines) == 1
    made.ledger.forget("mail")
    made.sweep()
    assert made.corpus_lines == []
    assert made.ledger.checkpoints["main:sessions/main/mail"].excluded_reason == "forgotten"


def test_a_policy_is_not_retroactive_and_what_was_taken_is_known_when_it_goes() -> None:
    made = host()
    made.say("mail", owner(TEA), hook_source="gmail")
    made.sweep()
    before = made.ledger.content()
    made.policy = AdmissionPolicy(hook_sources=["gmail"])
    assert [type(e).__name__ for e in made.sweep().effects] == ["RequireAdmitted", "SetCheckpoints"]
    made.policy = None
    made.sweep()
    assert made.ledger.content() == before


def test_checkpoints_of_sessions_that_are_gone_go_and_those_of_other_agents_stay() -> None:
    made = host({"s1": [owner(TEA)], "s2": [owner(KILN)]})
    made.sweep()
    made.ledger.checkpoints["helper:sessions/helper/x"] = Checkpoint("helper:sessions/helper/x")
    del made.sessions["s2"]
    made.sweep()
    assert sorted(made.ledger.checkpoints) == ["helper:sessions/helper/x", "main:sessions/main/s1"]


def test_one_changed_transcript_is_no_listing() -> None:
    made = host({"s1": [owner(TEA)], "s2": [owner(KILN)]})
    made.sweep()
    made.say("s1", agent("Noted: oolong tea it is."))
    admitted = admit_sources([made.source("s1")], None, made.ledger.state(), complete=False)
    plan = plan_ingestion(made.ledger.state(), admitted, read_admitted(admitted, made.read), today=made.today)
    made.ledger.apply(plan.effects)
    assert len(made.ledger.checkpoints) == 2
    assert len(made.corpus_lines) == 3


def test_an_unchanged_transcript_is_not_opened_again() -> None:
    made = host({"s1": [owner(TEA)]})
    made.sweep()
    made.sweep()
    assert made.opened == ["s1"]
    made.say("s1", agent("Noted: oolong tea it is."))
    made.sweep()
    assert made.opened == ["s1", "s1"]


@pytest.mark.parametrize(("modified_ms", "size"), [(5, 0), (0, 5), (0, 0)])
def test_a_transcript_of_unknown_state_is_read_to_see(modified_ms: int, size: int) -> None:
    source = session_source(SessionRecord("main", "s1"), modified_ms=modified_ms, size=size)
    state = IngestState("main")
    for _ in range(2):
        admitted = admit_sources([source], None, state)
        assert admitted.sources == (source,)
        plan = plan_ingestion(state, admitted, [Transcript(source, (owner(TEA),))], today="2026-11-30")
        checkpoints = [c for effect in plan.effects if isinstance(effect, SetCheckpoints) for c in effect.checkpoints]
        state = evolve(state, checkpoints=tuple(checkpoints))


def test_a_reader_may_find_nothing() -> None:
    made = host({"s1": [owner(TEA)]})
    admitted = made.admit("ingestion")
    assert list(read_admitted(admitted, lambda source: None)) == []


def test_sources_of_another_agent_are_refused_and_repeats_collapse() -> None:
    source = session_source(SessionRecord("helper", "s1"))
    with pytest.raises(InputError, match="agent 'helper'"):
        admit_sources([source], None, IngestState("main"))
    assert len(admit_sources([source, source], None, IngestState("helper")).sources) == 1


@pytest.mark.parametrize("session_id", ["a#L1] b", "a\nb", "s1.jsonl", "x" * 400, "a\u2028b", ""])
def test_a_session_whose_lines_could_not_be_told_apart_is_not_read(session_id: str) -> None:
    made = Host()
    made.say(session_id, owner(TEA))
    plan = made.sweep()
    assert [d.reason for d in plan.report.excluded] == ["unattributable"]
    assert made.opened == []
    assert made.corpus_lines == []


# --- what is taken ----------------------------------------------------------------------------------------------------


def test_case_C11_eleven_units_are_too_short_and_twelve_are_not() -> None:
    made = host({"s1": [owner("short"), owner("thanks"), owner("\U0001f375" * 2 + "ab", START_MS + 1)]})
    made.sweep()
    assert [line.split("] ")[1] for line in made.corpus_lines] == ["User: thanks", "User: \U0001f375\U0001f375ab"]


def test_a_line_says_where_it_comes_from_and_is_cut_at_280_and_344_units() -> None:
    made = host({"s" * 100: [owner("word " * 90)], "s1": [owner("\U0001f375" * 300)]})
    made.sweep()
    tea, long = made.corpus_lines
    assert tea == "[main/sessions/main/s1#L1] User: " + "\U0001f375" * 137
    assert u16_length(long) == 344
    assert u16_length(snippet_of("User: " + "\U0001f375" * 300)) == 280
    assert [truncated("a\U0001f375b", limit) for limit in (1, 2, 3, 4)] == ["a", "a", "a\U0001f375", "a\U0001f375b"]


def test_the_day_is_that_of_the_message_in_the_zone_that_was_given() -> None:
    late = START_MS + 14 * 3_600_000  # 23:00 UTC
    made = host({"s1": [owner(TEA, late), owner(KILN, None)]})
    admitted = made.admit("ingestion")
    state, transcripts = made.ledger.state(), [made.read(source) for source in admitted.sources]
    plan = plan_ingestion(state, admitted, transcripts, today=made.today, zone=timezone(timedelta(hours=2)))
    assert plan.report.lines == (("2026-11-25", 1), ("2026-11-26", 1))  # without a time: the transcript's own
    assert plan_ingestion(state, admitted, transcripts, today=made.today).report.lines == (("2026-11-25", 2),)


def test_days_before_the_look_back_are_passed_over_for_good() -> None:
    made = host({"s1": [owner(TEA), owner(KILN, START_MS + 3 * DAY_MS)]})
    admitted = made.admit("ingestion")
    transcripts = [made.read(source) for source in admitted.sources]
    earliest = "2026-11-27"
    plan = plan_ingestion(made.ledger.state(), admitted, transcripts, today=made.today, earliest_day=earliest)
    made.ledger.apply(plan.effects)
    assert plan.report.lines == (("2026-11-28", 1),)
    assert made.ledger.checkpoints["main:sessions/main/s1"].last_content_line == 2
    assert made.sweep().effects == ()


@pytest.mark.parametrize("day", ["", "2026-13-01", "2026-1-1", "20261101", "yesterday"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    made = host()
    with pytest.raises(InputError, match="no day"):
        plan_ingestion(made.ledger.state(), made.admit("ingestion"), [], today=day)
    with pytest.raises(InputError, match="no day"):
        plan_ingestion(made.ledger.state(), made.admit("ingestion"), [], today=made.today, earliest_day=day)


@pytest.mark.parametrize(("sources", "limit"), [(0, 80), (1, 80), (3, 80), (4, 60), (7, 35), (20, 12), (300, 12)])
def test_each_transcript_has_its_share(sources: int, limit: int) -> None:
    assert per_source_limit(sources) == limit


def test_a_sweep_takes_no_more_than_it_may_and_the_next_one_goes_on() -> None:
    made = host()
    for number in range(30):
        made.say(f"s{number:02}", *(owner(f"{KILN} {number} {n}", START_MS + n) for n in range(14)))
    plan = made.sweep()
    assert plan.report.more
    assert len(made.corpus_lines) == 240
    assert len(made.opened) == 20  # twelve of each, and no transcript is opened for nothing
    while made.sweep().report.more:
        pass
    assert len(set(made.corpus_lines)) == len(made.corpus_lines) == 30 * 14


def test_a_rewritten_transcript_is_read_from_its_start_and_nothing_is_taken_twice() -> None:
    made = host({"s1": [owner(TEA), agent("Noted: oolong tea it is.", START_MS + 1)]})
    made.sweep()
    made.messages["s1"] = [evolve(message, number=message.number + 5) for message in made.messages["s1"]]
    made.say("s1", owner(KILN, START_MS + 2))
    made.sweep()
    assert [line.split("#")[1] for line in made.corpus_lines] == [
        f"L1] User: {TEA}", "L2] Assistant: Noted: oolong tea it is.", f"L3] User: {KILN}",
    ]  # fmt: skip


def test_hashes_under_an_older_name_count() -> None:
    made = host({"s1": [owner(TEA)]})
    made.ledger.seen["main:s1"] = [seen_hash("main:s1", START_MS, 1, f"User: {TEA}")]
    made.sweep()
    assert made.corpus_lines == []


def test_a_transcript_that_turns_out_to_be_internal_is_read_once() -> None:
    made = host({"s1": [owner(TEA), Message("", generated_by="narrative")]})
    plan = made.sweep()
    assert plan.report.internal == (("main:sessions/main/s1", "internal:narrative"),)
    assert made.corpus_lines == []
    assert made.sweep().effects == ()


# --- staging ----------------------------------------------------------------------------------------------------------


def test_case_F9_report_B02_one_claim_of_several_sessions_is_one_entry_counted_once_with_every_origin() -> None:
    made = host({name: [owner("I like tea very much.")] for name in ("chat-1", "chat-10", "Chat-1")})
    made.sweep()
    (key,) = made.ledger.entries
    assert key == claim_key(claim_hash("User: I like tea very much."))
    assert made.ledger.entries[key].daily_count == 1
    assert made.ledger.origins_of(key) == {"chat-1": "owner", "chat-10": "owner", "Chat-1": "owner"}


def test_report_B02_a_shorter_id_is_not_found_in_a_longer_one() -> None:
    made = host({name: [owner(f"{TEA} {name}")] for name in ("chat-1", "chat-10", "Chat-1")})
    made.sweep()
    matcher = SessionMatcher("main", ["chat-1"])
    assert [key for key in sorted(made.ledger.checkpoints) if matcher.owns_state(key)] == ["main:sessions/main/chat-1"]
    assert sum(matcher.refers(line.split(" ")[0]) for line in made.corpus_lines) == 1


def test_report_B46_the_same_text_again_adds_an_origin_and_removes_nothing() -> None:
    made = host({"s1": [owner("I like tea very much.")]})
    made.sweep()
    made.say("s2", owner("I like tea very much.", START_MS + DAY_MS))
    made.sweep()
    ((key, entry),) = made.ledger.entries.items()
    assert made.ledger.origins_of(key).keys() == {"s1", "s2"}
    assert (entry.daily_count, entry.path, entry.start_line) == (2, "memory/.dreams/session-corpus/2026-11-25.txt", 1)


@pytest.mark.parametrize("speakers", [(owner, guest), (guest, owner)])
def test_I7_a_claim_is_as_weak_as_its_weakest_statement(speakers: tuple[Speaker, Speaker]) -> None:
    made = host({"s1": [speakers[0]("I like tea very much.")], "s2": [speakers[1]("I like tea very much.")]})
    made.sweep()
    (entry,) = made.ledger.entries.values()
    assert entry.provenance is not None
    assert entry.provenance.origin_class is OriginClass.UNTRUSTED
    assert sorted(made.ledger.origins_of(entry.key).values()) == ["owner", "untrusted"]


def test_report_B12_a_claim_that_comes_again_starts_fresh() -> None:
    made = host({"s1": [owner("I like tea very much.")]})
    made.sweep()
    (key,) = made.ledger.entries
    made.ledger.forget("s1")
    made.ledger.signals = {key, "memory:claim:other"}  # as a purge that forgot them would have left them
    made.say("s2", owner("I like tea very much."))
    made.sweep()
    assert made.ledger.entries[key].daily_count == 1
    assert made.ledger.signals == {"memory:claim:other"}


def test_a_claim_that_recall_or_backfill_staged_is_confirmed_under_its_own_key() -> None:
    made = host({"s1": [owner(TEA)]})
    hashed = claim_hash(f"User: {TEA}")
    known = StagedEntry("memory:x.md:1:1", "x.md", 1, 1, f"User: {TEA}", grounded_count=1, claim_hash=hashed)
    made.ledger.entries[known.key] = known
    made.sweep()
    (entry,) = made.ledger.entries.values()
    assert (entry.key, entry.daily_count, entry.path) == (known.key, 1, "x.md")


def test_report_B17_our_own_words_are_no_claim() -> None:
    echo = "- tea [score=0.477 signals=1 recalls=0 avg=0.580 source=memory/x.txt:1-1]"
    made = host({"s1": [owner(echo), owner(KILN, START_MS + 1)]})
    made.sweep()
    assert [entry.snippet for entry in made.ledger.entries.values()] == [f"User: {KILN}"]
    assert len(made.corpus_lines) == 2


def test_only_so_many_entries_are_kept_and_the_newest_stay() -> None:
    made = host()
    for number in range(520):
        made.ledger.entries[f"k{number:03}"] = StagedEntry(f"k{number:03}", "p", 1, 1, "x", last_recalled_at_ms=number)
    made.ledger.signals = {"k000", "k500"}
    made.say("s1", owner(TEA), owner(KILN, START_MS + 1))
    made.sweep()
    assert len(made.ledger.entries) == 512
    assert "k009" not in made.ledger.entries
    assert "k010" in made.ledger.entries
    assert made.ledger.signals == {"k500"}


def test_ties_among_entries_are_broken_by_signals_scores_and_key() -> None:
    entries = [
        StagedEntry("b", "p", 1, 1, "x", last_recalled_at_ms=1),
        StagedEntry("a", "p", 1, 1, "x", last_recalled_at_ms=1),
        StagedEntry("c", "p", 1, 1, "x", last_recalled_at_ms=1, daily_count=1),
        StagedEntry("d", "p", 1, 1, "x", last_recalled_at_ms=1, total_score=0.1),
        StagedEntry("e", "p", 1, 1, "x"),
    ]
    assert [evicted_entries(entries, limit) for limit in (5, 4, 3, 2, 1, 0)] == [
        (), ("b",), ("a", "b"), ("a", "b", "d"), ("a", "b", "c", "d"), ("a", "b", "c", "d", "e"),
    ]  # fmt: skip


def test_old_hashes_and_small_scopes_go_first() -> None:
    assert outdated_hashes("abcab", 2) == ("a",)
    assert outdated_hashes("ab", 2) == ()
    assert evicted_scopes(["b", "a", "\U00010000", "\uffff"], 2) == ("a", "b")
    assert evicted_scopes(["a"], 2) == ()


def test_only_so_many_scopes_are_kept() -> None:
    made = host({"s1": [owner(TEA)]})
    made.ledger.seen = {f"main:sessions/main/a{number:04}": ["h"] for number in range(2048)}
    made.sweep()
    assert len(made.ledger.seen) == 2048
    assert "main:sessions/main/a0000" not in made.ledger.seen
    assert "main:sessions/main/s1" in made.ledger.seen


@pytest.mark.parametrize(
    ("said", "kept"), [(["x", None], "x"), ([None, "x"], "x"), (["x", "x"], "x"), (["x", "y"], None)]
)
def test_F26_a_statement_that_is_restated_keeps_what_is_known_of_it(said: list[str | None], kept: str | None) -> None:
    session = SessionRecord("main", "s1")
    claims = [
        Claim(SignalKind.DAILY, "p.txt", 1, TEA, "q", "2026-11-25", Provenance(supersedes_key=key), session)
        for key in said
    ]
    (entry,) = stage_claims(IngestState("main"), claims).entries
    assert entry.provenance is not None
    assert entry.provenance.supersedes_key == kept


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("My bicycle is a green Kestrelwing touring model.", ("bicycle", "green", "kestrelwing", "touring", "model")),
        ("use v2.1-beta of foo/bar on 2026-11-25", ("v2.1-beta", "foo/bar", "use", "beta", "foo", "bar")),
        (
            "one two three four five six seven eight nine",
            ("one", "two", "three", "four", "five", "six", "seven", "eight"),
        ),
        ("<!-- trigger: hidden --> don't snake_case Zo\u00eb", ("snake-case", "don't", "zo\u00eb")),
        (
            "\u6211\u559c\u6b22\u4e4c\u9f99\u8336\u548c\u5496\u5561",
            ("\u6211\u559c\u6b22\u4e4c\u9f99\u8336", "\u5496\u5561"),
        ),
        ("12 345 6-7 a of", ()),
        ("tea tea TEA " + "x" * 33, ("tea",)),
    ],
)
def test_tags_are_the_words_that_say_something(text: str, tags: tuple[str, ...]) -> None:
    assert concept_tags(text) == tags


# --- order and crashes ------------------------------------------------------------------------------------------------


def test_the_order_of_effects() -> None:
    made = host({"s1": [owner(TEA), owner(KILN, START_MS + DAY_MS)]})
    made.ledger.signals = {claim_key(claim_hash(f"User: {TEA}"))}
    made.sweep()
    assert made.ledger.log == [
        "RequireAdmitted", "RecordOrigins", "AppendCorpus", "AppendCorpus", "DropSignals", "StageEntries",
        "AddSeenHashes", "SetCheckpoints",
    ]  # fmt: skip


def test_report_B01_I6_a_plan_made_before_the_purge_is_not_published_after_it() -> None:
    made = host({"s1": [owner(TEA)], "s2": [owner(KILN)]})
    plan = made.plan_sweep()
    made.ledger.forget("s1")
    before = made.ledger.content()
    with pytest.raises(StaleStateError):
        made.ledger.apply(plan.effects)
    assert made.ledger.content() == before


def test_I6_not_even_progress_is_noted_of_a_session_that_was_forgotten_meanwhile() -> None:
    made = host({"s1": [guest(TEA)], "s2": [guest("short")]})
    made.say("s3", owner(TEA), channel="slack")
    made.policy = AdmissionPolicy(channels=["slack"])
    for session in ("s1", "s2", "s3"):
        for effects in (made.plan_sweep().effects, made.plan_backfill().effects):
            late = made.ledger.copy()
            late.forget(session)
            if session == "s3" and effects == made.plan_backfill().effects:
                continue  # a backfill notes nothing of what it may not read
            with pytest.raises(StaleStateError):
                late.apply(effects)
            assert late.checkpoints == {}


texts = st.sampled_from([TEA, KILN, "I like tea very much.", "thanks", "short", "Session ID: s9 <!-- x -->"])
spoken = st.builds(
    lambda make, text, ms: make(text, ms),
    st.sampled_from([owner, guest, agent]),
    texts,
    st.none() | st.integers(0, 3).map(lambda n: START_MS + n * DAY_MS // 2),
)
conversations = st.dictionaries(st.sampled_from(["s1", "s2", "S1", "s1-b"]), st.lists(spoken, max_size=5), max_size=4)


@given(conversations)
def test_feeding_the_same_transcripts_again_changes_nothing(sessions: dict[str, list[Message]]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    made.sweep()
    before = made.ledger.content()
    assert made.sweep().effects == ()
    made.ledger.checkpoints.clear()  # even when all of it is read again
    made.sweep()
    assert made.ledger.content() == before


@given(conversations, st.data())
def test_I5_a_crash_after_any_effect_is_made_up_for_by_the_next_sweep(
    sessions: dict[str, list[Message]], data: st.DataObject
) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    whole = made.plan_sweep()
    crashed = evolve(made, ledger=made.ledger.copy())
    crashed.ledger.apply(whole.effects[: data.draw(st.integers(0, len(whole.effects)))])
    for entry in crashed.ledger.entries.values():  # no text without an origin, at any moment
        assert crashed.ledger.origins_of(entry.key)
    crashed.sweep()
    made.ledger.apply(whole.effects)
    assert crashed.ledger.content() == made.ledger.content()


@given(conversations)
def test_every_effect_may_be_applied_twice(sessions: dict[str, list[Message]]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    twice = evolve(made, ledger=made.ledger.copy())
    plan = made.plan_sweep()
    for effect in plan.effects:
        made.ledger.apply([effect])
        twice.ledger.apply([effect, effect])
    assert twice.ledger.content() == made.ledger.content()


@given(conversations, st.permutations(["s1", "s2", "S1", "s1-b"]))
def test_I14_the_order_of_the_listing_does_not_matter(sessions: dict[str, list[Message]], order: list[str]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    other = host({name: sessions[name] for name in order if name in sessions})
    assert made.plan_sweep() == other.plan_sweep()


@given(conversations)
def test_I10_nothing_is_opened_that_is_not_admitted(sessions: dict[str, list[Message]]) -> None:
    made = host(sessions)  # type: ignore[arg-type]
    made.ledger.tombstones = {"s1"}
    made.policy = AdmissionPolicy(channels=["slack"])
    if "s2" in made.sessions:
        made.sessions["s2"] = evolve(made.sessions["s2"], channel="slack")
    for run in (made.sweep, lambda: made.backfill("preview"), lambda: made.backfill("apply")):
        run()
    assert not {"s1", "s2"} & set(made.opened)
    assert set(made.opened) == made.sessions.keys() - {"s1", "s2"}


def test_an_archive_is_read_by_its_file_name_and_known_by_its_session() -> None:
    session = SessionRecord("main", "s1", state=SessionState.ARCHIVED)
    name = "s1.jsonl.deleted.2026-08-26T10-00-00Z"
    source = session_source(session, file_name=name)
    assert source.state_key == f"main:sessions/main/{name}"
    assert (source.scope, source.legacy_scope) == ("main:s1", None)
    assert admit_sources([source], None, IngestState("main"), "backfill").sources == (source,)
    transcript = Transcript(source, (Message("", generated_by="cron"),), archived=True)
    assert transcript.source is source
