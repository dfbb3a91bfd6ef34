"""How a memory file is read: lines (D6, report B32), fences, headings, runs, entries, metadata, saved conversations."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memprov.core.text import Document, line_spans, lineage_marker, promotion_marker, to_bytes, to_text
from memprov.core.text.outline import metadata_rows
from memprov.testing.strategies import memory_texts, raw_texts
from tests.core import plain_oracles

A, B, L, T = promotion_marker("A"), promotion_marker("B"), lineage_marker("x"), "<!-- trigger: tea -->"
DIARY_END = "<!-- openclaw:dreaming:diary:end -->"


def doc(*lines: str) -> Document:
    return Document("".join(f"{line}\n" for line in lines))


def entries(*lines: str) -> list[tuple[int, int, int, str]]:
    """First line, head, exclusive last line and keys of each entry."""
    return [(entry.first, entry.head, entry.last, "".join(entry.keys)) for entry in doc(*lines).entries]


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("\n", [""]),
        ("a\r\nb\nc", ["a", "b", "c"]),
        ("a\rb\x0cc\x85d\u2028e\u2029f\x1cg\vh\n", ["a\rb\x0cc\x85d\u2028e\u2029f\x1cg\vh"]),
        ("a\r\r\n", ["a\r"]),
        ("a\r", ["a\r"]),
        ("\r\n\r\n", ["", ""]),
    ],
)
def test_D6_report_B32_LF_and_CRLF_end_lines_and_nothing_else(text: str, lines: list[str]) -> None:
    assert [line.text for line in Document(text).lines] == lines


@given(st.one_of(memory_texts(), raw_texts()))
def test_D6_lines_are_those_of_the_plain_reading_and_lose_nothing(text: str) -> None:
    spans = list(line_spans(text))
    assert [text[start:end] for start, end in spans] == plain_oracles.split_lines(text)
    assert [(line.start, line.end) for line in Document(text).lines] == spans


@given(st.binary())
def test_D6_any_bytes_survive(data: bytes) -> None:
    assert to_bytes(to_text(data)) == data


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("# a", 1),
        ("###### a", 6),
        ("#", 1),
        ("##\t", 2),
        ("#\u00a0a", 1),
        ("####### a", 0),
        ("#a", 0),
        (" # a", 0),
        ("> # a", 0),
        ("- # a", 0),
        ("", 0),
    ],
)
def test_D5_headings_are_one_to_six_signs_at_column_zero_then_a_blank_or_the_end(line: str, level: int) -> None:
    assert doc(line).lines[0].level == level
    assert doc(line + "\r").lines[0].level == level


@pytest.mark.parametrize("ending", ["", "\r"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        (["Title", "=====", "Other", "-----"], [1, 0, 2, 0]),
        (["a", "=", "b", "-"], [1, 0, 2, 0]),
        (["a", "---  ", "b", "   ==\t"], [2, 0, 1, 0]),
        (["   a", "---"], [2, 0]),
        (["a", "b", "---"], [0, 2, 0]),
        (["a", "", "---"], [0, 0, 0]),
        (["a", "    ---"], [0, 0]),
        (["a", "- - -"], [0, 0]),
        (["a", "--x"], [0, 0]),
        (["a", "=-="], [0, 0]),
        (["a", "> ---"], [0, 0]),
        (["- a", "---"], [0, 0]),
        (["- a", "  b", "  ---"], [0, 0, 0]),
        (["- a", "", "  b", "  ---"], [0, 0, 0, 0]),
        (["- a", "", "b", "---"], [0, 0, 2, 0]),
        (["1. a", "==="], [0, 0]),
        (["-", "---"], [0, 0]),
        (["> a", "---"], [0, 0]),
        (["> a", "> ---"], [0, 0]),
        (["# a", "---"], [1, 0]),
        (["***", "---"], [0, 0]),
        (["---", "---"], [0, 0]),
        (["===", "==="], [0, 0]),
        (["a", "===", "==="], [1, 0, 0]),
        (["a", "---", "---"], [2, 0, 0]),
        (["| a |", "---"], [0, 0]),
        (["a | b", "--- | ---", "1 | 2", "---"], [0, 0, 0, 0]),
        (["<!-- note -->", "---"], [0, 0]),
        ([A, "---"], [0, 0]),
        ([DIARY_END, "---"], [0, 0]),
        (["```", "a", "---", "```", "---"], [0, 0, 0, 0, 0]),
        (["```", "a", "---"], [0, 2, 0]),
        (["---", "title: x", "---", "a", "==="], [0, 0, 0, 1, 0]),
        (["---", "title: x", "tags:", "- a", "...", "b", "---"], [0, 0, 0, 0, 0, 2, 0]),
        (["---", "words", "---"], [0, 2, 0]),
        (["", "title: x", "---"], [0, 2, 0]),
    ],
)
def test_F11_a_title_underlined_is_a_heading(lines: list[str], levels: list[int], ending: str) -> None:
    document = Document("".join(f"{line}{ending}\n" for line in lines))
    assert [line.level for line in document.lines] == levels
    assert all(document.is_underline(n + 1) for n, level in enumerate(levels) if level and lines[n][0] != "#")


@given(memory_texts())
def test_F11_headings_are_those_of_the_plain_reading(text: str) -> None:
    text = text.removeprefix("\ufeff")
    assume(not plain_oracles.stands_apart(text))
    found = [bool(line.level) for line in Document(text).lines]
    assert found == plain_oracles.PlainFile(text).heading


@pytest.mark.parametrize(
    ("line", "depth", "indent", "row"),
    [
        ("- a", 0, 0, True),
        ("  * a", 0, 2, True),
        ("\t+ a", 0, 4, True),
        ("  \t- a", 0, 4, True),
        ("\u00a0- a", 0, 1, True),
        ("12. a", 0, 0, True),
        ("12) a", 0, 0, True),
        ("-", 0, 0, True),
        ("-a", 0, 0, False),
        ("1.a", 0, 0, False),
        ("1234567890. a", 0, 0, False),
        ("٣. a", 0, 0, False),
        ("> - a", 1, 1, True),
        (">- a", 1, 0, True),
        ("  > >  a", 2, 2, False),
        ("a > b", 0, 0, False),
    ],
)
def test_D5_rows_quotes_and_indents(line: str, depth: int, indent: int, *, row: bool) -> None:
    read = doc(line).lines[0]
    assert (read.depth, read.indent, read.row) == (depth, indent, row)


# --- fenced code ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "blocks"),
    [
        (["```", "a", "```"], [(0, 3)]),
        (["```", "a"], []),
        (["~~~", "```", "~~~"], [(0, 3)]),
        (["```", "~~~", "a"], []),
        (["````", "```", "````"], [(0, 3)]),
        (["```", "a", "````"], [(0, 3)]),
        (["````", "a", "```"], []),
        (["````", "```", "a", "```"], [(1, 4)]),
        (["```sh", "a", "```"], [(0, 3)]),
        (["````", "a", "````", "```", "`````"], [(0, 3), (3, 5)]),
        (["```", "a", "```sh", "b", "```"], [(0, 5)]),
        (["```sh", "a", "~~~ x"], []),
        (["``` a`b", "a", "```"], []),
        (["~~~ a`b", "a", "~~~"], [(0, 3)]),
        (["  ```", "a", "\t```  "], [(0, 3)]),
        (["``", "a", "``"], []),
        (["```", "```", "```"], [(0, 2)]),
        (["> ```", "a", "> ```"], []),
        (["a ```", "b", "```"], []),
        (["- ```", "  a", "  ```"], [(0, 3)]),
        (["- ```", "  a", "", "  ```"], [(0, 4)]),
        (["- ```", "a", "  ```"], []),
        (["- ```", "  a", "```", "b", "```"], [(2, 5)]),
        (["1. ~~~~", "   ~~~", "   ~~~~"], [(0, 3)]),
        (["- ```js cut off here", "- b", "```", "c", "```"], [(2, 5)]),
    ],
)
def test_D5_a_closed_fence_and_no_other_makes_code(lines: list[str], blocks: list[tuple[int, int]]) -> None:
    document = doc(*lines)
    assert list(document.blocks) == blocks
    assert [n for n, line in enumerate(document.lines) if line.in_code] == [n for b in blocks for n in range(*b)]


def test_D3_D5_case_J15_code_has_no_structure_and_an_unclosed_fence_hides_nothing() -> None:
    inside = ["# H", "- row", A, DIARY_END, "- x " + B]
    closed, unclosed = doc("```", *inside, "```"), doc("```", *inside)
    for line in closed.lines:
        assert (line.level, line.row, line.keys, line.managed_fence, line.only_comments) == (0, False, (), False, False)
    assert not closed.entries
    assert [line.level for line in unclosed.lines[1:]] == [1, 0, 0, 0, 0]
    assert [entry.keys for entry in unclosed.entries] == [("B",)]
    assert [run.keys for run in unclosed.runs] == [("A",)]


FENCE_LINES = [
    "```",
    "````",
    "~~~",
    "~~~~~",
    "```sh",
    "``` `",
    "  ```",
    "\t~~~",
    "- ```",
    "1. ~~~",
    "a",
    "  a",
    "",
    "# H",
]


@given(st.lists(st.sampled_from(FENCE_LINES), max_size=14))
def test_D5_code_is_that_of_the_plain_reading(lines: list[str]) -> None:
    found = [(first, last - 1) for first, last in doc(*lines).blocks]
    assert found == plain_oracles.code_blocks([f"{line}\n" for line in lines])


# --- runs and entries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([A, "- x", "- y"], [(0, 1, 2, "A")]),
        ([A, "- x", "  c", "\tc", "- y"], [(0, 1, 4, "A")]),
        ([A, "- x", "", "  c"], [(0, 1, 2, "A")]),
        ([A, "", "- x"], []),
        ([A, ">", "- x"], []),
        ([A, "# H", "- x"], []),
        ([A, DIARY_END, "- x"], []),
        ([A], []),
        ([A, B, "- x"], [(0, 2, 3, "AB")]),
        ([A + B, "- x"], [(0, 1, 2, "AB")]),
        ([L, A, T, "- x"], [(0, 3, 4, "A")]),
        ([A, "", B, "- x"], [(2, 3, 4, "B")]),
        ([A, "- x " + B], [(0, 1, 2, "AB")]),
        (["- x " + A, "  c", "- y"], [(0, 0, 2, "A")]),
        ([T, "- x " + A], [(0, 1, 2, "A")]),
        (["", T, L, "- x " + A], [(1, 3, 4, "A")]),
        (["## H " + A, "  c", "x"], [(0, 0, 2, "A")]),
        ([T, "## H " + A], [(0, 1, 2, "A")]),
        ([B, "## H " + A], [(1, 1, 2, "A")]),
        ([A, "- x", "  c " + B, "  d"], [(0, 1, 4, "A"), (2, 2, 3, "B")]),
        ([A, "- x", "  c " + B, "   d", "  e"], [(0, 1, 5, "A"), (2, 2, 4, "B")]),
        ([A, "- x", "  " + B, "- y"], [(0, 1, 2, "A"), (2, 3, 4, "B")]),
        ([A, "- x", "  " + B, "  y", "  z"], [(0, 1, 2, "A"), (2, 3, 4, "B")]),
        ([A, "- x", "  " + DIARY_END, "  y"], [(0, 1, 2, "A")]),
        ([A, "- x", "  " + T, "- y"], [(0, 1, 3, "A")]),
        ([A, "- x", "  " + T, B, "- y"], [(0, 1, 3, "A"), (3, 4, 5, "B")]),
        ([A, "- x", "  " + L, "  " + B, "  y"], [(0, 1, 2, "A"), (2, 4, 5, "B")]),
        ([A, "- x", T, "- y"], [(0, 1, 2, "A")]),
        (["> " + A, "> x"], [(0, 0, 1, "A")]),
        ([A, "> x", "  c"], [(0, 1, 3, "A")]),
        ([A, "```", "code", "```", "x"], [(0, 1, 4, "A")]),
        ([A, "- x", "  ```", "code", "  ```", "  c", "x"], [(0, 1, 6, "A")]),
        ([A, "```", "- x"], [(0, 1, 2, "A")]),
        ([A, "  - x", "  - y", "  z"], [(0, 1, 2, "A")]),
        (["- a", "  - x " + A, "  - y " + B], [(1, 1, 2, "A"), (2, 2, 3, "B")]),
        (["\t- x " + A, "    - y"], [(0, 0, 1, "A")]),
        (["\t- x " + A, "\t  y", "\t\tz", "\t- w"], [(0, 0, 3, "A")]),
        (["  - x " + A, "\ty", " z"], [(0, 0, 2, "A")]),
        (["> - x " + A, ">   y", "> - z"], [(0, 0, 2, "A")]),
        (["> - x " + A, "> > y", "> - z"], [(0, 0, 1, "A")]),
        ([A, "  - x", "  " + T, "    y", "  - z"], [(0, 1, 4, "A")]),
        ([A, "Title", "-----", "- x"], []),
        ([A, "- x", "Title", "-----"], [(0, 1, 2, "A")]),
        (["Title " + A, "-----", "  c", "x"], [(0, 0, 3, "A")]),
    ],
)
def test_D3_what_a_marker_owns(lines: list[str], expected: list[tuple[int, int, int, str]]) -> None:
    assert entries(*lines) == expected


@given(memory_texts(max_lines=20))
def test_D3_an_entry_inside_another_ends_in_it(text: str) -> None:
    document = Document(text.removeprefix("\ufeff"))
    outer = None
    for entry in document.entries:
        assert 0 <= entry.first <= entry.head < entry.last <= len(document.lines)
        assert entry.keys
        if outer is not None and entry.first < outer.last:
            assert outer.head < entry.first
            assert entry.last <= outer.last
        else:
            outer = entry
        assert all(document.entry_at[number] is outer for number in range(entry.first, entry.last))


@given(memory_texts(max_lines=20))
def test_D3_runs_hold_comments_only_and_never_touch(text: str) -> None:
    document = Document(text.removeprefix("\ufeff"))
    position = -1
    for run in document.runs:
        assert position < run.first < run.last
        assert all(document.lines[number].only_comments for number in range(run.first, run.last))
        assert run.head in (None, run.last)
        position = run.last
    notes = {number for first, last in document.notes.values() for number in range(first, last)}
    assert notes | document.run_at.keys() == {n for n, line in enumerate(document.lines) if line.only_comments}
    assert notes.isdisjoint(document.run_at)


# --- metadata and saved conversations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        (["- Session ID: s1"], 2),
        (["", "", "- Session ID: s1", "- Topic: tea"], 5),
        (["- **Session ID**: s1", "- **Source**:", "* `Key`: v", "1. a: b", "2) c:"], 6),
        (["- Topic: tea", "  - nested", "    words", "- Session ID: s1"], 5),
        (["- Topic: tea", "  - Session ID: s1"], 3),
        (["- Session ID: s1", "talk"], 2),
        (["- Session ID: s1", "", "- Topic: tea"], 2),
        (["- Session ID: s1", "     ", "- just words"], 2),
        (["- Session ID: s1", "## H", "- Topic: tea"], 2),
        (["- Session ID: s1", A, "- x"], 2),
        (["- Session ID:s1"], 2),
        (["- **Session ID:** s1", "- 09:30: tea"], 3),
        (["  - a: b", "  - Session ID: s1", "- c"], None),
        (["- Session ID: s1", "- just words"], None),
        (["- Topic: tea"], None),
        (["talk", "- Session ID: s1"], None),
        (["Session ID: s1"], None),
        (["> - Session ID: s1"], None),
        (["## H", "- Session ID: s1"], None),
        ([], None),
        (["", ""], None),
        (["- Session ID:", "- Topic: tea"], None),
    ],
)
def test_D5_the_metadata_block_below_a_heading(lines: list[str], last: int | None) -> None:
    rows = metadata_rows(doc("# H", *lines).lines, 0)
    assert (rows.stop if rows else None) == last
    assert not rows or rows.start == 1 + len(lines) - len("\n".join(lines).lstrip("\n").split("\n"))


def test_D5_a_file_of_saved_conversations() -> None:
    part = ["# Session: one", "", "- Session ID: s1", "", "# a heading", "```", "- Session ID: s3", ""]
    assert list(doc(*part, *part).parts) == [(0, 8), (8, 16)]
    assert list(doc(*part, "# Session: no metadata", "x").parts) == [(0, 10)]
    for first in ("# Notes", "## Session: one", "# session: one", "#Session: one", " # Session: one"):
        assert list(doc(first, *part).parts) == []
    assert list(doc("# Session: one", "", "- Topic: tea", "", *part).parts) == []
    assert list(doc("#\u00a0Session:", *part[1:]).parts) == [(0, 8)]
    assert list(doc("Session: one", "===", *part[1:]).parts) == [(0, 9)]


@pytest.mark.parametrize(
    ("above", "saved"),
    [
        ([""], True),
        (["", " \t", "\u00a0"], True),
        (["<!-- a note -->"], True),
        (["  <!-- a note", "", "in lines -->", ""], True),
        (["<!-- one --> <!-- two", "-->"], True),
        ([A], True),
        (["---", "title: x", "---"], True),
        (["---", "title: x", "..."], True),
        (["--- ", "title: x", "", "# a comment", "tags:", "- a", "  - b", "---\t", ""], True),
        (["", "<!-- a note -->", "---", '"a key": x', "list: [", "  1,", "]", "---", "<!-- b -->"], True),
        (["+++", "[params]", "title = 'x'", "+++"], True),
        (["---", "title: x"], False),
        (["---", "---"], True),
        (["---", "", "---", ""], True),
        (["---", "", "words by hand", "---"], False),
        (["---", "words by hand", "---"], False),
        (["---", "# Groceries", "- milk", "---"], False),
        (["---", "a: b", "words by hand", "---"], False),
        (["---", "a: b", "---", "---", "a: b", "---"], False),
        (["<!-- not closed"], False),
        (["<!-- a note --> words"], False),
        ([DIARY_END], False),
        (["> "], False),
        (["---"], False),
        (["words", ""], False),
    ],
)
def test_F02_what_may_stand_above_a_saved_conversation(above: list[str], saved: bool) -> None:
    part = ["# Session: one", "", "- Session ID: s1", "", "# a heading", "x"]
    assert list(doc(*above, *part).parts) == ([(len(above), len(above) + 6)] if saved else [])


def test_D5_half_a_fence_ends_with_its_conversation() -> None:
    part = ["# Session: one", "- Session ID: s1", "```"]
    assert not doc(*part, *part).blocks
    assert list(doc(*part, "x", "```", *part).blocks) == [(2, 5)]
