"""``memprov sessions``: find the id or key of the session to forget."""

from __future__ import annotations

import click
from attrs import field, frozen

from memprov.cli.finding import (
    STATES,
    SessionFilter,
    find_sessions,
    first_words,
    read_time,
    saying,
    short_ids,
    spoken_in_corpus,
)
from memprov.cli.listing import describe_sessions
from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say, say_error
from memprov.core.records import SessionRecord, identity_json
from memprov.core.text import json_text
from memprov.errors import InputError
from memprov.shell.port import ProvableStore, Store

__all__ = ["own_sessions", "sessions_command"]

_NAMED = 5


def _limit(_context: click.Context, _option: click.Parameter, value: str) -> int | None:
    """How many rows, from 1; ``None`` for all."""
    if value == "all":
        return None
    if not (value.isascii() and value.isdecimal() and 0 < len(value) < 10 and int(value)):
        raise InputError(f"--limit is {value!r}; it must be a number from 1, or all")
    return int(value)


@click.command("sessions")
@store_options
@click.option("--participant", "participants", metavar="ACTOR_ID", multiple=True, help="Only sessions with this actor.")
@click.option("--hook-source", "hook_sources", metavar="SOURCE", multiple=True, help="Only those that it started.")
@click.option("--channel", "channels", metavar="NAME", multiple=True, help="Only those of this channel.")
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, help="Only those in this state.")
@click.option("--since", metavar="TIME", help="Only those that began since: an ISO date or date-time (UTC).")
@click.option("--until", metavar="TIME", help="Only those that began until then; a date takes its whole day in.")
@click.option("--text", metavar="WORDS", help="Only those in which somebody said all these words in one line.")
@click.option("--preview", is_flag=True, help="Show the first words of each: memory text, on this terminal.")
@click.option(
    "--limit", metavar="N", callback=_limit, default="50", show_default=True, help="Only the newest N, or all."
)
@json_option
def sessions_command(  # one parameter per option
    place: StoreOptions,
    participants: tuple[str, ...],
    hook_sources: tuple[str, ...],
    channels: tuple[str, ...],
    states: tuple[str, ...],
    since: str | None,
    until: str | None,
    text: str | None,
    limit: int | None,
    *,
    preview: bool,
    as_json: bool,
) -> None:
    """List an agent's sessions, to find the id or key to forget."""
    times = read_time("--since", since), read_time("--until", until)
    wanted = SessionFilter(participants, hook_sources, channels, states, *times)
    if text is not None and not text.strip():
        raise InputError("--text is blank")
    roster = place.roster()
    found = find_sessions(roster, wanted)
    heard = _hear(place.open()) if preview or text is not None else _Heard()
    known, notes = found.records, []
    if text is not None:
        hits = saying(heard.lines, text)
        known = tuple(record for record in known if record.session_id in hits)
        notes.append(f"searched {heard.searched}")
        if strangers := sorted(hits.difference(record.session_id for record in roster.sessions)):
            listed = ", ".join(strangers[:_NAMED]) + ", …" * (len(strangers) > _NAMED)
            notes.append(f"also said in sessions that no session store knows any more: {listed}")
    if found.undated:
        notes.append(f"{found.undated} without any time are left out by --since and --until")
    rows = known[:limit]
    if len(rows) < len(known):
        notes.append(f"{len(known) - len(rows)} older sessions are left out; --limit all shows them")
    said = first_words(heard.lines) if preview else {}
    if as_json:
        words = [{"preview": said.get(row.session_id)} if preview else {} for row in rows]
        answer = [
            _row(row, forgotten=row.session_id in roster.forgotten) | w for row, w in zip(rows, words, strict=True)
        ]
        document(json_text(answer, indent=2))
        for note in notes:
            say_error(note)
        return
    short = short_ids(record.session_id for record in roster.sessions)
    say(describe_sessions(rows, short, roster.forgotten, said))
    if any(short[row.session_id] != row.session_id for row in rows):
        notes.append("… stands for the rest of an id; --json has every id and key whole")
    say(notes)


@frozen
class _Heard:
    """What was said, line by line, by session, and in words where it was looked for."""

    lines: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    searched: str = ""


def _hear(store: ProvableStore) -> _Heard:
    """Every corpus line and, where the store retains transcripts, what they say."""
    agent = store.identity.agent_id
    corpus = list(spoken_in_corpus((file.text for file in store.snapshot().corpus), agent))
    spoken = [transcript for transcript in store.spoken() if transcript.agent_id == agent]
    read = [transcript for transcript in spoken if not transcript.unread]
    searched = f"{len(corpus)} corpus lines and {len(read)} transcripts"
    if not spoken:
        searched = f"{len(corpus)} corpus lines; no transcripts, of which this store keeps none"
    elif len(read) < len(spoken):
        searched += f"; {len(spoken) - len(read)} transcripts could not be read"
    return _Heard((*corpus, *((t.session_id, line) for t in read for line in t.texts)), searched)


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
        "archivedAt": row.archived_at_ms,
        "channel": row.channel,
        "chatType": row.chat_type,
        "hookSource": row.hook_source,
        "participants": [identity_json(identity) for identity in row.participants],
        "parentKey": row.parent_key,
    }
