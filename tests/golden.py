"""What OpenClaw recorded for each real store: its commands, reports and results, and where memprov differs on purpose.

``DIFFERENCES`` is the one table of deviations: for a recorded command, the report fields and files that differ, each
with the decision that makes it so. Everything that is not listed must be equal.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from memprov import Selectors

__all__ = ["DIFFERENCES", "Recorded", "recorded_commands"]


@frozen
class Recorded:
    """One command that OpenClaw carried out on a copy of ``before``."""

    store: str
    suffix: str
    agent: str
    selectors: Selectors
    report: dict[str, object]

    @property
    def name(self) -> str:
        """The command's name in the table."""
        return f"{self.store}{self.suffix}"


#: command -> (report field -> (OpenClaw's value, memprov's, decision)), (file -> decision)
DIFFERENCES: dict[str, tuple[dict[str, tuple[object, object, str]], dict[str, str]]] = {
    # a daily note's section with a metadata block in bold rows is recognised
    "curated-c1": ({"artifacts.memoryEntries": (6, 7, "D5")}, {"memory/2026-11-25.md": "D5"}),
    # the unselected session's equal line goes with its marker, rows and origins
    "mixed": (
        {"artifacts.shortTermEntries": (2, 3, "D4"), "artifacts.originRows": (6, 8, "D4")},
        {"MEMORY.md": "D4", "DREAMS.md": "D4"},
    ),
    # nested rows go with their candidate
    "meta-participant-tg-1001": ({}, {"memory/dreaming/light/2026-11-29.md": "D16"}),
    "meta-participant-since": ({}, {"memory/dreaming/light/2026-11-29.md": "D16"}),
    "meta-hook-or-participant": ({}, {"memory/dreaming/light/2026-11-29.md": "D16"}),
}


def recorded_commands(top: Path) -> Iterator[Recorded]:
    """The recorded commands of an unpacked store that start from ``before``."""
    for line in (top / "commands.txt").read_text().splitlines():
        found = re.search(r"-> after(\S*)", line)
        if line.startswith("#") or found is None or not (top / f"forget{found[1]}.json").exists():
            continue
        report = json.loads((top / f"forget{found[1]}.json").read_text())
        agent, selectors = _parse(line.split("#")[0])
        yield Recorded(top.name, found[1], agent, selectors, report)


def _parse(command: str) -> tuple[str, Selectors]:
    words = shlex.split(command)
    options: dict[str, list[str]] = {}
    for option, value in zip(words, [*words[1:], ""], strict=True):
        if option.startswith("--"):
            options.setdefault(option, []).append(value)
    since = options.get("--since")
    selectors = Selectors(
        options.get("--session", ()),
        options.get("--hook-source", ()),
        options.get("--participant", ()),
        since[0] if since else None,
    )
    return options["--agent"][0], selectors
