"""What each line of a memory text is by itself and by its neighbours: heading, list row, quote, comments (D5).

Markdown is read only as far as deletion needs it. A closed fence makes its lines code, without structure; an unclosed
one is text. A heading is ``#`` signs at column 0 or a title underlined below;
front matter and comments may stand above a saved conversation, which is one all the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import define

from memprov.core.text.lines import WSP, line_spans
from memprov.core.text.markers import Comment, CommentKind, comments, is_managed_fence
from memprov.core.text.references import has_label

__all__ = ["Line", "close_fences", "mark_titles", "metadata_rows", "outline", "snapshot_parts", "titles"]

_WS = re.escape(WSP.replace("\n", ""))
#: How a list row begins, without the blank after it.
_BULLET = r"(?:[-*+]|[0-9]{1,9}[.)])"
_HEADING = re.compile(rf"(#{{1,6}})(?:[{_WS}]|$)")
_QUOTES = re.compile(rf"(?:[{_WS}]*>)+")
_ROW = re.compile(rf"{_BULLET}(?:[{_WS}]|$)")
_KEY_VALUE = re.compile(rf"{_BULLET}[{_WS}].+?:[*_`]*(?:[{_WS}]|$)")
#: What stands below a title, at most three columns to the right; and a break between paragraphs, or a line of a table.
_UNDERLINE = re.compile(rf" {{0,3}}(?:(=+)|-+)[{_WS}]*")
_NO_TITLE = re.compile(rf"\||<!--|`{{3}}|~{{3}}|([-*_])(?:[{_WS}]*\1){{2,}}$|=+$")
_DELIMITER_ROW = re.compile(rf"[{_WS}]*+\|?[{_WS}]*+:?-+:?[{_WS}]*+(?:\|[{_WS}]*+:?-+:?[{_WS}]*+)*\|?[{_WS}]*")
_FENCE = re.compile(rf"[{_WS}]*((?:{_BULLET}[{_WS}]+)*)(`{{3,}}|~{{3,}})(.*)")
_SNAPSHOT = re.compile(rf"#[{_WS}]+Session:")
#: Front matter: a key with what follows it, and any line that can stand below one.
_FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}
_KEY = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s:#"'\[\]{}-][^:=]*+)(?::(?:\s|$)|=)""")
_ABOVE_KEY = re.compile(r"\s|#|\[|$")
_BELOW_KEY = re.compile(r"\s|#|-(?:\s|$)|[\[\]{}]|$")


@define
class Line:
    """One line. ``start`` and ``end`` are character offsets, the terminator included; ``text`` has none.

    ``indents`` has the width of the blanks before and after each quote mark; ``level`` is a heading's or 0.
    ``underlined`` says that the next line is the heading's underline.
    """

    start: int
    end: int
    text: str
    indents: tuple[int, ...]
    content: str
    level: int
    row: bool
    managed_fence: bool
    comments: tuple[Comment, ...]
    in_code: bool = False
    underlined: bool = False

    @property
    def depth(self) -> int:
        """How many quote marks the line begins with."""
        return len(self.indents) - 1

    @property
    def indent(self) -> int:
        """The width of the blanks before the content, after all quote marks."""
        return self.indents[-1]

    @property
    def blank(self) -> bool:
        """Whether there is nothing but blanks and quote marks."""
        return not self.content

    @property
    def only_comments(self) -> bool:
        """Whether the line holds markers and annotations and nothing else."""
        if not self.comments:
            return False
        position, rest = 0, []
        for comment in self.comments:
            rest.append(self.text[position : comment.start])
            position = comment.end
        return not ("".join(rest) + self.text[position:]).strip(WSP)

    @property
    def annotates(self) -> bool:
        """Whether the comments of the line are annotations and no markers."""
        return all(comment.annotates for comment in self.comments)

    @property
    def keys(self) -> tuple[str, ...]:
        """The entry keys that the line's promotion markers name."""
        return tuple(c.value for c in self.comments if c.kind is CommentKind.PROMOTION)

    def is_within(self, head: Line) -> bool:
        """Whether the line is indented deeper than this one; in a quote, after its marks."""
        return self.indents[: len(head.indents)] > head.indents

    def become_code(self) -> None:
        """Lose all structure: the line is inside a closed fenced block."""
        self.in_code, self.level, self.row, self.managed_fence, self.comments = True, 0, False, False, ()
        self.underlined = False


