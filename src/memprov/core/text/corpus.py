"""Session-corpus lines: whose they are, and what they copied.

Ownership is the bracket prefix alone (D1). A corpus file is scanned as one text with offsets; ten million lines make no
objects but for those that go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from memprov.core.records import MemoryFile
from memprov.core.text.gate import Gate
from memprov.core.text.lines import WSP, byte_spans, cut, digest, u16_length
from memprov.core.text.quotation import Snippet
from memprov.core.text.references import SessionMatcher, session_id_from_file_name

__all__ = ["CorpusScan", "corpus_gate", "corpus_owner", "corpus_said", "corpus_snippet", "scan_corpus", "strip_prefix"]

#: Rendered lengths, in UTF-16 units, from which a text may have been cut (D2; the limits are 280 and 344).
_CUT_SNIPPET = 279
_CUT_LINE = 343


@frozen
class CorpusScan:
    """What forgetting does to one corpus file: which lines go, which snippets they held, what is left.

    ``spans`` are UTF-8 byte ranges, ``lines`` the numbers from 1 of the lines that go, ``session_ids`` whose they are.
    ``emptied`` says that only
    blanks would be left, so that the file goes (D6).
    """

    path: str
    spans: tuple[tuple[int, int], ...]
    lines: tuple[int, ...]
    session_ids: frozenset[str]
    snippets: tuple[Snippet, ...]
    emptied: bool
    before: str
    after: str


@lru_cache(maxsize=64)
def _prefix(agent_id: str) -> re.Pattern[str]:
    agent = re.escape(agent_id)
    # A byte order mark may stand before the first line; it is no part of it.
    return re.compile(rf"^\ufeff?(?P<line>\[{agent}/sessions/{agent}/(?P<name>.+?)#L[0-9]+\] )", re.MULTILINE)


def corpus_owner(line: str, agent_id: str) -> str | None:
    """The session id that owns a corpus line or recall snippet, or ``None`` when it is nobody's (D1)."""
    match = _prefix(agent_id).match(line)
    return None if match is None else _decode(match["name"])


def corpus_gate(matcher: SessionMatcher) -> Gate:
    """What lets every corpus file through, as bytes, that holds a line of these sessions: their names stand in it."""
    agent = matcher.agent_id
    return Gate(f"[{agent}/sessions/{agent}/{session_id}" for session_id in matcher.session_ids)


def strip_prefix(line: str, agent_id: str) -> str:
    """The line without its bracket prefix, if it has one."""
    return line[match.end() :] if (match := _prefix(agent_id).match(line)) else line


def corpus_snippet(prefix: str, body: str) -> Snippet:
    """What a corpus line says after its prefix, and whether it was long enough to have been cut (D2)."""
    length = u16_length(body)
    return Snippet(body, length >= _CUT_SNIPPET or u16_length(prefix) + length >= _CUT_LINE)


def corpus_said(file: MemoryFile, agent_id: str) -> Iterator[tuple[str, Snippet]]:
    """The lines of a corpus file that are anybody's: whose (D1), and what they copied."""
    text = file.text
    for match in _prefix(agent_id).finditer(text):
        end = text.find("\n", match.end())
        body = text[match.end() : end if end >= 0 else len(text)].removesuffix("\r")
        yield _decode(match["name"]), corpus_snippet(text[match.start("line") : match.end()], body)


def _decode(name: str) -> str:
    decoded = session_id_from_file_name(name)
    return name if decoded is None else decoded


def scan_corpus(file: MemoryFile, matcher: SessionMatcher) -> CorpusScan | None:
    """What forgetting the matcher's sessions does to this corpus file, or ``None`` when nothing.

    A map over files: scans of different files are independent and their snippets add up.
    """
    text = file.text
    spans: list[tuple[int, int]] = []
    lines: list[int] = []
    snippets: dict[str, bool] = {}
    owners: set[str] = set()
    number = position = 0
    name, selected = "", False
    for match in _prefix(matcher.agent_id).finditer(text):
        if match["name"] != name:  # a session's lines mostly stand together
            name = match["name"]
            owner = _decode(name)
            selected = owner in matcher.session_ids
            owners.update([owner] if selected else ())
        if not selected:
            continue
        start = match.start("line")
        end = text.find("\n", start) + 1 or len(text)
        number += text.count("\n", position, start) + 1
        body = text[match.end() : end].removesuffix("\n").removesuffix("\r")
        snippet = corpus_snippet(text[start : match.end()], body)
        snippets[body] = snippet.cut or snippets.get(body, False)  # what may be cut finds all that is whole
        spans.append((start, end))
        lines.append(number)
        position = end
    if not spans:
        return None
    removed = byte_spans(text, spans)
    left = cut(text, removed)
    return CorpusScan(
        path=file.path,
        spans=removed,
        lines=tuple(lines),
        session_ids=frozenset(owners),
        snippets=tuple(Snippet(body, was_cut) for body, was_cut in snippets.items()),
        emptied=not left.strip(WSP),
        before=digest(text),
        after=digest(left),
    )
