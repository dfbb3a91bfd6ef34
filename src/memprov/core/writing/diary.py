"""The dream diary: one managed section of a Markdown file, made of dated blocks, that people read and may edit.

Only the managed section is ever changed, and in it only whole blocks of our own. Every line that says something has its
own marker, whose origins are recorded before the file is written: so each line can be forgotten, whoever else
contributed to its block (docs: Diary, B03). A line of several sources has the origins of all of them, not only of those
that it displays (F10).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from attrs import evolve, field, frozen

from memprov.core.lineage import join_origins
from memprov.core.records import Origin
from memprov.core.text import (
    WSP,
    Document,
    collapse,
    diary_key,
    line_spans,
    neutralise,
    neutralise_inline,
    one_line,
    promotion_marker,
)
from memprov.core.writing.candidates import truncated

__all__ = [
    "CONTEXT_BLOCKS",
    "DIARY_PATH",
    "MAX_HIGHLIGHTS",
    "DiaryBlock",
    "DiaryLine",
    "Highlight",
    "add_blocks",
    "add_history",
    "block_origins",
    "context_keys",
    "day_title",
    "diary_context",
    "remove_backfill_blocks",
    "render_block",
]

DIARY_PATH = "DREAMS.md"
_TITLE = "# Dream Diary"
_START = "<!-- openclaw:dreaming:diary:start -->"
_END = "<!-- openclaw:dreaming:diary:end -->"
_FENCE = re.compile(r"<!--[ \t]*openclaw:dreaming:diary:(start|end)[ \t]*-->", re.IGNORECASE)
_BACKFILL = re.compile(r"<!--[ \t]*openclaw:dreaming:backfill-entry\b.*-->", re.IGNORECASE)
#: The bullet and the corpus prefix that an entry's line begins with.
_PREFIX = re.compile(r"(?:- )?\[([^\[\]/\s]+)/sessions/\1/[^\]]+?#L[0-9]+\] ")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_HISTORY = "## Memory Consolidation History"
#: How many excerpts one consolidation leaves in the history.
MAX_HIGHLIGHTS = 8
_HIGHLIGHT_UNITS = 180
CONTEXT_BLOCKS = 3
_CONTEXT_UNITS = 360


def _lines(values: Iterable[DiaryLine]) -> tuple[DiaryLine, ...]:
    return tuple(values)


@frozen
class DiaryLine:
    """A line of the diary and the origins of everything that it was made from, under whatever entry key.

    ``text`` is written as it is given, but for what a parser would take for structure. Without origins a line gets no
    marker.
    """

    text: str
    origins: tuple[Origin, ...] = ()


@frozen
class DiaryBlock:
    """A block: its day or title, a note to readers that carries nothing of a session, and its lines.

    ``source_path`` makes it a backfill block of that corpus file, which a rollback takes out again.
    """

    day: str
    lines: tuple[DiaryLine, ...] = field(converter=_lines)
    title: str | None = None
    lead: str = ""
    source_path: str | None = None


@frozen
class Highlight:
    """An excerpt of what a consolidation wrote (``new``) or replaced, under the key whose lineage covers both."""

    key: str
    text: str
    new: bool


def day_title(day: str) -> str:
    """A day as the diary writes it: ``November 25, 2026``."""
    moment = date.fromisoformat(day)
    return f"{_MONTHS[moment.month - 1]} {moment.day}, {moment.year}"


def render_block(block: DiaryBlock) -> str:
    """The block as text, without the separator before it and the newline after it."""
    parts = [f"*{block.title or day_title(block.day)}*"]
    if block.source_path is not None:
        parts.append(f"<!-- openclaw:dreaming:backfill-entry day={block.day} source={block.source_path} -->")
    body = [block.lead] if block.lead else []
    for line in block.lines:
        if not (text := _written(line)):
            continue
        body += [promotion_marker(diary_key(block.day, text)), text] if line.origins else [text]
    return "\n\n".join((*parts, "\n".join(body)))


def block_origins(block: DiaryBlock) -> tuple[Origin, ...]:
    """The origins of the block's lines, each under the key of its line: to be recorded before the block is shown."""
    return join_origins(
        evolve(origin, entry_key=diary_key(block.day, text))
        for line in block.lines
        if (text := _written(line))
        for origin in line.origins
    )


def add_blocks(text: str | None, blocks: Iterable[DiaryBlock]) -> tuple[str, int]:
    """The diary file with the blocks at the end of its managed section, and how many were not there already.

    ``text`` is the file as it is, ``None`` where there is none. A section is made where it is missing. All other bytes
    stay; new lines end as the section's first line does.
    """
    text = text or ""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    section = _section(body)
    if section is None:
        head = f"{_TITLE}\n\n{_START}\n"
        body = f"{head}{_END}\n" + (f"\n{body}" if body.strip(WSP) else "")
        section = len(head), len(head)
    start, end = section
    known = {_fingerprint(body[first:last]) for first, last in _blocks(body, start, end)}
    ending = "\r\n" if body[:start].endswith("\r\n") else "\n"
    inner, added = body[start:end], 0
    for rendered in map(render_block, blocks):
        if _fingerprint(rendered) in known:
            continue
        known.add(_fingerprint(rendered))
        added += 1
        inner = inner.rstrip("\r\n") + ending + ending if inner.strip(WSP) else ""
        inner += f"---\n\n{rendered}\n".replace("\n", ending)
    return (mark + body[:start] + inner + body[end:], added) if added else (text, 0)


