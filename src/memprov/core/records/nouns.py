"""The nouns: what a session, an origin, a chunk or a preimage is to memprov.

Frozen values without behaviour beyond their own validation. Where a store holds millions of a thing, the planner works
on columns (``lineage.OriginTable``, ``snapshot.ChunkTable``) and these classes are what a caller sees of one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NoReturn

from attrs import field, frozen

from memprov.errors import InputError

__all__ = [
    "Choice",
    "CuratedWrite",
    "HostEvent",
    "Identity",
    "IndexSource",
    "MemoryFile",
    "Origin",
    "OriginClass",
    "Preimage",
    "RecallEntry",
    "RewindBatch",
    "SessionKind",
    "SessionRecord",
    "SessionState",
    "StoreIdentity",
    "Tombstone",
    "described",
    "is_moment",
    "string_set",
    "strings",
]

_WORD_LENGTH = 24
_YEAR_2100_MS = 4_102_444_800_000


def described(value: object) -> str:
    """A wrong value as an error names it: a word as it is, of a longer text its length alone, since it may be memory.

    >>> described("human"), described("I like tea, and said so."), described([1])
    ("'human'", 'a text of 24 characters', 'a list')
    """
    if isinstance(value, str):
        plain = len(value) <= _WORD_LENGTH and not any(c.isspace() for c in value.strip())
        return repr(value) if plain else f"a text of {len(value)} characters"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a {type(value).__name__}"


def is_moment(value: object) -> bool:
    """Is this a time in epoch milliseconds that a record can be of? Micro- and nanoseconds are not, nor is a fraction.

    >>> is_moment(1_795_597_200_000), is_moment(1_795_597_200_000_000), is_moment(1_795_597_200_000.5)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _YEAR_2100_MS


class Choice(StrEnum):
    """A closed set of words. What is none of them is refused by name, with the words that are."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()
        raise InputError(f"{described(value)} is no {title}; it must be one of {', '.join(cls)}")


class OriginClass(Choice):
    """Who is answerable for a text (docs: Trust)."""

    OWNER = "owner"
    AGENT = "agent"
    UNTRUSTED = "untrusted"
    SYSTEM = "system"


class SessionKind(Choice):
    """What started a session (docs: Session metadata)."""

    INTERACTIVE = "interactive"
    CRON = "cron"
    HEARTBEAT = "heartbeat"
    SUBAGENT = "subagent"
    UNKNOWN = "unknown"


class SessionState(Choice):
    """Where a session's transcript is: current, rotated but kept in the store, or archived."""

    LIVE = "live"
    RETAINED = "retained"
    ARCHIVED = "archived"


def strings(values: Iterable[str]) -> tuple[str, ...]:
    """Any iterable of strings as a tuple; a lone string is refused: its characters are never meant (docs: api)."""
    if isinstance(values, str | bytes):
        raise InputError(f"expected a collection of strings, got the lone string {values!r}; put it in a list")
    result = tuple(values)
    for value in result:
        if not isinstance(value, str):
            raise InputError(f"expected strings, got {described(value)}")
    return result


def string_set(values: Iterable[str]) -> frozenset[str]:
    """Any iterable of strings as a set; a lone string is refused (docs: api)."""
    return frozenset(strings(values))


@frozen
class Identity:
    """A participant as the host recorded it: typed, so that equal ids of different kinds stay apart (docs: Session
    metadata).

    ``kind`` is ``profile``, ``agent``, ``remote``, ``observation`` or ``legacy``; the other fields belong to some
    kinds only and are ``None`` elsewhere.
    """

    kind: str
    id: str
    plugin_id: str | None = None
    account_id: str | None = None
    sender_kind: str | None = None
    domain: str | None = None
    id_kind: str | None = None
    actor_type: str | None = None
    source: str | None = None


def _identities(values: Iterable[Identity]) -> tuple[Identity, ...]:
    result: tuple[object, ...] = tuple(values)
    for value in result:
        if not isinstance(value, Identity):
            raise InputError(f"a participant is {described(value)}; it must be a memprov.Identity")
    return tuple(value for value in result if isinstance(value, Identity))


def _change_token(value: str | float | None) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise InputError(f"changed is {described(value)}; it must be a text or a number that is new with every change")


@frozen
class SessionRecord:
    """One transcript generation and the metadata that selection and admission read. Times are epoch milliseconds.

    ``changed`` is what the host says of when the transcript last changed: a time, a size, any text or number that is
    another after each change. Who says it once says it after every change; ``None`` says that the host does not know.
    ``created_at_ms`` is when the session began. An archive may know only when it was made: ``archived_at_ms``.
    """

    agent_id: str
    session_id: str
    session_key: str | None = None
    kind: SessionKind = field(default=SessionKind.INTERACTIVE, converter=SessionKind)
    state: SessionState = field(default=SessionState.LIVE, converter=SessionState)
    created_at_ms: int | None = None
    channel: str | None = None
    chat_type: str | None = None
    hook_source: str | None = None
    participants: tuple[Identity, ...] = field(default=(), converter=_identities)
    parent_key: str | None = None
    changed: str | None = field(default=None, converter=_change_token)
    archived_at_ms: int | None = None


@frozen
class Origin:
    """One source session of one tracked entry (docs: Origins and merges)."""

    entry_key: str
    agent_id: str
    session_id: str
    session_key: str | None = None
    origin_class: OriginClass = field(default=OriginClass.AGENT, converter=OriginClass)
    observed_at_ms: int = 0


@frozen
class Tombstone:
    """The durable record that a session of an agent is forgotten (D9)."""

    agent_id: str
    session_id: str


@frozen
class CuratedWrite:
    """A write to a memory file by a session's tools: reported for review, never deleted (docs: Curated writes).

    A ledger record may know its session by id or by key only.
    """

    path: str
    observed_at_ms: int
    session_id: str | None = None
    session_key: str | None = None


@frozen
class RecallEntry:
    """A short-term recall row, as far as the purge reads it (docs: Recall rows); the store files it under
    ``row_key``.
    """

    key: str
    path: str
    snippet: str
    start_line: int = 0
    end_line: int = 0
    row_key: str = field()

    @row_key.default
    def _row_key(self) -> str:
        return self.key


@frozen
class RewindBatch:
    """What a backfill can take back. Each candidate is its JSON text, as the store writes it (docs: Plugin state)."""

    key: str
    candidates: tuple[str, ...]


@frozen
class HostEvent:
    """A row of the host's memory event log; ``payload`` is its JSON text."""

    key: str
    payload: str


@frozen
class Preimage:
    """MEMORY.md as it was before a rewrite."""

    key: str
    content: str


@frozen
class IndexSource:
    """A file or session that the index has seen."""

    path: str
    source: str = "memory"


@frozen
class MemoryFile:
    """A file of the workspace with its text.

    ``path`` is relative, with ``/``. ``aliases`` are further names of the same inode that the scan found;
    ``unnamed_links`` counts hard links that it did not find (D6).
    """

    path: str
    text: str
    aliases: tuple[str, ...] = ()
    unnamed_links: int = 0


@frozen
class StoreIdentity:
    """Which store a plan is about: kind, agent and real roots (docs: Saved plans)."""

    kind: str
    agent_id: str
    state_root: str
    workspace_root: str
