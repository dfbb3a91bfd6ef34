"""``memprov sessions``: find the id or key of the session to forget."""

from __future__ import annotations

import click

from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say, table
from memprov.cli.reading import describe_sessions
from memprov.core.records import SessionRecord, identity_json
from memprov.core.text import json_text
from memprov.errors import InputError
from memprov.shell.port import Store

__all__ = ["own_sessions", "sessions_command"]


def _limit(_context: click.Context, _option: click.Parameter, value: str) -> int | None:
    """How many rows, from 1; ``None`` for all."""
    if value == "all":
        return None
    if not (value.isascii() and value.isdecimal() and 0 < len(value) < 10 and int(value)):
        raise InputError(f"--limit is {value!r}; it must be a number from 1, or all")
    return int(value)


@click.command("sessions")
@store_options
@click.option(
    "--limit", metavar="N", callback=_limit, default="all", show_default=True, help="Only the newest N, or all."
)
@json_option
def sessions_command(place: StoreOptions, limit: int | None, *, as_json: bool) -> None:
    """List an agent's sessions, to find the id or key to forget."""
    opened = place.open()
    known = own_sessions(opened)
    rows = known if limit is None else known[-limit:]
    forgotten = opened.snapshot().tombstones
    if as_json:
        document(json_text([_row(row, forgotten=row.session_id in forgotten) for row in rows], indent=2))
        return
    table(describe_sessions(rows, forgotten))
    if len(rows) < len(known):
        say([f"{len(known) - len(rows)} older sessions are left out; --limit all shows them"])


def own_sessions(store: Store) -> list[SessionRecord]:
    """The sessions of the store's agent; a shared session store lists others' too."""
    return [record for record in store.catalogue() if record.agent_id == store.identity.agent_id]


def _row(row: SessionRecord, *, forgotten: bool) -> dict[str, object]:
    return {
        "agentId": row.agent_id,
        "sessionId": row.session_id,
        "sessionKey": row.session_key,
        "state": row.state.value,
        "forgotten": forgotten,
        "kind": row.kind.value,
        "createdAt": row.created_at_ms,
        "channel": row.channel,
        "chatType": row.chat_type,
        "hookSource": row.hook_source,
        "participants": [identity_json(identity) for identity in row.participants],
        "parentKey": row.parent_key,
    }
