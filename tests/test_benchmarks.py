"""The pages that come of benchmarks: growth is told where there is something to tell, and figures stay figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import Row, timed
from benchmarks.peers.search import peers
from benchmarks.results import exponents, write_results


def rows(exponent: float, sizes: tuple[int, ...] = (100, 200, 1000, 3000)) -> list[Row]:
    return [{"what": "sorting", "size": size, "CPU s": 0.001 * size**exponent, "MB": 1.5} for size in sizes]


@given(st.floats(0, 3))
def test_growth_is_the_exponent_of_the_power_law(exponent: float) -> None:
    (found,) = exponents(rows(exponent))
    assert abs(float(found["exponent"]) - exponent) <= 0.01
    assert (found["of"], found["column"], found["sizes"]) == ("sorting", "CPU s", "100 to 3,000")


def test_nothing_is_told_of_three_sizes_or_of_what_the_clock_cannot_see() -> None:
    assert exponents(rows(1, (100, 200, 1000))) == []
    assert exponents([{**row, "CPU s": 1e-6 * float(row["CPU s"])} for row in rows(1)]) == []
    assert exponents([{"what": "no size", "CPU s": 1.0}] * 4) == []


def test_the_figures_are_written_as_they_were_measured_and_as_tables(tmp_path: Path) -> None:
    figures = {"machine": {"cpus": 2}, "tables": {"Sorting": rows(1, (100, 200))}}
    write_results(figures, tmp_path / "new")  # type: ignore[arg-type]
    assert json.loads((tmp_path / "new" / "results.json").read_text("utf-8")) == figures
    page = (tmp_path / "new" / "results.md").read_text("utf-8")
    assert "| what | size | CPU s | MB |" in page
    assert "| sorting | 200 | 0.2 | 1.5 |" in page


def test_children_are_counted() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    _, cpu, _ = timed(lambda: subprocess.run([sys.executable, "-c", busy], check=True))
    assert cpu >= 0.2


def test_reading_is_the_bytes_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    found = peers(tmp_path, ["one"])
    assert found["MB"] == 8 / 1e6
    assert isinstance(found["rg s"], float) or found["rg s"] == "not installed"
