"""The names of what is kept: entry keys, claim hashes, and the hashes by which a message is known again.

Two sessions that state one claim must arrive at one key, and the same message must be known again after a restart:
hence these are digests of normalised text and nothing else. All formats are OpenClaw's (docs: Checkpoints and seen
hashes, Entry keys), so that a store that it began can be continued.
"""

from __future__ import annotations

import hashlib
import re

from memprov.core.text.lines import WSP, digest, json_text, to_bytes

__all__ = [
    "claim_hash",
    "claim_key",
    "collapse",
    "diary_key",
    "query_hash",
    "ranged_key",
    "seen_hash",
    "strip_speaker",
]

_BLANKS = re.compile("[" + re.escape(WSP) + "]+")
_SPEAKER = re.compile("(?:assistant|user):[" + re.escape(WSP) + "]*", re.IGNORECASE)


def collapse(text: str) -> str:
    """Runs of blanks as one space, none at the ends."""
    return _BLANKS.sub(" ", text).strip(" ")


def strip_speaker(text: str) -> str:
    """The text without the one speaker label that it begins with."""
    return _SPEAKER.sub("", text, count=1) if _SPEAKER.match(text) else text


def claim_hash(snippet: str) -> str:
    """The identity of a claim: blanks do not matter, everything else does (case E1)."""
    return _sha1(collapse(snippet))[:12]


def claim_key(hashed: str) -> str:
    """The key of a claim that daily signals stage, wherever it stands."""
    return f"memory:claim:{hashed}"


def ranged_key(path: str, start_line: int, end_line: int, hashed: str) -> str:
    """The key of a claim that stands in these lines of a file, as backfill stages it."""
    normal = path.replace("\\", "/").removeprefix("./")
    return f"memory:{normal}:{start_line}:{end_line}:{hashed}"


def diary_key(day: str, line: str) -> str:
    """The key of a diary line. The same line of a day has the same key in every run, so that origins unite (E2)."""
    return f"memory:session-backfill:{digest(json_text([day, line]))}"


def query_hash(query: str) -> str:
    """What remains of a query in a staged entry."""
    return _sha1(query.strip(WSP).lower())[:12]


def seen_hash(scope: str, timestamp_ms: int, line: int, snippet: str) -> str:
    """By what a message is known again: its time, or where it has none its place, and its text (case C14)."""
    basis = f"ts:{timestamp_ms}" if timestamp_ms > 0 else f"line:{line}"
    return _sha1(f"{scope}\n{basis}\n{snippet}")


def _sha1(text: str) -> str:
    return hashlib.sha1(to_bytes(text), usedforsecurity=False).hexdigest()
