"""Whose is the entry below several promotion markers? What the entry shows and the store knows decides (D3, F10).

An earlier purge by another program may have left a marker without its entry above a marker with one. Each key of such a
run is held against the words of the entry, the place that it cites, and the session in its corpus prefix, in this
order; each leaves the keys that it names, if it names any. A marker whose key is not left is dangling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from memprov.core.lineage.table import OriginTable
from memprov.core.records import RecallEntry, string_set
from memprov.core.text import (
    CommentKind,
    Document,
    Entry,
    claim_hash,
    comments,
    normalise,
    promotion_keys,
    session_id_from_file_name,
    strip_prefix,
    strip_speaker,
)

__all__ = ["EntryEvidence", "Strays", "contested_keys", "evidence_of", "named_keys"]

#: The path, the first and the last line, from 1.
Place = tuple[str, int, int]

_CITED = re.compile(
    r"(?:source=|Source: )([^\s\[\]]{1,512}?)(?::([0-9]{1,9})-([0-9]{1,9})|#L([0-9]{1,9})-L([0-9]{1,9}))(?![0-9])"
)
_PREFIX = re.compile(r"\[([^\[\]/\s]{1,64})/sessions/\1/([^\[\]\n]{1,512}?)#L[0-9]+(?:-L[0-9]+)?\]")
_RANGED = re.compile(r"memory:(.+?):([0-9]{1,9}):([0-9]{1,9})(?::[0-9a-f]{12})?")
_HASHED = re.compile(r"memory:.+:([0-9a-f]{12})")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+")
_NOTES = re.compile(r" (?:\[score=[0-9.]+ [^\[\]]*\]|Source: [^\s]*).*", re.DOTALL)
_ENOUGH = 12


def _places(values: Iterable[Place]) -> frozenset[Place]:
    return frozenset(values)


@frozen
class EntryEvidence:
    """What a store knows of an entry: its origins' sessions, where recall found it, and what it said there."""

    entry_key: str
    session_ids: frozenset[str] = field(default=frozenset(), converter=string_set)
    places: frozenset[Place] = field(default=frozenset(), converter=_places)
    snippets: frozenset[str] = field(default=frozenset(), converter=string_set)


def contested_keys(text: str, entry_keys: frozenset[str]) -> frozenset[str]:
    """The keys of every entry in the text that has one of these and others."""
    if not entry_keys or entry_keys.isdisjoint(promotion_keys(text)):
        return frozenset()
    document = Document(text.removeprefix("\ufeff"))
    groups = (frozenset(entry.keys) for entry in document.entries)
    return frozenset(key for keys in groups if len(keys) > 1 and keys & entry_keys for key in keys)


def evidence_of(
    entry_keys: frozenset[str], origins: OriginTable, recall: Iterable[RecallEntry]
) -> tuple[EntryEvidence, ...]:
    """What the rows of one agent say of these entries, in the order of their keys."""
    if not entry_keys:
        return ()
    sessions: dict[str, set[str]] = {key: set() for key in entry_keys}
    for row in origins.touching(entry_keys=entry_keys).rows():
        if row.entry_key in sessions:
            sessions[row.entry_key].add(row.session_id)
    rows: dict[str, list[RecallEntry]] = {key: [] for key in entry_keys}
    for found in recall:
        for key in {found.key, found.row_key} & entry_keys:
            rows[key].append(found)
    return tuple(
        EntryEvidence(
            key,
            sessions[key],
            [(row.path, row.start_line, row.end_line) for row in rows[key]],
            [row.snippet for row in rows[key]],
        )
        for key in sorted(entry_keys)
    )


