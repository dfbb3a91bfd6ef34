"""What every command is told: which store, whose memory, and in which form to answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import click
from attrs import frozen

from memprov.core.records import AgentRoster
from memprov.errors import InputError
from memprov.shell.native import open_store, store_agents, store_roster
from memprov.shell.openclaw import open_openclaw, openclaw_agents, openclaw_roster
from memprov.shell.port import ProvableStore

__all__ = ["Command", "StoreOptions", "json_option", "place_options", "store_options"]

Command = Callable[..., None]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
"""Every command that answers can answer in JSON."""


@frozen
class StoreOptions:
    """Which store a command is about, as it was named."""

    store: str | None
    openclaw: str | None
    session_store: str | None
    agent: str = "main"
    workspace: str | None = None

    def open(self) -> ProvableStore:
        """The store. Raises ``InputError`` for none or two, and for a blank place."""
        self._check()
        if self.openclaw is not None:
            return open_openclaw(self.openclaw, self.agent, self.workspace, self.session_store)
        return open_store(self.store or "", self.agent, self.workspace, create=False)

    def agents(self) -> tuple[AgentRoster, ...]:
        """Every agent of the place; no workspace need be there. Raises ``InputError`` as ``open`` does."""
        self._check()
        if self.openclaw is not None:
            return openclaw_agents(self.openclaw, self.session_store)
        return store_agents(self.store or "")

    def roster(self) -> AgentRoster:
        """The agent and its sessions; no workspace need be there. Raises ``InputError`` as ``open`` does."""
        self._check()
        if self.openclaw is not None:
            return openclaw_roster(self.openclaw, self.agent, self.session_store)
        return store_roster(self.store or "", self.agent)

    def _check(self) -> None:
        if (self.store is None) == (self.openclaw is None):
            raise InputError("name one store: --store DIR or --openclaw STATE_DIR")
        places = (("--store", self.store), ("--openclaw", self.openclaw), ("--workspace", self.workspace))
        for option, value in places:
            if value is not None and not value.strip():
                raise InputError(f"{option} is blank")
        if self.openclaw is None and self.session_store is not None:
            raise InputError("--session-store is of OpenClaw installations: it goes with --openclaw, not with --store")


_PLACE = (
    click.option("--session-store", metavar="PATH", help="Read sessions here, not where session.store leads."),
    click.option("--openclaw", metavar="STATE_DIR", help="The state directory of an OpenClaw installation."),
    click.option("--store", metavar="DIR", help="memprov's own store."),
)
_MEMORY = (
    click.option("--workspace", metavar="DIR", help="Where the workspace's files are, if they were moved."),
    click.option("--agent", metavar="ID", default="main", show_default=True, help="Whose memory."),
)


def place_options(command: Command) -> Command:
    """Give a command the options that name a place, of all its agents; it is called with ``place``."""

    @wraps(command)
    def called(store: str | None, openclaw: str | None, session_store: str | None, **others: object) -> None:
        command(StoreOptions(store, openclaw, session_store), **others)

    for option in _PLACE:
        called = option(called)
    return called


def store_options(command: Command) -> Command:
    """Give a command the options that name a store; it is called with ``place``, a ``StoreOptions``."""

    @wraps(command)
    def called(
        store: str | None,
        openclaw: str | None,
        session_store: str | None,
        agent: str,
        workspace: str | None,
        **others: object,
    ) -> None:
        command(StoreOptions(store, openclaw, session_store, agent, workspace), **others)

    for option in (*_MEMORY, *_PLACE):
        called = option(called)
    return called
