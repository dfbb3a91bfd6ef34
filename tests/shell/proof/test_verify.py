"""``verify``: an independent reader. What is planted is found, what is clean is clean, what is closed is not proven."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
import zstandard

from memprov import Message, Selectors, SessionRecord, Verdict, forget, open_openclaw, verify
from memprov.core.proof import Root, Spot, surface_at
from memprov.shell.proof.full_text import dead_words
from tests.real_stores import store_archives, unpack
from tests.shell.proof.world import NOW, SAID, embedded, reopened

MONDAY = Selectors(sessions=["monday-chat"])
TEXT = SAID["monday-chat"]
OTHER = SAID["tuesday-chat"]


def test_before_a_purge_it_says_where_a_conversation_is_kept(tmp_path: Path) -> None:
    answer = verify(embedded(tmp_path), MONDAY)
    assert answer.verdict is Verdict.RESIDUE
    places = {str(hit.spot) for hit in answer.residue}
    assert {"workspace/MEMORY.md", "state/agents/main/ledger.sqlite (origins)"} <= places
    assert any("recall" in place for place in places)
    assert any("session-corpus" in place for place in places)
    assert {hit.spot.table for hit in answer.retained} == {"sessions"}


def test_I3_it_changes_no_byte_and_creates_no_file(tmp_path: Path) -> None:
    store = embedded(tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    verify(store, MONDAY)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without monday-chat, rewritten and with nothing in its free pages."""
    directory = tmp_path_factory.mktemp("purged")
    forget(embedded(directory), MONDAY)
    for path in (directory / "state").rglob("ledger.sqlite"):
        connection = apsw.Connection(str(path))
        list(connection.execute("VACUUM"))
        list(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        connection.close()
    return directory


@pytest.fixture
def purged(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to do anything with."""
    return shutil.copytree(made, tmp_path / "store", symlinks=True)


def answer(directory: Path) -> Verdict:
    return verify(reopened(directory), MONDAY, [TEXT]).verdict


def sqlite_with(directory: Path, *statements: str) -> None:
    connection = apsw.Connection(str(directory / "state" / "extra.sqlite"))
    for statement in statements:
        list(connection.execute(statement))
    connection.close()


def left_in_the_wal(directory: Path) -> None:
    connection = apsw.Connection(str(directory / "state" / "extra.sqlite"))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    list(connection.execute("PRAGMA journal_mode = WAL"))
    connection.execute(f"CREATE TABLE t AS SELECT '{TEXT}' AS x")
    connection.execute("DROP TABLE t")
    connection.close()


def in_lines(head: str) -> bytes:
    return f"{head}\n{TEXT}\n{head}\n".encode()


PLANTS: dict[str, Callable[[Path], object]] = {
    "a file": lambda d: (d / "workspace" / "copy.txt").write_bytes(in_lines("x")),
    "a hidden file": lambda d: (d / "state" / ".x").write_bytes(in_lines("x")),
    "beyond the first piece": lambda d: (d / "workspace" / "big").write_bytes(bytes(1 << 23)[:-20] + in_lines("x")),
    "UTF-16": lambda d: (d / "workspace" / "copy.txt").write_bytes(TEXT.encode("utf-16")),
    "JSON": lambda d: (d / "workspace" / "copy.json").write_text(json.dumps({"é": json.dumps([TEXT])})),
    "Base64": lambda d: (d / "workspace" / "mail").write_bytes(base64.b64encode(in_lines("xy"))),
    "gzip": lambda d: (d / "workspace" / "log.gz").write_bytes(gzip.compress(in_lines("x"))),
    "zstd": lambda d: (d / "workspace" / "log.zst").write_bytes(zstandard.compress(in_lines("x"))),
    "a database's row": lambda d: sqlite_with(d, f"CREATE TABLE t AS SELECT '{TEXT}' AS x"),
    "a database's free page": lambda d: sqlite_with(
        d, "CREATE TABLE u AS SELECT 1 AS x", f"CREATE TABLE t AS SELECT '{TEXT}' AS x", "DROP TABLE t"
    ),
    "a value over several pages": lambda d: sqlite_with(
        d, f"CREATE TABLE t AS SELECT hex(zeroblob(2010)) || '{TEXT}' || hex(zeroblob(4000)) AS x"
    ),
    "a WAL": left_in_the_wal,
    "the id in a file's name": lambda d: (d / "workspace" / "monday-chat.md").write_bytes(b"nothing"),
    "the id in a file": lambda d: (d / "workspace" / "ids").write_bytes(b"[main/sessions/main/monday-chat#L2] "),
}


@pytest.mark.parametrize("place", PLANTS)
def test_what_is_planted_is_found(purged: Path, place: str) -> None:
    assert answer(purged) is Verdict.CLEAN, "the twin: without the plant it is clean"
    PLANTS[place](purged)
    assert answer(purged) is Verdict.RESIDUE


CLOSED: dict[str, Callable[[Path], object]] = {
    "an encrypted file": lambda d: (d / "workspace" / "vault").write_bytes(os.urandom(50_000)),
    "an encrypted database": lambda d: (d / "state" / "agents" / "main" / "x.sqlite").write_bytes(os.urandom(8192)),
    "a torn archive": lambda d: (d / "workspace" / "log.gz").write_bytes(gzip.compress(os.urandom(999))[:-30]),
    "a Git pack": lambda d: (d / "workspace" / "x.pack").write_bytes(b"PACK\0\0\0\2" + bytes(40)),
    "a damaged database": lambda d: (d / "state" / "x.sqlite").write_bytes(
        b"SQLite format 3\0" + b"\x10\0" + bytes(9000)
    ),
    "a link that leads out": lambda d: (d / "workspace" / "out").symlink_to(Path(__file__)),
}


@pytest.mark.parametrize("place", CLOSED)
def test_what_cannot_be_read_is_not_proven(purged: Path, place: str) -> None:
    CLOSED[place](purged)
    assert answer(purged) is Verdict.CANNOT_PROVE


def test_without_a_text_to_look_for_nothing_is_proven(purged: Path) -> None:
    store = reopened(purged)
    assert verify(store, MONDAY).verdict is Verdict.CANNOT_PROVE


def test_a_hosts_reader_gives_what_was_said_and_its_failure_is_not_hidden(purged: Path) -> None:
    asked: list[str] = []

    def reader(session: SessionRecord) -> list[Message]:
        asked.append(session.session_id)
        return [Message("user", SAID[session.session_id], number=2, timestamp_ms=NOW, sender_is_owner=True)]

    def failing(session: SessionRecord) -> list[Message]:
        raise OSError(session.session_id)

    proven = verify(reopened(purged), MONDAY, reader=reader)
    assert proven.verdict is Verdict.CLEAN
    assert proven.texts == 1
    assert asked == ["monday-chat"]
    assert verify(reopened(purged), MONDAY, reader=failing).verdict is Verdict.CANNOT_PROVE


def test_I12_a_session_whose_id_is_longer_is_no_residue_and_its_twin_is_found(purged: Path) -> None:
    store = reopened(purged)
    kept = verify(store, Selectors(sessions=["monday-chat-2"]))
    assert kept.verdict is Verdict.RESIDUE
    assert answer(purged) is Verdict.CLEAN


def test_the_command_line_answers_with_the_verdict_in_a_fresh_process(purged: Path) -> None:
    needles = purged.parent / "needles.txt"
    needles.write_text(TEXT + "\n")
    command = [sys.executable, "-m", "memprov", "verify", "--store", str(purged / "state"), "--session"]
    runs = {
        name: subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        for name, more in {
            "clean": ["monday-chat", "--needles", str(needles), "--json"],
            "residue": ["tuesday-chat", "--json"],
            "cannot_prove": ["monday-chat", "--json"],
        }.items()
    }
    assert {name: run.returncode for name, run in runs.items()} == {"clean": 0, "residue": 1, "cannot_prove": 4}
    assert {name: json.loads(run.stdout)["verdict"] for name, run in runs.items()} == {name: name for name in runs}
    assert OTHER not in runs["residue"].stdout


@pytest.mark.needs_store("basic")
def test_OpenClaws_transcripts_give_the_needles_and_are_retained_by_contract(tmp_path: Path) -> None:
    top = unpack(store_archives()["basic"], tmp_path)
    store = open_openclaw(top / "before" / "state", workspace=top / "before" / "ws")
    session = store.catalogue()[0].session_id
    before = verify(store, Selectors(sessions=[session]))
    assert before.verdict is Verdict.RESIDUE
    assert before.texts == 2
    assert {"transcript_events", "session_windows"} <= {hit.spot.table for hit in before.retained}
    assert {"memory_index_chunks", "plugin_state_entries"} <= {hit.spot.table for hit in before.residue}


def test_words_that_a_full_text_stores_and_no_longer_finds_are_dead(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.sqlite"))
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x)")
    for number in range(400):
        connection.execute("INSERT INTO t VALUES (?)", (f"heron{number} lighthouse{number % 7} lightship",))
    connection.execute("DELETE FROM t WHERE x MATCH 'heron17'")
    assert dead_words(connection, "t") == {"heron17"}
    connection.execute("INSERT INTO t (t) VALUES ('optimize')")
    assert dead_words(connection, "t") == frozenset(), "merging takes it away"
    connection.close()


def test_a_full_text_that_still_stores_what_was_said_is_residue(purged: Path) -> None:
    sqlite_with(
        purged,
        "CREATE VIRTUAL TABLE t USING fts5 (x)",
        f"CREATE TABLE said AS SELECT '{TEXT}' AS x",
        "INSERT INTO t SELECT x FROM said",
        "INSERT INTO t VALUES ('something else entirely')",
        "PRAGMA secure_delete = ON",
        "DROP TABLE said",
        "DELETE FROM t WHERE rowid = 1",
        "VACUUM",
    )
    seen = verify(reopened(purged), MONDAY, [TEXT])
    assert {hit.spot.table for hit in seen.residue} == {"t_data"}


def undeclared_tables(store: str, state: Path) -> set[str]:
    found = set()
    for path in state.rglob("*.sqlite"):
        uri = f"file:{path}?immutable=1"
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for name in [str(row[0]) for row in names]:
            if surface_at(store, "main", Spot(Root.STATE, path.relative_to(state).as_posix(), name)) is None:
                found.add(name)
        connection.close()
    return found


@pytest.mark.needs_store("vectors")
def test_every_table_that_a_store_has_is_a_declared_surface(made: Path, tmp_path: Path) -> None:
    assert undeclared_tables("memprov", made / "state") == set()
    state = unpack(store_archives()["vectors"], tmp_path) / "before" / "state"
    assert undeclared_tables("openclaw", state) == set()
    careless = apsw.Connection(str(state / "agents/main/agent/openclaw-agent.sqlite"))
    careless.execute("CREATE TABLE somebodys_copy AS SELECT * FROM memory_index_chunks")
    list(careless.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    careless.close()
    assert undeclared_tables("openclaw", state) == {"somebodys_copy"}, "the twin"
