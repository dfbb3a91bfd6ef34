"""The session catalogue: what hosts record of their sessions. Transcripts stay the host's.

A session is one transcript generation. Of all generations of a key one at most is live; rotating makes the former one
retained, archiving and restoring move it, and nothing else does. A later record says what is newly known
(``joined_session``), so that forgetting to repeat what keeps a session out must not let it in.

To delete a session is not to forget it: its row goes, and the memory that it left stays until it is forgotten. And a
session that was forgotten may be recorded again, by a late writer; it stays excluded by its tombstone (B56, B60).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

import apsw
from attrs import evolve

from memprov.core.purge import Selectors
from memprov.core.records import (
    Identity,
    SessionRecord,
    SessionState,
    described,
    identity_from_json,
    identity_json,
    is_moment,
    joined_session,
    resolve_kinds,
)
from memprov.core.text import WSP, json_text
from memprov.core.writing import Purpose, decide_admission
from memprov.errors import CorruptStoreError, InputError
from memprov.shell.cells import Row, integer, is_storable, text
from memprov.shell.native.transcripts import raise_versions, say_changed
from memprov.shell.statements import batches, transaction

__all__ = [
    "archive",
    "checked_id",
    "checked_record",
    "delete",
    "forgotten_ids",
    "internal_ids",
    "read_internal_ids",
    "read_sessions",
    "record",
    "restore",
    "rotate",
    "session_ids",
    "session_key_of",
]

_CHAT_TYPES = frozenset({"direct", "group", "channel"})
_COLUMNS = (
    "s.session_id, s.session_key, s.kind, s.state, s.created_at_ms, s.channel, s.chat_type, s.hook_source, "
    "s.parent_key, t.changed"
)
_FROM = "FROM sessions AS s LEFT JOIN transcripts AS t ON t.session_id = s.session_id"
#: The keys that sessions descend from: what they inherit their kinds by.
_ANCESTRY = """
WITH RECURSIVE wanted (id) AS (SELECT value FROM json_each(:ids)), line (key) AS (
    SELECT s.parent_key FROM wanted JOIN sessions AS s ON s.session_id = wanted.id WHERE s.parent_key IS NOT NULL
    UNION
    SELECT s.parent_key FROM line JOIN sessions AS s ON s.session_key = line.key WHERE s.parent_key IS NOT NULL
)
"""
_OF_LINE = "s.session_id IN wanted OR s.session_key IN line"


def checked_id(session_id: str) -> str:
    """The id, if it could be selected as well: one rule for recording, deleting and forgetting (D15, B57)."""
    Selectors(sessions=(session_id,))
    return session_id


def checked_record(record: SessionRecord, agent_id: str) -> SessionRecord:
    """The record, if it can be kept and later be selected by everything that it says. Raises ``InputError``."""
    checked_id(record.session_id)
    if record.agent_id != agent_id:
        raise InputError(f"session {record.session_id!r} is of agent {record.agent_id!r}, the store of {agent_id!r}")
    for name in ("session_key", "channel", "hook_source", "parent_key", "changed"):
        value = getattr(record, name)
        if value is not None and not _is_name(value):
            raise InputError(f"session {record.session_id!r}: {name} is {value!r}, which is no text or a blank one")
    if record.chat_type is not None and record.chat_type not in _CHAT_TYPES:
        raise InputError(
            f"session {record.session_id!r}: chat_type is {record.chat_type!r}; it must be direct, group or channel"
        )
    if record.created_at_ms is not None and not is_moment(record.created_at_ms):
        raise InputError(
            f"session {record.session_id!r}: created_at_ms is {described(record.created_at_ms)}, which is no time in "
            "milliseconds before the year 2100"
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
    """Insert a session, or join what is said to what is known. Raises ``InputError`` when its key has another live
    session, and for a state that another call would have to move it to.
    """
    with transaction(connection):
        known = _find(connection, session.agent_id, session.session_id)
        if known is not None and session.state not in (SessionState.LIVE, known.state):
            raise InputError(
                f"session {session.session_id!r} is {known.state}; recording it does not make it {session.state}, "
                "rotate_session, archive_session and restore_session do"
            )
        _put(connection, known, session, now_ms)


def rotate(connection: apsw.Connection, session: SessionRecord, now_ms: int) -> tuple[str, ...]:
    """Make this the live session of its key; returns the ids of those that are retained from now on.

    Doing it again changes nothing. A session that was itself rotated out or archived does not come back this way.
    """
    if session.session_key is None or session.state is not SessionState.LIVE:
        raise InputError(f"session {session.session_id!r} cannot succeed another: it has no key, or is not live")
    with transaction(connection):
        known = _find(connection, session.agent_id, session.session_id)
        if known is not None and known.state is not SessionState.LIVE:
            raise InputError(f"session {session.session_id!r} is {known.state}; it cannot succeed another")
        live = connection.execute(
            "SELECT session_id FROM sessions WHERE session_key = ? AND state = 'live' AND session_id <> ?",
            (session.session_key, session.session_id),
        )
        former = tuple(text(row[0]) for row in live)
        for session_id in former:
            _set_state(connection, session_id, SessionState.RETAINED, now_ms)
        _put(connection, known, session, now_ms)
    return former


def archive(connection: apsw.Connection, agent_id: str, session_id: str, now_ms: int) -> bool:
    """Mark a session as archived; ``False`` when it is already. Raises ``InputError`` when there is none."""
    with transaction(connection):
        known = _require(connection, agent_id, session_id, "archive")
        if known.state is SessionState.ARCHIVED:
            return False
        _set_state(connection, session_id, SessionState.ARCHIVED, now_ms)
    return True


def restore(connection: apsw.Connection, agent_id: str, session_id: str, now_ms: int) -> bool:
    """Bring an archived session back: live, or retained where its key has a live session by now.

    ``False`` when it is not archived. Raises ``InputError`` when there is none.
    """
    with transaction(connection):
        known = _require(connection, agent_id, session_id, "restore")
        if known.state is not SessionState.ARCHIVED:
            return False
        state = SessionState.LIVE if _live_other(connection, known) is None else SessionState.RETAINED
        _set_state(connection, session_id, state, now_ms)
    return True


def delete(connection: apsw.Connection, session_id: str) -> bool:
    """Drop a session from the catalogue; ``False`` when there is none (B56)."""
    with transaction(connection):
        raise_versions(connection, session_id)
        connection.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
        return connection.changes() > 0


def read_sessions(
    connection: apsw.Connection, agent_id: str, session_ids: Iterable[str] | None = None
) -> tuple[SessionRecord, ...]:
    """Every session, or those among these ids, oldest first, each with the kind that it inherits (B14)."""
    if session_ids is None:
        participants = dict(_participants(connection))
        rows = connection.execute(f"SELECT {_COLUMNS} {_FROM} ORDER BY s.created_at_ms, s.session_id")
        return resolve_kinds(_session(row, agent_id, participants) for row in rows)
    wanted = frozenset(session_ids)
    found: dict[str, SessionRecord] = {}
    for batch in batches(sorted(wanted)):
        rows = connection.execute(f"{_ANCESTRY} SELECT {_COLUMNS} {_FROM} WHERE {_OF_LINE}", {"ids": batch})
        sessions = [_session(row, agent_id, {}) for row in rows]
        people = dict(_participants(connection, json_text([session.session_id for session in sessions])))
        found.update((s.session_id, evolve(s, participants=people.get(s.session_id, ()))) for s in sessions)
    order = sorted(found.values(), key=lambda session: (session.created_at_ms or 0, session.session_id))
    return tuple(session for session in resolve_kinds(order) if session.session_id in wanted)


def session_ids(connection: apsw.Connection) -> frozenset[str]:
    """The ids of all sessions."""
    return frozenset(text(row[0]) for row in connection.execute("SELECT session_id FROM sessions"))


def internal_ids(records: Iterable[SessionRecord]) -> frozenset[str]:
    """The sessions that may never be indexed, whatever an operator decides (docs: Index)."""
    return frozenset(r.session_id for r in records if not decide_admission(r, None, (), Purpose.INDEXING).admitted)


def read_internal_ids(connection: apsw.Connection, agent_id: str) -> frozenset[str]:
    """The sessions that may never be indexed, found without reading all: only those that say or inherit something of a
    scheduled job, a heartbeat or a diary's writer, and the parents that they inherit it from, are looked at.
    """
    rows = connection.execute(
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE s.kind IN ('cron', 'heartbeat') OR s.parent_key IS NOT NULL OR instr(s.session_key, ':run:')
           OR instr(s.session_key, 'dreaming-narrative-') OR s.session_key LIKE '%:heartbeat'
           OR s.session_key IN (SELECT parent_key FROM sessions)
        ORDER BY s.created_at_ms, s.session_id"""
    )
    return internal_ids(resolve_kinds(_session(row, agent_id, {}) for row in rows))


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


