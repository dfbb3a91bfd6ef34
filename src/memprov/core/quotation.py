"""Which lines quote which corpus snippets (D2).

A snippet is what ingestion copied of one message. A line quotes it when it contains it, after both were normalised the
same way: NFC, runs of blanks as one space, speaker labels and list or quote prefixes taken off. All snippets are
searched in one pass over the text (Aho-Corasick), so that the cost is text plus snippets and never their product.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cached_property

from ahocorasick_rs import AhoCorasick
from attrs import frozen

from memprov.core.text import WSP, u16_length

__all__ = ["MIN_SNIPPET_UNITS", "QuotationMatcher", "Snippet", "normalise"]

#: The shortest text, in UTF-16 units, that is looked for (FACTS 2.6), measured without label and prefixes (D2).
MIN_SNIPPET_UNITS = 12

_BLANKS = re.compile("[" + re.escape(WSP.replace("\n", "")) + "]+")
_PREFIXES = re.compile(r"^ ?(?:(?:user|assistant): ?|[-*+>] |[0-9]{1,9}\. )*", re.IGNORECASE | re.MULTILINE)
_SURROGATES = re.compile("[\ud800-\udfff]")
#: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar: written without blanks between words (D2).
_UNSPACED = re.compile(
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff\u32d0-\u32fe\u3300-\u3357"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff65-\uff9f"
    "\u0e01-\u0e5b\u0e80-\u0eff\u1780-\u17ff\u19e0-\u19ff\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"
    "\U00016ff0-\U00016fff\U0001aff0-\U0001b16f\U0001f200\U00020000-\U0003347f]"
)


@frozen
class Snippet:
    """A corpus snippet. ``cut`` says that ingestion shortened it, so that its end may fall inside a word (D2)."""

    text: str
    cut: bool = False


def normalise(text: str) -> str:
    """The form in which lines and snippets are compared (D2). Line feeds stay; nothing is written back."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return _PREFIXES.sub("", _BLANKS.sub(" ", text))


@frozen
class QuotationMatcher:
    """Finds the lines that quote any of the snippets. Snippets that are too short are dropped here."""

    snippets: tuple[Snippet, ...]

    @cached_property
    def _patterns(self) -> dict[str, bool]:
        patterns: dict[str, bool] = {}
        for snippet in self.snippets:
            text = normalise(snippet.text.replace("\n", " ")).strip(" ")
            if u16_length(text) >= MIN_SNIPPET_UNITS:
                patterns[text] = patterns.get(text, False) or snippet.cut
        return patterns

    @cached_property
    def _automaton(self) -> AhoCorasick:
        return AhoCorasick([_SURROGATES.sub("\ufffd", pattern) for pattern in self._patterns])

    @cached_property
    def _ordered(self) -> tuple[tuple[str, bool], ...]:
        return tuple(self._patterns.items())

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def quoted_lines(self, text: str) -> frozenset[int]:
        """The numbers, from 0, of the lines of ``text`` that quote a snippet."""
        if not self._patterns:
            return frozenset()
        haystack = normalise(text)
        found: set[int] = set()
        ends: list[int] | None = None
        searched = haystack if haystack.isascii() else _SURROGATES.sub("\ufffd", haystack)
        for index, start, end in self._automaton.find_matches_as_indexes(searched, overlapping=True):
            pattern, was_cut = self._ordered[index]
            if haystack[start:end] != pattern:
                continue  # two undecodable bytes that only look alike to the automaton
            if _inside_word(haystack, start) or (not was_cut and _inside_word(haystack, end)):
                continue
            if ends is None:
                ends = [match.start() for match in re.finditer("\n", haystack)]
            found.add(bisect_right(ends, start))
        return frozenset(found)


def _inside_word(text: str, edge: int) -> bool:
    """Whether this edge falls between two characters of one word (D2)."""
    if edge <= 0 or edge >= len(text):
        return False
    return _is_word(text[edge - 1]) and _is_word(text[edge])


def _is_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    return unicodedata.category(character)[0] in "LNM" and not _UNSPACED.match(character)
