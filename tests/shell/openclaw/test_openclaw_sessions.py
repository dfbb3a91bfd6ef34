"""The catalogue: one record for each transcript generation, with what the documents say about each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memprov.core.purge import Selectors, select_sessions
from memprov.core.records import Identity, SessionKind, SessionRecord, SessionState
from memprov.errors import CorruptStoreError
from tests.shell.openclaw.lab import NOW, Lab


def catalogue(lab: Lab) -> dict[str, SessionRecord]:
    return {record.session_id: record for record in lab.open().catalogue()}


def test_current_windows_are_live_and_rotated_ones_retained(lab: Lab) -> None:
    key = lab.session("old", "agent:main:dashboard:a", current=False, created=NOW - 5)
    lab.session("new", key, created=NOW)
    records = lab.open().catalogue()
    assert [(r.session_id, r.state, r.session_key) for r in records] == [
        ("old", SessionState.RETAINED, key),
        ("new", SessionState.LIVE, key),
    ]
    selection = select_sessions(records, Selectors(sessions=[key]))
    assert selection.session_ids == ("new", "old")


def test_metadata_comes_from_columns(lab: Lab) -> None:
    lab.session("s", chat_type="group", channel="telegram", created=5)
    lab.session("t", chat_type="party", channel="")
    s, t = catalogue(lab)["s"], catalogue(lab)["t"]
    assert (s.chat_type, s.channel, s.created_at_ms, s.hook_source) == ("group", "telegram", 5, None)
    assert (t.chat_type, t.channel) == (None, None)


@pytest.mark.parametrize(
    ("entry", "columns", "expected"),
    [
        ({"hookExternalContentSource": "email"}, {"hook_external_content_source": "webhook"}, "email"),
        ({"hookExternalContentSource": "gmail"}, {}, "gmail"),
        ({}, {"hook_external_content_source": "gmail", "session_entry_provenance": 1}, "gmail"),
        ({}, {"hook_external_content_source": "gmail", "session_entry_provenance": 0}, None),
        ({}, {"hook_external_content_source": "webhook", "session_entry_provenance": 1}, None),  # coarse: mail, too
        ({"hookExternalContentSource": "email", "sessionId": "another"}, {}, None),
    ],
)
def test_case_B9_the_exact_hook_source(
    lab: Lab, entry: dict[str, Any], columns: dict[str, Any], expected: str | None
) -> None:
    lab.session("s", entry=entry, **columns)
    assert catalogue(lab)["s"].hook_source == expected


def test_a_retained_window_does_not_inherit_the_records_hook_source(lab: Lab) -> None:
    columns: dict[str, Any] = {"hook_external_content_source": "webhook", "session_entry_provenance": 1}
    key = lab.session("old", "agent:main:hook:w", current=False, **columns)
    lab.session("new", key, entry={"hookExternalContentSource": "webhook"}, **columns)
    assert [catalogue(lab)[i].hook_source for i in ("old", "new")] == [None, "webhook"]


CRON = "agent:main:cron:job:run:1"


@pytest.mark.parametrize(
    ("key", "entry", "kind", "internal"),
    [
        ("agent:main:dashboard:x", {}, "interactive", False),
        (CRON, {}, "cron", True),
        (f"{CRON}:sub", {}, "cron", True),
        ("agent:main:cron:job", {}, "interactive", False),
        ("agent:main:dashboard:x", {"spawnedBy": CRON}, "cron", True),
        ("agent:main:dashboard:x", {"parentSessionKey": "agent:main:child"}, "cron", True),  # a grandchild
        ("agent:main:dashboard:x", {"parentSessionKey": "agent:main:gone"}, "interactive", False),
        ("agent:main:loop", {"parentSessionKey": "agent:main:loop"}, "interactive", False),
        ("agent:main:dashboard:x", {"heartbeatIsolatedBaseSessionKey": "agent:main:main"}, "heartbeat", True),
        ("agent:main:dashboard:x", {"heartbeatIsolatedBaseSessionKey": "  "}, "interactive", False),
        ("agent:main:x:subagent:y", {}, "subagent", False),
        ("agent:main:dashboard:x", {"spawnedBy": "agent:main:parent"}, "subagent", False),
        ("agent:main:dreaming-narrative-1", {}, "subagent", True),
        ("agent:main:dashboard:x", {"spawnedBy": "agent:main:dreaming-narrative-1"}, "subagent", True),
    ],
)
def test_kind_follows_descent(lab: Lab, key: str, entry: dict[str, Any], kind: str, *, internal: bool) -> None:
    lab.session("child", "agent:main:child", entry={"spawnedBy": CRON})
    lab.session("s", key, entry=entry)
    assert catalogue(lab)["s"].kind == kind
    assert ("s" in lab.open().snapshot().internal_sessions) == internal


def test_parents_are_read_from_columns_where_the_record_names_none(lab: Lab) -> None:
    lab.session("w", spawned_by=CRON)
    lab.session("n")
    lab.main("UPDATE session_nodes SET parent_session_key = ? WHERE current_session_id = 'n'", CRON)
    records = catalogue(lab)
    assert [records[i].kind for i in ("w", "n")] == [SessionKind.CRON, SessionKind.CRON]
    assert [records[i].parent_key for i in ("w", "n")] == [CRON, CRON]


def test_archives_are_listed_beside_live_sessions(lab: Lab) -> None:
    lab.session("both", created=NOW - 50)
    lab.archive("both", created=NOW)
    lab.archive("gone", key="agent:main:dashboard:gone", created=NOW + 1)
    found = [
        (r.session_id, str(r.state), str(r.kind), r.created_at_ms or r.archived_at_ms) for r in lab.open().catalogue()
    ]
    assert found == [
        ("both", "live", "interactive", NOW - 50),
        ("both", "archived", "interactive", NOW),
        ("gone", "archived", "unknown", NOW + 1),
    ]
    resolved = select_sessions(lab.open().catalogue(), Selectors(sessions=["agent:main:dashboard:gone"])).resolutions
    assert [(r.session_id, str(r.source)) for r in resolved] == [("gone", "archived")]  # case-B6


def test_an_archive_file_without_a_record_selects_nothing(lab: Lab) -> None:
    """As measured: such a session is unresolved, though its transcript is read."""
    sessions = lab.state / "agents" / "main" / "sessions"
    sessions.mkdir()
    (sessions / "kiln.jsonl.deleted.2026-11-01T10-00-00.000Z").write_text("")
    assert lab.open().catalogue() == ()


@pytest.mark.parametrize(
    ("key", "kind", "internal"),
    [
        (CRON, "cron", True),
        ("agent:main:main:heartbeat", "heartbeat", True),
        ("agent:main:dreaming-narrative-1", "subagent", True),
        ("agent:main:x:subagent:y", "subagent", False),
    ],
)
def test_an_archives_key_says_what_it_was(lab: Lab, key: str, kind: str, *, internal: bool) -> None:
    lab.archive("a", key=key)
    assert catalogue(lab)["a"].kind == kind
    assert ("a" in lab.open().snapshot().internal_sessions) == internal


def test_I11_internal_sessions_are_this_agents(lab: Lab) -> None:
    lab.session("x", "agent:helper:cron:job:run:1")
    assert lab.open().snapshot().internal_sessions == frozenset()


def participant(lab: Lab, key: str, namespace: str, actor: str) -> None:
    lab.insert(lab.agent(), "session_participants", session_key=key, identity_namespace=namespace, actor_id=actor)


def test_participants_belong_to_every_window_of_a_key(lab: Lab) -> None:
    key = lab.session("old", "agent:main:dashboard:a", current=False)
    lab.session("new", key)
    participant(lab, key, '{"type":"profile"}', "p7")
    observed = {"type": "observation", "pluginId": "tg", "accountId": None, "senderKind": "human"}
    participant(lab, key, json.dumps(observed), "p7")
    expected = {Identity("profile", "p7"), Identity("observation", "p7", plugin_id="tg", sender_kind="human")}
    assert [set(r.participants) for r in lab.open().catalogue()] == [expected, expected]


@pytest.mark.parametrize("namespace", ["", "{", "[]", '{"type":"ghost"}', '{"type":"profile","extra":1}'])
def test_a_malformed_participant_is_damage(lab: Lab, namespace: str) -> None:
    key = lab.session("s")
    participant(lab, key, namespace, "p7")
    with pytest.raises(CorruptStoreError, match="dashboard:s"):
        lab.open().catalogue()


def test_a_session_record_that_is_no_json_is_damage(lab: Lab) -> None:
    lab.session("s")
    lab.main("UPDATE session_nodes SET entry_json = '{\"sessionId\": NaN}'")
    with pytest.raises(CorruptStoreError, match="dashboard:s"):
        lab.open().catalogue()


def test_ids_and_keys_are_opaque(lab: Lab) -> None:
    odd = ["S1", "s1", "s1 ", "agent:main:x", "ключ", "a\u2028b", "\U0001f375", "x" * 5000, "%", "'"]
    for number, session_id in enumerate(odd):
        lab.session(session_id, f"agent:main:dashboard:{number}")
    assert {r.session_id for r in lab.open().catalogue()} == set(odd)
