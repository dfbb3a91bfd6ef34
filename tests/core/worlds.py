"""Small random worlds: every kind of row and text that a purge meets, with few names, so that things collide."""

from __future__ import annotations

from attrs import evolve
from hypothesis import strategies as st

from memprov import (
    Chunk,
    ChunkTable,
    CuratedWrite,
    HostEvent,
    IndexSource,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginClass,
    OriginTable,
    Preimage,
    RecallEntry,
    RetainedText,
    RewindBatch,
    Selection,
    Selectors,
    SessionRecord,
    Snippet,
    StaleCopy,
    StoreIdentity,
    select_sessions,
)
from memprov.core.purge import rewind_key
from memprov.core.text import json_text, lineage_marker, promotion_marker

SESSIONS = ("s1", "s2", "s3", "s1-b")
KEYS = tuple(f"memory:claim:{number:012x}" for number in range(6))
SENTENCES = (
    "I prefer oolong tea in the morning.",
    "The kiln runs at nine hundred degrees.",
    "My bicycle is a green touring model.",
    "look at sessions/main/s1 now please",
    "我早上喜欢喝乌龙茶而不是咖啡",
)
CORPUS = "memory/.dreams/session-corpus/2026-11-25.txt"
CORPUS_2 = "memory/.dreams/session-corpus/2026-11-26.txt"

sessions = st.sampled_from(SESSIONS)
keys = st.sampled_from(KEYS)
sentences = st.sampled_from(SENTENCES)


def corpus_line(session: str, sentence: str) -> str:
    """One corpus line as ingestion writes it."""
    return f"[main/sessions/main/{session}#L2] User: {sentence}\n"


@st.composite
def blocks(draw: st.DrawFn) -> str:
    """One block of a memory file."""
    kind = draw(
        st.sampled_from(
            ("entry", "inline", "prose", "row", "section", "heading", "blank", "marker", "fence", "managed")
        )
    )
    key, session, sentence = draw(keys), draw(sessions), draw(sentences)
    match kind:
        case "entry":
            lineage = f"{lineage_marker(key)}\n" if draw(st.booleans()) else ""
            nested = "  nested line below\n" if draw(st.booleans()) else ""
            return f"{lineage}{promotion_marker(key)}\n- User: {sentence} [score=0.5]\n{nested}"
        case "inline":
            return f"- {sentence} {promotion_marker(key)}\n"
        case "prose":
            return f"Somebody said: {sentence}\n"
        case "row":
            return f"- **Session ID**: {session}\n  below the row\n"
        case "section":
            labels = f"- **Session Key**: agent:main:x\n- **Session ID**: {session}\n"
            return f"## Session: now\n\n{labels}\ntalk of {session}\n\n"
        case "heading":
            return "## Notes by hand\n"
        case "marker":
            return f"{promotion_marker(key)}\n\n"
        case "managed":
            return f"<!-- openclaw:dreaming:diary:start -->\n- {sentence}\n<!-- openclaw:dreaming:diary:end -->\n"
        case "fence":
            return "```\nsome code\n```\n"
        case _:
            return "\n"


texts = st.lists(blocks(), max_size=8).map("".join)


@st.composite
def events(draw: st.DrawFn, number: int) -> HostEvent:
    """One host event that cites entries or corpus places."""
    if draw(st.booleans()):
        cited = [{"key": key, "path": CORPUS, "startLine": 1, "endLine": 1} for key in draw(st.lists(keys, max_size=3))]
        event: dict[str, object] = {"type": "memory.promotion.applied", "applied": len(cited), "candidates": cited}
    else:
        lines = draw(st.lists(st.integers(1, 4), max_size=3))
        results = [{"path": CORPUS, "startLine": line, "endLine": line, "score": 0.5} for line in lines]
        event = {"type": "memory.recall.recorded", "query": "q", "resultCount": len(results), "results": results}
    return HostEvent(f"aa:event:1:{number:016d}", json_text({"kind": "event", "event": event, "sequence": number}))


