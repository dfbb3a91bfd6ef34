"""The workspace lock: rows of the shared database that OpenClaw honours as well (docs: Workspace lock).

A workspace is its real path, so there is one row for every spelling of it, all taken in one transaction and given back
in one (D12). A row says who holds it: OpenClaw's names a process id, which means something only in its own container,
ours names host, boot and pid namespace besides. So a dead holder of ours is known for dead at once; an OpenClaw row is
taken from a process that is dead here only when it is a minute old, or on request; a live process is never robbed, not
even on request (D19).
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from attrs import define, field, frozen

from memprov.core.text import json_text
from memprov.errors import LockHeldError, PartialError, RefusedError, SchemaError
from memprov.shell.cells import integer, text
from memprov.shell.openclaw.state import LOCKS, OWNER, TABLE
from memprov.shell.openclaw.values import Json, json_value, member, object_of
from memprov.shell.processes import (
    moment,
    process_alive,
    process_start_time,
    same_namespace,
    writer_gone,
    writer_token,
)
from memprov.shell.sqlite import Database, OrdinaryAccess, Reader, writing

__all__ = ["Lease", "held"]

WAIT_S = 10.0
POLL_S = 0.04
#: An OpenClaw row younger than this is never taken over unasked.
STALE_MS = 60_000
#: Our own row is renewed when it is older than this, so that no one in another container takes it for stale.
RENEW_MS = 20_000

_PID = re.compile(r"([0-9]{1,10}):")


@frozen
class _Row:
    """A lock row as it stands."""

    source: str
    value: Json = field(repr=False)
    acquired_ms: int

    @property
    def pid(self) -> int | None:
        found = _PID.match(member(self.value, "owner"))
        return int(found[1]) if found else None

    @property
    def describes(self) -> str:
        """Who holds it and since when, for a message."""
        since = moment(self.acquired_ms / 1000)
        host = member(self.value, "host")
        return f"{member(self.value, 'owner') or 'an unknown owner'}{f' on {host}' if host else ''} since {since}"

    def way_out(self, now_ms: int) -> str:
        """What to do about a holder that will not give the lock back, for a message (F49)."""
        token = member(self.value, "memprov")
        if token and same_namespace(token):
            return "it runs; end it, or wait for it"
        if not token and _runs(self.pid, self._started):
            return "it runs here; end it, or wait for it"
        if token:
            return "it cannot be judged from here; if it is dead, run again with --break-lock"
        left_s = (self.acquired_ms + STALE_MS - now_ms) // 1000 + 1
        expires = (
            f"in {left_s} s" if left_s <= STALE_MS // 1000 else f"after {moment((self.acquired_ms + STALE_MS) / 1000)}"
        )
        return (
            "no such process runs here, but it may in another container; its lock expires "
            f"{expires}; if it is dead, run again with --break-lock"
        )

    def may_be_taken(self, now_ms: int, *, break_lock: bool) -> bool:
        """Whether the holder is proven, or on request presumed, to be gone (D19)."""
        token = member(self.value, "memprov")
        if token:
            if same_namespace(token):
                return self.pid is None or writer_gone(self.pid, token, self._started)
            return break_lock
        old = now_ms - self.acquired_ms > STALE_MS
        return (old or break_lock) and not _runs(self.pid, self._started)

    @property
    def _started(self) -> int | None:
        started = self.value.get("ownerStartTime")
        return integer(started) if isinstance(started, int | float) else None


@define
class Lease:
    """The lock while it is held."""

    database: Database
    keys: tuple[str, ...]
    clock: Callable[[], float]
    owner: str
    source: str
    acquired_ms: int

    def confirm(self) -> None:
        """Make sure that the lock is still ours, and renew it when it is getting old. Raises ``PartialError``."""
        now_ms = int(self.clock() * 1000)
        renewed = _value(self.owner, now_ms) if now_ms - self.acquired_ms > RENEW_MS else None
        if renewed is None:
            rows = OrdinaryAccess().read(self.database, lambda reader: _rows(reader, self.keys, now_ms))
            self._require({key: row.source for key, row in rows.items()})
            return
        with writing(self.database) as reader:
            rows = _rows(reader, self.keys, now_ms)
            self._require({key: row.source for key, row in rows.items()})
            for key in self.keys:
                _put(reader, key, renewed, now_ms)
        self.source, self.acquired_ms = renewed, now_ms

    def release(self) -> None:
        """Give back what is still ours: a lock that was taken from us is somebody else's."""
        with writing(self.database) as reader:
            for key in reversed(self.keys):
                reader.connection.execute(
                    f"DELETE FROM {TABLE} WHERE plugin_id = ? AND namespace = ? AND entry_key = ? AND value_json = ?",
                    (OWNER, LOCKS, key, self.source),
                )

    def _require(self, sources: dict[str, str]) -> None:
        if any(sources.get(key) != self.source for key in self.keys):
            raise PartialError("the workspace lock was taken over by another process; run the same command again")


