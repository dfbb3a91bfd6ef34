"""Synthetic data: reproducible, consistent in itself, and the same on disk as in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from attrs import evolve, fields

from memprov import (
    Chunk,
    ChunkTable,
    InputError,
    MemorySnapshot,
    SelectionSource,
    Selectors,
    SessionState,
    StaleCopy,
    apply_to_snapshot,
    forget,
    open_openclaw,
    plan_purge,
    preview,
    select_sessions,
)
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store

CORPUS_LINE = re.compile(r"\[main/sessions/main/(?P<id>[^#]+)#L[0-9]+\] (?P<snippet>(?:User|Assistant): .+)")


def parts_that_differ(left: MemorySnapshot, right: MemorySnapshot) -> list[str]:
    names = (field.name for field in fields(MemorySnapshot))
    return [name for name in names if getattr(left, name) != getattr(right, name)]


def test_the_same_arguments_give_the_same_data_and_another_seed_other_data() -> None:
    assert synthetic_snapshot(30) == synthetic_snapshot(30)
    assert synthetic_sessions(30) == synthetic_sessions(30)
    other = parts_that_differ(synthetic_snapshot(30), synthetic_snapshot(30, seed=1))
    assert {"files", "corpus", "origins", "recall", "rewinds", "chunks"} <= set(other)


def test_the_corpus_has_the_size_that_was_asked_for() -> None:
    snapshot = synthetic_snapshot(50, 7, sessions_per_day=9)
    lines = [line for file in snapshot.corpus for line in file.text.removesuffix("\n").split("\n")]
    assert len(lines) == 350
    assert len(snapshot.corpus) == 6
    owners = {match["id"] for line in lines if (match := CORPUS_LINE.fullmatch(line))}
    assert owners == set(snapshot.origins.sessions)
    assert owners == {r.session_id for r in synthetic_sessions(50, sessions_per_day=9)} - snapshot.internal_sessions


def test_limits_are_kept() -> None:
    small = synthetic_snapshot(40, recall_rows=5, promoted=0)
    assert len(small.recall) == 5
    assert small.preimages == ()
    assert len(synthetic_snapshot(80).recall) == 512
    lines = [line for file in small.corpus for line in file.text.split("\n")]
    assert max(map(len, lines)) <= 344


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_nothing_is_no_size(sizes: tuple[int, int, int]) -> None:
    sessions, lines, per_day = sizes
    with pytest.raises(InputError, match="at least 1"):
        synthetic_snapshot(sessions, lines, sessions_per_day=per_day)


def test_there_is_something_of_every_kind() -> None:
    snapshot = synthetic_snapshot(200)
    lineage = snapshot.origins.select(snapshot.origins.sessions)
    assert lineage.entry_keys
    some = snapshot.origins.select(snapshot.origins.sessions[::2])
    assert some.mixed
    empty = [f.name for f in fields(MemorySnapshot) if not getattr(snapshot, f.name)]
    left_out = {"stale_copies", "sibling_keys", "cache_rows", "transcript_writes", "unscanned", "transfers"}
    assert set(empty) == left_out | {"retained", "siblings"}


def test_a_purge_reaches_every_surface_and_then_finds_nothing() -> None:
    snapshot = synthetic_snapshot(200)
    chosen = snapshot.origins.sessions[::3]
    selection = select_sessions(synthetic_sessions(200), Selectors(sessions=chosen))
    plan = plan_purge(snapshot, selection)
    counts = json.loads(plan.report.to_json())["artifacts"]
    assert {name for name, count in counts.items() if not count} == {"vectorRows", "embeddingCacheRows"}
    assert plan.report.mixed_lineage_entry_keys
    assert plan.report.collateral_entry_keys
    assert plan_purge(apply_to_snapshot(snapshot, plan), selection).removes_nothing


@pytest.mark.parametrize("vectors", [False, True])
def test_a_store_reads_back_as_the_snapshot_that_was_written(tmp_path: Path, *, vectors: bool) -> None:
    sessions = synthetic_sessions(60)
    written = write_openclaw_store(tmp_path, synthetic_snapshot(60, vectors=vectors), sessions)
    store = open_openclaw(tmp_path / "state")
    assert parts_that_differ(store.snapshot(), written) == []
    archives = [s for s in sessions if s.state == "archived"]
    known = {s: evolve(s, created_at_ms=None, archived_at_ms=s.created_at_ms) for s in archives}
    assert store.catalogue() == tuple(known.get(s, s) for s in sessions), "of an archive, only its own time is known"


def test_a_store_without_a_catalogue_has_the_sessions_that_the_snapshot_names(tmp_path: Path) -> None:
    written = write_openclaw_store(tmp_path, synthetic_snapshot(30))
    store = open_openclaw(tmp_path / "state")
    assert parts_that_differ(store.snapshot(), written) == []
    named = {record.session_id for record in store.catalogue()}
    assert named == set(written.origins.sessions) | written.internal_sessions


def test_a_store_may_be_of_any_agent(tmp_path: Path) -> None:
    written = write_openclaw_store(tmp_path, synthetic_snapshot(9, agent_id="helper", seed=3))
    store = open_openclaw(tmp_path / "state", agent_id="helper")
    assert parts_that_differ(store.snapshot(), written) == []
    assert {record.agent_id for record in store.catalogue()} == {"helper"}


def test_rows_without_full_text_and_links_survive_the_disk(tmp_path: Path) -> None:
    snapshot = synthetic_snapshot(10)
    rows = [evolve(row, full_text=False) if i % 3 == 0 else row for i, row in enumerate(snapshot.chunks.rows())]
    note = evolve(snapshot.files[2], aliases=("memory/z/again.md",))
    snapshot = evolve(
        snapshot,
        chunks=ChunkTable.from_rows([*rows, Chunk("id", "MEMORY.md", text="of another agent's copy")]),
        files=(*snapshot.files[:2], note, *snapshot.files[3:]),
    )
    written = write_openclaw_store(tmp_path, snapshot)
    assert parts_that_differ(open_openclaw(tmp_path / "state").snapshot(), written) == []


def test_what_the_disk_loses_is_what_the_model_loses(tmp_path: Path) -> None:
    sessions = synthetic_sessions(60)
    written = write_openclaw_store(tmp_path, synthetic_snapshot(60), sessions)
    store = open_openclaw(tmp_path / "state")
    archived = next(record.session_id for record in sessions if record.state is SessionState.ARCHIVED)
    chosen = (*written.origins.sessions[::4], archived)
    selectors = Selectors(sessions=chosen, hook_sources=["gmail"], participants=["member-6"])
    plan = preview(store, selectors)
    sources = {resolution.source for resolution in plan.report.session_resolutions}
    assert sources == {SelectionSource.LIVE, SelectionSource.ARCHIVED}
    report = forget(store, selectors)
    assert evolve(report, dry_run=True) == plan.report
    expected = apply_to_snapshot(written, plan)
    rekeyed = tuple(sorted(expected.rewinds, key=lambda row: row.key))
    found = store.snapshot()
    assert parts_that_differ(found, evolve(expected, rewinds=rekeyed, revision=found.revision)) == []
    assert found.revision > written.revision


def test_a_directory_is_used_once(tmp_path: Path) -> None:
    write_openclaw_store(tmp_path, synthetic_snapshot(2))
    with pytest.raises(InputError, match="already holds a store"):
        write_openclaw_store(tmp_path, synthetic_snapshot(2))


def test_a_note_of_a_user_is_read_where_it_is_looked_for(tmp_path: Path) -> None:
    snapshot = synthetic_snapshot(2)
    snapshot = evolve(snapshot, files=(*snapshot.files, evolve(snapshot.files[1], path="users/al/USER.md")))
    written = write_openclaw_store(tmp_path, snapshot)
    assert written.files[2].path == "users/al/USER.md"
    assert parts_that_differ(open_openclaw(tmp_path / "state").snapshot(), written) == []


def test_what_no_store_can_hold_is_refused(tmp_path: Path) -> None:
    snapshot = evolve(synthetic_snapshot(2), stale_copies=(StaleCopy("x.tmp", ""),), unscanned=("a note",))
    with pytest.raises(InputError, match="stale copies or notes of what was not scanned"):
        write_openclaw_store(tmp_path, snapshot)
    elsewhere = evolve(synthetic_snapshot(2).files[0], path="elsewhere.md")
    with pytest.raises(InputError, match=r"elsewhere\.md"):
        write_openclaw_store(tmp_path / "other", evolve(synthetic_snapshot(2), files=(elsewhere,)))
