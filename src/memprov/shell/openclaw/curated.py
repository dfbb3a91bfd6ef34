"""What the selected sessions wrote and said by their transcripts, and which archives are no conversations.

Read are the windows and the archives of the selected sessions, rotated generations included (F19), and besides those
the archives of a kind that is not known any more, if the index holds something of them (docs: Purge of an index,
Curated writes).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from memprov.core.records import CuratedWrite, Roots, SessionKind, SessionRecord, SessionState
from memprov.core.state import RetainedText
from memprov.core.text import session_id_from_file_name
from memprov.core.writing import joined_texts, read_findings
from memprov.shell.openclaw.sessions import SessionList, agent_of_key
from memprov.shell.openclaw.transcripts import (
    Messages,
    Record,
    archive_files,
    read_archive_row,
    read_file,
    read_window,
)
from memprov.shell.sqlite import Access, Database, Reader

__all__ = ["TranscriptSearch", "search_transcripts"]


@frozen
class TranscriptSearch:
    """What the transcripts say. ``unread`` are sentences about what of them could not be read."""

    writes: tuple[CuratedWrite, ...]
    retained: tuple[RetainedText, ...]
    internal: frozenset[str]
    unread: tuple[str, ...]


def search_transcripts(
    access: Access,
    database: Database,
    sessions: SessionList,
    *,
    agent_id: str,
    selected: frozenset[str],
    directories: Sequence[str],
    roots: Roots,
    indexed: Iterable[str],
    owned_only: bool = False,
) -> TranscriptSearch:
    """Read the transcripts of the selected sessions, in memory (D20).

    ``indexed`` are the paths in the index; ``owned_only`` passes over archive files that no record of the store
    knows, since in a store that agents share they could be anybody's.
    """
    mine = [record for record in sessions.records if record.agent_id == agent_id]
    windows = {r.session_id: r for r in mine if r.state is not SessionState.ARCHIVED}
    live = {session_id for session_id, r in windows.items() if r.state is SessionState.LIVE}
    known = {r.session_id for r in mine if r.state is SessionState.ARCHIVED and r.kind is not SessionKind.UNKNOWN}
    shown = frozenset(_indexed_ids(indexed, agent_id))

    def doubtful(session_id: str) -> bool:
        return session_id in shown and session_id not in live and session_id not in known

    rows = [
        archive
        for archive in sessions.archives
        if (agent_of_key(archive.session_key) or agent_id) == agent_id
        and (archive.session_id in selected or doubtful(archive.session_id))
    ]
    names = {archive.name for archive in sessions.archives}
    files = [
        file
        for file in archive_files(directories, sessions.archives)
        if os.path.basename(file.path) not in names
        and (file.session_id in selected or doubtful(file.session_id))
        and (file.session_id in windows or not owned_only)
    ]
    archived = {r.session_id: r for r in mine if r.state is SessionState.ARCHIVED}

    def archive_of(session_id: str) -> SessionRecord:
        kind = windows[session_id].kind if session_id in windows else SessionKind.UNKNOWN
        unknown = SessionRecord(agent_id, session_id, kind=kind, state=SessionState.ARCHIVED)
        return archived.get(session_id, unknown)

    def read(reader: Reader) -> _Collected:
        collected = _Collected(roots)
        for session_id, record in windows.items():
            if session_id in selected:
                last_ms = sessions.updated_ms.get(record.session_key or "") if session_id in live else None
                records = read_window(reader, session_id, directories)
                collected.add(record, records, last_ms or record.created_at_ms or 0)
        for archive in rows:
            collected.add(archive_of(archive.session_id), read_archive_row(reader, archive), archive.created_at_ms)
        return collected

    collected = access.read(database, read)
    for file in files:
        collected.add(archive_of(file.session_id), read_file(file.path), file.modified_ms)
    return TranscriptSearch(
        writes=tuple(write for write in collected.writes if write.session_id in selected),
        retained=joined_texts(text for text in collected.texts if text.session_id in selected),
        internal=frozenset(filter(doubtful, collected.internal)),
        unread=tuple(collected.unread),
    )


@define
class _Collected:
    roots: Roots
    writes: dict[CuratedWrite, None] = field(factory=dict)
    internal: set[str] = field(factory=set)
    unread: dict[str, None] = field(factory=dict)
    texts: list[RetainedText] = field(factory=list)

    def add(self, session: SessionRecord, records: Iterator[Record], fallback_ms: int) -> None:
        archive = session.state is SessionState.ARCHIVED
        what = f"{'an archived' if archive else 'the'} transcript of session {session.session_id}"
        messages = Messages(records)
        findings = read_findings(session, messages, self.roots, fallback_ms=fallback_ms)
        if messages.failure is not None:
            self.unread[f"{what} could not be read: {messages.failure}"] = None
        if messages.lost:
            self.unread[f"{messages.lost} line{'s' * (messages.lost > 1)} of {what} could not be read"] = None
        self.writes.update(dict.fromkeys(findings.writes))
        self.texts.append(findings.text)
        if "narrative" in findings.generated_by or (archive and "cron" in findings.generated_by):
            self.internal.add(session.session_id)


def _indexed_ids(paths: Iterable[str], agent_id: str) -> Iterator[str]:
    """The ids of the agent's sessions that the index has something of."""
    head = f"sessions/{agent_id}/"
    for path in paths:
        if path.startswith(head):
            name = path[len(head) :]
            yield session_id_from_file_name(name) or name
