"""Which of many patterns can occur in some texts at all: a cheap test that is never wrong when it says no.

Half of a large store's sessions hold far more text than the memory files that may quote them, and an automaton over
all of it costs most of a purge. A pattern that occurs has every one of its windows of sixteen bytes in the texts; the
windows of the texts are remembered as bits in a table, so that a pattern is let through wrongly at worst, which costs
time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sieve"]

_WINDOW = 16
_TABLE_BITS = 24
_BLOCK = 1 << 20
_BATCH = 4096
#: Two odd numbers that spread the halves of a window over the table (splitmix64).
_SPREAD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Sieve:
    """Give it the texts with ``add``; then ask it about patterns."""

    def __init__(self) -> None:
        self._seen = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)

    def add(self, text: str) -> None:
        """Remember a text."""
        data = _encoded(text)
        for start in range(0, len(data), _BLOCK):
            self._seen[_windows(data[start : start + _BLOCK + _WINDOW - 1])] = True

    def passes(self, patterns: Iterable[str]) -> Iterator[bool]:
        """For each pattern, whether one of the texts may contain it. One shorter than a window always passes."""
        parts = map(_encoded, patterns)
        while batch := list(islice(parts, _BATCH)):
            yield from self._pass(batch)

    def _pass(self, parts: list[bytes]) -> list[bool]:
        missing = ~self._seen[_windows(b"".join(parts))]
        before = np.concatenate(([0], np.cumsum(missing)))  # how many windows are missing before each place
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        ends = np.cumsum(lengths)
        first, last = ends - lengths, ends - _WINDOW + 1
        found: list[bool] = (before[np.minimum(first, len(missing))] == before[np.clip(last, 0, len(missing))]).tolist()
        return [length < _WINDOW or passed for length, passed in zip(lengths.tolist(), found, strict=True)]


def _encoded(text: str) -> bytes:
    """The text as bytes, whatever it is, such that a part of it is a part of them."""
    return text.encode("utf-8", "surrogatepass")


def _windows(data: bytes) -> NDArray[np.int64]:
    """The place in the table of the window at each offset."""
    half = _WINDOW // 2
    if len(data) < _WINDOW:
        return np.zeros(0, dtype=np.int64)
    words = np.ndarray(shape=(len(data) - half + 1,), dtype="<u8", buffer=data, strides=(1,))
    mixed = words[:-half] * _SPREAD[0] ^ words[half:] * _SPREAD[1]
    return (mixed >> np.uint64(64 - _TABLE_BITS)).astype(np.int64)
