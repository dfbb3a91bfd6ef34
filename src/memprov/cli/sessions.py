"""``memprov sessions``: find the id or key of the session to forget."""

from __future__ import annotations

import click

from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say
from memprov.cli.reading import describe_sessions
from memprov.core.records import SessionRecord, identity_json
from memprov.core.text import json_text
from memprov.shell.port import Store

__all__ = ["own_sessions", "sessions_command"]


@click.command("sessions")
@store_options
@json_option
def sessions_command(place: StoreOptions, *, as_json: bool) -> None:
    """List an agent's sessions, to find the id or key to forget."""
    opened = place.open()
    rows = own_sessions(opened)
    if as_json:
        document(json_text([_row(row) for row in rows], indent=2))
        return
    say(describe_sessions(rows, opened.snapshot().tombstones))


def own_sessions(store: Store) -> list[SessionRecord]:
    """The sessions of the store's agent; a shared session store lists others' too."""
    return [record for record in store.catalogue() if record.agent_id == store.identity.agent_id]


def _row(row: SessionRecord) -> dict[str, object]:
    return {
        "agentId": row.agent_id,
        "sessionId": row.session_id,
        "sessionKey": row.session_key,
        "state": row.state.value,
        "kind": row.kind.value,
        "createdAt": row.created_at_ms,
        "channel": row.channel,
        "chatType": row.chat_type,
        "hookSource": row.hook_source,
        "participants": [identity_json(identity) for identity in row.participants],
        "parentKey": row.parent_key,
    }
