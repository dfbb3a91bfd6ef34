"""Plain, slow readings of D1, D2, D3 and D5, written from the text of the design and not from the code.

They are what the fast code is compared with: characters one by one, no regular expression, no automaton, no shared
tables. Scripts are told by the names of characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

JS_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
AROUND = "()[]<>{}\"'`*_=,;:!?"

# --- D2: quotations ---------------------------------------------------------------------------------------------------

UNSPACED_NAMES = (
    *("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI RADICAL", "IDEOGRAPHIC ITERATION"),
    *("IDEOGRAPHIC NUMBER ZERO", "HANGZHOU NUMERAL", "VERTICAL IDEOGRAPHIC", "VIETNAMESE ALTERNATE READING MARK"),
    *("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "COMBINING KATAKANA-HIRAGANA", "HENTAIGANA"),
    *("THAI ", "LAO ", "KHMER ", "MYANMAR "),
)


def is_word(character: str) -> bool:
    name = unicodedata.name(character, "")
    return unicodedata.category(character)[0] in "LNM" and not name.startswith(UNSPACED_NAMES)


def comparable(text: str) -> str:
    """One line or snippet as D2 compares it."""
    text = "".join(" " if c in JS_BLANKS else c for c in unicodedata.normalize("NFC", text))
    while "  " in text:
        text = text.replace("  ", " ")
    text = text.strip(" ")
    while True:
        rest = _less_one_prefix(text)
        if rest == text:
            return text
        text = rest.strip(" ")


def _less_one_prefix(text: str) -> str:
    for label in ("user:", "assistant:"):
        if text[: len(label)].lower() == label and text[: len(label)].isascii():
            return text[len(label) :]
    if text[:2] in ("- ", "* ", "+ ", "> "):
        return text[2:]
    digits = len(text) - len(text.lstrip("0123456789"))
    if 1 <= digits <= 9 and text[digits : digits + 2] == ". ":
        return text[digits + 2 :]
    return text


def quotes(line: str, snippet: str, *, cut: bool = False) -> bool:
    """Whether the line quotes the snippet (D2)."""
    wanted, found_in = comparable(snippet), comparable(line)
    if len(wanted.encode("utf-16-le", "surrogatepass")) // 2 < 12:
        return False
    at = found_in.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        starts_inside = at > 0 and is_word(found_in[at - 1]) and is_word(found_in[at])
        ends_inside = end < len(found_in) and is_word(found_in[end - 1]) and is_word(found_in[end])
        if not starts_inside and (cut or not ends_inside):
            return True
        at = found_in.find(wanted, at + 1)
    return False


# --- FACTS 1.4, 1.5 and D5: references --------------------------------------------------------------------------------


def decoded(name: str) -> str | None:
    """FACTS 1.4, with the plain tools of strings."""
    if name.endswith(".zst"):
        return _archived(name[: -len(".zst")])
    return _primary(name) if (archived := _archived(name)) is None else archived


def _primary(name: str) -> str | None:
    stem = name[: -len(".jsonl")]
    if not name.endswith(".jsonl") or stem.endswith(".trajectory") or _archived(name) is not None:
        return None
    *_, uuid = stem.lower().split(".checkpoint.")
    groups = uuid.split("-")
    if ".checkpoint." in stem.lower() and [len(group) for group in groups] == [8, 4, 4, 4, 12]:
        hexadecimal = all(c in "0123456789abcdef" for group in groups for c in group)
        if hexadecimal and groups[2][0] in "12345" and groups[3][0] in "89ab":
            return None
    return stem


def _archived(name: str) -> str | None:
    for reason in ("reset", "deleted"):
        stem, mark, stamp = name.rpartition(f".jsonl.{reason}.")
        if mark and _is_stamp(stamp):
            return _primary(stem + ".jsonl")
    return None


def _is_stamp(text: str) -> bool:
    if len(text) > 33 and text[-33] == "." and all(c in "0123456789abcdef" for c in text[-32:]):
        text = text[:-33]
    shape = "".join("0" if c in "0123456789" else c for c in text)
    return shape in ("0000-00-00T00-00-00Z", "0000-00-00T00-00-00.000Z")


def refers(text: str, agent: str, ids: Collection[str]) -> bool:
    """Whether the text refers to one of these sessions of the agent (FACTS 1.5, D5)."""
    return any(_is_selected(token, ids, coded=True) for token in _tokens(text, agent)) or any(
        selected for selected in label_values(text, agent, ids)
    )


def label_values(text: str, agent: str, ids: Collection[str]) -> Iterator[bool]:
    """For each ``Session ID:`` label in the text, whether it names a selected session."""
    for at in range(len(text)):
        if not all(a == b or a == b.upper() for a, b in zip(text[at : at + 10], "session id", strict=False)):
            continue
        before = text[:at].rstrip("_")
        if len(text[: at + 10]) < at + 10 or at - len(before) > 3 or (before and _is_ascii_word(before[-1])):
            continue
        rest = text[at + 10 :]
        opened = len(rest) - len(rest.lstrip("*_`"))
        rest = rest[opened:]
        if opened > 4 or not rest.startswith(":"):
            continue
        rest = rest[1:]
        marks = len(rest) - len(rest.lstrip("*_`"))
        if marks <= 4 and rest[marks : marks + 1] in JS_BLANKS:
            rest = rest[marks:]
        value = _up_to(rest.lstrip(JS_BLANKS), JS_BLANKS + ";")
        if value.strip("*_`"):
            bare = any(_is_selected(value[n:], ids, coded=False) for n in _leading(value))
            yield bare or any(_is_selected(token, ids, coded=True) for token in _tokens(value, agent))


def _leading(value: str) -> range:
    return range(len(value) - len(value.lstrip(AROUND)) + 1)


def _is_ascii_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _up_to(text: str, stops: str) -> str:
    return next((text[:n] for n, c in enumerate(text) if c in stops), text)


def _reference_at(text: str, at: int, agent: str) -> str | None:
    """The token of the reference that begins here."""
    if at and text[at - 1] not in JS_BLANKS + AROUND + "/":
        return None
    for start in (f"sessions/{agent}/", f"{agent}:"):
        rest = text[at + len(start) :]
        if text.startswith(start, at) and not (start.endswith(":") and rest.startswith("sessions/")):
            return _up_to(rest, JS_BLANKS + "]#;:/") or None
    return None


def _tokens(text: str, agent: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        token = _reference_at(text, at, agent)
        if token is None:
            at += 1
            continue
        begin = text.index(token, at + len(agent) + 1)
        inner = (
            n for n, c in enumerate(token) if c in AROUND and _reference_at(text, begin + n + 1, agent) is not None
        )
        shortened = next(inner, None)
        yield token if shortened is None else token[:shortened]
        at = begin + len(token) if shortened is None else begin + shortened + 1


def _is_selected(token: str, ids: Collection[str], *, coded: bool) -> bool:
    while token:
        name = decoded(token) if coded else None
        if (token if name is None else name) in ids:
            return True
        if token[-1] not in AROUND + ".":
            return False
        token = token[:-1]
    return False
