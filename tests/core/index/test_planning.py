"""The plan of an index and the fences, as pure functions over values."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import (
    Chunk,
    ChunkTable,
    IndexSource,
    MemorySnapshot,
    OriginClass,
    SessionKind,
    SessionRecord,
    StoreIdentity,
)
from memprov.core.index import (
    FULL_TEXT_ONLY,
    Change,
    ChunkBudget,
    DropSource,
    EmbedderIdentity,
    IndexedSource,
    IndexState,
    Present,
    PublishSource,
    Refusal,
    ReplaceIndex,
    SourceText,
    check_generation,
    check_source,
    embedded,
    indexable_sessions,
    is_own_artifact,
    memory_text,
    missing_texts,
    plan_index,
    plan_rebuild,
    session_path,
    session_text,
)
from memprov.core.index.fences import Fence
from memprov.core.text import SessionMatcher
from memprov.core.writing import Message

S1, S2 = (SessionRecord("main", name, f"agent:main:telegram:{name}") for name in ("s1", "s2"))


def owner(text: str, number: int = 1) -> Message:
    return Message("user", text, number, number * 10, sender_is_owner=True)


def note(path: str = "memory/a.md", text: str = "alpha\n", recorded: OriginClass | None = None) -> SourceText:
    source = memory_text(path, text, mtime_ms=7, recorded=recorded)
    assert source is not None
    return source


def known(source: SourceText, **changes: object) -> IndexedSource:
    """What the index holds of a source that it is up to date with."""
    classes = frozenset([source.provenance.origin_class])
    row = IndexedSource(source.path, source.source, source.hash, 1, {FULL_TEXT_ONLY}, classes)
    return evolve(row, **changes)  # type: ignore[arg-type]


def planned(state: IndexState, *sources: SourceText, read: tuple[str, ...] = ()) -> list[str]:
    plan = plan_index(state, sources, model=FULL_TEXT_ONLY, read_sessions=read)
    return [
        f"drop {effect.path}" if isinstance(effect, DropSource) else f"put {effect.fence.path}"
        for effect in plan.effects
        if not isinstance(effect, ReplaceIndex)
    ]


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({}, False),
        ({"hash": "other"}, True),
        ({"chunks": 0}, True),
        ({"models": frozenset({"m", FULL_TEXT_ONLY})}, True),
        ({"classes": frozenset({OriginClass.UNTRUSTED})}, True),
    ],
)
def test_a_source_is_published_again_when_anything_about_it_differs(changes: dict[str, object], stale: bool) -> None:
    state = IndexState("main", indexed=(known(note(), **changes),))
    assert planned(state, note()) == ["put memory/a.md"] * stale


def test_what_the_index_may_not_hold_is_dropped_with_the_reason() -> None:
    cron = SessionRecord("main", "c1", "agent:main:cron:tidy:run:c1", kind="cron")
    paths = [session_path("main", name) for name in ("s1", "s2", "c1", "unknown", "gone")]
    indexed = tuple(IndexedSource(path or "", "sessions", "h", 1) for path in paths)
    gone = IndexedSource("memory/old.md", "memory", "h", 1)
    state = IndexState("main", 3, {"s1"}, (S1, S2, cron, evolve(S2, session_id="gone")), (*indexed, gone))
    plan = plan_index(state, [], model="m", read_sessions=["gone"])
    assert {(drop.path, drop.change) for drop in plan.dropped} == {
        ("sessions/main/s1.jsonl", Change.FORGOTTEN),
        ("sessions/main/c1.jsonl", Change.EXCLUDED),
        ("sessions/main/unknown.jsonl", Change.GONE),
        ("sessions/main/gone.jsonl", Change.GONE),
        ("memory/old.md", Change.GONE),
    }
    assert [decision.reason for decision in plan.excluded] == ["forgotten", "internal:cron"]


def test_a_forgotten_session_that_was_read_all_the_same_is_not_published() -> None:
    source = session_text(S1, [owner("hello")])
    assert source is not None
    row = IndexedSource(source.path, "sessions", "old", 1)
    state = IndexState("main", 3, {"s1"}, (S1,), (row,))
    assert planned(state, source) == ["drop sessions/main/s1.jsonl"]
    plan = plan_rebuild(evolve(state, tombstones=frozenset()), [source, note()], model="m")
    assert [published.fence.path for published in plan.publications] == ["memory/a.md", "sessions/main/s1.jsonl"]
    plan = plan_rebuild(state, [source, note()], model="m")
    assert [published.fence.path for published in plan.publications] == ["memory/a.md"]


def test_case_D7_a_chunk_over_lines_of_two_classes_is_of_the_weaker_and_of_the_latest_time() -> None:
    source = session_text(S1, [owner("hello to you all", 1), Message("user", "a stranger came by", 3, 30)])
    assert source is not None
    ((piece, provenance),) = source.pieces(None)
    assert (provenance.origin_class, provenance.session_kind) == (OriginClass.UNTRUSTED, SessionKind.INTERACTIVE)
    assert (provenance.observed_at_ms, piece.start_line, piece.end_line) == (30, 1, 3)
    apart = list(source.pieces(ChunkBudget(8, 0)))
    assert [provenance.origin_class for _, provenance in apart] == ["owner", "untrusted"]


@pytest.mark.parametrize("path", ["DREAMS.md", "memory/dreaming/x.md"])
def test_case_D10_what_dreaming_wrote_is_system(path: str) -> None:
    assert note(path).provenance.origin_class is OriginClass.SYSTEM
    assert note(path, recorded=OriginClass.AGENT).provenance.origin_class is OriginClass.SYSTEM


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("memory/.dreams/session-corpus/2026-01-02.txt", True),
        ("memory/.Dreams/x.md", True),
        ("MEMORY/.DREAMS/x.md", True),
        ("memory/dreams/x.md", False),
        ("memory/.dreams.md", False),
        ("memory/sub/.dreams/x.md", False),
    ],
)
def test_report_B16_own_artifacts_are_told_by_their_path(path: str, own: bool) -> None:
    assert is_own_artifact(path) is own
    assert (memory_text(path, "x") is None) is own


def test_transcripts_that_are_no_conversation_are_no_sources() -> None:
    assert session_text(S1, []) is None
    assert session_text(S1, [Message("user", "x", 1, 1, generated_by="narrative")]) is None
    assert session_text(S1, [Message("user", "x", 1, 1, provenance_kind="internal_system")]) is None


def test_the_kind_of_a_session_is_part_of_what_is_indexed() -> None:
    one, other = session_text(S1, [owner("x")]), session_text(evolve(S1, kind=SessionKind.SUBAGENT), [owner("x")])
    assert one is not None
    assert other is not None
    assert one.hash != other.hash


@given(st.text(min_size=1))
def test_I12_the_path_of_a_session_is_found_by_its_own_id_and_by_no_other(session_id: str) -> None:
    path = session_path("main", session_id)
    if path is not None:
        assert SessionMatcher("main", [session_id]).owns_path(path)
        assert not SessionMatcher("main", [session_id + "x", "x" + session_id, session_id[:-1]]).owns_path(path)


def test_a_session_that_a_purge_would_not_find_is_not_indexed() -> None:
    state = IndexState("main", sessions=(SessionRecord("main", "a\0b"), SessionRecord("main", "a\nb"), S1))
    admitted, excluded = indexable_sessions(state)
    assert admitted == (S1,)
    assert {decision.reason for decision in excluded} == {"unattributable"}


def test_equal_pieces_of_one_line_are_one_chunk() -> None:
    plan = plan_index(IndexState("main"), [note(text="ab" * 64 + "\n")], model="m", budget=ChunkBudget(8, 0))
    (published,) = plan.publications
    assert len(published.chunks) == len({chunk.id for chunk in published.chunks}) == 2
    assert published.chunks[0].provenance.origin_class is OriginClass.AGENT


def test_vectors_are_looked_up_by_hash_and_each_fresh_one_is_cached_once() -> None:
    sources = [note("memory/a.md", "same\n"), note("memory/b.md", "same\n"), note("memory/c.md", "old\n")]
    plan = plan_index(IndexState("main", indexed=(IndexedSource("x.md", "memory", "h", 1),)), sources, model="m")
    wanted = missing_texts(plan)
    assert list(wanted.values()) == ["same\n", "old\n"]
    same, old = wanted
    filled = embedded(plan, EmbedderIdentity("p", "m"), {same: b"1", old: b"2"}, {same})
    assert [[chunk.embedding for chunk in source.chunks] for source in filled.publications] == [[b"1"], [b"1"], [b"2"]]
    assert [[row.hash for row in source.cache] for source in filled.publications] == [[same], [], []]
    assert isinstance(filled.effects[0], DropSource)
    anew = plan_rebuild(IndexState("main"), sources, model="m")
    assert len(embedded(anew, EmbedderIdentity("p", "m"), {same: b"1", old: b"2"}, set()).publications) == 3
    assert all(isinstance(effect, PublishSource) for effect in filled.effects[1:])


def test_I15_dropping_a_source_drops_its_chunks_and_is_nothing_twice() -> None:
    snapshot = MemorySnapshot(
        StoreIdentity("t", "main", "/s", "/w"),
        chunks=ChunkTable.from_rows([Chunk("1", "a.md"), Chunk("2", "b.md"), Chunk("3", "c.md")]),
        sources=(IndexSource("a.md"), IndexSource("b.md")),
    )
    dropped = DropSource("a.md", "memory").applied_to(snapshot)
    assert (dropped.chunks.ids, dropped.sources, dropped.revision) == (("2", "3"), (IndexSource("b.md"),), 1)
    assert DropSource("a.md", "memory").applied_to(dropped) is dropped
    assert DropSource("c.md", "memory").applied_to(dropped).chunks.ids == ("2",)


# --- fences -----------------------------------------------------------------------------------------------------------

FILE = Fence("memory/a.md", "memory", "new", "old", origin_class=OriginClass.AGENT)
SESSION = Fence("sessions/main/s1.jsonl", "sessions", "new", "old", "s1")
OPEN = Present(frozenset(), {"s1": S1}, "old", "new", OriginClass.AGENT)


@pytest.mark.parametrize(
    ("fence", "now", "change", "queued"),
    [
        (FILE, OPEN, None, None),
        (FILE, evolve(OPEN, indexed="anything"), None, None),
        (FILE, evolve(OPEN, file_hash="other"), Change.SOURCE, True),
        (FILE, evolve(OPEN, file_class=OriginClass.UNTRUSTED), Change.SOURCE, True),
        (FILE, evolve(OPEN, file_hash=None), Change.GONE, False),
        (SESSION, OPEN, None, None),
        (SESSION, evolve(OPEN, indexed="new"), None, None),
        (SESSION, evolve(OPEN, indexed="newer"), Change.OVERTAKEN, True),
        (SESSION, evolve(OPEN, indexed=None), Change.OVERTAKEN, True),
        (SESSION, evolve(OPEN, tombstones=frozenset({"s1"})), Change.FORGOTTEN, False),
        (SESSION, evolve(OPEN, tombstones=frozenset({"s1"}), sessions={}, indexed="x"), Change.FORGOTTEN, False),
        (SESSION, evolve(OPEN, sessions={}), Change.GONE, False),
        (SESSION, evolve(OPEN, sessions={"s1": evolve(S1, kind=SessionKind.CRON)}), Change.EXCLUDED, False),
    ],
)
def test_I6_a_fence_says_what_changed_and_whether_to_try_again(
    fence: Fence, now: Present, change: Change | None, queued: bool | None
) -> None:
    refusal = check_source(fence, now)
    if change is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.change, refusal.queued) == (change, queued)
        assert refusal.path == fence.path
        assert change in str(refusal)


def test_case_G17_a_generation_of_another_revision_is_refused() -> None:
    assert check_generation(3, 3) is None
    assert check_generation(3, 4) is Change.REVISION
    assert str(Refusal("a", "memory", Change.SOURCE, queued=False)) == "a: source changed; not queued again"
