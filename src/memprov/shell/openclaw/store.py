"""The OpenClaw store: the port of ``memprov.shell.port`` over a state directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from attrs import evolve, field, frozen

from memprov.core.purge import Mapper, PurgeIndex, PurgePlan, Selection
from memprov.core.records import Origin, SessionRecord, StoreIdentity, agent_id_of
from memprov.core.state import MemorySnapshot
from memprov.errors import SchemaError, StoreNotFoundError
from memprov.shell.database_file import require_writable
from memprov.shell.openclaw.answers import narrow_answers
from memprov.shell.openclaw.layout import Layout, read_config, resolve_place
from memprov.shell.openclaw.ledger import VectorLoader, check_index
from memprov.shell.openclaw.lock import held
from memprov.shell.openclaw.reader import (
    find_session_database,
    read_catalogue,
    read_snapshot,
    with_recorded_spelling,
)
from memprov.shell.openclaw.receipts import read_receipt_log, receipts_beside
from memprov.shell.openclaw.selecting import named_origins, read_beginnings, read_neighbours
from memprov.shell.openclaw.spoken import read_spoken
from memprov.shell.openclaw.writer import OpenClawWriter
from memprov.shell.port import Answering, Neighbours, ReceiptLog, Spoken, Writer
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.sqlite import Access, QuietAccess, WaitingAccess
from memprov.shell.vectors.sqlite_vec import load_sqlite_vec
from memprov.shell.workspace import CALLS, Calls, settle

__all__ = ["OpenClawStore", "open_openclaw"]


@frozen
class OpenClawStore:
    """One agent of an OpenClaw installation and its workspace.

    ``open_openclaw`` makes one. What it holds is its own: its clock and system calls are arguments for tests alone.
    """

    _layout: Layout
    _clock: Callable[[], float] = field(default=time.time, repr=False)
    _sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _load_vectors: VectorLoader = field(default=load_sqlite_vec, repr=False)
    _calls: Calls = field(default=CALLS, repr=False)
    #: the sessions as they were last read, for as long as they stand
    _known: Remembered = field(factory=Remembered, repr=False, eq=False)
    _reads: Callable[[Callable[[float], None]], Access] = field(default=QuietAccess, repr=False)

    def about_to_write(self) -> OpenClawStore:
        """The same store, read by who is going to write: beside a busy writer it waits and is not refused (F41)."""
        return evolve(self, reads=WaitingAccess)

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""
        return self._layout.identity

    def catalogue(self) -> tuple[SessionRecord, ...]:
        """Every session that the agent's session store knows, archives included; in a shared store, of all agents."""
        return read_catalogue(self._layout, self._reads(self._sleep), self._known).records

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:
        """The agent's origin rows that carry one of these names as their session key or entry key."""
        return named_origins(self._layout, self._reads(self._sleep), names)

    def began(self, session_ids: Collection[str]) -> dict[str, int]:
        """When these archived sessions began, as their transcripts say; nothing is unpacked to disk (D20)."""
        return read_beginnings(self._layout, self._reads(self._sleep), session_ids)

    def neighbours(self) -> Neighbours:
        """The sessions of the other agents of this installation."""
        return read_neighbours(self._layout, self._reads(self._sleep))

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        """Read the memory of this agent and workspace, changing no byte (I3)."""
        return read_snapshot(self._layout, self._reads(self._sleep), selection, self._clock)

    def sessions_standing(self) -> object | None:
        """What is equal only while no agent's database, and not the session database, changed."""
        config = self._layout.config
        agents = (config.agent_database(agent).path for agent in config.agents())
        return standing_of([self._layout.sessions.database, *agents])

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        """What answers the questions of one plan, changing no byte (I3)."""
        return narrow_answers(
            self._layout,
            self._reads(self._sleep),
            selection,
            self._clock(),
            mapper,
            self._calls,
            remembered,
            self._known,
        )

    def spoken(self) -> tuple[Spoken, ...]:
        """What the retained transcripts say, read as ingestion reads them, in memory (D20, D23)."""
        return read_spoken(self._layout, self._reads(self._sleep))

    def receipt_log(self) -> ReceiptLog:
        """The receipts of this agent, read without a trace."""
        return read_receipt_log(receipts_beside(self._layout.config.agent_database(self._layout.agent_id).path))

    def refusal(self, plan: PurgePlan) -> str:
        """Why this plan could not be carried out from here, whoever holds the lock: an extension that cannot be loaded,
        say. Empty when nothing is known against it. A preview reads without the extension, and so is no proof.
        """
        database = self._layout.config.agent_database(self._layout.agent_id)
        try:
            for effect in plan.effects:
                if isinstance(effect, PurgeIndex):
                    check_index(database, QuietAccess(self._sleep), effect, self._load_vectors)
        except SchemaError as error:
            return str(error)
        return ""

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[Writer]:
        """Hold the workspace lock (D12, D19). Raises ``LockHeldError``; ``SchemaError`` before anything is written."""
        config, place = self._layout.config, self._layout.place
        for database in (config.agent_database(place.agent_id), config.shared_database):
            require_writable(database.path, database.name)
            WaitingAccess(self._sleep).read(database, lambda _: None)
        lock = held(config.shared_database, place.keys, clock=self._clock, sleep=self._sleep, break_lock=break_lock)
        with lock as lease:
            settle(place.workspace, calls=self._calls)
            yield OpenClawWriter(self._layout, lease, self._clock, self._load_vectors, self._calls, self._known)


def open_openclaw(
    state_dir: str | os.PathLike[str],
    agent_id: str = "main",
    workspace: str | os.PathLike[str] | None = None,
    session_store: str | None = None,
) -> OpenClawStore:
    """Open an OpenClaw state directory for one agent.

    ``workspace`` says where the workspace's files are when the state directory was copied from elsewhere; state rows
    are still found through the configured path. ``session_store`` overrides ``session.store`` of ``openclaw.json``.

    Raises ``StoreNotFoundError`` for a directory, agent, database or workspace that is not there.
    """
    agent_id = agent_id_of(agent_id)
    config = read_config(state_dir)
    if os.path.isfile(os.path.join(config.state_dir, "agents", agent_id, "ledger.sqlite")):
        raise StoreNotFoundError(f"{config.state_dir} is a store of memprov's own; open it with open_store (--store)")
    place = resolve_place(config, agent_id, workspace)
    for database in (config.agent_database(agent_id), config.shared_database):
        if not os.path.isfile(database.path):
            raise StoreNotFoundError(f"there is no {database.name}")
    layout = Layout(config, place, config.sessions(agent_id, session_store))
    session_database, _ = find_session_database(layout, QuietAccess())
    if not os.path.isfile(session_database.path):
        raise StoreNotFoundError(
            f"there is no {session_database.name}, where session.store leads; pass session_store= if it is elsewhere"
        )
    return OpenClawStore(with_recorded_spelling(layout, QuietAccess()))
