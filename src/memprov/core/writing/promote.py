"""Promotion: staged entries whose evidence is strong enough become lines of MEMORY.md.

Gates first, never untrusted or system text (docs: host); then the score; then the source is asked whether it still says
so, by content and never by line number (D22). The file is composed here and replaced in one piece: marker, text, source
reference and annotations come together or not at all, and whatever the text holds, it is read back as one entry (J11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from memprov.core.lineage import entry_classes
from memprov.core.purge import promotion_keys
from memprov.core.records import OriginClass
from memprov.core.state import MemorySnapshot, StagedEntry
from memprov.core.text import (
    MIN_SNIPPET_UNITS,
    digest,
    lineage_marker,
    neutralise,
    neutralise_inline,
    normalise,
    one_line,
    promotion_marker,
    readable_key,
    strip_prefix,
    u16_length,
)
from memprov.core.writing.candidates import truncated
from memprov.core.writing.effects import MarkPromoted, ReplaceText, WriteEffect
from memprov.core.writing.lineage_effects import RequireAdmitted
from memprov.core.writing.ranking import Gate, Signals, Thresholds, gate, signals_of, unique_queries

__all__ = [
    "MEMORY_HEADER",
    "MEMORY_PATH",
    "PromotionLimits",
    "PromotionPlan",
    "PromotionReport",
    "Ranked",
    "entry_notes",
    "entry_text",
    "lineage_of",
    "memory_text",
    "plan_promotion",
    "project_of",
    "rank_entries",
    "render_promotion",
]

MEMORY_PATH = "MEMORY.md"
#: What a new file begins with.
MEMORY_HEADER = "# Long-Term Memory\n\n"
_TAG_NOISE = re.compile(r"[,;]|<!--|--!?>")


@frozen
class PromotionLimits:
    """How much one promotion may do: entries, UTF-16 units of one text, characters of the whole file."""

    entries: int = 10
    text_units: int = 640
    file_characters: int = 10_000


@frozen
class PromotionReport:
    """What is promoted, in order of strength, and why the others are not. Keys only, no memory text."""

    promoted: tuple[str, ...] = ()
    refused: tuple[tuple[str, Gate], ...] = ()


@frozen
class PromotionPlan:
    """The effects of one promotion, in order; none when nothing is promoted."""

    effects: tuple[WriteEffect, ...]
    report: PromotionReport


@frozen
class Ranked:
    """An entry that passed the gates, its signals, and the corpus line that says what it says, with its number."""

    entry: StagedEntry
    signals: Signals
    number: int
    line: str
    score: float = field(init=False)

    @score.default
    def _score(self) -> float:
        return self.signals.score

    @property
    def cited(self) -> StagedEntry:
        """The entry as its source has it now."""
        return evolve(self.entry, snippet=self.line, start_line=self.number, end_line=self.number)


def plan_promotion(
    snapshot: MemorySnapshot,
    entries: Iterable[StagedEntry],
    *,
    now_ms: int,
    today: str,
    thresholds: Thresholds | None = None,
    limits: PromotionLimits | None = None,
) -> PromotionPlan:
    """Plan one promotion from the store's snapshot and its staged entries. ``today`` names the section."""
    thresholds, limits = thresholds or Thresholds(), limits or PromotionLimits()
    text = memory_text(snapshot)
    refused: dict[str, Gate] = {}
    ranked = list(rank_entries(snapshot, entries, now_ms, thresholds, refused))
    chosen, composed = _compose(text, ranked, today, limits, refused)
    keys = tuple(item.entry.key for item in chosen)
    report = PromotionReport(keys, tuple(sorted(refused.items())))
    if not chosen:
        return PromotionPlan((), report)
    agent = snapshot.store.agent_id
    sessions = {row.session_id for row in snapshot.origins.touching(entry_keys=keys).rows()}
    effects = (
        RequireAdmitted(agent, sorted(sessions)),
        ReplaceText(MEMORY_PATH, None if text is None else digest(text), composed),
        MarkPromoted(keys),
    )
    return PromotionPlan(effects, report)


def memory_text(snapshot: MemorySnapshot) -> str | None:
    """What MEMORY.md holds; ``None`` where there is none."""
    return next((file.text for file in snapshot.files if file.path == MEMORY_PATH), None)


def rank_entries(
    snapshot: MemorySnapshot,
    entries: Iterable[StagedEntry],
    now_ms: int,
    thresholds: Thresholds,
    refused: dict[str, Gate],
) -> Iterator[Ranked]:
    """The entries that pass, strongest first; the others go into ``refused``."""
    entries = tuple(entries)
    visible = frozenset(promotion_keys(memory_text(snapshot) or ""))
    rows = tuple(snapshot.origins.touching(entry_keys=[entry.key for entry in entries]).rows())
    classes: Mapping[str, OriginClass] = entry_classes(rows)
    forgotten = {row.entry_key for row in rows if row.session_id in snapshot.tombstones}
    agent = snapshot.store.agent_id
    lines = _Sources(agent, {file.path: file.text for file in snapshot.corpus})
    passed = []
    for entry in entries:
        closed = gate(entry, classes.get(entry.key))
        number, line = lines.find(entry)
        item = Ranked(entry, signals_of(entry, now_ms), number, line)
        if closed is None and entry.key in forgotten:
            closed = Gate.FORGOTTEN
        if closed is None and entry.key in visible:
            closed = Gate.PROMOTED
        if closed is None and u16_length(_said(agent, entry.snippet)) < MIN_SNIPPET_UNITS:
            closed = Gate.TOO_SHORT
        if closed is None and not item.number:
            closed = Gate.SOURCE_GONE
        count = entry.recall_count + entry.daily_count + entry.grounded_count
        strong = count >= thresholds.signals and unique_queries(entry) >= thresholds.unique_queries
        if closed is None and not (strong and item.score >= thresholds.score):
            closed = Gate.WEAK
        if closed is None:
            passed.append(item)
        else:
            refused[entry.key] = closed
    passed.sort(key=lambda item: (-item.score, item.entry.key))
    yield from passed


