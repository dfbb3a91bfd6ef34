"""I16 on stores: what a store answers narrowly gives the plan of its whole snapshot, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov import (
    Chunk,
    ChunkTable,
    HostEvent,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    Preimage,
    RecallEntry,
    RewindBatch,
    Selection,
    Selectors,
    SessionRecord,
    StoreIdentity,
    open_openclaw,
    plan_purge,
    select_sessions,
)
from memprov.core.purge import answered, plan_by_asking, rewind_key
from memprov.core.text import Gate, json_text, to_bytes, to_text
from memprov.shell.port import Store
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from memprov.testing.strategies import ENTRY_KEYS, SENTENCES, SESSION_IDS, corpus_texts, memory_texts
from tests.core.worlds import selections, snapshots
from tests.golden import recorded_commands
from tests.shell.native.loading import fresh_store, scratch, write_snapshot

FEWER = settings(max_examples=max(1, settings().max_examples // 2))


def plans(store: Store, selection: Selection) -> tuple[str, str]:
    """The plan from what the store answers, and from all that it has."""
    asking = plan_by_asking(store.identity, selection)
    return (
        answered(asking, store.answering(selection)).to_json(),
        plan_purge(store.snapshot(selection), selection).to_json(),
    )


def assert_same(store: Store, selection: Selection) -> None:
    narrow, whole = plans(store, selection)
    assert narrow == whole


def make_native(root: Path, snapshot: MemorySnapshot) -> Store:
    store = fresh_store(root)
    write_snapshot(store, snapshot, synthetic_sessions(1))
    return store


def make_openclaw(root: Path, snapshot: MemorySnapshot) -> Store:
    write_openclaw_store(
        root, evolve(snapshot, stale_copies=(), sibling_keys=frozenset(), retained=()), synthetic_sessions(1)
    )
    return open_openclaw(root / "state")


MAKERS: dict[str, Callable[[Path, MemorySnapshot], Store]] = {"native": make_native, "openclaw": make_openclaw}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@makers
@FEWER
@given(snapshots(), selections)
def test_I16_small_worlds(
    make: Callable[[Path, MemorySnapshot], Store], snapshot: MemorySnapshot, selection: Selection
) -> None:
    with scratch() as directory:
        assert_same(make(directory / "store", snapshot), selection)


texts = memory_texts(max_lines=8).filter(lambda text: to_text(to_bytes(text)) == text)
keys = st.sampled_from(ENTRY_KEYS)
ids = st.sampled_from(SESSION_IDS)
#: Valid text only, as a row of a database holds it.
row_texts = texts.filter(lambda text: text.isprintable() or not any("\ud800" <= c <= "\udfff" for c in text))


@st.composite
def hostile_worlds(draw: st.DrawFn) -> MemorySnapshot:
    """Texts in every spelling in every place, and rows that name sessions in every way."""
    names = ("MEMORY.md", "memory/a.md", "memory/dreaming/light/a.md", "DREAMS.md")
    corpus = draw(corpus_texts().filter(lambda text: to_text(to_bytes(text)) == text))
    path = "memory/.dreams/session-corpus/2026-11-25.txt"
    states = [f"main:sessions/main/{i}" for i in draw(st.lists(ids, max_size=3, unique=True))]
    candidates = tuple(json_text({"scope": state, "stateKey": state}) for state in states)
    event = {"type": "memory.recall.recorded", "query": draw(row_texts), "results": []}
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=tuple(MemoryFile(name, draw(texts)) for name in names),
        corpus=(MemoryFile(path, corpus or "\n"),),
        origins=OriginTable.from_rows(
            Origin(key, "main", i) for key, i in draw(st.lists(st.tuples(keys, ids), max_size=4, unique=True))
        ),
        recall=tuple(
            RecallEntry(key, path, draw(row_texts), line // 2, line // 2)
            for line, key in enumerate(draw(st.lists(keys, max_size=3, unique=True)))
        ),
        signals=tuple(sorted(draw(st.lists(keys, max_size=2, unique=True)))),
        checkpoints=tuple(sorted(states)),
        seen_scopes=tuple(sorted(states)),
        rewinds=(RewindBatch(rewind_key(candidates), candidates),) if candidates else (),
        events=(HostEvent("aa:event:1:0000000000000001", json_text({"kind": "event", "event": event, "sequence": 1})),),
        preimages=(Preimage("p", draw(row_texts)),),
        chunks=ChunkTable.from_rows(
            [Chunk(f"c{n}", f"memory/{n}.md", text=draw(row_texts)) for n in range(2)]
            + [Chunk(f"s{n}", f"sessions/main/{draw(ids)}.jsonl", "sessions") for n in range(2)]
        ),
    )


hostile_selections = st.lists(ids, min_size=1, max_size=2, unique=True).map(
    lambda chosen: select_sessions([SessionRecord("main", i) for i in SESSION_IDS], Selectors(sessions=chosen))
)


@makers
@FEWER
@given(hostile_worlds(), hostile_selections)
def test_I16_hostile_worlds(
    make: Callable[[Path, MemorySnapshot], Store], snapshot: MemorySnapshot, selection: Selection
) -> None:
    with scratch() as directory:
        assert_same(make(directory / "store", snapshot), selection)


@makers
def test_I16_synthetic_stores(tmp_path: Path, make: Callable[[Path, MemorySnapshot], Store]) -> None:
    sessions = synthetic_sessions(40)
    store = make(tmp_path / "store", synthetic_snapshot(40, 5, vectors=True))
    for chosen in (sessions[:1], sessions[7:8], sessions[::2], [evolve(sessions[0], session_id="unknown")]):
        named = Selectors(sessions=[record.session_id for record in chosen])
        assert_same(store, select_sessions(sessions, named))
    assert_same(store, Selection("main", Selectors(sessions=["x"])))


def test_I16_real_stores(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    top = unpacked_store(store_name)
    store = open_openclaw(top / "before" / "state", workspace=top / "before" / "ws")
    catalogue = store.catalogue()
    named = [recorded.selectors for recorded in recorded_commands(top)]
    named += [Selectors(sessions=[record.session_id]) for record in catalogue[:: 1 + len(catalogue) // 6]]
    named += [Selectors(sessions=[record.session_id for record in catalogue]), Selectors(sessions=["unknown"])]
    for selectors in named:
        assert_same(store, select_sessions(catalogue, selectors))


def test_I16_a_gate_that_lets_too_little_through_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = synthetic_sessions(8)
    store = make_native(tmp_path / "store", synthetic_snapshot(8, 5))
    selection = select_sessions(sessions, Selectors(sessions=[sessions[1].session_id]))
    assert_same(store, selection)
    monkeypatch.setattr(Gate, "may_hold", lambda self, data: SENTENCES[0].encode() in data)
    narrow, whole = plans(store, selection)
    assert narrow != whole
