"""Does the index hold together? Chunks, full text, vectors, cache and sources compared in both directions (B30).

A healthy index has a full-text row for each chunk, and no other; a vector for each chunk of an embedder, and no other;
a noted source and a provenance for each chunk; nothing of a session that may not be found; and a cache of nothing but
vectors of chunks. What is wrong is reported by id, and taken away on request, so that the next ``sync_index`` can put
right what is missing. A chunk without provenance is not given one: it goes, since nobody can answer for it.
"""

from __future__ import annotations

import apsw
from attrs import evolve, fields, frozen

from memprov.core.index import session_path
from memprov.core.records import OriginClass
from memprov.core.text import to_bytes
from memprov.core.writing import Purpose, decide_admission
from memprov.shell.cells import from_raw, integer, text
from memprov.shell.index.search import reading
from memprov.shell.native import NativeStore, embedded_only
from memprov.shell.native.curated import file_digest
from memprov.shell.native.ledger import FULL_TEXTS, delete_chunks, raise_revision
from memprov.shell.native.sessions import forgotten_ids, read_sessions
from memprov.shell.sqlite import explained
from memprov.shell.statements import batches, transaction
from memprov.shell.vectors.mirror import reflect

__all__ = ["ReconcileReport", "reconcile"]

Place = tuple[str, str]


@frozen
class ReconcileReport:
    """What does not belong together. All empty: the index is sound. Ids are sorted.

    ``full_text_orphans`` are row numbers; the others are chunk ids, chunk hashes (cache), or path and kind of source.
    ``origin_missing`` are chunks that nobody answers for: without provenance, or of a session that is not there or may
    not be found. ``repaired`` says that all this was taken away; what was missing comes back with the next sync.
    """

    vector_orphans: tuple[str, ...] = ()
    vector_missing: tuple[str, ...] = ()
    full_text_orphans: tuple[int, ...] = ()
    full_text_missing: tuple[str, ...] = ()
    cache_orphans: tuple[str, ...] = ()
    source_orphans: tuple[Place, ...] = ()
    source_missing: tuple[Place, ...] = ()
    origin_missing: tuple[str, ...] = ()
    repaired: bool = False

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not any(getattr(self, field.name) for field in fields(ReconcileReport) if field.name != "repaired")


@embedded_only
def reconcile(store: NativeStore, *, repair: bool = False) -> ReconcileReport:
    """Compare the parts of the index; with ``repair``, under the lock, take away what does not belong."""
    if not repair:
        with reading(store) as ledger:
            return _compare(ledger, store)
    with store.exclusive() as writer, explained(store._layout.ledger.database, "writing"):
        with transaction(writer._ledger):
            report = _compare(writer._ledger, store)
            if not report.sound:
                _repair(writer._ledger, report)
                raise_revision(writer._ledger)
        reflect(store._layout.ledger.path, writer._ledger)
    return evolve(report, repaired=not report.sound)


def _compare(ledger: apsw.Connection, store: NativeStore) -> ReconcileReport:
    def names(statement: str) -> tuple[str, ...]:
        return tuple(sorted(text(row[0]) for row in ledger.execute(statement)))

    chunked = _places(ledger, "SELECT DISTINCT CAST(path AS BLOB), source FROM chunks")
    noted = _places(ledger, "SELECT CAST(path AS BLOB), source FROM sources")
    return ReconcileReport(
        vector_orphans=names("SELECT chunk_id FROM vectors WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"),
        vector_missing=names(
            "SELECT chunk_id FROM chunks WHERE model <> 'fts-only' "
            "AND chunk_id NOT IN (SELECT chunk_id FROM vectors WHERE length(embedding) = 4 * dimensions)"
        ),
        full_text_orphans=tuple(
            sorted(
                integer(row[0])
                for index, texts in FULL_TEXTS
                for row in ledger.execute(
                    f"SELECT id FROM {index}_docsize WHERE id NOT IN (SELECT chunk_rowid FROM {texts})"
                )
            )
        ),
        full_text_missing=tuple(
            sorted(
                {
                    name
                    for index, texts in FULL_TEXTS
                    for name in names(
                        f"SELECT chunk_id FROM chunks WHERE chunk_rowid IN (SELECT chunk_rowid FROM {texts}) "
                        f"AND chunk_rowid NOT IN (SELECT id FROM {index}_docsize)"
                    )
                }
            )
        ),
        cache_orphans=names("SELECT DISTINCT hash FROM embedding_cache WHERE hash NOT IN (SELECT hash FROM chunks)"),
        source_orphans=tuple(sorted(place for place in noted - chunked if not _is_waiting(ledger, store, place))),
        source_missing=tuple(sorted(chunked - noted)),
        origin_missing=_unanswered(ledger, store._layout.agent_id),
    )


