"""A SQLite database as a stranger reads it: its bytes, whose page each of them is, and its values.

Nothing is opened in place. The file and the frames of its WAL are put together in memory as SQLite would, and that copy
is asked which table every page belongs to (``dbstat``). So the bytes that are searched are the ones that are explained,
no lock is taken, and nothing is created (I3). What a value continues on other pages (overflow) is searched as a value,
and so are the tables of which only some rows may stay.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote

import apsw
from attrs import define, field, frozen

from memprov.core.proof import Control, Encoding, Needle, NeedleKind, Search, Sighting, Spot, retained_at
from memprov.core.records import StoreIdentity
from memprov.core.text import to_bytes
from memprov.shell.proof.files import Bytes, FileAt, found_in
from memprov.shell.proof.full_text import dead_words, full_texts, words_of

__all__ = ["FREE", "MAX_IMAGE", "OLD_FRAMES", "DatabaseScan", "is_database"]

#: No larger database is put together in memory, which takes three times its size.
MAX_IMAGE = 1 << 30
FREE = "free pages"
OLD_FRAMES = "old WAL frames"
_MAGIC = b"SQLite format 3\0"
_CONTROL_TABLES = 200
_LONGEST = 256
_FRAME, _WAL = 24, 32


def is_database(head: bytes) -> bool:
    """Whether a file that begins like this is a SQLite database."""
    return head.startswith(_MAGIC)


@frozen
class _Wal:
    """The frames of a WAL: for each its offset and page, which of them are current, and the size of the database."""

    frames: tuple[tuple[int, int], ...] = ()
    current: dict[int, int] = field(factory=dict)
    pages: int = 0


@define
class DatabaseScan:
    """One database file with its WAL. ``run`` yields what it sees; the fields say what it could and could not do."""

    identity: StoreIdentity
    search: Search
    file: FileAt
    data: Bytes
    wal: Bytes | None
    controls: list[Control] = field(factory=list)
    obstacles: list[str] = field(factory=list)
    _owners: dict[int, str] = field(factory=dict)

    def run(self) -> Iterator[Sighting]:
        """Search the bytes, then the values that bytes alone do not show. Raises ``OSError``."""
        size = _page_size(self.data)
        wal = _read_wal(self.wal, size) if self.wal is not None else _Wal()
        connection = self._connect(wal, size)
        try:
            self._owners = self._explain(connection)
            seen = list(self._bytes(size, wal))
            mixed = _MIXED if self._owners else {}
            yield from (s for s in seen if s.spot.table not in mixed)
            if self._owners:
                yield from self._values(connection)
                yield from self._mixed(connection, [s for s in seen if s.spot.table in mixed])
                yield from self._full_texts(connection)
                self.controls.append(self._control(connection))
        finally:
            connection.close()

    def _spot(self, table: str, rows: str = "") -> Spot:
        return Spot(self.file.root, self.file.path, table, rows)

    def _connect(self, wal: _Wal, size: int) -> apsw.Connection:
        """The database as of its last commit: in memory, or, were that too much, in place if it needs no WAL."""
        if self.data.size > MAX_IMAGE:
            if wal.current:
                raise OSError(f"it is larger than {MAX_IMAGE} bytes and has a WAL; let its owner close it once")
            uri = f"file:{quote(os.fsencode(self.file.full))}?immutable=1"
            return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        connection = apsw.Connection(":memory:")
        with suppress(apsw.Error):  # a damaged one is explained by nobody
            connection.deserialize("main", _image(self.data, self.wal, wal, size))
        return connection

    def _explain(self, connection: apsw.Connection) -> dict[int, str]:
        """Page -> the table that it, or its index, belongs to."""
        try:
            for pragma in ("trusted_schema = OFF", "temp_store = MEMORY"):
                list(connection.execute(f"PRAGMA {pragma}"))
            schema = connection.execute("SELECT name, tbl_name FROM sqlite_schema")
            tables = {str(name): str(table) for name, table in schema}
            pages = connection.execute("SELECT pageno, name FROM dbstat")
            return {int(str(page)): tables.get(str(name), str(name)) for page, name in pages}
        except (apsw.Error, ValueError) as error:
            self.obstacles.append(f"it cannot be read as a database ({type(error).__name__})")
            return {}

    def _bytes(self, size: int, wal: _Wal) -> Iterator[Sighting]:
        for place, match in found_in(self.search, self.data, packed=True):
            yield self._seen(self._owners.get(place // size + 1, FREE), match.needle, match.encoding)
        if self.wal is None:
            return
        for offset, page in wal.frames:
            frame = self.wal.read(offset, size)
            table = self._owners.get(page, FREE) if wal.current.get(page) == offset else OLD_FRAMES
            for match in self.search.find(frame, packed=True):
                yield self._seen(table, match.needle, match.encoding)

    def _seen(self, table: str, needle: Needle, encoding: Encoding, rows: str = "") -> Sighting:
        return Sighting(self._spot(table, rows), needle.kind, needle.name, encoding)

    def _values(self, connection: apsw.Connection) -> Iterator[Sighting]:
        """The tables whose values reach over several pages, unless all of it may stay."""
        rows = connection.execute("SELECT DISTINCT name FROM dbstat WHERE pagetype = 'overflow'")
        for table in sorted({str(row[0]) for row in rows}):
            if table in _MIXED or self._is_retained(table):
                continue
            with suppress(apsw.SQLError):  # an index: its table has the values
                for row in connection.execute(f"SELECT * FROM {_quoted(table)}"):
                    for needle, encoding in _in_values(self.search, row):
                        yield self._seen(table, needle, encoding)

    def _mixed(self, connection: apsw.Connection, seen: list[Sighting]) -> Iterator[Sighting]:
        """Tables of which some rows may stay: row by row, and then what the pages hold beyond the rows."""
        for table, group in _MIXED.items():
            alive: Counter[tuple[NeedleKind, str]] = Counter()
            if table in self._owners.values():
                names = _columns(connection, table)
                for row in connection.execute(f"SELECT * FROM {_quoted(table)}"):
                    rows = group(dict(zip(names, row, strict=True)))
                    for needle, encoding in _in_values(self.search, row):
                        alive[needle.kind, needle.name] += 1
                        yield self._seen(table, needle, encoding, rows)
            beyond: Counter[tuple[NeedleKind, str]] = Counter(
                (s.kind, s.needle) for s in seen if s.spot.table == table for _ in range(s.count)
            )
            for (kind, name), count in beyond.items():
                if count > alive[kind, name]:
                    spot = self._spot(f"{table}: unused bytes")
                    yield Sighting(spot, kind, name, Encoding.UTF8, count - alive[kind, name])

    def _full_texts(self, connection: apsw.Connection) -> Iterator[Sighting]:
        """Words that a full text stores and no longer finds, where it may not keep them anyway."""
        words = words_of(self.search.needles) if self._owners else {}
        for table in full_texts(connection) if words else ():
            if self._is_retained(f"{table}_data"):
                continue
            try:
                dead = dead_words(connection, table)
            except apsw.Error as error:
                self.obstacles.append(f"the words of the full text {table} cannot be read ({type(error).__name__})")
                continue
            for word in sorted(words.keys() & dead):
                yield Sighting(self._spot(f"{table}_data"), NeedleKind.TEXT, words[word], Encoding.UTF8)

    def _is_retained(self, table: str) -> bool:
        return all(
            retained_at(self.identity.kind, self.identity.agent_id, self._spot(table), kind) for kind in NeedleKind
        )

    def _control(self, connection: apsw.Connection) -> Control:
        """Whether a short value of each table is found in the bytes: in an encrypted file none would be."""
        tables = [str(row[0]) for row in connection.execute(_PLAIN_TABLES)]
        values = [v for table in tables[:_CONTROL_TABLES] if (v := _some_text(connection, table)) is not None]
        left = {form for value in values for form in _forms(value)}
        for file in filter(None, (self.data, self.wal)):
            for _, piece in file.pieces(_LONGEST):
                left -= {form for form in left if form in piece}
        found = sum(not left.issuperset(_forms(value)) for value in values)
        return Control(f"values of {self.file.path} are found in its bytes", len(values), found)


_PLAIN_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    return [str(row[0]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _plugin_state(row: dict[str, object]) -> str:
    """Plugin and namespace; ``excluded`` for a checkpoint that says why its session was kept out."""
    with suppress(ValueError, TypeError, AttributeError):
        if row["namespace"] == "dreaming-session-ingestion-files":
            value = json.loads(str(row["value_json"]))
            if (value.get("value") or value).get("excludedReason"):
                return "excluded"
    return f"{row.get('plugin_id')}/{row.get('namespace')}"


def _checkpoint(row: dict[str, object]) -> str:
    return "excluded" if row.get("excluded_reason") else "included"


#: Tables of which some rows may stay, and how a row tells its group.
_MIXED = {"plugin_state_entries": _plugin_state, "checkpoints": _checkpoint}


def _in_values(search: Search, row: tuple[object, ...]) -> Iterator[tuple[Needle, Encoding]]:
    for value in row:
        if isinstance(value, str | bytes):
            data = value if isinstance(value, bytes) else to_bytes(value)
            for match in search.find(data, packed=False):
                yield match.needle, match.encoding


def _some_text(connection: apsw.Connection, table: str) -> str | None:
    """A text of the table that fits a page whole, or ``None``."""
    for column in _columns(connection, table):
        with suppress(apsw.Error):
            statement = (
                f"SELECT {_quoted(column)} FROM {_quoted(table)} "
                f"WHERE typeof({_quoted(column)}) = 'text' AND length({_quoted(column)}) BETWEEN 8 AND 60 LIMIT 1"
            )
            for (value,) in connection.execute(statement):
                return str(value)
    return None


def _forms(value: str) -> tuple[bytes, ...]:
    """A text as a database holds it."""
    return tuple(value.encode(codec, "surrogatepass") for codec in ("utf-8", "utf-16-le", "utf-16-be"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _page_size(data: Bytes) -> int:
    size = int.from_bytes(data.read(16, 2), "big")
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):
        raise OSError("its header is damaged")
    return size


def _image(data: Bytes, wal: Bytes | None, frames: _Wal, size: int) -> bytes:
    """The database as SQLite sees it: the file with the current frames put in."""
    image = bytearray(data.read(0, data.size))
    if frames.pages and wal is not None:
        image.extend(bytes(max(frames.pages * size - len(image), 0)))
        for page, offset in frames.current.items():
            image[(page - 1) * size : page * size] = wal.read(offset, size)
        del image[frames.pages * size :]
    image[18:20] = b"\1\1"  # no WAL in memory
    return bytes(image)


def _read_wal(wal: Bytes, size: int) -> _Wal:
    """The frames of a WAL. Those of the last committed transaction and before are current, each page's last one."""
    head = wal.read(0, _WAL)
    if len(head) < _WAL or int.from_bytes(head[8:12], "big") not in (size, 1):
        return _Wal()
    frames: list[tuple[int, int]] = []
    current: dict[int, int] = {}
    pending: dict[int, int] = {}
    pages, valid = 0, True
    for start in range(_WAL, wal.size - _FRAME - size + 1, _FRAME + size):
        header = wal.read(start, _FRAME)
        page, committed = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")
        frames.append((start + _FRAME, page))
        valid = valid and header[8:16] == head[16:24]
        if not valid:
            continue
        pending[page] = start + _FRAME
        if committed:
            current.update(pending)
            pending, pages = {}, committed
    return _Wal(tuple(frames), current, pages)
