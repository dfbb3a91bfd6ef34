"""How every reader of text grows with its length, on every hostile shape (F30): four times the text, under six times.

    python -m benchmarks.growth [--characters 25000] [--json FILE]

Prints a row for each reader, the shape on which it grows most, and ends with status 1 where one grows more than that.
CPU seconds, the least of three; what takes less than a twentieth of a second for the longer text is not judged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.measure import Tables, options, timed
from memprov.core.consolidation.decisions import claim_of
from memprov.core.index.chunking import chunk_text
from memprov.core.purge import ScrubRules, scrub_text
from memprov.core.text import (
    Document,
    Gate,
    SessionMatcher,
    is_generated,
    is_memory_echo,
    neutralise,
    normalise,
    one_line,
    redact,
    to_bytes,
    unwrap,
)
from memprov.core.writing.diary import add_blocks, diary_context
from memprov.testing.shapes import SHAPES

__all__ = ["READERS", "growth_of", "main"]

_RULES = ScrubRules(
    "main", ["s1"], ["k1"], ["User: the kiln code is 42 today", "User: the gate has password=[redacted] since May"]
)
#: Each reader of foreign text, by the name of what it does.
READERS: dict[str, Callable[[str], object]] = {
    "structure": Document,
    "scrub": lambda text: scrub_text(text, _RULES),
    "scrub of a report": lambda text: scrub_text(text, _RULES, phase_report=True),
    "quotations": _RULES.quotations.quoted_lines,
    "gate": lambda text: Gate([], _RULES.quotations).may_hold(to_bytes(text)),
    "references": SessionMatcher("main", ["s1"]).refers,
    "normal form": normalise,
    "redaction": redact,
    "neutralising": neutralise,
    "scaffolding": lambda text: is_generated(unwrap(text, "user"), "user"),
    "echo": lambda text: is_memory_echo(one_line(text)),
    "chunks": chunk_text,
    "chunks of entries": lambda text: chunk_text(text, entries=True),
    "claim": lambda text: claim_of(one_line(text)),
    "diary": lambda text: (diary_context(text), add_blocks(text, ())),
}
_BOUND = 6.0
_JUDGED = 0.05


def growth_of(reader: Callable[[str], object], shape: Callable[[int], str], size: int) -> tuple[float, float]:
    """How many times as long four times the text takes, and the CPU seconds of that."""
    small, large = (_least(reader, shape(length)) for length in (size, 4 * size))
    return large / max(small, 1e-6), large


def _least(reader: Callable[[str], object], text: str) -> float:
    return min(timed(lambda: reader(text))[1] for _ in range(3))


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "characters", [25_000]).parse_args(arguments)
    tables, worst = Tables(given.json), 0.0
    for size in given.characters:
        for name, reader in READERS.items():
            found = {shape: growth_of(reader, SHAPES[shape], size) for shape in SHAPES}
            judged = {shape: ratio for shape, (ratio, seconds) in found.items() if seconds >= _JUDGED}
            most = max(judged, key=lambda shape: judged[shape], default=max(found, key=lambda shape: found[shape][1]))
            worst = max(worst, judged.get(most, 0.0))
            row = {"reader": name, "characters": size, "grows most on": most}
            tables.add("Four times the text", {**row, "times": found[most][0], "seconds": found[most][1]})
    tables.keep()
    if worst >= _BOUND:
        sys.exit(f"four times the text takes {worst:.1f} times as long; less than {_BOUND:.0f} is wanted")


if __name__ == "__main__":
    main()
