"""What every session said, read once more from its retained transcripts, as ingestion reads them (D23).

Everything is unpacked in memory and no copy is written (D20).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from memprov.core.records import SessionState
from memprov.core.writing import read_transcript
from memprov.errors import RefusedError
from memprov.shell.openclaw.layout import Layout
from memprov.shell.openclaw.reader import find_session_database, read_catalogue
from memprov.shell.openclaw.sessions import agent_of_key
from memprov.shell.openclaw.transcripts import (
    Messages,
    Record,
    archive_files,
    read_archive_row,
    read_file,
    read_window,
)
from memprov.shell.port import Spoken
from memprov.shell.sqlite import Access, Reader

__all__ = ["read_spoken"]


def read_spoken(layout: Layout, access: Access) -> tuple[Spoken, ...]:
    """What each window and archive says; the sessions of all agents that share the session store are among them."""
    sessions = read_catalogue(layout, access)
    directories = layout.sessions.archive_directories
    windows = {(r.agent_id, r.session_id): None for r in sessions.records if r.state is not SessionState.ARCHIVED}
    database, owner = find_session_database(layout, access)

    def read(reader: Reader) -> tuple[Spoken, ...]:
        said = [_said(agent, name, partial(read_window, reader, name, directories)) for agent, name in windows]
        for row in sessions.archives:
            agent = agent_of_key(row.session_key) or owner
            said.append(_said(agent, row.session_id, partial(read_archive_row, reader, row), archived=True))
        return tuple(said)

    rows = {row.name for row in sessions.archives}
    files = [f for f in archive_files(directories, sessions.archives) if os.path.basename(f.path) not in rows]
    beside = (_said(layout.agent_id, f.session_id, partial(read_file, f.path), archived=True) for f in files)
    return (*access.read(database, read), *beside)


def _said(agent_id: str, session_id: str, records: Callable[[], Iterator[Record]], *, archived: bool = False) -> Spoken:
    messages = Messages(records())
    try:
        lines = read_transcript(tuple(messages), archived=archived).lines
    except RefusedError as error:
        return Spoken(agent_id, session_id, unread=str(error))
    lost = f"{messages.lost} of its lines could not be read" if messages.lost else ""
    unread = lost if messages.failure is None else str(messages.failure)
    return Spoken(agent_id, session_id, tuple(line.text for line in lines), unread)
