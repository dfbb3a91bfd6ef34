"""On real stores: OpenClaw's report and result, field by field and row by row, but for the decisions in the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memprov import Selectors, apply_to_snapshot, forget, open_openclaw, preview
from tests.golden import DIFFERENCES, Recorded, recorded_commands
from tests.real_stores import fingerprint, store_archives

#: Host events and rewind rows are memprov's to trim (D21); locks come and go; times are when it ran.
_NOT_COMPARED = {"session-backfill-rewind", "memory-host.events", "short-term-locks", "short-term-meta"}
_MODELLED = (
    *("files", "corpus", "origins", "recall", "signals", "checkpoints", "seen_scopes", "events", "preimages"),
    *("chunks", "sources", "cache_rows", "tombstones"),
)
_TABLES = {
    "memory_entry_origins": "entry_key, agent_id, session_id, session_key, origin_class, observed_at",
    "memory_session_tombstones": "session_id, agent_id, reason",
    "memory_index_chunks": "id, path, source, text, embedding",
    "memory_index_chunk_provenance": "chunk_id, origin_class, session_kind, observed_at",
    "memory_index_chunk_recall_metadata": "chunk_id, importance, triggers, project_key",
    "memory_index_sources": "path, source, hash",
    "memory_embedding_cache": "provider, model, hash",
    "memory_index_chunks_fts_docsize": "id",
    "memory_index_paths_fts_docsize": "id",
    "memory_index_chunks_vec_rowids": "id",
    "session_windows": "session_id, session_key",
    "transcript_events": "session_id, seq",
}


def recorded(top: Path) -> list[Recorded]:
    return [command for command in recorded_commands(top) if "-then-" not in command.suffix]


def value_of(report: dict[str, object], field: str) -> object:
    """A field of a report by its dotted name, lists in one order."""
    value: object = report
    for part in field.split("."):
        assert isinstance(value, dict)
        value = value[part]
    return sorted(value, key=json.dumps) if isinstance(value, list) else value


def fields_of(report: dict[str, object]) -> list[str]:
    artifacts = report["artifacts"]
    assert isinstance(artifacts, dict)
    return [name for name in report if name != "artifacts"] + [f"artifacts.{name}" for name in artifacts]


def files_of(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def rows_of(state: Path, agent: str) -> dict[str, list[str]]:
    """The memory rows of a state directory, tables that it lacks as empty."""
    database = state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
    rows = {}
    with apsw.Connection(f"file:{database}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI) as db:
        for table, columns in _TABLES.items():
            known = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall()
            rows[table] = sorted(map(repr, db.execute(f"SELECT {columns} FROM {table}"))) if known else []  # noqa: S608
    shared = state / "state" / "openclaw.sqlite"
    with apsw.Connection(f"file:{shared}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI) as db:
        for namespace, key, value in db.execute("SELECT namespace, entry_key, value_json FROM plugin_state_entries"):
            if namespace not in _NOT_COMPARED:
                rows.setdefault(namespace, []).append(f"{key} {value}")
    return {table: sorted(values) for table, values in rows.items()}


def test_report_equals_openclaws_but_for_the_decisions(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    top = unpacked_store(store_name)
    commands = recorded(top)
    assert commands
    for command in commands:
        store = open_openclaw(top / "before" / "state", command.agent, workspace=top / "before" / "ws")
        report = preview(store, command.selectors).report.to_dict()
        expected, _ = DIFFERENCES.get(command.name, ({}, {}))
        for field in fields_of(command.report):
            theirs, ours = value_of(command.report, field), value_of(report, field)
            if field == "dryRun":
                continue
            if field in expected:
                assert (theirs, ours) == expected[field][:2], (command.name, field)
            else:
                assert ours == theirs, (command.name, field)


def test_result_equals_openclaws_but_for_the_decisions(
    store_name: str, unpacked_store: Callable[[str], Path], store_copy: Callable[..., Path]
) -> None:
    top = unpacked_store(store_name)
    for command in recorded(top):
        work = store_copy(store_name)
        store = open_openclaw(work / "state", command.agent, workspace=work / "ws")
        plan = preview(store, command.selectors)
        model = apply_to_snapshot(store.snapshot(plan.selection), plan)
        report = forget(store, command.selectors)
        assert {**report.to_dict(), "dryRun": True} == plan.report.to_dict(), "preview and apply differ in dryRun alone"

        expected_fields, expected_files = DIFFERENCES.get(command.name, ({}, {}))
        theirs, ours = files_of(top / f"after{command.suffix}" / "ws"), files_of(work / "ws")
        differing = {name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name)}
        assert differing == set(expected_files), command.name

        their_rows, our_rows = (
            rows_of(top / f"after{command.suffix}" / "state", command.agent),
            rows_of(work / "state", command.agent),
        )
        for table in their_rows.keys() | our_rows.keys():
            collateral = {
                "memory_entry_origins": "artifacts.originRows",
                "short-term-recall": "artifacts.shortTermEntries",
            }
            if collateral.get(table) not in expected_fields:
                assert our_rows.get(table, []) == their_rows.get(table, []), (command.name, table)

        after = store.snapshot(plan.selection)
        for field in _MODELLED:
            assert getattr(after, field) == getattr(model, field), (command.name, field)
        assert {batch.key: batch for batch in after.rewinds} == {batch.key: batch for batch in model.rewinds}
        assert preview(store, command.selectors).removes_nothing


def test_I3_a_preview_touches_nothing(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    top = unpacked_store(store_name) / "before"
    before, contents = fingerprint(top), files_of(top)
    store = open_openclaw(top / "state", workspace=top / "ws")
    for record in store.catalogue()[:3]:
        preview(store, Selectors(sessions=[record.session_id]))
    assert fingerprint(top) == before
    assert files_of(top) == contents


@pytest.mark.needs_store("basic")
def test_every_listed_difference_is_of_a_recorded_command(unpacked_store: Callable[[str], Path]) -> None:

    names = {command.name for store in store_archives() for command in recorded_commands(unpacked_store(store))}
    assert set(DIFFERENCES) <= names
