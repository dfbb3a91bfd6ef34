"""Which lines quote which corpus snippets (D2).

A snippet is what ingestion copied of one message. A line quotes it when it contains it, after both were normalised the
same way: NFC, runs of blanks as one space, speaker labels and list or quote prefixes taken off, escapes resolved.

All snippets are searched in one pass over the text (Aho-Corasick). Both sides have the starts and ends of their words
marked for that, so that what is found is never inside a word; hence every match counts, none needs to overlap another,
and the cost is text plus snippets and never their product, whatever they are.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, compress, islice, pairwise

import numpy as np
from ahocorasick_rs import AhoCorasick
from attrs import evolve, frozen
from numpy.typing import NDArray

from memprov.core.text.lines import WSP, u16_length
from memprov.core.text.neutralising import plain
from memprov.core.text.redaction import REDACTED, completed, conceal, is_redacted

__all__ = ["MIN_SNIPPET_UNITS", "LookalikeMatcher", "QuotationMatcher", "Sieve", "Snippet", "normalise"]

#: The shortest text, in UTF-16 units, that is looked for (docs: Corpus lines), measured without label and prefixes
#: (D2).
MIN_SNIPPET_UNITS = 12
_BATCH = 4096
_WINDOW = 16
_TABLE_BITS = 24
_BLOCK = 1 << 20
#: Two odd numbers that spread the halves of a window over the table (splitmix64).
_SPREAD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_FEW = 32

_BLANKS = re.compile("[" + re.escape(WSP.replace("\n", "")) + "]+")
_PREFIXES = re.compile(r"^ ?(?:(?:user|assistant): ?|[-*+>] |[0-9]{1,9}\. )*", re.IGNORECASE | re.ASCII | re.MULTILINE)
_ASCII_WORDS = re.compile("([0-9A-Za-z]+)")
#: Characters that are no marks and are decomposed to marks alone; NFC never composes them.
_HIDDEN_MARKS = re.compile("[\u0344\u0f73\u0f75\u0f81]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNDECODABLE = re.compile("\r(.)", re.DOTALL)
#: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar: written without blanks between words (D2).
_UNSPACED = re.compile(
    "[\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff\u32d0-\u32fe\u3300-\u3357"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff65-\uff9f"
    "\u0e01-\u0e5b\u0e80-\u0eff\u1780-\u17ff\u19e0-\u19ff\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"
    "\U00016ff0-\U00016fff\U0001aff0-\U0001b16f\U0001f200\U00020000-\U0003347f]"
)


#: Characters that a renderer shows nothing for, wherever they stand: Unicode's default ignorables that are assigned.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
)


@frozen
class Snippet:
    """A corpus snippet. ``cut`` says that ingestion shortened it, so that its end may fall inside a word (D2)."""

    text: str
    cut: bool = False


def normalise(text: str) -> str:
    """The form in which lines and snippets are compared (D2). Line feeds stay; nothing is written back."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _order_marks(text))
    return plain(_PREFIXES.sub("", _BLANKS.sub(" ", text)))


def fold(text: str) -> str:
    """The text without invisible characters, compatibility forms as what they stand for (NFKC).

    Line feeds stay, hence lines keep their numbers. A text that folding does not change is returned itself.
    """
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", _order_marks(_INVISIBLE.sub("", text)))
    return text if folded == text else folded


