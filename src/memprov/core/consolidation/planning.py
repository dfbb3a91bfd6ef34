"""Consolidation: a model decides, we validate, compose and keep the lineage (docs: host, docs: Origins and merges).

The order of effects is the whole point. Fences first. Then the survivor has every origin of its parents, in every
ledger of the workspace, before a byte of the file changes: a crash leaves origins without text, which harms nobody.
Then the preimage, the file, the excerpts in the diary, which the survivor's origins cover, and last what may be pruned
now. When the file was certainly not replaced, what was reserved is given back; when that is not certain, it stays, and
nothing is tried again as an append, since the text may be there already (F6, B09).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from attrs import evolve, frozen

from memprov.core.consolidation.decisions import (
    Action,
    CandidateEntry,
    ConsolidationRequest,
    Decision,
    PriorEntry,
    Rejected,
    Rejection,
    check_decisions,
    prior_entries,
    without_comments,
)
from memprov.core.consolidation.plan import ConsolidationPlan, ConsolidationReport
from memprov.core.consolidation.prune import SiblingEntries, plan_prune, prune_candidates
from memprov.core.consolidation.text import ResultLine, compose_memory, consolidated_line
from memprov.core.lineage import (
    Transfer,
    TransferEdge,
    entry_classes,
    transfer_origins,
)
from memprov.core.records import Origin, SessionKind, eligible
from memprov.core.state import MemorySnapshot, StagedEntry, after_all
from memprov.core.text import Document, digest, json_text
from memprov.core.writing import (
    DIARY_PATH,
    MEMORY_PATH,
    Gate,
    Highlight,
    MarkPromoted,
    PromotionLimits,
    Ranked,
    RecordOrigins,
    RecordTransfers,
    ReplaceText,
    RequireAdmitted,
    StorePreimage,
    Thresholds,
    WriteEffect,
    add_history,
    entry_text,
    lineage_of,
    memory_text,
    plan_promotion,
    project_of,
    rank_entries,
)

__all__ = [
    "ConsolidationLimits",
    "entries_of_interest",
    "plan_consolidation",
    "plan_request",
]

_CORPUS = ("memory/.dreams/session-corpus/", "sessions/")


@frozen
class ConsolidationLimits(PromotionLimits):
    """As for a promotion, and which share of the file's entries one consolidation may supersede."""

    loss: float = 0.25


def entries_of_interest(snapshot: MemorySnapshot, entries: Iterable[StagedEntry]) -> tuple[str, ...]:
    """The entries that a consolidation may hand on or prune: of those the siblings' origins are needed."""
    return tuple(sorted(prune_candidates(snapshot).union(entry.key for entry in entries)))


def plan_request(
    snapshot: MemorySnapshot,
    entries: Iterable[StagedEntry],
    *,
    now_ms: int,
    siblings: Iterable[SiblingEntries] = (),
    thresholds: Thresholds | None = None,
    limits: ConsolidationLimits | None = None,
) -> tuple[ConsolidationRequest, tuple[tuple[str, Gate], ...]]:
    """What a model is asked, and which entries are not asked about."""
    limits, refused = limits or ConsolidationLimits(), dict[str, Gate]()
    ranked = _gated(snapshot, entries, tuple(siblings), now_ms, thresholds or Thresholds(), refused)
    refused.update((item.entry.key, Gate.NO_ROOM) for item in ranked[limits.entries :])
    text = memory_text(snapshot) or ""
    request = ConsolidationRequest(
        snapshot.store.agent_id,
        tuple(_candidate(item, limits) for item in ranked[: limits.entries]),
        prior_entries(Document(text.removeprefix("\ufeff"))),
        text,
    )
    return request, tuple(sorted(refused.items()))


