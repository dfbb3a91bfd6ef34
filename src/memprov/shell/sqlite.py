"""Opening SQLite: reading that leaves no trace, and writing that is durable when it returns.

*Reading without a trace* (I3). SQLite's ordinary read of a WAL database creates ``-shm``, takes locks, and folds a
left-over ``-wal`` into the database on close. So a database without WAL frames is opened ``immutable``; beside frames
it is opened through a VFS of our own, which opens every file for reading only, takes no lock, and refuses to create or
delete anything, with ``locking_mode=EXCLUSIVE`` (the index of the WAL is then built in memory, not in ``-shm``) and
without the checkpoint on close. Nobody is locked out, hence the file may change while it is read: its signature (size,
time, header with the change counter, digest of the WAL) is compared before and after, and the whole read is repeated
when it differs. Locks are a no-op of the *file* and not of a lock-free VFS beneath it: closing a second descriptor
of a file drops every POSIX lock that this process holds on it, and only SQLite's own VFS knows how to wait.

*Writing* opens the file that is there and never makes one. Every commit is synchronous and overwrites what it deletes.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar, cast
from urllib.parse import quote

import apsw
from attrs import evolve, field, frozen

from memprov.errors import (
    CorruptStoreError,
    MemprovError,
    PartialError,
    RefusedError,
    SchemaError,
    StaleStateError,
    StoreNotFoundError,
)
from memprov.shell.cells import Row, Value, integer
from memprov.shell.database_file import SameFile, hot_journal, modified_ns, require_writable, stamp_of

__all__ = [
    "BUSY_MS",
    "Access",
    "Database",
    "OrdinaryAccess",
    "QuietAccess",
    "Reader",
    "WaitingAccess",
    "explained",
    "writing",
]

T = TypeVar("T")

ATTEMPTS = 6
_FEW_ATTEMPTS = 2
#: A file changed this recently may change again without its time stamp showing it: the clock of a file system ticks.
TICK_NS = 20_000_000
BUSY_MS = 10_000
CACHE_KB = 64_000


@frozen
class Database:
    """A database file, what to call it in a message, and the newest schema that memprov knows of it.

    Work that goes on says which file it began with: one that has taken its name since is not opened for writing (F44).
    """

    path: str
    title: str
    newest: int
    file: SameFile | None = field(default=None, eq=False)

    @property
    def name(self) -> str:
        """How a message names it."""
        return f"{self.title} {self.path}"

    def held_fast(self) -> Database:
        """The database as the file that it is now."""
        return evolve(self, file=SameFile.at(os.path.realpath(self.path), self.name))


class Reader:
    """A connection with its schema, which is read and not assumed: a missing table is an empty one."""

    def __init__(self, connection: apsw.Connection, database: Database) -> None:
        self.connection = connection
        self.database = database
        self.tables = frozenset(
            str(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        )
        self._columns: dict[str, frozenset[str]] = {}

    def has(self, table: str) -> bool:
        """Whether the table is there."""
        return table in self.tables

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns."""
        if table not in self._columns:
            rows = self.connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = frozenset(str(name).lower() for (name,) in rows)
        return self._columns[table]

    def rows(
        self,
        table: str,
        required: str,
        optional: str = "",
        *,
        where: str = "",
        bindings: tuple[Value, ...] = (),
    ) -> Iterator[Row]:
        """The rows of a table, as the columns named; an optional column that the table lacks is NULL.

        A table that lacks a required column has a schema that memprov does not know.
        """
        if not self.has(table):
            return iter(())
        known = self.columns(table)
        needed, wanted = required.split(), optional.split()
        missing = [column for column in needed if column not in known]
        if missing:
            raise SchemaError(f"{self.database.name}: table {table} has no column {', '.join(missing)}")
        names = needed + [column if column in known else "NULL" for column in wanted]
        return iter(self.connection.execute(f"SELECT {', '.join(names)} FROM {table} {where}", bindings))

    def query(self, statement: str, bindings: tuple[Value, ...] = ()) -> Iterator[Row]:
        """Any statement."""
        return iter(self.connection.execute(statement, bindings))


class Access(Protocol):
    """How a database is read: without a trace, or as part of work under the lock."""

    def read(self, database: Database, use: Callable[[Reader], T]) -> T:
        """What ``use`` makes of the database, read in one transaction. It may be called again, so it has no effect."""


