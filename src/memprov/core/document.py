"""The structure of a memory file: its lines, fenced code, headings, list rows, marker runs and entries.

Markdown is read only as far as deletion needs it (D3, D5): what is a line, what does a marker own, what does a heading
own, and where does ownership end. A structure is found on the original text and never re-read while removing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import define, frozen

from memprov.core.markers import Comment, CommentKind, comments, is_managed_fence
from memprov.core.references import has_label
from memprov.core.text import WSP, line_spans

__all__ = ["Document", "Entry", "Line", "Run", "metadata_rows"]

_WS = re.escape(WSP.replace("\n", ""))
_HEADING = re.compile(rf"(#{{1,6}})(?:[{_WS}]|$)")
_QUOTE = re.compile(rf"[{_WS}]*>")
_ROW = re.compile(rf"(?:[-*+]|[0-9]{{1,9}}[.)])(?:[{_WS}]|$)")
_KEY_VALUE = re.compile(rf"(?:[-*+]|[0-9]{{1,9}}[.)])[{_WS}]+[^:]+:[*_`]*(?:[{_WS}]|$)")
_SNAPSHOT = re.compile(rf"#[{_WS}]+Session:")
_FENCE = re.compile(rf"[{_WS}]*(`{{3,}}|~{{3,}})(.*)")


@define
class Line:
    """One line. ``start`` and ``end`` are character offsets, the terminator included; ``text`` has none.

    ``depth`` counts quote marks; ``indent`` counts the blanks after them; ``level`` is that of a heading or 0.
    """

    start: int
    end: int
    text: str
    depth: int
    indent: int
    content: str
    level: int
    row: bool
    managed_fence: bool
    comments: tuple[Comment, ...]
    in_code: bool = False

    @property
    def blank(self) -> bool:
        """Whether there is nothing but blanks and quote marks."""
        return not self.content

    @property
    def only_comments(self) -> bool:
        """Whether the line holds markers and annotations and nothing else."""
        if not self.comments:
            return False
        position, rest = 0, ""
        for comment in self.comments:
            rest += self.text[position : comment.start]
            position = comment.end
        return not (rest + self.text[position:]).strip(WSP)

    @property
    def keys(self) -> tuple[str, ...]:
        """The entry keys that the line's promotion markers name."""
        return tuple(c.value for c in self.comments if c.kind is CommentKind.PROMOTION)


@frozen
class Run:
    """A marker run (D3): a maximal sequence of lines that hold only comments, and the entry line it heads, if any.

    Line numbers; ``last`` is exclusive. ``head`` is ``None`` for a dangling run.
    """

    first: int
    last: int
    keys: tuple[str, ...]
    head: int | None


@frozen
class Entry:
    """What is removed together (D3): a run with its entry line, or an inline marker's line, and continuations."""

    first: int
    head: int
    last: int
    keys: tuple[str, ...]


class Document:
    """A parsed text. Give the text without a byte order mark."""

    def __init__(self, text: str) -> None:
        self.lines: Sequence[Line] = [_line(text, start, end) for start, end in line_spans(text)]
        #: the parts of a snapshot file, each a conversation with its own heading (D5); empty for any other file
        self.parts: Sequence[tuple[int, int]] = _snapshot_parts(self.lines)
        #: closed fenced blocks: first line and exclusive last line
        self.blocks: Sequence[tuple[int, int]] = []
        for first, last in self.parts or [(0, len(self.lines))]:
            self.blocks += _close_fences(self.lines, first, last)
        self.runs: Sequence[Run] = list(self._find_runs())
        self.run_at: dict[int, Run] = {n: run for run in self.runs for n in range(run.first, run.last)}
        self.entries: Sequence[Entry] = sorted(self._find_entries(), key=lambda entry: entry.head)
        self.entries_at: dict[int, list[Entry]] = {}
        for entry in self.entries:
            for number in range(entry.first, entry.last):
                self.entries_at.setdefault(number, []).append(entry)

    def can_head(self, number: int) -> bool:
        """Whether a run directly above this line would own it (D3)."""
        if number >= len(self.lines):
            return False
        line = self.lines[number]
        return not (line.blank or line.level or line.managed_fence)

    def continues(self, number: int) -> bool:
        """Whether this line, below an entry, is its continuation: indented, not blank, no marker run (D3)."""
        line = self.lines[number]
        run = self.run_at.get(number)
        return bool(line.content) and line.text[0] in WSP and not (run and run.keys)

    def indent_below(self, number: int, depth: int) -> int:
        """The blanks that a line starts with after ``depth`` quote marks; -1 when it has fewer quote marks."""
        line = self.lines[number]
        if line.depth < depth:
            return -1
        rest = line.text
        for _ in range(depth):
            rest = rest[rest.index(">") + 1 :]
        return len(rest) - len(rest.lstrip(WSP))

    def _find_runs(self) -> Iterator[Run]:
        number = 0
        while number < len(self.lines):
            if not self.lines[number].only_comments:
                number += 1
                continue
            first = number
            while number < len(self.lines) and self.lines[number].only_comments:
                number += 1
            keys = tuple(key for i in range(first, number) for key in self.lines[i].keys)
            if not keys and first and self.can_head(first - 1):
                # Indented annotations below a text describe that text, not what follows.
                while first < number and self.lines[first].text[0] in WSP:
                    first += 1
                if first == number:
                    continue
            yield Run(first, number, keys, number if self.can_head(number) else None)

    def _find_entries(self) -> Iterator[Entry]:
        above = {run.last: run for run in self.runs}

        def last(head: int) -> int:
            end = head + 1
            while end < len(self.lines) and self.continues(end):
                end += 1
            return end

        for run in self.runs:
            if run.keys and run.head is not None:
                yield Entry(run.first, run.head, last(run.head), run.keys + self.lines[run.head].keys)
        for number, line in enumerate(self.lines):
            if line.keys and number not in self.run_at:
                run_above = above.get(number)
                if run_above is None:
                    yield Entry(number, number, last(number), line.keys)
                elif not run_above.keys:
                    yield Entry(run_above.first, number, last(number), line.keys)


