"""What a selection asks of an OpenClaw installation beside the agent's own catalogue."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from attrs import evolve

from memprov.core.records import Origin, SessionRecord
from memprov.core.text import json_text
from memprov.errors import RefusedError
from memprov.shell.cells import integer, text
from memprov.shell.openclaw.layout import Layout
from memprov.shell.openclaw.origins import ORIGINS
from memprov.shell.openclaw.reader import find_session_database, read_catalogue
from memprov.shell.openclaw.sessions import agent_of_key
from memprov.shell.openclaw.transcripts import Record, archive_files, read_archive_row, read_file
from memprov.shell.openclaw.values import milliseconds
from memprov.shell.port import Neighbours
from memprov.shell.sqlite import Access, Reader

__all__ = ["named_origins", "read_beginnings", "read_neighbours"]


def named_origins(layout: Layout, access: Access, names: Iterable[str]) -> tuple[Origin, ...]:
    """The agent's origin rows that carry one of these names as their session key or entry key."""
    listed = json_text(list(names))

    def read(reader: Reader) -> tuple[Origin, ...]:
        rows = reader.rows(
            ORIGINS,
            "entry_key session_id session_key origin_class observed_at agent_id",
            where="WHERE +agent_id = ? AND (session_key IN (SELECT value FROM json_each(?)) "
            "OR entry_key IN (SELECT value FROM json_each(?))) ORDER BY entry_key, session_id",
            bindings=(layout.agent_id, listed, listed),
        )
        return tuple(
            Origin(
                text(key), layout.agent_id, text(session), None if name is None else text(name), text(kind), integer(at)
            )
            for key, session, name, kind, at, _ in rows
        )

    return access.read(layout.config.agent_database(layout.agent_id), read)


def read_beginnings(layout: Layout, access: Access, session_ids: Collection[str]) -> dict[str, int]:
    """When these archived sessions began, by the first time in their transcripts; without those that do not say it."""
    wanted = frozenset(session_ids)
    database, owner = find_session_database(layout, access)
    archives = [
        archive
        for archive in read_catalogue(layout, access).archives
        if archive.session_id in wanted and (agent_of_key(archive.session_key) or owner) == layout.agent_id
    ]
    found: dict[str, int] = {}

    def note(session_id: str, records: Iterator[Record]) -> None:
        try:
            moment = next((at for record in records if record and (at := milliseconds(record.get("timestamp")))), None)
        except (OSError, RefusedError):  # the resolution says that its own time is not known
            return
        if moment is not None:
            found[session_id] = min(moment, found.get(session_id, moment))

    def read(reader: Reader) -> None:
        for archive in archives:
            note(archive.session_id, read_archive_row(reader, archive))

    access.read(database, read)
    for file in archive_files(layout.sessions.archive_directories, archives):
        if file.session_id in wanted and (file.session_id in {a.session_id for a in archives}):
            note(file.session_id, read_file(file.path))
    return found


def read_neighbours(layout: Layout, access: Access) -> Neighbours:
    """The sessions of the installation's other agents."""
    sessions: list[SessionRecord] = []
    unread: list[str] = []
    for agent_id in layout.config.agents():
        theirs = evolve(
            layout, place=evolve(layout.place, agent_id=agent_id), sessions=layout.config.sessions(agent_id)
        )
        if agent_id == layout.agent_id or not os.path.isfile(layout.config.agent_database(agent_id).path):
            continue
        try:
            records = read_catalogue(theirs, access).records
        except RefusedError as error:
            unread.append(f"whether agent {agent_id!r} knows the sessions that were named could not be read: {error}")
            continue
        sessions += (record for record in records if record.agent_id == agent_id)
    return Neighbours(tuple(sessions), tuple(unread))
