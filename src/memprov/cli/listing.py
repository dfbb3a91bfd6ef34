"""Sessions as rows that fit 80 columns, for a person who looks for one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from rich.cells import cell_len, set_cell_size

from memprov.cli.finding import began_ms
from memprov.cli.printing import escaped
from memprov.cli.reading import moment
from memprov.core.records import SessionRecord

__all__ = ["WIDTH", "describe_sessions", "fitted"]

WIDTH = 80
_GAP = 2
#: The widest that each column may be, in cells: they and the gaps between them make a row.
_WIDEST = (22, 11, 9, 11, 8, 9)


def describe_sessions(
    rows: Iterable[SessionRecord], shown: Mapping[str, str], forgotten: Collection[str], said: Mapping[str, str]
) -> Iterator[str]:
    """One line for each session under a heading, and below it what is known to have been ``said`` in it.

    ``shown`` is how each id is written. A date with ``<`` before it is that of archiving: the session began earlier.
    """
    cells = [(_cells(row, shown, forgotten), said.get(row.session_id)) for row in rows]
    table = [("session", "began", "state", "kind", "channel", "with"), *(row for row, _ in cells)]
    widths = _widths(table)
    for (row, words), first in zip([(table[0], None), *cells], (True, *([False] * len(cells))), strict=True):
        yield (" " * _GAP).join(map(_padded, row, widths)).rstrip()
        if not first and words is not None:
            yield fitted(f"    {escaped(words)}", WIDTH)


def fitted(text: str, width: int) -> str:
    """The text, cut to a number of cells where it is longer; ``…`` stands for the rest."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _cells(row: SessionRecord, shown: Mapping[str, str], forgotten: Collection[str]) -> tuple[str, ...]:
    day = moment(began_ms(row)).partition(" ")[0]
    state = "forgotten" if row.session_id in forgotten else row.state.value
    key = (row.session_key or "-").removeprefix(f"agent:{row.agent_id}:")
    channel = row.channel or (f"hook {row.hook_source}" if row.hook_source else key)
    people = ", ".join(identity.id for identity in row.participants)
    late = "<" if row.created_at_ms is None and row.archived_at_ms is not None else ""
    name = shown.get(row.session_id, row.session_id)
    return tuple(map(escaped, (name, late + day, state, row.kind.value, channel, people)))


def _widths(table: list[tuple[str, ...]]) -> list[int]:
    """As wide as the columns need, the last two and then the first taking what the others leave."""
    natural = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    widths = list(map(min, natural, _WIDEST))
    for column in (0, 4, 5):
        spare = WIDTH - sum(widths) - _GAP * (len(widths) - 1)
        widths[column] = min(natural[column], widths[column] + spare)
    return widths


def _padded(text: str, width: int) -> str:
    return set_cell_size(fitted(text, width), width)