def _session(row: Row, agent_id: str, participants: Mapping[str, tuple[Identity, ...]]) -> SessionRecord:
    session_id, key, kind, state, created, channel, chat_type, hook_source, parent, changed = row
    return SessionRecord(
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
        changed=_optional(changed),
    )


def _find(connection: apsw.Connection, agent_id: str, session_id: str) -> SessionRecord | None:
    """A session as it was recorded, with its own kind."""
    rows = connection.execute(f"SELECT {_COLUMNS} {_FROM} WHERE s.session_id = ?", (session_id,))
    for row in rows:
        return _session(row, agent_id, dict(_participants(connection, json_text([session_id]))))
    return None


def _require(connection: apsw.Connection, agent_id: str, session_id: str, what: str) -> SessionRecord:
    known = _find(connection, agent_id, session_id)
    if known is None:
        raise InputError(f"there is no session {session_id!r} to {what}")
    return known


def _live_other(connection: apsw.Connection, session: SessionRecord) -> str | None:
    """The live session of this session's key, if that is another one."""
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE session_key = ? AND state = 'live' AND session_id <> ?",
        (session.session_key, session.session_id),
    )
    return next((text(row[0]) for row in rows), None)


def _put(connection: apsw.Connection, known: SessionRecord | None, said: SessionRecord, now_ms: int) -> None:
    """Write what is known of a session and what is said of it now. Participants are only ever added."""
    session = said if known is None else joined_session(known, said)
    if known is None or evolve(known, changed=session.changed) != session:
        raise_versions(connection, session.session_id)  # of those that descend from its former key, and
        _put_record(connection, session, now_ms)
        raise_versions(connection, session.session_id)  # from its present one
    if session.changed is not None:
        say_changed(connection, session.session_id, session.changed)


