"""The command line: one JSON document, one clear line for each mistake, and the exit codes of docs: cli."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import Selectors, forget, open_openclaw
from tests.cli.running import Ran, Run
from tests.test_golden import files_of

pytestmark = pytest.mark.needs_store("basic")
SESSION = "11111111-aaaa-4aaa-8aaa-000000000001"


@pytest.fixture
def root(store_copy: Callable[..., Path]) -> Path:
    return store_copy("basic")


def where(root: Path) -> tuple[str | Path, ...]:
    return ("--openclaw", root / "state", "--agent", "main", "--workspace", root / "ws")


def forget_words(root: Path, *more: str | Path) -> tuple[str | Path, ...]:
    return ("forget", *where(root), "--session", SESSION, *more)


def shared(root: Path) -> Path:
    return root / "state" / "state" / "openclaw.sqlite"


def agent(root: Path) -> Path:
    return root / "state" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"


def assert_one_line(ran: Ran) -> None:
    assert ran.out == "" or ran.json["error"] == ran.err.removeprefix("memprov: ").strip()
    assert len(ran.err.strip().splitlines()) == 1
    assert ran.err.startswith("memprov: ")
    assert "Traceback" not in ran.err


def test_preview_purge_and_proof_that_nothing_is_left(run: Run, root: Path) -> None:
    before = files_of(root)
    preview = run(*forget_words(root, "--dry-run", "--json"))
    assert (preview.code, preview.json["dryRun"]) == (0, True)
    assert files_of(root) == before
    applied = run(*forget_words(root, "--json"))
    assert (applied.code, applied.json["dryRun"]) == (0, False)
    assert {**applied.json, "dryRun": True} == preview.json
    again = run(*forget_words(root, "--dry-run", "--json"))
    assert set(again.json["artifacts"].values()) == {0}
    assert again.json["entryKeys"] == []


FIELDS = [
    "agentId",
    "dryRun",
    "sessionIds",
    "participantMatches",
    "sessionResolutions",
    "entryKeys",
    "mixedLineageEntryKeys",
    "untargetableEntryKeys",
    "curatedWrites",
    "artifacts",
    "refusals",
    "collateralEntryKeys",
    "siblingEntryKeys",
    "danglingMarkers",
    "extraArtifacts",
    "warnings",
    "planDigest",
    "level",
    "suspects",
    "sharedEntries",
    "emptiedFiles",
    "goneMarkers",
]
COUNTERS = [
    "memoryFiles",
    "memoryEntries",
    "memoryLines",
    "sessionCorpusFiles",
    "sessionCorpusLines",
    "indexChunks",
    "indexSources",
    "ftsRows",
    "vectorRows",
    "embeddingCacheRows",
    "shortTermEntries",
    "seenHashScopes",
    "backups",
    "originRows",
]


def test_field_order_of_the_report_is_the_documents(run: Run, root: Path) -> None:
    report = run(*forget_words(root, "--dry-run", "--json")).json
    assert list(report) == FIELDS
    assert list(report["artifacts"]) == COUNTERS
    assert list(report["extraArtifacts"]) == ["signals", "rewindRows", "events", "staleCopies"]


def test_text_says_what_goes_from_where_and_what_stays(run: Run, root: Path) -> None:
    text = run(*forget_words(root, "--dry-run")).out
    assert "Would forget 1 session of agent main" in text
    assert "MEMORY.md" in text
    assert "Nothing was changed" in text
    assert "oolong" not in text, "no memory text in any output"
    assert "Forgot 1 session" in run(*forget_words(root)).out


def test_sessions_lists_ids_and_keys(run: Run, root: Path) -> None:
    listed = run("sessions", *where(root), "--json").json
    assert SESSION in [row["sessionId"] for row in listed]
    shown = run("sessions", *where(root)).out.splitlines()
    assert len(shown) >= len(listed) + 1
    assert any(len(line) > 9 and SESSION.endswith(line.split()[0].strip("…")) for line in shown[1:])


def test_a_saved_plan_is_reviewed_and_applied_and_a_stale_one_refused(run: Run, root: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    report = run(*forget_words(root, "--dry-run", "--json", "--plan-out", plan)).json
    assert "oolong" not in plan.read_text()
    memory = root / "ws" / "MEMORY.md"
    original = memory.read_bytes()
    memory.write_bytes(b"# edited\n" + original)
    before = files_of(root)
    stale = run("apply", plan, "--json")
    assert stale.code == 3
    assert_one_line(stale)
    assert files_of(root / "ws") == {k.removeprefix("ws/"): v for k, v in before.items() if k.startswith("ws/")}
    memory.write_bytes(original)
    applied = run("apply", plan, "--json")
    assert applied.code == 0
    assert {**applied.json, "dryRun": True} == report


def test_plan_out_without_dry_run_saves_and_applies_that_plan(run: Run, root: Path, tmp_path: Path) -> None:
    ran = run(*forget_words(root, "--json", "--plan-out", tmp_path / "plan.json"))
    assert (ran.code, ran.json["dryRun"]) == (0, False)
    assert ran.json["planDigest"] in (tmp_path / "plan.json").read_text()


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--session", ""),
        ("--session", "  "),
        ("--session", "*"),
        ("--participant", "a\0b"),
        ("--since", "2026-11-25"),
        ("--session", "x", "--since", "2026-13-99"),
        ("--session", "x", "--since", ""),
        ("--session", "x", "--since", "yesterday"),
        ("--session", "x", "--level", "sideways"),
        ("--hook-source", ""),
    ],
)
def test_case_B11_report_B57_bad_selectors_are_refused_before_anything_is_read(
    run: Run, words: tuple[str, ...]
) -> None:
    ran = run("forget", "--openclaw", "/no/such/place", *words)
    assert ran.code == 2
    assert_one_line(ran)
    assert "no such" not in ran.err or "level" in words, "the selector is looked at before the store"


@pytest.mark.parametrize(
    "words",
    [
        ("--openclaw", "/no/such/place", "--session", "x"),
        ("--session", "x"),
        ("--no-such-option",),
    ],
)
def test_bad_arguments_have_exit_code_2(run: Run, words: tuple[str, ...]) -> None:
    ran = run("forget", *words)
    assert (ran.code, ran.out) == (2, "")


def test_an_unknown_agent_is_named_with_the_known_ones(run: Run, root: Path) -> None:
    ran = run("forget", "--openclaw", root / "state", "--agent", "ghost", "--session", "x", "--dry-run")
    assert ran.code == 2
    assert_one_line(ran)
    assert "ghost" in ran.err
    assert "main" in ran.err


def test_a_missing_workspace_asks_for_one(run: Run, root: Path) -> None:
    if Path("/srv/agents/basic/ws").exists():
        shutil.rmtree(root / "ws")
        ran = run("forget", *where(root), "--session", "x", "--dry-run")
    else:
        ran = run("forget", "--openclaw", root / "state", "--session", "x", "--dry-run")
    assert ran.code == 2
    assert_one_line(ran)
    assert "workspace" in ran.err


def test_a_missing_database_is_no_store(run: Run, root: Path) -> None:
    agent(root).unlink()
    ran = run(*forget_words(root, "--dry-run"))
    assert ran.code == 2
    assert_one_line(ran)


@pytest.mark.parametrize("which", [agent, shared])
def test_a_corrupt_database_is_refused_and_never_taken_for_empty(
    run: Run, root: Path, which: Callable[[Path], Path]
) -> None:
    which(root).write_bytes(b"this is no database, and long enough to have a header: " * 40)
    before = files_of(root)
    for more in (("--dry-run",), ()):
        ran = run(*forget_words(root, *more))
        assert ran.code == 3
        assert_one_line(ran)
    assert files_of(root) == before


@pytest.mark.parametrize("which", [agent, shared])
def test_an_unknown_newer_schema_is_refused_before_any_write(
    run: Run, root: Path, which: Callable[[Path], Path]
) -> None:
    with apsw.Connection(str(which(root))) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = files_of(root)
    for more in (("--dry-run",), ()):
        ran = run(*forget_words(root, *more))
        assert ran.code == 3
        assert_one_line(ran)
        assert "99" in ran.err
    assert files_of(root) == before


def put_row(root: Path, namespace: str, key: str, value: str, plugin: str = "memory-core") -> None:
    with apsw.Connection(str(shared(root))) as db:
        row = (plugin, namespace, key, value, int(time.time() * 1000))
        db.execute("INSERT OR REPLACE INTO plugin_state_entries VALUES (?, ?, ?, ?, ?, NULL)", row)
    db.close()


def workspace_key(root: Path) -> str:
    with apsw.Connection(str(shared(root))) as db:
        found = db.execute(
            "SELECT entry_key FROM plugin_state_entries WHERE namespace = 'short-term-recall'"
        ).fetchone()
    db.close()
    assert found is not None
    return str(found[0]).split(":")[0]


def test_case_G20_a_lock_of_a_live_process_is_refused_and_a_preview_undisturbed(run: Run, root: Path) -> None:
    lock = json.dumps({"owner": f"{os.getpid()}:somebody", "acquiredAt": int(time.time() * 1000)})
    put_row(root, "short-term-locks", workspace_key(root), lock)
    assert run(*forget_words(root, "--dry-run")).code == 0
    store = open_openclaw(root / "state", workspace=root / "ws")
    ticks = iter(range(10_000))
    impatient = evolve(store, clock=lambda: time.time() + next(ticks), sleep=lambda seconds: None)
    with pytest.raises(Exception, match=str(os.getpid())) as caught:
        forget(impatient, Selectors(sessions=[SESSION]))
    assert caught.value.code == "MEMORY_WORKSPACE_LOCK_HELD"  # type: ignore[attr-defined]  # asserts the class, too
    assert caught.value.exit_code == 3  # type: ignore[attr-defined]


def test_case_H9_broken_json_in_a_row_of_this_workspace_is_a_storage_error_and_elsewhere_ignored(
    run: Run, root: Path
) -> None:
    own = workspace_key(root)
    put_row(root, "short-term-recall", "0" * 64 + ":" + "0" * 64, "{broken")
    assert run(*forget_words(root, "--dry-run")).code == 0
    put_row(root, "short-term-recall", f"{own}:{'1' * 64}", "{broken")
    before = files_of(root)
    for more in (("--dry-run",), ()):
        ran = run(*forget_words(root, *more))
        assert ran.code == 3
        assert_one_line(ran)
        assert "short-term-recall" in ran.err
    assert files_of(root) == before


def test_D6_a_symlink_out_of_the_workspace_is_never_followed_and_warned_of(
    run: Run, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes((root / "ws" / "MEMORY.md").read_bytes())
    before = outside.read_bytes()
    (root / "ws" / "memory" / "note.md").symlink_to(outside)
    ran = run(*forget_words(root, "--json"))
    assert ran.code == 0
    assert outside.read_bytes() == before
    assert any("memory/note.md" in warning for warning in ran.json["warnings"])


def test_case_J12_bytes_that_are_not_utf8_survive_untouched(run: Run, root: Path) -> None:
    note = root / "ws" / "memory" / "note.md"
    kept = b"caf\xe9 \xff\xfe stays\r\n"
    note.write_bytes(kept + b"- User: I prefer oolong tea over coffee in the morning.\n" + kept)
    assert run(*forget_words(root)).code == 0
    assert note.read_bytes() == kept + kept


def test_I3_a_dry_run_on_a_read_only_copy_beside_a_left_over_wal(run: Run, root: Path) -> None:
    with apsw.Connection(str(agent(root))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO memory_entry_origins VALUES ('late', 'main', ?, NULL, 'owner', 1)", (SESSION,))
    db.close()
    wal = agent(root).with_name(agent(root).name + "-wal")
    assert wal.stat().st_size > 0
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before, names = files_of(root), sorted(path.name for path in root.rglob("*"))
    ran = run(*forget_words(root, "--dry-run", "--json"))
    assert "late" in ran.json["entryKeys"], "committed frames are seen"
    assert files_of(root) == before
    assert sorted(path.name for path in root.rglob("*")) == names


def test_the_installed_command_prints_one_json_document_on_standard_output(root: Path) -> None:
    words = ["forget", *map(str, where(root)), "--session", SESSION, "--dry-run", "--json"]
    ran = subprocess.run([sys.executable, "-m", "memprov", *words], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["sessionIds"] == [SESSION]
    assert ran.stderr == ""


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_what_the_terminal_cannot_show_does_not_spoil_the_answer(root: Path, encoding: str) -> None:
    with (root / "ws" / "MEMORY.md").open("ab") as file:
        file.write("\n<!-- openclaw-memory-promotion:café…☕ -->\n- tea\n".encode())
        file.write(b"<!-- openclaw-memory-promotion:caf\xe9 -->\n- tea\n")
    words = [sys.executable, "-m", "memprov", *map(str, forget_words(root))]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    preview = subprocess.run([*words, "--dry-run", "--json"], capture_output=True, check=True, env=environment)
    keys = json.loads(preview.stdout.decode())["untargetableEntryKeys"]
    assert {"café…☕", "caf\udce9"} <= set(keys)
    applied = subprocess.run(words, capture_output=True, check=True, env=environment)
    assert "caf\\udce9" in applied.stdout.decode(encoding)


def test_a_plan_of_another_session_store_is_applied_with_the_same_option(run: Run, root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "sessions.sqlite"
    shutil.copy(agent(root), elsewhere)
    with apsw.Connection(str(elsewhere)) as db:
        renamed = "UPDATE session_windows SET session_key = 'agent:main:dashboard:renamed' WHERE session_id = ?"
        db.execute(renamed, (SESSION,))
    db.close()
    option, plan = ("--session-store", str(elsewhere)), tmp_path / "plan.json"
    words = ("forget", *where(root), *option, "--session", "agent:main:dashboard:renamed")
    assert run(*words, "--dry-run", "--plan-out", plan).code == 0
    assert run("apply", plan).code == 3
    assert run("apply", plan, *option).code == 0
