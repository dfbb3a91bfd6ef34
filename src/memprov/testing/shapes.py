"""Hostile shapes: texts on which a careless reader of Markdown takes time quadratic in their length (F30).

Each is a function of a length in characters, which the text has about. For whoever measures how a parser grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memprov.core.text import lineage_marker, promotion_marker

__all__ = ["SHAPES"]

_P, _Q = promotion_marker("k1"), promotion_marker("k2")


def _repeated(line: str, above: str = "", below: str = "") -> Callable[[int], str]:
    return lambda size: above + line * max(1, size // len(line)) + below


def _deepening(line: Callable[[int], str], below: str = "") -> Callable[[int], str]:
    """Lines of which each is a little longer than the one before."""

    def text(size: int) -> str:
        lines: list[str] = []
        while size > 0:
            lines.append(line(len(lines)))
            size -= len(lines[-1])
        return "".join(lines) + below

    return text


def _half(above: Callable[[int], str], below: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: above(size // 2) + below(size // 2)


#: The shapes by name.
SHAPES: Mapping[str, Callable[[int], str]] = {
    "list items that open fences, one deeper than the other": _half(
        _deepening(lambda n: f"{' ' * n}- ```\n"), _repeated("\n", below="```\n")
    ),
    "the same below a marker": _half(
        _deepening(lambda n: f"{_P}\n" * (n == 0) + f"{' ' * n}- ```\n"), _repeated("\n", below="```\n")
    ),
    "list items that open fences, side by side": _repeated("- ```\n", below="x\n"),
    "fences one longer than the other": _deepening(lambda n: "`" * (n + 3) + "\n"),
    "fences of both kinds": _repeated("```\n~~~~ x\n````\n~~~\n"),
    "unclosed comments": _repeated("<!-- "),
    "unclosed comments in lines": _repeated("<!-- trigger: a\n"),
    "unclosed markers": _repeated(_P.removesuffix("-->")),
    "comments with long insides": _repeated("<!-- openclaw-memory-promotion:" + " " * 40),
    "backticks": _repeated("`"),
    "backtick runs, each longer": _deepening(lambda n: "`" * (n + 1) + " "),
    "markers between backticks": _repeated(f"`` ` {_P} ` "),
    "quote marks": _repeated(">"),
    "quote marks with blanks": _repeated("> "),
    "quotes one deeper than the other": _deepening(lambda n: f"{'> ' * n}- x {_Q}\n"),
    "quotes with deeper blanks": _deepening(lambda n: f"{'>  ' * n}x {_P}\n"),
    "labels in a line": _repeated("Session ID: s2; "),
    "labels in lines": _repeated("Session ID: s1\n"),
    "label rows of both sessions": _repeated("- Session ID: s1\n  - Session ID: s2\n"),
    "labels without values": _repeated("Session ID:*** "),
    "label rows one deeper than the other": _deepening(lambda n: f"{' ' * n}- Session ID: s1\n"),
    "headings": _repeated("# main:s1\n## a\n###### main:s1\n"),
    "headings above metadata": _repeated("# x\n\n\n- a: b\n- Session ID: s2\n"),
    "headings above blanks": _half(_repeated("###### x\n# Session ID: s1\n"), _repeated("\n")),
    "titles": _repeated("a\n-\nmain:s1\n===\n"),
    "conversations": _repeated("# Session: a\n\n- Session ID: s1\n\nx\n# Session: b\n"),
    "front matter": _repeated("a: b\n- c\n", above="---\n"),
    "a run of markers": _repeated(f"{_P}\n"),
    "a run of many keys": _repeated(f"{_Q}\n{lineage_marker('x')}\n", below=f"{_P}\n- x\n"),
    "a run in a line": _repeated(f"{_Q}{lineage_marker('x')}", below=f"{_P}\n\n"),
    "dangling runs": _repeated(f"{_Q}\n{_P}\n\n"),
    "runs and rows": _repeated(f"{_Q}\n- User: the kiln code is 42 today\n  a\n{_P}\n- b\n"),
    "runs and quoted headings": _repeated(f"{_Q}\n## the kiln code is 42 today\n"),
    "quoted rows and continuations": _repeated(f"- x {_Q}\n- the kiln code is 42 today\n  y\n   z\n"),
    "quoted rows and blanks": _repeated("- the kiln code is 42 today\n\n"),
    "annotations below annotations": _repeated("  <!-- trigger: a -->\n", above=f"- x {_P}\n"),
    "entries one deeper than the other": _deepening(lambda n: f"{' ' * n}- x {_Q}\n"),
    "entries around a block": _half(_deepening(lambda n: f"{' ' * n}- x {_P}\n"), _repeated("\n", below="x\n")),
    "deep indentation": _half(_deepening(lambda n: f"{chr(9) * n}- x {_P}\n"), _repeated("\t" * 40 + "y\n")),
    "a long line": _repeated("words "),
    "a long word": _repeated("w"),
    "blanks": _repeated(" "),
    "blanks and words by turns": _deepening(lambda n: "a" + " " * n),
    "blank lines": _repeated("\n"),
    "brackets": _repeated("["),
    "brackets around references": _repeated("([{main:s2,"),
    "corpus prefixes": _repeated("[main/sessions/main/s2#L"),
    "references": _repeated("xmain:sessions/main/s1x "),
    "tables": _repeated("| a | b |\n|---|---|\n| the kiln code is 42 today |\n---\n"),
    "bars": _repeated("|"),
    "sources": _repeated(f"source=a:1-1 Source: b#L1-L1 {_Q} ", above=f"{_P}\n{_Q}\n- "),
}
