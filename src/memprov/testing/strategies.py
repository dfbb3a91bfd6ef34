"""Hypothesis strategies for memory files, corpus files and what is removed from them.

For whoever tests a host that keeps memory with memprov: ``pip install memprov[test]``. Names come from small pools, so
that markers, labels and quotations of the same session meet in one text, and a selection from the same pools hits it:

    @given(memory_texts(), scrub_rules())
    def test_what_stays_is_unchanged(text, rules): ...

``memory_texts`` are hostile: every structure that a purge reads, in every spelling, in any order, cut off anywhere.
``written_texts`` are what the writers make: whole entries, whole sections, a blank line where they write one. Laws
about the order in which sessions are forgotten hold for the latter only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from memprov.core.purge import ScrubRules
from memprov.core.text import Snippet, lineage_marker, promotion_marker

__all__ = [
    "AGENT",
    "ENTRY_KEYS",
    "SENTENCES",
    "SESSION_IDS",
    "corpus_texts",
    "labels",
    "memory_lines",
    "memory_texts",
    "raw_texts",
    "scrub_rules",
    "written_texts",
]

#: The agent whose sessions the texts speak of.
AGENT = "main"
#: Ids that are easily taken for each other: a prefix, another case, one with punctuation, one in another script.
SESSION_IDS = ("s1", "s10", "S1", "s2", "s2.", "agent:main:s2", "茶")
#: Entry keys, one of them a prefix of another.
ENTRY_KEYS = ("k", "k1", "memory:claim:0123456789ab", "memory:a/b.txt:1:2:0123456789ab")
#: What people said; each is long enough to be looked for, and the first holds the second.
SENTENCES = (
    "the kiln code is 42 today, as always",
    "kiln code is 42 today",
    "Zoë likes her oat milk warm",
    "我早上喜欢喝乌龙茶而不是咖啡",
    "ฉันชอบดื่มชาอู่หลงตอนเช้า",
    "tea 🍵🍵 time 🍵🍵",
    "# shout: see [the](link) `now`",
)

_BLANK_LINES = ("", "", "", " ", "\t", "\u3000", ">", "> ", "\r", "\u2028")
_INDENTS = ("", "", "", " ", "  ", "    ", "\t", "\u00a0")
_BULLETS = ("- ", "* ", "+ ", "1. ", "23) ", "-\t")
_QUOTE_MARKS = ("", "", "", "> ", ">", ">> ", "> > ")
_FENCES = ("```", "```", "````", "~~~", "~~~~~", "```sh", "~~~ text", "  ```", "- ```", "1. ~~~")
_MANAGED = tuple(
    form.format(block=block, edge=edge)
    for block in ("diary", "deep")
    for edge in ("start", "end")
    for form in ("<!-- openclaw:dreaming:{block}:{edge} -->", "  <!--OpenClaw:dreaming:{block}:{edge}-->")
)
_ODDITIES = (
    "---",
    "===",
    "***",
    "| a | b |",
    "a\rb",
    "a\u2028b\x0cc\x85d",
    "e\u0301 and é",
    "\udcff\udc80 bytes",
    "\ufeff",
    "<!-- a note -->",
    "<!-- trigger:",
    "-->",
    "``",
    "`` ` ``",
    "seven####### signs",
    "####### seven",
    "#nothing",
)


def raw_texts(max_size: int = 60) -> SearchStrategy[str]:
    """Any text that a file can hold, as memprov decodes it: undecodable bytes are lone surrogates."""
    return st.binary(max_size=max_size).map(lambda data: data.decode("utf-8", "surrogateescape"))


def _labels(session_ids: Sequence[str]) -> Iterator[str]:
    forms = (
        "Session ID: {}",
        "Session ID: {}; more",
        "session id:{}",
        "SESSION ID:   {},",
        "**Session ID**: {}",
        "**Session ID:** {}",
        "__Session ID__: *{}*",
        "`Session ID`: `{}`",
        "Session ID: `{}`.",
        "Session ID: [main/sessions/main/{}#L4]",
    )
    yield from (form.format(name) for name in session_ids for form in forms)


def labels(session_ids: Sequence[str] = SESSION_IDS) -> SearchStrategy[str]:
    """A ``Session ID:`` label in one of its spellings: plain, bold, in code, any case, before punctuation."""
    return st.sampled_from(tuple(_labels(session_ids)))


def _references(session_ids: Sequence[str]) -> Iterator[str]:
    forms = (
        "sessions/main/{}",
        "(sessions/main/{}.jsonl)",
        "see agent:main:{}, please",
        "[main/sessions/main/{}#L2]",
        "*sessions/main/{}.jsonl.deleted.2026-08-26T10-00-00.000Z.zst*",
        "sessions/other/{}",
        "domain:{}",
    )
    yield from (form.format(name) for name in session_ids for form in forms)


def _quotations(sentences: Sequence[str]) -> Iterator[str]:
    forms = (
        "{}",
        "User: {}",
        "assistant: > {}",
        "[main/sessions/main/s2#L2] User: {} [score=0.4]",
        "over{}",
        "{}s",
        'he said "{}", twice',
        "她说{}。",
    )
    for text in sentences:
        for said in (text, text.replace(" ", "  "), text.replace(" ", "\u00a0"), text.replace("ë", "e\u0308")):
            yield from (form.replace("{}", said) for form in forms)


def _marker_lines(entry_keys: Sequence[str]) -> Iterator[str]:
    """Lines that hold nothing but comments."""
    annotations = ("<!-- trigger: tea, kiln -->", "<!-- importance: 5 -->", "<!-- project: a/b -->")
    spellings = ("<!--OPENCLAW-Memory-Promotion:   {}-->", "\u00a0<!--\topenclaw-memory-promotion:{}\t-->")
    for indent in ("", "", "  ", "\t"):
        yield from (indent + annotation for annotation in annotations)
        for key in entry_keys:
            promotion, lineage = promotion_marker(key), lineage_marker(key)
            yield from (indent + promotion, indent + lineage, indent + promotion + " " + annotations[0])
            yield from (indent + spelling.format(key) for spelling in spellings)
            yield from (indent + promotion + " " + promotion_marker(other) for other in entry_keys)
            yield from (indent + promotion + lineage_marker(other) for other in entry_keys)


@lru_cache
def _lines(
    session_ids: tuple[str, ...], entry_keys: tuple[str, ...], sentences: tuple[str, ...]
) -> SearchStrategy[str]:
    plain = ("words", "Topic: tea", "**Source**: telegram", "last words", "")
    inline = tuple(f"{text} {promotion_marker(key)}" for key in entry_keys for text in plain)
    shown = tuple(f"as in `{promotion_marker(key)}` here" for key in entry_keys)
    pools = (plain, tuple(_labels(session_ids)), tuple(_references(session_ids)), tuple(_quotations(sentences)), inline)
    content = st.one_of(*(st.sampled_from(pool) for pool in (*pools, inline, shown)))
    prefixes = tuple(map("".join, product(_INDENTS, _QUOTE_MARKS, (*_BULLETS, *_BULLETS, "", "", "", "", "", ""))))
    rows = st.builds(str.__add__, st.sampled_from(prefixes), content)
    headings = st.builds(str.__add__, st.sampled_from(("# ", "## ", "### ", "###### ", " # ")), content)
    snapshot = st.sampled_from(("# Session: 2026-11-25 09:30:00 UTC", "## Session: later"))
    odd = st.sampled_from((*_FENCES, *_FENCES, *_MANAGED, *_ODDITIES))
    markers = st.sampled_from(tuple(_marker_lines(entry_keys)))
    return st.one_of(markers, markers, rows, rows, rows, headings, snapshot, odd, st.sampled_from(_BLANK_LINES))


def memory_lines(
    session_ids: Sequence[str] = SESSION_IDS,
    entry_keys: Sequence[str] = ENTRY_KEYS,
    sentences: Sequence[str] = SENTENCES,
) -> SearchStrategy[str]:
    """One line of a memory file, without its end."""
    return _lines(tuple(session_ids), tuple(entry_keys), tuple(sentences))


@st.composite
def memory_texts(
    draw: st.DrawFn,
    session_ids: Sequence[str] = SESSION_IDS,
    entry_keys: Sequence[str] = ENTRY_KEYS,
    sentences: Sequence[str] = SENTENCES,
    max_lines: int = 14,
) -> str:
    """A hostile memory file: any lines in any order, LF and CRLF mixed, with or without a BOM and a last line end."""
    lines = draw(st.lists(memory_lines(session_ids, entry_keys, sentences), max_size=max_lines))
    crlf = draw(st.integers(0, 1 << max_lines)) if draw(st.booleans()) else 0  # one bit for each line
    text = "".join(line + ("\r\n" if crlf >> number & 1 else "\n") for number, line in enumerate(lines))
    if lines and draw(st.integers(0, 3)) == 0:
        text = text.removesuffix("\n").removesuffix("\r")
    return ("\ufeff" if draw(st.integers(0, 9)) == 0 else "") + text


@st.composite
def _written_block(
    draw: st.DrawFn, session_ids: Sequence[str], entry_keys: Sequence[str], sentences: Sequence[str]
) -> str:
    key, session, sentence = (draw(st.sampled_from(pool)) for pool in (entry_keys, session_ids, sentences))
    sentence = sentence.replace("#", "no.")
    match draw(st.sampled_from(("entry", "stacked", "history", "section", "row", "by hand"))):
        case "entry":
            lineage = f"{lineage_marker(key)}\n" if draw(st.booleans()) else ""
            detail = "  more of it\n" if draw(st.booleans()) else ""
            tail = " [score=0.477 signals=1 recalls=0] <!-- trigger: prefer, tea --> <!-- importance: 5 -->"
            said = f"- [main/sessions/main/{session}#L2] User: {sentence}{tail}\n"
            return f"{lineage}{promotion_marker(key)}\n{said}{detail}"
        case "stacked":
            other = draw(st.sampled_from(entry_keys))
            return f"{promotion_marker(key)}\n{promotion_marker(other)}\n- {sentence} Source: memory/x.md#L1-L1\n"
        case "history":
            return f"{promotion_marker(key)}\n- `+ {sentence}`\n"
        case "section":
            rows = f"- **Session Key**: agent:main:x\n- **Session ID**: {session}\n- **Source**: telegram\n"
            return f"\n## Session: 2026-11-25 09:30:00 UTC\n\n{rows}\nuser: {sentence}\n\n"
        case "row":
            return f"\n## Sessions of the day\n\n- Notes\n- Session ID: {session}\n  what they said\n\n"
        case _:
            topic = draw(st.sampled_from(("tea", "kiln", "milk")))
            return f"\n## By hand\n\nA paragraph: {topic}.\n\n- a row\n  and below\n\n"


@st.composite
def written_texts(
    draw: st.DrawFn,
    session_ids: Sequence[str] = SESSION_IDS,
    entry_keys: Sequence[str] = ENTRY_KEYS,
    sentences: Sequence[str] = SENTENCES,
    max_blocks: int = 8,
) -> str:
    """A memory file as its writers make it: promoted and consolidated entries, sections, a conversation saved whole."""
    if draw(st.integers(0, 5)) == 0:
        rows = "- **Session Key**: agent:main:x\n- **Session ID**: {0}\n"
        part = f"# Session: {{0}}\n\n{rows}\n## Conversation\n\nuser: {{1}}\n{{2}}\n"
        extra = st.sampled_from(("", "# a heading\nbelow it\n", "```\nhalf a fence\n", "- Session ID: zz\n"))
        parts = st.builds(part.format, st.sampled_from(session_ids), st.sampled_from(sentences), extra)
        return "".join(draw(st.lists(parts, min_size=1, max_size=3)))
    blocks = draw(st.lists(_written_block(session_ids, entry_keys, sentences), max_size=max_blocks))
    return "# Long-Term Memory\n\n" + "".join(blocks)


@st.composite
def corpus_texts(
    draw: st.DrawFn,
    agent_id: str = AGENT,
    session_ids: Sequence[str] = SESSION_IDS,
    sentences: Sequence[str] = SENTENCES,
    max_lines: int = 12,
) -> str:
    """A session-corpus file: lines with a prefix, with half of one, with another agent's, and with none."""
    forms = (
        "[{agent}/sessions/{agent}/{id}#L4] User: {text}",
        "[{agent}/sessions/{agent}/{id}.jsonl#L12] Assistant: {text}",
        "[{agent}/sessions/{agent}/{id}.jsonl.reset.2026-08-26T10-00-00Z#L1] User: {text}",
        "[{agent}/sessions/{agent}/{id}#L4] User: look at sessions/{agent}/s1 now",
        "[other/sessions/{agent}/{id}#L4] User: {text}",
        "[{agent}/sessions/{agent}/{id}#Lx] User: {text}",
        " [{agent}/sessions/{agent}/{id}#L4] User: {text}",
        "{text}",
        "",
    )
    lines = [
        draw(st.sampled_from(forms)).format(
            agent=agent_id, id=draw(st.sampled_from(session_ids)), text=draw(st.sampled_from(sentences))
        )
        + draw(st.sampled_from(("\n", "\n", "\r\n")))
        for _ in range(draw(st.integers(0, max_lines)))
    ]
    text = "".join(lines)
    return ("\ufeff" if draw(st.integers(0, 9)) == 0 else "") + (text if draw(st.booleans()) else text.rstrip("\r\n"))


@st.composite
def scrub_rules(
    draw: st.DrawFn,
    agent_id: str = AGENT,
    session_ids: Sequence[str] = SESSION_IDS,
    entry_keys: Sequence[str] = ENTRY_KEYS,
    sentences: Sequence[str] = SENTENCES,
) -> ScrubRules:
    """A selection from the same pools. An empty pool leaves that kind of rule out."""
    chosen = [draw(st.sets(st.sampled_from(pool), max_size=3)) if pool else set() for pool in (session_ids, entry_keys)]
    said = draw(st.lists(st.sampled_from(sentences), max_size=2, unique=True)) if sentences else []
    snippets = [Snippet(f"User: {text}", cut=draw(st.integers(0, 5)) == 0) for text in said]
    return ScrubRules(agent_id, chosen[0], chosen[1], snippets)
