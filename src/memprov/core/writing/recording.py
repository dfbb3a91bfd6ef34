"""What statements and questions do to the recall store, and the origins that go with them (docs: Origins and merges,
Entry keys).

A claim that several sessions state is one entry with every origin, and within one query and day it counts once (F9,
B02). A claim that was forgotten and comes again starts fresh: it inherits neither counts nor ranking signals (B12).

A recall is what lets a claim be promoted: that somebody asked for it, in different words, on different days. It stages
nothing and writes no text, it only counts at entries that are there, so that what was forgotten in the meantime does
not come back (I6). A hit is a chunk and holds many claims. Those are recalled that share a telling word with the
question; where none does, all of them if it was found by meaning, and none if by a word that says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from attrs import evolve, frozen

from memprov.core.lineage import join_origins
from memprov.core.records import Origin, Provenance, SessionRecord, chunk_provenance, described
from memprov.core.state import IngestState, StagedEntry, evicted_entries
from memprov.core.text import (
    SessionMatcher,
    claim_hash,
    claim_key,
    collapse,
    concept_tags,
    is_memory_echo,
    plain,
    query_hash,
    query_terms,
    ranged_key,
    strip_speaker,
)
from memprov.core.writing.candidates import snippet_of, truncated
from memprov.core.writing.effects import StageEntries, WriteEffect
from memprov.core.writing.messages import require_key
from memprov.errors import InputError

__all__ = [
    "SESSION_SCORE",
    "Claim",
    "Found",
    "RecallReport",
    "SignalKind",
    "Staged",
    "origin_of",
    "plan_annotation",
    "plan_recall",
    "stage_claims",
]

#: The score of a line from a session, before ranking.
SESSION_SCORE = 0.58
_MAX_QUERIES = 32
_MAX_DAYS = 16
_MAX_SNIPPET_UNITS = 800


class SignalKind(StrEnum):
    """What a statement is evidence of: automatic ingestion, or a backfill that was asked for."""

    DAILY = "daily"
    GROUNDED = "grounded"


@frozen
class Claim:
    """One statement, where it stands in the corpus, and the session that made it."""

    kind: SignalKind
    path: str
    line: int
    snippet: str
    query: str
    day: str
    provenance: Provenance
    session: SessionRecord
    project_key: str | None = None


@frozen
class Staged:
    """What staging changes: whole entries, the keys that no longer fit, the origins, and signals of another life.

    ``added`` are the keys that are new; ``stale_signals`` are to be dropped before the entries are written.
    """

    entries: tuple[StagedEntry, ...] = ()
    evicted: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    added: tuple[str, ...] = ()
    stale_signals: tuple[str, ...] = ()


def origin_of(entry_key: str, session: SessionRecord, provenance: Provenance) -> Origin:
    """The origin that a statement gives an entry."""
    return Origin(
        entry_key,
        session.agent_id,
        session.session_id,
        session.session_key,
        provenance.origin_class,
        provenance.observed_at_ms,
    )


def stage_claims(state: IngestState, claims: Iterable[Claim]) -> Staged:
    """Record claims in order. What a memory system wrote itself is no claim (B17), nor is one that says nothing."""
    before = {entry.key: entry for entry in state.entries}
    entries = dict(before)
    by_hash = {
        entry.claim_hash: entry.key
        for entry in reversed(state.entries)
        if entry.claim_hash and not entry.key.startswith("memory:claim:") and entry.recall_count + entry.grounded_count
    }
    origins: list[Origin] = []
    for claim in claims:
        snippet = collapse(claim.snippet)
        if not snippet or is_memory_echo(snippet):
            continue
        if claim.kind is SignalKind.GROUNDED and strip_speaker(snippet) != snippet:
            continue  # a bare turn of a conversation, quoted in another
        hashed = claim_hash(snippet)
        key = _key(claim, hashed, entries, by_hash)
        entries[key] = _recorded(entries.get(key), key, claim, snippet, hashed)
        if claim.kind is SignalKind.GROUNDED and not key.startswith("memory:claim:"):
            by_hash.setdefault(hashed, key)
        origins.append(origin_of(key, claim.session, claim.provenance))
    evicted = frozenset(evicted_entries(entries.values()))
    changed = [entry for key, entry in entries.items() if entry is not before.get(key) and key not in evicted]
    added = [entry.key for entry in changed if entry.key not in before]
    gone = evicted & before.keys()
    return Staged(
        entries=tuple(changed),
        evicted=tuple(sorted(gone)),
        origins=join_origins(origins),
        added=tuple(added),
        stale_signals=tuple(sorted(state.signals.intersection(gone.union(added)))),
    )


def _key(claim: Claim, hashed: str, entries: dict[str, StagedEntry], by_hash: dict[str, str]) -> str:
    shared = claim_key(hashed)
    if claim.kind is SignalKind.DAILY:
        return by_hash.get(hashed, shared)
    return shared if shared in entries else ranged_key(claim.path, claim.line, claim.line, hashed)


def _recorded(old: StagedEntry | None, key: str, claim: Claim, snippet: str, hashed: str) -> StagedEntry:
    query, kept = query_hash(claim.query), truncated(snippet, _MAX_SNIPPET_UNITS).rstrip(" ")
    if old is None:
        old = StagedEntry(key, claim.path, claim.line, claim.line, kept)
        known = False
    else:
        known = query in old.query_hashes
    repeated = known and claim.day in old.recall_days
    count = 0 if repeated else 1
    daily = claim.kind is SignalKind.DAILY
    keeps_place = daily or key.startswith("memory:claim:")
    return evolve(
        old,
        path=old.path if keeps_place else claim.path,
        start_line=old.start_line if keeps_place else claim.line,
        end_line=old.end_line if keeps_place else claim.line,
        snippet=kept,
        daily_count=old.daily_count + (count if daily else 0),
        grounded_count=old.grounded_count + (0 if daily else count),
        total_score=old.total_score + SESSION_SCORE * count,
        max_score=max(old.max_score, SESSION_SCORE if count else 0.0),
        last_recalled_at_ms=old.last_recalled_at_ms if known and old.snippet == kept else None,
        query_hashes=_recent(old.query_hashes, query, _MAX_QUERIES),
        recall_days=_recent(old.recall_days, claim.day, _MAX_DAYS),
        concept_tags=concept_tags(kept) or old.concept_tags,
        provenance=_merged(old.provenance, claim.provenance),
        claim_hash=hashed,
        project_key=old.project_key or claim.project_key,
    )


def _recent(values: tuple[str, ...], value: str, limit: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*values, value)))[-limit:]


def _merged(old: Provenance | None, new: Provenance) -> Provenance:
    """Trust only falls (I7), and who does not say what a statement supersedes takes nothing back."""
    return new if old is None else chunk_provenance((old, new))


# --- recall -----------------------------------------------------------------------------------------------------------


@frozen
class Found:
    """A hit as far as recall looks at it: where it is, what it says, its score from 0 to 1, and whether its meaning
    found it.
    """

    path: str
    text: str
    score: float
    by_meaning: bool = False


@frozen
class RecallReport:
    """Which staged entries were recalled, by key, and how many hits say what no entry says, or are forgotten."""

    recalled: tuple[str, ...] = ()
    unmatched: int = 0
    forgotten: int = 0


@frozen
class RecallPlan:
    """The effects of one recall, and what they amount to."""

    effects: tuple[WriteEffect, ...]
    report: RecallReport


def plan_recall(state: IngestState, query: str, found: Iterable[Found], *, now_ms: int, today: str) -> RecallPlan:
    """Count one question at the entries that its hits say.

    An entry scores as its best hit does. One question counts once a day, however often it is asked.
    """
    by_claim: dict[str, list[StagedEntry]] = {}
    for entry in state.entries:
        by_claim.setdefault(_claim(entry.snippet), []).append(entry)
    forgotten = SessionMatcher(state.agent_id, state.tombstones)
    scores: dict[str, float] = {}
    unmatched = gone = 0
    for hit in found:
        if forgotten.owns_path(hit.path):
            gone += 1
            continue
        said = _said(hit, query, by_claim)
        unmatched += not said
        for entry in said:
            scores[entry.key] = max(scores.get(entry.key, 0.0), hit.score)
    hashed = query_hash(query)
    changed = tuple(
        _recalled(entry, hashed, scores[entry.key], now_ms, today)
        for entry in state.entries
        if entry.key in scores and not (hashed in entry.user_query_hashes and today in entry.recall_days)
    )
    report = RecallReport(tuple(sorted(scores)), unmatched, gone)
    return RecallPlan((StageEntries(changed),) if changed else (), report)


def _said(hit: Found, query: str, by_claim: Mapping[str, list[StagedEntry]]) -> list[StagedEntry]:
    """The entries of a chunk's lines that answer the query."""
    claims = dict.fromkeys(_claim(snippet_of(line)) for line in hit.text.split("\n"))
    known = [claim for claim in claims if claim in by_claim]
    words = (*concept_tags(query), *query_terms(query).pieces)
    meant = [claim for claim in known if any(word in claim for word in words)]
    return [entry for claim in meant or (known if hit.by_meaning else ()) for entry in by_claim[claim]]


