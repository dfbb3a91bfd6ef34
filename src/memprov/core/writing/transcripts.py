"""From a host's messages to the lines that ingestion may take: what was said, by whom, and where it stands.

A transcript is read once, in order. Turns that a heartbeat began are skipped, and turns that a recall of memory began:
what memory said must not become evidence for itself. What is left is unwrapped, put on one line, cleared of secrets,
labelled with its speaker and wrapped (FACTS 2.5). Each line keeps the number of its event, its time, and the class that
``trust`` gives its message. It is still foreign text: ``candidates`` makes it harmless where it is written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import numpy as np
from attrs import field, frozen

from memprov.core.records import MessageFlags, Provenance, SessionKind, Turn, is_dream_narrative, key_kind
from memprov.core.text import collapse, is_generated, json_text, one_line, redact, to_bytes, u16_length, unwrap

__all__ = ["ContentLine", "Message", "Reading", "content_hash", "message_from_event", "read_transcript"]

#: The longest piece of a message on one line, in UTF-16 units, without its label.
_WRAP = 800
_LABELS = {"user": "User", "assistant": "Assistant"}
_RECALL_TOOLS = frozenset({"memory_search", "memory_get"})
_SECONDS_BELOW = 100_000_000_000
_LAST_MS = 8_640_000_000_000_000


def _text_blocks(content: str | Iterable[object]) -> str | tuple[str, ...]:
    return content if isinstance(content, str) else tuple(block for block in content if isinstance(block, str))


@frozen
class Message:
    """One event of a transcript, as far as memory looks at it. A host makes these, or ``message_from_event`` does.

    ``number`` is the event's place in the transcript, from 1; without one its place among the messages counts.
    ``content`` is the text or the texts of its blocks. ``timestamp_ms`` is ``None`` when the host recorded no time.
    ``sender_is_owner`` and ``turn_tainted`` are the host's flags as recorded: only a strict ``True`` counts.
    ``provenance_kind`` says who put a user message in (``external_user``, ``inter_session``, ``internal_system``),
    ``source_tool`` by which tool, and ``result_source`` where a tool's result came from. ``generated_by`` names the
    internal run that the event gives away, ``narrative`` or ``cron``.
    """

    role: str
    content: str | tuple[str, ...] = field(default="", converter=_text_blocks)
    number: int = 0
    timestamp_ms: int | None = None
    sender_is_owner: object = None
    turn_tainted: object = None
    provenance_kind: str | None = None
    source_tool: str | None = None
    result_source: str | None = None
    generated_by: str | None = None

    @property
    def internal_system(self) -> bool:
        """Whether the host itself wrote this user message."""
        return self.provenance_kind == "internal_system"


@frozen
class ContentLine:
    """One line that may become memory: label and text, the number of its event, its time (0: unknown), its class."""

    text: str
    number: int
    timestamp_ms: int
    provenance: Provenance


@frozen
class Reading:
    """A transcript as lines. ``internal`` says that it is no conversation, and of what; then there are no lines."""

    lines: tuple[ContentLine, ...] = ()
    internal: str | None = None


def read_transcript(messages: Iterable[Message], *, modified_ms: int = 0, archived: bool = False) -> Reading:
    """The ingestible lines of a transcript.

    ``modified_ms`` stands in as the time of what has none. ``archived`` transcripts are also judged by their events as
    runs of scheduled jobs; a live one has been judged by its metadata.
    """
    lines: list[ContentLine] = []
    turn, skipping = Turn(), False
    for place, message in enumerate(messages, 1):
        if message.generated_by == "narrative" or (archived and message.generated_by == "cron"):
            return Reading(internal=f"internal:{message.generated_by}")
        facts = _facts(message)
        origin_class = turn.class_of(facts)
        turn = turn.after(facts)
        if message.role == "user":
            skipping = message.internal_system and (
                message.source_tool == "heartbeat" or message.source_tool in _RECALL_TOOLS
            )
        label = _LABELS.get(message.role)
        if skipping or label is None or (message.role == "user" and message.provenance_kind == "inter_session"):
            continue
        observed = max(message.timestamp_ms or modified_ms, 0)
        provenance = Provenance(origin_class, SessionKind.INTERACTIVE, observed)
        lines.extend(
            ContentLine(f"{label}: {piece}", message.number or place, message.timestamp_ms or 0, provenance)
            for piece in _said(message)
        )
    return Reading(tuple(lines))


def content_hash(lines: Iterable[ContentLine]) -> str:
    """What a checkpoint remembers of the lines that it was made from (FACTS 2.4)."""
    lines = tuple(lines)
    parts = (
        "\n".join(line.text for line in lines),
        ",".join(str(line.number) for line in lines),
        ",".join(str(line.timestamp_ms) for line in lines),
        json_text(
            [
                {
                    "originClass": line.provenance.origin_class,
                    "sessionKind": line.provenance.session_kind,
                    "observedAt": line.provenance.observed_at_ms,
                }
                for line in lines
            ]
        ),
        '{"state":"absent"}',  # OpenClaw notes here from where a reset hides a session from recall
    )
    return hashlib.sha256(to_bytes("\n".join(parts))).hexdigest()


def message_from_event(event: object, number: int) -> Message:
    """Read one event of an OpenClaw transcript, given as decoded JSON and its place from 1.

    What is no message becomes a ``Message`` without a role, so that places are kept and internal runs are noticed.
    """
    record = _object(event)
    message = _object(record.get("message")) if record.get("type") == "message" else {}
    host, provenance = _object(message.get("__openclaw")), _object(message.get("provenance"))
    content = message.get("content")
    if isinstance(content, list):
        blocks = (_object(block) for block in content)
        content = tuple(str(b["text"]) for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str))
    return Message(
        role=_string(message.get("role")) or "",
        content=content if isinstance(content, str | tuple) else "",
        number=number,
        timestamp_ms=_milliseconds(message.get("timestamp")) or _milliseconds(record.get("timestamp")),
        sender_is_owner=host.get("senderIsOwner"),
        turn_tainted=host.get("turnTainted"),
        provenance_kind=_string(provenance.get("kind")),
        source_tool=_string(provenance.get("sourceTool")),
        result_source=_string(host.get("resultContentSource")),
        generated_by=_internal_run(record, message, host),
    )


def _facts(message: Message) -> MessageFlags:
    return MessageFlags(
        message.role,
        sender_is_owner=message.sender_is_owner,
        internal_system=message.internal_system,
        turn_tainted=message.turn_tainted,
        result_source=message.result_source,
    )


def _said(message: Message) -> Iterator[str]:
    """The message's own words, without secrets, in pieces that fit a line."""
    raw = message.content if isinstance(message.content, str) else "\n".join(message.content)
    text = one_line(unwrap(raw, message.role))
    if text and not is_generated(text, message.role):
        yield from _wrapped(redact(text))


