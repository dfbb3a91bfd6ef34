"""The memory files that may be indexed, as they are now: their text, their time, and the class that is recorded.

No link is followed, so a path is where the file really is (B16). A file under several names is indexed once.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator

from memprov.core.index import SourceText, is_own_artifact, memory_text
from memprov.core.records import OriginClass, path_class
from memprov.core.text import digest, json_text, to_text
from memprov.errors import StaleStateError
from memprov.shell.index.ledger import FileLook
from memprov.shell.native import NativeStore
from memprov.shell.native.curated import file_digest, read_file_records
from memprov.shell.native.reader import Access
from memprov.shell.workspace.listing import MovedError, list_places, refusal
from memprov.shell.workspace.tree import Inode, Tree

__all__ = ["file_look", "files_seen", "read_memory_files", "recorded_classes"]

_ATTEMPTS = 8
#: How coarse a file system's clock may be.
_SETTLED_NS = 2_000_000_000
_ELSEWHERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def recorded_classes(store: NativeStore, access: Access) -> dict[str, OriginClass]:
    """The class that the file ledger has for each path."""
    rows = access.read(store._layout.shared, read_file_records)
    return {path: record.origin_class for path, record, *_ in rows}


def read_memory_files(store: NativeStore, recorded: dict[str, OriginClass]) -> tuple[SourceText, ...]:
    """Every indexable memory file. Raises ``RefusedError`` for one that cannot be read."""
    for _ in range(_ATTEMPTS):
        try:
            return tuple(_read(store, recorded))
        except MovedError:
            continue
    raise StaleStateError(f"files below {store._layout.workspace} were moved about while they were being read")


def files_seen(store: NativeStore, recorded: dict[str, OriginClass]) -> str | None:
    """What tells every indexable memory file and its class from any other state of them, without opening one.

    ``None`` for a file that changed a moment ago: another change might leave the same time (or it is moved about).
    """
    try:
        with Tree(store._layout.workspace, store._calls) as tree:
            infos = {p: info for p, info in list_places(tree, ()).memory.items() if not is_own_artifact(p)}
    except MovedError:
        return None
    newest = max((max(info.st_mtime_ns, info.st_ctime_ns) for info in infos.values()), default=0)
    if newest > time.time_ns() - _SETTLED_NS:
        return None
    facts = [
        [path, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, recorded.get(path)]
        for path, info in sorted(infos.items())
    ]
    return digest(json_text(facts))


def file_look(store: NativeStore, recorded: dict[str, OriginClass]) -> FileLook:
    """A look at one file, for a fence."""

    def look(path: str) -> tuple[str | None, OriginClass | None]:
        return file_digest(store._layout.workspace, path, store._calls), path_class(path, recorded.get(path))

    return look


def _read(store: NativeStore, recorded: dict[str, OriginClass]) -> Iterator[SourceText]:
    seen: set[Inode] = set()
    with Tree(store._layout.workspace, store._calls) as tree:
        for path in list_places(tree, ()).memory:
            if is_own_artifact(path):
                continue
            *above, name = path.split("/")
            try:
                with tree.directory(tuple(above)) as directory:
                    content = tree.content(directory, name)
            except OSError as error:
                if error.errno in _ELSEWHERE:
                    raise MovedError from None
                raise refusal(path, error) from error
            if content is None:
                raise MovedError
            if content.inode in seen:
                continue
            seen.add(content.inode)
            source = memory_text(
                path,
                to_text(content.data),
                mtime_ms=max(content.info.st_mtime_ns // 1_000_000, 0),
                recorded=recorded.get(path),
            )
            if source is not None:
                yield source
