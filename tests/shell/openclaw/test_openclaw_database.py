"""I3: reading changes no byte and creates no file, whatever lies beside the database; and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memprov.errors import (
    CorruptStoreError,
    PartialError,
    RefusedError,
    SchemaError,
    StaleStateError,
    StoreNotFoundError,
)
from memprov.shell.sqlite import Database, QuietAccess, Reader, writing
from tests.shell.openclaw.lab import Lab, Leftover, fingerprint

RAISE = "UPDATE memory_index_state SET revision = 777"
CHANGE = """
import apsw, sys
apsw.Connection(sys.argv[1]).execute("UPDATE memory_index_state SET revision = ?", sys.argv[2:])
"""


def database(path: Path) -> Database:
    return Database(str(path), "agent database", 23)


def revision(reader: Reader) -> object:
    return [row[0] for row in reader.rows("memory_index_state", "revision")]


def read(path: Path, use: Callable[[Reader], object] = revision) -> object:
    return QuietAccess().read(database(path), use)


def in_process(source: str, *arguments: object) -> str:
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_I3_a_plain_database_is_read_without_a_trace(lab: Lab) -> None:
    before = fingerprint(lab.root)
    assert read(lab.agent()) == [7]
    assert fingerprint(lab.root) == before


@pytest.mark.parametrize("keep_index", [False, True])
def test_I3_frames_of_a_left_over_wal_are_seen_and_left(lab: Lab, keep_index: bool) -> None:
    Leftover(lab.agent(), RAISE, keep_index=keep_index)
    before = fingerprint(lab.root)
    assert read(lab.agent()) == [777]
    assert fingerprint(lab.root) == before


def test_I3_the_wal_would_have_been_folded_in_by_an_ordinary_reader(lab: Lab) -> None:
    """The twin of the test above: the fingerprint does see what SQLite does by itself."""
    Leftover(lab.agent(), RAISE)
    before = fingerprint(lab.root)
    assert lab.main("SELECT revision FROM memory_index_state") == [(777,)]
    assert fingerprint(lab.root) != before


def test_I3_a_torn_or_foreign_wal_is_no_content(lab: Lab) -> None:
    Leftover(lab.agent(), RAISE)
    wal = Path(f"{lab.agent()}-wal")
    os.truncate(wal, wal.stat().st_size - 10)
    before = fingerprint(lab.root)
    assert read(lab.agent()) == [7]
    wal.write_bytes(b"no frames" * 1000)
    assert read(lab.agent()) == [7]
    assert {path for path, state in fingerprint(lab.root).items() if before[path][5] != state[5]} == {str(wal)}


@pytest.mark.parametrize("frames", [False, True])
def test_I3_read_only_files_in_a_read_only_directory(lab: Lab, frames: bool) -> None:
    if frames:
        Leftover(lab.agent(), RAISE)
    directory = lab.agent().parent
    for path in (*directory.iterdir(), directory):
        path.chmod(0o555 if path.is_dir() else 0o444)
    open_to_all(lab)
    before = fingerprint(lab.root)
    assert as_nobody(lambda: read(lab.agent()) == [777 if frames else 7])
    assert fingerprint(lab.root) == before
    directory.chmod(0o755)


def open_to_all(lab: Lab) -> None:
    """pytest's own directories are closed to others."""
    for top in (lab.root, *lab.root.parents):
        if os.geteuid() == 0 and top.stat().st_mode & 0o005 != 0o005:
            top.chmod(top.stat().st_mode | 0o055)