def outline(text: str) -> list[Line]:
    """The lines of a text, each read by itself."""
    return [_line(text, start, end) for start, end in line_spans(text)]


def _line(text: str, start: int, end: int) -> Line:
    body = text[start:end].removesuffix("\n").removesuffix("\r") if text[end - 1] == "\n" else text[start:end]
    quotes = _QUOTES.match(body)
    rest = body[quotes.end() :] if quotes else body
    content = rest.strip(WSP)
    heading = _HEADING.match(body)
    return Line(
        start=start,
        end=end,
        text=body,
        indents=tuple(map(_blanks_width, (*(quotes[0].split(">")[:-1] if quotes else ()), rest))),
        content=content,
        level=len(heading[1]) if heading else 0,
        row=bool(_ROW.match(content)),
        managed_fence=is_managed_fence(body),
        comments=tuple(comments(body)),
    )


def _blanks_width(text: str) -> int:
    """The width of the blanks that a text begins with; a tab goes to the next multiple of four."""
    blanks = text[: len(text) - len(text.lstrip(WSP))]
    return len(blanks.expandtabs(4)) if blanks else 0


# --- headings ---------------------------------------------------------------------------------------------------------


def titles(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """The titles that are underlined with ``=`` (level 1) or ``-`` (level 2) and not marked as such, with their levels.

    A title is a line of a paragraph, no deeper than three columns and in no list, quote, table or front matter: where
    ``#`` signs would make a heading too.
    """
    in_item = in_table = False
    for number in range(_front_matter_end(lines, 0), len(lines)):
        line = lines[number]
        if line.blank:
            in_table = False
        elif line.row:
            in_item = True
        elif not line.indent:
            in_item = False
        if "|" in line.text and _DELIMITER_ROW.fullmatch(line.text):
            in_table = True
        if not (in_table or (in_item and line.indent)) and (level := _underlined_level(lines, number)):
            yield number, level


def mark_titles(lines: Sequence[Line]) -> None:
    """Make headings of the titles."""
    for number, level in titles(lines):
        lines[number].level, lines[number].underlined = level, True
        lines[number + 1].row = False


def _underlined_level(lines: Sequence[Line], number: int) -> int:
    """The level of the title that this line is if it is underlined, else 0."""
    if number + 1 >= len(lines) or lines[number + 1].in_code:
        return 0
    underline = _UNDERLINE.fullmatch(lines[number + 1].text)
    line = lines[number]
    if underline is None or line.blank or line.depth or line.indent > 3 or line.level or line.row or line.in_code:
        return 0
    if line.managed_fence or line.only_comments or _NO_TITLE.match(line.content):
        return 0
    return 1 if underline[1] else 2


def metadata_rows(lines: Sequence[Line], heading: int) -> range:
    """The lines of the metadata block below a heading (D5), empty when there is none.

    It is the list right below the heading, its top-level rows all ``key: value``, at least one a session label.
    """
    first = heading + 1 + lines[heading].underlined
    while first < len(lines) and lines[first].blank:
        first += 1
    last = first
    while last < len(lines) and not lines[last].blank:
        line = lines[last]
        if line.depth or (last == first or line.indent <= lines[first].indent):
            if line.depth or not _ROW.match(line.content):
                break
            if not (_KEY_VALUE.match(line.content) or has_label(line.text)):
                return range(0)
        last += 1
    rows = range(first, last)
    return rows if any(has_label(lines[number].text) for number in rows) else range(0)


# --- saved conversations ----------------------------------------------------------------------------------------------


def snapshot_parts(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """The conversations of a snapshot file, each with its heading (D5); none of any other file."""
    # Fences are not looked at: a conversation may hold half of one, and the next conversation is not its prisoner.
    first = _content_begin(lines)
    if first >= len(lines) or not _begins_snapshot(lines[first]):
        return []
    heads = [n for n in range(first, len(lines)) if _begins_snapshot(lines[n]) and metadata_rows(lines, n)]
    if not heads or heads[0] != first:
        return []
    return list(zip(heads, [*heads[1:], len(lines)], strict=True))


def _begins_snapshot(line: Line) -> bool:
    return bool(_SNAPSHOT.match(line.text)) or (
        line.underlined and line.level == 1 and line.content.startswith("Session:")
    )


def _content_begin(lines: Sequence[Line]) -> int:
    """The first line that says something: no blank, no comment, no front matter."""
    number, front_matter = 0, False
    while number < len(lines):
        line = lines[number]
        if line.blank and not line.depth:
            number += 1
        elif line.content.startswith("<!--") and not (line.depth or line.managed_fence):
            if (end := _comment_end(lines, number)) is None:
                break
            number = end
        elif not front_matter and (below := _front_matter_end(lines, number)) > number:
            number, front_matter = below, True
        else:
            break
    return number


def _comment_end(lines: Sequence[Line], number: int) -> int | None:
    """The line after the comments that this line begins with; ``None`` where one is not closed or text follows."""
    rest = lines[number].content
    while rest.startswith("<!--"):
        rest = rest[4:]
        while (close := rest.find("-->")) < 0:
            number += 1
            if number >= len(lines):
                return None
            rest = lines[number].content
        rest = rest[close + 3 :].strip(WSP)
    return None if rest else number + 1


def _front_matter_end(lines: Sequence[Line], number: int) -> int:
    """The line after the closed front matter that begins here; this line where none does.

    It holds keys with values, or nothing at all, and is told by that from text between two breaks.
    """
    closers = _FRONT_MATTER.get(lines[number].text.rstrip(WSP), ()) if number < len(lines) else ()
    if not closers:
        return number
    keys, empty = False, True
    for last in range(number + 1, len(lines)):
        text = lines[last].text
        if text.rstrip(WSP) in closers:
            return last + 1 if keys or empty else number
        empty = empty and lines[last].blank
        if _KEY.match(text):
            keys = True
        elif _SNAPSHOT.match(text) or not (_BELOW_KEY if keys else _ABOVE_KEY).match(text):
            return number
    return number


# --- fenced code ------------------------------------------------------------------------------------------------------


def close_fences(lines: Sequence[Line], first: int, last: int) -> list[tuple[int, int]]:
    """The closed blocks among these lines, first and exclusive last, whose lines lose their structure."""
    closing = _closing_lines(lines, first, last)
    blocks: list[tuple[int, int]] = []
    number = first
    while number < last:
        close = closing.get(number)
        if close is None:
            number += 1
            continue
        for line in lines[number : close + 1]:
            line.become_code()
        blocks.append((number, close + 1))
        number = close + 1
    return blocks


def _closing_lines(lines: Sequence[Line], first: int, last: int) -> dict[int, int]:
    """For each line that could open a fence, the line that would close it: the next one at least as long.

    One walk upwards. A fence that a list item opens must close before the item ends, at the next line that is indented
    no deeper than the item.
    """
    closing: dict[int, int] = {}
    # Per fence character the closers below, nearest last; a shorter one behind a longer one can never be used.
    below: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    # The lines below that end items, nearest last: each is indented less than the ones nearer than it.
    ends: list[tuple[int, int]] = []
    for number in range(last - 1, first - 1, -1):
        text = lines[number].text
        if not text.strip(WSP):
            continue
        indent = _blanks_width(text)
        while ends and ends[-1][0] > indent:
            ends.pop()
        fence = _FENCE.fullmatch(text)
        if fence is not None:
            character, length = fence[2][0], len(fence[2])
            stack = below[character]
            if character == "~" or "`" not in fence[3]:
                index = bisect_right(stack, -length, key=lambda closer: -closer[0]) - 1
                if index >= 0 and (not fence[1] or not ends or stack[index][1] < ends[-1][1]):
                    closing[number] = stack[index][1]
            if not fence[1] and not fence[3].strip(WSP):
                while stack and stack[-1][0] <= length:
                    stack.pop()
                stack.append((length, number))
        ends.append((indent, number))
    return closing
