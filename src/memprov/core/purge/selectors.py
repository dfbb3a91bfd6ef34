"""What a caller asks for: sessions, hook sources, participants, since a time. Written down, and refused when it cannot
have been meant (D15).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from attrs import field, frozen

from memprov.core.records import strings
from memprov.core.text import WSP
from memprov.errors import InputError, SelectorError

__all__ = ["EPOCH", "Selectors"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
#: What stands for bytes that are no UTF-8.
_SURROGATES = re.compile("[\ud800-\udfff]")


def _values(values: Iterable[str]) -> tuple[str, ...]:
    try:
        result = strings(values)
    except (InputError, TypeError) as error:
        raise SelectorError(f"bad selector: {error}") from None
    for value in result:
        bare = value.strip(WSP).strip()  # blank to JavaScript or to Python
        if bare in ("", "*") or "\0" in value:
            raise SelectorError(
                f"bad selector {value!r}: it must name one thing exactly, hence be neither blank nor '*' nor hold a NUL"
            )
        if _SURROGATES.search(value):
            raise SelectorError(f"bad selector {value!r}: it is no valid text, and so no store holds it")
    return result


def _since_ms(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and _DATE_TIME.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value.upper())
        except ValueError:  # shaped like a date, and none
            pass
        else:
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return (moment - EPOCH) // timedelta(milliseconds=1)
    raise SelectorError(f"bad selector since={value!r}: it must be an ISO date or date-time")


@frozen
class Selectors:
    """What a caller asks for, as it was written: any of these sessions, hook sources and participants, since a time.

    ``sessions`` are ids or keys. Values are exact and are not trimmed. ``since`` is an ISO date or date-time, in UTC
    where it names no zone (D8), or epoch milliseconds. Raises ``SelectorError`` naming a value that is blank, ``*``,
    holds a NUL, is no valid text, or is no date (D15). To select nothing at all is an error only when something is to
    be selected.
    """

    sessions: tuple[str, ...] = field(default=(), converter=_values)
    hook_sources: tuple[str, ...] = field(default=(), converter=_values)
    participants: tuple[str, ...] = field(default=(), converter=_values)
    since: str | int | None = None
    since_ms: int | None = field(init=False, repr=False, eq=False)

    @since_ms.default
    def _(self) -> int | None:
        return _since_ms(self.since)

    def require(self) -> None:
        """Raise ``SelectorError`` unless something is selected; ``since`` alone selects nothing (case B1)."""
        if not (self.sessions or self.hook_sources or self.participants):
            raise SelectorError("no selector: name at least one session, hook source or participant")
