"""From the figures of a run to pages: one JSON, the tables as Markdown with their growth, and a plot for each table.

    python -m benchmarks.results FIGURES.json DIRECTORY

Growth is the exponent of the power law that fits a column best over all sizes of a table (least squares on logarithms):
1 is linear, 2 quadratic. It is told from four sizes on, and not of columns that never reach a millisecond, of which the
clock knows little.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, shown

__all__ = ["exponents", "main", "write_results"]

Figures = Mapping[str, Mapping[str, list[Row]]]

SIZES = ("sessions", "messages", "lines", "chunks", "keys", "size")
LEAST_SIZES = 4
LEAST_SECONDS = 0.001


def size_column(rows: list[Row]) -> str | None:
    """The column that says how large the store was."""
    return next((name for name in SIZES if all(isinstance(row.get(name), int) for row in rows)), None)


def series(rows: list[Row]) -> Iterator[tuple[str, str, list[tuple[int, float]]]]:
    """Each kind of row, each column of seconds in it, and its points, smallest first."""
    size = size_column(rows)
    if size is None:
        return
    kinds = dict.fromkeys(_kind(row) for row in rows)
    for kind in kinds:
        mine = [row for row in rows if _kind(row) == kind]
        for column in mine[0]:
            points = [(int(row[size]), row[column]) for row in mine]
            if column.endswith(" s") and all(isinstance(value, float) for _, value in points):
                yield kind, column, sorted((at, float(value)) for at, value in points)


def exponents(rows: list[Row]) -> list[Row]:
    """How the columns of seconds grow."""
    found: list[Row] = []
    for kind, column, points in series(rows):
        sizes = {at for at, _ in points}
        if len(sizes) < LEAST_SIZES or points[-1][1] < LEAST_SECONDS or points[0][1] <= 0:
            continue
        at, seconds = (np.log(np.array(values)) for values in zip(*points, strict=True))
        slope = float(np.polyfit(at, seconds, 1)[0])
        sizes_seen = f"{min(sizes):,} to {max(sizes):,}"
        found.append({"of": kind, "column": column, "sizes": sizes_seen, "exponent": round(slope, 2)})
    return found


def write_results(figures: Figures, directory: Path) -> None:
    """Write ``results.json``, ``results.md`` and the plots."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "results.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    tables = figures["tables"]
    seen = figures["machine"]
    lines = ["# Figures", "", "Written by `nox -s bench`; what they mean is in [benchmarks](../benchmarks.md).", ""]
    lines += [", ".join(f"{name} {value}" for name, value in seen.items()), ""]
    for title, rows in tables.items():
        lines += [f"## {title}", "", *_table(rows)]
        if plotted := _plot(title, rows, directory):
            lines += [f"![{title}]({plotted})", ""]
        if grown := exponents(rows):
            lines += ["Growth:", "", *_table(grown)]
    (directory / "results.md").write_text("\n".join(lines).rstrip() + "\n", "utf-8")


def _kind(row: Row) -> str:
    return ", ".join(value for name, value in row.items() if isinstance(value, str) and name != "rg s")


def _table(rows: list[Row]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines += [f"| {' | '.join(shown(row.get(name, '')) for name in columns)} |" for row in rows]
    return [*lines, ""]


def _plot(title: str, rows: list[Row], directory: Path) -> str | None:
    """A plot of every column of seconds over the size, both in logarithms; the name of its file."""
    drawn = [(kind, column, points) for kind, column, points in series(rows) if len(points) >= LEAST_SIZES]
    if not drawn:
        return None
    import matplotlib as mpl  # noqa: PLC0415  # for plots alone

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": title, "svg.fonttype": "none"})
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for kind, column, points in drawn:
        axes.plot(*zip(*points, strict=True), marker="o", label=" ".join(filter(None, (kind, column))))
    axes.set(xscale="log", yscale="log", xlabel=size_column(rows) or "", ylabel="seconds", title=title)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize=6)
    name = "".join(c if c.isalnum() else "-" for c in title.lower()) + ".svg"
    figure.savefig(directory / name, metadata={"Date": None})
    plt.close(figure)
    return name


def main(arguments: Iterable[str]) -> None:
    file, directory = arguments
    write_results(json.loads(Path(file).read_text("utf-8")), Path(directory))


if __name__ == "__main__":
    main(sys.argv[1:])