def _is_waiting(ledger: apsw.Connection, store: NativeStore, place: Place) -> bool:
    """Whether this is a file that has changed since it was indexed, by a purge, say: the next sync sees to it."""
    path, source = place
    rows = ledger.execute(
        "SELECT hash FROM sources WHERE path = CAST(? AS TEXT) AND source = ?", (to_bytes(path), source)
    )
    digest = file_digest(store._layout.workspace, path, store._calls) if source == "memory" else None
    return digest is not None and all(text(row[0]) != digest for row in rows)


def _places(ledger: apsw.Connection, statement: str, *bindings: str) -> frozenset[Place]:
    return frozenset((from_raw(path), text(source)) for path, source in ledger.execute(statement, bindings))


def _unanswered(ledger: apsw.Connection, agent_id: str) -> tuple[str, ...]:
    forgotten = forgotten_ids(ledger)
    known = {
        session_path(agent_id, session.session_id)
        for session in read_sessions(ledger, agent_id)
        if decide_admission(session, None, forgotten, Purpose.INDEXING).admitted
    }
    rows = ledger.execute(
        "SELECT c.chunk_id, CAST(c.path AS BLOB), c.source, p.origin_class FROM chunks AS c "
        "LEFT JOIN chunk_provenance AS p ON p.chunk_id = c.chunk_id WHERE c.source = 'sessions' OR p.chunk_id IS NULL"
    )
    return tuple(
        sorted(
            text(name)
            for name, path, source, origin_class in rows
            if origin_class is None
            or (source == "sessions" and (origin_class == OriginClass.SYSTEM or from_raw(path) not in known))
        )
    )


def _repair(ledger: apsw.Connection, report: ReconcileReport) -> None:
    """Take away what does not belong. A chunk that lacks something goes with its source, so that a sync sees to it."""
    if report.full_text_orphans or report.full_text_missing:
        # An orphan's words are known to nobody: only emptying the full text is sure to remove them.
        for index, texts in FULL_TEXTS:
            ledger.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
            ledger.execute(f"INSERT INTO {index} (rowid, text) SELECT chunk_rowid, text FROM {texts}")
    for batch in batches(report.vector_orphans):
        ledger.execute("DELETE FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?))", (batch,))
    affected = {*report.source_orphans, *report.source_missing}
    for batch in batches((*report.origin_missing, *report.vector_missing)):
        affected |= _places(
            ledger,
            "SELECT DISTINCT CAST(path AS BLOB), source FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))",
            batch,
        )
    for path, source in sorted(affected):
        rows = ledger.execute(
            "SELECT chunk_id FROM chunks WHERE path = CAST(? AS TEXT) AND source = ?", (to_bytes(path), source)
        )
        delete_chunks(ledger, tuple(text(row[0]) for row in rows))
        ledger.execute("DELETE FROM sources WHERE path = CAST(? AS TEXT) AND source = ?", (to_bytes(path), source))
    ledger.execute("DELETE FROM embedding_cache WHERE hash NOT IN (SELECT hash FROM chunks)")
