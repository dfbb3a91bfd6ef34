"""Making foreign text harmless: what our own parsers would read as structure is written so that they do not (J11, B77).

A message may hold the bytes of somebody else's marker, half a comment, a diary fence, a ``Session ID:`` label, a corpus
prefix. Unchanged in a memory file these would delete or shield lines that are not the message's. So before text is
written it is escaped, with the backslash that Markdown itself has for this purpose: people read what was said, a
renderer shows it unchanged, and ``plain`` gives it back, which is how quotations are compared. Ordinary text is left
alone, and so is text that was escaped before.

``neutralise`` is for text that may stand anywhere, also at the start of a line; ``neutralise_inline`` for text that
always follows something on its line, as a corpus line follows its prefix and a speaker's label. The latter need not
touch headings and code, with which many an honest message begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from memprov.core.text.lines import WSP

__all__ = ["html_table", "neutralise", "neutralise_inline", "one_line", "plain"]

_WS = re.escape(WSP.replace("\n", ""))
#: Everything that some reader takes for the end of a line; for ours only LF is one (D6).
_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
#: No file can hold these: undecodable bytes, halves of characters, and the end of a C string.
_NO_TEXT = "\ud800-\udfff\0"
_LINE_ENDS = re.compile(f"[{_ENDS}]+")
_UNWRITABLE = re.compile(f"[{_NO_TEXT}]")
_BLANKS = re.compile("[" + re.escape(WSP) + "]+")

#: A cheap test that is never wrong when it says no.
_SUSPECT = re.compile(f"[{_ENDS}{_NO_TEXT}]|<!--|--!?>|Session ID|/sessions/", re.IGNORECASE | re.ASCII)
_OPENER = re.compile("<!--")
_CLOSER = re.compile("--(!?)>")
#: As ``references`` reads a label, up to the colon.
_LABEL = re.compile(r"(?<![0-9A-Za-z_])(_{0,3}Session ID[*_`]{0,4}):", re.IGNORECASE | re.ASCII)
#: The prefix of a corpus line, of whichever agent (D1).
_PREFIX = re.compile(rf"(?<!\\)\[(?=([^\[\]/\n{_WS}]+)/sessions/\1/)")
#: At the start of a line: a heading, what underlines one or parts diary blocks, a quote of nothing.
_STARTS = rf"#{{1,6}}(?:[{_WS}]|$)|(?:=+|-+)[{_WS}]*$|(?:>[{_WS}]*)+$"
#: At the start of a line, or of an item in lists of lists: a code fence.
_ITEMS, _CODE = rf"(?:(?:[-*+]|[0-9]{{1,9}}[.)])[{_WS}]+)*", "`{3}|~{3}"
_LINE_START = re.compile(rf"(?={_STARTS})|{_ITEMS}(?={_CODE})")

_ESCAPED = re.compile(
    r"<(\\)(?=!--)|--!?(\\)>|(?<![0-9A-Za-z_])_{0,3}Session ID[*_`]{0,4}(\\):"
    rf"|(\\)\[[^\[\]/\n{_WS}]+/sessions/|^[{_WS}]*(?:(\\)(?={_STARTS})|{_ITEMS}(\\)(?={_CODE}))",
    re.IGNORECASE | re.ASCII | re.MULTILINE,
)


def one_line(text: str) -> str:
    """The text on one line, runs of blanks as one space, without what no file can hold."""
    return _BLANKS.sub(" ", _LINE_ENDS.sub(" ", _UNWRITABLE.sub("\ufffd", text))).strip(" ")


def neutralise_inline(text: str) -> str:
    """``text`` for a place within a line. The result holds no line end; blanks stay as they are. Idempotent."""
    if not _SUSPECT.search(text):
        return text
    text = _LINE_ENDS.sub(" ", _UNWRITABLE.sub("\ufffd", text))
    text = _CLOSER.sub(r"--\1\\>", _OPENER.sub(r"<\\!--", text))
    return _PREFIX.sub(r"\\[", _LABEL.sub(r"\1\\:", text))


def neutralise(text: str) -> str:
    """``text`` for any place, as the start of a line or within one. Blanks before it go. Idempotent."""
    text = neutralise_inline(text).lstrip(WSP)
    start = _LINE_START.match(text)
    return text if start is None else f"{start[0]}\\{text[start.end() :]}"


def plain(text: str) -> str:
    """What people read: the text without the escapes of this module."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda m: m[0].replace("\\", "", 1), text)


def html_table(caption: str, rows: Iterable[tuple[object, ...]]) -> str:
    """For a notebook: a table with a ``td`` for each value of each row, as ``str`` gives it, escaped."""
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(value))}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
