"""A process that is killed at any effect: what it left on disk is where the next run begins (I5)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from memprov import (
    Message,
    NativeStore,
    Selectors,
    SessionRecord,
    forget,
    ingest,
    open_store,
    preview,
)
from tests.test_golden import files_of

T = 1_795_597_200_000
DAY = 86_400_000

_KILLED = """
import os, signal, sys
from memprov.shell.native import NativeWriter
from tests.test_kills import DEEDS
from memprov import open_store

directory, deed, at = sys.argv[1:]
for name in ("write", "apply"):
    def killed(self, *arguments, real=getattr(NativeWriter, name)):
        global number
        done = real(self, *arguments)
        number += 1
        if number == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    setattr(NativeWriter, name, killed)
number = 0
DEEDS[deed](open_store(directory))
print(number)
"""


def said(session: SessionRecord, /) -> list[Message]:
    texts = (f"The spare key of {session.session_id} is in the blue drawer.", "Oolong is what I drink in the morning.")
    return [Message("user", text, timestamp_ms=T + n, sender_is_owner=True) for n, text in enumerate(texts)]


DEEDS: dict[str, Any] = {
    "ingest": lambda store: ingest(store, said, now_ms=T + DAY),
    "forget": lambda store: forget(store, Selectors(sessions=["s1"])),
}


def filled(directory: Path) -> NativeStore:
    store = open_store(directory)
    for name in ("s1", "s2"):
        store.record_session(SessionRecord("main", name, f"agent:main:{name}", created_at_ms=T))
    return store


def seen(store: NativeStore) -> tuple[Any, ...]:
    state = store.snapshot()
    return (
        files_of(Path(store._layout.workspace)),
        sorted(row.entry_key for row in state.origins.rows()),
        sorted(row.key for row in state.recall),
        sorted(state.checkpoints),
        sorted(state.seen_scopes),
        state.tombstones,
    )


def run(directory: Path, deed: str, at: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", _KILLED, str(directory), deed, str(at)]
    root = Path(__file__).parents[1]
    return subprocess.run(words, cwd=root, check=False, capture_output=True, text=True)


def test_I5_a_sweep_and_a_purge_that_are_killed_at_any_effect_are_finished_by_the_next(tmp_path: Path) -> None:
    before = tmp_path / "before"
    filled(before)
    for deed in ("ingest", "forget"):
        reference = tmp_path / f"{deed} in one"
        shutil.copytree(before, reference)
        whole = run(reference, deed, 0)
        assert not whole.returncode, whole.stderr
        expected = seen(open_store(reference))
        count = int(whole.stdout)
        assert count > 3
        for at in range(1, count + 1):
            left = tmp_path / f"{deed} {at}"
            shutil.copytree(before, left)
            assert run(left, deed, at).returncode == -signal.SIGKILL
            DEEDS[deed](open_store(left))
            assert seen(open_store(left)) == expected, (deed, at)
        before = reference
    assert preview(open_store(before), Selectors(sessions=["s1"])).removes_nothing
