"""The embedded store: memory with provenance in one directory, without a server.

It implements the port of ``memprov.shell.port``, so that whatever runs on an OpenClaw installation runs on it
unchanged. Besides, it is where a host records its sessions and the writes of their tools.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import apsw
from attrs import evolve, field, frozen

from memprov.core.consolidation import SiblingEntries
from memprov.core.purge import Mapper, Selection
from memprov.core.records import (
    ArtifactReason,
    Origin,
    OriginClass,
    SessionRecord,
    StoreIdentity,
    agent_id_of,
    capture_class,
    strings,
    weakest,
    writer_class,
)
from memprov.core.state import IngestState, MemorySnapshot
from memprov.core.text import to_bytes
from memprov.errors import CorruptStoreError, InputError, StoreNotFoundError
from memprov.shell.native import sessions as catalogue
from memprov.shell.native.answers import narrow_answers
from memprov.shell.native.curated import FileRecord, ObservedWrite, Writing, file_digest, memory_path, read_file_records
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.ingestion import read_ingest_state, read_progress
from memprov.shell.native.layout import (
    DEFAULT_WORKSPACE,
    Layout,
    is_openclaw_state,
    make_private,
    relative_place,
)
from memprov.shell.native.ledger import origins_of
from memprov.shell.native.lock import held
from memprov.shell.native.reader import QuietReading, read_place, read_siblings, read_snapshot, require_workspace
from memprov.shell.native.receipts import read_receipt_log
from memprov.shell.native.selecting import named_origins, read_neighbours
from memprov.shell.native.state import read_to_the_end
from memprov.shell.native.transcripts import Followed, unfollowed
from memprov.shell.native.writer import NativeWriter, writing
from memprov.shell.port import Answering, Neighbours, ReceiptLog, Spoken
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.sqlite import Access, QuietAccess, WaitingAccess, explained
from memprov.shell.workspace import CALLS, Calls, settle

__all__ = ["NativeStore", "embedded_only", "open_store"]

T = TypeVar("T")
P = ParamSpec("P")


@frozen
class NativeStore:
    """One agent of an embedded store and its workspace.

    ``open_store`` makes one. What it holds is its own: its clock and system calls are arguments for tests alone.
    """

    _layout: Layout
    _clock: Callable[[], float] = field(default=time.time, repr=False)
    _sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _calls: Calls = field(default=CALLS, repr=False)
    _reads: Callable[[Callable[[float], None]], Access] = field(default=QuietAccess, repr=False)

    def about_to_write(self) -> NativeStore:
        """The same store, read by who is going to write: beside a busy writer it waits and is not refused (F41)."""
        return evolve(self, reads=WaitingAccess)

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""
        return self._layout.identity

    def catalogue(self) -> tuple[SessionRecord, ...]:
        """Every session that was recorded, oldest first, each with the kind that it inherits."""
        return self._read(lambda connection: catalogue.read_sessions(connection, self._layout.agent_id))

    def unfollowed(
        self, purpose: Followed, basis: str, session_ids: Iterable[str] | None = None
    ) -> Mapping[str, str | None]:
        """The sessions, or those among these, that changed since they were followed to their end, with their marks.

        A session of which the host never says when it changed is always among them, and has no mark. Of the others,
        ``NativeWriter.mark_followed`` takes the mark. ``basis`` is whatever else the decision about a session rests on.
        """
        ids = None if session_ids is None else strings(session_ids)
        return self._read(lambda connection: unfollowed(connection, purpose, basis, ids))

    def sessions(self, session_ids: Iterable[str]) -> tuple[SessionRecord, ...]:
        """These sessions as the catalogue has them, those that it has."""
        ids = strings(session_ids)
        return self._read(lambda connection: catalogue.read_sessions(connection, self._layout.agent_id, ids))

    def unread_first(self, session_ids: Iterable[str]) -> tuple[str, ...]:
        """These sessions by id, those behind the others whose transcripts were once read to their end."""
        agent = self._layout.agent_id
        read = self._quiet.read(self._layout.shared, lambda connection: read_to_the_end(connection, agent))
        return tuple(sorted(strings(session_ids), key=lambda session_id: (session_id in read, session_id)))

    def holds_sessions(self) -> bool:
        """Whether any session was recorded."""
        return self._read(lambda connection: bool(list(connection.execute("SELECT 1 FROM sessions LIMIT 1"))))

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:
        """The agent's origin rows that carry one of these names as their session key or entry key."""
        return self._read(lambda connection: named_origins(connection, self._layout.agent_id, names))

    def began(self, session_ids: Collection[str]) -> dict[str, int]:  # noqa: ARG002  # transcripts are the host's
        """Nothing: what is known of a session's beginning is in its record."""
        return {}

    def neighbours(self) -> Neighbours:
        """The sessions of the other agents of this store."""
        return read_neighbours(self._layout, self._quiet)

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:  # noqa: ARG002  # transcripts are the host's
        """Read the memory of this agent and workspace, changing no byte (I3)."""
        return read_snapshot(self._layout, self._quiet, self._clock, self._calls)

    def sessions_standing(self) -> object | None:
        """What is equal only while no agent's ledger changed."""
        layout = self._layout
        return standing_of([layout.ledger.path, *(layout.ledger_of(agent).path for agent in layout.other_agents())])

    def answering(
        self,
        selection: Selection,  # noqa: ARG002  # transcripts are the host's
        mapper: Mapper = map,
        remembered: Remembered | None = None,
    ) -> Answering:
        """What answers the questions of one plan, changing no byte (I3)."""
        return narrow_answers(self._layout, self._quiet, self._clock(), mapper, self._calls, remembered)

    def spoken(self) -> tuple[Spoken, ...]:
        """Nothing: transcripts are the host's."""
        return ()

    def receipt_log(self) -> ReceiptLog:
        """The receipts of this agent, read without a trace."""
        return self._read(read_receipt_log)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[NativeWriter]:  # noqa: ARG002
        """Hold the workspace lock (D12, D19). Raises ``LockHeldError``; ``SchemaError`` before anything is written.

        The kernel holds this lock and gives it back when its holder dies: there is nothing for ``break_lock`` to break.
        """
        require_workspace(self._layout)
        waiting = QuietReading(self._sleep, WaitingAccess)
        for file in (self._layout.ledger, self._layout.shared):
            file.require_writable()
            waiting.read(file, lambda _: None)
        with held(self._layout.lock, clock=self._clock, sleep=self._sleep):
            settle(self._layout.workspace, calls=self._calls)
            with writing(self._layout, self._clock, self._quiet, self._calls) as writer:
                yield writer

    def record_session(self, session: SessionRecord) -> None:
        """Record a session, or what is newly known of it: what is not said changes nothing.

        ``None`` says nothing, participants accumulate, a kind only gets stricter, and the state of a session that is
        known is moved by ``rotate_session``, ``archive_session`` and ``restore_session`` alone.

        A forgotten session may be recorded; it stays excluded (B56). Raises ``InputError`` for what could not be
        selected later (B57), and for a second live session of one key, which takes ``rotate_session``.
        """
        session = catalogue.checked_record(session, self._layout.agent_id)
        self._write(lambda connection: catalogue.record(connection, session, self._now_ms()))

    def rotate_session(self, session: SessionRecord) -> tuple[str, ...]:
        """Record the next generation of a session key; returns the ids of those that it replaces, retained now."""
        session = catalogue.checked_record(session, self._layout.agent_id)
        return self._write(lambda connection: catalogue.rotate(connection, session, self._now_ms()))

    def archive_session(self, session_id: str) -> bool:
        """Mark a session as archived; ``False`` when it is already. Raises ``InputError`` when there is none."""
        catalogue.checked_id(session_id)
        agent = self._layout.agent_id
        return self._write(lambda connection: catalogue.archive(connection, agent, session_id, self._now_ms()))

    def restore_session(self, session_id: str) -> bool:
        """Bring an archived session back: live, or retained where its key has a live session by now.

        ``False`` when it is not archived. Raises ``InputError`` when there is none. What was forgotten stays forgotten.
        """
        catalogue.checked_id(session_id)
        agent = self._layout.agent_id
        return self._write(lambda connection: catalogue.restore(connection, agent, session_id, self._now_ms()))

    def delete_session(self, session_id: str) -> bool:
        """Drop a session from the catalogue; ``False`` when there is none. What it left in memory stays: to remove
        that, forget it, by its id also afterwards.
        """
        catalogue.checked_id(session_id)
        return self._write(lambda connection: catalogue.delete(connection, session_id))

    def forgotten(self, session_ids: Iterable[str] | None = None) -> frozenset[str]:
        """The sessions that this agent has forgotten: all, or those among these ids, looked up in bounded batches."""
        ids = None if session_ids is None else strings(session_ids)
        return self._read(lambda connection: catalogue.forgotten_ids(connection, ids))

    # --- the write path -----------------------------------------------------------------------------------------------

    def ingest_state(self, session_ids: Iterable[str] | None = None) -> IngestState:
        """What ingestion and backfill plan from, read without a trace; with ids, what a sweep over these plans from."""
        ids = None if session_ids is None else strings(session_ids)
        return read_ingest_state(self._layout, self._quiet, ids, self._calls)

    def progress(self, session_ids: Iterable[str]) -> IngestState:
        """How far these sessions were read, and nothing else of ``ingest_state``."""
        return read_progress(self._layout, self._quiet, strings(session_ids))

    def origins_of(self, entry_keys: Iterable[str]) -> tuple[Origin, ...]:
        """Which sessions of this agent these entries come from."""
        keys = strings(entry_keys)
        return self._read(lambda connection: tuple(origins_of(connection, keys, self._layout.agent_id)))

    def siblings(self, entry_keys: Iterable[str]) -> tuple[SiblingEntries, ...]:
        """What the other agents of this workspace know of these entries, and which entries their indexes show."""
        return read_siblings(self._layout, self._quiet, strings(entry_keys))

    def observe_write(
        self,
        session: SessionRecord | str,
        path: str | os.PathLike[str],
        *,
        sender_is_owner: object = None,
        tainted: object = None,
        attested: bool = False,
        parts: Iterable[OriginClass] | None = None,
    ) -> ObservedWrite:
        """Record that a session's tool writes a memory file, from before the write to after it::

            with store.observe_write(session, "memory/2026-01-02.md", sender_is_owner=True, tainted=False):
                ...  # write the file

        Without ``with``, say ``done()`` or ``failed()``. The write is untrusted unless its sender is known to be the
        owner and its turn to be untainted (docs: Trust), and the file is, unless what it held before is accounted for;
        ``attested`` is the owner's word for that (B26). Where messages are copied into the file, ``parts`` are their
        classes, as ``message_classes`` gives them: the file is as weak as the weakest (B28). Raises ``InputError`` for
        a path that is no memory file.
        """
        session_id = catalogue.checked_id(session.session_id if isinstance(session, SessionRecord) else session)
        relative = memory_path(self._layout.workspace, path)
        key = session.session_key if isinstance(session, SessionRecord) else None
        if key is None:
            key = self._read(lambda connection: catalogue.session_key_of(connection, session_id))
        writer = writer_class(sender_is_owner=sender_is_owner, tainted=tainted)
        if parts is not None:
            writer = weakest((writer, capture_class(parts)))
        return ObservedWrite._reserve(
            relative,
            Writing(self._layout.agent_id, session_id, key, writer, attested),
            lambda: self._opened(self._layout.shared),
            lambda: file_digest(self._layout.workspace, relative, self._calls),
            self._clock,
        )

    def file_records(self) -> Mapping[str, FileRecord]:
        """What is recorded of each memory file, and whether it was edited by an unknown hand since."""
        rows = self._quiet.read(self._layout.shared, read_file_records)
        return {
            path: FileRecord(
                path,
                record,
                ArtifactReason(reason) if reason else None,
                session_id or None,
                observed,
                edited=file_digest(self._layout.workspace, path, self._calls) != record.file_hash,
            )
            for path, record, reason, session_id, observed in rows
        }

    @property
    def _quiet(self) -> QuietReading:
        return QuietReading(self._sleep, self._reads)

    def _read(self, use: Callable[[apsw.Connection], T]) -> T:
        return self._quiet.read(self._layout.ledger, use)

    def _write(self, use: Callable[[apsw.Connection], T]) -> T:
        with self._opened(self._layout.ledger) as connection:
            return use(connection)

    @contextmanager
    def _opened(self, file: LedgerFile) -> Iterator[apsw.Connection]:
        with file.writing() as connection, explained(file.database, "recording"):
            yield connection

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def open_store(
    directory: str | os.PathLike[str],
    agent_id: str = "main",
    workspace: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
) -> NativeStore:
    """Open the embedded store in a directory for one agent, making it on first use.

    The first time, ``workspace`` is where the agent's Markdown files are; by default ``workspace`` in the directory,
    for all agents. It is remembered; later it need not be named, but where a directory was copied without its workspace
    it says where the files are. Files that are made are private to their owner. An older ledger is brought up to date
    by the first write.

    Raises ``StoreNotFoundError`` for what is not there (with ``create=False``, for a store or agent too),
    ``SchemaError`` for a ledger of a newer memprov or another program, ``CorruptStoreError`` for a damaged one, and
    ``InputError`` for another workspace than the agent's own.
    """
    top = os.path.realpath(os.fspath(directory))
    agent = agent_id_of(agent_id)
    named = None if workspace is None else os.path.realpath(os.path.abspath(os.fspath(workspace)))
    ledger = Layout(top, agent, "", "").ledger
    quiet = QuietReading(time.sleep)
    if not quiet.exists(ledger):
        if is_openclaw_state(top):
            raise StoreNotFoundError(
                f"{top} is the state directory of an OpenClaw installation; open it with open_openclaw (--openclaw)"
            )
        if not create:
            raise StoreNotFoundError(f"there is no store of agent {agent} in {top}")
        _create(top, agent, named or os.path.realpath(os.path.join(top, DEFAULT_WORKSPACE)))
    return NativeStore(_found(top, agent, named, ledger, quiet))


