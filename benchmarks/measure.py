"""Measuring in a process of its own, so that its peak memory is its own, and saying what was found.

A table is printed as Markdown while it grows and can be kept as JSON. Times are of this machine and this moment:
compare within a run, do not quote. CPU time is beside wall time because a busy machine stretches only the latter.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

__all__ = [
    "Row",
    "Tables",
    "apart",
    "cpu_seconds",
    "forget_peak",
    "machine",
    "median_cpu",
    "options",
    "peak_mib",
    "shown",
    "timed",
]

T = TypeVar("T")
Row = dict[str, float | int | str]


def timed(what: Callable[[], T]) -> tuple[T, float, float]:
    """The result, CPU seconds (of this process and of those that it waited for) and wall seconds."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = what()
    return result, cpu_seconds() - cpu, time.perf_counter() - wall


def cpu_seconds() -> float:
    """What this process and its finished children have used."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def median_cpu(what: Callable[[], object], repeats: int = 5) -> float:
    """CPU seconds of the run in the middle."""
    return statistics.median(timed(what)[1] for _ in range(repeats))


def peak_mib() -> float:
    """The most memory that this process has had so far, or since ``forget_peak``."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> float:
    """Start anew with the peak, where Linux allows it, and say what it is then: the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mib()


def apart(function: Callable[..., Row], **arguments: float | str) -> Row:
    """What ``function`` of a benchmark module returns in a process of its own."""
    module = sys.modules[function.__module__].__spec__
    assert module is not None
    words = [sys.executable, "-m", "benchmarks.measure", module.name, function.__name__, json.dumps(arguments)]
    answer: Row = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return answer


class Tables:
    """Tables under their titles, printed row by row."""

    def __init__(self, file: str | None = None) -> None:
        self.file = file
        self.found: dict[str, list[Row]] = {}

    def add(self, title: str, row: Row) -> None:
        """One more row; the first one of a table gives it its columns."""
        rows = self.found.setdefault(title, [])
        if not rows:
            print(f"\n### {title}\n\n| {' | '.join(row)} |\n|{' --- |' * len(row)}")
        rows.append(row)
        print(f"| {' | '.join(map(shown, row.values()))} |", flush=True)

    def keep(self) -> None:
        """Write everything as JSON, if that was asked for."""
        if self.file:
            Path(self.file).write_text(json.dumps({"machine": machine(), "tables": self.found}, indent=1), "utf-8")


def machine() -> Row:
    """Where this was measured, as far as it may matter."""
    return {"cpus": os.cpu_count() or 0, "machine": platform.machine(), "python": platform.python_version()}


def shown(value: float | str) -> str:
    """A value as a table shows it."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def options(description: str | None, sizes: str, default: Iterable[int]) -> argparse.ArgumentParser:
    """The arguments that all benchmarks have: sizes, and a file for the figures."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{sizes}", type=int, nargs="+", default=list(default))
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    return parser


if __name__ == "__main__":
    name, function_name, given = sys.argv[1:]
    measured = getattr(importlib.import_module(name), function_name)(**json.loads(given))
    print(json.dumps(measured))
