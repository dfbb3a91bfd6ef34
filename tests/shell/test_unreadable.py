"""Places that cannot be read are said by every store, whether it reads all or answers narrowly (F06, F18, F18a)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memprov import RefusedError, Selectors, forget, open_openclaw, open_store, plan_purge, preview
from memprov.shell.port import Store
from memprov.shell.selecting import resolve
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store

CORPUS = "memory/.dreams/session-corpus"
S1 = Selectors(sessions=[synthetic_sessions(4)[1].session_id])


def openclaw(directory: Path) -> tuple[Store, Path]:
    identity = write_openclaw_store(directory, synthetic_snapshot(4, 3), synthetic_sessions(4)).store
    return open_openclaw(identity.state_root), Path(identity.workspace_root)


def embedded(directory: Path) -> tuple[Store, Path]:
    store = open_store(directory)
    return store, Path(store.identity.workspace_root)


@pytest.fixture(params=[openclaw, embedded])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Path]:
    make: Callable[[Path], tuple[Store, Path]] = request.param
    return make(tmp_path / "store")


def test_F06_a_copy_in_another_encoding_is_a_warning(place: tuple[Store, Path]) -> None:
    store, workspace = place
    (workspace / CORPUS).mkdir(parents=True, exist_ok=True)
    for path in ("memory/copy.md", f"{CORPUS}/2020-01-01.txt"):
        (workspace / path).write_bytes("- what was said in the morning\n".encode("utf-16"))
    (workspace / "memory" / "old.md").write_bytes("- Zoë\n".encode("latin-1"))
    plan = preview(store, S1)
    named = [warning.split(" is not readable")[0] for warning in plan.report.warnings if "not readable" in warning]
    assert named == [f"{CORPUS}/2020-01-01.txt", "memory/copy.md", "memory/old.md"]
    selection = resolve(store, S1)
    assert plan_purge(store.snapshot(selection), selection).report == plan.report


def test_F18_a_file_in_the_place_of_the_corpus_is_refused_before_anything_is_done(place: tuple[Store, Path]) -> None:
    store, workspace = place
    if (workspace / CORPUS).exists():
        (workspace / CORPUS).rename(workspace / "kept")
    (workspace / CORPUS).parent.mkdir(parents=True, exist_ok=True)
    (workspace / CORPUS).write_text("something")
    for act in (preview, forget):
        with pytest.raises(RefusedError, match="session-corpus is no folder"):
            act(store, S1)


def test_F18_a_folder_in_the_place_of_a_file_is_a_warning(place: tuple[Store, Path]) -> None:
    store, workspace = place
    (workspace / "MEMORY.md").unlink(missing_ok=True)
    (workspace / "MEMORY.md").mkdir()
    assert any(warning.startswith("MEMORY.md is a folder") for warning in preview(store, S1).report.warnings)


def test_F18a_what_a_killed_rebuild_left_is_a_warning(tmp_path: Path) -> None:
    store, _ = openclaw(tmp_path / "store")
    database = next(tmp_path.rglob("openclaw-agent.sqlite"))
    left = database.with_name(f"{database.name}.memory-reindex-0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0")
    assert not any("rebuild" in warning for warning in preview(store, S1).report.warnings)
    for name in (left.name, f"{left.name}-wal", f"{database.name}.reindex-lock.sqlite"):
        left.with_name(name).write_bytes(b"text")
    plan = preview(store, S1)
    (warning,) = [warning for warning in plan.report.warnings if "rebuild" in warning]
    assert str(left) in warning
    selection = resolve(store, S1)
    assert plan_purge(store.snapshot(selection), selection).report == plan.report
