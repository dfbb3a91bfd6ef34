"""Searching memory: full text and vectors, ranked together, with where each hit comes from.

What may not be seen is out *before* anything is ranked (B67): chunks of sessions that are forgotten, deleted or
internal, also those that a purge that was interrupted has not reached yet; and for automatic use whatever is not the
owner's or the agent's own (B29). A hit of a file that has changed since is passed over, whoever changed it: nothing
stale is shown. Both rankings are of one moment, read in one transaction.

The two are joined by reciprocal rank: a chunk scores ``1 / (60 + rank)`` in each ranking that it is in, which needs no
common scale of BM25 and distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, tzinfo
from typing import Literal, get_args

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from memprov.core.records import OriginClass, Provenance, SessionKind, eligible, frame_recall
from memprov.core.text import json_text, query_terms, stands_alone
from memprov.core.writing import Found, RecallReport, day_of, plan_recall
from memprov.errors import InputError, RefusedError, SchemaError
from memprov.shell.arguments import moment, need, zone_of
from memprov.shell.cells import from_raw, integer, text
from memprov.shell.index.embedding import Embedder, embed
from memprov.shell.index.ledger import revision_of
from memprov.shell.native import NativeStore, embedded_only
from memprov.shell.native.curated import file_digest
from memprov.shell.native.reader import QuietReading
from memprov.shell.statements import roll_back
from memprov.shell.vectors import ExactVectors, SqliteVecVectors, VectorIndex, VectorMemory
from memprov.shell.vectors.mirror import trusted_mirror
from memprov.shell.vectors.port import checked_limit

__all__ = ["Engine", "Hit", "reading", "record_recall", "search"]

Engine = Literal["auto", "exact", "sqlite-vec"]

_RANK_CONSTANT = 60
_TRIGRAM = 3
#: How many indexed pieces stand in for one of the query that is shorter.
_MOST_PIECES = 256
#: From how many chunks on it is worth asking how many of them hold a word.
_MANY_CHUNKS = 2_000
#: How many rows of each ranking are looked at for a page of hits.
_DEPTH = 4


@frozen
class Hit:
    """A chunk that was found. ``text`` is as it stands in memory: show ``framed`` to a model, never ``text``.

    ``score`` is the sum of reciprocal ranks; ``text_rank`` and ``vector_rank`` count from 1 and are ``None`` where the
    chunk is not in that ranking.
    """

    chunk_id: str
    path: str
    source: str
    start_line: int
    end_line: int
    provenance: Provenance
    score: float
    text_rank: int | None
    vector_rank: int | None
    text: str = field(repr=False)

    @property
    def framed(self) -> str:
        """The text inside a frame that says where it is from and that it cannot leave."""
        return frame_recall(self.text, self.provenance, source=f"{self.path}#L{self.start_line}-L{self.end_line}")


@embedded_only
def search(
    store: NativeStore,
    query: str,
    *,
    embedder: Embedder | None = None,
    limit: int = 10,
    automatic: bool = False,
    engine: Engine = "auto",
    memory: VectorMemory | None = None,
    record: bool = False,
    now_ms: int | None = None,
) -> tuple[Hit, ...]:
    """The best hits for a query, best first. Any text is a query: nothing in it is syntax.

    With the embedder of the index, hits by meaning are joined in. ``automatic`` is for text that goes into a prompt
    unasked: only what the owner or the agent answers for is found. ``engine`` says what compares vectors: LanceDB where
    the store uses it and NumPy otherwise (``auto``), NumPy, or sqlite-vec. ``memory`` keeps vectors between calls.
    ``record`` counts this as a recall, as ``record_recall`` does: for questions that somebody asked.
    """
    checked_limit(limit)
    if engine not in get_args(Engine):
        raise InputError(f"there is no engine {engine!r}, but {', '.join(get_args(Engine))}")
    if not isinstance(query, str):
        raise InputError(f"a query is text, not {query!r:.40}")
    hits = _found(store, query, embedder, limit, engine, memory, automatic=automatic)
    if record:
        record_recall(store, query, hits, now_ms=now_ms)
    return hits


@embedded_only
def record_recall(
    store: NativeStore, query: str, hits: Iterable[Hit], *, zone: tzinfo = UTC, now_ms: int | None = None
) -> RecallReport:
    """Count a question at the staged entries that its hits say: the signal by which they come to be promoted.

    Nothing but counts is written, so that what was forgotten since the search does not come back (I6). One question
    counts once for each day in ``zone``. Raises ``InputError`` for what is no hit, before anything is written.
    """
    now = moment(store, now_ms)
    today = day_of(now, zone_of(zone))
    found = [_hit(need(hit, Hit, "a hit")) for hit in hits]
    with store.exclusive() as writer:
        writer.stand_at(now)
        plan = plan_recall(writer.ingest_state(), need(query, str, "query"), found, now_ms=now, today=today)
        for effect in plan.effects:
            writer.write(effect)
    return plan.report


def _hit(hit: Hit) -> Found:
    """A hit for recall; it scores the share that its better rank has of what the first has."""
    ranks = [rank for rank in (hit.text_rank, hit.vector_rank) if rank is not None]
    score = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + min(ranks)) if ranks else 0.0
    return Found(hit.path, hit.text, score, by_meaning=hit.vector_rank is not None)


def _found(
    store: NativeStore,
    query: str,
    embedder: Embedder | None,
    limit: int,
    engine: Engine,
    memory: VectorMemory | None,
    *,
    automatic: bool,
) -> tuple[Hit, ...]:
    vector = _query_vector(query, embedder)
    with reading(store) as ledger:
        skip = _skipped(ledger, store._layout.agent_id, automatic=automatic)
        depth = limit * _DEPTH
        while True:
            ranks = [
                _by_text(ledger, query, skip, depth),
                ()
                if vector is None or embedder is None
                else _by_vector(store, ledger, vector, skip, depth, embedder.identity.name, engine, memory),
            ]
            hits = tuple(_fresh(store, _hits(ledger, *ranks), limit, automatic=automatic))
            if len(hits) == limit or all(len(ranking) < depth for ranking in ranks):
                return hits
            depth *= 4  # the hits of changed files took up the places


@contextmanager
def reading(store: NativeStore) -> Iterator[apsw.Connection]:
    """The ledger at one moment; beside a busy writer, too. Where nothing may be written, it is read without a trace."""
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(store._layout.ledger.writing())
        except SchemaError:
            raise
        except RefusedError:
            connection = apsw.Connection(":memory:")
            stack.callback(connection.close)
            QuietReading(store._sleep).read(store._layout.ledger, lambda ledger: _copied(connection, ledger))
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            roll_back(connection)


def _copied(copy: apsw.Connection, ledger: apsw.Connection) -> None:
    with copy.backup("main", ledger, "main") as backup:
        backup.step()


def _query_vector(query: str, embedder: Embedder | None) -> NDArray[np.float32] | None:
    if embedder is None or not query.strip():
        return None
    vector = embed(embedder, [query])[0]
    return vector if vector.any() else None


def _skipped(ledger: apsw.Connection, agent_id: str, *, automatic: bool) -> frozenset[str]:
    """The chunks that may not be found. Small tables answer this; the rows that hold text are not looked at."""
    prefix = f"sessions/{agent_id}/"
    sessions = ledger.execute(
        """
        WITH noted AS (SELECT path, substr(path, :after) AS name FROM sources WHERE source = 'sessions'),
        hidden AS (
            SELECT path FROM noted WHERE substr(path, 1, :after - 1) <> :prefix OR NOT EXISTS (
                SELECT 1 FROM sessions AS s
                WHERE s.session_id = CASE WHEN name LIKE '%.jsonl' THEN substr(name, 1, length(name) - 6) ELSE name END
                  AND s.kind NOT IN ('cron', 'heartbeat')
                  AND NOT EXISTS (SELECT 1 FROM tombstones AS t WHERE t.session_id = s.session_id)
            )
        )
        SELECT chunk_id FROM chunks WHERE source = 'sessions' AND path IN hidden
        """,
        {"prefix": prefix, "after": len(prefix) + 1},
    )
    internal = ledger.execute(
        "SELECT p.chunk_id FROM chunk_provenance AS p WHERE p.session_kind IN ('cron', 'heartbeat') UNION ALL "
        "SELECT p.chunk_id FROM chunk_provenance AS p WHERE p.origin_class = 'system' AND EXISTS ("
        "SELECT 1 FROM chunks AS c WHERE c.chunk_id = p.chunk_id AND c.source = 'sessions')"
    )
    skipped = {text(row[0]) for rows in (sessions, internal) for row in rows}
    if automatic:
        others = ledger.execute("SELECT chunk_id FROM chunk_provenance WHERE origin_class NOT IN ('owner', 'agent')")
        skipped.update(text(row[0]) for row in others)
    return frozenset(skipped)


def _by_text(ledger: apsw.Connection, query: str, skip: frozenset[str], depth: int) -> tuple[str, ...]:
    """The chunks that hold words of the query, or pieces of unspaced words, joined by reciprocal rank; behind them the
    chunks that hold its words inside others.
    """
    terms = query_terms(query)
    pieces = tuple(term for piece in terms.pieces for term in _indexed(ledger, piece))
    scores: dict[str, float] = {}
    for ranking in (
        _matching(ledger, "chunks_text", _telling(ledger, terms.words), skip, depth),
        _matching(ledger, "chunks_text_pieces", pieces, skip, depth),
    ):
        for rank, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1 / (_RANK_CONSTANT + rank)
    found = sorted(scores, key=lambda name: (-scores[name], name))
    if len(found) < depth:
        glued = (term for piece in terms.glued for term in _indexed(ledger, piece) if stands_alone(piece, term))
        found += _matching(ledger, "chunks_text_pieces", tuple(glued), skip, depth)
    return tuple(dict.fromkeys(found))[:depth]


def _telling(ledger: apsw.Connection, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without those that more than half of very many chunks hold, unless there are no others.

    BM25 gives such a word the weight of a millionth, at the price of looking at every chunk that holds it.
    """
    chunks = integer(next(iter(ledger.execute("SELECT count(*) FROM chunks_text_docsize")))[0])
    if chunks < _MANY_CHUNKS:
        return words
    ledger.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_terms USING fts5vocab ('main', 'chunks_text', 'row')")
    tokens = ledger.fts5_tokenizer("unicode61", [])

    def held(word: str) -> int:
        parts = tokens(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
        rows = (ledger.execute("SELECT doc FROM word_terms WHERE term = ?", (part,)) for part in parts)
        return min((next((integer(row[0]) for row in found), 0) for found in rows), default=0)

    return tuple(word for word in words if held(word) * 2 <= chunks) or words


def _indexed(ledger: apsw.Connection, piece: str) -> Iterator[str]:
    """A piece as the index has it, three characters at least: of a shorter one all terms that begin with it."""
    if len(piece) >= _TRIGRAM:
        yield piece
        return
    ledger.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.piece_terms USING fts5vocab ('main', 'chunks_text_pieces', 'row')"
    )
    rows = ledger.execute(
        "SELECT term FROM piece_terms WHERE term >= :piece AND term < :piece || char(1114111) LIMIT :most",
        {"piece": piece, "most": _MOST_PIECES},
    )
    yield from (term for row in rows if "\0" not in (term := text(row[0])))


