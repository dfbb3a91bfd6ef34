"""Can these bytes hold anything of a selection? One pass, before decoding, normalising or splitting into lines.

Ids, keys and paths stand in a text literally. A quotation is found after normalisation (D2), so that a line may quote a
snippet without holding its bytes. What normalisation changes shows in the bytes, however: a blank that is no single
space, a backslash, text that is no NFC; at the start of a line it only takes away. So a part of each snippet is looked
for, and lines in which any of that shows are normalised and looked at again. A part of a snippet that redaction wrote
is not looked for: the line may hold the secret itself (F03).

Never wrong when it says no. When it says yes, the text is worth reading, and no more.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TypeVar

from ahocorasick_rs import BytesAhoCorasick
from attrs import field, frozen

from memprov.core.text.lines import WSP, to_bytes, to_text
from memprov.core.text.quotation import LookalikeMatcher, QuotationMatcher, normalise
from memprov.core.text.redaction import REDACTED

__all__ = ["Gate"]

_A = TypeVar("_A")

#: How much of a snippet is looked for, in characters: longer ones cost more and tell little more apart.
_PROBE = 32
#: How many short texts are tested at once.
_TOGETHER = 256


def _odd() -> frozenset[bytes]:
    """Bytes that stand in every line of NFC text which normalisation changes elsewhere than at its ends."""
    blanks = frozenset(c.encode() for c in WSP if c not in "\n\r ")
    doubled = frozenset(bytes((byte,)) + b"  " for byte in range(256) if byte not in b"\n ")
    returns = frozenset(b"\r" + bytes((byte,)) for byte in range(256) if byte not in b"\n")
    return blanks | doubled | returns | {b"\\"}


_ODD = _odd()


def _literals(values: Iterable[str]) -> frozenset[bytes]:
    return frozenset(to_bytes(value) for value in values if value)


@frozen
class Gate:
    """Looks for literal texts and for quotations; see the module. Travels to workers as these values."""

    literals: frozenset[bytes] = field(default=frozenset(), converter=_literals)
    quotations: QuotationMatcher = field(default=QuotationMatcher(()))
    lookalikes: LookalikeMatcher = field(default=LookalikeMatcher(()))

    def may_hold(self, data: bytes) -> bool:
        """Whether the text with these bytes may hold one of the literals, or quote a snippet or seem to (F09)."""
        return self._may_hold(data) or (bool(self.lookalikes.snippets) and self._seems_to_quote(data))

    def _seems_to_quote(self, data: bytes) -> bool:
        if self._where_unfolded.may_hold(data):
            return True
        return not data.isascii() and self.lookalikes.finds_where_folded(to_text(data))

    @cached_property
    def _where_unfolded(self) -> Gate:
        """For lines that folding leaves as they are."""
        return Gate((), self.lookalikes.changed)

    def _may_hold(self, data: bytes) -> bool:
        if b"" in self._probes:
            return True
        if not self._is_plain(data):
            return _finds(self._sought, data) or _finds(self._sought, _normalised(data))
        searched, known = self._searched, len(self._probes | self.literals)
        places = []
        for pattern, _, end in searched.find_matches_as_indexes(data):
            if pattern < known:
                return True
            places.append(end - 1)
        if not places:
            return False
        lines = _lines_at(data, places)
        return _finds(self._sought, lines) or _finds(self._sought, _normalised(lines))

    def sift(self, texts: Iterable[tuple[_A, bytes]]) -> Iterator[_A]:
        """Of many short texts, each with what it is of, those that may hold something: in order, tested together."""
        rest = iter(texts)
        while batch := list(islice(rest, _TOGETHER)):
            if self.may_hold(b"\n".join(data for _, data in batch)):
                yield from (value for value, data in batch if self.may_hold(data))

    def _is_plain(self, data: bytes) -> bool:
        """Whether the bytes themselves show which lines normalisation changes."""
        return not self._probes or data.isascii() or unicodedata.is_normalized("NFC", to_text(data))

    @cached_property
    def _probes(self) -> frozenset[bytes]:
        return frozenset(map(_probe, self.quotations.patterns()))

    @cached_property
    def _sought(self) -> BytesAhoCorasick:
        return BytesAhoCorasick(self._probes | self.literals)

    @cached_property
    def _searched(self) -> BytesAhoCorasick:
        """What is sought, and behind it what shows that a line must be normalised."""
        sought = self._probes | self.literals
        return BytesAhoCorasick((*sought, *(_ODD - sought if self._probes else ())))


def _probe(pattern: str) -> bytes:
    """A part of a normalised snippet that stands literally in every line that quotes it and is in normal form."""
    longest = max(map(_without_parts, pattern.split(REDACTED)), key=len)
    return to_bytes(longest[-_PROBE:].strip(" "))


def _without_parts(text: str) -> str:
    """Less what may be one end of ``REDACTED``: the snippet may begin or end within it."""
    sizes = range(len(REDACTED) - 1, 0, -1)
    first = next((size for size in sizes if text.startswith(REDACTED[-size:])), 0)
    last = next((size for size in sizes if text.endswith(REDACTED[:size])), 0)
    return text[first : len(text) - last].strip(" ")


def _finds(automaton: BytesAhoCorasick, data: bytes) -> bool:
    return bool(automaton.find_matches_as_indexes(data))


def _normalised(data: bytes) -> bytes:
    return to_bytes(normalise(to_text(data)))


def _lines_at(data: bytes, places: Iterable[int]) -> bytes:
    """The lines in which these bytes are, whole. The places rise."""
    lines, stop = [], -1
    for place in places:
        if place > stop:
            start, stop = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
            if stop < 0:
                stop = len(data)
            lines.append(data[start:stop])
    return b"\n".join(lines)
