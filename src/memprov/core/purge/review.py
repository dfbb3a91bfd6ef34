"""What a person must look at: text that cannot be traced, and rows that cite what was removed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from memprov.core.purge.report import SharedEntry, Suspect
from memprov.core.purge.scrub import Scrub, ScrubRules
from memprov.core.records import MemoryFile, StoreIdentity
from memprov.core.state import Sibling
from memprov.core.text import (
    WSP,
    CommentKind,
    Document,
    collapse,
    machine_lines,
    strip_prefix,
    strip_speaker,
    to_bytes,
)

__all__ = [
    "OLD_HISTORY",
    "broken_markers",
    "citations_of",
    "has_old_highlights",
    "marked_at",
    "refusal_sentence",
    "said_in",
    "shared_sentence",
    "stale_index_sentences",
    "suspects_of",
]

#: How many of a list a sentence names.
_NAMED = 3
_BY_TRANSCRIPT = "it says what a selected session said, by its transcript; no corpus line of it is left"
_ALIKE = "it looks like what a selected session said, but for invisible or compatibility characters"

#: The name of a marker, however what stands around it was damaged.
_MARKER_NAME = re.compile(r"openclaw-memory-promotion", re.IGNORECASE)
#: Before the name: a marker that is shown, in a code span or escaped.
_SHOWN = re.compile(r"(?:`\s*<!--|<\\!--)\s*$")
_MARKER_REST = re.compile(r"[\s:=>-]*(?P<whole>(?P<word>\S*).*?)(?=--!?>|$)", re.DOTALL)
_NONE: frozenset[str] = frozenset()
#: ``Candidate: User: text``, and nothing.
_LABELS = 3

#: The heading under which consolidation writes what it did.
OLD_HISTORY = "## Memory Consolidation History"
_HISTORY = re.compile(rf"^{OLD_HISTORY}\r?$", re.MULTILINE)
_OLD_HIGHLIGHT = re.compile(r"^  - `[+-] ", re.MULTILINE)
_CITATION = re.compile(
    r"(memory/\.dreams/session-corpus/[^\s:,#\]]{1,255})(?::([0-9]{1,9})-([0-9]{1,9})|#L([0-9]{1,9})-L([0-9]{1,9}))"
)


def has_old_highlights(text: str) -> bool:
    """Whether a file has consolidation highlights of the old, unmarked format, which cannot be traced (docs: Diary)."""
    heading = _HISTORY.search(text)
    return heading is not None and _OLD_HIGHLIGHT.search(text, heading.end()) is not None


def refusal_sentence(path: str) -> str:
    """What the report says of such a file."""
    return f"Cannot trace historical consolidation highlights in {path}; review them manually."


def citations_of(
    path: str, text: str, removed: Mapping[str, tuple[int, ...]], staying: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    """Warnings for rows of a phase report that cite a removed corpus line (D22). ``removed``: sorted line numbers from
    1, by file; ``staying``: what the other lines of these files say, as ``said_in`` has it.

    A row counts lines as they were when it was written, and every purge since has moved them. So a row that says what a
    line of the cited file still says is about that line, whichever number it gives.
    """
    head = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] not in (" ", "\t"):
            head = line
        for match in _CITATION.finditer(line):
            lines = removed.get(match[1], ())
            first, last = int(match[2] or match[4]), int(match[3] or match[5])
            at = bisect_left(lines, first)
            if at < len(lines) and lines[at] <= last and staying.get(match[1], _NONE).isdisjoint(_claims(head)):
                yield f"{path} line {number} cites {match[0]}, of which a line is removed; review it"


def marked_at(text: str, keys: Collection[str]) -> Iterator[tuple[str, int]]:
    """Where the markers of these entries stand: key and line, from 1."""
    for number, line in enumerate(Document(text.removeprefix("\ufeff")).lines, 1):
        yield from ((key, number) for key in dict.fromkeys(line.keys) if key in keys)


def said_in(file: MemoryFile, removed: Iterable[int], agent_id: str) -> frozenset[str]:
    """What the lines of a corpus file say, but for those with these numbers, from 1."""
    gone = frozenset(removed)
    lines = enumerate(file.text.split("\n"), 1)
    bodies = (collapse(strip_prefix(line, agent_id)) for number, line in lines if number not in gone)
    return frozenset(strip_speaker(body) for body in bodies if body)


def _claims(row: str) -> Iterator[str]:
    """What a row may say: its text, with ever fewer of the labels in front of it."""
    body = collapse(row.lstrip("-*+ \t"))
    for _ in range(_LABELS):
        yield body
        label, separator, rest = body.partition(": ")
        if not separator or " " in label:
            return
        body = rest


def suspects_of(path: str, text: str, scrub: Scrub, rules: ScrubRules) -> Iterator[Suspect]:
    """The lines of a file that stay although a selected session may be behind them: quotations of what is known from
    its transcript alone (D23), and what quotes it only once both are folded (F09).
    """
    body = text.removeprefix("\ufeff")
    said, alike = rules.machine_quotations.quoted_lines(body), rules.lookalikes.lines(body)
    if not (said or alike):
        return
    gone = _removed_lines(text, scrub)
    document = Document(body)
    said -= machine_lines(document, phase_report=False)  # structure in them stays, and is no content
    for number in sorted(said | alike):
        line = document.lines[number]
        if number not in gone and not (line.managed_fence or line.only_comments):
            yield Suspect(path, number + 1, _BY_TRANSCRIPT if number in said else _ALIKE)


def broken_markers(text: str, scrub: Scrub, keys: AbstractSet[str]) -> Iterator[tuple[int, str]]:
    """Where a file still names one of these keys in a marker that nothing reads: line, from 1, and key (F08).

    Such a place is untouched, since what it owns is not known. What shows a marker, in code or escaped, is none.
    """
    plain = "\0" not in text
    body = text.removeprefix("\ufeff").replace("\0", "")  # of a text in UTF-16, what is ASCII
    if not keys or not _MARKER_NAME.search(body):
        return
    gone = _removed_lines(text, scrub)
    lines = Document(body).lines
    for number, line in enumerate(lines):
        if number in gone or line.in_code:
            continue
        below = f"\n{lines[number + 1].text}" if number + 1 < len(lines) else ""
        for name in _MARKER_NAME.finditer(line.text):
            rest = _MARKER_REST.match(line.text[name.end() :] + below)
            named = () if rest is None else (rest["whole"].strip(WSP), rest["word"].partition("--")[0])
            key = next((key for key in named if key in keys), None)
            live = plain and any(
                comment.kind is CommentKind.PROMOTION and comment.start < name.start() < comment.end
                for comment in line.comments
            )
            if key is not None and not live and not _SHOWN.search(line.text, 0, name.start()):
                yield number + 1, key


def _removed_lines(text: str, scrub: Scrub) -> frozenset[int]:
    """The lines, from 0, that a scrub removes to the end."""
    data = to_bytes(text)
    last_line = data.rfind(b"\n") + 1
    gone: set[int] = set()
    number = position = 0
    for start, end in scrub.spans:
        number += data.count(b"\n", position, start)
        ended = data.count(b"\n", start, end) + (start <= last_line and end == len(data))
        gone.update(range(number, number + ended))
        number += data.count(b"\n", start, end)
        position = end
    return frozenset(gone)


def shared_sentence(entries: Sequence[SharedEntry]) -> str:
    """The warning that entries go which another agent of the workspace knows too."""
    named = (f"{e.entry_key} ({', '.join(e.places) or 'in no memory file'})" for e in entries[:_NAMED])
    more = f" and {len(entries) - _NAMED} more (sharedEntries)" if len(entries) > _NAMED else ""
    agents = " or ".join(repr(agent) for agent in dict.fromkeys(a for e in entries for a in e.agents))
    count = "1 entry that goes is" if len(entries) == 1 else f"{len(entries)} entries that go are"
    return f"{count} known to another agent of the workspace too ({agents or 'unnamed'}): {', '.join(named)}{more}"


def stale_index_sentences(siblings: Iterable[Sibling], changed: frozenset[str], store: StoreIdentity) -> Iterator[str]:
    """Which indexes of other agents show these files as they were before this purge or an earlier one, and what makes
    them anew. This agent's purge leaves them alone (I11), so that finding nothing is no certificate for them.
    """
    for sibling in siblings:
        paths = sorted(sibling.stale | (sibling.shown & changed))
        if not paths:
            continue
        named = ", ".join(paths[:_NAMED]) + (f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else "")
        yield (
            f"the index of agent {sibling.agent_id!r} still shows {named} as before this purge or an earlier change; "
            f"what clears it: {_command(sibling.agent_id, store)}"
        )


def _command(agent_id: str, store: StoreIdentity) -> str:
    if store.kind == "openclaw":
        return f"openclaw memory index --agent {agent_id} --force"
    return f"sync_index(open_store({store.state_root!r}, {agent_id!r}))"