def add_history(
    text: str | None, moment: str, counts: Iterable[tuple[str, int]], highlights: Iterable[Highlight]
) -> str:
    """The diary file with a record of one consolidation at the end of its history (docs: Diary).

    Each excerpt has its own marker, since it says what the entry says; at most ``MAX_HIGHLIGHTS`` are kept. All other
    bytes stay.
    """
    text = text or ""
    lines = [f"### {moment}", "", *(f"- {name}: {count}" for name, count in counts)]
    for highlight in tuple(highlights)[:MAX_HIGHLIGHTS]:
        lines += [promotion_marker(highlight.key), f"- `{'+' if highlight.new else '-'} {_excerpt(highlight.text)}`"]
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    end = _history_end(body)
    head = "" if end is not None else f"{_HISTORY}\n\n"
    before, after = (body, "") if end is None else (body[:end], body[end:])
    gap = "" if not before or before.endswith(("\n\n", "\r\n\r\n")) else "\n" if before.endswith("\n") else "\n\n"
    ending = "\r\n" if "\r\n" in body else "\n"
    added = f"{gap}{head}" + "\n".join(lines) + ("\n\n" if after else "\n")
    return mark + before + added.replace("\n", ending) + after


def _history_end(body: str) -> int | None:
    """Where the last history ends: at the next heading of its level or above, a managed fence, or the end."""
    lines = Document(body).lines
    starts = [n for n, line in enumerate(lines) if line.level == 2 and line.text.rstrip(WSP) == _HISTORY]
    if not starts:
        return None
    return next(
        (line.start for line in lines[starts[-1] + 1 :] if 0 < line.level <= 2 or line.managed_fence), len(body)
    )


def _excerpt(text: str) -> str:
    """A text for a code span on its line: cut, without backticks, and nothing in it structure."""
    said = one_line(text).replace("`", "'")
    if prefix := _PREFIX.match(said):
        said = prefix[0] + neutralise_inline(said[prefix.end() :])
    else:
        said = neutralise_inline(said)
    return truncated(said, _HIGHLIGHT_UNITS).rstrip(WSP)


def remove_backfill_blocks(text: str, keep_keys: frozenset[str] = frozenset()) -> tuple[str, int]:
    """The diary file less its backfill blocks, and how many went. A block with one of ``keep_keys`` stays."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    section = _section(body)
    if section is None:
        return text, 0
    start, end = section
    gone = [
        (first, last)
        for first, last in _blocks(body, start, end)
        if _is_backfill(body[first:last]) and keep_keys.isdisjoint(_keys(body[first:last]))
    ]
    if not gone:
        return text, 0
    inner, position = "", start
    for first, last in gone:
        inner += body[position:first]
        position = last
    inner += body[position:end]
    kept = inner.strip("\r\n")
    ending = "\r\n" if body[:start].endswith("\r\n") else "\n"
    return mark + body[:start] + (kept + ending if kept.strip(WSP) else "") + body[end:], len(gone)


def diary_context(text: str | None, limit: int | None = CONTEXT_BLOCKS) -> tuple[str, ...]:
    """What the newest blocks say, the newest first, each as one bounded line: what a new narrative may be shown.

    Without a limit all blocks, so that a narrative can be asked whether what it was shown is still there.
    """
    entries = [entry for entry, _ in _entries(text)]
    entries = entries if limit is None else entries[max(len(entries) - limit, 0) :]
    return tuple(reversed(entries))


def context_keys(text: str | None, context: Iterable[str]) -> frozenset[str]:
    """The entry keys of the blocks that say any of this context: whose lines a narrative was shown."""
    shown = frozenset(context)
    return frozenset(key for entry, block in _entries(text) if entry in shown for key in _keys(block))


def _entries(text: str | None) -> list[tuple[str, str]]:
    """The blocks that say something, oldest first: what each says as one bounded line, and its text."""
    body = (text or "").removeprefix("\ufeff")
    section = _section(body)
    blocks = [] if section is None else [body[first:last] for first, last in _blocks(body, *section)]
    said = ((collapse(" ".join(_said(block)))[:_CONTEXT_UNITS], block) for block in blocks)
    return [(entry, block) for entry, block in said if entry]


def _written(line: DiaryLine) -> str:
    return neutralise(line.text).rstrip(WSP)


def _section(body: str) -> tuple[int, int] | None:
    """Where the managed section's content is: behind the first start fence, up to the last end fence below it."""
    lines = Document(body).lines
    fences = [(line, match[1].lower()) for line in lines if line.managed_fence and (match := _FENCE.search(line.text))]
    start = next((line.end for line, kind in fences if kind == "start"), None)
    if start is None:
        return None
    end = max((line.start for line, kind in fences if kind == "end" and line.start >= start), default=None)
    return None if end is None else (start, end)


def _blocks(body: str, start: int, end: int) -> list[tuple[int, int]]:
    """The blocks of a section, each with the separator line before it."""
    inner = body[start:end]
    heads = [start + first for first, last in line_spans(inner) if inner[first:last].rstrip(WSP) == "---"]
    return list(zip(heads, [*heads[1:], end], strict=False))


def _is_backfill(block: str) -> bool:
    return any(_BACKFILL.fullmatch(line.strip(WSP)) for line in block.split("\n"))


def _keys(block: str) -> frozenset[str]:
    return frozenset(key for line in Document(block).lines for key in line.keys)


def _said(block: str) -> list[str]:
    """The lines of a block that say something: no separator, date, heading or comment."""
    lines = (line.strip(WSP) for line in block.split("\n"))
    return [
        line for line in lines if line and line != "---" and not line.startswith(("<!--", "#")) and not _is_date(line)
    ]


def _is_date(line: str) -> bool:
    return len(line) > 2 and line.startswith("*") and line.endswith("*")


def _fingerprint(block: str) -> tuple[str, ...]:
    """What makes two blocks the same: the date and what is said."""
    lines = (line.strip(WSP) for line in block.split("\n"))
    return (next((line for line in lines if _is_date(line)), ""), *_said(block))
