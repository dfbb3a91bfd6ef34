"""What is answered, as values, and as one JSON document."""

from __future__ import annotations

import json

from attrs import frozen

from memprov.core.lineage import TransferEdge
from memprov.core.records import Origin, OriginClass
from memprov.core.text import html_table
from memprov.core.trace.reasons import RemovalRule

__all__ = ["EntryTrace", "LineReason", "Place", "SessionTrace", "Trace", "is_known_entry", "is_known_session"]


@frozen(order=True)
class Place:
    """A line of a file, from 1."""

    path: str
    line: int


@frozen
class EntryTrace:
    """What is known of an entry.

    ``places`` are where its markers stand; ``preimages`` and ``chunks`` are the keys and ids of those that show it.
    ``transfers`` are the edges of every way that leads to it, the nearest first: where they are not kept, or were
    before they were, there are none, and the origins say all the same whose it is. ``siblings`` says that another agent
    of the workspace has origins of it.
    """

    entry_key: str
    origin_class: OriginClass | None
    origins: tuple[Origin, ...] = ()
    places: tuple[Place, ...] = ()
    preimages: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    transfers: tuple[TransferEdge, ...] = ()
    siblings: bool = False


@frozen
class SessionTrace:
    """What came of a session: the keys of its entries, its corpus lines, and the memory lines that hold some of it."""

    session_ids: tuple[str, ...]
    entry_keys: tuple[str, ...] = ()
    corpus: tuple[Place, ...] = ()
    memory: tuple[Place, ...] = ()
    forgotten: bool = False


@frozen(order=True)
class LineReason:
    """Forgetting this session would take the line, in whole or in part: by which rule, and of which entry, where the
    line is of one (I17).
    """

    place: Place
    session_id: str
    rule: RemovalRule
    entry_key: str | None = None


@frozen
class Trace:
    """The answer. ``entries`` are those that were asked about, or that the session or line leads to; ``reasons`` say
    which session would take a line that was asked about, and why, and are sorted.
    """

    agent_id: str
    entries: tuple[EntryTrace, ...] = ()
    session: SessionTrace | None = None
    reasons: tuple[LineReason, ...] = ()

    def __repr__(self) -> str:
        return f"<Trace by agent {self.agent_id!r}: {len(self.entries)} entries, {len(self.reasons)} reasons>"

    def _repr_html_(self) -> str:
        heads = ("entry", "class", "sessions", "places", "chunks")
        rows = (
            (e.entry_key, e.origin_class or "unknown", len(e.origins), len(e.places), len(e.chunks))
            for e in self.entries
        )
        return html_table(f"Trace by agent {self.agent_id}", (heads, *rows))

    def to_json(self) -> str:
        """One JSON document, with the field names of the reports."""
        document: dict[str, object] = {"agentId": self.agent_id, "entries": [_entry_json(e) for e in self.entries]}
        if self.session is not None:
            document["session"] = {
                "sessionIds": list(self.session.session_ids),
                "forgotten": self.session.forgotten,
                "entryKeys": list(self.session.entry_keys),
                "corpus": [f"{place.path}:{place.line}" for place in self.session.corpus],
                "memory": [f"{place.path}:{place.line}" for place in self.session.memory],
            }
        if self.reasons:
            document["reasons"] = [
                {
                    "place": f"{r.place.path}:{r.place.line}",
                    "sessionId": r.session_id,
                    "rule": r.rule.value,
                    "entryKey": r.entry_key,
                }
                for r in self.reasons
            ]
        return json.dumps(document, ensure_ascii=False, indent=2)


def _entry_json(entry: EntryTrace) -> dict[str, object]:
    return {
        "entryKey": entry.entry_key,
        "originClass": entry.origin_class,
        "origins": [
            {
                "agentId": row.agent_id,
                "sessionId": row.session_id,
                "sessionKey": row.session_key,
                "originClass": row.origin_class.value,
                "observedAt": row.observed_at_ms,
            }
            for row in entry.origins
        ],
        "places": [f"{place.path}:{place.line}" for place in entry.places],
        "preimages": list(entry.preimages),
        "chunks": list(entry.chunks),
        "transfers": [
            {"survivor": e.survivor, "parent": e.parent, "action": e.action, "at": e.at_ms, "transferId": e.transfer_id}
            for e in entry.transfers
        ],
        "siblings": entry.siblings,
    }


def is_known_entry(entry: EntryTrace) -> bool:
    """Whether anything here names the entry."""
    return bool(entry.origins or entry.places or entry.preimages or entry.chunks or entry.transfers or entry.siblings)


def is_known_session(session: SessionTrace) -> bool:
    """Whether anything here is of the session, or it is recorded as forgotten."""
    return bool(session.forgotten or session.entry_keys or session.corpus or session.memory)
