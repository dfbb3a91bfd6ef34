"""The structure of a memory file: its lines, fenced code, headings, list rows, marker runs and entries.

Markdown is read only as far as deletion needs it (D3, D5): what is a line, what does a marker own, what does a heading
own, and where does ownership end. A structure is found on the original text and never re-read while removing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import define, frozen

from memprov.core.text.lines import WSP, line_spans
from memprov.core.text.markers import Comment, CommentKind, comments, is_managed_fence
from memprov.core.text.references import has_label

__all__ = ["Document", "Entry", "Line", "Run", "metadata_rows"]

_WS = re.escape(WSP.replace("\n", ""))
_HEADING = re.compile(rf"(#{{1,6}})(?:[{_WS}]|$)")
_QUOTES = re.compile(rf"(?:[{_WS}]*>)+")
_BULLET = r"(?:[-*+]|[0-9]{1,9}[.)])"
_ROW = re.compile(rf"{_BULLET}(?:[{_WS}]|$)")
_KEY_VALUE = re.compile(rf"{_BULLET}[{_WS}].+?:[*_`]*(?:[{_WS}]|$)")
_SNAPSHOT = re.compile(rf"#[{_WS}]+Session:")
_FENCE = re.compile(rf"[{_WS}]*((?:{_BULLET}[{_WS}]+)*)(`{{3,}}|~{{3,}})(.*)")


@define
class Line:
    """One line. ``start`` and ``end`` are character offsets, the terminator included; ``text`` has none.

    ``depth`` counts quote marks; ``indent`` is the width of the blanks after them; ``level`` is a heading's or 0.
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
    def annotates(self) -> bool:
        """Whether the comments of the line are annotations and no markers."""
        return all(comment.annotates for comment in self.comments)

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
        self.blocks: Sequence[tuple[int, int]] = [
            block
            for first, last in self.parts or [(0, len(self.lines))]
            for block in _close_fences(self.lines, first, last)
        ]
        self.block_at: dict[int, tuple[int, int]] = {n: block for block in self.blocks for n in range(*block)}
        #: the annotation lines, first and exclusive last, that describe the text line above them
        self.notes: dict[int, tuple[int, int]] = {}
        self.runs: Sequence[Run] = list(self._find_runs())
        self.run_at: dict[int, Run] = {n: run for run in self.runs for n in range(run.first, run.last)}
        #: the run that ends directly above a line
        self.run_above: dict[int, Run] = {run.last: run for run in self.runs}
        #: in the order of their heads; one inside another ends where the other does
        self.entries: Sequence[Entry] = list(self._find_entries())
        self.entry_of: dict[int, Entry] = {entry.head: entry for entry in self.entries}
        #: the outermost entry of a line
        self.entry_at: dict[int, Entry] = {}
        covered = 0
        for entry in self.entries:
            self.entry_at.update(dict.fromkeys(range(max(covered, entry.first), entry.last), entry))
            covered = max(covered, entry.last)

    def can_head(self, number: int) -> bool:
        """Whether a run directly above this line would own it (D3)."""
        if number >= len(self.lines):
            return False
        line = self.lines[number]
        return not (line.blank or line.level or line.managed_fence)

    def continues(self, number: int) -> bool:
        """Whether this line, below an entry, is its continuation: indented, not blank, no line of markers (D3).

        A managed fence never is: it delimits what others write (report B19).
        """
        line = self.lines[number]
        indented = bool(line.content) and line.text[0] in WSP
        return indented and not line.managed_fence and (line.annotates or not line.only_comments)

    def begin_of_run(self, number: int) -> int:
        """Where the run begins that this line is in or the head of, if that has a head; else the line itself."""
        run = self.run_at.get(number, self.run_above.get(number))
        return number if run is None or run.head is None else run.first

    def indent_below(self, number: int, depth: int) -> int:
        """The width of the blanks after ``depth`` quote marks of a line; -1 when it has fewer quote marks."""
        line = self.lines[number]
        if line.depth <= depth:
            return line.indent if line.depth == depth else -1
        position = 0
        for _ in range(depth):
            position = line.text.index(">", position) + 1
        return _indent(line.text[position:])

    def unit(self, number: int) -> tuple[int, int]:
        """The lines, first and exclusive last, that stay or go whole with this one: its entry, run, fenced block."""
        first, last = number, number + 1
        while True:
            around = [span for edge in (first, last - 1) for span in self._units_at(edge)]
            wider = min(first, *(span[0] for span in around)), max(last, *(span[1] for span in around))
            if wider == (first, last):
                return wider
            first, last = wider

    def _units_at(self, number: int) -> Iterator[tuple[int, int]]:
        yield self.block_at.get(number, (number, number + 1))
        if entry := self.entry_at.get(number):
            yield entry.first, entry.last
        for run in (self.run_at.get(number), self.run_above.get(number)):
            if run is not None and run.head is not None and run.head >= number:
                yield run.first, run.head + 1

    def _find_runs(self) -> Iterator[Run]:
        number = 0
        while number < len(self.lines):
            if not self.lines[number].only_comments:
                number += 1
                continue
            first = number
            while number < len(self.lines) and self.lines[number].only_comments:
                number += 1
            if first and (self.can_head(first - 1) or self.lines[first - 1].keys):
                # Indented annotations below a text describe that text, whatever follows.
                above = first - 1
                while first < number and self.lines[first].annotates and self.lines[first].text[0] in WSP:
                    first += 1
                self.notes[above] = above + 1, first
            if first < number:
                keys = tuple(key for line in self.lines[first:number] for key in line.keys)
                yield Run(first, number, keys, number if self.can_head(number) else None)

    def _find_entries(self) -> Iterator[Entry]:
        count = len(self.lines)
        last = [count] * (count + 1)  # the first line from here on that is no continuation
        for number in range(count - 1, -1, -1):
            last[number] = last[self._after(number)] if self.continues(number) else number
        for number, line in enumerate(self.lines):
            above = self.run_above.get(number)
            if above is not None and above.keys and above.head is None:
                above = None  # dangling above a marked heading, which it does not own
            keys = line.keys if above is None else above.keys + line.keys
            if keys and number not in self.run_at:
                yield Entry(number if above is None else above.first, number, last[self._after(number)], keys)

    def _after(self, number: int) -> int:
        """The line after this one, or after the fenced block that it begins: that goes whole (D5)."""
        first, last = self.block_at.get(number, (number, number + 1))
        return last if first == number else number + 1


