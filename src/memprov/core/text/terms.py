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

__all__ = ["MAX_TERMS", "QueryTerms", "query_terms", "stands_alone"]

#: How many words, and how many pieces, of a query are looked for.
MAX_TERMS = 64

_SYLLABIC = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f"
    "\U00020000-\U0003347f]"
)
_ALPHABETIC = re.compile("[\u0e01-\u0fff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9fe\uaa60-\uaa7f]")


@frozen
class QueryTerms:
    """``words`` are tokens as a tokeniser by blanks has them. ``pieces`` of unspaced scripts are found anywhere, and so
    are ``glued`` ones of other scripts, which may be part of such a token or by chance of a longer word. Both are in
    small letters.
    """

    words: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()


def query_terms(query: str) -> QueryTerms:
    """The terms of a query, in its order, each once. Nothing in it is syntax.

    >>> query_terms("spare key")
    QueryTerms(words=('spare', 'key'), pieces=(), glued=('spare', 'key'))
    >>> query_terms("iPhone钥匙在哪")
    QueryTerms(words=('iPhone钥匙在哪',), pieces=('钥匙', '匙在', '在哪'), glued=('iphone',))
    """
    words = tuple(dict.fromkeys(_words(query)))[:MAX_TERMS]
    pieces: dict[str, None] = {}
    glued: dict[str, None] = {}
    for word in words:
        for script, run in groupby(word.lower(), _script):
            piece = "".join(run)
            if script is None:
                glued[piece] = None
            else:
                pieces |= dict.fromkeys(_overlapping(piece, script))
    return QueryTerms(words, tuple(pieces)[:MAX_TERMS], tuple(piece for piece in glued if len(piece) > 1)[:MAX_TERMS])


def stands_alone(piece: str, term: str) -> bool:
    """Whether a term of the index that begins with this glued piece goes on in another script, or not at all."""
    after = term[len(piece) : len(piece) + 1]
    return not after or not _in_word(after) or _script(after) is not None


def _words(text: str) -> Iterator[str]:
    """Maximal runs of letters, marks and numbers; a mark alone is no word."""
    for inside, run in groupby(unicodedata.normalize("NFC", text), _in_word):
        word = "".join(run)
        if inside and any(unicodedata.category(c)[0] != "M" for c in word):
            yield word


def _in_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LNM"


def _overlapping(run: str, length: int) -> Iterator[str]:
    yield from (run[start : start + length] for start in range(max(len(run) - length, 0) + 1))


def _script(character: str) -> int | None:
    """How many characters are looked up at once of this character's script; ``None`` for one with blanks."""
    if _SYLLABIC.match(character):
        return 2
    return 4 if _ALPHABETIC.match(character) else None
