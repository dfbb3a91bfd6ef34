"""Taking a backfill back: what was staged and shown goes, and the transcripts are as if it had not read them.

Nothing of a tombstone is touched. Rows of another agent of the workspace stay, and so does what automatic ingestion or
recall have since confirmed, or promotion has made permanent: that is no longer the backfill's alone (B40).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from memprov.core.purge import DropRecall, DropSignals, rewind_key
from memprov.core.records import RewindBatch
from memprov.core.state import IngestState, StagedEntry
from memprov.core.text import digest, json_text
from memprov.core.writing.candidates import Candidate
from memprov.core.writing.diary import remove_backfill_blocks
from memprov.core.writing.effects import (
    DropSeenHashes,
    RecordRewind,
    ReplaceText,
    SetCheckpoints,
    TakeRewinds,
    WriteEffect,
)

__all__ = ["RollbackPlan", "RollbackReport", "plan_rollback", "rewind_batch"]

_CORPUS = "memory/.dreams/session-corpus/"


@frozen
class RollbackReport:
    """What a rollback takes back, in numbers."""

    entries: int = 0
    diary_blocks: int = 0
    lines: int = 0


@frozen
class RollbackPlan:
    """The effects of a rollback, in order; the batches, which say what to take back, go last."""

    effects: tuple[WriteEffect, ...]
    report: RollbackReport


@frozen
class _Taken:
    """One remembered line: the hash in its scope, its place in the transcript of its checkpoint, its JSON."""

    row: str
    state_key: str
    scope: str
    hash: str
    index: int


def rewind_batch(candidates: Iterable[Candidate]) -> RewindBatch:
    """What must be remembered of a batch, under the digest of its content."""
    rows = tuple(
        json_text({"contentIndex": c.index, "hash": c.hash, "scope": c.source.scope, "stateKey": c.source.state_key})
        for c in candidates
    )
    return RewindBatch(rewind_key(rows), rows)


def plan_rollback(state: IngestState) -> RollbackPlan:
    """Take back every backfill of the state's agent that has not been taken back before."""
    taken = [item for batch in state.rewinds for item in _mine(batch, state.agent_id)]
    keys = tuple(sorted(entry.key for entry in state.entries if _is_only_backfilled(entry, state)))
    effects: list[WriteEffect] = []
    blocks = 0
    if state.diary is not None:
        text, blocks = remove_backfill_blocks(state.diary.text, state.sibling_keys)
        if blocks:
            effects.append(ReplaceText(state.diary.path, digest(state.diary.text), text))
    if signals := tuple(sorted(state.signals.intersection(keys))):
        effects.append(DropSignals(signals))
    if keys:
        effects.append(DropRecall(keys))
    effects += _forget_progress(state, taken)
    effects += _take_batches(state)
    return RollbackPlan(tuple(effects), RollbackReport(len(keys), blocks, len(taken)))


def _is_only_backfilled(entry: StagedEntry, state: IngestState) -> bool:
    return (
        entry.grounded_count > 0
        and entry.daily_count == entry.recall_count == 0
        and entry.promoted_at_ms is None
        and entry.path.startswith(_CORPUS)
        and entry.key not in state.sibling_keys
    )


def _forget_progress(state: IngestState, taken: Iterable[_Taken]) -> Iterator[WriteEffect]:
    """The transcripts are read again from the first remembered line on, and those lines are news again."""
    hashes: dict[str, set[str]] = {}
    first: dict[str, int] = {}
    for item in taken:
        hashes.setdefault(item.scope, set()).add(item.hash)
        first[item.state_key] = min(first.get(item.state_key, item.index), item.index)
    for scope in sorted(hashes):
        known = state.seen.get(scope, ())
        if dropped := tuple(value for value in known if value in hashes[scope]):
            yield DropSeenHashes(scope, dropped, emptied=len(dropped) == len(known))
    rewound = tuple(
        evolve(checkpoint, last_content_line=first[checkpoint.key])
        for checkpoint in state.checkpoints
        if first.get(checkpoint.key, checkpoint.last_content_line) < checkpoint.last_content_line
    )
    if rewound:
        yield SetCheckpoints(rewound)


def _take_batches(state: IngestState) -> Iterator[WriteEffect]:
    """Drop the batches; of one that another agent has a part in, that part is kept."""
    gone = []
    for batch in state.rewinds:
        mine = {item.row for item in _mine(batch, state.agent_id)}
        kept = tuple(row for row in batch.candidates if row not in mine)
        if kept == batch.candidates and kept:
            continue
        gone.append(batch.key)
        if kept:
            yield RecordRewind(RewindBatch(rewind_key(kept), kept))
    if gone:
        yield TakeRewinds(gone)


def _mine(batch: RewindBatch, agent_id: str) -> Iterator[_Taken]:
    """The remembered lines of one agent; what is not in the form is nobody's."""
    for text in batch.candidates:
        row = json.loads(text)
        if not isinstance(row, dict):
            continue
        index, names = row.get("contentIndex"), [row.get(name) for name in ("stateKey", "scope", "hash")]
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            continue
        state_key, scope, hashed = (name if isinstance(name, str) else "" for name in names)
        if state_key and hashed and scope.startswith((f"{agent_id}:", f"archive:{agent_id}:")):
            yield _Taken(text, state_key, scope, hashed, index)
