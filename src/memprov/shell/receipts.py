"""Receipts of any store: reading them, checking one against chain and present state, and finding what was lost.

A store that came back from a backup has lost tombstones, and the receipts of the time in between with them. Whoever
kept such a receipt elsewhere still has the proof: it fits the store's key, and the sessions that it names can be
forgotten once more.
"""

from __future__ import annotations

from attrs import frozen

from memprov.core.proof import Receipt, chain_problems, own_problems
from memprov.core.purge import Level, Selectors
from memprov.errors import CorruptStoreError, InputError, RefusedError
from memprov.shell.port import ProvableStore
from memprov.shell.proof.sources import known_by
from memprov.shell.runner import preview

__all__ = ["ReceiptCheck", "check_receipt", "receipts", "sessions_in_receipt"]


@frozen
class ReceiptCheck:
    """What became of checking a receipt. ``problems`` are sentences; without any, it is ``valid``.

    ``session_ids`` are the sessions that it names, as far as the store knows them, and ``unknown`` counts the others.
    ``lost`` are those that the store no longer knows as forgotten. ``head`` is the newest digest of the log: pin it.
    """

    problems: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    unknown: int = 0
    lost: tuple[str, ...] = ()
    complete: bool = False
    head: str | None = None

    @property
    def valid(self) -> bool:
        """Whether the receipt is genuine, its chain whole, and what it says still so."""
        return not self.problems


def receipts(store: ProvableStore) -> tuple[Receipt, ...]:
    """The store's receipts, oldest first. Raises ``CorruptStoreError`` for one that is damaged."""
    try:
        return tuple(map(Receipt.from_json, store.receipt_log().documents))
    except InputError as error:
        raise CorruptStoreError(f"the receipts of agent {store.identity.agent_id} are damaged: {error}") from error


def check_receipt(store: ProvableStore | None, receipt: Receipt, head: str | None = None) -> ReceiptCheck:
    """Whether a receipt is genuine and still true: made by this store, in its unbroken chain, with everything that it
    names still forgotten and nothing of it back.

    ``head`` is the digest of a receipt that was noted elsewhere: the log must still hold it. Without a store only the
    head can be compared. Reads only.
    """
    if store is None:
        problems = () if head in (None, receipt.digest) else ("the receipt is not the one whose digest was noted",)
        return ReceiptCheck((*problems, "no store was named, so chain and present state were not checked"))
    log = store.receipt_log()
    found = list(own_problems(receipt, log.key))
    chain: tuple[Receipt, ...] = ()
    try:
        chain = receipts(store)
    except CorruptStoreError as error:
        found.append(str(error))
    found.extend(chain_problems(chain, log.key, head))
    if receipt.digest not in {each.digest for each in chain}:
        found.append("the receipt is not in the store's log: the log was cut off or replaced, or it is another store's")
    named = () if own_problems(receipt, log.key) else known_by(store, receipt)
    forgotten = store.snapshot().tombstones
    unknown = len(receipt.sessions) - len(named)
    lost = tuple(name for name in named if name not in forgotten)
    if unknown:
        found.append(f"{unknown} of its sessions are not known here, neither as sessions nor as forgotten")
    if lost:
        found.append(f"{len(lost)} of its sessions are no longer recorded as forgotten; forget them from this receipt")
    if not receipt.complete:
        found.append("the receipt itself says that not everything was reached")
    kept = tuple(name for name in named if name not in lost)
    if kept and not preview(store, Selectors(sessions=kept), level=Level.LOGICAL).removes_nothing:
        found.append("something of its sessions is in memory again; forget them once more")
    last = chain[-1].digest if chain else None
    return ReceiptCheck(tuple(dict.fromkeys(found)), named, unknown, lost, receipt.complete, last)


def sessions_in_receipt(store: ProvableStore, receipt: Receipt) -> tuple[str, ...]:
    """The sessions that a receipt of this store names, to be forgotten once more, whether or not the log still has it.

    Raises ``RefusedError`` for a receipt that this store did not make, or none of whose sessions it knows.
    """
    named = known_by(store, receipt)
    if not named:
        raise RefusedError("this store knows none of the receipt's sessions, so there is nothing to forget")
    return named
