"""The memory index of one agent, read as columns.

Which chunks have a full-text row and which a vector is read from the shadow tables of FTS5 and sqlite-vec: they need no
extension, and they hold the row ids without the text.
"""

from __future__ import annotations

import numpy as np

from memprov.core.records import IndexSource, OriginClass, SessionKind
from memprov.core.snapshot import ChunkTable
from memprov.core.text import to_text
from memprov.errors import CorruptStoreError
from memprov.shell.openclaw.database import Reader
from memprov.shell.openclaw.values import Row, integer, text

__all__ = ["CACHE", "CHUNKS", "PROVENANCE", "SOURCES", "STATE", "VECTORS", "count_cache", "read_chunks"]
__all__ += ["FULL_TEXT", "PATHS_FULL_TEXT", "RECALL_METADATA", "read_revision", "read_sources"]

CHUNKS = "memory_index_chunks"
PROVENANCE = "memory_index_chunk_provenance"
RECALL_METADATA = "memory_index_chunk_recall_metadata"
FULL_TEXT = "memory_index_chunks_fts"
PATHS_FULL_TEXT = "memory_index_paths_fts"
VECTORS = "memory_index_chunks_vec"
SOURCES = "memory_index_sources"
STATE = "memory_index_state"
CACHE = "memory_embedding_cache"

_CLASSES = {str(value): code for code, value in enumerate(OriginClass)}
_KINDS = {str(value): code for code, value in enumerate(SessionKind)}
#: A chunk without provenance is untrusted, of an unknown kind (FACTS 3.5).
_CLASSES[""] = _CLASSES[OriginClass.UNTRUSTED]
_KINDS[""] = _KINDS[SessionKind.UNKNOWN]


def read_chunks(reader: Reader) -> ChunkTable:
    """Every chunk; text of memory chunks only."""
    rows = list(reader.query(_statement(reader))) if reader.has(CHUNKS) else []
    pool: dict[str, int] = {}
    try:
        classes = np.fromiter((_CLASSES[text(row[4])] for row in rows), dtype=np.int8, count=len(rows))
        kinds = np.fromiter((_KINDS[text(row[5])] for row in rows), dtype=np.int8, count=len(rows))
    except KeyError as error:
        raise CorruptStoreError(f"{reader.database.name}: a chunk has the unknown class or kind {error}") from None
    codes = np.fromiter((pool.setdefault(text(row[1]), len(pool)) for row in rows), dtype=np.int32, count=len(rows))
    return ChunkTable(
        ids=tuple(text(row[0]) for row in rows),
        paths=tuple(pool),
        path_codes=codes,
        is_session=_flags(rows, 2),
        classes=classes,
        kinds=kinds,
        texts=tuple(to_text(row[3]) if isinstance(row[3], bytes) else "" for row in rows),
        full_text=_flags(rows, 6),
        vectors=_flags(rows, 7),
    )


def read_sources(reader: Reader) -> tuple[IndexSource, ...]:
    """The files and sessions that the index has seen."""
    rows = reader.rows(SOURCES, "path source", where="ORDER BY path, source")
    return tuple(IndexSource(text(path), text(source)) for path, source in rows)


def count_cache(reader: Reader) -> int:
    """The rows of the embedding cache."""
    return integer(next(reader.query(f"SELECT count(*) FROM {CACHE}"))[0]) if reader.has(CACHE) else 0


def read_revision(reader: Reader) -> int:
    """The fence that every change of the index raises."""
    return max((integer(row[0]) for row in reader.rows(STATE, "revision")), default=0)


def _flags(rows: list[Row], column: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.fromiter((bool(row[column]) for row in rows), dtype=np.bool_, count=len(rows))


def _statement(reader: Reader) -> str:
    row_id = "c.chunk_rowid" if "chunk_rowid" in reader.columns(CHUNKS) else "c.rowid"
    full_text = vectors = "0"
    for table, column in ((f"{FULL_TEXT}_docsize", "id"), (f"{FULL_TEXT}_content", "id"), (FULL_TEXT, "rowid")):
        if reader.has(table):
            full_text = f"EXISTS (SELECT 1 FROM {table} AS f WHERE f.{column} = {row_id})"
            break
    if reader.has(f"{VECTORS}_rowids"):
        vectors = f"EXISTS (SELECT 1 FROM {VECTORS}_rowids AS v WHERE v.id = c.id)"
    provenance, columns = "", "NULL, NULL"
    if reader.has(PROVENANCE):
        provenance = f"LEFT JOIN {PROVENANCE} AS p ON p.chunk_id = c.id"
        columns = "p.origin_class, p.session_kind"
    return f"""
        SELECT c.id, c.path, c.source = 'sessions',
               CASE WHEN c.source = 'sessions' THEN NULL ELSE CAST(c.text AS BLOB) END,
               {columns}, {full_text}, {vectors}
        FROM {CHUNKS} AS c {provenance} ORDER BY c.id"""