def _matching(
    ledger: apsw.Connection, index: str, terms: tuple[str, ...], skip: frozenset[str], depth: int
) -> tuple[str, ...]:
    """The chunks that hold any of the terms, best first by BM25."""
    if not terms:
        return ()
    match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    rows = ledger.execute(
        f"""
        WITH skipped AS (
            SELECT chunk_rowid FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(:skip))
        ), ranked AS (
            SELECT f.rowid AS place, bm25({index}) AS score FROM {index} AS f
            WHERE f.{index} MATCH :match AND f.rowid NOT IN skipped ORDER BY score, place LIMIT :depth
        )
        SELECT coalesce(c.chunk_id, '') FROM ranked LEFT JOIN chunks AS c ON c.chunk_rowid = ranked.place
        ORDER BY ranked.score, c.chunk_id
        """,
        {"match": match, "skip": json_text(sorted(skip)), "depth": depth},
    )
    return tuple(text(row[0]) for row in rows)


def _by_vector(
    store: NativeStore,
    ledger: apsw.Connection,
    vector: NDArray[np.float32],
    skip: frozenset[str],
    depth: int,
    model: str,
    engine: Engine,
    memory: VectorMemory | None,
) -> tuple[str, ...]:
    others = ledger.execute("SELECT chunk_id FROM chunks WHERE model < :model OR model > :model", {"model": model})
    hidden = skip.union(text(row[0]) for row in others)
    index: VectorIndex | None = None
    path, dimensions = store._layout.ledger.path, len(vector)
    if engine == "sqlite-vec":
        index = SqliteVecVectors(ledger, dimensions)
    elif engine == "auto":
        index = trusted_mirror(path, revision_of(ledger), dimensions)
    if index is None:
        index = ExactVectors(ledger, dimensions, memory, (path, revision_of(ledger)))
    return tuple(near.id for near in index.nearest(vector, depth, skip=hidden))


