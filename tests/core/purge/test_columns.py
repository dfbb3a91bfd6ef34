"""Columns that hold one path or one scope are compared whole (F14): no id is found in a longer one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    Chunk,
    ChunkTable,
    HostEvent,
    IndexSource,
    MemorySnapshot,
    PurgePlan,
    RecallEntry,
    RewindBatch,
    Selectors,
    SessionRecord,
    StoreIdentity,
    plan_purge,
    select_sessions,
)
from memprov.core.purge import PurgeIndex, rewind_key
from memprov.core.text import SessionMatcher

#: Everything after "a" that the predicate for prose takes for the end of an id.
OTHERS = ["a b", "a/b", "a;b", "a:b", "a]b", "a#b", "a#L2", "a)b", "a, b", "a.", "a!", 'a"', "a`", "a\u3000b", "a\tb"]
OTHERS += ["x/sessions/main/a", "x sessions/main/a", "(sessions/main/a)", "agent:main:a", "x main:a", "Session ID: a"]


def snapshot(names: list[str]) -> MemorySnapshot:
    """Rows of every kind, of these sessions."""
    paths = [f"sessions/main/{name}.jsonl" for name in names]
    batches = [
        (json.dumps({"scope": f"main:{path}", "stateKey": f"main:{path}", "hash": "h", "contentIndex": 0}),)
        for path in paths
    ]
    listed = [{"path": path, "startLine": 1, "endLine": 1, "score": 0.5} for path in paths]
    event = {"type": "memory.recall.recorded", "query": "q", "resultCount": len(listed), "results": listed}
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        recall=tuple(RecallEntry(f"k{n}", path, "found by search", 1, 1) for n, path in enumerate(paths)),
        checkpoints=tuple(f"main:{path}" for path in paths),
        seen_scopes=(*(f"main:{path}" for path in paths), *(f"main:{name}" for name in names)),
        rewinds=tuple(RewindBatch(rewind_key(batch), batch) for batch in batches),
        events=(HostEvent("e", json.dumps({"kind": "event", "event": event, "sequence": 1})),),
        chunks=ChunkTable.from_rows(Chunk(f"c{n}", path, "sessions") for n, path in enumerate(paths)),
        sources=tuple(IndexSource(path, "sessions") for path in paths),
    )


def plan_of(names: list[str], chosen: str) -> PurgePlan:
    catalogue = [SessionRecord("main", name) for name in names]
    return plan_purge(snapshot(names), select_sessions(catalogue, Selectors(sessions=[chosen])))


@pytest.mark.parametrize("other", OTHERS)
def test_F14_rows_of_a_session_whose_id_begins_or_ends_with_the_forgotten_one_stay(other: str) -> None:
    assert plan_of([other], other).report.artifacts.index_chunks == 1, "its own rows are found"
    catalogue = [SessionRecord("main", "a")]
    plan = plan_purge(snapshot([other]), select_sessions(catalogue, Selectors(sessions=["a"])))
    assert plan.removes_nothing


@pytest.mark.parametrize("other", OTHERS)
def test_F14_and_each_goes_alone_when_it_is_forgotten(other: str) -> None:
    for chosen in ("a", other):
        plan = plan_of(["a", other], chosen)
        (index,) = [effect for effect in plan.effects if isinstance(effect, PurgeIndex)]
        assert index.chunk_ids == ("c0" if chosen == "a" else "c1",)
        assert plan.report.artifacts.short_term_entries == 1
        assert plan.report.artifacts.seen_hash_scopes == 2
        assert (plan.report.extra_artifacts.rewind_rows, plan.report.extra_artifacts.events) == (1, 1)


@given(st.text(min_size=1), st.text(min_size=1))
def test_F14_a_path_and_a_scope_are_of_one_session_only(one: str, other: str) -> None:
    matcher = SessionMatcher("main", [one])
    assert matcher.owns_state(f"main:{one}")
    assert matcher.owns_path(f"sessions/main/{one}.jsonl") or one.endswith((".trajectory", ".jsonl")) or "." in one
    if one != other:
        assert not matcher.owns_path(f"sessions/main/{other}.jsonl") or "." in other
