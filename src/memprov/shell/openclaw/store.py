"""The OpenClaw store: the port of ``memprov.shell.port`` over a state directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from attrs import field, frozen

from memprov.core.records import SessionRecord, StoreIdentity
from memprov.core.selection import Selection
from memprov.core.snapshot import MemorySnapshot
from memprov.errors import StoreNotFoundError
from memprov.shell.openclaw.config import read_config, resolve_place
from memprov.shell.openclaw.database import QuietAccess
from memprov.shell.openclaw.reader import Layout, read_catalogue, read_snapshot

__all__ = ["OpenClawStore", "open_openclaw"]


@frozen
class OpenClawStore:
    """One agent of an OpenClaw installation and its workspace."""

    layout: Layout
    clock: Callable[[], float] = field(default=time.time, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""
        return self.layout.identity

    def catalogue(self) -> tuple[SessionRecord, ...]:
        """Every session that the agent's session store knows, archives included; in a shared store, of all agents."""
        return read_catalogue(self.layout, QuietAccess(self.sleep)).records

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        """Read the memory of this agent and workspace, changing no byte (I3)."""
        return read_snapshot(self.layout, QuietAccess(self.sleep), selection, self.clock)


def open_openclaw(
    state_dir: str | os.PathLike[str],
    agent_id: str = "main",
    workspace: str | os.PathLike[str] | None = None,
    session_store: str | None = None,
) -> OpenClawStore:
    """Open an OpenClaw state directory for one agent.

    ``workspace`` says where the workspace's files are when the state directory was copied from elsewhere; state rows are
    still found through the configured path. ``session_store`` overrides ``session.store`` of ``openclaw.json``.

    Raises ``StoreNotFoundError`` for a directory, agent, database or workspace that is not there.
    """
    config = read_config(state_dir)
    place = resolve_place(config, agent_id, workspace)
    for database in (config.agent_database(agent_id), config.shared_database):
        if not os.path.isfile(database.path):
            raise StoreNotFoundError(f"there is no {database.name}")
    return OpenClawStore(Layout(config, place, config.sessions(agent_id, session_store)))
