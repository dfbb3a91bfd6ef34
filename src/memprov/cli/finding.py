"""Finding a session: which of those that are known are meant, what short names tell them apart, what they said.

Filters narrow each other; of one filter given several times, any value will do. All of it is functions of values.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from attrs import frozen

from memprov.core.purge import Selectors
from memprov.core.records import AgentRoster, SessionRecord
from memprov.core.text import corpus_owner, strip_prefix
from memprov.errors import InputError, SelectorError

__all__ = [
    "STATES",
    "Found",
    "SessionFilter",
    "began_ms",
    "find_sessions",
    "first_words",
    "read_time",
    "saying",
    "short_ids",
    "spoken_in_corpus",
]

#: What ``--state`` takes: the three states of a session, and whether it is forgotten, whatever its state.
STATES = ("live", "retained", "archived", "forgotten")
_SHORTEST = 8
_DAY_MS = 86_400_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen
class SessionFilter:
    """Which sessions to list. Times are epoch milliseconds, both included; an empty filter lets everything through."""

    participants: Collection[str] = ()
    hook_sources: Collection[str] = ()
    channels: Collection[str] = ()
    states: Collection[str] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def admits(self, record: SessionRecord, *, forgotten: bool) -> bool:
        """Whether a session passes all but the time."""
        people = {identity.id for identity in record.participants}
        state = record.state.value in self.states or (forgotten and "forgotten" in self.states)
        return (
            (not self.participants or not people.isdisjoint(self.participants))
            and (not self.hook_sources or record.hook_source in self.hook_sources)
            and (not self.channels or record.channel in self.channels)
            and (not self.states or state)
        )

    def in_time(self, moment: int) -> bool:
        """Whether a time is neither too early nor too late."""
        early = self.since_ms is not None and moment < self.since_ms
        return not early and (self.until_ms is None or moment <= self.until_ms)

    @property
    def judges_time(self) -> bool:
        """Whether a session without a time cannot pass."""
        return self.since_ms is not None or self.until_ms is not None


@frozen
class Found:
    """The sessions that a filter lets through, newest first, and how many it left out for want of any time."""

    records: tuple[SessionRecord, ...]
    undated: int = 0


def find_sessions(roster: AgentRoster, wanted: SessionFilter) -> Found:
    """The sessions of a roster that pass. An archive of which only the time of archiving is known is judged by that."""
    passing = [r for r in roster.sessions if wanted.admits(r, forgotten=r.session_id in roster.forgotten)]
    dated = [(began_ms(record), record) for record in passing]
    kept = [
        (moment or 0, record.session_id, place, record)
        for place, (moment, record) in enumerate(dated)
        if (not wanted.judges_time if moment is None else wanted.in_time(moment))
    ]
    undated = sum(moment is None for moment, _ in dated) if wanted.judges_time else 0
    return Found(tuple(row[3] for row in sorted(kept, key=lambda row: row[:3], reverse=True)), undated)


def began_ms(record: SessionRecord) -> int | None:
    """When a session began, or else was archived."""
    return record.archived_at_ms if record.created_at_ms is None else record.created_at_ms


def read_time(option: str, value: str | None) -> int | None:
    """The epoch milliseconds of an ISO date or date-time, UTC where it names no zone. ``--until`` a date takes its
    whole day in. Raises ``InputError`` naming the option.
    """
    if value is None:
        return None
    try:
        moment = Selectors(since=value).since_ms
    except SelectorError:
        raise InputError(f"{option} is {value!r}; it must be an ISO date or date-time") from None
    whole_day = option == "--until" and _DATE.fullmatch(value) is not None
    return moment if moment is None or not whole_day else moment + _DAY_MS - 1


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Each id as it is told apart from all the others: by its beginning or by its end, whichever is shorter for all.

    ``…`` stands for the rest; what is hardly longer than that is left whole.

    >>> short_ids(["3f2a9c1b-0001-4aaa", "77777777-0001-4aaa"])
    {'3f2a9c1b-0001-4aaa': '3f2a9c1b…', '77777777-0001-4aaa': '77777777…'}
    """
    names = sorted(set(ids))
    heads = _unique_lengths(names)
    tails = {name[::-1]: length for name, length in _unique_lengths(sorted(name[::-1] for name in names)).items()}
    by_head = sum(heads.values()) <= sum(tails.values())
    short = {}
    for name in names:
        length = heads[name] if by_head else tails[name]
        cut = f"{name[:length]}…" if by_head else f"…{name[-length:]}"
        short[name] = name if len(name) <= length + 1 else cut
    return short


def _unique_lengths(names: list[str]) -> dict[str, int]:
    """How much of each of these sorted names tells it apart, which only its neighbours can say."""
    shared = [0, *(_common(a, b) for a, b in pairwise(names)), 0]
    return {name: max(_SHORTEST, shared[i] + 1, shared[i + 1] + 1) for i, name in enumerate(names)}


def _common(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def spoken_in_corpus(texts: Iterable[str], agent_id: str) -> Iterator[tuple[str, str]]:
    """Session id and words of every line of the agent's in these corpus files."""
    for text in texts:
        for line in text.splitlines():
            owner = corpus_owner(line, agent_id)
            if owner is not None:
                yield owner, strip_prefix(line, agent_id)


def saying(lines: Iterable[tuple[str, str]], words: str) -> frozenset[str]:
    """The sessions of which one line holds all these words, in any order and case.

    >>> saying([("a", "User: the kiln is hot"), ("b", "User: a hot day")], "Hot KILN")
    frozenset({'a'})
    """
    sought = _folded(words).split()
    return frozenset(session_id for session_id, line in lines if all(word in _folded(line) for word in sought))


def first_words(lines: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The first line of each session that has one."""
    found: dict[str, str] = {}
    for session_id, line in lines:
        found.setdefault(session_id, line)
    return found


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
