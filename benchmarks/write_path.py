"""The write path at size: admission of a million sessions, ingestion of a hundred thousand messages.

    python -m benchmarks.write_path [--sessions 100000 1000000] [--messages 10000 100000]

Admission is one function over metadata; ingestion is planned from values and, at the smaller size, written to an
embedded store as well. Growth near the growth of the size is what is wanted. Compare within a run, do not quote.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from memprov import AdmissionPolicy, Message, SessionRecord, decide_admission, ingest, open_store
from memprov.core.state import IngestState
from memprov.core.writing import Transcript, admit_sources, plan_ingestion, read_admitted, session_source
from memprov.core.writing.backfill import plan_backfill

__all__ = ["main", "measure_admission", "measure_ingestion"]

PER_SESSION = 100
POLICY = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"], chat_types=["channel"])
START = 1_795_597_200_000

Row = tuple[str, int, float]


def timed(what: Callable[[], object]) -> float:
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin


def records(count: int) -> list[SessionRecord]:
    """Sessions of which every tenth is kept out by each rule."""
    hooks, channels = ("gmail", *(None,) * 9), ("telegram", "slack", *(None,) * 8)
    return [
        SessionRecord("main", f"s{n:07d}", f"agent:main:{n}", channel=channels[n % 10], hook_source=hooks[n % 10])
        for n in range(count)
    ]


def measure_admission(count: int) -> Iterator[Row]:
    sessions, forgotten = records(count), frozenset(f"s{n:07d}" for n in range(0, count, 7))
    seconds = timed(lambda: [decide_admission(session, POLICY, forgotten) for session in sessions])
    yield "decide_admission", count, seconds


def conversation(name: str) -> tuple[Message, ...]:
    return tuple(
        Message("user", f"In {name} somebody says sentence number {n} of many.", n, START + n, sender_is_owner=True)
        for n in range(1, PER_SESSION + 1)
    )


def measure_ingestion(messages: int) -> Iterator[Row]:
    """A sweep takes at most 240 lines and stops there; a backfill scans every message before it takes its batch."""
    sessions = [SessionRecord("main", f"s{n:05d}", f"agent:main:{n}") for n in range(messages // PER_SESSION)]
    state = IngestState("main")
    texts = {session.session_id: conversation(session.session_id) for session in sessions}
    listing = [session_source(session, modified_ms=START) for session in sessions]

    def plan() -> None:
        admitted = admit_sources(listing, POLICY, state)
        read = read_admitted(admitted, lambda s: Transcript(s, texts[s.path.rpartition("/")[2]]))
        plan_ingestion(state, admitted, tuple(read), today="2026-11-29")

    def plan_all() -> None:
        admitted = admit_sources(listing, POLICY, state, "backfill")
        read = read_admitted(admitted, lambda s: Transcript(s, texts[s.path.rpartition("/")[2]]))
        plan_backfill(state, admitted, read, mode="apply")

    yield "plan one sweep", messages, timed(plan)
    yield "plan one backfill", messages, timed(plan_all)
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory))
        for session in sessions[:20]:
            store.record_session(session)
        some = min(messages, 20 * PER_SESSION)
        yield "sweep into a store", some, timed(lambda: ingest(store, lambda s: texts[s.session_id], now_ms=START))


def report(rows: list[Row]) -> None:
    print("| what | size | seconds | microseconds each |\n| --- | --- | --- | --- |")
    for what, size, seconds in rows:
        print(f"| {what} | {size:,} | {seconds:.3f} | {seconds / size * 1e6:.1f} |")
    for (what, size, seconds), (again, larger, longer) in pairwise(sorted(rows)):
        if what == again and size != larger:
            print(f"{what}: {larger / size:.0f} times the size, {longer / seconds:.1f} times the time")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--messages", type=int, nargs="+", default=[10_000, 100_000])
    options = parser.parse_args(arguments)
    rows = [row for count in options.sessions for row in measure_admission(count)]
    rows += [row for count in options.messages for row in measure_ingestion(count)]
    report(rows)


if __name__ == "__main__":
    main()
