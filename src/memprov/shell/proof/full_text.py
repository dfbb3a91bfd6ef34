"""Words that a full text still stores and no longer finds: what a deletion leaves in the segments of FTS5.

A full text stores words apart from each other and each one less what it shares with the word before it, so that no text
and hardly a word is found in its bytes. So its segments are taken apart here (the format is SQLite's, documented in
``fts5_index.c``), and their words are compared with those that the full text itself still knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

import apsw

from memprov.core.proof import Needle, NeedleKind

__all__ = ["dead_words", "full_texts", "words_of"]

_WORD = re.compile(r"[^\W_]{6,}")
#: Row ids of segment pages have the segment's number above these bits, and below them what tells leaves apart.
_SEGMENT_BITS = 37
_DOCLIST_INDEX = 1 << 36


def full_texts(connection: apsw.Connection) -> list[str]:
    """The FTS5 tables of a database."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%' ORDER BY 1"
    )
    return [str(row[0]) for row in rows]


def words_of(needles: Iterable[Needle]) -> dict[str, str]:
    """The distinct words of what was said, as a full text folds them, with the needle that each is of."""
    found: dict[str, str] = {}
    for needle in needles:
        if needle.kind is NeedleKind.TEXT:
            for word in _WORD.findall(needle.text.lower()):
                found.setdefault(word, needle.name)
    return found


def dead_words(connection: apsw.Connection, table: str) -> frozenset[str]:
    """The words in the segments of a full text that none of its rows has. Raises ``apsw.Error``."""
    quoted = table.replace("'", "''")
    connection.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, '{quoted}', 'row')")
    try:
        alive = {str(row[0]) for row in connection.execute("SELECT term FROM temp.vocabulary")}
    finally:
        connection.execute("DROP TABLE temp.vocabulary")
    name = '"' + f"{table}_data".replace('"', '""') + '"'
    pages = connection.execute(f"SELECT id, block FROM {name} WHERE id >= ?", (1 << _SEGMENT_BITS,))
    stored = {
        word
        for page, block in pages
        if isinstance(page, int) and isinstance(block, bytes) and not page & _DOCLIST_INDEX
        for word in _terms(block)
    }
    return frozenset(stored - alive)


def _terms(page: bytes) -> Iterator[str]:
    """The words on a leaf: a header of two offsets, the words with what shares them, and where each word begins."""
    footer = int.from_bytes(page[2:4], "big")
    place, at, term = footer, 0, b""
    with suppress(IndexError):  # a page without words, or one that is damaged, ends early
        first = True
        while place < len(page):
            step, place = _varint(page, place)
            at += step
            shared, here = (0, at) if first else _varint(page, at)
            length, here = _varint(page, here)
            term = term[:shared] + page[here : here + length]
            first = False
            if term[:1] == b"0":  # the words themselves; others are of prefix indexes
                yield term[1:].decode("utf-8", "replace")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[place + count]
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, place + count + 1
    return value, place + 9
