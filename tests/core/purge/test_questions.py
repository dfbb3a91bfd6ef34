"""The planner asks (docs: Planning by asking): what it is answered beyond its question changes no plan, and less is
noticed.
"""

from __future__ import annotations

from functools import partial
from typing import get_args

import pytest
from hypothesis import given

from memprov import (
    Chunk,
    ChunkTable,
    CuratedWrite,
    InputError,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    PurgePlan,
    RecallEntry,
    RetainedText,
    Selection,
    Snippet,
    StoreIdentity,
    plan_purge,
)
from memprov.core.purge import Answer, Question, answer_from, answered, plan_by_asking, promotion_keys
from memprov.core.text import Document, promotion_marker
from memprov.testing import synthetic_sessions, synthetic_snapshot
from memprov.testing.strategies import memory_texts
from tests.core.purge.narrow import least_from, nothing_for
from tests.core.worlds import CORPUS, KEYS, SENTENCES, corpus_line, heard_snapshots, selection, selections


def planned(snapshot: MemorySnapshot, chosen: Selection, *starved: type) -> PurgePlan:
    """The plan from the least answers; questions of the starved kinds get none."""

    def answer(question: Question) -> Answer:
        return nothing_for(question) if isinstance(question, starved) else least_from(snapshot, question)

    return answered(plan_by_asking(snapshot.store, chosen), answer)


@given(heard_snapshots(), selections)
def test_I16_the_least_answers_give_the_plan_of_the_whole(snapshot: MemorySnapshot, chosen: Selection) -> None:
    assert planned(snapshot, chosen).to_json() == plan_purge(snapshot, chosen).to_json()


@given(heard_snapshots())
def test_I16_a_selection_of_no_session_too(snapshot: MemorySnapshot) -> None:
    chosen = selection("s1")
    nobody = Selection("main", chosen.selectors)
    assert planned(snapshot, nobody).to_json() == plan_purge(snapshot, nobody).to_json()


@pytest.mark.parametrize("number", range(0, 40, 7))
def test_I16_on_a_synthetic_store(number: int) -> None:
    snapshot = synthetic_snapshot(40, 6)
    chosen = selection(synthetic_sessions(40)[number].session_id)
    assert planned(snapshot, chosen).to_json() == plan_purge(snapshot, chosen).to_json()


# A world in which every question matters. Of the two keys of the quoted entry one is seen in a chunk that stays.
ENTRY = f"{promotion_marker(KEYS[1])}\n{promotion_marker(KEYS[2])}\n- {SENTENCES[0]}\n"
WORLD = MemorySnapshot(
    StoreIdentity("model", "main", "/state", "/workspace"),
    files=(
        MemoryFile("MEMORY.md", f"{promotion_marker(KEYS[0])}\n- words\n\n{ENTRY}"),
        MemoryFile("notes.md", "x\n"),
        MemoryFile("memory/dreaming/light/2026-11-25.md", f"- Candidate: {SENTENCES[2]}\n"),
    ),
    corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0]) + corpus_line("s2", SENTENCES[1])),),
    origins=OriginTable.from_rows(
        Origin(key, "main", session) for key, session in zip(KEYS[:3], ("s1", "s2", "s2"), strict=True)
    ),
    sibling_keys=frozenset({KEYS[1]}),
    recall=(RecallEntry(KEYS[0], CORPUS, f"User: {SENTENCES[0]}", 1, 1),),
    signals=(KEYS[0],),
    chunks=ChunkTable.from_rows(
        [Chunk("m1", "MEMORY.md", text=ENTRY), Chunk("m2", "other.md", text=f"- more {promotion_marker(KEYS[1])}\n")]
    ),
    ledger_writes=(CuratedWrite("USER.md", 5, session_id="s1"),),
    retained=(RetainedText("s1", (Snippet(SENTENCES[2]),)),),
)


@pytest.mark.parametrize("kind", get_args(Question), ids=lambda kind: kind.__name__)
def test_I16_an_answer_that_holds_too_little_is_noticed(kind: type) -> None:
    chosen = selection("s1")
    whole = plan_purge(WORLD, chosen).to_json()
    assert planned(WORLD, chosen).to_json() == whole
    assert planned(WORLD, chosen, kind).to_json() != whole


def test_bad_arguments_are_refused_before_anything_is_asked() -> None:
    for asking in (
        plan_by_asking(WORLD.store, selection("s1"), level="nonsense"),
        plan_by_asking(StoreIdentity("model", "other", "/state", "/workspace"), selection("s1")),
    ):
        with pytest.raises(InputError):
            next(asking)


def test_an_error_of_the_answering_ends_the_dialogue() -> None:
    def failing(question: Question) -> Answer:
        raise OSError("no such disk")

    asking = plan_by_asking(WORLD.store, selection("s1"))
    with pytest.raises(OSError, match="no such disk"):
        answered(asking, failing)
    with pytest.raises(StopIteration):
        next(asking)


def test_the_plan_of_a_snapshot_is_the_dialogue_with_it() -> None:
    chosen = selection("s1")
    assert answered(plan_by_asking(WORLD.store, chosen), partial(answer_from, WORLD)) == plan_purge(WORLD, chosen)


@given(memory_texts())
def test_the_quick_reading_of_keys_is_the_reading_of_the_document(text: str) -> None:
    read = (key for line in Document(text.removeprefix("\ufeff")).lines for key in line.keys)
    assert promotion_keys(text) == tuple(read)
