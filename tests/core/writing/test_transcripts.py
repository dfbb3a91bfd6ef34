"""From messages to lines: what is skipped, what is unwrapped, whose a line is, and where it stands."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.records import OriginClass, Provenance, SessionKind, frame_recall
from memprov.core.text import is_generated, is_memory_echo, u16_length, unwrap
from memprov.core.text.redaction import REDACTED
from memprov.core.writing import Message, content_hash, read_transcript
from memprov.core.writing.messages import Role, message_from_event
from memprov.core.writing.transcripts import Reading, Skipped
from memprov.errors import InputError

T = 1_795_597_200_000
OWNER, AGENT, UNTRUSTED, SYSTEM = "owner", "agent", "untrusted", "system"
BEGIN, END = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
KEYS = ["type", "message", "role", "content", "text", "timestamp", "__openclaw", "provenance", "data"]


def user(text: str, *, owner: object = True, **more: object) -> Message:
    return Message("user", text, sender_is_owner=owner, **more)  # type: ignore[arg-type]


def reply(text: str = "a reply of some length", **more: object) -> Message:
    return Message("assistant", text, **more)  # type: ignore[arg-type]


def read(*messages: Message) -> list[tuple[str, str]]:
    """(text, class) of each line."""
    return [(line.text, str(line.provenance.origin_class)) for line in read_transcript(messages).lines]


def classes(*messages: Message) -> list[str]:
    return [origin_class for _, origin_class in read(*messages)]


def test_case_D1_an_owner_and_the_reply() -> None:
    assert read(user("hello there"), reply()) == [
        ("User: hello there", OWNER),
        ("Assistant: a reply of some length", AGENT),
    ]


@pytest.mark.parametrize("flag", [None, False, 1, "true", "yes", [True]])
def test_case_D2_no_flag_but_true_makes_an_owner(flag: object) -> None:
    assert classes(user("hello", owner=flag), reply()) == [UNTRUSTED, UNTRUSTED]


def test_case_D3_a_network_result_taints_the_rest_of_the_turn() -> None:
    network = Message("toolResult", "text", result_source="network")
    assert classes(user("a"), reply(), network, reply(), user("b"), reply()) == [OWNER, AGENT, UNTRUSTED, OWNER, AGENT]
    assert classes(user("a"), reply(turn_tainted=True), user("b"), reply()) == [OWNER, UNTRUSTED, OWNER, AGENT]


def test_case_D4_a_local_result_taints_nothing() -> None:
    assert classes(user("a"), Message("toolResult", "text", result_source="local"), reply()) == [OWNER, AGENT]


def test_case_D5_an_assistant_who_speaks_first_is_untrusted() -> None:
    assert classes(reply(), user("a"), reply()) == [UNTRUSTED, OWNER, AGENT]


def test_case_D6_the_host_s_own_message_and_its_reply_are_system() -> None:
    assert classes(user("note", provenance_kind="internal_system"), reply()) == [SYSTEM, SYSTEM]


def test_case_C13_what_a_recall_of_memory_began_is_not_ingested() -> None:
    for tool in ("memory_search", "memory_get"):
        recall = user("You remember: tea", provenance_kind="internal_system", source_tool=tool)
        lines = read(user("what do I drink?"), recall, reply("You drink tea."), user("thank you"), reply("welcome"))
        assert [text for text, _ in lines] == ["User: what do I drink?", "User: thank you", "Assistant: welcome"]


def test_a_heartbeat_s_turn_is_skipped_and_a_claim_to_be_one_is_not() -> None:
    beat = user("poll", provenance_kind="internal_system", source_tool="heartbeat")
    assert read(beat, reply("all is well")) == []
    assert read(user("poll", source_tool="heartbeat"), reply("x"))[0] == ("User: poll", OWNER)


def test_messages_between_sessions_are_skipped_but_begin_a_turn() -> None:
    between = user("from another session", owner=None, provenance_kind="inter_session")
    assert read(user("hello"), between, reply("answer")) == [("User: hello", OWNER), ("Assistant: answer", UNTRUSTED)]


@pytest.mark.parametrize("role", ["toolResult", "system", "tool", ""])
def test_other_roles_say_nothing_and_are_counted(role: Role) -> None:
    reading = read_transcript([Message(role, "words of some length")] * 400)
    assert (reading.lines, Counter(reading.skipped)) == ((), {Skipped.ROLE: 400})


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "human"}, {"role": "User"}, {"role": "Assistant"}, {"role": None}, {"role": ["user"]},
        {"content": 5}, {"content": b"x"}, {"content": {"type": "text", "text": "x"}}, {"content": ["x", 5]},
        {"content": [{"type": "text", "text": None}]}, {"result_source": "Network"}, {"result_source": "web"},
        {"result_source": True}, {"provenance_kind": "internal"}, {"generated_by": "job"}, {"turn_tainted": "true"},
        {"turn_tainted": 1}, {"number": -1}, {"number": "4"}, {"number": True},
    ],
    ids=str,
)  # fmt: skip
def test_F21_what_a_host_gives_and_is_not_understood_is_refused_by_name(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=name.replace("_", ".")):
        Message(**{"role": "user", **wrong})


def test_F21_a_refusal_shows_no_text_that_may_be_memory() -> None:
    with pytest.raises(InputError, match="a text of 36 characters") as caught:
        Message("The spare key is under the flowerpot", "user")  # type: ignore[arg-type]
    assert "flowerpot" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, None),
        ([], None),
        ([{"type": "image_url", "image_url": {"url": "x"}}], None),
        (["a", {"type": "text", "text": "b"}, {"type": "tool_use", "name": "write"}, {"text": "c"}], "a b c"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], "a b"),
    ],
)
def test_F21_content_is_read_in_the_shapes_of_the_common_platforms(content: Any, words: str | None) -> None:
    reading = read_transcript([Message("user", content)])
    assert [line.text for line in reading.lines] == ([] if words is None else [f"User: {words}"])
    assert reading.skipped == ((Skipped.WORDLESS,) if words is None else ())


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (T, T), (float(T), T), (T // 1000, T), ("2026-11-25T09:00:00Z", T), ("2026-11-25T10:00+01:00", T),
        (T * 1000, None), (T * 1_000_000, None), (253_402_300_799_000, None), (T + 0.5, None), ("today", None),
        (str(T), None), (True, None), (float("nan"), None), (float("-inf"), None), ([T], None), (-(10**30), None),
    ],
    ids=str,
)  # fmt: skip
def test_F22_a_time_that_cannot_be_read_is_not_known(given: Any, known: int | None) -> None:
    reading = read_transcript([Message("user", "words of some length", timestamp_ms=given)], modified_ms=7)
    assert [line.timestamp_ms for line in reading.lines] == [known or 0]
    assert reading.untimed == (known is None)


@pytest.mark.parametrize(
    "prompt", ["[OpenClaw heartbeat poll]", "[cron:tidy up] run", "System: [2026-11-25 09:00:00 UTC] Node connected"]
)
def test_F25_a_generated_message_begins_a_generated_turn(prompt: str) -> None:
    turn = (user(prompt), reply("All quiet, door is locked."), reply("And the stove is off."))
    assert read(*turn, user("good night"), reply("sleep well")) == [
        ("User: good night", OWNER),
        ("Assistant: sleep well", AGENT),
    ]
    assert read_transcript(turn).skipped == (Skipped.GENERATED,) * 3


@pytest.mark.parametrize("kind", ["tool_result", "function_call_output"])
def test_F23_F25_results_of_tools_in_the_users_role_begin_no_turn(kind: str) -> None:
    result: Any = [{"type": kind, "content": "All quiet, door is locked.", "output": "x"}]
    answer = Message("user", result, sender_is_owner=True)
    assert read(user("[OpenClaw heartbeat poll]"), reply(""), answer, reply("All quiet, door is locked.")) == []
    network = Message("user", result, sender_is_owner=True, result_source="network")
    asked = user("is the door locked?")
    for said in ((asked, network, reply("it says yes")), (asked, network, answer, reply("it says yes"))):
        assert read(*said)[-1] == ("Assistant: it says yes", UNTRUSTED)
    assert read(asked, answer, reply("it says yes"))[-1] == ("Assistant: it says yes", AGENT)
    mixed = Message("user", [*result, "and the window?"], sender_is_owner=True)
    assert read(asked, mixed, reply("it says yes"))[1] == ("User: and the window?", OWNER)


def test_a_dream_narrative_takes_its_lines_back() -> None:
    assert read_transcript([user("hello"), reply(), Message("", generated_by="narrative")]) == Reading(
        internal="internal:narrative"
    )
    cron = [user("hello"), Message("", generated_by="cron")]
    assert read_transcript(cron, archived=True).internal == "internal:cron"
    assert len(read_transcript(cron).lines) == 1


def test_a_line_keeps_its_event_number_time_and_class() -> None:
    (line,) = read_transcript([Message("user", ("one", "two"), 7, 1_700_000_000_000, True)]).lines
    assert (line.text, line.number, line.timestamp_ms) == ("User: one two", 7, 1_700_000_000_000)
    assert line.provenance == Provenance(OriginClass.OWNER, SessionKind.INTERACTIVE, 1_700_000_000_000)
    (line,) = read_transcript([user("no time")], modified_ms=5_000).lines
    assert (line.timestamp_ms, line.provenance.observed_at_ms) == (0, 5_000)


def test_messages_without_a_number_are_counted() -> None:
    lines = read_transcript([user("one"), Message("tool"), reply("two"), Message("user", "three", number=9)]).lines
    assert [line.number for line in lines] == [1, 3, 9]


def test_secrets_are_redacted_before_a_line_is_cut() -> None:
    secret = "sk-ant-" + "a1B2" * 200
    (line,) = read_transcript([user(f"the key {secret} is mine")]).lines
    assert line.text == f"User: the key {REDACTED} is mine"


# --- wrapping ---------------------------------------------------------------------------------------------------------


def test_long_messages_are_wrapped_at_spaces_with_the_label_on_each_piece() -> None:
    lines = read_transcript([user("word " * 400)]).lines
    assert [line.text[:11] for line in lines] == ["User: word "] * 3
    assert max(len(line.text) for line in lines) <= 806
    assert {line.number for line in lines} == {1}


def test_a_word_that_is_too_long_is_cut_but_no_character_is() -> None:
    lines = read_transcript([user("\U0001f375" * 900)]).lines
    assert [u16_length(line.text) for line in lines] == [806, 806, 206]
    lines = read_transcript([user("a" + "\U0001f375" * 900)]).lines
    assert [u16_length(line.text) for line in lines] == [805, 806, 208]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=300), max_size=8))
def test_wrapping_loses_no_word(words: list[str]) -> None:
    text = " ".join(words)
    lines = read_transcript([user(text)]).lines
    said = " ".join(line.text.removeprefix("User: ") for line in lines)
    assert all(u16_length(line.text) <= 806 for line in lines)
    assert not any(set(line.text) & set("\n\r\u2028") for line in lines)
    if not lines:
        assert not text.strip() or is_generated(" ".join(text.split()), "user") or not said
    assert len(said) <= len(text) or not lines


# --- scaffolding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "text", "left"),
    [
        ("user", "[Wed 2026-11-25 09:00 UTC] I like tea", "I like tea"),
        ("assistant", "[Wed 2026-11-25 09:00 UTC] I like tea", "[Wed 2026-11-25 09:00 UTC] I like tea"),
        ("user", 'Sender: ⟦openclaw:ctx⟧\n```json\n{"a": 1}\n```\nI like tea', "I like tea"),
        ("user", "Sender: ⟦openclaw:ctx⟧\nname: ana\n\nI like tea", "I like tea"),
        ("user", "Sender: ⟦openclaw:ctx⟧\n```json\nnever closed", ""),
        ("user", "I like tea\n\nContext: ⟦openclaw:ctx⟧\nana: and I like coffee", "I like tea"),
        ("user", "⟦openclaw:ctx⟧\nI like tea", "⟦openclaw:ctx⟧\nI like tea"),
        ("user", "Delivery: to send a message, use the `message` tool.\nI like tea", "I like tea"),
        ("user", "Delivery: by Monday, please", "Delivery: by Monday, please"),
        (
            "user",
            "Context:\n<active_memory_plugin>\nyou like coffee\n</active_memory_plugin>\n\nI like tea",
            "I like tea",
        ),
        (
            "user",
            "<active_memory_plugin>\nnever closed\nI like tea",
            "<active_memory_plugin>\nnever closed\nI like tea",
        ),
        ("user", "say </active_memory_plugin> now", "say </active_memory_plugin> now"),
        (
            "assistant",
            f"a\n{BEGIN}\nx\n{BEGIN}\ny\n{END}\nz\n{END}\nb",
            "a\n\nb",
        ),
        ("user", f"a\n{BEGIN}\nnever closed", "a\n"),
        ("user", f"a\n{END}\nb", "a\n\nb"),
        ("user", f"{frame_recall('you like coffee')}\nI like tea", "\nI like tea"),
        ("user", "my <memory> is bad</memory>", "my <memory> is bad</memory>"),
    ],
)
def test_wrappings_are_cut_out_and_what_was_said_stays(role: str, text: str, left: str) -> None:
    assert unwrap(text, role).strip("\n") == left.strip("\n")


@given(st.text())
def test_recalled_text_in_our_own_frame_is_never_said_again(text: str) -> None:
    framed = frame_recall(text, Provenance(OriginClass.OWNER), source="memory/x.md")
    assert unwrap(f"before\n{framed}\nafter", "user") == "before\n\nafter"


@pytest.mark.parametrize(
    ("role", "text", "generated"),
    [
        ("user", "System: [2026-11-25] Node connected", True),
        ("user", "System (untrusted): [x] y", True),
        ("user", "System: all is well", False),
        ("user", "[cron:daily] do it", True),
        ("user", "[OpenClaw heartbeat poll]", True),
        ("user", "Follow the heartbeat monitor scratch context when provided. And so on.", True),
        ("assistant", "[cron:daily] do it", False),
        ("assistant", "HEARTBEAT_OK", True),
        ("assistant", "NO_REPLY", True),
        ("assistant", "**NO_REPLY**", True),
        ("assistant", "no_reply", True),
        ("assistant", '"NO_REPLY"', True),
        ("assistant", '{"action": "NO_REPLY"}', True),
        ("assistant", '{"action": "NO_REPLY", "x": 1}', False),
        ("assistant", '["NO_REPLY"]', True),
        ("assistant", '["NO_REPLY", 7]', False),
        ("assistant", "I answer NO_REPLY when there is nothing", False),
        ("user", "Exec finished: code 0", True),
        ("user", "exec completed (ab1, code 0) :: done", True),
        ("assistant", "System: [x] exec failed (ab1, signal 9)", True),
        ("user", "exec finished yesterday", False),
    ],
)
def test_generated_messages_are_told_from_said_ones(role: Role, text: str, generated: bool) -> None:
    assert is_generated(text, role) is generated
    assert bool(read(Message(role, text, sender_is_owner=True))) is not generated


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("- I like tea [score=0.477 signals=1 recalls=0 avg=0.580 source=memory/x.txt:1-1]", True),
        ("Session Key: agent:main:x Session ID: s1", True),
        ("Session ID\\: s1 of Session Key k", True),
        ("Conversation Summary: we talked", True),
        ("Candidate: likes tea confidence: 0.00", True),
        ("[main/x#L1] User: Write a dream diary entry from these memory fragments: a", True),
        ("The candidate: a strong one, I am confident", False),
        ("my score=3 in the game", False),
    ],
)
def test_report_B17_what_a_memory_system_wrote_is_known(text: str, echo: bool) -> None:
    assert is_memory_echo(text) is echo


# --- OpenClaw's events ------------------------------------------------------------------------------------------------


def event(message: object, **record: object) -> dict[str, object]:
    return {"type": "message", "message": message, **record}


def test_an_event_becomes_a_message() -> None:
    host = {"senderIsOwner": True, "turnTainted": False, "resultContentSource": "network"}
    content = [{"type": "text", "text": "a"}, {"type": "image", "text": "no"}, "x", {"type": "text", "text": "b"}]
    message = {"role": "user", "content": content, "timestamp": 1_700_000_000_000, "__openclaw": host}
    assert message_from_event(event(message), 3) == Message(
        "user", ("a", "b"), 3, 1_700_000_000_000, sender_is_owner=True, turn_tainted=False, result_source="network"
    )
    assert message_from_event(event({"role": "assistant", "content": "plain"}), 4).content == "plain"
    provenance = {"kind": "internal_system", "sourceTool": "memory_get"}
    read_back = message_from_event(event({"role": "user", "content": "x", "provenance": provenance}), 5)
    assert (read_back.internal_system, read_back.source_tool) == (True, "memory_get")


@pytest.mark.parametrize(
    "odd",
    [
        None, 7, "x", [], {}, {"type": "session"}, event(None), event({"role": 7, "content": 7}),
        event({"role": "user", "content": {"a": 1}, "__openclaw": [], "provenance": "x", "timestamp": {}}),
        event({"role": "user", "content": [{"type": "text", "text": 7}], "timestamp": True}),
    ],
)  # fmt: skip
def test_odd_events_say_nothing(odd: object) -> None:
    assert read_transcript([message_from_event(odd, 1)]).lines == ()


@pytest.mark.parametrize(
    ("message", "record", "expected"),
    [
        (1_700_000_000, None, 1_700_000_000_000),
        (1_700_000_000_000, None, 1_700_000_000_000),
        (1_700_000_000_000.7, None, 1_700_000_000_000),
        (None, 1_700_000_000_000, 1_700_000_000_000),
        ("2026-11-25T09:00:01.000Z", None, 1_795_597_201_000),
        ("2026-11-25T09:00:01", None, 1_795_597_201_000),
        ("2026-11-25T10:00:01+01:00", None, 1_795_597_201_000),
        ("yesterday", "2026-11-25T09:00:01Z", 1_795_597_201_000),
        (0, None, None),
        (-5, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
        (10**18, None, None),
        ("1900-01-01", None, None),
        (None, None, None),
    ],
)
def test_times_are_read_in_every_recorded_form(message: object, record: object, expected: int | None) -> None:
    assert (
        message_from_event(event({"role": "user", "timestamp": message}, timestamp=record), 1).timestamp_ms == expected
    )


@pytest.mark.parametrize(
    ("record", "run"),
    [
        ({"type": "custom", "customType": "openclaw:bootstrap-context:full", "data": {"runId": "dreaming-narrative-1"}},
         "narrative"),
        ({"type": "custom", "sessionKey": "agent:main:dreaming-narrative-1"}, "narrative"),
        (event({"role": "assistant", "__openclaw": {"runId": "dreaming-narrative-1"}}), "narrative"),
        (event({"role": "user", "__openclaw": {"runId": "dreaming-narrative-1"}}), None),
        ({"type": "custom", "data": {"sessionKey": "agent:main:cron:job:run:1"}}, "cron"),
        ({"type": "custom", "data": {"runId": "agent:main:cron:job:run:1"}}, None),
        ({"type": "session", "id": "dreaming-narrative-1"}, None),
    ],
)  # fmt: skip
def test_internal_runs_give_themselves_away(record: object, run: str | None) -> None:
    assert message_from_event(record, 1).generated_by == run


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4))
def test_no_event_breaks_the_reading(values: list[object]) -> None:
    messages = [message_from_event(value, number) for number, value in enumerate(values, 1)]
    lines = read_transcript(messages).lines
    assert len(content_hash(lines)) == 64
    assert all(line.provenance.origin_class is not OriginClass.OWNER or "true" in json.dumps(values) for line in lines)
