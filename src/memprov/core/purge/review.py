"""What a person must look at: text that cannot be traced, and rows that cite what was removed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from memprov.core.purge.report import Suspect
from memprov.core.purge.scrub import Scrub, ScrubRules
from memprov.core.text import WSP, CommentKind, Document, machine_lines, to_bytes

__all__ = ["OLD_HISTORY", "broken_markers", "citations_of", "has_old_highlights", "refusal_sentence", "suspects_of"]

_BY_TRANSCRIPT = "it says what a selected session said, by its transcript; no corpus line of it is left"
_ALIKE = "it looks like what a selected session said, but for invisible or compatibility characters"

#: The name of a marker, however what stands around it was damaged.
_MARKER_NAME = re.compile(r"openclaw-memory-promotion", re.IGNORECASE)
#: Before the name: a marker that is shown, in a code span or escaped.
_SHOWN = re.compile(r"(?:`\s*<!--|<\\!--)\s*$")
_MARKER_REST = re.compile(r"[\s:=>-]*(?P<whole>(?P<word>\S*).*?)(?=--!?>|$)", re.DOTALL)

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


def suspects_of(path: str, text: str, scrub: Scrub, rules: ScrubRules) -> Iterator[Suspect]:
    """The lines of a file that stay although a selected session may be behind them: quotations of what is known from
    its transcript alone (D23), and what quotes it only once both are folded (F09).
    """
    body = text.removeprefix("\ufeff")
    said, alike = rules.machine_quotations.quoted_lines(body), rules.lookalikes.lines(body)
    if not (said or alike):
        return
    gone = _removed_lines(text, scrub)
    document = Document(body)
    said -= machine_lines(document, phase_report=False)  # structure in them stays, and is no content
    for number in sorted(said | alike):
        line = document.lines[number]
        if number not in gone and not (line.managed_fence or line.only_comments):
            yield Suspect(path, number + 1, _BY_TRANSCRIPT if number in said else _ALIKE)


def broken_markers(text: str, scrub: Scrub, keys: AbstractSet[str]) -> Iterator[tuple[int, str]]:
    """Where a file still names one of these keys in a marker that nothing reads: line, from 1, and key (F08).

    Such a place is untouched, since what it owns is not known. What shows a marker, in code or escaped, is none.
    """
    plain = "\0" not in text
    body = text.removeprefix("\ufeff").replace("\0", "")  # of a text in UTF-16, what is ASCII
    if not keys or not _MARKER_NAME.search(body):
        return
    gone = _removed_lines(text, scrub)
    lines = Document(body).lines
    for number, line in enumerate(lines):
        if number in gone or line.in_code:
            continue
        below = f"\n{lines[number + 1].text}" if number + 1 < len(lines) else ""
        for name in _MARKER_NAME.finditer(line.text):
            rest = _MARKER_REST.match(line.text[name.end() :] + below)
            named = () if rest is None else (rest["whole"].strip(WSP), rest["word"].partition("--")[0])
            key = next((key for key in named if key in keys), None)
            live = plain and any(
                comment.kind is CommentKind.PROMOTION and comment.start < name.start() < comment.end
                for comment in line.comments
            )
            if key is not None and not live and not _SHOWN.search(line.text, 0, name.start()):
                yield number + 1, key


def _removed_lines(text: str, scrub: Scrub) -> frozenset[int]:
    """The lines, from 0, that a scrub removes to the end."""
    data = to_bytes(text)
    last_line = data.rfind(b"\n") + 1
    gone: set[int] = set()
    number = position = 0
    for start, end in scrub.spans:
        number += data.count(b"\n", position, start)
        ended = data.count(b"\n", start, end) + (start <= last_line and end == len(data))
        gone.update(range(number, number + ended))
        number += data.count(b"\n", start, end)
        position = end
    return frozenset(gone)
