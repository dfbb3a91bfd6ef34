"""F30: what is hostile in shape costs what it is long. Work is counted, not timed: calls of functions, over all depths.

``benchmarks.growth`` measures the same by the clock, at sizes that hurt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from memprov.core.purge import ScrubRules, scrub_text
from memprov.core.text import Document, promotion_marker
from memprov.testing.shapes import SHAPES


def calls_of(what: Callable[[], object]) -> int:
    """How many functions, of Python and of C, are called."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        what()
    finally:
        sys.setprofile(before)
    return count


RULES = ScrubRules("main", ["s1"], ["k1"], ["User: the kiln code is 42 today"])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("phase_report", [False, True], ids=["note", "report"])
def test_F30_reading_a_hostile_shape_is_work_in_proportion(shape: str, *, phase_report: bool) -> None:
    small, large = SHAPES[shape](1_500), SHAPES[shape](6_000)
    few = calls_of(lambda: scrub_text(small, RULES, phase_report=phase_report))
    many = calls_of(lambda: scrub_text(large, RULES, phase_report=phase_report))
    assert many < 6 * few, f"{few} calls for {len(small)} characters, {many} for {len(large)}"


@pytest.mark.parametrize("shape", SHAPES)
def test_F30_so_is_finding_its_structure(shape: str) -> None:
    small, large = SHAPES[shape](1_500), SHAPES[shape](6_000)
    assert calls_of(lambda: Document(large)) < 6 * calls_of(lambda: Document(small))


def test_F30_a_chain_of_entries_around_a_block_goes_line_by_line() -> None:
    def text(depth: int) -> str:
        chain = "".join(f"{' ' * n}- x {promotion_marker('k1')}\n" for n in range(depth))
        return f"{chain}{' ' * depth}```\n" + "\n" * 3000 + f"{' ' * depth}```\n"

    assert scrub_text(text(60), RULES).text == ""
    assert calls_of(lambda: scrub_text(text(60), RULES)) < 1.5 * calls_of(lambda: scrub_text(text(15), RULES))
