"""May this prepared result still be published?

Embedding takes seconds or hours, and the lock cannot be held that long. So a result is prepared outside of it and may
find, when it is done, that its session was forgotten, its file changed, or somebody else was faster (B01, G17, G18).
This module is the whole decision. The shell asks it under the workspace lock and inside the transaction that publishes,
with what is true at that moment; nothing is published that was not asked about.

A refusal says what changed, and whether the source is *queued*: to be prepared again from what is there now. What was
forgotten or is kept out is never queued: it would be asked about for ever (B60).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

from attrs import field, frozen

from memprov.core.records import OriginClass, SessionRecord
from memprov.core.writing import Purpose, decide_admission

__all__ = ["Change", "Fence", "Present", "Refusal", "check_generation", "check_source"]


class Change(StrEnum):
    """What changed since a result was prepared. The texts are part of the interface."""

    FORGOTTEN = "forgotten"
    EXCLUDED = "excluded"
    REVISION = "revision moved"
    SOURCE = "source changed"
    GONE = "source gone"
    OVERTAKEN = "overtaken"


@frozen
class Fence:
    """What a prepared source was made from.

    ``hash`` is the digest of the text that was read, and ``indexed`` of the one that the index held then, or ``None``
    when it held none. A session's text has a ``session_id``; a file's has not, but the class that was recorded of it.
    """

    path: str
    source: str
    hash: str
    indexed: str | None
    session_id: str | None = None
    origin_class: OriginClass | None = None


@frozen
class Present:
    """What is true now. ``sessions`` are the records of the catalogue by id, with the kinds that they inherit.

    ``file_hash`` is the digest of the source's file, or ``None`` when there is none, and ``file_class`` its class.
    """

    tombstones: AbstractSet[str]
    sessions: Mapping[str, SessionRecord]
    indexed: str | None
    file_hash: str | None = None
    file_class: OriginClass | None = None


@frozen
class Refusal:
    """A result that was not published: of what, what changed, and whether it is to be prepared again."""

    path: str
    source: str
    change: Change
    queued: bool
    detail: str = field(default="")

    def __str__(self) -> str:
        after = "queued again" if self.queued else "not queued again"
        return f"{self.path}: {self.change}{f' ({self.detail})' if self.detail else ''}; {after}"


def check_source(fence: Fence, now: Present) -> Refusal | None:
    """Why the chunks of a source may not be published any more; ``None`` when they may.

    A tombstone is looked for first: of a forgotten session nothing else is to be said (G18).
    """
    if fence.session_id is not None:
        change, queued, detail = _session_change(fence.session_id, now)
        if change is None and now.indexed not in (fence.indexed, fence.hash):
            change, queued = Change.OVERTAKEN, True  # the transcript cannot be looked at again: it may be the older one
    elif now.file_hash is None:
        change, queued, detail = Change.GONE, False, ""
    elif now.file_hash != fence.hash:
        change, queued, detail = Change.SOURCE, True, ""
    elif now.file_class is not fence.origin_class:
        change, queued, detail = Change.SOURCE, True, "its class"
    else:
        return None
    return None if change is None else Refusal(fence.path, fence.source, change, queued, detail)


def check_generation(begun_at: int, revision: int) -> Change | None:
    """Whether a whole generation may be published: a purge raises the revision, so none from before (G17)."""
    return None if begun_at == revision else Change.REVISION


def _session_change(session_id: str, now: Present) -> tuple[Change | None, bool, str]:
    if session_id in now.tombstones:
        return Change.FORGOTTEN, False, "the session was forgotten while it was being indexed"
    session = now.sessions.get(session_id)
    if session is None:
        return Change.GONE, False, ""
    decision = decide_admission(session, None, now.tombstones, Purpose.INDEXING)
    if not decision.admitted:
        return Change.EXCLUDED, False, decision.reason or ""
    return None, False, ""