@frozen
class OrdinaryAccess:
    """Reading as everybody does, with locks: consistent beside a busy writer. Only for work that writes anyway."""

    def read(self, database: Database, use: Callable[[Reader], T]) -> T:
        """See ``Access``."""
        with explained(database, "reading"), _ordinary(database) as connection:
            reader = _reader(connection, database)
            connection.execute("BEGIN")
            return use(reader)


@frozen
class QuietAccess:
    """Reading that changes no byte and creates no file (I3)."""

    sleep: Callable[[float], None] = field(default=time.sleep)
    attempts: int = ATTEMPTS

    def read(self, database: Database, use: Callable[[Reader], T]) -> T:
        """See ``Access``. Raises ``StaleStateError`` when the database never holds still."""
        path = os.path.realpath(database.path)
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(0.05 * attempt)
            if not os.path.isfile(path):
                raise StoreNotFoundError(f"there is no {database.name}")
            if hot_journal(path):
                continue
            self._let_the_clock_tick(path)
            outcome = _attempt(path, database, use)
            if outcome.steady:
                return outcome.result()
        if hot_journal(path):
            raise CorruptStoreError(
                f"{database.name} has a rollback journal of an unfinished write beside it; "
                "let its owner open it once, so that the write is rolled back"
            )
        raise StaleStateError(f"{database.name} kept changing while it was read; try again when its owner is idle")

    def _let_the_clock_tick(self, path: str) -> None:
        """Wait until a change that is still to come would show in the file's time."""
        age = time.time_ns() - max(modified_ns(path), modified_ns(path + "-wal"))
        if 0 <= age < TICK_NS:
            self.sleep((TICK_NS - age) / 1e9)


@frozen
class WaitingAccess:
    """Reading by who is going to write: without a trace where that works, and beside a busy writer as everybody does,
    who waits and is not refused (F41).
    """

    sleep: Callable[[float], None] = field(default=time.sleep)

    def read(self, database: Database, use: Callable[[Reader], T]) -> T:
        """See ``Access``."""
        try:
            return QuietAccess(self.sleep, attempts=_FEW_ATTEMPTS).read(database, use)
        except StaleStateError:
            return OrdinaryAccess().read(database, use)


@contextmanager
def writing(database: Database, prepare: Callable[[apsw.Connection], None] | None = None) -> Iterator[Reader]:
    """One durable transaction on a database: all of it or nothing (``PartialError``).

    ``prepare`` is called with the connection before the transaction starts, to load an extension, say.
    """
    with explained(database, "writing"), _ordinary(database) as connection:
        for pragma in (
            "secure_delete = ON",  # what is deleted is overwritten
            "synchronous = FULL",  # on the disk before COMMIT returns
            "foreign_keys = ON",  # provenance and recall metadata go with their chunk
        ):
            list(connection.execute(f"PRAGMA {pragma}"))
        if prepare is not None:
            prepare(connection)
        reader = _reader(connection, database)
        connection.execute("BEGIN IMMEDIATE")
        yield reader
        if connection.in_transaction:
            connection.execute("COMMIT")


@frozen
class _Outcome(Generic[T]):
    """One try at reading: whether the database held still, and what came of it."""

    steady: bool
    value: T | None = None
    error: Exception | None = None

    def result(self) -> T:
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


def _attempt(path: str, database: Database, use: Callable[[Reader], T]) -> _Outcome[T]:
    before = stamp_of(path)
    value: T | None = None
    error: Exception | None = None
    steady = True
    try:
        connection = _quiet(path, frames=before.frames > 0)
        try:
            content = _content(connection, path, before.frames)
            try:
                with explained(database, "reading"):
                    reader = _reader(connection, database)
                    connection.execute("BEGIN")
                    value = use(reader)
            except MemprovError as raised:  # perhaps of what was read while it changed
                error = raised
            steady = content == _content(connection, path, before.frames)
        finally:
            connection.close()
    except FileNotFoundError:
        steady = False
    except (apsw.Error, OSError) as raised:
        error = _verdict(raised, database, "reading")
    return _Outcome(steady and before == stamp_of(path), value, error)


