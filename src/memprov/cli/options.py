"""What every command is told: which store, whose memory, and in which form to answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, wraps

import click
from attrs import frozen

from memprov.cli.places import USUAL, StorePlace, find_place
from memprov.cli.printing import say_error
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

    @cached_property
    def place(self) -> StorePlace:
        """Which store is meant; one that was not named is announced, once. Raises ``InputError`` as ``find_place``."""
        found = find_place(self.store, self.openclaw, os.environ, os.path.isdir)
        if self.workspace is not None and not self.workspace.strip():
            raise InputError("--workspace is blank")
        if self.session_store is not None and not found.openclaw:
            raise InputError("--session-store is of OpenClaw installations: it goes with --openclaw, not with --store")
        if found.led_by:
            say_error(found.announcement)
        return found

    def open(self) -> ProvableStore:
        """The store, with its workspace. Raises ``InputError`` as ``place`` does, and what opening it raises."""
        directory = self.place.directory
        if self.place.openclaw:
            return open_openclaw(directory, self.agent, self.workspace, self.session_store)
        return open_store(directory, self.agent, self.workspace, create=False)

    def agents(self) -> tuple[AgentRoster, ...]:
        """Every agent of the place; no workspace need be there."""
        directory = self.place.directory
        return openclaw_agents(directory, self.session_store) if self.place.openclaw else store_agents(directory)

    def roster(self) -> AgentRoster:
        """The agent and its sessions; no workspace need be there."""
        directory = self.place.directory
        if self.place.openclaw:
            return openclaw_roster(directory, self.agent, self.session_store)
        return store_roster(directory, self.agent)


_PLACE = (
    click.option("--session-store", metavar="PATH", help="Read sessions here, not where session.store leads."),
    click.option(
        "--openclaw",
        metavar="[STATE_DIR]",
        is_flag=False,
        flag_value=USUAL,
        help="An OpenClaw installation: its state directory, or without a value the one in the usual place.",
    ),
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
