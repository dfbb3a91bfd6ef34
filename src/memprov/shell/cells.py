"""What SQLite keeps in a cell, without trusting that it is what the schema says."""

from __future__ import annotations

import math

from memprov.core.text import to_text

__all__ = ["Row", "Value", "from_raw", "integer", "is_storable", "text"]

#: What SQLite stores; apsw names this type in its stubs only.
Value = None | int | float | bytes | str
Row = tuple[Value, ...]


def text(value: Value) -> str:
    """A text cell, whatever type the table gave it; NULL is empty."""
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else "" if value is None else str(value)


def is_storable(value: str) -> bool:
    """Whether a string is text that a table can hold; one that came from undecodable bytes is not."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def integer(value: object, default: int = 0) -> int:
    """A number as a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return default
    return int(value)


def from_raw(value: Value) -> str:
    """Text that need not be valid Unicode, read through ``CAST(… AS BLOB)``; ``to_bytes`` wrote it as a blob."""
    return to_text(value) if isinstance(value, bytes) else ""
