"""Trace: where a line comes from, and what came of a session; on the model, the embedded store and OpenClaw's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    InputError,
    MemoryFile,
    NameNotFoundError,
    Preimage,
    Selectors,
    forget,
    open_openclaw,
    plan_purge,
    select_sessions,
)
from memprov.core.lineage import TransferEdge
from memprov.core.purge import CutFile
from memprov.core.text import Document
from memprov.core.trace import Place, Trace, trace_entries, trace_lines, trace_sessions
from memprov.shell.trace import trace
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.core.consolidation.test_planning import KILN, TEA, marked, owner, staged, world
from tests.core.worlds import CORPUS, snapshots
from tests.model_store import ModelStore
from tests.shell.native.loading import NOW, fresh_store, scratch
from tests.shell.native.test_native_consolidation import run, stage


def test_an_entry_is_traced_to_its_origins_its_places_and_the_way_it_came() -> None:
    memory = f"# Mine\n\n{marked('k', 's1', TEA)}  more of it\n\n{marked('other', 's9', KILN)}"
    snapshot = world(
        staged("k", "s1", TEA),
        memory=memory,
        origins=[owner("k", "s1", observed_at_ms=7), owner("k", "s2", origin_class="agent"), owner("old", "s2")],
        preimages=(Preimage("p1", marked("old", "s2", TEA)), Preimage("p2", marked("k", "s1", TEA))),
        transfers=(TransferEdge("k", "old", "t2"), TransferEdge("old", "older", "t1"), TransferEdge("x", "y", "t")),
        sibling_keys=frozenset(["k"]),
    )
    (answer,) = trace_entries(snapshot, ["k"])
    assert [row.session_id for row in answer.origins] == ["s1", "s2"]
    assert answer.origin_class == "agent"
    assert answer.places == (Place("MEMORY.md", 3),)
    assert answer.preimages == ("p2",)
    assert [edge.parent for edge in answer.transfers] == ["old", "older"]
    assert answer.siblings
    (unknown,) = trace_entries(snapshot, ["nobody's"])
    assert (unknown.origin_class, unknown.origins, unknown.places) == (None, (), ())


def test_a_line_leads_to_its_entry_and_a_corpus_line_to_its_session() -> None:
    memory = f"# Mine\n\n{marked('k', 's1', TEA)}  more of it\n\nby hand\n"
    snapshot = world(staged("k", "s1", TEA), memory=memory)
    of_k, of_nobody = (("k",), ()), ((), ())
    expected = [of_nobody, of_nobody, of_k, of_k, of_k, of_nobody, of_nobody]
    assert [trace_lines(snapshot, "MEMORY.md", n, n) for n in range(1, 8)] == expected
    assert trace_lines(snapshot, "MEMORY.md", 1, 99) == of_k
    assert trace_lines(snapshot, CORPUS, 1, 9) == ((), ("s1",))
    assert trace_lines(snapshot, CORPUS, 99, 99) is trace_lines(snapshot, "nowhere.md", 1, 1) is None


def test_a_dangling_marker_is_traced_too() -> None:
    snapshot = world(memory="<!-- openclaw-memory-promotion:k -->\n\ntext\n")
    assert trace_lines(snapshot, "MEMORY.md", 1, 1) == (("k",), ())


@given(snapshots(), st.sampled_from(["s1", "s2", "s3"]))
def test_the_memory_lines_of_a_session_are_those_that_forgetting_it_removes(snapshot: Any, session: str) -> None:
    of_session = trace_sessions(snapshot, [session])
    plan = plan_purge(snapshot, select_sessions((), Selectors(sessions=[session])))
    assert of_session.entry_keys == plan.report.entry_keys
    assert len(of_session.corpus) == plan.report.artifacts.session_corpus_lines
    cut = {effect.path for effect in plan.effects if isinstance(effect, CutFile) and effect.step == 3}
    blank = {f.path for f in snapshot.files if not f.text.strip("\ufeff \t\r\n")}
    assert {place.path for place in of_session.memory} == cut - blank


def test_a_session_is_asked_for_by_id_or_key_and_one_thing_at_a_time() -> None:
    sessions = synthetic_sessions(20)
    store = ModelStore(synthetic_snapshot(20), sessions)
    some = next(s for s in sessions if s.session_key and s.kind == "interactive")
    by_id, by_key = trace(store, session=some.session_id), trace(store, session=some.session_key)
    assert by_id.session == by_key.session
    assert by_id.session is not None
    assert by_id.session.corpus
    assert json.loads(by_id.to_json())["session"]["sessionIds"] == [some.session_id]
    assert [e.entry_key for e in by_id.entries] == list(by_id.session.entry_keys)
    place = by_id.session.corpus[0]
    assert trace(store, file=f"{place.path}:{place.line}").session == evolve(by_id.session)
    for wrong in ({}, {"entry": "a", "session": "b"}, {"entry": " "}, {"session": "*"}, {"session": ""}):
        with pytest.raises(InputError):
            trace(store, **wrong)
    for no_place in ("MEMORY.md", "MEMORY.md:", "MEMORY.md:0", ":3", "MEMORY.md:-1", "MEMORY.md:\u0663", ""):
        with pytest.raises(InputError, match="no PATH:LINE"):
            trace(store, file=no_place)


def test_F64a_every_form_in_which_a_place_or_session_is_printed_is_understood() -> None:
    sessions = synthetic_sessions(20)
    store = ModelStore(synthetic_snapshot(20), sessions)
    some = next(s for s in sessions if s.session_key and s.kind == "interactive")
    answer = trace(store, session=some.session_id).session
    assert answer is not None
    corpus, memory = answer.corpus[0], answer.memory[0]
    for place in (corpus, memory):
        for form in ("{0}:{1}", "{0}#L{1}", "{0}:{1}-{1}", "{0}#L{1}-L{1}", "./{0}:{1}"):
            assert trace(store, file=form.format(place.path, place.line)) == trace(
                store, file=f"{place.path}:{place.line}"
            )
    path = f"sessions/main/{some.session_id}.jsonl"
    for form in (f"{path}:3", f"{path}#L3-L9", f"{path}:3-9"):
        assert trace(store, file=form).session == answer, "a search hit of a transcript leads to its session"
    for name in (path, f"main:{path}", f"main/{path}", f"[main/{path}#L2]", f"{some.session_id}.jsonl"):
        assert trace(store, session=name).session == answer


def test_what_does_not_exist_is_another_answer_than_what_nothing_is_known_of() -> None:
    sessions = synthetic_sessions(20)
    snapshot = synthetic_snapshot(20)
    store = ModelStore(
        evolve(snapshot, files=(*snapshot.files, MemoryFile("memory/by-hand.md", "by hand\n"))), sessions
    )
    some = next(s for s in sessions if s.session_key and s.kind == "interactive")
    assert trace(store, file="memory/by-hand.md:1") == Trace("main")
    missing: list[tuple[dict[str, str], str]] = [
        ({"file": "memory/by-hand.md:9"}, "has a line"),
        ({"file": "nowhere.md:1"}, "has a line"),
        ({"file": "sessions/main/nobody.jsonl:3"}, "no session"),
        ({"session": "nobody"}, "no session 'nobody'"),
        ({"session": some.session_id.upper()}, "did you mean"),
        ({"entry": "nothing"}, "no entry 'nothing'"),
        ({"entry": some.session_id}, "--session"),
        ({"entry": "sessions/main/x.jsonl"}, "--session"),
        ({"entry": "MEMORY.md:3"}, "--file"),
    ]
    for question, message in missing:
        with pytest.raises(NameNotFoundError, match=message):
            trace(store, **question)
    for question, message in (
        ({"session": "memory:claim:0123456789ab"}, "--entry"),
        ({"session": "MEMORY.md:3"}, "--file"),
    ):
        with pytest.raises(InputError, match=message):
            trace(store, **question)


def test_an_openclaw_store_is_traced_without_edges(tmp_path: Path) -> None:
    snapshot = synthetic_snapshot(20)
    written = write_openclaw_store(tmp_path, snapshot, synthetic_sessions(20))
    store = open_openclaw(written.store.state_root, workspace=written.store.workspace_root)
    key = next(key for file in snapshot.files for n, key in enumerate_keys(file))
    (answer,) = trace(store, entry=key).entries
    assert answer.places
    assert answer.transfers == ()
    absolute = Path(written.store.workspace_root, answer.places[0].path)
    assert [e.entry_key for e in trace(store, file=f"{absolute}:{answer.places[0].line}").entries] == [key]


def enumerate_keys(file: MemoryFile) -> list[tuple[int, str]]:
    return [(n, key) for n, line in enumerate(Document(file.text).lines, 1) for key in line.keys]


def test_how_a_session_got_into_a_line_of_an_embedded_store_and_the_command_line() -> None:
    with scratch() as directory:
        store = fresh_store(directory / "store")
        for number, session in enumerate(["s1", "s2", "s3"]):
            stage(store, staged(f"k{number}", session, TEA))
            run(store, now_ms=NOW + number)
        memory = Path(store._layout.workspace, "MEMORY.md").read_text("utf-8").split("\n")
        number = next(n for n, line in enumerate(memory, 1) if TEA in line)
        answer = trace(store, file=f"MEMORY.md:{number}")
        (entry,) = answer.entries
        assert [row.session_id for row in entry.origins] == ["s1", "s2", "s3"]
        assert [(e.survivor, e.parent, e.action) for e in entry.transfers] == [
            ("k2", "k1", "merged"),
            ("k1", "k0", "merged"),
        ]
        command = [sys.executable, "-m", "memprov", "trace", "--store", store._layout.directory]
        ran = subprocess.run([*command, "--entry", "k2", "--json"], capture_output=True, text=True, check=True)
        assert json.loads(ran.stdout) == json.loads(trace(store, entry="k2").to_json())
        shown = subprocess.run([*command, "--session", "s1"], capture_output=True, text=True, check=True)
        assert "merged: k0 -> k1" in shown.stdout
        assert TEA not in shown.stdout + ran.stdout
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        forget(store, Selectors(sessions=["s2"]))
        gone = trace(store, session="s2")
        assert gone.entries == ()
        assert gone.session is not None
        assert (gone.session.forgotten, gone.session.corpus, gone.session.memory) == (True, (), ())
