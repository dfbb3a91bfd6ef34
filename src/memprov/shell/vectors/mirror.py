"""The LanceDB copy of a ledger's vectors: where it is, that it follows the ledger, and when it may be believed.

What is purged leaves the copy before it leaves the ledger: in the other order a crash between the two would leave
vectors that nothing remembers. For everything else the copy follows after the commit. It says which revision of the
ledger it is a copy of, and is asked only while that is the ledger's; otherwise the ledger itself is searched.

Where LanceDB is not installed, a purge removes the whole copy: it can be made again, what it holds may not stay.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress

import apsw
import numpy as np

from memprov.errors import PartialError, SchemaError
from memprov.shell.vectors.lance import LanceVectors, table_dimensions

__all__ = ["distrust", "mirror_directory", "purge_mirror", "reflect", "trusted_mirror"]

_NAME = "vectors.lance"
_REVISION = "revision"
_CHUNK = 20_000


def mirror_directory(ledger_path: str) -> str:
    """Where the copy is, if there is one: beside the ledger."""
    return os.path.join(os.path.dirname(ledger_path), _NAME)


def purge_mirror(ledger_path: str, connection: apsw.Connection, chunk_ids: Iterable[str]) -> None:
    """Take these chunks out, and whatever the ledger does not hold; durable when this returns."""
    directory = mirror_directory(ledger_path)
    if not os.path.isdir(directory):
        return
    distrust(ledger_path)
    try:
        dimensions = table_dimensions(directory)
        if dimensions is None:
            return
        mirror = LanceVectors(directory, dimensions)
        mirror.delete(mirror.ids() - _ids(connection, dimensions).difference(chunk_ids))
    except SchemaError:
        _remove(directory)


def distrust(ledger_path: str) -> None:
    """Say that the copy is behind, before the ledger moves on."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(mirror_directory(ledger_path), _REVISION))


def reflect(ledger_path: str, connection: apsw.Connection) -> None:
    """Bring the copy up to the ledger, where there is one and LanceDB is installed."""
    directory = mirror_directory(ledger_path)
    if not os.path.isdir(directory):
        return
    rows = connection.execute("SELECT dimensions, count(*) FROM vectors GROUP BY dimensions ORDER BY 2 DESC LIMIT 1")
    dimensions = next((int(str(row[0])) for row in rows), None)
    distrust(ledger_path)
    with suppress(SchemaError):  # not installed: it stays behind, and is not asked
        held = table_dimensions(directory)
        if held not in (None, dimensions):
            _remove(directory)
            os.makedirs(directory, mode=0o700)
        if dimensions is not None:
            mirror = LanceVectors(directory, dimensions)
            there, wanted = mirror.ids(), _ids(connection, dimensions)
            mirror.delete(there - wanted)
            _copy(connection, mirror, sorted(wanted - there))
        revision = next(iter(connection.execute("SELECT revision FROM index_state")))[0]
        with open(os.path.join(directory, _REVISION), "w", encoding="ascii") as file:
            file.write(str(revision))


def trusted_mirror(ledger_path: str, revision: int, dimensions: int) -> LanceVectors | None:
    """The copy, if it is of this revision and can be opened."""
    directory = mirror_directory(ledger_path)
    try:
        with open(os.path.join(directory, _REVISION), encoding="ascii") as file:
            if file.read() != str(revision):
                return None
        if table_dimensions(directory) != dimensions:
            return None
        return LanceVectors(directory, dimensions)
    except (OSError, SchemaError):
        return None


def _copy(connection: apsw.Connection, mirror: LanceVectors, ids: list[str]) -> None:
    for start in range(0, len(ids), _CHUNK):
        part = ids[start : start + _CHUNK]
        blobs = [
            next(iter(connection.execute("SELECT embedding FROM vectors WHERE chunk_id = ?", (name,))))[0]
            for name in part
        ]
        matrix = np.frombuffer(b"".join(blob for blob in blobs if isinstance(blob, bytes)), dtype="<f4")
        mirror.put(part, matrix.reshape(len(part), mirror.dimensions))


def _ids(connection: apsw.Connection, dimensions: int) -> frozenset[str]:
    rows = connection.execute(
        "SELECT chunk_id FROM vectors WHERE dimensions = ? AND length(embedding) = 4 * dimensions", (dimensions,)
    )
    return frozenset(str(row[0]) for row in rows)


def _remove(directory: str) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise PartialError(f"the copy of the vectors in {directory} cannot be removed: {error.strerror}") from error
