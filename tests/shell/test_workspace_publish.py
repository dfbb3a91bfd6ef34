"""Giving a file new text: whole or not at all, and an honest word on which, at every fault."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import evolve

from memprov.core.lineage import PublicationOutcome
from memprov.errors import ConflictError, InputError
from memprov.shell.workspace import CALLS, Calls, scan
from memprov.shell.workspace.publish import PublicationError, publish
from tests.shell.faults import FAILURES, KILLS, Faults, Killed

OLD, NEW = "old line\n", "old line\nnew caf\udce9 line\r\n"


def always(text: str) -> Callable[[str | None], str]:
    return lambda _: text


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*.tmp"))


def test_a_new_file_and_its_directories_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        publish(tmp_path, "memory/.dreams/x.txt", always(NEW))
    finally:
        os.umask(before)
    assert (tmp_path / "memory/.dreams/x.txt").read_bytes() == bytes_of(NEW)
    modes = [
        stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("memory", "memory/.dreams", "memory/.dreams/x.txt")
    ]
    assert modes == [0o700, 0o700, 0o600]
    assert not leftovers(tmp_path)


def test_an_old_file_keeps_its_mode_and_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text(OLD)
    path.chmod(0o640)
    inode = path.stat().st_ino
    seen: list[str | None] = []

    def update(text: str | None) -> str:
        seen.append(text)
        return NEW

    publish(tmp_path, "MEMORY.md", update)
    assert seen == [OLD]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (bytes_of(NEW), 0o640)
    assert path.stat().st_ino != inode


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text(OLD)
    before = path.stat()
    publish(tmp_path, "MEMORY.md", always(OLD))
    assert path.stat() == before


def test_what_the_caller_refuses_is_not_touched(tmp_path: Path) -> None:
    def refuse(text: str | None) -> str:
        raise ConflictError(f"{text} is not what was expected")

    with pytest.raises(ConflictError, match="None is not"):
        publish(tmp_path, "MEMORY.md", refuse)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["../x.md", "/x.md", "a//b", "memory/./x.md", "a\0b", ""])
def test_a_path_that_leaves_the_workspace_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError):
        publish(tmp_path, path, always(NEW))


def test_links_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "x.md").write_text(OLD)
    (root / "memory").symlink_to(outside)
    (root / "MEMORY.md").symlink_to(outside / "x.md")
    (root / "USER.md").mkdir()
    for path in ("memory/x.md", "MEMORY.md", "USER.md"):
        with pytest.raises(ConflictError):
            publish(root, path, always(NEW))
    assert (outside / "x.md").read_text() == OLD
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_changes_meanwhile_is_left(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "MEMORY.md"
    if there:
        path.write_text(OLD)

    def update(_: str | None) -> str:
        path.write_text("somebody else's\n")
        return NEW

    with pytest.raises(ConflictError, match="changed while"):
        publish(tmp_path, "MEMORY.md", update)
    assert path.read_text() == "somebody else's\n"
    assert not leftovers(tmp_path)


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(tmp_path: Path) -> None:
    def link(*args: object, **options: object) -> None:
        (tmp_path / "MEMORY.md").write_text("somebody else's\n")
        CALLS.link(*args, **options)

    with pytest.raises(ConflictError, match="changed while"):
        publish(tmp_path, "MEMORY.md", always(NEW), calls=evolve(CALLS, link=link))
    assert (tmp_path / "MEMORY.md").read_text() == "somebody else's\n"
    assert not leftovers(tmp_path)


def test_without_hard_links_a_new_file_is_renamed(tmp_path: Path) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    publish(tmp_path, "MEMORY.md", always(NEW), calls=evolve(CALLS, link=link))
    assert (tmp_path / "MEMORY.md").read_bytes() == bytes_of(NEW)
    assert not leftovers(tmp_path)


def test_B08_a_disk_that_takes_a_byte_at_a_time_and_then_none(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text(OLD)
    publish(tmp_path, "MEMORY.md", always(NEW), calls=evolve(CALLS, write=lambda fd, data: os.write(fd, data[:1])))
    assert path.read_bytes() == bytes_of(NEW)
    with pytest.raises(PublicationError, match="wrote nothing"):
        publish(tmp_path, "MEMORY.md", always("third"), calls=evolve(CALLS, write=lambda *_: 0))
    assert path.read_bytes() == bytes_of(NEW)
    assert not leftovers(tmp_path)


def prepared(root: Path, *, there: bool) -> None:
    (root / "memory").mkdir(parents=True)
    if there:
        (root / "memory" / "x.md").write_text(OLD)


def count(tmp_path: Path, *, there: bool) -> int:
    prepared(tmp_path / "count", there=there)
    faults = Faults()
    publish(tmp_path / "count", "memory/x.md", always(NEW), calls=faults.calls())
    return len(faults.trace)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("mode", FAILURES)
def test_B07_B09_at_every_fault_the_file_is_whole_and_the_outcome_is_true(
    tmp_path: Path, mode: str, there: bool
) -> None:
    old = bytes_of(OLD) if there else None
    outcomes = set()
    for at in range(count(tmp_path, there=there)):
        root = tmp_path / f"{at}"
        prepared(root, there=there)
        path = root / "memory" / "x.md"
        faults = Faults(at, mode, errno.ENOSPC)
        try:
            publish(root, "memory/x.md", always(NEW), calls=faults.calls())
            outcome = None
        except PublicationError as error:
            outcome = error.outcome
        finally:
            faults.release()
        now = path.read_bytes() if path.exists() else None
        assert now in (old, bytes_of(NEW)), at
        match outcome:
            case None | PublicationOutcome.COMMITTED_THEN_FAILED:
                assert now == bytes_of(NEW), (at, faults.trace[at])
            case PublicationOutcome.NOT_ATTEMPTED:
                assert now == old, (at, faults.trace[at])
            case _:
                assert outcome is PublicationOutcome.UNKNOWN
        outcomes.add(outcome)
        publish(root, "memory/x.md", always(NEW))
        assert path.read_bytes() == bytes_of(NEW)
    assert {PublicationOutcome.NOT_ATTEMPTED, PublicationOutcome.COMMITTED_THEN_FAILED} <= outcomes


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("mode", KILLS)
def test_B07_a_kill_at_any_call_leaves_the_old_file_or_the_new_and_at_most_a_copy(
    tmp_path: Path,
    mode: str,
    there: bool,
) -> None:
    old = bytes_of(OLD) if there else None
    for at in range(count(tmp_path, there=there)):
        root = tmp_path / f"{at}"
        prepared(root, there=there)
        path = root / "memory" / "x.md"
        faults = Faults(at, mode)
        with suppress(Killed):  # a look at what is not there fails of itself
            publish(root, "memory/x.md", always(NEW), calls=faults.calls())
        faults.release()
        assert (path.read_bytes() if path.exists() else None) in (old, bytes_of(NEW))
        found = scan(root)
        assert [copy.path for copy in found.stale_copies] == [f"memory/{name}" for name in leftovers(root)]
        publish(root, "memory/x.md", always(NEW))
        assert path.read_bytes() == bytes_of(NEW)


def test_the_new_version_is_durable_before_it_is_shown_and_its_name_after(tmp_path: Path) -> None:
    prepared(tmp_path, there=True)
    faults = Faults()
    publish(tmp_path, "memory/x.md", always(NEW), calls=faults.calls())
    names = [name for name, _ in faults.trace]
    shown = names.index("rename")
    assert "sync" in names[names.index("write") : shown]
    assert "sync" in names[shown:]
    assert isinstance(faults.calls(), Calls)
