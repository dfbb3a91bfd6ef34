"""What is looked for, in which guises, and when an id is that id."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.proof import NeedleKind, NeedleSet, Search, pieces

SAID = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=12, max_size=30)


def found(needles: NeedleSet, data: bytes, *, packed: bool = False) -> list[str]:
    return [match.needle.name for match in Search(needles).find(data, packed=packed)]


def as_file(text: str, before: str, after: str, form: str) -> bytes:
    whole = before + text + after
    match form:
        case "json":
            return json.dumps({"x": whole}).encode()
        case "json in json":
            return json.dumps(json.dumps(whole, ensure_ascii=False)).encode()
        case "upper escapes":
            return json.dumps(whole).replace("\\ud", "\\uD").encode()
        case "base64":
            return base64.b64encode(whole.encode())
        case "urlsafe base64":
            return base64.urlsafe_b64encode(whole.encode())
        case codec:
            return whole.encode(codec)


@given(
    text=SAID,
    before=st.text(st.characters(codec="ascii"), max_size=4),
    after=st.text(st.characters(codec="ascii"), max_size=4),
    form=st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "json", "json in json", "base64", "urlsafe base64"]),
)
def test_a_text_is_found_however_it_is_written_and_whatever_stands_around_it(
    text: str, before: str, after: str, form: str
) -> None:
    needles = NeedleSet.of([], [text])
    if needles.texts:
        assert "text 1" in found(needles, as_file(next(pieces(text)), before, after, form))


def test_a_planted_control_finds_every_guise_and_a_broken_search_says_so() -> None:
    search = Search(NeedleSet.of(["monday-chat"], ["Zoë prefers “oolong” tea"]))
    assert search.control().holds
    assert search.control().expected > 10
    search._automaton = None  # a search that finds nothing
    assert not search.control().holds


@pytest.mark.parametrize("text", ["", "   ", "ok", "User: yes", "- a b c"])
def test_what_says_nothing_is_no_needle(text: str) -> None:
    assert NeedleSet.of([], [text]).texts == 0


def test_a_part_of_a_long_text_is_found() -> None:
    said = " ".join(f"word{number}" for number in range(60))
    needles = NeedleSet.of([], [said])
    assert found(needles, said[100:185].encode())
    assert not found(needles, said[100:130].encode())


def test_labels_and_blanks_do_not_hide_what_was_said() -> None:
    assert list(pieces("User:  I prefer\n oolong tea")) == ["I prefer oolong tea"]


def test_a_text_of_a_session_that_stays_is_dropped_and_counted() -> None:
    needles = NeedleSet.of(
        ["a"], ["the same claim of both", "what only one said"], unselected=["User: the same claim of both!"]
    )
    assert [needle.text for needle in needles.needles if needle.kind is NeedleKind.TEXT] == ["what only one said"]
    assert needles.shared == 1


@pytest.mark.parametrize(
    ("data", "packed", "hit"),
    [
        (b"[main/sessions/main/monday-chat#L2] ", False, True),
        (b"see monday-chatL2 there", False, True),
        (b"monday-chat.jsonl", False, True),
        (b"monday-chat", False, True),
        (b"monday-chat-2", False, False),
        (b"amonday-chat", False, False),
        (b"monday-chats", False, False),
        (b"e29c9bmonday-chatagent:main", True, True),
        (b"e29c9bmonday-chat-2agent:main", True, False),
        (b"e29c9bnot-monday-chatagent:main", True, False),
    ],
)
def test_I12_an_id_is_found_as_itself_only(data: bytes, packed: bool, hit: bool) -> None:
    needles = NeedleSet.of(["monday-chat"], [], others=["monday-chat", "monday-chat-2", "not-monday-chat"])
    assert bool(found(needles, data, packed=packed)) is hit


def test_I12_a_short_id_is_a_word_of_its_own_even_among_packed_values() -> None:
    needles = NeedleSet.of(["s1"], [])
    assert found(needles, b"sessions/main/s1#L2", packed=True)
    assert not found(needles, b"users1agent", packed=True)
    assert not found(needles, b"\x00s\x001\x00", packed=True)
