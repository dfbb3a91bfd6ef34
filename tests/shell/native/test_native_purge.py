"""The purge on the embedded store: order, crashes at every effect, siblings, scale, and reports from the field."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from attrs import define, evolve

from memprov import (
    Chunk,
    ChunkTable,
    Identity,
    IndexSource,
    MemoryFile,
    MemorySnapshot,
    Origin,
    OriginTable,
    Preimage,
    RecallEntry,
    RewindBatch,
    Selection,
    Selectors,
    SessionRecord,
    StoreIdentity,
    apply_plan,
    forget,
    preview,
)
from memprov.core.lineage import Basis, TransferEdge, lineage_digest
from memprov.core.purge import (
    CutFile,
    DropOrigins,
    DropRecall,
    DropSignals,
    Mapper,
    PurgeIndex,
    RecordTombstones,
    promotion_keys,
    rewind_key,
)
from memprov.core.purge import (
    PurgeEffect as Effect,
)
from memprov.core.state import StagedEntry
from memprov.core.text import json_text, promotion_marker
from memprov.core.writing import RecordOrigins, StageEntries
from memprov.errors import LockHeldError, PartialError, SelectorError, StalePlanError
from memprov.shell.native import NativeStore, NativeWriter, open_store
from memprov.shell.port import Answering, Neighbours
from memprov.shell.remembering import Remembered
from memprov.shell.statements import transaction
from memprov.testing import synthetic_sessions, synthetic_snapshot
from tests.core.worlds import corpus_line
from tests.shell.native.loading import (
    canonical,
    copied,
    fresh_store,
    hasty,
    rows,
    tables,
    unhurried,
    write_snapshot,
)

SESSIONS = synthetic_sessions(3)
SNAPSHOT = synthetic_snapshot(3, 2, vectors=True)
CHOSEN = next(s.session_id for s in SESSIONS if s.session_id in SNAPSHOT.origins.sessions)
SELECTORS = Selectors(sessions=[CHOSEN])


class SimulatedError(Exception):
    """Raised by a test at an effect."""


Hook = Callable[[int, str, Effect], None]


@define
class Watched:
    """A store whose effects are announced to a hook, before and after each; it may raise."""

    inner: NativeStore
    hook: Hook

    @property
    def identity(self) -> StoreIdentity:
        return self.inner.identity

    def catalogue(self) -> tuple[SessionRecord, ...]:
        return self.inner.catalogue()

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:
        return self.inner.named_origins(names)

    def began(self, session_ids: Collection[str]) -> dict[str, int]:
        return self.inner.began(session_ids)

    def neighbours(self) -> Neighbours:
        return self.inner.neighbours()

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        return self.inner.snapshot(selection)

    def sessions_standing(self) -> object | None:
        return self.inner.sessions_standing()

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        return self.inner.answering(selection, mapper, remembered)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[WatchedWriter]:
        with self.inner.exclusive(break_lock=break_lock) as writer:
            yield WatchedWriter(writer, self.hook)


@define
class WatchedWriter:
    inner: NativeWriter
    hook: Hook
    number: int = -1

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        return self.inner.snapshot(selection)

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        return self.inner.answering(selection, mapper, remembered)

    def admit(self, effects: tuple[Effect, ...]) -> None:
        self.inner.admit(effects)

    def apply(self, effect: Effect, basis: Basis) -> bool:
        self.number += 1
        self.hook(self.number, "before", effect)
        done = self.inner.apply(effect, basis)
        self.hook(self.number, "after", effect)
        return done


@pytest.fixture
def store(tmp_path: Path) -> NativeStore:
    store = fresh_store(tmp_path / "store")
    write_snapshot(store, SNAPSHOT, SESSIONS)
    return store


def everything(store: NativeStore) -> tuple[object, ...]:
    """What is in the store, but for where it is and for times."""
    snapshot = evolve(canonical(store.snapshot()), store=SNAPSHOT.store)
    files = {
        str(path.relative_to(store._layout.workspace)): (path.read_bytes(), path.stat().st_mode)
        for path in Path(store._layout.workspace).rglob("*")
        if path.is_file()
    }
    counts = {
        (file.schema.title, name): len(rows(file, name))
        for file in (store._layout.ledger, store._layout.shared)
        for name in tables(file)
        if name not in ("receipts", "meta")  # each run testifies to itself, and a watched store to none
    }
    return snapshot, files, counts


# --- I4, I5 ---


def test_I4_I5_the_effects_come_in_the_order_of_the_design(store: NativeStore) -> None:
    effects = preview(store, SELECTORS).effects
    assert [effect.step for effect in effects] == sorted(effect.step for effect in effects)
    kinds = [type(effect) for effect in effects]
    assert kinds[:2] == [RecordTombstones, PurgeIndex]
    assert kinds[-1] is DropOrigins
    assert {DropRecall, CutFile} <= set(kinds)


def test_I4_at_every_moment_the_exclusion_is_durable_before_anything_is_gone(
    store: NativeStore, tmp_path: Path
) -> None:
    before = canonical(store.snapshot())
    unexcluded: list[tuple[int, str]] = []

    def look(number: int, when: str, effect: Effect) -> None:
        left = canonical(copied(store, tmp_path / f"{number}-{when}").snapshot())  # what a power cut would leave
        if CHOSEN not in left.tombstones:
            unexcluded.append((number, when))
            assert evolve(left, store=before.store) == before
        visible = {*(row.key for row in left.recall), *(k for f in left.files for k in promotion_keys(f.text))}
        assert visible & before.origins.keys <= left.origins.keys  # no text without its origins

    forget(Watched(store, look), SELECTORS)
    assert unexcluded == [(0, "before")]


def test_I5_from_what_any_crash_leaves_on_disk_a_rerun_ends_as_if_there_had_been_none(
    store: NativeStore, tmp_path: Path
) -> None:
    plan = preview(store, SELECTORS)
    crashed: list[NativeStore] = []

    def crash(number: int, when: str, effect: Effect) -> None:
        crashed.append(copied(store, tmp_path / f"{number}-{when}"))

    forget(Watched(store, crash), SELECTORS)
    expected = everything(store)
    assert len(crashed) == 2 * len(plan.effects)
    for number, left in enumerate(crashed):
        report = forget(left, SELECTORS)
        assert everything(left) == expected, number
        assert report.session_ids == (CHOSEN,)
        assert preview(left, SELECTORS).removes_nothing


@pytest.mark.parametrize("when", ["before", "after"])
def test_I5_from_any_effect_that_raises_a_reviewed_plan_can_be_resumed(
    store: NativeStore, tmp_path: Path, when: str
) -> None:
    total = len(preview(store, SELECTORS).effects)
    copies = [copied(store, tmp_path / str(number)) for number in range(total)]
    forget(store, SELECTORS)
    expected = everything(store)
    for at, copy in enumerate(copies):
        plan = preview(copy, SELECTORS)

        def fail(number: int, moment: str, effect: Effect, at: int = at) -> None:
            if (number, moment) == (at, when):
                raise SimulatedError

        with pytest.raises(SimulatedError):
            forget(Watched(copy, fail), SELECTORS)
        apply_plan(copy, plan)
        assert everything(copy) == expected, at


_DIE = """
import os, sys
sys.path.insert(0, {root!r})
from memprov import Selectors, forget
from tests.shell.native.test_native_purge import Watched, hasty, open_store
store = hasty(open_store(sys.argv[1]))
def die(number, when, effect):
    if (number, when) == (int(sys.argv[3]), "after"):
        os._exit(9)
