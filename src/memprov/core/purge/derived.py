"""Which derived rows belong to a selection: recall, signals, checkpoints, seen scopes, rewind rows, events (step 2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import compress
from operator import not_

from attrs import frozen

from memprov.core.purge.effects import (
    BatchTrim,
    DropCheckpoints,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    PurgeEffect,
    TrimEvents,
    TrimRewinds,
)
from memprov.core.purge.questions import Place, StatePart
from memprov.core.purge.scrub import ScrubRules
from memprov.core.purge.trims import rewind_key
from memprov.core.records import HostEvent, RecallEntry, RewindBatch
from memprov.core.text import SessionMatcher, corpus_owner, digest

__all__ = ["DerivedRows", "GoneRecall", "derived_rows", "event_words", "gone_recall"]


@frozen
class DerivedRows:
    """The rows of step 2, each list as it will be named in its effect."""

    recall: tuple[str, ...]
    signals: tuple[str, ...]
    checkpoints: tuple[str, ...]
    seen_scopes: tuple[str, ...]
    rewinds: tuple[BatchTrim, ...]
    events: tuple[BatchTrim, ...]

    def effects_before_collateral(self) -> Iterator[PurgeEffect]:
        """What must go while the recall rows that name it are still there, then those rows."""
        if self.signals:
            yield DropSignals(self.signals)
        if self.events:
            yield TrimEvents(self.events)

    def effects_after_collateral(self) -> Iterator[PurgeEffect]:
        """The rows that named collateral keys, and those that depend on nothing."""
        if self.recall:
            yield DropRecall(self.recall)
        if self.rewinds:
            yield TrimRewinds(self.rewinds)
        if self.checkpoints:
            yield DropCheckpoints(self.checkpoints)
        if self.seen_scopes:
            yield DropSeenScopes(self.seen_scopes)


@frozen
class GoneRecall:
    """The recall rows that go: the keys that they and the selection name, and the places that no other row stands at.

    ``row_keys`` are sorted.
    """

    row_keys: tuple[str, ...]
    keys: frozenset[str]
    places: frozenset[Place]


def gone_recall(
    recall: Iterable[RecallEntry], sessions: SessionMatcher, keys: frozenset[str], quoted: Collection[str]
) -> GoneRecall:
    """The recall rows of these entries and sessions, and those that quote them (``quoted``, by row key)."""
    gone: dict[RecallEntry, None] = {}
    kept: list[RecallEntry] = []
    for row in recall:
        if row.row_key in quoted or _is_selected(row, keys, sessions):
            gone[row] = None
        else:
            kept.append(row)
    return GoneRecall(
        tuple(sorted(row.row_key for row in gone)),
        keys.union(*((row.key, row.row_key) for row in gone)),
        frozenset(map(_place, gone)) - frozenset(map(_place, kept)),
    )


def derived_rows(recall: GoneRecall, state: StatePart, rules: ScrubRules) -> DerivedRows:
    """The rows of step 2: these recall rows, and what else belongs to them or to the selected sessions."""
    owns_state = cache(rules.sessions.owns_state)  # what a session left behind names it again and again
    events = (_trim_event(row, rules, recall.keys, recall.places) for row in state.events)
    return DerivedRows(
        recall=recall.row_keys,
        signals=tuple(sorted(key for key in state.signals if key in recall.keys)),
        checkpoints=tuple(sorted(key for key in state.checkpoints if owns_state(key))),
        seen_scopes=tuple(sorted(scope for scope in state.seen_scopes if owns_state(scope))),
        rewinds=tuple(trim for row in state.rewinds if (trim := _trim_rewind(row, owns_state)) is not None),
        events=tuple(trim for trim in events if trim is not None),
    )


def _is_selected(row: RecallEntry, keys: frozenset[str], sessions: SessionMatcher) -> bool:
    """By key, by the session that its path names, or by the bracket prefix of its snippet alone (D1)."""
    return (
        row.key in keys
        or row.row_key in keys
        or sessions.owns_path(row.path)
        or corpus_owner(row.snippet, sessions.agent_id) in sessions.session_ids
    )


def _place(row: RecallEntry) -> Place:
    return row.path, row.start_line, row.end_line


def _trim_rewind(row: RewindBatch, owns_state: Callable[[str], bool]) -> BatchTrim | None:
    gone = [_is_of(candidate, owns_state) for candidate in json.loads(f"[{','.join(row.candidates)}]")]
    if not any(gone):
        return None
    kept = tuple(compress(row.candidates, map(not_, gone)))
    before = rewind_key(row.candidates)
    return BatchTrim(
        key=row.key,
        before=before,
        items=tuple(i for i, goes in enumerate(gone) if goes),
        whole=not kept,
        key_after=rewind_key(kept) if kept and row.key == before else None,
    )


def _is_of(candidate: object, owns_state: Callable[[str], bool]) -> bool:
    named = (candidate.get("scope"), candidate.get("stateKey")) if isinstance(candidate, dict) else ()
    return any(isinstance(text, str) and owns_state(text) for text in named)


def _trim_event(row: HostEvent, rules: ScrubRules, keys: frozenset[str], places: frozenset[Place]) -> BatchTrim | None:
    """What an event says of the selection (D21): its listed items, or all of it when its own words do."""
    event = _event(row)
    if event is None:
        return None
    lists = (event.get(name) for name in ("candidates", "results"))
    listed = next((value for value in lists if isinstance(value, list)), [])
    items = tuple(i for i, item in enumerate(listed) if _names(item, rules, keys, places))
    words = event_words(row)
    whole = any(rules.sessions.refers(text) or rules.quotations.quoted_lines(text.replace("\n", " ")) for text in words)
    if items and len(items) == len(listed):
        whole = True
    if not items and not whole:
        return None
    return BatchTrim(key=row.key, before=digest(row.payload), items=() if whole else items, whole=whole)


def event_words(row: HostEvent) -> list[str]:
    """What an event says in words of its own, beside its list of items."""
    return [value for value in (_event(row) or {}).values() if isinstance(value, str)]


def _event(row: HostEvent) -> dict[str, object] | None:
    payload = json.loads(row.payload)
    event = payload.get("event") if isinstance(payload, dict) else None
    return event if isinstance(event, dict) else None


def _names(item: object, rules: ScrubRules, keys: frozenset[str], places: frozenset[Place]) -> bool:
    """Whether an event's item is of a selected entry: by key, session path, or the place of a recall row that goes.

    Event and recall row were written together, so that their line numbers agree even after the file changed (D22).
    """
    if not isinstance(item, dict):
        return False
    if item.get("key") in keys:
        return True
    path = item.get("path")
    if not isinstance(path, str):
        return False
    return rules.sessions.owns_path(path) or (path, item.get("startLine"), item.get("endLine")) in places