def _line(text: str, start: int, end: int) -> Line:
    body = text[start:end].removesuffix("\n").removesuffix("\r") if text[end - 1] == "\n" else text[start:end]
    quotes = _QUOTES.match(body)
    rest = body[quotes.end() :] if quotes else body
    content = rest.strip(WSP)
    heading = _HEADING.match(body)
    return Line(
        start=start,
        end=end,
        text=body,
        depth=quotes[0].count(">") if quotes else 0,
        indent=_indent(rest),
        content=content,
        level=len(heading[1]) if heading else 0,
        row=bool(_ROW.match(content)),
        managed_fence=is_managed_fence(body),
        comments=tuple(comments(body)),
    )


def _indent(text: str) -> int:
    blanks = text[: len(text) - len(text.lstrip(WSP))]
    return len(blanks.expandtabs(4))


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
            if not (_KEY_VALUE.match(line.content) or has_label(line.text)):
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
        character, length = fence[2][0], len(fence[2])
        stack = below[character]
        if character == "~" or "`" not in fence[3]:
            index = bisect_right(stack, -length, key=lambda closer: -closer[0]) - 1
            if index >= 0 and (not fence[1] or _in_item(lines, number, stack[index][1])):
                closing[number] = stack[index][1]
        if not fence[1] and not fence[3].strip(WSP):
            while stack and stack[-1][0] <= length:
                stack.pop()
            stack.append((length, number))
    return closing


def _in_item(lines: Sequence[Line], row: int, last: int) -> bool:
    """Whether the list item that this row begins reaches to this line: a fence that it opens ends with it."""
    indent = _indent(lines[row].text)
    below = (lines[number].text for number in range(row + 1, last + 1))
    return all(not text.strip(WSP) or _indent(text) > indent for text in below)
