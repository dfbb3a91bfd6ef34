"""What a host hands over: the events of a transcript, as far as memory looks at them.

Hosts speak in the shapes of their platforms. Those that mean one thing are read (text, or a list of text parts); what
would have to be guessed is refused by name, since a role or a flag that is misunderstood either loses what was said or
trusts what must not be trusted. A time alone is never worth a message: one that cannot be read is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import inf
from typing import Literal, get_args

from attrs import Attribute, field, frozen

from memprov.core.records import (
    MessageFlags,
    OriginClass,
    SessionKind,
    ToolCall,
    calls_in,
    classify,
    described,
    given_calls,
    is_dream_narrative,
    is_moment,
    key_kind,
)
from memprov.core.text import collapse, readable_key
from memprov.errors import InputError

__all__ = ["Message", "Role", "message_classes", "message_from_event", "require_key"]

Role = Literal["user", "assistant", "system", "tool", "toolResult", ""]
"""Who speaks. ``toolResult`` is OpenClaw's word for ``tool``; an event that is no message has the role ``""``."""

_ROLES: tuple[str, ...] = get_args(Role)
_PROVENANCE = ("external_user", "inter_session", "internal_system")
_SOURCES = ("network", "local")
_RUNS = ("narrative", "cron")
_LONGEST_KEY = 200
#: Part types that hold words, in the shapes of the common chat interfaces; a part without a type holds its text.
_TEXT_PARTS = ("text", "input_text", "output_text", None)
#: Part types that hold what a tool answered.
_RESULT_PARTS = ("tool_result", "function_call_output")
#: Numbers in this range are seconds: as milliseconds they would be of the years 1970 to 1973 (docs: Transcripts).
_SECONDS = range(100_000_000, 100_000_000_000)


class _Answers(tuple[str, ...]):
    """What is said by a content of nothing but results of tools: no words, and not the user's (F23, F25)."""

    __slots__ = ()