@frozen
class QuotationMatcher:
    """Finds the lines that quote any of the snippets. Snippets that are too short are dropped here."""

    snippets: tuple[Snippet, ...]

    @cached_property
    def _patterns(self) -> dict[str, Snippet]:
        return dict(_patterns_of(self.snippets))

    @cached_property
    def _automaton(self) -> AhoCorasick:
        return AhoCorasick(self._patterns)

    @cached_property
    def _redacted(self) -> dict[str, Snippet]:
        """Of the snippets in which a secret was redacted: what a line that quotes it as it was said is compared with.

        Without the secret there must be enough of them left to know them by.
        """
        redacted = {c: s for s in self.snippets if (c := _concealed(s)) is not None}
        return {pattern: redacted[concealed] for pattern, concealed in _patterns_of(redacted)}

    @cached_property
    def _redacted_automaton(self) -> AhoCorasick:
        return AhoCorasick(self._redacted)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def quoted_lines(self, text: str) -> frozenset[int]:
        """The numbers, from 0, of the lines of ``text`` that quote a snippet."""
        if not self._patterns:
            return frozenset()
        normal = normalise(text)
        found = _lines_with(self._automaton, normal)
        return found | _lines_with(self._redacted_automaton, conceal(normal)) if self._redacted else found

    def patterns(self) -> Iterator[str]:
        """What each snippet that is long enough is in normal form, cut ones as far as a line must hold them.

        One in which a secret was redacted is there twice: as it is, and as it is compared with a line that was not.
        """
        for pattern in chain(self._patterns, self._redacted):
            yield _UNDECODABLE.sub(lambda m: chr(ord(m[1]) + 0x8000), pattern.replace("\t", ""))

    def narrowed(self, texts: Iterable[str]) -> QuotationMatcher:
        """A matcher that finds the same in these texts, without most of the snippets that none of them holds.

        What only looks like a snippet of it is found as before, too.
        """
        sieve = Sieve()
        for text in texts:
            for form in {text, fold(text)}:
                sieve.add(_mark_words(normalise(form)))
        folded = {f: s for s in self._patterns.values() if (f := _folded(s)) != s}
        alike = dict(_patterns_of(folded))
        kept = chain(
            compress(self._patterns.values(), sieve.passes(self._patterns)),
            (folded[snippet] for snippet in compress(alike.values(), sieve.passes(alike))),
            self._redacted.values(),
        )
        return QuotationMatcher(tuple(dict.fromkeys(kept)))

    def quotable(self, text: str) -> frozenset[Snippet]:
        """Every snippet that a line of the text may quote, and few others, each of those that are searched alike."""
        sieve = Sieve()
        sieve.add(_mark_words(normalise(text)))
        found = tuple(_patterns_of(self.snippets))
        passed = sieve.passes(pattern for pattern, _ in found)
        return frozenset(
            chain(
                compress((snippet for _, snippet in found), passed),
                (snippet for snippet in self.snippets if _concealed(snippet) is not None),
            )
        )


@frozen
class LookalikeMatcher:
    """Finds the lines that quote a snippet, or that look as if they did, once both are folded (F09)."""

    snippets: tuple[Snippet, ...]

    @cached_property
    def _all(self) -> QuotationMatcher:
        return QuotationMatcher(tuple(map(_folded, self.snippets)))

    @cached_property
    def changed(self) -> QuotationMatcher:
        """The snippets that folding changes, folded: all that is found where folding changes nothing."""
        return QuotationMatcher(tuple(f for s in self.snippets if (f := _folded(s)) != s))

    def finds_where_folded(self, text: str) -> bool:
        """Whether a line that folding changes quotes a snippet in folded form."""
        folded = fold(text)
        if folded == text:
            return False
        lines = zip(text.split("\n"), folded.split("\n"), strict=True)
        return bool(self._all.quoted_lines("\n".join(after for before, after in lines if after != before)))

    def lines(self, text: str) -> frozenset[int]:
        """The numbers, from 0, of the lines of ``text`` that quote a snippet in folded form only, and maybe others."""
        folded = fold(text)
        return (self.changed if folded == text else self._all).quoted_lines(folded)


def _lines_with(automaton: AhoCorasick, normal: str) -> frozenset[int]:
    """The numbers of the lines of normalised text in which something of the automaton stands."""
    haystack = _mark_words(normal)
    starts = [start for _, start, _ in automaton.find_matches_as_indexes(haystack)]
    if not starts:
        return frozenset()
    ends = [match.start() for match in re.finditer("\n", haystack)]
    return frozenset(bisect_right(ends, start) for start in starts)


def _concealed(snippet: Snippet) -> Snippet | None:
    """The snippet as it is compared with text that was not redacted; ``None`` where too little is left."""
    text = completed(snippet.text) if snippet.cut else snippet.text
    if not is_redacted(text):
        return None
    text = conceal(normalise(text.replace("\n", " ")))
    enough = REDACTED in text and u16_length(text.replace(REDACTED, "").strip(" ")) >= MIN_SNIPPET_UNITS
    return evolve(snippet, text=text) if enough else None


def _folded(snippet: Snippet) -> Snippet:
    return evolve(snippet, text=fold(snippet.text))


def _patterns_of(snippets: Iterable[Snippet]) -> Iterator[tuple[str, Snippet]]:
    """What is searched for each snippet that is long enough. Lines do not affect each other, so many go at once."""
    snippets = iter(snippets)
    while batch := list(islice(snippets, _BATCH)):
        whole = [snippet for snippet in batch if not snippet.cut]
        lines = normalise("\n".join(snippet.text.replace("\n", " ") for snippet in whole)).split("\n")
        texts = [line.strip(" ") for line in lines]
        long = [u16_length(text) >= MIN_SNIPPET_UNITS for text in texts]
        yield from zip(_mark_words("\n".join(compress(texts, long))).split("\n"), compress(whole, long), strict=False)
        yield from ((pattern, snippet) for snippet in batch if snippet.cut and (pattern := _cut_pattern(snippet)))


