"""What every store promises behind the port, on the embedded store and on the OpenClaw store alike.

A store is given as a function that writes a snapshot to disk and opens it; nothing here knows which one it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from attrs import define, evolve

from memprov import (
    LockHeldError,
    MemorySnapshot,
    PurgePlan,
    Selectors,
    SessionRecord,
    apply_plan,
    apply_to_snapshot,
    forget,
    open_openclaw,
    plan_purge,
    preview,
    select_sessions,
)
from memprov.core.lineage import Basis
from memprov.core.purge import DropOrigins, PurgeIndex, RecordTombstones
from memprov.errors import InputError, RefusedError
from memprov.shell.port import Store
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.shell.native.loading import Clock, canonical, fresh_store, write_snapshot


@define
class Made:
    """A store on disk: opened, the snapshot that it holds, and the clock of its hands."""

    store: Store
    written: MemorySnapshot
    clock: Clock
    root: Path


Maker = Callable[[Path, MemorySnapshot, Iterable[SessionRecord]], Made]


def make_native(root: Path, snapshot: MemorySnapshot, sessions: Iterable[SessionRecord]) -> Made:
    store = fresh_store(root)
    clock = Clock()
    return Made(evolve(store, clock=clock, sleep=clock.sleep), write_snapshot(store, snapshot, sessions), clock, root)


def make_openclaw(root: Path, snapshot: MemorySnapshot, sessions: Iterable[SessionRecord]) -> Made:
    written = write_openclaw_store(root, evolve(snapshot, events=()), sessions)
    clock = Clock()
    return Made(evolve(open_openclaw(root / "state"), clock=clock, sleep=clock.sleep), canonical(written), clock, root)


SESSIONS = synthetic_sessions(12)
SNAPSHOT = synthetic_snapshot(12, 3)
CHOSEN = next(session.session_id for session in SESSIONS if session.session_id in SNAPSHOT.origins.sessions)
SELECTORS = Selectors(sessions=[CHOSEN])


@pytest.fixture(params=[make_native, make_openclaw], ids=["native", "openclaw"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    maker: Maker = request.param
    return maker(tmp_path / "store", SNAPSHOT, SESSIONS)


def fingerprint(root: Path) -> dict[str, tuple[object, ...]]:
    """Every name below the root, what the system says of it, and what it holds."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted((root, *root.rglob("*"))):
        info = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (info.st_ino, info.st_size, info.st_mode, info.st_nlink, info.st_mtime_ns, content)
    return found


def test_the_identity_names_the_real_roots(made: Made) -> None:
    identity = made.store.identity
    assert identity.agent_id == "main"
    assert (identity.state_root, identity.workspace_root) == tuple(
        os.path.realpath(made.root / name) for name in ("state", "workspace")
    )


def test_what_was_written_is_read_back(made: Made) -> None:
    assert canonical(made.store.snapshot()) == made.written
    assert {(s.session_id, s.state, s.kind) for s in made.store.catalogue()} >= {
        (s.session_id, s.state, s.kind) for s in SESSIONS if s.session_id in SNAPSHOT.origins.sessions
    }


def test_I3_reading_leaves_no_trace(made: Made) -> None:
    before = fingerprint(made.root)
    made.store.catalogue()
    made.store.snapshot()
    assert preview(made.store, SELECTORS).effects
    assert fingerprint(made.root) == before


def test_I3_selecting_nothing_leaves_no_trace_either(made: Made) -> None:
    before = fingerprint(made.root)
    report = forget(made.store, Selectors(hook_sources=["nobody"]))
    assert (report.session_ids, report.dry_run) == ((), False)
    assert fingerprint(made.root) == before


def test_I3_a_store_below_directories_that_cannot_be_written_is_read(made: Made) -> None:
    directories = [path for path in (made.root, *made.root.rglob("*")) if path.is_dir()]
    modes = [path.stat().st_mode for path in directories]
    for path in directories:
        path.chmod(0o500)
    try:
        assert canonical(made.store.snapshot()) == made.written
    finally:
        for path, mode in zip(directories, modes, strict=True):
            path.chmod(mode)


def test_I15_a_purge_leaves_what_the_model_says(made: Made) -> None:
    plan = preview(made.store, SELECTORS)
    before = made.store.snapshot()
    assert evolve(forget(made.store, SELECTORS), dry_run=True) == plan.report
    after = made.store.snapshot()
    assert canonical(after) == canonical(apply_to_snapshot(before, plan))
    assert after.revision > before.revision
    assert plan.report.artifacts.origin_rows
    assert plan.report.artifacts.session_corpus_lines
    assert preview(made.store, SELECTORS).removes_nothing
    assert CHOSEN in after.tombstones


def test_a_reviewed_plan_is_carried_out(made: Made) -> None:
    plan = preview(made.store, SELECTORS)
    assert apply_plan(made.store, plan).plan_digest == plan.digest
    assert preview(made.store, SELECTORS).removes_nothing


def test_every_effect_may_be_carried_out_twice(made: Made) -> None:
    with made.store.exclusive() as writer:
        plan = _plan(made.store, writer.snapshot())
        writer.admit(plan.effects)
        for effect in plan.effects[:-1]:
            for _ in range(2):
                assert writer.apply(effect, plan.basis)
        after = writer.snapshot()
        for effect in plan.effects[1:-1]:
            assert writer.apply(effect, plan.basis)
        assert canonical(writer.snapshot()) == canonical(after)


def test_the_first_two_effects_do_nothing_on_another_basis(made: Made) -> None:
    with made.store.exclusive() as writer:
        plan = _plan(made.store, writer.snapshot())
        moved = Basis("0" * 64, plan.basis.session_ids, plan.basis.entry_keys)
        before = writer.snapshot()
        assert [type(effect) for effect in plan.effects[:2]] == [RecordTombstones, PurgeIndex]
        assert [writer.apply(effect, moved) for effect in plan.effects[:2]] == [False, False]
        assert writer.snapshot() == before


def test_what_is_another_agents_is_refused(made: Made) -> None:
    with made.store.exclusive() as writer:
        for effect in (RecordTombstones("other", ("s",)), DropOrigins("other", ("k",))):
            with pytest.raises(InputError, match="other"):
                writer.admit((effect,))
        with pytest.raises(RefusedError, match="no valid text"):
            writer.admit((RecordTombstones("main", ("\udcff",)),))


def test_the_lock_keeps_a_second_writer_out_for_a_bounded_time(made: Made) -> None:
    with made.store.exclusive():
        began = made.clock.now
        with pytest.raises(LockHeldError) as caught, made.store.exclusive():
            pass
        assert str(os.getpid()) in str(caught.value)
        assert 9.9 <= made.clock.now - began <= 10.5
        with pytest.raises(LockHeldError), made.store.exclusive(break_lock=True):  # nobody robs the living (D19)
            pass
        assert canonical(made.store.snapshot()) == made.written
        assert preview(made.store, SELECTORS).effects
    with made.store.exclusive() as writer:
        assert canonical(writer.snapshot()) == made.written


def test_the_lock_is_given_back_when_its_holder_fails(made: Made) -> None:
    with pytest.raises(ZeroDivisionError), made.store.exclusive():
        raise ZeroDivisionError
    with made.store.exclusive():
        pass


def _plan(store: Store, snapshot: MemorySnapshot) -> PurgePlan:
    return plan_purge(snapshot, select_sessions(store.catalogue(), SELECTORS))
