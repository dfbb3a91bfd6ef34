"""What the file system says of a database file, without opening it: may it be written, and is it still the same one?

A connection stays with the file that it opened, also when another takes its name: an older copy that somebody puts
back, say. What is done then is done in the retired file, or in a successor that knows of no tombstone (F44, I4).
"""

from __future__ import annotations

import os
import stat

from attrs import frozen

from memprov.errors import PartialError, RefusedError

__all__ = ["SameFile", "Stamp", "hot_journal", "modified_ns", "require_writable", "stamp_of"]

_SIDES = ("", "-wal", "-shm", "-journal")


@frozen
class Stamp:
    """What the file system says of a database, its WAL and its journal."""

    inode: int
    size: int
    modified: int
    frames: int
    frames_modified: int
    journal: bool


def stamp_of(path: str) -> Stamp:
    """What it says now; all zero where there is no file."""
    try:
        info = os.stat(path)
    except OSError:
        return Stamp(0, 0, 0, 0, 0, journal=False)
    try:
        frames = os.stat(path + "-wal")
    except OSError:
        return Stamp(info.st_ino, info.st_size, info.st_mtime_ns, 0, 0, hot_journal(path))
    return Stamp(info.st_ino, info.st_size, info.st_mtime_ns, frames.st_size, frames.st_mtime_ns, hot_journal(path))


def modified_ns(path: str) -> int:
    """When it was changed; 0 where there is no file."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def hot_journal(path: str) -> bool:
    """Whether a rollback journal waits to be played back: its first byte is zero once its write is finished."""
    try:
        with open(path + "-journal", "rb") as journal:
            return journal.read(1) not in (b"", b"\0")
    except OSError:
        return False


def require_writable(path: str, name: str) -> None:
    """Refuse a database that is not to be written, before SQLite opens it for writing (F42).

    SQLite gives the files that it makes beside a database its mode: of one that is read-only, files would be left that
    nobody can write to any more. The mode counts also for a user whom it does not stop. Raises ``RefusedError``.
    """
    real = os.path.realpath(path)
    for file in (os.path.dirname(real), *(real + side for side in _SIDES)):
        try:
            mode = os.stat(file).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RefusedError(f"{name} cannot be opened for writing: {error.strerror}") from error
        if not mode & 0o222 or not os.access(file, os.W_OK):
            what = "its directory" if stat.S_ISDIR(mode) else "it" if file == real else os.path.basename(file)
            raise RefusedError(
                f"{name} cannot be opened for writing: {what} is read-only (mode {stat.S_IMODE(mode):04o}); "
                "nothing was changed; make it writable for this user"
            )


@frozen
class SameFile:
    """A file or directory as it was when work on it began: which one it was, under this path."""

    path: str
    name: str
    device: int
    inode: int

    @classmethod
    def at(cls, path: str, name: str) -> SameFile:
        """What is there now. Raises ``RefusedError`` where nothing is."""
        try:
            info = os.stat(path)
        except OSError as error:
            raise RefusedError(f"{name} cannot be opened: {error.strerror}") from error
        return cls(path, name, info.st_dev, info.st_ino)

    def require(self) -> None:
        """The path still leads to it. Raises ``PartialError`` (F44)."""
        try:
            info = os.stat(self.path)
        except OSError:
            raise PartialError(f"{self.name} was taken away while work on it was under way") from None
        if (info.st_dev, info.st_ino) != (self.device, self.inode):
            raise PartialError(f"{self.name} was replaced by another while work on it was under way")
