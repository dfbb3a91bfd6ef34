"""Carrying out the two effects on files: the old file stays whole until the new one takes its name (D6).

The next version is written beside the file under a temporary name of our own, made durable, and renamed over it,
after one last look that the file is still the one the plan was made from. So at any moment each name shows the
old bytes or the new ones; a kill leaves at most a temporary copy, which the next scan finds (D18). Where the
directory does not allow that, the file is left as it is: overwriting it in place, as OpenClaw does then, could
tear it.

A file under several names is replaced under each, and the names stay links to one file. All of the new links are
made before the first name is replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from attrs import Factory, define, field, frozen

from memprov.core.purge import CutFile, PurgeEffect, RemoveFile
from memprov.core.text import cut, to_bytes, to_text
from memprov.errors import ConflictError, PartialError, RefusedError
from memprov.shell.workspace.copies import temporary_name
from memprov.shell.workspace.tree import CALLS, Calls, Content, Inode, Tree, mounted, parts_of, sha256, shown

__all__ = ["cut_file", "remove_file", "require_replaceable"]

_NOT_WRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_LINKABLE = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP})
_NOT_GIVEN_AWAY = frozenset({errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_HINTS = {
    **dict.fromkeys(_NOT_WRITABLE, " (the file must be readable and its directory writable)"),
    errno.EBUSY: " (it is mounted by itself, so nothing can take its name: mount the directory that holds it instead)",
}


def require_replaceable(root: str | os.PathLike[str], effects: Iterable[PurgeEffect]) -> None:
    """Refuse effects on files that are mounted by themselves, before any is done (F43). Raises ``RefusedError``."""
    files = (effect for effect in effects if isinstance(effect, CutFile | RemoveFile))
    if found := mounted(root, (name for effect in files for name in (effect.path, *effect.aliases))):
        raise RefusedError(
            f"{', '.join(map(shown, found))} cannot be replaced{_HINTS[errno.EBUSY]}; nothing was changed"
        )


def cut_file(root: str | os.PathLike[str], effect: CutFile, *, calls: Calls = CALLS) -> None:
    """Replace a file by itself less the effect's spans, durably, under every name it has.

    A name that shows the cut file already is done. Raises ``ConflictError`` for one that is something else than the
    planned file, a link included, or that is gone (D24): an editor may put it back with all that it held. Raises
    ``PartialError`` when the system refuses. Then each name shows the old bytes or the new ones, and the effect may be
    carried out again. The directory must be writable: nothing is ever overwritten in place.
    """
    with _Work("rewrite", (effect.path, *effect.aliases), calls, absent_is_done=False).opened(root) as work:
        work.check(effect.before, effect.after)
        work.replace(effect)
        work.sync()


def remove_file(root: str | os.PathLike[str], effect: RemoveFile, *, calls: Calls = CALLS) -> None:
    """Unlink a file under every name it has, durably. Raises as ``cut_file`` does.

    A name that is gone is done if the directory that it was in is there; a directory that is gone may come back (D24).
    """
    with _Work("remove", (effect.path, *effect.aliases), calls, absent_is_done=True).opened(root) as work:
        work.check(effect.before)
        work.remove()
        work.sync()


@frozen(eq=False)
class _Target:
    """A name that the effect is about, in a directory that is held open, with what it showed."""

    path: str
    directory: int
    name: str
    content: Content


@frozen
class _Version:
    """The next version of a file, under a name that it can be linked from."""

    directory: int
    name: str
    inode: Inode


@define
class _Work:
    """One effect on one file. ``left`` are the names that do not show the wanted state yet."""

    verb: str
    names: tuple[str, ...]
    calls: Calls
    absent_is_done: bool
    left: list[str] = field(init=False)
    tree: Tree = field(init=False)
    directories: list[int] = Factory(list)
    targets: list[_Target] = Factory(list)
    done: list[_Target] = Factory(list)
    temporary: list[tuple[int, str]] = Factory(list)

    @left.default
    def _all_names(self) -> list[str]:
        return list(self.names)

    @contextmanager
    def opened(self, root: str | os.PathLike[str]) -> Iterator[_Work]:
        """Hold the directory of every name, look at what is there, and report what the system refuses."""
        places = [(path, parts_of(path)) for path in self.names]
        try:
            with ExitStack() as handles:
                try:
                    self.tree = handles.enter_context(Tree(root, self.calls))
                except (FileNotFoundError, NotADirectoryError):
                    raise self._conflict(self.names[0], "is gone with the whole workspace") from None
                for path, parts in places:
                    directory = self._directory(path, parts[:-1], handles)
                    content = self._look(path, directory, parts[-1])
                    if content is not None:
                        self.targets.append(_Target(path, directory, parts[-1], content))
                    elif self.absent_is_done:
                        self.left.remove(path)
                    else:
                        raise self._conflict(path, "is gone")
                yield self
        except OSError as error:
            raise self._failure(error) from error

    def check(self, before: str, after: str | None = None) -> None:
        """Every name shows the planned file or the wanted one; else nothing is touched."""
        for target in self.targets:
            if target.content.digest == after:
                self.done.append(target)
                self.left.remove(target.path)
            elif target.content.digest != before:
                raise self._conflict(target.path)
        self.targets = [target for target in self.targets if target not in self.done]

    def replace(self, effect: CutFile) -> None:
        """Give each name that is left the next version."""
        if not self.targets:
            return
        data = to_bytes(cut(to_text(self.targets[0].content.data), effect.spans))
        if sha256(data) != effect.after:
            message = f"the planned cuts in {shown(effect.path)} do not give the planned file; it was left as it is"
            raise PartialError(message, remaining=self._remaining())
        try:
            versions = self._versions(data)
            for target, version in zip(self.targets, versions, strict=True):
                self._exchange(target, version, effect.after)
        finally:
            for directory, name in self.temporary:
                with suppress(OSError):  # the first error is the one to report, and the next scan finds the copy
                    self.calls.unlink(to_bytes(name), dir_fd=directory)

    def remove(self) -> None:
        """Unlink each name that is left."""
        for target in self.targets:
            if self._look_again(target) is not None:
                self.calls.unlink(to_bytes(target.name), dir_fd=target.directory)
            self.left.remove(target.path)

    def sync(self) -> None:
        """Make all of it durable, also what an earlier attempt did."""
        for directory in self.directories:
            self.tree.sync(directory)

    def _directory(self, path: str, above: tuple[str, ...], handles: ExitStack) -> int:
        try:
            directory = handles.enter_context(self.tree.directory(above))
        except (FileNotFoundError, NotADirectoryError):
            raise self._conflict(path, "is gone with its directory") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._conflict(path, "is now reached through a symbolic link") from None
            raise
        self.directories.append(directory)
        return directory

    def _look(self, path: str, directory: int, name: str) -> Content | None:
        """What the name shows; ``None`` when it is gone."""
        try:
            content = self.tree.content(directory, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._conflict(path, "is now a symbolic link") from None
            raise
        if content is None:
            raise self._conflict(path, "is no regular file any more")
        return content

    def _look_again(self, target: _Target, after: str | None = None) -> Content | None:
        """The last look before a name changes; ``None`` when it shows what it should by now.

        On a case-blind disk that happens to the second of two names of one file.
        """
        now = self._look(target.path, target.directory, target.name)
        if now is None and not self.absent_is_done:
            raise self._conflict(target.path, "is gone")
        if now is None or now.digest == after:
            return None
        if now.inode != target.content.inode or now.digest != target.content.digest:
            raise self._conflict(target.path)
        return now

    def _versions(self, data: bytes) -> list[_Version]:
        """The next version for each target: one file for all that are one file now, or that were before a retry."""
        first: dict[Inode, _Version] = {}
        for done in self.done[:1]:
            version = _Version(done.directory, done.name, done.content.inode)
            first = dict.fromkeys((target.content.inode for target in self.targets), version)
        result = []
        for target in self.targets:
            source = first.get(target.content.inode)
            version = (source and self._link(source, target)) or self._write(data, target)
            first.setdefault(target.content.inode, version)
            result.append(version)
        return result

    def _link(self, source: _Version, target: _Target) -> _Version | None:
        """Another temporary name for the version; ``None`` where its directory takes no link to it."""
        name = self._temporary_in(target.directory)
        try:
            self.calls.link(
                to_bytes(source.name),
                to_bytes(name),
                src_dir_fd=source.directory,
                dst_dir_fd=target.directory,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno in _NOT_LINKABLE:
                return None
            raise
        info = self.tree.info(target.directory, name)
        if (info.st_dev, info.st_ino) != source.inode:
            raise self._conflict(target.path)
        return _Version(target.directory, name, source.inode)

    def _write(self, data: bytes, target: _Target) -> _Version:
        """The version as a new durable file with the mode, and where permitted the owner, of the old one."""
        name = self._temporary_in(target.directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = self.calls.open(to_bytes(name), flags, 0o600, dir_fd=target.directory)
        try:
            info = self.calls.fstat(fd)
            self._write_all(fd, data)
            self._give(fd, info, target.content.info)
            self.calls.fchmod(fd, stat.S_IMODE(target.content.info.st_mode))
            self.calls.sync(fd)
        except BaseException:
            with suppress(OSError):
                self.calls.close(fd)
            raise
        self.calls.close(fd)  # some file systems tell only here that the disk is full
        return _Version(target.directory, name, (info.st_dev, info.st_ino))

    def _write_all(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            count = self.calls.write(fd, rest)
            if count <= 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            rest = rest[count:]

    def _give(self, fd: int, new: os.stat_result, old: os.stat_result) -> None:
        """Give the file to the old owner and group, or to the group alone, where that is permitted."""
        for owner in (old.st_uid, -1):
            if (new.st_uid if owner == -1 else owner, old.st_gid) == (new.st_uid, new.st_gid):
                return
            try:
                self.calls.fchown(fd, owner, old.st_gid)
            except OSError as error:
                if error.errno not in _NOT_GIVEN_AWAY:
                    raise
            else:
                return

    def _exchange(self, target: _Target, version: _Version, after: str) -> None:
        if self._look_again(target, after) is not None:
            self.calls.rename(
                to_bytes(version.name),
                to_bytes(target.name),
                src_dir_fd=version.directory,
                dst_dir_fd=target.directory,
            )
            self.temporary.remove((version.directory, version.name))
        self.left.remove(target.path)

    def _temporary_in(self, directory: int) -> str:
        """A temporary name, noted before it exists so that every failure takes it away."""
        name = temporary_name()
        self.temporary.append((directory, name))
        return name

    def _conflict(self, path: str, what: str = "changed after the plan was made") -> ConflictError:
        return ConflictError(f"{shown(path)} {what}; it was left as it is", remaining=self._remaining())

    def _failure(self, error: OSError) -> PartialError:
        reason = error.strerror or str(error)
        if not self.left:
            names = ", ".join(map(shown, self.names))
            return PartialError(
                f"what was done to {names} may not be durable yet: {reason}", remaining=self._remaining()
            )
        names = ", ".join(map(shown, self.left))
        hint = _HINTS.get(error.errno or 0, "")
        message = f"cannot {self.verb} {names}: {reason}{hint}; the bytes are the old ones or the new, never a part"
        return PartialError(message, remaining=self._remaining())

    def _remaining(self) -> tuple[str, ...]:
        return tuple(f"{self.verb} {shown(path)}" for path in self.left)
