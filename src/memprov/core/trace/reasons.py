"""Why a line of a memory file goes: the rule that takes it, told from what the scrub itself decides (I17).

Each kind of rule is tried alone, so that no second reading of D2 to D5 can come to differ from the first: a line has
the reason of the first rule that takes it without the others, in the order in which removed bytes are counted (marker,
section, quotation). Lines and keys only: no memory text.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum

from attrs import evolve, frozen

from memprov.core.purge import ScrubRules, scrub_text
from memprov.core.text import Document, Spans, to_bytes

__all__ = ["RemovalRule", "RemovedLine", "explain_text", "keys_at", "lines_within"]


class RemovalRule(StrEnum):
    """What takes a line when a session is forgotten.

    ``MARKER``: a marker of one of its entries, or the line below it (D3). ``CONTINUATION``: what continues that line.
    ``DANGLING``: a marker of one of its entries that stands above nothing. ``LABEL``: the line names the session, and
    ``SECTION``: it stands below one that does (D5). ``SNAPSHOT``: it is part of the session's snapshot file (D5).
    ``QUOTATION``: it quotes a corpus line (D2). ``TRANSCRIPT``: it is machine-written and quotes what was said (D23).
    ``COLLATERAL``: it is of another entry, in which a line goes (D4). ``CONSEQUENCE``: no rule names it, and it cannot
    stay without what goes (D3, D5, D16). ``CORPUS``: it is a corpus line of the session (D1).
    """

    MARKER = "marker"
    CONTINUATION = "continuation"
    DANGLING = "dangling-marker"
    LABEL = "label"
    SECTION = "section"
    SNAPSHOT = "snapshot"
    QUOTATION = "quotation"
    TRANSCRIPT = "transcript-quotation"
    COLLATERAL = "collateral"
    CONSEQUENCE = "consequence"
    CORPUS = "corpus"


@frozen(order=True)
class RemovedLine:
    """A line that goes, from 1, in whole or in part, by which rule, and of which entry, where it is of one."""

    line: int
    rule: RemovalRule
    entry_key: str | None = None


def lines_within(text: str, spans: Spans) -> tuple[int, ...]:
    """The lines, from 0, of which these UTF-8 byte ranges of the text hold something."""
    data = to_bytes(text)
    starts = [0]
    while (end := data.find(b"\n", starts[-1])) >= 0:
        starts.append(end + 1)
    found: dict[int, None] = {}
    for start, end in spans:
        found.update(dict.fromkeys(range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1))))
    return tuple(found)


def explain_text(text: str, rules: ScrubRules, *, phase_report: bool = False) -> tuple[RemovedLine, ...]:
    """The lines of ``text`` that ``scrub_text`` removes by these rules, each with its reason, in order (I17)."""
    gone = lines_within(text, scrub_text(text, rules, phase_report=phase_report).spans)
    if not gone:
        return ()
    reasons = _Reasons(text, rules, phase_report=phase_report)
    return tuple(reasons.of(number) for number in gone)


class _Reasons:
    """The lines that each kind of rule takes alone."""

    def __init__(self, text: str, rules: ScrubRules, *, phase_report: bool) -> None:
        def taken(kind: ScrubRules) -> frozenset[int]:
            return frozenset(lines_within(text, scrub_text(text, kind, phase_report=phase_report).spans))

        body = text.removeprefix("\ufeff")
        none = evolve(rules, session_ids=(), entry_keys=(), snippets=(), retained=())
        self.rules = rules
        self.document = Document(body)
        self.by_marker = taken(evolve(none, entry_keys=rules.entry_keys))
        self.by_section = taken(evolve(none, session_ids=rules.session_ids))
        self.by_quotation = taken(evolve(none, snippets=rules.snippets))
        self.by_transcript = taken(evolve(none, retained=rules.retained))
        self.quoted = rules.quotations.quoted_lines(body)
        self.said = rules.machine_quotations.quoted_lines(body)
        self.entries = self._selected()

    def _selected(self) -> dict[int, tuple[int, tuple[str, ...]]]:
        """For each line of a selected entry, the outermost, the line of its head and its selected keys."""
        found: dict[int, tuple[int, tuple[str, ...]]] = {}
        covered = 0
        for entry in self.document.entries:
            if keys := tuple(key for key in entry.keys if key in self.rules.entry_keys):
                numbers = range(max(covered, entry.first), entry.last)
                found.update(dict.fromkeys(numbers, (entry.head, keys)))
                covered = max(covered, entry.last)
        return found

    def of(self, number: int) -> RemovedLine:
        """The reason of a line that goes."""
        rule, key = self._rule(number)
        return RemovedLine(number + 1, rule, key)

    def _rule(self, number: int) -> tuple[RemovalRule, str | None]:
        document = self.document
        if number in self.by_marker:
            if number in self.entries:
                head, keys = self.entries[number]
                own = [key for key in document.lines[number].keys if key in keys]
                return (RemovalRule.CONTINUATION if number > head else RemovalRule.MARKER), (own or keys)[0]
            run = document.run_at.get(number)
            for key in () if run is None else (*document.lines[number].keys, *run.keys):
                if key in self.rules.entry_keys:
                    return RemovalRule.DANGLING, key
        elif number in self.by_section:
            if any(first <= number < last for first, last in document.parts):
                return RemovalRule.SNAPSHOT, None
            if self.rules.sessions.refers(document.lines[number].text):
                return RemovalRule.LABEL, None
        elif number in self.by_quotation and number in self.quoted:
            return RemovalRule.QUOTATION, None
        elif number in self.by_transcript and number in self.said:
            return RemovalRule.TRANSCRIPT, None
        if keys := keys_at(document, number):
            return RemovalRule.COLLATERAL, keys[0]
        return (RemovalRule.SECTION if number in self.by_section else RemovalRule.CONSEQUENCE), None


def keys_at(document: Document, number: int) -> tuple[str, ...]:
    """The keys of the entry that a line, from 0, belongs to, or of the markers that stand there without one."""
    if number in document.entry_at:
        return tuple(document.entry_at[number].keys)
    run = document.run_at.get(number)
    return () if run is None else tuple(run.keys)
