"""What ``verify`` looks for, and in which guises it may lie in a file.

A needle is a selected session's id, or a piece of what was said in it. Long texts are looked for in windows, so that
a part of one is found where the rest was overwritten, cut by a limit or continued on another page. A text that an
unselected session's retained text contains as well would be found for ever: it is dropped, and counted.

"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from ahocorasick_rs import AhoCorasick
from attrs import frozen

from memprov.core.proof.places import NeedleKind
from memprov.core.text import MIN_SNIPPET_UNITS, collapse, strip_speaker, to_bytes, u16_length

__all__ = ["MAX_NEEDLES", "SHORT", "Encoding", "Needle", "NeedleSet", "guises", "pieces"]

#: How many different texts are looked for at most; the first ones, when there are more, which the controls say.
MAX_NEEDLES = 20_000
_WINDOW = 40
#: What is shorter says little by itself: it is looked for as plain text only, and as a word of its own.
SHORT = 8


class Encoding(StrEnum):
    """How a needle may be written."""

    UTF8 = "utf-8"
    UTF16_LE = "utf-16-le"
    UTF16_BE = "utf-16-be"
    JSON = "json"
    BASE64 = "base64"


@frozen
class Needle:
    """One thing to look for. ``name`` is what findings call it: the id itself, and a number for what was said."""

    kind: NeedleKind
    text: str
    name: str


@frozen
class NeedleSet:
    """Everything to look for. ``others`` are ids known to be of sessions that are not selected; ``shared`` counts the
    texts left out because an unselected session said them too, ``left_out`` those beyond ``MAX_NEEDLES``.
    """

    needles: tuple[Needle, ...] = ()
    others: frozenset[str] = frozenset()
    shared: int = 0
    left_out: int = 0

    @classmethod
    def of(
        cls,
        session_ids: Iterable[str],
        texts: Iterable[str],
        *,
        others: Iterable[str] = (),
        unselected: Iterable[str] = (),
    ) -> NeedleSet:
        """Ids and texts as needles; ``unselected`` are the texts of sessions that stay, read once, in any order."""
        ids = tuple(dict.fromkeys(session_ids))
        wanted = tuple(dict.fromkeys(piece for text in texts for piece in pieces(text)))
        left_out = max(len(wanted) - MAX_NEEDLES, 0)
        wanted = wanted[:MAX_NEEDLES]
        shared = _said_elsewhere(wanted, unselected)
        kept = [piece for number, piece in enumerate(wanted) if number not in shared]
        return cls(
            (
                *(Needle(NeedleKind.ID, session_id, session_id) for session_id in ids),
                *(Needle(NeedleKind.TEXT, text, f"text {n}") for n, text in enumerate(kept, 1)),
            ),
            frozenset(others) - frozenset(ids),
            shared=len(shared),
            left_out=left_out,
        )

    @property
    def texts(self) -> int:
        """How many texts are looked for."""
        return sum(needle.kind is NeedleKind.TEXT for needle in self.needles)


def _said_elsewhere(wanted: Sequence[str], unselected: Iterable[str]) -> set[int]:
    """The places of those texts that one of the others contains."""
    if not wanted:
        return set()
    automaton = AhoCorasick(list(wanted))
    shared: set[int] = set()
    for text in unselected:
        shared.update(place for place, _, _ in automaton.find_matches_as_indexes(collapse(text), overlapping=True))
    return shared


def pieces(text: str) -> Iterator[str]:
    """A text as needles: without its speaker's label and with single blanks; in windows when it is long.

    What is shorter than a quotation may be (D2) says nothing and gives none.
    """
    said = collapse(strip_speaker(collapse(text)))
    if u16_length(said) < MIN_SNIPPET_UNITS:
        return
    if len(said) < 2 * _WINDOW:
        yield said
        return
    for start in range(0, len(said) - _WINDOW, _WINDOW):
        yield said[start : start + _WINDOW].strip()
    yield said[-_WINDOW:].strip()


def guises(text: str) -> dict[bytes, Encoding]:
    r"""The bytes that may stand for a text: UTF-8 and UTF-16, as a JSON string (once or twice, with ``\u`` escapes in
    either case), and the part of its Base64 that is the same whatever stands around it, at each of three offsets.
    """
    plain = to_bytes(text)
    found: dict[bytes, Encoding] = {plain: Encoding.UTF8}
    for escaped in _escaped(text):
        found.setdefault(to_bytes(escaped), Encoding.JSON)
    if len(plain) < SHORT:
        return found
    found.setdefault(text.encode("utf-16-le", "surrogatepass"), Encoding.UTF16_LE)
    found.setdefault(text.encode("utf-16-be", "surrogatepass"), Encoding.UTF16_BE)
    for offset in range(3):
        for piece in _base64(plain, offset):
            found.setdefault(piece, Encoding.BASE64)
    return found


def _escaped(text: str) -> Iterator[str]:
    """As the inside of a JSON string, and of one within another."""
    for form in _json_forms(text):
        yield form
        yield from _json_forms(form)


def _json_forms(text: str) -> Iterator[str]:
    for ascii_only in (False, True):
        form = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (form, _upper_escapes(form))


def _upper_escapes(escaped: str) -> str:
    r"""``\u00e9`` as ``\u00E9``."""
    head, *rest = escaped.split("\\u")
    return head + "".join("\\u" + part[:4].upper() + part[4:] for part in rest)


def _base64(data: bytes, offset: int) -> Iterator[bytes]:
    """The characters that only ``data`` decides, when ``offset`` bytes stand before it in its group of three."""
    padded = b"\0" * offset + data
    first = 0 if offset == 0 else offset + 1
    whole = len(padded) * 8 // 6
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        yield alphabet(padded)[first:whole]
