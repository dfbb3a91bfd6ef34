"""What goes from a memory text and what stays: cases E and J, D2–D6 and D16 as one, I2, and the laws of scrubbing.

Where a text is a list of lines, those that must go begin with ``×``, and all others must stay: each case is its own
twin.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memprov.core.purge import Scrub, ScrubRules, promotion_keys, scrub_text
from memprov.core.text import SessionMatcher, Snippet, lineage_marker, promotion_marker, to_bytes
from memprov.errors import InputError
from memprov.testing.strategies import ENTRY_KEYS, SENTENCES, memory_texts, raw_texts, scrub_rules, written_texts
from tests.core import plain_oracles

P, L, T = promotion_marker, lineage_marker("x"), "<!-- trigger: tea -->"
A, B, C, K, N = P("A"), P("B"), P("C"), P("K"), P("N")
L2 = lineage_marker("y")
START, END = "<!-- openclaw:dreaming:diary:start -->", "<!-- openclaw:dreaming:diary:end -->"
QUOTE = "the kiln code is 42 today"


def scrub(
    text: str,
    keys: Iterable[str] = (),
    ids: Iterable[str] = (),
    snippets: Iterable[str | Snippet] = (),
    *,
    phase_report: bool = False,
) -> Scrub:
    """``keys`` may be a string of keys of one letter each."""
    return scrub_text(text, ScrubRules("main", ids, set(keys), snippets), phase_report=phase_report)


def check(
    lines: list[str],
    keys: Iterable[str] = (),
    ids: Iterable[str] = (),
    snippets: Iterable[str | Snippet] = (),
    *,
    phase_report: bool = False,
) -> Scrub:
    """Scrub the lines, under LF and CRLF; exactly those that begin with × go."""
    results = []
    for ending in ("\r\n", "\n"):
        text = "".join(f"{line.removeprefix('×')}{ending}" for line in lines)
        expected = "".join(f"{line}{ending}" for line in lines if not line.startswith("×"))
        result = scrub(text, keys, ids, snippets, phase_report=phase_report)
        assert result.text == expected
        assert scrub(result.text, keys, ids, snippets, phase_report=phase_report).text == expected, "idempotent"
        results.append(result)
    return results[-1]


def counted(result: Scrub) -> tuple[int, int]:
    return result.removed_entries, result.removed_lines


# --- cases E ----------------------------------------------------------------------------------------------------------


def test_case_E3_a_marked_entry_goes() -> None:
    assert counted(check(["# H", f"×{K}", "×- gone", "- stay"], "K")) == (1, 0)


def test_case_E4_line_endings_are_preserved() -> None:
    result = scrub(f"{K}\r\n- gone\r\n  cont\r\n- stay\r\n", "K")
    assert (result.text, *counted(result)) == ("- stay\r\n", 1, 0)


def test_case_E5_the_lineage_marker_goes_along() -> None:
    assert counted(check([f"×{L}", f"×{K}", "×- gone"], "K")) == (1, 0)


def test_case_E7_a_marker_above_a_blank_dangles() -> None:
    result = check([f"×{K}", "", "- next"], "K")
    assert counted(result) == (1, 0)
    assert result.dangling_markers == ("K",)


def test_case_E8_stacked_markers_share_their_entry() -> None:
    result = check([f"×{A}", f"×{B}", "×- shared", "## N", "- k"], "B")
    assert counted(result) == (1, 0)
    assert result.collateral_entry_keys == ("A",)
    assert result.dangling_markers == ()


def test_case_E10_an_inline_marker_owns_its_line() -> None:
    assert counted(check([f"×- x {K}", "- y"], "K")) == (1, 0)
    for spelling in ("<!--OpenClaw-Memory-PROMOTION:K-->", "<!--  openclaw-memory-promotion:\tK  -->"):
        assert counted(check([f"×- x {spelling}", "- y"], "K")) == (1, 0)
        assert counted(check([f"×{spelling}", "×- x", "- y"], "K")) == (1, 0)


def test_case_E11_a_quoting_line_goes_whole() -> None:
    result = scrub("- quote User: the secret code x\n- o", snippets=["User: the secret code x"])
    assert (result.text, *counted(result)) == ("- o", 0, 1)


def test_case_E12_with_or_without_its_label() -> None:
    assert counted(check(["×- the secret code x"], snippets=["User: the secret code x"])) == (0, 1)
    assert counted(check(["thanks a lot"], snippets=["User: thanks"])) == (0, 0)


def test_case_E13_D4_a_quotation_takes_the_entry_along() -> None:
    result = check([f"×{N}", "×- User: the kiln code is 42", "- row"], snippets=["User: the kiln code is 42"])
    assert counted(result) == (0, 1)
    assert result.collateral_entry_keys == ("N",)


def test_case_E20_each_excerpt_of_a_history_is_an_entry() -> None:
    lines = [f"×{K}", "×- `+ new`", f"×{K}", "×- `- old`", P("Z"), "- `+ other`"]
    assert counted(check(lines, "K")) == (2, 0)


@pytest.mark.parametrize(
    "text", ["a\r\nb\nc", "", "\n", "\r\n\r\n", "\ufeff", "\ufeffa", "a\rb", "é\udcff\n", f"{K}\n- x"]
)
def test_case_E21_report_B04_what_matches_nothing_is_byte_identical(text: str) -> None:
    result = scrub(text, ["other"], ["s9"], ["User: never said anywhere"])
    assert result == Scrub(text)
    assert result.text is text
    assert not result.changed


# --- cases J ----------------------------------------------------------------------------------------------------------


def test_F11_case_of_a_title_underlined() -> None:
    check(["×## Session ID: s1", "×", "×spare key", "×", "Garden", "------", "", "roses need lime"], ids=["s1"])
    check(["×Session ID: s1", "×======", "×", "×spare key", "×", "Garden", "======", "roses"], ids=["s1"])


def test_case_J3e_stacked_pairs_share_their_entry() -> None:
    result = check([f"×{L}", f"×{A}", f"×{L2}", f"×{B}", "×- shared", "- other"], "A")
    assert (*counted(result), result.collateral_entry_keys) == (1, 0, ("B",))


def test_case_J3f_of_a_dangling_run_only_the_selected_marker_goes() -> None:
    result = check([A, f"×{B}", "", "- row"], "B")
    assert (*counted(result), result.dangling_markers, result.collateral_entry_keys) == (1, 0, ("B",), ())


@pytest.mark.parametrize("line", [f"- quoting `{K}` in a code span", f"- quoting `` `{K}` `` in a code span"])
def test_case_J3g_a_marker_that_is_shown_is_text(line: str) -> None:
    assert scrub(f"{line}\n", "K") == Scrub(f"{line}\n")
    assert promotion_keys(f"{line}\n") == ()


def test_case_J5_J5b_J5c_J6_lines_that_quote() -> None:
    check(
        ["×- a ripe yellow plum", "- overripe yellow plum", "- ripe yellow plums"], snippets=["User: ripe yellow plum"]
    )
    check(["×他说我早上喜欢喝乌龙茶而不是咖啡。"], snippets=["User: 我早上喜欢喝乌龙茶而不是咖啡"])
    friday = ["×* buy oat milk on Friday", "×> buy oat milk on Friday", "×1. buy oat milk on Friday"]
    assert counted(check(friday, snippets=["User: - buy oat milk on Friday"])) == (0, 3)
    zoe = ["×- Zoe\u0308 likes oat milk", "×Zoë likes oat  milk", "×Zoë likes oat\u00a0milk", "Zoe\u0308 likes milk"]
    assert counted(check(zoe, snippets=["User: Zoë likes oat milk"])) == (0, 3)


def test_case_J5d_a_quotation_in_a_continuation_takes_the_entry_along() -> None:
    lines = [f"×{K}", "×- head", f"×  quotes {QUOTE}", "- row"]
    result = check(lines, snippets=[f"User: {QUOTE}"])
    assert (*counted(result), result.collateral_entry_keys) == (0, 1, ("K",))


def test_case_J7_report_B32_only_LF_and_CRLF_end_lines() -> None:
    text = "keep A\nthe secret code x\u2028keep B\x0ckeep C\x85keep D\rkeep E\r\nkeep F"
    assert scrub(text, snippets=["User: the secret code x"]).text == "keep A\nkeep F"


def test_report_B32_a_marked_line_with_unusual_separators() -> None:
    text = f"keep A\nsecret {K}\u2028keep B\x0ckeep C\x85keep D\r\nkeep E"
    result = scrub(text, "K")
    assert (result.text, result.spans) == ("keep A\nkeep E", ((7, len(text.encode()) - 6),))


def test_case_J8_a_byte_order_mark_stays() -> None:
    assert scrub(f"\ufeff{K}\r\n- gone\r\n- stay", "K").text == "\ufeff- stay"
    assert scrub(f"\ufeff{K}\r\n- gone\r\n\r\n", "K").text == "\ufeff\r\n"


def test_D6_a_byte_order_mark_does_not_stay_alone() -> None:
    result = scrub(f"\ufeff{K}\n- gone", "K")
    assert (result.text, result.spans) == ("", ((0, len(f"{K}\n- gone") + 3),))
    assert scrub("\ufeff# Session: x\n- Session ID: s1\n", ids=["s1"]).text == ""


def test_case_J9_a_marker_above_a_heading_dangles() -> None:
    result = check([f"×{K}", "## Heading", "- row"], "K")
    assert (*counted(result), result.dangling_markers) == (1, 0, ("K",))


def test_case_J10_an_entry_ends_at_a_blank() -> None:
    lines = [f"×{K}", "×- gone", "", "A paragraph by hand.", "", "- a list by hand"]
    assert counted(check(lines, "K")) == (1, 0)


def test_case_J12_undecodable_bytes_of_survivors_stay() -> None:
    text = f"a \udcff\udc80 b\n{K}\n- gone\n\udce9\udca0 \udcf0"
    result = scrub(text, "K")
    assert to_bytes(result.text) == b"a \xff\x80 b\n\xe9\xa0 \xf0"
    assert result.spans == ((7, 7 + len(f"{K}\n- gone\n")),)


def test_D6_bytes_that_meet_over_a_removed_comment_stay_bytes() -> None:
    text = f"{A}\udcc3{B}\udca9\n"
    assert to_bytes(scrub(text, "B").text) == b""
    halves = f"\n{P('A')} {B}\n\n\udcc3\n"
    assert to_bytes(scrub(halves, "B").text) == to_bytes(f"\n{A} \n\n") + b"\xc3\n"


def test_case_J15_an_unclosed_fence_shields_nothing() -> None:
    assert counted(check(["```", "note", f"×{K}", "×- gone"], "K")) == (1, 0)


def test_case_J16_among_stray_backticks_it_is_a_marker() -> None:
    assert counted(check([f"×- don`t {K} won`t"], "K")) == (1, 0)


def test_case_J17_an_indented_run_is_no_continuation() -> None:
    assert counted(check([f"×{A}", "×- x", f"  {B}", "- y"], "A")) == (1, 0)


# --- D3 ---------------------------------------------------------------------------------------------------------------

MARKED = {
    "no marker, no entry": (["- A", "A", "<!-- A -->"], "A"),
    "a key that is longer": ([P("AA"), "- x", P("a"), "- y"], "A"),
    "a key with an annotation behind it": ([f"×{A} {T}", "×- x"], "A"),
    "annotations between": ([f"×{T}", f"×{A}", f"×{T}", "×- x", "- y"], "A"),
    "a run stacked over a blank": ([A, "", f"×{B}", "×- x"], "B"),
    "two in a line": ([f"×{A}{B}", "×- x"], "A"),
    "an inline marker below a run": ([f"×{A}", f"×- x {B}", "- y"], "B"),
    "annotations above an inline marker": ([f"×{T}", f"×{L}", f"×- x {A}", "- y"], "A"),
    "annotations above another line": ([T, "- y", f"×- x {A}"], "A"),
    "an inline marker in a continuation": ([A, "- a", f"×  b {B}", "×   c", "- d"], "B"),
    "an entry with an inline marker in it": ([f"×{A}", "×- a", f"×  b {B}", "×   c", "- d"], "A"),
    "a heading with an inline marker": ([f"×## H {A}", "text", "- row"], "A"),
    "a heading with a run that dangles above it": ([f"×{A}", f"×## H {B}", "text"], "B"),
    "a run that dangles above such a heading": ([f"×{A}", f"## H {B}", "text"], "A"),
    "in a table": (["| a |", f"×| b {A} |", "| c |"], "A"),
    "in a quote": ([f"×> x {A}", "> y"], "A"),
    "alone in a quote": ([f"×> {A}", "> y"], "A"),
    "an entry that is a quote": ([f"×{A}", "×> x", "> y"], "A"),
    "alone in a row": ([f"×- {A}", "- y"], "A"),
    "an entry that is code": ([f"×{A}", "×```", "×x", "×```", "y"], "A"),
    "an entry with code in it": ([f"×{A}", "×- x", "×  ```", "×y", "×", "×  ```", "×  z", "- w"], "A"),
    "an entry that is half a fence": ([f"×{A}", "×```", "y"], "A"),
    "in code": (["```", A, "- x", f"- y {A}", "```"], "A"),
    "in code of tildes": (["~~~~", A, "~~~", "~~~~"], "A"),
    "code in a list row": (["- ```", "  x", "  ```", f"×{A}", "×- y", "```", "z", "```"], "A"),
    "a code row that was cut off": ([f"×{A}", "×- ```js x", f"×{A}", "×- y", "```", "z", "```"], "A"),
    "above a managed fence": ([f"×{A}", END], "A"),
    "an indented managed fence is nobody's": ([f"×{A}", "×- x", f"  {END}", "by hand"], "A"),
    "at the end": (["- x", f"×{A}"], "A"),
    "blank lines of quote marks": ([f"×{A}", ">", "> x"], "A"),
    "a blank line of NBSP": ([f"×{A}", "\u00a0", "- x"], "A"),
    "a continuation indented with NBSP": ([f"×{A}", "×- x", "×\u00a0y", "- z"], "A"),
    "a continuation indented with U+2028": ([f"×{A}", "×- x", "×\u2028y", "- z"], "A"),
    "an annotation as a continuation": ([f"×{A}", "×- x", f"×  {T}", "- y"], "A"),
    "an annotation that stays with its entry": ([A, "- x", f"  {T}", f"×{B}", "×- y"], "B"),
    "a dangling run goes whole": ([f"×{T}", f"×{L}", f"×{A}", f"×{T}", ""], "A"),
    "a dangling run in part": ([T, f"×{L}", f"×{A}", T, B, ""], "A"),
    "lineage markers above in part": ([A, f"×{L}", f"×{L2}", f"×{B}", ""], "B"),
    "a lineage marker that is not directly above": ([L, T, f"×{B}", A, ""], "B"),
    "a dangling run twice": ([f"×{A}", f"×{A}", "", f"×{A}"], "A"),
    "empty keys are no markers": (["<!-- openclaw-memory-promotion: -->", "- x"], ""),
    "annotations below a marked heading": ([f"×## H {A}", f"×  {T}", f"- x {B}"], "A"),
    "annotations in a dangling run, below one that goes": ([f"×{A}", f"×  {T}", f"  {B}", ""], "A"),
    "annotations in a dangling run, below one that stays": ([f"×{A}", B, f"  {T}", ""], "A"),
    "above a title underlined": ([f"×{A}", "Title", "=====", "- row"], "A"),
    "in a title underlined": (["x", "", f"×Title {A}", "×---", "- row"], "A"),
    "F13 a row beside the marked one": (
        ["- merged today:", f"×  - tea {A}", f"  - bought a lamp {B}", "  - by hand"],
        "A",
    ),
    "the same with tabs": (["- merged today:", f"×\t- tea {A}", "×\t  more", f"\t- a lamp {B}", "\t- by hand"], "A"),
    "a tab is as deep as four blanks": ([f"×    - tea {A}", "\t- by hand", "     - by hand too"], "A"),
    "a row less deep": ([f"×  - tea {A}", "×   more", " - by hand"], "A"),
    "a run above an indented row": ([f"×  {A}", "×  - tea", "×    more", "  - by hand"], "A"),
    "an entry inside and one beside it": ([f"×{A}", "×- a", f"×  - b {B}", "×    c", f"×  - d {C}", "- e"], "A"),
    "an entry inside, by itself": ([A, "- a", f"×  - b {B}", "×    c", f"  - d {C}", "- e"], "B"),
    "in a quote, deeper": ([f"×> - tea {A}", ">   - more".replace(">", "×>", 1), "> - by hand"], "A"),
    "code in a row beside": ([f"×  - tea {A}", "×    ```", "×x", "×    ```", "  - by hand"], "A"),
    "stacked runs with blanks": ([f"×{A}", "", f"×{A}", "", f"×{A}", "×- x", "- y"], "A"),
}


@pytest.mark.parametrize(("lines", "keys"), MARKED.values(), ids=MARKED)
def test_D3_entry_keys(lines: list[str], keys: str) -> None:
    check(lines, keys)


def test_F13_a_continuation_is_indented_deeper_than_its_head() -> None:
    for indent in ("  ", "\t", " \t", "\u00a0", "      "):
        rows = [f"{indent}- tea {A}", f"{indent}- bought a lamp {B}", f"{indent}by hand", f"{indent}- {C} and more"]
        check(["- merged today:", f"×{rows[0]}", *rows[1:]], "A")
        check(["- merged today:", f"×{rows[0]}", f"×{indent} more", f"×{indent}\t- more", *rows[1:]], "A")


def test_D3_of_a_line_with_several_markers_only_the_comment_goes() -> None:
    for text, keys, left in [
        (f"{A} {B}\n\n- x\n", "A", f" {B}\n\n- x\n"),
        (f"{A}{B}{C}\n\n", "B", f"{A}{C}\n\n"),
        (f"{L}{A} {B}\n\n", "A", f" {B}\n\n"),
        (f"{L}\n{A} {B}\n\n", "A", f" {B}\n\n"),
        (f"{A} {T}\n{B}\n\n", "A", f"{B}\n\n"),
        (f"{A} {B}\n\n", "AB", "\n"),
        (f"é {A}\n{B}{A}\n", "B", f"é {A}\n{A}\n"),
    ]:
        result = scrub(text, keys)
        assert result.text == left
        assert scrub(left, keys).text == left
        assert set(result.dangling_markers) == set(keys)


CLOSED = {
    "a run would own the next row": ([f"×{A}", f"×## {QUOTE}", "- row"], ("A",)),
    "a run would own the row after two lines": ([f"×{A}", f"×# {QUOTE}", f"×{QUOTE}", "- row"], ("A",)),
    "a run comes above a heading": ([A, f"×## {QUOTE}", "## H", "- row"], ()),
    "a run comes above a blank": ([A, f"×## {QUOTE}", "", "- row"], ()),
    "a run comes above the end": ([A, f"×## {QUOTE}"], ()),
    "a run comes above a fence": ([A, f"×## {QUOTE}", END], ()),
    "a run comes above a run that owns": ([f"×{A}", f"×## {QUOTE}", B, "- row"], ("A",)),
    "a run comes above a run that dangles": ([A, f"×## {QUOTE}", B, "", "- row"], ()),
    "annotations would own the next row": ([f"×{T}", f"×## {QUOTE}", f"- row {A}"], ()),
    "a run comes above a marked heading": ([A, f"×## {QUOTE}", f"## H {B}"], ()),
    "one thing after the other": ([A, "- k", f"×{QUOTE}", "×  n", "", f"×{B}", f"×# {QUOTE}", "- row"], ("B",)),
    "annotations come above a marked heading": ([f"×{T}", f"×## {QUOTE}", f"## H {A}"], ()),
    "a lineage marker would own the next row": ([f"×{L}", f"×## {QUOTE}", A, "- row"], ()),
    "a nested row would become a continuation": ([A, "- keep", f"×- {QUOTE}", "×  nested", "- z"], ()),
    "a nested row below plain text stays": (["- keep", f"×- {QUOTE}", "  nested", "- z"], ()),
    "a nested run would become nothing": ([A, "- keep", f"×- {QUOTE}", f"  {B}", "  nested", "- z"], ()),
    "a nested entry would become a continuation": ([A, "- keep", f"×- {QUOTE}", f"×  x {B}", "- z"], ("B",)),
    "a blank keeps them apart": ([A, "- keep", "", f"×- {QUOTE}", "  nested", "- z"], ()),
    "a chain of them": ([A, "- keep", f"×{QUOTE}", "×  b", "×   c", "×  d", "e"], ()),
    "code would become a continuation": ([A, "- keep", f"×{QUOTE}", "×  ```", "×x", "×  ```", "e"], ()),
    "code below such code": ([A, "- k", f"×{QUOTE}", *["×  ```", "×x", "×  ```"] * 3, "e"], ()),
    "annotations would become a continuation": ([A, "- keep", f"×## {QUOTE}", f"×  {T}", "×- x", "- z"], ()),
    "annotations describe what is above them": (["- keep", f"×- {QUOTE}", f"×  {T}", "- z"], ()),
    "annotations at the margin describe what is below": (["- keep", f"×- {QUOTE}", T, "- z"], ()),
    "a managed fence is no continuation": ([A, "- keep", f"×{QUOTE}", f"  {END}", "e"], ()),
    "a nested row beside a nested entry": (["- l", f"  - keep {A}", f"×  - {QUOTE}", "  - z"], ()),
    "a nested row would go deeper": (["- l", f"  - keep {A}", f"×  - {QUOTE}", "×    y", "  - z"], ()),
    "a break would make a heading": (["keep", f"×- {QUOTE}", "×---", "z"], ()),
    "a break that makes none": (["keep", "", f"×- {QUOTE}", "---", "z"], ()),
    "a quoted title goes with its underline": (["keep", f"×{QUOTE}", "×---", "z"], ()),
    "the row of a session owns itself": ([A, "- keep", f"×{QUOTE}", "  - Session ID: s2", "    x", "e"], ()),
    "and what holds it too": ([A, "- keep", f"×{QUOTE}", "  ```", "  Session ID: s2", "  ```", "e"], ()),
}


@pytest.mark.parametrize(("lines", "collateral"), CLOSED.values(), ids=CLOSED)
def test_D3_no_removal_gives_a_marker_a_line_that_it_did_not_own(lines: list[str], collateral: tuple[str, ...]) -> None:
    assert check(lines, snippets=[QUOTE]).collateral_entry_keys == collateral


# --- D2 in files, D4 --------------------------------------------------------------------------------------------------

QUOTED = {
    "a heading": (["a", f"×## {QUOTE}", "b"], ()),
    "nested rows of a quoted row stay": ([f"×- {QUOTE}", "  - b", "    c"], ()),
    "a continuation": (["- a", f"×  {QUOTE}", "  b"], ()),
    "in code only the line": (["```", f"×{QUOTE}", "b", "```"], ()),
    "in a fence line the block": ([f"×``` {QUOTE}", "×b", "×```", "c"], ()),
    "in half a fence the line": ([f"×``` {QUOTE}", "b"], ()),
    "in a table": (["| a |", f"×| {QUOTE} |"], ()),
    "in a quote": (["> a", f"×> {QUOTE}", "> b"], ()),
    "in an entry": ([f"×{L}", f"×{A}", f"×{B}", f"×- so {QUOTE}!", "×  b", "c"], ("A", "B")),
    "in an inline marker's line": ([f"×{T}", f"×- {QUOTE} {A}", "×  b", "c"], ("A",)),
    "in an entry inside an entry": ([f"×{A}", "×- a", f"×  b {B}", f"×   {QUOTE}", "c"], ("A", "B")),
    "in code of an entry": ([f"×{A}", "×- a", "×  ```", f"×{QUOTE}", "×  ```", "c"], ("A",)),
    "above an entry": ([f"×{QUOTE}", A, "- a"], ()),
    "below an entry": ([A, "- a", f"×{QUOTE}", "b"], ()),
    "in a marker that is shown": ([f"×- {QUOTE} `{A}`", "b"], ()),
    "with its label": ([f"×- User: {QUOTE}", f"×- assistant: > {QUOTE}."], ()),
    "as promoted": ([f"×- [main/sessions/main/s1#L2] User: {QUOTE} [score=0.4 signals=1] {T}"], ()),
}


@pytest.mark.parametrize(("lines", "collateral"), QUOTED.values(), ids=QUOTED)
def test_D2_D4_quotations(lines: list[str], collateral: tuple[str, ...]) -> None:
    result = check(lines, snippets=[f"User: {QUOTE}"])
    assert result.collateral_entry_keys == collateral
    assert counted(result) == (0, sum(QUOTE in line for line in lines))


def test_D4_a_label_in_an_entry_counts_as_one_section() -> None:
    result = check([f"×{A}", "×- a", "×  - Session ID: s1", "×  - Session ID: s1", "b"], ids=["s1"])
    assert (*counted(result), result.collateral_entry_keys) == (1, 0, ("A",))


@pytest.mark.parametrize("line", [START, END, f"  {END}", A, L, T, f"{A} {T}", f"{L}{A}{B}"])
def test_report_B19_structure_is_never_quoted(line: str) -> None:
    for snippet in (f"User: {line.strip()}", "User: openclaw", "User: openclaw:dreaming:diary:end", line.strip()[5:-4]):
        assert scrub(f"x\n{line}\n\ny\n", snippets=[snippet]).text == f"x\n{line}\n\ny\n"
    assert scrub(f"x\n- so {line} is shown\n", snippets=[f"User: {line.strip()}"]).text == "x\n"


def test_D2_many_snippets_and_a_cut_one() -> None:
    lines = ["×- I prefer oolong tea in the mornings", "×- the second sentence", "- I prefer green tea"]
    check(lines, snippets=[Snippet("User: I prefer oolong tea in the mor", cut=True), "the second sentence"])
    check([line.removeprefix("×") for line in lines[:1]], snippets=["User: I prefer oolong tea in the mor"])


# --- D16 --------------------------------------------------------------------------------------------------------------

REPORT = [
    "# Light Sleep",
    "",
    f"×- Candidate: User: {QUOTE}",
    "×  - confidence: 0.58",
    "×  - evidence: memory/.dreams/session-corpus/2026-11-28.txt:5-5",
    "×    - deeper",
    "- Candidate: User: something else entirely",
    "  - confidence: 0.58",
]


def test_D16_in_a_phase_report_nested_rows_go_with_their_candidate() -> None:
    result = check(REPORT, snippets=[f"User: {QUOTE}"], phase_report=True)
    assert counted(result) == (0, 1)


def test_D16_elsewhere_they_stay() -> None:
    lines = [line.removeprefix("×") if line.startswith("× ") else line for line in REPORT]
    check(lines, snippets=[f"User: {QUOTE}"])


NESTED = {
    "a blank ends them": [f"×- {QUOTE}", "×  a", "", "  b"],
    "a row of the same width ends them": [f"×  - {QUOTE}", "×   a", "  - b", "    c"],
    "in a quote": [f"×> - {QUOTE}", "×>   - a", "> - b", "  c"],
    "prose has none": [f"×{QUOTE}", "  a"],
    "an entry among them": [f"×- {QUOTE}", f"×  {A}", "×  - a", "×   b", "- c"],
    "a run above the next row": [f"×- {QUOTE}", "×  - a", f"  {A}", "- b"],
    "a managed fence ends them": [f"×- {QUOTE}", "×  a", f"  {END}", "b"],
    "quoted rows among them": [f"×- {QUOTE}", f"×  - {QUOTE}", "×    - a", "- b"],
}


@pytest.mark.parametrize("lines", NESTED.values(), ids=NESTED)
def test_D16_nested_rows(lines: list[str]) -> None:
    result = check(lines, snippets=[QUOTE], phase_report=True)
    assert counted(result) == (0, sum(QUOTE in line for line in lines))


# --- counting (docs: The report)
# --------------------------------------------------------------------------------------------


def test_a_removed_byte_counts_once_marker_then_section_then_quotation() -> None:
    text = f"## Session ID: s1\n{K}\n- Session ID: s1, {QUOTE}\nx {QUOTE}\n"
    assert counted(scrub(text, "K", ["s1"], [QUOTE])) == (2, 0)
    assert counted(scrub(text, "", ["s1"], [QUOTE])) == (1, 0)
    assert counted(scrub(text, "K", [], [QUOTE])) == (1, 1)
    assert counted(scrub(text, "", [], [QUOTE])) == (0, 2)
    assert counted(scrub(f"{K}\n- Session ID: s1\n", "K", ["s1"])) == (1, 0)
    assert counted(scrub(f"{K}\n- Session ID: s1\n", "", ["s1"])) == (1, 0)
    assert counted(scrub(f"{K}\n- a\n  b {A}\n", "KA")) == (1, 0)
    assert counted(scrub(f"{A}\n{A}\n\n{A} {A}\n", "A")) == (4, 0)


def test_collateral_and_dangling_keys_are_sorted_and_named_once() -> None:
    result = scrub(f"{B}\n{A}\n- {QUOTE}\n{B}\n- {QUOTE}\n{P('Z')}\n# {QUOTE}\n- x\n", "A", [], [QUOTE])
    assert result.collateral_entry_keys == ("B", "Z")
    assert result.dangling_markers == ("Z",)
    assert result.removed_entries == 1


# --- whole files ------------------------------------------------------------------------------------------------------


def test_report_B22_a_file_all_of_which_is_selected_becomes_empty() -> None:
    for text in (f"{K}\n- x\n  y", f"- x {K}\n", f"{K}\n", "# Session: a\n- Session ID: s1\nx"):
        assert scrub(text, "K", ["s1"]).text == ""
    assert scrub("", "K", ["s1"], [QUOTE]) == Scrub("")


def test_report_B77_half_markers_and_forged_ones_shield_nothing() -> None:
    unclosed = f"- say <!-- openclaw-memory-promotion:K\n{N}\n- x\n"
    assert scrub(unclosed, "K").text == unclosed
    assert scrub(unclosed, "N").text == "- say <!-- openclaw-memory-promotion:K\n"
    split = "<!-- openclaw-memory-promotion:\nK -->\n- x\n"
    assert scrub(split, "K").text == split
    assert scrub(f"- a --> b\n{N}\n- x\n", "N").text == "- a --> b\n"


def test_a_label_without_a_value_does_not_hide_the_next_line() -> None:
    check(["Session ID:", "×Session ID: s1"], ids=["s1"])
    check(["- **Session ID:**", "×- Session ID: s1"], ids=["s1"])


def test_nothing_is_selected_by_no_rules() -> None:
    assert scrub(f"{K}\n- Session ID: s1\n").text == f"{K}\n- Session ID: s1\n"


def test_rules_refuse_lone_strings() -> None:
    with pytest.raises(InputError):
        ScrubRules("main", session_ids="lone")
    with pytest.raises(InputError):
        ScrubRules("main", entry_keys="lone")
    with pytest.raises(InputError):
        ScrubRules("main", snippets="lone")
    assert ScrubRules("main", snippets=["a", Snippet("b", cut=True)]).snippets == (Snippet("a"), Snippet("b", cut=True))


def test_every_live_key_is_listed() -> None:
    assert promotion_keys(f"\ufeff{A}\n- x {B}\n```\n{C}\n```\n`{C}`\n{A} {B}") == ("A", "B", "A", "B")
    assert promotion_keys("nothing") == ()


# --- I2 and the laws --------------------------------------------------------------------------------------------------

KEYS = ("k", "k1", "k2")
IDS = ("s1", "s2")
HOSTILE = memory_texts(IDS, KEYS, SENTENCES[:2])
KEY_SETS = st.sets(st.sampled_from(KEYS))


def gone_lines(text: str, result: Scrub) -> set[int]:
    """The numbers of the lines that went whole; asserts that nothing else but whole comments went."""
    gone, position, partly = set(), 0, 0
    spans = list(result.spans)
    for number, line in enumerate(plain_oracles.split_lines(text)):
        start, position = position, position + len(to_bytes(line))
        inside = [(max(a, start), min(b, position)) for a, b in spans if a < position and b > start]
        if inside == [(start, position)]:
            gone.add(number)
        for a, b in inside if number not in gone else ():
            comment = to_bytes(line)[a - start : b - start]
            assert comment.startswith(b"<!--") or line.startswith("\ufeff")
            assert comment.endswith((b"-->", b"\n")) or line.startswith("\ufeff")
            partly += 1
    assert partly <= len(spans)
    return gone


@given(st.one_of(HOSTILE, memory_texts(), raw_texts()), scrub_rules(), st.booleans())
def test_I2_the_output_is_the_input_less_the_spans(text: str, rules: ScrubRules, phase_report: bool) -> None:
    result = scrub_text(text, rules, phase_report=phase_report)
    data, position, left = to_bytes(text), 0, b""
    for start, end in result.spans:
        assert position <= start < end <= len(data)
        assert start > position or position == 0, "spans that touch are one"
        left += data[position:start]
        position = end
    assert to_bytes(result.text) == left + data[position:]
    assert result.changed is (result.text != text) is bool(result.spans)
    gone_lines(text, result)


@given(st.one_of(HOSTILE, memory_texts()), scrub_rules(), st.booleans())
def test_scrubbing_twice_is_scrubbing_once(text: str, rules: ScrubRules, phase_report: bool) -> None:
    once = scrub_text(text, rules, phase_report=phase_report)
    again = scrub_text(once.text, rules, phase_report=phase_report)
    assert again == Scrub(once.text)


@given(st.one_of(HOSTILE, memory_texts(entry_keys=KEYS)), KEY_SETS)
def test_I2_D3_of_entry_keys_exactly_what_the_plain_reading_owns_goes(text: str, keys: set[str]) -> None:
    assume(not plain_oracles.stands_apart(text))
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix("\ufeff")
    left = plain_oracles.less_entries(body, keys)
    assert scrub(text, keys).text == (mark + left if left or not body else "")


@given(HOSTILE, KEY_SETS, KEY_SETS)
def test_entry_keys_one_by_one_are_entry_keys_together_on_any_text(text: str, some: set[str], others: set[str]) -> None:
    together = scrub(text, some | others).text
    assert scrub(scrub(text, some).text, others).text == together
    assert scrub(scrub(text, others).text, some).text == together


@given(HOSTILE, KEY_SETS, KEY_SETS)
def test_more_entry_keys_remove_more_on_any_text(text: str, some: set[str], others: set[str]) -> None:
    few, many = scrub(text, some), scrub(text, some | others)
    for start, end in few.spans:
        assert any(a <= start and end <= b for a, b in many.spans)


@given(written_texts(IDS, KEYS), st.sets(st.sampled_from(IDS)), KEY_SETS, st.sampled_from(SENTENCES), st.data())
def test_more_of_a_selection_removes_more_of_what_writers_write(
    text: str, ids: set[str], keys: set[str], sentence: str, data: st.DataObject
) -> None:
    few_ids, few_keys = data.draw(st.sets(st.sampled_from(IDS))) & ids, data.draw(KEY_SETS) & keys
    few, many = scrub(text, few_keys, few_ids), scrub(text, keys, ids, [f"User: {sentence}"])
    for start, end in few.spans:
        assert any(a <= start and end <= b for a, b in many.spans)


@given(HOSTILE, KEY_SETS, st.booleans())
def test_nothing_that_another_session_labels_goes(text: str, keys: set[str], quotes: bool) -> None:
    """But where it stands in a marked entry, in code, in a saved conversation or in a line that quotes."""
    assume(not plain_oracles.stands_apart(text))
    text = text.removeprefix("\ufeff")
    result = scrub(text, keys, ["s1"], [SENTENCES[1]] if quotes else [])
    gone, file, matcher = gone_lines(text, result), plain_oracles.PlainFile(text), SessionMatcher("main", ["s1"])
    owned = set().union(*(file.owned_by(n) or () for n in range(len(file.lines)) if file.keys(n)))
    code = {n for first, last in file.blocks for n in range(first, last + 1)}
    for number in gone - owned - code:
        labels = [label.selected for label in matcher.labels(file.lines[number])]
        quoted = any(plain_oracles.quotes(file.lines[number].rstrip("\n"), s) for s in SENTENCES[:2])
        refers = file.heading[number] and matcher.refers(file.lines[number])
        assert quoted or refers or not labels or any(labels)


@given(HOSTILE, KEY_SETS, st.sets(st.sampled_from(["s1"])), st.booleans())
def test_D3_no_marker_owns_a_line_that_it_did_not_own_before(
    text: str, keys: set[str], ids: set[str], quotes: bool
) -> None:
    """But the label of an unselected session, which owns itself and stays."""
    assume(not plain_oracles.stands_apart(text))
    text = text.removeprefix("\ufeff")
    result = scrub(text, keys, ids, [SENTENCES[1]] if quotes else [])
    gone, before, after = gone_lines(text, result), plain_oracles.PlainFile(text), plain_oracles.PlainFile(result.text)
    stays = [number for number in range(len(before.lines)) if number not in gone]
    assert len(stays) == len(after.lines)
    foreign = {n for n, line in enumerate(before.lines) if [*plain_oracles.label_values(line, "main", ids)] == [False]}
    for number, was in enumerate(stays):
        owned = {stays[n] for n in after.owned_by(number) or ()} if after.keys(number) else set()
        extra = owned - {was} - (before.owned_by(was) or set())
        if extra and before.heading[was]:
            extra = {n for n in extra if not before.alone[n]}  # a run that comes to dangle above a marked heading
        assert not extra or foreign & owned


@given(
    st.text(), st.sets(st.text(max_size=3)), st.sets(st.text(max_size=3)), st.lists(st.text(max_size=14), max_size=3)
)
def test_any_text_and_any_rules_are_accepted(text: str, keys: set[str], ids: set[str], snippets: list[str]) -> None:
    result = scrub(text, keys, ids, snippets)
    assert unicodedata.normalize("NFC", result.text) or len(result.text) <= len(text)


# --- twins ------------------------------------------------------------------------------------------------------------


@given(written_texts(("s1", "s2"), KEYS, SENTENCES), st.integers(0, 5))
def test_canaries_of_others_stay_and_those_of_the_session_go(text: str, place: int) -> None:
    """A section, a row, an entry and a quoted line of s1 and of s2 each, at any place between blocks."""

    def twins(name: str) -> list[str]:
        return [
            f"\n## Session: now\n\n- **Session ID**: {name}\n- Topic: tea\n\ncanary {name} section\n\n## By hand\n\n",
            f"\n- Session ID: {name}\n  canary {name} row\n\n",
            f"{P(f'canary-{name}')}\n- canary {name} entry\n  canary {name} continuation\n\n",
            f"- said: canary {name} quoted, indeed\n\n",
        ]

    assume(not plain_oracles.stands_apart(text))
    blocks = text.split("\n\n")
    place = min(place, len(blocks))
    both = "".join(twins("s1")) + "".join(twins("s2"))
    whole = "\n\n".join([*blocks[:place], "\n## By hand\n" + both, "## By hand", *blocks[place:]])
    for selected, other in (("s1", "s2"), ("s2", "s1")):
        left = scrub(whole, [f"canary-{selected}"], [selected], [f"User: canary {selected} quoted, indeed"]).text
        assert f"canary {selected}" not in left
        assert left.count(f"canary {other}") == 5
        assert f"canary-{other}" in left


def test_the_pools_of_the_strategies_hold_what_they_promise() -> None:
    assert all(key in "".join(map(P, ENTRY_KEYS)) for key in ENTRY_KEYS)
    assert all(SENTENCES[1] in sentence for sentence in SENTENCES[:2])
