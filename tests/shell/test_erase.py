"""Level ``erase``: what was deleted is in no byte of the store's files, and what could not be reached is said (I13)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from attrs import define, evolve, field

from memprov import Level, PurgePlan, Selectors, Verdict, apply_plan, forget, open_openclaw, preview, verify
from memprov.shell.erase import erase_connection, erase_database, erase_stale_rebuilds
from tests.real_stores import store_archives, unpack
from tests.shell.proof.world import SAID, embedded

MONDAY = Selectors(sessions=["monday-chat"])
TEXT = SAID["monday-chat"]
HOUR_AGO = 1_600_000_000


def careless(path: Path, *statements: str) -> None:
    """Change a database as a program does that overwrites nothing."""
    connection = apsw.Connection(str(path))
    list(connection.execute("PRAGMA secure_delete = OFF"))
    for statement in statements:
        list(connection.execute(statement))
    connection.close()


def test_I13_erasing_the_embedded_store_reaches_what_others_freed(tmp_path: Path) -> None:
    store = embedded(tmp_path)
    for path in (tmp_path / "state").rglob("ledger.sqlite"):
        careless(path, f"CREATE TABLE t AS SELECT '{TEXT}' AS x", "DROP TABLE t")
    forget(store, MONDAY)
    assert verify(store, MONDAY, [TEXT]).verdict is Verdict.RESIDUE, "the twin: logical leaves free pages as they are"
    forget(store, MONDAY, level="erase")
    assert verify(store, MONDAY, [TEXT]).verdict is Verdict.CLEAN
    assert verify(store, Selectors(sessions=["tuesday-chat"])).verdict is Verdict.RESIDUE, "what stays is there"


@pytest.mark.needs_store("vectors")
def test_I13_erasing_an_OpenClaw_store_leaves_only_its_transcripts(tmp_path: Path) -> None:
    top = unpack(store_archives()["vectors"], tmp_path)
    state = top / "before" / "state"
    store = open_openclaw(state, workspace=top / "before" / "ws")
    chosen = Selectors(sessions=[store.catalogue()[0].session_id])
    for path in (state / "agents/main/agent/openclaw-agent.sqlite", state / "state/openclaw.sqlite"):
        copies = "CREATE TABLE t AS SELECT event_json FROM transcript_events" if "agent" in path.name else "SELECT 1"
        careless(path, copies, "DROP TABLE IF EXISTS t")
    forget(store, chosen)
    assert verify(store, chosen).verdict is Verdict.RESIDUE
    forget(store, chosen, level="erase")
    left = verify(store, chosen)
    assert left.verdict is Verdict.CLEAN
    assert "transcript_events" in {hit.spot.table for hit in left.retained}
    connection = apsw.Connection(str(state / "agents/main/agent/openclaw-agent.sqlite"))
    assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
    connection.close()


def test_an_erasing_plan_is_the_logical_one_with_one_effect_more_and_can_be_saved(tmp_path: Path) -> None:
    store = embedded(tmp_path)
    logical, erasing = preview(store, MONDAY), preview(store, MONDAY, level="erase")
    assert erasing.effects[:-1] == logical.effects
    assert erasing.report == evolve(logical.report, level="erase", plan_digest=erasing.digest)
    saved = PurgePlan.from_json(erasing.to_json())
    assert saved == erasing
    assert apply_plan(store, saved).level == Level.ERASE
    assert preview(store, MONDAY, level="erase").removes_nothing


def test_a_reader_of_an_older_state_is_named_and_nothing_is_claimed(tmp_path: Path) -> None:
    path = str(tmp_path / "x.sqlite")
    writer, reader = apsw.Connection(path), apsw.Connection(path)
    list(writer.execute("PRAGMA journal_mode = WAL"))
    writer.execute("CREATE TABLE t AS SELECT 1 AS x")
    reader.execute("BEGIN")
    list(reader.execute("SELECT * FROM t"))
    writer.execute("INSERT INTO t VALUES (2)")
    held = erase_connection(writer, "the ledger", lambda _: True)
    assert [line for line in held.unreached if "log" in line]
    reader.close()
    assert not erase_connection(writer, "the ledger", lambda _: True).unreached
    assert not Path(path + "-wal").stat().st_size
    writer.close()


def test_what_cannot_be_opened_or_merged_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database" * 100)
    assert erase_database(str(tmp_path / "x.sqlite"), "the database", lambda _: True).unreached
    assert erase_database(str(tmp_path / "gone.sqlite"), "the database", lambda _: True).unreached
    path = str(tmp_path / "y.sqlite")
    careless(Path(path), "CREATE VIRTUAL TABLE memory_fts USING fts5 (x)")
    unloadable = "UPDATE sqlite_schema SET sql = replace(sql, 'fts5', 'fts5_of_somebody')"
    careless(Path(path), "PRAGMA writable_schema = ON", unloadable)
    done = erase_database(path, "the database", lambda name: name.startswith("memory_"))
    assert [line for line in done.unreached if "memory_fts" in line]
    assert [line for line in done.reached if "free space" in line]


def test_words_leave_a_full_text_that_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    fill = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 500) INSERT INTO t SELECT 'filler' || i FROM n"
    careless(path, "CREATE VIRTUAL TABLE t USING fts5 (x)", fill, "INSERT INTO t VALUES ('zanzibar')")
    careless(path, "DELETE FROM t WHERE t MATCH 'zanzibar'")
    assert b"zanzibar" in path.read_bytes(), "the twin"
    assert not erase_database(str(path), "the database", lambda _: True).unreached
    assert b"zanzibar" not in path.read_bytes()
    assert b"filler" in path.read_bytes()


UUID = "0a1b2c3d-0a1b-4c2d-8e3f-0a1b2c3d4e5f"


def test_D18_left_over_rebuilds_go_by_exact_name_and_age(tmp_path: Path) -> None:
    database = tmp_path / "openclaw-agent.sqlite"
    stale = [f"{database.name}.memory-reindex-{UUID}{side}" for side in ("", "-wal")]
    others = [
        f"{database.name}.memory-reindex-{UUID}.bak",
        f"{database.name}.memory-reindex-mine",
        f"other.sqlite.memory-reindex-{UUID}",
        f"x{database.name}.memory-reindex-{UUID}",
        database.name,
    ]
    for name in (*stale, *others):
        (tmp_path / name).write_bytes(b"x")
    young = erase_stale_rebuilds(str(database))
    assert not young.reached
    assert len(young.unreached) == len(stale)
    for name in (*stale, *others):
        os.utime(tmp_path / name, (HOUR_AGO, HOUR_AGO))
    os.utime(tmp_path / stale[1])
    assert not erase_stale_rebuilds(str(database)).reached, "its log was written to just now"
    os.utime(tmp_path / stale[1], (HOUR_AGO, HOUR_AGO))
    assert len(erase_stale_rebuilds(str(database)).reached) == len(stale)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_D18_a_link_with_the_name_of_a_rebuild_is_left_and_named(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"x")
    link = tmp_path / f"openclaw-agent.sqlite.memory-reindex-{UUID}"
    link.symlink_to(target)
    assert erase_stale_rebuilds(str(tmp_path / "openclaw-agent.sqlite")).unreached
    assert link.is_symlink()


@define
class Overwriting:
    """Watches connections: which statements changed a file on a connection that does not overwrite what it deletes."""

    careless: list[str] = field(factory=list)
    seen: int = 0

    def __call__(self, connection: apsw.Connection) -> None:
        def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            changing = sql.lstrip().upper().startswith(("INSERT", "DELETE", "UPDATE", "REPLACE", "WITH", "VACUUM"))
            if changing and connection.filename and not connection.readonly("main"):
                self.seen += 1
                if connection.pragma("secure_delete") != 1:
                    self.careless.append(sql)
            return True

        connection.exec_trace = trace


@pytest.fixture
def watch() -> Iterator[Overwriting]:
    watching = Overwriting()
    apsw.connection_hooks.append(watching)
    yield watching
    apsw.connection_hooks.remove(watching)


@pytest.mark.needs_store("vectors")
def test_every_connection_that_changes_a_store_overwrites_what_it_deletes(tmp_path: Path, watch: Overwriting) -> None:
    store = embedded(tmp_path / "embedded")
    forget(store, MONDAY, level="erase", prove=True)
    embedded_seen = watch.seen
    before = unpack(store_archives()["vectors"], tmp_path / "openclaw") / "before"
    other = open_openclaw(before / "state", workspace=before / "ws")
    forget(other, Selectors(sessions=[other.catalogue()[0].session_id]), level="erase", prove=True)
    assert embedded_seen
    assert watch.seen > embedded_seen
    assert watch.careless == []


def test_a_connection_that_does_not_overwrite_rings(tmp_path: Path, watch: Overwriting) -> None:
    careless(tmp_path / "x.sqlite", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", "DELETE FROM t")
    assert watch.careless == ["INSERT INTO t VALUES (1)", "DELETE FROM t"]
