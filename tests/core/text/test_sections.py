"""What labels and headings own (D5): cases E14–E18, J1–J4, J13, J14, J18 and many nastier ones.

Each text is a list of lines; the lines that must go begin with ``×``, all others must stay, so that every case is its
own twin. Selected are the session s1 and no other, unless said.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.purge import Scrub, ScrubRules, scrub_text
from memprov.core.text import lineage_marker, promotion_marker
from memprov.testing.strategies import labels, memory_texts, written_texts
from tests.core import plain_oracles

N, K, L, T = promotion_marker("N"), promotion_marker("K"), lineage_marker("x"), "<!-- trigger: tea -->"
START, END = "<!-- openclaw:dreaming:diary:start -->", "<!-- openclaw:dreaming:diary:end -->"
S1, S2 = "Session ID: s1", "Session ID: s2"


def forget(text: str, *ids: str) -> Scrub:
    return scrub_text(text, ScrubRules("main", ids or ["s1"]))


def check(lines: list[str], *ids: str, ending: str = "\n") -> Scrub:
    """Scrub the lines; exactly those that begin with × go."""
    text = "".join(f"{line.removeprefix('×')}{ending}" for line in lines)
    scrub = forget(text, *ids)
    assert scrub.text == "".join(f"{line}{ending}" for line in lines if not line.startswith("×"))
    assert forget(scrub.text, *ids).text == scrub.text, "a second time nothing goes"
    return scrub


def counted(scrub: Scrub) -> tuple[int, int]:
    return scrub.removed_entries, scrub.removed_lines


# --- cases ------------------------------------------------------------------------------------------------------------

SNAPSHOT = [
    *("×# Session: 2026-11-25 09:30:00 UTC", "×", "×- **Session Key**: agent:main:x", "×- **Session ID**: s1"),
    *("×- **Source**: telegram", "×", "×## Conversation Summary", "×", "×user: hello there"),
]


def test_case_E14_a_heading_owns_its_section() -> None:
    assert counted(check(["×## Session ID: s1", "×b", "×### sub", "×m", "## Next", "k"])) == (1, 0)


def test_case_E16_a_mere_mention_stays() -> None:
    assert check(["- ref sessions/main/s1 only", "k"]) == Scrub("- ref sessions/main/s1 only\nk\n")


def test_case_E17_an_ordered_row_owns_what_is_indented_below() -> None:
    assert counted(check(["×1. Session ID: s1", "×   detail", "2. b"])) == (1, 0)


def test_case_E18_an_entry_in_a_section_goes_and_is_named() -> None:
    scrub = check(["×## Session ID: s1", f"×{N}", "×- unrelated", "## B"])
    assert counted(scrub) == (1, 0)
    assert scrub.collateral_entry_keys == ("N",)


def test_case_J1_J2_a_saved_conversation_is_emptied_and_anothers_stays() -> None:
    assert counted(check(SNAPSHOT)) == (1, 0)
    check([line.removeprefix("×") for line in SNAPSHOT], "s2")


def test_case_J3_two_ids_in_the_block_only_the_row_goes() -> None:
    assert counted(check(["# Notes", "", f"×- {S1}", f"- {S2}", "", "text"])) == (1, 0)


def test_case_J3b_one_then_the_other_is_both() -> None:
    text = f"# Notes\n\n- {S1}\n- {S2}\n\ntext\n"
    ends = {forget(forget(text, a).text, b).text for a, b in (("s1", "s2"), ("s2", "s1"))}
    assert ends == {forget(text, "s1", "s2").text} == {""}


def test_case_J3c_headings_and_half_fences_inside_a_saved_conversation_go() -> None:
    assert counted(check([*SNAPSHOT, "×# Heading", "×```", f"×- {S2}", "×x"])) == (1, 0)


def test_case_J3d_metadata_below_a_heading_of_a_daily_note() -> None:
    lines = ["# 2026-11-25", "", "×## Morning", f"×- {S1}", "×- Topic: tea", "×talk", "×", "## Groceries", "- milk"]
    assert counted(check(lines)) == (1, 0)


def test_case_J4_fenced_text_is_no_heading_and_a_label_in_it_is_prose() -> None:
    assert counted(check(["```", f"×# {S1}", "```", "after"])) == (1, 0)


def test_case_J13_of_two_saved_conversations_one_goes_whole() -> None:
    first = [line.removeprefix("×") for line in SNAPSHOT]
    second = ["×# Session: later", "×", "×- Session ID: s2", "×", "×# Heading", "×secret"]
    assert counted(check([*first, *second], "s2")) == (1, 0)
    check([*SNAPSHOT, *(line.removeprefix("×") for line in second)])


def test_case_J14_a_section_ends_at_a_managed_fence() -> None:
    assert counted(check([START, "×## Session ID: s1", "×x", END, "by hand"])) == (1, 0)


def test_case_J18_a_section_ends_at_the_label_of_another_session() -> None:
    assert counted(check(["×## Session ID: s1", "×notes", f"- {S2}", "  kept"])) == (1, 0)


# --- D5: headings -----------------------------------------------------------------------------------------------------

HEADINGS = {
    "a path in the heading": ["×## sessions/main/s1", "×x", "## N"],
    "a scoped reference in brackets": ["×## notes (agent:main:s1).", "×x", "## N"],
    "a bold label": ["×# **Session ID:** `s1`, at noon", "×x", "×## sub", "# N"],
    "level 6": ["×###### main:s1", "×x", "###### N", "y"],
    "a lower level ends it": ["×### main:s1", "×x", "×#### sub", "# N"],
    "seven signs are no heading": ["####### main:s1", "x"],
    "seven signs and a label are prose": ["×####### Session ID: s1", "×x", "", "y"],
    "not at column zero": [" ## main:s1", "x"],
    "an indented label heading is prose": ["× ## Session ID: s1", "×x", "", "y"],
    "no blank after the signs": ["#main:s1", "x"],
    "in a quote": ["> ## main:s1", "> x"],
    "an underlined title": [f"×{S1}", "×=====", "×x", "×", "×y", "×Sub", "×---", "×### not", "Next", "===", "z"],
    "a lower title underlined": [f"×{S1}", "×-----", "×x", "×### sub", "×y", "Next", "---", "z"],
    "to a title underlined": [f"×## {S1}", "×", "×a", "×", "Garden", "------", "", "roses need lime"],
    "to an upper title underlined": [f"×### {S1}", "×a", "Garden", "  =  ", "roses"],
    "past a lower title underlined": [f"×# {S1}", "×a", "×Garden", "×---", "×roses", "Top", "==="],
    "past a break": [f"×## {S1}", "×a", "×", "×---", "×", "×- b", "×---", "×", "×> c", "×---", "## N"],
    "past the row of a table": [f"×## {S1}", "×| a |", "×|---|", "×| b |", "×---", "×c", "## N"],
    "to another session's title underlined": [f"×# {S1}", "×a", f"{S2}", "---", "b"],
    "a title underlined above another session's metadata": [f"×# {S1}", "×a", "T", "---", "", f"- {S2}", "b"],
    "a title underlined that refers": ["a", "×see main:s1", "×-", "×b", "# N"],
    "a title underlined above metadata": [
        "a",
        "",
        "×Morning",
        "×-------",
        f"×- {S1}",
        "×- Topic: tea",
        "×",
        "×talk",
        "N",
        "=",
    ],
    "a title underlined below prose": [f"×{S1}", "×a", "Title", "---", "b"],
    "a title underlined below a row": [f"×- {S1}", "×  a", "Title", "---", "b"],
    "to the end of the file": ["a", "×# main:s1", "×x", "×", "×y"],
    "code inside goes along": ["×## main:s1", "×```", "×# not a heading", "×```", "×x", "# N"],
    "an unclosed fence does not shield": ["×## main:s1", "×```", "×x", "## N", "y"],
    "a heading in code ends nothing": ["×## main:s1", "×~~~", "×## N", "×~~~", "×x", "## N"],
    "a heading in code begins nothing": ["```", "## main:s1", "x", "```", "y"],
    "a section inside a section counts once": ["×# main:s1", "×## Session ID: s1", f"×- {S1}", "# N"],
    "two in a row": ["×## main:s1", "×x", "×## main:s1", "×y", "## N"],
    "another session's heading ends it": ["×# main:s1", "×x", "## Session ID: s2", "y"],
    "another session's heading stays whole": ["×# main:s1", "×x", "## Talk", "- Topic: tea", f"- {S2}", "y"],
    "its metadata may stand lower": ["×# main:s1", "## Talk", "", "", f"- **{S2[:10]}**: s2", "", "y"],
    "a deeper heading without metadata goes": ["×# main:s1", "×## Talk", "×x", f"- {S2}", "  y"],
    "after the other's row all stays": ["×# main:s1", f"- {S2}", "x", "## more", "y"],
    "the other's label in prose": ["×# main:s1", "×x", f"about {S2}, said", "y"],
    "the other's label in a quote": ["×# main:s1", f"> 1. {S2}", "> y"],
    "a row of both is the first's": ["×# main:s1", f"×- {S1}; {S2}", "×x"],
    "the other's label in code": ["×# main:s1", "```", "x", S2, "```", "y"],
    "the other's label in code of an entry": ["×# main:s1", "×x", N, "- a", "  ```", f"  {S2}", "  ```"],
    "the other's label in code that an entry begins with": ["×# main:s1", N, "```", S2, "```"],
    "the other's label in an entry": ["×# main:s1", "×x", L, N, "- a", f"  - {S2}", "y"],
    "the other's label below annotations": ["×# main:s1", "×x", T, f"- {S2}", "y"],
    "the other's label below a lineage marker": ["×# main:s1", L, f"- {S2}", "y"],
    "a managed fence inside": ["×# main:s1", "×x", "  " + END, "y"],
    "a managed fence in code ends nothing": ["×# main:s1", "×```", f"×{END}", "×```", "×y"],
    "the heading has an inline marker": [f"×## main:s1 {N}", "×x", "## N"],
    "the other's heading refers to it too": [f"×## main:s1 and {S2}", "×x", "## N"],
}


@pytest.mark.parametrize("lines", HEADINGS.values(), ids=HEADINGS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_D5_headings(lines: list[str], ending: str) -> None:
    check(lines, ending=ending)


METADATA = {
    "all ids selected": ["×## H", f"×- {S1}", "×- Topic:", "×", "×talk", "×### sub", "## N"],
    "blank lines before it": ["×## H", "×", "×", f"×- {S1}", "×talk", "## N"],
    "ordered rows": ["×## H", "×1. Topic: tea", f"×2. {S1}", "×talk", "## N"],
    "nested rows": ["×## H", "×- Topic: tea", "×  - green", "×    - very", f"×- {S1}", "×talk", "## N"],
    "the label in a nested row": ["×## H", "×- Who: me", f"×  - {S1}", "×talk", "## N"],
    "keys in code": ["×## H", "×- `Session ID`: `s1`", "×- `Topic`: tea", "×talk", "## N"],
    "bold keys": ["×## H", "×- **Session ID:** s1", "×- **Topic:** tea", "×talk", "## N"],
    "no value for another id": ["×## H", f"×- {S1}", "×- **Session ID:**", "×talk", "## N"],
    "no blank after the colon": ["×## H", "×- Session ID:s1", "×talk", "## N"],
    "a row without a key": ["## H", f"×- {S1}", "- just words", "talk"],
    "not right below": ["## H", "words", f"×- {S1}", "talk"],
    "a blank ends it": ["×## H", f"×- {S1}", "×", "×- just words", "## N"],
    "a blank before the other id": ["×## H", f"×- {S1}", "×", f"- {S2}", "talk"],
    "two ids": ["## H", f"×- {S1}", "×  of it", f"- {S2}", "talk"],
    "two ids in one row": ["## H", f"×- {S1}; {S2}", "talk"],
    "in a quote": ["## H", f"×> - {S1}", "talk"],
    "prose": ["## H", f"×{S1}", "×talk", "", "more"],
    "of a heading that another session labels": ["## Session ID: s2", f"×- {S1}", "talk"],
    "in code": ["## H", "```", f"×- {S1}", "×- Topic: tea", "```", "talk"],
    "a path is no label": ["## H", "- Key: agent:main:s1", "talk"],
    "the next heading": ["## H", "### sub", f"- {S2}", "talk"],
    "an upper heading keeps": ["# H", "", "×## sub", f"×- {S1}", "×talk", "## N", "y"],
}


@pytest.mark.parametrize("lines", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_D5_metadata_blocks(lines: list[str], ending: str) -> None:
    check(lines, ending=ending)


# --- D5: rows ---------------------------------------------------------------------------------------------------------

ROWS = {
    "a bullet": ["a", f"×- {S1}", "b"],
    "any bullet": [f"×* {S1}", f"×+ {S1}", f"×2) {S1}", "b"],
    "indented below": [f"×- {S1}", "×  - a", "×    b", "×  c", "- d"],
    "a blank ends it": [f"×- {S1}", "×  a", "", "  b"],
    "a blank line of blanks ends it": [f"×- {S1}", "×  a", "      ", "  b"],
    "a nested row": ["- a", f"×  - {S1}", "×    b", "  - c"],
    "a tab is wider than two blanks": ["- a", f"×  - {S1}", "×\t- b", "- c"],
    "two blanks are less than a tab": [f"×\t- {S1}", "  - b"],
    "in a quote": [f"×> - {S1}", "×>   a", "> - b", "c"],
    "in a quote without blanks": [f"×>- {S1}", "×> a", ">b"],
    "in two quotes": [f"×> > - {S1}", "×> >   a", "> > - b", ">   c"],
    "deeper quotes below": [f"×> - {S1}", "×>   > a", "> b"],
    "a quote indented below": [f"×- {S1}", "×  > a", "> b"],
    "the label in the middle": [f"×- said in {S1}, yes", "×  a", "- b"],
    "a heading below": [f"×- {S1}", "# H", "  b"],
    "a managed fence below": [f"×- {S1}", "  " + END, "  b"],
    "another session's row below": [f"×- {S1}", "×  a", f"  - {S2}", "    c", "  d"],
    "another session's code below": [f"×- {S1}", "×  a", "  ```", f"  {S2}", "  ```", "  d"],
    "another session's entry below": [f"×- {S1}", "  " + N, f"  - {S2}", "  d"],
    "code below": [f"×- {S1}", "×  ```", "×  a", "×b", "×  ```", "c"],
    "an entry below": [f"×- {S1}", f"×  {N}", "×  - b", "- c"],
    "an entry of its own below": [f"×- {S1}", "  " + N, "- b", "- c"],
    "annotations below": [f"×- {S1}", f"×  {T}", "- c"],
    "annotations of the next row": [f"×- {S1}", T, "- c"],
    "a lineage marker of the next row": [f"×- {S1}", "  " + L, "- c"],
    "a lineage marker of the next row in two lines": [f"×- {S1}", "  " + L, L, "- c"],
    "annotations above": [f"×{T}", f"×- {S1}", "- c"],
    "in an entry": [f"×{N}", "×- a", f"×  - {S1}", "×  b", "- c"],
    "as an entry": [f"×{N}", f"×- {S1}", "×  b", "- c"],
    "with an inline marker": [f"×- {S1} {N}", "×  b", "- c"],
    "in a nested entry": [f"×{N}", "×- a", f"×  b {K}", f"×   {S1}", "- c"],
    "both sessions": [f"×- {S1}; {S2}", "- c"],
    "the first as the value of the second": ["×- Session ID: Session ID: s1", "- c"],
    "an id that is longer": ["- Session ID: s10", "- Session ID: xs1", "- Session ID: S1", "- c"],
    "no label": ["- Session: s1", "- ID: s1", "- Session ID s1"],
}


@pytest.mark.parametrize("lines", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_D5_rows(lines: list[str], ending: str) -> None:
    check(lines, ending=ending)


# --- D5: prose --------------------------------------------------------------------------------------------------------

PROSE = {
    "to a blank": ["a", f"×{S1}", "×b", "×c", "", "d"],
    "to a heading": [f"×{S1}", "×b", "# H"],
    "to a list row": [f"×{S1}", "×b", "- c"],
    "to an ordered row": [f"×{S1}", "×b", "1. c"],
    "to code": [f"×{S1}", "×b", "```", "c", "```"],
    "not to half a fence": [f"×{S1}", "×b", "×```", "×c"],
    "to a managed fence": [f"×{S1}", "×b", END],
    "to a marker": [f"×{S1}", "×b", N, "- c"],
    "to a lineage marker": [f"×{S1}", "×b", L, "c"],
    "to annotations": [f"×{S1}", "×b", T, "c"],
    "to an inline marker": [f"×{S1}", "×b", f"c {N}", "d"],
    "to a label": [f"×{S1}", "×b", f"c {S2}", "d"],
    "to a label of its own": [f"×{S1}", "×b", f"×c {S1}", "×d", "", "e"],
    "through a quote": [f"×> {S1}", "×> b", "×c", "", "d"],
    "to an empty quote line": [f"×> {S1}", "×> b", ">", "> c"],
    "to a row in a quote": [f"×> {S1}", "×> b", "> - c"],
    "below a row": ["- a", f"×  {S1}", "×  b", "- c"],
    "in a table": ["| a | b |", "|---|---|", f"×| {S1} | x |", "×| c | d |", "", "e"],
    "in front matter": ["---", f"×{S1}", "×title: x", "×---", "×a", "", "b"],
    "in code": ["```", "a", f"×{S1}", "×b", "```", "c"],
    "in code to a blank": ["```", f"×{S1}", "", "b", "```"],
    "in code past what is none": ["```", f"×{S1}", "×# H", "×- row", f"×{N}", f"×{END}", "```", "c"],
    "in a fence line": [f"×``` {S1}", "×a", "×```", "c"],
    "in code of tildes": ["~~~", f"×{S1}", "×```", "~~~", "c"],
    "across a carriage return": [f"×a\r{S1}", "×b", "", "c"],
    "across a line separator": [f"×a\u2028{S1}\u2028x", "×b", "", "c"],
    "below annotations": [f"×{T}", f"×{S1}", "×b", "", "c"],
    "in an entry's continuation": [f"×{N}", "×- a", f"×  {S1}", "×  b", "- c"],
    "in an entry's continuation and beyond": [f"×{N}", "×- a", f"×  {S1}", "×b", "", "c"],
    "in an entry and beyond": [f"×{N}", f"×{S1}", "×b", "", "c"],
}


@pytest.mark.parametrize("lines", PROSE.values(), ids=PROSE)
def test_D5_prose(lines: list[str]) -> None:
    check(lines)


# --- D5: saved conversations ------------------------------------------------------------------------------------------

CONVERSATIONS = {
    "with another session's labels inside": [*SNAPSHOT, f"×- {S2}", "×## Session ID: s2", "×x"],
    "with managed fences inside": [*SNAPSHOT, f"×{START}", "×x", f"×{END}", "×y"],
    "a heading like it without metadata": [*SNAPSHOT, "×# Session: of a kind", "×x"],
    "a heading like it in code": [*SNAPSHOT, "×```", "# Session: b", f"- {S2}", "```", "y"],
    "half a fence before the next": [*SNAPSHOT, "×```", "# Session: b", f"- {S2}", "x", "```", "y"],
    "half a fence in what stays": ["# Session: b", f"- {S2}", "```", *SNAPSHOT, "×```"],
    "an entry in it": [*SNAPSHOT, f"×{N}", "×- a"],
    "a marker at its end": ["# Session: b", f"- {S2}", N, *SNAPSHOT],
    "both ids in the metadata": ["# Session: b", f"- {S2}", f"×- {S1}", "", "# x", "y"],
    "its heading refers, its metadata do not": ["# Session: main:s1", f"- {S2}", "x"],
    "a row of it in another's": ["# Session: b", f"- {S2}", "", f"×- {S1}", "×  a", "b"],
    "not in the first line": ["×", *SNAPSHOT, "×# Heading", "×x"],
    "below a comment": ["×<!-- a note -->", *SNAPSHOT, "×# Heading", "×x"],
    "below another session's": ["---", "title: x", "---", "# Session: b", f"- {S2}", *SNAPSHOT, "×# Heading"],
    "below front matter with another session's label": ["---", "title: x", f"of: {S2}", "---", *SNAPSHOT, "×# Heading"],
}


@pytest.mark.parametrize("lines", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_D5_saved_conversations(lines: list[str]) -> None:
    check(lines)


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    "above", ["", "x", "x <!-- a note -->", "x---xtitle: kilnx---x", "x<!-- ax b -->x---xa: bx...xx"]
)
def test_F02_a_saved_conversation_is_emptied_whole_whatever_stands_above_it(above: str, ending: str, mark: str) -> None:
    rows = [f"- **{S1.replace(':', '**:', 1)}", "- **Source**: chat", ""]
    lines = [
        *above.split("x"),
        "# Session: now",
        "",
        *rows,
        "assistant: the plan",
        "# Step one",
        "Step",
        "===",
        "spare key",
    ]
    text = mark + ending.join(line for line in lines) + ending
    scrub = forget(text, "s1")
    assert (scrub.text, scrub.removed_entries) == ("", 1)
    assert forget(text, "s2").text == text


def test_F02_two_conversations_below_front_matter_are_forgotten_in_any_order() -> None:
    parts = [f"# Session: {name}\n\n- Session ID: {name}\n\n# {name}\nsaid\n" for name in ("s1", "s2")]
    text = "".join(("---\ntitle: x\n---\n\n", *parts))
    assert forget(text, "s1").text == text.replace(parts[0], "")
    assert forget(text, "s2").text == text.replace(parts[1], "")
    assert forget(forget(text, "s1").text, "s2").text == forget(forget(text, "s2").text, "s1").text == ""
    both = forget(text, "s1", "s2")
    assert (both.text, both.removed_entries) == ("", 2)


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "ids", "goes"),
    [
        ("s2.", ["s2"], True),
        ("s2.", ["s2."], True),
        ("s2", ["s2."], False),
        ("a:b/c", ["a:b/c"], True),
        ("my session", ["my session"], False),
        ("茶-🍵", ["茶-🍵"], True),
        ("e\u0301", ["é"], False),
        ("S1", ["s1"], False),
        ("s1", ["s"], False),
        ("x" * 5000, ["x" * 5000], True),
        ("agent:main:s1", ["s1"], True),
        ("agent:other:s1", ["s1"], False),
    ],
)
def test_D5_I12_ids_are_exact(label: str, ids: list[str], goes: bool) -> None:
    for form in ("- Session ID: {}", "1. **Session ID**: {}", "> - `Session ID`: {}"):
        row = form.format(label)
        assert forget(f"a\n\n{row}\n\nb\n", *ids).text == ("a\n\n\nb\n" if goes else f"a\n\n{row}\n\nb\n")


@given(labels(), st.sampled_from(["- ", "1. ", "> * ", "", "## ", "- **"]))
def test_D5_every_spelling_of_a_label_is_found(label: str, before: str) -> None:
    line = before + label
    for name in ("s1", "s2", "s10", "茶"):
        expected = plain_oracles.refers(line, "main", [name])
        assert (forget(f"x\n\n{line}\n", name).text == "x\n\n") is expected


# --- laws -------------------------------------------------------------------------------------------------------------


@given(memory_texts(), st.sets(st.sampled_from(["s1", "s2", "s10", "S1"])))
def test_D5_no_label_and_no_heading_of_a_selected_session_stays(text: str, ids: set[str]) -> None:
    scrub = scrub_text(text, ScrubRules("main", ids))
    for line in plain_oracles.split_lines(scrub.text):
        assert not any(plain_oracles.label_values(line.rstrip("\n"), "main", ids))


@given(written_texts(), st.sets(st.sampled_from(["s1", "s2", "s10"])), st.sets(st.sampled_from(["s1", "s2", "S1"])))
def test_forgetting_sessions_one_by_one_is_forgetting_them_together(
    text: str, some: set[str], others: set[str]
) -> None:
    together = scrub_text(text, ScrubRules("main", some | others)).text
    for first, then in ((some, others), (others, some)):
        assert scrub_text(scrub_text(text, ScrubRules("main", first)).text, ScrubRules("main", then)).text == together
