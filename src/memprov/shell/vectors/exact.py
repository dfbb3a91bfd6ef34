"""Exact search with NumPy over the vectors of a ledger: the default, and right for every survivor of any deletion.

There is no structure to repair: each search looks at every vector. The matrix can be kept between searches
(``VectorMemory``); it is read anew when the index revision has moved, which every change of the index makes it do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import apsw
import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from memprov.shell.cells import text
from memprov.shell.statements import batches, transaction
from memprov.shell.vectors.port import Matrix, Near, checked_limit, checked_rows, checked_vector

__all__ = ["ExactVectors", "LedgerVectors", "VectorMemory"]

#: By how much a product of float32 vectors may be off; what lies that close is compared again, with twice the digits.
_DOUBT = 1e-4


@frozen(eq=False)
class _Loaded:
    ids: tuple[str, ...]
    places: dict[str, int]
    matrix: Matrix
    squares: NDArray[np.float32]


@define(eq=False)
class VectorMemory:
    """The vectors of one ledger, kept between searches: give the same one to each ``search``."""

    _key: tuple[object, ...] = field(default=(), init=False, repr=False)
    _loaded: _Loaded | None = field(default=None, init=False, repr=False)

    def _get(self, key: tuple[object, ...]) -> _Loaded | None:
        """What was kept under this key: ledger, revision and dimensions."""
        return self._loaded if self._key == key else None

    def _keep(self, key: tuple[object, ...], loaded: _Loaded) -> None:
        """Keep it in place of what was kept."""
        self._key, self._loaded = key, loaded


@define(eq=False)
class LedgerVectors:
    """The table ``vectors`` of a ledger, as both implementations over it change it."""

    connection: apsw.Connection
    dimensions: int

    def put(self, ids: Sequence[str], matrix: Matrix) -> None:
        """See ``VectorIndex``. In a ledger a row needs its chunk."""
        names, rows = checked_rows(ids, matrix, self.dimensions)
        with transaction(self.connection):
            self.connection.executemany(
                "INSERT OR REPLACE INTO vectors (chunk_id, dimensions, embedding) VALUES (?, ?, ?)",
                ((name, self.dimensions, row.tobytes()) for name, row in zip(names, rows, strict=True)),
            )

    def delete(self, ids: Iterable[str]) -> None:
        """See ``VectorIndex``."""
        with transaction(self.connection):
            for batch in batches(ids):
                self.connection.execute(
                    "DELETE FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?))", (batch,)
                )

    def ids(self) -> frozenset[str]:
        """See ``VectorIndex``."""
        rows = self.connection.execute("SELECT chunk_id FROM vectors WHERE dimensions = ?", (self.dimensions,))
        return frozenset(text(row[0]) for row in rows)


@define(eq=False)
class ExactVectors(LedgerVectors):
    """Every vector of the ledger compared, in memory. ``key`` tells the state of the ledger that ``memory`` is of."""

    memory: VectorMemory | None = None
    key: tuple[object, ...] = ()

    def nearest(self, vector: Matrix, limit: int, *, skip: AbstractSet[str] = frozenset()) -> tuple[Near, ...]:
        """See ``VectorIndex``."""
        wanted, limit = checked_vector(vector, self.dimensions), checked_limit(limit)
        loaded = self._load()
        scores = 2 * (loaded.matrix @ wanted) - loaded.squares  # falls as the distance grows
        if skip:
            scores[[loaded.places[name] for name in skip if name in loaded.places]] = -np.inf
        live = int(np.count_nonzero(scores > -np.inf))
        limit = min(limit, live)
        if not limit:
            return ()
        last = np.partition(scores, -limit)[-limit]
        doubt = _DOUBT * (1 + float(np.abs(last)))
        close = np.flatnonzero(scores >= last - doubt)
        apart = loaded.matrix[close].astype(np.float64) - wanted.astype(np.float64)
        distances = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        found = (Near(loaded.ids[place], float(d)) for place, d in zip(close, distances, strict=True))
        return tuple(sorted(found, key=lambda near: (near.distance, near.id))[:limit])

    def _load(self) -> _Loaded:
        key = (*self.key, self.dimensions)
        kept = self.memory._get(key) if self.memory is not None and self.key else None
        if kept is not None:
            return kept
        ids: list[str] = []
        blobs: list[bytes] = []
        for name, blob in self.connection.execute(
            "SELECT chunk_id, embedding FROM vectors WHERE dimensions = ? AND length(embedding) = 4 * dimensions",
            (self.dimensions,),
        ):
            if isinstance(blob, bytes):
                ids.append(text(name))
                blobs.append(blob)
        matrix = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(ids), self.dimensions)
        loaded = _Loaded(
            tuple(ids), {name: i for i, name in enumerate(ids)}, matrix, np.einsum("ij,ij->i", matrix, matrix)
        )
        if self.memory is not None and self.key:
            self.memory._keep(key, loaded)
        return loaded
