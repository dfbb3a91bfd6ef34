"""Planning a purge over corpora of 10^4 to 10^6 lines: time, its parts, peak memory, growth.

    python -m benchmarks.planning [--lines 10000 100000 1000000] [--json FILE]

What is forgotten is one session, one in a hundred, and every second one. Time is split into scanning the corpus,
scrubbing the memory files, and the rest (rows of every kind, the fold, the report, the digest). The physical bound is
one pass of ``bytes.count`` for one session id over the same corpus and memory files. Where one size is twice another,
the table of growth says how much longer it took: near 2 is what is wanted, 4 would be quadratic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from benchmarks.measure import Row, Tables, apart, forget_peak, options, peak_mib, timed
from memprov import Selection, Selectors, plan_purge, select_sessions
from memprov.testing import synthetic_sessions, synthetic_snapshot

__all__ = ["SHARES", "chosen", "main", "measure"]

PER_SESSION = 10
#: What is forgotten -> how many sessions in a hundred; 0 is a single one.
SHARES = {"one session": 0, "1 %": 1, "50 %": 50}
SIZES = (10_000, 20_000, 100_000, 200_000, 500_000, 1_000_000)

_A = TypeVar("_A")
_B = TypeVar("_B")


def chosen(sessions: int, percent: int) -> Selection:
    """Sessions spread evenly over the whole time."""
    catalogue = synthetic_sessions(sessions)
    ids = sorted((record.session_id for record in catalogue), key=lambda session_id: session_id[-12:])[:sessions]
    count = max(1, sessions * percent // 100)
    return select_sessions(catalogue, Selectors(sessions=ids[:: sessions // count][:count]))


def measure(lines: int, percent: int) -> Row:
    """Plan one purge in this process."""
    sessions = lines // PER_SESSION
    plan_purge(synthetic_snapshot(1), chosen(1, 0))  # what is compiled once per process is not measured
    snapshot = synthetic_snapshot(sessions, PER_SESSION)
    selection = chosen(sessions, percent)
    parts: list[float] = []

    def mapper(function: Callable[[_A], _B], values: Iterable[_A], /) -> Iterable[_B]:
        begin = time.process_time()
        results = list(map(function, values))
        parts.append(time.process_time() - begin)
        return results

    before = forget_peak()
    plan, cpu, wall = timed(lambda: plan_purge(snapshot, selection, mapper=mapper))
    more = peak_mib() - before
    assert not plan.removes_nothing
    scan, scrub = parts
    needle = selection.session_ids[0].encode()
    texts = [file.text.encode() for file in (*snapshot.corpus, *snapshot.files)]
    _, bound, _ = timed(lambda: sum(text.count(needle) for text in texts))
    return {
        "CPU s": cpu,
        "wall s": wall,
        "scan s": scan,
        "scrub s": scrub,
        "rest s": cpu - scan - scrub,
        "µs per line": cpu / lines * 1e6,
        "text MB": sum(map(len, texts)) / 1e6,
        "bound s": bound,
        "times the bound": cpu / bound,
        "snapshot MiB": before,
        "plan MiB": more,
        "effects": len(plan.effects),
    }


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "lines", SIZES).parse_args(arguments)
    tables = Tables(given.json)
    found: dict[tuple[str, int], Row] = {}
    for name, percent in SHARES.items():
        for lines in sorted(given.lines):
            found[name, lines] = apart(measure, lines=lines, percent=percent)
            tables.add("Planning", {"forgotten": name, "lines": lines, **found[name, lines]})
    for (name, lines), row in found.items():
        if half := found.get((name, lines // 2)):
            time_grew, memory_grew = (float(row[part]) / float(half[part]) for part in ("CPU s", "snapshot MiB"))
            growth: Row = {"forgotten": name, "lines": lines, "time": time_grew, "memory": memory_grew}
            tables.add("Growth when the corpus doubles", growth)
    tables.keep()


if __name__ == "__main__":
    main()
