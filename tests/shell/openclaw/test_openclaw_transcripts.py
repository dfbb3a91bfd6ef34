"""Curated writes from transcripts (cases H), archives, and packed text: read in memory, never restored (D20)."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard

from memprov.core.purge import CutFile, Selectors, select_sessions
from memprov.core.records import CuratedWrite
from memprov.core.state import MemorySnapshot
from memprov.shell.runner import preview
from tests.shell.openclaw.lab import NOW, Lab, fingerprint

PATCH = (
    "*** Begin Patch\n*** Update File: MEMORY.md\n*** Move to: memory/b.md\n*** Delete File: USER.md\r\n*** End Patch"
)


def call(name: str, arguments: Any, *, kind: str = "toolCall", field: str = "arguments") -> dict[str, Any]:
    return {"type": kind, "id": "t", "name": name, field: arguments}


def message(*content: Any, role: str = "assistant", at: Any = NOW + 1) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": list(content), "timestamp": at}}


def snapshot(lab: Lab, *sessions: str) -> MemorySnapshot:
    store = lab.open()
    return store.snapshot(select_sessions(store.catalogue(), Selectors(sessions=sessions)))


def written(lab: Lab, *records: dict[str, Any], packed: bool = False) -> dict[str, int]:
    lab.session("s1")
    lab.says("s1", *records, packed=packed)
    return {write.path: write.observed_at_ms for write in snapshot(lab, "s1").transcript_writes}


def test_case_H3_a_write_is_listed_whether_or_not_it_succeeded(lab: Lab) -> None:
    result = {"type": "message", "message": {"role": "toolResult", "isError": True, "content": []}}
    assert written(lab, message(call("write", {"path": "USER.md"})), result) == {"USER.md": NOW + 1}


@pytest.mark.parametrize(
    "arguments",
    [PATCH, json.dumps({"input": PATCH}), {"input": PATCH}, {"patch": PATCH}, json.dumps({"patch": PATCH})],
)
def test_case_H5_a_patch_names_files(lab: Lab, arguments: Any) -> None:
    assert set(written(lab, message(call("apply_patch", arguments)))) == {"MEMORY.md", "memory/b.md", "USER.md"}


@pytest.mark.parametrize(
    "record",
    [
        message(call("Write", {"path": "MEMORY.md"})),
        message(call("bash", {"path": "MEMORY.md"})),
        message(call("write", {"path": "MEMORY.md"}), role="user"),
        message(call("write", {"path": "MEMORY.md"}, kind="text")),
        *(
            message(call("write", {"path": path}))
            for path in (
                "notes/MEMORY.md",
                "memory.md",
                "users/al/USER.md",
                "DREAMS.md",
                "../ws2/MEMORY.md",
                "/MEMORY.md",
            )
        ),
        message(call("write", {"path": "memory"})),
        message(call("write", {"path": ""})),
        message(call("write", {"path": 5})),
        message(call("write", "not json")),
        message(call("write", '"MEMORY.md"')),
        message(call("write", None)),
        message("MEMORY.md", 5, None),
        {"type": "message", "message": {"role": "assistant", "content": "MEMORY.md"}},
        {"type": "custom", "message": {"role": "assistant", "content": [call("write", {"path": "MEMORY.md"})]}},
    ],
)
def test_case_H7_what_is_no_write_to_memory(lab: Lab, record: dict[str, Any]) -> None:
    assert written(lab, record) == {}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"file_path": "memory/a.md"}, "memory/a.md"),
        ({"filePath": "./memory//x/../a.md"}, "memory/a.md"),
        ({"path": "a.md", "cwd": "memory"}, "memory/a.md"),
        ({"path": "a.txt", "cwd": "WS/memory/.dreams"}, "memory/.dreams/a.txt"),
        ({"path": "WS/MEMORY.md"}, "MEMORY.md"),
        ({"path": "memory/with blank .md "}, "memory/with blank .md "),
    ],
)
def test_paths_are_resolved_in_the_workspace(lab: Lab, arguments: dict[str, str], path: str) -> None:
    named = {name: value.replace("WS", str(lab.workspace)) for name, value in arguments.items()}
    assert set(written(lab, message(call("edit", named, field="input")))) == {path}


def test_absolute_paths_mean_the_configured_place_in_a_copied_directory(lab: Lab, tmp_path: Path) -> None:
    lab.session("s1")
    lab.says("s1", message(call("write", {"path": f"{lab.workspace}/MEMORY.md"})))
    moved = lab.workspace.rename(tmp_path / "moved")
    store = lab.open(workspace=moved)
    selection = select_sessions(store.catalogue(), Selectors(sessions=["s1"]))
    assert [write.path for write in store.snapshot(selection).transcript_writes] == ["MEMORY.md"]


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"memory/a.md": {}, "src/x": {}}, {"memory/a.md"}),
        ([{"path": "USER.md"}, {"path": "x", "kind": {"move_path": "memory/m.md"}}, 5], {"USER.md", "memory/m.md"}),
    ],
)
def test_changes_of_a_patch(lab: Lab, changes: Any, paths: set[str]) -> None:
    assert set(written(lab, message(call("apply_patch", {"changes": changes})))) == paths


@pytest.mark.parametrize(
    ("at", "record_at", "expected"),
    [
        (1795597202, None, 1795597202000),
        ("2026-11-25T09:00:02Z", None, 1795597202000),
        ("2026-11-25T09:00:02", None, 1795597202000),
        (None, "2026-11-25T09:00:02.000Z", 1795597202000),
        ("soon", True, NOW - 9),
        (0, None, NOW - 9),
    ],
)
def test_when_a_write_was_observed(lab: Lab, at: Any, record_at: Any, expected: int) -> None:
    lab.session("s1", created=NOW - 99, entry={"updatedAt": NOW - 9})
    lab.says("s1", {**message(call("write", {"path": "USER.md"}), at=at), "timestamp": record_at})
    assert [write.observed_at_ms for write in snapshot(lab, "s1").transcript_writes] == [expected]


def test_the_first_write_of_a_path_counts_and_only_selected_sessions_are_read(lab: Lab) -> None:
    lab.session("other")
    lab.says("other", message(call("write", {"path": "memory/other.md"})))
    first, second = message(call("write", {"path": "USER.md"}), at=NOW), message(call("edit", {"path": "USER.md"}))
    assert written(lab, first, second) == {"USER.md": NOW}
    assert lab.open().snapshot().transcript_writes == ()


def test_F19_transcripts_of_rotated_generations_are_read_too(lab: Lab) -> None:
    key = lab.session("old", "agent:main:x", current=False)
    lab.session("new", key)
    for session_id in ("old", "new"):
        lab.says(session_id, message(call("write", {"path": f"memory/{session_id}.md"})))
    assert {write.path for write in snapshot(lab, key).transcript_writes} == {"memory/new.md", "memory/old.md"}
    assert {write.path for write in snapshot(lab, "old").transcript_writes} == {"memory/old.md"}


WRITE = json.dumps(message(call("write", {"path": "USER.md"})))
DEEP = WRITE.replace('"id": "t"', f'"id": {"[" * 9000}{"]" * 9000}')


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (WRITE.replace('"id": "t"', '"id": "a\tb"'), False),
        (WRITE[:-9], False),
        ("\ufeff" + WRITE, False),
        (WRITE + WRITE, False),
        (WRITE.replace('"id": "t"', '"id": NaN'), False),
        (WRITE.replace('"id": "t"', '"id": -Infinity'), False),
        (DEEP[:-2], False),
        (DEEP.replace("]" * 9000, "]" * 8999 + "}"), False),
        (DEEP, True),
        (WRITE.replace('"id": "t"', '"id": "\\ud83d"'), True),
        (WRITE.replace('"id": "t"', '"id": "t", "id": "u"'), True),
        (WRITE.replace('"id": "t"', f'"id": {"9" * 5000}'), True),
        (WRITE.replace('"id": "t"', '"id": 1e999'), True),
        (f" \t{WRITE}\r", True),
    ],
)
@pytest.mark.parametrize("place", ["table", "packed", "archive"])
def test_F07_what_JSON_parse_reads_is_read_and_the_rest_is_counted(
    lab: Lab, line: str, *, read: bool, place: str
) -> None:
    lab.session("s1")
    lines = [line] if place == "table" else ['{"type": "session"}', "", line, line]
    data = "\n".join(lines).encode()
    if place == "archive":
        lab.archive("s1")
        blob = zstandard.compress(data)
        lab.main("UPDATE session_transcript_archives SET archive_blob = ?", blob)
    else:
        for seq, text in enumerate(lines):
            values = {"event_json": text} if place == "table" else {"event_zstd": zstandard.compress(text.encode())}
            lab.insert(lab.agent(), "transcript_events", session_id="s1", seq=seq, **values)
    found = snapshot(lab, "s1")
    assert [write.path for write in found.transcript_writes] == ["USER.md"] * read
    what = "an archived transcript" if place == "archive" else "the transcript"
    lost = "1 line of" if place == "table" else "2 lines of"
    assert found.unscanned == (() if read else (f"{lost} {what} of session s1 could not be read",))


@pytest.mark.parametrize("unpacked", [b"\0" * (1 << 27), b"{}\n" * (3 << 20)])
def test_F31_what_a_transcript_unpacks_to_is_bounded(lab: Lab, unpacked: bytes) -> None:
    lab.session("s1")
    lab.archive("s1")
    bomb = zstandard.compress(f"{WRITE}\n".encode()) + zstandard.compress(unpacked)
    assert len(bomb) < 100_000
    lab.main("UPDATE session_transcript_archives SET archive_blob = ?", bomb)
    tracemalloc.start()
    found = snapshot(lab, "s1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 28
    assert [write.path for write in found.transcript_writes] == ["USER.md"], "what was read before the bound counts"
    (sentence,) = found.unscanned
    assert sentence.startswith("an archived transcript of session s1 could not be read: ")


def test_D20_packed_transcripts_are_read_and_no_copy_is_made(lab: Lab) -> None:
    lab.session("s1")
    lab.says("s1", message(call("write", {"path": "USER.md"})), packed=True)
    lab.archive("a1", [message(call("write", {"path": "memory/a1.md"}))])
    sessions = lab.state / "agents" / "main" / "sessions"
    sessions.mkdir()
    for name, data in {
        "f1.jsonl.reset.2026-11-01T10-00-00Z": json.dumps(message(call("write", {"path": "memory/f1.md"}))).encode(),
        "f2.jsonl.deleted.2026-11-01T10-00-00.000Z.zst": zstandard.compress(
            b"\xff not json\n" + json.dumps(message(call("write", {"path": "memory/f2.md"}), at=None)).encode()
        ),
        "f3.jsonl.bak.2026-11-01T10-00-00.000Z": b"no archive",
    }.items():
        (sessions / name).write_bytes(data)
    before = fingerprint(lab.root)
    found = snapshot(lab, "s1", "a1", "f1", "f2", "f3").transcript_writes
    assert fingerprint(lab.root) == before
    age = (sessions / "f2.jsonl.deleted.2026-11-01T10-00-00.000Z.zst").stat().st_mtime_ns // 1_000_000
    assert set(found) == {
        CuratedWrite("USER.md", NOW + 1, "s1"),
        CuratedWrite("memory/a1.md", NOW + 1, "a1"),
        CuratedWrite("memory/f1.md", NOW + 1, "f1"),
        CuratedWrite("memory/f2.md", age, "f2"),
    }


@pytest.mark.parametrize("in_file", [False, True])
def test_D20_a_session_in_cold_storage_stays_there(lab: Lab, in_file: bool) -> None:
    lab.session("s1")
    event = {"seq": 1, "event_json": json.dumps(message(call("write", {"path": "USER.md"})))}
    lines = [{"kind": "header", "version": 1}, {"kind": "event", "row": event}, {"kind": "fts", "row": {"text": "x"}}]
    blob = zstandard.compress("\n".join(map(json.dumps, lines)).encode())
    name = "0" * 64 + ".jsonl.zst"
    values = {} if in_file else {"archive_blob": blob}
    lab.insert(lab.agent(), "session_transcript_cold_archives", session_id="s1", archive_name=name, **values)
    if in_file:
        cold = lab.state / "agents" / "main" / "sessions" / "cold"
        cold.mkdir(parents=True)
        (cold / name).write_bytes(blob)
    before = fingerprint(lab.root)
    assert [write.path for write in snapshot(lab, "s1").transcript_writes] == ["USER.md"]
    assert fingerprint(lab.root) == before


def test_a_transcript_that_cannot_be_read_is_named(lab: Lab) -> None:
    lab.session("cold")
    lab.insert(lab.agent(), "session_transcript_cold_archives", session_id="cold", archive_name="x.jsonl.zst")
    lab.archive("torn")
    lab.main("UPDATE session_transcript_archives SET archive_blob = x'28b52ffd0102'")
    found = snapshot(lab, "cold", "torn")
    assert found.transcript_writes == ()
    assert len(found.unscanned) == 2
    assert "the transcript of session cold could not be read" in found.unscanned[0]
    assert "an archived transcript of session torn could not be read" in found.unscanned[1]


@pytest.mark.parametrize(
    ("record", "internal"),
    [
        ({"type": "custom", "data": {"runId": "dreaming-narrative-7"}}, True),
        ({"type": "message", "sessionKey": "agent:main:dreaming-narrative-7"}, True),
        ({"type": "message", "message": {"role": "toolResult", "__openclaw": {"runId": "dreaming-narrative-7"}}}, True),
        ({"type": "message", "message": {"role": "user", "__openclaw": {"runId": "dreaming-narrative-7"}}}, False),
        ({"type": "custom", "data": {"sessionKey": "agent:main:cron:j:run:1"}}, True),
        ({"type": "custom", "data": {"runId": "run-7"}}, False),
    ],
)
def test_an_indexed_archive_of_unknown_kind_is_judged_by_its_content(
    lab: Lab, record: dict[str, Any], *, internal: bool
) -> None:
    lab.session("s1")
    name = lab.archive("a1", [record])
    lab.archive("a2", [record])  # nothing of it is indexed, so it is not read
    lab.chunk(f"sessions/main/{name}", "x", source="sessions")
    assert snapshot(lab, "s1").internal_sessions == ({"a1"} if internal else set())
    assert lab.open().snapshot().internal_sessions == frozenset()


def test_a_live_cron_mention_makes_no_conversation_internal(lab: Lab) -> None:
    lab.session("s1")
    lab.says("s1", {"type": "custom", "data": {"sessionKey": "agent:main:cron:j:run:1"}})
    lab.chunk("sessions/main/s1.jsonl", "x", source="sessions")
    assert snapshot(lab, "s1").internal_sessions == frozenset()


def test_archives_that_nobody_owns_are_passed_over_in_a_store_that_agents_share(lab: Lab) -> None:
    shared = lab.root / "shared"
    lab.make_agent_database(shared / "all.sqlite")
    lab.write_config({**lab.config, "session": {"store": str(shared / "all.sqlite")}})
    lab.session("alive", database=shared / "all.sqlite")
    record = json.dumps(message(call("write", {"path": "USER.md"})))
    for session_id in ("alive", "whose"):
        (shared / f"{session_id}.jsonl.reset.2026-11-01T10-00-00Z").write_text(record)
    assert [write.session_id for write in snapshot(lab, "alive", "whose").transcript_writes] == ["alive"]


SAID = {"type": "text", "text": "The spare key is under the blue flower pot."}


@pytest.mark.parametrize("place", ["window", "packed", "rotated", "archive", "file", "cold"])
def test_D23_what_was_said_is_read_wherever_the_transcript_lies(lab: Lab, place: str) -> None:
    record = message(SAID, role="user")
    sessions = lab.state / "agents" / "main" / "sessions"
    match place:
        case "window" | "packed":
            lab.session("s1")
            lab.says("s1", record, packed=place == "packed")
        case "rotated":
            lab.session("s2", lab.session("s1", "agent:main:x", current=False))
            lab.says("s1", record)
        case "archive":
            lab.archive("s1", [record])
        case "file":
            sessions.mkdir()
            (sessions / "s1.jsonl.deleted.2026-11-01T10-00-00.000Z").write_text(json.dumps(record))
        case "cold":
            lab.session("s1")
            row = {"kind": "event", "row": {"seq": 1, "event_json": json.dumps(record)}}
            values = {
                "archive_name": "0" * 64 + ".jsonl.zst",
                "archive_blob": zstandard.compress(json.dumps(row).encode()),
            }
            lab.insert(lab.agent(), "session_transcript_cold_archives", session_id="s1", **values)
    light = lab.workspace / "memory" / "dreaming" / "light" / "2026-11-25.md"
    light.parent.mkdir(parents=True)
    light.write_text(f"- Candidate: {SAID['text']}\n- Candidate: something else\n")
    plan = preview(lab.open(), Selectors(sessions=["s1"]))
    assert [effect.path for effect in plan.effects if isinstance(effect, CutFile)] == [
        "memory/dreaming/light/2026-11-25.md"
    ]


@pytest.mark.parametrize("key", ["agent:main:cron:j:run:1", "agent:main:subagent:x"])
def test_D23_what_is_no_conversation_said_nothing(lab: Lab, key: str) -> None:
    lab.session("s1", key)
    lab.says("s1", message(SAID, role="user"), message(call("write", {"path": "USER.md"})))
    found = snapshot(lab, "s1")
    assert [text.snippets for text in found.retained] == [()]
    assert len(found.transcript_writes) == 1
