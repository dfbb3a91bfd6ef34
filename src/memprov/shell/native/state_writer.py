"""The effects on the shared ledger of a workspace, purge and write path alike; one transaction each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import apsw

from memprov.core.purge import (
    CutPreimages,
    DropCheckpoints,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    TrimEvents,
    TrimRewinds,
    missing_rows,
    rewind_key,
)
from memprov.core.records import RewindBatch
from memprov.core.text import cut, digest, to_bytes
from memprov.core.writing import (
    AddSeenHashes,
    DropSeenHashes,
    MarkPromoted,
    RecordArtifact,
    RecordRewind,
    ReleaseArtifact,
    SetCheckpoints,
    StageEntries,
    StorePreimage,
    TakeRewinds,
)
from memprov.shell.cells import from_raw, integer, text
from memprov.shell.native.curated import record_artifact, release_artifact
from memprov.shell.native.state import put_checkpoint, put_entry
from memprov.shell.statements import batches, require_accounted, transaction

__all__ = ["SharedEffect", "apply_shared"]

SharedEffect = (
    DropSignals
    | TrimRewinds
    | TrimEvents
    | DropRecall
    | DropCheckpoints
    | DropSeenScopes
    | CutPreimages
    | StageEntries
    | MarkPromoted
    | SetCheckpoints
    | AddSeenHashes
    | DropSeenHashes
    | RecordRewind
    | TakeRewinds
    | StorePreimage
    | RecordArtifact
    | ReleaseArtifact
)


def apply_shared(  # noqa: C901, PLR0912  # a table of cases
    connection: apsw.Connection, effect: SharedEffect, agent_id: str, now_ms: int
) -> None:
    """Carry out one effect on the workspace's rows."""
    with transaction(connection):
        match effect:
            case DropSignals(keys):
                _drop(connection, "signals", "entry_key", keys)
            case DropRecall(row_keys):
                _drop(connection, "recall", "entry_key", row_keys)
            case DropCheckpoints(keys):
                _drop(connection, "checkpoints", "state_key", keys)
            case DropSeenScopes(scopes):
                _drop(connection, "seen_scopes", "scope", scopes)
            case TakeRewinds(keys):
                _drop(connection, "rewind_batches", "batch_key", keys)
            case TrimRewinds():
                _trim_rewinds(connection, effect, now_ms)
            case CutPreimages():
                _cut_preimages(connection, effect)
            case TrimEvents():
                pass  # the embedded store keeps no event log
            case StageEntries():
                for entry in effect.entries:
                    put_entry(connection, entry, now_ms)
                _drop(connection, "recall", "entry_key", effect.evicted)
            case MarkPromoted():
                _mark_promoted(connection, effect, now_ms)
            case SetCheckpoints():
                for checkpoint in effect.checkpoints:
                    put_checkpoint(connection, checkpoint)
            case AddSeenHashes():
                _add_seen(connection, effect)
            case DropSeenHashes():
                _drop_seen(connection, effect)
            case RecordRewind(batch):
                if _candidates(connection, batch.key) != batch.candidates:
                    _put_rewind(connection, batch, now_ms)
            case StorePreimage():
                _store_preimage(connection, effect, now_ms)
            case RecordArtifact():
                record_artifact(connection, effect, agent_id, now_ms)
            case ReleaseArtifact():
                release_artifact(connection, effect)


def _drop(connection: apsw.Connection, table: str, column: str, keys: Iterable[str]) -> None:
    for batch in batches(keys):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (batch,))


def _mark_promoted(connection: apsw.Connection, effect: MarkPromoted, now_ms: int) -> None:
    for batch in batches(effect.keys):
        connection.execute(
            "UPDATE recall SET promoted_at_ms = ? WHERE entry_key IN (SELECT value FROM json_each(?))", (now_ms, batch)
        )


def _add_seen(connection: apsw.Connection, effect: AddSeenHashes) -> None:
    connection.execute("INSERT OR IGNORE INTO seen_scopes (scope) VALUES (?)", (effect.scope,))
    connection.executemany(
        "INSERT OR IGNORE INTO seen_hashes (scope_id, hash) SELECT scope_id, ? FROM seen_scopes WHERE scope = ?",
        [(value, effect.scope) for value in effect.hashes],
    )
    _drop_hashes(connection, effect.scope, effect.outdated)