def _hits(
    ledger: apsw.Connection, by_text: tuple[str, ...], by_vector: tuple[str, ...]
) -> Iterator[tuple[Hit, str | None]]:
    """The hits, best first, each with the digest of the file that it was made from."""
    ranks = [{name: rank for rank, name in enumerate(ranking, 1)} for ranking in (by_text, by_vector)]
    scores = {
        name: sum(1 / (_RANK_CONSTANT + ranking[name]) for ranking in ranks if name in ranking)
        for name in dict.fromkeys((*by_text, *by_vector))
    }
    for name in sorted(scores, key=lambda found: (-scores[found], found)):
        rows = ledger.execute(
            "SELECT CAST(c.path AS BLOB), c.source, c.start_line, c.end_line, CAST(c.text AS BLOB), "
            "coalesce(p.origin_class, 'untrusted'), coalesce(p.session_kind, 'unknown'), p.observed_at_ms, "
            "p.supersedes_key, s.hash FROM chunks AS c LEFT JOIN chunk_provenance AS p ON p.chunk_id = c.chunk_id "
            "LEFT JOIN sources AS s ON s.path = c.path AND s.source = c.source WHERE c.chunk_id = ?",
            (name,),
        )
        for path, source, start, end, body, origin_class, kind, observed, superseded, hashed in rows:
            known = Provenance(
                OriginClass(text(origin_class)),
                SessionKind(text(kind)),
                integer(observed),
                None if superseded is None else text(superseded),
            )
            hit = Hit(
                name,
                from_raw(path),
                text(source),
                integer(start),
                integer(end),
                known,
                scores[name],
                ranks[0].get(name),
                ranks[1].get(name),
                from_raw(body),
            )
            yield hit, None if hashed is None else text(hashed)


def _fresh(
    store: NativeStore, found: Iterator[tuple[Hit, str | None]], limit: int, *, automatic: bool
) -> Iterator[Hit]:
    """The first hits, but for rows without a noted source or any text, and those of files that have changed since."""
    current: dict[str, str | None] = {}
    for hit, hashed in found:
        if limit == 0:
            return
        if hashed is None or not hit.text or (automatic and not eligible(hit.provenance.origin_class)):
            continue
        if hit.source == "memory":
            if hit.path not in current:
                current[hit.path] = file_digest(store._layout.workspace, hit.path, store._calls)
            if current[hit.path] != hashed:
                continue
        limit -= 1
        yield hit
