"""Physical erasure (docs: proof): what was deleted leaves the bytes of the files that a store owns.

A purge deletes on connections that overwrite what they delete. That is not all: pages that someone else freed keep what
they held, a full text keeps deleted words until its segments are merged, a page keeps old bytes between its rows, and a
write-ahead log keeps every version. So, for each database: check that overwriting is on, merge the full text, write the
whole database anew without its free space, and fold and cut the log. Nothing of it is assumed to work: what did not is
said. Doing it again changes nothing that a reader sees.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import closing

import apsw

from memprov.core.proof import Erasure, is_stale_rebuild
from memprov.core.text import to_bytes, to_text
from memprov.shell.cells import Value, integer, text
from memprov.shell.sqlite import BUSY_MS

__all__ = ["erase_connection", "erase_database", "erase_stale_rebuilds", "fold_log", "held_back"]

_HOUR = 3600.0
_BRIEFLY_MS = 100


def erase_database(path: str, name: str, full_text: Callable[[str], bool]) -> Erasure:
    """Erase in a database of another program; see ``erase_connection``."""
    try:
        connection = apsw.Connection(os.path.realpath(path), flags=apsw.SQLITE_OPEN_READWRITE)
    except (apsw.Error, UnicodeEncodeError) as error:
        return Erasure(unreached=(f"{name}: it cannot be opened ({type(error).__name__})",))
    with closing(connection):
        connection.set_busy_timeout(BUSY_MS)
        return erase_connection(connection, name, full_text)


def fold_log(connection: apsw.Connection, waits: Callable[[int], None]) -> bool:
    """Fold the log into its database and cut it to nothing, now or not at all: whether that was done (F46).

    ``waits`` sets the connection's time-out, in milliseconds.
    """
    waits(_BRIEFLY_MS)
    try:
        busy, _, _ = next(iter(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")))
    except apsw.Error:
        return False
    finally:
        waits(BUSY_MS)
    return not busy


def held_back(name: str) -> str:
    """What a report says of a database whose log could not be folded in."""
    return (
        f"{name} is being read by another connection: until that ends, what was removed still stands in its files; "
        "the next purge after that clears it"
    )


def erase_connection(connection: apsw.Connection, name: str, full_text: Callable[[str], bool]) -> Erasure:
    """Erase in a database, through a connection outside of any transaction. ``full_text`` says which full-text tables
    are memory's: others are left as they are. Whoever holds the database or its log is waited for as long as the
    connection's time-out says, and then named.
    """
    done = Erasure()
    for what, step in (
        ("deleted bytes are overwritten", _overwriting),
        *((f"full text {table} merged", _merging(table)) for table in _full_text(connection, full_text)),
        ("written anew without free space", _rewriting),
        ("log folded in and cut to nothing", _cutting_the_log),
    ):
        try:
            failed = step(connection)
        except (apsw.Error, MemoryError) as error:
            failed = f"{type(error).__name__}"
        done += Erasure(unreached=(f"{name}: not {what} ({failed})",)) if failed else Erasure((f"{name}: {what}",))
    return done


def erase_stale_rebuilds(database: str) -> Erasure:
    """Remove what killed rebuilds left beside a database, by exact name and when nobody wrote to it for an hour."""
    folder, name = os.path.split(os.path.realpath(database))
    done = Erasure()
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        return Erasure(unreached=(f"{folder}: it cannot be listed ({error.strerror})",))
    try:
        found = [entry for entry in map(os.fsencode, os.listdir(fd)) if is_stale_rebuild(to_text(entry), name)]
        for entry in sorted(found):
            shown = to_text(entry)
            try:
                info = os.stat(entry, dir_fd=fd, follow_symlinks=False)
                if not stat.S_ISREG(info.st_mode):
                    done += Erasure(unreached=(f"{shown}: it is no regular file",))
                elif time.time() - max(info.st_mtime, *_written(fd, entry)) < _HOUR:
                    done += Erasure(unreached=(f"{shown}: a rebuild may still be writing it; erase again in an hour",))
                else:
                    os.unlink(entry, dir_fd=fd)
                    done += Erasure((f"{shown}: removed",))
            except FileNotFoundError:
                continue
            except OSError as error:
                done += Erasure(unreached=(f"{shown}: it cannot be removed ({error.strerror})",))
        os.fsync(fd)
    finally:
        os.close(fd)
    return done


def _written(fd: int, entry: bytes) -> Iterable[float]:
    """When the files that belong to a rebuild were last written to."""
    yield 0.0
    main = to_text(entry)
    for side in ("-wal", "-journal", "-shm"):
        main = main.removesuffix(side)
    for side in ("", "-wal", "-journal"):
        try:
            yield os.stat(to_bytes(main + side), dir_fd=fd, follow_symlinks=False).st_mtime
        except OSError:
            continue


def _full_text(connection: apsw.Connection, wanted: Callable[[str], bool]) -> list[str]:
    try:
        rows = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%' ORDER BY 1"
        )
        return [name for row in rows if wanted(name := text(row[0]))]
    except apsw.Error:
        return []


def _overwriting(connection: apsw.Connection) -> str:
    list(connection.execute("PRAGMA secure_delete = ON"))
    return "" if _pragma(connection, "secure_delete") == 1 else "this SQLite does not overwrite"


def _merging(table: str) -> Callable[[apsw.Connection], str]:
    quoted = '"' + table.replace('"', '""') + '"'

    def merge(connection: apsw.Connection) -> str:
        connection.execute(f"INSERT INTO {quoted} ({quoted}) VALUES ('optimize')")
        return ""

    return merge


def _rewriting(connection: apsw.Connection) -> str:
    list(connection.execute("PRAGMA temp_store = MEMORY"))  # the new version is on no other disk
    connection.execute("VACUUM")
    return "" if _pragma(connection, "freelist_count") == 0 else "free pages are left"


def _cutting_the_log(connection: apsw.Connection) -> str:
    if next(iter(connection.execute("PRAGMA journal_mode")))[0] != "wal":
        journal = os.path.realpath(connection.filename) + "-journal"
        return "a rollback journal is left" if os.path.exists(journal) and os.path.getsize(journal) else ""
    busy, _, _ = next(iter(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")))
    return "another connection reads an older state; end it and erase again" if busy else ""


def _pragma(connection: apsw.Connection, name: str) -> int:
    row: tuple[Value, ...] = next(iter(connection.execute(f"PRAGMA {name}")))
    return integer(row[0])
