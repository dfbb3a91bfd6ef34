"""Merging and superseding memories, with their lineage.

``planning`` asks a host's model and composes the file from its answer, ``decisions`` validates that answer as data,
``text`` writes the lines, ``prune`` says whose origins nothing shows any more. Merges only add origins and never raise
trust (I7); what a live entry, preimage, diary, report or index still names is never pruned (I9).
"""

from memprov.core.consolidation.decisions import (
    Action,
    CandidateEntry,
    ConsolidationRequest,
    Decision,
    PriorEntry,
    Rejected,
    Rejection,
    read_decisions,
)
from memprov.core.consolidation.plan import ConsolidationPlan, ConsolidationReport, ModelFailure
from memprov.core.consolidation.planning import (
    ConsolidationLimits,
    entries_of_interest,
    plan_consolidation,
    plan_request,
)
from memprov.core.consolidation.prune import SiblingEntries, named_keys

__all__ = [
    "Action",
    "CandidateEntry",
    "ConsolidationLimits",
    "ConsolidationPlan",
    "ConsolidationReport",
    "ConsolidationRequest",
    "Decision",
    "ModelFailure",
    "PriorEntry",
    "Rejected",
    "Rejection",
    "SiblingEntries",
    "entries_of_interest",
    "named_keys",
    "plan_consolidation",
    "plan_request",
    "read_decisions",
]
