"""The store and the model are one: applying an effect and reading equals applying it to what was read (I15)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov import (
    MemorySnapshot,
    Origin,
    OriginClass,
    RewindBatch,
    Selection,
    SessionRecord,
    apply_to_snapshot,
    forget,
    plan_purge,
    preview,
)
from memprov.core.lineage import Basis, TransferEdge, joined_edges
from memprov.core.purge import (
    DropCheckpoints,
    DropOrigins,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    rewind_key,
)
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.text import digest
from memprov.core.writing import (
    AddSeenHashes,
    AppendCorpus,
    DropSeenHashes,
    MarkPromoted,
    PruneOrigins,
    RecordArtifact,
    RecordOrigins,
    RecordRewind,
    RecordTransfers,
    ReleaseArtifact,
    ReleaseOrigins,
    ReleaseTransfers,
    ReplaceText,
    SetCheckpoints,
    StageEntries,
    StorePreimage,
    TakeRewinds,
    WriteEffect,
)
from memprov.shell.native import NativeStore
from tests.core.worlds import CORPUS, KEYS, SESSIONS, keys, selections, sentences, sessions, snapshots, texts
from tests.shell.native.loading import canonical, fresh_store, scratch, unhurried, write_snapshot

#: Every example makes a store. The long profile still draws a thousand.
FEWER = settings(max_examples=settings().max_examples // 2)

RECORDS = tuple(SessionRecord("main", name, f"agent:main:{name}") for name in SESSIONS)


edges = st.builds(TransferEdge, keys, keys, st.sampled_from(("t1", "t2")), st.sampled_from(("merged", "superseded")))
#: The worlds of the core, and transfers between their entries, orphaned ones included.
worlds = st.builds(
    lambda snapshot, found: evolve(snapshot, transfers=joined_edges(found)), snapshots(), st.lists(edges, max_size=4)
)


@contextmanager
def loaded(snapshot: MemorySnapshot) -> Iterator[tuple[NativeStore, MemorySnapshot]]:
    with scratch() as directory:
        store = fresh_store(directory / "store")
        yield store, write_snapshot(store, snapshot, RECORDS)


@FEWER
@given(worlds)
def test_I15_what_was_written_into_the_store_is_read_back(snapshot: MemorySnapshot) -> None:
    with loaded(snapshot) as (store, written):
        assert canonical(store.snapshot()) == written
        with store.exclusive() as writer:
            assert writer.snapshot() == store.snapshot()


@FEWER
@given(worlds, selections)
def test_I15_every_effect_of_a_purge_does_to_the_store_what_it_does_to_the_model(
    snapshot: MemorySnapshot, selection: Selection
) -> None:
    with loaded(snapshot) as (store, _), unhurried(store) as writer:
        plan = plan_purge(writer.snapshot(), selection)
        for effect in plan.effects:
            before = writer.snapshot()
            assert writer.apply(effect, plan.basis)
            after = writer.snapshot()
            assert canonical(after) == canonical(effect.applied_to(before)), effect
            assert after.revision >= before.revision
            assert writer.apply(effect, plan.basis)
            assert canonical(writer.snapshot()) == canonical(after), effect


@FEWER
@given(worlds, selections)
def test_I15_I1_a_purge_leaves_what_the_model_says_and_a_second_one_finds_nothing(
    snapshot: MemorySnapshot, selection: Selection
) -> None:
    with loaded(snapshot) as (store, _):
        plan = preview(store, selection.selectors)
        before = store.snapshot()
        report = forget(store, selection.selectors)
        assert evolve(report, dry_run=True) == plan.report
        assert canonical(store.snapshot()) == canonical(apply_to_snapshot(before, plan))
        assert preview(store, selection.selectors).removes_nothing


entries = st.builds(
    StagedEntry,
    keys,
    st.just(CORPUS),
    st.integers(1, 9),
    st.integers(1, 9),
    sentences,
    daily_count=st.integers(0, 3),
    total_score=st.floats(0, 9),
    last_recalled_at_ms=st.none() | st.integers(0, 2**40),
)
origins = st.builds(
    Origin,
    keys,
    st.just("main"),
    sessions,
    st.none() | sessions.map(lambda name: f"agent:main:{name}"),
    st.sampled_from(OriginClass),
    st.integers(0, 99),
)
hashes = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4)
scopes = sessions.map(lambda name: f"main:sessions/main/{name}")
some_keys = st.lists(keys, max_size=3, unique=True).map(tuple)
batches = st.lists(sentences, min_size=1, max_size=3).map(lambda c: RewindBatch(rewind_key(c), tuple(c)))


@st.composite
def write_effects(draw: st.DrawFn, snapshot: MemorySnapshot) -> WriteEffect:  # noqa: C901, PLR0912  # a table
    """Any effect of the write path that a planner could have made from this snapshot."""
    files = {file.path: file.text for file in (*snapshot.files, *snapshot.corpus)}
    new_file = draw(st.booleans())
    match draw(st.integers(0, 20)):
        case 0:
            return RecordOrigins("main", tuple(draw(st.lists(origins, max_size=4))))
        case 1:
            return ReleaseOrigins("main", tuple(draw(st.lists(st.tuples(keys, sessions), max_size=3))))
        case 2:
            path = "memory/.dreams/session-corpus/2026-12-01.txt" if new_file else CORPUS
            lines = tuple(f"[main/sessions/main/{draw(sessions)}#L1] User: {draw(sentences)}" for _ in range(2))
            return AppendCorpus(path, digest(files[path]) if path in files else None, lines)
        case 3:
            path = "memory/2026-12-01.md" if new_file else "MEMORY.md"
            return ReplaceText(path, digest(files[path]) if path in files else None, draw(texts))
        case 4:
            return StageEntries(tuple(draw(st.lists(entries, max_size=3, unique_by=lambda e: e.key))), draw(some_keys))
        case 5:
            return MarkPromoted(draw(some_keys))
        case 6:
            return SetCheckpoints((Checkpoint(draw(scopes), 1, 2, "h", 3, 4, draw(st.none() | st.just("forgotten"))),))
        case 7:
            return AddSeenHashes(draw(scopes), draw(hashes))
        case 8:
            scope = draw(scopes)
            return DropSeenHashes(scope, ("h", *draw(hashes)), emptied=True)
        case 9:
            return RecordRewind(draw(batches))
        case 10:
            return TakeRewinds(
                tuple(batch.key for batch in (*snapshot.rewinds, draw(batches)))[draw(st.integers(0, 1)) :]
            )
        case 11:
            return StorePreimage(draw(texts), draw(st.integers(1, 3)))
        case 12:
            return RecordArtifact("MEMORY.md", OriginClass.AGENT, digest("x"), draw(sessions))
        case 13:
            return DropOrigins("main", draw(some_keys))
        case 14:
            return DropRecall(draw(some_keys))
        case 15:
            return DropSignals(draw(some_keys))
        case 16:
            return RecordTransfers("main", tuple(draw(st.lists(edges, max_size=3))))
        case 17:
            return ReleaseTransfers("main", (draw(st.sampled_from(("t1", "t2"))),))
        case 18:
            return PruneOrigins("main", draw(some_keys))
        case 19:
            return DropCheckpoints((draw(scopes),))
        case _:
            return DropSeenScopes((draw(scopes),))


def without_stamps(snapshot: MemorySnapshot) -> MemorySnapshot:
    """What the model of the write path knows: no times, no keys that are times, a file's last writer only."""
    latest = {write.path: write for write in snapshot.ledger_writes}
    return evolve(
        canonical(snapshot),
        preimages=tuple(evolve(p, key=digest(p.content)[:12]) for p in snapshot.preimages),
        ledger_writes=tuple(evolve(w, observed_at_ms=0) for _, w in sorted(latest.items())),
    )


