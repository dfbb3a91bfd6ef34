"""Giving a file of the workspace new text: as a whole, or not at all.

The twin of ``replace`` for what brings text in. The new version is made durable beside the file and renamed over it, or
linked to its name where there was none, after one last look that the file is what the text was made from. Whoever
published lineage before has to know what became of the attempt (docs: Origins and merges): so every error says whether
the new text is certainly not there, certainly there, or perhaps.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress

from attrs import define

from memprov.core.lineage import PublicationOutcome
from memprov.core.text import to_bytes, to_text
from memprov.errors import ConflictError, PartialError
from memprov.shell.workspace.copies import temporary_name
from memprov.shell.workspace.tree import CALLS, Calls, Content, Tree, parts_of, sha256, shown

__all__ = ["PublicationError", "publish"]

_NEW_FILE = 0o600
_NEW_DIRECTORY = 0o700
_NOT_GIVEN_AWAY = frozenset({errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class PublicationError(PartialError):
    """The system refused. ``outcome`` says what is known of the file."""

    def __init__(self, message: str, outcome: PublicationOutcome) -> None:
        super().__init__(message)
        self.outcome = outcome


def publish(
    root: str | os.PathLike[str], path: str, update: Callable[[str | None], str], *, calls: Calls = CALLS
) -> None:
    """Give the file the text that ``update`` makes of what it holds now (``None``: it is not there), durably.

    A file that holds that text already is left alone. What ``update`` raises is passed on; then, and when a
    ``ConflictError`` is raised for a link, for what is no regular file, or for a file that changed meanwhile, nothing
    was done. Raises ``PublicationError`` when the system refuses. New directories and files are private.
    """
    work = _Publication(root, path, calls)
    try:
        with ExitStack() as handles:
            work.open(handles)
            before = work.look()
            text = update(None if before is None else to_text(before.data))
            data = to_bytes(text)
            if before is None or before.data != data:
                work.exchange(before, data)
            work.sync()
    except OSError as error:
        reason = error.strerror or str(error)
        raise PublicationError(f"cannot write {shown(path)}: {reason}; {_WORDS[work.outcome]}", work.outcome) from error


_WORDS = {
    PublicationOutcome.NOT_ATTEMPTED: "it is as it was",
    PublicationOutcome.COMMITTED_THEN_FAILED: "it was written, and may not be durable yet",
    PublicationOutcome.UNKNOWN: "whether it was written is not known",
}


@define
class _Publication:
    """One attempt, and what is known of it so far."""

    root: str | os.PathLike[str]
    path: str
    calls: Calls
    outcome: PublicationOutcome = PublicationOutcome.NOT_ATTEMPTED
    tree: Tree = None  # type: ignore[assignment]  # set by `open`
    directory: int = -1
    name: str = ""

    def open(self, handles: ExitStack) -> None:
        """Hold the directory of the file; make those that are missing."""
        *above, self.name = parts_of(self.path)
        self.tree = handles.enter_context(Tree(self.root, self.calls))
        for depth in range(len(above) + 1):
            try:
                self.directory = handles.enter_context(self.tree.directory(tuple(above[:depth])))
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(to_bytes(above[depth - 1]), _NEW_DIRECTORY, dir_fd=self.directory)
                self.tree.sync(self.directory)
                self.directory = handles.enter_context(self.tree.directory(tuple(above[:depth])))
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                    raise self._conflict("is reached through a symbolic link, or what is no directory") from None
                raise

    def look(self) -> Content | None:
        """What the name shows; ``None`` where there is no file."""
        try:
            content = self.tree.content(self.directory, self.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._conflict("is a symbolic link") from None
            raise
        if content is None:
            raise self._conflict("is no regular file")
        return content

    def exchange(self, before: Content | None, data: bytes) -> None:
        """Let the name show the new version."""
        temporary = temporary_name()
        left = True
        try:
            self._write(temporary, data, before)
            self._look_again(before)
            try:
                left = self._place(temporary, before)
            except OSError:
                self.outcome = self._what_happened(before, data)
                raise
            self.outcome = PublicationOutcome.COMMITTED_THEN_FAILED
        finally:
            if left:
                with suppress(OSError):  # gone, or left for the next scan (D18)
                    self.calls.unlink(to_bytes(temporary), dir_fd=self.directory)

    def sync(self) -> None:
        """Make the name durable, also what an earlier attempt did."""
        self.tree.sync(self.directory)

    def _write(self, name: str, data: bytes, before: Content | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = self.calls.open(to_bytes(name), flags, _NEW_FILE, dir_fd=self.directory)
        try:
            self._write_all(fd, data)
            if before is not None:
                self._give(fd, before.info)
                self.calls.fchmod(fd, stat.S_IMODE(before.info.st_mode))
            self.calls.sync(fd)
        except BaseException:
            with suppress(OSError):
                self.calls.close(fd)
            raise
        self.calls.close(fd)  # some file systems tell only here that the disk is full

    def _write_all(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            count = self.calls.write(fd, rest)
            if count <= 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            rest = rest[count:]

    def _give(self, fd: int, old: os.stat_result) -> None:
        """Give the file to the old owner and group where that is permitted."""
        new = self.calls.fstat(fd)
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            try:
                self.calls.fchown(fd, old.st_uid, old.st_gid)
            except OSError as error:
                if error.errno not in _NOT_GIVEN_AWAY:
                    raise

    def _look_again(self, before: Content | None) -> None:
        now = self.look()
        if (now and (now.inode, now.digest)) != (before and (before.inode, before.digest)):
            raise self._conflict("changed while it was being written")

    def _place(self, temporary: str, before: Content | None) -> bool:
        """Show the new version; is its temporary name left?"""
        source, target = to_bytes(temporary), to_bytes(self.name)
        held = {"src_dir_fd": self.directory, "dst_dir_fd": self.directory}
        if before is not None:
            self.calls.rename(source, target, **held)
            return False
        try:
            self.calls.link(source, target, follow_symlinks=False, **held)  # never over a file that came meanwhile
        except FileExistsError:
            raise self._conflict("changed while it was being written") from None
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}:
                raise
            self.calls.rename(source, target, **held)  # a file system without hard links
            return False
        return True

    def _what_happened(self, before: Content | None, data: bytes) -> PublicationOutcome:
        """What is there after a rename that raised."""
        try:
            now = self.look()
        except (OSError, ConflictError):
            return PublicationOutcome.UNKNOWN
        if now is not None and now.digest == sha256(data):
            return PublicationOutcome.COMMITTED_THEN_FAILED
        same = (now and (now.inode, now.digest)) == (before and (before.inode, before.digest))
        return PublicationOutcome.NOT_ATTEMPTED if same else PublicationOutcome.UNKNOWN

    def _conflict(self, what: str) -> ConflictError:
        return ConflictError(f"{shown(self.path)} {what}; it was left as it is")
