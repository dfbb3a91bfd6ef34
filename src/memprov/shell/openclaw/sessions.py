"""The sessions that a session store knows: windows, archives, participants, and what each session is.

One record for each transcript generation (docs: Session metadata). The kind follows descent: a child of a scheduled
job is part of that job whatever its own key says, and neither a cycle nor a missing parent stops the search (docs:
Session metadata).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from memprov.core.records import (
    Identity,
    SessionKind,
    SessionRecord,
    SessionState,
    identity_from_json,
    is_dream_narrative,
    key_kind,
)
from memprov.errors import CorruptStoreError
from memprov.shell.cells import Row, integer, text
from memprov.shell.openclaw.values import Json, json_value, member, nonblank, object_of
from memprov.shell.sqlite import Reader

__all__ = ["ArchiveRow", "SessionList", "agent_of_key", "is_cron_run", "read_sessions"]

_CHAT_TYPES = ("direct", "group", "channel")


@frozen
class ArchiveRow:
    """An archived transcript generation, without its content."""

    session_id: str
    generation: str
    session_key: str
    name: str
    created_at_ms: int


@frozen
class SessionList:
    """What one session database holds: the records, the archives behind some of them, and who may not be indexed.

    ``internal`` are (agent, session id) pairs. ``updated_ms`` says by session key when a live session was last active.
    """

    records: tuple[SessionRecord, ...]
    archives: tuple[ArchiveRow, ...]
    internal: frozenset[tuple[str, str]]
    updated_ms: Mapping[str, int]


@frozen
class _Node:
    """A logical session, as far as its record says something that the windows do not."""

    key: str
    current_id: str
    entry: Json = field(repr=False)
    parents: tuple[str, ...]
    spawned_by: str | None

    @property
    def narrative(self) -> bool:
        return is_dream_narrative(self.key) or (self.spawned_by is not None and is_dream_narrative(self.spawned_by))


def read_sessions(reader: Reader, owner: str) -> SessionList:
    """Every session in a database. ``owner`` is the agent of a session whose key names none."""
    nodes = {node.key: node for node in (_node(row, reader) for row in _node_rows(reader))}
    participants = _participants(reader)
    windows = list(
        reader.rows(
            "session_windows",
            "session_id session_key",
            "created_at chat_type channel session_entry_provenance hook_external_content_source "
            "parent_session_key spawned_by",
        )
    )
    records, internal = [], set()
    live_kinds: dict[tuple[str, str], SessionKind] = {}
    for row in windows:
        record = _window(row, nodes, participants, owner)
        node = nodes.get(text(row[1]))
        records.append(record)
        if record.state is SessionState.LIVE:
            live_kinds[record.agent_id, record.session_id] = record.kind
        if record.kind in (SessionKind.CRON, SessionKind.HEARTBEAT) or (node and node.narrative):
            internal.add((record.agent_id, record.session_id))
    archives = _archives(reader)
    gone = []
    for archive in archives:
        agent = agent_of_key(archive.session_key) or owner
        alive = live_kinds.get((agent, archive.session_id))
        kind = alive or _kind_of_key(archive.session_key)
        gone.append(
            SessionRecord(
                agent,
                archive.session_id,
                archive.session_key or None,
                kind,
                SessionState.ARCHIVED,
                archived_at_ms=archive.created_at_ms,
            )
        )
        if alive is None and (
            kind in (SessionKind.CRON, SessionKind.HEARTBEAT) or is_dream_narrative(archive.session_key)
        ):
            internal.add((agent, archive.session_id))
    records.sort(key=_order)
    gone.sort(key=_order)
    updated = {node.key: integer(node.entry.get("updatedAt")) for node in nodes.values()}
    return SessionList((*records, *gone), archives, frozenset(internal), updated)


def agent_of_key(key: str) -> str | None:
    """The agent part of ``agent:<agent>:<rest>``, in lower case (docs: Session keys)."""
    parts = key.split(":", 2)
    if len(parts) == 3 and parts[0].lower() == "agent" and parts[1] and parts[2] and not parts[2].startswith(":"):
        return parts[1].lower()
    return None


def is_cron_run(key: str) -> bool:
    """Whether a key is that of one run of a scheduled job."""
    return key_kind(key) is SessionKind.CRON


def _order(record: SessionRecord) -> tuple[int, str, str]:
    return record.created_at_ms or record.archived_at_ms or 0, record.session_id, record.session_key or ""


def _node_rows(reader: Reader) -> list[Row]:
    return list(
        reader.rows("session_nodes", "session_key", "current_session_id entry_json parent_session_key spawned_by")
    )


def _node(row: Row, reader: Reader) -> _Node:
    key = text(row[0])
    try:
        entry = object_of(json_value(text(row[2]) or "{}"))
    except ValueError as error:
        raise CorruptStoreError(f"{reader.database.name}: the record of session {key!r} is not JSON") from error
    spawned = nonblank(entry.get("spawnedBy")) or nonblank(row[4])
    parent = nonblank(entry.get("parentSessionKey")) or nonblank(row[3])
    return _Node(key, text(row[1]), entry, tuple(p for p in (parent, spawned) if p), spawned)


def _participants(reader: Reader) -> dict[str, tuple[Identity, ...]]:
    found: dict[str, list[Identity]] = {}
    rows = reader.rows(
        "session_participants",
        "session_key identity_namespace actor_id",
        where="ORDER BY session_key, identity_namespace, actor_id",
    )
    for key, namespace, actor in rows:
        try:
            identity = identity_from_json(text(namespace), text(actor))
        except CorruptStoreError as error:
            raise CorruptStoreError(f"{reader.database.name}: session {text(key)!r}: {error}") from error
        found.setdefault(text(key), []).append(identity)
    return {key: tuple(identities) for key, identities in found.items()}


def _window(
    row: Row, nodes: Mapping[str, _Node], participants: Mapping[str, tuple[Identity, ...]], owner: str
) -> SessionRecord:
    session_id, key = text(row[0]), text(row[1])
    node = nodes.get(key)
    parents = node.parents if node and node.parents else tuple(p for p in map(nonblank, row[7:9]) if p)
    return SessionRecord(
        agent_id=agent_of_key(key) or owner,
        session_id=session_id,
        session_key=key or None,
        kind=_kind(node, key, parents, nonblank(row[8]), nodes),
        state=SessionState.LIVE if node and node.current_id == session_id else SessionState.RETAINED,
        created_at_ms=None if row[2] is None else integer(row[2]),
        channel=text(row[4]) or None,
        chat_type=text(row[3]) if row[3] in _CHAT_TYPES else None,
        hook_source=_hook_source(row, node),
        participants=participants.get(key, ()),
        parent_key=parents[0] if parents else None,
    )


def _hook_source(row: Row, node: _Node | None) -> str | None:
    """The exact source, or none: the column says ``webhook`` for mail too, so only its ``gmail`` is believed."""
    if node and member(node.entry, "sessionId") == text(row[0]):
        exact = member(node.entry, "hookExternalContentSource")
        if exact:
            return exact
    return "gmail" if row[5] == 1 and row[6] == "gmail" else None


def _kind(
    node: _Node | None, key: str, parents: tuple[str, ...], spawned_by: str | None, nodes: Mapping[str, _Node]
) -> SessionKind:
    if is_cron_run(key) or _descends_from_cron(parents, nodes):
        return SessionKind.CRON
    spawned_by = node.spawned_by if node and node.spawned_by else spawned_by
    if node and nonblank(node.entry.get("heartbeatIsolatedBaseSessionKey")):
        return SessionKind.HEARTBEAT
    return SessionKind.SUBAGENT if spawned_by else key_kind(key)


def _descends_from_cron(parents: tuple[str, ...], nodes: Mapping[str, _Node]) -> bool:
    seen: set[str] = set()
    pending = list(parents)
    while pending:
        key = pending.pop()
        if is_cron_run(key):
            return True
        if key not in seen:
            seen.add(key)
            pending.extend(nodes[key].parents if key in nodes else ())
    return False


def _kind_of_key(key: str) -> SessionKind:
    """All that is known of a session whose record is gone."""
    kind = key_kind(key)
    if kind is SessionKind.INTERACTIVE:
        return SessionKind.HEARTBEAT if key.endswith(":heartbeat") else SessionKind.UNKNOWN
    return kind


def _archives(reader: Reader) -> tuple[ArchiveRow, ...]:
    rows = reader.rows(
        "session_transcript_archives",
        "session_id session_key",
        "generation archive_name created_at",
        where="ORDER BY session_id, created_at",
    )
    return tuple(ArchiveRow(text(i), text(g), text(k), text(n), integer(c)) for i, k, g, n, c in rows)
