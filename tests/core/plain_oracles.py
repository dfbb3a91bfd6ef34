"""Plain, slow readings of D1, D2, D3 and D5, written from the text of the design and not from the code.

They are what the fast code is compared with: characters one by one, no regular expression, no automaton, no shared
tables. Scripts are told by the names of characters.
"""

from __future__ import annotations

import itertools
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


# --- docs: File names, References and D5: references
# --------------------------------------------------------------------------------


def decoded(name: str) -> str | None:
    """docs: File names, with the plain tools of strings."""
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
    """Whether the text refers to one of these sessions of the agent (docs: References, D5)."""
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


# --- D3, D5: what a marker owns, in texts that are scrubbed for entry keys alone --------------------------------------

COMMENT_NAMES = ("openclaw-memory-promotion", "openclaw-memory-lineage", "trigger", "importance", "project")
Comment = tuple[str, str, int, int]


def split_lines(text: str) -> list[str]:
    """The lines with their ends: LF and CRLF, and nothing else (D6)."""
    parts = [part + "\n" for part in text.split("\n")]
    return [*parts[:-1], *([parts[-1][:-1]] if parts[-1] != "\n" else [])]


def content_of(line: str) -> str:
    return (line[:-1].removesuffix("\r") if line.endswith("\n") else line).strip(JS_BLANKS)


def is_heading(line: str) -> bool:
    marks = len(line) - len(line.lstrip("#"))
    return 1 <= marks <= 6 and (line[marks:] == "" or line[marks] in JS_BLANKS)


def titles_of(lines: list[str]) -> set[int]:
    """The lines that an underline makes headings, in a text without front matter and saved conversations."""
    found = set()
    for n, (line, below) in enumerate(itertools.pairwise(lines)):
        marks = _unended(below).rstrip(JS_BLANKS)
        bare = marks.lstrip(" ")
        underlined = bare and len(marks) - len(bare) <= 3 and bare in ("=" * len(bare), "-" * len(bare))
        text = content_of(line)
        if not underlined or is_blank(line) or is_heading(line) or is_managed(line):
            continue
        if (
            line.lstrip(JS_BLANKS)[0] == ">"
            or _width(line) > 3
            or is_row(line)
            or (_width(line) and _in_item(lines, n))
        ):
            continue
        is_break = len(text) - sum(text.count(c) for c in JS_BLANKS) >= 3 and any(
            not text.strip(c + JS_BLANKS) for c in "-*_"
        )
        if not (text.startswith(("|", "<!--", "```", "~~~")) or is_break or not text.strip("=") or _in_table(lines, n)):
            found.add(n)
    return found


def is_deeper(line: str, head: str) -> bool:
    """Whether a line is indented deeper than this one; in a quote, after the marks that both have."""
    marks = head[: len(head) - len(head.lstrip(JS_BLANKS + ">"))].count(">")
    return _widths(line)[: marks + 1] > _widths(head)


def _widths(line: str) -> list[int]:
    """How wide the blanks are before and after each quote mark at the start of a line."""
    start = line[: len(line) - len(line.lstrip(JS_BLANKS + ">"))]
    return [_width(part + "x") for part in start.split(">")]


def is_row(line: str) -> bool:
    inner = line.strip(JS_BLANKS + ">")
    return bool(_bullet(inner + " "))


