"""What memory-core keeps of a workspace in the shared database: rows of ``plugin_state_entries``.

A row belongs to a workspace by the digest in front of its key *and* the same digest inside its value (docs: Plugin
state). So the rows of another workspace are never looked into, and what is broken there is not our error, while a row
of this workspace that is not JSON is damage and not absence (case-H9). Which digest a namespace uses differs: that of
the lexical path for memory-core's wrapped rows, that of the real path for curated writes, the first 24 digits of the
latter's composed form for host events. All spellings that are known of the workspace are asked for in every namespace
(D12).

A row past its ``expires_at`` is gone for every reader of OpenClaw's, and so for this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from attrs import field, frozen

from memprov.core.purge import StatePart
from memprov.core.records import CuratedWrite, HostEvent, Preimage, RecallEntry, RewindBatch
from memprov.core.text import Gate, json_text, to_bytes
from memprov.errors import CorruptStoreError
from memprov.shell.cells import Value, integer, text
from memprov.shell.openclaw.values import Json, json_value, member, nonblank, object_of
from memprov.shell.sqlite import Reader

__all__ = [
    "CHECKPOINTS",
    "EVENTS",
    "LEDGER_OWNER",
    "LOCKS",
    "META",
    "OWNER",
    "PREIMAGES",
    "RECALL",
    "REWINDS",
    "SEEN",
    "SIGNALS",
    "TABLE",
    "StateRow",
    "StateRows",
    "candidates_of",
    "event_rows",
    "has_rows",
    "key_ranges",
    "read_ledger_writes",
    "read_part",
    "read_preimages",
    "read_recall",
    "read_state",
    "recorded_workspaces",
    "scope_of",
    "wrapped_rows",
]

OWNER = "memory-core"
RECALL = "short-term-recall"
SIGNALS = "short-term-phase-signals"
META = "short-term-meta"
LOCKS = "short-term-locks"
CHECKPOINTS = "dreaming-session-ingestion-files"
SEEN = "dreaming-session-ingestion-seen"
REWINDS = "session-backfill-rewind"
PREIMAGES = "dreaming-memory-backups"
EVENTS = "memory-host.events"
LEDGER_OWNER = "core:memory-artifact-provenance"
_LEDGER = "workspace-files"

TABLE = "plugin_state_entries"
_OF_WORKSPACE = "WHERE plugin_id = ? AND entry_key >= ? AND entry_key < ?"
_HASH = re.compile(r"[0-9a-f]{64}")
_CHUNK = re.compile(r":[0-9]+\Z")
_EVENT_PREFIX = 24
_SAFE_INTEGER = 2**53 - 1
#: For how many texts a namespace is searched before all of it is read.
_FEW = 16


@frozen
class StateRow:
    """One wrapped row: the key it is filed under, its logical key, its payload, and the object around that."""

    entry_key: str
    key: str
    payload: object = field(repr=False)
    envelope: Json = field(repr=False)

    @property
    def value(self) -> Json:
        """The payload, where that is an object."""
        return object_of(self.payload)


@frozen
class StateRows:
    """The state of a workspace as a snapshot has it, each list in the order of its keys."""

    recall: tuple[RecallEntry, ...] = ()
    signals: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    seen_scopes: tuple[str, ...] = ()
    rewinds: tuple[RewindBatch, ...] = ()
    events: tuple[HostEvent, ...] = ()
    preimages: tuple[Preimage, ...] = ()
    ledger: tuple[CuratedWrite, ...] = ()


def read_state(reader: Reader, keys: Iterable[str], now_ms: int) -> StateRows:
    """The rows of the workspace that is filed under these digests."""
    keys = tuple(sorted(keys))
    part = read_part(reader, keys, now_ms)
    return StateRows(
        recall=read_recall(reader, keys, now_ms),
        signals=part.signals,
        checkpoints=part.checkpoints,
        seen_scopes=part.seen_scopes,
        rewinds=part.rewinds,
        events=part.events,
        preimages=read_preimages(reader, keys, now_ms),
        ledger=read_ledger_writes(reader, keys, now_ms),
    )


def read_part(
    reader: Reader, keys: Iterable[str], now_ms: int, naming: frozenset[str] | None = None, gate: Gate | None = None
) -> StatePart:
    """The rows that are no recall rows: all of them, or at least the signals, the events that the gate lets through,
    and of the others those in which one of the texts ``naming`` may be.
    """
    keys = tuple(sorted(keys))

    def rows(namespace: str, naming: frozenset[str] | None = naming) -> list[StateRow]:
        return _in_order(wrapped_rows(reader, namespace, keys, now_ms, naming))

    return StatePart(
        signals=tuple(dict.fromkeys(row.key for row in rows(SIGNALS, None))),
        checkpoints=tuple(dict.fromkeys(row.key for row in rows(CHECKPOINTS) if not _is_exclusion_note(row))),
        seen_scopes=tuple(sorted({scope_of(row) for row in rows(SEEN)})),
        rewinds=tuple(dict.fromkeys(batch for row in rows(REWINDS) if (batch := _batch(row)))),
        events=tuple(HostEvent(key, payload) for key, payload in event_rows(reader, keys, now_ms, gate)),
    )


def read_recall(reader: Reader, keys: Iterable[str], now_ms: int) -> tuple[RecallEntry, ...]:
    """The short-term store, whose size its writer bounds."""
    return tuple(_recall(row) for row in _in_order(wrapped_rows(reader, RECALL, sorted(keys), now_ms)))


def read_preimages(reader: Reader, keys: Iterable[str], now_ms: int) -> tuple[Preimage, ...]:
    """The preimages, of which its writer keeps a few."""
    rows = _in_order(wrapped_rows(reader, PREIMAGES, sorted(keys), now_ms))
    return tuple(dict.fromkeys(found for row in rows if (found := _preimage(row))))


def _in_order(rows: Iterable[StateRow]) -> list[StateRow]:
    return sorted(rows, key=lambda row: (row.key, row.entry_key))


def _is_exclusion_note(row: StateRow) -> bool:
    """Whether a checkpoint only notes that its session is forgotten. That is what the tombstone says; sweeps write
    it anew, and a purge that dropped it would never be idle.
    """
    return member(row.value, "excludedReason").strip() == "forgotten"


def key_ranges(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where a workspace's rows lie among the keys of any namespace, as half-open ranges."""
    for key in keys:
        yield f"{key}:", f"{key};"
        yield f"{key[:_EVENT_PREFIX]}:event:", f"{key[:_EVENT_PREFIX]}:event;"


