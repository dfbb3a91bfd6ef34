"""memprov: where each memory came from, what may become memory, and the removal of what chosen sessions produced.

Decisions are pure functions from frozen values (``plan_purge``, ``scrub_text``, ``decide_admission``,
``transfer_origins``); a thin shell reads stores (``open_openclaw``, ``open_store``), carries plans out (``preview``,
``forget``, ``apply_plan``) and takes conversations in (``ingest``, ``backfill``, ``promote``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memprov.core.consolidation import (
        CandidateEntry,
        ConsolidationLimits,
        ConsolidationReport,
        ConsolidationRequest,
        Decision,
        ModelFailure,
        PriorEntry,
        read_decisions,
    )
    from memprov.core.index import Change, ChunkBudget, EmbedderIdentity, Refusal
    from memprov.core.lineage import (
        Basis,
        EntryEvidence,
        OriginTable,
        PublicationOutcome,
        Transfer,
        TransferEdge,
        prunable_keys,
        transfer_origins,
    )
    from memprov.core.proof import Control, Finding, NeedleKind, Receipt, Spot, Verdict, Verification, Witness
    from memprov.core.purge import (
        Artifacts,
        CuratedWriteLine,
        ExtraArtifacts,
        Level,
        ParticipantMatch,
        PurgePlan,
        Report,
        Resolution,
        Scrub,
        ScrubRules,
        Selection,
        SelectionSource,
        Selectors,
        SharedEntry,
        Suspect,
        apply_to_snapshot,
        plan_purge,
        scrub_text,
        select_sessions,
    )
    from memprov.core.records import (
        AgentRoster,
        CuratedWrite,
        HostEvent,
        Identity,
        IndexSource,
        MemoryFile,
        Origin,
        OriginClass,
        Preimage,
        RecallEntry,
        RewindBatch,
        SessionKind,
        SessionRecord,
        SessionState,
        StoreIdentity,
        ToolCall,
    )
    from memprov.core.state import Chunk, ChunkTable, MemorySnapshot, RetainedText, SiblingIndex, StaleCopy
    from memprov.core.text import Snippet, references_session, session_id_from_file_name
    from memprov.core.trace import EntryTrace, LineReason, Place, RemovalRule, SessionTrace, Trace
    from memprov.core.writing import (
        Admission,
        AdmissionPolicy,
        BackfillLine,
        BackfillMode,
        BackfillRange,
        BackfillReport,
        DaySummary,
        Dropped,
        Gate,
        IngestReport,
        Message,
        PendingNarrative,
        PromotionLimits,
        PromotionReport,
        Purpose,
        RecallReport,
        Reflection,
        RollbackReport,
        Skipped,
        Thresholds,
        decide_admission,
        explain_policy,
        message_classes,
    )
    from memprov.errors import (
        ConflictError,
        CorruptStoreError,
        InputError,
        LockHeldError,
        MemprovError,
        NameNotFoundError,
        PartialError,
        PolicyError,
        RefusedError,
        SchemaError,
        SelectorError,
        StalePlanError,
        StaleStateError,
        StoreNotFoundError,
    )
    from memprov.shell.consolidation import ConsolidationModel, consolidate
    from memprov.shell.index import (
        Embedder,
        Hit,
        IndexReport,
        PreparedIndex,
        ReconcileReport,
        prepare_index,
        publish_index,
        rebuild_index,
        reconcile,
        record_recall,
        search,
        sync_index,
        use_lancedb,
    )
    from memprov.shell.native import NativeStore, open_store, store_agents
    from memprov.shell.openclaw import OpenClawStore, open_openclaw, openclaw_agents
    from memprov.shell.port import TranscriptReader
    from memprov.shell.proof import verify
    from memprov.shell.receipts import ReceiptCheck, check_receipt, receipts, sessions_in_receipt
    from memprov.shell.runner import apply_plan, forget, preview
    from memprov.shell.sweeps import (
        annotate_entry,
        backfill,
        ingest,
        prepare_narrative,
        promote,
        publish_narrative,
        rollback_backfill,
    )
    from memprov.shell.trace import trace
    from memprov.shell.vectors import VectorMemory
    from memprov.shell.workspace.publish import PublicationError

__all__ = [
    "Admission",
    "AdmissionPolicy",
    "AgentRoster",
    "Artifacts",
    "BackfillLine",
    "BackfillMode",
    "BackfillRange",
    "BackfillReport",
    "Basis",
    "CandidateEntry",
    "Change",
    "Chunk",
    "ChunkBudget",
    "ChunkTable",
    "ConflictError",
    "ConsolidationLimits",
    "ConsolidationModel",
    "ConsolidationReport",
    "ConsolidationRequest",
    "Control",
    "CorruptStoreError",
    "CuratedWrite",
    "CuratedWriteLine",
    "DaySummary",
    "Decision",
    "Dropped",
    "Embedder",
    "EmbedderIdentity",
    "EntryEvidence",
    "EntryTrace",
    "ExtraArtifacts",
    "Finding",
    "Gate",
    "Hit",
    "HostEvent",
    "Identity",
    "IndexReport",
    "IndexSource",
    "IngestReport",
    "InputError",
    "Level",
    "LineReason",
    "LockHeldError",
    "MemoryFile",
    "MemorySnapshot",
    "MemprovError",
    "Message",
    "ModelFailure",
    "NameNotFoundError",
    "NativeStore",
    "NeedleKind",
    "OpenClawStore",
    "Origin",
    "OriginClass",
    "OriginTable",
    "PartialError",
    "ParticipantMatch",
    "PendingNarrative",
    "Place",
    "PolicyError",
    "Preimage",
    "PreparedIndex",
    "PriorEntry",
    "PromotionLimits",
    "PromotionReport",
    "PublicationError",
    "PublicationOutcome",
    "PurgePlan",
    "Purpose",
    "RecallEntry",
    "RecallReport",
    "Receipt",
    "ReceiptCheck",
    "ReconcileReport",
    "Reflection",
    "Refusal",
    "RefusedError",
    "RemovalRule",
    "Report",
    "Resolution",
    "RetainedText",
    "RewindBatch",
    "RollbackReport",
    "SchemaError",
    "Scrub",
    "ScrubRules",
    "Selection",
    "SelectionSource",
    "SelectorError",
    "Selectors",
    "SessionKind",
    "SessionRecord",
    "SessionState",
    "SessionTrace",
    "SharedEntry",
    "SiblingIndex",
    "Skipped",
    "Snippet",
    "Spot",
    "StaleCopy",
    "StalePlanError",
    "StaleStateError",
    "StoreIdentity",
    "StoreNotFoundError",
    "Suspect",
    "Thresholds",
    "ToolCall",
    "Trace",
    "TranscriptReader",
    "Transfer",
    "TransferEdge",
    "VectorMemory",
    "Verdict",
    "Verification",
    "Witness",
    "annotate_entry",
    "apply_plan",
    "apply_to_snapshot",
    "backfill",
    "check_receipt",
    "consolidate",
    "decide_admission",
    "explain_policy",
    "forget",
    "ingest",
    "message_classes",
    "open_openclaw",
    "open_store",
    "openclaw_agents",
    "plan_purge",
    "prepare_index",
    "prepare_narrative",
    "preview",
    "promote",
    "prunable_keys",
    "publish_index",
    "publish_narrative",
    "read_decisions",
    "rebuild_index",
    "receipts",
    "reconcile",
    "record_recall",
    "references_session",
    "rollback_backfill",
    "scrub_text",
    "search",
    "select_sessions",
    "session_id_from_file_name",
    "sessions_in_receipt",
    "store_agents",
    "sync_index",
    "trace",
    "transfer_origins",
    "use_lancedb",
    "verify",
]

#: Where each public name is from. A room is loaded when one of its names is first used: most programs use a few.
_HOMES = {
    name: room
    for room, names in {
        "memprov.core.consolidation": (
            "CandidateEntry ConsolidationLimits ConsolidationReport ConsolidationRequest Decision ModelFailure "
            "PriorEntry read_decisions"
        ),
        "memprov.core.index": "Change ChunkBudget EmbedderIdentity Refusal",
        "memprov.core.lineage": (
            "Basis EntryEvidence OriginTable PublicationOutcome Transfer TransferEdge prunable_keys transfer_origins"
        ),
        "memprov.core.proof": "Control Finding NeedleKind Receipt Spot Verdict Verification Witness",
        "memprov.core.purge": (
            "Artifacts CuratedWriteLine ExtraArtifacts Level ParticipantMatch PurgePlan Report Resolution Scrub "
            "ScrubRules Selection SelectionSource Selectors SharedEntry Suspect apply_to_snapshot plan_purge "
            "scrub_text select_sessions"
        ),
        "memprov.core.records": (
            "AgentRoster CuratedWrite HostEvent Identity IndexSource MemoryFile Origin OriginClass Preimage "
            "RecallEntry RewindBatch SessionKind SessionRecord SessionState StoreIdentity ToolCall"
        ),
        "memprov.core.state": "Chunk ChunkTable MemorySnapshot RetainedText SiblingIndex StaleCopy",
        "memprov.core.text": "Snippet references_session session_id_from_file_name",
        "memprov.core.trace": "EntryTrace LineReason Place RemovalRule SessionTrace Trace",
        "memprov.core.writing": (
            "Admission AdmissionPolicy BackfillLine BackfillMode BackfillRange BackfillReport DaySummary Dropped Gate "
            "IngestReport Message PendingNarrative PromotionLimits PromotionReport Purpose RecallReport Reflection "
            "RollbackReport Skipped Thresholds decide_admission explain_policy message_classes"
        ),
        "memprov.errors": (
            "ConflictError CorruptStoreError InputError LockHeldError MemprovError NameNotFoundError PartialError "
            "PolicyError RefusedError SchemaError SelectorError StalePlanError StaleStateError StoreNotFoundError"
        ),
        "memprov.shell.consolidation": "ConsolidationModel consolidate",
        "memprov.shell.index": (
            "Embedder Hit IndexReport PreparedIndex ReconcileReport prepare_index publish_index rebuild_index "
            "reconcile record_recall search sync_index use_lancedb"
        ),
        "memprov.shell.native": "NativeStore open_store store_agents",
        "memprov.shell.openclaw": "OpenClawStore open_openclaw openclaw_agents",
        "memprov.shell.port": "TranscriptReader",
        "memprov.shell.proof": "verify",
        "memprov.shell.receipts": "ReceiptCheck check_receipt receipts sessions_in_receipt",
        "memprov.shell.runner": "apply_plan forget preview",
        "memprov.shell.sweeps": (
            "annotate_entry backfill ingest prepare_narrative promote publish_narrative rollback_backfill"
        ),
        "memprov.shell.trace": "trace",
        "memprov.shell.vectors": "VectorMemory",
        "memprov.shell.workspace.publish": "PublicationError",
    }.items()
    for name in names.split()
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and refuses any other name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