def _rewind(candidates: list[str]) -> RewindBatch:
    texts = tuple(
        json_text(
            {"contentIndex": 0, "hash": "h", "scope": f"main:sessions/main/{s}", "stateKey": f"main:sessions/main/{s}"}
        )
        for s in candidates
    )
    return RewindBatch(rewind_key(texts), texts)


@st.composite
def snapshots(draw: st.DrawFn) -> MemorySnapshot:
    """A snapshot of agent ``main``, whose workspace another agent shares."""
    origins = draw(st.lists(st.tuples(keys, sessions), max_size=10, unique=True))
    corpus = tuple(
        MemoryFile(
            path, "".join(corpus_line(s, t) for s, t in draw(st.lists(st.tuples(sessions, sentences), max_size=4)))
        )
        for path in (CORPUS, CORPUS_2)
    )
    names = ("MEMORY.md", "memory/2026-11-25.md", "memory/dreaming/light/2026-11-25.md", "DREAMS.md")
    files = tuple(MemoryFile(name, draw(texts)) for name in names)
    recall = tuple(
        RecallEntry(key, CORPUS, f"[main/sessions/main/{draw(sessions)}#L2] User: {draw(sentences)}", line, line)
        for line, key in enumerate(draw(st.lists(keys, max_size=4, unique=True)), 1)
    )
    chunks = [
        Chunk(
            f"m{number}",
            file.path,
            "memory",
            draw(st.sampled_from([file.text, draw(texts)])),
            vector=draw(st.booleans()),
        )
        for number, file in enumerate(files)
    ]
    chunks += [
        Chunk(
            f"s{number}", f"sessions/main/{session}.jsonl", "sessions", origin_class=draw(st.sampled_from(OriginClass))
        )
        for number, session in enumerate(draw(st.lists(sessions, max_size=3)))
    ]
    state = [f"main:sessions/main/{session}" for session in draw(st.lists(sessions, max_size=3, unique=True))]
    return MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=files,
        corpus=corpus,
        stale_copies=(StaleCopy("MEMORY.md.forget.1.x.tmp", "d", writer_gone=draw(st.booleans())),),
        origins=OriginTable.from_rows(Origin(key, "main", session) for key, session in origins),
        sibling_keys=frozenset(draw(st.lists(keys, max_size=2))),
        recall=recall,
        signals=tuple(draw(st.lists(keys, max_size=3, unique=True))),
        checkpoints=tuple(state),
        seen_scopes=tuple(state),
        rewinds=tuple(
            {batch.key: batch for batch in [_rewind(draw(st.lists(sessions, min_size=1, max_size=3)))]}.values()
        ),
        events=tuple(draw(events(number)) for number in range(2)),
        preimages=(Preimage("p1", draw(texts)),),
        chunks=ChunkTable.from_rows(chunks),
        sources=tuple(IndexSource(chunk.path, chunk.source) for chunk in {c.path: c for c in chunks}.values()),
        cache_rows=draw(st.integers(0, 3)),
        internal_sessions=frozenset(draw(st.lists(sessions, max_size=1))),
        ledger_writes=(CuratedWrite("USER.md", 5, session_id=draw(sessions)),),
    )


@st.composite
def heard_snapshots(draw: st.DrawFn) -> MemorySnapshot:
    """Such a snapshot, with what some sessions said by their transcripts."""
    heard = draw(st.lists(sessions, max_size=2, unique=True))
    texts = st.lists(sentences, max_size=2).map(lambda said: tuple(Snippet(f"User: {text}") for text in said))
    return evolve(draw(snapshots()), retained=tuple(RetainedText(session, draw(texts)) for session in heard))


def selection(*ids: str) -> Selection:
    """The selection of these sessions, by id."""
    return select_sessions([SessionRecord("main", i, f"agent:main:{i}") for i in SESSIONS], Selectors(sessions=ids))


selections = st.lists(sessions, min_size=1, max_size=2, unique=True).map(lambda ids: selection(*ids))
