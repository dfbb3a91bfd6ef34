"""Is the process that wrote this still running? The question behind stale locks and left-over copies (D19).

A process id means something only inside one pid namespace of one boot of one host. So whoever leaves a trace
writes ``writer_token()`` beside its id, and whoever finds the trace asks ``writer_gone``. Where the token is
not our own, or anything about the process cannot be read, the answer is "perhaps alive": a live process is
never taken for a dead one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import socket
import sys
import uuid
from datetime import UTC, datetime

__all__ = ["moment", "process_alive", "process_start_time", "same_namespace", "writer_gone", "writer_token"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_PID_NAMESPACE = "/proc/self/ns/pid"
_TIME_NAMESPACE = "/proc/self/ns/time"
_ONLY_HERE = secrets.token_hex(16)


def writer_token() -> str:
    """Sixteen hexadecimal digits for this host, boot and pid namespace: equal in all processes sharing them.

    Not cached, since a forked child may live in another namespace. Where Linux does not tell the namespace,
    no other process has the same token, so nobody judges by it. Elsewhere there are no pid namespaces, and
    the host name with the hardware address stands for the host: whoever is dead there is dead in any boot.
    """
    parts = [socket.gethostname()]
    if sys.platform == "linux":
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                parts.append(file.read().strip())
            parts.append(os.readlink(_PID_NAMESPACE))
        except OSError:
            parts.append(f"{_ONLY_HERE}:{os.getpid()}")
        try:
            parts.append(os.readlink(_TIME_NAMESPACE))  # start times are counted in the reader's
        except OSError:
            parts.append("")  # before Linux 5.6 there is only one
    else:
        parts.append(f"{uuid.getnode():012x}")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def moment(seconds: float) -> str:
    """A time that somebody wrote down, for a message; one that no calendar has is given as its number (F32)."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"second {seconds:.0f}"


def same_namespace(token: str) -> bool:
    """Whether the writer's process id means the same here: its host, boot and pid namespace are ours."""
    return token == writer_token()


def process_alive(pid: int) -> bool:
    """Whether a process with this id may be running in our pid namespace. A zombie is dead."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except OverflowError:
        return False  # no system has such an id
    except OSError as error:
        return error.errno != errno.ESRCH  # EPERM: it runs, under another user
    return not _zombie(pid)


def process_start_time(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; ``None`` where that cannot be read."""
    fields = _stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else None


def writer_gone(pid: int, token: str, start_time: int | None = None) -> bool:
    """Whether the writer is proven dead: its token is ours, and its id is nobody's or a later process's."""
    if not same_namespace(token):
        return False
    if not process_alive(pid):
        return True
    started = process_start_time(pid)
    return start_time is not None and started is not None and started != start_time


def _zombie(pid: int) -> bool:
    """Exited and not yet collected. A leader whose other threads still run looks alike, hence the count."""
    fields = _stat_fields(pid)
    if not fields or fields[0] not in {"Z", "X"}:
        return False
    try:
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False


def _stat_fields(pid: int) -> list[str]:
    """``/proc/<pid>/stat`` from its third field on; nothing where there is none, or another namespace's."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return []  # this /proc shows another pid namespace: its numbers are not ours
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
