"""What in a transcript nobody said: wrappers, prompts and receipts that a host wrote around the conversation.

Two kinds. *Wrapped* text surrounds what a person wrote and is cut out of it: metadata about the sender, runtime
context, delivery hints, and recalled memory, which must not become evidence for itself. *Generated* messages are no
conversation at all and are dropped whole: system events, scheduled prompts, heartbeats, silent replies, receipts of
commands. The forms are OpenClaw's (docs: Transcripts) and memprov's own recall frame; a host with others marks its
messages by provenance instead, which needs no form.
"""

from __future__ import annotations

import json
import re

from memprov.core.text.entry_keys import collapse
from memprov.core.text.lines import WSP

__all__ = ["is_generated", "is_memory_echo", "unwrap"]

#: The mark at the end of a header line that begins injected context.
_CONTEXT_MARK = "\u27e6openclaw:ctx\u27e7"
_CHANNEL_CONTEXT = f"Context: {_CONTEXT_MARK}"
_TIMESTAMP = re.compile(r"\[[A-Za-z]{3} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]*\] *")
_DELIVERY = re.compile(r"Delivery: [^\n]*`message` tool")

#: Recalled memory in front of a message: an optional header line, and a block between these lines.
_RECALL_HEAD, _RECALL_OPEN, _RECALL_CLOSE = "Context:", "<active_memory_plugin>", "</active_memory_plugin>"
#: ``trust.frame_recall`` escapes every ``<``, so a frame ends at the first one.
_RECALL_FRAME = re.compile(r"<memory(?: [a-z-]+=\"[^\"<>\n]*\")+>\n[^<]*\n</memory>")

_RUNTIME = re.compile(r"^[ \t]*<<<(BEGIN|END)_OPENCLAW_INTERNAL_CONTEXT>>>[ \t]*(?:\n|$)", re.MULTILINE)

_SYSTEM_EVENT = re.compile(r"System(?: \(untrusted\))?: \[[^\]]+\][ \t]*")
_SCHEDULED = re.compile(r"\[cron:[^\]]+\]")
_WAKE_PROMPTS = ("[OpenClaw heartbeat poll]", "[OpenClaw exec completion]", "[OpenClaw cron wake]", "[OpenClaw session")
_HEARTBEAT_PROMPTS = (
    "Follow the heartbeat monitor scratch context when provided.",
    "Run the following periodic tasks (only those due based on their intervals):",
)
_SILENT = re.compile(r"\W{0,8}NO_REPLY(?: NO_REPLY){0,8}\W{0,8}", re.IGNORECASE)
_RECEIPT = re.compile(
    r"exec finished ?[:(]|exec (?:completed|failed) \([a-z0-9_-]{1,64}, (?:code -?\d+|signal [^)]+)\)(?: ::|$)",
    re.IGNORECASE,
)

#: Marks of text that a memory system wrote (B17): scores of a promoted line, a session snapshot's head, the prompts of
#: flush and diary.
_ECHO = re.compile(
    r"\[ ?score=\d+(?:\.\d+)? (?:signals=\d+ )?recalls=\d+ avg=\d+(?:\.\d+)? source=memory/"
    r"|\bSession Key\b.{0,260}\bSession ID\b|\bSession ID\b.{0,260}\bSession Key\b"
    r"|^(?:[-*+] )?Conversation Summary:"
    r"|Save important context from this session to the daily memory file\. ?STRICT RULES:"
    r"|Write a dream diary entry from these memory fragments",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"\b(?:Candidate|Reflections?):", re.IGNORECASE)
_CONFIDENCE = re.compile(r"\bconfidence: ?\d", re.IGNORECASE)


def unwrap(text: str, role: str) -> str:
    """What is left of a message when the host's wrappings are cut out. Blank when nothing is."""
    if role == "user":
        text = _without_context(_without_recall(_without_stamp(text)))
    if "_OPENCLAW_INTERNAL_CONTEXT>>>" in text:
        text = _without_runtime_blocks(text)
    return _RECALL_FRAME.sub("", text) if "</memory>" in text else text


