"""What nothing can undercut, over the same files in the same run: reading them, and ripgrep looking for the same words.

CPU seconds, children's included. The files are in the page cache after the first pass, which is not counted.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measure import Row, timed

__all__ = ["counting", "peers", "ripgrep"]


def counting(top: Path) -> tuple[float, int]:
    """Read every file and count its lines: CPU seconds, and bytes."""
    files = [path for path in top.rglob("*") if path.is_file()]

    def read() -> int:
        size = 0
        for path in files:
            data = path.read_bytes()
            data.count(b"\n")
            size += len(data)
        return size

    read()
    size, cpu, _ = timed(read)
    return cpu, size


def ripgrep(top: Path, words: Iterable[str]) -> float | None:
    """One thread of ripgrep that looks for all of these words; ``None`` where it is not installed."""
    tool = shutil.which("rg")
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write("\n".join(words) + "\n")
        file.flush()
        command = [tool, "--no-config", "-j1", "--hidden", "--no-ignore", "--count", "-F", "-f", file.name, str(top)]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        return timed(lambda: subprocess.run(command, check=False, stdout=subprocess.DEVNULL))[1]


def peers(top: Path, words: Iterable[str]) -> Row:
    """Both, as columns of a table."""
    read, size = counting(top)
    found = ripgrep(top, words)
    return {"MB": size / 1e6, "reading s": read, "rg s": "not installed" if found is None else found}
