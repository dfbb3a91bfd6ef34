"""The structure of a memory file: its lines, fenced code, headings, list rows, marker runs and entries.

Markdown is read only as far as deletion needs it (D3, D5): what is a line, what does a marker own, what does a heading
own, and where does ownership end. A structure is found on the original text and never re-read while removing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from memprov.core.text.lines import WSP
from memprov.core.text.markers import CommentKind, comments, mentions_promotion, promotion_lines
from memprov.core.text.outline import Line, close_fences, mark_titles, outline, snapshot_parts, titles

__all__ = ["Document", "Entry", "Run", "promotion_keys"]


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
        self.lines: Sequence[Line] = outline(text)
        mark_titles(self.lines)
        #: the parts of a snapshot file, each a conversation with its own heading (D5); empty for any other file
        self.parts: Sequence[tuple[int, int]] = snapshot_parts(self.lines)
        #: closed fenced blocks: first line and exclusive last line
        self.blocks: Sequence[tuple[int, int]] = [
            block
            for first, last in self.parts or [(0, len(self.lines))]
            for block in close_fences(self.lines, first, last)
        ]
        self.block_at: dict[int, tuple[int, int]] = {n: block for block in self.blocks for n in range(*block)}
        #: the annotation lines, first and exclusive last, that describe the text line above them
        self.notes: dict[int, tuple[int, int]] = {}
        self.runs: Sequence[Run] = list(self._find_runs())
        self.run_at: dict[int, Run] = {n: run for run in self.runs for n in range(run.first, run.last)}
        #: the run that ends directly above a line
        self.run_above: dict[int, Run] = {run.last: run for run in self.runs}
        #: in the order of their heads; one inside another ends there or before
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
        return not (line.blank or line.level or line.managed_fence or self.is_underline(number))

    def is_underline(self, number: int) -> bool:
        """Whether the line is what makes the line above a heading."""
        return number > 0 and self.lines[number - 1].underlined

    def new_underlines(self, staying: Sequence[int]) -> Iterator[int]:
        """Of these lines, if they alone were left, those that would come to underline a title that was none before."""
        for number, _ in titles([self.lines[number] for number in staying]):
            yield staying[number + 1]

    def would_continue(self, number: int, entry: Entry) -> bool:
        """Whether this line would belong to the entry if it stood directly below it (D3)."""
        line = self.lines[number]
        if not self._can_continue(line):
            return False
        return line.is_within(self.lines[entry.head]) or (line.only_comments and line.text[0] in WSP)

    def _can_continue(self, line: Line) -> bool:
        """Whether the line belongs to an entry above if it is indented deeper: not blank, no heading, no markers.

        A managed fence never does: it delimits what others write (report B19).
        """
        structure = line.blank or line.level or line.managed_fence
        return not structure and (line.annotates or not line.only_comments)

    def begin_of_run(self, number: int) -> int:
        """Where the run begins that this line is in or the head of, if that has a head; else the line itself."""
        run = self.run_at.get(number, self.run_above.get(number))
        return number if run is None or run.head is None else run.first

    def indent_below(self, number: int, depth: int) -> int:
        """The width of the blanks after ``depth`` quote marks of a line; -1 when it has fewer quote marks."""
        indents = self.lines[number].indents
        return indents[depth] if depth < len(indents) else -1

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
        if self.lines[number].underlined or self.is_underline(number):
            title = number - self.is_underline(number)
            yield title, title + 2
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
            title = first - 1 - self.is_underline(first - 1)
            if first and (self.can_head(first - 1) or self.lines[title].keys):
                # Indented annotations below a text describe that text, whatever follows.
                above = first - 1
                while first < number and self.lines[first].annotates and self.lines[first].text[0] in WSP:
                    first += 1
                self.notes[above] = above + 1, first
            if first < number:
                keys = tuple(key for line in self.lines[first:number] for key in line.keys)
                yield Run(first, number, keys, number if self.can_head(number) else None)

    def _find_entries(self) -> Iterator[Entry]:
        begun: list[tuple[int, int, tuple[str, ...]]] = []
        last: dict[int, int] = {}
        around: list[int] = []  # the heads of the entries that go on, outermost first
        number = 0
        while number < len(self.lines):
            line = self.lines[number]
            goes_on = self._can_continue(line)
            while around and not (goes_on and line.is_within(self.lines[around[-1]])):
                last[around.pop()] = number
            above = self.run_above.get(number)
            if above is not None and above.keys and above.head is None:
                above = None  # dangling above a marked heading, which it does not own
            keys = line.keys if above is None else above.keys + line.keys
            if keys and number not in self.run_at:
                begun.append((number if above is None else above.first, number, keys))
                around.append(number)
            number = self._after(number)
        last.update(dict.fromkeys(around, len(self.lines)))
        for first, head, keys in begun:
            yield Entry(first, head, last[head], keys)

    def _after(self, number: int) -> int:
        """The line after this one and what is never parted from it: its underline, the block that it begins, notes."""
        first, last = self.block_at.get(number, (-1, -1))
        end = last if first == number else number + 1 + self.lines[number].underlined
        return self.notes.get(end - 1, (end, end))[1]


def promotion_keys(text: str) -> tuple[str, ...]:
    """The entry keys of every live promotion marker in the text, in order, repeats included (D3)."""
    if not mentions_promotion(text):
        return ()
    if "```" in text or "~~~" in text:  # a marker in a closed fenced block shows one
        return tuple(key for line in Document(text.removeprefix("\ufeff")).lines for key in line.keys)
    return tuple(c.value for line in promotion_lines(text) for c in comments(line) if c.kind is CommentKind.PROMOTION)