def has_rows(reader: Reader, keys: Iterable[str]) -> bool:
    """Whether memory-core has a row under one of these digests."""
    statement = f"SELECT 1 FROM {TABLE} {_OF_WORKSPACE} LIMIT 1"
    return reader.has(TABLE) and any(list(reader.query(statement, (OWNER, f"{key}:", f"{key};"))) for key in keys)


def recorded_workspaces(reader: Reader) -> frozenset[str]:
    """The workspaces that memory-core's rows name."""
    if not reader.has(TABLE):
        return frozenset()
    valid = "CASE WHEN json_valid(value_json) THEN json_extract(value_json, '$.workspaceDir') END"
    rows = reader.query(f"SELECT DISTINCT {valid} FROM {TABLE} WHERE plugin_id = ?", (OWNER,))
    return frozenset(path for (path,) in rows if isinstance(path, str) and path and "\0" not in path)


def wrapped_rows(
    reader: Reader, namespace: str, keys: Iterable[str], now_ms: int, naming: frozenset[str] | None = None
) -> Iterator[StateRow]:
    """memory-core's rows in a namespace; with ``naming``, at least those in whose JSON one of these texts may be."""
    for key in keys:
        for entry_key, value in _rows(reader, OWNER, namespace, f"{key}:", f"{key};", now_ms, naming):
            envelope = object_of(_parsed(reader, namespace, entry_key, value))
            logical = envelope.get("key")
            if envelope.get("workspaceKey") == key and isinstance(logical, str):
                yield StateRow(entry_key, logical, envelope.get("value"), envelope)


def event_rows(reader: Reader, keys: Iterable[str], now_ms: int, gate: Gate | None = None) -> list[tuple[str, str]]:
    """The host's memory events, as (row key, JSON text), oldest first within a spelling.

    With a gate, at least those whose text it lets through, and those of which the text does not tell.
    """
    found = {}
    for prefix in sorted({key[:_EVENT_PREFIX] for key in keys}):
        within = partial(_rows, reader, OWNER, EVENTS, f"{prefix}:event:", f"{prefix}:event;", now_ms)
        rows = within() if gate is None else chain(within(frozenset()), _sifted(within(), gate))
        for entry_key, value in rows:
            row = object_of(_parsed(reader, EVENTS, entry_key, value))
            if isinstance(row.get("event"), dict):
                found[entry_key] = value
    return sorted(found.items())


