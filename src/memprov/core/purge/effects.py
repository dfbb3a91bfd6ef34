"""The effects of a purge, and their order (what an effect is: ``state.effect``).

They carry no time and no memory text: a file is changed by cutting byte ranges between two digests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum

from attrs import evolve, field, frozen

from memprov.core.lineage import edges_after_drop
from memprov.core.purge.trims import BatchTrim, trimmed_events, trimmed_rewinds
from memprov.core.records import MemoryFile, Preimage
from memprov.core.state import PARTS, MemorySnapshot
from memprov.core.text import Spans, cut, digest

__all__ = [
    "BatchTrim",
    "CutFile",
    "CutPreimages",
    "DropCheckpoints",
    "DropOrigins",
    "DropRecall",
    "DropSeenScopes",
    "DropSignals",
    "Erase",
    "PreimageCut",
    "PurgeEffect",
    "PurgeIndex",
    "RecordTombstones",
    "RemoveFile",
    "Step",
    "TrimEvents",
    "TrimRewinds",
    "apply_effects",
]


class Step(IntEnum):
    """The order of a purge (docs: order): exclusion first, derived before what it derives from, evidence last."""

    TOMBSTONES = 0
    INDEX = 1
    DERIVED = 2
    MEMORY = 3
    CORPUS = 4
    ORIGINS = 5
    ERASURE = 6


@frozen
class RecordTombstones:
    """Re-check the basis, record that these sessions are forgotten, and bump the index revision: one transaction."""

    agent_id: str
    session_ids: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.TOMBSTONES

    def words(self) -> str:
        """What is done, in words."""
        return f"record {len(self.session_ids)} sessions as forgotten"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        tombstones = snapshot.tombstones | frozenset(self.session_ids)
        return evolve(snapshot, tombstones=tombstones, revision=snapshot.revision + 1)


@frozen
class PurgeIndex:
    """Re-check the basis and drop index rows with their full-text rows and vectors, and the whole embedding cache."""

    chunk_ids: tuple[str, ...] = field(metadata=PARTS)
    sources: tuple[tuple[str, str], ...] = field(metadata=PARTS)
    step: Step = Step.INDEX

    def words(self) -> str:
        """What is done, in words."""
        return "index rows and embedding cache"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        gone = frozenset(self.sources)
        return evolve(
            snapshot,
            chunks=snapshot.chunks.without(self.chunk_ids) if self.chunk_ids else snapshot.chunks,
            sources=tuple(s for s in snapshot.sources if (s.path, s.source) not in gone),
            cache_rows=0,
        )


@frozen
class DropSignals:
    """Drop ranking signals by entry key: before the recall rows that they derive from."""

    keys: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "ranking signals"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, signals=_without(snapshot.signals, self.keys))


@frozen
class TrimRewinds:
    """Take the selection's candidates out of the rewind rows (D21)."""

    trims: tuple[BatchTrim, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "rewind rows"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, rewinds=trimmed_rewinds(snapshot.rewinds, self.trims))


@frozen
class TrimEvents:
    """Take what belongs to the selection out of the host's events; cursors stay (D21)."""

    trims: tuple[BatchTrim, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "host events"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, events=trimmed_events(snapshot.events, self.trims))


@frozen
class DropRecall:
    """Drop short-term recall rows, by the key the store files them under."""

    row_keys: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "recall rows"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        dropped = frozenset(self.row_keys)
        return evolve(snapshot, recall=tuple(r for r in snapshot.recall if r.row_key not in dropped))


@frozen
class DropCheckpoints:
    """Drop ingestion checkpoints by state key."""

    keys: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "ingestion checkpoints"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, checkpoints=_without(snapshot.checkpoints, self.keys))


@frozen
class DropSeenScopes:
    """Drop the seen hashes of whole scopes."""

    scopes: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def words(self) -> str:
        """What is done, in words."""
        return "seen hashes"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, seen_scopes=_without(snapshot.seen_scopes, self.scopes))


@frozen
class PreimageCut:
    """One preimage: cut ``spans`` (UTF-8 byte ranges) out of the content whose digest is ``before``."""

    key: str
    before: str
    after: str
    spans: Spans