def _cut_pattern(snippet: Snippet) -> str | None:
    """What is searched for a snippet that was cut, or ``None`` when it is too short."""
    text = normalise(snippet.text.replace("\n", " ")).strip(" ")
    if u16_length(text) < MIN_SNIPPET_UNITS:
        return None
    if not unicodedata.is_normalized("NFC", _order_marks(snippet.text)):
        # The cut may have parted a letter from marks that a line composes it with.
        end = len(text) - 1
        while end and unicodedata.combining(text[end]):
            end -= 1
        text = text[:end]
    return _mark_words(text).removesuffix("\t")


def _mark_words(text: str) -> str:
    """Normalised text with a tab at each edge of a word, and each undecodable byte as two characters for the search.

    No normalised text holds a tab or a carriage return.
    """
    if text.isascii():
        return "\t".join(_ASCII_WORDS.split(text))
    shape, letter = _shape(text, {c for c in set(text) if _is_word(c)})
    if shape is text:
        marked = "\t".join(re.split(f"({letter}+)", text))
    else:
        edges = (edge for match in re.finditer(f"{letter}+", shape) for edge in match.span())
        marked = "\t".join(text[start:end] for start, end in pairwise((0, *edges, len(text))))
    return _SURROGATES.sub(lambda m: "\r" + chr(ord(m[0]) - 0x8000), marked)


def _order_marks(text: str) -> str:
    """The same text to Unicode, long sequences of combining marks in order: ``normalize`` sorts them by insertion."""
    text = _HIDDEN_MARKS.sub(lambda match: unicodedata.normalize("NFD", match[0]), text)
    shape, mark = _shape(text, {c for c in set(text) if unicodedata.combining(c)})
    ordered: list[str] = []
    position = 0
    for match in re.finditer(f"{mark}{{20,}}", shape):
        start, end = match.span()
        ordered += text[position:start], *sorted(text[start:end], key=unicodedata.combining)
        position = end
    return "".join((*ordered, text[position:])) if ordered else text


def _shape(text: str, members: set[str]) -> tuple[str, str]:
    """A text of the same length, mostly the very text, and a pattern for one of these characters in it.

    A class of many characters beyond U+FFFF is slow to match; then the text is rewritten with two letters.
    """
    if sum(c > "\uffff" for c in members) < _FEW:
        return text, f"[{''.join(members)}]" if members else "(?!)"
    return text.translate({ord(c): "w" if c in members else "-" for c in set(text)}), "w"


def _is_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    return unicodedata.category(character)[0] in "LNM" and not _UNSPACED.match(character)


# --- what can occur at all --------------------------------------------------------------------------------------------


class Sieve:
    """Which of many patterns can occur in some texts at all: a cheap test that is never wrong when it says no.

    Half of a large store's sessions hold far more text than the memory files that may quote them, and an automaton over
    all of it costs most of a purge. A pattern that occurs has every one of its windows of sixteen bytes in the texts;
    the windows of the texts are remembered as bits in a table, so that a pattern is let through wrongly at worst, which
    costs time and changes nothing. Give it the texts with ``add``; then ask it about patterns.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)

    def add(self, text: str) -> None:
        """Remember a text."""
        data = _encoded(text)
        for start in range(0, len(data), _BLOCK):
            self._seen[_windows(data[start : start + _BLOCK + _WINDOW - 1])] = True

    def passes(self, patterns: Iterable[str]) -> Iterator[bool]:
        """For each pattern, whether one of the texts may contain it. One shorter than a window always passes."""
        parts = map(_encoded, patterns)
        while batch := list(islice(parts, _BATCH)):
            yield from self._pass(batch)

    def _pass(self, parts: list[bytes]) -> list[bool]:
        missing = ~self._seen[_windows(b"".join(parts))]
        before = np.concatenate(([0], np.cumsum(missing)))  # how many windows are missing before each place
        lengths = np.array([len(part) for part in parts], dtype=np.int64)
        ends = np.cumsum(lengths)
        first, last = ends - lengths, ends - _WINDOW + 1
        found: list[bool] = (before[np.minimum(first, len(missing))] == before[np.clip(last, 0, len(missing))]).tolist()
        return [length < _WINDOW or passed for length, passed in zip(lengths.tolist(), found, strict=True)]


def _encoded(text: str) -> bytes:
    """The text as bytes, whatever it is, such that a part of it is a part of them."""
    return text.encode("utf-8", "surrogatepass")


def _windows(data: bytes) -> NDArray[np.int64]:
    """The place in the table of the window at each offset."""
    half = _WINDOW // 2
    if len(data) < _WINDOW:
        return np.zeros(0, dtype=np.int64)
    words = np.ndarray(shape=(len(data) - half + 1,), dtype="<u8", buffer=data, strides=(1,))
    mixed = words[:-half] * _SPREAD[0] ^ words[half:] * _SPREAD[1]
    return (mixed >> np.uint64(64 - _TABLE_BITS)).astype(np.int64)