@FEWER
@given(worlds, st.data())
def test_I15_every_effect_of_the_write_path_does_to_the_store_what_it_does_to_the_model(
    snapshot: MemorySnapshot, data: st.DataObject
) -> None:
    with loaded(snapshot) as (store, _), unhurried(store) as writer:
        for _ in range(data.draw(st.integers(1, 4))):
            before = writer.snapshot()
            effect = data.draw(write_effects(before))
            writer.write(effect)
            after = writer.snapshot()
            assert without_stamps(after) == without_stamps(effect.applied_to(before)), effect
            writer.write(effect)
            assert without_stamps(writer.snapshot()) == without_stamps(after), effect


def test_I15_an_artifact_record_is_taken_back_only_while_it_is_the_files_own(tmp_path: Path) -> None:
    with unhurried(fresh_store(tmp_path / "store")) as writer:
        first = RecordArtifact("USER.md", OriginClass.AGENT, digest("1"), "s1")
        second = RecordArtifact("USER.md", OriginClass.AGENT, digest("2"), "s2")
        writer.write(first)
        writer.write(second)
        writer.write(ReleaseArtifact("USER.md", digest("1")))
        assert [w.session_id for w in writer.snapshot().ledger_writes] == ["s1", "s2"]
        writer.write(ReleaseArtifact("USER.md", digest("2")))
        assert [w.session_id for w in writer.snapshot().ledger_writes] == ["s1"]


def test_I15_the_basis_is_compared_inside_the_transaction(tmp_path: Path) -> None:
    with unhurried(fresh_store(tmp_path / "store")) as writer:
        writer.write(RecordOrigins("main", (Origin(KEYS[0], "main", "s1"),)))
        plan = plan_purge(writer.snapshot(), _selection())
        writer.write(RecordOrigins("main", (Origin(KEYS[1], "main", "s1"),)))
        before = writer.snapshot()
        for effect in plan.effects[:2]:
            assert not writer.apply(effect, plan.basis)
            assert writer.apply(effect, before.origins.basis(("s1",), KEYS[:2]))
            assert not writer.apply(effect, Basis("", ("s1",), ()))


def _selection() -> Selection:
    from tests.core.worlds import selection  # noqa: PLC0415

    return selection("s1")
