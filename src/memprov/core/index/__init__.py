"""What may be indexed, and what must change for that.

``chunking`` cuts a text, ``planning`` compares what there is with what is indexed, ``effects`` publish the difference,
and ``fences`` say of each, inside the transaction that publishes it, whether it may still become visible: a result that
was prepared before its source changed or its session was forgotten is refused (I6).
"""

from memprov.core.index.chunking import FULL_TEXT_ONLY, ChunkBudget
from memprov.core.index.effects import DropSource, IndexedChunk, IndexEffect, PublishSource, ReplaceIndex
from memprov.core.index.fences import Change, Present, Refusal, check_generation, check_source
from memprov.core.index.planning import (
    DroppedSource,
    EmbedderIdentity,
    IndexedSource,
    IndexPlan,
    IndexState,
    SourceText,
    embedded,
    indexable_sessions,
    is_own_artifact,
    memory_text,
    missing_texts,
    plan_index,
    plan_rebuild,
    session_path,
    session_text,
    sessions_to_repair,
)

__all__ = [
    "FULL_TEXT_ONLY",
    "Change",
    "ChunkBudget",
    "DropSource",
    "DroppedSource",
    "EmbedderIdentity",
    "IndexEffect",
    "IndexPlan",
    "IndexState",
    "IndexedChunk",
    "IndexedSource",
    "Present",
    "PublishSource",
    "Refusal",
    "ReplaceIndex",
    "SourceText",
    "check_generation",
    "check_source",
    "embedded",
    "indexable_sessions",
    "is_own_artifact",
    "memory_text",
    "missing_texts",
    "plan_index",
    "plan_rebuild",
    "session_path",
    "session_text",
    "sessions_to_repair",
]
