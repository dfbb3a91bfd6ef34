"""The workspace lock: one file for each real workspace, locked by the kernel (D12, D19).

All agents of a workspace share it, and so do all processes and all threads. The kernel gives the lock back when its
holder dies, hence a lock that is held is held by somebody who lives, and there is nothing that could be broken. What
the file says of the holder is for the error message alone.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from memprov.core.text import json_text
from memprov.errors import LockHeldError, RefusedError
from memprov.shell.processes import moment

__all__ = ["POLL_S", "WAIT_S", "held"]

WAIT_S = 10.0
POLL_S = 0.04


@contextmanager
def held(path: str, *, clock: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[None]:
    """Hold the lock. Raises ``LockHeldError`` after ten seconds of waiting."""
    # Where the system knows no such lock, a file that a dead process left would have to stand for one: refused.
    lock = FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)
    _acquire(lock, path, clock, sleep)
    try:
        _note(path, json_text({"pid": os.getpid(), "host": socket.gethostname(), "since": clock()}))
        yield
        _note(path, "")
    finally:
        lock.release()


def _acquire(lock: FileLock, path: str, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    began, polls = clock(), 0
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            polls += 1
            # A clock that stands still, or is set back, does not make the wait endless.
            if polls > WAIT_S / POLL_S or clock() - began >= WAIT_S:
                raise LockHeldError(
                    f"the workspace lock {path} is held by {_holder(path)}; it runs: end it, or wait for it "
                    "(the system gives the lock of a dead process back at once, so --break-lock has nothing to break)"
                ) from None
            sleep(POLL_S)
        except (OSError, NotImplementedError) as error:
            raise RefusedError(f"the workspace lock {path} cannot be taken: {error}") from error
        else:
            return


def _note(path: str, holder: str) -> None:
    """Say who holds the lock, or that nobody does. Only the holder writes here, and nothing depends on it."""
    with suppress(OSError), open(path, "w", encoding="utf-8") as file:
        file.write(holder)


def _holder(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            holder = json.load(file)
        return f"process {holder['pid']} on {holder['host']} since {moment(float(holder['since']))}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
