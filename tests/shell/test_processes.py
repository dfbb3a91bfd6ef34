"""Proving a writer dead (D19): never a live one, never one whose process id may mean another process."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from memprov.shell import processes
from memprov.shell.processes import (
    process_alive,
    process_start_time,
    same_namespace,
    writer_gone,
    writer_token,
)

LINUX = sys.platform == "linux"
UNKNOWN_PID = 2**40


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def test_own_process_is_alive() -> None:
    assert process_alive(os.getpid())


def test_finished_process_is_dead() -> None:
    assert not process_alive(dead_pid())


@pytest.mark.parametrize("pid", [0, -1, pytest.param(-os.getpid(), id="own group"), UNKNOWN_PID, 10**30])
def test_a_number_that_no_process_can_have_is_dead(pid: int) -> None:
    assert not process_alive(pid)


def test_process_of_another_user_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_pid: int, _signal: int) -> None:
        raise PermissionError(errno.EPERM, "refused")

    monkeypatch.setattr(os, "kill", refused)
    assert process_alive(os.getpid())


def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        assert process_alive(process.pid)
        process.kill()
        # not collected yet: waited for, but left in the process table
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_alive(process.pid) is not LINUX
    finally:
        process.communicate()
    assert not process_alive(process.pid)


def test_D19_token_is_equal_in_another_process_of_this_host() -> None:
    code = "from memprov.shell.processes import writer_token; print(writer_token())"
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert there.stdout.strip() == writer_token()
    assert len(writer_token()) == 16
    assert same_namespace(writer_token())
    assert not same_namespace("0" * 16)


def test_D19_a_kernel_without_time_namespaces_has_a_token_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_TIME_NAMESPACE", "/nonexistent/ns/time")
    assert same_namespace(writer_token())


@pytest.mark.parametrize("link", ["/proc/self/ns/pid", "/proc/self/ns/time"])
def test_D19_token_differs_in_another_namespace(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here, real = writer_token(), os.readlink

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(processes, "_BOOT_ID", os.devnull)
    monkeypatch.setattr(os, "readlink", lambda path: "pid:[1]" if "ns/" in path else real(path))
    one = writer_token()
    monkeypatch.setattr(os, "readlink", lambda path: "pid:[2]" if path == link else "pid:[1]")
    assert len({here, one, writer_token()}) == 3


def test_D19_token_differs_in_another_boot_and_on_another_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = writer_token()
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    there = writer_token()
    assert there != here
    (tmp_path / "boot_id").write_text("another boot", encoding="ascii")
    monkeypatch.setattr(processes, "_BOOT_ID", str(tmp_path / "boot_id"))
    assert (writer_token() != there) is LINUX


def test_D19_where_the_namespace_is_not_told_nobody_else_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(processes, "_BOOT_ID", "/nonexistent/boot_id")
    mine = writer_token()
    assert same_namespace(mine)
    monkeypatch.setattr(processes, "_ONLY_HERE", "another process")
    assert not same_namespace(mine)


def test_D19_off_linux_the_host_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(uuid, "getnode", lambda: 1)
    mine = writer_token()
    assert same_namespace(mine)
    monkeypatch.setattr(uuid, "getnode", lambda: 2)
    assert not same_namespace(mine)


def test_D19_writer_gone() -> None:
    mine, here = os.getpid(), writer_token()
    assert writer_gone(dead_pid(), here)
    assert not writer_gone(mine, here)
    assert not writer_gone(mine, here, process_start_time(mine))
    assert not writer_gone(dead_pid(), "0" * 16), "the id may belong to a live process elsewhere"


@pytest.mark.skipif(not LINUX, reason="only Linux tells start times")
def test_D19_a_later_process_with_the_same_id_is_another_one() -> None:
    mine = os.getpid()
    started = process_start_time(mine)
    assert started is not None
    assert started > 0
    assert writer_gone(mine, writer_token(), started - 1)


def test_start_time_of_nobody_is_unknown() -> None:
    assert process_start_time(UNKNOWN_PID) is None


@pytest.mark.skipif(not LINUX, reason="there is no /proc to be mistaken")
def test_a_proc_of_another_namespace_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "readlink", lambda _path: "1234567")
    assert process_start_time(os.getpid()) is None
    assert process_alive(os.getpid())