def _claim(snippet: str) -> str:
    """A snippet in the form in which two say the same, whoever said it, before or after it was made harmless."""
    return collapse(plain(strip_speaker(snippet))).lower()


def _recalled(entry: StagedEntry, hashed: str, score: float, now_ms: int, today: str) -> StagedEntry:
    return evolve(
        entry,
        recall_count=entry.recall_count + 1,
        total_score=entry.total_score + score,
        max_score=max(entry.max_score, score),
        last_recalled_at_ms=max(now_ms, entry.last_recalled_at_ms or 0),
        query_hashes=_recent(entry.query_hashes, hashed, _MAX_QUERIES),
        user_query_hashes=_recent(entry.user_query_hashes, hashed, _MAX_QUERIES),
        recall_days=_recent(entry.recall_days, today, _MAX_DAYS),
    )


# --- what a host knows besides ----------------------------------------------------------------------------------------


def plan_annotation(
    state: IngestState, key: str, *, supersedes_key: str | None = None, project_key: str | None = None
) -> tuple[WriteEffect, ...]:
    """Say of a staged entry what it supersedes and which project it is of; ``None`` says nothing.

    Raises ``InputError`` for an entry that is not staged, or of which no session vouches, and for one that would
    supersede itself.
    """
    entry = next((entry for entry in state.entries if entry.key == key), None)
    if entry is None or entry.provenance is None:
        raise InputError(f"there is no staged entry {described(key)} with a session that vouches for it")
    require_key(supersedes_key, "supersedes_key")
    require_key(project_key, "project_key")
    if supersedes_key == key:
        raise InputError(f"the entry {described(key)} cannot supersede itself")
    provenance = evolve(entry.provenance, supersedes_key=supersedes_key or entry.provenance.supersedes_key)
    changed = evolve(entry, provenance=provenance, project_key=project_key or entry.project_key)
    return (StageEntries((changed,)),) if changed != entry else ()
