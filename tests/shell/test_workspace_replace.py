"""Carrying out an effect on a file: whole at every moment, exact, under every name, and never through a link."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from attrs import evolve

from memprov.core.purge import CutFile, RemoveFile
from memprov.core.text import digest, to_text
from memprov.errors import ConflictError, InputError, PartialError, RefusedError
from memprov.shell.remembering import Remembered
from memprov.shell.workspace import CALLS, cut_file, reading_of, remove_file, require_replaceable, scan, tree
from memprov.shell.workspace.copies import parse_copy_name
from tests.shell.faults import FAILURES, KILLS, Faults, Killed

OLD = b"\xef\xbb\xbf# Memory\r\nkeep \xff\x00 this\r\nsecret of the kiln\nkeep\xe2\x80\xa8that too"
SECRET = b"secret of the kiln\n"
SPANS = ((OLD.index(SECRET), OLD.index(SECRET) + len(SECRET)),)
NEW = OLD.replace(SECRET, b"")
ALIAS = "memory/notes/alias.md"
UUID = "0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0"


def planned(path: str, *aliases: str) -> CutFile:
    return CutFile(path, aliases, before=digest(to_text(OLD)), after=digest(to_text(NEW)), spans=SPANS)


CUT = planned("MEMORY.md")
CUT_BOTH = planned("MEMORY.md", ALIAS)
REMOVE = RemoveFile("MEMORY.md", (), before=CUT.before)
REMOVE_BOTH = RemoveFile("MEMORY.md", (ALIAS,), before=CUT.before)


def workspace(root: Path, *, linked: bool = False, mode: int = 0o640) -> Path:
    (root / "memory" / "notes").mkdir(parents=True)
    (root / "MEMORY.md").write_bytes(OLD)
    if os.getuid() == 0:
        os.chown(root / "MEMORY.md", 1234, 5678)
    (root / "MEMORY.md").chmod(mode)
    (root / "memory" / "other.md").write_bytes(b"nobody's business\n")
    if linked:
        os.link(root / "MEMORY.md", root / ALIAS)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def strays(root: Path) -> list[str]:
    return [path for path in contents(root) if path.endswith(".tmp")]


def inode(path: Path) -> int:
    return path.stat().st_ino


def failing(code: int, *, unless: Callable[..., bool] = lambda *_: False, real: Any = None) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        if unless(*args):
            return real(*args, **options)
        raise OSError(code, os.strerror(code))

    return call


# --- what it does ---


def test_D6_exactly_the_planned_bytes_go_and_the_mode_stays(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    cut_file(root, CUT)
    assert contents(root) == {"MEMORY.md": NEW, "memory/other.md": b"nobody's business\n"}
    assert stat.S_IMODE((root / "MEMORY.md").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o644, 0o664, 0o666, 0o777])
def test_D6_mode_bits_are_kept_whatever_the_mask(tmp_path: Path, mode: int) -> None:
    root = workspace(tmp_path, mode=mode)
    mask = os.umask(0o077)
    try:
        cut_file(root, CUT)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((root / "MEMORY.md").stat().st_mode) == mode


def test_D6_a_file_that_becomes_empty_stays(tmp_path: Path) -> None:
    """Also report B22: a file that is not ours is never unlinked."""
    root = workspace(tmp_path)
    cut_file(root, evolve(CUT, after=digest(""), spans=((0, len(OLD)),)))
    assert contents(root)["MEMORY.md"] == b""


def test_report_B04_a_line_of_a_crlf_file_goes_with_its_own_ending(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(b"a\r\nb\r\nc")
    cut_file(tmp_path, CutFile("MEMORY.md", (), digest("a\r\nb\r\nc"), digest("a\r\nc"), ((3, 6),)))
    assert (tmp_path / "MEMORY.md").read_bytes() == b"a\r\nc"


def test_repeating_a_finished_cut_touches_nothing(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)
    cut_file(root, CUT_BOTH)
    before = (inode(root / "MEMORY.md"), (root / "MEMORY.md").stat().st_mtime_ns)
    faults = Faults()
    cut_file(root, CUT_BOTH, calls=faults.calls())
    assert (inode(root / "MEMORY.md"), (root / "MEMORY.md").stat().st_mtime_ns) == before
    assert {name for name, _ in faults.trace} == {"open", "close", "stat", "fstat", "read", "sync"}


def test_D24_F01_what_is_missing_is_never_taken_for_cut(tmp_path: Path) -> None:
    for effect in (CUT, planned("users/x/USER.md"), planned("memory/a.md", "DREAMS.md")):
        for root in (tmp_path, tmp_path / "nothing"):
            with pytest.raises(ConflictError, match="is gone"):
                cut_file(root, effect)
    (tmp_path / "memory").write_bytes(b"a file where a folder was")
    with pytest.raises(ConflictError, match="is gone"):
        cut_file(tmp_path, planned("memory/a.md"))
    assert contents(tmp_path) == {"memory": b"a file where a folder was"}


def test_D24_F01_what_is_missing_is_removed_if_its_directory_is_there(tmp_path: Path) -> None:
    remove_file(tmp_path, RemoveFile("MEMORY.md", ("DREAMS.md",), CUT.before))
    for root, path in ((tmp_path, "memory/a.md"), (tmp_path / "nothing", "MEMORY.md")):
        with pytest.raises(ConflictError, match="is gone with"):
            remove_file(root, RemoveFile(path, (), CUT.before))


def test_a_name_of_the_greatest_length_can_be_replaced(tmp_path: Path) -> None:
    name = "x" * 252 + ".md"
    (tmp_path / name).write_bytes(OLD)
    cut_file(tmp_path, planned(name))
    assert contents(tmp_path) == {name: NEW}


def test_D6_the_order_of_calls_makes_it_durable(tmp_path: Path) -> None:
    """Bytes before the name, the name before the answer; the last look comes right before the rename."""
    faults = Faults()
    cut_file(workspace(tmp_path), CUT, calls=faults.calls())
    calls = [name for name, _ in faults.trace]
    assert calls.index("write") < calls.index("fchmod") < calls.index("sync") < calls.index("rename")
    assert calls[calls.index("rename") + 1 :].count("sync") == 1
    last_look = calls[calls.index("sync") : calls.index("rename")]
    assert last_look == ["sync", "close", "stat", "open", "fstat", "read", "read", "close"]


def test_an_effect_that_leaves_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(OLD)
    (tmp_path / "root").mkdir()
    for path in ("../MEMORY.md", "/MEMORY.md", "", "a//b", "./MEMORY.md", "a/../../MEMORY.md", "a\0b"):
        for effect in (planned(path), planned("MEMORY.md", path)):
            with pytest.raises(InputError):
                cut_file(tmp_path / "root", effect)
        with pytest.raises(InputError):
            remove_file(tmp_path / "root", RemoveFile(path, (), CUT.before))
    assert contents(tmp_path) == {"MEMORY.md": OLD}


@pytest.mark.parametrize("spans", [(), ((0, 3),), ((0, 10**9),), ((-5, 2),), ((9, 3),)])
def test_cuts_that_do_not_give_the_planned_file_are_refused(tmp_path: Path, spans: tuple[tuple[int, int], ...]) -> None:
    root = workspace(tmp_path)
    before = contents(root)
    with pytest.raises(PartialError, match=r"MEMORY\.md do not give the planned file") as caught:
        cut_file(root, evolve(CUT, spans=spans))
    assert not isinstance(caught.value, ConflictError)
    assert contents(root) == before


def test_no_error_contains_memory_text(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    for effect in (evolve(CUT, spans=()), evolve(CUT, before="0" * 64)):
        with pytest.raises(PartialError) as caught:
            cut_file(root, effect)
        assert "kiln" not in str(caught.value) + str(caught.value.remaining)


def test_F43_a_file_that_is_mounted_by_itself_says_what_to_do(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    busy = failing(errno.EBUSY)
    with pytest.raises(PartialError, match="mount the directory that holds it"):
        cut_file(root, CUT, calls=evolve(CALLS, rename=busy))
    with pytest.raises(PartialError, match="mount the directory that holds it"):
        remove_file(root, REMOVE, calls=evolve(CALLS, unlink=busy))
    assert contents(root)["MEMORY.md"] == OLD


def test_F43_a_file_that_is_mounted_by_itself_is_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace(tmp_path / "a workspace")
    mounts = tmp_path / "mountinfo"
    path = str(root / "MEMORY.md").replace(" ", "\\040")
    mounts.write_text(f"36 35 98:0 / / rw - ext4 /dev/sda rw\n37 36 98:0 /x {path} rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(tree, "_MOUNTS", str(mounts))
    for effect in (CUT, REMOVE, planned("DREAMS.md", "MEMORY.md")):
        with pytest.raises(RefusedError, match=r"MEMORY\.md cannot be replaced.*mount the directory"):
            require_replaceable(root, [effect])
    require_replaceable(root, [planned("DREAMS.md"), planned("memory/MEMORY.md")])
    assert reading_of(str(root), map, CALLS, Remembered()).places.notes == (
        "MEMORY.md is mounted by itself, so it cannot be replaced; mount the directory that holds it instead.",
    )
    monkeypatch.setattr(tree, "_MOUNTS", str(tmp_path / "no such file"))
    require_replaceable(root, [CUT])


# --- several names ---


def test_report_B35_each_name_is_replaced_and_they_stay_one_file(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)
    old = inode(root / ALIAS)
    cut_file(root, CUT_BOTH)
    assert contents(root)["MEMORY.md"] == contents(root)[ALIAS] == NEW
    assert inode(root / "MEMORY.md") == inode(root / ALIAS) != old
    assert (root / ALIAS).stat().st_nlink == 2
    assert not strays(root)


def test_D6_a_name_that_was_not_done_is_done_and_linked_again(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)
    cut_file(root, CUT)
    assert contents(root)[ALIAS] == OLD
    cut_file(root, CUT_BOTH)
    assert contents(root)[ALIAS] == NEW
    assert inode(root / "MEMORY.md") == inode(root / ALIAS)
    assert not strays(root)


def test_D6_names_that_are_two_files_by_now_stay_two(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    (root / ALIAS).write_bytes(OLD)
    (root / ALIAS).chmod(0o600)
    cut_file(root, CUT_BOTH)
    assert contents(root)["MEMORY.md"] == contents(root)[ALIAS] == NEW
    assert inode(root / "MEMORY.md") != inode(root / ALIAS)
    assert stat.S_IMODE((root / ALIAS).stat().st_mode) == 0o600


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_D6_where_no_link_can_be_made_each_name_gets_its_own_copy(tmp_path: Path, code: int) -> None:
    root = workspace(tmp_path, linked=True)
    cut_file(root, CUT_BOTH, calls=evolve(CALLS, link=failing(code)))
    assert contents(root)["MEMORY.md"] == contents(root)[ALIAS] == NEW
    assert not strays(root)


def test_D6_a_link_to_something_else_is_not_installed(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)

    def another(_source: bytes, name: bytes, **_options: Any) -> None:
        os.link(root / "memory" / "other.md", root / "memory" / "notes" / os.fsdecode(name))

    with pytest.raises(ConflictError):
        cut_file(root, CUT_BOTH, calls=evolve(CALLS, link=another))
    assert contents(root)["MEMORY.md"] == contents(root)[ALIAS] == OLD
    assert not strays(root)


def test_D24_one_of_the_names_being_gone_is_a_conflict_of_a_cut_and_none_of_a_removal(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    before = contents(root)
    (root / ALIAS).parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(ConflictError, match="is gone"):
        cut_file(root, CUT_BOTH)
    assert contents(root) == before
    remove_file(root, REMOVE_BOTH)
    assert contents(root) == {"memory/other.md": b"nobody's business\n"}


@pytest.mark.parametrize("link_works", [True, False])
def test_report_B35_on_a_case_blind_disk_both_names_are_one(tmp_path: Path, *, link_works: bool) -> None:
    root = workspace(tmp_path)

    def blind(name: bytes) -> bytes:
        return b"MEMORY.md" if name == b"memory.md" else name

    calls = evolve(
        CALLS,
        open=lambda name, *more, **options: CALLS.open(blind(name), *more, **options),
        stat=lambda name, **options: CALLS.stat(blind(name), **options),
        rename=lambda old, new, **options: CALLS.rename(old, blind(new), **options),
        unlink=lambda name, **options: CALLS.unlink(blind(name), **options),
        link=CALLS.link if link_works else failing(errno.EPERM),
    )
    cut_file(root, planned("MEMORY.md", "memory.md"), calls=calls)
    assert contents(root)["MEMORY.md"] == NEW
    assert not strays(root)
    remove_file(root, RemoveFile("MEMORY.md", ("memory.md",), CUT.after), calls=calls)
    assert not (root / "MEMORY.md").exists()


def test_D6_removal_reaches_every_name(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)
    remove_file(root, REMOVE_BOTH)
    assert contents(root) == {"memory/other.md": b"nobody's business\n"}
    remove_file(root, REMOVE_BOTH)


# --- another writer ---


def test_case_G14_a_file_edited_after_the_plan_is_left_as_it_is(tmp_path: Path) -> None:
    """Also report B21."""
    root = workspace(tmp_path, linked=True)
    (root / ALIAS).unlink()
    (root / ALIAS).write_bytes(OLD + b"edited")
    before = contents(root)
    with pytest.raises(ConflictError, match=r"^memory/notes/alias\.md changed after the plan was made") as caught:
        cut_file(root, CUT_BOTH)
    assert caught.value.remaining == ("rewrite MEMORY.md", f"rewrite {ALIAS}")
    with pytest.raises(ConflictError, match=r"^memory/notes/alias\.md changed after the plan was made") as caught:
        remove_file(root, REMOVE_BOTH)
    assert caught.value.remaining == ("remove MEMORY.md", f"remove {ALIAS}")
    assert contents(root) == before


def edit_in_place(path: Path) -> None:
    path.write_bytes(OLD + b"edited")


def edit_by_rename(path: Path) -> None:
    path.with_suffix(".new").write_bytes(OLD)
    path.with_suffix(".new").rename(path)


def exchange_for_a_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved").name)


def exchange_for_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("edit", [edit_in_place, edit_by_rename, exchange_for_a_link, exchange_for_a_folder])
@pytest.mark.parametrize("name", ["MEMORY.md", ALIAS])
def test_case_G14_an_edit_while_the_new_version_is_written_is_left_as_it_is(
    tmp_path: Path, edit: Callable[[Path], None], name: str
) -> None:
    root = workspace(tmp_path)
    (root / ALIAS).write_bytes(OLD)
    edited: list[os.stat_result] = []

    def sync(fd: int) -> None:
        os.fsync(fd)
        if not edited:
            edit(root / name)
            edited.append((root / name).lstat())

    with pytest.raises(ConflictError, match=name):
        cut_file(root, CUT_BOTH, calls=evolve(CALLS, sync=sync))
    assert (root / name).lstat() == edited[0] or (root / name).is_dir()
    assert not strays(root)


def test_report_B22_D24_a_file_removed_while_the_new_version_is_written_stays_removed_and_is_named(
    tmp_path: Path,
) -> None:
    root = workspace(tmp_path)

    def sync(fd: int) -> None:
        os.fsync(fd)
        (root / "MEMORY.md").unlink(missing_ok=True)

    with pytest.raises(ConflictError, match=r"MEMORY\.md is gone"):
        cut_file(root, CUT, calls=evolve(CALLS, sync=sync))
    assert contents(root) == {"memory/other.md": b"nobody's business\n"}


@pytest.mark.parametrize("what", ["name", "folder"])
def test_D6_a_link_is_never_followed(tmp_path: Path, what: str) -> None:
    outside = workspace(tmp_path / "outside", linked=True)
    root = tmp_path / "root"
    (root / "memory").mkdir(parents=True)
    path = "MEMORY.md" if what == "name" else ALIAS
    if what == "name":
        (root / path).symlink_to(outside / path)
    else:
        (root / "memory" / "notes").symlink_to(outside / "memory" / "notes")
    before = contents(outside)
    with pytest.raises(ConflictError, match="symbolic link"):
        cut_file(root, planned(path))
    with pytest.raises(ConflictError, match="symbolic link"):
        remove_file(root, RemoveFile(path, (), CUT.before))
    assert contents(outside) == before


def test_D6_a_folder_exchanged_for_a_link_while_the_new_version_is_written(tmp_path: Path) -> None:
    outside, root = workspace(tmp_path / "outside", linked=True), workspace(tmp_path / "root", linked=True)

    def sync(fd: int) -> None:
        os.fsync(fd)
        if not (root / "memory" / "notes").is_symlink():
            (root / "memory" / "notes").rename(root / "memory" / "moved")
            (root / "memory" / "notes").symlink_to(outside / "memory" / "notes")

    cut_file(root, planned(ALIAS), calls=evolve(CALLS, sync=sync))
    assert (outside / ALIAS).read_bytes() == OLD
    assert (root / "memory" / "moved" / "alias.md").read_bytes() == NEW


def test_D6_a_pipe_at_the_path_is_a_conflict_and_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MEMORY.md")
    faults = Faults()
    with pytest.raises(ConflictError, match="no regular file"):
        cut_file(tmp_path, CUT, calls=faults.calls())
    assert ("open", b"MEMORY.md") not in faults.trace, "that would wake its writer"
    with pytest.raises(ConflictError, match="no regular file"):
        remove_file(tmp_path, REMOVE)


def test_removal_is_of_the_planned_bytes_only(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    with pytest.raises(ConflictError):
        remove_file(root, evolve(REMOVE, before="0" * 64))

    def read(fd: int, size: int) -> bytes:
        block = os.read(fd, size)
        if not block:  # seen to the end: now it is exchanged
            edit_by_rename(root / "MEMORY.md")
        return block

    with pytest.raises(ConflictError):
        remove_file(root, REMOVE, calls=evolve(CALLS, read=read))
    assert contents(root)["MEMORY.md"] == OLD


# --- a system that refuses ---


def test_case_G15_a_full_disk_leaves_the_file_whole(tmp_path: Path) -> None:
    """Also report B07: the writer fails after ten bytes."""
    root = workspace(tmp_path)
    before = contents(root)

    def full(fd: int, data: Any) -> int:
        if os.fstat(fd).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(fd, data[:10])

    with pytest.raises(PartialError, match=r"cannot rewrite MEMORY\.md: No space left on device") as caught:
        cut_file(root, CUT, calls=evolve(CALLS, write=full))
    assert caught.value.remaining == ("rewrite MEMORY.md",)
    assert contents(root) == before
    assert stat.S_IMODE((root / "MEMORY.md").stat().st_mode) == 0o640
    cut_file(root, CUT)
    assert contents(root)["MEMORY.md"] == NEW


def test_report_B08_a_writer_that_stops_taking_bytes_is_an_error(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    before, taken = contents(root), []

    def slow(fd: int, data: Any) -> int:
        taken.append(fd)
        return os.write(fd, data[:1]) if len(taken) <= 5 else 0

    with pytest.raises(PartialError, match="the system wrote nothing"):
        cut_file(root, CUT, calls=evolve(CALLS, write=slow))
    assert len(taken) == 6
    assert contents(root) == before


def test_report_B08_a_writer_that_takes_one_byte_at_a_time_is_waited_for(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    cut_file(root, CUT, calls=evolve(CALLS, write=lambda fd, data: os.write(fd, data[:1])))
    assert contents(root)["MEMORY.md"] == NEW


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("call", ["open", "rename"])
def test_report_B08_nothing_is_overwritten_in_a_directory_that_is_not_writable(
    tmp_path: Path, call: str, code: int
) -> None:
    root = workspace(tmp_path)
    before, old = contents(root), inode(root / "MEMORY.md")
    opening = failing(code, unless=lambda _name, flags, *_: not flags & os.O_CREAT, real=CALLS.open)
    calls = evolve(CALLS, open=opening) if call == "open" else evolve(CALLS, rename=failing(code))
    with pytest.raises(PartialError, match="its directory writable"):
        cut_file(root, CUT, calls=calls)
    assert contents(root) == before
    assert inode(root / "MEMORY.md") == old
    with pytest.raises(PartialError, match=r"cannot remove MEMORY\.md.*its directory writable"):
        remove_file(root, REMOVE, calls=evolve(CALLS, unlink=failing(code)))
    assert contents(root) == before


def owned(root: Path, owner: int, group: int) -> Callable[[int], os.stat_result]:
    """``fstat`` as if MEMORY.md had another owner."""
    target = inode(root / "MEMORY.md")

    def fstat(fd: int) -> os.stat_result:
        info = os.fstat(fd)
        return info if info.st_ino != target else os.stat_result((*info[:4], owner, group, *info[6:]))

    return fstat


@pytest.mark.parametrize(
    ("owner", "group", "expected"),
    [
        (1234, 5678, [(1234, 5678), (-1, 5678)]),
        (1234, 1234, [(1234, 1234), (-1, 1234)]),
        (1234, os.getgid(), [(1234, os.getgid())]),
        (os.getuid(), 5678, [(os.getuid(), 5678)]),
        (os.getuid(), os.getgid(), []),
    ],
)
def test_the_owner_or_else_the_group_is_kept_where_permitted(
    tmp_path: Path, owner: int, group: int, expected: list[tuple[int, int]]
) -> None:
    root = workspace(tmp_path)
    asked: list[tuple[int, int]] = []

    def fchown(_fd: int, owner: int, group: int) -> None:
        asked.append((owner, group))
        if 1234 in {owner, group}:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    cut_file(root, CUT, calls=evolve(CALLS, fstat=owned(root, owner, group), fchown=fchown))
    assert asked == expected
    assert contents(root)["MEMORY.md"] == NEW


def test_a_disk_that_fails_while_the_owner_is_set_is_an_error(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    with pytest.raises(PartialError, match="Input/output error"):
        cut_file(root, CUT, calls=evolve(CALLS, fstat=owned(root, 1234, 5678), fchown=failing(errno.EIO)))
    assert contents(root)["MEMORY.md"] == OLD
    assert not strays(root)


def test_the_first_error_is_reported_when_clearing_up_fails_too(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    calls = evolve(CALLS, rename=failing(errno.ENOSPC), unlink=failing(errno.EIO), close=failing(errno.EIO))
    with pytest.raises(PartialError, match="Input/output error"):
        cut_file(root, CUT, calls=calls)
    calls = evolve(CALLS, rename=failing(errno.ENOSPC), unlink=failing(errno.EIO))
    with pytest.raises(PartialError, match="No space left"):
        cut_file(root, CUT, calls=calls)
    assert [copy.path for copy in scan(root).stale_copies] == strays(root)
    assert len(strays(root)) == 2


def test_a_rename_that_may_not_be_durable_is_not_reported_as_done(tmp_path: Path) -> None:
    root = workspace(tmp_path)

    def sync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(fd)

    calls = evolve(CALLS, sync=sync)
    for _ in range(2):  # not when it is repeated, either
        with pytest.raises(PartialError, match="may not be durable yet"):
            cut_file(root, CUT, calls=calls)
    assert contents(root)["MEMORY.md"] == NEW
    for _ in range(2):
        with pytest.raises(PartialError, match="may not be durable yet"):
            remove_file(root, evolve(REMOVE, before=CUT.after), calls=calls)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EROFS])
def test_a_file_system_that_cannot_sync_directories_is_no_error(tmp_path: Path, code: int) -> None:
    def sync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(code, os.strerror(code))
        os.fsync(fd)

    root = workspace(tmp_path)
    cut_file(root, CUT, calls=evolve(CALLS, sync=sync))
    assert contents(root)["MEMORY.md"] == NEW


# --- a fault at every system call ---


def boundaries(act: Callable[..., None], root: Path) -> list[str]:
    faults = Faults()
    act(root, calls=faults.calls())
    return [name for name, _ in faults.trace]


def shows_old_or_new(root: Path, names: tuple[str, ...], wanted: bytes | None) -> None:
    now = contents(root)
    for name in names:
        assert now.get(name) in ({OLD, wanted} if wanted is not None else {OLD, None})
    assert now["memory/other.md"] == b"nobody's business\n"


def is_done(root: Path, names: tuple[str, ...], wanted: bytes | None) -> None:
    shown = {name: data for name, data in contents(root).items() if not name.endswith(".tmp")}
    assert shown == {"memory/other.md": b"nobody's business\n"} | {name: wanted for name in names if wanted is not None}
    if wanted is not None:
        assert {stat.S_IMODE((root / name).stat().st_mode) for name in names} == {0o640}
        assert os.getuid() != 0 or (root / "MEMORY.md").stat()[4:6] == (1234, 5678)
        assert len({inode(root / name) for name in names}) == 1


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(
    ("verb", "mode"),
    [("cut", mode) for mode in (*FAILURES, *KILLS)]
    + [("remove", mode) for mode in (*FAILURES, *KILLS) if "torn" not in mode],
)
def test_I5_a_fault_at_any_call_leaves_every_name_whole_and_a_repetition_converges(
    tmp_path: Path, verb: str, mode: str, *, linked: bool
) -> None:
    names = ("MEMORY.md", ALIAS) if linked else ("MEMORY.md",)
    wanted = NEW if verb == "cut" else None

    def act(root: Path, **options: Any) -> None:
        if verb == "cut":
            cut_file(root, CUT_BOTH if linked else CUT, **options)
        else:
            remove_file(root, REMOVE_BOTH if linked else REMOVE, **options)

    calls = boundaries(act, workspace(tmp_path / "whole", linked=linked))
    is_done(tmp_path / "whole", names, wanted)
    assert {"write", "sync", "fchmod", "rename"} <= set(calls) or {"unlink", "sync"} <= set(calls)
    assert not linked or verb == "remove" or "link" in calls
    for at, call in enumerate(calls):
        if "torn" in mode and call != "write":
            continue
        code = (errno.ENOSPC, errno.EACCES, errno.EIO)[at % 3]
        root = workspace(tmp_path / f"{at}-{call}", linked=linked)
        faults = Faults(at=at, mode=mode, code=code)
        outcome: BaseException | None = None
        try:
            act(root, calls=faults.calls())
        except (PartialError, Killed) as error:
            outcome = error
        if mode in {"before", "torn"} and call != "close":
            assert not faults.unclosed
        faults.release()
        if outcome is None:
            assert call == "close", "only closing what was read may fail unseen"
            is_done(root, names, wanted)
        elif mode in KILLS:
            assert isinstance(outcome, Killed)
        else:
            assert not isinstance(outcome, ConflictError)
            assert any(name in str(outcome) for name in names)
        shows_old_or_new(root, names, wanted)
        left = strays(root)
        assert not left or mode in KILLS or mode == "from here on"
        assert all(parse_copy_name(Path(name).name) for name in left)
        seen = scan(root)
        assert [copy.path for copy in seen.stale_copies] == left
        assert not seen.unscanned
        assert sum(file.unnamed_links for file in seen.files) == 0

        act(root, calls=Faults().calls())
        is_done(root, names, wanted)
        for copy in seen.stale_copies:
            remove_file(root, RemoveFile(copy.path, (), copy.digest), calls=Faults().calls())
        assert not strays(root)
        if verb == "cut":
            assert (root / "MEMORY.md").stat().st_nlink == len(names)


@pytest.mark.parametrize("second", ["before", "kill after"])
def test_I5_a_second_fault_while_recovering_does_no_harm(tmp_path: Path, second: str) -> None:
    names = ("MEMORY.md", ALIAS)
    calls = boundaries(lambda root, **o: cut_file(root, CUT_BOTH, **o), workspace(tmp_path / "whole", linked=True))
    for first in range(len(calls)):
        for at in range(first % 29, len(calls) + 10, 29):
            root = workspace(tmp_path / f"{first}-{at}", linked=True)
            for number, mode in ((first, "kill after"), (at, second)):
                faults = Faults(at=number, mode=mode)
                try:
                    cut_file(root, CUT_BOTH, calls=faults.calls())
                except (PartialError, Killed):
                    pass
                finally:
                    faults.release()
                shows_old_or_new(root, names, NEW)
            cut_file(root, CUT_BOTH, calls=Faults().calls())
            is_done(root, names, NEW)


# --- a real kill ---


@pytest.mark.parametrize("call", ["write", "sync", "link", "rename"])
def test_D18_a_copy_left_by_a_kill_is_found_and_proven_stale_at_once(tmp_path: Path, call: str) -> None:
    root = workspace(tmp_path, linked=True)
    code = f"""
        import os, signal, sys
        from attrs import evolve
        from memprov.core.purge import CutFile
        from memprov.shell.workspace import CALLS, cut_file
        def killed(*args, **options):
            if "{call}" != "rename":
                CALLS.{call}(*args, **options)
            os.kill(os.getpid(), signal.SIGKILL)
        effect = CutFile("MEMORY.md", ("{ALIAS}",), "{CUT.before}", "{CUT.after}", {SPANS})
        cut_file(sys.argv[1], effect, calls=evolve(CALLS, {call}=killed))
    """
    there = subprocess.run([sys.executable, "-c", dedent(code), str(root)], check=False)
    assert there.returncode == -9
    shows_old_or_new(root, ("MEMORY.md", ALIAS), OLD)
    copies = scan(root).stale_copies
    assert [copy.path for copy in copies] == strays(root)
    assert len(copies) == (2 if call in {"link", "rename"} else 1)
    assert all(copy.writer_gone and not copy.over_an_hour for copy in copies)
    cut_file(root, CUT_BOTH)
    for copy in copies:
        remove_file(root, RemoveFile(copy.path, (), copy.digest))
    is_done(root, ("MEMORY.md", ALIAS), NEW)
    assert not strays(root)


def test_D18_an_interruption_by_the_keyboard_leaves_no_copy(tmp_path: Path) -> None:
    root = workspace(tmp_path)

    def interrupted(*_args: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_file(root, CUT, calls=evolve(CALLS, fchmod=interrupted))
    assert contents(root)["MEMORY.md"] == OLD
    assert not strays(root)


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    root = workspace(tmp_path, linked=True)
    for act in (
        lambda calls: scan(root, calls=calls),
        lambda calls: cut_file(root, CUT_BOTH, calls=calls),
        lambda calls: cut_file(root, CUT_BOTH, calls=calls),
        lambda calls: remove_file(root, evolve(REMOVE_BOTH, before=CUT.after), calls=calls),
    ):
        faults = Faults()
        act(faults.calls())
        assert not faults.unclosed


def test_on_macos_bytes_are_forced_through_the_cache_of_the_drive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = workspace(tmp_path)
    asked: list[int] = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _fd, request: asked.append(request))
    cut_file(root, CUT)
    assert asked == [51, 51], "the file, and its directory"
    monkeypatch.setattr(fcntl, "fcntl", failing(errno.ENOTSUP))
    cut_file(workspace(tmp_path / "other"), CUT)
