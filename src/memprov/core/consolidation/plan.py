"""What a consolidation is as a value: its plan in the order of its effects, its way back, and its report.

The plan is in parts because what may be done after a failure depends on the part in which it happened.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from memprov.core.consolidation.decisions import Rejection
from memprov.core.lineage import PublicationOutcome, keeps_reserved, rows_to_release
from memprov.core.records import Origin
from memprov.core.writing import (
    Gate,
    PromotionPlan,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    ReplaceText,
    WriteEffect,
)

__all__ = ["ConsolidationPlan", "ConsolidationReport", "ModelFailure"]


class ModelFailure(StrEnum):
    """Why there is no answer; then nothing is changed."""

    RAISED = "the model raised"
    TIMED_OUT = "the model did not answer in time"
    NONSENSE = "the model answered with something else than decisions"


@frozen
class ConsolidationReport:
    """What became of one consolidation. Keys only, no memory text.

    ``outcome`` is what is known of MEMORY.md. ``rejected`` says why the decisions were not carried out; then
    ``promoted`` are the entries that were appended instead. ``pruned`` counts entries, once for each ledger.
    """

    outcome: PublicationOutcome = PublicationOutcome.NOT_ATTEMPTED
    added: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    refused: tuple[tuple[str, Gate], ...] = ()
    rejected: Rejection | None = None
    failure: ModelFailure | None = None
    pruned: int = 0
    warnings: tuple[str, ...] = ()


@frozen
class ConsolidationPlan:
    """The effects of one consolidation in their order: ``before`` the file is replaced, ``publication``, ``history``,
    ``after``; or ``append``, the promotion that takes their place when the decisions are rejected.
    """

    report: ConsolidationReport
    before: tuple[WriteEffect, ...] = ()
    publication: ReplaceText | None = None
    history: ReplaceText | None = None
    after: tuple[WriteEffect, ...] = ()
    append: PromotionPlan | None = None
    existing: tuple[Origin, ...] = field(default=(), repr=False)

    @property
    def effects(self) -> tuple[WriteEffect, ...]:
        """All of them, in order."""
        files = filter(None, (self.publication, self.history))
        return (*self.before, *files, *self.after, *(self.append.effects if self.append else ()))

    def rollback(self, outcome: PublicationOutcome) -> tuple[WriteEffect, ...]:
        """What gives the reserved origins back: nothing, unless the file was certainly not replaced (F6)."""
        effects: list[WriteEffect] = []
        for effect in self.before:
            match effect:
                case RecordOrigins(agent_id, origins):
                    rows = rows_to_release(self.existing, origins, outcome)
                    effects.append(ReleaseOrigins(agent_id, tuple((row.entry_key, row.session_id) for row in rows)))
                case RecordTransfers(agent_id, edges) if not keeps_reserved(outcome):
                    effects.append(ReleaseTransfers(agent_id, sorted({edge.transfer_id for edge in edges})))
        return tuple(e for e in effects if not isinstance(e, ReleaseOrigins) or e.rows)