def named_keys(
    said: str, entry_keys: Iterable[str], agent_id: str, evidence: Mapping[str, EntryEvidence]
) -> frozenset[str]:
    """Of the keys above an entry those that it is of, as far as anything decides; else none."""
    left, decided = frozenset(entry_keys), False
    words, hashes = normalise(said), _hashes(said, agent_id)
    places = {(m[1], int(m[2] or m[4]), int(m[3] or m[5])) for m in _CITED.finditer(said)}
    sessions = {_session(m[2]) for m in _PREFIX.finditer(said) if m[1] == agent_id}
    rows = {key: evidence.get(key, EntryEvidence(key)) for key in left}
    for named in (
        {k for k, row in rows.items() if _hash_of(k) in hashes or any(_says(words, s, agent_id) for s in row.snippets)},
        {k for k, row in rows.items() if not places.isdisjoint((*row.places, *_place_of(k)))},
        {k for k, row in rows.items() if not sessions.isdisjoint(row.session_ids)},
    ):
        left, decided = (left & named) or left, decided or bool(left & named)
    return left if decided else frozenset()


class Strays:
    """The markers that stand above an entry of another key, where one of these keys is among them.

    ``stray`` has for each line the indices of its comments that are such markers, or lineage markers directly above
    one; ``entries`` are the entries below; ``undecided`` those of which nothing says which of their keys they are of.
    """

    def __init__(
        self, document: Document, entry_keys: frozenset[str], agent_id: str, evidence: Iterable[EntryEvidence]
    ) -> None:
        self.document = document
        self.stray: dict[int, set[int]] = {}
        self.entries: list[Entry] = []
        self.undecided: list[tuple[int, tuple[str, ...]]] = []
        known = {row.entry_key: row for row in evidence}
        for entry in document.entries if entry_keys else ():
            shared = tuple(dict.fromkeys(entry.keys))
            if len(shared) < 2 or entry_keys.isdisjoint(shared):
                continue
            said = "\n".join(line.text for line in document.lines[entry.head : entry.last])
            if named := named_keys(said, shared, agent_id, known):
                self.entries.append(entry)
                self._find(entry, named)
            elif not entry_keys.issuperset(shared):
                self.undecided.append((entry.head + 1, shared))

    def _find(self, entry: Entry, named: frozenset[str]) -> None:
        above: list[tuple[int, int]] = []
        for number in range(entry.first, entry.head):
            for index, comment in enumerate(self.document.lines[number].comments):
                if comment.kind is CommentKind.LINEAGE:
                    above.append((number, index))
                    continue
                if comment.kind is CommentKind.PROMOTION and comment.value not in named:
                    for at, position in (*above, (number, index)):
                        self.stray.setdefault(at, set()).add(position)
                above = []

    def fill(self, number: int) -> bool:
        """Whether the line holds strays and nothing else."""
        return len(self.stray.get(number, ())) == len(self.document.lines[number].comments) > 0

    def keys_of(self, entry: Entry) -> Iterator[str]:
        """The keys that an entry is of: its own, less those of strays."""
        for number in range(entry.first, entry.head + 1):
            stray = self.stray.get(number, ())
            for index, comment in enumerate(self.document.lines[number].comments):
                if comment.kind is CommentKind.PROMOTION and index not in stray:
                    yield comment.value


def _session(name: str) -> str:
    decoded = session_id_from_file_name(name)
    return name if decoded is None else decoded


def _says(words: str, snippet: str, agent_id: str) -> bool:
    said = normalise(strip_prefix(snippet.replace("\n", " "), agent_id)).strip(" ")
    return len(said) >= _ENOUGH and said in words


def _hashes(said: str, agent_id: str) -> frozenset[str]:
    """The claim hashes that the entry's first line may have been given: with its label and without."""
    line = said.partition("\n")[0]
    for comment in reversed(tuple(comments(line))):
        line = line[: comment.start] + line[comment.end :]
    line = strip_prefix(_NOTES.sub("", _BULLET.sub("", line, count=1), count=1), agent_id)
    return frozenset(map(claim_hash, (line, strip_speaker(line))))


def _hash_of(key: str) -> str | None:
    return match[1] if (match := _HASHED.fullmatch(key)) else None


def _place_of(key: str) -> Iterator[Place]:
    if match := _RANGED.fullmatch(key):
        yield match[1], int(match[2]), int(match[3])
