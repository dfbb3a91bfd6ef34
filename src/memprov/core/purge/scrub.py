"""Which byte ranges of a memory text go, and why. Pure; works for files, preimages and indexed text alike.

Three rules select: a marker whose key is selected (D3), a section or row that a selected session labels (D5), and a
line that quotes a corpus snippet (D2, D4). All are found on the original text and united. Then the removals are closed
so that nothing that survives changes its meaning: a run is not parted from its entry, a marker never comes to stand
above a line that it did not own, no line becomes the continuation of an entry that it did not belong to (but for the
label of an unselected session, which stays in any case). So the order in which rules apply does not matter, and
forgetting A then B is forgetting both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from attrs import field, frozen

from memprov.core.lineage import EntryEvidence, Strays
from memprov.core.records import string_set, strings
from memprov.core.text import (
    CommentKind,
    Document,
    Gate,
    LookalikeMatcher,
    QuotationMatcher,
    Sections,
    SessionMatcher,
    Snippet,
    Spans,
    byte_spans,
    comments,
    cut,
    machine_lines,
    promotion_keys,
    promotion_lines,
)

__all__ = ["Scrub", "ScrubRules", "Snippet", "promotion_keys", "scrub_text"]


def _snippets(values: Iterable[str | Snippet]) -> tuple[Snippet, ...]:
    if isinstance(values, str):
        strings(values)  # refuses it
    return tuple(value if isinstance(value, Snippet) else Snippet(strings([value])[0]) for value in values)


@frozen
class ScrubRules:
    """What is selected: sessions of one agent, entry keys, and the snippets of removed corpus lines.

    A snippet is a string or ``Snippet(text, cut=True)`` for one that ingestion shortened. ``retained`` are snippets
    that are known from transcripts: quotations of them go from machine-written lines only (D23). Raises ``InputError``
    when a collection is a lone string. ``evidence`` is what decides whose an entry below several markers is (D3).
    """

    agent_id: str
    session_ids: frozenset[str] = field(default=frozenset(), converter=string_set)
    entry_keys: frozenset[str] = field(default=frozenset(), converter=string_set)
    snippets: tuple[Snippet, ...] = field(default=(), converter=_snippets)
    retained: tuple[Snippet, ...] = field(default=(), converter=_snippets)
    evidence: tuple[EntryEvidence, ...] = ()

    @cached_property
    def sessions(self) -> SessionMatcher:
        """The session ids as a matcher."""
        return SessionMatcher(self.agent_id, self.session_ids)

    @cached_property
    def quotations(self) -> QuotationMatcher:
        """The snippets as a matcher."""
        return QuotationMatcher(self.snippets)

    @cached_property
    def machine_quotations(self) -> QuotationMatcher:
        """The retained snippets as a matcher, for machine-written lines (D23)."""
        return QuotationMatcher(self.retained)

    @cached_property
    def lookalikes(self) -> LookalikeMatcher:
        """All snippets as a matcher of what only looks like them (F09)."""
        return LookalikeMatcher((*self.snippets, *self.retained))

    @cached_property
    def _gate(self) -> Gate:
        """What lets every text through, as bytes, that these rules change or that holds a suspect by them."""
        sought = QuotationMatcher((*self.snippets, *self.retained)) if self.retained else self.quotations
        return Gate(self.session_ids | self.entry_keys, sought, self.lookalikes)

    def __reduce__(self) -> tuple[object, ...]:
        """Rules travel to a worker with every batch of files; one that has equal rules keeps them."""
        return _shared_rules, (
            self.agent_id,
            self.session_ids,
            self.entry_keys,
            self.snippets,
            self.retained,
            self.evidence,
        )


@lru_cache(maxsize=1)
def _shared_rules(
    agent_id: str,
    session_ids: frozenset[str],
    entry_keys: frozenset[str],
    snippets: tuple[Snippet, ...],
    retained: tuple[Snippet, ...],
    evidence: tuple[EntryEvidence, ...],
) -> ScrubRules:
    return ScrubRules(agent_id, session_ids, entry_keys, snippets, retained, evidence)


@frozen
class Scrub:
    """The result. ``spans`` are UTF-8 byte ranges of the input; the counts are those of docs: The report.

    ``undecided`` are entries that went though nothing said of which of their keys they are: line, from 1, and keys.
    """

    text: str
    removed_entries: int = 0
    removed_lines: int = 0
    collateral_entry_keys: tuple[str, ...] = ()
    dangling_markers: tuple[str, ...] = ()
    spans: Spans = ()
    undecided: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything goes."""
        return bool(self.spans)


