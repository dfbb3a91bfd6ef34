"""Every benchmark at its own sizes, one after the other, and the pages that come of it.

    python -m benchmarks [--into DIRECTORY] [NAME ...]

Without a directory the tables are printed and that is all; with one, the figures are written there as JSON, Markdown
and plots (``benchmarks.results``), those of the named benchmarks in place of their former ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks import canaries, disk, embedded, executors, indexing, lineage, planning, starting, write_path
from benchmarks.measure import Row, machine
from benchmarks.results import write_results

__all__: list[str] = []

MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (starting, planning, disk, embedded, executors, write_path, lineage, indexing, canaries)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*MODULES, []], help="which; all without a name")
    parser.add_argument("--into", type=Path, metavar="DIRECTORY", help="write the figures there")
    given = parser.parse_args()
    tables: dict[str, list[Row]] = {}
    kept = given.into / "results.json" if given.into else None
    if kept is not None and kept.exists() and given.names:
        tables |= json.loads(kept.read_text("utf-8"))["tables"]
    for name in given.names or MODULES:
        print(f"\n## {name}", flush=True)
        with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
            MODULES[name].main(["--json", file.name])
            tables |= json.load(file)["tables"]
    if given.into is not None:
        write_results({"machine": machine(), "tables": tables}, given.into)  # type: ignore[dict-item]


if __name__ == "__main__":
    main()