def _sifted(rows: Iterable[tuple[str, str]], gate: Gate) -> Iterator[tuple[str, str]]:
    return gate.sift((row, to_bytes(row[1])) for row in rows)


def candidates_of(payload: Json) -> tuple[str, ...] | None:
    """A rewind batch's candidates as JSON texts; ``None`` for a row that is no batch (the baseline marker)."""
    candidates = payload.get("candidates")
    return tuple(map(json_text, candidates)) if isinstance(candidates, list) else None


def scope_of(row: StateRow) -> str:
    """The dedupe scope that a row of seen hashes is a chunk of."""
    return member(row.value, "scope") or _CHUNK.sub("", row.key)


def _rows(
    reader: Reader,
    owner: str,
    namespace: str,
    first: str,
    after: str,
    now_ms: int,
    naming: frozenset[str] | None = None,
) -> Iterator[tuple[str, str]]:
    lives = "AND (expires_at IS NULL OR expires_at > ?)" if "expires_at" in reader.columns(TABLE) else ""
    bindings: tuple[Value, ...] = (owner, namespace, first, after, *((now_ms,) if lives else ()))
    named = ""
    if naming is not None and len(naming) <= _FEW:
        # Behind a backslash JSON may hold anything; and what is no JSON is damage, of whichever session (case-H9).
        named = f"""AND (EXISTS (SELECT 1 FROM json_each(?) AS named
            WHERE instr(CAST({TABLE}.value_json AS BLOB), unhex(named.value)))
            OR instr({TABLE}.value_json, char(92)) OR NOT json_valid({TABLE}.value_json))"""
        bindings = (*bindings, json_text([to_bytes(value).hex() for value in naming]))
    rows = reader.rows(
        TABLE,
        "entry_key value_json plugin_id namespace",
        where="WHERE plugin_id = ? AND namespace = ? AND entry_key >= ? AND entry_key < ? "
        f"{lives} {named} ORDER BY entry_key",
        bindings=bindings,
    )
    for entry_key, value, *_ in rows:
        yield text(entry_key), text(value)


def _parsed(reader: Reader, namespace: str, entry_key: str, value: str) -> object:
    try:
        return json_value(value)
    except ValueError as error:
        raise CorruptStoreError(f"{reader.database.name}: the row {entry_key} of {namespace} is not JSON") from error


def _recall(row: StateRow) -> RecallEntry:
    value = row.value
    return RecallEntry(
        key=member(value, "key") or row.key,
        path=member(value, "path"),
        snippet=member(value, "snippet"),
        start_line=integer(value.get("startLine")),
        end_line=integer(value.get("endLine")),
        row_key=row.key,
    )


def _batch(row: StateRow) -> RewindBatch | None:
    candidates = candidates_of(row.value)
    return None if candidates is None else RewindBatch(row.key, candidates)


def _preimage(row: StateRow) -> Preimage | None:
    content = row.value.get("content")
    return Preimage(row.key, content) if isinstance(content, str) else None


def read_ledger_writes(
    reader: Reader, keys: Iterable[str], now_ms: int, naming: frozenset[str] | None = None
) -> tuple[CuratedWrite, ...]:
    """The observer's record of writes to memory files; what is not in its form is ignored (docs: Curated writes).

    With ``naming``, at least the rows in whose JSON one of these texts may be.
    """
    found: dict[CuratedWrite, None] = {}
    for key in sorted(keys):
        for entry_key, value in _rows(reader, LEDGER_OWNER, _LEDGER, f"{key}:", f"{key};", now_ms, naming):
            record = object_of(_parsed(reader, _LEDGER, entry_key, value))
            if _is_observation(record, key):
                write = CuratedWrite(
                    path=member(record, "relativePath"),
                    observed_at_ms=integer(record["observedAt"]),
                    session_id=nonblank(record.get("sessionId")),
                    session_key=nonblank(record.get("sessionKey")),
                )
                found[write] = None
    return tuple(sorted(found, key=lambda write: (write.path, write.observed_at_ms)))


def _is_observation(record: Json, key: str) -> bool:
    observed = record.get("observedAt")
    return (
        record.get("version") == 1
        and record.get("workspaceKey") == key
        and bool(member(record, "relativePath"))
        and _HASH.fullmatch(member(record, "fileHash")) is not None
        and record.get("originClass") in ("agent", "untrusted")
        and isinstance(observed, int | float)
        and abs(observed) <= _SAFE_INTEGER
        and observed == int(observed)
        and bool(member(record, "reservationId"))
    )
