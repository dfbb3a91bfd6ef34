"""Every file below a store's roots, as bytes: listed without following a link, read without disturbing a lock.

POSIX gives back every lock that a process holds on a file when that process closes *any* descriptor of it. So files are
read through SQLite's own file system layer, which knows what this process has locked and puts off the closing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw
from attrs import frozen

from memprov.core.proof import Match, Root, Search
from memprov.core.text import to_text

__all__ = ["PIECE", "Bytes", "FileAt", "Unread", "found_in", "listed", "opened", "shown"]

PIECE = 1 << 23
_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY


@frozen
class FileAt:
    """A regular file: the root that it is below, its path from there, and what the file system says of it."""

    root: Root
    path: str
    full: str
    size: int
    changed: int


@frozen
class Unread:
    """A place that could not be looked into, and why."""

    root: Root
    path: str
    reason: str


class Bytes:
    """A file that is open for reading at any place."""

    def __init__(self, size: int, file: apsw.VFSFile | int) -> None:
        self.size = size
        self._file = file

    def read(self, start: int, amount: int) -> bytes:
        """At most ``amount`` bytes from ``start``, fewer at the end. Raises ``OSError``."""
        amount = min(amount, self.size - start)
        if amount <= 0:
            return b""
        if isinstance(self._file, int):
            return os.pread(self._file, amount, start)
        try:
            return self._file.xRead(amount, start)
        except apsw.Error as error:
            raise OSError(f"it cannot be read ({type(error).__name__})") from error

    def pieces(self, around: int) -> Iterator[tuple[int, bytes]]:
        """The whole file in pieces, each with where it begins, and with ``around`` bytes before and after it."""
        for start in range(0, self.size, PIECE):
            first = max(start - around, 0)
            data = self.read(first, start - first + PIECE + around)
            if first + len(data) < min(start + PIECE, self.size):
                raise OSError("it became shorter while it was read")
            yield first, data


def found_in(search: Search, file: Bytes, *, packed: bool) -> Iterator[tuple[int, Match]]:
    """Every needle in a file, with its offset; a needle is found by the piece that it begins in."""
    for number, (first, data) in enumerate(file.pieces(search.reach)):
        for match in search.find(data, packed=packed):
            place = first + match.start
            if number * PIECE <= place < (number + 1) * PIECE:
                yield place, match


@contextmanager
def opened(file: FileAt) -> Iterator[Bytes]:
    """Open a file for reading. Raises ``OSError``."""
    try:
        through = apsw.VFSFile("unix", file.full, [_FLAGS, 0])
    except (apsw.Error, UnicodeEncodeError):  # a name that is no text, or longer than SQLite takes
        fd = os.open(os.fsencode(file.full), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            yield Bytes(os.fstat(fd).st_size, fd)
        finally:
            os.close(fd)
        return
    try:
        yield Bytes(through.xFileSize(), through)
    finally:
        with suppress(apsw.Error):
            through.xClose()


def listed(roots: dict[Root, str]) -> Iterator[FileAt | Unread]:
    """Every file below the roots, once, sorted by path; what is below two of them is below the inner one."""
    tops = {root: os.path.realpath(path) for root, path in roots.items()}
    for root, top in tops.items():
        inner = {other for name, other in tops.items() if name is not root and other.startswith(top.rstrip("/") + "/")}
        yield from _below(root, top, top, inner)


def shown(path: str) -> str:
    """A path as one line of valid text."""
    return path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")


def _below(root: Root, top: str, directory: str, skipped: set[str]) -> Iterator[FileAt | Unread]:
    pending = [directory]
    while pending:
        here = pending.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            yield Unread(root, _relative(here, top), f"the folder cannot be listed: {error.strerror}")
            continue
        folders = []
        for entry in entries:
            path = _relative(entry.path, top)
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield Unread(root, path, f"it cannot be looked at: {error.strerror}")
                continue
            if stat.S_ISDIR(info.st_mode):
                if entry.path not in skipped:
                    folders.append(entry.path)
            elif stat.S_ISREG(info.st_mode):
                yield FileAt(root, path, entry.path, info.st_size, info.st_mtime_ns)
            elif stat.S_ISLNK(info.st_mode) and not _leads_inside(entry.path, top, skipped):
                yield Unread(root, path, "a symbolic link leads elsewhere; what is there was not read")
        pending.extend(reversed(folders))


def _relative(path: str, top: str) -> str:
    return to_text(os.fsencode(os.path.relpath(path, top)))


def _leads_inside(path: str, top: str, others: set[str]) -> bool:
    """Whether a link leads to what is listed anyway, or to nothing."""
    target = os.path.realpath(path)
    return not os.path.exists(target) or any(target.startswith(root.rstrip("/") + "/") for root in (top, *others))
