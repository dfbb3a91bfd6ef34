"""What a person must look at: text that cannot be traced, and rows that cite what was removed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping

__all__ = ["OLD_HISTORY", "citations_of", "has_old_highlights", "refusal_sentence"]

#: The heading under which consolidation writes what it did.
OLD_HISTORY = "## Memory Consolidation History"
_HISTORY = re.compile(rf"^{OLD_HISTORY}\r?$", re.MULTILINE)
_OLD_HIGHLIGHT = re.compile(r"^  - `[+-] ", re.MULTILINE)
_CITATION = re.compile(
    r"(memory/\.dreams/session-corpus/[^\s:,#\]]+)(?::([0-9]{1,9})-([0-9]{1,9})|#L([0-9]{1,9})-L([0-9]{1,9}))"
)


def has_old_highlights(text: str) -> bool:
    """Whether a file has consolidation highlights of the old, unmarked format, which cannot be traced (FACTS 6.7)."""
    heading = _HISTORY.search(text)
    return heading is not None and _OLD_HIGHLIGHT.search(text, heading.end()) is not None


def refusal_sentence(path: str) -> str:
    """What the report says of such a file."""
    return f"Cannot trace historical consolidation highlights in {path}; review them manually."


def citations_of(path: str, text: str, removed: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Warnings for rows of a phase report that cite a removed corpus line (D22). ``removed``: sorted
    line numbers from 1, by file.
    """
    for number, line in enumerate(text.split("\n"), 1):
        for match in _CITATION.finditer(line):
            lines = removed.get(match[1], ())
            first, last = int(match[2] or match[4]), int(match[3] or match[5])
            at = bisect_left(lines, first)
            if at < len(lines) and lines[at] <= last:
                yield f"{path} line {number} cites {match[0]}, of which a line is removed; review it"
