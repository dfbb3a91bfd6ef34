"""Fenced code: which lines are inside a closed block, and so have no structure (D5). An unclosed fence is text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from memprov.core.text.lines import WSP
from memprov.core.text.outline import BULLET, Line, blanks_width

__all__ = ["close_fences"]

_WS = re.escape(WSP.replace("\n", ""))
_FENCE = re.compile(rf"[{_WS}]*((?:{BULLET}[{_WS}]+)*)(`{{3,}}|~{{3,}})(.*)")


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
        indent = blanks_width(text)
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
