"""Where a workspace's memory lies: every place that D7 and D18 name, listed and told apart without opening a file.

No link is followed. A link at a place that would have been scanned, and a folder of repair copies, is noted; so is what
is of another kind than belongs there. Only where the session corpus should be, anything but a folder is refused: it
would be taken for an empty corpus, and the evidence in the ledger dropped (F18).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from enum import Enum, auto

from attrs import Factory, define, frozen

from memprov.core.records import strings
from memprov.errors import CorruptStoreError, InputError, RefusedError
from memprov.shell.workspace.copies import parse_copy_name
from memprov.shell.workspace.tree import Parts, Tree, parts_of, shown

__all__ = ["ELSEWHERE", "Listing", "MovedError", "list_places", "places_inside", "refusal"]

_FIRST = ("MEMORY.md", "memory.md", "USER.md")
_LAST = ("DREAMS.md", "dreams.md")
_USERS = ("users",)
_MEMORY = ("memory",)
_CORPUS = ("memory", ".dreams", "session-corpus")
_ABOVE_CORPUS = frozenset(_CORPUS[:depth] for depth in range(1, len(_CORPUS) + 1))
_CORPUS_ENDINGS = (".txt", ".md")
_REPAIR = ".openclaw-repair"
#: What the system says of a name that is no longer what was listed.
ELSEWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_DAMAGE = frozenset({errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)})


class MovedError(Exception):
    """What was listed is no longer there, or is something else."""


def places_inside(root: str | os.PathLike[str], extra_paths: Iterable[str]) -> tuple[Parts, ...]:
    """Extra paths as components below the root: given relative to it, or absolute in any spelling of it."""
    result = []
    for path in strings(extra_paths):
        if not path or "\0" in path:
            raise InputError(f"{path!r} is no path")
        spellings = [path]
        if os.path.isabs(path):
            named, real = os.path.abspath(root), os.path.realpath(root)
            pairs = ((path, named), (path, real), (os.path.realpath(path), real))
            spellings = [os.path.relpath(absolute, base) for absolute, base in pairs]
        normal = [os.path.normpath(spelling) for spelling in spellings]
        inside = [spelling for spelling in normal if spelling.split("/")[0] != ".."]
        if not inside:
            raise InputError(f"the path {shown(path)} is outside the workspace {shown(os.fspath(root))}")
        result.append(() if inside[0] == "." else parts_of(inside[0]))
    return tuple(result)


class _Kind(Enum):
    FILE = auto()
    DIRECTORY = auto()
    LINK = auto()
    LINK_TO_DIRECTORY = auto()
    OTHER = auto()


@define
class Listing:
    """Paths by what they are, each once and in scan order, with what the system said of them; and every directory that
    was looked into.
    """

    memory: dict[str, os.stat_result] = Factory(dict)
    corpus: dict[str, os.stat_result] = Factory(dict)
    copies: dict[str, os.stat_result] = Factory(dict)
    directories: dict[Parts, None] = Factory(dict)
    notes: set[str] = Factory(set)


def list_places(tree: Tree, extra: tuple[Parts, ...]) -> Listing:
    """Everything that D7 and D18 name, in the order of D7."""
    lister = _Lister(tree, Listing())
    memory = lister.listing.memory
    top = lister.flat((), _FIRST + _LAST)
    memory |= {name: top[name] for name in _FIRST if name in top}
    for user in lister.subdirectories(_USERS):
        found = lister.flat((*_USERS, user), ("USER.md",))
        memory |= {_path(_USERS, user, name): info for name, info in found.items()}
    lister.deep(_MEMORY)
    memory |= {name: top[name] for name in _LAST if name in top}
    for parts in extra:
        lister.extra(parts)
    return lister.listing


@frozen
class _Lister:
    tree: Tree
    listing: Listing

    def flat(self, parts: Parts, names: tuple[str, ...]) -> dict[str, os.stat_result]:
        """Which of ``names`` are files in this directory. Copies of them that lie beside it are listed."""

        def choose(present: list[str]) -> Iterable[str]:
            return dict.fromkeys((*names, *(name for name in present if _is_copy(name, names.__contains__))))

        found = {}
        for name, kind, info in self._entries(parts, choose):
            if kind in {_Kind.LINK, _Kind.LINK_TO_DIRECTORY}:
                self._note_link(_path(parts, name))
            elif kind is not _Kind.FILE:
                self._note_kind(_path(parts, name), kind)
            elif name in names:
                found[name] = info
            else:
                self.listing.copies[_path(parts, name)] = info
        return found

    def subdirectories(self, parts: Parts) -> list[str]:
        """The directories in this directory, by code point."""
        entries = self._entries(parts)
        for name, kind, _ in entries:
            if kind is _Kind.LINK_TO_DIRECTORY:
                self._note_link(_path(parts, name))
        return [name for name, kind, _ in entries if kind is _Kind.DIRECTORY]

    def deep(self, top: Parts) -> None:
        """The Markdown files below this directory, in hidden folders too; corpus files and copies apart."""
        found: dict[str, dict[str, os.stat_result]] = {"memory": {}, "corpus": {}, "copies": {}}
        pending = [top]
        while pending:
            parts = pending.pop()
            for name, kind, info in self._entries(parts, listed=parts != top):
                path, role = _path(parts, name), _role(parts, name)
                if kind in {_Kind.FILE, _Kind.OTHER} and (*parts, name) in _ABOVE_CORPUS:
                    raise _no_folder(path)
                if kind is _Kind.DIRECTORY and name == _REPAIR:
                    self.listing.notes.add(f"{shown(path)} holds copies of a repair; it was not scanned.")
                elif kind is _Kind.DIRECTORY:
                    pending.append((*parts, name))
                    if role in {"memory", "corpus"}:
                        self._note_kind(path, kind)
                elif kind is _Kind.LINK_TO_DIRECTORY or (kind is _Kind.LINK and role):
                    self._note_link(path)
                elif kind is _Kind.FILE and role:
                    found[role][path] = info
                elif kind is _Kind.OTHER and role:
                    self._note_kind(path, kind)
        self.listing.memory |= dict(sorted(found["memory"].items()))
        self.listing.corpus |= found["corpus"]
        self.listing.copies |= found["copies"]

    def extra(self, parts: Parts) -> None:
        """A place that the caller named: a file of any name, or a folder."""
        kinds = [kind for _, kind, _ in self._entries(parts[:-1], lambda _: parts[-1:])] if parts else []
        if not parts or _Kind.DIRECTORY in kinds:
            self.deep(parts)
        elif (found := self.flat(parts[:-1], parts[-1:])) and _path(parts) not in self.listing.corpus:
            self.listing.memory[_path(parts)] = found[parts[-1]]

    def _entries(
        self, parts: Parts, choose: Callable[[list[str]], Iterable[str]] = list, *, listed: bool = False
    ) -> list[tuple[str, _Kind, os.stat_result]]:
        """The chosen names in this directory, and what they are. None where there is no such directory."""
        try:
            with self.tree.directory(parts) as directory:
                present = self.tree.names(directory)
                entries = [(name, self._judged(directory, name, present)) for name in choose(present)]
        except (FileNotFoundError, NotADirectoryError) as error:
            if listed:
                raise MovedError from None
            if isinstance(error, NotADirectoryError) and parts in _ABOVE_CORPUS:
                raise _no_folder(_path(parts)) from None
            if isinstance(error, NotADirectoryError) and parts == _USERS:
                self.listing.notes.add(f"{_path(parts)} is no folder; it was not scanned.")
            return []
        except OSError as error:
            if error.errno == errno.ELOOP:
                self._note_link(error.filename or _path(parts))
                return []
            raise refusal(_path(parts), error) from error
        self.listing.directories[parts] = None
        return [(name, *judged) for name, judged in entries if judged is not None]

    def _judged(self, directory: int, name: str, present: list[str]) -> tuple[_Kind, os.stat_result] | None:
        try:
            info = self.tree.info(directory, name)
        except FileNotFoundError:
            if name in present and not name.endswith(".tmp"):  # a temporary file may come and go
                raise MovedError from None
            return None
        return self._kind(directory, name, info.st_mode), info

    def _kind(self, directory: int, name: str, mode: int) -> _Kind:
        if stat.S_ISLNK(mode):
            return _Kind.LINK_TO_DIRECTORY if self.tree.leads_to_directory(directory, name) else _Kind.LINK
        if stat.S_ISDIR(mode):
            return _Kind.DIRECTORY
        return _Kind.FILE if stat.S_ISREG(mode) else _Kind.OTHER

    def _note_kind(self, path: str, kind: _Kind) -> None:
        what = "a folder" if kind is _Kind.DIRECTORY else "a pipe, a socket or a device"
        self.listing.notes.add(f"{shown(path)} is {what} where a file belongs; no text of it was read.")

    def _note_link(self, path: str) -> None:
        self.listing.notes.add(f"{shown(path)} is a symbolic link; it was not followed.")


def _path(parts: Parts, *names: str) -> str:
    return "/".join((*parts, *names)) or "."


def _role(parts: Parts, name: str) -> str | None:
    """What a file of this name is in this directory, below a folder of memory files."""
    if parts == _CORPUS and name.lower().endswith(_CORPUS_ENDINGS):
        return "corpus"
    if name.endswith(".md"):
        return "memory"
    return "copies" if _is_copy(name, lambda file: _role(parts, file) in {"memory", "corpus"}) else None


def _is_copy(name: str, is_scanned: Callable[[str], bool]) -> bool:
    """Whether a temporary name is ours, or OpenClaw's for a file that is scanned (D18)."""
    copy = parse_copy_name(name)
    return copy is not None and (copy.file is None or is_scanned(copy.file))


def _no_folder(path: str) -> RefusedError:
    return RefusedError(
        f"{shown(path)} is no folder, and the session corpus belongs there: what was taken from transcripts cannot be "
        "read; nothing was changed; move it away, or put the folder back"
    )


def refusal(path: str, error: OSError, verb: str = "read") -> RefusedError:
    """The error for a place that must be read and cannot be: it is never taken for empty."""
    kind = CorruptStoreError if error.errno in _DAMAGE else RefusedError
    return kind(f"cannot {verb} {shown(path)}: {error.strerror or error}; nothing was changed")
