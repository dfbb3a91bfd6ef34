"""What a store is to memprov: a few methods, implemented by the embedded store and by the OpenClaw store.

A store answers questions, takes snapshots and applies effects; it decides nothing. Reading leaves no trace (I3): only
what ``exclusive`` hands out can write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from memprov.core.lineage import Basis
from memprov.core.proof import Erasure, Receipt
from memprov.core.purge import Answer, Mapper, PurgeEffect, Question, Selection
from memprov.core.records import Origin, SessionRecord, StoreIdentity
from memprov.core.state import MemorySnapshot
from memprov.core.writing import Message
from memprov.errors import InputError, MemprovError, PartialError
from memprov.shell.remembering import Remembered

__all__ = [
    "UNWRITTEN",
    "Answering",
    "Attesting",
    "FoldingWriter",
    "Neighbours",
    "ProvableStore",
    "ReceiptLog",
    "Spoken",
    "Store",
    "TranscriptReader",
    "WaitingStore",
    "Writer",
    "failure",
    "last_receipt",
]

#: Answers the questions of one plan (docs: Planning by asking). Reading only.
Answering = Callable[[Question], Answer]


@frozen
class Spoken:
    """What one transcript says, as lines that ingestion would take; ``unread`` says why that is not known."""

    agent_id: str
    session_id: str
    texts: tuple[str, ...] = field(default=(), repr=False)
    unread: str = ""


@frozen
class Neighbours:
    """The sessions of other agents; ``unread`` are sentences about those whose catalogue could not be read."""

    sessions: tuple[SessionRecord, ...] = ()
    unread: tuple[str, ...] = ()


class TranscriptReader(Protocol):
    """How a host hands over a session's messages, when asked; ``None`` says that the transcript is gone."""

    def __call__(self, session: SessionRecord, /) -> Iterable[Message] | None:
        """Read one transcript."""


def failure(error: Exception) -> str:
    """What a report says of an exception: its type, and the message of one of ours, which holds no memory text."""
    return f"{type(error).__name__}: {error}" if isinstance(error, MemprovError) else type(error).__name__


class Writer(Protocol):
    """A store whose workspace lock is held."""

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        """As ``Store.snapshot``, under the lock."""

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        """As ``Store.answering``, under the lock."""

    def admit(self, effects: tuple[PurgeEffect, ...]) -> None:
        """Refuse, before any write, what could not be carried out: a vector table that cannot be opened, say.

        Raises ``RefusedError``.
        """

    def apply(self, effect: PurgeEffect, basis: Basis) -> bool:
        """Carry out one effect, durably, before returning. Doing it again changes nothing.

        ``RecordTombstones`` and ``PurgeIndex`` compare ``basis`` with the ledger inside their own transaction; when it
        differs, nothing is written and the answer is ``False``. Every other answer is ``True``. Raises ``PartialError``
        (``ConflictError`` for a file that is no longer the planned one) and leaves the old state whole.
        """


class Store(Protocol):
    """A place where memories are kept, opened for one agent and one workspace."""

    @property
    def identity(self) -> StoreIdentity:
        """The agent and the real roots."""

    def catalogue(self) -> tuple[SessionRecord, ...]:
        """Every session that the agent's session store knows, archives included, with its metadata."""

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:
        """The agent's origin rows that carry one of these names as their session key or entry key (F17, F64a)."""

    def began(self, session_ids: Collection[str]) -> dict[str, int]:
        """When these sessions began, in epoch milliseconds, as far as their transcripts can be read and say it."""

    def neighbours(self) -> Neighbours:
        """The sessions of the other agents of this place. They are never selected: they say whose a name is (D10)."""

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        """Read the memory of this agent and workspace, changing no byte (I3).

        With a selection, the transcripts of the selected sessions are read too, for their curated writes.
        """

    def sessions_standing(self) -> object | None:
        """What is equal only while everything stands that selectors are resolved by; ``None`` where nothing tells."""

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        """What answers the questions of one plan for this selection, changing no byte (I3).

        Each answer may hold too much and never too little (I16). ``mapper`` maps a function over files. What is
        ``remembered`` of an earlier plan is not read again while it stands. The answering
        raises ``RefusedError`` for what must be read and cannot be, and ``MovedError`` when files were moved about, so
        that the questions must be asked anew.
        """

    def exclusive(self, *, break_lock: bool = False) -> AbstractContextManager[Writer]:
        """Hold the workspace lock (D12, D19). Raises ``LockHeldError``."""


@runtime_checkable
class WaitingStore(Store, Protocol):
    """A store that can be read by who is going to write anyway."""

    def about_to_write(self) -> Store:
        """The same store; reading it waits for a busy writer and may leave SQLite's traces (F41)."""


@runtime_checkable
class FoldingWriter(Writer, Protocol):
    """A writer whose databases keep a log, which a reader elsewhere can hold back."""

    def held_back(self) -> tuple[str, ...]:
        """Fold the logs in; what a reader keeps from that, in sentences for the report (F46)."""


@frozen
class ReceiptLog:
    """A store's receipts as they are kept, oldest first, and the key that seals them, if there is one yet."""

    documents: tuple[str, ...] = ()
    key: bytes | None = field(default=None, repr=False)


#: How a message begins when only the receipt is missing.
UNWRITTEN = "the purge is done and only its receipt could not be written"


def last_receipt(log: ReceiptLog) -> Receipt | None:
    """What the next receipt follows. Raises ``PartialError`` when it is damaged: nothing can be chained to it."""
    try:
        return Receipt.from_json(log.documents[-1]) if log.documents else None
    except InputError as error:
        raise PartialError(f"{UNWRITTEN}: the one before it is damaged; put the log back from a copy") from error


@runtime_checkable
class ProvableStore(Store, Protocol):
    """A store of which it can be shown what is left in it: it also says what was said, and keeps receipts."""

    def spoken(self) -> Iterable[Spoken]:
        """What the retained transcripts say, of every session whose transcript the store itself retains."""

    def receipt_log(self) -> ReceiptLog:
        """The receipts of this agent, read without a trace."""


@runtime_checkable
class Attesting(Writer, Protocol):
    """A writer that testifies to what it did."""

    @property
    def erasures(self) -> list[Erasure]:
        """What its erasures reached, one for each."""

    def attest(self, draft: Receipt, session_ids: tuple[str, ...]) -> Receipt:
        """Append the draft to the receipts, sealed and durable, and return it. Raises ``PartialError``."""
