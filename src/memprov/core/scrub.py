"""Which byte ranges of a memory text go, and why. Pure; works for files, preimages and indexed text alike.

Three rules select: a marker whose key is selected (D3), a section or row that a selected session labels (D5), and a
line that quotes a corpus snippet (D2, D4). All are found on the original text and united. Then the removals are closed
so that nothing that survives changes its meaning: a run is not parted from its entry, a marker never comes to stand
above a line that it did not own, no line becomes the continuation of an entry that it did not belong to. So the
order in which rules apply does not matter, and forgetting A then B is forgetting both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from attrs import field, frozen

from memprov.core.document import Document
from memprov.core.markers import CommentKind, comments, mentions_promotion
from memprov.core.quotation import QuotationMatcher, Snippet
from memprov.core.records import string_set, strings
from memprov.core.references import SessionMatcher
from memprov.core.sections import find_sections
from memprov.core.text import Spans, byte_spans, cut, line_spans

__all__ = ["Scrub", "ScrubRules", "Snippet", "promotion_keys", "scrub_text"]


def _snippets(values: Iterable[str | Snippet]) -> tuple[Snippet, ...]:
    if isinstance(values, str):
        strings(values)  # refuses it
    return tuple(value if isinstance(value, Snippet) else Snippet(strings([value])[0]) for value in values)


@frozen
class ScrubRules:
    """What is selected: sessions of one agent, entry keys, and the snippets of removed corpus lines.

    A snippet is a string or ``Snippet(text, cut=True)`` for one that ingestion shortened. Raises ``InputError`` when a
    collection is a lone string.
    """

    agent_id: str
    session_ids: frozenset[str] = field(default=frozenset(), converter=string_set)
    entry_keys: frozenset[str] = field(default=frozenset(), converter=string_set)
    snippets: tuple[Snippet, ...] = field(default=(), converter=_snippets)

    @cached_property
    def sessions(self) -> SessionMatcher:
        """The session ids as a matcher."""
        return SessionMatcher(self.agent_id, self.session_ids)

    @cached_property
    def quotations(self) -> QuotationMatcher:
        """The snippets as a matcher."""
        return QuotationMatcher(self.snippets)


@frozen
class Scrub:
    """The result. ``spans`` are UTF-8 byte ranges of the input; the counts are those of DESIGN 4.3."""

    text: str
    removed_entries: int = 0
    removed_lines: int = 0
    collateral_entry_keys: tuple[str, ...] = ()
    dangling_markers: tuple[str, ...] = ()
    spans: Spans = ()

    @property
    def changed(self) -> bool:
        """Whether anything goes."""
        return bool(self.spans)


def promotion_keys(text: str) -> tuple[str, ...]:
    """The entry keys of every live promotion marker in the text, in order, repeats included (D3)."""
    if not mentions_promotion(text):
        return ()
    return tuple(key for line in Document(text.removeprefix("\ufeff")).lines for key in line.keys)


def scrub_text(text: str, rules: ScrubRules, *, phase_report: bool = False) -> Scrub:
    """Remove from ``text`` what the rules select, and nothing else (I2).

    ``phase_report`` says that the text is a dreaming phase report, where a removed candidate row takes its nested rows
    along (D16). The result's ``text`` is the input itself when nothing goes.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    quoted = rules.quotations.quoted_lines(body)
    if not quoted and not _may_match(body, rules):
        return Scrub(text)
    removal = _Removal(Document(body), rules, quoted, phase_report=phase_report)
    ranges = list(removal.ranges())
    if not ranges:
        return Scrub(text)
    if mark and sum(end - start for start, end in ranges) == len(body):
        spans = byte_spans(text, [(0, len(text))])  # a byte order mark does not stay alone (D6)
    else:
        spans = byte_spans(text, [(start + len(mark), end + len(mark)) for start, end in ranges])
    return Scrub(
        text=cut(text, spans),
        removed_entries=removal.entry_count,
        removed_lines=removal.line_count,
        collateral_entry_keys=tuple(sorted(removal.collateral)),
        dangling_markers=tuple(sorted(removal.dangling)),
        spans=spans,
    )


def _may_match(text: str, rules: ScrubRules) -> bool:
    """A cheap test that is never wrong when it says no: most texts hold nothing of a selection."""
    if rules.entry_keys and mentions_promotion(text):
        for start, end in line_spans(text):
            if any(c.kind is CommentKind.PROMOTION and c.value in rules.entry_keys for c in comments(text[start:end])):
                return True
    return rules.sessions.refers(text)