def _drop_seen(connection: apsw.Connection, effect: DropSeenHashes) -> None:
    _drop_hashes(connection, effect.scope, effect.hashes)
    connection.execute(
        "DELETE FROM seen_scopes WHERE scope = ? "
        "AND NOT EXISTS (SELECT 1 FROM seen_hashes AS h WHERE h.scope_id = seen_scopes.scope_id)",
        (effect.scope,),
    )


def _drop_hashes(connection: apsw.Connection, scope: str, hashes: Iterable[str]) -> None:
    for batch in batches(hashes):
        connection.execute(
            "DELETE FROM seen_hashes WHERE scope_id = (SELECT scope_id FROM seen_scopes WHERE scope = ?) "
            "AND hash IN (SELECT value FROM json_each(?))",
            (scope, batch),
        )


def _candidates(connection: apsw.Connection, key: str) -> tuple[str, ...] | None:
    """A batch's candidates as they were given; ``None`` where there is no such batch."""
    if not list(connection.execute("SELECT 1 FROM rewind_batches WHERE batch_key = ?", (key,))):
        return None
    rows = connection.execute(
        "SELECT CAST(candidate AS BLOB) FROM rewind_candidates WHERE batch_key = ? ORDER BY position", (key,)
    )
    return tuple(from_raw(row[0]) for row in rows)


def _put_rewind(connection: apsw.Connection, batch: RewindBatch, now_ms: int) -> None:
    connection.execute("DELETE FROM rewind_batches WHERE batch_key = ?", (batch.key,))
    connection.execute("INSERT INTO rewind_batches VALUES (?, ?)", (batch.key, now_ms))
    connection.executemany(
        "INSERT INTO rewind_candidates VALUES (?, ?, CAST(? AS TEXT))",
        [(batch.key, position, to_bytes(candidate)) for position, candidate in enumerate(batch.candidates)],
    )


def _trim_rewinds(connection: apsw.Connection, effect: TrimRewinds, now_ms: int) -> None:
    """All rows are read before the first is written: the new key of one may be the old key of another."""
    present = {text(row[0]) for row in connection.execute("SELECT batch_key FROM rewind_batches")}
    require_accounted("rewind rows", missing_rows(effect.trims, present))
    kept = []
    for trim in effect.trims:
        candidates = _candidates(connection, trim.key)
        if candidates is not None and rewind_key(candidates) == trim.before:
            gone = frozenset(trim.items)
            kept.append((trim, tuple(c for i, c in enumerate(candidates) if i not in gone)))
    _drop(connection, "rewind_batches", "batch_key", (trim.key for trim, _ in kept))
    for trim, candidates in kept:
        if not trim.whole:
            _put_rewind(connection, RewindBatch(trim.key_after or trim.key, candidates), now_ms)


def _cut_preimages(connection: apsw.Connection, effect: CutPreimages) -> None:
    rows = connection.execute("SELECT preimage_key, CAST(content AS BLOB) FROM preimages")
    contents = {text(key): from_raw(content) for key, content in rows}
    require_accounted("preimages", effect.unaccounted({key: digest(content) for key, content in contents.items()}))
    for change in effect.cuts:
        if digest(contents[change.key]) == change.before:
            connection.execute(
                "UPDATE preimages SET content = CAST(? AS TEXT) WHERE preimage_key = ?",
                (to_bytes(cut(contents[change.key], change.spans)), change.key),
            )


def _store_preimage(connection: apsw.Connection, effect: StorePreimage, now_ms: int) -> None:
    """Keys begin with the time, each later than the one before, so that none hides another (docs: deviations)."""
    newest = connection.execute(
        "SELECT created_at_ms, CAST(content AS BLOB) FROM preimages ORDER BY created_at_ms DESC LIMIT 1"
    )
    for created, content in newest:
        if from_raw(content) == effect.content:
            return
        now_ms = max(now_ms, integer(created) + 1)
    moment = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    connection.execute(
        "INSERT INTO preimages VALUES (?, ?, CAST(? AS TEXT))",
        (f"{moment}:{digest(effect.content)[:12]}", now_ms, to_bytes(effect.content)),
    )
    outdated = connection.execute(
        "SELECT preimage_key FROM preimages ORDER BY created_at_ms DESC LIMIT -1 OFFSET ?", (effect.keep,)
    )
    _drop(connection, "preimages", "preimage_key", [text(row[0]) for row in outdated])
