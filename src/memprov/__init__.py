"""memprov: where each memory came from, what may become memory, and the removal of what chosen sessions produced.

Decisions are pure functions from frozen values (``plan_purge``, ``scrub_text``, ``decide_admission``,
``transfer_origins``); a thin shell reads stores (``open_openclaw``, ``open_store``), carries plans out (``preview``,
``forget``, ``apply_plan``) and takes conversations in (``ingest``, ``backfill``, ``promote``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    # fmt: off
    # isort: off
    from memprov.core.consolidation import (
        Action, CandidateEntry, ConsolidationLimits, ConsolidationReport, ConsolidationRequest, Decision, ModelFailure,
        PriorEntry, Rejected, Rejection, SiblingEntries, read_decisions,
    )
    from memprov.core.index import Change, ChunkBudget, DroppedSource, EmbedderIdentity, Refusal
    from memprov.core.lineage import (
        Basis, EntryEvidence, Lineage, OriginTable, PublicationOutcome, Transfer, TransferEdge, prunable_keys,
        transfer_origins,
    )
    from memprov.core.proof import (
        Control, Encoding, Erasure, Finding, NeedleKind, Receipt, Root, Spot, Verdict, Verification, Witness,
    )
    from memprov.core.purge import (
        Artifacts, BatchTrim, Carriers, CarriersOf, CorpusOf, CuratedWriteLine, CutFile, CutPreimages, DropCheckpoints,
        DropOrigins, DropRecall, DropSeenScopes, DropSignals, Erase, ExtraArtifacts, FileFacts, IndexPart, IndexUnder,
        KeyOwners, KnownKeys, Level, Mapper, MemoryTexts, OriginsOf, ParticipantMatch, PreimageCut, PurgeIndex,
        PurgePlan, RecallUnder, RecordTombstones, RemoveFile, Report, Resolution, RestOf, SaidBy, Scrub, ScrubRules,
        Selection, SelectionSource, Selectors, SharedEntry, StatePart, StateUnder, Step, Surroundings, Suspect,
        TextsUnder, TrimEvents, TrimRewinds, apply_to_snapshot, plan_purge, scrub_text, select_sessions,
    )
    from memprov.core.records import (
        AgentRoster, ArtifactReason, ArtifactRecord, CuratedWrite, HostEvent, Identity, IndexSource, MemoryFile,
        MessageFlags, Origin, OriginClass, Preimage, Provenance, RecallEntry, RewindBatch, SessionKind, SessionRecord,
        SessionState, StoreIdentity, ToolCall,
    )
    from memprov.core.state import (
        Checkpoint, Chunk, ChunkTable, IngestState, MemorySnapshot, RetainedText, Sibling, SiblingIndex, StagedEntry,
        StaleCopy,
    )
    from memprov.core.text import (
        Label, LookalikeMatcher, QuotationMatcher, SessionMatcher, Snippet, references_session,
        session_id_from_file_name,
    )
    from memprov.core.trace import EntryTrace, LineReason, Place, RemovalRule, SessionTrace, Trace
    from memprov.core.writing import (
        AddSeenHashes, Admission, AdmissionPolicy, AppendCorpus, BackfillLine, BackfillMode, BackfillRange,
        BackfillReport, DayRule, DaySummary, DropSeenHashes, Dropped, Gate, IngestReport, MarkPromoted, Message,
        PendingNarrative, PromotionLimits, PromotionReport, PruneOrigins, Purpose, RecallReport, RecordArtifact,
        RecordOrigins, RecordRewind, RecordTransfers, Reflection, ReleaseArtifact, ReleaseOrigins, ReleaseTransfers,
        ReplaceText, RequireAdmitted, RollbackReport, SetCheckpoints, Skipped, StageEntries, StorePreimage, TakeRewinds,
        Thresholds, decide_admission, explain_policy, message_classes,
    )
    from memprov.errors import (
        ConflictError, CorruptStoreError, InputError, LockHeldError, MemprovError, NameNotFoundError, PartialError,
        PolicyError, RefusedError, SchemaError, SelectorError, StalePlanError, StaleStateError, StoreNotFoundError,
    )
    from memprov.shell.consolidation import ConsolidationModel, consolidate
    from memprov.shell.index import (
        Embedder, Hit, IndexReport, PreparedIndex, ReconcileReport, prepare_index, publish_index, rebuild_index,
        reconcile, record_recall, search, sync_index, use_lancedb,
    )
    from memprov.shell.knowing import require_known
    from memprov.shell.native import NativeStore, NativeWriter, open_store, store_agents
    from memprov.shell.native.curated import FileRecord, ObservedWrite
    from memprov.shell.openclaw import OpenClawStore, open_openclaw, openclaw_agents
    from memprov.shell.port import Neighbours, ProvableStore, ReceiptLog, Spoken, Store, TranscriptReader, Writer
    from memprov.shell.proof import verify
    from memprov.shell.receipts import ReceiptCheck, check_receipt, receipts, sessions_in_receipt
    from memprov.shell.remembering import Remembered
    from memprov.shell.runner import apply_plan, forget, preview
    from memprov.shell.sweeps import (
        annotate_entry, backfill, ingest, prepare_narrative, promote, publish_narrative, rollback_backfill,
    )
    from memprov.shell.trace import trace
    from memprov.shell.vectors import VectorMemory
    from memprov.shell.workspace.publish import PublicationError
    # isort: on
    # fmt: on

__all__ = [
    "Action", "AddSeenHashes", "Admission", "AdmissionPolicy", "AgentRoster", "AppendCorpus", "ArtifactReason",
    "ArtifactRecord", "Artifacts", "BackfillLine", "BackfillMode", "BackfillRange", "BackfillReport", "Basis",
    "BatchTrim", "CandidateEntry", "Carriers", "CarriersOf", "Change", "Checkpoint", "Chunk", "ChunkBudget",
    "ChunkTable", "ConflictError", "ConsolidationLimits", "ConsolidationModel", "ConsolidationReport",
    "ConsolidationRequest", "Control", "CorpusOf", "CorruptStoreError", "CuratedWrite", "CuratedWriteLine", "CutFile",
    "CutPreimages", "DayRule", "DaySummary", "Decision", "DropCheckpoints", "DropOrigins", "DropRecall",
    "DropSeenHashes", "DropSeenScopes", "DropSignals", "Dropped", "DroppedSource", "Embedder", "EmbedderIdentity",
    "Encoding", "EntryEvidence", "EntryTrace", "Erase", "Erasure", "ExtraArtifacts", "FileFacts", "FileRecord",
    "Finding", "Gate", "Hit", "HostEvent", "Identity", "IndexPart", "IndexReport", "IndexSource", "IndexUnder",
    "IngestReport", "IngestState", "InputError", "KeyOwners", "KnownKeys", "Label", "Level", "LineReason", "Lineage",
    "LockHeldError", "LookalikeMatcher", "Mapper", "MarkPromoted", "MemoryFile", "MemorySnapshot", "MemoryTexts",
    "MemprovError", "Message", "MessageFlags", "ModelFailure", "NameNotFoundError", "NativeStore", "NativeWriter",
    "NeedleKind", "Neighbours", "ObservedWrite", "OpenClawStore", "Origin", "OriginClass", "OriginTable", "OriginsOf",
    "PartialError", "ParticipantMatch", "PendingNarrative", "Place", "PolicyError", "Preimage", "PreimageCut",
    "PreparedIndex", "PriorEntry", "PromotionLimits", "PromotionReport", "ProvableStore", "Provenance", "PruneOrigins",
    "PublicationError", "PublicationOutcome", "PurgeIndex", "PurgePlan", "Purpose", "QuotationMatcher", "RecallEntry",
    "RecallReport", "RecallUnder", "Receipt", "ReceiptCheck", "ReceiptLog", "ReconcileReport", "RecordArtifact",
    "RecordOrigins", "RecordRewind", "RecordTombstones", "RecordTransfers", "Reflection", "Refusal", "RefusedError",
    "Rejected", "Rejection", "ReleaseArtifact", "ReleaseOrigins", "ReleaseTransfers", "Remembered", "RemovalRule",
    "RemoveFile", "ReplaceText", "Report", "RequireAdmitted", "Resolution", "RestOf", "RetainedText", "RewindBatch",
    "RollbackReport", "Root", "SaidBy", "SchemaError", "Scrub", "ScrubRules", "Selection", "SelectionSource",
    "SelectorError", "Selectors", "SessionKind", "SessionMatcher", "SessionRecord", "SessionState", "SessionTrace",
    "SetCheckpoints", "SharedEntry", "Sibling", "SiblingEntries", "SiblingIndex", "Skipped", "Snippet", "Spoken",
    "Spot", "StageEntries", "StagedEntry", "StaleCopy", "StalePlanError", "StaleStateError", "StatePart", "StateUnder",
    "Step", "Store", "StoreIdentity", "StoreNotFoundError", "StorePreimage", "Surroundings", "Suspect", "TakeRewinds",
    "TextsUnder", "Thresholds", "ToolCall", "Trace", "TranscriptReader", "Transfer", "TransferEdge", "TrimEvents",
    "TrimRewinds", "VectorMemory", "Verdict", "Verification", "Witness", "Writer", "annotate_entry", "apply_plan",
    "apply_to_snapshot", "backfill", "check_receipt", "consolidate", "decide_admission", "explain_policy", "forget",
    "ingest", "message_classes", "open_openclaw", "open_store", "openclaw_agents", "plan_purge", "prepare_index",
    "prepare_narrative", "preview", "promote", "prunable_keys", "publish_index", "publish_narrative", "read_decisions",
    "rebuild_index", "receipts", "reconcile", "record_recall", "references_session", "require_known",
    "rollback_backfill", "scrub_text", "search", "select_sessions", "session_id_from_file_name", "sessions_in_receipt",
    "store_agents", "sync_index", "trace", "transfer_origins", "use_lancedb", "verify",
]  # fmt: skip

#: Where each public name is from. A room is loaded when one of its names is first used: most programs use a few.
_HOMES = {
    name: room
    for room, names in {
        "memprov.core.consolidation": (
            "Action CandidateEntry ConsolidationLimits ConsolidationReport ConsolidationRequest Decision "
            "ModelFailure PriorEntry Rejected Rejection SiblingEntries read_decisions"
        ),
        "memprov.core.index": "Change ChunkBudget DroppedSource EmbedderIdentity Refusal",
        "memprov.core.lineage": (
            "Basis EntryEvidence Lineage OriginTable PublicationOutcome Transfer TransferEdge prunable_keys "
            "transfer_origins"
        ),
        "memprov.core.proof": (
            "Control Encoding Erasure Finding NeedleKind Receipt Root Spot Verdict Verification Witness"
        ),
        "memprov.core.purge": (
            "Artifacts BatchTrim Carriers CarriersOf CorpusOf CuratedWriteLine CutFile CutPreimages "
            "DropCheckpoints DropOrigins DropRecall DropSeenScopes DropSignals Erase ExtraArtifacts FileFacts "
            "IndexPart IndexUnder KeyOwners KnownKeys Level Mapper MemoryTexts OriginsOf ParticipantMatch "
            "PreimageCut PurgeIndex PurgePlan RecallUnder RecordTombstones RemoveFile Report Resolution RestOf "
            "SaidBy Scrub ScrubRules Selection SelectionSource Selectors SharedEntry StatePart StateUnder Step "
            "Surroundings Suspect TextsUnder TrimEvents TrimRewinds apply_to_snapshot plan_purge scrub_text "
            "select_sessions"
        ),
        "memprov.core.records": (
            "AgentRoster ArtifactReason ArtifactRecord CuratedWrite HostEvent Identity IndexSource MemoryFile "
            "MessageFlags Origin OriginClass Preimage Provenance RecallEntry RewindBatch SessionKind "
            "SessionRecord SessionState StoreIdentity ToolCall"
        ),
        "memprov.core.state": (
            "Checkpoint Chunk ChunkTable IngestState MemorySnapshot RetainedText Sibling SiblingIndex StagedEntry "
            "StaleCopy"
        ),
        "memprov.core.text": (
            "Label LookalikeMatcher QuotationMatcher SessionMatcher Snippet references_session "
            "session_id_from_file_name"
        ),
        "memprov.core.trace": "EntryTrace LineReason Place RemovalRule SessionTrace Trace",
        "memprov.core.writing": (
            "AddSeenHashes Admission AdmissionPolicy AppendCorpus BackfillLine BackfillMode BackfillRange "
            "BackfillReport DayRule DaySummary DropSeenHashes Dropped Gate IngestReport MarkPromoted Message "
            "PendingNarrative PromotionLimits PromotionReport PruneOrigins Purpose RecallReport RecordArtifact "
            "RecordOrigins RecordRewind RecordTransfers Reflection ReleaseArtifact ReleaseOrigins "
            "ReleaseTransfers ReplaceText RequireAdmitted RollbackReport SetCheckpoints Skipped StageEntries "
            "StorePreimage TakeRewinds Thresholds decide_admission explain_policy message_classes"
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
        "memprov.shell.knowing": "require_known",
        "memprov.shell.native": "NativeStore NativeWriter open_store store_agents",
        "memprov.shell.native.curated": "FileRecord ObservedWrite",
        "memprov.shell.openclaw": "OpenClawStore open_openclaw openclaw_agents",
        "memprov.shell.port": "Neighbours ProvableStore ReceiptLog Spoken Store TranscriptReader Writer",
        "memprov.shell.proof": "verify",
        "memprov.shell.receipts": "ReceiptCheck check_receipt receipts sessions_in_receipt",
        "memprov.shell.remembering": "Remembered",
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


if not TYPE_CHECKING:  # a type checker reads what stands above, and refuses any other name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            value = import_module("importlib.metadata").version("memprov")
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
