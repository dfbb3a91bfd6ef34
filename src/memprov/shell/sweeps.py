"""The write path on the embedded store: ingest, backfill, roll back, promote, publish a narrative.

Each reads outside the lock and plans and writes under it. Admission is decided before the host's reader is called (I10)
and once more under the lock, where a session that was forgotten in the meantime drops out (I6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, tzinfo

from attrs import evolve

from memprov.core.records import Origin, SessionRecord, SessionState, Tombstone, described, string_set, strings
from memprov.core.state import IngestState
from memprov.core.writing import (
    CONTEXT_BLOCKS,
    MAX_LINES,
    AdmissionPolicy,
    Admitted,
    BackfillMode,
    BackfillRange,
    BackfillReport,
    Dropped,
    IngestReport,
    PendingNarrative,
    PromotionLimits,
    PromotionReport,
    Purpose,
    Reflection,
    RollbackReport,
    Source,
    Thresholds,
    Transcript,
    admit_sources,
    day_of,
    diary_context,
    narrative_keys,
    plan_annotation,
    plan_backfill,
    plan_ingestion,
    plan_narrative,
    plan_promotion,
    plan_rollback,
    read_admitted,
    session_source,
    transcripts_within_reach,
)
from memprov.errors import InputError
from memprov.shell.arguments import call, moment, need, optional, waiting, zone_of
from memprov.shell.native import NativeStore, NativeWriter, embedded_only
from memprov.shell.port import TranscriptReader, failure

__all__ = [
    "annotate_entry",
    "backfill",
    "ingest",
    "prepare_narrative",
    "promote",
    "publish_narrative",
    "rollback_backfill",
]


#: How many sessions a sweep looks at first; where these have too little to say, at four times as many.
_LOOKED_AT = 256

_States = Callable[[Iterable[str] | None], IngestState]


@embedded_only
def ingest(
    store: NativeStore,
    reader: TranscriptReader,
    *,
    policy: AdmissionPolicy | None = None,
    sessions: Iterable[str] | None = None,
    look_back_days: int | None = None,
    zone: tzinfo = UTC,
    now_ms: int | None = None,
    max_lines: int = MAX_LINES,
) -> IngestReport:
    """Copy what is new in the admitted sessions into the corpus and the staged entries: one sweep (docs: Corpus lines).

    ``reader`` is called for admitted sessions only, as far as the limit lasts; where it fails, that session is left for
    the next sweep and named in the report, and the others are taken. A session whose record says when its transcript
    changed (``SessionRecord.changed``) is looked at once after each change, and whenever something newly known of it or
    another ``policy`` could decide otherwise; a sweep in which there is none changes nothing and calls nobody.
    ``sessions`` are ids, for a transcript that has just changed; without, all are looked at. ``look_back_days`` passes
    over older lines; days are counted in ``zone``. A sweep takes ``max_lines`` at most, under one lock: the report's
    ``more`` says that another one would find more.
    """
    now = moment(store, now_ms)
    chosen = None if sessions is None else string_set(sessions)
    basis = (optional(policy, AdmissionPolicy, "policy") or AdmissionPolicy()).digest
    today, earliest = day_of(now, zone_of(zone)), _earliest(now, look_back_days, zone)
    call(reader, "reader")
    store = waiting(store)
    marks = store.unfollowed("ingested", basis, chosen)
    if not marks and (chosen is not None or store.holds_sessions()):
        return IngestReport()
    work = _Work(reader, policy, Purpose.INGESTION)
    order, looked_at = store.unread_first(marks), max(_LOOKED_AT, max_lines)
    while True:
        everything = looked_at >= len(order)
        work.list_sessions(store.sessions(order[:looked_at]), complete=everything and chosen is None)
        state, admitted = work.admitted(lambda ids: store.progress(ids or ()))
        reached = transcripts_within_reach(
            state, admitted, work.transcripts(admitted), earliest_day=earliest, zone=zone, max_lines=max_lines
        )
        if everything or not work.exhausted:
            break
        looked_at *= 4  # too few of them had anything to say
    with store.exclusive() as writer:
        writer.stand_at(now)
        state, admitted, still = work.again(writer.ingest_state, reached)
        plan = plan_ingestion(
            state, admitted, still, today=today, earliest_day=earliest, zone=zone, max_lines=max_lines
        )
        for effect in plan.effects:
            writer.write(effect)
        writer.mark_followed("ingested", {name: mark for name in plan.followed if (mark := marks.get(name))})
    return evolve(plan.report, failed=work.failed, more=plan.report.more or not work.exhausted)


@embedded_only
def backfill(
    store: NativeStore,
    reader: TranscriptReader,
    *,
    mode: BackfillMode | str = BackfillMode.PREVIEW,
    days: BackfillRange | None = None,
    policy: AdmissionPolicy | None = None,
    reflections: Mapping[str, Iterable[Reflection]] | None = None,
    zone: tzinfo = UTC,
    now_ms: int | None = None,
) -> BackfillReport:
    """Bring in the past, one batch: look (``preview``), write the diary only (``diary``), or everything (``apply``).

    Retained generations of a session are read too; archives are not. A preview takes no lock and changes nothing; its
    report has the texts of each day. ``reflections`` are what somebody made of these, by day, for the diary.
    """
    now, mode = moment(store, now_ms), BackfillMode(mode)
    optional(days, BackfillRange, "days")
    optional(policy, AdmissionPolicy, "policy")
    zone_of(zone)
    store = store if mode is BackfillMode.PREVIEW else waiting(store)
    work = _Work(call(reader, "reader"), policy, Purpose.BACKFILL)
    work.list_sessions(store.catalogue(), complete=True)
    transcripts = tuple(work.transcripts(work.admitted(store.ingest_state)[1]))
    if mode is BackfillMode.PREVIEW:
        plan = plan_backfill(
            *work.again(store.ingest_state, transcripts), mode=mode, days=days, zone=zone, reflections=reflections
        )
        return evolve(plan.report, failed=work.failed)
    with store.exclusive() as writer:
        writer.stand_at(now)
        plan = plan_backfill(
            *work.again(writer.ingest_state, transcripts), mode=mode, days=days, zone=zone, reflections=reflections
        )
        for effect in plan.effects:
            writer.write(effect)
    return evolve(plan.report, failed=work.failed)


@embedded_only
def rollback_backfill(store: NativeStore, *, now_ms: int | None = None) -> RollbackReport:
    """Take back what backfills brought in and nothing else did. A tombstone is never lifted (report B40)."""
    now = moment(store, now_ms)
    with store.exclusive() as writer:
        writer.stand_at(now)
        writer.mark_unfollowed()  # first: what it takes back must be found again, wherever it is interrupted
        plan = plan_rollback(writer.ingest_state())
        for effect in plan.effects:
            writer.write(effect)
    return plan.report


@embedded_only
def promote(
    store: NativeStore,
    *,
    thresholds: Thresholds | None = None,
    limits: PromotionLimits | None = None,
    zone: tzinfo = UTC,
    now_ms: int | None = None,
) -> PromotionReport:
    """Write the staged entries with the strongest evidence into MEMORY.md; never untrusted or system text (B29)."""
    now = moment(store, now_ms)
    optional(thresholds, Thresholds, "thresholds")
    optional(limits, PromotionLimits, "limits")
    with store.exclusive() as writer:
        writer.stand_at(now)
        plan = plan_promotion(
            writer.snapshot(),
            writer.ingest_state().entries,
            now_ms=now,
            today=day_of(now, zone_of(zone)),
            thresholds=thresholds,
            limits=limits,
        )
        for effect in plan.effects:
            writer.write(effect)
    return plan.report


@embedded_only
def annotate_entry(
    store: NativeStore,
    entry_key: str,
    *,
    supersedes_key: str | None = None,
    project_key: str | None = None,
    now_ms: int | None = None,
) -> bool:
    """Say of a staged entry what it replaces and which project it belongs to; ``False`` when that is known already.

    ``supersedes_key`` is the key of the entry that said so before, or a name of the host's own, as in a ``Message``. A
    consolidation may then put the later entry in the place of the earlier one. Raises ``InputError`` for an entry that
    is not staged.
    """
    now = moment(store, now_ms)
    with store.exclusive() as writer:
        writer.stand_at(now)
        state = writer.ingest_state()
        effects = plan_annotation(state, entry_key, supersedes_key=supersedes_key, project_key=project_key)
        for effect in effects:
            writer.write(effect)
    return bool(effects)


@embedded_only
def prepare_narrative(
    store: NativeStore, source_keys: Iterable[str], *, context_blocks: int = CONTEXT_BLOCKS
) -> PendingNarrative:
    """Begin a narrative about these staged entries, with the newest blocks of the diary for its context.

    A model makes the text of it: ``publish_narrative(store, pending.telling(text))``. Nothing is locked meanwhile.
    """
    state = store.ingest_state()
    diary = None if state.diary is None else state.diary.text
    pending = PendingNarrative("", strings(source_keys), (), diary_context(diary, limit=context_blocks))
    return evolve(pending, origins=_lineage(store, state, pending)[0])


@embedded_only
def publish_narrative(
    store: NativeStore, narrative: PendingNarrative, *, zone: tzinfo = UTC, now_ms: int | None = None
) -> Dropped | None:
    """Write a narrative into the diary, unless what it was made from is gone; the answer says why not (docs: Workspace
    lock).

    What it comes from is looked up in the ledgers of the workspace. One that nothing is found for is not published.
    """
    now = moment(store, now_ms)
    need(narrative, PendingNarrative, "narrative")
    if not need(narrative.text, str, "the text of a narrative").strip():
        raise InputError("the narrative has no text; pending.telling(text) gives it one")
    with store.exclusive() as writer:
        writer.stand_at(now)
        state = writer.ingest_state()
        known, forgotten = _lineage(writer, state, narrative)
        plan = plan_narrative(state, narrative, known, written_ms=now, zone=zone_of(zone), forgotten=forgotten)
        for effect in plan.effects:
            writer.write(effect)
    return plan.dropped


def _lineage(
    access: NativeStore | NativeWriter, state: IngestState, narrative: PendingNarrative
) -> tuple[tuple[Origin, ...], tuple[Tombstone, ...]]:
    """The origins of what a narrative tells of, in every ledger of the workspace, and which of the others' sessions are
    forgotten.
    """
    keys = narrative_keys(state, narrative)
    siblings = access.siblings(keys)
    rows = (*access.origins_of(keys), *(row for sibling in siblings for row in sibling.origins))
    return rows, tuple(Tombstone(s.agent_id, session_id) for s in siblings for session_id in s.forgotten)


class _Work:
    """One purpose's listing, admitted and read before the lock, and admitted again under it."""

    def __init__(self, reader: TranscriptReader, policy: AdmissionPolicy | None, purpose: Purpose) -> None:
        self._reader, self._policy, self._purpose = reader, policy, purpose
        self._listing: tuple[Source, ...] = ()
        self._complete = False
        self._failed: dict[str, str] = {}
        self._known: dict[str, Transcript | None] = {}
        self.exhausted = False
        """Whether every admitted session of the listing was asked for."""

    def list_sessions(self, records: Iterable[SessionRecord], *, complete: bool) -> None:
        """Look at these sessions; ``complete`` says that there are no others. What was read stays read."""
        self._listing = tuple(session_source(record, modified_ms=record.created_at_ms or 0) for record in records)
        self._complete, self.exhausted = complete, False

    @property
    def failed(self) -> tuple[tuple[str, str], ...]:
        """The sessions that could not be read, and why."""
        return tuple(sorted(self._failed.items()))

    def admitted(self, ingest_state: _States) -> tuple[IngestState, Admitted]:
        """The state as it is now, and what it admits."""
        ids = [source.session.session_id for source in self._listing]
        state = ingest_state(ids if self._purpose is Purpose.INGESTION else None)
        return state, admit_sources(self._listing, self._policy, state, self._purpose, complete=self._complete)

    def transcripts(self, admitted: Admitted) -> Iterator[Transcript]:
        """The transcripts of the admitted sessions, each read when it is asked for, and no other."""
        yield from read_admitted(admitted, self._once)
        self.exhausted = True

    def _once(self, source: Source) -> Transcript | None:
        if source.state_key not in self._known:
            self._known[source.state_key] = self._transcript(source)
        return self._known[source.state_key]

    def again(
        self, ingest_state: _States, transcripts: Iterable[Transcript]
    ) -> tuple[IngestState, Admitted, tuple[Transcript, ...]]:
        """The state as it is now, and what of the transcripts is still admitted."""
        state, admitted = self.admitted(ingest_state)
        keys = {source.state_key for source in admitted.sources}
        return state, admitted, tuple(t for t in transcripts if t.source.state_key in keys)

    def _transcript(self, source: Source) -> Transcript | None:
        session = source.session
        try:
            messages = self._reader(session)
            archived = session.state is SessionState.ARCHIVED
            return None if messages is None else Transcript(source, messages, archived=archived)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is of this session alone
            self._failed[session.session_id] = failure(error)
            return None


def _earliest(now_ms: int, days: int | None, zone: tzinfo) -> str | None:
    """The earliest day that a sweep still looks at, so many days back (docs: Corpus lines)."""
    if days is None:
        return None
    given: object = days
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InputError(f"look_back_days is {described(given)}; it must be a number of days, 0 or more")
    return day_of(max(now_ms - days * 86_400_000, 0), zone)
