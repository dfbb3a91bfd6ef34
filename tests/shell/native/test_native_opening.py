"""Opening an embedded store: what is made, how it is found again, and which files are refused."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import Origin, Selectors, SessionRecord, forget, preview
from memprov.core.writing import RecordOrigins, ReplaceText
from memprov.errors import CorruptStoreError, InputError, RefusedError, SchemaError, StoreNotFoundError
from memprov.shell.native import NativeStore, open_store
from memprov.shell.native.database import LedgerFile
from memprov.shell.native.schema import AGENT_LEDGER, SHARED_LEDGER
from tests.shell.native.loading import copied, fresh_store, hasty, rows, tables, unhurried


def paths(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def pragma(file: LedgerFile, name: str) -> object:
    with file.writing() as connection:
        return next(iter(connection.execute(f"PRAGMA {name}")))[0]


def ledgers(store: NativeStore) -> tuple[LedgerFile, LedgerFile]:
    return store._layout.ledger, store._layout.shared


# --- making ---


def test_the_first_opening_makes_ledgers_and_a_workspace_private_to_their_owner(tmp_path: Path) -> None:
    top = tmp_path / "deep" / "store"
    before = os.umask(0)
    try:
        store = open_store(top)
        store.record_session(SessionRecord("main", "s1"))
        with store.exclusive() as writer:
            writer.write(ReplaceText("memory/notes/new.md", None, "new\n"))
            assert Path(f"{store._layout.ledger.path}-wal").exists()
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (top, *top.rglob("*"))}
    finally:
        os.umask(before)
    assert modes
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700
    assert store.identity.kind == "memprov"
    assert store.identity.workspace_root == str(top / "workspace")


def test_what_is_there_keeps_its_modes(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir(mode=0o755)
    (tmp_path / "state").mkdir(mode=0o750)
    open_store(tmp_path / "state", workspace=tmp_path / "ws")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ws", "state")] == [0o755, 0o750]


def test_without_create_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no store of agent main"):
        open_store(tmp_path / "store", create=False)
    assert not paths(tmp_path)
    open_store(tmp_path / "store")
    assert open_store(tmp_path / "store", create=False).identity.agent_id == "main"
    with pytest.raises(StoreNotFoundError, match="no store of agent other"):
        open_store(tmp_path / "store", "other", create=False)


def test_a_process_that_died_while_it_made_a_ledger_leaves_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "store" / "agents" / "main").mkdir(parents=True)
    (tmp_path / "store" / "agents" / "main" / "ledger.sqlite").touch()
    assert open_store(tmp_path / "store").catalogue() == ()


def test_a_process_that_died_before_the_first_table_leaves_no_obstacle(tmp_path: Path) -> None:
    fresh_store(tmp_path / "store")
    for agent in ("main", "other"):
        path = tmp_path / "store" / "state" / "agents" / agent / "ledger.sqlite"
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        connection = apsw.Connection(str(path))
        list(connection.execute("PRAGMA journal_mode = WAL"))
        connection.close()
        assert path.stat().st_size
    store = hasty(open_store(tmp_path / "store" / "state", workspace=tmp_path / "store" / "workspace"))
    assert store.snapshot().sibling_keys == frozenset()  # what another process has begun to make is no sibling yet


def test_a_process_that_died_between_the_ledgers_leaves_no_obstacle(tmp_path: Path) -> None:
    first = open_store(tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "agents")
    assert open_store(tmp_path / "store")._layout == first._layout


def test_openers_that_come_at_once_make_one_store(tmp_path: Path) -> None:
    for number in range(6):
        start = threading.Barrier(6)

        def work(agent: str, top: Path = tmp_path / str(number), start: threading.Barrier = start) -> NativeStore:
            start.wait()
            store = open_store(top, agent)
            store.record_session(SessionRecord(agent, "s"))
            return store

        with ThreadPoolExecutor(6) as pool:
            stores = list(pool.map(work, ("main", "other") * 3))
        assert {len(store.catalogue()) for store in stores} == {1}
        assert len({store._layout.shared_directory for store in stores}) == 1


def test_an_unusable_directory_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreNotFoundError, match="cannot be made"):
        open_store(tmp_path / "file" / "store")


def test_an_agent_id_is_the_same_agent_in_upper_case(tmp_path: Path) -> None:
    open_store(tmp_path, "Ops").record_session(SessionRecord("ops", "s1"))
    assert [s.session_id for s in open_store(tmp_path, "ops").catalogue()] == ["s1"]
    with pytest.raises(InputError, match="agent id"):
        open_store(tmp_path, 5)  # type: ignore[arg-type]


# --- the workspace ---


def test_D12_two_spellings_of_a_workspace_are_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    a = hasty(open_store(tmp_path / "state", "a", tmp_path / "real"))
    b = hasty(open_store(tmp_path / "state", "b", tmp_path / "link"))
    again = open_store(tmp_path / "state", "a", str(tmp_path / "x" / ".." / "link") + "/")
    assert a._layout.shared_directory == b._layout.shared_directory == again._layout.shared_directory
    assert b.identity.workspace_root == str(tmp_path / "real")
    with unhurried(b) as writer:
        writer.write(RecordOrigins("b", (Origin("k", "b", "s"),)))
    assert a.snapshot().sibling_keys == {"k"}


def test_D12_the_directory_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    store = open_store(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert open_store(tmp_path / "link")._layout == store._layout


def test_the_workspace_is_remembered_and_another_one_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", workspace=tmp_path / "ws")
    assert open_store(tmp_path / "state")._layout == store._layout
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match="has its workspace at"):
        open_store(tmp_path / "state", workspace=tmp_path / "other")


def test_a_copy_of_both_directories_never_reaches_back_into_the_original(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "a")
    with unhurried(store) as writer:
        writer.write(ReplaceText("MEMORY.md", None, "original\n"))
    copy = copied(store, tmp_path / "b")
    assert copy.identity.workspace_root == str(tmp_path / "b" / "workspace")
    with unhurried(copy) as writer:
        writer.write(ReplaceText("MEMORY.md", store.snapshot().files[0].text and _digest("original\n"), "copy\n"))
    assert [store.snapshot().files[0].text, copy.snapshot().files[0].text] == ["original\n", "copy\n"]


def _digest(text: str) -> str:
    from memprov.core.text import digest  # noqa: PLC0415

    return digest(text)


def test_a_directory_that_was_copied_without_its_workspace_is_told_where_the_files_are(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "a")
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k", "main", "s1"),)))
    shutil.copytree(tmp_path / "a" / "state", tmp_path / "b" / "state")
    with pytest.raises(StoreNotFoundError, match="no workspace"):
        open_store(tmp_path / "b" / "state")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "MEMORY.md").write_text("moved\n")
    moved = open_store(tmp_path / "b" / "state", workspace=tmp_path / "files")
    snapshot = moved.snapshot()
    assert [file.text for file in snapshot.files] == ["moved\n"]
    assert snapshot.origins.keys == {"k"}


def test_a_workspace_that_is_gone_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    store = hasty(open_store(tmp_path / "store"))
    (tmp_path / "store" / "workspace").rmdir()
    for use in (store.snapshot, store.ingest_state, lambda: forget(store, Selectors(sessions=["s1"]))):
        with pytest.raises(StoreNotFoundError, match="no workspace"):
            use()
    with pytest.raises(StoreNotFoundError, match="no workspace"):
        open_store(tmp_path / "store")
    assert not (tmp_path / "store" / "workspace").exists()


def test_a_shared_ledger_that_is_gone_is_damage(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    shutil.rmtree(store._layout.shared_directory)
    with pytest.raises(CorruptStoreError, match="shared ledger"):
        open_store(tmp_path / "store")


def test_a_ledger_under_another_agents_name_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path, "a")
    shutil.copytree(tmp_path / "agents" / "a", tmp_path / "agents" / "b")
    with pytest.raises(CorruptStoreError, match="of agent 'a'"):
        open_store(tmp_path, "b")


# --- the schema ---


def test_every_ledger_says_what_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for file, schema in zip(ledgers(store), (AGENT_LEDGER, SHARED_LEDGER), strict=True):
        assert pragma(file, "application_id") == schema.application_id
        assert pragma(file, "user_version") == schema.version == len(schema.steps)
        assert pragma(file, "journal_mode") == "wal"
        with file.writing() as connection:
            strict = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
            assert {name for name, is_strict in strict if is_strict} >= set(tables(file))


@pytest.mark.parametrize("part", [0, 1])
def test_secure_delete_is_on_and_every_commit_durable_on_every_connection_that_writes(
    tmp_path: Path, part: int
) -> None:
    file = ledgers(open_store(tmp_path))[part]
    for _ in range(2):
        assert pragma(file, "secure_delete") == 1
        assert pragma(file, "synchronous") == 2
        assert pragma(file, "foreign_keys") == 1
    with hasty(open_store(tmp_path)).exclusive() as writer:
        for connection in (writer._ledger, writer._shared):
            assert next(iter(connection.execute("PRAGMA secure_delete")))[0] == 1


def test_B61_secure_delete_is_on_in_every_full_text_table(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for file in ledgers(store):
        for name, sql in rows(file, "(SELECT name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%')"):
            assert "fts5" in str(sql).lower()
            assert ("secure-delete", 1) in rows(file, f"{name}_config")
    assert rows(store._layout.ledger, "chunks_text_config")


def test_what_was_deleted_has_left_the_bytes_of_the_ledger(tmp_path: Path) -> None:
    store = hasty(open_store(tmp_path))
    canaries = [f"qx{number}zebra" for number in range(4)]
    with unhurried(store) as writer:
        for number in range(400):
            text = f"common words {canaries[number // 100] if number % 100 == 0 else 'filler'} number {number}"
            writer._ledger.execute(
                "INSERT INTO chunks (chunk_id, path, source, start_line, end_line, hash, model, text, updated_at_ms) "
                "VALUES (?, 'p', 'memory', 1, 1, 'h', 'm', ?, 0)",
                (f"c{number}", text),
            )
    raw = Path(store._layout.ledger.path).read_bytes()
    assert all(canary.encode() in raw for canary in canaries)
    with store._layout.ledger.writing() as connection:
        for number in range(0, 400, 100):
            connection.execute("DELETE FROM chunks WHERE chunk_id = ?", (f"c{number}",))
    raw = Path(store._layout.ledger.path).read_bytes()
    assert not any(canary.encode() in raw for canary in canaries)
    assert b"filler" in raw
    assert not Path(store._layout.ledger.path + "-wal").exists()


NEXT = "CREATE TABLE later (x TEXT) STRICT; INSERT INTO later SELECT session_id FROM sessions;"


def newer(store: NativeStore, *steps: str) -> NativeStore:
    """The store as the next version of memprov would see it."""
    schema = evolve(AGENT_LEDGER, steps=(*AGENT_LEDGER.steps, *steps))
    return evolve(store, layout=evolve(store._layout, agent_schema=schema))


def test_an_older_ledger_is_brought_up_to_date_by_the_first_write(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    store.record_session(SessionRecord("main", "s1"))
    later = newer(store, NEXT, "ALTER TABLE later ADD COLUMN y INTEGER")
    later.record_session(SessionRecord("main", "s2"))
    assert rows(store._layout.ledger, "later") == [("s1", None)]
    assert pragma(later._layout.ledger, "user_version") == AGENT_LEDGER.version + 2
    assert [s.session_id for s in later.catalogue()] == ["s1", "s2"]


def test_what_fills_a_new_ledger_is_not_added_to_an_older_one(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    filled: list[str] = []
    for file in (newer(store, NEXT)._layout.ledger, LedgerFile(str(tmp_path / "new.sqlite"), AGENT_LEDGER)):
        file.create(lambda connection: filled.append(connection.filename))
    assert filled == [str(tmp_path / "new.sqlite")]


def test_I3_an_older_ledger_is_read_without_being_changed(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    store.record_session(SessionRecord("main", "s1", hook_source="gmail"))
    later = newer(store, NEXT, "UPDATE sessions SET hook_source = 'email'")
    before = Path(store._layout.ledger.path).read_bytes()
    assert preview(later, Selectors(hook_sources=["email"])).report.session_ids == ("s1",)
    assert not preview(store, Selectors(hook_sources=["email"])).report.session_ids
    assert Path(store._layout.ledger.path).read_bytes() == before


def test_a_step_that_fails_leaves_the_old_schema_whole(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    store.record_session(SessionRecord("main", "s1"))
    later = newer(store, NEXT, "CREATE TABLE later (z TEXT) STRICT")
    with pytest.raises(RefusedError, match="later already exists"):
        later.record_session(SessionRecord("main", "s2"))
    assert "later" not in tables(store._layout.ledger)
    assert pragma(store._layout.ledger, "user_version") == AGENT_LEDGER.version
    assert [s.session_id for s in store.catalogue()] == ["s1"]


def test_a_step_that_leaves_rows_without_their_parents_is_refused(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    later = newer(store, "INSERT INTO participants VALUES ('nobody', 'p', '{}')")
    with pytest.raises(CorruptStoreError, match="participants"):
        later.record_session(SessionRecord("main", "s1"))
    assert not rows(store._layout.ledger, "participants")


def test_a_newer_ledger_is_refused_by_every_use(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    newer(store, NEXT).record_session(SessionRecord("main", "s1"))
    before = Path(store._layout.ledger.path).read_bytes()
    for use in (
        lambda: open_store(tmp_path / "store" / "state"),
        store.catalogue,
        store.snapshot,
        lambda: store.record_session(SessionRecord("main", "s2")),
        lambda: forget(store, Selectors(sessions=["s1"])),
    ):
        with pytest.raises(
            SchemaError,
            match=f"version {AGENT_LEDGER.version + 1}; this memprov knows versions up to {AGENT_LEDGER.version}",
        ):
            use()
    assert Path(store._layout.ledger.path).read_bytes() == before


@pytest.mark.parametrize("part", [0, 1])
def test_a_database_of_another_program_is_refused(tmp_path: Path, part: int) -> None:
    store = hasty(open_store(tmp_path))
    path = Path(ledgers(store)[part].path)
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaError, match="another program"):
        store.snapshot()
    with pytest.raises(SchemaError, match="another program"), store.exclusive():
        pass
    with pytest.raises(SchemaError, match="another program"), ledgers(store)[part].writing():
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"# Notes\n" * 600, b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_is_no_database_is_damage_and_not_absence(tmp_path: Path, content: bytes) -> None:
    store = hasty(open_store(tmp_path))
    Path(store._layout.ledger.path).write_bytes(content)
    with pytest.raises(CorruptStoreError):
        open_store(tmp_path)
    with pytest.raises(CorruptStoreError):
        store.snapshot()
    with pytest.raises(RefusedError):
        store.record_session(SessionRecord("main", "s1"))
    assert Path(store._layout.ledger.path).read_bytes() == content
