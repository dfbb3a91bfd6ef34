"""The effects on an agent's ledger: the fence of a plan, origins, and the edges of a transfer.

Of another agent's ledger the model knows only which keys have origins there.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from memprov.core.lineage import OriginTable, TransferEdge, edges_after_drop, joined_edges
from memprov.core.records import Origin, strings
from memprov.core.state import PARTS, MemorySnapshot
from memprov.errors import StaleStateError

__all__ = [
    "PruneOrigins",
    "RecordOrigins",
    "RecordTransfers",
    "ReleaseOrigins",
    "ReleaseTransfers",
    "RequireAdmitted",
]


@frozen
class RequireAdmitted:
    """The fence of a plan that says anything of these sessions: stop the whole plan if one of them is forgotten.

    It is checked under the workspace lock, which a purge needs as well, so that it holds for all that follows.
    """

    agent_id: str
    session_ids: tuple[str, ...] = field(converter=strings, metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"check that {len(self.session_ids)} sessions are not forgotten"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        mine = self.agent_id == snapshot.store.agent_id
        if mine and (gone := snapshot.tombstones.intersection(self.session_ids)):
            raise StaleStateError(f"forgotten while this was being prepared: {', '.join(sorted(gone))}")
        return snapshot


@frozen
class RecordOrigins:
    """Join these origins into the agent's ledger, in one transaction; equal rows to the weakest class (D14)."""

    agent_id: str
    origins: tuple[Origin, ...] = field(metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"record {len(self.origins)} origins"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        if self.agent_id != snapshot.store.agent_id:
            keys = (origin.entry_key for origin in self.origins)
            return evolve(snapshot, sibling_keys=snapshot.sibling_keys.union(keys))
        return evolve(snapshot, origins=OriginTable.from_rows((*snapshot.origins.rows(), *self.origins)))


@frozen
class ReleaseOrigins:
    """Delete exactly these (entry key, session id) rows of the agent: those added for what certainly was not published
    (docs: Origins and merges, ``lineage.rows_to_release``).
    """

    agent_id: str
    rows: tuple[tuple[str, str], ...] = field(metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"take back {len(self.rows)} origins"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        rows = frozenset((entry, self.agent_id, session) for entry, session in self.rows)
        kept = (r for r in snapshot.origins.rows() if (r.entry_key, r.agent_id, r.session_id) not in rows)
        return evolve(snapshot, origins=OriginTable.from_rows(kept))


@frozen
class RecordTransfers:
    """Remember in the agent's ledger which entries a survivor was made of: after its origins, before its text."""

    agent_id: str
    edges: tuple[TransferEdge, ...] = field(metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"record {len(self.edges)} lineage edges"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        if self.agent_id != snapshot.store.agent_id:
            return snapshot
        return evolve(snapshot, transfers=joined_edges((*self.edges, *snapshot.transfers)))


@frozen
class ReleaseTransfers:
    """Forget these transfers: those of what certainly was not published. The twin of ``ReleaseOrigins``."""

    agent_id: str
    transfer_ids: tuple[str, ...] = field(converter=strings, metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"take back {len(self.transfer_ids)} transfers"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        if self.agent_id != snapshot.store.agent_id:
            return snapshot
        gone = frozenset(self.transfer_ids)
        return evolve(snapshot, transfers=tuple(e for e in snapshot.transfers if e.transfer_id not in gone))


@frozen
class PruneOrigins:
    """Drop the agent's origins of entries that nothing shows any more (docs: Origins and merges,
    ``lineage.prunable_keys``).

    Unlike ``DropOrigins`` it forgets nobody: the edges that lead from these entries to one that is left stay.
    """

    agent_id: str
    entry_keys: tuple[str, ...] = field(converter=strings, metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"prune the origins of {len(self.entry_keys)} entries"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        if self.agent_id != snapshot.store.agent_id:
            return evolve(snapshot, sibling_keys=snapshot.sibling_keys.difference(self.entry_keys))
        origins = snapshot.origins.without(self.entry_keys, agent_id=self.agent_id)
        return evolve(snapshot, origins=origins, transfers=edges_after_drop(snapshot.transfers, origins.keys))