def _wrapped(text: str) -> Iterator[str]:
    """Cut a line at spaces into pieces of at most ``_WRAP`` UTF-16 units; a longer word is cut where it must be."""
    if u16_length(text) <= _WRAP:
        yield text
        return
    units = "".join(map(chr, np.frombuffer(text.encode("utf-16-le"), "<u2").tolist()))  # a character for each unit
    position = 0
    while len(units) - position > _WRAP:
        limit = position + _WRAP
        split = units.rfind(" ", position + 1, limit + 1)
        if split < 0:
            split = limit - ("\ud800" <= units[limit - 1] <= "\udbff" and "\udc00" <= units[limit] <= "\udfff")
        yield _joined(units[position:split])
        position = split + (units[split] == " ")
    yield _joined(units[position:])


def _joined(units: str) -> str:
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _internal_run(
    record: Mapping[str, object], message: Mapping[str, object], host: Mapping[str, object]
) -> str | None:
    """Which internal run an event gives away, in any of the places where a host writes it (FACTS-EXTRA h)."""
    data = _object(record.get("data"))
    names = [_string(holder.get(name)) for holder in (record, data) for name in ("runId", "sessionKey")]
    if message.get("role") in ("assistant", "toolResult"):
        names.append(_string(host.get("runId")))
    if any(is_dream_narrative(name) for name in names):
        return "narrative"
    keys = (_string(holder.get("sessionKey")) for holder in (record, data))
    return "cron" if any(key_kind(key) is SessionKind.CRON for key in keys) else None


def _milliseconds(value: object) -> int | None:
    """A time as recorded: milliseconds, seconds, or a date in ISO form, which without a zone is UTC (D8)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        scaled = value * 1000 if 0 < value < _SECONDS_BELOW else value
        return int(scaled) if 0 < scaled <= _LAST_MS else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(collapse(value))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(int(moment.timestamp() * 1000), 0) or None


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
