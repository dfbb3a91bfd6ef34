"""I17: for every line that a purge of one session removes, ``trace`` of that line names the session and the rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings

from memprov import (
    LineReason,
    MemoryFile,
    MemorySnapshot,
    OriginTable,
    Place,
    PurgePlan,
    RemovalRule,
    RetainedText,
    Selectors,
    Snippet,
    open_openclaw,
    plan_purge,
    preview,
    select_sessions,
    trace,
)
from memprov.cli.reading import describe_trace
from memprov.core.purge import CutFile
from memprov.core.trace import explain_lines, lines_within, takers
from memprov.shell.port import Store
from memprov.testing import synthetic_sessions, synthetic_snapshot
from tests.core.consolidation.test_planning import owner
from tests.core.worlds import CORPUS, SESSIONS, corpus_line, heard_snapshots, selection
from tests.model_store import ModelStore

QUOTE = "the kiln on the north shore is fired on Tuesdays"
SAID = "the ferry to Hven leaves at a quarter past nine"


def removed_places(snapshot: MemorySnapshot, plan: PurgePlan) -> Iterator[tuple[MemoryFile, int]]:
    """The lines, from 1, of memory files of which the plan removes something."""
    files = {file.path: file for file in snapshot.files}
    for effect in plan.effects:
        if isinstance(effect, CutFile) and effect.path in files:
            for number in lines_within(files[effect.path].text, effect.spans):
                yield files[effect.path], number + 1


def unnamed(snapshot: MemorySnapshot, plan: PurgePlan, session_id: str) -> list[Place]:
    """The removed lines of which no reason names the session; also those that it is said to take and does not."""
    gone = {Place(file.path, number) for file, number in removed_places(snapshot, plan)}
    said = {
        reason.place
        for file in snapshot.files
        for reason in explain_lines(snapshot, file.path, 1, file.text.count("\n") + 1)
        if reason.session_id == session_id
    }
    return sorted(gone ^ said)


@settings(max_examples=max(1, settings().max_examples // 3))
@given(heard_snapshots())
def test_I17_every_line_that_forgetting_a_session_takes_is_said_to_be_taken_and_no_other(
    snapshot: MemorySnapshot,
) -> None:
    for session_id in SESSIONS:
        assert unnamed(snapshot, plan_purge(snapshot, selection(session_id)), session_id) == []


def test_I17_synthetic_corpora() -> None:
    sessions = synthetic_sessions(6)
    snapshot = synthetic_snapshot(6, 5)
    for record in sessions:
        plan = plan_purge(snapshot, select_sessions(sessions, Selectors(sessions=[record.session_id])))
        assert unnamed(snapshot, plan, record.session_id) == []


def asked_one_by_one(store: Store, session_ids: list[str], most: int) -> list[str]:
    """The lines that forgetting one of these sessions removes and of which ``trace`` does not name it."""
    missing = []
    for session_id in session_ids:
        plan = preview(store, Selectors(sessions=[session_id]))
        places = list(removed_places(store.snapshot(), plan))
        for file, number in places[:: 1 + len(places) // most]:
            place = f"{file.path}:{number}"
            if not any(reason.session_id == session_id for reason in trace(store, file=place).reasons):
                missing.append(f"{session_id} takes {place}")
    return missing


def test_I17_real_stores(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    top = unpacked_store(store_name)
    store = open_openclaw(top / "before" / "state", workspace=top / "before" / "ws")
    known = sorted({record.session_id for record in store.catalogue() if record.agent_id == "main"})
    assert asked_one_by_one(store, known[:: 1 + len(known) // 4], 3) == []


WORLD = evolve(
    synthetic_snapshot(1, 1),
    corpus=(MemoryFile(CORPUS, corpus_line("s1", QUOTE) + corpus_line("s2", SAID)),),
    origins=OriginTable.from_rows([owner("K", "s1"), owner("other", "s9"), owner("lost", "s1")]),
    retained=(RetainedText("s3", (Snippet(f"User: {SAID}"),)),),
    tombstones=frozenset(),
    files=(
        MemoryFile(
            "MEMORY.md",
            "<!-- openclaw-memory-promotion:K -->\n- kiln\n  fired\n\n"
            "<!-- openclaw-memory-promotion:lost -->\n\n"
            f"<!-- openclaw-memory-promotion:other -->\n- who knows\n  {QUOTE}\n\n"
            "by hand\n\nSession ID: s1\nit went on\n",
        ),
        MemoryFile("memory/snap.md", "# Session: one\n\n- Session ID: s1\n\nuser: hello\n"),
        MemoryFile("memory/dreaming/light/2026-11-25.md", f"# Light\n\n- Candidate: {SAID}\n  - rank 1\n"),
    ),
)

M, K, L = "MEMORY.md", "memory/snap.md", "memory/dreaming/light/2026-11-25.md"
EXPECTED = [
    (M, 1, "s1", "marker", "K"),
    (M, 2, "s1", "marker", "K"),
    (M, 3, "s1", "continuation", "K"),
    (M, 5, "s1", "dangling-marker", "lost"),
    (M, 7, "s1", "collateral", "other"),
    (M, 7, "s9", "marker", "other"),
    (M, 8, "s1", "collateral", "other"),
    (M, 8, "s9", "marker", "other"),
    (M, 9, "s1", "quotation", None),
    (M, 9, "s9", "continuation", "other"),
    (M, 11, None, None, None),
    (M, 13, "s1", "label", None),
    (M, 14, "s1", "section", None),
    (K, 1, "s1", "snapshot", None),
    (K, 5, "s1", "snapshot", None),
    (L, 3, "s2", "quotation", None),
    (L, 3, "s3", "transcript-quotation", None),
    (L, 4, "s2", "consequence", None),
    (L, 4, "s3", "consequence", None),
    (CORPUS, 1, "s1", "corpus", None),
]


def test_I17_each_rule_has_its_name() -> None:
    places = dict.fromkeys((path, line) for path, line, *_ in EXPECTED)
    found = [reason for path, line in places for reason in trace(ModelStore(WORLD), file=f"{path}:{line}").reasons]
    assert found == [
        LineReason(Place(path, line), session, RemovalRule(rule), key)
        for path, line, session, rule, key in EXPECTED
        if session is not None and rule is not None
    ]
    assert {reason.rule for reason in found} == set(RemovalRule)


@pytest.mark.parametrize("rule", ["snippets", "entry_keys", "session_ids", "retained"])
def test_I17_a_rule_that_is_left_out_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = {name: plan_purge(WORLD, selection(name)) for name in ("s1", "s2", "s3", "s9")}
    assert not any(unnamed(WORLD, plan, name) for name, plan in plans.items())
    whole, left_out = takers._Claims._rules, dict[str, Any]({rule: ()})
    monkeypatch.setattr(takers._Claims, "_rules", lambda self, ids: evolve(whole(self, ids), **left_out))
    assert any(unnamed(WORLD, plan, name) for name, plan in plans.items())


def test_I17_people_and_programs_are_told_the_session_and_the_rule() -> None:
    answer = trace(ModelStore(WORLD), file=f"{M}:7")
    reasons = json.loads(answer.to_json())["reasons"]
    assert reasons[0] == {"place": f"{M}:7", "sessionId": "s1", "rule": "collateral", "entryKey": "other"}
    shown = "\n".join(describe_trace(answer))
    assert f"{M}:7 goes with session s1: it is of another entry, other, in which a line goes" in shown
    assert f"{M}:7 goes with session s9: it is an entry of it, other" in shown
    for path, line, *_ in EXPECTED:
        answer = trace(ModelStore(WORLD), file=f"{path}:{line}")
        told = answer.to_json() + "\n".join(describe_trace(answer))
        assert QUOTE not in told
        assert SAID not in told
    assert "belongs to no entry" in "\n".join(describe_trace(trace(ModelStore(WORLD), file=f"{M}:11")))
