"""What ingestion keeps: staged entries, checkpoints, seen hashes; and the state that a write plan is computed from.

A staged entry is a claim that may be promoted (docs: Recall rows); a checkpoint says how far a transcript was read
(docs: Checkpoints and seen hashes); seen hashes are what was taken from it. The limits of all three are here, beside
the functions that keep them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from memprov.core.records import MemoryFile, Provenance, RewindBatch, string_set, strings

__all__ = [
    "MAX_ENTRIES",
    "MAX_SCOPES",
    "MAX_SEEN",
    "Checkpoint",
    "IngestState",
    "StagedEntry",
    "evicted_entries",
    "evicted_scopes",
    "outdated_hashes",
]

#: How many entries, scopes, and hashes per scope are kept (docs: Checkpoints and seen hashes, Recall rows).
MAX_ENTRIES = 512
MAX_SCOPES = 2048
MAX_SEEN = 4096


@frozen
class StagedEntry:
    """A short-term recall row with everything that ranking reads (docs: Recall rows). Times are epoch milliseconds.

    In an effect a ``first_recalled_at_ms`` or ``last_recalled_at_ms`` of ``None`` means the moment at which the effect
    is applied; as read from a store both are numbers.
    """

    key: str
    path: str
    start_line: int
    end_line: int
    snippet: str
    recall_count: int = 0
    daily_count: int = 0
    grounded_count: int = 0
    total_score: float = 0.0
    max_score: float = 0.0
    first_recalled_at_ms: int | None = None
    last_recalled_at_ms: int | None = None
    query_hashes: tuple[str, ...] = field(default=(), converter=strings)
    user_query_hashes: tuple[str, ...] = field(default=(), converter=strings)
    recall_days: tuple[str, ...] = field(default=(), converter=strings)
    concept_tags: tuple[str, ...] = field(default=(), converter=strings)
    provenance: Provenance | None = None
    claim_hash: str | None = None
    project_key: str | None = None
    promoted_at_ms: int | None = None


@frozen
class Checkpoint:
    """How far a source was read, or why it was not (docs: Checkpoints and seen hashes).

    ``key`` is the state key. ``last_content_line`` counts the ingestible lines that need not be looked at again.
    """

    key: str
    mtime_ms: int = 0
    size: int = 0
    content_hash: str = ""
    line_count: int = 0
    last_content_line: int = 0
    excluded_reason: str | None = None


@frozen
class IngestState:
    """Everything that ingestion and backfill read of one agent's store. All fields are plain values.

    ``entries``, ``signals``, ``checkpoints``, ``seen``, ``corpus`` and ``rewinds`` belong to the workspace, which other
    agents may share; ``tombstones`` are the ids forgotten in this agent's ledger, and ``sibling_keys`` the entry keys
    with an origin in another agent's. ``signals`` are the keys with ranking signals. ``seen`` leads from a dedupe scope
    to the hashes of the messages that were taken, oldest first; ``corpus`` from the path of a corpus file to its text:
    any mapping will do, so that a shell may read a file when it is asked for. ``diary`` is ``DREAMS.md`` or an existing
    ``dreams.md``, or ``None`` where there is neither.
    """

    agent_id: str
    entries: tuple[StagedEntry, ...] = ()
    signals: frozenset[str] = field(default=frozenset(), converter=string_set)
    checkpoints: tuple[Checkpoint, ...] = ()
    seen: Mapping[str, tuple[str, ...]] = field(factory=dict)
    corpus: Mapping[str, str] = field(factory=dict)
    tombstones: frozenset[str] = field(default=frozenset(), converter=string_set)
    sibling_keys: frozenset[str] = field(default=frozenset(), converter=string_set)
    rewinds: tuple[RewindBatch, ...] = ()
    diary: MemoryFile | None = None


def evicted_entries(entries: Iterable[StagedEntry], limit: int = MAX_ENTRIES) -> tuple[str, ...]:
    """The keys of the entries that do not fit, oldest and weakest first out (docs: Recall rows).

    An entry that is about to be stamped counts as the newest.
    """
    entries = tuple(entries)
    if len(entries) <= limit:
        return ()
    ranked = sorted(entries, key=lambda entry: entry.key)
    ranked.sort(key=_rank, reverse=True)
    return tuple(sorted(entry.key for entry in ranked[limit:]))


def _rank(entry: StagedEntry) -> tuple[float, int, float, float, int]:
    recalled = float("inf") if entry.last_recalled_at_ms is None else entry.last_recalled_at_ms
    signals = entry.recall_count + entry.daily_count + entry.grounded_count
    return recalled, signals, entry.total_score, entry.max_score, entry.promoted_at_ms or 0


def outdated_hashes(hashes: Iterable[str], limit: int = MAX_SEEN) -> tuple[str, ...]:
    """The hashes of a scope, oldest first, that are too many (docs: Checkpoints and seen hashes)."""
    hashes = tuple(dict.fromkeys(hashes))
    return hashes[: max(len(hashes) - limit, 0)]


def evicted_scopes(scopes: Iterable[str], limit: int = MAX_SCOPES) -> tuple[str, ...]:
    """The scopes that are too many: the first in order of their UTF-16 units go (docs: Checkpoints and seen hashes)."""
    ranked = sorted(set(scopes), key=lambda scope: scope.encode("utf-16-be", "surrogatepass"))
    return tuple(ranked[: max(len(ranked) - limit, 0)])
