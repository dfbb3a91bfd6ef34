"""What ingestion keeps in the shared ledger, as rows and as values: staged entries, checkpoints, seen hashes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import cast

import apsw

from memprov.core.records import OriginClass, Provenance, SessionKind
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.text import json_text, to_bytes
from memprov.shell.cells import Row, Value, from_raw, integer, text
from memprov.shell.statements import batches

__all__ = [
    "put_checkpoint",
    "put_entry",
    "read_checkpoints",
    "read_entries",
    "read_seen",
    "read_seen_of",
    "read_seen_scopes",
    "read_to_the_end",
]

_ENTRY = (
    "entry_key, CAST(path AS BLOB), start_line, end_line, CAST(snippet AS BLOB), recall_count, daily_count, "
    "grounded_count, total_score, max_score, first_recalled_at_ms, last_recalled_at_ms, query_hashes, "
    "user_query_hashes, recall_days, concept_tags, origin_class, session_kind, observed_at_ms, supersedes_key, "
    "claim_hash, project_key, promoted_at_ms"
)


def read_entries(connection: apsw.Connection) -> tuple[StagedEntry, ...]:
    """Every staged entry, by key."""
    rows = connection.execute(f"SELECT {_ENTRY} FROM recall ORDER BY entry_key")
    return tuple(_entry(row) for row in rows)


def put_entry(connection: apsw.Connection, entry: StagedEntry, now_ms: int) -> None:
    """Write an entry in place of the one with its key; a time that is missing is now."""
    known = entry.provenance
    provenance: tuple[Value, ...] = (None, None, None, None)
    if known is not None:
        provenance = (known.origin_class.value, known.session_kind.value, known.observed_at_ms, known.supersedes_key)
    first, last = entry.first_recalled_at_ms, entry.last_recalled_at_ms
    connection.execute(
        "INSERT OR REPLACE INTO recall VALUES (?, CAST(? AS TEXT), ?, ?, CAST(? AS TEXT)" + ", ?" * 18 + ")",
        (
            entry.key,
            to_bytes(entry.path),
            entry.start_line,
            entry.end_line,
            to_bytes(entry.snippet),
            entry.recall_count,
            entry.daily_count,
            entry.grounded_count,
            float(entry.total_score),
            float(entry.max_score),
            now_ms if first is None else first,
            now_ms if last is None else last,
            json_text(entry.query_hashes),
            json_text(entry.user_query_hashes),
            json_text(entry.recall_days),
            json_text(entry.concept_tags),
            *provenance,
            entry.claim_hash,
            entry.project_key,
            entry.promoted_at_ms,
        ),
    )


def read_checkpoints(connection: apsw.Connection, keys: Iterable[str] | None = None) -> tuple[Checkpoint, ...]:
    """Every checkpoint, or those with these state keys, by key."""
    if keys is not None:
        return tuple(found for batch in batches(sorted(keys)) for found in _checkpoints(connection, batch))
    return tuple(_checkpoints(connection, None))


def _checkpoints(connection: apsw.Connection, keys: str | None) -> Iterator[Checkpoint]:
    where = "" if keys is None else "WHERE state_key IN (SELECT value FROM json_each(?)) "
    rows = connection.execute(
        "SELECT state_key, mtime_ms, size, content_hash, line_count, last_content_line, excluded_reason "
        f"FROM checkpoints {where}ORDER BY state_key",
        () if keys is None else (keys,),
    )
    for key, mtime, size, digest, lines, last, why in rows:
        yield Checkpoint(
            text(key), integer(mtime), integer(size), text(digest), integer(lines), integer(last), _optional(why)
        )


def read_to_the_end(connection: apsw.Connection, agent_id: str) -> frozenset[str]:
    """The sessions of an agent whose transcripts, as they were then, were read to their end."""
    prefix = f"{agent_id}:sessions/{agent_id}/"
    rows = connection.execute(
        "SELECT substr(state_key, :after) FROM checkpoints WHERE substr(state_key, 1, :after - 1) = :prefix "
        "AND content_hash <> '' AND last_content_line >= line_count",
        {"after": len(prefix) + 1, "prefix": prefix},
    )
    return frozenset(text(row[0]) for row in rows)


def read_seen_scopes(connection: apsw.Connection) -> tuple[str, ...]:
    """The scopes that have seen hashes."""
    return tuple(text(row[0]) for row in connection.execute("SELECT scope FROM seen_scopes ORDER BY scope"))


def read_seen_of(connection: apsw.Connection, scope: str) -> tuple[str, ...]:
    """The seen hashes of a scope, oldest first."""
    rows = connection.execute(
        "SELECT h.hash FROM seen_scopes AS s JOIN seen_hashes AS h ON h.scope_id = s.scope_id WHERE s.scope = ? "
        "ORDER BY h.seen_id",
        (scope,),
    )
    return tuple(text(row[0]) for row in rows)


def put_checkpoint(connection: apsw.Connection, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in place of the one with its key."""
    connection.execute(
        "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            checkpoint.key,
            checkpoint.mtime_ms,
            checkpoint.size,
            checkpoint.content_hash,
            checkpoint.line_count,
            checkpoint.last_content_line,
            checkpoint.excluded_reason,
        ),
    )


def read_seen(connection: apsw.Connection) -> dict[str, tuple[str, ...]]:
    """Scope -> its seen hashes, oldest first."""
    rows = connection.execute(
        "SELECT s.scope, h.hash FROM seen_scopes AS s LEFT JOIN seen_hashes AS h ON h.scope_id = s.scope_id "
        "ORDER BY s.scope, h.seen_id"
    )
    return {
        text(scope): tuple(text(row[1]) for row in group if row[1] is not None)
        for scope, group in groupby(rows, key=itemgetter(0))
    }


def _entry(row: Row) -> StagedEntry:
    key, path, start, end, snippet, recall, daily, grounded, total, highest, first, last, *rest = row
    queries, user_queries, days, tags, origin_class, kind, observed, supersedes, claim, project, promoted = rest
    return StagedEntry(
        key=text(key),
        path=from_raw(path),
        start_line=integer(start),
        end_line=integer(end),
        snippet=from_raw(snippet),
        recall_count=integer(recall),
        daily_count=integer(daily),
        grounded_count=integer(grounded),
        total_score=float(cast("float", total)),
        max_score=float(cast("float", highest)),
        first_recalled_at_ms=integer(first),
        last_recalled_at_ms=integer(last),
        query_hashes=_list(queries),
        user_query_hashes=_list(user_queries),
        recall_days=_list(days),
        concept_tags=_list(tags),
        provenance=None
        if origin_class is None
        else Provenance(
            OriginClass(text(origin_class)), SessionKind(text(kind)), integer(observed), _optional(supersedes)
        ),
        claim_hash=_optional(claim),
        project_key=_optional(project),
        promoted_at_ms=None if promoted is None else integer(promoted),
    )


def _list(value: Value) -> Iterator[str]:
    return iter(cast("list[str]", json.loads(text(value))))


def _optional(value: Value) -> str | None:
    return None if value is None else text(value)
