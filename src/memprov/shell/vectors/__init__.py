"""Finding the nearest vectors: one port and three implementations, all of them exact.

``ExactVectors`` (NumPy) and ``SqliteVecVectors`` read the vectors that the ledger holds beside its chunks, so that a
purge of the ledger is all there is to purge. ``LanceVectors`` keeps a copy of them in a directory of its own, for those
who outgrow one file; there, a deletion rewrites the table and drops its old versions.
"""

from memprov.shell.vectors.exact import ExactVectors, VectorMemory
from memprov.shell.vectors.lance import LanceVectors
from memprov.shell.vectors.port import Near, VectorIndex, unit_rows
from memprov.shell.vectors.sqlite_vec import SqliteVecVectors

__all__ = ["ExactVectors", "LanceVectors", "Near", "SqliteVecVectors", "VectorIndex", "VectorMemory", "unit_rows"]
