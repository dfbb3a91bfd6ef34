"""The agents of an embedded store and their sessions, without their workspaces: enough to find one."""

from __future__ import annotations

import os
import time

import apsw

from memprov.core.records import AgentRoster, agent_id_of, roster_of
from memprov.errors import RefusedError, StoreNotFoundError
from memprov.shell.cells import integer
from memprov.shell.native.layout import Layout, is_openclaw_state
from memprov.shell.native.reader import QuietReading, read_place
from memprov.shell.native.sessions import forgotten_ids, read_sessions

__all__ = ["store_agents", "store_roster"]


def store_agents(directory: str | os.PathLike[str]) -> tuple[AgentRoster, ...]:
    """The agents of the embedded store in a directory, by id, read without a trace (I3); no workspace need be there.

    An agent whose ledger cannot be read says so in ``unread``. Raises ``StoreNotFoundError`` where there is no store.
    """
    top = os.path.realpath(os.fspath(directory))
    agents = Layout(top, "", "", "").other_agents()
    if not agents:
        raise StoreNotFoundError(_nothing_in(top))
    return tuple(_read_or_excused(top, agent) for agent in agents)


def store_roster(directory: str | os.PathLike[str], agent_id: str) -> AgentRoster:
    """One agent of the embedded store. Raises ``StoreNotFoundError``, and ``RefusedError`` for a ledger that cannot be
    read.
    """
    top, agent = os.path.realpath(os.fspath(directory)), agent_id_of(agent_id)
    known = Layout(top, "", "", "").other_agents()
    if agent not in known:
        raise StoreNotFoundError(
            f"there is no store of agent {agent} in {top}; it has {', '.join(known)}" if known else _nothing_in(top)
        )
    return _read(top, agent)


def _nothing_in(top: str) -> str:
    if is_openclaw_state(top):
        return f"{top} is the state directory of an OpenClaw installation; name it with --openclaw"
    return f"there is no store in {top}"


def _read_or_excused(top: str, agent: str) -> AgentRoster:
    try:
        return _read(top, agent)
    except RefusedError as error:
        return AgentRoster(agent, "", unread=str(error))


def _read(top: str, agent: str) -> AgentRoster:
    def read(connection: apsw.Connection) -> AgentRoster:
        moments = [integer(row[0]) for row in connection.execute("SELECT updated_at_ms FROM sessions")]
        place = os.path.realpath(os.path.join(top, read_place(connection)))
        return roster_of(agent, place, read_sessions(connection, agent), forgotten_ids(connection), moments)

    return QuietReading(time.sleep).read(Layout(top, agent, "", "").ledger, read)
