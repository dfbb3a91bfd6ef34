"""The write path at size: admission of a million sessions, plans over a hundred thousand messages.

    python -m benchmarks.write_path [--sessions 100000 1000000] [--messages 10000 100000] [--json FILE]

Admission is one function over metadata; a sweep and a backfill are planned from values. The sweep takes all messages,
since one that takes 240 costs the same whatever there is. ``benchmarks.embedded`` writes into a store. CPU seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.measure import Row, Tables, options, timed
from memprov import AdmissionPolicy, Message, SessionRecord, decide_admission
from memprov.core.state import IngestState
from memprov.core.writing import Transcript, admit_sources, plan_backfill, plan_ingestion, read_admitted, session_source

__all__ = ["main", "measure_admission", "measure_plans"]

PER_SESSION = 100
POLICY = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"], chat_types=["channel"])
START = 1_795_597_200_000


def records(count: int) -> list[SessionRecord]:
    """Sessions of which every tenth is kept out by each rule."""
    hooks, channels = ("gmail", *(None,) * 9), ("telegram", "slack", *(None,) * 8)
    return [
        SessionRecord("main", f"s{n:07d}", f"agent:main:{n}", channel=channels[n % 10], hook_source=hooks[n % 10])
        for n in range(count)
    ]


def measure_admission(count: int) -> Row:
    sessions, forgotten = records(count), frozenset(f"s{n:07d}" for n in range(0, count, 7))
    _, cpu, _ = timed(lambda: [decide_admission(session, POLICY, forgotten) for session in sessions])
    return {"what": "decide_admission", "size": count, "CPU s": cpu, "µs each": cpu / count * 1e6}


def conversation(name: str) -> tuple[Message, ...]:
    return tuple(
        Message("user", f"In {name} somebody says sentence number {n} of many.", n, START + n, sender_is_owner=True)
        for n in range(1, PER_SESSION + 1)
    )


def measure_plans(messages: int) -> Iterator[Row]:
    """Every message is read by both, and taken by the sweep; a backfill takes a batch of them."""
    sessions = [SessionRecord("main", f"s{n:05d}", f"agent:main:{n}") for n in range(messages // PER_SESSION)]
    state = IngestState("main")
    texts = {session.session_id: conversation(session.session_id) for session in sessions}
    listing = [session_source(session, modified_ms=START) for session in sessions]

    def swept() -> int:
        admitted = admit_sources(listing, POLICY, state)
        read = read_admitted(admitted, lambda s: Transcript(s, texts[s.path.rpartition("/")[2]]))
        plan = plan_ingestion(state, admitted, read, today="2026-11-29", max_lines=messages * 9)
        return sum(count for _, count in plan.report.lines)

    def backfilled() -> None:
        admitted = admit_sources(listing, POLICY, state, "backfill")
        read = read_admitted(admitted, lambda s: Transcript(s, texts[s.path.rpartition("/")[2]]))
        plan_backfill(state, admitted, read, mode="apply")

    taken, cpu, _ = timed(swept)
    assert taken == messages
    yield {"what": "plan one sweep", "size": messages, "CPU s": cpu, "µs each": cpu / messages * 1e6}
    _, cpu, _ = timed(backfilled)
    yield {"what": "plan one backfill", "size": messages, "CPU s": cpu, "µs each": cpu / messages * 1e6}


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, "sessions", (10_000, 30_000, 100_000, 300_000, 1_000_000))
    parser.add_argument("--messages", type=int, nargs="+", default=[3000, 10_000, 30_000, 100_000])
    given = parser.parse_args(arguments)
    tables = Tables(given.json)
    for count in sorted(given.sessions):
        tables.add("The write path, from values", measure_admission(count))
    for count in sorted(given.messages):
        for row in measure_plans(count):
            tables.add("The write path, from values", row)
    tables.keep()


if __name__ == "__main__":
    main()