class _Removal:
    """One scrub in progress: the lines that go, the comments that go alone, and the counts."""

    def __init__(self, document: Document, rules: ScrubRules, quoted: frozenset[int], *, phase_report: bool) -> None:
        self.document = document
        self.rules = rules
        self.gone = bytearray(len(document.lines))
        #: comments that go while their line stays: line -> indices of comments
        self.partial: dict[int, set[int]] = {}
        self.collateral: set[str] = set()
        self.dangling: set[str] = set()
        self._claimed = bytearray(len(document.lines))
        self.entry_count = self._select_markers() + self._select_sections()
        self.line_count = self._select_quotations(quoted, phase_report=phase_report)
        self._close()
        self._name_removed()

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The character ranges that go, in order."""
        for number, line in enumerate(self.document.lines):
            if self.gone[number]:
                yield line.start, line.end
            else:
                for index in sorted(self.partial.get(number, ())):
                    comment = line.comments[index]
                    yield line.start + comment.start, line.start + comment.end

    def _claim(self, first: int, last: int) -> bool:
        """Take lines for one item; whether it holds any that no earlier item claimed (DESIGN 4.3)."""
        fresh = not all(self._claimed[first:last])
        self._claimed[first:last] = b"\1" * (last - first)
        self.gone[first:last] = b"\1" * (last - first)
        return fresh

    def _select_markers(self) -> int:
        keys, count = self.rules.entry_keys, 0
        if not keys:
            return 0
        for entry in self.document.entries:
            if not keys.isdisjoint(entry.keys):
                count += self._claim(entry.first, entry.last)
        for run in self.document.runs:
            if run.head is None and not keys.isdisjoint(run.keys):
                count += self._select_dangling(run.first, run.last, whole=keys.issuperset(run.keys))
        return count

    def _select_dangling(self, first: int, last: int, *, whole: bool) -> int:
        """A dangling run goes whole when none of its promotion markers stays, else marker by marker (D3)."""
        lines, count = self.document.lines, 0
        above: list[tuple[int, int]] = []  # the lineage comments directly above, as (line, index)
        for number in range(first, last):
            for index, comment in enumerate(lines[number].comments):
                if comment.kind is CommentKind.LINEAGE:
                    above.append((number, index))
                    continue
                if comment.kind is CommentKind.PROMOTION and comment.value in self.rules.entry_keys:
                    count += 1
                    self.dangling.add(comment.value)
                    for at, position in (*above, (number, index)):
                        self.partial.setdefault(at, set()).add(position)
                above = []
        for number in range(first, last):
            if whole or len(self.partial.get(number, ())) == len(lines[number].comments):
                self._claim(number, number + 1)
        return count

    def _select_sections(self) -> int:
        count = 0
        for section in find_sections(self.document, self.rules.sessions):
            first, last = section.first, section.last
            if not section.heading:  # a label inside marked entries takes them whole, as one section (D4)
                for entry in self.document.entries_at.get(first, ()):
                    first, last = min(first, entry.first), max(last, entry.last)
            count += self._claim(first, last)
        return count

    def _select_quotations(self, quoted: frozenset[int], *, phase_report: bool) -> int:
        lines, count = self.document.lines, 0
        for number in sorted(quoted):
            line = lines[number]
            if line.managed_fence or line.only_comments:
                continue  # structure is never content (report B19)
            count += self._claim(number, number + 1)
            if phase_report and line.row:
                below = number + 1
                while below < len(lines) and self._nested(below, number):
                    self.gone[below] = True
                    below += 1
        return count

    def _nested(self, number: int, row: int) -> bool:
        line, head = self.document.lines[number], self.document.lines[row]
        return not line.blank and line.depth == head.depth and line.indent > head.indent

    def _close(self) -> None:
        """Apply the last sentences of D3 and D5 until nothing more follows."""
        grew = any(self.gone)
        while grew:
            grew = self._keep_units_whole()
            grew |= self._drop_new_owners()
            grew |= self._drop_new_continuations()

    def _take(self, first: int, last: int) -> bool:
        if all(self.gone[first:last]):
            return False
        self.gone[first:last] = b"\1" * (last - first)
        return True

    def _keep_units_whole(self) -> bool:
        document, gone, grew = self.document, self.gone, False
        for first, last in document.blocks:
            if gone[first] or gone[last - 1]:
                grew |= self._take(first, last)
        for entry in document.entries:
            if any(gone[entry.first : entry.last]):
                grew |= self._take(entry.first, entry.last)
        for run in document.runs:
            if run.head is not None and (gone[run.head] or any(gone[run.first : run.last])):
                grew |= self._take(run.first, run.head + 1)
        return grew

    def _drop_new_owners(self) -> bool:
        """A surviving run that would come to stand above a line that it did not head goes (D3)."""
        document, gone, grew = self.document, self.gone, False
        count = len(document.lines)
        below = [count] * (count + 1)  # the first surviving line from here on that is in no run
        for number in range(count - 1, -1, -1):
            passed = gone[number] or number in document.run_at
            below[number] = below[number + 1] if passed else number
        for run in document.runs:
            if below[run.last] != run.head and document.can_head(below[run.last]):
                grew |= self._take(run.first, run.last)
        return grew

    def _drop_new_continuations(self) -> bool:
        """A line that would come to continue a surviving entry goes with what it continued before (D3)."""
        document, gone, grew = self.document, self.gone, False
        before = -1  # the last surviving line
        owner: frozenset[int] = frozenset()  # the heads of the entries that it belongs to
        for number in range(len(document.lines)):
            if gone[number]:
                continue
            entries = document.entries_at.get(number, ())
            own = frozenset(entry.head for entry in entries if number >= entry.head)
            if before != number - 1 and owner - own and document.continues(number):
                gone[number] = grew = True
            else:
                before, owner = number, own
        return grew

    def _name_removed(self) -> None:
        document, keys = self.document, self.rules.entry_keys
        for number, line in enumerate(document.lines):
            if self.gone[number]:
                self.collateral.update(key for key in line.keys if key not in keys)
                run = document.run_at.get(number)
                if run is not None and run.head is None:
                    self.dangling.update(line.keys)
