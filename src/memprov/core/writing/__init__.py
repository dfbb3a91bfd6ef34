"""How text comes in: admission before anything is read, ingestion, backfill and its way back, diary, promotion.

``admission`` is one function and runs before a transcript is opened (I10). ``sources`` and ``transcripts`` read what
was admitted, ``candidates`` and ``recording`` make it entries with origins, ``ingest``, ``backfill``, ``narrative`` and
``promote`` are the plans, ``effects`` what they are made of. Origins are durable before anything that carries their
text can be seen, and no plan that was made before a session was forgotten gets past its first effect (I6).
"""

from memprov.core.writing.admission import Admission, AdmissionPolicy, Purpose, decide_admission, explain_policy
from memprov.core.writing.backfill import BackfillMode, BackfillRange, BackfillReport, plan_backfill
from memprov.core.writing.candidates import TranscriptFindings, day_of, joined_texts, read_findings
from memprov.core.writing.diary import CONTEXT_BLOCKS, DIARY_PATH, Highlight, add_history, diary_context
from memprov.core.writing.effects import (
    AddSeenHashes,
    AppendCorpus,
    DropSeenHashes,
    MarkPromoted,
    RecordArtifact,
    RecordRewind,
    ReleaseArtifact,
    ReplaceText,
    SetCheckpoints,
    StageEntries,
    StorePreimage,
    TakeRewinds,
    WriteEffect,
    append_lines,
    replaced_text,
)
from memprov.core.writing.ingest import MAX_LINES, IngestReport, plan_ingestion, transcripts_within_reach
from memprov.core.writing.lineage_effects import (
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    RequireAdmitted,
)
from memprov.core.writing.messages import Message, Role, message_from_event
from memprov.core.writing.narrative import Dropped, PendingNarrative, narrative_keys, plan_narrative
from memprov.core.writing.promote import (
    MEMORY_HEADER,
    MEMORY_PATH,
    PromotionLimits,
    PromotionPlan,
    PromotionReport,
    Ranked,
    entry_notes,
    entry_text,
    lineage_of,
    memory_text,
    plan_promotion,
    project_of,
    rank_entries,
)
from memprov.core.writing.ranking import Gate, Thresholds
from memprov.core.writing.recording import Found, RecallReport, plan_annotation, plan_recall
from memprov.core.writing.rewind import RollbackReport, plan_rollback
from memprov.core.writing.sources import Admitted, Source, Transcript, admit_sources, read_admitted, session_source
from memprov.core.writing.transcripts import ContentLine, Skipped, content_hash, read_transcript

__all__ = [
    "CONTEXT_BLOCKS",
    "DIARY_PATH",
    "MAX_LINES",
    "MEMORY_HEADER",
    "MEMORY_PATH",
    "AddSeenHashes",
    "Admission",
    "AdmissionPolicy",
    "Admitted",
    "AppendCorpus",
    "BackfillMode",
    "BackfillRange",
    "BackfillReport",
    "ContentLine",
    "DropSeenHashes",
    "Dropped",
    "Found",
    "Gate",
    "Highlight",
    "IngestReport",
    "MarkPromoted",
    "Message",
    "PendingNarrative",
    "PromotionLimits",
    "PromotionPlan",
    "PromotionReport",
    "PruneOrigins",
    "Purpose",
    "Ranked",
    "RecallReport",
    "RecordArtifact",
    "RecordOrigins",
    "RecordRewind",
    "RecordTransfers",
    "ReleaseArtifact",
    "ReleaseOrigins",
    "ReleaseTransfers",
    "ReplaceText",
    "RequireAdmitted",
    "Role",
    "RollbackReport",
    "SetCheckpoints",
    "Skipped",
    "Source",
    "StageEntries",
    "StorePreimage",
    "TakeRewinds",
    "Thresholds",
    "Transcript",
    "TranscriptFindings",
    "WriteEffect",
    "add_history",
    "admit_sources",
    "append_lines",
    "content_hash",
    "day_of",
    "decide_admission",
    "diary_context",
    "entry_notes",
    "entry_text",
    "explain_policy",
    "joined_texts",
    "lineage_of",
    "memory_text",
    "message_from_event",
    "narrative_keys",
    "plan_annotation",
    "plan_backfill",
    "plan_ingestion",
    "plan_narrative",
    "plan_promotion",
    "plan_recall",
    "plan_rollback",
    "project_of",
    "rank_entries",
    "read_admitted",
    "read_findings",
    "read_transcript",
    "replaced_text",
    "session_source",
    "transcripts_within_reach",
]
