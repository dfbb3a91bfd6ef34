"""Asking an embedder for vectors, and asking it for as few as possible.

An embedder is the host's. Whatever it returns is checked before anything is made of it. What it said once is kept in
the ledger's embedding cache, under its identity and the digest of the text; every purge empties that (docs: Purge of
an index).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from memprov.core.index import EmbedderIdentity
from memprov.errors import InputError
from memprov.shell.cells import text
from memprov.shell.statements import batches
from memprov.shell.vectors.port import unit_rows

__all__ = ["Embedder", "embed", "read_cache"]

_BATCH = 256
_LARGEST = 16_384


class Embedder(Protocol):
    """Turns texts into vectors. ``identity`` changes whenever the same text could give another vector."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which embedder this is."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text, in order; all rows of one width, in every call."""


def embed(embedder: Embedder, texts: Sequence[str], *, dimensions: int | None = None) -> NDArray[np.float32]:
    """Vectors of unit length for the texts. Raises ``InputError`` for what an embedder should not have returned."""
    parts = []
    for start in range(0, len(texts), _BATCH):
        batch = [_printable(given) for given in texts[start : start + _BATCH]]
        rows = unit_rows(embedder.embed(batch))
        if rows.ndim != 2 or len(rows) != len(batch) or not 1 <= rows.shape[1] <= _LARGEST:
            raise InputError(f"{embedder.identity.name} returned {rows.shape} for {len(batch)} texts")
        if dimensions not in (None, rows.shape[1]):
            raise InputError(f"{embedder.identity.name} returned vectors of {rows.shape[1]} numbers, not {dimensions}")
        dimensions = rows.shape[1]
        parts.append(rows)
    return np.concatenate(parts) if parts else np.zeros((0, dimensions or 0), dtype="<f4")


def read_cache(connection: apsw.Connection, identity: EmbedderIdentity, hashes: Sequence[str]) -> Mapping[str, bytes]:
    """Chunk hash -> vector, of those that this embedder was asked for before."""
    found: dict[str, bytes] = {}
    for batch in batches(hashes):
        rows = connection.execute(
            "SELECT hash, embedding FROM embedding_cache WHERE provider = ? AND model = ? AND provider_key = ? "
            "AND length(embedding) = 4 * dimensions AND hash IN (SELECT value FROM json_each(?))",
            (identity.provider, identity.model, identity.key, batch),
        )
        found.update((text(name), blob) for name, blob in rows if isinstance(blob, bytes))
    return found


def _printable(given: str) -> str:
    """The text without what is no character: an embedder encodes it as UTF-8."""
    return given if given.isascii() else given.encode("utf-8", "replace").decode("utf-8")
