"""Markers and annotations in one line: D3's one reader, cases J3g and J16, reports B19 and B77."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.text import CommentKind, comments, lineage_marker, mentions_promotion, promotion_marker
from memprov.core.text.markers import is_managed_fence
from memprov.testing.strategies import memory_lines, raw_texts
from tests.core import plain_oracles

P = promotion_marker("K")
PROMOTION, LINEAGE, TRIGGER = CommentKind.PROMOTION, CommentKind.LINEAGE, CommentKind.TRIGGER


def read(line: str) -> list[tuple[str, str]]:
    return [(comment.kind.value.removeprefix("openclaw-memory-"), comment.value) for comment in comments(line)]


def test_the_canonical_forms() -> None:
    assert promotion_marker("K") == "<!-- openclaw-memory-promotion:K -->"
    assert lineage_marker("K") == "<!-- openclaw-memory-lineage:K -->"
    assert read(promotion_marker("K")) == [("promotion", "K")]
    assert read(lineage_marker("K")) == [("lineage", "K")]
    for name, value in (("trigger", "tea, kiln"), ("importance", "5"), ("project", "a/b; c")):
        assert read(f"<!-- {name}: {value} -->") == [(name, value)]


@pytest.mark.parametrize(
    "line",
    [
        "<!--openclaw-memory-promotion:K-->",
        "<!--   openclaw-memory-promotion:   K   -->",
        "<!-- OPENCLAW-MEMORY-PROMOTION:K -->",
        "<!-- OpenClaw-Memory-Promotion : K -->",
        "<!--\topenclaw-memory-promotion:\u00a0K\u2003-->",
        "\ufeff <!-- openclaw-memory-promotion:K -->\u3000",
        "- text <!-- openclaw-memory-promotion:K --> text",
        "## heading <!-- openclaw-memory-promotion:K -->",
        "| cell <!-- openclaw-memory-promotion:K --> | cell |",
        "> quoted <!-- openclaw-memory-promotion:K -->",
        "x<!-- openclaw-memory-promotion:K -->y",
        "<!-- note <!-- openclaw-memory-promotion:K -->",
        "<!-- unclosed <!-- trig <!-- openclaw-memory-promotion:K -->",
    ],
)
def test_D3_case_E10_whole_line_or_inline_in_any_case_and_spacing(line: str) -> None:
    assert read(line) == [("promotion", "K")]
    assert mentions_promotion(line)


def test_D3_several_in_a_line_are_all_read() -> None:
    line = f"{lineage_marker('x')}{P} {promotion_marker('B')}<!-- trigger: a -->"
    assert read(line) == [("lineage", "x"), ("promotion", "K"), ("promotion", "B"), ("trigger", "a")]
    assert [line[c.start : c.end] for c in comments(line)][1:3] == [P, promotion_marker("B")]


@pytest.mark.parametrize(
    "key", ["K --", "a:b/c.txt:1:2", "<x>", "K>", "k`y", "ключ", "\udc80", "<!-- K", "a\u2028b", "--"]
)
def test_a_key_is_whatever_stands_before_the_next_end(key: str) -> None:
    assert read(promotion_marker(key)) == [("promotion", key)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "<!-- openclaw-memory-promotion: -->",
        "<!-- openclaw-memory-promotion:-->",
        "<!-- openclaw-memory-promotion:K",
        "<!-- openclaw-memory-promotion:K --",
        "<!- openclaw-memory-promotion:K -->",
        "<!-- openclaw-memory-promotions:K -->",
        "<!-- x openclaw-memory-promotion:K -->",
        "<!-- openclaw-memory-promot\u0131on:K -->",
        "<!-- tr\u0131gger: a -->",
        "<\\!-- openclaw-memory-promotion:K -->",
        "openclaw-memory-promotion:K -->",
        "<!-- openclaw memory promotion:K -->",
    ],
)
def test_what_is_no_marker(line: str) -> None:
    assert read(line) == []


def test_an_annotation_is_one_comment_and_what_it_says_is_no_marker() -> None:
    assert read(f"- x <!-- trigger: a, {P}") == [("trigger", "a, <!-- openclaw-memory-promotion:K")]
    assert read(f"- x <!-- trigger: a --> {P}") == [("trigger", "a"), ("promotion", "K")]
    assert read("<!-- trigger: -->") == [("trigger", "")]


# --- code spans -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        f"`{P}`",
        f"- quoting `{P}` in a code span",
        f"- quoting `` `{P}` `` in a code span",
        f"` {P}\t`",
        f"``{P}``",
        f"a `b` `{P}` c`",
        f"`` ` `` then `{P}`",
        f"`{P}` and `{promotion_marker('B')}`",
        f"`{lineage_marker('K')}`",
    ],
)
def test_D3_case_J3g_a_marker_alone_in_its_code_span_is_text(line: str) -> None:
    assert read(line) == []


@pytest.mark.parametrize(
    "line",
    [
        f"- don`t {P} won`t",
        f"`{P}",
        f"{P}`",
        f"``{P}`",
        f"`x {P}`",
        f"`{P} x`",
        f"`a`{P}`b`",
        f"` `{P}` `",
        f"`{P}{promotion_marker('B')}`",
        f"`<!-- trigger: a -->{P}`",
        f"```x``` {P} ``",
    ],
)
def test_D3_case_J16_among_stray_backticks_or_with_anything_else_it_is_a_marker(line: str) -> None:
    assert ("promotion", "K") in read(line)


def test_annotations_in_code_are_read_all_the_same() -> None:
    # They own nothing, so nothing depends on it; and a line with backticks is never a run.
    assert read("`<!-- trigger: a -->`") == [("trigger", "a")]


@given(st.lists(st.sampled_from(["`", "``", "```", " ", "x", P, f"{P} ", f"`{P}`", "<!-- trigger: ` -->"]), max_size=9))
def test_D3_what_is_shown_in_code_is_that_of_the_plain_reading(pieces: list[str]) -> None:
    line = "".join(pieces)
    expected, at = [], line.find(P)
    while at >= 0:
        around = [(line[a:at], line[at + len(P) : b]) for a, b in plain_oracles.code_spans(line) if a <= at < b]
        if not any(not before.strip(" `") and not after.strip(" `") for before, after in around):
            expected.append(at)
        at = line.find(P, at + 1)
    assert [c.start for c in comments(line) if c.kind is PROMOTION] == expected


# --- managed fences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", ["diary", "deep"])
@pytest.mark.parametrize("edge", ["start", "end"])
def test_report_B19_managed_fences(block: str, edge: str) -> None:
    fence = f"<!-- openclaw:dreaming:{block}:{edge} -->"
    for line in (fence, f"  {fence}\t", fence.upper(), fence.replace(" ", ""), f"{fence}\r\n", f"{fence}\n"):
        assert is_managed_fence(line)
    for line in (f"- {fence}", f"{fence} x", fence.replace(edge, edge + "s"), f"`{fence}`", "", fence[:-1]):
        assert not is_managed_fence(line)
    assert read(fence) == []


def test_other_comments_of_the_host_are_no_markers() -> None:
    assert read("<!-- openclaw:dreaming:backfill-entry day=2026-11-25 source=memory/x.txt -->") == []
    assert not is_managed_fence("<!-- openclaw:dreaming:backfill-entry day=2026-11-25 source=memory/x.txt -->")


# --- laws -------------------------------------------------------------------------------------------------------------

ANY_LINE = st.one_of(
    memory_lines(),
    raw_texts().map(lambda text: text.replace("\n", " ")),
    st.lists(
        st.sampled_from(["<!--", "-->", " ", "trigger:", "openclaw-memory-promotion:", "K", "`", "ı"]), max_size=9
    ).map("".join),
)


@given(ANY_LINE)
def test_comments_are_in_order_apart_and_what_they_say(line: str) -> None:
    position = 0
    for comment in comments(line):
        assert position <= comment.start < comment.end <= len(line)
        assert line[comment.start : comment.end].startswith("<!--")
        assert line[comment.start : comment.end].endswith("-->")
        assert comment.value in line[comment.start : comment.end]
        assert comment.value or comment.kind not in (PROMOTION, LINEAGE)
        position = comment.end


@given(ANY_LINE)
def test_the_cheap_test_is_never_wrong_when_it_says_no(line: str) -> None:
    assert mentions_promotion(line) or not any(comment.kind is PROMOTION for comment in comments(line))


@given(st.text("abcXY:./-_019 é茶", min_size=1).filter(lambda key: key == key.strip() and "-->" not in key))
def test_a_rendered_marker_is_read_back(key: str) -> None:
    assert read(promotion_marker(key)) == [("promotion", key)]