class _QuietFile(apsw.VFSFile):
    """A file that takes no lock and cannot be written."""

    def xLock(self, level: int) -> None:
        """Pretend."""

    def xUnlock(self, level: int) -> None:
        """Pretend."""

    def xCheckReservedLock(self) -> bool:
        """Nobody else is looked for: the signature tells afterwards."""
        return False

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: ARG002  # the names are SQLite's
        """Never."""
        raise apsw.ReadOnlyError("reading must leave no trace")

    def xTruncate(self, newsize: int) -> None:  # noqa: ARG002
        """Never."""
        raise apsw.ReadOnlyError("reading must leave no trace")


class _QuietVFS(apsw.VFS):
    """The operating system without the verbs that leave a trace."""

    def __init__(self) -> None:
        self.base = "unix"
        super().__init__(_VFS, base=self.base)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open for reading. The WAL is opened under a main database's flags: its own make SQLite chown it as root."""
        wal = flags[0] & apsw.SQLITE_OPEN_WAL
        if name is None or not flags[0] & (apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL):
            raise apsw.CantOpenError("reading must leave no trace")
        if wal:
            flags[0] = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
            name = name.filename() if isinstance(name, apsw.URIFilename) else name
        file = _QuietFile(self.base, name, flags)
        if wal:
            flags[0] = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_WAL
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: ARG002, FBT001
        """Never."""
        raise apsw.ReadOnlyError("reading must leave no trace")


_VFS = "memprov-quiet"
_registered: list[_QuietVFS] = []
_registering = threading.Lock()


def _quiet(path: str, *, frames: bool) -> apsw.Connection:
    if frames:
        with _registering:
            if not _registered:
                _registered.append(_QuietVFS())
    uri = f"file:{quote(os.fsencode(path))}?mode=ro" + ("" if frames else "&immutable=1")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags, vfs=_VFS if frames else None)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    list(connection.execute("PRAGMA locking_mode = EXCLUSIVE"))
    return connection


@contextmanager
def _ordinary(database: Database) -> Iterator[apsw.Connection]:
    path = os.path.realpath(database.path)
    if not os.path.isfile(path):
        raise StoreNotFoundError(f"there is no {database.name}")
    require_writable(path, database.name)
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"  # a path may hold bytes that are no text
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(BUSY_MS)
        if database.file is not None:
            database.file.require()
        yield connection
    finally:
        connection.close()


def _reader(connection: apsw.Connection, database: Database) -> Reader:
    list(connection.execute("PRAGMA temp_store = MEMORY"))
    list(connection.execute(f"PRAGMA cache_size = -{CACHE_KB}"))
    pages, version = (integer(_pragma(connection, name)) for name in ("page_count", "user_version"))
    if not pages:
        raise CorruptStoreError(f"{database.name} is an empty file")
    if version > database.newest:
        raise SchemaError(
            f"{database.name} has schema version {version}; this memprov knows versions up to {database.newest}"
        )
    return Reader(connection, database)


def _pragma(connection: apsw.Connection, name: str) -> Value:
    return cast("Value", next(iter(connection.execute(f"PRAGMA {name}")))[0])


@contextmanager
def explained(database: Database, purpose: str) -> Iterator[None]:
    """Turn what SQLite raises into the errors of memprov: a refusal, but for ``writing``, where work may have begun."""
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _verdict(error, database, purpose) from error


def _verdict(error: Exception, database: Database, purpose: str) -> MemprovError:
    name = database.name
    if isinstance(error, apsw.NotADBError):
        return CorruptStoreError(f"{name} is not a SQLite database")
    if isinstance(error, apsw.CorruptError):
        return CorruptStoreError(f"{name} is damaged: {error}")
    if isinstance(error, UnicodeDecodeError):
        return CorruptStoreError(f"{name} holds a text that is not UTF-8")
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError | OSError):
        return RefusedError(f"{name} cannot be opened for {purpose}: {error}")
    if purpose == "writing":
        return PartialError(f"{name} could not be changed: {error}")
    return RefusedError(f"{name}: {purpose} failed, and nothing was changed: {error}")


def _content(connection: apsw.Connection, path: str, frames: int) -> tuple[bytes, bytes]:
    """The header, which holds the change counter, and a digest of the WAL.

    The header comes through the connection, since closing a descriptor of our own on the database would drop the locks
    that this process holds on it. Nobody locks the WAL itself.
    """
    _, head = connection.read("main", 0, 0, 100)
    if not frames:
        return head, b""
    with open(path + "-wal", "rb") as file:
        return head, hashlib.file_digest(file, "sha256").digest()
