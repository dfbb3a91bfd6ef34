"""What reaches the terminal: lines, one JSON document, progress, errors.

Everything is printed through here, so that ids, paths and texts, which strangers may have written, arrive as text and
never as commands to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

__all__ = ["document", "escaped", "progress", "say", "say_error", "table"]

_ANY_WIDTH = 100_000


def escaped(text: str) -> str:
    """The text as a terminal may show it: control, bidi and other unprintable characters escaped (F45)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def say(lines: Iterable[str]) -> None:
    """Print lines of text, each on one line whatever it holds."""
    for line in lines:
        click.echo(escaped(line))


def table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows as aligned columns. A terminal folds what is too wide for it; elsewhere every row is one line."""
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*(Text(escaped(cell), overflow="fold") for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(1, Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), grid).maximum)
    console.print(grid)


def say_error(message: str) -> None:
    """Print one line on standard error."""
    click.echo(f"memprov: {escaped(message)}", err=True)


def document(text: str) -> None:
    """Print a JSON document: in UTF-8, whatever the terminal speaks. What it may not show is escaped as JSON does."""
    shown = text if text.replace("\n", "").isprintable() else "".join(map(_json_escaped, text))
    click.echo(shown.encode())


def _json_escaped(character: str) -> str:
    """Unprintable characters stand in strings only, where JSON allows the escape; line feeds are the layout."""
    if character.isprintable() or character == "\n":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Progress on standard error, and only where somebody watches it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("planning", total=None)
        yield lambda what, done, total: bar.update(task, description=escaped(what), completed=done, total=total)
