"""The effects on plugin state: rows of the shared database, of this workspace only.

Each effect is one transaction. Only rows that the effect names are deleted or rewritten; a row that is rewritten keeps
its key and its time, and whatever else its value holds. ``before`` digests make a repetition harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from attrs import frozen

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
    trim_event,
)
from memprov.core.text import cut, digest, json_text
from memprov.errors import ConflictError
from memprov.shell.openclaw.state import (
    CHECKPOINTS,
    EVENTS,
    LEDGER_OWNER,
    LOCKS,
    META,
    OWNER,
    PREIMAGES,
    RECALL,
    REWINDS,
    SEEN,
    SIGNALS,
    TABLE,
    StateRow,
    candidates_of,
    event_rows,
    key_ranges,
    scope_of,
    wrapped_rows,
)
from memprov.shell.openclaw.values import Json
from memprov.shell.sqlite import Database, Reader, writing
from memprov.shell.statements import require_accounted

__all__ = ["StateEffect", "StateWriter"]

StateEffect = DropSignals | TrimRewinds | TrimEvents | DropRecall | DropCheckpoints | DropSeenScopes | CutPreimages


@frozen
class StateWriter:
    """Carries out the effects on the state rows of one workspace."""

    database: Database
    keys: tuple[str, ...]
    now_ms: int

    def apply(self, effect: StateEffect) -> None:
        """Carry out one effect."""
        with writing(self.database) as reader:
            if not reader.has(TABLE):
                raise ConflictError(f"{self.database.path} has lost its table {TABLE}; nothing was done to it")
            match effect:
                case DropSignals(keys):
                    self._drop_signals(reader, frozenset(keys))
                case DropRecall(row_keys):
                    self._drop(reader, RECALL, row_keys, lambda row: row.key)
                case DropCheckpoints(keys):
                    self._drop(reader, CHECKPOINTS, keys, lambda row: row.key)
                case DropSeenScopes(scopes):
                    self._drop(reader, SEEN, scopes, scope_of)
                case TrimRewinds():
                    self._trim_rewinds(reader, effect)
                case TrimEvents():
                    self._trim_events(reader, effect)
                case CutPreimages():
                    self._cut_preimages(reader, effect)

    def sweep(self) -> None:
        """Delete what has expired of this workspace: no reader sees it any more, and its text is still there."""
        with writing(self.database) as reader:
            if reader.has(TABLE) and "expires_at" in reader.columns(TABLE):
                for first, after in key_ranges(self.keys):
                    reader.connection.execute(
                        f"DELETE FROM {TABLE} WHERE plugin_id IN (?, ?) AND namespace <> ? "
                        "AND entry_key >= ? AND entry_key < ? AND expires_at <= ?",
                        (OWNER, LEDGER_OWNER, LOCKS, first, after, self.now_ms),
                    )

    def _rows(self, reader: Reader, namespace: str) -> list[StateRow]:
        return list(wrapped_rows(reader, namespace, self.keys, self.now_ms))

    def _drop(
        self, reader: Reader, namespace: str, names: Iterable[str], name_of: Callable[[StateRow], str]
    ) -> list[StateRow]:
        gone = frozenset(names)
        rows = [row for row in self._rows(reader, namespace) if name_of(row) in gone]
        _delete(reader, namespace, (row.entry_key for row in rows))
        return rows

    def _drop_signals(self, reader: Reader, keys: frozenset[str]) -> None:
        dropped = self._drop(reader, SIGNALS, keys, lambda row: row.key)
        workspaces = {row.envelope.get("workspaceKey") for row in dropped}
        for row in self._rows(reader, META):
            if row.key == "phase" and row.envelope.get("workspaceKey") in workspaces:
                moment = datetime.fromtimestamp(self.now_ms / 1000, UTC).isoformat(timespec="milliseconds")
                stamp = moment.replace("+00:00", "Z")
                _rewrite(reader, META, row.entry_key, _with(row, {**row.value, "updatedAt": stamp}))

    def _trim_rewinds(self, reader: Reader, effect: TrimRewinds) -> None:
        trims = {trim.key: trim for trim in effect.trims}
        rows = self._rows(reader, REWINDS)
        require_accounted("rewind rows", missing_rows(effect.trims, {row.key for row in rows}))
        for row in rows:
            trim, candidates = trims.get(row.key), candidates_of(row.value)
            if trim is None or candidates is None or rewind_key(candidates) != trim.before:
                continue
            if trim.whole:
                _delete(reader, REWINDS, [row.entry_key])
                continue
            gone = frozenset(trim.items)
            listed = row.value["candidates"]
            kept = [item for i, item in enumerate(listed if isinstance(listed, list) else ()) if i not in gone]
            key = trim.key_after or row.key
            value = _with(row, {**row.value, "candidates": kept}, key)
            prefix = row.entry_key.partition(":")[0]
            entry_key = row.entry_key if key == row.key else f"{prefix}:{digest(key)}"
            if entry_key != row.entry_key:
                _delete(reader, REWINDS, [entry_key])
            _rewrite(reader, REWINDS, row.entry_key, value, entry_key)

    def _trim_events(self, reader: Reader, effect: TrimEvents) -> None:
        trims = {trim.key: trim for trim in effect.trims}
        rows = list(event_rows(reader, self.keys, self.now_ms))
        require_accounted("host events", missing_rows(effect.trims, {entry_key for entry_key, _ in rows}))
        for entry_key, payload in rows:
            trim = trims.get(entry_key)
            if trim is None or digest(payload) != trim.before:
                continue
            if trim.whole:
                _delete(reader, EVENTS, [entry_key])
            else:
                _rewrite(reader, EVENTS, entry_key, trim_event(payload, trim.items))

    def _cut_preimages(self, reader: Reader, effect: CutPreimages) -> None:
        cuts = {(change.key, change.before): change for change in effect.cuts}
        rows = self._rows(reader, PREIMAGES)
        texts = ((row.key, row.value.get("content")) for row in rows)
        digests = {key: digest(content) for key, content in texts if isinstance(content, str)}
        require_accounted("preimages", effect.unaccounted(digests))
        for row in rows:
            content = row.value.get("content")
            change = cuts.get((row.key, digest(content))) if isinstance(content, str) else None
            if change is not None and isinstance(content, str):
                left = cut(content, change.spans)
                value = {**row.value, "content": left, "contentHash": digest(left)}
                _rewrite(reader, PREIMAGES, row.entry_key, _with(row, value))


def _with(row: StateRow, payload: Json, key: str | None = None) -> str:
    """The row's value around another payload."""
    return json_text({**row.envelope, **({} if key is None else {"key": key}), "value": payload})


def _delete(reader: Reader, namespace: str, entry_keys: Iterable[str]) -> None:
    reader.connection.executemany(
        f"DELETE FROM {TABLE} WHERE plugin_id = ? AND namespace = ? AND entry_key = ?",
        ((OWNER, namespace, key) for key in entry_keys),
    )


def _rewrite(reader: Reader, namespace: str, entry_key: str, value: str, new_key: str | None = None) -> None:
    reader.connection.execute(
        f"UPDATE {TABLE} SET value_json = ?, entry_key = ? WHERE plugin_id = ? AND namespace = ? AND entry_key = ?",
        (value, new_key or entry_key, OWNER, namespace, entry_key),
    )
