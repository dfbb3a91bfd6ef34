"""What a query looks for in the full text: words, and pieces of words where a script writes none apart.

A tokeniser that cuts at blanks finds a word of English and no word of Chinese: there a whole clause is one token, a
Latin name inside it too, and a Korean noun carries its particle. So chunks in such scripts are indexed by three
characters as well, and a query is cut into pieces that can be looked up there: two characters of Han, Kana and Hangul,
which is what a word of these has; four of the alphabets that only leave out the blanks; a Latin word as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

from attrs import frozen

__all__ = ["MAX_TERMS", "QueryTerms", "query_terms"]

#: How many words, and how many pieces, of a query are looked for.
MAX_TERMS = 64

_SYLLABIC = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f"
    "\U00020000-\U0003347f]"
)
_ALPHABETIC = re.compile("[\u0e01-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9fe\uaa60-\uaa7f]")
_PIECES = {"syllabic": 2, "alphabetic": 4}


@frozen
class QueryTerms:
    """``words`` are tokens as a tokeniser by blanks has them, ``pieces`` are in small letters, found anywhere."""

    words: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()


def query_terms(query: str) -> QueryTerms:
    """The terms of a query, in its order, each once. Nothing in it is syntax.

    >>> query_terms("spare key")
    QueryTerms(words=('spare', 'key'), pieces=('spare', 'key'))
    >>> query_terms("iPhone钥匙在哪").pieces
    ('iphone', '钥匙', '匙在', '在哪')
    """
    words = tuple(dict.fromkeys(_words(query)))[:MAX_TERMS]
    pieces = dict.fromkeys(piece for word in words for piece in _pieces(word.lower()))
    return QueryTerms(words, tuple(pieces)[:MAX_TERMS])


def _words(text: str) -> Iterator[str]:
    """Maximal runs of letters, marks and numbers; a mark alone is no word."""
    for inside, run in groupby(unicodedata.normalize("NFC", text), _in_word):
        word = "".join(run)
        if inside and any(unicodedata.category(c)[0] != "M" for c in word):
            yield word


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LNM"


def _pieces(word: str) -> Iterator[str]:
    for script, run in groupby(word, _script):
        piece = "".join(run)
        length = _PIECES.get(script, len(piece))
        yield from (piece[start : start + length] for start in range(max(len(piece) - length, 0) + 1))


def _script(character: str) -> str:
    if _SYLLABIC.match(character):
        return "syllabic"
    return "alphabetic" if _ALPHABETIC.match(character) else "spaced"