forget(Watched(store, die), Selectors(sessions=[sys.argv[2]]))
"""


def test_I5_D19_a_process_that_dies_inside_leaves_no_lock_behind(store: NativeStore, tmp_path: Path) -> None:
    copy = copied(store, tmp_path / "copy")
    forget(store, SELECTORS)
    script = _DIE.format(root=str(Path(__file__).parents[3]))
    died = subprocess.run([sys.executable, "-c", script, copy._layout.directory, CHOSEN, "4"], check=False)
    assert died.returncode == 9
    assert Path(copy._layout.lock).read_text()  # it did not come to tidy up
    slept = len(copy._sleep.__self__.slept)  # type: ignore[attr-defined]
    forget(copy, SELECTORS)
    assert len(copy._sleep.__self__.slept) - slept < 20  # type: ignore[attr-defined]  # no waiting for the lock
    assert everything(copy) == everything(store)


# --- siblings ---


def shared_by_two(tmp_path: Path) -> tuple[NativeStore, NativeStore]:
    """A and B share MEMORY.md, with an entry of each; both have indexed it and know its origins."""
    text = f"{promotion_marker('k1')}\n- User: tea at seven\n{promotion_marker('k2')}\n- User: coffee at nine\n"
    stores = []
    for agent in ("a", "b"):
        store = fresh_store(tmp_path / "store", agent)
        snapshot = MemorySnapshot(
            store.identity,
            files=(MemoryFile("MEMORY.md", text),),
            origins=OriginTable.from_rows([Origin("k1", agent, "s1"), Origin("k2", agent, "s2")]),
            recall=(RecallEntry("k1", "memory/x.md", "tea"), RecallEntry("k2", "memory/x.md", "coffee"))[
                : agent == "a" and 2
            ],
            chunks=ChunkTable.from_rows([Chunk("c1", "MEMORY.md", text=text)]),
            sources=(IndexSource("MEMORY.md"),),
            cache_rows=2,
        )
        write_snapshot(store, snapshot)
        stores.append(store)
    return stores[0], stores[1]


def test_I11_B06_one_agents_purge_leaves_anothers_rows_and_does_not_hide_them(tmp_path: Path) -> None:
    a, b = shared_by_two(tmp_path)
    ledger = {name: rows(b._layout.ledger, name) for name in tables(b._layout.ledger)}
    assert preview(a, Selectors(sessions=["s1"])).report.artifacts.memory_files == 1
    forget(a, Selectors(sessions=["s1"]))
    assert {name: rows(b._layout.ledger, name) for name in tables(b._layout.ledger)} == ledger
    assert "tea" not in (tmp_path / "store" / "workspace" / "MEMORY.md").read_text()
    plan = preview(b, Selectors(sessions=["s1"]))
    artifacts = plan.report.artifacts
    assert (artifacts.memory_files, artifacts.index_chunks, artifacts.origin_rows) == (0, 1, 1)
    forget(b, Selectors(sessions=["s1"]))
    assert not b.snapshot().chunks.ids
    assert b.snapshot().origins.keys == {"k2"}


def test_what_belongs_to_the_workspace_goes_whichever_agent_forgets(tmp_path: Path) -> None:
    a, b = shared_by_two(tmp_path)
    assert {row.key for row in b.snapshot().recall} == {"k1", "k2"}
    forget(b, Selectors(sessions=["s1"]))
    assert {row.key for row in a.snapshot().recall} == {"k2"}


def test_D12_agents_of_one_workspace_share_its_lock(tmp_path: Path) -> None:
    a, b = shared_by_two(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    c = hasty(open_store(tmp_path / "store" / "state", "c", tmp_path / "elsewhere"))
    with a.exclusive():
        with pytest.raises(LockHeldError), b.exclusive():
            pass
        with c.exclusive():
            pass


# --- scale ---


def test_D11_B80_three_hundred_thousand_ids_in_one_transaction_each(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    ids = tuple(f"s{number:06}" for number in range(300_001))
    with unhurried(store) as writer, transaction(writer._ledger):
        many = writer._ledger.executemany
        many("INSERT INTO origins VALUES (?, ?, NULL, 'agent', 0)", ((f"k{name}", name) for name in ids[::30]))
        many("INSERT INTO origins VALUES (?, 'other', NULL, 'agent', 0)", [("kept",)])
        add_chunks(writer._ledger, dict.fromkeys(ids[::100], ""))
    keys = tuple(f"k{name}" for name in ids[::30])
    with unhurried(store) as writer:
        basis = writer.snapshot().origins.basis(ids, keys)
        assert writer.apply(RecordTombstones("main", ids), basis)
        assert writer.apply(PurgeIndex(ids, ()), basis)
        assert writer.apply(DropRecall(ids), basis)
        assert writer.apply(DropOrigins("main", keys), basis)
        assert not writer.apply(RecordTombstones("main", ids), basis)  # the basis went with the origins
    assert store.forgotten([*ids, "other"]) == frozenset(ids)
    after = store.snapshot()
    assert (len(after.tombstones), set(after.origins.keys), len(after.chunks)) == (300_001, {"kept"}, 0)


@pytest.mark.parametrize("gone", [1, 40])
def test_few_and_many_chunks_leave_the_full_text_as_if_they_had_never_been_there(tmp_path: Path, gone: int) -> None:
    store = fresh_store(tmp_path / "store")
    texts = {f"c{number:03}": f"common zebra{number:03}q words" for number in range(900)}
    with unhurried(store) as writer:
        add_chunks(writer._ledger, texts)
        writer._ledger.execute(
            "INSERT INTO chunks_text (chunks_text, rowid, text) "
            "SELECT 'delete', chunk_rowid, text FROM chunks WHERE chunk_id = 'c899'"
        )
        dropped = tuple(texts)[100 : 100 + gone]
        before = writer.snapshot().revision
        assert writer.apply(PurgeIndex(dropped, ()), Basis(lineage_digest(()), (), ()))
        revision = writer.snapshot().revision
        assert revision > before  # an index that was being rebuilt cannot be published
        assert writer.apply(PurgeIndex(dropped, ()), Basis(lineage_digest(()), (), ()))
        assert writer.snapshot().revision == revision  # nothing was left to do, and nothing was done
        hits = writer._ledger.execute("SELECT count(*) FROM chunks_text WHERE chunks_text MATCH 'common'")
        assert next(iter(hits)) == (899 - gone,)
        chunks = {chunk.id: chunk.full_text for chunk in writer.snapshot().chunks.rows()}
        assert chunks == {name: name != "c899" for name in texts if name not in dropped}
    raw = Path(store._layout.ledger.path).read_bytes()
    assert not any(texts[name].split()[1].encode() in raw for name in dropped)
    assert texts["c000"].split()[1].encode() in raw


def add_chunks(connection: apsw.Connection, texts: dict[str, str]) -> None:
    connection.executemany(
        "INSERT INTO chunks (chunk_id, path, source, start_line, end_line, hash, model, text, updated_at_ms) "
        "VALUES (?, 'p', 'sessions', 1, 1, 'h', 'm', ?, 0)",
        texts.items(),
    )


# --- reports from the field ---


def test_B10_lineage_that_is_added_while_a_purge_prepares_is_found(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k1", "main", "s1"),)))
    stale = preview(store, Selectors(sessions=["s1"]))
    assert stale.report.entry_keys == ("k1",)

    def add(number: int, when: str, effect: Effect) -> None:
        # Another agent's merge hands on origins without this agent's lock being free: a writer that does not ask.
        if when == "before" and isinstance(effect, RecordTombstones | PurgeIndex) and not added:
            added.append("k2")
            with store._layout.ledger.writing() as connection:
                connection.execute("INSERT INTO origins VALUES ('k2', 's1', NULL, 'agent', 0)")
                connection.execute("INSERT INTO origins VALUES ('k2', 's9', NULL, 'agent', 0)")

    added: list[str] = []
    report = forget(Watched(store, add), Selectors(sessions=["s1"]))
    assert (report.entry_keys, report.mixed_lineage_entry_keys) == (("k1", "k2"), ("k2",))
    assert not store.snapshot().origins.keys
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k3", "main", "s1"),)))
    with pytest.raises(StalePlanError):
        apply_plan(store, stale)


def test_B12_a_key_that_is_made_again_starts_fresh(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    origins = OriginTable.from_rows([Origin("k1", "main", "s1"), Origin("k2", "main", "s2")])
    recall = (RecallEntry("k1", "memory/x.md", "tea"), RecallEntry("k2", "memory/x.md", "coffee"))
    write_snapshot(store, evolve(MemorySnapshot(store.identity), origins=origins, recall=recall, signals=("k1", "k2")))
    signals = rows(store._layout.shared, "signals")
    plan = preview(store, Selectors(sessions=["s1"]))
    names = [type(effect) for effect in plan.effects]
    assert names.index(DropSignals) < names.index(DropRecall)
    forget(store, Selectors(sessions=["s1"]))
    assert rows(store._layout.shared, "signals") == [row for row in signals if row[0] == "k2"]
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k1", "main", "s2"),)))
        writer.write(StageEntries((StagedEntry("k1", "memory/x.md", 1, 1, "tea", daily_count=1),)))
    fresh = next(entry for entry in store.ingest_state().entries if entry.key == "k1")
    assert (fresh.daily_count, set(store.ingest_state().signals)) == (1, {"k2"})


@pytest.mark.parametrize("table", ["sources", "embedding_cache", "vectors", "chunk_provenance"])
def test_B36_deletes_over_several_tables_are_one(store: NativeStore, table: str) -> None:
    with store._layout.ledger.writing() as connection:
        connection.execute(f"CREATE TRIGGER fails BEFORE DELETE ON {table} BEGIN SELECT raise(ABORT, 'no space'); END")
    before = {name: rows(store._layout.ledger, name) for name in tables(store._layout.ledger)}
    assert before[table]
    with unhurried(store) as writer:
        sources = tuple((s.path, s.source) for s in writer.snapshot().sources)
        effect = PurgeIndex(tuple(SNAPSHOT.chunks.ids), sources)
        with pytest.raises(PartialError, match="no space"):
            writer.apply(effect, Basis(lineage_digest(()), (), ()))
    assert {name: rows(store._layout.ledger, name) for name in tables(store._layout.ledger)} == before
    with store._layout.ledger.writing() as connection:
        connection.execute("DROP TRIGGER fails")
    with unhurried(store) as writer:
        assert writer.apply(effect, Basis(lineage_digest(()), (), ()))
    after = {name: len(rows(store._layout.ledger, name)) for name in tables(store._layout.ledger)}
    assert {after[name] for name in ("chunks", "sources", "embedding_cache", "vectors", "chunk_provenance")} == {0}
    assert not rows(store._layout.ledger, "chunks_text_docsize")


def test_B42_a_selector_that_matches_nothing_removes_nothing_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    ana, bo = fresh_store(tmp_path / "store", "ana"), fresh_store(tmp_path / "store", "bo")
    for store, keys in ((ana, ("m1", "m2")), (bo, ("m3",))):
        agent = store._layout.agent_id
        with unhurried(store) as writer:
            writer.write(RecordOrigins(agent, tuple(Origin(key, agent, f"{agent}-1") for key in keys)))
    forget(ana, Selectors(sessions=["ana-1"]))
    assert [set(store.snapshot().origins.keys) for store in (ana, bo)] == [set(), {"m3"}]
    for bad in (Selectors(), Selectors(since="2026-01-01")):
        with pytest.raises(SelectorError):
            forget(bo, bad)
    assert preview(bo, Selectors(sessions=["unknown"])).removes_nothing
    forget(bo, Selectors(sessions=["unknown"]))
    assert bo.snapshot().origins.keys == {"m3"}


def test_B65_forgetting_a_session_empties_every_table_that_its_memory_is_in(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    state, corpus = "main:sessions/main/s1", "memory/.dreams/session-corpus/2026-11-25.txt"
    sentence = "The kiln runs at nine hundred degrees."
    keys = [f"k{number}" for number in range(10)]
    text = "".join(f"{promotion_marker(key)}\n- {sentence}\n" for key in keys)
    candidate = json_text({"scope": state})
    snapshot = MemorySnapshot(
        store.identity,
        files=(MemoryFile("MEMORY.md", text),),
        corpus=(MemoryFile(corpus, corpus_line("s1", sentence)),),
        origins=OriginTable.from_rows(Origin(key, "main", "s1") for key in keys),
        recall=tuple(RecallEntry(key, corpus, f"User: {sentence}") for key in keys),
        signals=tuple(keys),
        checkpoints=(state,),
        seen_scopes=(state,),
        rewinds=(RewindBatch(rewind_key([candidate]), (candidate,)),),
        preimages=(Preimage("p", text),),
        chunks=ChunkTable.from_rows(
            [
                Chunk("m", "MEMORY.md", text=text, vector=True),
                Chunk("s", "sessions/main/s1.jsonl", "sessions", vector=True),
            ]
        ),
        sources=(IndexSource("sessions/main/s1.jsonl", "sessions"),),
        cache_rows=2,
        transfers=(TransferEdge("k1", "k0", "t"), TransferEdge("k0", "gone", "t")),
    )
    write_snapshot(store, snapshot, [SessionRecord("main", "s1", participants=[Identity("profile", "p")])])
    # What is about sessions and not about their memory, and the preimage's key (docs: Purge of an index).
    kept = {
        "meta",
        "sessions",
        "participants",
        "tombstones",
        "index_state",
        "receipts",
        "writes",
        "preimages",
        "transcripts",
    }
    files = (store._layout.ledger, store._layout.shared)
    memory = [(file, name) for file in files for name in tables(file) if name not in kept]
    assert not [name for file, name in memory if not rows(file, name)]  # a new table is to be filled here
    forget(store, Selectors(sessions=["s1"]))
    assert not [name for file, name in memory if rows(file, name)]
    assert [row[2] for row in rows(store._layout.shared, "preimages")] == [""]
    assert not rows(store._layout.ledger, "chunks_text_docsize")


def test_D1_a_line_of_another_session_stays(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    text = corpus_line("s1", "The kiln runs hot at noon.") + corpus_line("s2", "look at sessions/main/s1 now please")
    corpus = (MemoryFile("memory/.dreams/session-corpus/2026-11-25.txt", text),)
    write_snapshot(store, evolve(MemorySnapshot(store.identity), corpus=corpus))
    forget(store, Selectors(sessions=["s1"]))
    assert store.snapshot().corpus[0].text == corpus_line("s2", "look at sessions/main/s1 now please")
