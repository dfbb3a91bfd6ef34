"""The plan of automatic ingestion: from admitted transcripts to effects, in the order that keeps memory forgettable.

Origins are durable before any text is visible, the corpus line before the entry that cites it, and the hashes by which
messages are known again before the checkpoint that says nothing is left to read. A crash between any two leaves a
state from which the next sweep goes on: a line that stands in the corpus already is not appended again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, tzinfo

from attrs import frozen

from memprov.core.purge import DropCheckpoints, DropSeenScopes, DropSignals
from memprov.core.records import Origin, described
from memprov.core.state import Checkpoint, IngestState, evicted_scopes, outdated_hashes
from memprov.core.text import digest
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
from memprov.core.writing.effects import AddSeenHashes, AppendCorpus, SetCheckpoints, StageEntries, WriteEffect
from memprov.core.writing.lineage_effects import RecordOrigins, RequireAdmitted
from memprov.core.writing.recording import Claim, SignalKind, Staged, stage_claims
from memprov.core.writing.sources import Admitted, Transcript
from memprov.core.writing.transcripts import Skipped
from memprov.errors import InputError

__all__ = [
    "MAX_LINES",
    "IngestPlan",
    "IngestReport",
    "Placed",
    "Placement",
    "fenced",
    "place_lines",
    "plan_ingestion",
    "progress_effects",
    "require_day",
    "scanned_sessions",
    "staging_effects",
    "transcripts_within_reach",
]

_QUERY = "__dreaming_sessions__"


@frozen
class IngestReport:
    """What a sweep does, in numbers and names; no memory text.

    ``excluded`` has the reason for each session that was not read, ``failed`` for each that could not be (the reader
    raised, or gave what is no message), ``internal`` for each that turned out to be no conversation. ``lines`` counts
    the lines taken of each day. Of the messages that were read, ``skipped`` counts those that say nothing to memory, by
    reason, and ``untimed`` those whose time is not known. ``more`` says that the limit was reached.
    """

    excluded: tuple[Admission, ...] = ()
    internal: tuple[tuple[str, str], ...] = ()
    lines: tuple[tuple[str, int], ...] = ()
    added_keys: tuple[str, ...] = ()
    more: bool = False
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[Skipped, int], ...] = ()
    untimed: int = 0


@frozen
class IngestPlan:
    """The effects of a sweep, in order, and what they amount to.

    ``followed`` are the sessions of which nothing is left to be decided or read until something changes.
    """

    effects: tuple[WriteEffect, ...]
    report: IngestReport
    followed: frozenset[str] = frozenset()


@frozen
class Placed:
    """A candidate and the number of its line in the corpus file of its day."""

    candidate: Candidate
    path: str
    line: int


@frozen
class Placement:
    """Where candidates come to stand, and what must be appended for that."""

    placed: tuple[Placed, ...]
    appends: tuple[AppendCorpus, ...]


def plan_ingestion(
    state: IngestState,
    admitted: Admitted,
    transcripts: Iterable[Transcript],
    *,
    today: str,
    earliest_day: str | None = None,
    zone: tzinfo = UTC,
    max_lines: int = MAX_LINES,
) -> IngestPlan:
    """Plan one sweep over the admitted transcripts, which are read in turn and only as far as the limit lasts.

    ``today`` is the day on which the sweep runs, in ``zone``: signals count per day. Lines of days before
    ``earliest_day`` are passed over. A sweep takes ``max_lines`` at most. Raises ``InputError`` for a day that is none,
    and for a limit below one.
    """
    require_day(today)
    scans = tuple(_scans(state, admitted, transcripts, earliest_day, zone, max_lines))
    candidates = [candidate for scan in scans for candidate in scan.candidates]
    placement = place_lines(state.corpus, candidates)
    staged = stage_claims(state, (_claim(placed, today) for placed in placement.placed))
    days = [candidate.day for candidate in candidates]
    effects = (
        *staging_effects(state.agent_id, staged, placement.appends),
        *progress_effects(
            state,
            candidates,
            (*admitted.excluded, *(scan.checkpoint for scan in scans if scan.checkpoint is not None)),
            admitted.known_keys,
        ),
    )
    report = IngestReport(
        excluded=admitted.decisions,
        internal=tuple((scan.source.state_key, scan.internal) for scan in scans if scan.internal is not None),
        lines=tuple((day, days.count(day)) for day in sorted(set(days))),
        added_keys=staged.added,
        more=len(candidates) >= max_lines or any(_unread(scan) for scan in scans),
        skipped=_counted(scans),
        untimed=sum(scan.untimed for scan in scans),
    )
    return IngestPlan(
        fenced(state.agent_id, (*scanned_sessions(scans), *admitted.kept_out), effects),
        report,
        frozenset(_followed(admitted, scans)),
    )


def transcripts_within_reach(
    state: IngestState,
    admitted: Admitted,
    transcripts: Iterable[Transcript],
    *,
    earliest_day: str | None = None,
    zone: tzinfo = UTC,
    max_lines: int = MAX_LINES,
) -> tuple[Transcript, ...]:
    """Those of the transcripts that ``plan_ingestion`` gets to; no other is read.

    A shell reads them outside of its lock. See ``plan_ingestion`` for the arguments.
    """
    reached: list[Transcript] = []

    def noted() -> Iterator[Transcript]:
        for transcript in transcripts:
            reached.append(transcript)
            yield transcript

    for _ in _scans(state, admitted, noted(), earliest_day, zone, max_lines):
        pass
    return tuple(reached)


def _scans(
    state: IngestState,
    admitted: Admitted,
    transcripts: Iterable[Transcript],
    earliest_day: str | None,
    zone: tzinfo,
    max_lines: int,
) -> Iterator[Scan]:
    """What the transcripts have to offer, each read when it is asked for, until there are lines enough."""
    if earliest_day is not None:
        require_day(earliest_day)
    if type(max_lines) is not int or max_lines < 1:
        raise InputError(f"max_lines is {described(max_lines)}; it must be a whole number of at least 1")
    checkpoints = {checkpoint.key: checkpoint for checkpoint in state.checkpoints}

    def rule(day: str) -> DayRule:
        return DayRule.TAKE if earliest_day is None or day >= earliest_day else DayRule.SKIP

    limit, left = per_source_limit(len(admitted.sources) + len(admitted.unchanged), max_lines), max_lines
    for transcript in transcripts:
        before = checkpoints.get(transcript.source.state_key)
        scan = scan_source(transcript, state, before, rule, zone=zone, limit=min(limit, left))
        yield scan
        left -= len(scan.candidates)
        if left <= 0:
            break


def _followed(admitted: Admitted, scans: Iterable[Scan]) -> Iterator[str]:
    yield from (decision.session_id for decision in admitted.decisions)
    finished = (*admitted.unchanged, *(scan.source for scan in scans if not _unread(scan)))
    yield from (source.session.session_id for source in finished)


def fenced(agent_id: str, session_ids: Iterable[str], effects: tuple[WriteEffect, ...]) -> tuple[WriteEffect, ...]:
    """The effects behind the fence of the sessions that they say anything of, be it only how far they were read."""
    ids = tuple(sorted(set(session_ids)))
    return (RequireAdmitted(agent_id, ids), *effects) if ids and effects else effects


def scanned_sessions(scans: Iterable[Scan]) -> Iterator[str]:
    """The sessions of the transcripts that there is news of."""
    for scan in scans:
        if scan.checkpoint is not None:
            yield scan.source.session.session_id


def require_day(day: str) -> str:
    """Check a day, ``YYYY-MM-DD``; it is compared as text. Raises ``InputError``."""
    try:
        if date.fromisoformat(day).isoformat() == day:
            return day
    except (TypeError, ValueError):
        pass
    raise InputError(f"{day!r} is no day; write YYYY-MM-DD")


def place_lines(corpus: Mapping[str, str], candidates: Iterable[Candidate]) -> Placement:
    """Append the candidates' lines to the corpus files of their days, in order of days.

    A line that stands there already, from an attempt that was interrupted or taken back, keeps its place.
    """
    by_day: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_day.setdefault(candidate.day, []).append(candidate)
    placed: list[Placed] = []
    appends: list[AppendCorpus] = []
    for day in sorted(by_day):
        path = corpus_path(day)
        text = corpus.get(path)
        lines = _lines(text or "")
        places = dict(zip(reversed(lines), range(len(lines), 0, -1), strict=True))
        new: list[str] = []
        for candidate in by_day[day]:
            if candidate.line not in places:
                new.append(candidate.line)
                places[candidate.line] = len(lines) + len(new)
            placed.append(Placed(candidate, path, places[candidate.line]))
        if new:
            appends.append(AppendCorpus(path, None if text is None else digest(text), tuple(new)))
    return Placement(tuple(placed), tuple(appends))


def staging_effects(
    agent_id: str,
    staged: Staged,
    appends: Iterable[AppendCorpus],
    *,
    origins: Iterable[Origin] = (),
    between: Iterable[WriteEffect] = (),
) -> tuple[WriteEffect, ...]:
    """The effects that bring text in: origins, whatever is shown ``between``, corpus, entries."""
    effects: list[WriteEffect] = []
    if every := (*origins, *staged.origins):
        effects.append(RecordOrigins(agent_id, every))
    effects += between
    effects += appends
    if staged.stale_signals:
        effects.append(DropSignals(staged.stale_signals))
    if staged.entries or staged.evicted:
        effects.append(StageEntries(staged.entries, staged.evicted))
    return tuple(effects)


def progress_effects(
    state: IngestState,
    candidates: Iterable[Candidate],
    checkpoints: Iterable[Checkpoint],
    known_keys: frozenset[str] | None = None,
) -> tuple[WriteEffect, ...]:
    """The effects that say what was read: hashes first, then checkpoints; those of sessions that are gone go."""
    effects: list[WriteEffect] = []
    added: dict[str, list[str]] = {}
    for candidate in candidates:
        added.setdefault(candidate.source.scope, []).append(candidate.hash)
    for scope, hashes in sorted(added.items()):
        outdated = outdated_hashes((*state.seen.get(scope, ()), *hashes))
        effects.append(AddSeenHashes(scope, tuple(hashes), outdated))
    if added and (scopes := evicted_scopes({*state.seen, *added})):
        effects.append(DropSeenScopes(scopes))
    before = {checkpoint.key: checkpoint for checkpoint in state.checkpoints}
    if changed := tuple(c for c in checkpoints if before.get(c.key) != c):
        effects.append(SetCheckpoints(changed))
    if known_keys is not None:
        mine = f"{state.agent_id}:"
        if gone := tuple(sorted(key for key in before if key.startswith(mine) and key not in known_keys)):
            effects.append(DropCheckpoints(gone))
    return tuple(effects)


def _lines(text: str) -> list[str]:
    """The lines without their ends, which are LF or CRLF (D6)."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _claim(placed: Placed, today: str) -> Claim:
    candidate = placed.candidate
    return Claim(
        kind=SignalKind.DAILY,
        path=placed.path,
        line=placed.line,
        snippet=candidate.snippet,
        query=f"{_QUERY}:{candidate.day}",
        day=today,
        provenance=candidate.provenance,
        session=candidate.source.session,
        project_key=candidate.project_key,
    )


def _counted(scans: Iterable[Scan]) -> tuple[tuple[Skipped, int], ...]:
    reasons = Counter(reason for scan in scans for reason in scan.skipped)
    return tuple((reason, reasons[reason]) for reason in Skipped if reasons[reason])


def _unread(scan: Scan) -> bool:
    return scan.checkpoint is not None and scan.checkpoint.last_content_line < scan.checkpoint.line_count
