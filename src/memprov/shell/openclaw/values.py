"""What a JSON value holds, without trusting that it does. (Cells: ``memprov.shell.cells``.)"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NoReturn, cast

from memprov.shell.deep_json import deep_json

__all__ = [
    "Json",
    "json_value",
    "member",
    "milliseconds",
    "nonblank",
    "object_of",
]

Json = Mapping[str, object]
#: A longer whole number is no number of anything; Python refuses to read one of some thousands of digits.
_MANY_DIGITS = 400


def json_value(source: str) -> object:
    """JSON as its writer's language reads it: no ``NaN``, no ``Infinity``, but numbers of any length and any depth.

    Raises ``ValueError``.
    """
    try:
        return cast("object", json.loads(source, parse_constant=_refuse, parse_int=_whole))
    except RecursionError:
        return deep_json(source)


def object_of(value: object) -> Json:
    """A JSON object, or an empty one in place of anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def member(value: Json, name: str) -> str:
    """A text member, or an empty string."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def nonblank(value: object) -> str | None:
    """A text without the blanks around it, if anything is left."""
    return (value.strip() or None) if isinstance(value, str) else None


def milliseconds(value: object) -> int:
    """A time stamp as a message has it: a number of seconds or milliseconds, or an ISO text; else 0 (docs:
    Transcripts).
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            return 0
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 2**53:
        return 0
    return int(value * 1000) if value < 1e11 else int(value)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _MANY_DIGITS else float(digits)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
