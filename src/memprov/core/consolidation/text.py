"""MEMORY.md after a consolidation: what is replaced goes whole, what is new is one section, nothing else changes.

The text is composed from entries and read back before anybody sees it: it must hold the entries that stay, byte for
byte, and exactly the new ones. Whatever a corpus line or a hand-edited file holds, a merge can neither swallow a
neighbour nor hand its marker to one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from attrs import frozen

from memprov.core.consolidation.decisions import PriorEntry
from memprov.core.text import WSP, Document, lineage_marker, neutralise_inline, one_line, promotion_marker
from memprov.core.writing import MEMORY_HEADER, PromotionLimits, Ranked, entry_notes, entry_text

__all__ = ["ResultLine", "compose_memory", "consolidated_line"]

_SECTIONS = ("## Consolidated Memory (", "## Promoted From Short-Term Memory (")


@frozen
class ResultLine:
    """An entry as it will stand in the file: its line, and the key and lineages of the marker above it."""

    line: str
    key: str
    lineages: tuple[str, ...] = ()


def consolidated_line(item: Ranked, limits: PromotionLimits) -> str:
    """The line of a consolidated entry (docs: MEMORY.md)."""
    entry = item.cited
    place = f"{neutralise_inline(one_line(entry.path))}#L{entry.start_line}-L{entry.end_line}"
    return " ".join((f"- {entry_text(entry, limits)}", f"Source: {place}", *entry_notes(entry, item.signals)))


def compose_memory(
    text: str | None, replaced: Iterable[PriorEntry], results: Iterable[ResultLine], today: str
) -> str | None:
    """The new file, or ``None`` when it would not be read back as what it is to hold.

    Equal lines are written once, their markers above each other (docs: MEMORY.md).
    """
    text = text or ""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    replaced = tuple(replaced)
    kept = _without(body, replaced) or MEMORY_HEADER
    blocks = _blocks(results)
    parts = [kept if kept.endswith("\n") else f"{kept}\n", f"\n## Consolidated Memory ({today})\n\n"]
    composed = "".join((*parts, *(f"{run}{line}\n" for line, (run, _) in blocks.items())))
    gone = {entry.first for entry in replaced}
    wanted = [entry for first, entry in _entries(body) if first not in gone]
    wanted += [(keys, f"{run}{line}\n") for line, (run, keys) in blocks.items()]
    found = [entry for _, entry in _entries(composed)]
    same = [(keys, said.rstrip("\r\n")) for keys, said in wanted] == [(k, said.rstrip("\r\n")) for k, said in found]
    return mark + composed if same else None


def _blocks(results: Iterable[ResultLine]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each line with the markers above it and the keys that they name."""
    blocks: dict[str, tuple[str, tuple[str, ...]]] = {}
    for result in results:
        run, keys = blocks.get(result.line, ("", ()))
        lineages = (f"{lineage_marker(key)}\n" for key in result.lineages)
        run += "".join(marker for marker in lineages if marker not in run) + f"{promotion_marker(result.key)}\n"
        blocks[result.line] = run, (*keys, result.key)
    return blocks


def _entries(body: str) -> list[tuple[int, tuple[tuple[str, ...], str]]]:
    """The entries of a text: the first line of each, its keys and all of its text. Dangling runs count as entries."""
    document = Document(body)
    lines = document.lines
    spans = [(entry.first, entry.last, entry.keys) for entry in document.entries]
    spans += [(run.first, run.last, run.keys) for run in document.runs if run.keys and run.head is None]
    return [(first, (keys, body[lines[first].start : lines[last - 1].end])) for first, last, keys in sorted(spans)]


def _without(body: str, replaced: tuple[PriorEntry, ...]) -> str:
    """The text less these entries, and less the heading of a section of ours that they leave empty."""
    lines = Document(body).lines
    gone = {number for entry in replaced for number in range(entry.first, entry.last)}
    heads = [number for number, line in enumerate(lines) if line.level] + [len(lines)]
    for head, end in pairwise(heads):
        section = range(head + 1, end)
        ours = lines[head].level == 2 and lines[head].text.startswith(_SECTIONS)
        if ours and not gone.isdisjoint(section) and all(n in gone or lines[n].blank for n in section):
            gone.update(range(head, end))
    kept = "".join(body[line.start : line.end] for number, line in enumerate(lines) if number not in gone)
    return kept if kept.strip(WSP) else ""