def _said(agent_id: str, snippet: str) -> str:
    return normalise(strip_prefix(snippet, agent_id)).strip(" ")


class _Sources:
    """The corpus lines as they stand now, looked up by what they say: never by number alone (D22)."""

    def __init__(self, agent_id: str, texts: Mapping[str, str]) -> None:
        self._agent_id = agent_id
        self._texts = texts
        self._lines: dict[str, dict[str, list[tuple[int, str]]]] = {}

    def find(self, entry: StagedEntry) -> tuple[int, str]:
        """The number of the line, from 1, that says what the entry says, and the line; 0 when there is none.

        Of several it is the nearest to where the entry was taken from.
        """
        if entry.path not in self._lines:
            said: dict[str, list[tuple[int, str]]] = {}
            text = self._texts.get(entry.path, "").removeprefix("\ufeff")
            lines = (line.removesuffix("\r") for line in text.split("\n"))
            for number, line in enumerate(lines, 1):
                said.setdefault(_said(self._agent_id, line), []).append((number, line))
            self._lines[entry.path] = said
        found = self._lines[entry.path].get(_said(self._agent_id, entry.snippet), [])
        return min(found, key=lambda at: abs(at[0] - entry.start_line), default=(0, ""))


def _compose(
    text: str | None, ranked: list[Ranked], today: str, limits: PromotionLimits, refused: dict[str, Gate]
) -> tuple[list[Ranked], str]:
    """The file with a section of the strongest entries that fit; the others go into ``refused``."""
    start = text or MEMORY_HEADER
    if not start.endswith("\n"):
        start += "\n"
    composed = f"{start}\n## Promoted From Short-Term Memory ({today})\n\n"
    chosen: list[Ranked] = []
    for item in ranked:
        added = render_promotion(item.cited, item.signals, limits)
        if len(chosen) < limits.entries and len(composed) + len(added) <= limits.file_characters:
            chosen.append(item)
            composed += added
        else:
            refused[item.entry.key] = Gate.NO_ROOM
    return chosen, composed


def render_promotion(entry: StagedEntry, signals: Signals, limits: PromotionLimits | None = None) -> str:
    """The markers and the entry line of a promoted entry (docs: MEMORY.md): two lines, whatever the text holds, and
    one more where it is known what the entry supersedes, by which a later one can take its place.
    """
    limits = limits or PromotionLimits()
    count = entry.recall_count + entry.daily_count + entry.grounded_count
    average = entry.total_score / max(count, 1)
    facts = f"score={signals.score:.3f} signals={count} recalls={entry.recall_count} avg={average:.3f}"
    parts = [
        f"- {entry_text(entry, limits)}",
        f"[{facts} source={neutralise_inline(one_line(entry.path))}:{entry.start_line}-{entry.end_line}]",
        *entry_notes(entry, signals),
    ]
    lineage = lineage_of(entry)
    markers = [*([lineage_marker(lineage)] if lineage else []), promotion_marker(entry.key)]
    return "\n".join((*markers, " ".join(parts), ""))


def entry_notes(entry: StagedEntry, signals: Signals) -> Iterator[str]:
    """The comments that describe an entry in a file (docs: MEMORY.md)."""
    if tags := ", ".join(filter(None, map(_tag, entry.concept_tags[:3]))):
        yield f"<!-- trigger: {tags} -->"
    yield f"<!-- importance: {min(max(round(signals.score * 10), 3), 10)} -->"
    if project := project_of(entry):
        yield f"<!-- project: {project} -->"


def project_of(entry: StagedEntry) -> str | None:
    """The project of an entry, if it can be named in an annotation."""
    return entry.project_key if entry.project_key and readable_key(entry.project_key) else None


def lineage_of(entry: StagedEntry) -> str | None:
    """What an entry supersedes, if a marker can name it."""
    key = None if entry.provenance is None else entry.provenance.supersedes_key
    return key if key and readable_key(key) else None


def entry_text(entry: StagedEntry, limits: PromotionLimits) -> str:
    """The snippet as it may stand in a file: one line, its own corpus prefix kept, everything else disarmed."""
    snippet = one_line(entry.snippet)
    agent = snippet.partition("/")[0].removeprefix("[")
    said = strip_prefix(snippet, agent)
    prefix = snippet[: len(snippet) - len(said)]
    said = neutralise_inline(said) if prefix else neutralise(said)
    return prefix + truncated(said, max(limits.text_units - u16_length(prefix), 0))


def _tag(tag: str) -> str:
    return neutralise_inline(_TAG_NOISE.sub(" ", one_line(tag)))[:64].strip()
