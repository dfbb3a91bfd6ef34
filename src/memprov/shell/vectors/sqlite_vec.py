"""Exact search by sqlite-vec, where SQLite can load it: its distance function over the vectors of a ledger.

Its own table type is not used: it can be purged only where the extension loads, no foreign key reaches it, and it finds
at most 4,096 rows. A function over an ordinary table has none of that, is as exact, and takes any condition first.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import apsw
from attrs import define

from memprov.core.text import json_text
from memprov.errors import SchemaError
from memprov.shell.cells import text
from memprov.shell.vectors.exact import LedgerVectors
from memprov.shell.vectors.port import Matrix, Near, checked_limit, checked_vector

__all__ = ["SqliteVecVectors"]


@define(eq=False)
class SqliteVecVectors(LedgerVectors):
    """Every vector of the ledger compared, within SQLite. Raises ``SchemaError`` where it cannot be loaded."""

    def __attrs_post_init__(self) -> None:
        try:
            load_sqlite_vec(self.connection)
        except (ImportError, apsw.Error) as error:
            raise SchemaError(f"sqlite-vec cannot be loaded: {error}") from error

    def nearest(self, vector: Matrix, limit: int, *, skip: AbstractSet[str] = frozenset()) -> tuple[Near, ...]:
        """See ``VectorIndex``."""
        wanted, limit = checked_vector(vector, self.dimensions), checked_limit(limit)
        rows = self.connection.execute(
            """
            SELECT chunk_id, vec_distance_l2(embedding, :wanted) AS distance FROM vectors
            WHERE dimensions = :dimensions AND length(embedding) = 4 * dimensions
              AND (:all OR chunk_id NOT IN (SELECT value FROM json_each(:skip)))
            ORDER BY distance, chunk_id LIMIT :limit
            """,
            {
                "wanted": wanted.tobytes(),
                "dimensions": self.dimensions,
                "all": not skip,
                "skip": json_text(sorted(skip)),
                "limit": limit,
            },
        )
        return tuple(Near(text(name), float(distance)) for name, distance in rows if isinstance(distance, float))


def load_sqlite_vec(connection: apsw.Connection) -> None:
    """Make the vector table of a connection usable. Raises ``ImportError`` or ``apsw.Error``."""
    import sqlite_vec  # noqa: PLC0415  # an extra

    connection.enable_load_extension(True)  # noqa: FBT003  # SQLite's signature
    try:
        connection.load_extension(sqlite_vec.loadable_path())
    finally:
        connection.enable_load_extension(False)  # noqa: FBT003
