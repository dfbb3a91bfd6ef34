"""OpenClaw stores on disk: reading one, planning on it, and really forgetting.

    python -m benchmarks.disk [--sessions 300 1000 3000] [--json FILE]

Each store is written once and copied for every real purge. The bounds are what nothing can undercut: a search for one
session id in the bytes of the workspace's files (ripgrep where it is installed, else ``bytes.count``), and SQLite
reading every row that a purge reads. Durability has its price in a purge: every file and every step is synced.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import apsw

from benchmarks.measure import Row, Tables, apart, forget_peak, options, peak_mib, timed
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
    """Read it and plan to forget one session, as a preview does."""
    session_id = chosen(sessions, 0).session_ids[0]
    tool, searched = _search(Path(directory) / "workspace", session_id)
    rows, fetched, _ = timed(lambda: _every_row(Path(directory) / "state"))
    store = open_openclaw(Path(directory) / "state")
    begin = forget_peak()
    catalogue, listed, _ = timed(store.catalogue)
    selection = select_sessions(catalogue, Selectors(sessions=[session_id]))
    snapshot, cpu, wall = timed(lambda: store.snapshot(selection))
    more = peak_mib() - begin
    _, planned, _ = timed(lambda: plan_purge(snapshot, selection))
    return {
        "sessions": sessions,
        "catalogue s": listed,
        "snapshot CPU s": cpu,
        "snapshot wall s": wall,
        "plan s": planned,
        "MiB more": more,
        "search with": tool,
        "search s": searched,
        "rows": rows,
        "rows s": fetched,
        "snapshot / bounds": cpu / (searched + fetched),
    }


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


def _search(workspace: Path, session_id: str) -> tuple[str, float]:
    """The tool and the CPU seconds that it takes; the files are in the page cache after the first pass."""
    if tool := shutil.which("rg"):
        words = [tool, "--no-config", "--hidden", "--no-ignore", "-j1", "--count", "--fixed-strings", session_id]
        words.append(str(workspace))
        seconds = [timed(lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL))[1] for _ in range(3)]
        return "ripgrep", min(seconds)
    needle, files = session_id.encode(), [path for path in workspace.rglob("*") if path.is_file()]
    seconds = [timed(lambda: sum(path.read_bytes().count(needle) for path in files))[1] for _ in range(3)]
    return "bytes.count", min(seconds)


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
