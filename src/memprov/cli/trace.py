"""``memprov trace``: where an entry or a line comes from."""

from __future__ import annotations

import click

from memprov.cli.options import StoreOptions, json_option, store_options
from memprov.cli.printing import document, say
from memprov.cli.reading import describe_trace
from memprov.shell.trace import trace

__all__ = ["trace_command"]


@click.command("trace")
@store_options
@click.option("--entry", metavar="KEY", help="An entry, by its key.")
@click.option("--session", metavar="ID_OR_KEY", help="A session, by exact id or key.")
@click.option("--file", metavar="FILE:LINE", help="A line of a memory file or of the corpus, from 1.")
@json_option
def trace_command(
    place: StoreOptions, entry: str | None, session: str | None, file: str | None, *, as_json: bool
) -> None:
    """Say where an entry or a line comes from, or what came of a session."""
    answer = trace(place.open(), entry=entry, session=session, file=file)
    if as_json:
        document(answer.to_json())
    else:
        say(describe_trace(answer))
