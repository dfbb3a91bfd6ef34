"""The receipts of an agent, in its ledger: one row each, and the key that seals them (docs: proof)."""

from __future__ import annotations

import secrets

import apsw

from memprov.core.proof import Receipt, seal_receipt
from memprov.shell.cells import text
from memprov.shell.port import ReceiptLog, last_receipt
from memprov.shell.statements import transaction

__all__ = ["append_receipt", "read_receipt_log"]

_KEY = "receipt_key"


def read_receipt_log(connection: apsw.Connection) -> ReceiptLog:
    """The receipts as they are kept, oldest first."""
    rows = connection.execute("SELECT document FROM receipts ORDER BY number")
    return ReceiptLog(tuple(text(row[0]) for row in rows), _key(connection))


def append_receipt(connection: apsw.Connection, draft: Receipt, session_ids: tuple[str, ...]) -> Receipt:
    """Seal the draft as the next receipt; with the first one, the key is made. One transaction.

    Raises ``PartialError`` when the last receipt is damaged: nothing can be chained to it.
    """
    with transaction(connection):
        connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (_KEY, secrets.token_hex(32)))
        log = read_receipt_log(connection)
        receipt = seal_receipt(draft, session_ids, log.key or b"", last_receipt(log))
        connection.execute(
            "INSERT INTO receipts VALUES (?, ?, ?, ?, ?)",
            (receipt.number, receipt.digest, receipt.previous, receipt.to_json(), receipt.issued_at_ms),
        )
    return receipt


def _key(connection: apsw.Connection) -> bytes | None:
    rows = connection.execute("SELECT value FROM meta WHERE name = ?", (_KEY,))
    return next((bytes.fromhex(text(row[0])) for row in rows), None)
