"""Where the host keeps the transcripts, it hands over a reader, and what was said and written is known from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import memprov
from memprov import Message, NativeStore, Selectors, SessionRecord, ToolCall

SAID = "The spare key is under the blue flower pot."
LIGHT = "memory/dreaming/light/2026-11-25.md"
S1 = Selectors(sessions=["s1"])


class Host:
    """A host with one conversation, which was ingested, and whose corpus somebody then deleted."""

    def __init__(self, directory: Path) -> None:
        self.store: NativeStore = memprov.open_store(directory)
        self.workspace = Path(self.store.identity.workspace_root)
        self.asked: list[str] = []
        self.messages: dict[str, list[Message]] = {
            "s1": [
                Message("user", SAID, number=1, timestamp_ms=1_795_597_200_000, sender_is_owner=True),
                Message(
                    "assistant",
                    "I wrote it down.",
                    number=2,
                    timestamp_ms=1_795_597_201_000,
                    tool_calls=[ToolCall("write", {"path": "memory/keys.md"})],
                ),
            ]
        }
        self.store.record_session(SessionRecord("main", "s1", "agent:main:s1"))
        memprov.ingest(self.store, self.read)
        self.write(LIGHT, f"# Light Sleep\n\n- Candidate: {SAID}\n  - confidence: 0.58\n")
        self.write("memory/notes.md", f"We talked. {SAID}\n")

    def read(self, session: SessionRecord) -> Iterable[Message] | None:
        """The host's reader."""
        self.asked.append(session.session_id)
        return self.messages.get(session.session_id)

    def write(self, path: str, text: str) -> None:
        """A file of the workspace."""
        (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (self.workspace / path).write_text(text)

    def lose_the_corpus(self) -> None:
        """As somebody does who clears up by hand."""
        for path in (self.workspace / "memory" / ".dreams" / "session-corpus").iterdir():
            path.unlink()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "store")


def test_D23_what_was_said_is_found_although_the_corpus_is_gone(host: Host) -> None:
    host.lose_the_corpus()
    host.asked.clear()
    plan = memprov.preview(host.store, S1, reader=host.read)
    assert [(s.path, s.line) for s in plan.report.suspects] == [("memory/notes.md", 1)]
    report = memprov.forget(host.store, S1, reader=host.read)
    assert host.asked == ["s1", "s1"], "a preview and a purge ask once each, however often they plan"
    assert report.suspects == plan.report.suspects
    assert (host.workspace / LIGHT).read_text() == "# Light Sleep\n\n"
    assert (host.workspace / "memory" / "notes.md").read_text() == f"We talked. {SAID}\n"
    assert memprov.preview(host.store, S1, reader=host.read).removes_nothing


def test_D23_a_saved_plan_is_applied_with_the_reader_that_it_was_made_with(host: Host) -> None:
    host.lose_the_corpus()
    plan = memprov.preview(host.store, S1, reader=host.read)
    memprov.apply_plan(host.store, memprov.PurgePlan.from_json(plan.to_json()), reader=host.read)
    assert SAID not in (host.workspace / LIGHT).read_text()


def test_F19_calls_in_a_transcript_of_the_hosts_are_listed(host: Host) -> None:
    report = memprov.preview(host.store, S1, reader=host.read).report
    assert report.curated_writes == (memprov.CuratedWriteLine("memory/keys.md", 1_795_597_201_000),)
    assert memprov.preview(host.store, S1).report.curated_writes == ()


@pytest.mark.parametrize(
    ("calls", "paths"),
    [
        ([{"type": "tool_use", "name": "edit", "input": {"file_path": "USER.md"}}], ["USER.md"]),
        ([{"function": {"name": "write", "arguments": '{"path": "memory/a.md"}'}}], ["memory/a.md"]),
        ([ToolCall("apply_patch", "*** Add File: memory/x/../b.md\n")], ["memory/b.md"]),
        ([ToolCall("write", {"path": "../MEMORY.md"}), ToolCall("read", {"path": "USER.md"})], []),
        ([ToolCall("write", {"path": "x.md", "cwd": "memory"})], ["memory/x.md"]),
    ],
)
def test_F19_calls_are_read_in_the_shapes_of_platforms(host: Host, calls: list[ToolCall], paths: list[str]) -> None:
    host.messages["s1"] = [Message("assistant", "ok", tool_calls=calls)]
    report = memprov.preview(host.store, S1, reader=host.read).report
    assert [write.relative_path for write in report.curated_writes] == paths


@pytest.mark.parametrize("calls", ["write", {"name": "write"}, [{"input": {}}], [None], 5])
def test_F19_what_is_no_call_is_refused_by_name(calls: object) -> None:
    with pytest.raises(memprov.InputError, match="tool"):
        Message("assistant", "x", tool_calls=calls)  # type: ignore[arg-type]


def test_a_reader_that_fails_is_a_warning_without_words(host: Host) -> None:
    def failing(session: SessionRecord) -> Iterable[Message]:
        raise OSError(f"{SAID} {session}")

    report = memprov.forget(host.store, S1, reader=failing)
    assert "the transcript of session s1 could not be read: OSError" in report.warnings
    assert SAID not in report.to_json()


def test_a_transcript_that_is_gone_changes_nothing(host: Host) -> None:
    plain = memprov.preview(host.store, S1)
    assert memprov.preview(host.store, S1, reader=lambda _: None).report == plain.report


def test_sessions_that_are_not_selected_are_not_asked_for(host: Host) -> None:
    host.store.record_session(SessionRecord("main", "s2", "agent:main:s2"))
    host.asked.clear()
    memprov.preview(host.store, Selectors(sessions=["s2", "never-seen"]), reader=host.read)
    assert host.asked == ["s2"]
