"""Markers: the HTML comments that connect visible text to its lineage. One reader serves everything (D3).

A promotion marker names the entry key of the text it stands with; a lineage marker may precede it; annotations
(trigger, importance, project) describe it; managed fences delimit the blocks that the host rewrites. Case and spacing
do not matter. A marker that is alone in its code span, or inside a closed fenced block, is text that shows one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from attrs import frozen

from memprov.core.text.lines import WSP

__all__ = [
    "Comment",
    "CommentKind",
    "comments",
    "is_managed_fence",
    "lineage_marker",
    "mentions_promotion",
    "promotion_lines",
    "promotion_marker",
    "readable_key",
]

_BLANK = "[" + re.escape(WSP.replace("\n", "")) + "]*"
# Letters fold in ASCII only: "ı" is no "i".
_OPENING = re.compile(
    rf"<!--{_BLANK}(openclaw-memory-promotion|openclaw-memory-lineage|trigger|importance|project){_BLANK}:",
    re.IGNORECASE | re.ASCII,
)
_PROMOTION = re.compile(rf"<!--{_BLANK}openclaw-memory-promotion{_BLANK}:", re.IGNORECASE | re.ASCII)
_FENCE = re.compile(
    rf"{_BLANK}<!--{_BLANK}openclaw:dreaming:(?:diary|deep):(?:start|end){_BLANK}-->{_BLANK}",
    re.IGNORECASE | re.ASCII,
)
_BACKTICKS = re.compile("`+")
_PADDING = re.compile("[`" + re.escape(WSP.replace("\n", "")) + "]*")


class CommentKind(StrEnum):
    """What a comment is for."""

    PROMOTION = "openclaw-memory-promotion"
    LINEAGE = "openclaw-memory-lineage"
    TRIGGER = "trigger"
    IMPORTANCE = "importance"
    PROJECT = "project"


@frozen
class Comment:
    """One marker or annotation in a line: ``start`` and ``end`` are character offsets in that line."""

    kind: CommentKind
    value: str
    start: int
    end: int

    @property
    def annotates(self) -> bool:
        """Whether it is an annotation and no marker."""
        return self.kind not in (CommentKind.PROMOTION, CommentKind.LINEAGE)


def promotion_marker(key: str) -> str:
    """The canonical promotion marker of an entry key (docs: Markers)."""
    return f"<!-- openclaw-memory-promotion:{key} -->"


def lineage_marker(key: str) -> str:
    """The canonical lineage marker (docs: Markers)."""
    return f"<!-- openclaw-memory-lineage:{key} -->"


def readable_key(key: str) -> bool:
    """Whether a comment that names this key is read back as naming it, on one line."""
    marker = lineage_marker(key)
    return "\n" not in marker and "\r" not in marker and [c.value for c in comments(marker)] == [key]


def mentions_promotion(text: str) -> bool:
    """Whether the text can hold a promotion marker at all: a cheap test before the real reading."""
    return _PROMOTION.search(text) is not None


def promotion_lines(text: str) -> Iterator[str]:
    """The lines that can hold a promotion marker, without their ends, in order."""
    stop = -1
    for match in _PROMOTION.finditer(text):
        if match.start() > stop:
            start, stop = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.start())
            if stop < 0:
                stop = len(text)
            yield text[start:stop].removesuffix("\r")


def is_managed_fence(line: str) -> bool:
    """Whether the line is the start or end of a diary or deep block (docs: Markers)."""
    return "<!--" in line and _FENCE.fullmatch(line.rstrip("\r\n")) is not None


def comments(line: str) -> Iterator[Comment]:
    """The live markers and annotations of one line, in order. An empty promotion or lineage key is no marker.

    As in HTML a comment ends at the next ``-->`` and holds no other: what an annotation says is no marker.
    """
    if "<!--" not in line:
        return
    shown = _CodeSpans(line)
    position = 0
    while (match := _OPENING.search(line, position)) and (close := line.find("-->", match.end())) >= 0:
        position = close + 3
        kind, value = CommentKind(match[1].lower()), line[match.end() : close].strip(WSP)
        if kind in (CommentKind.PROMOTION, CommentKind.LINEAGE) and (
            not value or shown.hold_alone(match.start(), position)
        ):
            continue
        yield Comment(kind, value, match.start(), position)


class _CodeSpans:
    """The line's code spans, read only when asked for, and asked from left to right."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.rest = _code_spans(line) if "`" in line else iter(())
        self.span: tuple[int, int] | None = (0, 0)
        self.content = 0

    def hold_alone(self, start: int, end: int) -> bool:
        """Whether a code span holds these characters and nothing else but blanks and backticks."""
        while self.span is not None and self.span[1] < end:
            self.span = next(self.rest, None)
            self.content = 0 if self.span is None else self._after_padding(self.span[0])
        return (
            self.span is not None and self.span[0] <= start <= self.content and self._after_padding(end) >= self.span[1]
        )

    def _after_padding(self, position: int) -> int:
        padding = _PADDING.match(self.line, position)
        return position if padding is None else padding.end()


def _code_spans(line: str) -> Iterator[tuple[int, int]]:
    """Contents of the line's code spans: a backtick run closed by the next run of the same length (CommonMark 6.1)."""
    runs = [match.span() for match in _BACKTICKS.finditer(line)]
    following: dict[int, list[int]] = {}
    for position in range(len(runs) - 1, -1, -1):
        following.setdefault(runs[position][1] - runs[position][0], []).append(position)
    index = 0
    while index < len(runs):
        start, end = runs[index]
        later = following[end - start]
        while later and later[-1] <= index:
            later.pop()
        if later:
            close = later[-1]
            yield end, runs[close][0]
            index = close + 1
        else:
            index += 1
