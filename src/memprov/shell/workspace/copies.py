"""Copies of memory files that a rewrite leaves behind when it is killed: their names, and what became of the writer.

Ours are called ``.memprov.<pid>.<start time>.<token>.<random>.tmp``: whoever finds one can prove that its writer is
dead (D19). OpenClaw's are called ``<file>.forget.<pid>.<uuid>.tmp``, which does not say in which pid namespace (D18).
Nothing else is ever taken for a copy.
"""

from __future__ import annotations

import os
import re
import secrets

from attrs import frozen

from memprov.core.state import StaleCopy
from memprov.shell.processes import process_alive, process_start_time, writer_gone, writer_token

__all__ = ["CopyName", "judge", "parse_copy_name", "temporary_name"]

_OURS = re.compile(
    r"\.memprov\.(?P<pid>[0-9]{1,10})\.(?P<start>[0-9]{1,20}|unknown)\.(?P<token>[0-9a-f]{16})\.[0-9a-f]{16}\.tmp"
)
_OPENCLAW = re.compile(
    r"(?P<file>.+)\.forget\.(?P<pid>[0-9]{1,10})\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp", re.DOTALL
)
_MINUTE = 60
_HOUR = 3600


@frozen
class CopyName:
    """What a temporary name tells of its writer. ``file`` is whose copy it is; ours do not say."""

    pid: int
    file: str | None = None
    token: str | None = None
    start_time: int | None = None


def temporary_name() -> str:
    """A name of our own for the next version of a file. It is short, so that it fits beside the longest name."""
    pid = os.getpid()
    start = process_start_time(pid)
    shown = "unknown" if start is None else str(start)
    return f".memprov.{pid}.{shown}.{writer_token()}.{secrets.token_hex(8)}.tmp"


def parse_copy_name(name: str) -> CopyName | None:
    """The writer's marks in a temporary name, ours or OpenClaw's; ``None`` for any other name."""
    if match := _OURS.fullmatch(name):
        start = None if match["start"] == "unknown" else int(match["start"])
        return CopyName(int(match["pid"]), token=match["token"], start_time=start)
    if match := _OPENCLAW.fullmatch(name):
        return CopyName(int(match["pid"]), file=match["file"])
    return None


def judge(path: str, digest: str, age: float) -> StaleCopy:
    """A copy with what is proven of its writer; ``age`` is in seconds since it was last written (D18, D19)."""
    name = parse_copy_name(path.rpartition("/")[2])
    gone = False
    if name is not None and name.token is not None:
        gone = writer_gone(name.pid, name.token, name.start_time)
    elif name is not None and age > _MINUTE:
        gone = not process_alive(name.pid)
    return StaleCopy(path, digest, writer_gone=gone, over_an_hour=age > _HOUR)