@contextmanager
def held(
    database: Database,
    keys: frozenset[str],
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    break_lock: bool = False,
) -> Iterator[Lease]:
    """Hold the lock rows of a workspace. Raises ``LockHeldError`` after ten seconds of waiting."""
    lease = _acquire(database, tuple(sorted(keys)), clock, sleep, break_lock=break_lock)
    try:
        yield lease
    except BaseException as error:
        try:
            lease.release()
        except Exception as second:  # noqa: BLE001  # the first error is the one to tell
            error.add_note(f"the workspace lock could not be given back: {second}")
        raise
    lease.release()


def _acquire(
    database: Database,
    keys: tuple[str, ...],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    *,
    break_lock: bool,
) -> Lease:
    owner = f"{os.getpid()}:{uuid.uuid4()}"
    began, polls = clock(), 0
    while True:
        now_ms = int(clock() * 1000)
        find = partial(_holder, keys=keys, now_ms=now_ms, break_lock=break_lock)
        holder = OrdinaryAccess().read(database, find)
        if holder is None:
            source = _value(owner, now_ms)
            try:
                with writing(database) as reader:
                    holder = find(reader)
                    for key in keys if holder is None else ():
                        _put(reader, key, source, now_ms)
            except PartialError as error:  # nothing has begun
                raise RefusedError(f"the workspace lock cannot be taken, and nothing was changed: {error}") from error
            if holder is None:
                return Lease(database, keys, clock, owner, source, now_ms)
        polls += 1
        if polls > WAIT_S / POLL_S or clock() - began >= WAIT_S:
            raise LockHeldError(f"the workspace lock is held by {holder.describes}; {holder.way_out(now_ms)}")
        sleep(POLL_S)


def _holder(reader: Reader, keys: tuple[str, ...], now_ms: int, *, break_lock: bool) -> _Row | None:
    """Who keeps us from taking all of the rows."""
    rows = _rows(reader, keys, now_ms)
    return next((row for row in rows.values() if not row.may_be_taken(now_ms, break_lock=break_lock)), None)


def _rows(reader: Reader, keys: tuple[str, ...], now_ms: int) -> dict[str, _Row]:
    found = {}
    for key in keys:
        rows = reader.rows(
            TABLE,
            "value_json plugin_id namespace entry_key",
            "created_at expires_at",
            where="WHERE plugin_id = ? AND namespace = ? AND entry_key = ?",
            bindings=(OWNER, LOCKS, key),
        )
        for source, _, _, _, created, expires in rows:
            if expires is not None and integer(expires) <= now_ms:
                continue
            try:
                value = object_of(json_value(text(source)))
            except ValueError:
                value = {}
            found[key] = _Row(text(source), value, integer(value.get("acquiredAt")) or integer(created))
    return found


def _put(reader: Reader, key: str, source: str, now_ms: int) -> None:
    if not reader.has(TABLE):
        raise SchemaError(f"{reader.database.name} has no table {TABLE}, where the workspace lock lies")
    reader.connection.execute(
        f"INSERT OR REPLACE INTO {TABLE} (plugin_id, namespace, entry_key, value_json, created_at) "
        "VALUES (?, ?, ?, ?, ?)",
        (OWNER, LOCKS, key, source, now_ms),
    )


def _value(owner: str, now_ms: int) -> str:
    started = process_start_time(os.getpid())
    start = {} if started is None else {"ownerStartTime": started}
    return json_text(
        {"owner": owner, "acquiredAt": now_ms, **start, "host": socket.gethostname(), "memprov": writer_token()}
    )


def _runs(pid: int | None, start_time: int | None) -> bool:
    """Whether an OpenClaw process of this id may be running here. Our own id is not one: we are no OpenClaw."""
    if pid is None or pid == os.getpid() or not process_alive(pid):
        return False
    now = process_start_time(pid)
    return start_time is None or now is None or now == start_time
