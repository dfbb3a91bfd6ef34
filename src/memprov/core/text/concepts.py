"""Concept tags: the few words of a text by which a reader, or a trigger, would look for it (docs: Recall rows).

A heuristic, and deliberately a small one: words of a text in order, without those that say nothing. Compound names
(``v2.1-beta``, ``foo/bar``) come first because they are the most particular. Text without blanks between words is cut
at the particles that occur in every sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["MAX_TAGS", "concept_tags"]

MAX_TAGS = 8
_LONGEST = 32
_SHORTEST = 3

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_COMPOUND = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)+")
_WORD = re.compile(r"\w+(?:['\u2019][^\W\d_]+)*")
_NUMBER = re.compile(r"[\d./-]+|\d{4}-\d{2}-\d{2}\.\w+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
#: Han, Hiragana, Katakana: written without blanks between words.
_UNSPACED = re.compile("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f]+")
_PARTICLES = re.compile(
    "[\u306e\u306f\u304c\u306b\u3068\u3067\u3082\u3078\u3092\u3084\u7684\u4e86\u662f\u5728\u548c\u4e0e\u628a\u88ab\u5f88\u4e5f]+"
)

#: Words that say nothing of what a text is about, in the languages that chats are most often in, and the words that
#: stand in almost every memory.
_SILENT = frozenset(
    re.findall(
        r"\S+",
        """
        about after again also and any are because been before being between both but can could did does during each
        every for from had have her him his how into its just let long more most much nor off only other our out over
        per same she should since some such than that the their them then there these they this those through too under
        until upon very was were what when where which while who whom whose why with would you your
        aux avec como con dans das dem den der des die ein eine einem einen einer est par para por pour que qui sans
        sein ses sich sin sind sont sur sus una und une uno von war zum zur
        agent assistant file files main memory note notes session sessions user workspace today month year
        """,
    )
)


def concept_tags(snippet: str, limit: int = MAX_TAGS) -> tuple[str, ...]:
    """The tags of a text, at most ``limit``, the most particular first."""
    text = _COMMENT.sub(" ", snippet)
    tags: dict[str, None] = {}
    for token in _tokens(text):
        if len(tags) >= limit:
            break
        if (tag := _tag(token)) is not None:
            tags[tag] = None
    return tuple(tags)


def _tokens(text: str) -> Iterator[str]:
    yield from _COMPOUND.findall(text)
    for word in _WORD.findall(text):
        if _UNSPACED.search(word):
            yield from (piece for run in _UNSPACED.findall(word) for piece in _PARTICLES.split(run) if len(piece) <= 8)
            word = _UNSPACED.sub(" ", word)  # noqa: PLW2901  # what stands between such runs are words again
        yield from word.split()


def _tag(token: str) -> str | None:
    tag = _EDGES.sub("", unicodedata.normalize("NFKC", token)).replace("_", "-").lower()
    shortest = 2 if _UNSPACED.search(tag) else _SHORTEST
    if not shortest <= len(tag) <= _LONGEST or _NUMBER.fullmatch(tag) or tag in _SILENT:
        return None
    return tag
