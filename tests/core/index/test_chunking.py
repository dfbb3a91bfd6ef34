"""Where a text is cut into chunks, by laws and on real stores."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.index import ChunkBudget
from memprov.core.index.chunking import Boundary, Piece, chunk_id, chunk_lines, chunk_text, is_entry_file
from memprov.core.text import digest, promotion_marker, to_text, u16_length
from memprov.errors import InputError

LINES = st.lists(
    st.sampled_from(
        ["", "- row", "# Head", "  more", "<!-- a -->", "<!-- a --> b", "1. one", "x" * 70, "🚲" * 30, "é\r"]
    ),
    max_size=30,
)
BUDGETS = st.sampled_from([ChunkBudget(8, 2), ChunkBudget(8, 0), ChunkBudget(20, 19), ChunkBudget()])


@given(LINES, BUDGETS, st.booleans())
def test_chunks_hold_every_line_in_order_and_say_which(lines: list[str], budget: ChunkBudget, entries: bool) -> None:
    text = "\n".join(lines)
    pieces = chunk_text(text, budget, entries=entries)
    covered: set[int] = set()
    for piece in pieces:
        body = "\n".join(lines[piece.start_line - 1 : piece.end_line])
        assert piece.text in body
        assert piece.text == body or any(u16_length(line) > budget.units for line in lines)
        assert piece.hash == digest(piece.text)
        covered.update(range(piece.start_line, piece.end_line + 1))
    wanted = {number for number, line in enumerate(lines, 1) if line.strip()}
    assert wanted <= covered
    assert [p.start_line for p in pieces] == sorted(p.start_line for p in pieces)
    assert bool(pieces) == bool(text.strip())
    if pieces and not entries:
        assert pieces[-1].boundary is Boundary.END
        assert Boundary.ENTRY not in {piece.boundary for piece in pieces}


@given(LINES, BUDGETS)
def test_a_chunk_is_over_its_budget_by_no_more_than_what_it_repeats(lines: list[str], budget: ChunkBudget) -> None:
    longest = max(map(u16_length, lines), default=0)
    for piece in chunk_lines(lines, budget):
        assert u16_length(piece.text) <= budget.units + budget.overlap_units + min(longest, budget.units) + 1


@given(LINES)
def test_without_overlap_chunks_put_together_are_the_text(lines: list[str]) -> None:
    pieces = chunk_lines(lines, ChunkBudget(30, 0))
    glued = ""
    for before, piece in zip((None, *pieces), pieces, strict=False):
        same = before is not None and before.end_line == piece.start_line
        glued += piece.text if before is None or same else "\n" + piece.text
    assert glued == "\n".join(lines)


def test_an_entry_is_a_chunk_together_with_its_markers() -> None:
    text = (
        "# Memory\n\n"
        f"{promotion_marker('k1')}\n- one\n  more\n"
        f"<!-- openclaw-memory-lineage:k0 -->\n{promotion_marker('k2')}\n- two\n\n## Else\n1. three\nprose\n"
    )
    pieces = chunk_text(text, entries=True)
    assert [(piece.start_line, piece.end_line, piece.boundary) for piece in pieces] == [
        (1, 2, Boundary.ENTRY),
        (3, 5, Boundary.ENTRY),
        (6, 9, Boundary.ENTRY),
        (10, 10, Boundary.ENTRY),
        (11, 13, Boundary.END),
    ]


def test_text_before_the_first_entry_and_long_entries_are_chunks_too() -> None:
    text = "\n\nprose\n- a\n" + "word\n" * 20
    pieces = chunk_text(text, ChunkBudget(8, 0), entries=True)
    assert (pieces[0].start_line, pieces[0].end_line, pieces[0].boundary) == (1, 3, Boundary.ENTRY)
    assert {piece.boundary for piece in pieces[1:-1]} == {Boundary.BUDGET}
    assert chunk_text("\n\n- a", entries=True)[0].start_line == 3


def test_a_long_line_is_cut_at_characters() -> None:
    pieces = chunk_lines(["🚲" * 50], ChunkBudget(8, 0))
    assert {piece.boundary for piece in pieces[:-1]} == {Boundary.LONG_LINE}
    assert "".join(piece.text for piece in pieces) == "🚲" * 50
    assert {(piece.start_line, piece.end_line) for piece in pieces} == {(1, 1)}


@pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (10, 10), (10, -1), (-1, -2)])
def test_an_impossible_budget_is_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(InputError):
        ChunkBudget(tokens, overlap)


def test_files_of_entries() -> None:
    assert [is_entry_file(path) for path in ("MEMORY.md", "memory.md", "memory/MEMORY.md")] == [True, True, False]


# --- on real stores ---------------------------------------------------------------------------------------------------


def read_chunks(top: Path) -> dict[str, list[tuple[str, int, int, str, str, str]]]:
    """Path -> its rows, of memory files."""
    connection = sqlite3.connect(
        f"file:{top}/state/agents/main/agent/openclaw-agent.sqlite?mode=ro&immutable=1", uri=True
    )
    found = defaultdict(list)
    for path, *row in connection.execute(
        "SELECT path, id, start_line, end_line, hash, model, text FROM memory_index_chunks WHERE source = 'memory'"
    ):
        found[path].append(tuple(row))
    connection.close()
    return found


def test_chunks_of_real_stores_are_explained(unpacked_store: Callable[[str], Path], store_name: str) -> None:
    """Files that are cut by the budget have OpenClaw's chunks; MEMORY.md differs in where the markers are, only."""
    top = unpacked_store(store_name) / "before"
    for path, theirs in read_chunks(top).items():
        text = to_text((top / "ws" / path).read_bytes())
        ours = chunk_text(text, entries=is_entry_file(path))
        model = theirs[0][4]
        if not is_entry_file(path):
            assert {(p.start_line, p.end_line, p.hash) for p in ours} == {row[1:4] for row in theirs}
            assert {chunk_id("memory", path, piece, model) for piece in ours} == {row[0] for row in theirs}
            continue
        assert without_markers(ours) == without_markers(
            [Piece(*row[1:3], row[5], row[3], Boundary.END) for row in theirs]
        )
        for piece in ours:
            assert not piece.text.rstrip().split("\n")[-1].startswith("<!--")  # a marker is above its entry


def without_markers(pieces: list[Piece] | tuple[Piece, ...]) -> list[str]:
    """The lines of each chunk but for blanks and comments; OpenClaw takes some of these out of the text, too."""
    bare = [[re.sub("<!--.*?-->", "", line).strip() for line in piece.text.split("\n")] for piece in pieces]
    texts = ("\n".join(line for line in lines if line) for lines in bare)
    return sorted(text for text in texts if text)
