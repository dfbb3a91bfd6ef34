"""The publication fence of the diary: a narrative is written down only if all that it was made from is still there.

A model takes its time over a narrative. In the meantime a purge may have removed an entry that it was told about, or a
diary block that it was shown; publishing it then would bring back in other words what was forgotten (FACTS 10). So the
narrative carries the entries, origins and context that it was made from, and is asked about them under the lock. What
is published is bound to those origins line by line, so that it can be forgotten later.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from enum import StrEnum

from attrs import field, frozen

from memprov.core.records import Origin, strings
from memprov.core.state import IngestState
from memprov.core.text import digest
from memprov.core.writing.diary import (
    DIARY_PATH,
    DiaryBlock,
    DiaryLine,
    add_blocks,
    block_origins,
    day_title,
    diary_context,
)
from memprov.core.writing.effects import ReplaceText, WriteEffect
from memprov.core.writing.lineage_effects import RecordOrigins, RequireAdmitted

__all__ = ["Dropped", "NarrativePlan", "PendingNarrative", "plan_narrative"]


class Dropped(StrEnum):
    """Why a narrative is not published."""

    ENTRY_GONE = "a source entry is gone"
    CONTEXT_GONE = "the diary context is gone"
    FORGOTTEN = "a source session is forgotten"


@frozen
class PendingNarrative:
    """A narrative that waits to be published.

    ``source_keys`` are the entries that it tells of and ``origins`` their origins, both as of the time it was asked
    for; ``context`` is what ``diary_context`` gave then.
    """

    text: str
    source_keys: tuple[str, ...] = field(default=(), converter=strings)
    origins: tuple[Origin, ...] = ()
    context: tuple[str, ...] = field(default=(), converter=strings)


@frozen
class NarrativePlan:
    """The effects that publish a narrative; or none, and why it is dropped."""

    effects: tuple[WriteEffect, ...] = ()
    dropped: Dropped | None = None


def plan_narrative(state: IngestState, narrative: PendingNarrative, *, written_ms: int, zone: tzinfo) -> NarrativePlan:
    """Publish a narrative, or drop it. ``written_ms`` is the time that the diary shows for it, in ``zone``."""
    sources = {agent: {o.session_id for o in narrative.origins if o.agent_id == agent} for agent in _agents(narrative)}
    if not state.tombstones.isdisjoint(sources.get(state.agent_id, ())):
        return NarrativePlan(dropped=Dropped.FORGOTTEN)
    if not {entry.key for entry in state.entries}.issuperset(narrative.source_keys):
        return NarrativePlan(dropped=Dropped.ENTRY_GONE)
    text = None if state.diary is None else state.diary.text
    if not frozenset(diary_context(text, limit=None)).issuperset(narrative.context):
        return NarrativePlan(dropped=Dropped.CONTEXT_GONE)
    moment = datetime.fromtimestamp(written_ms / 1000, zone)
    day = moment.date().isoformat()
    lines = tuple(DiaryLine(line, narrative.origins) for line in narrative.text.split("\n") if line.strip())
    block = DiaryBlock(day, lines, title=f"{day_title(day)} at {_clock(moment)}")
    after, added = add_blocks(text, [block])
    if not added:
        return NarrativePlan()
    path = DIARY_PATH if state.diary is None else state.diary.path
    rows = block_origins(block)
    effects: tuple[WriteEffect, ...] = (
        *(RequireAdmitted(agent, sorted(sources[agent])) for agent in sources),
        *(RecordOrigins(agent, tuple(row for row in rows if row.agent_id == agent)) for agent in sources),
        ReplaceText(path, None if text is None else digest(text), after),
    )
    return NarrativePlan(effects)


def _agents(narrative: PendingNarrative) -> tuple[str, ...]:
    """The agents whose sessions it tells of: several may share a workspace."""
    return tuple(sorted({origin.agent_id for origin in narrative.origins}))


def _clock(moment: datetime) -> str:
    half = "AM" if moment.hour < 12 else "PM"
    return f"{moment.hour % 12 or 12}:{moment.minute:02d} {half} {moment.tzname()}"
