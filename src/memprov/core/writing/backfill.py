"""The plan of a session backfill: history that was asked for, day by day, and how it is taken back.

A backfill goes through the same admission, reading and staging as automatic ingestion and differs in what it may take:
only what the owner or the agent said, of the days that were named, in batches. Its three modes are one computation,
``preview``, ``diary`` (the diary alone) and ``apply``. Because a batch is remembered before anything else of it is
written, ``plan_rollback`` can take it back and a later run can take it again; but taking back never lifts a tombstone,
and a session that was forgotten meanwhile stays out (B40).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo

from attrs import evolve, field, frozen

from memprov.core.records import Choice, Origin, OriginClass, strings
from memprov.core.state import Checkpoint, IngestState
from memprov.core.text import collapse, digest, strip_speaker
from memprov.core.writing.admission import Admission
from memprov.core.writing.candidates import (
    MAX_LINES,
    Candidate,
    DayRule,
    Scan,
    corpus_path,
    per_source_limit,
    scan_source,
)
from memprov.core.writing.diary import DIARY_PATH, DiaryBlock, DiaryLine, add_blocks, block_origins
from memprov.core.writing.effects import RecordRewind, ReplaceText, WriteEffect
from memprov.core.writing.ingest import (
    Placed,
    fenced,
    place_lines,
    progress_effects,
    require_day,
    scanned_sessions,
    staging_effects,
)
from memprov.core.writing.recording import Claim, SignalKind, Staged, origin_of, stage_claims
from memprov.core.writing.rewind import rewind_batch
from memprov.core.writing.sources import Admitted, Transcript
from memprov.errors import InputError

__all__ = [
    "BackfillLine",
    "BackfillMode",
    "BackfillPlan",
    "BackfillRange",
    "BackfillReport",
    "DaySummary",
    "Reflection",
    "plan_backfill",
]

_QUERY = "__dreaming_session_backfill__"
_SHOWN = 5
_CLASSES = (OriginClass.OWNER, OriginClass.AGENT)


class BackfillMode(Choice):
    """What a backfill writes: nothing, the diary only, or everything."""

    PREVIEW = "preview"
    DIARY = "diary"
    APPLY = "apply"


def _day(value: str | None) -> str | None:
    return None if value is None else require_day(value)


@frozen
class BackfillRange:
    """Which days: ``first`` to ``last``, both included and both optional, and at most ``limit_days`` of those found.

    Raises ``InputError``.
    """

    first: str | None = None
    last: str | None = None
    limit_days: int = 92

    def __attrs_post_init__(self) -> None:
        first, last = _day(self.first), _day(self.last)
        if first is not None and last is not None and first > last:
            raise InputError(f"the first day {first} is after the last day {last}")
        limit: object = self.limit_days
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InputError(f"the limit of days must be a positive number, not {self.limit_days!r}")

    def rule(self, day: str) -> DayRule:
        """Days outside the range are left for another time."""
        inside = (self.first is None or day >= self.first) and (self.last is None or day <= self.last)
        return DayRule.TAKE if inside else DayRule.LATER


@frozen
class Reflection:
    """A line for a day's diary that somebody made from lines of a preview, named by their hashes (F10).

    It is bound to the origins of all of them, however many it shows, and left out when one of them is not there any
    more: its session was forgotten, say.
    """

    text: str = field(repr=False)
    hashes: tuple[str, ...] = field(converter=strings)


@frozen
class BackfillLine:
    """A line that a backfill would take: what it says, which is memory text, the hash that names it, whose it is."""

    text: str = field(repr=False)
    hash: str
    session_id: str
    origin_class: OriginClass
    observed_at_ms: int


@frozen
class DaySummary:
    """One day of a backfill: how many lines, and in a preview the lines themselves."""

    day: str
    candidates: int
    lines: tuple[BackfillLine, ...] = ()


@frozen
class BackfillReport:
    """What one batch does. ``more`` says that another batch would find more; ``failed`` has the sessions that could not
    be read, and why; ``left_out`` counts the reflections on lines that are not in this batch.
    """

    mode: BackfillMode
    excluded: tuple[Admission, ...] = ()
    days: tuple[DaySummary, ...] = ()
    added_keys: tuple[str, ...] = ()
    diary_blocks: int = 0
    more: bool = False
    failed: tuple[tuple[str, str], ...] = ()
    left_out: int = 0

    @property
    def candidates(self) -> int:
        """How many lines in all."""
        return sum(day.candidates for day in self.days)


@frozen
class BackfillPlan:
    """The effects of one batch, in order; none for a preview. ``batch`` are the lines that it is about."""

    effects: tuple[WriteEffect, ...]
    report: BackfillReport
    batch: tuple[Candidate, ...] = ()


def plan_backfill(
    state: IngestState,
    admitted: Admitted,
    transcripts: Iterable[Transcript],
    *,
    mode: BackfillMode | str = BackfillMode.PREVIEW,
    days: BackfillRange | None = None,
    zone: tzinfo = UTC,
    reflections: Mapping[str, Iterable[Reflection]] | None = None,
) -> BackfillPlan:
    """Plan one batch. ``reflections`` are lines for the diary by day, in place of the plain list of what was found.

    A preview is asked for its texts, and its report has them; no other holds memory text.
    """
    mode, days = BackfillMode(mode), days or BackfillRange()
    given = {require_day(day): tuple(lines) for day, lines in (reflections or {}).items()}
    checkpoints = {checkpoint.key: checkpoint for checkpoint in state.checkpoints}
    scans = [
        scan_source(t, state, checkpoints.get(t.source.state_key), days.rule, zone=zone, classes=_CLASSES)
        for t in transcripts
    ]
    batch = _select(scans, per_source_limit(len(admitted.sources)), days.limit_days)
    taken = frozenset(candidate.hash for found in batch.values() for candidate in found)
    every = tuple(candidate for found in batch.values() for candidate in found)
    report = BackfillReport(
        mode=mode,
        excluded=admitted.decisions,
        days=tuple(
            DaySummary(day, len(found), tuple(map(_shown, found)) if mode is BackfillMode.PREVIEW else ())
            for day, found in batch.items()
        ),
        more=any(candidate.hash not in taken for scan in scans for candidate in scan.candidates),
        left_out=sum(not _known(line, batch.get(day, ())) for day, lines in given.items() for line in lines),
    )
    if mode is BackfillMode.PREVIEW:
        return BackfillPlan((), report, every)
    blocks = [_block(day, found, given.get(day, ())) for day, found in batch.items()]
    text = None if state.diary is None else state.diary.text
    path = DIARY_PATH if state.diary is None else state.diary.path
    after, added = add_blocks(text, blocks)
    between: list[WriteEffect] = []
    if added:
        between.append(ReplaceText(path, None if text is None else digest(text), after))
    origins: list[Origin] = [origin for block in blocks for origin in block_origins(block)]
    report = evolve(report, diary_blocks=added)
    if mode is BackfillMode.DIARY:
        sessions = {candidate.source.session.session_id for candidate in every}
        effects = staging_effects(state.agent_id, Staged(), (), origins=origins, between=between)
        return BackfillPlan(fenced(state.agent_id, sessions, effects), report, every)
    if every:
        between.append(RecordRewind(rewind_batch(every)))
    placement = place_lines(state.corpus, every)
    staged = stage_claims(state, _coalesced(placement.placed))
    effects = (
        *staging_effects(state.agent_id, staged, placement.appends, origins=origins, between=between),
        *progress_effects(state, every, _progress(scans, taken)),
    )
    effects = fenced(state.agent_id, scanned_sessions(scans), effects)
    return BackfillPlan(effects, evolve(report, added_keys=staged.added), every)


def _order(candidate: Candidate) -> tuple[str, int, str, int]:
    return candidate.day, candidate.provenance.observed_at_ms, candidate.source.scope, candidate.number


def _select(scans: Iterable[Scan], limit: int, limit_days: int) -> dict[str, tuple[Candidate, ...]]:
    """The lines of this batch by day, in order: so many of each transcript, so many in all, so many days."""
    found = [candidate for scan in scans for candidate in sorted(scan.candidates, key=_order)[:limit]]
    by_day: dict[str, list[Candidate]] = {}
    for candidate in sorted(found, key=_order)[:MAX_LINES]:
        by_day.setdefault(candidate.day, []).append(candidate)
    return {day: tuple(by_day[day]) for day in sorted(by_day)[:limit_days]}


def _block(day: str, found: tuple[Candidate, ...], reflections: Iterable[Reflection]) -> DiaryBlock:
    known = {candidate.hash: candidate for candidate in found}
    lines = [
        DiaryLine(reflection.text, tuple(o for h in reflection.hashes for o in _origins(known[h])))
        for reflection in reflections
        if _known(reflection, found)
    ]
    lead = ""
    if not lines:
        lines = [DiaryLine(f"- {candidate.snippet}", _origins(candidate)) for candidate in found[:_SHOWN]]
        lead = f"Session backfill found {len(found)} trusted candidate{'' if len(found) == 1 else 's'}."
    return DiaryBlock(day, lines, lead=lead, source_path=corpus_path(day))


def _known(reflection: Reflection, found: Iterable[Candidate]) -> bool:
    """Whether everything that a reflection was made from is there."""
    return bool(reflection.hashes) and {candidate.hash for candidate in found}.issuperset(reflection.hashes)


def _shown(candidate: Candidate) -> BackfillLine:
    known = candidate.provenance
    session_id = candidate.source.session.session_id
    return BackfillLine(candidate.snippet, candidate.hash, session_id, known.origin_class, known.observed_at_ms)


def _origins(candidate: Candidate) -> tuple[Origin, ...]:
    return (origin_of("", candidate.source.session, candidate.provenance),)


def _coalesced(placed: Iterable[Placed]) -> Iterable[Claim]:
    """The lines as claims: what several of one day state alike is staged where the first of them stands (F9)."""
    first: dict[tuple[str, str], Claim] = {}
    for item in placed:
        candidate = item.candidate
        snippet = strip_speaker(candidate.snippet).strip()
        claim = Claim(
            kind=SignalKind.GROUNDED,
            path=item.path,
            line=item.line,
            snippet=snippet,
            query=f"{_QUERY}:{candidate.day}",
            day=candidate.day,
            provenance=candidate.provenance,
            session=candidate.source.session,
            project_key=candidate.project_key,
        )
        same = first.setdefault((candidate.day, collapse(snippet).lower()), claim)
        yield evolve(claim, path=same.path, line=same.line, snippet=same.snippet)


def _progress(scans: Iterable[Scan], taken: frozenset[str]) -> Iterable[Checkpoint]:
    """Each transcript's checkpoint: up to the first line that was left, for this batch's or the range's sake."""
    for scan in scans:
        if scan.checkpoint is None:
            continue
        stops = [scan.checkpoint.last_content_line]
        stops += [candidate.index for candidate in scan.candidates if candidate.hash not in taken][:1]
        if scan.blocked is not None:
            stops.append(scan.blocked)
        yield evolve(scan.checkpoint, last_content_line=min(stops))
