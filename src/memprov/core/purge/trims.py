"""What goes from a row that holds several things: rewind batches and host events less some of their items (D21)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from attrs import frozen

from memprov.core.records import HostEvent, RewindBatch
from memprov.core.text import digest, json_text

__all__ = ["BatchTrim", "missing_rows", "rewind_key", "trim_event", "trimmed_events", "trimmed_rewinds"]


@frozen
class BatchTrim:
    """Which items of one row go, by position, if the digest of the row's JSON is ``before`` (D21).

    ``whole`` drops the row; ``key_after`` is the key of what is left, where the key is a digest of the content.
    """

    key: str
    before: str
    items: tuple[int, ...]
    whole: bool = False
    key_after: str | None = None


def missing_rows(trims: Iterable[BatchTrim], present: AbstractSet[str]) -> tuple[str, ...]:
    """The rows of which a part was to stay, and that are there under neither of their keys (D24)."""
    return tuple(t.key for t in trims if not t.whole and present.isdisjoint((t.key, t.key_after or t.key)))


def rewind_key(candidates: Iterable[str]) -> str:
    """The key of a rewind row: the digest of its candidates' JSON array (measured on real stores)."""
    return digest("[" + ",".join(candidates) + "]")


def trim_event(payload: str, items: Iterable[int]) -> str:
    """An event's JSON less the listed items of its one list, a count that stood for the list's length corrected."""
    row = json.loads(payload)
    event = row["event"]
    gone = frozenset(items)
    for listed, counted in (("candidates", "applied"), ("results", "resultCount")):
        if isinstance(event.get(listed), list):
            before = event[listed]
            event[listed] = [item for i, item in enumerate(before) if i not in gone]
            if event.get(counted) == len(before):
                event[counted] = len(event[listed])
    return json_text(row)


def trimmed_rewinds(rows: tuple[RewindBatch, ...], trims: tuple[BatchTrim, ...]) -> tuple[RewindBatch, ...]:
    """The rewind rows less what is listed of each; one that is no longer the planned one stays."""
    by_key = {trim.key: trim for trim in trims}
    result: dict[str, RewindBatch] = {}
    for row in rows:
        trim = by_key.get(row.key)
        if trim is None or trim.before != rewind_key(row.candidates):
            result.setdefault(row.key, row)
        elif not trim.whole:
            gone = frozenset(trim.items)
            kept = tuple(c for i, c in enumerate(row.candidates) if i not in gone)
            key = trim.key_after or row.key
            result[key] = RewindBatch(key, kept)
    return tuple(result.values())


def trimmed_events(rows: tuple[HostEvent, ...], trims: tuple[BatchTrim, ...]) -> tuple[HostEvent, ...]:
    """The events less what is listed of each; one that is no longer the planned one stays."""
    by_key = {trim.key: trim for trim in trims}
    result = []
    for row in rows:
        trim = by_key.get(row.key)
        if trim is None or trim.before != digest(row.payload):
            result.append(row)
        elif not trim.whole:
            result.append(HostEvent(row.key, trim_event(row.payload, trim.items)))
    return tuple(result)
