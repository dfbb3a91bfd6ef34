"""The agents of an OpenClaw installation and their sessions, without their workspaces: enough to find one."""

from __future__ import annotations

import os

from memprov.core.records import AgentRoster, SessionState, agent_id_of, roster_of
from memprov.errors import RefusedError, StoreNotFoundError
from memprov.shell.openclaw.layout import Config, Layout, Place, read_config
from memprov.shell.openclaw.origins import read_tombstones
from memprov.shell.openclaw.reader import read_catalogue
from memprov.shell.sqlite import QuietAccess

__all__ = ["openclaw_agents", "openclaw_roster"]


def openclaw_agents(state_dir: str | os.PathLike[str], session_store: str | None = None) -> tuple[AgentRoster, ...]:
    """The agents of an OpenClaw installation, by id, read without a trace (I3); no workspace need be there.

    An agent whose databases are not there or cannot be read says so in ``unread``. ``session_store`` overrides
    ``session.store`` of ``openclaw.json``. Raises ``StoreNotFoundError`` where there is no installation.
    """
    config = _installation(state_dir)
    return tuple(_read_or_excused(config, agent, session_store) for agent in config.agents())


def openclaw_roster(state_dir: str | os.PathLike[str], agent_id: str, session_store: str | None = None) -> AgentRoster:
    """One agent of an installation. Raises ``StoreNotFoundError``, and ``RefusedError`` for a database that cannot be
    read.
    """
    config, agent = _installation(state_dir), agent_id_of(agent_id)
    known = config.agents()
    if agent not in known:
        raise StoreNotFoundError(
            f"unknown agent {agent!r} in {config.state_dir}; known agents: {', '.join(known) or 'none'}"
        )
    return _read(config, agent, session_store)


def _installation(state_dir: str | os.PathLike[str]) -> Config:
    config = read_config(state_dir)
    if os.path.isdir(os.path.join(config.state_dir, "shared")) and not os.path.isfile(config.shared_database.path):
        raise StoreNotFoundError(f"{config.state_dir} is a store of memprov's own; name it with --store")
    if not os.path.isfile(config.shared_database.path):
        raise StoreNotFoundError(f"{config.state_dir} holds no OpenClaw installation: no {config.shared_database.name}")
    return config


def _read_or_excused(config: Config, agent: str, session_store: str | None) -> AgentRoster:
    try:
        return _read(config, agent, session_store)
    except (RefusedError, StoreNotFoundError) as error:
        return AgentRoster(agent, config.workspace(agent), unread=str(error))


def _read(config: Config, agent: str, session_store: str | None) -> AgentRoster:
    workspace, access = config.workspace(agent), QuietAccess()
    layout = Layout(config, Place(agent, workspace, (workspace,), ()), config.sessions(agent, session_store))
    forgotten = access.read(config.agent_database(agent), lambda reader: read_tombstones(reader, agent))
    known = read_catalogue(layout, access)
    keys = {r.session_key for r in known.records if r.agent_id == agent and r.state is SessionState.LIVE}
    moments = [moment for key, moment in known.updated_ms.items() if key in keys]
    return roster_of(agent, workspace, known.records, forgotten, moments)
