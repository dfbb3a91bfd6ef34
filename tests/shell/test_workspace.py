"""Reading a workspace: which files, under which names, without a trace, and nothing unseen taken for clean."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from memprov.core.text import digest, to_bytes
from memprov.errors import (
    CorruptStoreError,
    InputError,
    RefusedError,
    StaleStateError,
    StoreNotFoundError,
)
from memprov.shell.processes import process_start_time, writer_token
from memprov.shell.workspace import CALLS, WorkspaceScan, scan, settle
from memprov.shell.workspace.copies import parse_copy_name, temporary_name
from tests.shell.faults import Faults

CORPUS = "memory/.dreams/session-corpus"
UUID = "0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0"
NOBODY = 4194304 + 1  # above the largest pid of Linux, and no more than ten digits


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"text of " + os.fsencode(path) + b"\n")


def names(result: WorkspaceScan) -> list[str]:
    return [file.path for file in result.files]


def corpus_names(result: WorkspaceScan) -> list[str]:
    return [file.path for file in result.corpus]


def fingerprint(root: Path) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for path in (root, *root.rglob("*")):
        info = path.lstat()
        read_at = info.st_atime_ns if hasattr(os, "O_NOATIME") else 0
        times = (read_at, info.st_mtime_ns, info.st_ctime_ns)
        found[str(path)] = (info.st_ino, info.st_size, info.st_mode, info.st_nlink, *times)
    return found


# --- which files (D7) ---


def test_D7_files_in_their_fixed_order(tmp_path: Path) -> None:
    expected = [
        "MEMORY.md",
        "memory.md",
        "USER.md",
        "users/B/USER.md",
        "users/a/USER.md",
        "memory/.hidden/deep/er/x.md",
        "memory/2026-01-02.md",
        "memory/B.md",
        "memory/a b.md",
        "memory/a/z.md",
        "memory/dreaming/rem/2026-01-02.md",
        "memory/é.md",
        "DREAMS.md",
        "dreams.md",
    ]
    write(tmp_path, *reversed(expected))
    result = scan(tmp_path)
    assert names(result) == expected
    assert [file.text for file in result.files] == [f"text of {path}\n" for path in expected]
    assert not result.corpus
    assert not result.unscanned


def test_D7_no_other_file_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        "NOTES.md",
        "Memory.md",
        "MEMORY.md.bak",
        "MEMORY.txt",
        "user.md",
        "users/USER.md",
        "users/a/user.md",
        "users/a/b/USER.md",
        "notes/x.md",
        "memory/x.txt",
        "memory/x.MD",
        "memory/x.md.bak",
        ".memory/x.md",
    )
    assert scan(tmp_path) == WorkspaceScan()


def test_D7_corpus_files_lie_directly_in_their_directory_with_either_ending_in_any_case(tmp_path: Path) -> None:
    write(tmp_path, *(f"{CORPUS}/{name}" for name in ("b.txt", "a.md", "C.TXT", "d.Md", "e.json", "txt")))
    write(tmp_path, f"{CORPUS}/sub/f.md", f"{CORPUS}/sub/g.txt", "memory/.dreams/h.md", "memory/.dreams/i.txt")
    result = scan(tmp_path)
    assert corpus_names(result) == [f"{CORPUS}/{name}" for name in ("C.TXT", "a.md", "b.txt", "d.Md")]
    assert names(result) == ["memory/.dreams/h.md", f"{CORPUS}/sub/f.md"]


def test_D7_repair_folders_are_not_entered_but_named(tmp_path: Path) -> None:
    write(tmp_path, "memory/.openclaw-repair/x.md", "memory/a/.openclaw-repair/b/y.md", "memory/z.md")
    result = scan(tmp_path)
    assert names(result) == ["memory/z.md"]
    assert result.unscanned == (
        "memory/.openclaw-repair holds copies of a repair; it was not scanned.",
        "memory/a/.openclaw-repair holds copies of a repair; it was not scanned.",
    )


def test_D7_extra_paths_come_last_and_each_file_once(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/a.md", f"{CORPUS}/c.txt", "notes/z.md", "notes/sub/y.md", "notes/n.txt")
    write(tmp_path, "odd.txt")
    extra = ["odd.txt", str(tmp_path / "notes"), "MEMORY.md", "./memory", f"{CORPUS}/c.txt", "nothing/here", "odd.txt"]
    result = scan(tmp_path, extra)
    assert names(result) == ["MEMORY.md", "memory/a.md", "odd.txt", "notes/sub/y.md", "notes/z.md"]
    assert corpus_names(result) == [f"{CORPUS}/c.txt"]
    assert names(scan(tmp_path, ["."])) == ["MEMORY.md", "memory/a.md", "notes/sub/y.md", "notes/z.md"]


@pytest.mark.parametrize("path", ["../x.md", "..", "a/../../x.md", "/etc", "/", "", "a\0b"])
def test_D7_an_extra_path_outside_is_refused_before_anything_is_read(tmp_path: Path, path: str) -> None:
    faults = Faults()
    with pytest.raises(InputError):
        scan(tmp_path, [path], calls=faults.calls())
    assert not faults.trace


def test_D7_a_lone_string_is_no_list_of_extra_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        scan(tmp_path, "notes")


def test_D7_an_absolute_extra_path_counts_in_any_spelling_of_the_root(tmp_path: Path) -> None:
    write(tmp_path, "real/notes/x.md")
    (tmp_path / "named").symlink_to("real")
    (tmp_path / "third").symlink_to("real")
    for extra in ("named/notes", "real/notes", "third/notes", "real/notes/../notes/x.md"):
        assert names(scan(tmp_path / "named", [str(tmp_path / extra)])) == ["notes/x.md"]
    (tmp_path / "real" / "out").symlink_to(tmp_path)
    note = ("out is a symbolic link; it was not followed.",)
    for extra in ("named/out", "real/out"):
        assert scan(tmp_path / "named", [str(tmp_path / extra)]).unscanned == note
    with pytest.raises(InputError):
        scan(tmp_path / "real", [str(tmp_path / "third" / "out")])


def test_what_is_missing_is_empty(tmp_path: Path) -> None:
    assert scan(tmp_path) == WorkspaceScan()
    assert scan(tmp_path / "nothing") == WorkspaceScan()


@pytest.mark.parametrize("path", ["memory", "memory/.dreams", CORPUS])
@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_F18_what_is_no_folder_is_never_taken_for_an_empty_corpus(
    tmp_path: Path, path: str, make: Callable[[Path], None]
) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    make(tmp_path / path)
    with pytest.raises(RefusedError, match=f"^{path} is no folder"):
        scan(tmp_path)
    with pytest.raises(RefusedError, match="nothing was changed"):
        settle(tmp_path)


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory.md", "USER.md", "users/al/USER.md", "DREAMS.md", "memory/x.md", f"{CORPUS}/c.txt"]
)
@pytest.mark.parametrize(("make", "what"), [(Path.mkdir, "a folder"), (os.mkfifo, "a pipe")])
def test_F18_a_place_of_another_kind_is_a_warning(
    tmp_path: Path, path: str, make: Callable[[Path], None], what: str
) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    make(tmp_path / path)
    (note,) = scan(tmp_path).unscanned
    assert note.startswith(f"{path} is {what}")


def test_F18_a_file_in_the_place_of_the_users_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "users")
    assert scan(tmp_path) == WorkspaceScan(unscanned=("users is no folder; it was not scanned.",))


def test_F18_a_folder_that_is_called_like_a_memory_file_is_scanned_nevertheless(tmp_path: Path) -> None:
    write(tmp_path, "memory/notes.md/inner.md")
    result = scan(tmp_path)
    assert names(result) == ["memory/notes.md/inner.md"]
    assert len(result.unscanned) == 1


def test_a_workspace_that_is_no_directory(tmp_path: Path) -> None:
    write(tmp_path, "file")
    with pytest.raises(StoreNotFoundError, match="file is no directory"):
        scan(tmp_path / "file")


# --- under which names (D6, D12) ---


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks refuse such names")
def test_D6_bytes_that_are_not_utf8_survive_in_text_and_name(tmp_path: Path) -> None:
    name = b"caf\xe9.md"
    (tmp_path / "memory").mkdir()
    content = b"\xef\xbb\xbfa\r\nb\xff\x00\xc3\x28\rc"
    (tmp_path / "memory" / os.fsdecode(name)).write_bytes(content)
    (file_read,) = scan(tmp_path).files
    assert to_bytes(file_read.path) == b"memory/" + name
    assert to_bytes(file_read.text) == content
    assert digest(file_read.text) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("link", "is_directory"),
    [
        ("MEMORY.md", False),
        ("memory.md", False),
        ("USER.md", False),
        ("users", True),
        ("users/a", True),
        ("users/a/USER.md", False),
        ("memory", True),
        ("memory/x.md", False),
        ("memory/sub", True),
        ("memory/sub.md", True),
        ("memory/.dreams", True),
        (CORPUS, True),
        (f"{CORPUS}/x.txt", False),
        (f"MEMORY.md.forget.1.{UUID}.tmp", False),
        ("DREAMS.md", False),
        ("dreams.md", False),
        ("notes", True),
    ],
)
def test_D6_no_link_is_followed_and_each_is_named(tmp_path: Path, link: str, is_directory: bool) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    write(outside, "x.md", "USER.md", "a/USER.md", ".dreams/session-corpus/x.txt", "session-corpus/x.txt", "x.txt")
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside if is_directory else outside / "x.md")
    result = scan(root, ["notes/x.md"])
    assert result == WorkspaceScan(unscanned=(f"{link} is a symbolic link; it was not followed.",))


def test_D6_dangling_and_looping_links_are_named_where_something_would_be_read(tmp_path: Path) -> None:
    write(tmp_path, "memory/x.md")
    (tmp_path / "memory" / "gone.md").symlink_to("nothing")
    (tmp_path / "memory" / "loop").symlink_to("loop")
    (tmp_path / "memory" / "picture.png").symlink_to("nothing")
    (tmp_path / "memory" / "other.png").symlink_to("x.md")
    result = scan(tmp_path)
    assert names(result) == ["memory/x.md"]
    assert [note.split()[0] for note in result.unscanned] == ["memory/gone.md", "memory/loop"]


def test_D6_a_name_that_cannot_be_printed_is_escaped_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a\nb.md").symlink_to("nothing")
    assert scan(tmp_path).unscanned == (r"'memory/a\nb.md' is a symbolic link; it was not followed.",)


def test_D6_a_folder_exchanged_for_a_link_after_the_listing_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "memory/sub/x.md")
    write(tmp_path, "outside/x.md")

    def listdir(directory: int) -> list[str]:
        found = CALLS.listdir(directory)
        if "sub" in found and not (root / "memory" / "sub").is_symlink():
            (root / "memory" / "sub").rename(tmp_path / "moved")
            (root / "memory" / "sub").symlink_to(tmp_path / "outside")
        return found

    result = scan(root, calls=evolve(CALLS, listdir=listdir))
    assert result == WorkspaceScan(unscanned=("memory/sub is a symbolic link; it was not followed.",))


@pytest.mark.parametrize(
    ("exchange", "notes"),
    [
        (lambda path: path.symlink_to("outside"), ("MEMORY.md is a symbolic link; it was not followed.",)),
        (os.mkfifo, ("MEMORY.md is a pipe, a socket or a device where a file belongs; no text of it was read.",)),
    ],
)
def test_D6_a_file_exchanged_for_a_link_or_a_pipe_before_it_is_opened(
    tmp_path: Path, exchange: Callable[[Path], None], notes: tuple[str, ...]
) -> None:
    write(tmp_path, "outside", "MEMORY.md")

    def exchanging(path: bytes, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == b"MEMORY.md":
            (tmp_path / "MEMORY.md").unlink()
            exchange(tmp_path / "MEMORY.md")
        return os.open(path, flags, *more, dir_fd=dir_fd)

    assert scan(tmp_path, calls=evolve(CALLS, open=exchanging)) == WorkspaceScan(unscanned=notes)


def test_D6_a_pipe_neither_blocks_nor_counts(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    for name in ("MEMORY.md", "memory/x.md"):
        os.mkfifo(tmp_path / name)
    faults = Faults()
    results: list[WorkspaceScan] = []
    thread = threading.Thread(target=lambda: results.append(scan(tmp_path, calls=faults.calls())), daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert results == [WorkspaceScan(unscanned=results[0].unscanned)]
    assert len(results[0].unscanned) == 2
    assert ("open", b"MEMORY.md") not in faults.trace


def test_report_B35_hard_links_are_one_file_counted_once(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/z.md", f"{CORPUS}/c.txt")
    os.link(tmp_path / "MEMORY.md", tmp_path / "memory.md")
    os.link(tmp_path / "MEMORY.md", tmp_path / "memory" / "a.md")
    os.link(tmp_path / CORPUS / "c.txt", tmp_path / CORPUS / "b.txt")
    faults = Faults()
    result = scan(tmp_path, calls=faults.calls())
    assert [(file.path, file.aliases, file.unnamed_links) for file in result.files + result.corpus] == [
        ("MEMORY.md", ("memory.md", "memory/a.md"), 0),
        ("memory/z.md", (), 0),
        (f"{CORPUS}/b.txt", (f"{CORPUS}/c.txt",), 0),
    ]
    assert not result.unscanned
    assert sum(name == "read" for name, _ in faults.trace) == 2 * 3


def test_report_B35_two_spellings_are_two_files(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory.md", "DREAMS.md", "dreams.md")
    assert [(file.path, file.aliases) for file in scan(tmp_path).files] == [
        ("MEMORY.md", ()),
        ("memory.md", ()),
        ("DREAMS.md", ()),
        ("dreams.md", ()),
    ]


def test_report_B35_on_a_case_blind_disk_one_file_has_two_names_and_one_link(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md")

    def blind(name: bytes) -> bytes:
        return b"MEMORY.md" if name == b"memory.md" else name

    calls = evolve(
        CALLS,
        stat=lambda name, **options: CALLS.stat(blind(name), **options),
        open=lambda name, flags, **options: CALLS.open(blind(name), flags, **options),
    )
    (file,) = scan(tmp_path, calls=calls).files
    assert (file.path, file.aliases, file.unnamed_links) == ("MEMORY.md", ("memory.md",), 0)


@pytest.mark.parametrize(("count", "words"), [(1, "1 more hard link whose"), (2, "2 more hard links whose")])
def test_D6_links_under_unknown_names_are_counted_and_named(tmp_path: Path, count: int, words: str) -> None:
    write(tmp_path, "MEMORY.md", f"{CORPUS}/c.txt")
    for number in range(count):
        os.link(tmp_path / "MEMORY.md", tmp_path / f"elsewhere-{number}")
    os.link(tmp_path / CORPUS / "c.txt", tmp_path / "elsewhere.txt")
    result = scan(tmp_path)
    assert result.files[0].unnamed_links == count
    assert result.corpus[0].unnamed_links == 1
    assert result.unscanned == (
        f"MEMORY.md has {words} name was not found.",
        f"{CORPUS}/c.txt has 1 more hard link whose name was not found.",
    )


def test_D6_a_file_that_is_memory_and_corpus_is_read_as_both(tmp_path: Path) -> None:
    write(tmp_path, f"{CORPUS}/c.md")
    os.link(tmp_path / CORPUS / "c.md", tmp_path / "MEMORY.md")
    result = scan(tmp_path)
    assert [(file.path, file.aliases, file.unnamed_links) for file in result.files + result.corpus] == [
        ("MEMORY.md", (), 0),
        (f"{CORPUS}/c.md", (), 0),
    ]
    assert not result.unscanned


def test_report_B34_a_workspace_is_its_real_path(tmp_path: Path) -> None:
    write(tmp_path, "real/MEMORY.md")
    (tmp_path / "link").symlink_to("real")
    assert scan(tmp_path / "link") == scan(tmp_path / "real")
    (tmp_path / "dangling").symlink_to("nothing")
    assert scan(tmp_path / "dangling") == WorkspaceScan()


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks take the two names for one")
def test_report_B34_folders_that_differ_by_normal_form_stay_apart(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    for form in (composed, decomposed):
        write(tmp_path, f"memory/{form}/x.md", f"users/{form}/USER.md")
    expected = [f"users/{decomposed}/USER.md", f"users/{composed}/USER.md"]
    expected += [f"memory/{decomposed}/x.md", f"memory/{composed}/x.md"]
    assert names(scan(tmp_path)) == expected


# --- without a trace (I3) ---


def old_times(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        os.utime(path, (1, 2), follow_symlinks=False)


def test_I3_reading_changes_no_byte_and_no_time_and_creates_nothing(tmp_path: Path) -> None:
    write(
        tmp_path, "MEMORY.md", "memory/a/b.md", "users/x/USER.md", f"{CORPUS}/c.txt", f"DREAMS.md.forget.9.{UUID}.tmp"
    )
    old_times(tmp_path)
    before = fingerprint(tmp_path)
    assert len(scan(tmp_path).files) == 3
    assert fingerprint(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "O_NOATIME"), reason="there is no such flag")
@pytest.mark.parametrize("code", [errno.EPERM, errno.EINVAL])
def test_I3_where_the_access_time_cannot_be_spared_the_file_is_read_all_the_same(tmp_path: Path, code: int) -> None:
    write(tmp_path, "MEMORY.md")

    def refusing(name: bytes, flags: int, **options: Any) -> int:
        if flags & os.O_NOATIME:
            raise OSError(code, os.strerror(code))
        return os.open(name, flags, **options)

    assert scan(tmp_path, calls=evolve(CALLS, open=refusing)) == scan(tmp_path)


def test_a_large_file_is_read_in_one_read(tmp_path: Path) -> None:
    write(tmp_path, f"{CORPUS}/c.txt")
    (tmp_path / CORPUS / "c.txt").write_bytes(b"0123456789abcde\n" * 500_000)
    faults = Faults()
    scan(tmp_path, calls=faults.calls())
    assert [name for name, _ in faults.trace].count("read") == 2, "one, and one that finds the end"


def test_a_file_that_comes_in_pieces_is_read_whole(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md")
    calls = evolve(CALLS, read=lambda fd, _size: os.read(fd, 3))
    assert scan(tmp_path, calls=calls) == scan(tmp_path)


# --- nothing unseen is taken for clean ---


@pytest.mark.parametrize(
    ("call", "name", "shown"),
    [
        ("open", b"MEMORY.md", "MEMORY.md"),
        ("stat", b"USER.md", "."),
        ("open", b"b.md", "memory/a/b.md"),
        ("open", b"a", "memory/a"),
        ("open", b"users", "users"),
        ("open", b"c.txt", f"{CORPUS}/c.txt"),
        ("open", f"DREAMS.md.forget.9.{UUID}.tmp".encode(), "DREAMS.md.forget.9"),
    ],
)
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG])
def test_what_must_be_read_and_cannot_be_is_an_error_that_names_it(
    tmp_path: Path, call: str, name: bytes, shown: str, code: int
) -> None:
    write(tmp_path, "MEMORY.md", "USER.md", "users/x/USER.md", "memory/a/b.md", f"{CORPUS}/c.txt")
    write(tmp_path, f"DREAMS.md.forget.9.{UUID}.tmp")
    real: Callable[..., Any] = getattr(CALLS, call)

    def failing(path: bytes, *more: Any, **options: Any) -> Any:
        if path == name:
            raise OSError(code, os.strerror(code))
        return real(path, *more, **options)

    calls = evolve(CALLS, open=failing) if call == "open" else evolve(CALLS, stat=failing)
    with pytest.raises(RefusedError) as caught:
        scan(tmp_path, calls=calls)
    assert f"cannot read {shown}" in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert isinstance(caught.value, CorruptStoreError) is (code == errno.EIO)


@pytest.mark.parametrize("mode", ["before", "after", "from here on"])
def test_a_fault_at_any_call_is_an_error_and_never_a_smaller_result(tmp_path: Path, mode: str) -> None:
    write(tmp_path, "MEMORY.md", "users/x/USER.md", "memory/a/b.md", f"{CORPUS}/c.txt")
    (tmp_path / "memory" / "link").symlink_to("a")
    whole = Faults()
    expected = scan(tmp_path, calls=whole.calls())
    refused = 0
    for at in range(len(whole.trace)):
        faults = Faults(at=at, mode=mode, code=errno.EIO)
        try:
            assert scan(tmp_path, calls=faults.calls()) == expected, whole.trace[at]
        except RefusedError:
            refused += 1
        finally:
            faults.release()
    assert refused > len(whole.trace) / 2, "closing what was read may fail, and a name may be missing; nothing else"


def moving(root: Path, times: int) -> Callable[[int, int], bytes]:
    left = [times]

    def read(fd: int, size: int) -> bytes:
        if left[0]:
            left[0] -= 1
            (old,) = root.glob("memory/?.md")
            old.rename(old.with_name(f"{chr(ord('a') + left[0] % 26)}.md"))
        return os.read(fd, size)

    return read


def test_a_file_moved_away_while_others_are_read_is_found_again(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/z.md")
    result = scan(tmp_path, calls=evolve(CALLS, read=moving(tmp_path, 1)))
    assert [(file.path, file.text) for file in result.files] == [
        ("MEMORY.md", "text of MEMORY.md\n"),
        ("memory/a.md", "text of memory/z.md\n"),
    ]


def test_files_that_never_rest_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/z.md")
    with pytest.raises(StaleStateError):
        scan(tmp_path, calls=evolve(CALLS, read=moving(tmp_path, 1000)))


def test_a_folder_moved_away_before_it_is_opened_is_found_again(tmp_path: Path) -> None:
    write(tmp_path, "memory/b/x.md")

    def opening(path: bytes, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if path == b"b" and (tmp_path / "memory" / "b").exists():
            (tmp_path / "memory" / "b").rename(tmp_path / "memory" / "a")
        return os.open(path, flags, *more, dir_fd=dir_fd)

    assert names(scan(tmp_path, calls=evolve(CALLS, open=opening))) == ["memory/a/x.md"]


def test_a_folder_moved_away_after_its_listing_is_found_again(tmp_path: Path) -> None:
    write(tmp_path, "memory/b/x.md")

    def listdir(directory: int) -> list[str]:
        found = CALLS.listdir(directory)
        if "b" in found:
            (tmp_path / "memory" / "b").rename(tmp_path / "memory" / "a")
        return found

    assert names(scan(tmp_path, calls=evolve(CALLS, listdir=listdir))) == ["memory/a/x.md"]


def test_a_file_moved_away_right_after_its_listing_is_found_again(tmp_path: Path) -> None:
    write(tmp_path, "memory/b.md")

    def stat_of(name: bytes, **options: Any) -> os.stat_result:
        if name == b"b.md":
            (tmp_path / "memory" / "b.md").rename(tmp_path / "memory" / "a.md")
        return CALLS.stat(name, **options)

    assert names(scan(tmp_path, calls=evolve(CALLS, stat=stat_of))) == ["memory/a.md"]


# --- left-over copies (D18, D19) ---


def test_D18_copies_beside_every_scanned_place_are_found(tmp_path: Path) -> None:
    homes = {
        "": ("MEMORY.md", "memory.md", "USER.md", "DREAMS.md", "dreams.md"),
        "users/x/": ("USER.md",),
        "memory/": ("a.md",),
        "memory/.deep/er/": (".b.md",),
        f"{CORPUS}/": ("2026-01-02.txt", "2026-01-03.MD"),
        "notes/": ("n.md",),
        "odd/": ("odd.txt",),
    }
    expected = [
        home + copy
        for home, files in homes.items()
        for copy in (*(f"{name}.forget.17.{UUID}.tmp" for name in files), temporary_name())
    ]
    write(tmp_path, *expected)
    result = scan(tmp_path, ["notes", "odd/odd.txt"])
    assert [copy.path for copy in result.stale_copies] == sorted(expected)
    for copy in result.stale_copies:
        assert copy.digest == hashlib.sha256((tmp_path / copy.path).read_bytes()).hexdigest()
    assert not result.files
    assert not result.corpus
    assert not result.unscanned


def test_report_B37_nothing_beyond_the_known_names_is_taken_for_a_copy(tmp_path: Path) -> None:
    ours = temporary_name()
    write(
        tmp_path,
        f"NOTES.md.forget.17.{UUID}.tmp",
        f".forget.17.{UUID}.tmp",
        f"MEMORY.md.forget.17.{UUID}.tmp.bak",
        f"MEMORY.md.forget.17.{UUID}",
        f"MEMORY.md.forget.{UUID}.tmp",
        f"MEMORY.md.forget.-17.{UUID}.tmp",
        f"MEMORY.md.forget.17.{UUID.upper()}.tmp",
        f"MEMORY.md.forget.17.{UUID.replace('-', '')}.tmp",
        "MEMORY.md.tmp",
        f"x{ours}",
        f"{ours}x",
        ours.replace(".memprov.", ".memprov.x"),
        f"other/{ours}",
        f"other/MEMORY.md.forget.17.{UUID}.tmp",
        f"memory/x.txt.forget.17.{UUID}.tmp",
        f"users/x/MEMORY.md.forget.17.{UUID}.tmp",
        f"{CORPUS}/x.json.forget.17.{UUID}.tmp",
        "index.sqlite.tmp-1111",
    )
    assert scan(tmp_path) == WorkspaceScan()


@pytest.mark.parametrize(
    ("pid", "age", "gone", "over"),
    [
        (NOBODY, 59, False, False),
        (NOBODY, 61, True, False),
        (NOBODY, 3599, True, False),
        (NOBODY, 3601, True, True),
        (NOBODY, -100, False, False),
        pytest.param(os.getpid(), 61, False, False, id="alive, over a minute"),
        pytest.param(os.getpid(), 3601, False, True, id="alive, over an hour"),
    ],
)
def test_D18_an_OpenClaw_writer_is_gone_when_dead_for_a_minute(
    tmp_path: Path,
    pid: int,
    age: int,
    gone: bool,
    over: bool,
) -> None:
    name = f"MEMORY.md.forget.{pid}.{UUID}.tmp"
    write(tmp_path, name)
    os.utime(tmp_path / name, (1_000_000, 1_000_000))
    (copy,) = scan(tmp_path, now=lambda: 1_000_000.0 + age).stale_copies
    assert (copy.writer_gone, copy.over_an_hour) == (gone, over)


@pytest.mark.parametrize(
    ("pid", "start", "token", "gone"),
    [
        (NOBODY, "unknown", "ours", True),
        (NOBODY, "17", "ours", True),
        (NOBODY, "17", "0" * 16, False),
        pytest.param(os.getpid(), "unknown", "ours", False, id="alive, start unknown"),
        pytest.param(os.getpid(), "ours", "ours", False, id="alive"),
    ],
)
def test_D19_our_own_writer_is_gone_as_soon_as_it_is_dead(
    tmp_path: Path,
    pid: int,
    start: str,
    token: str,
    gone: bool,
) -> None:
    if start == "ours":
        start = str(process_start_time(pid) or "unknown")
    token = token.replace("ours", writer_token())
    name = f".memprov.{pid}.{start}.{token}.{'a' * 16}.tmp"
    write(tmp_path, name)
    os.utime(tmp_path / name, (1_000_000, 1_000_000))
    (copy,) = scan(tmp_path, now=lambda: 1_000_000.0).stale_copies
    assert (copy.writer_gone, copy.over_an_hour) == (gone, False)
    (copy,) = scan(tmp_path, now=lambda: 1_003_601.0).stale_copies
    assert (copy.writer_gone, copy.over_an_hour) == (gone, True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells start times")
def test_D19_a_reused_process_id_does_not_keep_our_copy_alive(tmp_path: Path) -> None:
    name = f".memprov.{os.getpid()}.1.{writer_token()}.{'a' * 16}.tmp"
    write(tmp_path, name)
    assert scan(tmp_path).stale_copies[0].writer_gone


def test_D18_our_temporary_names_are_our_own_and_short(tmp_path: Path) -> None:
    one, other = temporary_name(), temporary_name()
    assert one != other
    assert len(one) < 100
    name = parse_copy_name(one)
    assert name is not None
    assert (name.pid, name.token, name.start_time) == (os.getpid(), writer_token(), process_start_time(os.getpid()))
    write(tmp_path, one)
    (copy,) = scan(tmp_path).stale_copies
    assert not copy.writer_gone, "this process lives"


def test_D18_a_copy_that_vanishes_meanwhile_was_none(tmp_path: Path) -> None:
    name = f"MEMORY.md.forget.17.{UUID}.tmp"
    write(tmp_path, name, "MEMORY.md")

    def read(fd: int, size: int) -> bytes:
        (tmp_path / name).unlink(missing_ok=True)
        return os.read(fd, size)

    result = scan(tmp_path, calls=evolve(CALLS, read=read))
    assert names(result) == ["MEMORY.md"]
    assert not result.stale_copies


def test_D18_a_busy_writer_does_not_keep_the_scan_from_ending(tmp_path: Path) -> None:
    name = f"MEMORY.md.forget.17.{UUID}.tmp"
    write(tmp_path, "MEMORY.md")

    def listdir(directory: int) -> list[str]:
        write(tmp_path, name)
        return [*CALLS.listdir(directory), f"USER.md.forget.17.{UUID}.tmp"]

    def opening(path: bytes, flags: int, **options: Any) -> int:
        if path == os.fsencode(name):
            (tmp_path / name).unlink()
        return CALLS.open(path, flags, **options)

    result = scan(tmp_path, calls=evolve(CALLS, listdir=listdir, open=opening))
    assert names(result) == ["MEMORY.md"]
    assert not result.stale_copies


def test_D18_a_copy_that_is_a_hard_link_of_its_file_is_no_unknown_name(tmp_path: Path) -> None:
    name = f"MEMORY.md.forget.17.{UUID}.tmp"
    write(tmp_path, "MEMORY.md")
    os.link(tmp_path / "MEMORY.md", tmp_path / name)
    result = scan(tmp_path)
    assert (result.files[0].aliases, result.files[0].unnamed_links) == ((), 0)
    assert [copy.path for copy in result.stale_copies] == [name]
    assert not result.unscanned


# --- settling, and real stores ---


def test_settle_syncs_every_directory_that_is_scanned(tmp_path: Path) -> None:
    write(tmp_path, "users/x/USER.md", "memory/a/b/c.md", f"{CORPUS}/c.txt", "notes/n.md", "other/o.md")
    synced: list[str] = []

    places = {path.stat().st_ino: path.relative_to(tmp_path).as_posix() for path in (tmp_path, *tmp_path.rglob("*"))}

    def sync(directory: int) -> None:
        synced.append(places[os.fstat(directory).st_ino])

    before = fingerprint(tmp_path)
    settle(tmp_path, ["notes"], calls=evolve(CALLS, sync=sync))
    settle(tmp_path)
    settle(tmp_path / "nothing")
    assert fingerprint(tmp_path).keys() == before.keys()
    assert sorted(synced) == [
        ".",
        "memory",
        "memory/.dreams",
        "memory/.dreams/session-corpus",
        "memory/a",
        "memory/a/b",
        "notes",
        "users",
        "users/x",
    ]


def test_settle_begins_again_when_a_folder_was_moved(tmp_path: Path) -> None:
    write(tmp_path, "memory/a/x.md")
    synced: list[int] = []

    def sync(directory: int) -> None:
        synced.append(os.fstat(directory).st_ino)
        if (tmp_path / "memory" / "a").exists():
            (tmp_path / "memory" / "a").rename(tmp_path / "memory" / "b")

    settle(tmp_path, calls=evolve(CALLS, sync=sync))
    assert (tmp_path / "memory" / "b").stat().st_ino in synced


def test_settle_reports_a_failure_but_not_a_file_system_that_cannot(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md")

    def failing(code: int) -> Callable[[int], None]:
        def sync(_fd: int) -> None:
            raise OSError(code, os.strerror(code))

        return sync

    settle(tmp_path, calls=evolve(CALLS, sync=failing(errno.EINVAL)))
    with pytest.raises(CorruptStoreError, match="cannot make durable"):
        settle(tmp_path, calls=evolve(CALLS, sync=failing(errno.EIO)))


def test_real_workspaces_are_read_completely(store_name: str, unpacked_store: Callable[[str], Path]) -> None:
    root = unpacked_store(store_name) / "before" / "ws"
    result = scan(root)
    found = {file.path: file.text for file in result.files + result.corpus}
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.suffix in {".md", ".txt"})
    assert sorted(found) == sorted(
        path for path in paths if "/" in path or path in {"MEMORY.md", "USER.md", "DREAMS.md"}
    )
    assert all(to_bytes(text) == (root / path).read_bytes() for path, text in found.items())
    assert not result.unscanned
    assert not result.stale_copies


def test_names_survive_a_locale_that_is_not_utf8(tmp_path: Path) -> None:
    write(tmp_path, "memory/é.md")
    code = "import sys; from memprov.shell.workspace import scan; print(ascii(scan(sys.argv[1]).files[0].path))"
    environment = {**os.environ, "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    there = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert there.stdout.strip() == r"'memory/\xe9.md'"
