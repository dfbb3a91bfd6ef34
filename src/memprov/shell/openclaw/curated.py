"""Which memory files the selected sessions wrote, and which archives are no conversations.

Read are the current windows and the archives of the selected sessions, as OpenClaw lists them, and besides those the
archives of a kind that is not known any more, if the index holds something of them (FACTS 6.2j, 8.2). Windows that were
rotated out are no candidates there, and so not here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field, frozen

from memprov.core.records import CuratedWrite, SessionKind, SessionState
from memprov.core.text import session_id_from_file_name
from memprov.shell.openclaw.sessions import SessionList, agent_of_key
from memprov.shell.openclaw.transcripts import (
    Findings,
    Roots,
    archive_files,
    read_archive_row,
    read_file,
    read_window,
)
from memprov.shell.openclaw.values import Json
from memprov.shell.sqlite import Access, Database, Reader

__all__ = ["TranscriptSearch", "search_transcripts"]


@frozen
class TranscriptSearch:
    """What the transcripts say. ``unread`` are sentences about those that could not be read."""

    writes: tuple[CuratedWrite, ...]
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
    live = {
        r.session_id: sessions.updated_ms.get(r.session_key or "") or r.created_at_ms or 0
        for r in mine
        if r.state is SessionState.LIVE
    }
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
        and (file.session_id in live or not owned_only)
    ]
    windows = [record.session_id for record in mine if record.session_id in live.keys() & selected]

    def read(reader: Reader) -> _Collected:
        collected = _Collected(roots)
        for session_id in windows:
            collected.add(session_id, read_window(reader, session_id, directories), live[session_id], archive=False)
        for archive in rows:
            collected.add(archive.session_id, read_archive_row(reader, archive), archive.created_at_ms, archive=True)
        return collected

    collected = access.read(database, read)
    for file in files:
        collected.add(file.session_id, read_file(file.path), file.modified_ms, archive=True)
    return TranscriptSearch(
        writes=tuple(write for write in collected.writes if write.session_id in selected),
        internal=frozenset(filter(doubtful, collected.internal)),
        unread=tuple(collected.unread),
    )


@define
class _Collected:
    roots: Roots
    writes: dict[CuratedWrite, None] = field(factory=dict)
    internal: set[str] = field(factory=set)
    unread: dict[str, None] = field(factory=dict)

    def add(self, session_id: str, records: Iterator[Json], fallback_ms: int, *, archive: bool) -> None:
        findings = Findings()
        try:
            findings.absorb(records, self.roots, fallback_ms)
        except OSError as error:
            what = "an archived transcript" if archive else "the transcript"
            self.unread[f"{what} of session {session_id} could not be read: {error}"] = None
        for path, observed in findings.writes.items():
            self.writes[CuratedWrite(path, observed, session_id)] = None
        if findings.narrative or (archive and findings.cron_run):
            self.internal.add(session_id)


def _indexed_ids(paths: Iterable[str], agent_id: str) -> Iterator[str]:
    """The ids of the agent's sessions that the index has something of."""
    head = f"sessions/{agent_id}/"
    for path in paths:
        if path.startswith(head):
            name = path[len(head) :]
            yield session_id_from_file_name(name) or name
