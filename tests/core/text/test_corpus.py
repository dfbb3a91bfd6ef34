"""Session-corpus lines: whose they are (D1), what they copied, and what is left (D6). Cases A5, A6, G5, G6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.records import MemoryFile
from memprov.core.text import (
    CorpusScan,
    SessionMatcher,
    Snippet,
    corpus_owner,
    cut,
    digest,
    scan_corpus,
    strip_prefix,
    to_bytes,
)
from memprov.testing.strategies import SESSION_IDS, corpus_texts, raw_texts
from tests.core import plain_oracles

PATH = "memory/.dreams/session-corpus/2026-11-25.txt"
STAMP = "2026-08-26T10-00-00Z"


def scan(text: str, *ids: str, agent: str = "main") -> CorpusScan | None:
    return scan_corpus(MemoryFile(PATH, text), SessionMatcher(agent, ids))


def left(text: str, *ids: str, agent: str = "main") -> str:
    found = scan(text, *ids, agent=agent)
    return text if found is None else cut(text, found.spans)


def line(name: str, said: str = "User: hi", agent: str = "main") -> str:
    return f"[{agent}/sessions/{agent}/{name}#L4] {said}\n"


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("[main/sessions/main/s1#L4] User: hi", "s1"),
        ("[main/sessions/main/s1.jsonl#L4] User: hi", "s1"),
        (f"[main/sessions/main/s1.jsonl.deleted.{STAMP}.zst#L4] User: hi", "s1"),
        ("[main/sessions/main/s1.jsonl.other#L4] User: hi", "s1.jsonl.other"),
        ("[main/sessions/main/my session #1#L12] x", "my session #1"),
        ("[main/sessions/main/a/b;c:d]#L1] x", "a/b;c:d]"),
        ("[main/sessions/main/s1#L1#L2] x", "s1#L1"),
        ("[main/sessions/main/s1#L4] [main/sessions/main/s2#L5] User: hi", "s1"),
        ("[main/sessions/main/s1#L4x] [main/sessions/main/s2#L5] User", "s1#L4x] [main/sessions/main/s2"),
        ("[main/sessions/main/s1#L4] ", "s1"),
        ("\ufeff[main/sessions/main/s1#L4] x", "s1"),
        ("[main/sessions/main/.jsonl#L4] x", ""),
        # nobody's
        ("[main/sessions/main/s1#L4]", None),
        ("[main/sessions/main/s1#L4]\tx", None),
        ("[main/sessions/main/s1#L] x", None),
        ("[main/sessions/main/s1#L٣] x", None),
        ("[main/sessions/main/s1#l4] x", None),
        ("[main/sessions/main/#L4] x", None),
        ("[main/sessions/other/s1#L4] x", None),
        ("[other/sessions/main/s1#L4] x", None),
        ("[other/sessions/other/s1#L4] x", None),
        ("[Main/sessions/main/s1#L4] x", None),
        (" [main/sessions/main/s1#L4] x", None),
        ("- [main/sessions/main/s1#L4] x", None),
        ("User: look at sessions/main/s1 now", None),
        ("Session ID: s1", None),
        ("", None),
    ],
)
def test_D1_the_prefix_alone_says_whose_line_it_is(text: str, owner: str | None) -> None:
    assert corpus_owner(text, "main") == owner
    assert (strip_prefix(text, "main") == text) is (owner is None)


def test_the_text_of_a_line_is_what_follows_its_prefix() -> None:
    assert strip_prefix("[main/sessions/main/s1#L4] User: hi", "main") == "User: hi"
    assert strip_prefix("[main/sessions/main/s1#L4] [main/sessions/main/s2#L5] hi", "main") == (
        "[main/sessions/main/s2#L5] hi"
    )
    assert strip_prefix("[main/sessions/main/s1#L4] User: hi", "other") == "[main/sessions/main/s1#L4] User: hi"


def test_D1_the_agent_id_is_literal() -> None:
    assert corpus_owner("[m.n/sessions/m.n/s1#L4] x", "m.n") == "s1"
    assert corpus_owner("[mxn/sessions/mxn/s1#L4] x", "m.n") is None
    assert corpus_owner("[m.n/sessions/mxn/s1#L4] x", "m.n") is None


def test_case_A6_ids_in_prefixes_are_exact() -> None:
    text = line("s1") + line("s1-b") + line("S1") + line("s1.jsonl.other") + line("s")
    assert left(text, "s1") == text.removeprefix(line("s1"))


def test_D1_case_G6_a_line_that_mentions_a_session_stays_and_its_text_is_no_snippet() -> None:
    text = (
        line("s2", "User: look at sessions/main/s1 now") + line("s2", "Session ID: s1") + line("s1", "User: mine alone")
    )
    found = scan(text, "s1")
    assert found is not None
    assert left(text, "s1") == text.removesuffix(line("s1", "User: mine alone"))
    assert found.snippets == (Snippet("User: mine alone"),)
    assert found.lines == (3,)
    assert scan(text, "s3") is None


def test_case_G5_D6_a_file_with_only_blanks_left_is_emptied() -> None:
    for rest, emptied in (
        ("", True),
        (" \r\n\n\t\u2028\n", True),
        ("\ufeff\n", True),
        ("x\n", False),
        ("\x85\n", False),
        (line("s2"), False),
    ):
        for text in (line("s1") + rest, rest + line("s1"), "\ufeff" + line("s1") + rest):
            found = scan(text, "s1")
            assert found is not None
            assert found.emptied is emptied


def test_what_a_scan_says() -> None:
    text = (
        "\ufeff"
        + line("s1", "User: one")
        + "by hand é\r\n"
        + line("s2")
        + line("s1", "User: two").replace("\n", "\r\n")
    )
    text += "[main/sessions/main/s1.jsonl#L9] Assistant: last"
    found = scan(text, "s1")
    assert found is not None
    assert found.path == PATH
    assert found.lines == (1, 4, 5)
    assert found.snippets == (Snippet("User: one"), Snippet("User: two"), Snippet("Assistant: last"))
    assert left(text, "s1") == "\ufeffby hand é\r\n" + line("s2")
    assert (found.before, found.after) == (digest(text), digest(left(text, "s1")))
    assert [to_bytes(text)[start:end].decode() for start, end in found.spans] == [
        line("s1", "User: one"),
        line("s1", "User: two").replace("\n", "\r\n") + "[main/sessions/main/s1.jsonl#L9] Assistant: last",
    ]


def test_repeated_text_is_one_snippet() -> None:
    found = scan(line("s1") + line("s2") + line("s1"), "s1")
    assert found is not None
    assert found.snippets == (Snippet("User: hi"),)
    assert found.lines == (1, 3)


def test_D6_a_lone_carriage_return_ends_no_corpus_line() -> None:
    text = line("s1", "User: a\rb\u2028c\x85d") + line("s2")
    found = scan(text, "s1")
    assert found is not None
    assert found.snippets == (Snippet("User: a\rb\u2028c\x85d"),)
    assert left(text, "s1") == line("s2")
    inside = line("s2", "User: x\r[main/sessions/main/s1#L1] y")
    assert scan(inside, "s1") is None


PREFIX = "[main/sessions/main/s1#L4] "


@pytest.mark.parametrize(
    ("said", "was_cut"),
    [
        ("x" * 278, False),
        ("x" * 279, True),
        ("x" * 280, True),
        ("🍵" * 139, False),
        ("🍵" * 139 + "x", True),
        ("é" * 278, False),
        ("\udc80" * 279, True),
    ],
)
def test_D2_a_snippet_of_279_units_may_have_been_cut(said: str, was_cut: bool) -> None:
    for end in ("", "\n", "\r\n"):
        found = scan(PREFIX + said + end, "s1")
        assert found is not None
        assert found.snippets == (Snippet(said, cut=was_cut),)


@pytest.mark.parametrize("name", ["x" * 200, "🍵" * 100, "é" * 200])
@pytest.mark.parametrize(("units", "was_cut"), [(342, False), (343, True), (344, True)])
def test_D2_a_line_of_343_units_may_have_been_cut(name: str, units: int, was_cut: bool) -> None:
    head = f"[main/sessions/main/{name}#L4] "
    said = "y" * (units - len(head.encode("utf-16-le")) // 2)
    for end in ("", "\r\n"):
        found = scan(head + said + end, name)
        assert found is not None
        assert found.snippets == (Snippet(said, cut=was_cut),)


def test_D2_of_equal_texts_the_one_that_may_have_been_cut_counts() -> None:
    name, said = "x" * 300, "User: something that is said"
    lines = [line("s1", said), line(name, said)]
    for text in ("".join(lines), "".join(reversed(lines))):
        found = scan(text, "s1", name)
        assert found is not None
        assert found.snippets == (Snippet(said, cut=True),)


# --- the oracle -------------------------------------------------------------------------------------------------------


def plain_owner(text: str, agent: str) -> str | None:
    head = f"[{agent}/sessions/{agent}/"
    if not text.startswith(head):
        return None
    for at in range(len(head) + 1, len(text)):
        number, found, _ = text[at:].removeprefix("#L").partition("] ")
        if text.startswith("#L", at) and found and number and all(c in "0123456789" for c in number):
            name = text[len(head) : at]
            decoded = plain_oracles.decoded(name)
            return name if decoded is None else decoded
    return None


PIECES = ["[main/sessions/main/", "[", "main/sessions/main/", "s1", "#L", "4", "] ", "]", " ", ".jsonl", "#", "\r", "x"]


@given(
    st.one_of(
        corpus_texts(), raw_texts(), st.lists(st.sampled_from([*PIECES, "\n", "\r\n"]), max_size=25).map("".join)
    ),
    st.sets(st.sampled_from((*SESSION_IDS, "s1#L4", ""))),
)
def test_D1_I2_what_goes_and_stays_is_that_of_the_plain_reading(text: str, ids: set[str]) -> None:
    body = text.removeprefix("\ufeff")
    lines = [part + "\n" for part in body.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    mine = [n for n, part in enumerate(lines) if plain_owner(part.removesuffix("\n").removesuffix("\r"), "main") in ids]
    found = scan(text, *ids)
    assert (found.lines if found else ()) == tuple(n + 1 for n in mine)
    if found is not None:
        rest = "".join(part for n, part in enumerate(lines) if n not in mine)
        assert cut(text, found.spans) == text[: len(text) - len(body)] + rest
        assert found.emptied is (not rest.strip(plain_oracles.JS_BLANKS))
        bodies = [strip_prefix(lines[n].removesuffix("\n").removesuffix("\r"), "main") for n in mine]
        assert [snippet.text for snippet in found.snippets] == list(dict.fromkeys(bodies))
        assert scan(cut(text, found.spans), *ids) is None


@given(corpus_texts(), st.sets(st.sampled_from(SESSION_IDS)), st.sets(st.sampled_from(SESSION_IDS)))
def test_forgetting_one_then_the_other_is_forgetting_both(text: str, some: set[str], others: set[str]) -> None:
    assert left(left(text, *some), *others) == left(text, *some, *others) == left(left(text, *others), *some)
