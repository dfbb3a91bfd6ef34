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

from memprov.core.text import WSP

__all__ = [
    "Comment",
    "CommentKind",
    "comments",
    "is_managed_fence",
    "lineage_marker",
    "mentions_promotion",
    "promotion_marker",
]

_BLANK = "[" + re.escape(WSP.replace("\n", "")) + "]*"
_COMMENT = re.compile(
    rf"<!--{_BLANK}(?:(openclaw-memory-promotion|openclaw-memory-lineage|trigger|importance|project):)"
    rf"{_BLANK}(.*?){_BLANK}-->",
    re.IGNORECASE,
)
_PROMOTION = re.compile(rf"<!--{_BLANK}openclaw-memory-promotion:", re.IGNORECASE)
_FENCE = re.compile(
    rf"{_BLANK}<!--{_BLANK}openclaw:dreaming:(?:diary|deep):(?:start|end){_BLANK}-->{_BLANK}", re.IGNORECASE
)
_BACKTICKS = re.compile("`+")


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


def promotion_marker(key: str) -> str:
    """The canonical promotion marker of an entry key (FACTS 4.3)."""
    return f"<!-- openclaw-memory-promotion:{key} -->"


def lineage_marker(key: str) -> str:
    """The canonical lineage marker (FACTS 4.3)."""
    return f"<!-- openclaw-memory-lineage:{key} -->"


def mentions_promotion(text: str) -> bool:
    """Whether the text can hold a promotion marker at all: a cheap test before the real reading."""
    return _PROMOTION.search(text) is not None


def is_managed_fence(line: str) -> bool:
    """Whether the line is the start or end of a diary or deep block (FACTS 4.3)."""
    return "<!--" in line and _FENCE.fullmatch(line.rstrip("\r\n")) is not None


def comments(line: str) -> Iterator[Comment]:
    """The live markers and annotations of one line, in order. An empty promotion or lineage key is no marker."""
    if "<!--" not in line:
        return
    spans: list[tuple[int, int]] | None = None
    for match in _COMMENT.finditer(line):
        kind = CommentKind(match[1].lower())
        if kind in (CommentKind.PROMOTION, CommentKind.LINEAGE):
            if not match[2]:
                continue
            if spans is None:
                spans = list(_code_spans(line)) if "`" in line else []
            if any(_alone(line, span, match.span()) for span in spans):
                continue
        yield Comment(kind, match[2], match.start(), match.end())


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


def _alone(line: str, span: tuple[int, int], marker: tuple[int, int]) -> bool:
    return (
        span[0] <= marker[0]
        and marker[1] <= span[1]
        and not line[span[0] : marker[0]].strip(WSP)
        and not line[marker[1] : span[1]].strip(WSP)
    )
