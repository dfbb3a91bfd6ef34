"""Cutting a text into chunks: whole lines, up to a budget, each chunk beginning with the end of the one before.

Chunks follow OpenClaw's rule, so that a chunk of the same text has the same lines, hash and id in both (docs: Index):
only a line that is longer than the budget by itself is cut, and then its pieces carry the number of that one line. Only
LF ends a line; the CR of a CRLF stays in the text, which therefore is a part of the file, byte for byte.

MEMORY.md is cut at its entries, without overlap. There memprov goes its own way: OpenClaw cuts before the list row, so
that an entry's promotion marker ends the chunk of the entry above. Here markers and entry share a chunk: a chunk alone
still tells whose it is when the file behind it has been cut already (docs: Purge of an index).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise

from attrs import evolve, field, frozen

from memprov.core.text import digest, to_bytes, u16_length
from memprov.errors import InputError

__all__ = [
    "FULL_TEXT_ONLY",
    "Boundary",
    "ChunkBudget",
    "Piece",
    "chunk_id",
    "chunk_lines",
    "chunk_text",
    "is_entry_file",
]

#: The model of a chunk that was indexed without an embedder (docs: Index).
FULL_TEXT_ONLY = "fts-only"
#: What OpenClaw takes a token for, in UTF-16 units, and the least that a chunk may hold.
_UNITS_PER_TOKEN = 4
_LEAST_UNITS = 32
#: A heading or a top-level list row, and a line that holds comments only.
_BEGINNING = re.compile(r"#{1,6}[ \t]|[-*+] |[0-9]{1,9}[.)] ")
_COMMENTS = re.compile(r"[ \t]*(?:<!--(?:(?!-->).)*-->[ \t]*)+\r?")


class Boundary(StrEnum):
    """Why a chunk ends where it ends."""

    END = "end of text"
    ENTRY = "an entry or heading begins"
    BUDGET = "the next line would exceed the budget"
    LONG_LINE = "inside a line that is longer than the budget"


@frozen
class ChunkBudget:
    """How large a chunk may become, and how much of it the next one repeats, in tokens of four UTF-16 units."""

    tokens: int = 400
    overlap: int = 80

    def __attrs_post_init__(self) -> None:
        if self.tokens < 1 or not 0 <= self.overlap < self.tokens:
            raise InputError(f"a chunk of {self.tokens} tokens cannot overlap by {self.overlap}")

    @property
    def units(self) -> int:
        """The budget in UTF-16 units."""
        return max(_LEAST_UNITS, self.tokens * _UNITS_PER_TOKEN)

    @property
    def overlap_units(self) -> int:
        """The overlap in UTF-16 units."""
        return self.overlap * _UNITS_PER_TOKEN


@frozen
class Piece:
    """A chunk of a text: its first and last line, counted from 1, its text, the digest of that, and why it ends."""

    start_line: int
    end_line: int
    text: str = field(repr=False)
    hash: str
    boundary: Boundary


def is_entry_file(path: str) -> bool:
    """Whether a file is cut at its entries."""
    return path in ("MEMORY.md", "memory.md")


def chunk_text(text: str, budget: ChunkBudget | None = None, *, entries: bool = False) -> tuple[Piece, ...]:
    """The chunks of a text, cut at its entries if so asked. One without anything but white space has none."""
    if not text.strip():
        return ()
    lines = text.split("\n")
    if not entries:
        return chunk_lines(lines, budget)
    pieces: list[Piece] = []
    starts = [*_entry_starts(lines), len(lines)]
    for first, end in pairwise([0, *starts] if starts[0] else starts):
        if any(line.strip() for line in lines[first:end]):
            block = [
                evolve(p, start_line=p.start_line + first, end_line=p.end_line + first)
                for p in chunk_lines(lines[first:end], budget)
            ]
            pieces += block[:-1]
            pieces.append(evolve(block[-1], boundary=Boundary.END if end == len(lines) else Boundary.ENTRY))
    return tuple(pieces)


def chunk_lines(lines: Iterable[str], budget: ChunkBudget | None = None) -> tuple[Piece, ...]:
    """The chunks of a text that is given as lines without their ends.

    >>> [(p.start_line, p.end_line, p.boundary.name) for p in chunk_lines(["x" * 20] * 3, ChunkBudget(10, 5))]
    [(1, 1, 'BUDGET'), (1, 2, 'BUDGET'), (2, 3, 'END')]
    """
    budget = budget or ChunkBudget()
    pieces: list[Piece] = []
    current: list[_Segment] = []
    held = 0
    for segment in _segments(lines, budget.units):
        if current and held + segment.units > budget.units:
            same = segment.number == current[-1].number
            pieces.append(_piece(current, Boundary.LONG_LINE if same else Boundary.BUDGET))
            current = _overlap(current, budget.overlap_units)
            held = sum(kept.units for kept in current)
        current.append(segment)
        held += segment.units
    if current:
        pieces.append(_piece(current, Boundary.END))
    return tuple(pieces)


def chunk_id(source: str, path: str, piece: Piece, model: str) -> str:
    """The id of a chunk: what it is of, where, its hash, and the model of its vector (docs: Index)."""
    name = f"{source}:{path}:{piece.start_line}:{piece.end_line}:{piece.hash}:{model}"
    return hashlib.sha256(to_bytes(name)).hexdigest()


def _entry_starts(lines: list[str]) -> Iterator[int]:
    """The numbers, from 0, of the lines at which entries and headings begin, with the comments above them."""
    bound = 0
    for number, line in enumerate(lines):
        if _BEGINNING.match(line):
            start = number
            while start > bound and _COMMENTS.fullmatch(lines[start - 1]):
                start -= 1
            bound = number + 1
            yield start


@frozen
class _Segment:
    """A line, or a piece of one that is too long, and what it takes of the budget with its line end."""

    number: int
    text: str
    units: int


def _segments(lines: Iterable[str], limit: int) -> Iterator[_Segment]:
    for number, line in enumerate(lines, 1):
        units = u16_length(line)
        if units <= limit:
            yield _Segment(number, line, units + 1)
            continue
        start = 0
        while start < len(line):  # a character outside the basic plane takes two units and is never halved
            end = min(start + limit, len(line))
            while u16_length(line[start:end]) > limit:
                end -= max((u16_length(line[start:end]) - limit) // 2, 1)
            yield _Segment(number, line[start:end], u16_length(line[start:end]) + 1)
            start = end


def _overlap(segments: list[_Segment], units: int) -> list[_Segment]:
    """The last lines of a chunk, as many as the overlap needs."""
    taken = 0
    for position in range(len(segments) - 1, -1, -1):
        if taken >= units:
            return segments[position + 1 :]
        taken += segments[position].units
    return list(segments) if units else []


def _piece(segments: list[_Segment], boundary: Boundary) -> Piece:
    text = segments[0].text
    for before, segment in pairwise(segments):
        text += segment.text if before.number == segment.number else f"\n{segment.text}"
    return Piece(segments[0].number, segments[-1].number, text, digest(text), boundary)
