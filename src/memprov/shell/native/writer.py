"""Carrying out effects, one by one, while the workspace lock is held.

An effect is one transaction on one ledger, or one replacement of one file. The purge's and the write path's go through
the same two connections, which see each other's work and nobody else's half-done.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import apsw
from attrs import define, evolve, field, frozen

from memprov.core.consolidation import SiblingEntries
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
from memprov.core.records import Origin, strings
from memprov.core.state import IngestState, MemorySnapshot
from memprov.core.text import digest
from memprov.core.writing import (
    AppendCorpus,
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    ReplaceText,
    RequireAdmitted,
    WriteEffect,
    append_lines,
    replaced_text,
)
from memprov.errors import InputError, PartialError, RefusedError
from memprov.shell.cells import is_storable, text
from memprov.shell.database_file import SameFile
from memprov.shell.erase import erase_connection, fold_log, held_back
from memprov.shell.native import ledger as agent
from memprov.shell.native.answers import narrow_answers
from memprov.shell.native.curated import relink
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.ingestion import read_ingest_state
from memprov.shell.native.layout import Layout
from memprov.shell.native.reader import QuietReading, read_place, read_siblings, read_snapshot
from memprov.shell.native.receipts import append_receipt
from memprov.shell.native.state_writer import apply_shared
from memprov.shell.native.transcripts import Followed, mark_followed
from memprov.shell.port import Answering
from memprov.shell.remembering import Remembered
from memprov.shell.sqlite import explained
from memprov.shell.statements import roll_back, transaction
from memprov.shell.vectors.mirror import purge_mirror, reflect
from memprov.shell.workspace import Calls, cut_file, remove_file, require_replaceable
from memprov.shell.workspace.publish import publish

__all__ = ["NativeWriter", "writing"]

T = TypeVar("T")


@frozen
class _Connected:
    """The two ledgers through the connections that write them, and all others without a trace."""

    layout: Layout
    ledger: apsw.Connection
    shared: apsw.Connection
    quiet: QuietReading

    def read(self, file: LedgerFile, use: Callable[[apsw.Connection], T]) -> T:
        """Read one of the two ledgers through the connection that writes it, and others without a trace."""
        for own, connection in ((self.layout.ledger, self.ledger), (self.layout.shared, self.shared)):
            if file == own:
                with explained(file.database, "reading"):
                    connection.execute("BEGIN")
                    try:
                        return use(connection)
                    finally:
                        roll_back(connection)
        return self.quiet.read(file, use)

    def exists(self, file: LedgerFile) -> bool:
        """Whether a ledger was made."""
        return self.quiet.exists(file)


@define(eq=False)
class NativeWriter:
    """The store while its lock is held. ``apply`` is for a purge, as the port says, ``write`` for all else."""

    _layout: Layout
    _ledger: apsw.Connection
    _shared: apsw.Connection
    _clock: Callable[[], float]
    _quiet: QuietReading
    _calls: Calls
    _files: tuple[SameFile, ...]
    erasures: list[Erasure] = field(factory=list)
    #: what both ledgers were marked with by this purge
    generation: str = ""

    def stand_at(self, now_ms: int) -> None:
        """Stop the clock at one moment: all that is stamped from now on is of that time."""
        self._clock = lambda: now_ms / 1000

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:  # noqa: ARG002  # transcripts are the host's
        """As ``NativeStore.snapshot``, under the lock."""
        return read_snapshot(self._layout, self._access, self._clock, self._calls)

    def answering(
        self,
        selection: Selection,  # noqa: ARG002  # transcripts are the host's
        mapper: Mapper = map,
        remembered: Remembered | None = None,
    ) -> Answering:
        """As ``NativeStore.answering``, under the lock."""
        return narrow_answers(self._layout, self._access, self._clock(), mapper, self._calls, remembered)

    def ingest_state(self, session_ids: Iterable[str] | None = None) -> IngestState:
        """As ``NativeStore.ingest_state``, under the lock."""
        return read_ingest_state(self._layout, self._access, session_ids, self._calls)

    def origins_of(self, entry_keys: Iterable[str]) -> tuple[Origin, ...]:
        """As ``NativeStore.origins_of``, under the lock."""
        with explained(self._layout.ledger.database, "reading"):
            return tuple(agent.origins_of(self._ledger, strings(entry_keys), self._layout.agent_id))

    def siblings(self, entry_keys: Iterable[str]) -> tuple[SiblingEntries, ...]:
        """As ``NativeStore.siblings``, under the lock."""
        return read_siblings(self._layout, self._access, strings(entry_keys))

    def admit(self, effects: tuple[PurgeEffect, ...]) -> None:
        """Refuse, before any write, what could not be carried out."""
        require_replaceable(self._layout.workspace, effects)
        for effect in effects:
            if isinstance(effect, RecordTombstones | DropOrigins):
                self._require_own(effect.agent_id)
            if isinstance(effect, RecordTombstones):
                for session_id in effect.session_ids:
                    if not is_storable(session_id):
                        raise RefusedError(f"the session id {session_id!r} is no valid text, so no ledger can hold it")

    def apply(self, effect: PurgeEffect, basis: Basis) -> bool:
        """Carry out one effect of a purge, durably; see ``memprov.shell.port.Writer``."""
        try:
            self._require_same()
            match effect:
                case RecordTombstones() | PurgeIndex():
                    with explained(self._layout.ledger.database, "writing"):
                        if isinstance(effect, RecordTombstones):
                            self._require_own(effect.agent_id)
                            recorded = agent.record_tombstones(self._ledger, effect, basis, self._now_ms())
                            if recorded:
                                self._mark()
                            return recorded
                        # A copy of the vectors first: what it held beyond the ledger, nobody would look for again.
                        purge_mirror(self._layout.ledger.path, self._ledger, effect.chunk_ids)
                        done = agent.purge_index(self._ledger, effect, basis)
                        reflect(self._layout.ledger.path, self._ledger)
                        return done
                case Erase():
                    self.erasures.append(self._erase())
                case CutFile():
                    self._cut(effect)
                case RemoveFile():
                    remove_file(self._layout.workspace, effect, calls=self._calls)
                case _:
                    self._write(effect)
        except RefusedError as error:  # it is too late to refuse
            raise PartialError(str(error)) from error
        return True

    def write(self, effect: WriteEffect) -> None:
        """Carry out one effect of the write path, durably. Doing it again changes nothing.

        Raises ``StaleStateError`` at a fence that is closed by now, ``ConflictError`` for a file that is not the
        expected one, ``PublicationError`` (a ``PartialError`` that knows what became of the file) when the system
        refuses to write one, ``PartialError`` when a ledger cannot be changed, ``InputError`` for an effect that no
        store could carry out.
        """
        try:
            self._write(effect)
        except UnicodeEncodeError as error:
            raise InputError(f"a key or id of {type(effect).__name__} is no valid text") from error

    def mark_followed(self, purpose: Followed, marks: Mapping[str, str]) -> None:
        """Note under which marks (``NativeStore.unfollowed``) sessions were followed to their end."""
        with explained(self._layout.ledger.database, "writing"):
            mark_followed(self._ledger, purpose, marks)

    def mark_unfollowed(self) -> None:
        """Have every transcript read again by the next sweep."""
        with explained(self._layout.ledger.database, "writing"):
            self._ledger.execute("UPDATE transcripts SET ingested = NULL WHERE ingested IS NOT NULL")

    def _write(self, effect: WriteEffect | PurgeEffect) -> None:
        match effect:
            case RequireAdmitted():
                self._access.read(self._file_of(effect.agent_id), lambda ledger: agent.require_admitted(ledger, effect))
            case RecordOrigins():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.record_origins(connection, effect)
            case ReleaseOrigins():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.release_origins(connection, effect)
            case DropOrigins():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.drop_origins(connection, effect)
            case PruneOrigins():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.prune_origins(connection, effect)
            case RecordTransfers():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.record_transfers(connection, effect, self._now_ms())
            case ReleaseTransfers():
                with self._ledger_of(effect.agent_id) as connection:
                    agent.release_transfers(connection, effect)
            case AppendCorpus():
                publish(self._layout.workspace, effect.path, lambda now: append_lines(now, effect), calls=self._calls)
            case ReplaceText():
                publish(self._layout.workspace, effect.path, lambda now: replaced_text(now, effect), calls=self._calls)
                if effect.before is not None:  # only now: an attempt that failed may never be made again
                    self._relink((effect.path,), effect.before, digest(effect.text))
            case RecordTombstones() | PurgeIndex() | CutFile() | RemoveFile() | Erase():
                raise InputError(f"{type(effect).__name__} belongs to a purge")
            case _:
                with explained(self._layout.shared.database, "writing"):
                    apply_shared(self._shared, effect, self._layout.agent_id, self._now_ms())

    def attest(self, draft: Receipt, session_ids: tuple[str, ...]) -> Receipt:
        """Append the draft to the receipts, sealed and durable."""
        self._require_same()
        with explained(self._layout.ledger.database, "writing"):
            return append_receipt(self._ledger, evolve(draft, issued_at_ms=self._now_ms()), session_ids)

    def held_back(self) -> tuple[str, ...]:
        """Fold both logs in; what a reader keeps from that, in sentences (F46)."""
        return tuple(
            held_back(file.database.name)
            for file, connection in self._ledgers
            if not fold_log(connection, connection.set_busy_timeout)
        )

    @property
    def _ledgers(self) -> tuple[tuple[LedgerFile, apsw.Connection], ...]:
        return (self._layout.ledger, self._ledger), (self._layout.shared, self._shared)

    def _mark(self) -> None:
        """Mark both ledgers with a new generation: an older state of one that takes its place is known by that."""
        generation = secrets.token_hex(16)
        for file, connection in self._ledgers:
            with explained(file.database, "writing"), transaction(connection):
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('generation', ?)", (generation,))
        self.generation = generation

    def _require_same(self) -> None:
        """Both ledgers are the files that this work began with, as it left them. Raises ``PartialError`` (F44)."""
        for file in self._files:
            file.require()
        for ledger, connection in self._ledgers if self.generation else ():
            with explained(ledger.database, "writing"):
                rows = connection.execute("SELECT value FROM meta WHERE name = 'generation'")
                now = next((text(row[0]) for row in rows), "")
            if now != self.generation:
                raise PartialError(
                    f"{ledger.database.name} was set back to another state while work on it was under way"
                )

    @property
    def _access(self) -> _Connected:
        return _Connected(self._layout, self._ledger, self._shared, self._quiet)

    def _erase(self) -> Erasure:
        """Both ledgers. What a LanceDB copy held has left it when its rows were deleted."""
        done = Erasure()
        for file, connection in ((self._layout.ledger, self._ledger), (self._layout.shared, self._shared)):
            done += erase_connection(connection, file.schema.title, lambda _: True)
        return done

    def _cut(self, effect: CutFile) -> None:
        # The record first: killed in between, the file is cut by the next run, and the chain is whole again.
        self._relink((effect.path, *effect.aliases), effect.before, effect.after)
        cut_file(self._layout.workspace, effect, calls=self._calls)

    def _relink(self, paths: tuple[str, ...], before: str, after: str) -> None:
        with explained(self._layout.shared.database, "writing"), transaction(self._shared):
            relink(self._shared, paths, before, after)

    @contextmanager
    def _ledger_of(self, agent_id: str) -> Iterator[apsw.Connection]:
        """The ledger of this agent, or of one that shares the workspace: a merge hands on the origins of all."""
        if agent_id == self._layout.agent_id:
            with explained(self._layout.ledger.database, "writing"):
                yield self._ledger
            return
        file = self._file_of(agent_id)
        with file.writing() as connection, explained(file.database, "writing"):
            if read_place(connection) != self._layout.place:
                raise InputError(f"agent {agent_id!r} does not share the workspace {self._layout.workspace}")
            yield connection

    def _file_of(self, agent_id: str) -> LedgerFile:
        if agent_id not in (self._layout.agent_id, *self._layout.other_agents()):
            raise InputError(f"there is no agent {agent_id!r} in {self._layout.directory}")
        return self._layout.ledger_of(agent_id)

    def _require_own(self, agent_id: str) -> None:
        if agent_id != self._layout.agent_id:
            raise InputError(f"the plan is for agent {agent_id!r}, the store for {self._layout.agent_id!r}")

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


@contextmanager
def writing(layout: Layout, clock: Callable[[], float], quiet: QuietReading, calls: Calls) -> Iterator[NativeWriter]:
    """A writer over both ledgers, brought up to date. The caller holds the lock."""
    with ExitStack() as stack:
        ledger = stack.enter_context(layout.ledger.writing())
        shared = stack.enter_context(layout.shared.writing())
        files = tuple(SameFile.at(os.path.realpath(f.path), f.database.name) for f in (layout.ledger, layout.shared))
        yield NativeWriter(layout, ledger, shared, clock, quiet, calls, files)
