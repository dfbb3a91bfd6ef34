"""What reaches the terminal, and what a failed command tells a program: F40, F45, F48 and the messages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from memprov import (
    ConflictError,
    Identity,
    InputError,
    Message,
    Selectors,
    SessionRecord,
    Thresholds,
    forget,
    ingest,
    open_openclaw,
    open_store,
    promote,
)
from memprov.cli.commands import _COMMANDS, _cli
from memprov.cli.forget import forget_command
from memprov.cli.printing import escaped
from memprov.core.purge import Level
from memprov.shell.native import NativeWriter
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.cli.running import Run

HOSTILE = "s\x1b[2J\x07\u202e\x9b1m\nmemprov: all clean"
FORBIDDEN = frozenset("\x1b\x07\u202e\x9b\r\u2066\x7f")
NOW = 1_795_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An embedded store in which every name is as hostile as a name may be."""
    opened = open_store(tmp_path / "store", workspace=tmp_path / "ws\x1b]0;x\x07")
    person = Identity("profile", f"p{HOSTILE}")
    opened.record_session(
        SessionRecord(
            "main", HOSTILE, f"agent:main:{HOSTILE}", created_at_ms=NOW, channel=HOSTILE, participants=[person]
        )
    )
    opened.record_session(SessionRecord("main", "s1", "agent:main:s1", created_at_ms=NOW - 1))
    said = [Message("user", "I prefer oolong tea over coffee.", sender_is_owner=True, timestamp_ms=NOW, number=2)]
    ingest(opened, lambda _: said, now_ms=NOW)
    promote(opened, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)
    (tmp_path / "ws\x1b]0;x\x07" / "memory").mkdir(exist_ok=True)
    (tmp_path / "ws\x1b]0;x\x07" / "memory" / f"n{HOSTILE}.md".replace("/", "")).write_text(
        "<!-- openclaw-memory-promotion:k\x1b[2J\u202e -->\n- I prefer oolong tea over coffee.\n"
    )
    return tmp_path / "store"


def commands(store: Path, plan: Path) -> list[tuple[str | Path, ...]]:
    """Every command that prints, in every form; the purge comes last."""
    where = ("--store", store)
    selected = ("--session", HOSTILE, "--participant", f"p{HOSTILE}")
    return [
        ("sessions", *where),
        ("sessions", *where, "--json"),
        ("admit", *where),
        ("admit", *where, "--json"),
        ("trace", *where, "--session", HOSTILE),
        ("trace", *where, "--session", HOSTILE, "--json"),
        ("trace", *where, "--file", "MEMORY.md:1"),
        ("trace", *where, "--entry", f"k{HOSTILE}"),
        ("trace", *where, "--entry", " \x1b "),
        ("trace", *where, "--file", HOSTILE),
        ("forget", *where, *selected, "--dry-run", "--plan-out", plan),
        ("forget", *where, *selected, "--dry-run", "--json"),
        ("forget", *where, "--session", f"x{HOSTILE}", "--since", HOSTILE),
        ("forget", *where, "--session", f"agent:main:x{HOSTILE}", "--dry-run"),
        ("forget", "--store", f"/no{HOSTILE}", *selected),
        ("forget", *where, "--agent", HOSTILE, *selected),
        ("forget", *where, HOSTILE),
        ("apply", f"/no{HOSTILE}"),
        ("apply", plan),
        ("forget", *where, *selected),
    ]


def test_F45_no_command_lets_a_stranger_speak_to_the_terminal(run: Run, store: Path, tmp_path: Path) -> None:
    shown = 0
    for words in commands(store, tmp_path / "plan.json"):
        ran = run(*words)
        assert not FORBIDDEN.intersection(ran.out + ran.err), words
        assert "\nmemprov: all clean" not in ran.out + ran.err, "a line feed in a name begins no line"
        shown += "\\x1b[2J" in ran.out + ran.err or "\\u001b[2J" in ran.out
    assert shown > 12, "the names are printed, escaped"


