"""The vector port: what an index of vectors promises, whatever it is made of.

* Every row that is there is its own nearest neighbour, after any deletions (B64). Ties are broken by id.
* What is deleted, or to be skipped, is out before anything is ranked (B67): the one nearest is the nearest *live* row.
* A change is on the disk when the call returns (B70), and nothing of a deleted row is left in an older version (B72).
* A matrix of the wrong shape or type, and numbers that are not finite, are refused and change nothing.
* To delete what is not there is no error, so that a deletion can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from memprov.core.records import strings
from memprov.errors import InputError

__all__ = ["Near", "VectorIndex", "checked_limit", "checked_rows", "checked_vector", "unit_rows"]

Matrix = NDArray[np.float32]


@frozen
class Near:
    """A row that was found, and its Euclidean distance from what was looked for."""

    id: str
    distance: float


class VectorIndex(Protocol):
    """See the module. ``dimensions`` is fixed when an index is opened."""

    dimensions: int

    def put(self, ids: Sequence[str], matrix: Matrix) -> None:
        """Add rows, each in place of the one with its id."""

    def delete(self, ids: Iterable[str]) -> None:
        """Take rows out, for good."""

    def nearest(self, vector: Matrix, limit: int, *, skip: AbstractSet[str] = frozenset()) -> tuple[Near, ...]:
        """The nearest rows but for those to be skipped, nearest first."""

    def ids(self) -> frozenset[str]:
        """The ids of all rows."""


def checked_rows(ids: Sequence[str], matrix: Matrix, dimensions: int) -> tuple[tuple[str, ...], Matrix]:
    """The ids and their rows as contiguous little-endian float32. Raises ``InputError`` for what cannot be stored."""
    names = strings(ids)
    rows = _finite(matrix)
    if rows.shape != (len(names), dimensions):
        raise InputError(f"expected a matrix of {len(names)} rows and {dimensions} columns, got {rows.shape}")
    if len(set(names)) != len(names):
        raise InputError("an id is given twice")
    return names, rows


def checked_vector(vector: Matrix, dimensions: int) -> Matrix:
    """One vector to look for. Raises ``InputError``."""
    row = _finite(vector)
    if row.shape != (dimensions,):
        raise InputError(f"expected a vector of {dimensions} numbers, got {row.shape}")
    return row


def checked_limit(limit: int) -> int:
    """How many rows to find. Raises ``InputError`` for none."""
    if type(limit) is not int or limit < 1:
        raise InputError(f"a limit is a whole number of at least 1, not {limit!r}")
    return limit


def unit_rows(matrix: Matrix) -> Matrix:
    """The rows scaled to length one, so that distance orders as the cosine does. A row of zeros stays one."""
    wide = _finite(matrix).astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    scaled = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return np.ascontiguousarray(scaled, dtype="<f4")


def _finite(values: Matrix) -> Matrix:
    array = np.asarray(values)
    if array.dtype.kind != "f":
        raise InputError(f"vectors are floating-point numbers, not {array.dtype}")
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype="<f4")
    if not np.isfinite(narrow).all():
        raise InputError("a vector holds a number that is not finite, or too large")
    return narrow
