"""What a selection asks of an embedded store beside its catalogue."""

from __future__ import annotations

from functools import partial

import apsw

from memprov.core.records import Origin, SessionRecord
from memprov.errors import RefusedError
from memprov.shell.cells import integer, text
from memprov.shell.native.layout import Layout
from memprov.shell.native.reader import Access
from memprov.shell.native.sessions import read_sessions
from memprov.shell.port import Neighbours
from memprov.shell.statements import batches

__all__ = ["named_origins", "read_neighbours"]


def named_origins(connection: apsw.Connection, agent_id: str, names: tuple[str, ...]) -> tuple[Origin, ...]:
    """The origin rows that carry one of these names as their session key or entry key."""
    found: dict[Origin, None] = {}
    for batch in batches(names):
        for column in ("session_key", "entry_key"):
            rows = connection.execute(
                "SELECT entry_key, session_id, session_key, origin_class, observed_at_ms FROM origins "
                f"WHERE {column} IN (SELECT value FROM json_each(?)) ORDER BY 1, 2",
                (batch,),
            )
            for key, session, name, kind, at in rows:
                known = None if name is None else text(name)
                found[Origin(text(key), agent_id, text(session), known, text(kind), integer(at))] = None
    return tuple(found)


def read_neighbours(layout: Layout, access: Access) -> Neighbours:
    """The sessions of the other agents of the store."""
    sessions: list[SessionRecord] = []
    unread: list[str] = []
    for agent_id in layout.other_agents():
        file = layout.ledger_of(agent_id)
        try:
            if access.exists(file):
                sessions += access.read(file, partial(read_sessions, agent_id=agent_id))
        except RefusedError as error:
            unread.append(f"whether agent {agent_id!r} knows the sessions that were named could not be read: {error}")
    return Neighbours(tuple(sessions), tuple(unread))
