"""What can be said of a session from its metadata alone: the shape of its key, its kind by descent, its participants.

A session's kind is not a matter of its own row only. What a scheduled job starts, and what that starts in turn, is as
little a conversation as the job itself; such children outlive their parents, and a parent that is gone, or that leads
back to its child, proves nothing in their favour. Hence kinds are resolved over the whole catalogue, towards the
stricter side (B14, case C8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from attrs import evolve, frozen

from memprov.core.records.nouns import Identity, SessionKind, SessionRecord, SessionState
from memprov.errors import CorruptStoreError, InputError

__all__ = [
    "identity_from_json",
    "identity_json",
    "is_dream_narrative",
    "is_session_key",
    "joined_session",
    "key_kind",
    "resolve_kinds",
]

_KEY = re.compile(r"agent:[^:]+:([^:].*)", re.IGNORECASE | re.DOTALL)
_CRON_RUN = re.compile(r"cron:.+:run:[^:]+(?::.*)?", re.DOTALL)
_NARRATIVE = "dreaming-narrative-"

#: From the least to the most restrictive; what descends from several kinds has the last of them.
_KINDS = (
    SessionKind.INTERACTIVE,
    SessionKind.UNKNOWN,
    SessionKind.SUBAGENT,
    SessionKind.HEARTBEAT,
    SessionKind.CRON,
)
_STRICTNESS = {kind: i for i, kind in enumerate(_KINDS)}

#: Identity type -> its JSON fields in the order in which they are written, and ours (docs: Session metadata). ``id``
#: comes last.
_IDENTITY_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "profile": (),
    "agent": (),
    "remote": (("pluginId", "plugin_id"), ("domain", "domain"), ("idKind", "id_kind")),
    "observation": (("pluginId", "plugin_id"), ("accountId", "account_id"), ("senderKind", "sender_kind")),
    "legacy": (("actorType", "actor_type"), ("source", "source")),
}
_NULLABLE = frozenset({("observation", "pluginId"), ("observation", "accountId"), ("legacy", "source")})
_SENDERS = frozenset({"human", "bot", "unknown"})


def is_session_key(text: str) -> bool:
    """Is ``text`` shaped like a session key, ``agent:<agent>:<rest>`` (docs: Session keys)?"""
    return _KEY.fullmatch(text) is not None


def is_dream_narrative(session_key: str | None) -> bool:
    """Does the key say that this session wrote a dream diary (docs: Session keys)?"""
    if session_key is None:
        return False
    if session_key.count(":") < 2:
        return session_key.startswith(_NARRATIVE)
    key = _KEY.fullmatch(session_key)
    return key is not None and key[1].startswith(_NARRATIVE)


def key_kind(session_key: str | None) -> SessionKind:
    """The kind that a key gives away by its shape (docs: Session keys, Session metadata); interactive means that it
    says nothing.
    """
    if session_key is None:
        return SessionKind.INTERACTIVE
    if ":run:" in session_key and (key := _KEY.fullmatch(session_key)) and _CRON_RUN.fullmatch(key[1]):
        return SessionKind.CRON
    if ":subagent:" in session_key or (_NARRATIVE in session_key and is_dream_narrative(session_key)):
        return SessionKind.SUBAGENT
    return SessionKind.INTERACTIVE


def joined_session(known: SessionRecord, said: SessionRecord) -> SessionRecord:
    """What is known of a session once a host has said more of it: what is not said changes nothing.

    Metadata is what keeps a session out of memory, and what it is found by when it is to be forgotten. So participants
    accumulate, a kind only gets stricter, and the state is not for a record to change: rotating, archiving and
    restoring move it. A value that is said replaces the former one.
    """
    participants = tuple(dict.fromkeys((*known.participants, *said.participants)))
    news = {
        name: value
        for name in ("session_key", "created_at_ms", "channel", "chat_type", "hook_source", "parent_key", "changed")
        if (value := getattr(said, name)) is not None
    }
    return evolve(known, kind=_stricter(known.kind, said.kind), participants=participants, **news)


def resolve_kinds(records: Iterable[SessionRecord]) -> tuple[SessionRecord, ...]:
    """The records, in order, each with the strictest kind among its own, its key's and its ancestors'.

    Parents are looked up by key in the same records; where a key has live or retained records, archived ones do not
    speak for it. A parent that is missing, and an ancestry that runs in a circle, count as unknown (B14).
    """
    records = tuple(records)
    nodes = _ancestry(records)
    settled = _inherit(nodes)
    result = []
    for record in records:
        kind = _stricter(record.kind, key_kind(record.session_key))
        if record.parent_key is not None:
            kind = _stricter(kind, settled[record.parent_key])
        result.append(record if kind is record.kind else evolve(record, kind=kind))
    return tuple(result)


@frozen
class _Node:
    """A session key in the ancestry: its own kind, and its parents' keys."""

    kind: SessionKind
    parents: frozenset[str]


