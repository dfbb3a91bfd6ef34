"""Consolidation on the embedded store: ask the host's model outside the lock, decide and write under it.

A model takes its time and may take for ever. It runs in a thread of its own, is shown data, and is waited for until
the deadline and no longer; what it raises, or answers too late, changes nothing. Under the lock everything is planned
anew from what the store holds by then, so that a decision about what was forgotten or edited meanwhile does not hold
(B10, B54).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, tzinfo
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from attrs import evolve

from memprov.core.consolidation import (
    ConsolidationLimits,
    ConsolidationPlan,
    ConsolidationReport,
    ConsolidationRequest,
    Decision,
    ModelFailure,
    Rejected,
    Rejection,
    entries_of_interest,
    plan_consolidation,
    plan_request,
)
from memprov.core.lineage import PublicationOutcome
from memprov.core.writing import Thresholds, day_of, plan_promotion
from memprov.errors import ConflictError, MemprovError
from memprov.shell.arguments import call, moment, optional, waiting, zone_of
from memprov.shell.native import NativeStore, NativeWriter, embedded_only
from memprov.shell.workspace.publish import PublicationError

__all__ = ["ConsolidationModel", "consolidate"]

_DEADLINE = 120.0


class ConsolidationModel(Protocol):
    """The host's model: candidates and the present file in, decisions out, one for each candidate."""

    def __call__(self, request: ConsolidationRequest, /) -> Iterable[Decision]:
        """Decide. ``read_decisions`` makes decisions of a model's JSON."""


@embedded_only
def consolidate(
    store: NativeStore,
    model: ConsolidationModel,
    *,
    thresholds: Thresholds | None = None,
    limits: ConsolidationLimits | None = None,
    deadline: float = _DEADLINE,
    zone: tzinfo = UTC,
    now_ms: int | None = None,
) -> ConsolidationReport:
    """Let a model merge the strongest staged entries into MEMORY.md, every origin of what they replace handed on.

    ``deadline`` is in seconds. Raises ``PublicationError`` when the system did not replace the file, or perhaps did:
    its ``outcome`` says which, and where that is not certain the origins stay and nothing is tried again.
    """
    now = moment(store, now_ms)
    today = day_of(now, zone_of(zone))
    call(model, "model")
    optional(thresholds, Thresholds, "thresholds")
    optional(limits, ConsolidationLimits, "limits")
    store = waiting(store)
    snapshot, entries = store.snapshot(), store.ingest_state().entries
    siblings = store.siblings(entries_of_interest(snapshot, entries))
    request, refused = plan_request(
        snapshot, entries, now_ms=now, siblings=siblings, thresholds=thresholds, limits=limits
    )
    if not request.candidates:
        return ConsolidationReport(refused=refused)
    answer = _ask(model, request, deadline)
    if isinstance(answer, ModelFailure):
        return ConsolidationReport(refused=refused, failure=answer)
    with store.exclusive() as writer:
        writer.stand_at(now)
        snapshot, entries = writer.snapshot(), writer.ingest_state().entries
        plan = plan_consolidation(
            snapshot,
            entries,
            answer,
            asked=[candidate.key for candidate in request.candidates],
            now_ms=now,
            today=today,
            siblings=writer.siblings(entries_of_interest(snapshot, entries)),
            thresholds=thresholds,
            limits=limits,
        )
        report = _carry_out(writer, plan)
        if report.outcome is not PublicationOutcome.REFUSED:
            return report
        append = plan_promotion(  # the file is another one now
            writer.snapshot(),
            [entry for entry in entries if entry.key in {candidate.key for candidate in request.candidates}],
            now_ms=now,
            today=today,
            thresholds=thresholds,
            limits=limits,
        )
        for effect in append.effects:
            writer.write(effect)
        return evolve(report, promoted=append.report.promoted)


def _ask(
    model: ConsolidationModel, request: ConsolidationRequest, deadline: float
) -> tuple[Decision, ...] | ModelFailure:
    """The model's decisions, no more of them than there are candidates and one; or why there are none."""
    answers: SimpleQueue[tuple[object, ...] | ModelFailure] = SimpleQueue()

    def work() -> None:
        try:
            answer: object = model(request)
            if isinstance(answer, Iterable):
                answers.put(tuple(islice(answer, len(request.candidates) + 1)))
            else:
                answers.put(ModelFailure.NONSENSE)
        except BaseException:  # noqa: BLE001  # whatever it is, it is the model's, and this thread ends here
            answers.put(ModelFailure.RAISED)

    Thread(target=work, name="memprov-consolidation-model", daemon=True).start()
    try:
        answer = answers.get(timeout=max(deadline, 0.0))
    except Empty:
        return ModelFailure.TIMED_OUT
    if isinstance(answer, ModelFailure):
        return answer
    decisions = tuple(decision for decision in answer if isinstance(decision, Decision))
    return decisions if len(decisions) == len(answer) else ModelFailure.NONSENSE


def _carry_out(writer: NativeWriter, plan: ConsolidationPlan) -> ConsolidationReport:
    """Write the plan. What was reserved is given back if the file was certainly not replaced, and then only."""
    if plan.publication is None:
        for effect in plan.effects:
            writer.write(effect)
        done = PublicationOutcome.COMMITTED if plan.effects else PublicationOutcome.NOT_ATTEMPTED
        return evolve(plan.report, outcome=done)
    try:
        for effect in plan.before:
            writer.write(effect)
    except MemprovError as error:
        _roll_back(writer, plan, PublicationOutcome.NOT_ATTEMPTED, error)
        raise
    try:
        writer.write(plan.publication)
    except ConflictError as error:
        _roll_back(writer, plan, PublicationOutcome.REFUSED, error)
        return ConsolidationReport(
            PublicationOutcome.REFUSED, refused=plan.report.refused, rejected=Rejection(Rejected.CONFLICT)
        )
    except PublicationError as error:
        _roll_back(writer, plan, error.outcome, error)
        raise
    warnings = []
    try:
        if plan.history is not None:
            writer.write(plan.history)
    except (ConflictError, PublicationError) as error:  # the file is there; its history is not worth a failure
        warnings.append(f"no excerpt was left in the diary: {error}")
    for effect in plan.after:
        writer.write(effect)
    return evolve(plan.report, outcome=PublicationOutcome.COMMITTED, warnings=tuple(warnings))


def _roll_back(writer: NativeWriter, plan: ConsolidationPlan, outcome: PublicationOutcome, error: MemprovError) -> None:
    """Give back what was reserved, if anything is. What cannot be given back harms nobody: origins without text."""
    try:
        for effect in plan.rollback(outcome):
            writer.write(effect)
    except MemprovError as second:
        error.add_note(f"the origins that were reserved for it could not be taken back: {second}")