def _line(text: str, start: int, end: int) -> Line:
    body = text[start:end].removesuffix("\n").removesuffix("\r") if text[end - 1] == "\n" else text[start:end]
    rest, depth = body, 0
    while quote := _QUOTE.match(rest):
        rest, depth = rest[quote.end() :], depth + 1
    content = rest.strip(WSP)
    indent = len(rest) - len(rest.lstrip(WSP)) if content else len(rest)
    heading = _HEADING.match(body)
    return Line(
        start=start,
        end=end,
        text=body,
        depth=depth,
        indent=indent,
        content=content,
        level=len(heading[1]) if heading else 0,
        row=bool(_ROW.match(content)),
        managed_fence=is_managed_fence(body),
        comments=tuple(comments(body)),
    )


def metadata_rows(lines: Sequence[Line], heading: int) -> range:
    """The lines of the metadata block below a heading (D5), empty when there is none.

    It is the list right below the heading, its top-level rows all ``key: value``, at least one a session label.
    """
    first = heading + 1
    while first < len(lines) and lines[first].blank:
        first += 1
    last = first
    while last < len(lines) and not lines[last].blank:
        line = lines[last]
        if line.depth or (last == first or line.indent <= lines[first].indent):
            if line.depth or not _ROW.match(line.content):
                break
            if not _KEY_VALUE.match(line.content):
                return range(0)
        last += 1
    rows = range(first, last)
    return rows if any(has_label(lines[number].text) for number in rows) else range(0)


def _snapshot_parts(lines: Sequence[Line]) -> list[tuple[int, int]]:
    # Fences are not looked at: a conversation may hold half of one, and the next conversation is not its prisoner.
    if not lines or not _SNAPSHOT.match(lines[0].text):
        return []
    heads = [n for n, line in enumerate(lines) if _SNAPSHOT.match(line.text) and metadata_rows(lines, n)]
    if not heads or heads[0]:
        return []
    return list(zip(heads, [*heads[1:], len(lines)], strict=True))


def _close_fences(lines: Sequence[Line], first: int, last: int) -> list[tuple[int, int]]:
    """Find closed fenced blocks and strip their lines of structure; an unclosed fence is text (D5)."""
    closing = _closing_lines(lines, first, last)
    blocks: list[tuple[int, int]] = []
    number = first
    while number < last:
        close = closing.get(number)
        if close is None:
            number += 1
            continue
        for i in range(number, close + 1):
            line = lines[i]
            line.in_code, line.level, line.row, line.managed_fence, line.comments = True, 0, False, False, ()
        blocks.append((number, close + 1))
        number = close + 1
    return blocks


def _closing_lines(lines: Sequence[Line], first: int, last: int) -> dict[int, int]:
    """For each line that could open a fence, the line that would close it: the next one at least as long."""
    closing: dict[int, int] = {}
    # Per fence character the closers below, nearest last; a shorter one behind a longer one can never be used.
    below: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    for number in range(last - 1, first - 1, -1):
        fence = _FENCE.fullmatch(lines[number].text)
        if fence is None:
            continue
        character, length = fence[1][0], len(fence[1])
        stack = below[character]
        if character == "~" or "`" not in fence[2]:
            index = bisect_right(stack, -length, key=lambda closer: -closer[0]) - 1
            if index >= 0:
                closing[number] = stack[index][1]
        if not fence[2].strip(WSP):
            while stack and stack[-1][0] <= length:
                stack.pop()
            stack.append((length, number))
    return closing
