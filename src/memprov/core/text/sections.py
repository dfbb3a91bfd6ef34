"""What the label or the heading of a selected session owns (D5), and what stands in the blocks that a host manages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from attrs import frozen

from memprov.core.text.document import Document
from memprov.core.text.outline import metadata_rows
from memprov.core.text.references import SessionMatcher

__all__ = ["Section", "Sections", "machine_lines"]

_EDGE = re.compile(r"openclaw:dreaming:(diary|deep):(start|end)", re.IGNORECASE)


@frozen
class Section:
    """Lines ``first`` to ``last`` (exclusive) that go because of line ``first``; ``heading`` says that it is one."""

    first: int
    last: int
    heading: bool


class Sections:
    """The sections of the selected sessions in a document."""

    def __init__(self, document: Document, sessions: SessionMatcher) -> None:
        self.document = document
        self.lines = document.lines
        self.sessions = sessions
        self.part_end = dict(document.parts)

    def __iter__(self) -> Iterator[Section]:
        """The sections, in order, less those inside an earlier one."""
        if not self.sessions.session_ids:
            return
        covered = 0
        for number in range(len(self.lines)):
            section = self.section_at(number)
            if section is not None and section.last > covered:
                covered = section.last
                yield section

    @cached_property
    def labels(self) -> dict[int, tuple[bool, ...]]:
        """For each labelled line, whether each of its labels names a selected session."""
        found: dict[int, tuple[bool, ...]] = {}
        for number, line in enumerate(self.lines):
            if labels := tuple(label.selected for label in self.sessions.labels(line.text)):
                found[number] = labels
        return found

    def section_at(self, number: int) -> Section | None:
        """The section that this line begins, if it is a selected session's."""
        line = self.lines[number]
        if number in self.part_end:
            if not self._metadata_selected(number):
                return None
            return Section(0 if self._is_all(number) else number, self.part_end[number], heading=True)
        if line.level:
            metadata = not self.is_foreign(number) and self._metadata_selected(number)
            if metadata or self.sessions.refers(line.text):
                return Section(number, self._heading_end(number), heading=True)
        if not any(self.labels.get(number, ())):
            return None
        return Section(number, self._row_end(number) if line.row else self._prose_end(number), heading=False)

    def _metadata_selected(self, heading: int) -> bool:
        """Whether the heading has a metadata block and every id that it labels is selected."""
        rows = metadata_rows(self.lines, heading)
        return bool(rows) and all(all(self.labels.get(number, ())) for number in rows)

    def _is_all(self, first: int) -> bool:
        """Whether nothing of a snapshot file stays below what stands above its first heading: then that goes too."""
        return (
            first == next(iter(self.part_end))
            and all(map(self._metadata_selected, self.part_end))
            and not any(map(self.is_foreign, range(first)))
        )

    def is_foreign(self, number: int) -> bool:
        """Whether the line is the label of an unselected session."""
        labels = self.labels.get(number)
        return labels is not None and not any(labels)

    def _begins_foreign(self, number: int) -> bool:
        """Whether the line is, or is a heading above metadata with, the label of an unselected session."""
        if self.is_foreign(number):
            return True
        return bool(self.lines[number].level) and any(map(self.is_foreign, metadata_rows(self.lines, number)))

    def _heading_end(self, heading: int) -> int:
        level = self.lines[heading].level
        for number in range(heading + 1, len(self.lines)):
            line = self.lines[number]
            if 0 < line.level <= level or line.managed_fence:
                return number
            if self._begins_foreign(number):
                return max(self.document.unit(number)[0], heading + 1)
        return len(self.lines)

    def _row_end(self, row: int) -> int:
        depth = self.lines[row].depth
        indent = self.document.indent_below(row, depth)
        for number in range(row + 1, len(self.lines)):
            line = self.lines[number]
            if line.blank or line.managed_fence or self.document.indent_below(number, depth) <= indent:
                return max(self.document.begin_of_run(number), row + 1)
            if self.is_foreign(number):
                return max(self.document.unit(number)[0], row + 1)
        return len(self.lines)

    def _prose_end(self, start: int) -> int:
        in_code = self.lines[start].in_code
        number = start + 1
        while number < len(self.lines):
            line = self.lines[number]
            ends = (
                line.blank
                or line.level
                or line.row
                or line.managed_fence
                or line.keys
                or number in self.document.run_at
                or number in self.labels
                or self._is_fence(number, in_code=in_code)
            )
            if ends:
                break
            number += 1
        return number

    def _is_fence(self, number: int, *, in_code: bool) -> bool:
        """Whether the line begins a fenced block, or ends the one that the prose is in."""
        if not in_code:
            return self.lines[number].in_code
        return number == self.document.block_at[number][1] - 1


def machine_lines(document: Document, *, phase_report: bool) -> frozenset[int]:
    """The lines that a program wrote, from 0: all of a phase report, else those between two fences of one block.

    A block that is not closed is text, as everywhere (D5).
    """
    if phase_report:
        return frozenset(range(len(document.lines)))
    found: list[int] = []
    block, first = "", 0
    for number, line in enumerate(document.lines):
        if not line.managed_fence or (edge := _EDGE.search(line.text)) is None:
            continue
        name, end = edge[1].lower(), edge[2].lower() == "end"
        if not end:
            block, first = name, number
        elif name == block:
            found.extend(range(first + 1, number))
            block = ""
    return frozenset(found)