def as_nobody(check: Callable[[], bool]) -> bool:
    """Run a check without the right to write everywhere, which a superuser has."""
    if os.geteuid() != 0:
        return check()
    pid = os.fork()
    if pid == 0:
        passed = False
        try:
            os.setgid(65534)
            os.setuid(65534)
            passed = check()
        finally:
            os._exit(0 if passed else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_I3_beside_a_writer_in_another_process(lab: Lab) -> None:
    source = """
import apsw, sys
c = apsw.Connection(sys.argv[1])
list(c.execute("PRAGMA wal_autocheckpoint = 0"))
c.execute("UPDATE memory_index_state SET revision = 777")
c.execute("BEGIN IMMEDIATE")
c.execute("UPDATE memory_index_state SET revision = 999")
print("ready", flush=True)
sys.stdin.read()
c.execute("COMMIT")
"""
    command = [sys.executable, "-c", source, str(lab.agent())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
        before = fingerprint(lab.root)
        assert read(lab.agent()) == [777]  # what is committed, and nothing else
        assert fingerprint(lab.root) == before
        writer.communicate("")
    assert writer.returncode == 0  # it was not disturbed
    assert lab.main("SELECT revision FROM memory_index_state") == [(999,)]


@pytest.mark.parametrize("frames", [False, True])
def test_I3_reading_drops_no_lock_that_this_process_holds(lab: Lab, frames: bool) -> None:
    holder = apsw.Connection(str(lab.agent()))
    list(holder.execute("PRAGMA wal_autocheckpoint = 0"))
    if frames:
        holder.execute(RAISE)
    holder.execute("BEGIN IMMEDIATE")
    assert read(lab.agent()) == [777 if frames else 7]
    attempt = """
import apsw, sys
try:
    apsw.Connection(sys.argv[1]).execute("BEGIN IMMEDIATE")
except apsw.BusyError:
    print("busy")
"""
    assert in_process(attempt, lab.agent()) == "busy"
    holder.execute("ROLLBACK")
    holder.close()


def test_a_change_under_the_reader_is_noticed_and_read_again(lab: Lab) -> None:
    seen = []

    def use(reader: Reader) -> object:
        seen.append(revision(reader))
        if len(seen) == 1:
            in_process(CHANGE, lab.agent(), 777)
        return seen[-1]

    assert read(lab.agent(), use) == [777]
    assert seen == [[7], [777]]


def test_a_database_that_never_holds_still_is_refused_in_bounded_time(lab: Lab) -> None:
    naps: list[float] = []
    number = iter(range(100))

    def use(reader: Reader) -> object:
        in_process(CHANGE, lab.agent(), next(number))
        return revision(reader)

    with pytest.raises(StaleStateError, match="kept changing"):
        QuietAccess(naps.append).read(database(lab.agent()), use)
    assert next(number) <= 10
    assert sum(naps) < 5


def test_an_error_about_torn_content_counts_only_if_the_database_held_still(lab: Lab) -> None:
    calls = []

    def use(_: Reader) -> object:
        calls.append(1)
        if len(calls) == 1:
            in_process(CHANGE, lab.agent(), 777)
            raise CorruptStoreError("torn")
        return "whole"

    assert read(lab.agent(), use) == "whole"

    def broken(_: Reader) -> object:
        raise CorruptStoreError("broken")

    with pytest.raises(CorruptStoreError, match="broken"):
        read(lab.agent(), broken)


def test_I3_a_recent_change_is_given_time_to_show(lab: Lab) -> None:
    naps: list[float] = []
    os.utime(lab.agent(), ns=(time.time_ns(), time.time_ns()))
    QuietAccess(naps.append).read(database(lab.agent()), revision)
    assert len(naps) == 1
    assert 0 < naps[0] <= 0.02


def test_a_hot_rollback_journal_is_refused_and_left(lab: Lab) -> None:
    journal = Path(f"{lab.agent()}-journal")
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(600))
    before = fingerprint(lab.root)
    with pytest.raises(CorruptStoreError, match="rollback journal"):
        QuietAccess(lambda _: None).read(database(lab.agent()), revision)
    assert fingerprint(lab.root) == before
    journal.write_bytes(bytes(608))  # as it is left when the write has finished
    assert read(lab.agent()) == [7]


def test_what_is_no_database_is_never_an_empty_one(lab: Lab) -> None:
    path = lab.agent()
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(CorruptStoreError, match="not a SQLite database"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(CorruptStoreError, match="empty file"):
        read(path)
    path.unlink()
    with pytest.raises(StoreNotFoundError, match="there is no agent database"):
        read(path)


def test_damage_and_text_that_is_no_text_are_named(lab: Lab) -> None:
    lab.main("INSERT INTO memory_entry_origins VALUES (CAST(x'ff' AS TEXT), 'main', 's', NULL, 'owner', 1)")
    with pytest.raises(CorruptStoreError, match="not UTF-8"):
        read(lab.agent(), lambda reader: list(reader.rows("memory_entry_origins", "entry_key")))
    data = bytearray(lab.agent().read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    lab.agent().write_bytes(data)
    with pytest.raises(CorruptStoreError, match="damaged"):
        read(lab.agent())


@pytest.mark.parametrize(("name", "version"), [("agent", 24), ("shared", 19)])
def test_a_newer_schema_is_refused_before_any_write_on_preview_too(lab: Lab, name: str, version: int) -> None:
    path = lab.agent() if name == "agent" else lab.shared
    store = lab.open()
    lab.sql(path, f"PRAGMA user_version = {version}")
    before = fingerprint(lab.root)
    with pytest.raises(SchemaError, match=str(version)):
        store.snapshot()
    with pytest.raises(SchemaError, match=str(version)), store.exclusive():
        pass
    assert fingerprint(lab.root) == before


def test_a_missing_table_is_empty_and_a_missing_column_of_meaning_is_not(lab: Lab) -> None:
    for table in ("memory_entry_origins", "memory_index_chunks", "session_windows", "memory_embedding_cache"):
        lab.main(f"DROP TABLE {table}")
    snapshot = lab.open().snapshot()
    assert (len(snapshot.origins), len(snapshot.chunks), snapshot.cache_rows) == (0, 0, 0)
    lab.main("ALTER TABLE session_transcript_archives DROP COLUMN session_key")
    lab.main("ALTER TABLE session_participants RENAME COLUMN actor_id TO actor")
    with pytest.raises(SchemaError, match="session_participants has no column actor_id"):
        lab.open().catalogue()


def test_paths_that_mean_something_in_a_uri(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "a?b#c%20d&mode=rw ü")
    assert lab.open().snapshot().revision == 7
    Leftover(lab.agent(), RAISE)
    assert lab.open().snapshot().revision == 777


def test_a_wal_that_may_not_be_read_is_refused(lab: Lab) -> None:
    Leftover(lab.agent(), RAISE)
    Path(f"{lab.agent()}-wal").chmod(0)
    open_to_all(lab)

    def refused() -> bool:
        with pytest.raises(RefusedError, match="cannot be opened for reading"):
            read(lab.agent())
        return True

    assert as_nobody(refused)


def test_a_transaction_is_all_or_nothing_and_says_what_failed(lab: Lab) -> None:
    lab.main("CREATE TABLE strict (value INTEGER) STRICT")

    def fail(reader: Reader) -> None:
        reader.connection.execute(RAISE)
        reader.connection.execute("INSERT INTO strict VALUES ('no number')")

    with pytest.raises(PartialError, match="could not be changed"), writing(database(lab.agent())) as reader:
        fail(reader)
    assert read(lab.agent()) == [7]


def test_writing_overwrites_what_it_deletes_and_makes_no_database(lab: Lab, tmp_path: Path) -> None:
    with writing(database(lab.agent())) as reader:
        pragmas = [next(reader.query(f"PRAGMA {name}"))[0] for name in ("secure_delete", "synchronous")]
    assert pragmas == [1, 2]
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(StoreNotFoundError), writing(database(missing)):
        pass
    assert not missing.exists()


def test_a_read_only_database_is_refused_when_it_is_to_be_written(lab: Lab) -> None:
    lab.agent().chmod(0o444)
    lab.agent().parent.chmod(0o555)
    open_to_all(lab)

    def refused() -> bool:
        with (
            pytest.raises(RefusedError, match="cannot be opened for writing"),
            writing(database(lab.agent())) as reader,
        ):
            reader.connection.execute(RAISE)
        return True

    before = fingerprint(lab.root)
    assert as_nobody(refused)
    assert fingerprint(lab.root) == before
    lab.agent().parent.chmod(0o755)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a path is text")
def test_a_path_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff?#%20.sqlite")
    sound = tmp_path / "sound.sqlite"
    connection = apsw.Connection(str(sound))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    sound.rename(path)
    with writing(database(Path(path))) as reader:
        reader.connection.execute("INSERT INTO t VALUES (1)")
    assert QuietAccess().read(database(Path(path)), lambda reader: list(reader.rows("t", "x"))) == [(1,)]