@frozen
class CutPreimages:
    """Scrub the retained preimages. Their keys stay (docs: Purge of an index)."""

    cuts: tuple[PreimageCut, ...] = field(metadata=PARTS)
    step: Step = Step.DERIVED

    def unaccounted(self, digests: Mapping[str, str]) -> tuple[str, ...]:
        """The preimages, of those with these digests by key, that are neither as planned nor cut already (D24)."""
        return tuple(c.key for c in self.cuts if digests.get(c.key) not in (c.before, c.after))

    def words(self) -> str:
        """What is done, in words."""
        return "preimages"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        cuts = {(c.key, c.before): c for c in self.cuts}
        return evolve(
            snapshot,
            preimages=tuple(
                Preimage(p.key, cut(p.content, c.spans)) if (c := cuts.get((p.key, digest(p.content)))) else p
                for p in snapshot.preimages
            ),
        )


@frozen
class CutFile:
    """Replace a file by itself less ``spans``, atomically, if its digest is ``before``; under all its names (D6)."""

    path: str
    aliases: tuple[str, ...]
    before: str
    after: str
    spans: Spans
    step: Step = Step.MEMORY

    def words(self) -> str:
        """What is done, in words."""
        return f"rewrite {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return _change_files(snapshot, (self,))


@frozen
class RemoveFile:
    """Unlink an emptied corpus file or a stale copy, if its digest is ``before`` (D6, D18)."""

    path: str
    aliases: tuple[str, ...]
    before: str
    step: Step = Step.CORPUS

    def words(self) -> str:
        """What is done, in words."""
        return f"remove {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return _change_files(snapshot, (self,))


@frozen
class DropOrigins:
    """Drop every origin row of these entries in this agent's ledger: the evidence, so last (step 5), but for
    collateral entries, whose text must still exist to name them (step 2, D4). The edges that name them go along, and
    those that then lead nowhere.
    """

    agent_id: str
    entry_keys: tuple[str, ...] = field(metadata=PARTS)
    step: Step = Step.ORIGINS

    def words(self) -> str:
        """What is done, in words."""
        return "origin rows"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        if self.agent_id != snapshot.store.agent_id:
            return evolve(snapshot, sibling_keys=snapshot.sibling_keys.difference(self.entry_keys))
        origins = snapshot.origins.without(self.entry_keys, agent_id=self.agent_id)
        transfers = edges_after_drop(snapshot.transfers, origins.keys, named=frozenset(self.entry_keys))
        return evolve(snapshot, origins=origins, transfers=transfers)


#: What a purge may do.
@frozen
class Erase:
    """Take what was deleted out of the bytes of every file that the store owns (docs: proof). To the model,
    identity.
    """

    step: Step = Step.ERASURE

    def words(self) -> str:
        """What is done, in words."""
        return "erase what was deleted from the store's files"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The same snapshot: no reader sees the difference."""
        return snapshot


PurgeEffect = (
    RecordTombstones
    | PurgeIndex
    | DropSignals
    | TrimRewinds
    | TrimEvents
    | DropRecall
    | DropCheckpoints
    | DropSeenScopes
    | CutPreimages
    | CutFile
    | RemoveFile
    | DropOrigins
    | Erase
)


def apply_effects(snapshot: MemorySnapshot, effects: Iterable[PurgeEffect]) -> MemorySnapshot:
    """The snapshot after all of them, in order. Files change in one pass, or it would be files times effects."""
    pending: list[CutFile | RemoveFile] = []
    for effect in effects:
        if isinstance(effect, CutFile | RemoveFile):
            pending.append(effect)
        else:
            snapshot = effect.applied_to(_change_files(snapshot, pending))
            pending = []
    return _change_files(snapshot, pending)


def _change_files(snapshot: MemorySnapshot, effects: Collection[CutFile | RemoveFile]) -> MemorySnapshot:
    if not effects:
        return snapshot
    removed = {effect.path for effect in effects if isinstance(effect, RemoveFile)}
    cuts: dict[str, list[CutFile]] = {}
    for effect in effects:
        if isinstance(effect, CutFile):
            cuts.setdefault(effect.path, []).append(effect)

    def changed(file: MemoryFile) -> MemoryFile:
        for effect in cuts.get(file.path, ()):
            if digest(file.text) == effect.before:
                file = evolve(file, text=cut(file.text, effect.spans))
        return file

    return evolve(
        snapshot,
        files=tuple(map(changed, snapshot.files)),
        corpus=tuple(changed(file) for file in snapshot.corpus if file.path not in removed),
        stale_copies=tuple(copy for copy in snapshot.stale_copies if copy.path not in removed),
    )


def _without(values: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    dropped = frozenset(gone)
    return tuple(v for v in values if v not in dropped)
