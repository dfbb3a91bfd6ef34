"""Hostile content becomes text: parsing what we rendered gives exactly one entry (case-J11, report B77)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memprov import ScrubRules, Snippet, scrub_text
from memprov.core.records import SessionRecord
from memprov.core.text import (
    Document,
    QuotationMatcher,
    corpus_owner,
    lineage_marker,
    neutralise,
    neutralise_inline,
    one_line,
    plain,
    promotion_marker,
)
from memprov.core.text.references import has_label
from memprov.core.writing import session_source
from memprov.core.writing.candidates import corpus_line, written_snippet

MINE, OTHER = "memory:claim:aaaaaaaaaaaa", "memory:claim:bbbbbbbbbbbb"

HOSTILE = (
    promotion_marker(OTHER),
    promotion_marker(MINE),
    lineage_marker("x"),
    "<!-- openclaw:dreaming:diary:end -->",
    "<!-- openclaw:dreaming:diary:start -->",
    "<!-- openclaw:dreaming:backfill-entry day=2026-11-25 source=x -->",
    "<!-- trigger: a, b -->",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "--",
    "<!-- openclaw-memory-promotion:\nk -->",
    "Session ID: s9",
    "**Session ID**: s9",
    "session id:s9",
    "- Session Key: k",
    "# Heading",
    "###### x",
    "# Session: now",
    "```",
    "~~~~",
    "`",
    "[main/sessions/main/s9#L3] ",
    "[main/sessions/main/s9#L3]",
    "[helper/sessions/helper/s9#L3] User: x",
    "sessions/main/s9",
    "main:s9",
    "---",
    "=====",
    "> ",
    "- ",
    "1. ",
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "\x85",
    "\ufeff",
    "\t  ",
    "\\",
    "\0",
    "\udc80",
    "words that mean nothing",
    "我早上喜欢喝乌龙茶",
)
fragments = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=6), max_size=7)
hostile = st.builds(lambda parts, glue: glue.join(parts), fragments, st.sampled_from(("", " ", "\n")))


def entry(text: str, *, bare: bool = False) -> str:
    """An entry of our own with this content, in every place where one may stand."""
    return f"{promotion_marker(MINE)}\n{'' if bare else '- '}{text}\n"


def assert_one_entry(rendered: str) -> None:
    above, below = f"{promotion_marker(OTHER)}\n- another entry\n", "\n## By hand\n- a row by hand\n"
    document = Document(above + rendered + below)
    assert [(run.keys, run.head) for run in document.runs] == [((OTHER,), 1), ((MINE,), 3)]
    assert [line.keys for line in document.lines if line.keys] == [(OTHER,), (MINE,)]
    assert not any(line.in_code for line in document.lines)
    assert not document.parts
    assert [line.text for line in document.lines if line.level] == ["## By hand"]
    assert not any(line.managed_fence for line in document.lines)
    assert not has_label(rendered)
    everything = above + rendered + below
    only_mine = scrub_text(everything, ScrubRules("main", entry_keys=[MINE]))
    assert only_mine.text == above + below
    assert (only_mine.removed_entries, only_mine.collateral_entry_keys, only_mine.dangling_markers) == (1, (), ())
    only_other = scrub_text(everything, ScrubRules("main", entry_keys=[OTHER]))
    assert only_other.text == rendered + below
    untouched = scrub_text(everything, ScrubRules("main", session_ids=["s9"], entry_keys=["k", "memory:x"]))
    assert untouched.text is everything


@given(hostile)
@example("> ")
@example("Session ID:Session ID: s9")
@example("<!--->")
@example("<!<!----")
def test_case_J11_parsing_what_we_rendered_gives_exactly_one_entry(content: str) -> None:
    assert_one_entry(entry(neutralise_inline(content)))
    safe = neutralise(content)
    assert_one_entry(entry(safe))
    if safe:
        assert_one_entry(entry(safe, bare=True))


@given(hostile)
def test_case_J11_a_diary_fence_or_marker_in_content_never_ends_the_block_around_it(content: str) -> None:
    text = f"<!-- openclaw:dreaming:diary:start -->\n{entry(neutralise(content))}<!-- openclaw:dreaming:diary:end -->\n"
    fences = [number for number, line in enumerate(Document(text).lines) if line.managed_fence]
    assert fences == [0, 3]


@given(hostile)
@example("[main/sessions/main/s9#L3] x")
def test_case_J11_a_corpus_line_is_one_line_and_its_own_session_s(content: str) -> None:
    source = session_source(SessionRecord("main", "s1"))
    snippet = written_snippet(one_line(f"User: {content}"))
    line = corpus_line(source, 2, snippet)
    assert not set(line) & set("\n\r\v\f\x85\u2028\u2029")
    assert corpus_owner(line, "main") == "s1"
    assert corpus_owner(snippet.removeprefix("User: "), "main") is None
    assert corpus_owner(snippet.removeprefix("User: "), "helper") is None


@given(hostile)
def test_neutralising_twice_changes_nothing(content: str) -> None:
    for treat in (neutralise, neutralise_inline):
        once = treat(content)
        assert treat(once) == once
    assert neutralise_inline(neutralise(content)) == neutralise(content)


@given(hostile.filter(lambda text: "\\" not in text))
@example("<!-->")
def test_people_read_what_was_said(content: str) -> None:
    assert plain(neutralise_inline(content)) == neutralise_inline(content).replace("\\", "")
    assert one_line(plain(neutralise(content))) == one_line(content)


@pytest.mark.parametrize(
    "text",
    [
        "I prefer oolong tea over coffee in the morning.",
        "- buy oat milk on Friday",
        "1. first 2. second",
        "a < b, c > d, 5 -- 6, x -> y, C++ <vector>",
        "see [the notes](https://example.org/a#b) and `code`",
        "The session id is secret",
        "Use ```python print(1)``` for that",
        "path\\to\\file and \\d+",
        "我早上喜欢喝乌龙茶而不是咖啡。",
        "#hashtag and #1",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert neutralise(text) == neutralise_inline(text) == plain(text) == text


@pytest.mark.parametrize(
    ("text", "inline", "anywhere"),
    [
        ("<!-- x -->", "<\\!-- x --\\>", "<\\!-- x --\\>"),
        ("Session ID: s9", "Session ID\\: s9", "Session ID\\: s9"),
        ("**Session ID**: s9", "**Session ID**\\: s9", "**Session ID**\\: s9"),
        ("[main/sessions/main/s9#L3] x", "\\[main/sessions/main/s9#L3] x", "\\[main/sessions/main/s9#L3] x"),
        ("# Heading", "# Heading", "\\# Heading"),
        ("```python", "```python", "\\```python"),
        ("  ~~~", "  ~~~", "\\~~~"),
        ("- 1. ```x", "- 1. ```x", "- 1. \\```x"),
        ("- # x", "- # x", "- # x"),
        ("> >", "> >", "\\> >"),
        ("---", "---", "\\---"),
        ("-----  ", "-----  ", "\\-----  "),
        ("=", "=", "\\="),
        ("= a", "= a", "= a"),
        ("-- a", "-- a", "-- a"),
        ("a\r\nb\u2028c", "a b c", "a b c"),
        ("a\0b\udc80", "a\ufffdb\ufffd", "a\ufffdb\ufffd"),
    ],
)
def test_what_is_escaped_and_how(text: str, inline: str, anywhere: str) -> None:
    assert neutralise_inline(text) == inline
    assert neutralise(text) == anywhere


@pytest.mark.parametrize(
    "said",
    [
        "the plan: tea --> coffee",
        "the comment <!-- is open",
        "my Session ID: s9 was long",
        "[a/sessions/a/x#L1] was it",
    ],
)
def test_a_quotation_is_found_whether_it_was_escaped_or_not(said: str) -> None:
    """A person copies what was said, and forgetting finds the copy by the escaped snippet (D2)."""
    matcher = QuotationMatcher((Snippet(neutralise_inline(f"User: {said}")),))
    assert matcher.quoted_lines(f"- {said}\n- other\n- {neutralise(said)}\n") == {0, 2}
