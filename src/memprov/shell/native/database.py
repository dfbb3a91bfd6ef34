"""One ledger as a file: making it, bringing it up to date, and the two ways of opening it.

*Writing* goes through one connection on which everything that is deleted is overwritten, every commit is on the disk
before it returns, and foreign keys hold. It first takes the steps that the file lacks, all in one transaction.

*Reading* leaves no trace (I3), hence cannot bring an older file up to date. What it reads then is a copy in memory that
has taken the steps: so there is one reader, of the newest schema, and a dry run on an old store changes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import apsw
from attrs import frozen

from memprov.errors import CorruptStoreError, RefusedError, SchemaError, StoreNotFoundError
from memprov.shell.cells import integer
from memprov.shell.database_file import require_writable
from memprov.shell.native.schema import Schema
from memprov.shell.sqlite import BUSY_MS, Access, Database, Reader, explained
from memprov.shell.statements import roll_back, transaction
from memprov.shell.workspace import CALLS

__all__ = ["LedgerFile", "sync_directory"]

T = TypeVar("T")
_PRIVATE = 0o600
_PAUSE_S = 0.01


@frozen
class LedgerFile:
    """A ledger: where it is, and which schema it has."""

    path: str
    schema: Schema

    @property
    def database(self) -> Database:
        """The file as the reader of SQLite files knows it."""
        return Database(self.path, self.schema.title, self.schema.version)

    def exists(self, quiet: Access) -> bool:
        """Whether it was made. A process that died while it made one leaves a file without tables."""
        try:
            if not os.stat(self.path).st_size:
                return False
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise RefusedError(f"{self.database.name} cannot be opened: {error.strerror}") from error
        return quiet.read(self.database, lambda reader: self._version(reader.connection)) > 0

    def create(self, fill: Callable[[apsw.Connection], None] = lambda _: None) -> None:
        """Make the ledger, private to its owner, unless it is made; ``fill`` adds to what makes it, all in one."""
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE))
        with self.writing(fill):
            sync_directory(os.path.dirname(self.path))

    def require_writable(self) -> None:
        """Refuse a ledger that is not to be written, before SQLite opens it (F42). Raises ``RefusedError``."""
        require_writable(self.path, self.database.name)

    @contextmanager
    def writing(self, fill: Callable[[apsw.Connection], None] = lambda _: None) -> Iterator[apsw.Connection]:
        """A connection that writes. Raises ``SchemaError`` for a ledger of a newer memprov, or no ledger of ours."""
        path = os.path.realpath(self.path)
        if not os.path.isfile(path):
            raise StoreNotFoundError(f"there is no {self.database.name}")
        self.require_writable()
        with explained(self.database, "opening"):
            connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with explained(self.database, "opening"):
                self._configure(connection)
                self._take_steps(connection, fill)
                list(connection.execute("PRAGMA foreign_keys = ON"))
            yield connection
        finally:
            connection.close()

    def read(self, use: Callable[[apsw.Connection], T], quiet: Access) -> T:
        """What ``use`` makes of the ledger, read in one transaction and without a trace. It may be called again."""

        def current(reader: Reader) -> T:
            connection = reader.connection
            version = self._version(connection)
            if version == self.schema.version:
                return use(connection)
            if not version:
                raise CorruptStoreError(f"{self.database.name} is empty")
            copy = apsw.Connection(":memory:")
            try:
                with copy.backup("main", connection, "main") as backup:
                    backup.step()
                self._take_steps(copy, lambda _: None)
                return use(copy)
            finally:
                copy.close()

        return quiet.read(self.database, current)

    def _configure(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_MS)
        self._version(connection)  # before the first change
        for pragma in (
            "temp_store = MEMORY",  # no id reaches a temporary file
            "trusted_schema = OFF",
            "secure_delete = ON",  # what is deleted is overwritten
            "synchronous = FULL",  # on the disk before COMMIT returns
        ):
            list(connection.execute(f"PRAGMA {pragma}"))
        _write_ahead(connection)

    def _take_steps(self, connection: apsw.Connection, fill: Callable[[apsw.Connection], None]) -> None:
        """Take the steps that the file lacks, all of them or none."""
        if self._version(connection) == self.schema.version:
            return
        list(connection.execute("PRAGMA foreign_keys = OFF"))  # a step may rebuild a table that others refer to
        with transaction(connection):
            taken = self._version(connection)  # another process may have been faster
            for step in self.schema.steps[taken:]:
                list(connection.execute(step))
            if damage := next(iter(connection.execute("PRAGMA foreign_key_check")), None):
                raise CorruptStoreError(f"{self.database.name}: rows of {damage[0]} refer to rows that are not there")
            list(connection.execute(f"PRAGMA application_id = {self.schema.application_id}"))
            list(connection.execute(f"PRAGMA user_version = {self.schema.version}"))
            if not taken:
                fill(connection)

    def _version(self, connection: apsw.Connection) -> int:
        """How many steps the file has taken. Raises ``SchemaError`` for one that is not ours, or newer."""
        with _one_moment(connection):  # another process may be making it
            application, version = (_pragma(connection, name) for name in ("application_id", "user_version"))
            tables = list(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))
        if not application and not version and not tables:
            return 0
        if application != self.schema.application_id:
            raise SchemaError(f"{self.database.name} is a database of another program; nothing was changed")
        if version > self.schema.version:
            raise SchemaError(
                f"{self.database.name} has schema version {version}; this memprov knows versions up to "
                f"{self.schema.version}"
            )
        return version


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        CALLS.sync(fd)
    finally:
        os.close(fd)


@contextmanager
def _one_moment(connection: apsw.Connection) -> Iterator[None]:
    """Read several things as of one moment."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        roll_back(connection)


def _write_ahead(connection: apsw.Connection) -> None:
    """Keep a write-ahead log. Where two make a ledger at once, SQLite does not wait for the other by itself."""
    patience = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            list(connection.execute("PRAGMA journal_mode = WAL"))
        except apsw.BusyError:
            if time.monotonic() > patience:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _pragma(connection: apsw.Connection, name: str) -> int:
    return integer(next(iter(connection.execute(f"PRAGMA {name}")))[0])
