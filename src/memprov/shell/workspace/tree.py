"""A workspace's directory, held open: every name below it is reached through handles and no link is followed.

A path that was checked and then opened by name can be exchanged in between. So directories are opened one
component at a time, relative to the handle above, and a file is judged by what its own handle says (D6).
Names are bytes to the system; here they are text as ``core.text`` has it, whatever the locale.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from attrs import frozen

from memprov.core.text import to_bytes, to_text
from memprov.errors import InputError

__all__ = ["CALLS", "Calls", "Content", "Handle", "Inode", "Parts", "Tree", "mounted", "parts_of", "sha256", "shown"]

_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-7]{3})")

Parts = tuple[str, ...]
Inode = tuple[int, int]  # device and number

_NO_ATIME: int = getattr(os, "O_NOATIME", 0)


def full_sync(fd: int) -> None:
    """``fsync``; on macOS, where that stops at the drive's cache, the stronger request."""
    request = getattr(fcntl, "F_FULLFSYNC", None)
    if request is not None:
        with suppress(OSError):
            fcntl.fcntl(fd, request)
            return
    os.fsync(fd)


@frozen
class Calls:
    """The system calls that reading and replacing are made of; a test exchanges some for ones that fail."""

    open: Callable[..., int] = os.open
    close: Callable[[int], None] = os.close
    read: Callable[[int, int], bytes] = os.read
    write: Callable[[int, Any], int] = os.write
    sync: Callable[[int], None] = full_sync
    fstat: Callable[[int], os.stat_result] = os.fstat
    stat: Callable[..., os.stat_result] = os.stat
    listdir: Callable[[int], list[str]] = os.listdir
    fchmod: Callable[[int, int], None] = os.fchmod
    fchown: Callable[[int, int, int], None] = os.fchown
    link: Callable[..., None] = os.link
    rename: Callable[..., None] = os.rename
    unlink: Callable[..., None] = os.unlink


CALLS = Calls()


def parts_of(path: str) -> Parts:
    """The components of a relative path; one that could leave the workspace is refused."""
    parts = tuple(path.split("/"))
    if "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise InputError(f"{path!r} is no path inside a workspace")
    return parts


def shown(path: str) -> str:
    """A path for a sentence: quoted and escaped where it holds what cannot be printed."""
    return path if path.isprintable() else repr(path)


def mounted(root: str | os.PathLike[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Which of these files below a root are mounted by themselves, so that nothing can take their name (F43).

    Nothing where the system does not tell.
    """
    try:
        with open(_MOUNTS, "rb") as file:
            fields = (line.split(b" ") for line in file)
            points = {_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line[4]) for line in fields if len(line) > 4}
    except OSError:
        return ()
    top = os.fsencode(os.path.realpath(root))
    return tuple(path for path in paths if os.path.join(top, to_bytes(path)) in points)


def sha256(data: bytes) -> str:
    """The digest of a file's bytes, as ``core.text.digest`` gives it for their text."""
    return hashlib.sha256(data).hexdigest()


@frozen(eq=False)
class Content:
    """What a file held, and what its handle said about it."""

    data: bytes
    info: os.stat_result

    @property
    def inode(self) -> Inode:
        """Which file this is, under whatever name."""
        return self.info.st_dev, self.info.st_ino

    @property
    def digest(self) -> str:
        """The digest of the bytes."""
        return sha256(self.data)


@frozen(eq=False)
class Handle:
    """An open regular file."""

    fd: int
    info: os.stat_result
    calls: Calls

    @property
    def inode(self) -> Inode:
        """Which file this is, under whatever name."""
        return self.info.st_dev, self.info.st_ino

    def read(self) -> bytes:
        """All of it, in one read and one more that finds the end."""
        blocks = []
        wanted = self.info.st_size + 1
        while block := self.calls.read(self.fd, wanted):
            blocks.append(block)
            wanted = max(wanted - len(block), 1 << 16)
        return b"".join(blocks)


class Tree:
    """The directory of a workspace. It may itself be reached through links: a workspace is its real path (D12)."""

    def __init__(self, root: str | os.PathLike[str], calls: Calls = CALLS) -> None:
        self._calls = calls
        self._root = self._open(os.fsencode(root), os.O_DIRECTORY, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release(self._root)

    @contextmanager
    def directory(self, parts: Parts) -> Iterator[int]:
        """A handle on a directory below the root.

        Raises ``OSError``: with ``ELOOP`` and the link's path where a component is a symbolic link.
        """
        held = self._root
        try:
            for depth, part in enumerate(parts, 1):
                below = self._open_directory(held, part, "/".join(parts[:depth]))
                if held != self._root:
                    self._release(held)
                held = below
            yield held
        finally:
            if held != self._root:
                self._release(held)

    def names(self, directory: int) -> list[str]:
        """What lies in a directory, by code point."""
        return sorted(to_text(os.fsencode(name)) for name in self._calls.listdir(directory))

    def info(self, directory: int, name: str) -> os.stat_result:
        """What a name is, without following it."""
        return self._calls.stat(to_bytes(name), dir_fd=directory, follow_symlinks=False)

    def leads_to_directory(self, directory: int, name: str) -> bool:
        """Whether files could lie behind this link; where that cannot be told, they could."""
        try:
            return stat.S_ISDIR(self._calls.stat(to_bytes(name), dir_fd=directory).st_mode)
        except OSError as error:
            return error.errno not in {errno.ENOENT, errno.ENOTDIR}

    @contextmanager
    def file(self, directory: int, name: str) -> Iterator[Handle | None]:
        """The regular file of that name, open for reading; ``None`` where it is something else.

        What is no regular file is not opened, since opening a pipe or a device is an act; should one take the
        file's place meanwhile, the open does not wait for it. ``ELOOP`` for a link.
        """
        info = self.info(directory, name)
        if stat.S_ISLNK(info.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        if not stat.S_ISREG(info.st_mode):
            yield None
            return
        fd = self._open(to_bytes(name), os.O_NOFOLLOW | os.O_NONBLOCK, directory)
        try:
            info = self._calls.fstat(fd)
            yield Handle(fd, info, self._calls) if stat.S_ISREG(info.st_mode) else None
        finally:
            self._release(fd)

    def content(self, directory: int, name: str) -> Content | None:
        """What the regular file of that name holds; ``None`` where it is something else."""
        with self.file(directory, name) as handle:
            return None if handle is None else Content(handle.read(), handle.info)

    def sync(self, directory: int) -> None:
        """Make renames and removals in a directory durable, where its file system knows how."""
        try:
            self._calls.sync(directory)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EROFS}:
                raise

    def _open_directory(self, above: int, part: str, path: str) -> int:
        try:
            return self._open(to_bytes(part), os.O_DIRECTORY | os.O_NOFOLLOW, above)
        except OSError as error:
            # Linux answers ENOTDIR for a link when both flags are given, macOS ELOOP
            if error.errno in {errno.ENOTDIR, errno.ELOOP} and stat.S_ISLNK(self.info(above, part).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
            raise

    def _open(self, name: bytes, flags: int, directory: int | None) -> int:
        """Open for reading, without a trace in the access time where the system grants that (to the owner)."""
        if _NO_ATIME:
            try:
                return self._calls.open(name, os.O_RDONLY | flags | _NO_ATIME, dir_fd=directory)
            except OSError as error:
                if error.errno not in {errno.EPERM, errno.EINVAL}:
                    raise
        return self._calls.open(name, os.O_RDONLY | flags, dir_fd=directory)

    def _release(self, fd: int) -> None:
        """Close what was only read: nothing is lost when that fails."""
        with suppress(OSError):
            self._calls.close(fd)
