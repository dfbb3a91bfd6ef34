"""Where an embedded store keeps things below its one directory.

::

    agents/<agent>/ledger.sqlite    what is one agent's
    shared/<key>/ledger.sqlite      what belongs to a workspace, for all agents that use it
    shared/<key>/lock               held by whoever changes that workspace
    workspace/                      the Markdown files, unless another place was named

A workspace is its real path (D12). It is remembered relative to the directory, wherever it lies, so that both may be
moved or copied together, and a copy never reaches back into the original. ``<key>`` is a digest of that.
"""

from __future__ import annotations

import hashlib
import os
import re

from attrs import frozen

from memprov.core.records import StoreIdentity
from memprov.core.text import to_bytes, to_text
from memprov.shell.native.database import LedgerFile, sync_directory
from memprov.shell.native.schema import AGENT_LEDGER, SHARED_LEDGER, Schema

__all__ = ["DEFAULT_WORKSPACE", "Layout", "is_openclaw_state", "make_private", "relative_place"]

DEFAULT_WORKSPACE = "workspace"
_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PRIVATE = 0o700


@frozen
class Layout:
    """One agent of a store. ``directory`` and ``workspace`` are real paths; ``place`` is the remembered workspace.

    The two differ where the directory was copied without its workspace and the caller said where the files are.
    """

    directory: str
    agent_id: str
    workspace: str
    place: str
    agent_schema: Schema = AGENT_LEDGER
    shared_schema: Schema = SHARED_LEDGER

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""
        return StoreIdentity("memprov", self.agent_id, self.directory, self.workspace)

    @property
    def ledger(self) -> LedgerFile:
        """The agent's ledger."""
        return self.ledger_of(self.agent_id)

    @property
    def shared(self) -> LedgerFile:
        """The ledger of the workspace."""
        return LedgerFile(os.path.join(self.shared_directory, "ledger.sqlite"), self.shared_schema)

    @property
    def lock(self) -> str:
        """The file that stands for the workspace among processes."""
        return os.path.join(self.shared_directory, "lock")

    @property
    def shared_directory(self) -> str:
        """Where the state of the workspace is."""
        return os.path.join(self.directory, "shared", hashlib.sha256(to_bytes(self.place)).hexdigest()[:32])

    def ledger_of(self, agent_id: str) -> LedgerFile:
        """Any agent's ledger."""
        return LedgerFile(os.path.join(self.directory, "agents", agent_id, "ledger.sqlite"), self.agent_schema)

    def other_agents(self) -> tuple[str, ...]:
        """Every other agent that has a ledger here, sorted."""
        try:
            names = os.listdir(os.path.join(self.directory, "agents"))
        except FileNotFoundError:
            return ()
        known = (name for name in names if _AGENT_ID.fullmatch(name) and name != self.agent_id)
        return tuple(sorted(name for name in known if os.path.isfile(self.ledger_of(name).path)))


def is_openclaw_state(directory: str) -> bool:
    """Whether a directory is what OpenClaw keeps its state in, and no place for a store of memprov's own."""
    names = ("openclaw.json", os.path.join("state", "openclaw.sqlite"))
    return any(os.path.isfile(os.path.join(directory, name)) for name in names)


def relative_place(directory: str, workspace: str) -> str:
    """How a workspace is remembered: its real path as seen from the real directory."""
    return to_text(os.fsencode(os.path.relpath(workspace, directory)))


def make_private(path: str) -> None:
    """Make a directory, and those above it, for its owner alone and durably; what is there is left as it is."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        try:
            os.mkdir(directory, _PRIVATE)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise
        sync_directory(os.path.dirname(directory))
