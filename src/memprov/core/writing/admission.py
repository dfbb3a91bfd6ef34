"""May this session become memory? One decision, made from metadata, before the transcript is opened (I10).

The order of the reasons is fixed (docs: host, docs: Admission): forgotten, then the configured policy (hook source,
channel, chat type), then what the session is (archive, kind). The first hit is the answer. Which of them are asked
depends on the purpose, as the documents' admission boundary has it:

=============  ==========  ======  =========================================================
purpose        tombstones  policy  also kept out
=============  ==========  ======  =========================================================
``ingestion``  yes         yes     archives, retained sessions, every kind but interactive
``backfill``   yes         yes     retained hook sessions, every kind but interactive
``indexing``   yes         no      cron, heartbeat, dream narratives
=============  ==========  ======  =========================================================

Only what an operator decided, a tombstone or a rule, is written into an ingestion checkpoint; what a session *is* can
be read off again at any time. A policy is a rule to keep data out, and one that is not understood would let it in:
so whatever in it is not understood is an error (D15, B18).
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from attrs import field, frozen

from memprov.core.records import Choice, SessionKind, SessionRecord, SessionState, is_dream_narrative, key_kind, strings
from memprov.core.text import WSP, digest, json_text
from memprov.errors import PolicyError

__all__ = ["Admission", "AdmissionPolicy", "Purpose", "decide_admission", "explain_policy"]

_CHAT_TYPES = frozenset({"direct", "group", "channel"})

#: Where the rules stand in a whole configuration.
_PATH = ("plugins", "entries", "memory-core", "config", "memoryPolicy", "excludeSessions")
_LISTS = {"hookExternalContentSources": "hook_sources", "channels": "channels", "chatTypes": "chat_types"}
#: Names that mean nothing but a rule, wherever they stand. (``channels`` is also a section of the host's own.)
_UNMISTAKABLE = frozenset({"memoryPolicy", "excludeSessions", "hookExternalContentSources", "chatTypes"})


class Purpose(Choice):
    """What a session's text would be read for."""

    INGESTION = "ingestion"
    BACKFILL = "backfill"
    INDEXING = "indexing"


