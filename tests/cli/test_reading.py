"""A report in words: what would go, whose it is, what stays, and what to take note of."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from attrs import evolve

from memprov import (
    CuratedWrite,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    PurgePlan,
    Report,
    SiblingIndex,
    StoreIdentity,
    plan_purge,
)
from memprov.cli.reading import describe_report
from memprov.core.text import promotion_marker
from tests.core.worlds import CORPUS, SENTENCES, corpus_line, selection

TEA = SENTENCES[0]


@pytest.fixture
def plan() -> PurgePlan:
    """A purge of s1: an entry that another agent has too, an unselected one, and a file that it empties."""
    memory = (
        f"{promotion_marker('ours')}\n- User: {TEA} [main/sessions/main/s1#L2]\n\n"
        f"{promotion_marker('mine')}\n- User: {TEA}\n\n{promotion_marker('stays')}\n- by hand\n"
    )
    quoting = f"{promotion_marker('lost')}\n- User: {TEA}\n"
    snapshot = MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=(MemoryFile("MEMORY.md", memory), MemoryFile("memory/note.md", quoting)),
        corpus=(MemoryFile(CORPUS, corpus_line("s1", TEA)),),
        origins=OriginTable.from_rows([Origin("ours", "main", "s1"), Origin("mine", "main", "s2")]),
        sibling_keys=frozenset(["ours"]),
        siblings=(SiblingIndex("helper"),),
        ledger_writes=tuple(CuratedWrite(path, 1, "s1") for path in ("memory/note.md", "memory/kept.md")),
    )
    return plan_purge(snapshot, selection("s1"))


def section(lines: Iterable[str], title: str) -> str:
    """The lines from a title to the next blank one."""
    listed = list(lines)
    start = listed.index(title)
    return "\n".join(listed[start : listed.index("", start)])


def test_shared_entries_are_named_with_place_and_owner(plan: PurgePlan) -> None:
    going = section(describe_report(plan.report, plan), "Would go")
    assert "ours at MEMORY.md:1: would go for every agent; also of agent helper" in going
    assert "mine at MEMORY.md:4: would go along, unselected; also of agent main" in going


def test_a_preview_says_would_and_a_report_says_what_was_done(plan: PurgePlan) -> None:
    preview = "\n".join(describe_report(plan.report, plan))
    done = "\n".join(describe_report(evolve(plan.report, dry_run=False), None))
    assert "would go along" in preview
    assert "went along" not in preview
    assert "went along" in done
    assert "would" not in done.lower()
    assert TEA not in preview + done


def test_what_went_is_not_under_what_stays(plan: PurgePlan) -> None:
    report = plan.report
    assert report.emptied_files == ("memory/note.md",)
    assert set(report.gone_markers) == {"mine", "lost"}
    assert "lost" in report.untargetable_entry_keys, "the documents' list is of the markers before the purge"
    stays = section(describe_report(report, plan), "Would stay, and must be reviewed")
    assert "memory/kept.md" in stays
    assert "memory/note.md" not in stays
    assert "stays" in stays.split("\n")[-2:] or "    stays" in stays
    assert "lost" not in stays


def test_warnings_come_before_what_stays_and_none_is_left_out() -> None:
    warnings = tuple(f"warning {number:02}" for number in range(30))
    lines = list(describe_report(Report("main", dry_run=True, warnings=warnings), None))
    noted = section(lines, "Take note")
    assert [f"  {w}" for w in warnings] == noted.split("\n")[1:]
    assert lines.index("Take note") < lines.index("Would stay, and must be reviewed")
