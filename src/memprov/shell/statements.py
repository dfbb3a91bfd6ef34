"""How statements reach a ledger: all of them or none, and a variable for thousands of ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import apsw

from memprov.core.text import json_text
from memprov.errors import ConflictError
from memprov.shell.cells import is_storable

__all__ = ["batches", "json_array", "require_accounted", "roll_back", "transaction"]


_BATCH = 10_000


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """All of it, durable when this returns, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise


def roll_back(connection: apsw.Connection) -> None:
    """End a transaction that is still open. Where that fails, too, what failed before is the error to tell (F32)."""
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")


def json_array(values: Iterable[str]) -> str:
    """The texts as one JSON array for ``json_each``. What is no valid text stands in no ledger, and is left out."""
    return json_text([value for value in values if is_storable(value)])


def batches(values: Iterable[str]) -> Iterator[str]:
    """The texts as JSON arrays for ``json_each``: one variable for thousands of ids, not one each (D11).

    What is no valid text stands in no ledger, and is left out.
    """
    rest = iter(values)
    while batch := list(islice(rest, _BATCH)):
        if not "".join(batch).isascii():
            batch = [value for value in batch if is_storable(value)]
        yield json_text(batch)


def require_accounted(what: str, missing: Collection[str]) -> None:
    """Stop an effect whose rows vanished or changed after the plan was made: they may come back (D24)."""
    if missing:
        raise ConflictError(
            f"{len(missing)} {what} changed or vanished after the plan was made; nothing was done to them"
        )
