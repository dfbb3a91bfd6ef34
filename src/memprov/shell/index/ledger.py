"""The index in a ledger: reading its state, and carrying out the effects on it.

Everything that is published together is one transaction, and every fence is asked inside of it. Chunks that stay as
they are are not rewritten. Whatever changes a chunk, a vector or a source raises the revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import apsw
from attrs import define, field

from memprov.core.index import (
    DropSource,
    IndexedChunk,
    IndexedSource,
    IndexEffect,
    IndexState,
    Present,
    PublishSource,
    Refusal,
    ReplaceIndex,
    check_generation,
    check_source,
)
from memprov.core.records import OriginClass, SessionRecord
from memprov.core.text import to_bytes
from memprov.shell.cells import from_raw, integer, text
from memprov.shell.native.ledger import delete_chunks, raise_revision
from memprov.shell.native.sessions import forgotten_ids, read_sessions
from memprov.shell.statements import batches

__all__ = ["FileLook", "Publication", "note_standing", "read_index_state", "read_standing", "revision_of"]

FileLook = Callable[[str], tuple[str | None, OriginClass | None]]
"""What a memory file is at this moment: the digest of its bytes, or ``None`` when it is not there, and its class."""

Place = tuple[str, str]


def revision_of(connection: apsw.Connection) -> int:
    """The index revision."""
    return integer(next(iter(connection.execute("SELECT revision FROM index_state")))[0])


def read_standing(connection: apsw.Connection) -> tuple[str | None, int]:
    """What a sync saw that left nothing to do, while the index is as it left it; and how many sources there are."""
    rows = connection.execute("SELECT value FROM meta WHERE name = 'index'")
    revision, _, seen = next((text(row[0]) for row in rows), "").partition(" ")
    sources = integer(next(iter(connection.execute("SELECT count(*) FROM sources")))[0])
    return seen if revision == str(revision_of(connection)) else None, sources


def note_standing(connection: apsw.Connection, seen: str) -> None:
    """Note what a sync saw, now that nothing is left to do."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (f"{revision_of(connection)} {seen}",))


def read_index_state(connection: apsw.Connection, agent_id: str) -> IndexState:
    """What a plan of the index is computed from. Chunks of a source that is not noted count as a source, too."""
    known: dict[Place, IndexedSource] = {
        (from_raw(path), text(source)): IndexedSource(from_raw(path), text(source), text(digest))
        for path, source, digest in connection.execute("SELECT CAST(path AS BLOB), source, hash FROM sources")
    }
    rows = connection.execute("""
        SELECT CAST(c.path AS BLOB), c.source, c.model, coalesce(p.origin_class, 'untrusted'), count(*)
        FROM chunks AS c LEFT JOIN chunk_provenance AS p ON p.chunk_id = c.chunk_id
        GROUP BY c.path, c.source, c.model, 4""")
    for path, source, model, origin_class, count in rows:
        place = (from_raw(path), text(source))
        before = known.get(place) or IndexedSource(*place, hash="")
        known[place] = IndexedSource(
            *place,
            hash=before.hash,
            chunks=before.chunks + integer(count),
            models=before.models | {text(model)},
            classes=before.classes | {OriginClass(text(origin_class))},
        )
    return IndexState(
        agent_id,
        revision_of(connection),
        forgotten_ids(connection),
        read_sessions(connection, agent_id),
        tuple(known[place] for place in sorted(known)),
    )


