"""What a program pays before anything of its own happens: imports, and the help of the command line.

    python -m benchmarks.starting [--json FILE]

CPU milliseconds of whole processes, the median of several, each beside what it stands on.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.measure import Row, Tables, options, timed

__all__ = ["main", "measure"]

BARE = """
import click
@click.group()
@click.version_option("1")
def cli(): pass
@cli.command()
def one(): "Say one."
cli(["--help"], standalone_mode=False)
"""
PROGRAMS = {
    "import numpy": ("import numpy", "pass"),
    "import memprov": ("import memprov", "pass"),
    "import memprov, after numpy": ("import numpy, memprov", "import numpy"),
    "open_store, after numpy": ("import numpy, memprov; memprov.open_store", "import numpy"),
    "every public name, after numpy": ("import numpy; from memprov import *", "import numpy"),
    "memprov --help, over a bare click program": ("from memprov.cli.commands import _cli; _cli(['--help'])", BARE),
}


def measure(code: str, repeats: int = 7) -> float:
    """CPU milliseconds of a process that runs this."""
    words = [sys.executable, "-c", code]
    run = lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    return statistics.median(timed(run)[1] for _ in range(repeats)) * 1000


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "repeats", [7]).parse_args(arguments)
    tables = Tables(given.json)
    for name, (code, base) in PROGRAMS.items():
        whole, below = (measure(text, given.repeats[0]) for text in (code, base))
        row: Row = {"what": name, "CPU ms": whole, "what it stands on, ms": below, "above it, ms": whole - below}
        tables.add("Starting", row)
    tables.keep()


if __name__ == "__main__":
    main()
