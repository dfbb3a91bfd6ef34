"""The life of an embedded store at several sizes: filling it, sweeping it when nothing is new, forgetting.

    python -m benchmarks.embedded [--sessions 100 300 1000 3000 10000] [--json FILE]

A store is filled from transcripts of ten messages, of which the host says when they changed, in sweeps of 20,000 lines
and in sweeps of the default length; a note for every day quotes some sessions. Then one session is forgotten, and one
that nobody knows. Beside each: reading every file of the workspace, and ripgrep looking in them for the session's id
and its sentences. CPU seconds, but for the column that says otherwise.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.measure import Row, Tables, apart, median_cpu, options, timed
from benchmarks.peers.search import peers
from memprov import Message, Selectors, SessionRecord, forget, ingest, open_store, preview
from memprov.shell.native import NativeStore

__all__ = ["draining", "forgetting", "main"]

PER_SESSION = 10
DAYS = 30
START = 1_795_597_200_000
DAY = 86_400_000
SIZES = (100, 300, 1000, 3000, 10_000)
#: How many sessions sweeps of the default length are measured with: the larger stores are filled faster.
DEFAULT_UP_TO = 3000


def sentence(session: int, number: int) -> str:
    return f"In conversation {session:06d} sentence {number} says that the number is {session * 31 + number}."


def transcript(session: SessionRecord, /) -> list[Message]:
    number = int(session.session_id[1:])
    start = START + number % DAYS * DAY
    return [
        Message("user", sentence(number, n), n, start + 1000 * n, sender_is_owner=True)
        for n in range(1, PER_SESSION + 1)
    ]


def recorded(directory: str, sessions: int) -> NativeStore:
    """A store that knows of its sessions, and has taken in nothing."""
    store = open_store(directory)
    with store._layout.ledger.writing() as ledger:  # one transaction instead of one for each session
        ledger.execute("BEGIN")
        names = [f"s{number:06d}" for number in range(sessions)]
        ledger.executemany(
            "INSERT INTO sessions (session_id, session_key, kind, state, created_at_ms, updated_at_ms) "
            "VALUES (?, ?, 'interactive', 'live', 0, 0)",
            ((name, f"agent:main:{name}") for name in names),
        )
        ledger.executemany(
            "INSERT INTO transcripts (session_id, changed, version) VALUES (?, '1', 1)", ((name,) for name in names)
        )
        ledger.execute("COMMIT")
    return store


def drained(store: NativeStore, max_lines: int) -> int:
    """Sweep until there is no more; returns how many lines were taken."""
    taken = 0
    while True:
        report = ingest(store, transcript, now_ms=START, max_lines=max_lines)
        taken += sum(count for _, count in report.lines)
        if not report.more:
            return taken


def draining(directory: str, sessions: int, max_lines: int) -> Row:
    """Take in everything that was ever said."""
    store = recorded(directory, sessions)
    taken, cpu, wall = timed(lambda: drained(store, max_lines))
    assert taken == sessions * PER_SESSION
    idle = median_cpu(lambda: ingest(store, transcript, now_ms=START))
    return {
        "lines a sweep": f"{max_lines:,}",
        "messages": taken,
        "draining s": cpu,
        "wall s": wall,
        "µs a message": cpu / taken * 1e6,
        "idle sweep s": idle,
    }


def forgetting(directory: str, sessions: int) -> Row:
    """Forget one session of a store that holds as many, and one that nobody knows."""
    store = open_store(directory)
    workspace = Path(store._layout.workspace)
    for day in range(DAYS):
        lines = [f"- {sentence(number, 1 + number % PER_SESSION)}" for number in range(day, sessions, DAYS)]
        path = workspace / "memory" / f"note-{day:02d}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("# What was said\n\n" + "\n".join(lines) + "\n", "utf-8")
    chosen = sessions // 2
    words = [f"s{chosen:06d}", *(sentence(chosen, number) for number in range(1, PER_SESSION + 1))]
    beside = peers(workspace, words)
    one, unknown = Selectors(sessions=[words[0]]), Selectors(sessions=["nobody-knows-it"])
    preview(store, unknown)  # what is compiled once in a process is not measured
    row: Row = {"sessions": sessions, **beside}
    row["preview s"] = median_cpu(lambda: preview(store, one))
    row["forget unknown s"] = timed(lambda: forget(store, unknown))[1]
    row["forget one s"] = timed(lambda: forget(store, one))[1]
    assert preview(store, one).removes_nothing
    row["preview / reading"] = float(row["preview s"]) / float(row["reading s"])
    return row


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "sessions", SIZES).parse_args(arguments)
    tables = Tables(given.json)
    with tempfile.TemporaryDirectory() as top:
        for max_lines, largest in ((240, DEFAULT_UP_TO), (20_000, max(given.sessions))):
            for sessions in sorted(size for size in given.sessions if size <= largest):
                directory = Path(top) / f"store-{sessions}"
                shutil.rmtree(directory, ignore_errors=True)
                row = apart(draining, directory=str(directory), sessions=sessions, max_lines=max_lines)
                tables.add("Filling an embedded store", row)
        for sessions in sorted(given.sessions):
            row = apart(forgetting, directory=str(Path(top) / f"store-{sessions}"), sessions=sessions)
            tables.add("Forgetting in an embedded store", row)
    tables.keep()


if __name__ == "__main__":
    main()
