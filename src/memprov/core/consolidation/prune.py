"""Which origins may go because nothing shows their entry any more (docs: Origins and merges, I9).

A merge leaves the origins of what it replaced where they are: the old text is still in preimages, in a diary, in an
index that was not brought up to date, and whoever is forgotten must be found there too. They go when the last of these
is gone. What is looked at is bounded: entries that a preimage or the replaced file named, and those that a transfer
took in. The latter stay candidates for as long as they have origins, so what one run leaves, a later one finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import islice

from attrs import field, frozen

from memprov.core.lineage import prunable_keys
from memprov.core.records import Origin, string_set
from memprov.core.state import MemorySnapshot
from memprov.core.text import CommentKind, comments, mentions_promotion
from memprov.core.writing import DIARY_PATH, PruneOrigins

__all__ = ["MAX_PRUNED", "SiblingEntries", "named_keys", "plan_prune", "prune_candidates"]

#: How many entries one run prunes in one ledger.
MAX_PRUNED = 10_000
_REPORTS = "memory/dreaming/"
_DIARIES = frozenset({DIARY_PATH, DIARY_PATH.lower()})


@frozen
class SiblingEntries:
    """Another agent of the same workspace, as far as a merge touches it.

    ``origins`` are its rows of the entries in question, ``indexed`` the entries that its index shows, ``forgotten``
    those sessions of the rows that it has forgotten.
    """

    agent_id: str
    origins: tuple[Origin, ...] = ()
    indexed: frozenset[str] = field(default=frozenset(), converter=string_set)
    forgotten: frozenset[str] = field(default=frozenset(), converter=string_set)


def named_keys(text: str) -> Iterator[str]:
    """Every entry key that a promotion marker in the text names, in fenced code too: where it stands, it is kept."""
    if mentions_promotion(text):
        for line in text.split("\n"):
            yield from (c.value for c in comments(line) if c.kind is CommentKind.PROMOTION)


def prune_candidates(snapshot: MemorySnapshot) -> frozenset[str]:
    """The entries to ask about once this state is replaced: of its preimages and memory file, and all that a transfer
    took in.
    """
    texts = [preimage.content for preimage in snapshot.preimages]
    texts += [file.text for file in snapshot.files if file.path == "MEMORY.md"]
    return frozenset(key for text in texts for key in named_keys(text)).union(e.parent for e in snapshot.transfers)


def plan_prune(
    snapshot: MemorySnapshot,
    candidates: Iterable[str],
    *,
    siblings: Iterable[SiblingEntries] = (),
    limit: int = MAX_PRUNED,
) -> tuple[PruneOrigins, ...]:
    """The origins that go in each ledger, now that the store is as the snapshot says: the first keys, up to a limit.

    No more is looked at than it takes to find these.
    """
    asked = candidates if isinstance(candidates, frozenset) else string_set(candidates)
    live = {row.key for row in snapshot.recall}
    diaries: set[str] = set()
    reports: set[str] = set()
    for file in snapshot.files:
        place = reports if file.path.startswith(_REPORTS) else diaries if file.path in _DIARIES else live
        place.update(named_keys(file.text))
    preimages = {key for preimage in snapshot.preimages for key in named_keys(preimage.content)}
    shown = partial(prunable_keys, live=live, preimages=preimages, diaries=diaries, reports=reports)

    @cache  # the most to read, so only when something would go otherwise
    def mine() -> frozenset[str]:
        return frozenset(key for text in snapshot.chunks.texts for key in named_keys(text))

    def first(known: Iterable[str], sibling: SiblingEntries | None = None) -> tuple[str, ...]:
        found: list[str] = []
        rest = iter(known)
        while len(found) < limit and (batch := tuple(islice(rest, limit))):
            if unseen := shown(filter(asked.__contains__, batch), indexed=()):
                found += sorted(shown(unseen, indexed=sibling.indexed if sibling else mine()))
        return tuple(found[:limit])

    found = [(snapshot.store.agent_id, first(snapshot.origins.entries))]
    found += [(s.agent_id, first(sorted({row.entry_key for row in s.origins}), s)) for s in siblings]
    return tuple(PruneOrigins(agent_id, keys) for agent_id, keys in found if keys)