def embedded_only(function: Callable[P, T]) -> Callable[P, T]:
    """A call of the embedded store, or what stands in for one: given another, it says so before anything is read."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        store = args[0] if args else kwargs.get("store")
        if not hasattr(store, "ingest_state"):
            raise InputError(
                f"{function.__name__} is of memprov's own store (open_store), not of {_called(store)}; of an OpenClaw "
                "installation memprov previews, forgets, traces and verifies, and OpenClaw does the rest itself"
            )
        return function(*args, **kwargs)

    return called


def _called(store: object) -> str:
    identity = getattr(store, "identity", None)
    if isinstance(identity, StoreIdentity) and identity.kind == "openclaw":
        return f"the OpenClaw installation {identity.state_root}"
    return f"a {type(store).__name__}"


def _create(top: str, agent: str, workspace: str) -> None:
    """Make what is missing; the agent's ledger last, so that where it is, all of it is."""
    layout = Layout(top, agent, workspace, relative_place(top, workspace))
    try:
        for directory in (os.path.dirname(layout.ledger.path), layout.shared_directory, workspace):
            make_private(directory)
    except OSError as error:
        raise StoreNotFoundError(f"the store in {top} cannot be made: {error}") from error

    def remember(connection: apsw.Connection) -> None:
        connection.executemany(
            "INSERT INTO meta VALUES (?, CAST(? AS TEXT))",
            [("agent", to_bytes(agent)), ("workspace", to_bytes(layout.place))],
        )

    layout.shared.create()
    layout.ledger.create(remember)


def _found(top: str, agent: str, named: str | None, ledger: LedgerFile, quiet: QuietReading) -> Layout:
    owner, place = quiet.read(ledger, lambda connection: (_owner(connection), read_place(connection)))
    if owner != agent or not place:
        raise CorruptStoreError(f"{ledger.database.name} says that it is of agent {owner!r}")
    remembered = os.path.realpath(os.path.join(top, place))
    if named is not None and named != remembered and os.path.isdir(remembered):
        raise InputError(f"agent {agent} has its workspace at {remembered}, not at {named}")
    layout = Layout(top, agent, named or remembered, place)
    require_workspace(layout)
    if not quiet.exists(layout.shared):
        raise CorruptStoreError(f"there is no {layout.shared.database.name}, which agent {agent} had")
    return layout


def _owner(connection: apsw.Connection) -> str:
    return next((str(row[0]) for row in connection.execute("SELECT value FROM meta WHERE name = 'agent'")), "")
