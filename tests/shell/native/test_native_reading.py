"""Reading an embedded store beside writers: committed data, no trace, and nothing taken for clean that was not read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import (
    Chunk,
    ChunkTable,
    CorruptStoreError,
    MemoryFile,
    MemorySnapshot,
    Origin,
    Preimage,
    RecallEntry,
    Selectors,
    StaleStateError,
    StoreIdentity,
    preview,
)
from memprov.core.lineage import Basis, lineage_digest
from memprov.core.purge import RecordTombstones
from memprov.core.records import Provenance
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.writing import AddSeenHashes, AppendCorpus, RecordOrigins, ReplaceText, SetCheckpoints, StageEntries
from memprov.shell.native import NativeStore, open_store
from tests.shell.native.loading import NOW, canonical, fresh_store, hasty, unhurried, write_snapshot

EMPTY = MemorySnapshot(StoreIdentity("model", "main", "", ""))


def fingerprint(root: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted((root, *root.rglob("*"))):
        info = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (info.st_ino, info.st_size, info.st_mode, info.st_mtime_ns, content)
    return found


def origin(key: str, session: str = "s1") -> RecordOrigins:
    return RecordOrigins("main", (Origin(key, "main", session),))


@pytest.mark.parametrize("part", ["ledger", "shared"])
def test_I3_beside_a_log_with_frames_committed_data_is_read_and_nothing_changes(tmp_path: Path, part: str) -> None:
    store = fresh_store(tmp_path / "store")
    with unhurried(store) as writer:
        writer.write(origin("committed"))
        writer.write(AddSeenHashes("scope", ("a",)))
        connection = getattr(writer, f"_{part}")
        connection.execute("BEGIN IMMEDIATE")
        list(connection.execute("PRAGMA cache_size = 1"))  # what is not committed is in the log as well
        if part == "ledger":
            values = ((f"open{n:05}", "s", "x" * 500) for n in range(500))
            connection.executemany("INSERT INTO origins VALUES (?, ?, ?, 'agent', 0)", values)
        else:
            connection.executemany(
                "INSERT INTO seen_scopes (scope) VALUES (?)", (("y" * 500 + str(n),) for n in range(500))
            )
        before = fingerprint(tmp_path)
        assert f"{getattr(store._layout, part).path}-wal" in before
        snapshot = store.snapshot()
        assert (set(snapshot.origins.keys), snapshot.seen_scopes) == ({"committed"}, ("scope",))
        assert preview(store, Selectors(sessions=["s1"])).report.entry_keys == ("committed",)
        assert fingerprint(tmp_path) == before
        connection.execute("ROLLBACK")


def test_I3_a_log_that_a_dead_process_left_is_read_and_left(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    with unhurried(store) as writer:
        writer.write(origin("k"))
        raw = {path: path.read_bytes() for path in Path(store._layout.directory).rglob("ledger.sqlite*")}
    for path, content in raw.items():
        if not path.name.endswith("-shm"):
            path.write_bytes(content)
    before = fingerprint(tmp_path)
    reopened = hasty(open_store(tmp_path / "store" / "state"))
    assert reopened.snapshot().origins.keys == {"k"}
    assert fingerprint(tmp_path) == before
    assert any(name.endswith("-wal") for name in before)


def test_a_reader_never_keeps_a_writer_waiting(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        other = hasty(open_store(tmp_path / "store" / "state"))
        while not stop.is_set():
            try:
                snapshot = other.snapshot()
                assert len(snapshot.origins) % 2 == 0  # a transaction is seen whole or not at all
            except StaleStateError:
                pass  # it never held still; nothing was made up
            except BaseException as error:  # noqa: BLE001
                failures.append(error)
                return

    thread = threading.Thread(target=read)
    thread.start()
    try:
        with unhurried(store) as writer:
            for number in range(60):
                pair = tuple(Origin(f"k{number}.{half}", "main", "s") for half in range(2))
                writer.write(RecordOrigins("main", pair))
    finally:
        stop.set()
        thread.join()
    assert not failures
    assert len(store.snapshot().origins) == 120


def test_texts_that_are_not_unicode_come_back_as_they_were(tmp_path: Path) -> None:
    odd = "caf\udce9 \0 \ud7ff end\r\n"
    path = "memory/caf\udce9.md"
    store = fresh_store(tmp_path / "store")
    snapshot = evolve(
        EMPTY,
        files=(MemoryFile(path, odd),),
        recall=(RecallEntry("k", path, odd),),
        preimages=(Preimage("p", odd),),
        chunks=ChunkTable.from_rows([Chunk("c", path, text=odd)]),
    )
    assert canonical(store.snapshot()) != write_snapshot(store, snapshot)
    read = store.snapshot()
    assert (read.recall[0].snippet, read.recall[0].path) == (odd, path)
    assert (read.preimages[0].content, read.chunks.texts) == (odd, (odd,))
    with unhurried(store) as writer:
        writer.write(StageEntries((StagedEntry("k2", path, 1, 2, odd),)))
        writer.write(ReplaceText("memory/x.md", None, odd))
    assert {row.snippet for row in store.snapshot().recall} == {odd}


def test_a_row_that_no_writer_could_have_made_is_damage(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    connection = apsw.Connection(store._layout.ledger.path)
    list(connection.execute("PRAGMA ignore_check_constraints = ON"))
    connection.execute("INSERT INTO origins VALUES ('k', 's', NULL, 'saint', 0)")
    connection.close()
    with pytest.raises(CorruptStoreError, match="saint"):
        store.snapshot()


# --- what ingestion reads ---


def test_the_state_for_ingestion_is_what_was_kept(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    entry = StagedEntry(
        "k",
        "memory/.dreams/session-corpus/2026-01-01.txt",
        1,
        2,
        "User: a snippet",
        1,
        2,
        3,
        4.5,
        0.5,
        6,
        None,
        ("q",),
        ("u",),
        ("2026-01-01",),
        ("tag",),
        Provenance("owner", "interactive", 7, "older"),
        "claim",
        "project",
        8,
    )
    checkpoint = Checkpoint("main:sessions/main/s1", 1, 2, "h", 3, 4, "forgotten")
    with unhurried(store) as writer:
        writer.write(StageEntries((entry, StagedEntry("bare", "memory/2026-01-01.md", 1, 1, "s"))))
        writer.write(SetCheckpoints((checkpoint,)))
        writer.write(AddSeenHashes("scope", ("c", "a", "b")))
        writer.write(AddSeenHashes("scope", ("a", "d"), ("c",)))
        writer.write(AppendCorpus("memory/.dreams/session-corpus/2026-01-01.txt", None, ("one", "two")))
        writer.write(ReplaceText("dreams.md", None, "# Dream Diary\n"))
        inside = writer.ingest_state()
    state = store.ingest_state()
    bare, full = state.entries
    assert full == evolve(entry, last_recalled_at_ms=NOW)
    assert (bare.first_recalled_at_ms, bare.last_recalled_at_ms, bare.provenance) == (NOW, NOW, None)
    assert state.checkpoints == (checkpoint,)
    assert state.seen == {"scope": ("a", "b", "d")}
    assert dict(state.corpus) == {"memory/.dreams/session-corpus/2026-01-01.txt": "one\ntwo\n"}
    assert state.diary == MemoryFile("dreams.md", "# Dream Diary\n")
    assert evolve(state, corpus={}) == evolve(inside, corpus={})


def test_the_upper_case_diary_comes_first_and_links_are_not_followed(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    workspace = tmp_path / "store" / "workspace"
    (workspace / "memory" / ".dreams" / "session-corpus").mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("secret\n")
    (workspace / "memory" / ".dreams" / "session-corpus" / "x.txt").symlink_to(tmp_path / "elsewhere")
    (workspace / "DREAMS.md").symlink_to(tmp_path / "elsewhere")
    assert (dict(store.ingest_state().corpus), store.ingest_state().diary) == ({}, None)
    (workspace / "dreams.md").write_text("lower\n")
    assert store.ingest_state().diary == MemoryFile("dreams.md", "lower\n")
    (workspace / "DREAMS.md").unlink()
    (workspace / "DREAMS.md").write_text("upper\n")
    assert store.ingest_state().diary == MemoryFile("DREAMS.md", "upper\n")


def test_a_transcript_update_looks_up_its_own_session_only(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    with unhurried(store) as writer:
        writer.apply(RecordTombstones("main", ("s1", "s2")), Basis(lineage_digest(()), (), ()))
    assert store.ingest_state(["s1", "s3"]).tombstones == {"s1"}
    assert store.ingest_state().tombstones == {"s1", "s2"}


def test_D12_the_keys_of_siblings_are_those_of_the_same_workspace(tmp_path: Path) -> None:
    mine = fresh_store(tmp_path / "store")
    others = {name: _with_key(tmp_path / "store" / "state", name, place) for name, place in _PLACES.items()}
    assert mine.snapshot().sibling_keys == {"key-of-near", "key-of-linked"}
    assert mine.ingest_state().sibling_keys == mine.snapshot().sibling_keys
    assert others["far"].snapshot().sibling_keys == frozenset()


def _linked(top: Path) -> Path:
    (top / "alias").symlink_to("workspace")
    return top / "alias"


_PLACES: dict[str, Callable[[Path], Path]] = {
    "near": lambda top: top / "workspace",
    "linked": _linked,
    "far": lambda top: top / "far-workspace",
}


def _with_key(state: Path, agent: str, place: Callable[[Path], Path]) -> NativeStore:
    store = hasty(open_store(state, agent, place(state.parent)))
    with unhurried(store) as writer:
        writer.write(RecordOrigins(agent, (Origin(f"key-of-{agent}", agent, "s"),)))
    return store
