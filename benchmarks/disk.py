"""OpenClaw stores on disk: reading one, planning on it, and really forgetting.

    python -m benchmarks.disk [--sessions 300 1000 3000] [--json FILE]

Each store is written once and copied for every real purge. A preview of one session, and of one that nobody knows, asks
the store; beside it stand reading every file, ripgrep looking in them for the id and what the session said, SQLite
reading every row, and the plan of a whole snapshot. CPU seconds, children's included. Durability has its price in a
purge: every file and every step is synced.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import apsw

from benchmarks.measure import Row, Tables, apart, forget_peak, median_cpu, options, peak_mib, timed
from benchmarks.peers.search import peers
from benchmarks.planning import chosen
from memprov import Selectors, forget, open_openclaw, plan_purge, preview, select_sessions
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store

__all__ = ["forgotten", "main", "read", "write"]

PER_SESSION = 10
_AGENT_TABLES = ("memory_entry_origins", "memory_index_chunks", "memory_index_sources", "session_windows")


def write(directory: str, sessions: int) -> Row:
    """Make a store."""
    snapshot, made, _ = timed(lambda: synthetic_snapshot(sessions, PER_SESSION))
    _, cpu, _ = timed(lambda: write_openclaw_store(directory, snapshot, synthetic_sessions(sessions)))
    size = sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())
    return {"sessions": sessions, "made s": made, "written s": cpu, "MB": size / 1e6, "MiB peak": peak_mib()}


def read(directory: str, sessions: int) -> Row:
    """Preview what forgetting one session would do, and one that nobody knows; beside it, what nothing undercuts."""
    session_id = chosen(sessions, 0).session_ids[0]
    workspace = Path(directory) / "workspace"
    beside = peers(workspace, [session_id, *_said(workspace, session_id)])
    rows, fetched, _ = timed(lambda: _every_row(Path(directory) / "state"))
    store = open_openclaw(Path(directory) / "state")
    one, unknown = Selectors(sessions=[session_id]), Selectors(sessions=["nobody-knows-it"])
    preview(store, unknown)  # what is compiled once in a process is not measured
    begin = forget_peak()
    asked = median_cpu(lambda: preview(store, one))
    more = peak_mib() - begin
    selection = select_sessions(store.catalogue(), one)
    _, whole, _ = timed(lambda: plan_purge(store.snapshot(selection), selection))
    row: Row = {"sessions": sessions, **beside, "rows": rows, "rows s": fetched}
    row |= {"preview s": asked, "unknown s": median_cpu(lambda: preview(store, unknown)), "MiB more": more}
    row |= {"from a snapshot s": whole, "preview / reading": asked / float(beside["reading s"])}
    return row


def _said(workspace: Path, session_id: str) -> list[str]:
    """The snippets of a session."""
    prefix = f"[main/sessions/main/{session_id}#L"
    files = sorted((workspace / "memory" / ".dreams" / "session-corpus").iterdir())
    lines = (line for file in files for line in file.read_text("utf-8").splitlines() if line.startswith(prefix))
    return [line.partition("] ")[2] for line in lines]


def forgotten(directory: str, sessions: int, count: int) -> Row:
    """Forget some sessions on a store that is there for that."""
    ids = chosen(sessions, 100).session_ids[::3][:count]
    top, selectors = Path(directory), Selectors(sessions=ids)
    store = open_openclaw(top / "state", workspace=top / "workspace")  # a copy: its configuration names the original
    plan, previewed, _ = timed(lambda: preview(store, selectors))
    _, cpu, wall = timed(lambda: forget(store, selectors))
    assert preview(store, selectors).removes_nothing
    return {
        "sessions": sessions,
        "forgotten": len(ids),
        "preview CPU s": previewed,
        "forget CPU s": cpu,
        "forget wall s": wall,
        "effects": len(plan.effects),
        "ms per effect": wall / len(plan.effects) * 1000,
        "MiB peak": peak_mib(),
    }


def _every_row(state: Path) -> int:
    count = 0
    for path, tables in (
        (state / "agents" / "main" / "agent" / "openclaw-agent.sqlite", _AGENT_TABLES),
        (state / "state" / "openclaw.sqlite", ("plugin_state_entries",)),
    ):
        connection = apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        count += sum(1 for table in tables for _ in connection.execute(f"SELECT * FROM {table}"))  # noqa: S608
        connection.close()
    return count


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "sessions", (300, 1000, 3000, 10_000)).parse_args(arguments)
    tables = Tables(given.json)
    with tempfile.TemporaryDirectory() as top:
        for sessions in given.sessions:
            store = Path(top) / f"store-{sessions}"
            tables.add("Making a store", apart(write, directory=str(store), sessions=sessions))
        for sessions in given.sessions:
            row = apart(read, directory=str(Path(top) / f"store-{sessions}"), sessions=sessions)
            tables.add("Reading a store and planning", row)
        for sessions in given.sessions:
            for count in (1, 100):
                copy = Path(top) / "copy"
                shutil.copytree(Path(top) / f"store-{sessions}" / "state", copy / "state")
                shutil.copytree(Path(top) / f"store-{sessions}" / "workspace", copy / "workspace")
                row = apart(forgotten, directory=str(copy), sessions=sessions, count=count)
                tables.add("Forgetting", row)
                shutil.rmtree(copy)
    tables.keep()


if __name__ == "__main__":
    main()
