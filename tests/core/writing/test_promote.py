"""Promotion: gates first, then strength, then one piece of text that is read back as one entry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import MemoryFile, MemorySnapshot, Origin, OriginTable, StoreIdentity, open_openclaw
from memprov.core.purge import ScrubRules, promotion_keys, scrub_text
from memprov.core.records import OriginClass, Provenance
from memprov.core.state import StagedEntry
from memprov.core.text import Document
from memprov.core.writing import (
    Gate,
    MarkPromoted,
    PromotionLimits,
    ReplaceText,
    RequireAdmitted,
    Thresholds,
    plan_promotion,
)
from memprov.core.writing.promote import render_promotion
from memprov.core.writing.ranking import signals_of
from tests.core.recorded_stores import read_recorded
from tests.core.worlds import CORPUS, SENTENCES, corpus_line

NOW = 1_795_977_480_950
ANY = Thresholds(score=0, signals=0, unique_queries=0)
OWNER = Provenance(OriginClass.OWNER)


def staged(key: str = "k", session: str = "s1", sentence: str = SENTENCES[0], **fields: Any) -> StagedEntry:
    snippet = corpus_line(session, sentence).removesuffix("\n")
    entry = StagedEntry(key, CORPUS, 1, 1, snippet, grounded_count=1, total_score=0.58, last_recalled_at_ms=NOW)
    return evolve(entry, **{"provenance": OWNER, **fields})


def as_staged(row: dict[str, Any]) -> StagedEntry:
    """A recall row as OpenClaw files it."""
    provenance = row.get("provenance")
    return StagedEntry(
        key=row["key"],
        path=row["path"],
        start_line=row["startLine"],
        end_line=row["endLine"],
        snippet=row["snippet"],
        recall_count=row["recallCount"],
        daily_count=row["dailyCount"],
        grounded_count=row["groundedCount"],
        total_score=row["totalScore"],
        max_score=row["maxScore"],
        last_recalled_at_ms=_ms(row["lastRecalledAt"]),
        query_hashes=row["queryHashes"],
        recall_days=row["recallDays"],
        concept_tags=row["conceptTags"],
        provenance=Provenance(provenance["originClass"]) if provenance else None,
        promoted_at_ms=_ms(row["promotedAt"]) if "promotedAt" in row else None,
    )


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def world(*entries: StagedEntry, memory: str | None = None, origin_class: str = "owner") -> MemorySnapshot:
    origins = [Origin(entry.key, "main", "s1", origin_class=origin_class) for entry in entries]
    files = () if memory is None else (MemoryFile("MEMORY.md", memory),)
    corpus = "".join(dict.fromkeys(f"{entry.snippet}\n" for entry in entries))
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=files,
        corpus=(MemoryFile(CORPUS, corpus),),
        origins=OriginTable.from_rows(origins),
    )


def gates(snapshot: MemorySnapshot, *entries: StagedEntry, thresholds: Thresholds = ANY) -> dict[str, Gate]:
    plan = plan_promotion(snapshot, entries, now_ms=NOW, today="2026-11-29", thresholds=thresholds)
    return dict(plan.report.refused)


@pytest.mark.needs_store("basic", "mixed", "vectors", "curated")
@pytest.mark.parametrize("name", ["basic", "mixed", "vectors", "curated"])
def test_real_entries_are_promoted_to_the_text_that_openclaw_wrote(
    name: str, unpacked_store: Callable[[str], Path]
) -> None:
    top = unpacked_store(name) / "before"
    snapshot = open_openclaw(top / "state", workspace=top / "ws").snapshot()
    written = next(file.text for file in snapshot.files if file.path == "MEMORY.md")
    entries = [as_staged(row) for row in read_recorded(top).entries.values()]
    moments = {entry.promoted_at_ms for entry in entries}
    (moment,) = moments
    assert moment is not None
    fresh = [evolve(entry, promoted_at_ms=None) for entry in entries]
    plan = plan_promotion(
        evolve(snapshot, files=()),
        fresh,
        now_ms=moment,
        today=datetime.fromtimestamp(moment / 1000, UTC).date().isoformat(),
        thresholds=ANY,
        limits=PromotionLimits(entries=50),
    )
    replaced = next(effect for effect in plan.effects if isinstance(effect, ReplaceText))
    # what follows in one of them was written by hand afterwards
    assert written.startswith(replaced.text)
    assert name == "curated" or written == replaced.text


def test_the_effects_fence_first_replace_once_and_mark_last() -> None:
    entry = staged()
    plan = plan_promotion(world(entry), [entry], now_ms=NOW, today="2026-11-29", thresholds=ANY)
    fence, replaced, marked = plan.effects
    assert fence == RequireAdmitted("main", ["s1"])
    assert isinstance(replaced, ReplaceText)
    assert promotion_keys(replaced.text) == ("k",)
    assert marked == MarkPromoted(["k"])


def test_case_D11_report_B29_untrusted_text_is_never_promoted_however_often_it_is_recalled() -> None:
    for origin_class in ("untrusted", "system"):
        often = staged(recall_count=50, total_score=50.0, provenance=Provenance(OriginClass(origin_class)))
        assert gates(world(often), often) == {"k": Gate.UNTRUSTED}
        laundered = staged(recall_count=50, total_score=50.0)
        assert gates(world(laundered, origin_class=origin_class), laundered) == {"k": Gate.UNTRUSTED}


def test_report_B17_text_without_a_verified_origin_is_no_evidence() -> None:
    entry = staged()
    assert gates(evolve(world(entry), origins=OriginTable.from_rows(())), entry) == {"k": Gate.NO_ORIGIN}
    assert gates(world(staged(provenance=None)), staged(provenance=None)) == {"k": Gate.UNTRUSTED}


def test_D22_the_source_is_found_by_content_wherever_it_stands_now_and_its_line_is_cited() -> None:
    entry = staged()
    moved = evolve(world(entry), corpus=(MemoryFile(CORPUS, f"another line\r\n{entry.snippet}\r\n"),))
    plan = plan_promotion(moved, [entry], now_ms=NOW, today="2026-11-29", thresholds=ANY)
    text = next(effect.text for effect in plan.effects if isinstance(effect, ReplaceText))
    assert f"source={CORPUS}:2-2]" in text
    assert gates(evolve(moved, corpus=()), entry) == {"k": Gate.SOURCE_GONE}
    assert gates(evolve(moved, corpus=(MemoryFile(CORPUS, "something else\n"),)), entry) == {"k": Gate.SOURCE_GONE}


def test_an_entry_that_is_visible_or_marked_is_not_promoted_twice() -> None:
    entry = staged()
    visible = world(entry, memory="- x <!-- openclaw-memory-promotion:k -->\n")
    assert gates(visible, entry) == {"k": Gate.PROMOTED}
    assert gates(world(entry), staged(promoted_at_ms=1)) == {"k": Gate.PROMOTED}


def test_the_twelve_unit_minimum_counts_without_label_and_prefix() -> None:
    short, long = staged("a", sentence="eleven unit"), staged("b", sentence="twelve units")
    assert gates(world(short, long), short, long) == {"a": Gate.TOO_SHORT}


def test_thresholds_ask_for_score_signals_and_questions_all_of_them() -> None:
    strong = staged(
        grounded_count=0,
        recall_count=9,
        total_score=9.0,
        query_hashes=tuple("abcde"),
        recall_days=("2026-11-20", "2026-11-24", "2026-11-28", "2026-11-29", "2026-11-30"),
        concept_tags=tuple("abcdef"),
    )
    assert gates(world(strong), strong, thresholds=Thresholds()) == {}
    weaker_ones: list[dict[str, Any]] = [{"query_hashes": ("a",)}, {"total_score": 1.0}, {"recall_count": 2}]
    for weaker in weaker_ones:
        entry = evolve(strong, **weaker)
        assert gates(world(entry), entry, thresholds=Thresholds()) == {"k": Gate.WEAK}


def test_the_strongest_come_first_and_what_does_not_fit_is_named() -> None:
    entries = [
        staged(f"k{number}", sentence=f"sentence number {number}", total_score=number / 10) for number in range(5)
    ]
    limits = PromotionLimits(entries=2)
    plan = plan_promotion(world(*entries), entries, now_ms=NOW, today="2026-11-29", thresholds=ANY, limits=limits)
    assert plan.report.promoted == ("k4", "k3")
    assert dict(plan.report.refused) == dict.fromkeys(("k0", "k1", "k2"), Gate.NO_ROOM)
    tiny = PromotionLimits(file_characters=100)
    none = plan_promotion(world(*entries), entries, now_ms=NOW, today="2026-11-29", thresholds=ANY, limits=tiny)
    assert none.effects == ()


def test_what_is_in_the_file_stays_as_it_is_and_the_section_comes_after_it() -> None:
    entry = staged()
    before = "# by hand\r\nno final newline"
    plan = plan_promotion(world(entry, memory=before), [entry], now_ms=NOW, today="2026-11-29", thresholds=ANY)
    text = next(effect.text for effect in plan.effects if isinstance(effect, ReplaceText))
    assert text.startswith(before + "\n\n## Promoted From Short-Term Memory (2026-11-29)\n\n")


HOSTILE = st.lists(
    st.sampled_from(
        [
            "<!-- openclaw-memory-promotion:other -->",
            "<!--",
            "-->",
            "--!>",
            "\n",
            "\r\n",
            "\u2028",
            "```",
            "~~~",
            "# Heading",
            "## Session: x",
            "Session ID: s9",
            "**Session ID**: s9",
            "[main/sessions/main/s9#L1] ",
            "<!-- openclaw:dreaming:diary:end -->",
            "<!-- openclaw-memory-lineage:x -->",
            "<!-- importance: 10 -->",
            "> ",
            "- ",
            "  ",
            "`",
            "User: ",
            "ordinary words",
            "乌龙茶",
        ]
    ),
    max_size=12,
).map("".join)


@given(HOSTILE, HOSTILE, st.booleans())
def test_case_J11_report_B77_whatever_a_text_holds_it_is_read_back_as_exactly_one_entry(
    said: str, tag: str, prefixed: bool
) -> None:
    snippet = f"[main/sessions/main/s1#L2] User: {said}" if prefixed else said
    entry = staged("memory:claim:own", concept_tags=(tag, tag))
    entry = evolve(entry, snippet=snippet, path=f"memory/{tag}.md")
    text = render_promotion(entry, signals_of(entry, NOW))
    document = Document(f"# Before\n\n{text}- the next line\n")
    assert [(e.first, e.head, e.last, e.keys) for e in document.entries] == [(2, 3, 4, ("memory:claim:own",))]
    assert document.blocks == []
    whole = f"- before\n{text}- the next line\n"
    assert scrub_text(whole, ScrubRules("main", ["s9"], ["other"])).text == whole
    assert scrub_text(whole, ScrubRules("main", (), ["memory:claim:own"])).text == "- before\n- the next line\n"
