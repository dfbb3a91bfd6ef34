"""Which sessions do selectors mean, in a store? ``select_sessions`` decides; here it is told what it has to know.

A name that the catalogue knows costs nothing more. For one that it does not know the origins are asked, and for one
that they do not know either the other agents' catalogues; transcripts are opened only for archives that ``since`` could
not judge otherwise.
"""

from __future__ import annotations

from attrs import evolve

from memprov.core.purge import Selection, SelectionSource, Selectors, select_sessions
from memprov.core.records import SessionRecord, SessionState
from memprov.shell.port import Store

__all__ = ["resolve"]


def resolve(store: Store, selectors: Selectors) -> Selection:
    """The sessions of the store's agent that the selectors mean, read without a trace (I3).

    Raises ``SelectorError`` for selectors that select nothing, before anything is read, and for a name that is
    something else than a session's.
    """
    selectors.require()
    agent = store.identity.agent_id
    catalogue = store.catalogue()
    ids = {record.session_id for record in catalogue if record.agent_id == agent}
    strange = tuple(name for name in selectors.sessions if name not in ids)
    origins = store.named_origins(strange) if strange else ()
    selection = select_sessions(catalogue, selectors, agent, origins=origins)
    if undated := [r.session_id for r in selection.resolutions if r.judged_by == "archived"]:
        catalogue = _dated(catalogue, agent, store.began(undated))
        selection = select_sessions(catalogue, selectors, agent, origins=origins)
    if all(r.source is not SelectionSource.UNRESOLVED for r in selection.resolutions):
        return selection
    neighbours = store.neighbours()
    selection = select_sessions((*catalogue, *neighbours.sessions), selectors, agent, origins=origins)
    return evolve(selection, warnings=tuple(sorted({*selection.warnings, *neighbours.unread})))


def _dated(catalogue: tuple[SessionRecord, ...], agent: str, began: dict[str, int]) -> tuple[SessionRecord, ...]:
    """The catalogue with these archives' own times."""
    return tuple(
        evolve(record, created_at_ms=began[record.session_id])
        if record.agent_id == agent
        and record.state is SessionState.ARCHIVED
        and record.created_at_ms is None
        and record.session_id in began
        else record
        for record in catalogue
    )