def _ancestry(records: tuple[SessionRecord, ...]) -> dict[str, _Node]:
    """Session key -> node, for every key that is somebody's parent: the only ones whose kind is inherited."""
    named = {record.parent_key for record in records if record.parent_key is not None}
    archived: dict[str, _Node] = {}
    present: dict[str, _Node] = {}
    for record in records:
        if (key := record.session_key) in named and key is not None:
            nodes = archived if record.state is SessionState.ARCHIVED else present
            known = nodes.get(key) or _Node(key_kind(key), frozenset())
            parents = known.parents if record.parent_key is None else known.parents | {record.parent_key}
            nodes[key] = _Node(_stricter(known.kind, record.kind), parents)
    nodes = archived | present
    missing = named.difference(nodes)
    nodes.update((key, _Node(_stricter(key_kind(key), SessionKind.UNKNOWN), frozenset())) for key in missing)
    return nodes


def _stricter(a: SessionKind, b: SessionKind) -> SessionKind:
    return a if _STRICTNESS[a] >= _STRICTNESS[b] else b


def _inherit(nodes: dict[str, _Node]) -> dict[str, SessionKind]:
    """Session key -> the strictest kind among its own and its ancestors'."""
    children: dict[str, list[str]] = {}
    for key, node in nodes.items():
        for parent in node.parents:
            children.setdefault(parent, []).append(key)

    # What never loses its last parent descends from a circle, or stands in one.
    waiting = {key: len(node.parents) for key, node in nodes.items()}
    roots = [key for key, count in waiting.items() if count == 0]
    while roots:
        key = roots.pop()
        del waiting[key]
        for child in children.get(key, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                roots.append(child)

    # The strictest kinds flood their descendants first, so that every key is settled once.
    seeds: dict[SessionKind, list[str]] = {kind: [] for kind in _KINDS}
    for key, node in nodes.items():
        seeds[_stricter(node.kind, SessionKind.UNKNOWN) if key in waiting else node.kind].append(key)
    settled: dict[str, SessionKind] = {}
    for kind in reversed(_KINDS):
        flood = seeds[kind]
        while flood:
            key = flood.pop()
            if key not in settled:
                settled[key] = kind
                flood.extend(children.get(key, ()))
    return settled


def identity_json(identity: Identity) -> dict[str, object]:
    """The identity as OpenClaw's reports write it: ``type``, the fields of that type, ``id`` last (docs: Session
    metadata).
    """
    fields = _IDENTITY_FIELDS.get(identity.kind)
    if fields is None:
        raise InputError(f"unknown kind of participant identity: {identity.kind!r}")
    return {"type": identity.kind, **{name: getattr(identity, ours) for name, ours in fields}, "id": identity.id}


def identity_from_json(namespace: str, actor_id: str) -> Identity:
    """The identity that a participant row stores as the JSON of its namespace and an id (docs: Session metadata).

    Raises ``CorruptStoreError`` for what is no such JSON, or of a shape that no version writes: a participant that
    cannot be read must not look like one who was not there.
    """
    try:
        value = json.loads(namespace)
    except ValueError:
        raise CorruptStoreError(f"participant {actor_id!r}: the identity namespace is no JSON") from None
    kind = value.get("type") if isinstance(value, dict) else None
    fields = _IDENTITY_FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None or value.keys() != {"type", *(name for name, _ in fields)}:
        raise CorruptStoreError(f"participant {actor_id!r}: the identity namespace has an unknown shape")
    for name, _ in fields:
        item = value[name]
        if not (isinstance(item, str) or (item is None and (kind, name) in _NULLABLE)):
            raise CorruptStoreError(f"participant {actor_id!r}: {name} in the identity namespace is no text")
    if kind == "observation" and value["senderKind"] not in _SENDERS:
        raise CorruptStoreError(f"participant {actor_id!r}: unknown senderKind {value['senderKind']!r}")
    return Identity(str(kind), actor_id, **{ours: value[name] for name, ours in fields})
