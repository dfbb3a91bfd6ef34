"""Planning a purge over corpora of 10^4, 10^5 and 10^6 lines: time, peak memory, growth.

    python -m benchmarks.planning [--lines 10000 100000 1000000]

Each measurement is a process of its own, so that its peak memory is its own. What is forgotten is one session, one
session in a hundred, and every second one. The physical bound is counting the line feeds of the same corpus and memory
text once, in the same process. Growth near the growth of the size is what is wanted; a step of lines times snippets
would show as ten times that. Compare within a run, do not quote.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import pairwise

from memprov import Selectors, plan_purge, select_sessions
from memprov.testing import synthetic_sessions, synthetic_snapshot

__all__ = ["main", "measure"]

PER_SESSION = 10
SHARES = {"one session": 0.0, "1 %": 0.01, "50 %": 0.5}


def measure(lines: int, share: float) -> dict[str, float]:
    """Plan one purge in this process."""
    sessions = lines // PER_SESSION
    snapshot = synthetic_snapshot(sessions, PER_SESSION)
    catalogue = synthetic_sessions(sessions)
    ids = [record.session_id for record in catalogue][:: max(1, round(1 / share)) if share else sessions]
    selection = select_sessions(catalogue, Selectors(sessions=ids))
    begin = time.process_time()
    fed = sum(file.text.count("\n") for file in (*snapshot.corpus, *snapshot.files))
    bound = time.process_time() - begin
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    plan = plan_purge(snapshot, selection)
    spent = time.process_time() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "lines": fed,
        "sessions": len(selection.session_ids),
        "seconds": spent,
        "bound": bound,
        "before_mib": before / 1024,
        "after_mib": after / 1024,
        "effects": len(plan.effects),
    }


def apart(lines: int, share: float) -> dict[str, float]:
    """The same in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.planning", "--measure", str(lines), str(share)]
    answer: dict[str, float] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return answer


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        lines, share = options.measure
        print(json.dumps(measure(int(lines), float(share))))
        return
    print("| forgotten | corpus lines | CPU seconds | the bound | peak MiB, before and after |\n|---|---|---|---|---|")
    for name, share in SHARES.items():
        found = [(lines, apart(lines, share)) for lines in options.lines]
        for lines, row in found:
            memory = f"{row['before_mib']:.0f} / {row['after_mib']:.0f}"
            print(f"| {name} | {lines:,} | {row['seconds']:.2f} | {row['bound']:.3f} | {memory} |", flush=True)
        for (less, small), (more, large) in pairwise(found):
            print(
                f"{name}: {more / less:.0f} times the lines, {large['seconds'] / small['seconds']:.1f} times the time"
            )


if __name__ == "__main__":
    main()
