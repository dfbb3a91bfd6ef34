"""The publication fence of the diary: a narrative is written down only if all that it was made from is still there.

A model takes its time over a narrative. In the meantime a purge may have removed an entry that it was told about, or a
diary block that it was shown; publishing it then would bring back in other words what was forgotten (docs: Workspace
lock). So the narrative carries the entries, origins and context that it was made from, and is asked about them under
the lock.

What is published can be forgotten later only by the origins that it is bound to. They are looked up in the ledgers, of
the entries and of every diary line that was shown; what the narrative itself says may add to them and replaces none. A
narrative that nothing can be found for is not published (F04, F15).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from enum import StrEnum

from attrs import evolve, field, frozen

from memprov.core.lineage import join_origins
from memprov.core.records import Origin, Tombstone, strings
from memprov.core.state import IngestState
from memprov.core.text import digest
from memprov.core.writing.diary import (
    DIARY_PATH,
    DiaryBlock,
    DiaryLine,
    add_blocks,
    block_origins,
    context_keys,
    day_title,
    diary_context,
)
from memprov.core.writing.effects import ReplaceText, WriteEffect
from memprov.core.writing.lineage_effects import RecordOrigins, RequireAdmitted

__all__ = ["Dropped", "NarrativePlan", "PendingNarrative", "narrative_keys", "plan_narrative"]


class Dropped(StrEnum):
    """Why a narrative is not published."""

    ENTRY_GONE = "a source entry is gone"
    CONTEXT_GONE = "the diary context is gone"
    FORGOTTEN = "a source session is forgotten"
    NO_ORIGIN = "no source has an origin, so that it could never be forgotten"


@frozen
class PendingNarrative:
    """A narrative that waits to be published; ``prepare_narrative`` begins one.

    ``source_keys`` are the entries that it tells of, ``context`` what it was shown of the diary, and ``origins`` those
    of both at the time: should a session among them be forgotten before the narrative is published, it never is.
    """

    text: str = field(repr=False)
    source_keys: tuple[str, ...] = field(default=(), converter=strings)
    origins: tuple[Origin, ...] = ()
    context: tuple[str, ...] = field(default=(), converter=strings, repr=False)

    def telling(self, text: str) -> PendingNarrative:
        """The same, with the text that a model made of it."""
        return evolve(self, text=text)


@frozen
class NarrativePlan:
    """The effects that publish a narrative; or none, and why it is dropped."""

    effects: tuple[WriteEffect, ...] = ()
    dropped: Dropped | None = None


def narrative_keys(state: IngestState, narrative: PendingNarrative) -> tuple[str, ...]:
    """The entries whose origins a narrative has: those that it tells of, and those of the diary lines that it was
    shown.
    """
    text = None if state.diary is None else state.diary.text
    return tuple(sorted(context_keys(text, narrative.context).union(narrative.source_keys)))


def plan_narrative(
    state: IngestState,
    narrative: PendingNarrative,
    known: Iterable[Origin],
    *,
    written_ms: int,
    zone: tzinfo,
    forgotten: Iterable[Tombstone] = (),
) -> NarrativePlan:
    """Publish a narrative, or drop it. ``written_ms`` is the time that the diary shows for it, in ``zone``.

    ``known`` are the origins of ``narrative_keys`` in every ledger of the workspace, ``forgotten`` what the other
    agents have forgotten of their sessions.
    """
    known = tuple(known)
    origins = join_origins((*known, *narrative.origins))
    sources: dict[str, set[str]] = {}
    for origin in origins:
        sources.setdefault(origin.agent_id, set()).add(origin.session_id)
    gone = {(tombstone.agent_id, tombstone.session_id) for tombstone in forgotten}
    gone.update((state.agent_id, session_id) for session_id in state.tombstones)
    if any((origin.agent_id, origin.session_id) in gone for origin in origins):
        return NarrativePlan(dropped=Dropped.FORGOTTEN)
    if not {entry.key for entry in state.entries}.issuperset(narrative.source_keys):
        return NarrativePlan(dropped=Dropped.ENTRY_GONE)
    text = None if state.diary is None else state.diary.text
    if not frozenset(diary_context(text, limit=None)).issuperset(narrative.context):
        return NarrativePlan(dropped=Dropped.CONTEXT_GONE)
    if not known:
        return NarrativePlan(dropped=Dropped.NO_ORIGIN)
    moment = datetime.fromtimestamp(written_ms / 1000, zone)
    day = moment.date().isoformat()
    lines = tuple(DiaryLine(line, origins) for line in narrative.text.split("\n") if line.strip())
    block = DiaryBlock(day, lines, title=f"{day_title(day)} at {_clock(moment)}")
    after, added = add_blocks(text, [block])
    if not added:
        return NarrativePlan()
    path = DIARY_PATH if state.diary is None else state.diary.path
    rows = block_origins(block)
    effects: tuple[WriteEffect, ...] = (
        *(RequireAdmitted(agent, sorted(sources[agent])) for agent in sorted(sources)),
        *(RecordOrigins(agent, tuple(row for row in rows if row.agent_id == agent)) for agent in sorted(sources)),
        ReplaceText(path, None if text is None else digest(text), after),
    )
    return NarrativePlan(effects)


def _clock(moment: datetime) -> str:
    half = "AM" if moment.hour < 12 else "PM"
    return f"{moment.hour % 12 or 12}:{moment.minute:02d} {half} {moment.tzname()}"
