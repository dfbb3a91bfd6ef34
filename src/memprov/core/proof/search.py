"""Finding needles in bytes: every guise of every needle in one pass, and the rule for when an id is that id (I12).

In text, an id ends where no letter, digit, ``_`` or ``-`` follows (``L`` and a number may: a line number whose ``#``
was lost). In a database's pages values touch each other without anything between: there an id counts unless it is a
part of a longer id that is known, and a short one as in text.
"""

from __future__ import annotations

from collections.abc import Iterator

from ahocorasick_rs import BytesAhoCorasick
from attrs import field, frozen

from memprov.core.proof.needles import SHORT, Encoding, Needle, NeedleSet, guises
from memprov.core.proof.places import NeedleKind
from memprov.core.proof.verdicts import Control

__all__ = ["Match", "Search"]

_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")


@frozen
class Match:
    """A needle at a place in some bytes."""

    needle: Needle
    encoding: Encoding
    start: int
    end: int


@frozen
class _Pattern:
    needle: Needle
    encoding: Encoding
    data: bytes = field(repr=False)
    longer: tuple[bytes, ...] = field(repr=False)


class Search:
    """All needles of a set, ready to be found. ``reach`` is how many bytes two pieces of a file must overlap."""

    def __init__(self, needles: NeedleSet) -> None:
        self.needles = needles.needles
        patterns: dict[bytes, _Pattern] = {}
        for needle in needles.needles:
            longer: tuple[str, ...] = ()
            if needle.kind is NeedleKind.ID:
                longer = tuple(other for other in needles.others if needle.text in other and needle.text != other)
            for data, encoding in guises(needle.text).items():
                around = tuple(_like(other, encoding) for other in longer)
                patterns.setdefault(data, _Pattern(needle, encoding, data, around))
        self._patterns = tuple(patterns.values())
        self._automaton = BytesAhoCorasick([pattern.data for pattern in self._patterns]) if patterns else None
        longest = (len(data) for pattern in self._patterns for data in (pattern.data, *pattern.longer))
        self.reach = 2 * max(longest, default=0) + 2

    def find(self, data: bytes, *, packed: bool) -> Iterator[Match]:
        """Every needle in these bytes; ``packed`` says that they are no text but pages with values side by side."""
        if self._automaton is None:
            return
        for place, start, end in self._automaton.find_matches_as_indexes(data, overlapping=True):
            pattern = self._patterns[place]
            if pattern.needle.kind is NeedleKind.TEXT or _stands_alone(data, start, end, pattern, packed=packed):
                yield Match(pattern.needle, pattern.encoding, start, end)

    def control(self) -> Control:
        """Whether every guise of every needle is found where it is planted."""
        found = sum(
            any(match.start == 1 for match in self.find(b" " + pattern.data + b" ", packed=False))
            for pattern in self._patterns
        )
        return Control("every needle in every encoding, planted", len(self._patterns), found)


def _stands_alone(data: bytes, start: int, end: int, pattern: _Pattern, *, packed: bool) -> bool:
    for other in pattern.longer:
        at = data.find(other, max(start - len(other), 0), end + len(other))
        while at >= 0:
            if at <= start and end <= at + len(other):
                return False
            at = data.find(other, at + 1, end + len(other))
    if pattern.encoding not in (Encoding.UTF8, Encoding.JSON) or (packed and end - start >= SHORT):
        return True
    before, after = data[max(start - 1, 0) : start], data[end : end + 2]
    if before and before[0] in _WORD:
        return False
    return not after or after[0] not in _WORD or (after[:1] == b"L" and after[1:].isdigit())


def _like(text: str, encoding: Encoding) -> bytes:
    """A text in the encoding of another; Base64 depends on what stands before, and is not told apart."""
    codec = "utf-8" if encoding in (Encoding.UTF8, Encoding.JSON, Encoding.BASE64) else encoding.value
    return text.encode(codec, "surrogatepass")
