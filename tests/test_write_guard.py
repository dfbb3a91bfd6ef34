"""The write guard: whatever command runs, memprov writes where the surface registry says, and nowhere else.

Two witnesses: the files of a whole sandbox (state, workspace, home, temporary folder, working directory) before and
after, and what Python itself was asked to write by absolute path. What only reads may write nowhere at all (I3).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from attrs import define, field

from memprov import (
    Message,
    SessionRecord,
    Thresholds,
    backfill,
    ingest,
    promote,
    rebuild_index,
    rollback_backfill,
    search,
    sync_index,
)
from memprov.cli.commands import _COMMANDS, _cli
from memprov.core.proof import Root, is_declared
from memprov.testing import ToyEmbedder
from tests.real_stores import store_archives, unpack
from tests.shell.proof.world import NOW, embedded, reopened

READING = {"admit", "agents", "demo", "receipt check", "receipt show", "sessions", "trace", "verify"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OTHERS = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod", "shutil.copyfile"}


@define
class Watch:
    """Absolute paths that Python was asked to write, while somebody watches."""

    on: bool = False
    paths: list[str] = field(factory=list)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes) and isinstance(arguments[2], int):
            if arguments[2] & _WRITING:
                self.note(arguments[0])
        elif event in _OTHERS:
            for argument in arguments:
                if isinstance(argument, str | bytes):
                    self.note(argument)

    def note(self, path: str | bytes) -> None:
        """Remember it; a path within a directory handle is seen in the files."""
        if os.fsencode(path).startswith(b"/"):
            self.paths.append(os.fsdecode(path))


WATCH = Watch()
sys.addaudithook(WATCH)

Fingerprint = dict[str, tuple[int, int, int]]


@define
class Sandbox:
    """Everything that a command may reach by mistake, and what it may write: ``out``, and declared surfaces."""

    top: Path
    kind: str
    state: Path
    workspace: Path

    @property
    def out(self) -> Path:
        return self.top / "out"

    def files(self) -> Fingerprint:
        found = {}
        for path in self.top.rglob("*"):
            if path.is_file() and self.out not in path.parents:
                info = path.stat()
                found[str(path)] = (info.st_ino, info.st_size, info.st_mtime_ns)
        return found

    def undeclared(self, path: str) -> bool:
        """Whether nothing in the registry says that memprov writes here."""
        for root, directory in ((Root.WORKSPACE, self.workspace), (Root.STATE, self.state)):
            if Path(path).is_relative_to(directory):
                return not is_declared(self.kind, "main", root, Path(path).relative_to(directory).as_posix())
        return not Path(path).is_relative_to(self.out)

    def run(self, command: Callable[[], object]) -> tuple[set[str], set[str]]:
        """The files that changed, and the absolute paths that were written but for temporary ones, undeclared only."""
        before = self.files()
        WATCH.paths.clear()
        WATCH.on = True
        try:
            command()
        finally:
            WATCH.on = False
        after = self.files()
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        passing = (str(self.top / "tmp"), os.devnull)
        written = {p for p in map(os.path.realpath, WATCH.paths) if not p.startswith(passing)}
        wrong = {p for p in written if "__pycache__" not in p and not Path(p).is_dir() and self.undeclared(p)}
        return changed, wrong | {path for path in changed if self.undeclared(path)}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    for name in ("home", "tmp", "cwd", "out"):
        (tmp_path / name).mkdir()
    if request.param == "memprov":
        embedded(tmp_path / "store")
        box = Sandbox(tmp_path, "memprov", tmp_path / "store" / "state", tmp_path / "store" / "workspace")
    else:
        before = unpack(store_archives()["vectors"], tmp_path / "store") / "before"
        box = Sandbox(tmp_path, "openclaw", before / "state", before / "ws")
    for name, value in (("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "home"), ("XDG_STATE_HOME", "home")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "cwd")
    yield box
    tempfile.tempdir = None


def commands(box: Sandbox, session: str) -> dict[str, list[str]]:
    option = "--store" if box.kind == "memprov" else "--openclaw"
    place = [option, str(box.state), "--workspace", str(box.workspace)]
    chosen = ["--session", session]
    plan, receipt = str(box.out / "plan.json"), str(box.out / "receipt.json")
    return {
        "agents": ["agents", option, str(box.state)],
        "sessions": ["sessions", *place],
        "admit": ["admit", *place],
        "trace": ["trace", *place, *chosen],
        "verify": ["verify", *place, *chosen],
        "forget --dry-run": ["forget", *place, *chosen, "--dry-run", "--plan-out", plan],
        "apply": ["apply", plan],
        "forget": ["forget", *place, *chosen, "--level", "erase", "--prove", "--receipt", receipt],
        "receipt show": ["receipt", "show", *place],
        "receipt check": ["receipt", "check", receipt, *place],
        "demo": ["demo"],
    }


def carried_out(arguments: list[str]) -> Callable[[], object]:
    def run() -> object:
        try:
            return _cli.main(arguments, standalone_mode=False)
        except click.exceptions.Exit:
            return None

    return run


@pytest.mark.needs_store("vectors")
@pytest.mark.parametrize("sandbox", ["memprov", "openclaw"], indirect=True)
def test_I3_every_command_writes_where_the_registry_says_and_nowhere_else(sandbox: Sandbox) -> None:
    session = "monday-chat" if sandbox.kind == "memprov" else "33333333-aaaa-4aaa-8aaa-000000000001"
    every = commands(sandbox, session)
    assert {arguments[0] for arguments in every.values()} == set(_COMMANDS), "a command that nobody guards"
    for name, arguments in every.items():
        changed, wrong = sandbox.run(carried_out(arguments))
        assert not wrong, name
        if name in READING or "--dry-run" in name:
            assert not changed, name
    assert (sandbox.out / "receipt.json").exists()


@pytest.mark.parametrize("sandbox", ["memprov"], indirect=True)
@pytest.mark.parametrize(
    "where", ["home/.memprov/cache", "store/state/copy.sqlite", "store/workspace/x.bak", "cwd/log"]
)
def test_I3_a_write_anywhere_else_rings(sandbox: Sandbox, where: str) -> None:
    path = sandbox.top / where

    def leak() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("leaked")

    assert str(path) in sandbox.run(leak)[1]


@pytest.mark.parametrize("sandbox", ["memprov"], indirect=True)
def test_the_write_path_writes_where_the_registry_says_and_nowhere_else(sandbox: Sandbox) -> None:
    store = reopened(sandbox.top / "store")

    def said(session: SessionRecord) -> list[Message]:
        return [Message("user", f"New in {session.session_id}.", number=4, timestamp_ms=NOW, sender_is_owner=True)]

    def life() -> None:
        store.record_session(SessionRecord("main", "friday", "agent:main:friday", created_at_ms=NOW))
        ingest(store, said, now_ms=NOW)
        backfill(store, said, mode="apply")
        rollback_backfill(store)
        promote(store, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)
        with store.observe_write("friday", "memory/note.md", sender_is_owner=True, tainted=False):
            (sandbox.workspace / "memory/note.md").write_text("A note.\n")
        sync_index(store, embedder=ToyEmbedder(8))
        rebuild_index(store, embedder=ToyEmbedder(8))
        search(store, "note", embedder=ToyEmbedder(8))

    changed, wrong = sandbox.run(life)
    assert not wrong
    assert changed, "the twin: it did write"


@pytest.mark.parametrize("sandbox", ["memprov"], indirect=True)
def test_I3_a_write_that_is_gone_again_rings_too(sandbox: Sandbox) -> None:
    path = sandbox.top / "home" / "passing"

    def leak() -> None:
        path.write_text("leaked")
        path.unlink()

    assert str(path) in sandbox.run(leak)[1]
