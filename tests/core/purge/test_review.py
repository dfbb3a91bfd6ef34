"""What a person must look at: untraceable highlights (case G19) and citations of removed corpus lines (D22)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.purge.review import citations_of, has_old_highlights, refusal_sentence, said_in
from memprov.core.records import MemoryFile

HISTORY = "## Memory Consolidation History"
CORPUS = "memory/.dreams/session-corpus/2026-11-25.txt"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"{HISTORY}\n\n### 2026-09-02\n\n- Added: 1\n  - `+ - old`\n", True),
        (f"{HISTORY}\r\n  - `- old`\r\n", True),
        (f"x\n{HISTORY}\na\n## Other\n  - `+ old`", True),
        (f"{HISTORY}\n<!-- openclaw-memory-promotion:K -->\n- `+ new`\n", False),
        (f"{HISTORY}\n   - `+ old`\n", False),
        (f"{HISTORY}\n - `+ old`\n", False),
        (f"{HISTORY}\n  - `* old`\n", False),
        (f"{HISTORY}\n  - `+old`\n", False),
        (f"{HISTORY}\n  * `+ old`\n", False),
        (f"  - `+ old`\n{HISTORY}\n", False),
        (f"{HISTORY} \n  - `+ old`\n", False),
        (f"#{HISTORY}\n  - `+ old`\n", False),
        (f"{HISTORY}\u2028\n  - `+ old`\n", False),
        (f"{HISTORY}\n\u2028  - `+ old`\n", False),
        ("", False),
    ],
)
def test_case_G19_highlights_of_the_old_format_are_refused(text: str, *, refused: bool) -> None:
    assert has_old_highlights(text) == refused


def test_case_G19_the_refusal_names_the_file() -> None:
    sentence = "Cannot trace historical consolidation highlights in DREAMS.md; review them manually."
    assert refusal_sentence("DREAMS.md") == sentence


@pytest.mark.parametrize(
    ("row", "removed", "cited"),
    [
        (f"  - evidence: {CORPUS}:5-5", (5,), True),
        (f"  - evidence: {CORPUS}:5-5", (4, 6), False),
        (f"  - evidence: {CORPUS}:5-9", (1, 9, 20), True),
        (f"  - evidence: {CORPUS}:5-9", (1, 4, 10), False),
        (f"[source={CORPUS}:12-12]", (12,), True),
        (f"Source: {CORPUS}#L2-L3 more", (3,), True),
        (f"Source: {CORPUS}#L2-L3", (1, 4), False),
        (f"{CORPUS}.bak:5-5", (5,), False),
        (f"{CORPUS}:5", (5,), False),
        (f"{CORPUS}", (5,), False),
        ("memory/x.txt:5-5", (5,), False),
    ],
)
def test_D22_rows_that_cite_a_removed_line_are_named(row: str, removed: tuple[int, ...], *, cited: bool) -> None:
    warnings = list(
        citations_of("memory/dreaming/light/x.md", f"# Light Sleep\r\n\r\n{row}\r\n", {CORPUS: removed}, {})
    )
    assert [warning.startswith("memory/dreaming/light/x.md line 3 cites ") for warning in warnings] == [True] * cited


def test_D22_every_citation_of_a_row_is_looked_at_and_its_text_is_not_shown() -> None:
    other = CORPUS.replace("25", "26")
    row = f"- secret words {CORPUS}:1-1, {other}:2-2, {CORPUS}:3-3"
    warnings = list(citations_of("r.md", row, {CORPUS: (3,), other: (2,)}, {}))
    assert [f"{path}:{n}-{n}" in text for text, (path, n) in zip(warnings, [(other, 2), (CORPUS, 3)], strict=True)]
    assert not any("secret" in text for text in warnings)


@given(st.sets(st.integers(1, 30)), st.integers(1, 30), st.integers(0, 9))
def test_D22_a_range_is_cited_when_it_holds_a_removed_line(removed: set[int], first: int, more: int) -> None:
    text = f"{CORPUS}:{first}-{first + more}"
    found = list(citations_of("r.md", text, {CORPUS: tuple(sorted(removed))}, {}))
    assert bool(found) is any(first <= number <= first + more for number in removed)


def test_D22_a_row_that_says_what_a_line_still_says_is_about_that_line_whatever_its_number() -> None:
    corpus = MemoryFile(
        CORPUS, "[main/sessions/main/a#L2] User: tea is  good\n[main/sessions/main/b#L2] User: gone now\n"
    )
    staying = {CORPUS: said_in(corpus, (2,), "main")}
    for text in ("User: tea is good", "tea is good", "Candidate: User: tea is good"):
        report = f"- {text}\n  - confidence: 0.5\n  - evidence: {CORPUS}:2-2\n"
        assert list(citations_of("r.md", report, {CORPUS: (2,)}, staying)) == []
    for text in ("Candidate: gone, in other words", "Theme: tea"):
        report = f"- {text}\n  - evidence: {CORPUS}:2-2\n"
        assert len(list(citations_of("r.md", report, {CORPUS: (2,)}, staying))) == 1
