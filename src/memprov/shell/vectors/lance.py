"""Exact search by LanceDB, in a directory of its own beside the ledger, for those who outgrow one file.

LanceDB keeps every version of a table. Its deletion only marks rows, notes the ids in a transaction file, and its
compaction leaves alone what has few marked rows (measured with 0.40: the bytes of one row in 2,000 stay). So a change
that takes rows out writes the survivors as a new table and drops all older versions: what is deleted is in no file when
the call returns (B72). Nobody else may have the table open meanwhile, which the workspace lock sees to.

The ledger stays the truth: this is a copy, filled from it, and never holds what the ledger does not.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from attrs import define, field

from memprov.errors import InputError, PartialError, SchemaError
from memprov.shell.vectors.port import Matrix, Near, checked_limit, checked_rows, checked_vector

__all__ = ["LanceVectors", "table_dimensions"]

_TABLE = "vectors"
_MORE = 64


@define(eq=False)
class LanceVectors:
    """A table of LanceDB in ``directory``. Raises ``SchemaError`` where LanceDB is not installed."""

    directory: str
    dimensions: int
    _arrow: Any = field(init=False, repr=False)
    _database: Any = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        lancedb, self._arrow = _modules()
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self._database = lancedb.connect(self.directory)
        table = self._table()
        if table is not None:
            held = table.schema.field("vector").type.list_size
            if held != self.dimensions:
                raise InputError(f"the table holds vectors of {held} numbers, not {self.dimensions}")

    def put(self, ids: Sequence[str], matrix: Matrix) -> None:
        """See ``VectorIndex``. Rows that are replaced are rewritten with all others."""
        names, rows = checked_rows(ids, matrix, self.dimensions)
        if not names:
            return
        with _explained():
            added = self._rows(names, rows)
            table = self._table()
            if table is None or not self.ids().isdisjoint(names):
                self._replace(self._without(frozenset(names), added))
            else:
                table.add(added)
                self._settle(table)

    def delete(self, ids: Iterable[str]) -> None:
        """See ``VectorIndex``."""
        gone = self.ids().intersection(ids)
        if gone:
            with _explained():
                self._replace(self._without(gone, None))

    def nearest(self, vector: Matrix, limit: int, *, skip: AbstractSet[str] = frozenset()) -> tuple[Near, ...]:
        """See ``VectorIndex``."""
        wanted, limit = checked_vector(vector, self.dimensions), checked_limit(limit)
        with _explained():
            table = self._table()
            count = table.count_rows() if table is not None else 0
            asked = min(limit + len(skip), limit + _MORE)
            while table is not None and count:
                asked = min(asked, count)
                query = table.search(wanted).distance_type("l2").select(["id", "_distance"]).limit(asked)
                rows = query.to_arrow().to_pylist()
                found = [Near(row["id"], float(np.sqrt(row["_distance"]))) for row in rows if row["id"] not in skip]
                # One more than needed, so that equal distances at the end are all seen and ordered by id.
                if len(found) > limit or asked >= count:
                    return tuple(sorted(found, key=lambda near: (near.distance, near.id))[:limit])
                asked *= 4
            return ()

    def ids(self) -> frozenset[str]:
        """See ``VectorIndex``."""
        with _explained():
            table = self._table()
            if table is None:
                return frozenset()
            return frozenset(table.search().select(["id"]).limit(None).to_arrow().column("id").to_pylist())

    def _table(self) -> Any:  # LanceDB has no types
        return _opened(self._database)

    def _rows(self, names: Sequence[str], matrix: Matrix) -> Any:
        arrow = self._arrow
        flat = arrow.array(matrix.reshape(-1), arrow.float32())
        vectors = arrow.FixedSizeListArray.from_arrays(flat, self.dimensions)
        return arrow.table({"id": arrow.array(names, arrow.string()), "vector": vectors})

    def _without(self, gone: AbstractSet[str], added: Any) -> Any:
        table = self._table()
        parts = [] if added is None else [added]
        if table is not None:
            held = table.to_arrow()
            kept = self._arrow.array([name not in gone for name in held.column("id").to_pylist()], self._arrow.bool_())
            parts.insert(0, held.filter(kept).cast(self._schema()))
        return self._arrow.concat_tables([part.cast(self._schema()) for part in parts])

    def _schema(self) -> Any:
        arrow = self._arrow
        vector = arrow.list_(arrow.float32(), self.dimensions)
        return arrow.schema([("id", arrow.string()), ("vector", vector)])

    def _replace(self, rows: Any) -> None:
        self._settle(self._database.create_table(_TABLE, rows, schema=self._schema(), mode="overwrite"))

    def _settle(self, table: Any) -> None:
        """Merge fragments, drop every version but the last, and put what is left on the disk."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other readers of older versions: there are none under the lock
            table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        _sync(self.directory)


def table_dimensions(directory: str) -> int | None:
    """How many numbers the vectors of the table there have; ``None`` where there is no table.

    Raises ``SchemaError`` where LanceDB is not installed.
    """
    lancedb, _ = _modules()
    with _explained():
        table = _opened(lancedb.connect(directory))
        return None if table is None else int(table.schema.field("vector").type.list_size)


def _modules() -> tuple[Any, Any]:
    try:
        import lancedb  # noqa: PLC0415  # an extra
        import pyarrow as pa  # noqa: PLC0415
    except ImportError as error:
        raise SchemaError(f"LanceDB is not installed ({error}): pip install memprov[lancedb]") from error
    return lancedb, pa


def _opened(database: Any) -> Any:
    listed = database.list_tables()
    return database.open_table(_TABLE) if _TABLE in getattr(listed, "tables", listed) else None


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise PartialError(f"the LanceDB table could not be used: {type(error).__name__}") from error


def _sync(directory: str) -> None:
    """Make files and names durable: LanceDB leaves that to the system (B70)."""
    for folder, _, names in os.walk(directory):
        for path in (*(os.path.join(folder, name) for name in names), folder):
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
