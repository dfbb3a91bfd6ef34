"""The rows of ``plugin_state_entries`` that a snapshot stands for: recall, signals, checkpoints, batches, events."""

from __future__ import annotations

from collections.abc import Iterator

from memprov.core.records import CuratedWrite, RecallEntry
from memprov.core.state import MemorySnapshot
from memprov.core.text import digest, json_text
from memprov.shell.openclaw.layout import workspace_key
from memprov.shell.openclaw.state import CHECKPOINTS, EVENTS, META, OWNER, PREIMAGES, RECALL, REWINDS, SEEN, SIGNALS

__all__ = ["state_rows"]

_STAMP = "2026-11-28T23:00:00.000Z"
_EVENT_PREFIX = 24

#: (plugin id, namespace, entry key, value as JSON)
_Row = tuple[str, str, str, str]


def state_rows(snapshot: MemorySnapshot, workspace: str) -> Iterator[_Row]:
    """Every row, in the order of the namespaces."""
    key = workspace_key(workspace)

    def wrapped(namespace: str, logical: str, value: str) -> _Row:
        head = f'{{"version":1,"workspaceKey":"{key}","workspaceDir":{json_text(workspace)}'
        return OWNER, namespace, f"{key}:{digest(logical)}", f'{head},"key":{json_text(logical)},"value":{value}}}'

    for row in snapshot.recall:
        yield wrapped(RECALL, row.row_key, json_text(_recall(row)))
    for name in snapshot.signals:
        signal = {"key": name, "lightHits": 1, "remHits": 0, "lastLightAt": _STAMP}
        yield wrapped(SIGNALS, name, json_text(signal))
    for name in ("recall", "phase"):
        yield wrapped(META, name, json_text({"updatedAt": _STAMP}))
    for name in snapshot.checkpoints:
        checkpoint = {"mtimeMs": 0, "size": 1, "contentHash": digest(name), "lineCount": 1, "lastContentLine": 1}
        yield wrapped(CHECKPOINTS, name, json_text(checkpoint))
    for scope in snapshot.seen_scopes:
        yield wrapped(SEEN, f"{scope}:0", json_text({"scope": scope, "index": 0, "hashes": [digest(scope)[:40]]}))
    for batch in snapshot.rewinds:
        yield wrapped(REWINDS, batch.key, f'{{"version":1,"candidates":[{",".join(batch.candidates)}]}}')
    for preimage in snapshot.preimages:
        content = {"createdAt": preimage.key[:24], "content": preimage.content, "contentHash": digest(preimage.content)}
        yield wrapped(PREIMAGES, preimage.key, json_text(content))
    for event in snapshot.events:
        yield OWNER, EVENTS, event.key, event.payload
    cursor = {"kind": "cursor", "lastSequence": len(snapshot.events)}
    yield OWNER, "memory-host.event-cursors", f"{key[:_EVENT_PREFIX]}:cursor", json_text(cursor)
    for write in snapshot.ledger_writes:
        value = json_text(_observation(write, key))
        yield "core:memory-artifact-provenance", "workspace-files", f"{key}:{digest(write.path)}", value


def _recall(row: RecallEntry) -> dict[str, object]:
    return {
        "key": row.key,
        "path": row.path,
        "startLine": row.start_line,
        "endLine": row.end_line,
        "source": "memory",
        "snippet": row.snippet,
        "recallCount": 0,
        "dailyCount": 1,
        "groundedCount": 0,
        "totalScore": 0.58,
        "maxScore": 0.58,
        "firstRecalledAt": _STAMP,
        "lastRecalledAt": _STAMP,
        "queryHashes": [digest(row.snippet)[:12]],
        "recallDays": [_STAMP[:10]],
        "conceptTags": ["note"],
    }


def _observation(write: CuratedWrite, key: str) -> dict[str, object]:
    known = {"sessionId": write.session_id, "sessionKey": write.session_key}
    return {
        "version": 1,
        "workspaceKey": key,
        "relativePath": write.path,
        "fileHash": digest(write.path),
        "originClass": "agent",
        "observedAt": write.observed_at_ms,
        **{name: value for name, value in known.items() if value is not None},
        "reservationId": digest(write.path)[:32],
    }