def plan_consolidation(
    snapshot: MemorySnapshot,
    entries: Iterable[StagedEntry],
    decisions: Iterable[Decision],
    *,
    asked: Iterable[str],
    now_ms: int,
    today: str,
    siblings: Iterable[SiblingEntries] = (),
    thresholds: Thresholds | None = None,
    limits: ConsolidationLimits | None = None,
) -> ConsolidationPlan:
    """Plan one consolidation from the store as it is now and a model's decisions about the candidates it was asked
    about, whenever that was. Decisions that do not hold (any more) are rejected as a whole, and the entries appended.
    """
    entries, decisions = tuple(entries), tuple(decisions)
    limits, thresholds = limits or ConsolidationLimits(), thresholds or Thresholds()
    work = _Work(snapshot, tuple(siblings), limits, now_ms, today)
    refused: dict[str, Gate] = {}
    ranked = _gated(snapshot, entries, work.siblings, now_ms, thresholds, refused)
    decided = {decision.candidate_key: decision for decision in decisions}
    candidates = {item.entry.key: _candidate(item, limits) for item in ranked}
    chosen, rejection = check_decisions(
        candidates,
        work.prior,
        decisions,
        asked=asked,
        forgotten=work.forgotten_keys(),
        loss=limits.loss,
    )
    if rejection is None:
        work.settle(
            _Settled(item, candidates[key], decided[key].action, chosen[key])
            for item in ranked
            if (key := item.entry.key) in chosen
        )
        rejection = work.rejection()
    report = ConsolidationReport(refused=tuple(sorted(refused.items())), rejected=rejection)
    if rejection is None:
        return work.plan(report)
    closed = {key for key, gate in refused.items() if gate in (Gate.UNTRUSTED, Gate.FORGOTTEN)}
    left = [entry for entry in entries if entry.key not in closed]
    append = plan_promotion(snapshot, left, now_ms=now_ms, today=today, thresholds=thresholds, limits=limits)
    return ConsolidationPlan(evolve(report, promoted=append.report.promoted), append=append)


def _gated(
    snapshot: MemorySnapshot,
    entries: Iterable[StagedEntry],
    siblings: tuple[SiblingEntries, ...],
    now_ms: int,
    thresholds: Thresholds,
    refused: dict[str, Gate],
) -> list[Ranked]:
    """The entries that pass all gates, strongest first: those of a promotion, what the other agents of the workspace
    know of them, and that a conversation was one with a person (docs: Trust).
    """
    passed = []
    classes = entry_classes(row for sibling in siblings for row in sibling.origins)
    forgotten = {row.entry_key for s in siblings for row in s.origins if row.session_id in s.forgotten}
    for item in rank_entries(snapshot, entries, now_ms, thresholds, refused):
        entry = item.entry
        kind = SessionKind.UNKNOWN if entry.provenance is None else entry.provenance.session_kind
        if entry.key in classes and not eligible(classes[entry.key]):
            refused[entry.key] = Gate.UNTRUSTED
        elif entry.key in forgotten:
            refused[entry.key] = Gate.FORGOTTEN
        elif entry.path.startswith(_CORPUS) and kind is not SessionKind.INTERACTIVE:
            refused[entry.key] = Gate.NOT_INTERACTIVE
        else:
            passed.append(item)
    return passed


def _candidate(item: Ranked, limits: ConsolidationLimits) -> CandidateEntry:
    entry = item.entry
    return CandidateEntry(entry.key, entry_text(item.cited, limits), lineage_of(entry), project_of(entry))


@frozen
class _Settled:
    """One decision that holds."""

    item: Ranked
    candidate: CandidateEntry
    action: Action
    prior: tuple[PriorEntry, ...]

    @property
    def key(self) -> str:
        return self.candidate.key

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for entry in self.prior for key in entry.keys if key != self.key))

    @property
    def lineages(self) -> tuple[str, ...]:
        named = {lineage for entry in self.prior for lineage in entry.lineages}
        return tuple(sorted(named.union(filter(None, (self.candidate.lineage,)))))


