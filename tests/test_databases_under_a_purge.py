"""What others do to the databases while a purge runs: busy writers, read-only files, readers, exchanges (F41-F46)."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import frozen

from memprov import (
    Basis,
    Message,
    PartialError,
    RefusedError,
    Selectors,
    SessionRecord,
    StaleStateError,
    forget,
    ingest,
    open_openclaw,
    open_store,
    preview,
)
from memprov.core.purge import PurgeEffect
from memprov.shell import sqlite
from memprov.shell.port import Writer
from memprov.testing import synthetic_snapshot, write_openclaw_store
from tests.shell.native.loading import write_snapshot

SNAPSHOT = synthetic_snapshot(12, seed=4)
CHOSEN = Selectors(sessions=sorted(SNAPSHOT.origins.sessions)[:2])


@frozen
class Place:
    """A store, how to open it again, and the databases that it writes."""

    open: Callable[[], Any]
    databases: tuple[Path, ...]


def embedded(top: Path) -> Place:
    store = open_store(top)
    write_snapshot(store, SNAPSHOT)
    return Place(lambda: open_store(top), (Path(store._layout.ledger.path), Path(store._layout.shared.path)))


def openclaw(top: Path) -> Place:
    write_openclaw_store(top, SNAPSHOT)
    config = open_openclaw(top / "state")._layout.config
    databases = (Path(config.agent_database("main").path), Path(config.shared_database.path))
    return Place(lambda: open_openclaw(top / "state"), databases)


KINDS = {"embedded": embedded, "openclaw": openclaw}


@pytest.fixture(params=list(KINDS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return KINDS[request.param](tmp_path / "store")


class Between:
    """A store beside which ``meddle(number)`` is called before each effect, and after the last."""

    def __init__(self, inner: Any, meddle: Callable[[int], None]) -> None:
        self._inner, self._meddle = inner, meddle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[Writer]:
        meddle = self._meddle
        with self._inner.exclusive(break_lock=break_lock) as writer:

            class Meddled:
                number = 0

                def __getattr__(self, name: str) -> Any:
                    return getattr(writer, name)

                def apply(self, effect: PurgeEffect, basis: Basis) -> bool:
                    meddle(self.number)
                    self.number += 1
                    done: bool = writer.apply(effect, basis)
                    return done

                def attest(self, *arguments: Any) -> Any:
                    meddle(-1)
                    return writer.attest(*arguments)

            yield Meddled()


@contextmanager
def committing(path: Path) -> Iterator[None]:
    """Somebody who commits again and again, never holding the database for long."""
    stop, began = threading.Event(), threading.Event()

    def write() -> None:
        connection = apsw.Connection(str(path))
        connection.set_busy_timeout(10_000)
        connection.execute("CREATE TABLE IF NOT EXISTS others (n); INSERT INTO others VALUES (0)")
        while not stop.is_set():
            connection.execute("UPDATE others SET n = n + 1")
            began.set()
            stop.wait(0.003)  # back to back, SQLite would let nobody else in for long
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    began.wait(10)
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_F41_a_purge_waits_for_a_busy_writer(place: Place) -> None:
    with committing(place.databases[0]):
        report = forget(place.open(), CHOSEN)
    assert report.entry_keys
    assert preview(place.open(), CHOSEN).removes_nothing


def test_F41_a_sweep_reads_as_everybody_does_where_a_database_never_holds_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "store")
    store.record_session(SessionRecord("main", "s1", "agent:main:s1"))
    said = Message("user", "The spare key is in the blue drawer.", timestamp_ms=1, sender_is_owner=True)
    monkeypatch.setattr(sqlite, "_attempt", lambda *_: sqlite._Outcome(steady=False))
    with pytest.raises(StaleStateError, match="kept changing"):
        store.catalogue()
    assert ingest(store, lambda _: [said]).added_keys


def test_F41_two_purges_at_once_come_one_after_the_other(place: Place) -> None:
    failed: list[BaseException] = []

    def purge() -> None:
        try:
            forget(place.open(), CHOSEN)
        except BaseException as error:  # noqa: BLE001  # shown below
            failed.append(error)

    purges = [threading.Thread(target=purge) for _ in range(2)]
    for thread in purges:
        thread.start()
    for thread in purges:
        thread.join()
    assert not failed
    assert preview(place.open(), CHOSEN).removes_nothing


@pytest.mark.parametrize("which", [0, 1])
def test_F42_a_read_only_database_is_refused_before_anything_is_done(place: Place, which: int) -> None:
    path = place.databases[which]
    path.chmod(0o444)
    top = path.parent

    def listed() -> dict[str, tuple[int, bytes]]:
        return {p.name: (p.stat().st_mode, p.read_bytes()) for p in top.iterdir() if p.is_file()}

    before = listed()
    with pytest.raises(RefusedError, match="read-only") as caught:
        forget(place.open(), CHOSEN)
    assert caught.value.exit_code == 3
    assert not caught.value.changed
    assert listed() == before
    path.chmod(0o600)
    forget(place.open(), CHOSEN)
    assert preview(place.open(), CHOSEN).removes_nothing


def copied(source: Path, target: Path) -> None:
    """A database as one file, whatever its log holds."""
    target.unlink(missing_ok=True)
    with sqlite3.connect(source) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))
    connection.close()


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("which", [0, 1])
def test_F44_I4_a_database_that_is_replaced_by_an_older_copy_at_any_effect_is_noticed(
    kind: str, which: int, tmp_path: Path
) -> None:
    count = len(preview(KINDS[kind](tmp_path / "count").open(), CHOSEN).effects)
    for at in (*range(count), -1):
        place = KINDS[kind](tmp_path / f"at {at}")
        path, copy = place.databases[which], tmp_path / "copy"
        copied(path, copy)
        older = dump(copy)

        def replace(number: int, at: int = at, path: Path = path, copy: Path = copy) -> None:
            if number == at:
                for side in ("-wal", "-shm"):
                    path.with_name(path.name + side).unlink(missing_ok=True)
                shutil.copymode(path, copy)
                copy.replace(path)

        with pytest.raises(PartialError, match=r"while work on it was under way|taken over by another"):
            forget(Between(place.open(), replace), CHOSEN)
        assert dump(path) == older, at  # nothing was destroyed in the successor
        forget(place.open(), CHOSEN)
        assert preview(place.open(), CHOSEN).removes_nothing


def dump(path: Path) -> list[str]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        lines = [line for line in connection.iterdump() if "fts" not in line and "chunks_text" not in line]
    connection.close()
    return lines


def test_F46_what_a_reader_holds_back_is_said_and_finished_by_the_next_command(tmp_path: Path) -> None:
    place = embedded(tmp_path / "store")
    reader = apsw.Connection(str(place.databases[0]))
    reader.execute("BEGIN")
    assert list(reader.execute("SELECT count(*) FROM origins"))
    report = forget(place.open(), CHOSEN)
    assert [w for w in report.warnings if "is being read by another connection" in w and str(place.databases[0]) in w]
    reader.close()
    report = forget(place.open(), CHOSEN)
    assert not [w for w in report.warnings if "is being read" in w]
    said = tuple(text for row in SNAPSHOT.recall for text in (row.snippet,) if row.key in report.entry_keys)
    left = b"".join(file.read_bytes() for path in place.databases for file in path.parent.glob(path.name + "*"))
    assert not [text for text in said if text.encode() in left]
