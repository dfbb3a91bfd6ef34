"""JSON of any depth. The standard library's reader recurses, and gives up on what JavaScript's reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from attrs import frozen

__all__ = ["deep_json"]

_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"'
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_TOKEN = re.compile(rf"[ \t\n\r]*(?:([\[\]{{}},:])|({_NUMBER})|({_STRING}|true|false|null)|$)")


@frozen
class _Mark:
    """A token that is no value."""

    sign: str


def deep_json(source: str) -> object:
    """The value of a JSON document; numbers are read as ``float``. Raises ``ValueError``.

    What is open is a list of values and marks; a bracket that closes makes one value of what stands behind its opener.
    """
    read: list[object] = []
    openers: list[int] = []
    for token in _tokens(source):
        sign = token.sign if isinstance(token, _Mark) else ""
        if sign in ("]", "}"):
            start = openers.pop() if openers else len(read)
            inside = read[start:]
            del read[start:]
            read.append(_closed(inside, sign))
            continue
        if sign in ("[", "{"):
            openers.append(len(read))
        read.append(token)
    if len(read) != 1 or isinstance(read[0], _Mark):
        raise ValueError("not one JSON value")
    return read[0]


def _closed(tokens: list[object], sign: str) -> list[object] | dict[str, object]:
    """The array or object of these tokens, the opener first."""
    if not tokens or tokens[0] != _Mark("[" if sign == "]" else "{"):
        raise ValueError(f"nothing is open that {sign} closes")
    inside = tokens[1:]
    if sign == "]":
        values = inside[::2]
        _require(values, {",": inside[1::2]}, whole=len(inside) % 2 == 1 or not inside)
        return values
    names, values = inside[::4], inside[2::4]
    whole = (len(inside) % 4 == 3 or not inside) and all(isinstance(name, str) for name in names)
    _require(values, {":": inside[1::4], ",": inside[3::4]}, whole=whole)
    return dict(zip(map(str, names), values, strict=True))


def _require(values: list[object], marks: dict[str, list[object]], *, whole: bool) -> None:
    fits = all(found == _Mark(sign) for sign, tokens in marks.items() for found in tokens)
    if not whole or not fits or any(isinstance(value, _Mark) for value in values):
        raise ValueError("a comma, a colon or a value is not where it belongs")


def _tokens(source: str) -> Iterator[object]:
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise ValueError(f"no JSON at character {position}")
        mark, number, literal = match.groups()
        if mark:
            yield _Mark(mark)
        elif number:
            yield float(number)
        elif literal:
            yield json.loads(literal)
        position = match.end()