class _Work:
    """One consolidation, worked out. Nothing here decides whether an answer holds but ``rejection``."""

    def __init__(
        self,
        snapshot: MemorySnapshot,
        siblings: tuple[SiblingEntries, ...],
        limits: ConsolidationLimits,
        now_ms: int,
        day: str,
    ) -> None:
        self.snapshot, self.siblings, self.limits, self.now_ms, self.day = snapshot, siblings, limits, now_ms, day
        self.agent = snapshot.store.agent_id
        self.text = memory_text(snapshot)
        self.prior = prior_entries(Document((self.text or "").removeprefix("\ufeff")))
        self.settled: tuple[_Settled, ...] = ()
        self.composed: str | None = None

    def rows(self, keys: Iterable[str]) -> tuple[Origin, ...]:
        """The origins of these entries in every ledger of the workspace."""
        keys = frozenset(keys)
        theirs = (row for sibling in self.siblings for row in sibling.origins if row.entry_key in keys)
        return (*self.snapshot.origins.touching(entry_keys=keys).rows(), *theirs)

    def forgotten_keys(self) -> frozenset[str]:
        """The present entries with a source that is forgotten: where a purge was interrupted, say."""
        gone = {(self.agent, session) for session in self.snapshot.tombstones}
        gone |= {(sibling.agent_id, session) for sibling in self.siblings for session in sibling.forgotten}
        rows = self.rows(key for entry in self.prior for key in entry.keys)
        return frozenset(row.entry_key for row in rows if (row.agent_id, row.session_id) in gone)

    def settle(self, settled: Iterable[_Settled]) -> None:
        """Compose the file that these decisions make."""
        self.settled = tuple(settled)
        self.lines = {s.key: consolidated_line(s.item, self.limits) for s in self.settled}
        results = (ResultLine(self.lines[s.key], s.key, s.lineages) for s in self.settled)
        replaced = (entry for s in self.settled for entry in s.prior)
        self.composed = compose_memory(self.text, replaced, results, self.day)

    def rejection(self) -> Rejection | None:
        """What is wrong with the composed file."""
        if self.composed is None:
            return Rejection(Rejected.UNREADABLE)
        if "\0" in self.composed:
            return Rejection(Rejected.NUL)
        return Rejection(Rejected.BUDGET) if len(self.composed) > self.limits.file_characters else None

    def plan(self, report: ConsolidationReport) -> ConsolidationPlan:
        """The effects, in order."""
        if not self.settled or self.composed is None:
            return ConsolidationPlan(report)
        transfers = [Transfer(s.key, s.parents) for s in self.settled]
        existing = self.rows(key for t in transfers for key in (t.survivor, *t.parents))
        reserved = transfer_origins(existing, transfers)
        before = (
            *self._fences(existing),
            *self._reservation(existing, reserved),
            *(() if self.text is None else (StorePreimage(self.text),)),
        )
        publication = ReplaceText(MEMORY_PATH, None if self.text is None else digest(self.text), self.composed)
        history = self._history()
        mark = MarkPromoted(sorted(s.key for s in self.settled))
        done = after_all(self.snapshot, (*before, publication, history))
        pruned = plan_prune(done, prune_candidates(self.snapshot), siblings=self.siblings)
        return ConsolidationPlan(
            evolve(
                report,
                added=self._keys(Action.ADDED),
                merged=self._keys(Action.MERGED),
                superseded=self._keys(Action.SUPERSEDED),
                pruned=sum(len(effect.entry_keys) for effect in pruned),
            ),
            before,
            publication,
            history,
            (mark, *pruned),
            existing=existing,
        )

    def _keys(self, action: Action) -> tuple[str, ...]:
        return tuple(s.key for s in self.settled if s.action is action)

    def _agents(self) -> tuple[str, ...]:
        return (self.agent, *(sibling.agent_id for sibling in self.siblings))

    def _fences(self, rows: tuple[Origin, ...]) -> Iterator[RequireAdmitted]:
        for agent in self._agents():
            if sessions := {row.session_id for row in rows if row.agent_id == agent}:
                yield RequireAdmitted(agent, sorted(sessions))

    def _reservation(self, existing: tuple[Origin, ...], reserved: tuple[Origin, ...]) -> Iterator[WriteEffect]:
        for agent in self._agents():
            if rows := tuple(row for row in reserved if row.agent_id == agent):
                yield RecordOrigins(agent, rows)
        for agent in self._agents():
            known = {row.entry_key for row in existing if row.agent_id == agent}
            edges = tuple(
                TransferEdge(s.key, parent, self._transfer_id(s), s.action)
                for s in self.settled
                for parent in sorted(s.parents)
                if agent == self.agent or parent in known
            )
            if edges:
                yield RecordTransfers(agent, edges)

    def _transfer_id(self, settled: _Settled) -> str:
        """The name of a transfer: the same for the same merge, so that one that was interrupted is recorded once."""
        named = [self.agent, settled.action.value, settled.key, *sorted(settled.parents)]
        return digest(json_text(named))[:32]

    def _history(self) -> ReplaceText:
        paths = (DIARY_PATH, DIARY_PATH.lower())
        files = {file.path: file.text for file in self.snapshot.files if file.path in paths}
        path = next((path for path in paths if path in files), DIARY_PATH)
        moment = datetime.fromtimestamp(self.now_ms / 1000, UTC).isoformat(timespec="milliseconds")
        counts = [(action.value.capitalize(), len(self._keys(action))) for action in Action]
        highlights = [
            Highlight(s.key, without_comments(line), new=new)
            for s in self.settled
            for line, new in ((self.lines[s.key], True), *((entry.line, False) for entry in s.prior))
        ]
        after = add_history(files.get(path), moment.replace("+00:00", "Z"), counts, highlights)
        return ReplaceText(path, None if path not in files else digest(files[path]), after)
