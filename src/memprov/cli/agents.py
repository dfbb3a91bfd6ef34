"""``memprov agents``: whose memory is there, to find the agent to ask about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from memprov.cli.options import StoreOptions, json_option, place_options
from memprov.cli.printing import document, table
from memprov.cli.reading import moment
from memprov.core.records import AgentRoster
from memprov.core.text import json_text

__all__ = ["agents_command", "describe_agents"]


@click.command("agents")
@place_options
@json_option
def agents_command(place: StoreOptions, *, as_json: bool) -> None:
    """List the agents of a store or an installation, with their sessions and last activity."""
    agents = place.agents()
    if as_json:
        document(json_text([_row(agent) for agent in agents], indent=2))
    else:
        table(describe_agents(agents))


def describe_agents(agents: Iterable[AgentRoster]) -> Iterator[tuple[str, ...]]:
    """The agents as a table, its heading first. An agent that could not be read says why."""
    yield "agent", "sessions", "last activity (UTC)", "workspace"
    for agent in agents:
        if agent.unread:
            yield agent.agent_id, "?", "?", f"{agent.workspace or '?'} ({agent.unread})"
        else:
            yield agent.agent_id, str(len(agent.sessions)), moment(agent.last_activity_ms), agent.workspace


def _row(agent: AgentRoster) -> dict[str, object]:
    return {
        "agentId": agent.agent_id,
        "workspace": agent.workspace or None,
        "sessions": None if agent.unread else len(agent.sessions),
        "lastActivityAt": agent.last_activity_ms,
        "unread": agent.unread or None,
    }
