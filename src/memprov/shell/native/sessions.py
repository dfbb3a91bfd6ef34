"""The session catalogue: what hosts record of their sessions. Transcripts stay the host's.

A session is one transcript generation. Of all generations of a key one at most is live; rotating makes the former one
retained. What a later record does not know (``None``) stays as it was known before, and participants only accumulate:
metadata is what keeps a session out, and what it is found by when it is to be forgotten, so that forgetting to repeat
it must not lose it.

To delete a session is not to forget it: its row goes, and the memory that it left stays until it is forgotten. And a
session that was forgotten may be recorded again, by a late writer; it stays excluded by its tombstone (B56, B60).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import apsw

from memprov.core.purge import Selectors
from memprov.core.records import Identity, SessionRecord, SessionState, identity_from_json, identity_json, resolve_kinds
from memprov.core.text import WSP, json_text
from memprov.core.writing import Purpose, decide_admission
from memprov.errors import CorruptStoreError, InputError
from memprov.shell.cells import integer, is_storable, text
from memprov.shell.native.database import batches, transaction

__all__ = [
    "archive",
    "checked_id",
    "checked_record",
    "delete",
    "forgotten_ids",
    "internal_ids",
    "read_sessions",
    "record",
    "rotate",
    "session_key_of",
]

_CHAT_TYPES = frozenset({"direct", "group", "channel"})
_COLUMNS = "session_id, session_key, kind, state, created_at_ms, channel, chat_type, hook_source, parent_key"


def checked_id(session_id: str) -> str:
    """The id, if it could be selected as well: one rule for recording, deleting and forgetting (D15, B57)."""
    Selectors(sessions=(session_id,))
    if not is_storable(session_id):
        raise InputError(f"the session id {session_id!r} is no valid text")
    return session_id


def checked_record(record: SessionRecord, agent_id: str) -> SessionRecord:
    """The record, if it can be kept and later be selected by everything that it says. Raises ``InputError``."""
    checked_id(record.session_id)
    if record.agent_id != agent_id:
        raise InputError(f"session {record.session_id!r} is of agent {record.agent_id!r}, the store of {agent_id!r}")
    for name in ("session_key", "channel", "hook_source", "parent_key"):
        value = getattr(record, name)
        if value is not None and not _is_name(value):
            raise InputError(f"session {record.session_id!r}: {name} is {value!r}, which is no text or a blank one")
    if record.chat_type is not None and record.chat_type not in _CHAT_TYPES:
        raise InputError(
            f"session {record.session_id!r}: chat_type is {record.chat_type!r}; it must be direct, group or channel"
        )
    created: object = record.created_at_ms
    if created is not None and (not isinstance(created, int) or isinstance(created, bool) or abs(created) >= 2**53):
        raise InputError(
            f"session {record.session_id!r}: created_at_ms is {created!r}, which is no time in milliseconds"
        )
    for identity in record.participants:
        try:
            identity_from_json(_namespace(identity), identity.id)
        except CorruptStoreError as error:
            raise InputError(f"session {record.session_id!r}: {error}") from None
        if not _is_name(identity.id):
            raise InputError(f"session {record.session_id!r}: the participant id {identity.id!r} is blank or no text")
    return record


def record(connection: apsw.Connection, session: SessionRecord, now_ms: int) -> None:
    """Insert or update one session. Raises ``InputError`` when its key has another live session."""
    with transaction(connection):
        _put(connection, session, now_ms)


def rotate(connection: apsw.Connection, session: SessionRecord, now_ms: int) -> tuple[str, ...]:
    """Make this the live session of its key; returns the ids of those that are retained from now on.

    Doing it again changes nothing. A session that was itself rotated out or archived does not come back this way.
    """
    if session.session_key is None or session.state is not SessionState.LIVE:
        raise InputError(f"session {session.session_id!r} cannot succeed another: it has no key, or is not live")
    with transaction(connection):
        state = _state_of(connection, session.session_id)
        if state not in (None, SessionState.LIVE):
            raise InputError(f"session {session.session_id!r} is {state}; it cannot succeed another")
        live = connection.execute(
            "SELECT session_id FROM sessions WHERE session_key = ? AND state = 'live' AND session_id <> ?",
            (session.session_key, session.session_id),
        )
        former = tuple(text(row[0]) for row in live)
        for session_id in former:
            _set_state(connection, session_id, SessionState.RETAINED, now_ms)
        _put(connection, session, now_ms)
    return former


def archive(connection: apsw.Connection, session_id: str, now_ms: int) -> bool:
    """Mark a session as archived; ``False`` when it is already. Raises ``InputError`` when there is none."""
    with transaction(connection):
        state = _state_of(connection, session_id)
        if state is None:
            raise InputError(f"there is no session {session_id!r} to archive")
        if state is SessionState.ARCHIVED:
            return False
        _set_state(connection, session_id, SessionState.ARCHIVED, now_ms)
    return True


def delete(connection: apsw.Connection, session_id: str) -> bool:
    """Drop a session from the catalogue; ``False`` when there is none (B56)."""
    with transaction(connection):
        connection.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
        return connection.changes() > 0


def read_sessions(connection: apsw.Connection, agent_id: str) -> tuple[SessionRecord, ...]:
    """Every session, oldest first, each with the kind that it inherits (B14)."""
    participants = dict(_participants(connection))
    rows = connection.execute(f"SELECT {_COLUMNS} FROM sessions ORDER BY created_at_ms, session_id")
    return resolve_kinds(
        SessionRecord(
            agent_id=agent_id,
            session_id=text(session_id),
            session_key=_optional(key),
            kind=text(kind),
            state=text(state),
            created_at_ms=integer(created),
            channel=_optional(channel),
            chat_type=_optional(chat_type),
            hook_source=_optional(hook_source),
            participants=participants.get(text(session_id), ()),
            parent_key=_optional(parent),
        )
        for session_id, key, kind, state, created, channel, chat_type, hook_source, parent in rows
    )


def internal_ids(records: Iterable[SessionRecord]) -> frozenset[str]:
    """The sessions that may never be indexed, whatever an operator decides (FACTS 9.4)."""
    return frozenset(r.session_id for r in records if not decide_admission(r, None, (), Purpose.INDEXING).admitted)


def forgotten_ids(connection: apsw.Connection, session_ids: Iterable[str] | None = None) -> frozenset[str]:
    """The forgotten sessions: all of them, or those among these, looked up in bounded batches (D11)."""
    if session_ids is None:
        return frozenset(text(row[0]) for row in connection.execute("SELECT session_id FROM tombstones"))
    found: set[str] = set()
    for batch in batches(session_ids):
        rows = connection.execute(
            "SELECT session_id FROM tombstones WHERE session_id IN (SELECT value FROM json_each(?))", (batch,)
        )
        found.update(text(row[0]) for row in rows)
    return frozenset(found)


def session_key_of(connection: apsw.Connection, session_id: str) -> str | None:
    """The key of a session, as far as it is known."""
    rows = connection.execute("SELECT session_key FROM sessions WHERE session_id = ?", (session_id,))
    return next((_optional(row[0]) for row in rows), None)


def _put(connection: apsw.Connection, session: SessionRecord, now_ms: int) -> None:
    if session.state is SessionState.LIVE and session.session_key is not None:
        other = connection.execute(
            "SELECT session_id FROM sessions WHERE session_key = ? AND state = 'live' AND session_id <> ?",
            (session.session_key, session.session_id),
        )
        for (session_id,) in other:
            raise InputError(
                f"session {session.session_id!r} cannot be live: {session_id!r} is the live session of "
                f"{session.session_key!r}; rotate it"
            )
    values = {
        "id": session.session_id,
        "key": session.session_key,
        "kind": session.kind.value,
        "state": session.state.value,
        "parent": session.parent_key,
        "channel": session.channel,
        "chat": session.chat_type,
        "hook": session.hook_source,
        "created": session.created_at_ms,
        "now": now_ms,
    }
    connection.execute(
        """
        INSERT INTO sessions VALUES
            (:id, :key, :kind, :state, :parent, :channel, :chat, :hook, coalesce(:created, :now), :now)
        ON CONFLICT (session_id) DO UPDATE SET
            session_key = coalesce(:key, session_key), kind = :kind, state = :state,
            parent_key = coalesce(:parent, parent_key), channel = coalesce(:channel, channel),
            chat_type = coalesce(:chat, chat_type), hook_source = coalesce(:hook, hook_source),
            created_at_ms = coalesce(:created, created_at_ms), updated_at_ms = :now
        """,
        values,
    )
    connection.executemany(
        "INSERT OR IGNORE INTO participants VALUES (?, ?, ?)",
        [(session.session_id, identity.id, _namespace(identity)) for identity in session.participants],
    )


def _state_of(connection: apsw.Connection, session_id: str) -> SessionState | None:
    rows = connection.execute("SELECT state FROM sessions WHERE session_id = ?", (session_id,))
    return next((SessionState(text(row[0])) for row in rows), None)


def _set_state(connection: apsw.Connection, session_id: str, state: SessionState, now_ms: int) -> None:
    connection.execute(
        "UPDATE sessions SET state = ?, updated_at_ms = ? WHERE session_id = ?", (state.value, now_ms, session_id)
    )


def _participants(connection: apsw.Connection) -> Iterator[tuple[str, tuple[Identity, ...]]]:
    rows = connection.execute(
        "SELECT session_id, namespace, actor_id FROM participants ORDER BY session_id, actor_id, namespace"
    )
    for session_id, group in groupby(rows, key=itemgetter(0)):
        yield text(session_id), tuple(identity_from_json(text(row[1]), text(row[2])) for row in group)


def _namespace(identity: Identity) -> str:
    """The typed identity without its id, as JSON (FACTS 1.6)."""
    fields = identity_json(identity)
    del fields["id"]
    return json_text(fields)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip(WSP)) and "\0" not in value and is_storable(value)


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None