def is_generated(text: str, role: str) -> bool:
    """Whether an unwrapped message, on one line, was made by a host and not by anybody who takes part."""
    if role == "user" and (
        _SYSTEM_EVENT.match(text)
        or _SCHEDULED.match(text)
        or text.startswith(_WAKE_PROMPTS)
        or text.startswith(_HEARTBEAT_PROMPTS)
    ):
        return True
    if text == "HEARTBEAT_OK" or _is_silent(text):
        return True
    return _RECEIPT.match(_SYSTEM_EVENT.sub("", text, count=1) if _SYSTEM_EVENT.match(text) else text) is not None


def is_memory_echo(text: str) -> bool:
    """Whether a snippet is what a memory system wrote, handed back to it: never evidence of anything new (B17)."""
    return _ECHO.search(text) is not None or bool(_CANDIDATE.search(text[:200]) and _CONFIDENCE.search(text))


def _without_stamp(text: str) -> str:
    """A message without the time that a host put before it."""
    return text[stamp.end() :] if (stamp := _TIMESTAMP.match(text)) else text


def _without_recall(text: str) -> str:
    """A user message without the blocks of recalled memory. One that is not closed is text."""
    if _RECALL_CLOSE not in text:
        return text
    lines = text.split("\n")
    heads = [line.strip(WSP) for line in lines]
    kept: list[str] = []
    last_close = max((n for n, head in enumerate(heads) if head == _RECALL_CLOSE), default=-1)
    number = 0
    while number < len(lines):
        opens = number + 1 if heads[number] == _RECALL_HEAD else number
        if opens < last_close and heads[opens] == _RECALL_OPEN:
            number = heads.index(_RECALL_CLOSE, opens) + 1
            while number < len(lines) and not heads[number]:
                number += 1
        else:
            kept.append(lines[number])
            number += 1
    return "\n".join(kept)


def _without_context(text: str) -> str:
    """A user message without the blocks of injected context: a marked header and what belongs to it."""
    if _CONTEXT_MARK not in text and "Delivery: " not in text:
        return text
    lines = text.split("\n")
    heads = [line.strip(WSP) for line in lines]
    kept: list[str] = []
    number = 0
    while number < len(lines) and heads[number] != _CHANNEL_CONTEXT:  # the channel's history: all that follows
        head = heads[number]
        number += 1
        if head.endswith(_CONTEXT_MARK) and head != _CONTEXT_MARK:
            number = _block_end(heads, number)
        elif not _DELIVERY.match(head):
            kept.append(lines[number - 1])
    rest = "\n".join(kept).strip("\n")
    return _without_stamp(rest)


def _block_end(heads: list[str], first: int) -> int:
    """Where the block below a header ends: behind its closed code fence, or behind the blank lines after it."""
    last = len(heads)
    if first < last and heads[first] == "```json":
        try:
            return heads.index("```", first + 1) + 1
        except ValueError:
            return last
    while first < last and heads[first]:
        first += 1
    while first < last and not heads[first]:
        first += 1
    return first


def _without_runtime_blocks(text: str) -> str:
    """Cut out the runtime's own blocks, which may be nested; one that is not closed takes the rest along."""
    kept, position, depth = [], 0, 0
    for match in _RUNTIME.finditer(text):
        if match[1] == "BEGIN":
            if depth == 0:
                kept.append(text[position : match.start()])
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.append(text[position : match.start()])
        position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "\n".join(kept)


def _is_silent(text: str) -> bool:
    """A reply that says only that there is none, bare or wrapped in JSON."""
    if "NO_REPLY" not in text.upper():
        return False
    if _SILENT.fullmatch(text):
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(value, dict) and value.keys() == {"action"}:
        value = value["action"]
    return isinstance(value, str) and collapse(value) == "NO_REPLY"