def _rule(values: Iterable[str], name: str) -> tuple[str, ...]:
    """Trimmed, without empties and repeats, in order. What would be a rule that keeps nothing out is refused."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise PolicyError(f"{name} must be a list of strings, not {values!r:.80}")
    result = tuple(values)
    for value in result:
        if not isinstance(value, str):
            raise PolicyError(f"{name} holds {value!r:.80}, which is no string")
        trimmed = value.strip(WSP)
        kinds = {unicodedata.category(character) for character in trimmed}
        if trimmed and (kinds <= {"Cf"} or kinds & {"Cc", "Cs"}):
            raise PolicyError(f"{name} holds {value!r:.80}, which is no text that anything is called; write it anew")
        if "*" in value:
            raise PolicyError(f"{name} holds {value!r:.80}; values are compared exactly, and * is no wildcard")
    rule = tuple(dict.fromkeys(trimmed for value in result if (trimmed := value.strip(WSP))))
    if result and not rule:
        raise PolicyError(f"{name} holds only blanks ({result[0]!r:.80}), which would keep nothing out; leave it empty")
    return rule


def _hook_sources(values: Iterable[str]) -> tuple[str, ...]:
    return _rule(values, "hookExternalContentSources")


def _channels(values: Iterable[str]) -> tuple[str, ...]:
    return _rule(values, "channels")


def _chat_types(values: Iterable[str]) -> tuple[str, ...]:
    result = _rule(values, "chatTypes")
    for value in result:
        if value not in _CHAT_TYPES:
            raise PolicyError(f"chatTypes holds {value!r:.80}; a chat type is direct, group or channel")
    return result


@frozen
class AdmissionPolicy:
    """The configured exclusions; a session that matches any value of any list stays out.

    Values are trimmed and then compared exactly. Metadata that is missing matches nothing. Raises ``PolicyError``
    naming a value that is no string or no chat type, has a ``*``, is no text that can be read (control characters,
    bytes that are no UTF-8, nothing visible), or is blank where the list holds nothing else.
    """

    hook_sources: tuple[str, ...] = field(default=(), converter=_hook_sources)
    channels: tuple[str, ...] = field(default=(), converter=_channels)
    chat_types: tuple[str, ...] = field(default=(), converter=_chat_types)
    _hooks: frozenset[str] = field(init=False, repr=False, eq=False)
    _rooms: frozenset[str] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        # sets, so that a long list costs a million sessions no more than a short one
        object.__setattr__(self, "_hooks", frozenset(self.hook_sources))
        object.__setattr__(self, "_rooms", frozenset(self.channels))

    @classmethod
    def from_config(cls, mapping: Mapping[str, object]) -> AdmissionPolicy:
        """Read the policy out of a configuration, given whole or from any level down.

        The levels are ``plugins.entries.memory-core.config.memoryPolicy.excludeSessions``, and the innermost object
        holds the three lists. A level that is missing means no exclusions; of an object that may be a whole
        configuration without any plugins, hand over ``{"plugins": config.get("plugins", {})}``. Raises ``PolicyError``
        for an unknown key within the policy, for a key outside it that looks like a misspelt or misplaced part of it,
        and for what is not of the expected type.
        """
        node: object = mapping
        level = _level(mapping)
        for depth, name in enumerate(_PATH[level:], level):
            where = ".".join(_PATH[level:depth]) or "the configuration"
            node = _object(node, where)
            if name == "excludeSessions":
                _closed(node, {name}, where)
            else:
                _open(node, name, where)
            if name not in node:
                return cls()
            node = node[name]
        lists = _object(node, "excludeSessions")
        _closed(lists, _LISTS.keys(), "excludeSessions")
        return cls(**{ours: lists[name] for name, ours in _LISTS.items() if name in lists})  # type: ignore[arg-type]

    @property
    def digest(self) -> str:
        """Equal for policies that keep the same sessions out."""
        return digest(json_text([sorted(set(rule)) for rule in (self.hook_sources, self.channels, self.chat_types)]))

    def exclusion(self, session: SessionRecord) -> str | None:
        """The reason for which a rule keeps this session out, if one does (docs: Admission, Trust, Origins and
        merges).
        """
        if session.hook_source in self._hooks:
            return f"hookExternalContentSource:{session.hook_source}"
        if session.channel in self._rooms:
            return f"channel:{session.channel}"
        if session.chat_type in self.chat_types:
            return f"chatType:{session.chat_type}"
        return None


@frozen
class Admission:
    """The decision about one session. Without a reason against it, it is admitted.

    ``checkpointed`` says whether the reason belongs into the session's ingestion checkpoint (docs: Checkpoints and
    seen hashes).
    """

    session_id: str
    agent_id: str
    reason: str | None = None
    purpose: Purpose = Purpose.INGESTION
    checkpointed: bool = False

    @property
    def admitted(self) -> bool:
        """May the transcript be read for this purpose?"""
        return self.reason is None


def decide_admission(
    session: SessionRecord,
    policy: AdmissionPolicy | None,
    forgotten: Iterable[str],
    purpose: Purpose | str = Purpose.INGESTION,
) -> Admission:
    """Decide whether a session's transcript may be read for a purpose.

    ``forgotten`` are the ids forgotten in the ledger of that session's agent (D9); a set makes the look-up cheap.
    The kind is the session's own: ``sessions.resolve_kinds`` has settled what it inherits.
    """
    purpose = Purpose(purpose)
    gone = forgotten if isinstance(forgotten, AbstractSet) else frozenset(strings(forgotten))
    if session.session_id in gone:
        reason: str | None = "forgotten"
    elif policy is None or purpose is Purpose.INDEXING:
        reason = None
    else:
        reason = policy.exclusion(session)
    if reason is not None:
        return Admission(session.session_id, session.agent_id, reason, purpose, purpose is Purpose.INGESTION)
    return Admission(session.session_id, session.agent_id, _gate(session, purpose), purpose)


def explain_policy(policy: AdmissionPolicy, sessions: Iterable[SessionRecord]) -> tuple[Admission, ...]:
    """What the policy alone keeps out of ingestion and backfill, session by session, in the order given."""
    return tuple(
        Admission(session.session_id, session.agent_id, reason, checkpointed=True)
        for session in sessions
        if (reason := policy.exclusion(session)) is not None
    )


def _gate(session: SessionRecord, purpose: Purpose) -> str | None:
    """The reason in what the session is (docs: Admission, Index; B14)."""
    if purpose is Purpose.INDEXING:
        return _index_gate(session)
    if purpose is Purpose.INGESTION and session.state is not SessionState.LIVE:
        return "archive" if session.state is SessionState.ARCHIVED else "retained"
    if session.state is SessionState.RETAINED and session.hook_source is not None:
        return "retained"  # the source of an older generation may be known only coarsely (docs: Session metadata)
    kind = session.kind
    if kind is SessionKind.INTERACTIVE:
        kind = key_kind(session.session_key)
    return None if kind is SessionKind.INTERACTIVE else f"internal:{kind}"


def _index_gate(session: SessionRecord) -> str | None:
    """Internal sessions are never searchable; subagents, archives and sessions of unknown kind are (docs: Index)."""
    key = session.session_key
    if is_dream_narrative(key):
        return "internal:narrative"
    kind = SessionKind.CRON if key_kind(key) is SessionKind.CRON else session.kind
    if session.state is SessionState.ARCHIVED and key is not None and key.endswith(":heartbeat"):
        kind = SessionKind.HEARTBEAT
    return f"internal:{kind}" if kind in (SessionKind.CRON, SessionKind.HEARTBEAT) else None


def _object(node: object, where: str) -> Mapping[str, object]:
    if not isinstance(node, Mapping):
        raise PolicyError(f"{where} must be an object, not {node!r:.80}")
    return node


def _level(mapping: Mapping[str, object]) -> int:
    """At which level of ``_PATH`` a configuration begins: the outermost name that it holds."""
    node = _object(mapping, "the configuration")
    for depth, name in enumerate(_PATH):
        if name in node:
            return depth
    return len(_PATH)  # the lists themselves, or nothing, or something that is no policy


def _closed(node: Mapping[str, object], known: AbstractSet[str], where: str) -> None:
    for key, value in node.items():
        if key not in known:
            raise PolicyError(f"{where} has the unknown key {key!r:.80} (value {value!r:.80})")


def _open(node: Mapping[str, object], name: str, where: str) -> None:
    """Other keys are the host's own here, but for one that can only be a misplaced or misspelt part of the policy."""
    for key in node:
        if key == name:
            continue
        if key in _UNMISTAKABLE:
            raise PolicyError(f"{where} has the key {key!r:.80} where {name!r} belongs; it would have no effect there")
        if difflib.SequenceMatcher(None, str(key).casefold(), name.casefold()).ratio() >= 0.85:
            raise PolicyError(f"{where} has the unknown key {key!r:.80}; is {name!r} meant?")
