"""Rows of plugin state: which belong to this workspace, and what is damage and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memprov.core.records import CuratedWrite, HostEvent, Preimage, RecallEntry, RewindBatch
from memprov.core.text import json_text
from memprov.errors import CorruptStoreError
from tests.shell.openclaw.lab import NOW, Lab, sha

RECALL = "short-term-recall"


def test_every_namespace_becomes_a_field(lab: Lab) -> None:
    recall = {"key": "inner", "path": "memory/2026-11-25.md", "snippet": "tea", "startLine": 3, "endLine": 4}
    lab.row(RECALL, "row", recall)
    lab.row("short-term-phase-signals", "sig", {"key": "sig", "lightHits": 1})
    lab.row("dreaming-session-ingestion-files", "main:sessions/main/s1", {"size": 1})
    for chunk in (0, 1):
        payload = {"scope": "main:sessions/main/s1", "index": chunk, "hashes": ["h"]}
        lab.row("dreaming-session-ingestion-seen", f"main:sessions/main/s1:{chunk}", payload)
    candidate = {"contentIndex": 0, "hash": "h", "scope": "s", "stateKey": "ключ"}
    lab.row("session-backfill-rewind", "digest", {"version": 1, "candidates": [candidate]})
    lab.row("session-backfill-rewind", "complete-baseline:main", {"version": 1, "complete": True, "agentId": "main"})
    event = lab.host_event(1, {"type": "memory.recall.recorded", "query": "чай", "results": []})
    lab.row("dreaming-memory-backups", "2026:abc", {"createdAt": "2026", "content": "# M\r\n", "contentHash": "x"})
    snapshot = lab.open().snapshot()
    assert snapshot.recall == (RecallEntry("inner", "memory/2026-11-25.md", "tea", 3, 4, "row"),)
    assert snapshot.signals == ("sig",)
    assert snapshot.checkpoints == ("main:sessions/main/s1",)
    assert snapshot.seen_scopes == ("main:sessions/main/s1",)
    assert snapshot.rewinds == (RewindBatch("digest", (json_text(candidate),)),)
    assert snapshot.preimages == (Preimage("2026:abc", "# M\r\n"),)
    (found,) = snapshot.events
    assert (found.key, json.loads(found.payload)["event"]["query"]) == (event, "чай")
    assert isinstance(found, HostEvent)


def test_another_workspaces_rows_are_nobodys_here(lab: Lab) -> None:
    other = "/srv/other"
    lab.row(RECALL, "k", {"key": "k"}, workspace=other)
    lab.host_event(1, {"type": "t"}, workspace=other)
    lab.observation("MEMORY.md", workspace=other)
    crossed = json_text({"version": 1, "workspaceKey": sha(other), "key": "k2", "value": {}})
    lab.state_row(RECALL, f"{sha(str(lab.workspace))}:{sha('k2')}", crossed)  # filed here, and says it is not ours
    snapshot = lab.open().snapshot()
    assert (snapshot.recall, snapshot.events, snapshot.ledger_writes) == ((), (), ())


NAMESPACES = [
    ("memory-core", RECALL, ":"),
    ("memory-core", "short-term-phase-signals", ":"),
    ("memory-core", "dreaming-session-ingestion-files", ":"),
    ("memory-core", "dreaming-session-ingestion-seen", ":"),
    ("memory-core", "session-backfill-rewind", ":"),
    ("memory-core", "dreaming-memory-backups", ":"),
    ("memory-core", "memory-host.events", ":event:"),
    ("core:memory-artifact-provenance", "workspace-files", ":"),
]


@pytest.mark.parametrize(("plugin", "namespace", "joint"), NAMESPACES)
@pytest.mark.parametrize("broken", ["{", "", '{"value": NaN}', "[" * 100_000])
def test_case_H9_broken_json_of_this_workspace_is_damage(
    lab: Lab, plugin: str, namespace: str, joint: str, broken: str
) -> None:
    key = sha(str(lab.workspace))[: 24 if joint == ":event:" else 64] + joint + "row"
    lab.state_row(namespace, key, broken, plugin=plugin)
    with pytest.raises(CorruptStoreError) as caught:
        lab.open().snapshot()
    assert namespace in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize(("plugin", "namespace", "joint"), NAMESPACES)
def test_case_H9_broken_json_of_another_workspace_is_not_looked_at(
    lab: Lab, plugin: str, namespace: str, joint: str
) -> None:
    for number, key in enumerate((sha("/srv/other"), sha("/srv/other")[:24], "", "zzz")):
        lab.state_row(namespace, f"{key}{joint}{number}", "{", plugin=plugin)
    lab.sql(lab.shared, "UPDATE plugin_state_entries SET value_json = CAST(x'ff' AS TEXT) WHERE entry_key LIKE '%1'")
    assert lab.open().snapshot().recall == ()


@pytest.mark.parametrize("payload", [None, 5, "text", [], {}, {"key": 5, "path": None, "startLine": "x"}])
def test_an_odd_payload_is_kept_under_its_row_key(lab: Lab, payload: Any) -> None:
    lab.row(RECALL, "k", payload)
    lab.row("session-backfill-rewind", "r", payload)
    lab.row("dreaming-memory-backups", "b", payload)
    lab.row("dreaming-session-ingestion-seen", "scope:3", payload)
    snapshot = lab.open().snapshot()
    assert [(r.key, r.row_key) for r in snapshot.recall] == [("k", "k")]
    assert (snapshot.rewinds, snapshot.preimages, snapshot.seen_scopes) == ((), (), ("scope",))


@pytest.mark.parametrize("value", ["5", "null", '"x"', "[]", "{}", '{"key": 5}'])
def test_a_value_that_names_no_workspace_is_not_ours(lab: Lab, value: str) -> None:
    lab.state_row(RECALL, f"{sha(str(lab.workspace))}:x", value)
    assert lab.open().snapshot().recall == ()


def test_expired_rows_are_gone(lab: Lab) -> None:
    for number, expires in enumerate((NOW - 1, NOW, NOW + 60_000, None)):
        key = f"k{number}"
        lab.row(RECALL, key, {"key": key})
        lab.sql(
            lab.shared, "UPDATE plugin_state_entries SET expires_at = ? WHERE value_json LIKE ?", expires, f"%{key}%"
        )
    assert [row.key for row in lab.open().snapshot().recall] == ["k2", "k3"]


def test_B32_odd_characters_survive(lab: Lab) -> None:
    text = "a\u2028b\u2029\x0c\x85\ufeff \U0001f375 \ud800 ' \" \\ \x00 end"
    lab.row("dreaming-memory-backups", "b", {"content": text})
    lab.row(RECALL, text.replace("\ud800", ""), {"snippet": text})
    snapshot = lab.open().snapshot()
    assert snapshot.preimages[0].content == text
    assert snapshot.recall[0].snippet == text


def test_text_of_this_workspace_that_is_not_utf8_is_damage(lab: Lab) -> None:
    lab.row(RECALL, "k", {})
    lab.sql(lab.shared, "UPDATE plugin_state_entries SET value_json = CAST(x'7bff7d' AS TEXT)")
    with pytest.raises(CorruptStoreError, match="UTF-8"):
        lab.open().snapshot()


# -- the observer's ledger


def test_case_H1_and_H2_the_ledger_is_read(lab: Lab) -> None:
    lab.observation("USER.md", sessionId="s1", observedAt=5)
    lab.observation("users/al/USER.md", sessionKey="agent:main:dashboard:x", observedAt=6)
    assert lab.open().snapshot().ledger_writes == (
        CuratedWrite("USER.md", 5, session_id="s1"),
        CuratedWrite("users/al/USER.md", 6, session_key="agent:main:dashboard:x"),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 2},
        {"workspaceKey": "x"},
        {"relativePath": ""},
        {"fileHash": "ABC"},
        {"originClass": "owner"},
        {"observedAt": 1.5},
        {"observedAt": "5"},
        {"observedAt": 2**60},
        {"observedAt": 1e400},
        {"reservationId": ""},
    ],
)
def test_what_is_no_observation_is_ignored(lab: Lab, fields: dict[str, Any]) -> None:
    if fields.get("observedAt") == float("inf"):
        lab.observation("MEMORY.md", observedAt=0)
        lab.sql(lab.shared, "UPDATE plugin_state_entries SET value_json = replace(value_json, 'At\":0', 'At\":1e400')")
    else:
        lab.observation("MEMORY.md", **fields)
    assert lab.open().snapshot().ledger_writes == ()