def scrub_text(text: str, rules: ScrubRules, *, phase_report: bool = False) -> Scrub:
    """Remove from ``text`` what the rules select, and nothing else (I2).

    ``phase_report`` says that the text is a dreaming phase report, where a removed candidate row takes its nested rows
    along (D16) and every line is machine-written (D23). The result's ``text`` is the input itself when nothing goes.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    quoted = rules.quotations.quoted_lines(body) | _quoted_by_machine(body, rules, phase_report=phase_report)
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
        undecided=tuple(removal.strays.undecided),
    )


def _quoted_by_machine(text: str, rules: ScrubRules, *, phase_report: bool) -> frozenset[int]:
    """The machine-written lines that quote what a session said by its transcript (D23)."""
    said = rules.machine_quotations.quoted_lines(text)
    return said & machine_lines(Document(text), phase_report=phase_report) if said else said


def _may_match(text: str, rules: ScrubRules) -> bool:
    """A cheap test that is never wrong when it says no: most texts hold nothing of a selection."""
    if rules.entry_keys:
        for line in promotion_lines(text):
            if any(c.kind is CommentKind.PROMOTION and c.value in rules.entry_keys for c in comments(line)):
                return True
    return rules.sessions.refers(text)


class _Removal:
    """One scrub in progress: the lines that go, the comments that go alone, and the counts."""

    def __init__(self, document: Document, rules: ScrubRules, quoted: frozenset[int], *, phase_report: bool) -> None:
        self.document = document
        self.rules = rules
        self.sections = Sections(document, rules.sessions)
        self.gone = bytearray(len(document.lines))
        #: comments that go while their line stays: line -> indices of comments
        self.partial: dict[int, set[int]] = {}
        self.collateral: set[str] = set()
        self.dangling: set[str] = set()
        self.strays = Strays(document, rules.entry_keys, rules.agent_id, rules.evidence)
        self._claimed = bytearray(len(document.lines))
        self.entry_count = self._select_strays() + self._select_markers() + self._select_sections()
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
        """Take lines for one item; whether it holds any that no earlier item claimed (docs: The report)."""
        fresh = not all(self._claimed[first:last])
        self._claimed[first:last] = b"\1" * (last - first)
        self._take(range(first, last))
        return fresh

    def _take(self, numbers: Iterable[int]) -> None:
        """Take lines, and with them all that is never parted from them (D3, D5)."""
        pending = list(numbers)
        while pending:
            number = pending.pop()
            if not self.gone[number]:
                self.gone[number] = True
                for first, last in self._inseparable(number):
                    pending += (n for n in self._staying(first, last) if not self.strays.fill(n))

    def _staying(self, first: int, last: int) -> Iterator[int]:
        """Those of the lines that are not gone; what is gone is passed at the speed of memory."""
        number = self.gone.find(0, first, last)
        while number >= 0:
            yield number
            number = self.gone.find(0, number + 1, last)

    def _inseparable(self, number: int) -> Iterator[tuple[int, int]]:
        """The lines, first and exclusive last, that go when this one does."""
        document = self.document
        first, last = document.block_at.get(number, (number, number))
        if number in (first, last - 1):
            yield first, last
        if document.lines[number].underlined:
            yield number + 1, number + 2
        if document.is_underline(number):
            yield number - 1, number
        if entry := document.entry_of.get(number):
            yield number + 1, entry.last
        run, above = document.run_at.get(number), document.run_above.get(number)
        if run is not None and run.head is not None and not self.strays.fill(number):
            yield run.head, run.head + 1
        if above is not None and (above.head is not None or document.lines[number].keys):
            yield above.first, above.last
        yield document.notes.get(number, (0, 0))

    def _select_strays(self) -> int:
        """Selected markers above an entry of another key go alone (F10)."""
        count = sum(self._name_dangling(range(entry.first, entry.head), strays=True) for entry in self.strays.entries)
        for number in self.partial:
            if self.strays.fill(number) and len(self.partial[number]) == len(self.document.lines[number].comments):
                self._claim(number, number + 1)
        return count

    def _select_markers(self) -> int:
        keys, count, covered = self.rules.entry_keys, 0, 0
        if not keys:
            return 0
        for entry in self.document.entries:
            if entry.last > covered and not keys.isdisjoint(self.strays.keys_of(entry)):
                covered = entry.last
                count += self._claim(entry.head, entry.last)
                for number in range(entry.first, entry.head):
                    self._claimed[number] |= not self.strays.fill(number)
        for run in self.document.runs:
            if run.head is None and not keys.isdisjoint(run.keys):
                count += self._select_dangling(run.first, run.last, whole=keys.issuperset(run.keys))
        return count

    def _select_dangling(self, first: int, last: int, *, whole: bool) -> int:
        """A dangling run goes whole when none of its promotion markers stays, else marker by marker (D3).

        Annotations do not stay where a marker before them in its line goes, or what they are indented below.
        """
        lines = self.document.lines
        count = self._name_dangling(range(first, last))
        leads = True  # nothing of the run has stayed so far
        for number in range(first, last):
            going = self.partial.get(number, set())
            staying = [c for index, c in enumerate(lines[number].comments) if index not in going]
            below = leads and number > first and lines[number].indent
            if whole or ((going or below) and all(c.annotates for c in staying)):
                self._claim(number, number + 1)
            else:
                leads = False
        return count

    def _name_dangling(self, numbers: range, *, strays: bool = False) -> int:
        """Note the selected markers of these lines, or the strays of them, with the lineage markers above each."""
        count = 0
        above: list[tuple[int, int]] = []  # the lineage comments directly above, as (line, index)
        for number in numbers:
            for index, comment in enumerate(self.document.lines[number].comments):
                if comment.kind is CommentKind.LINEAGE:
                    above.append((number, index))
                    continue
                dangles = not strays or index in self.strays.stray.get(number, ())
                if comment.kind is CommentKind.PROMOTION and comment.value in self.rules.entry_keys and dangles:
                    count += 1
                    self.dangling.add(comment.value)
                    for at, position in (*above, (number, index)):
                        self.partial.setdefault(at, set()).add(position)
                above = []
        return count

    def _select_sections(self) -> int:
        count, seen = 0, None
        for section in self.sections:
            first, last = section.first, section.last
            entry = None if section.heading else self.document.entry_at.get(first)
            if entry is not None and entry is not seen:  # a label takes the entry that it is in whole (D4)
                first, last, seen = entry.first, max(entry.last, last), entry
            count += self._claim(first, last)
        return count

    def _select_quotations(self, quoted: frozenset[int], *, phase_report: bool) -> int:
        lines, count = self.document.lines, 0
        for number in sorted(quoted):
            line = lines[number]
            if line.managed_fence or line.only_comments:
                continue  # structure is never content (report B19)
            count += self._claim(number, number + 1)
            if entry := self.document.entry_at.get(number):
                self._take([entry.head])  # and so the whole of it (D4)
            if phase_report and line.row:
                self._take(self._nested_rows(number))
        return count

    def _nested_rows(self, row: int) -> range:
        lines, number = self.document.lines, row + 1
        while number < len(lines) and not (lines[number].blank or lines[number].managed_fence):
            if lines[number].depth != lines[row].depth or lines[number].indent <= lines[row].indent:
                break
            number += 1
        return range(row + 1, self.document.begin_of_run(number))

    def _close(self) -> None:
        """Apply the last sentences of D3 and D5 until nothing more follows."""
        while any(self.gone) and (
            self._drop_new_owners() or self._drop_new_continuations() or self._drop_new_underlines()
        ):
            pass

    def _drop_new_owners(self) -> bool:
        """A surviving run that would come to stand above a line that it did not head goes (D3)."""
        document, gone, grew = self.document, self.gone, False
        count = len(document.lines)
        below = [count] * (count + 1)  # the first surviving line from here on that is in no run
        for number in range(count - 1, -1, -1):
            passed = gone[number] or number in document.run_at
            below[number] = below[number + 1] if passed else number
        for run in document.runs:
            owned = below[run.last]
            if owned in (run.head, count) or all(gone[run.first : run.last]):
                continue
            if document.can_head(owned) or (document.lines[owned].keys and not run.keys and owned != run.last):
                self._take(range(run.first, run.last))
                grew = True
        return grew

    def _drop_new_continuations(self) -> bool:
        """A line that would come to continue a surviving entry goes with what it continued before (D3).

        Not so the label of an unselected session, nor what holds one: it owns itself (D5), and continues nothing.
        """
        document, gone, grew = self.document, self.gone, False
        before = -1  # the last surviving line
        for number in range(len(document.lines)):
            if gone[number]:
                continue
            entry = document.entry_at.get(before) if before != number - 1 else None
            new = entry is not None and number >= entry.last and document.would_continue(number, entry)
            if new and not any(map(self.sections.is_foreign, range(*document.unit(number)))):
                self._take([number])
                grew = True
            else:
                before = number
        return grew

    def _drop_new_underlines(self) -> bool:
        """A break that would come to underline a paragraph, and make a heading of what is none, goes."""
        staying = [number for number, gone in enumerate(self.gone) if not gone]
        underlines = list(self.document.new_underlines(staying))
        self._take(underlines)
        return bool(underlines)

    def _name_removed(self) -> None:
        document, keys = self.document, self.rules.entry_keys
        for number, line in enumerate(document.lines):
            if self.gone[number]:
                self.collateral.update(key for key in line.keys if key not in keys)
                run = document.run_at.get(number)
                if run is not None and (run.head is None or self.strays.fill(number)):
                    self.dangling.update(line.keys)