def _texts(content: str | Iterable[object] | None) -> str | tuple[str, ...]:
    """The words of a message's content. Parts that hold none (an image, a tool call) say nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, bytes | Mapping) or not isinstance(content, Iterable):
        raise InputError(f"the content of a message is {described(content)}; give text, or a list of texts and parts")
    parts = tuple(content)
    texts = tuple(text for part in parts if (text := _text_of(part)) is not None)
    return _Answers() if parts and all(map(_is_result, parts)) else texts


def _is_result(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _RESULT_PARTS


def _text_of(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise InputError(
            f'a part of the content of a message is {described(part)}; a text part is {{"type": "text", "text": …}}'
        )
    if part.get("type") not in _TEXT_PARTS or (part.get("type") is None and "text" not in part):
        return None
    text = part.get("text")
    if not isinstance(text, str):
        raise InputError(f"a text part of the content of a message has {described(text)} for its text")
    return text


def _moment(value: object) -> int | None:
    """A time that a host gave for a message, or ``None`` where it is not known.

    >>> _moment(1_795_597_200_000), _moment("2026-11-25T09:00:00Z"), _moment(1_795_597_200)
    (1795597200000, 1795597200000, 1795597200000)
    >>> [_moment(odd) for odd in (1_795_597_200_000_000, 1_795_597_200_000.5, "today", True)]
    [None, None, None, None]
    """
    if isinstance(value, str):
        return _date(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not is_moment(value) or not isinstance(value, int):
        return None
    return value * 1000 if value in _SECONDS else value


def _date(value: str) -> int | None:
    """A date in ISO form, which without a zone is UTC (D8)."""
    text = collapse(value)
    if "-" not in text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    milliseconds = int(moment.timestamp() * 1000)
    return milliseconds if milliseconds > 0 and is_moment(milliseconds) else None


def _one_of(allowed: tuple[str, ...], value: object, name: str) -> None:
    if value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise InputError(f"the {name} of a message is {described(value)}; it must be one of {words}")


def require_key(value: str | None, name: str) -> None:
    """Refuse a lineage or project that could not be written into a comment and read back. Raises ``InputError``."""
    if value is None:
        return
    given: object = value
    if not (isinstance(given, str) and len(given) <= _LONGEST_KEY and given.isprintable() and readable_key(given)):
        raise InputError(
            f"the {name} is {described(given)}; it must be one line of at most {_LONGEST_KEY} characters, without "
            "blanks at its ends and without -->"
        )


def _is_role(_: Message, attribute: Attribute[str], value: object) -> None:
    _one_of(_ROLES, value if isinstance(value, str) else described(value), attribute.name)


@frozen
class _Check:
    """A validator: the value is one of these words, or ``None``."""

    allowed: tuple[str, ...]

    def __call__(self, _: Message, attribute: Attribute[str | None], value: object) -> None:
        if value is not None:
            _one_of(self.allowed, value if isinstance(value, str) else described(value), attribute.name)


@frozen
class Message:
    """One event of a transcript, as far as memory looks at it. A host makes these, or ``message_from_event`` does.

    ``number`` is the event's place in the transcript, from 1; without one its place among the messages counts.
    ``content`` is the text, or a list of texts and parts (``{"type": "text", "text": …}``; others hold no words). A
    user's message that holds results of tools and nothing else gets the role ``tool``.
    ``timestamp_ms`` is ``None`` when the host recorded no time, and becomes ``None`` when what it recorded is none.
    ``sender_is_owner`` is the host's flag as recorded: only a strict ``True`` counts. ``turn_tainted`` says that text
    from the network was in the turn by then. ``provenance_kind`` says who put a user message in (``external_user``,
    ``inter_session``, ``internal_system``), ``source_tool`` by which tool, and ``result_source`` where a tool's result
    came from (``network``, ``local``). ``generated_by`` names the internal run that the event gives away,
    ``narrative`` or ``cron``. ``tool_calls`` are those of an assistant's message, as ``ToolCall`` or as the parts in
    which platforms report them: the memory files that they write are listed when the session is forgotten.
    ``supersedes_key`` says what this message replaces: the key of the entry that said so before, or a name of the
    host's own for all that is said of one thing, of which the latest holds. ``project_key`` is what it belongs to.

    Raises ``InputError`` naming a value that is none of these.
    """

    role: Role = field(validator=_is_role)
    content: str | tuple[str, ...] = field(default="", converter=_texts)
    number: int = 0
    timestamp_ms: int | None = field(default=None, converter=_moment)
    sender_is_owner: object = None
    turn_tainted: bool | None = None
    provenance_kind: str | None = field(default=None, validator=_Check(_PROVENANCE))
    source_tool: str | None = None
    result_source: str | None = field(default=None, validator=_Check(_SOURCES))
    generated_by: str | None = field(default=None, validator=_Check(_RUNS))
    tool_calls: tuple[ToolCall, ...] = field(default=(), converter=given_calls)
    supersedes_key: str | None = None
    project_key: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.role == "user" and isinstance(self.content, _Answers):
            # Some platforms hand over in the user's role what a tool answered. Nobody said it: it begins no turn.
            object.__setattr__(self, "role", "tool")
        number: object = self.number
        tainted: object = self.turn_tainted
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise InputError(f"the number of a message is {described(number)}; it is a place in the transcript, from 1")
        if tainted is not None and not isinstance(tainted, bool):
            raise InputError(f"the turn_tainted of a message is {described(tainted)}; it must be True, False or None")
        require_key(self.supersedes_key, "supersedes_key of a message")
        require_key(self.project_key, "project_key of a message")

    @property
    def internal_system(self) -> bool:
        """Whether the host itself wrote this user message."""
        return self.provenance_kind == "internal_system"

    @property
    def flags(self) -> MessageFlags:
        """What its class depends on."""
        return MessageFlags(
            self.role,
            sender_is_owner=self.sender_is_owner,
            internal_system=self.internal_system,
            turn_tainted=self.turn_tainted,
            result_source=self.result_source,
        )


def message_classes(messages: Iterable[Message]) -> tuple[OriginClass, ...]:
    """Who is answerable for each message of one transcript, given from its beginning (docs: Trust).

    It depends on the host's flags and on what came before in the turn, never on the words.
    """
    return tuple(classify(message.flags for message in messages))


def message_from_event(event: object, number: int) -> Message:
    """Read one event of an OpenClaw transcript, given as decoded JSON and its place from 1.

    What is no message becomes a ``Message`` without a role, so that places are kept and internal runs are noticed. A
    sender whom the host describes in words that are not known here is never the owner.
    """
    record = _object(event)
    message = _object(record.get("message")) if record.get("type") == "message" else {}
    host, provenance = _object(message.get("__openclaw")), _object(message.get("provenance"))
    content, kind = message.get("content"), _string(provenance.get("kind"))
    calls = calls_in(content) if message.get("role") == "assistant" else ()
    if isinstance(content, list):
        blocks = (_object(block) for block in content)
        content = tuple(str(b["text"]) for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str))
    tainted = host.get("turnTainted")
    return Message(
        role=_role(message.get("role")),
        content=content if isinstance(content, str | tuple) else "",
        number=number,
        timestamp_ms=_recorded(message.get("timestamp")) or _recorded(record.get("timestamp")),
        sender_is_owner=host.get("senderIsOwner") if kind is None or kind in _PROVENANCE else None,
        turn_tainted=tainted if isinstance(tainted, bool) else None,
        provenance_kind=kind if kind in _PROVENANCE else None,
        source_tool=_string(provenance.get("sourceTool")),
        result_source="network" if host.get("resultContentSource") == "network" else None,
        generated_by=_internal_run(record, message, host),
        tool_calls=calls,
    )


def _role(value: object) -> Role:
    match value:
        case "user" | "assistant" | "system" | "tool" | "toolResult":
            return value
        case _:
            return ""


def _internal_run(
    record: Mapping[str, object], message: Mapping[str, object], host: Mapping[str, object]
) -> str | None:
    """Which internal run an event gives away, in any of the places where a host writes it (docs: Session metadata)."""
    data = _object(record.get("data"))
    names = [_string(holder.get(name)) for holder in (record, data) for name in ("runId", "sessionKey")]
    if message.get("role") in ("assistant", "toolResult"):
        names.append(_string(host.get("runId")))
    if any(is_dream_narrative(name) for name in names):
        return "narrative"
    keys = (_string(holder.get("sessionKey")) for holder in (record, data))
    return "cron" if any(key_kind(key) is SessionKind.CRON for key in keys) else None


def _recorded(value: object) -> int | None:
    """A time as OpenClaw recorded it: milliseconds or seconds, with or without a fraction, or a date."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        scaled = value * 1000 if 0 < value < _SECONDS.stop else value
        return int(scaled) if 0 < scaled < inf and is_moment(int(scaled)) else None
    return _date(value) if isinstance(value, str) else None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
