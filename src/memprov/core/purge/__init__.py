"""What goes when sessions are forgotten: the selection, the removals in each text and row, the plan and its report.

``selection`` resolves what a person names to sessions; ``planning`` scans, scrubs and folds (``scrub`` for a text,
``derived`` and ``index_rows`` for rows) into a ``plan`` of ``effects`` with its ``report``. The same values give
the same plan, byte for byte (I14); a plan holds no memory text; nothing that no rule selects goes (I2).
"""

from memprov.core.purge.effects import (
    CutFile,
    CutPreimages,
    DropCheckpoints,
    DropOrigins,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    PurgeEffect,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    TrimEvents,
    TrimRewinds,
    rewind_key,
    trim_event,
)
from memprov.core.purge.plan import MAX_PLAN_BYTES, Level, PurgePlan, apply_to_snapshot, plan_atoms
from memprov.core.purge.planning import Mapper, is_phase_report, plan_purge
from memprov.core.purge.report import Artifacts, CuratedWriteLine, ExtraArtifacts, Report
from memprov.core.purge.scrub import Scrub, ScrubRules, promotion_keys, scrub_text
from memprov.core.purge.selection import (
    ParticipantMatch,
    Resolution,
    Selection,
    SelectionSource,
    Selectors,
    select_sessions,
)

__all__ = [
    "MAX_PLAN_BYTES",
    "Artifacts",
    "CuratedWriteLine",
    "CutFile",
    "CutPreimages",
    "DropCheckpoints",
    "DropOrigins",
    "DropRecall",
    "DropSeenScopes",
    "DropSignals",
    "ExtraArtifacts",
    "Level",
    "Mapper",
    "ParticipantMatch",
    "PurgeEffect",
    "PurgeIndex",
    "PurgePlan",
    "RecordTombstones",
    "RemoveFile",
    "Report",
    "Resolution",
    "Scrub",
    "ScrubRules",
    "Selection",
    "SelectionSource",
    "Selectors",
    "TrimEvents",
    "TrimRewinds",
    "apply_to_snapshot",
    "is_phase_report",
    "plan_atoms",
    "plan_purge",
    "promotion_keys",
    "rewind_key",
    "scrub_text",
    "select_sessions",
    "trim_event",
]
