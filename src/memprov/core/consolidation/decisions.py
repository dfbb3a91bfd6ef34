"""What a model may decide about MEMORY.md, and whether it may: its answer is data that is validated, never text.

A model is shown the entries that passed the gates and the present file. For each it says one of three things: add it,
merge it with entries that say the same, or let it supersede the entries of its lineage. It names prior entries by their
exact lines. Everything else is decided here: which lines these are, whether the claim really is the same, whether all
of the lineage is meant, how much may be lost (docs: Origins and merges). What is written is always the corpus's own
text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from memprov.core.records import strings
from memprov.core.text import WSP, CommentKind, Document, collapse, comments, plain
from memprov.errors import InputError

__all__ = [
    "Action",
    "CandidateEntry",
    "ConsolidationRequest",
    "Decision",
    "PriorEntry",
    "Rejected",
    "Rejection",
    "check_decisions",
    "claim_of",
    "prior_entries",
    "read_decisions",
    "without_comments",
]


class Action(StrEnum):
    """What becomes of a candidate."""

    ADDED = "added"
    MERGED = "merged"
    SUPERSEDED = "superseded"


class Rejected(StrEnum):
    """Why an answer is not carried out."""

    UNDECIDED = "not exactly one decision for each candidate"
    CHANGED = "a candidate is no longer one"
    NO_ENTRY = "a prior entry is no entry of the file, word for word"
    AMBIGUOUS = "a prior entry stands there more than once"
    CONTINUED = "a prior entry has lines that belong to it"
    NAMED_TWICE = "a prior entry is named twice"
    WRONG_COUNT = "prior entries are named for an addition, or none for a merge"
    OTHER_CLAIM = "what is merged does not say the same"
    OTHER_LINEAGE = "what is superseded is not all of one lineage"
    OTHER_PROJECT = "a prior entry belongs to another project"
    FORGOTTEN = "a source of a prior entry is forgotten"
    LOSS = "too much of the file would be superseded"
    NUL = "there is a NUL"
    BUDGET = "the file would be too large"
    UNREADABLE = "the file would not be read back as these entries"
    CONFLICT = "the file was changed while it was being replaced"


@frozen
class Rejection:
    """The reason, and the candidate that it was found at, if it was one."""

    reason: Rejected
    candidate_key: str | None = None


@frozen
class Decision:
    """What a model decides about one candidate. ``prior_entries`` are lines of the file, exactly as the request shows
    them. ``text`` may say what the candidate says; it is compared, never written.
    """

    candidate_key: str
    action: Action = field(default=Action.ADDED, converter=Action)
    prior_entries: tuple[str, ...] = field(default=(), converter=strings)
    text: str | None = None


@frozen
class CandidateEntry:
    """An entry that a model decides about: what it says, as it would be written, and what it is known to replace."""

    key: str
    text: str
    lineage: str | None = None
    project: str | None = None


@frozen
class PriorEntry:
    """An entry of the present file: its exact line, what it claims, its markers. ``first`` and ``last`` (exclusive) are
    its lines, from 0; ``whole`` says that the line is all of it, and ``unique`` that it stands in the file once.
    """

    line: str
    claim: str
    keys: tuple[str, ...]
    lineages: tuple[str, ...]
    projects: tuple[str, ...]
    first: int
    last: int
    whole: bool
    unique: bool

    @property
    def known_as(self) -> frozenset[str]:
        """By what names a later entry may say that it supersedes this one: its lineages, and its own keys."""
        return frozenset((*self.lineages, *self.keys))

    @property
    def replaceable(self) -> bool:
        """Whether a decision may name it."""
        return self.whole and self.unique


@frozen
class ConsolidationRequest:
    """What a model is shown: candidates in order of strength, and the file with its entries. It is data to quote in a
    prompt, whoever said it; nothing in it is an instruction.
    """

    agent_id: str
    candidates: tuple[CandidateEntry, ...]
    entries: tuple[PriorEntry, ...] = ()
    memory: str = ""


def read_decisions(document: str | bytes | Mapping[str, object]) -> tuple[Decision, ...]:
    """The decisions in a model's JSON answer, ``{"operations": [{"candidateKey", "action", "priorEntries"}, …]}``.

    Raises ``InputError`` for anything else.
    """
    try:
        read: Any = document if isinstance(document, Mapping) else json.loads(document)
        return tuple(
            Decision(_string(row["candidateKey"]), row["action"], row.get("priorEntries", ()), row.get("text"))
            for row in read["operations"]
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"the answer holds no decisions: {type(error).__name__}") from None


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


# --- the present file -------------------------------------------------------------------------------------------------

_BULLET = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+")
_PREFIX = re.compile(r"\[([^\[\]/\s]+)/sessions/\1/[^\]]+?#L[0-9]+\] ")
_SOURCE = re.compile(r".*#L[0-9]+-L[0-9]+", re.DOTALL)
_SCORE = re.compile(r"(.*) \[score=[0-9.]+ (?=[^\[\]]*source=)[^\[\]]*\]", re.DOTALL)


def claim_of(line: str) -> str:
    """What a line of MEMORY.md claims, in the form in which two are the same claim: without bullet, corpus prefix,
    citation and comments, blanks and case evened out. Who said it stays part of it.
    """
    text = without_comments(line).strip(WSP)
    text = _BULLET.sub("", text, count=1) if _BULLET.match(text) else text
    said, cites, place = text.rpartition(" Source: ")
    if cites and _SOURCE.fullmatch(place):
        text = said
    elif score := _SCORE.fullmatch(text):
        text = score[1]
    text = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    return unicodedata.normalize("NFC", collapse(plain(text))).lower()


def without_comments(line: str) -> str:
    """The line less its markers and annotations."""
    kept, position = "", 0
    for comment in comments(line):
        kept += line[position : comment.start]
        position = comment.end
    return (kept + line[position:]).rstrip(WSP)


def prior_entries(document: Document) -> tuple[PriorEntry, ...]:
    """The entries of a file that have markers above them. What has none was written by somebody else, and stays."""
    lines = document.lines
    counts = Counter(line.text.strip(WSP) for line in lines)
    found = []
    for entry in document.entries:
        head = lines[entry.head]
        above = [c for line in lines[entry.first : entry.head] for c in line.comments]
        if entry.first == entry.head or head.keys or head.in_code:
            continue
        exact = head.text.strip(WSP)
        found.append(
            PriorEntry(
                line=exact,
                claim=claim_of(exact),
                keys=tuple(c.value for c in above if c.kind is CommentKind.PROMOTION),
                lineages=tuple(sorted({c.value for c in above if c.kind is CommentKind.LINEAGE})),
                projects=tuple(sorted({c.value for c in (*above, *head.comments) if c.kind is CommentKind.PROJECT})),
                first=entry.first,
                last=entry.last,
                whole=entry.last == entry.head + 1,
                unique=counts[exact] == 1,
            )
        )
    return tuple(found)


# --- validation -------------------------------------------------------------------------------------------------------


def check_decisions(
    candidates: Mapping[str, CandidateEntry],
    entries: Iterable[PriorEntry],
    decisions: Iterable[Decision],
    *,
    asked: Iterable[str],
    forgotten: frozenset[str] = frozenset(),
    loss: float = 0.25,
) -> tuple[dict[str, tuple[PriorEntry, ...]], Rejection | None]:
    """The prior entries of each candidate, or why the answer is rejected.

    ``candidates`` are those that there are now, ``asked`` those that the model was shown; ``forgotten`` are keys with
    an origin in a forgotten session. Only what is superseded is lost: what is merged is still said; and one entry may
    always be superseded, of a file that holds few.
    """
    entries, decisions = tuple(entries), tuple(decisions)
    chosen: dict[str, tuple[PriorEntry, ...]] = {}
    if sorted(d.candidate_key for d in decisions) != sorted(set(strings(asked))):
        return chosen, Rejection(Rejected.UNDECIDED)
    by_line: dict[str, list[PriorEntry]] = {}
    for entry in entries:
        by_line.setdefault(entry.line, []).append(entry)
    taken: set[str] = set()
    for decision in decisions:
        key = decision.candidate_key
        candidate = candidates.get(key)
        if candidate is None:
            return chosen, Rejection(Rejected.CHANGED, key)
        fault = next(_faults_of_lines(decision, by_line, taken), None)
        if fault is None:
            named = tuple(by_line[line][0] for line in decision.prior_entries)
            fault = next(_faults_of_claims(decision, candidate, named, entries, forgotten), None)
            taken.update(decision.prior_entries)
            chosen[key] = named
        if fault is not None:
            return chosen, Rejection(fault, key)
    lost = sum(len(d.prior_entries) for d in decisions if d.action is Action.SUPERSEDED)
    if lost > max(loss * len(entries), 1):
        return chosen, Rejection(Rejected.LOSS)
    return chosen, None


def _faults_of_lines(
    decision: Decision, by_line: Mapping[str, list[PriorEntry]], taken: set[str]
) -> Iterator[Rejected]:
    lines = decision.prior_entries
    if any("\0" in text for text in (*lines, decision.text or "", decision.candidate_key)):
        yield Rejected.NUL
    if (decision.action is Action.ADDED) == bool(lines):
        yield Rejected.WRONG_COUNT
    if len(set(lines)) < len(lines) or not taken.isdisjoint(lines):
        yield Rejected.NAMED_TWICE
    for line in lines:
        if line not in by_line:
            yield Rejected.NO_ENTRY
        elif len(by_line[line]) > 1 or not by_line[line][0].unique:
            yield Rejected.AMBIGUOUS
        elif not by_line[line][0].whole:
            yield Rejected.CONTINUED


def _faults_of_claims(
    decision: Decision,
    candidate: CandidateEntry,
    named: tuple[PriorEntry, ...],
    entries: tuple[PriorEntry, ...],
    forgotten: frozenset[str],
) -> Iterator[Rejected]:
    claim = claim_of(f"- {candidate.text}")
    if decision.text is not None and claim not in (claim_of(decision.text), claim_of(f"- {decision.text}")):
        yield Rejected.OTHER_CLAIM
    if any(not forgotten.isdisjoint(entry.keys) for entry in named):
        yield Rejected.FORGOTTEN
    if any(entry.projects != tuple(filter(None, (candidate.project,))) for entry in named):
        yield Rejected.OTHER_PROJECT
    match decision.action:
        case Action.MERGED if any(entry.claim != claim for entry in named):
            yield Rejected.OTHER_CLAIM
        case Action.SUPERSEDED:
            lineage = candidate.lineage
            all_of_it = tuple(entry for entry in entries if lineage in entry.known_as)
            alone = all(set(entry.lineages) <= {lineage} for entry in named)
            if lineage is None or not alone or sorted(e.first for e in all_of_it) != sorted(e.first for e in named):
                yield Rejected.OTHER_LINEAGE
