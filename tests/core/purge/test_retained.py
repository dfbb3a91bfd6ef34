"""What a session said is known from its transcript where its corpus lines are gone (D23); what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from memprov import (
    Chunk,
    ChunkTable,
    MemoryFile,
    MemorySnapshot,
    PurgePlan,
    RecallEntry,
    RetainedText,
    ScrubRules,
    Snippet,
    StoreIdentity,
    Suspect,
    apply_to_snapshot,
    plan_purge,
    scrub_text,
)
from memprov.core.purge import CutFile, RemoveFile
from memprov.core.text import promotion_marker
from tests.core.worlds import CORPUS, corpus_line, selection

SAID = "I prefer oolong tea in the morning."
LINE = f"- {SAID}\n"
DIARY = "<!-- openclaw:dreaming:diary:{} -->\n"
LIGHT = "memory/dreaming/light/2026-11-25.md"
RETAINED = (RetainedText("s1", (Snippet(f"User: {SAID}"),)),)


def world(*files: MemoryFile, **fields: Any) -> MemorySnapshot:
    """A store whose corpus is gone, and whose transcript of s1 is there."""
    snapshot = MemorySnapshot(StoreIdentity("model", "main", "/state", "/workspace"), files=files, retained=RETAINED)
    return evolve(snapshot, **fields)


def forgotten(snapshot: MemorySnapshot) -> tuple[PurgePlan, dict[str, str]]:
    """The plan that forgets s1, and the files after it; what it leaves it leaves for good (I1)."""
    plan = plan_purge(snapshot, selection("s1"))
    after = apply_to_snapshot(snapshot, plan)
    again = plan_purge(after, selection("s1"))
    assert again.removes_nothing
    assert len(again.report.suspects) == len(plan.report.suspects)
    return plan, {file.path: file.text for file in after.files}


def test_D23_a_phase_report_loses_the_candidate_with_its_nested_rows() -> None:
    report = f"# Light Sleep\n\n- Candidate: {SAID}\n  - confidence: 0.58\n- Candidate: something else said\n"
    plan, files = forgotten(world(MemoryFile(LIGHT, report)))
    assert files[LIGHT] == "# Light Sleep\n\n- Candidate: something else said\n"
    assert plan.report.suspects == ()
    assert plan.report.artifacts.memory_lines == 1


@pytest.mark.parametrize("fence", [DIARY, DIARY.replace("diary", "deep"), DIARY.upper()])
def test_D23_the_managed_diary_loses_it_and_what_people_wrote_around_it_is_listed(fence: str) -> None:
    text = f"{LINE}{fence.format('start')}{LINE}- other\n{fence.format('end')}{LINE}"
    plan, files = forgotten(world(MemoryFile("DREAMS.md", text)))
    assert files["DREAMS.md"] == f"{LINE}{fence.format('start')}- other\n{fence.format('end')}{LINE}"
    assert [(s.path, s.line) for s in plan.report.suspects] == [("DREAMS.md", 1), ("DREAMS.md", 6)]


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"we noted: {SAID} and more\n",
        f"{DIARY.format('start')}{LINE}",
        f"{LINE}{DIARY.format('end')}",
        f"{DIARY.format('start')}{DIARY.replace('diary', 'deep').format('end')}{LINE}",
        f"```\n{DIARY.format('start')}{LINE}{DIARY.format('end')}```\n",
        f"{promotion_marker('other')}\n{LINE}",
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_D23_a_line_that_people_may_have_written_is_listed_and_stays(text: str, mark: str) -> None:
    plan, files = forgotten(world(MemoryFile("memory/notes.md", mark + text)))
    assert files == {"memory/notes.md": mark + text}
    (suspect,) = plan.report.suspects
    assert suspect.path == "memory/notes.md"
    assert SAID in text.split("\n")[suspect.line - 1]
    assert SAID not in plan.to_json()
    assert {"path", "line", "reason"} == set(plan.report.to_dict()["suspects"][0])  # type: ignore[index]


def test_D23_a_corpus_line_that_is_left_decides_everywhere_and_nothing_is_suspect() -> None:
    snapshot = world(MemoryFile("memory/n.md", LINE), corpus=(MemoryFile(CORPUS, corpus_line("s1", SAID)),))
    plan = plan_purge(snapshot, selection("s1"))
    assert plan.report.suspects == ()
    assert apply_to_snapshot(snapshot, plan).files[0].text == ""


def test_D23_each_line_counts_for_itself_where_part_of_the_corpus_is_gone() -> None:
    corpus = (MemoryFile(CORPUS, corpus_line("s1", "The kiln runs at nine hundred degrees.")),)
    report = MemoryFile(LIGHT, LINE + "- The kiln runs at nine hundred degrees.\n")
    _, files = forgotten(world(report, corpus=corpus))
    assert files[LIGHT] == ""


def test_D23_what_an_unselected_session_said_is_not_looked_for() -> None:
    plan = plan_purge(world(MemoryFile(LIGHT, LINE)), selection("s2"))
    assert plan.removes_nothing
    assert plan.report.suspects == ()


def test_D23_indexed_text_of_machine_written_places_goes_with_them() -> None:
    notes, diary = MemoryFile("memory/n.md", LINE), MemoryFile("DREAMS.md", LINE)
    chunks = (
        Chunk("report", LIGHT, text=LINE),
        Chunk("note", "memory/n.md", text=LINE),
        Chunk("diary by hand", "DREAMS.md", text=f"{LINE}\n"),
        Chunk("old diary", "dreams.md", text=LINE),
    )
    snapshot = world(notes, diary, chunks=ChunkTable.from_rows(chunks))
    plan, _ = forgotten(snapshot)
    left = apply_to_snapshot(snapshot, plan).chunks
    assert left.ids == ("note", "diary by hand")


def test_D23_recall_rows_of_machine_written_places_go_too() -> None:
    rows = tuple(RecallEntry(f"k{path}", path, SAID) for path in (LIGHT, "DREAMS.md", CORPUS, "memory/2026-11-25.md"))
    snapshot = world(recall=rows)
    plan, _ = forgotten(snapshot)
    assert [row.path for row in apply_to_snapshot(snapshot, plan).recall] == ["memory/2026-11-25.md"]


def test_D23_many_snippets_are_narrowed_without_losing_one() -> None:
    many = tuple(Snippet(f"User: sentence number {n} that no file holds") for n in range(400))
    retained = (RetainedText("s1", (*many, Snippet(SAID), *many)),)
    plan, files = forgotten(world(MemoryFile(LIGHT, LINE), MemoryFile("n.md", LINE), retained=retained))
    assert files == {LIGHT: "", "n.md": LINE}
    assert [s.path for s in plan.report.suspects] == ["n.md"]


def test_D23_scrub_rules_take_retained_snippets() -> None:
    rules = ScrubRules("main", retained=[SAID])
    assert scrub_text(LINE, rules).text == LINE
    assert scrub_text(LINE, rules, phase_report=True).text == ""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Zoë likes oat milk", "Zoë likes o\u200bat milk"),
        ("Zoë likes oat milk", "Zoë likes oat mi\u00adlk"),
        ("Zoë likes oat milk", "Ｚｏë likes oat milk"),
        ("Zoë likes oat milk", "Z\u2060o\u0308e\u0308"[:2] + "oë likes oat\ufe0f milk"),
        ("Zoë likes o\u200bat milk", "Zoë likes oat milk"),
        ("the ﬁle is in the attic", "the file is in the attic"),
        ("备用钥匙在蓝色花盆下面。那里，是的", "备用钥匙在蓝色花盆下面。那里,是的"),
        ("plain ascii sentence here", "plain ascii sen\u200dtence here"),
    ],
)
@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("path", ["memory/n.md", LIGHT])
def test_F09_what_only_looks_like_it_is_listed_and_stays(said: str, line: str, *, retained: bool, path: str) -> None:
    text = f"one\n{line}\n"
    corpus = () if retained else (MemoryFile(CORPUS, corpus_line("s1", said)),)
    known = (RetainedText("s1", (Snippet(f"User: {said}"),)),) if retained else ()
    plan = plan_purge(world(MemoryFile(path, text), retained=known, corpus=corpus), selection("s1"))
    assert [(s.path, s.line) for s in plan.report.suspects] == [(path, 2)]
    assert path not in {effect.path for effect in plan.effects if isinstance(effect, CutFile | RemoveFile)}


def test_F09_lookalikes_are_not_lost_among_many_snippets() -> None:
    many = tuple(Snippet(f"User: sentence number {n} that no file holds, ﬁne") for n in range(400))
    retained = (RetainedText("s1", (*many, Snippet("Zoë likes oat milk"))),)
    plan = plan_purge(world(MemoryFile("n.md", "Zoë likes o\u200bat milk"), retained=retained), selection("s1"))
    assert plan.report.suspects == (Suspect("n.md", 1, plan.report.suspects[0].reason),)
