"""Which origins may go because nothing shows their entry any more (FACTS 5.5, I9).

A merge leaves the origins of what it replaced where they are: the old text is still in preimages, in a diary, in an
index that was not brought up to date, and whoever is forgotten must be found there too. They go when the last of these
is gone. What is looked at is bounded: entries that a preimage or the replaced file named, and those that a transfer
took in. The latter stay candidates for as long as they have origins, so what one run leaves, a later one finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field, frozen

from memprov.core.diary import DIARY_PATH
from memprov.core.lineage import prunable_keys
from memprov.core.markers import CommentKind, comments, mentions_promotion
from memprov.core.records import Origin, string_set, strings
from memprov.core.snapshot import MemorySnapshot
from memprov.core.write_effects import PruneOrigins

__all__ = ["MAX_PRUNED", "Sibling", "named_keys", "plan_prune", "prune_candidates"]

#: How many entries one run prunes in one ledger.
MAX_PRUNED = 10_000
_REPORTS = "memory/dreaming/"
_DIARIES = frozenset({DIARY_PATH, DIARY_PATH.lower()})


@frozen
class Sibling:
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
    snapshot: MemorySnapshot, candidates: Iterable[str], *, siblings: Iterable[Sibling] = (), limit: int = MAX_PRUNED
) -> tuple[PruneOrigins, ...]:
    """The origins that go in each ledger, now that the store is as the snapshot says; first keys first."""
    asked = frozenset(strings(candidates))
    agent, effects = snapshot.store.agent_id, []
    views = [(agent, asked & snapshot.origins.keys, None)] + [
        (sibling.agent_id, asked.intersection(o.entry_key for o in sibling.origins), sibling.indexed)
        for sibling in siblings
    ]
    if not any(keys for _, keys, _ in views):
        return ()
    live = {row.key for row in snapshot.recall}
    diaries: set[str] = set()
    reports: set[str] = set()
    for file in snapshot.files:
        place = reports if file.path.startswith(_REPORTS) else diaries if file.path in _DIARIES else live
        place.update(named_keys(file.text))
    preimages = {key for preimage in snapshot.preimages for key in named_keys(preimage.content)}
    for agent_id, keys, indexed in views:
        left = prunable_keys(keys, live=live, preimages=preimages, diaries=diaries, reports=reports, indexed=())
        if left and indexed is None:  # the most to read, so last
            indexed = frozenset(key for text in snapshot.chunks.texts for key in named_keys(text))
        if left := left.difference(indexed or ()):
            effects.append(PruneOrigins(agent_id, sorted(left)[:limit]))
    return tuple(effects)
