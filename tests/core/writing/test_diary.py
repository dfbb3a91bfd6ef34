"""The managed section of the diary, and the fence before a narrative is published."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import MemoryFile, Origin, OriginClass, ScrubRules, scrub_text
from memprov.core.purge import promotion_keys
from memprov.core.state import StagedEntry
from memprov.core.text import Document, cut, diary_key
from memprov.core.writing import (
    DIARY_PATH,
    Dropped,
    PendingNarrative,
    RecordOrigins,
    ReplaceText,
    narrative_keys,
    plan_narrative,
)
from memprov.core.writing.diary import (
    DiaryBlock,
    DiaryLine,
    add_blocks,
    block_origins,
    day_title,
    diary_context,
    remove_backfill_blocks,
    render_block,
)
from memprov.core.writing.narrative import NarrativePlan
from tests.core.ledger_model import Ledger
from tests.core.text.test_neutralising import hostile

DAY = "2026-11-25"
START, END = "<!-- openclaw:dreaming:diary:start -->", "<!-- openclaw:dreaming:diary:end -->"
WRITTEN_MS = 1_795_640_000_000  # 2026-11-25T20:53:20Z


def origin(session: str, agent: str = "main") -> Origin:
    return Origin("", agent, session, None, OriginClass.OWNER, 5)


def block(*texts: str, day: str = DAY) -> DiaryBlock:
    lines = [DiaryLine(text, (origin("s1"),)) for text in texts]
    return DiaryBlock(day, lines, lead="Found.", source_path=f"memory/.dreams/session-corpus/{day}.txt")


def test_case_E2_the_key_of_a_diary_line() -> None:
    key = "memory:session-backfill:095eba0e15cd89f39edb78f219d825ef2751d5887001877e5b28869b5cd4496e"
    assert diary_key("2026-01-02", "- User: Keep the kiln at 900 C.") == key
    written = DiaryBlock("2026-01-02", [DiaryLine("- User: Keep the kiln at 900 C.", (origin("s1"),))])
    assert promotion_keys(render_block(written)) == (key,)
    assert [row.entry_key for row in block_origins(written)] == [key]


def test_a_new_diary_is_made_in_openclaw_s_form() -> None:
    key = diary_key(DAY, "- a")
    text, added = add_blocks(None, [block("- a"), block("- b", day="2026-12-01")])
    assert added == 2
    head, corpus = "<!-- openclaw:dreaming:backfill-entry", "memory/.dreams/session-corpus"
    assert text == (
        f"# Dream Diary\n\n{START}\n---\n\n*November 25, 2026*\n\n"
        f"{head} day=2026-11-25 source={corpus}/2026-11-25.txt -->\n\n"
        f"Found.\n<!-- openclaw-memory-promotion:{key} -->\n- a\n\n---\n\n*December 1, 2026*\n\n"
        f"{head} day=2026-12-01 source={corpus}/2026-12-01.txt -->\n\n"
        f"Found.\n<!-- openclaw-memory-promotion:{diary_key('2026-12-01', '- b')} -->\n- b\n{END}\n"
    )


def test_every_month_has_its_name() -> None:
    titles = [day_title(f"2026-{month:02}-09") for month in range(1, 13)]
    assert titles[0] == "January 9, 2026"
    assert titles[11] == "December 9, 2026"
    assert len(set(titles)) == 12


def test_an_equal_block_is_not_written_twice() -> None:
    text, _ = add_blocks(None, [block("- a")])
    assert add_blocks(text, [block("- a"), block("- a")]) == (text, 0)
    assert add_blocks(text, [block("- a", day="2026-11-26")])[1] == 1


@pytest.mark.parametrize(
    "existing",
    ["# My own diary\n\nwords by hand\n", f"{START}\nno end\n", f"{END}\n{START}\n", "words without an end of line"],
)
def test_text_without_a_section_stays_below_a_new_one(existing: str) -> None:
    text, added = add_blocks(existing, [block("- a")])
    assert added == 1
    assert text.endswith(f"{END}\n\n{existing}")
    again, _ = add_blocks(text, [block("- b")])
    assert again.endswith(existing)
    assert again.count("# Dream Diary") == 1


def test_a_section_in_a_code_block_is_text() -> None:
    existing = f"```\n{START}\n{END}\n```\n"
    assert add_blocks(existing, [block("- a")])[0].endswith(existing)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_everything_around_the_blocks_keeps_its_bytes(ending: str, mark: str) -> None:
    head = mark + ending.join(["# Dream Diary", "", "by hand  ", START, ""])
    inner = ending.join(["---", "", "*a date*", "", "by hand in it  ", ""])
    tail = ending.join([END, "", "## By hand", "last line without an end"])
    text, added = add_blocks(head + inner + tail, [block("- a")])
    assert added == 1
    assert text.startswith(head + inner)
    assert text.endswith(tail)
    assert text.replace("\r\n", "").count("\n") == (0 if ending == "\r\n" else text.count("\n"))
    back, removed = remove_backfill_blocks(text)
    assert (back, removed) == (head + inner + tail, 1)


def test_only_blocks_of_a_backfill_go_and_kept_keys_keep_theirs() -> None:
    narrative = DiaryBlock(DAY, [DiaryLine("I dreamt of tea.")], title="November 25, 2026 at 9:00 AM UTC")
    text, _ = add_blocks(None, [block("- a"), narrative, block("- b")])
    left, removed = remove_backfill_blocks(text, frozenset({diary_key(DAY, "- b")}))
    assert removed == 1
    assert left == add_blocks(None, [narrative, block("- b")])[0]
    left, removed = remove_backfill_blocks(text)
    assert (left, removed) == (add_blocks(None, [narrative])[0], 2)
    assert remove_backfill_blocks(left) == (left, 0)
    empty, _ = remove_backfill_blocks(add_blocks(None, [block("- a")])[0])
    assert empty == f"# Dream Diary\n\n{START}\n{END}\n"
    assert remove_backfill_blocks("no section\n") == ("no section\n", 0)


def test_a_line_that_says_nothing_and_a_line_of_nobody() -> None:
    odd = DiaryBlock(DAY, [DiaryLine("  ", (origin("s1"),)), DiaryLine("- of nobody")])
    assert render_block(odd) == "*November 25, 2026*\n\n- of nobody"
    assert block_origins(odd) == ()


@given(st.lists(hostile, min_size=1, max_size=3))
def test_case_J11_any_lines_make_one_block_of_one_entry_each(texts: list[str]) -> None:
    written = DiaryBlock(DAY, [DiaryLine(text, (origin(f"s{n}"),)) for n, text in enumerate(texts)], source_path="p")
    text, _ = add_blocks("by hand\n", [written])
    document = Document(text)
    keys = {row.entry_key for row in block_origins(written)}
    assert {key for run in document.runs for key in run.keys} == keys
    assert all(run.head is not None and run.last - run.first == 1 for run in document.runs)
    assert sum(line.managed_fence for line in document.lines) == 2
    assert [line.text for line in document.lines if line.level] == ["# Dream Diary"]
    assert remove_backfill_blocks(text)[1] == 1
    again, added = add_blocks(text, [written])
    assert (again, added) == (text, 0)
    gone = scrub_text(text, ScrubRules("main", entry_keys=keys))
    assert gone.text == cut(text, gone.spans)
    assert not promotion_keys(gone.text)


# --- narratives -------------------------------------------------------------------------------------------------------


def ledger() -> Ledger:
    made = Ledger(entries={key: StagedEntry(key, "p", 1, 1, "x") for key in ("k1", "k2")})
    for key, row in (("k1", origin("s1")), ("k2", origin("s2")), ("k2", origin("h1", "helper"))):
        made.origins[key, row.agent_id, row.session_id] = evolve(row, entry_key=key)
    made.files[DIARY_PATH] = add_blocks(None, [block("- tea"), block("- kiln", day="2026-11-26")])[0]
    return made


def pending(made: Ledger, text: str = "I dreamt of tea.\n\nAnd of kilns.") -> PendingNarrative:
    context = diary_context(made.files[DIARY_PATH])
    return PendingNarrative(text, ("k1", "k2"), (origin("s1"), origin("s2"), origin("h1", "helper")), context)


def planned(made: Ledger, narrative: PendingNarrative) -> NarrativePlan:
    keys = narrative_keys(made.state(), narrative)
    known = [row for row in made.origins.values() if row.entry_key in keys]
    return plan_narrative(made.state(), narrative, known, written_ms=WRITTEN_MS, zone=UTC)


def publish(made: Ledger, narrative: PendingNarrative) -> Dropped | None:
    plan = planned(made, narrative)
    assert (plan.dropped is None) or not plan.effects
    for effect in plan.effects:
        if getattr(effect, "agent_id", "main") == "main":  # the other agent's ledger is not ours to model
            made.apply([effect])
    return plan.dropped


def test_the_context_is_the_newest_blocks_as_bounded_lines() -> None:
    made = ledger()
    assert diary_context(made.files[DIARY_PATH]) == ("Found. - kiln", "Found. - tea")
    assert diary_context(made.files[DIARY_PATH], limit=1) == ("Found. - kiln",)
    assert diary_context(made.files[DIARY_PATH], limit=0) == ()
    assert diary_context(None) == diary_context("by hand\n") == ()
    long = add_blocks(None, [DiaryBlock(DAY, [DiaryLine("word " * 100)])])[0]
    assert [len(entry) for entry in diary_context(long)] == [360]


def test_a_narrative_is_published_line_by_line_with_all_its_origins() -> None:
    made = ledger()
    assert publish(made, pending(made)) is None
    text = made.files[DIARY_PATH]
    assert "*November 25, 2026 at 8:53 PM UTC*" in text
    for line in ("I dreamt of tea.", "And of kilns."):
        assert made.origins_of(diary_key(DAY, line)).keys() == {"s1", "s2"}
    gone = scrub_text(text, ScrubRules("main", entry_keys=[diary_key(DAY, "And of kilns.")])).text
    assert "I dreamt of tea." in gone
    assert "kilns" not in gone
    assert made.log == ["RequireAdmitted", "RecordOrigins", "ReplaceText"]


def test_the_other_agent_of_the_workspace_gets_its_origins_too() -> None:
    made = ledger()
    effects = planned(made, pending(made)).effects
    agents = [getattr(effect, "agent_id", None) for effect in effects]
    assert agents == ["helper", "main", "helper", "main", None]


def test_the_fence_holds_when_a_source_entry_is_gone() -> None:
    made = ledger()
    narrative = pending(made)
    del made.entries["k2"]
    assert publish(made, narrative) is Dropped.ENTRY_GONE
    assert "dreamt" not in made.files[DIARY_PATH]


def test_the_fence_holds_when_the_context_is_gone() -> None:
    made = ledger()
    narrative = pending(made)
    key = diary_key("2026-11-26", "- kiln")
    made.files[DIARY_PATH] = scrub_text(made.files[DIARY_PATH], ScrubRules("main", entry_keys=[key])).text
    assert publish(made, narrative) is Dropped.CONTEXT_GONE
    del made.files[DIARY_PATH]
    assert publish(made, narrative) is Dropped.CONTEXT_GONE


def test_the_fence_holds_when_a_source_session_is_forgotten_though_its_key_came_again() -> None:
    made = ledger()
    narrative = pending(made)
    made.tombstones.add("s2")
    assert publish(made, narrative) is Dropped.FORGOTTEN
    made.tombstones = {"h1"}  # of this agent: it is the other one's session that the narrative tells of
    assert publish(made, narrative) is None


def test_more_context_than_was_shown_is_no_obstacle() -> None:
    made = ledger()
    narrative = pending(made)
    made.files[DIARY_PATH] = add_blocks(made.files[DIARY_PATH], [block("- new", day="2026-11-27")])[0]
    assert publish(made, narrative) is None
    assert publish(made, narrative) is None  # and a second time it is there already
    assert made.files[DIARY_PATH].count("I dreamt of tea.") == 1


def test_F04_what_the_caller_does_not_say_is_looked_up_in_the_ledger() -> None:
    made = ledger()
    assert publish(made, PendingNarrative("I dreamt of tea.", ("k1",))) is None
    assert made.origins_of(diary_key(DAY, "I dreamt of tea.")).keys() == {"s1"}
    assert publish(made, PendingNarrative("Of both.", ("k1", "k2"), (origin("s1"),))) is None
    assert made.origins_of(diary_key(DAY, "Of both.")).keys() == {"s1", "s2"}


@pytest.mark.parametrize("origins", [(), (origin("s9"),)])
@pytest.mark.parametrize("keys", [(), ("k3",)])
def test_F04_a_narrative_that_nothing_is_found_for_is_refused(
    keys: tuple[str, ...], origins: tuple[Origin, ...]
) -> None:
    made = ledger()
    made.entries["k3"] = StagedEntry("k3", "p", 1, 1, "x")
    before = dict(made.files)
    assert publish(made, PendingNarrative("A quiet night.", keys, origins)) is Dropped.NO_ORIGIN
    assert (made.files, made.log) == (before, [])


def test_F15_a_narrative_has_the_origins_of_the_diary_lines_that_it_was_shown() -> None:
    made = ledger()
    made.files[DIARY_PATH] = add_blocks(
        None, [DiaryBlock(DAY, [DiaryLine("- owls", (origin("s5"),)), DiaryLine("- hand")])]
    )[0]
    made.apply([RecordOrigins("main", (evolve(origin("s5"), entry_key=diary_key(DAY, "- owls")),))])
    context = diary_context(made.files[DIARY_PATH])
    assert publish(made, PendingNarrative("As owls do.", ("k1",), (origin("s1"),), context)) is None
    assert made.origins_of(diary_key(DAY, "As owls do.")).keys() == {"s1", "s5"}
    assert publish(made, PendingNarrative("Of owls alone.", context=context)) is None
    assert made.origins_of(diary_key(DAY, "Of owls alone.")).keys() == {"s5"}


def test_a_first_narrative_makes_a_diary() -> None:
    made = ledger()
    del made.files[DIARY_PATH]
    assert publish(made, PendingNarrative("A quiet night.\r\n---\n# and so on", ("k1",))) is None
    assert diary_context(made.files[DIARY_PATH]) == ("A quiet night. \\--- \\# and so on",)
    assert made.log == ["RequireAdmitted", "RecordOrigins", "ReplaceText"]


def test_the_clock_is_that_of_the_zone() -> None:
    state, narrative = ledger().state(), PendingNarrative("x", ("k1",))
    for hours, shown in ((0, "8:53 PM UTC"), (4, "12:53 AM UTC+04:00"), (-8, "12:53 PM UTC-08:00")):
        zone = timezone(timedelta(hours=hours))
        plan = plan_narrative(state, narrative, [origin("s1")], written_ms=WRITTEN_MS, zone=zone)
        written = plan.effects[-1]
        assert isinstance(written, ReplaceText)
        assert f" at {shown}*" in written.text


def test_an_existing_lower_case_diary_is_the_diary() -> None:
    state = ledger().state()
    lower = evolve(state, diary=MemoryFile("dreams.md", "by hand\n"))
    plan = plan_narrative(lower, PendingNarrative("x", ("k1",)), [origin("s1")], written_ms=WRITTEN_MS, zone=UTC)
    assert getattr(plan.effects[-1], "path", None) == "dreams.md"
