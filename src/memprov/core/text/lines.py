"""Text as bytes and lines: one rule for what a line is, and how text that is not UTF-8 survives.

Every reader of memory text uses these functions, so that a removed range means the same everywhere. LF and CRLF end
lines and nothing else does (D6): a lone CR, a form feed, NEL and U+2028 are ordinary characters. Text is ``str``
decoded with ``surrogateescape``, hence any bytes survive a round trip.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

__all__ = [
    "WSP",
    "Spans",
    "byte_spans",
    "cut",
    "digest",
    "is_readable",
    "json_text",
    "line_spans",
    "merge_spans",
    "to_bytes",
    "to_text",
    "u16_length",
]

#: Half-open UTF-8 byte ranges of a text, sorted and apart.
Spans = tuple[tuple[int, int], ...]

#: The white space of JavaScript, which the formats are defined with (docs: References): Python's ``\s`` differs from
#: it.
WSP = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


#: Bytes that were no UTF-8, as ``to_text`` keeps them.
_ESCAPED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def to_text(data: bytes) -> str:
    """Decode file bytes so that ``to_bytes`` gives the same bytes back (D6)."""
    return data.decode("utf-8", "surrogateescape")


def is_readable(text: str) -> bool:
    """Whether all of it is UTF-8 without NUL characters. Anything else is of another encoding, or no text (F06)."""
    return "\0" not in text and (text.isascii() or _ESCAPED.search(text) is None)


def to_bytes(text: str) -> bytes:
    """Encode text: the inverse of ``to_text``; a surrogate that no bytes gave (from JSON) is kept as such."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _errors(text: str) -> str:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "surrogatepass"
    return "surrogateescape"


def u16_length(text: str) -> int:
    """The length in UTF-16 units, in which the formats state their limits (docs: References)."""
    return len(text) if text.isascii() else len(text) + sum(1 for c in text if c > "\uffff")


def digest(text: str) -> str:
    """The SHA-256 of the text's bytes, in lower-case hexadecimal."""
    return hashlib.sha256(to_bytes(text)).hexdigest()


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON as the stores write it: no blanks unless indented, text unescaped, a lone surrogate escaped."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, separators=separators, indent=indent)
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def line_spans(text: str) -> Iterator[tuple[int, int]]:
    """The ``(start, end)`` of each line in characters, its terminator included (D6). Empty text has no line."""
    start = 0
    find = text.find
    while (end := find("\n", start)) >= 0:
        yield start, end + 1
        start = end + 1
    if start < len(text):
        yield start, len(text)


def cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """``text`` less these UTF-8 byte ranges, which are sorted and do not overlap; every other byte is kept (I2)."""
    errors = _errors(text)
    data = text.encode("utf-8", errors)
    kept, position = [], 0
    for start, end in spans:
        kept.append(data[position:start])
        position = end
    kept.append(data[position:])
    return b"".join(kept).decode("utf-8", errors)


def byte_spans(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Character ranges of ``text``, sorted and apart, as UTF-8 byte ranges; ranges that touch become one."""
    if text.isascii():
        return merge_spans(spans)
    errors = _errors(text)
    result: list[tuple[int, int]] = []
    position = byte = 0
    for start, end in spans:
        first = byte + len(text[position:start].encode("utf-8", errors))
        byte = first + len(text[start:end].encode("utf-8", errors))
        position = end
        result.append((first, byte))
    return merge_spans(result)


def merge_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """The same ranges, sorted, with those that touch or overlap made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and merged[-1][1] >= start:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
