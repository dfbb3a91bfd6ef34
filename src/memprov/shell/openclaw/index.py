"""The memory index of one agent, read as columns.

Which chunks have a full-text row and which a vector is read from the shadow tables of FTS5 and sqlite-vec: they need no
extension, and they hold the row ids without the text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memprov.core.records import IndexSource, OriginClass, SessionKind
from memprov.core.state import ChunkTable
from memprov.core.text import to_text
from memprov.errors import CorruptStoreError
from memprov.shell.cells import Value, integer, text
from memprov.shell.sqlite import Reader

__all__ = ["CACHE", "CHUNKS", "PROVENANCE", "SOURCES", "STATE", "VECTORS", "count_cache", "read_chunks"]
__all__ += ["FULL_TEXT", "PATHS_FULL_TEXT", "RECALL_METADATA", "memory_texts", "paths_like", "read_revision"]
__all__ += ["read_indexed_digests", "read_sources"]

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
#: A chunk without provenance is untrusted, of an unknown kind (docs: Trust).
_WITHOUT = _CLASSES[OriginClass.UNTRUSTED], _KINDS[SessionKind.UNKNOWN]


def read_chunks(reader: Reader, where: str = "", bindings: tuple[Value, ...] = ()) -> ChunkTable:
    """The chunks for which the condition holds, by id; text of memory chunks only.

    The tables are read in the order in which they lie on the disk, and joined and sorted here: an ordered join in SQL
    looks up every row at random, which takes twice as long.
    """
    if not reader.has(CHUNKS):
        return ChunkTable.from_rows(())
    among = f"IN (SELECT c.id FROM {CHUNKS} AS c {where})" if where else "IS NOT NULL"
    provenance = _provenance(reader, f"WHERE chunk_id {among}", bindings)
    vectors = reader.rows(f"{VECTORS}_rowids", "id", where=f"WHERE id {among}", bindings=bindings)
    with_vector = frozenset(text(row[0]) for row in vectors)
    rows = sorted(reader.query(f"{_statement(reader)} {where}", bindings), key=lambda row: text(row[0]))
    ids = tuple(text(row[0]) for row in rows)
    pool: dict[str, int] = {}
    marks = [provenance.get(identifier, _WITHOUT) for identifier in ids]
    return ChunkTable(
        ids=ids,
        path_codes=np.array([pool.setdefault(text(row[1]), len(pool)) for row in rows], dtype=np.int32),
        paths=tuple(pool),
        is_session=np.array([bool(row[2]) for row in rows], dtype=np.bool_),
        classes=np.array([mark[0] for mark in marks], dtype=np.int8),
        kinds=np.array([mark[1] for mark in marks], dtype=np.int8),
        texts=tuple(to_text(row[3]) if isinstance(row[3], bytes) else "" for row in rows),
        full_text=np.array([bool(row[4]) for row in rows], dtype=np.bool_),
        vectors=np.array([identifier in with_vector for identifier in ids], dtype=np.bool_),
    )


def memory_texts(reader: Reader) -> Iterator[tuple[str, str, bytes]]:
    """The chunks of memory: id, path, and the bytes of the text."""
    if reader.has(CHUNKS):
        for identifier, path, body in reader.query(
            f"SELECT id, path, CAST(text AS BLOB) FROM {CHUNKS} WHERE source <> 'sessions'"
        ):
            yield text(identifier), text(path), body if isinstance(body, bytes) else b""


def paths_like(reader: Reader, where: str, bindings: tuple[Value, ...] = ()) -> Iterator[str]:
    """The distinct paths of the chunks, ``c``, for which the condition holds; ``p`` is their provenance."""
    if not reader.has(CHUNKS):
        return
    joined = f"LEFT JOIN {PROVENANCE} AS p ON p.chunk_id = c.id" if "p." in where else ""
    if joined and not reader.has(PROVENANCE):
        return
    for (path,) in reader.query(f"SELECT DISTINCT c.path FROM {CHUNKS} AS c {joined} WHERE {where}", bindings):
        yield text(path)


def _provenance(reader: Reader, where: str, bindings: tuple[Value, ...]) -> dict[str, tuple[int, int]]:
    """Chunk id -> the codes of its class and kind."""
    rows = reader.rows(PROVENANCE, "chunk_id origin_class session_kind", where=where, bindings=bindings)
    try:
        return {text(chunk): (_CLASSES[text(origin_class)], _KINDS[text(kind)]) for chunk, origin_class, kind in rows}
    except KeyError as error:
        raise CorruptStoreError(f"{reader.database.name}: a chunk has the unknown class or kind {error}") from None


def read_sources(reader: Reader, where: str = "", bindings: tuple[Value, ...] = ()) -> tuple[IndexSource, ...]:
    """The files and sessions that the index has seen, and for which the condition holds."""
    rows = reader.rows(SOURCES, "path source", where=f"{where} ORDER BY path, source", bindings=bindings)
    return tuple(IndexSource(text(path), text(source)) for path, source in rows)


def read_indexed_digests(reader: Reader) -> tuple[tuple[str, str], ...]:
    """The memory files that the index shows text of, and the digests of the texts that it was made from."""
    if not reader.has(CHUNKS):
        return ()
    shown = f"WHERE source = 'memory' AND path IN (SELECT path FROM {CHUNKS} WHERE source = 'memory') ORDER BY path"
    rows = reader.rows(SOURCES, "path source", "hash", where=shown)
    return tuple((text(path), text(made_from)) for path, _, made_from in rows)


def count_cache(reader: Reader) -> int:
    """The rows of the embedding cache."""
    return integer(next(reader.query(f"SELECT count(*) FROM {CACHE}"))[0]) if reader.has(CACHE) else 0


def read_revision(reader: Reader) -> int:
    """The fence that every change of the index raises."""
    return max((integer(row[0]) for row in reader.rows(STATE, "revision id")), default=0)


def _statement(reader: Reader) -> str:
    row_id = "c.chunk_rowid" if "chunk_rowid" in reader.columns(CHUNKS) else "c.rowid"
    full_text = "0"
    for table, column in ((f"{FULL_TEXT}_docsize", "id"), (f"{FULL_TEXT}_content", "id"), (FULL_TEXT, "rowid")):
        if reader.has(table):
            full_text = f"EXISTS (SELECT 1 FROM {table} AS f WHERE f.{column} = {row_id})"
            break
    return f"""
        SELECT c.id, c.path, c.source = 'sessions',
               CASE WHEN c.source = 'sessions' THEN NULL ELSE CAST(c.text AS BLOB) END,
               {full_text}
        FROM {CHUNKS} AS c"""