def test_F45_what_is_printable_stays_as_it_is_and_json_is_the_same_value(run: Run, store: Path) -> None:
    assert escaped("Zoë 备用钥匙 ☕ [red]") == "Zoë 备用钥匙 ☕ [red]"
    assert escaped("a\udce9") == "a\\udce9"
    assert run("sessions", "--store", store, "--json").json[0]["sessionId"] == HOSTILE


def test_F45_the_modules_of_the_command_line_print_in_one_place_only() -> None:
    cli = Path(str(sys.modules["memprov.cli"].__file__)).parent
    printing = [p.name for p in cli.glob("*.py") if "click.echo" in p.read_text() or "print(" in p.read_text()]
    assert [name for name in printing if name != "forget.py"] == ["printing.py"]
    assert "click.echo" not in (cli / "forget.py").read_text()


# --- errors for programs ----------------------------------------------------------------------------------------------


def test_an_error_under_json_is_one_document_beside_the_line(run: Run, store: Path, tmp_path: Path) -> None:
    for words, kind, code in (
        (("forget", "--store", store), "SelectorError", 2),
        (("forget", "--store", tmp_path / "none", "--session", "x"), "StoreNotFoundError", 2),
        (("forget", "--nonsense"), "InputError", 2),
        (("sessions", "--store", store, "--limit", "0"), "InputError", 2),
    ):
        ran = run(*words, "--json")
        assert ran.code == code
        assert list(ran.json) == ["error", "kind", "changed", "remains"]
        assert (ran.json["kind"], ran.json["changed"], ran.json["remains"]) == (kind, False, [])
        assert ran.err.strip() == f"memprov: {escaped(ran.json['error'])}"
        assert run(*words).out == "", "without --json standard output stays empty"


