"""Stories of the write path, from messages to what can be seen, through public names alone.

Each is a capability that the documents promise, or an input on which an earlier version failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from memprov import IngestReport, Message, NativeStore, SessionRecord, Skipped, ingest, open_store, search, sync_index

T = 1_795_597_200_000
DAY = 86_400_000
TEA = "I prefer oolong tea over coffee in the morning."
BIKE = "My bicycle is a green Kestrelwing touring model."


def owner(text: str, at_ms: int = T, **more: Any) -> Message:
    return Message("user", text, timestamp_ms=at_ms, sender_is_owner=True, **more)


@define
class Gateway:
    """A host: a store and its conversations. What is no message stands for what a platform hands over by mistake."""

    store: NativeStore
    chats: dict[str, Iterable[Any]] = field(factory=dict)

    def say(self, session_id: str, *messages: Any, **known: Any) -> None:
        self.store.record_session(
            SessionRecord("main", session_id, f"agent:main:{session_id}", created_at_ms=T, **known)
        )
        self.chats[session_id] = messages

    def read(self, session: SessionRecord, /) -> Iterable[Message]:
        chat = self.chats[session.session_id]
        for message in chat:
            if isinstance(message, Exception):
                raise message
            yield message() if callable(message) else message

    def ingest(self, **more: Any) -> IngestReport:
        return ingest(self.store, self.read, now_ms=T + DAY, **more)

    @property
    def corpus(self) -> str:
        files = sorted(Path(self.store.layout.workspace).rglob("session-corpus/*"))
        return "".join(file.read_text(encoding="utf-8") for file in files)


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    return Gateway(open_store(tmp_path / "store"))


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        (OSError("no such file: the spare key is under the pot"), "OSError"),
        ({"role": "user", "content": TEA}, "InputError: message 2 of a transcript is a dict, not a memprov.Message"),
        (lambda: Message("human", TEA), "InputError: the role of a message is 'human'"),  # type: ignore[arg-type]
        (lambda: Message("user", timestamp_ms=T, content=5), "InputError: the content of a message is 5"),  # type: ignore[arg-type]
    ],
    ids=["raises", "no message", "no role", "no content"],
)
def test_F22_a_session_that_cannot_be_read_fails_alone_and_is_named(gateway: Gateway, odd: object, named: str) -> None:
    gateway.say("a1", owner(TEA))
    gateway.say("b2", owner("My umbrella is yellow with white dots."), odd)
    gateway.say("c3", owner(BIKE))
    for _ in range(2):  # and it stays so: nothing of it was taken for read
        report = gateway.ingest()
        assert [name for name, _ in report.failed] == ["b2"]
        assert report.failed[0][1].startswith(named)
        assert "spare key" not in str(report)
    assert TEA in gateway.corpus
    assert BIKE in gateway.corpus
    gateway.say("b2", owner("My umbrella is yellow with white dots."))
    assert gateway.ingest().failed == ()
    assert "umbrella" in gateway.corpus


def test_F22_a_session_that_cannot_be_read_stays_as_it_is_indexed(gateway: Gateway) -> None:
    gateway.say("a1", owner(TEA))
    gateway.say("b2", owner(BIKE))
    assert sync_index(gateway.store, reader=gateway.read).failed == ()
    gateway.say("a1", owner("I prefer lapsang now."))
    gateway.say("b2", OSError())
    assert sync_index(gateway.store, reader=gateway.read).failed == (("b2", "OSError"),)
    assert [bool(search(gateway.store, word)) for word in ("lapsang", "Kestrelwing")] == [True, True]


@pytest.mark.parametrize("at", [T * 1000, T * 1_000_000, 253_402_300_799_999, T + 0.5, "lately", None], ids=str)
def test_F22_a_message_of_no_known_time_is_taken_on_the_day_of_its_session(gateway: Gateway, at: Any) -> None:
    gateway.say("a1", owner(TEA, at))
    gateway.say("b2", owner(BIKE))
    report = gateway.ingest()
    assert report.lines == (("2026-11-25", 2),)
    assert (report.untimed, report.failed) == (1, ())


def test_F21_a_host_sees_what_its_messages_were_not_taken_for(gateway: Gateway) -> None:
    parts = [{"type": "text", "text": TEA}, {"type": "image_url", "image_url": {"url": "file:///x.png"}}]
    gateway.say("a1", *[Message("system", "You are helpful.")] * 400, owner(parts), Message("assistant", None))  # type: ignore[arg-type]
    report = gateway.ingest()
    assert report.skipped == ((Skipped.ROLE, 400), (Skipped.WORDLESS, 1))
    assert f"User: {TEA}" in gateway.corpus


def test_F25_the_answer_to_a_generated_prompt_is_no_memory(gateway: Gateway) -> None:
    gateway.say(
        "a1", owner("[OpenClaw heartbeat poll]"), Message("assistant", "All quiet, door is locked."), owner(TEA)
    )
    report = gateway.ingest()
    assert (len(report.added_keys), report.skipped) == (1, ((Skipped.GENERATED, 2),))
    assert "door" not in gateway.corpus
    sync_index(gateway.store, reader=gateway.read)
    assert not search(gateway.store, "door")
