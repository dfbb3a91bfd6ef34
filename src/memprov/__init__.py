"""memprov: where each memory came from, what may become memory, and the removal of what chosen sessions produced.

Decisions are pure functions from frozen values (``plan_purge``, ``scrub_text``, ``decide_admission``,
``transfer_origins``); a thin shell reads stores (``open_openclaw``, ``open_store``), carries plans out (``preview``,
``forget``, ``apply_plan``) and takes conversations in (``ingest``, ``backfill``, ``promote``).
"""

from memprov.core.admission import Admission, AdmissionPolicy, Purpose, decide_admission, explain_policy
from memprov.core.backfill import BackfillMode, BackfillRange, BackfillReport
from memprov.core.chunking import ChunkBudget
from memprov.core.consolidate import ConsolidationLimits
from memprov.core.consolidation_plan import ConsolidationReport, ModelFailure
from memprov.core.decisions import CandidateEntry, ConsolidationRequest, Decision, PriorEntry, read_decisions
from memprov.core.fences import Change, Refusal
from memprov.core.indexing import EmbedderIdentity
from memprov.core.ingest import IngestReport
from memprov.core.lineage import (
    Basis,
    OriginTable,
    PublicationOutcome,
    Transfer,
    TransferEdge,
    prunable_keys,
    transfer_origins,
)
from memprov.core.narrative import Dropped, PendingNarrative
from memprov.core.plan import Level, PurgePlan, apply_to_snapshot
from memprov.core.promote import PromotionLimits, PromotionReport
from memprov.core.purge import plan_purge
from memprov.core.ranking import Gate, Thresholds
from memprov.core.records import (
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
)
from memprov.core.references import references_session, session_id_from_file_name
from memprov.core.report import Artifacts, CuratedWriteLine, ExtraArtifacts, Report
from memprov.core.rewind import RollbackReport
from memprov.core.scrub import Scrub, ScrubRules, Snippet, scrub_text
from memprov.core.selection import (
    ParticipantMatch,
    Resolution,
    Selection,
    SelectionSource,
    Selectors,
    select_sessions,
)
from memprov.core.snapshot import Chunk, ChunkTable, MemorySnapshot, StaleCopy
from memprov.core.trace import EntryTrace, Place, SessionTrace, Trace
from memprov.core.transcripts import Message
from memprov.errors import (
    ConflictError,
    CorruptStoreError,
    InputError,
    LockHeldError,
    MemprovError,
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
    search,
    sync_index,
    use_lancedb,
)
from memprov.shell.native import NativeStore, open_store
from memprov.shell.openclaw import OpenClawStore, open_openclaw
from memprov.shell.runner import apply_plan, forget, preview
from memprov.shell.sweeps import (
    TranscriptReader,
    backfill,
    ingest,
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
    "Artifacts",
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
    "CorruptStoreError",
    "CuratedWrite",
    "CuratedWriteLine",
    "Decision",
    "Dropped",
    "Embedder",
    "EmbedderIdentity",
    "EntryTrace",
    "ExtraArtifacts",
    "Gate",
    "Hit",
    "HostEvent",
    "Identity",
    "IndexReport",
    "IndexSource",
    "IngestReport",
    "InputError",
    "Level",
    "LockHeldError",
    "MemoryFile",
    "MemorySnapshot",
    "MemprovError",
    "Message",
    "ModelFailure",
    "NativeStore",
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
    "ReconcileReport",
    "Refusal",
    "RefusedError",
    "Report",
    "Resolution",
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
    "Snippet",
    "StaleCopy",
    "StalePlanError",
    "StaleStateError",
    "StoreIdentity",
    "StoreNotFoundError",
    "Thresholds",
    "Trace",
    "TranscriptReader",
    "Transfer",
    "TransferEdge",
    "VectorMemory",
    "apply_plan",
    "apply_to_snapshot",
    "backfill",
    "consolidate",
    "decide_admission",
    "explain_policy",
    "forget",
    "ingest",
    "open_openclaw",
    "open_store",
    "plan_purge",
    "prepare_index",
    "preview",
    "promote",
    "prunable_keys",
    "publish_index",
    "publish_narrative",
    "read_decisions",
    "rebuild_index",
    "reconcile",
    "references_session",
    "rollback_backfill",
    "scrub_text",
    "search",
    "select_sessions",
    "session_id_from_file_name",
    "sync_index",
    "trace",
    "transfer_origins",
    "use_lancedb",
]
