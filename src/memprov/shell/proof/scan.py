"""One pass over every byte below a store's roots: what was seen, what could not be read, and the controls.

It walks the file system and nothing else: no list of the purge's, no schema of a store. What a file is, its bytes say.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator

from attrs import define, field

from memprov.core.proof import (
    Control,
    NeedleKind,
    NeedleSet,
    Root,
    Search,
    Sighting,
    Spot,
    Verification,
    judge,
    retained_at,
)
from memprov.core.records import StoreIdentity
from memprov.shell.proof.database import DatabaseScan, is_database
from memprov.shell.proof.files import Bytes, FileAt, Unread, found_in, listed, opened, shown
from memprov.shell.proof.lance import lance_tables, lance_values
from memprov.shell.proof.packed import MAX_UNPACKED, is_noise, unpacker_of

__all__ = ["scan_store"]

_HEAD = 1 << 16
_SIDES = ("-wal", "-shm")
_DATABASE_NAMES = (".sqlite", ".sqlite3", ".db")


def scan_store(identity: StoreIdentity, needles: NeedleSet, obstacles: Iterable[str] = ()) -> Verification:
    """Look for the needles in every file of a store. Reads only; raises nothing for what it cannot read."""
    scan = _Scan(identity, Search(needles))
    roots = {Root.STATE: identity.state_root, Root.WORKSPACE: identity.workspace_root}
    files: dict[str, FileAt] = {}
    for entry in listed(roots):
        if isinstance(entry, Unread):
            scan.obstacle(entry.root, entry.path, entry.reason)
        else:
            files[entry.full] = entry
    sightings = list(scan.run(files))
    return judge(
        identity.kind,
        identity.agent_id,
        needles,
        sightings,
        controls=(scan.search.control(), *scan.controls),
        obstacles=(*obstacles, *scan.obstacles),
        files=scan.files,
        bytes_read=scan.bytes_read,
    )


@define
class _Scan:
    identity: StoreIdentity
    search: Search
    controls: list[Control] = field(factory=list)
    obstacles: list[str] = field(factory=list)
    files: int = 0
    bytes_read: int = 0

    def run(self, files: dict[str, FileAt]) -> Iterator[Sighting]:
        databases = {path for path, file in files.items() if _begins_as_database(file)}
        for path, file in files.items():
            if path.endswith(_SIDES) and path[: -len("-wal")] in databases:
                continue  # a WAL is read with its database; its index holds numbers only, and closing it drops locks
            try:
                found = list(self._file(file, files.get(path + "-wal") if path in databases else None))
            except OSError as error:
                self.obstacle(file.root, file.path, error.strerror or str(error))
            else:
                yield from found
        for folder, table in lance_tables(files.values()):
            yield from self._lance(folder, table)

    def obstacle(self, root: Root, path: str, reason: str) -> None:
        """Note what could not be read, unless all of it may stay."""
        spot = Spot(root, path)
        if not all(retained_at(self.identity.kind, self.identity.agent_id, spot, kind) for kind in NeedleKind):
            self.obstacles.append(f"{root}/{shown(path)}: {reason}")

    def _file(self, file: FileAt, wal: FileAt | None) -> Iterator[Sighting]:
        self.files += 1
        with opened(file) as data:
            self.bytes_read += data.size
            head = data.read(0, _HEAD)
            yield from self._name(file)
            if is_database(head):
                yield from self._database(file, data, wal)
            else:
                yield from self._plain(file, data, head)
        if _changed(file):
            self.obstacle(file.root, file.path, "it changed while it was read")

    def _plain(self, file: FileAt, data: Bytes, head: bytes) -> Iterator[Sighting]:
        for _, match in found_in(self.search, data, packed=b"\0" in head):
            yield Sighting(Spot(file.root, file.path), match.needle.kind, match.needle.name, match.encoding)
        unpack = unpacker_of(file.root, file.path, head)
        if isinstance(unpack, str):
            self.obstacle(file.root, file.path, unpack)
        elif unpack is not None:
            yield from self._packed(file, unpack(_stream(data)))
        elif file.path.endswith(_DATABASE_NAMES) and data.size:
            self.obstacle(file.root, file.path, "it is called a database and is none that can be read")
        elif is_noise(head, data.size):
            self.obstacle(file.root, file.path, "it is compressed or encrypted")

    def _name(self, file: FileAt) -> Iterator[Sighting]:
        """A file's name may hold a session's id, too."""
        for match in self.search.find(file.path.encode("utf-8", "surrogateescape"), packed=False):
            yield Sighting(Spot(file.root, file.path), match.needle.kind, match.needle.name, match.encoding)

    def _database(self, file: FileAt, data: Bytes, wal: FileAt | None) -> Iterator[Sighting]:
        if wal is None:
            scan = DatabaseScan(self.identity, self.search, file, data, None)
            yield from scan.run()
        else:
            with opened(wal) as frames:
                self.files += 1
                self.bytes_read += frames.size
                scan = DatabaseScan(self.identity, self.search, file, data, frames)
                yield from scan.run()
        self.controls.extend(scan.controls)
        for reason in scan.obstacles:
            self.obstacle(file.root, file.path, reason)

    def _packed(self, file: FileAt, pieces: Iterator[bytes]) -> Iterator[Sighting]:
        rest, total = b"", 0
        spot = Spot(file.root, file.path)
        for piece in pieces:
            total += len(piece)
            if total > MAX_UNPACKED:
                self.obstacle(file.root, file.path, f"it unpacks to more than {MAX_UNPACKED} bytes")
                return
            data = rest + piece
            for match in self.search.find(data, packed=False):
                if match.end > len(rest):
                    yield Sighting(spot, match.needle.kind, match.needle.name, match.encoding)
            rest = data[-self.search.reach :]

    def _lance(self, folder: FileAt, table: str) -> Iterator[Sighting]:
        spot = Spot(folder.root, folder.path)
        try:
            for value in lance_values(folder.full, table):
                for match in self.search.find(value, packed=False):
                    yield Sighting(spot, match.needle.kind, match.needle.name, match.encoding)
        except OSError as error:
            self.obstacle(folder.root, folder.path, str(error))


def _changed(file: FileAt) -> bool:
    try:
        info = os.lstat(os.fsencode(file.full))
    except OSError:
        return True
    return (info.st_size, info.st_mtime_ns) != (file.size, file.changed)


def _begins_as_database(file: FileAt) -> bool:
    if file.size < len("SQLite format 3\0"):
        return False
    try:
        with opened(file) as data:
            return is_database(data.read(0, 16))
    except OSError:
        return False


class _Stream(io.RawIOBase):
    """A file as a stream, for those who unpack it."""

    def __init__(self, data: Bytes) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what io calls it with
        piece = self._data.read(self._at, len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _stream(data: Bytes) -> io.BufferedReader:
    return io.BufferedReader(_Stream(data))
