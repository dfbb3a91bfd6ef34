"""``memprov receipt``: the receipts of a store, and checking one against chain and present state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import click

from memprov.cli.files import load_file
from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say
from memprov.core.proof import MAX_RECEIPT_BYTES, Receipt
from memprov.core.text import json_text
from memprov.shell.receipts import ReceiptCheck, check_receipt, receipts

__all__ = ["describe_receipt", "receipt_command"]


@click.group("receipt")
def receipt_command() -> None:
    """Show what was testified to, or check a receipt."""


@receipt_command.command("show")
@store_options
@json_option
def show_command(place: StoreOptions, *, as_json: bool) -> None:
    """List the store's receipts, oldest first; with --json, whole. The last digest is the head that can be pinned."""
    rows = receipts(place.open())
    if as_json:
        document("[" + ",\n".join(row.to_json() for row in rows) + "]")
        return
    for row in rows:
        say(describe_receipt(row))
    if not rows:
        say(["There is no receipt yet."])


@receipt_command.command("check")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@store_options
@click.option("--head", metavar="DIGEST", help="A digest of this log that was noted elsewhere: it must still be there.")
@json_option
def check_command(place: StoreOptions, file: str, head: str | None, *, as_json: bool) -> None:
    """Check a receipt: genuine, its chain whole, and what it says still so. Reads only.

    Ends with 0 when it is, with 1 when something is wrong.
    """
    receipt = Receipt.from_json(load_file(file, MAX_RECEIPT_BYTES))
    store = None if place.store is None and place.openclaw is None else place.open()
    answer = check_receipt(store, receipt, head)
    if as_json:
        document(_check_json(answer))
    else:
        say(describe_receipt(receipt))
        say(_described(answer))
    click.get_current_context().exit(0 if answer.valid else 1)


def describe_receipt(receipt: Receipt) -> Iterator[str]:
    """One receipt in two lines of text."""
    when = datetime.fromtimestamp(receipt.issued_at_ms / 1000, UTC).isoformat(timespec="seconds")
    whole = "complete" if receipt.complete else "NOT complete"
    found = "" if receipt.verification is None else f", verified: {receipt.verification.verdict.value}"
    sessions = len(receipt.sessions)
    yield (
        f"Receipt {receipt.number} of {when}: {sessions} session{'s' * (sessions != 1)}, level {receipt.level}, "
        f"{whole}{found}"
    )
    yield f"  digest {receipt.digest}"
    yield from (f"  not reached: {line}" for line in receipt.unreached)


def _described(answer: ReceiptCheck) -> Iterator[str]:
    yield "It is genuine, its chain is whole, and what it says is still so." if answer.valid else "It does not hold:"
    yield from (f"  {problem}" for problem in answer.problems)
    if answer.session_ids:
        yield f"  it names {', '.join(answer.session_ids[:10])}" + (" and more" if len(answer.session_ids) > 10 else "")


def _check_json(answer: ReceiptCheck) -> str:
    return json_text(
        {
            "valid": answer.valid,
            "problems": list(answer.problems),
            "sessionIds": list(answer.session_ids),
            "unknown": answer.unknown,
            "lost": list(answer.lost),
            "complete": answer.complete,
            "head": answer.head,
        },
        indent=2,
    )