def test_a_purge_that_stopped_says_under_json_that_it_changed_something_and_what_remains(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = NativeWriter.apply

    def stopping(self: NativeWriter, effect: object, basis: object) -> bool:
        if type(effect).__name__ == "CutFile":
            raise ConflictError("MEMORY.md changed")
        return honest(self, effect, basis)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(NativeWriter, "apply", stopping)
    ran = run("forget", "--store", store, "--session", "s1", "--json")
    assert (ran.code, ran.json["kind"], ran.json["changed"]) == (1, "ConflictError", True)
    assert any("MEMORY.md" in remaining for remaining in ran.json["remains"])


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_report_that_cannot_be_printed_after_a_purge_says_that_the_purge_is_done(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    def full(message: object = None, *, err: bool = False, **_: object) -> None:
        if not err:
            raise OSError(28, "No space left on device")
        sys.stderr.write(f"{message}\n")

    monkeypatch.setattr(click, "echo", full)
    ran = run("forget", "--store", store, "--session", HOSTILE, *form)
    assert ran.code == 1
    assert "the purge is done" in ran.err
    assert "run" not in ran.err
    assert "run the command again" in run("admit", "--store", store, *form).err


def test_the_help_says_of_each_command_what_its_own_help_begins_with() -> None:
    context = click.Context(_cli)
    commands = {name: _cli.get_command(context, name) for name in _cli.list_commands(context)}
    assert {name: command and command.get_short_help_str(1000) for name, command in commands.items()} == {
        name: sentence for name, (_, sentence) in _COMMANDS.items()
    }
    assert _cli.get_command(context, "frget") is None


def test_the_help_loads_neither_numpy_nor_any_store() -> None:
    code = "import sys; from memprov.cli.commands import _cli; _cli.main(['--help'], standalone_mode=False)"
    code += "; print([name for name in sys.modules if name.startswith(('memprov.core', 'memprov.shell', 'numpy'))])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.splitlines()[-1] == "[]"


# --- small faults of the command line ---------------------------------------------------------------------------------


def test_the_level_is_accepted_by_its_value_whatever_click_makes_of_enumerations(run: Run, store: Path) -> None:
    assert run("forget", "--store", store, "--session", "x", "--dry-run", "--level", "logical").code == 0
    option = next(p for p in forget_command.params if p.name == "level")
    assert isinstance(option.type, click.Choice)
    assert [type(choice) for choice in option.type.choices] == [str] * len(Level), (
        "older and newer clicks agree on text"
    )


def test_F48_sessions_takes_a_limit_or_all_and_shows_who_is_forgotten(run: Run, store: Path) -> None:
    opened = open_store(store)
    for day in range(3):
        opened.record_session(SessionRecord("main", f"day-{day}", created_at_ms=NOW + day))
    assert len(run("sessions", "--store", store, "--limit", "all", "--json").json) == 5
    newest = run("sessions", "--store", store, "--limit", "2", "--json").json
    assert [row["sessionId"] for row in newest] == ["day-2", "day-1"]
    assert "3 older sessions" in run("sessions", "--store", store, "--limit", "2").out
    forget(opened, Selectors(sessions=["day-1"]))
    rows = run("sessions", "--store", store, "--json").json
    assert [row["sessionId"] for row in rows if row["forgotten"]] == ["day-1"]
    for bad in ("0", "-1", "many", "", "٣", "1" * 12):
        assert run("sessions", "--store", store, "--limit", bad).code == 2


def test_a_receipt_that_has_no_place_is_refused_before_the_purge(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "none" / "receipt", tmp_path / "file" / "receipt", tmp_path, "  "):
        ran = run("forget", "--store", store, "--session", "day-1", "--receipt", place)
        assert (ran.code, ran.out) == (2, ""), place
    assert not open_store(store).forgotten()


@pytest.mark.parametrize("name", ["!!!", "../main", "  ", " main", "main ", "ma in", "ünï", "x" * 65, "", "-main"])
def test_F40_what_is_no_agent_id_is_refused_by_both_stores(run: Run, store: Path, tmp_path: Path, name: str) -> None:
    write_openclaw_store(
        tmp_path / "claw", synthetic_snapshot(sessions=1, seed=1), synthetic_sessions(sessions=1, seed=1)
    )
    for place in (("--store", store), ("--openclaw", tmp_path / "claw" / "state")):
        ran = run("forget", *place, f"--agent={name}", "--session", "x", "--dry-run")
        assert (ran.code, ran.out) == (2, "")
        assert repr(name) in ran.err
    with pytest.raises(InputError):
        open_store(tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_F48_an_agent_in_upper_case_is_the_same_agent_in_both_stores(run: Run, store: Path, tmp_path: Path) -> None:
    write_openclaw_store(
        tmp_path / "claw", synthetic_snapshot(sessions=1, seed=1), synthetic_sessions(sessions=1, seed=1)
    )
    assert open_store(store, "Main", create=False).identity.agent_id == "main"
    assert open_openclaw(tmp_path / "claw" / "state", "MAIN").identity.agent_id == "main"


def test_an_option_of_the_other_store_is_refused_with_a_sentence(run: Run, store: Path, tmp_path: Path) -> None:
    ran = run("sessions", "--store", store, "--session-store", "x")
    assert ran.code == 2
    assert "--session-store is of OpenClaw installations" in ran.err
    assert run("forget", "--store", store, "--session", "x", "--dry-run", "--plan-out", tmp_path / "plan").code == 0
    assert "OpenClaw" in run("apply", tmp_path / "plan", "--session-store", "x").err


@pytest.mark.needs_store("vectors")
def test_a_dry_run_says_when_the_deed_would_be_refused_for_a_missing_extra(
    run: Run, store_copy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = store_copy("vectors")
    where = ("--openclaw", root / "state", "--workspace", root / "ws")
    (session, *_) = (row["sessionId"] for row in run("sessions", *where, "--json").json)
    words = ("forget", *where, "--session", session)
    assert "refused" not in run(*words, "--dry-run").err
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    preview = run(*words, "--dry-run", "--json")
    assert (preview.code, preview.json["dryRun"]) == (0, True)
    assert "would be refused" in preview.err
    assert "memprov[openclaw]" in preview.err
    assert run(*words).code == 3