@define
class Publication:
    """One publication, within a transaction that the caller holds."""

    connection: apsw.Connection
    agent_id: str
    look: FileLook
    now_ms: int
    refusals: list[Refusal] = field(factory=list)
    published: list[str] = field(factory=list)
    added: int = 0
    removed: int = 0
    dropped: int = 0
    _hashes: set[str] = field(factory=set, init=False)

    def carry_out(self, effects: Iterable[IndexEffect]) -> None:
        """Publish what may be published; what may not is in ``refusals``.

        All that goes, goes before anything comes in, and at once: the full text pays for each deletion by itself.
        """
        tombstones = forgotten_ids(self.connection)
        sessions = {session.session_id: session for session in read_sessions(self.connection, self.agent_id)}
        wanted: list[PublishSource] = []
        gone: dict[Place, None] = {}
        for effect in effects:
            match effect:
                case PublishSource():
                    wanted.append(effect)
                case DropSource():
                    gone[effect.path, effect.source] = None
                case ReplaceIndex():
                    now = revision_of(self.connection)
                    change = check_generation(effect.revision, now)
                    if change is not None:
                        detail = f"from {effect.revision} to {now} while the index was being rebuilt"
                        self.refusals.append(Refusal("", "", change, queued=True, detail=detail))
                        return
                    gone.update(dict.fromkeys(self._places()))
                    wanted.extend(effect.sources)
        opened = [effect for effect in wanted if self._is_open(effect, tombstones, sessions)]
        for refusal in self.refusals:
            if not refusal.queued:
                gone[refusal.path, refusal.source] = None
        self._make_room(gone, opened)
        for effect in opened:
            self._publish(effect)
        self._trim_cache()
        if self.removed or self.dropped or self.published:
            raise_revision(self.connection)

    def _places(self) -> Iterator[Place]:
        """Every source that is noted or has chunks."""
        for table in ("sources", "chunks"):
            rows = self.connection.execute(f"SELECT DISTINCT CAST(path AS BLOB), source FROM {table}")
            yield from ((from_raw(path), text(source)) for path, source in rows)

    def _make_room(self, gone: Iterable[Place], opened: Iterable[PublishSource]) -> None:
        """Remove what these sources have and are not to keep, and the notes of those that are not published anew."""
        keep = {(e.fence.path, e.fence.source): frozenset(c.id for c in e.chunks) for e in opened}
        old: list[str] = []
        for path, source in dict.fromkeys((*gone, *keep)):
            place = to_bytes(path), source
            kept = keep.get((path, source), frozenset())
            rows = self.connection.execute(
                "SELECT chunk_id, hash FROM chunks WHERE path = CAST(? AS TEXT) AND source = ?", place
            )
            for name, hashed in rows:
                if name not in kept:
                    old.append(text(name))
                    self._hashes.add(text(hashed))
            if (path, source) not in keep:
                before = self.connection.total_changes()
                self.connection.execute("DELETE FROM sources WHERE path = CAST(? AS TEXT) AND source = ?", place)
                self.dropped += self.connection.total_changes() > before
        delete_chunks(self.connection, tuple(old))
        self.removed += len(old)

    def _trim_cache(self) -> None:
        """Let a vector leave the cache with the last chunk of its text, of which it would be the only trace (B38)."""
        for batch in batches(sorted(self._hashes)):
            self.connection.execute(
                "DELETE FROM embedding_cache WHERE hash IN (SELECT value FROM json_each(?)) "
                "AND hash NOT IN (SELECT hash FROM chunks)",
                (batch,),
            )

    def _is_open(self, effect: PublishSource, tombstones: frozenset[str], sessions: dict[str, SessionRecord]) -> bool:
        fence = effect.fence
        rows = self.connection.execute(
            "SELECT hash FROM sources WHERE path = CAST(? AS TEXT) AND source = ?", (to_bytes(fence.path), fence.source)
        )
        indexed = next((text(row[0]) for row in rows), None)
        digest, origin_class = (None, None) if fence.session_id is not None else self.look(fence.path)
        refusal = check_source(fence, Present(tombstones, sessions, indexed, digest, origin_class))
        if refusal is not None:
            self.refusals.append(refusal)
        return refusal is None

    def _publish(self, effect: PublishSource) -> None:
        path, source = effect.fence.path, effect.fence.source
        there = {
            text(row[0])
            for row in self.connection.execute(
                "SELECT chunk_id FROM chunks WHERE path = CAST(? AS TEXT) AND source = ?", (to_bytes(path), source)
            )
        }
        for chunk in effect.chunks:
            if chunk.id not in there:
                self._insert(chunk, path, source)
                self.added += 1
            self._describe(chunk)
        self.connection.execute(
            "INSERT INTO sources (path, source, hash, mtime_ms, size) VALUES (CAST(? AS TEXT), ?, ?, ?, ?) "
            "ON CONFLICT (path, source) DO UPDATE SET hash = excluded.hash, mtime_ms = excluded.mtime_ms, "
            "size = excluded.size",
            (to_bytes(path), source, effect.fence.hash, effect.mtime_ms, effect.size),
        )
        self.connection.executemany(
            "INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (c.provider, c.model, c.provider_key, c.hash, len(c.embedding) // 4, c.embedding, self.now_ms)
                for c in effect.cache
            ),
        )
        self.published.append(path)

    def _insert(self, chunk: IndexedChunk, path: str, source: str) -> None:
        self.connection.execute(
            "INSERT INTO chunks (chunk_id, path, source, start_line, end_line, hash, model, text, updated_at_ms) "
            "VALUES (?, CAST(? AS TEXT), ?, ?, ?, ?, ?, CAST(? AS TEXT), ?)",
            (
                chunk.id,
                to_bytes(path),
                source,
                chunk.start_line,
                chunk.end_line,
                chunk.hash,
                chunk.model,
                to_bytes(chunk.text),
                self.now_ms,
            ),
        )

    def _describe(self, chunk: IndexedChunk) -> None:
        known = chunk.provenance
        self.connection.execute(
            "INSERT OR REPLACE INTO chunk_provenance VALUES (?, ?, ?, ?, ?)",
            (
                chunk.id,
                known.origin_class.value,
                known.session_kind.value,
                known.observed_at_ms,
                known.supersedes_key,
            ),
        )
        if chunk.embedding is not None:
            self.connection.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                (chunk.id, len(chunk.embedding) // 4, chunk.embedding),
            )
