"""The Markdown of a synthetic workspace: notes, reports, the diary, MEMORY.md and its earlier versions.

Every structure that a purge must understand occurs: markers alone, stacked and inline, lineage markers, labelled
sections, quotations with and without a speaker label, nested rows, text that belongs to nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import date

from attrs import frozen

from memprov.core.records import Preimage, SessionRecord
from memprov.core.text import json_text, lineage_marker, promotion_marker

__all__ = [
    "LINES_PER_CHUNK",
    "CorpusLine",
    "DayLines",
    "daily_note",
    "diary_block",
    "diary_page",
    "light_report",
    "memory_page",
    "preimages_of",
    "session_file",
]

#: How much of a file or a session one chunk of the index holds.
LINES_PER_CHUNK = 20
_PREIMAGES = 8


@frozen
class CorpusLine:
    """A line of the corpus: its text, the snippet in it, the entry it became, and where and whose it is."""

    text: str
    snippet: str
    key: str
    number: int
    path: str
    session: SessionRecord

    @property
    def said(self) -> str:
        """The snippet without its speaker."""
        return self.snippet.partition(": ")[2]


@frozen
class DayLines:
    """The corpus lines of one day: of each session in turn ``turns`` snippets, and the keys of their entries."""

    agent_id: str
    path: str
    sessions: tuple[SessionRecord, ...]
    turns: int
    snippets: list[str]
    keys: list[str]

    def __len__(self) -> int:
        return len(self.snippets)

    def text(self) -> str:
        """The corpus file."""
        return "".join(
            f"{prefix}{turn + 2}] {self.snippets[position * self.turns + turn]}\n"
            for position, session in enumerate(self.sessions)
            for prefix in (f"[{self.agent_id}/sessions/{self.agent_id}/{session.session_id}#L",)
            for turn in range(self.turns)
        )

    def line(self, index: int) -> CorpusLine:
        """One line as an object."""
        session, snippet = self.sessions[index // self.turns], self.snippets[index]
        prefix = f"[{self.agent_id}/sessions/{self.agent_id}/{session.session_id}#L{index % self.turns + 2}]"
        return CorpusLine(f"{prefix} {snippet}", snippet, self.keys[index], index + 1, self.path, session)

    def first(self, count: int) -> list[CorpusLine]:
        """The first lines, or all."""
        return [self.line(index) for index in range(min(count, len(self)))]

    def last(self, count: int) -> list[CorpusLine]:
        """The last lines, or all."""
        return [self.line(index) for index in range(max(0, len(self) - count), len(self))]


def memory_page(day: str, lines: Iterable[CorpusLine]) -> str:
    """MEMORY.md: prose, promoted entries, consolidated entries, and one marker that nothing knows."""
    chosen = list(lines)
    half = (len(chosen) + 1) // 2
    return "".join(
        (
            "# Long-Term Memory\n\nWritten by hand, and nobody's but the owner's.\n\n",
            f"- The spare key hangs in the hall. {promotion_marker('memory:claim:of-an-older-time')}\n",
            f"\n## Promoted From Short-Term Memory ({day})\n\n",
            *map(_promoted, chosen[:half]),
            f"\n## Consolidated Memory ({day})\n\n",
            *(_consolidated(chosen[i : i + 2]) for i in range(half, len(chosen), 2)),
        )
    )


def _promoted(line: CorpusLine) -> str:
    place = f"{line.path}:{line.number}-{line.number}"
    return (
        f"{promotion_marker(line.key)}\n- {line.text} [score=0.477 signals=1 recalls=0 avg=0.580 source={place}] "
        "<!-- trigger: note --> <!-- importance: 5 -->\n"
    )


def _consolidated(lines: list[CorpusLine]) -> str:
    """One or two claims that became one entry; the pair shares it under stacked markers."""
    first = lines[0]
    markers = "".join(f"{promotion_marker(line.key)}\n" for line in lines)
    lineage = f"{lineage_marker(f'line-{first.number}')}\n" if first.number % 3 == 0 else ""
    return f"{lineage}{markers}- {first.said} Source: {first.path}#L{first.number}-L{first.number}\n"


def preimages_of(day: str, lines: list[CorpusLine]) -> tuple[Preimage, ...]:
    """MEMORY.md as it was before its latest rewrites, oldest first."""
    result = []
    for number in range(_PREIMAGES if lines else 0):
        content = memory_page(day, lines[: len(lines) * (number + 1) // (_PREIMAGES + 1)])
        digest = hashlib.sha256(content.encode()).hexdigest()
        result.append(Preimage(f"{day}T23:{number:02d}:00.000Z:{digest[:12]}", content))
    return tuple(result)


def diary_block(day: date, path: str, count: int, entries: Iterable[str]) -> str:
    """One day in DREAMS.md."""
    return (
        f"---\n\n*{day:%B} {day.day}, {day.year}*\n\n"
        f"<!-- openclaw:dreaming:backfill-entry day={day.isoformat()} source={path} -->\n\n"
        f"Session backfill found {count} trusted candidates.\n{''.join(entries)}\n"
    )


def diary_page(blocks: Iterable[str], lines: Iterable[CorpusLine]) -> str:
    """DREAMS.md, with the highlights of the latest consolidation."""
    history = "".join(f"{promotion_marker(line.key)}\n- `+ - {line.snippet}`\n" for line in list(lines)[-3:])
    return (
        "# Dream Diary\n\n<!-- openclaw:dreaming:diary:start -->\n"
        f"{''.join(blocks)}<!-- openclaw:dreaming:diary:end -->\n\n"
        f"## Memory Consolidation History\n\n### 2026-11-28T23:30:00.000Z\n\n{history}"
    )


def daily_note(number: int, day: str, lines: DayLines) -> str:
    """A note that a person and an agent wrote together."""
    parts = [f"# {day}\n\n- The weather was fair on day {number}.\n- Bread, lamp oil, and a letter to post.\n"]
    if number % 3 == 0:
        parts.append(f"- Said today: {lines.line(0).snippet}\n")
    if number % 4 == 1:
        parts.append(f"> {lines.line(len(lines) - 1).said}\n")
    if number % 5 == 2:
        session = lines.line(len(lines) // 2).session
        parts.append(
            f"\n## Evening\n\n- **Session ID**: {session.session_id}\n- **Topic**: the day\n\nWe spoke of it.\n"
        )
    parts.append("\n## Groceries\n\n- milk\n- pears\n")
    return "".join(parts)


def light_report(lines: DayLines) -> str:
    """The light-sleep report of a day: candidates with nested rows, as backfill writes them and as the sweep does."""
    rows = ["# Light Sleep\n\n"]
    for line in lines.first(4):
        shown = line.snippet if line.key.startswith("memory:claim:") else line.said
        rows.append(
            f"- Candidate: {shown}\n  - confidence: 0.58\n  - evidence: {line.path}:{line.number}-{line.number}\n"
            "  - recalls: 0\n  - status: staged\n"
        )
    return "".join(rows)


def session_file(day: str, lines: DayLines) -> str:
    """What a reset saved of the last conversation of the day."""
    said = (line.snippet.partition(": ") for line in lines.last(lines.turns))
    talk = "".join(f"{speaker.lower()}: {json_text(text)}\n" for speaker, _, text in said)
    session = lines.sessions[-1]
    return (
        f"# Session: {day} 18:00:00 UTC\n\n- **Session Key**: {session.session_key}\n"
        f"- **Session ID**: {session.session_id}\n- **Reason**: idle\n\n## Conversation Summary\n\n{talk}"
    )
