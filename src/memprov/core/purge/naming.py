"""What a name may mean that is written where a session is asked for.

People ask with what they were shown: an id, a key, but also a path of the index, the bracket of a corpus line, a state
key, a transcript's file name, an entry key, a file and line. What says which session it is of is read as that session;
what says something else is refused with the command that takes it. Never is such a text recorded as if it were an id
(F14a, F64a).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from attrs import frozen

from memprov.core.records import SessionRecord
from memprov.core.text import WSP, session_id_from_file_name
from memprov.errors import SelectorError

__all__ = ["KnownNames", "Reference", "misdirected", "read_reference", "whole_names"]

_LINE = r"(?::[0-9]+(?:-[0-9]+)?|#L[0-9]+(?:-L?[0-9]+)?)"
#: ``sessions/AGENT/NAME``, perhaps with an agent before it, in the bracket of a corpus line, with a line behind it.
_REFERENCE = re.compile(
    rf"\[?(?:(?P<before>[^\s/\[\]:]+)[:/])?sessions/(?P<agent>[^\s/\[\]]+)/(?P<name>[^/]+?){_LINE}?\]?", re.DOTALL
)
_ENTRY_KEY = re.compile(
    r"memory:(?:claim:[0-9a-f]{12}|session-backfill:[0-9a-f]{64}|.+:[0-9]+:[0-9]+(?::[0-9a-f]{12})?)", re.DOTALL
)
_MEMORY_FILE = re.compile(
    rf"(?:.*/)?(?:MEMORY\.md|USER\.md|DREAMS\.md|memory\.md|dreams\.md|memory/.+\.(?:md|txt)){_LINE}?", re.DOTALL
)
_PLACE = re.compile(rf".+\.(?:md|txt){_LINE}", re.DOTALL)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORTEST_PREFIX = 4
_LONGEST_EDITED = 128
#: How many near names a sentence lists.
_LISTED = 3


@frozen
class Reference:
    """The session that a text refers to: by its form alone, whether or not there is one."""

    agent_id: str
    session_id: str


def read_reference(value: str, agent_id: str) -> Reference | None:
    """The session that a value refers to in one of the forms that memprov and the host print, or ``None``.

    A transcript's or archive's file name, with or without its directory, is one of ``agent_id``.

    >>> read_reference("main/sessions/main/kiln.jsonl#L4", "main")
    Reference(agent_id='main', session_id='kiln')
    """
    match = _REFERENCE.fullmatch(value.strip(WSP))
    if match is not None:
        name = match["name"]
        decoded = session_id_from_file_name(name)
        return Reference(match["agent"], name if decoded is None else decoded)
    decoded = session_id_from_file_name(value.rpartition("/")[2])
    return Reference(agent_id, decoded) if decoded else None


def misdirected(value: str, entry_keys: frozenset[str]) -> SelectorError | None:
    """The refusal for a value that names an entry or a place in a file, with the command that takes it."""
    if value in entry_keys or _ENTRY_KEY.fullmatch(value):
        return SelectorError(
            f"{value!r} is an entry key, and no session: trace it (memprov trace --entry) for the sessions it came from"
        )
    if _PLACE.fullmatch(value) or _MEMORY_FILE.fullmatch(value):
        return SelectorError(
            f"{value!r} is a place in a file, and no session: trace it (memprov trace --file PATH:LINE) for the "
            "session it came from"
        )
    return None


class KnownNames:
    """The names of one agent's sessions, to find what a name that is none of them nearly is (F50)."""

    def __init__(self, records: Iterable[SessionRecord]) -> None:
        self._records = tuple(records)
        self._people = {identity.id for record in self._records for identity in record.participants}
        self._hooks = {record.hook_source for record in self._records if record.hook_source}

    @cached_property
    def _names(self) -> list[str]:
        return sorted({n for r in self._records for n in (r.session_id, r.session_key) if n})

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        return _by_fold(self._names)

    def doubts(self, value: str) -> Iterator[str]:
        """Sentences about a session name that names nothing."""
        near = self._folded.get(_fold(value), [])
        if not near and len(value) >= _SHORTEST_PREFIX:
            first = bisect_left(self._names, value)
            near = [n for n in self._names[first : first + _LISTED + 1] if n.startswith(value)]
        if near:
            yield f"{value!r} names no session; did you mean {_listed(near)}?"
        if _DIGEST.fullmatch(value):
            yield f"{value!r} looks like the digest of a plan, a receipt or a chunk; it is recorded as a session id"
        if value in self._people:
            yield f"{value!r} names no session but a participant of some; select those with --participant"
        if value in self._hooks:
            yield f"{value!r} names no session but a hook source of some; select those with --hook-source"

    def mistyped(self, value: str) -> Iterator[str]:
        """A sentence about the names that a session name, which names nothing, is one edit away from: a character more,
        less or another. It looks every such text up, so that it costs as much as the name is long, however many names
        there are.
        """
        if _SHORTEST_PREFIX <= len(value) <= _LONGEST_EDITED:
            near = sorted(self._distinct.intersection(_edits(value, self._alphabet)))
            if near:
                yield f"{value!r} names no session; did you mean {_listed(near)}?"

    @cached_property
    def _distinct(self) -> frozenset[str]:
        return frozenset(self._names)

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset().union(*self._names)

    def near_people(self, actor: str) -> list[str]:
        """Participants that a requested one, who is nobody, differs from by case or blanks alone."""
        return _by_fold(self._people).get(_fold(actor), [])

    def near_hooks(self, source: str) -> list[str]:
        """The same for hook sources."""
        return _by_fold(self._hooks).get(_fold(source), [])


def whole_names(value: str, names: Iterable[str]) -> list[str]:
    """The names that a shortened one, which has ``…`` for its beginning or its end, may stand for."""
    piece = value.strip("…")
    if not piece or piece == value:
        return []
    meets = str.startswith if value.endswith("…") else str.endswith
    return sorted(name for name in names if meets(name, piece))


def _edits(value: str, alphabet: Iterable[str]) -> Iterator[str]:
    for at in range(len(value) + 1):
        head, tail = value[:at], value[at:]
        yield head + tail[1:]
        for character in alphabet:
            yield head + character + tail
            yield head + character + tail[1:]


def _by_fold(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(_fold(name), []).append(name)
    return found


def _fold(name: str) -> str:
    """What is left of a name when case, blanks around it and the ending of a file are not looked at."""
    bare = name.strip(WSP).casefold()
    return session_id_from_file_name(bare) or bare


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_LISTED]))
    return shown if len(names) <= _LISTED else f"{shown} or another"
