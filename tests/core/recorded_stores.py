"""What OpenClaw wrote into a real store, read with the standard library only: the other side of the comparison."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import zstandard
from attrs import frozen

from memprov.core.records import SessionRecord
from memprov.core.writing import Source, Transcript, session_source
from memprov.core.writing.messages import message_from_event


@frozen
class Recorded:
    """One agent of a store: its transcripts as sources, and everything that was derived from them."""

    sessions: tuple[SessionRecord, ...]
    transcripts: dict[str, Transcript]
    corpus: dict[str, str]
    entries: dict[str, dict[str, Any]]
    origins: set[tuple[str, str, str | None, str, int]]
    checkpoints: dict[str, dict[str, Any]]
    seen: dict[str, list[str]]
    rewinds: dict[str, list[dict[str, Any]]]
    diary: str | None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The listing that a shell would make."""
        return tuple(transcript.source for transcript in self.transcripts.values())


def read_recorded(before: Path, agent_id: str = "main") -> Recorded:
    """Read a `before` tree."""
    agent = _open(before / "state" / "agents" / agent_id / "agent" / "openclaw-agent.sqlite")
    shared = _open(before / "state" / "state" / "openclaw.sqlite")
    rows: dict[str, dict[str, Any]] = {}
    query = "SELECT namespace, value_json FROM plugin_state_entries WHERE plugin_id = 'memory-core'"
    for namespace, text in shared.execute(query):
        value = json.loads(text)
        if "key" in value and "value" in value:
            rows.setdefault(namespace, {})[value["key"]] = value["value"]
    events: dict[str, list[object]] = {}
    sizes: dict[str, int] = {}
    query = "SELECT session_id, event_json, event_zstd FROM transcript_events ORDER BY session_id, seq"
    for session_id, text, packed in agent.execute(query):
        raw = text if text is not None else zstandard.ZstdDecompressor().decompress(packed).decode()
        events.setdefault(session_id, []).append(json.loads(raw))
    checkpoints = rows.get("dreaming-session-ingestion-files", {})
    sessions, transcripts = [], {}
    query = (
        "SELECT session_id, session_key, chat_type, channel, transcript_updated_at, entry_json "
        "FROM session_windows JOIN session_nodes USING (session_key)"
    )
    for session_id, key, chat_type, channel, modified, entry in agent.execute(query):
        host = json.loads(entry)
        session = SessionRecord(
            agent_id,
            session_id,
            key,
            channel=channel,
            chat_type=chat_type,
            hook_source=host.get("hookExternalContentSource"),
        )
        sessions.append(session)
        sizes[session_id] = checkpoints.get(f"{agent_id}:sessions/{agent_id}/{session_id}", {}).get("size", 0)
        source = session_source(
            session, modified_ms=modified or 0, size=sizes[session_id], updated_at_ms=host.get("updatedAt")
        )
        messages = tuple(message_from_event(event, n) for n, event in enumerate(events.get(session_id, []), 1))
        transcripts[session_id] = Transcript(source, messages)
    seen: dict[str, list[str]] = {}
    for chunk in sorted(rows.get("dreaming-session-ingestion-seen", {}).values(), key=lambda row: row["index"]):
        seen.setdefault(chunk["scope"], []).extend(chunk["hashes"])
    query = "SELECT entry_key, session_id, session_key, origin_class, observed_at FROM memory_entry_origins"
    workspace = before / "ws"
    diary = workspace / "DREAMS.md"
    return Recorded(
        sessions=tuple(sessions),
        transcripts=transcripts,
        corpus={
            path.relative_to(workspace).as_posix(): path.read_bytes().decode()
            for path in sorted((workspace / "memory/.dreams/session-corpus").glob("*.txt"))
        },
        entries=rows.get("short-term-recall", {}),
        origins=set(agent.execute(query)),
        checkpoints=checkpoints,
        seen=seen,
        rewinds={k: v["candidates"] for k, v in rows.get("session-backfill-rewind", {}).items() if "candidates" in v},
        diary=diary.read_bytes().decode() if diary.is_file() else None,
    )


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