def _unended(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _in_item(lines: list[str], number: int) -> bool:
    """Whether an indented line is below a list row and no text at the margin."""
    for line in reversed(lines[:number]):
        if is_row(line) and not is_blank(line):
            return True
        if not is_blank(line) and _width(line.lstrip(JS_BLANKS + ">") if ">" in line[:9] else line) == 0:
            return False
    return False


def _in_table(lines: list[str], number: int) -> bool:
    for line in reversed(lines[: number + 1]):
        if is_blank(line):
            return False
        if "|" in line and "-" in line and not line.strip(JS_BLANKS + "|:-"):
            return True
    return False


def stands_apart(text: str) -> bool:
    """Whether the text may be a snapshot file or begin with front matter, of which this module knows nothing."""
    rest = text.lstrip("\ufeff")
    if rest.startswith("---"):
        return True
    while rest.strip(JS_BLANKS).startswith("<!--") and "-->" in rest:
        rest = rest[rest.index("-->") + 3 :]
    return rest.lstrip(JS_BLANKS).startswith("# Session")


def is_blank(line: str) -> bool:
    return not line.strip(JS_BLANKS + ">")


def is_managed(line: str) -> bool:
    inner = content_of(line)
    if not (inner.startswith("<!--") and inner.endswith("-->") and len(inner) > 6):
        return False
    words = inner[4:-3].strip(JS_BLANKS).lower()
    return words in {f"openclaw:dreaming:{block}:{edge}" for block in ("diary", "deep") for edge in ("start", "end")}


def code_spans(line: str) -> list[tuple[int, int]]:
    """CommonMark 6.1, character by character."""
    runs, at = [], 0
    while at < len(line):
        end = at + len(line[at:]) - len(line[at:].lstrip("`"))
        if end > at:
            runs.append((at, end))
        at = max(end, at + 1)
    spans, number = [], 0
    while number < len(runs):
        start, end = runs[number]
        close = next((n for n in range(number + 1, len(runs)) if runs[n][1] - runs[n][0] == end - start), None)
        if close is not None:
            spans.append((end, runs[close][0]))
            number = close
        number += 1
    return spans


def comments_of(line: str) -> list[Comment]:
    """The live markers and annotations of a line: name, value, start, end."""
    found, at = [], 0
    while (start := line.find("<!--", at)) >= 0:
        end = line.find("-->", start + 4)
        name, colon, value = line[start + 4 : max(end, 0)].partition(":")
        name, value = name.strip(JS_BLANKS), value.strip(JS_BLANKS)
        if end < 0 or not colon or not name.isascii() or name.lower() not in COMMENT_NAMES:
            at = start + 4
            continue
        at = end + 3
        marker = name.lower().startswith("openclaw")
        around = [(line[a:start], line[at:b]) for a, b in code_spans(line) if a <= start and at <= b]
        shown = any(not before.strip(JS_BLANKS + "`") and not after.strip(JS_BLANKS + "`") for before, after in around)
        if not marker or (value and not shown):
            found.append((name.lower(), value, start, at))
    return found


def code_blocks(lines: list[str]) -> list[tuple[int, int]]:
    """Closed fenced blocks, first and last line: an opener and the next closer, which is at least as long."""
    blocks, number = [], 0
    while number < len(lines):
        opened = _fence(lines[number], may_be_row=True)
        later = range(number + 1, len(lines))
        close = next((n for n in later if opened and _closes(_fence(lines[n], may_be_row=False), opened)), None)
        if close is not None and opened is not None and opened[2] >= 0:
            inside = [n for n in range(number + 1, close + 1) if lines[n].strip(JS_BLANKS)]
            if any(_width(lines[n]) <= opened[2] for n in inside):
                close = None
        if close is not None:
            blocks.append((number, close))
            number = close
        number += 1
    return blocks


def _width(line: str) -> int:
    width = 0
    for c in line:
        if c not in JS_BLANKS:
            return width
        width += 4 - width % 4 if c == "\t" else 1
    return width


def _fence(line: str, *, may_be_row: bool) -> tuple[str, str, int] | None:
    """The fence that a line begins: its marks, what follows, and the width before its list row or -1."""
    rest, row = content_of(line), -1
    while may_be_row and (bullet := _bullet(rest)):
        rest, row = rest[len(bullet) :].lstrip(JS_BLANKS), _width(line)
    marks = rest[: len(rest) - len(rest.lstrip(rest[:1]))] if rest[:1] in ("`", "~") else ""
    info = rest[len(marks) :]
    return (marks, info, row) if len(marks) >= 3 else None


def _bullet(text: str) -> str:
    digits = len(text) - len(text.lstrip("0123456789"))
    sign = text[:1] if text[:1] in ("-", "*", "+") else ""
    if 1 <= digits <= 9 and text[digits : digits + 1] in (".", ")"):
        sign = text[: digits + 1]
    return sign if sign and text[len(sign) : len(sign) + 1] in tuple(JS_BLANKS) else ""


def _closes(closer: tuple[str, str, int] | None, opener: tuple[str, str, int]) -> bool:
    if closer is None or closer[1] or closer[0][0] != opener[0][0] or len(closer[0]) < len(opener[0]):
        return False
    return opener[0][0] == "~" or "`" not in opener[1]


class PlainFile:
    """A text in lines, and what the markers in it own. Give it without a byte order mark."""

    def __init__(self, text: str) -> None:
        self.lines = split_lines(text)
        self.blocks = code_blocks(self.lines)
        code = {n for first, last in self.blocks for n in range(first, last + 1)}
        self.comments = [[] if n in code else comments_of(line.rstrip("\n")) for n, line in enumerate(self.lines)]
        self.titles = titles_of(self.lines) - code
        self.heading = [n not in code and (is_heading(line) or n in self.titles) for n, line in enumerate(self.lines)]
        self.fence = [n not in code and is_managed(line) for n, line in enumerate(self.lines)]
        self.alone = [bool(c) and not self.other_text(n) for n, c in enumerate(self.comments)]
        self.note = [False] * len(self.lines)
        for n in range(len(self.lines)):
            if n and self.alone[n] and self.is_indented_note(n):
                title = n - 1 - (n - 2 in self.titles)
                described = not self.alone[n - 1] and (self.can_head(n - 1) or bool(self.keys(title)))
                self.note[n] = self.note[n - 1] or described
        self.alone = [alone and not note for alone, note in zip(self.alone, self.note, strict=True)]

    def other_text(self, number: int) -> str:
        return less_parts(self.lines[number], self.comments[number]).strip(JS_BLANKS)

    def keys(self, *numbers: int) -> list[str]:
        return [value for n in numbers for name, value, *_ in self.comments[n] if name.endswith("promotion")]

    def marked(self, *numbers: int) -> bool:
        return any(name.startswith("openclaw") for n in numbers for name, *_ in self.comments[n])

    def is_indented_note(self, number: int) -> bool:
        return self.lines[number][0] in JS_BLANKS and not self.marked(number)

    def run_around(self, number: int) -> range:
        first = last = number
        while first > 0 and self.alone[first - 1]:
            first -= 1
        while last < len(self.lines) and self.alone[last]:
            last += 1
        return range(first, last)

    def can_head(self, number: int) -> bool:
        if not 0 <= number < len(self.lines):
            return False
        structure = self.heading[number] or self.fence[number] or number - 1 in self.titles
        return not (is_blank(self.lines[number]) or structure)

    def with_continuations(self, head: int) -> set[int]:
        """The head and what is indented deeper below it, with the annotations below each line and whole blocks."""
        block_ends = dict(self.blocks)
        end = head
        while True:
            end = (end + 1 if end in self.titles else block_ends.get(end, end)) + 1
            while end < len(self.lines) and self.note[end]:
                end += 1
            if end >= len(self.lines) or is_blank(self.lines[end]) or not is_deeper(self.lines[end], self.lines[head]):
                break
            if self.fence[end] or self.heading[end] or (self.alone[end] and self.marked(end)):
                break
        return {*range(head, end)}

    def with_run_above(self, number: int) -> set[int]:
        """A line with an inline marker, what continues it, and the run directly above it that goes with it."""
        above = range(self.run_around(number - 1).start, number) if number and self.alone[number - 1] else range(0)
        return {*above} | self.with_continuations(number)

    def owned_by(self, number: int) -> set[int] | None:
        """What goes with a marker in this line; ``None`` when it dangles."""
        if not self.alone[number]:
            return self.with_run_above(number)
        run = self.run_around(number)
        return {*run} | self.with_continuations(run.stop) if self.can_head(run.stop) else None

    def parts_of(self, run: range, keys: Collection[str]) -> Iterator[tuple[int, Comment]]:
        """The comments that go when some markers of a dangling run do."""
        above: list[tuple[int, Comment]] = []
        for place in [(n, c) for n in run for c in self.comments[n]]:
            if place[1][0].endswith("lineage"):
                above.append(place)
                continue
            if place[1][0].endswith("promotion") and place[1][1] in keys:
                yield from (*above, place)
            above = []


def less_entries(text: str, keys: Collection[str]) -> str:
    """The text less the entries of these keys, by D3 alone."""
    file = PlainFile(text)
    gone: set[int] = set()
    parts: set[tuple[int, Comment]] = set()
    for number in range(len(file.lines)):
        if not any(key in keys for key in file.keys(number)):
            continue
        owned = file.owned_by(number)
        if owned is not None:
            gone |= owned
        elif all(key in keys for key in file.keys(*file.run_around(number))):
            gone |= {*file.run_around(number)}
        else:
            parts |= {*file.parts_of(file.run_around(number), keys)}
    for number in {n for n, _ in parts}:
        staying = [c for c in file.comments[number] if (number, c) not in parts]
        if not any(name.startswith("openclaw") for name, *_ in staying):
            gone.add(number)
    for run in {file.run_around(n) for n, _ in parts}:
        below = 0
        while below < len(run) and (run[below] in gone or (below and file.is_indented_note(run[below]))):
            gone.add(run[below])
            below += 1
    for number in range(1, len(file.lines)):
        if file.note[number] and number - 1 in gone:
            gone.add(number)
    kept = (n for n in range(len(file.lines)) if n not in gone)
    return "".join(less_parts(file.lines[n], [c for m, c in parts if m == n]) for n in kept)


def less_parts(line: str, comments: list[Comment]) -> str:
    """The line without the characters of these comments."""
    for *_, start, end in sorted(comments, key=lambda comment: -comment[2]):
        line = line[:start] + line[end:]
    return line
