"""What every command is told: which store, whose memory, and in which form to answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import click
from attrs import frozen

from memprov.errors import InputError
from memprov.shell.native import open_store
from memprov.shell.openclaw import open_openclaw
from memprov.shell.port import ProvableStore

__all__ = ["Command", "StoreOptions", "json_option", "store_options"]

Command = Callable[..., None]

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
"""Every command that answers can answer in JSON."""


@frozen
class StoreOptions:
    """Which store a command is about, as it was named."""

    store: str | None
    openclaw: str | None
    session_store: str | None
    agent: str
    workspace: str | None

    def open(self) -> ProvableStore:
        """The store. Raises ``InputError`` for none or two, and for a blank place."""
        if (self.store is None) == (self.openclaw is None):
            raise InputError("name one store: --store DIR or --openclaw STATE_DIR")
        places = (("--store", self.store), ("--openclaw", self.openclaw), ("--workspace", self.workspace))
        for option, value in places:
            if value is not None and not value.strip():
                raise InputError(f"{option} is blank")
        if self.openclaw is not None:
            return open_openclaw(self.openclaw, self.agent, self.workspace, self.session_store)
        if self.session_store is not None:
            raise InputError("--session-store is of OpenClaw installations: it goes with --openclaw, not with --store")
        return open_store(self.store or "", self.agent, self.workspace, create=False)


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

    for option in (
        click.option("--workspace", metavar="DIR", help="Where the workspace's files are, if they were moved."),
        click.option("--agent", metavar="ID", default="main", show_default=True, help="Whose memory."),
        click.option("--session-store", metavar="PATH", help="Read sessions here, not where session.store leads."),
        click.option("--openclaw", metavar="STATE_DIR", help="The state directory of an OpenClaw installation."),
        click.option("--store", metavar="DIR", help="memprov's own store."),
    ):
        called = option(called)
    return called
