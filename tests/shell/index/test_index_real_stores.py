"""Indexes of what OpenClaw wrote: equal to its own, chunk by chunk, where the rules are; and purged like any other."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from memprov import OriginClass, Selectors, SessionRecord, forget
from memprov.core.index import memory_text, session_text
from memprov.core.index.chunking import chunk_id, is_entry_file
from memprov.core.text import to_text
from memprov.core.writing import Message
from memprov.shell.index import reconcile, search, sync_index
from memprov.testing import ToyEmbedder
from tests.core.recorded_stores import read_recorded
from tests.shell.native.loading import fresh_store

Rows = dict[str, set[tuple[object, ...]]]


def openclaws(before: Path, source: str) -> tuple[Rows, str]:
    """Path -> its chunks with all that is known of them, and the model."""
    ledger = before / "state/agents/main/agent/openclaw-agent.sqlite"
    connection = sqlite3.connect(f"file:{ledger}?mode=ro&immutable=1", uri=True)
    found: Rows = defaultdict(set)
    model = ""
    statement = """
        SELECT c.path, c.model, c.id, c.start_line, c.end_line, c.hash, p.origin_class, p.session_kind, p.observed_at
        FROM memory_index_chunks AS c JOIN memory_index_chunk_provenance AS p ON p.chunk_id = c.id WHERE c.source = ?"""
    for path, name, *row in connection.execute(statement, (source,)):
        model = name
        found[path].add(tuple(row))
    connection.close()
    return found, model


def test_sessions_have_openclaws_chunks_ids_classes_kinds_and_times(
    unpacked_store: Callable[[str], Path], store_name: str
) -> None:
    before = unpacked_store(store_name) / "before"
    theirs, model = openclaws(before, "sessions")
    ours: Rows = {}
    for transcript in read_recorded(before).transcripts.values():
        session = transcript.source.session
        source = session_text(session, transcript.messages)
        if source is not None:
            ours[source.path] = {
                (
                    chunk_id("sessions", source.path, piece, model),
                    *(piece.start_line, piece.end_line, piece.hash),
                    *(known.origin_class, known.session_kind, known.observed_at_ms),
                )
                for piece, known in source.pieces(None)
            }
    assert ours == theirs


def test_files_have_openclaws_classes(unpacked_store: Callable[[str], Path], store_name: str) -> None:
    before = unpacked_store(store_name) / "before"
    theirs, _ = openclaws(before, "memory")
    recorded = recorded_classes(before)
    for path, rows in theirs.items():
        source = memory_text(path, to_text((before / "ws" / path).read_bytes()), recorded=recorded.get(path))
        assert source is not None
        assert {row[4] for row in rows} == {source.provenance.origin_class}
        assert is_entry_file(path) or len(list(source.pieces(None))) == len(rows)


def recorded_classes(before: Path) -> dict[str, OriginClass]:
    connection = sqlite3.connect(f"file:{before}/state/state/openclaw.sqlite?mode=ro&immutable=1", uri=True)
    rows = connection.execute("SELECT value_json FROM plugin_state_entries WHERE namespace = 'workspace-files'")
    values = [json.loads(text) for (text,) in rows]
    connection.close()
    return {value["relativePath"]: OriginClass(value["originClass"]) for value in values}


@pytest.mark.needs_store("mixed", "curated")
@pytest.mark.parametrize("name", ["mixed", "curated"])
def test_a_purge_after_indexing_a_real_workspace_leaves_nothing_in_the_index(
    unpacked_store: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    recorded = read_recorded(unpacked_store(name) / "before")
    store = fresh_store(tmp_path / "store")
    shutil.copytree(unpacked_store(name) / "before" / "ws", store._layout.workspace, dirs_exist_ok=True)
    chats: dict[str, tuple[Message, ...]] = {}
    for transcript in recorded.transcripts.values():
        if transcript.source.session is not None:
            store.record_session(transcript.source.session)
            chats[transcript.source.session.session_id] = transcript.messages

    def reader(session: SessionRecord, /) -> tuple[Message, ...] | None:
        return chats.get(session.session_id)

    embedder = ToyEmbedder()
    sync_index(store, embedder, reader)
    chosen = min(chats)
    said = [hit.text for hit in search(store, "oolong bicycle Kestrelwing Zambujal", embedder=embedder, limit=50)]
    assert said
    forget(store, Selectors(sessions=[chosen]))
    for _ in range(2):
        chunks = list(store.snapshot().chunks.rows())
        assert not any(chosen in chunk.path for chunk in chunks)
        files = {c.path: (Path(store._layout.workspace) / c.path).read_text() for c in chunks if c.source == "memory"}
        assert all(chunk.text in files[chunk.path] for chunk in chunks if chunk.source == "memory")
        assert reconcile(store).sound
        sync_index(store, embedder, reader)
