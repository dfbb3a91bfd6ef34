"""The pass under the lock reads again what changed since the one before it, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import (
    MemoryFile,
    MemorySnapshot,
    NativeStore,
    Origin,
    OriginTable,
    Selectors,
    SessionRecord,
    forget,
    open_openclaw,
)
from memprov.core.purge import Mapper, Selection
from memprov.shell.native import NativeWriter
from memprov.shell.port import Answering
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.workspace import Calls
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.core.worlds import CORPUS, SENTENCES, corpus_line
from tests.shell.native.loading import fresh_store, write_snapshot

OLD = 1_700_000_000


def aged(path: Path) -> None:
    """As if nothing had touched the file for long; its time of change cannot be set, and is what it is."""
    os.utime(path, (OLD, OLD))


def test_what_stands_is_not_read_again() -> None:
    remembered, reads = Remembered(), []

    def read() -> int:
        reads.append(1)
        return len(reads)

    answers = [remembered.recall("q", standing, read) for standing in (1, 1, 2, 2, None, None, 2)]
    assert answers == [1, 1, 2, 2, 3, 4, 5]
    assert remembered.recall("another", 2, read) == 6


def test_a_standing_is_of_everything_beside_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memprov.shell.remembering.TICK_NS", -(10**15))  # whatever was just written has settled
    database = tmp_path / "x.sqlite"
    database.write_bytes(b"one")
    seen = [standing_of([str(database)])]
    (tmp_path / "x.sqlite-wal").touch()
    assert standing_of([str(database)]) == seen[0], "an empty log is no log"
    for path, content in ((database, b"two"), (database, b"three"), (tmp_path / "x.sqlite-wal", b"frame")):
        path.write_bytes(content)
        aged(path)
        seen.append(standing_of([str(database)]))
    database.rename(tmp_path / "y")
    (tmp_path / "x.sqlite").write_bytes(b"three")
    aged(database)
    seen.append(standing_of([str(database)]))
    assert None not in seen
    assert len(set(map(repr, seen))) == len(seen)


def test_what_was_just_written_has_no_standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memprov.shell.remembering.TICK_NS", 10**15)
    (tmp_path / "x").write_bytes(b"one")
    assert standing_of([str(tmp_path / "x")]) is None


class Between:
    """A store in which something happens just before the lock is held."""

    def __init__(self, inner: NativeStore, happens: Callable[[], None]) -> None:
        self.inner = inner
        self.happens = happens
        self.identity = inner.identity
        self.catalogue = inner.catalogue
        self.named_origins = inner.named_origins
        self.began = inner.began
        self.neighbours = inner.neighbours
        self.snapshot = inner.snapshot
        self.sessions_standing = inner.sessions_standing

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        return self.inner.answering(selection, mapper, remembered)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[NativeWriter]:
        self.happens()
        with self.inner.exclusive(break_lock=break_lock) as writer:
            yield writer


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NativeStore:
    store = fresh_store(tmp_path / "store")
    snapshot = MemorySnapshot(
        store.identity,
        files=(MemoryFile("MEMORY.md", f"- {SENTENCES[0]}\n- more\n"), MemoryFile("memory/a.md", "- words\n")),
        corpus=(MemoryFile(CORPUS, corpus_line("s1", SENTENCES[0]) + corpus_line("s2", SENTENCES[1])),),
        origins=OriginTable.from_rows([Origin("k1", "main", "s1"), Origin("k2", "main", "s2")]),
    )
    write_snapshot(store, snapshot, [SessionRecord("main", "s1"), SessionRecord("main", "s2")])
    monkeypatch.setattr("memprov.shell.remembering.TICK_NS", -(10**15))
    return store


def test_a_purge_reads_each_file_once_before_it_and_once_after_it(store: NativeStore) -> None:
    reads: list[int] = []

    def read(fd: int, size: int) -> bytes:
        reads.append(os.fstat(fd).st_ino)
        return os.read(fd, size)

    workspace = Path(store._layout.workspace)
    untouched = (workspace / "memory" / "a.md").stat().st_ino
    forget(evolve(store, calls=evolve(Calls(), read=read)), Selectors(sessions=["s1"]))
    assert reads.count(untouched) <= 4  # its bytes and its end, to plan and to see that nothing is left
    assert (workspace / "MEMORY.md").read_text() == "- more\n"


def test_what_is_written_before_the_lock_is_held_is_found(store: NativeStore) -> None:
    page = Path(store._layout.workspace) / "memory" / "a.md"

    def write() -> None:
        page.write_text(f"- words\n- {SENTENCES[0]}\n")

    forget(Between(store, write), Selectors(sessions=["s1"]))
    assert page.read_text() == "- words\n"


def test_a_session_that_is_rotated_before_the_lock_is_held_is_selected_as_it_is_then(store: NativeStore) -> None:
    def rotate() -> None:
        store.record_session(SessionRecord("main", "s3", "agent:main:x"))

    report = forget(Between(store, rotate), Selectors(sessions=["s1", "agent:main:x"]))
    assert set(report.session_ids) == {"s1", "s3"}


def test_a_catalogue_is_read_once_until_a_session_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memprov.shell.remembering.TICK_NS", -(10**15))
    write_openclaw_store(tmp_path / "store", synthetic_snapshot(2), synthetic_sessions(2))
    store = open_openclaw(tmp_path / "store" / "state")
    first = store.catalogue()
    assert store.catalogue() is first
    database = tmp_path / "store" / "state" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    connection = apsw.Connection(str(database))
    connection.execute("DELETE FROM session_windows")
    connection.close()
    assert store.catalogue() == ()
