"""Carrying out a plan's effects, one by one, while the workspace lock is held."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, field, frozen

from memprov.core.lineage import Basis
from memprov.core.proof import Erasure, Receipt
from memprov.core.purge import (
    CutFile,
    DropOrigins,
    Erase,
    Mapper,
    PurgeEffect,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    Selection,
)
from memprov.core.state import MemorySnapshot
from memprov.errors import InputError, PartialError, RefusedError
from memprov.shell.cells import is_storable
from memprov.shell.erase import erase_database, erase_stale_rebuilds
from memprov.shell.openclaw.answers import narrow_answers
from memprov.shell.openclaw.layout import Layout
from memprov.shell.openclaw.ledger import (
    VectorLoader,
    check_index,
    check_writable,
    drop_origins,
    purge_index,
    record_tombstones,
)
from memprov.shell.openclaw.lock import Lease
from memprov.shell.openclaw.origins import read_tombstones
from memprov.shell.openclaw.reader import read_snapshot
from memprov.shell.openclaw.receipts import append_receipt, receipts_beside
from memprov.shell.openclaw.state_writer import StateWriter
from memprov.shell.port import Answering
from memprov.shell.remembering import Remembered
from memprov.shell.sqlite import Database, OrdinaryAccess
from memprov.shell.workspace import Calls, cut_file, remove_file, require_replaceable

__all__ = ["OpenClawWriter"]


@frozen
class OpenClawWriter:
    """The store while its lock is held."""

    layout: Layout
    lease: Lease
    clock: Callable[[], float]
    load_vectors: VectorLoader
    calls: Calls
    known: Remembered
    erasures: list[Erasure] = field(factory=list)
    #: the databases as the files that they were when the lock was taken
    ledger: Database = field(init=False)
    shared: Database = field(init=False)
    #: what this purge recorded
    tombstones: set[str] = field(factory=set, init=False)

    @ledger.default
    def _ledger_held_fast(self) -> Database:
        return self.layout.config.agent_database(self.layout.agent_id).held_fast()

    @shared.default
    def _shared_held_fast(self) -> Database:
        return self.layout.config.shared_database.held_fast()

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        """As ``Store.snapshot``, under the lock; a busy writer elsewhere in the databases does not disturb it."""
        return read_snapshot(self.layout, OrdinaryAccess(), selection, self.clock)

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        """As ``Store.answering``, under the lock."""
        return narrow_answers(
            self.layout,
            OrdinaryAccess(),
            selection,
            self.clock(),
            mapper,
            self.calls,
            remembered,
            self.known,
        )

    def admit(self, effects: tuple[PurgeEffect, ...]) -> None:
        """Refuse, before any write, what could not be carried out."""
        require_replaceable(self.layout.place.workspace, effects)
        for effect in effects:
            if isinstance(effect, PurgeIndex):
                check_index(self.ledger, OrdinaryAccess(), effect, self.load_vectors)
            elif isinstance(effect, RecordTombstones):
                self._require_own_agent(effect.agent_id)
                check_writable(self.ledger)
                for session_id in effect.session_ids:
                    if not is_storable(session_id):
                        raise RefusedError(f"the session id {session_id!r} is no valid text, so no store can hold it")
            elif isinstance(effect, DropOrigins):
                self._require_own_agent(effect.agent_id)

    def apply(self, effect: PurgeEffect, basis: Basis) -> bool:
        """Carry out one effect, durably; see ``memprov.shell.port.Writer``."""
        self.lease.confirm()
        try:
            self._require_same()
            return self._apply(effect, basis)
        except RefusedError as error:  # it is too late to refuse
            raise PartialError(str(error)) from error

    def _apply(self, effect: PurgeEffect, basis: Basis) -> bool:
        layout, now_ms = self.layout, int(self.clock() * 1000)
        match effect:
            case RecordTombstones():
                recorded = record_tombstones(self.ledger, effect, basis, now_ms)
                if recorded:
                    self.tombstones.update(filter(is_storable, effect.session_ids))
                    self._state(now_ms).sweep()
                return recorded
            case PurgeIndex():
                return purge_index(self.ledger, effect, basis, layout.agent_id, self.load_vectors)
            case DropOrigins():
                drop_origins(self.ledger, effect)
            case Erase():
                self.erasures.append(self._erase())
            case CutFile():
                cut_file(layout.place.workspace, effect, calls=self.calls)
            case RemoveFile():
                remove_file(layout.place.workspace, effect, calls=self.calls)
            case _:
                self._state(now_ms).apply(effect)
        return True

    def attest(self, draft: Receipt, session_ids: tuple[str, ...]) -> Receipt:
        """Append the draft to the receipts, sealed and durable."""
        self.lease.confirm()
        self._require_same()
        stamped = evolve(draft, issued_at_ms=int(self.clock() * 1000))
        return append_receipt(receipts_beside(self.ledger.path), stamped, session_ids)

    def _erase(self) -> Erasure:
        """The agent's database and the shared one, and what killed rebuilds left beside the first."""
        done = erase_stale_rebuilds(self.ledger.path)
        for database in (self.ledger, self.shared):
            self.lease.confirm()
            done += erase_database(database.path, database.title, lambda table: table.startswith("memory_"))
        return done

    def _state(self, now_ms: int) -> StateWriter:
        return StateWriter(self.shared, tuple(sorted(self.layout.place.keys)), now_ms)

    def _require_same(self) -> None:
        """Both databases are the files that they were, and the agent's knows what this purge recorded: nothing is
        destroyed in a successor that does not (I4, F44). Raises ``PartialError``.
        """
        for database in (self.ledger, self.shared):
            if database.file is not None:
                database.file.require()
        if self.tombstones:
            agent_id = self.layout.agent_id
            known = OrdinaryAccess().read(self.ledger, lambda reader: read_tombstones(reader, agent_id))
            if not self.tombstones <= known:
                raise PartialError(f"{self.ledger.name} was set back to another state while work on it was under way")

    def _require_own_agent(self, agent_id: str) -> None:
        if agent_id != self.layout.agent_id:
            raise InputError(f"the plan is for agent {agent_id!r}, the store for {self.layout.agent_id!r}")
