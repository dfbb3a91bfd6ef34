"""Who is known to a place: an agent, its sessions, and when something last happened."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from memprov.core.records.nouns import SessionRecord

__all__ = ["AgentRoster", "roster_of"]


@frozen
class AgentRoster:
    """One agent of a store or an installation. ``workspace`` is where its files belong, whether or not they are there.

    ``last_activity_ms`` is the latest time, in epoch milliseconds, that is known of any of its sessions. ``unread``
    says why its sessions are not known; there are none then.
    """

    agent_id: str
    workspace: str
    sessions: tuple[SessionRecord, ...] = field(default=(), repr=False)
    forgotten: frozenset[str] = field(default=frozenset(), repr=False)
    last_activity_ms: int | None = None
    unread: str = ""


def roster_of(
    agent_id: str,
    workspace: str,
    records: Iterable[SessionRecord],
    forgotten: Iterable[str] = (),
    moments: Iterable[int] = (),
) -> AgentRoster:
    """The roster of an agent, of records that may be other agents' too.

    ``moments`` are further times at which its sessions were active, in epoch milliseconds.
    """
    own = tuple(record for record in records if record.agent_id == agent_id)
    known = [moment for record in own for moment in (record.created_at_ms, record.archived_at_ms) if moment is not None]
    last = max((*known, *moments), default=None)
    return AgentRoster(agent_id, workspace, own, frozenset(forgotten), last)