def _put_record(connection: apsw.Connection, session: SessionRecord, now_ms: int) -> None:
    if session.state is SessionState.LIVE and (other := _live_other(connection, session)) is not None:
        raise InputError(
            f"session {session.session_id!r} cannot be live: {other!r} is the live session of "
            f"{session.session_key!r}; rotate it"
        )
    connection.execute(
        """
        INSERT INTO sessions VALUES
            (:id, :key, :kind, :state, :parent, :channel, :chat, :hook, coalesce(:created, :now), :now)
        ON CONFLICT (session_id) DO UPDATE SET
            session_key = :key, kind = :kind, state = :state, parent_key = :parent, channel = :channel,
            chat_type = :chat, hook_source = :hook, created_at_ms = :created, updated_at_ms = :now
        """,
        {
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
        },
    )
    connection.executemany(
        "INSERT OR IGNORE INTO participants VALUES (?, ?, ?)",
        [(session.session_id, identity.id, _namespace(identity)) for identity in session.participants],
    )


def _set_state(connection: apsw.Connection, session_id: str, state: SessionState, now_ms: int) -> None:
    connection.execute(
        "UPDATE sessions SET state = ?, updated_at_ms = ? WHERE session_id = ?", (state.value, now_ms, session_id)
    )
    raise_versions(connection, session_id)


def _participants(
    connection: apsw.Connection, session_ids: str | None = None
) -> Iterator[tuple[str, tuple[Identity, ...]]]:
    """Session id -> its participants, of all sessions or of those in a JSON array."""
    columns, order = (
        "SELECT session_id, namespace, actor_id FROM participants",
        "ORDER BY session_id, actor_id, namespace",
    )
    rows = (
        connection.execute(f"{columns} {order}")
        if session_ids is None
        else connection.execute(
            f"{columns} WHERE session_id IN (SELECT value FROM json_each(?)) {order}", (session_ids,)
        )
    )
    for name, group in groupby(rows, key=itemgetter(0)):
        yield text(name), tuple(identity_from_json(text(row[1]), text(row[2])) for row in group)


def _namespace(identity: Identity) -> str:
    """The typed identity without its id, as JSON (docs: Session metadata)."""
    fields = identity_json(identity)
    del fields["id"]
    return json_text(fields)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip(WSP)) and "\0" not in value and is_storable(value)


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None
