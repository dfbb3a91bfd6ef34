"""The workspace lock: rows that OpenClaw honours, taken over only from a holder that is gone (D12, D19)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from memprov.core.lineage import Basis, lineage_digest
from memprov.core.purge import DropRecall
from memprov.errors import LockHeldError, PartialError, RefusedError, SchemaError
from memprov.shell.openclaw import OpenClawStore
from memprov.shell.processes import process_start_time, writer_token
from tests.shell.openclaw.lab import NOW, Lab, fingerprint, sha

LOCKS = "short-term-locks"
NO_BASIS = Basis(lineage_digest(()), (), ())


@pytest.fixture
def live() -> Iterator[int]:
    """A process that runs."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.communicate(b"\n")


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def lock_rows(lab: Lab) -> dict[str, dict[str, Any]]:
    rows = lab.sql(lab.shared, "SELECT entry_key, value_json FROM plugin_state_entries WHERE namespace = ?", LOCKS)
    return {key: json.loads(value) for key, value in rows}


def put(lab: Lab, pid: object, age_s: float, **fields: Any) -> None:
    value = {"owner": f"{pid}:00000000-0000-0000-0000-000000000000", "acquiredAt": NOW - round(age_s * 1000), **fields}
    lab.state_row(LOCKS, sha(str(lab.workspace)), json.dumps(value))


def take(store: OpenClawStore, *, break_lock: bool = False) -> dict[str, Any]:
    with store.exclusive(break_lock=break_lock) as writer:
        return {"owner": writer.lease.owner}  # type: ignore[attr-defined]


def test_the_row_is_what_openclaw_expects_and_says_whose_it_is(lab: Lab) -> None:
    with lab.open().exclusive():
        ((key, value),) = lock_rows(lab).items()
    assert key == sha(str(lab.workspace))
    pid, _, rest = value["owner"].partition(":")
    assert (int(pid), len(rest)) == (os.getpid(), 36)
    assert NOW <= value["acquiredAt"] < NOW + 1000
    assert value.get("ownerStartTime") == process_start_time(os.getpid())
    assert value["memprov"] == writer_token()
    assert list(value)[:2] == ["owner", "acquiredAt"]
    assert lock_rows(lab) == {}


def test_case_G20_a_live_holder_is_waited_for_ten_seconds_and_never_robbed(lab: Lab, live: int) -> None:
    put(lab, live, 11)
    before = lock_rows(lab)
    with pytest.raises(LockHeldError, match=f"{live}:.* since 2026-") as caught:
        take(lab.open())
    assert caught.value.code == "MEMORY_WORKSPACE_LOCK_HELD"
    assert 9.9 <= lab.clock.now - NOW / 1000 <= 10.3
    assert lock_rows(lab) == before
    lab.open().snapshot()  # a dry run takes no lock


@pytest.mark.parametrize("age", [1, 61, 3600])
@pytest.mark.parametrize("known_start", [False, True])
def test_D19_a_live_openclaw_process_is_never_robbed(lab: Lab, live: int, age: int, known_start: bool) -> None:
    put(lab, live, age, **({"ownerStartTime": process_start_time(live)} if known_start else {}))
    for break_lock in (False, True):
        with pytest.raises(LockHeldError):
            take(lab.open(), break_lock=break_lock)
    assert lock_rows(lab)[sha(str(lab.workspace))]["owner"].startswith(f"{live}:")


def test_case_G21_a_dead_holder_of_a_minute_ago_is_robbed(lab: Lab, dead: int) -> None:
    put(lab, dead, 61)
    took = take(lab.open())
    assert took["owner"].startswith(f"{os.getpid()}:")
    assert lab.clock.now < NOW / 1000 + 0.5


def test_D19_a_younger_one_is_waited_for_until_it_is_a_minute_old(lab: Lab, dead: int) -> None:
    put(lab, dead, 58)
    take(lab.open())
    assert 2 <= lab.clock.now - NOW / 1000 <= 2.5


def test_D19_a_young_one_is_taken_on_request(lab: Lab, dead: int) -> None:
    put(lab, dead, 1)
    with pytest.raises(LockHeldError):
        take(lab.open())
    take(lab.open(), break_lock=True)


@pytest.mark.parametrize(
    "change", [{"ownerStartTime": 1}, {"owner": "nobody"}, {"owner": 5}, {"owner": f"{os.getpid()}:another life"}]
)
def test_G21_other_signs_that_the_holder_is_gone(lab: Lab, live: int, change: dict[str, Any]) -> None:
    put(lab, live, 61, **change)
    take(lab.open())


@pytest.mark.parametrize("value", ["", "{", "[]", "null"])
def test_a_lock_row_that_cannot_be_read_ages_by_its_time(lab: Lab, value: str) -> None:
    lab.state_row(LOCKS, sha(str(lab.workspace)), value)
    with pytest.raises(LockHeldError, match="an unknown owner"):
        take(lab.open())
    lab.clock.now += 60
    take(lab.open())


def test_an_expired_lock_row_is_none(lab: Lab, live: int) -> None:
    put(lab, live, 1)
    lab.sql(lab.shared, "UPDATE plugin_state_entries SET expires_at = ?", NOW)
    take(lab.open())


def test_D19_our_own_row_is_judged_at_once(lab: Lab, live: int, dead: int) -> None:
    put(lab, dead, 0, memprov=writer_token())
    take(lab.open())
    assert lab.clock.now < NOW / 1000 + 0.5
    put(lab, live, 3600, memprov=writer_token(), ownerStartTime=process_start_time(live), host="oak")
    for break_lock in (False, True):
        with pytest.raises(LockHeldError, match="on oak since"):
            take(lab.open(), break_lock=break_lock)


def test_D19_our_row_from_elsewhere_is_taken_on_request_only(lab: Lab, dead: int) -> None:
    put(lab, dead, 3600, memprov="0" * 16)
    with pytest.raises(LockHeldError):
        take(lab.open())
    take(lab.open(), break_lock=True)


def test_F49_a_refusal_names_the_way_out(lab: Lab, live: int, dead: int) -> None:
    for pid, age, fields, way in (
        (live, 5, {}, "end it, or wait for it"),
        (live, 5, {"memprov": writer_token()}, "end it, or wait for it"),
        (dead, 5, {}, r"expires in 4[0-9] s; if it is dead, run again with --break-lock"),
        (dead, 5, {"memprov": "0" * 16}, "if it is dead, run again with --break-lock"),
    ):
        lab.sql(lab.shared, "DELETE FROM plugin_state_entries")
        put(lab, pid, age - (lab.clock.now - NOW / 1000), **fields)
        with pytest.raises(LockHeldError, match=way):
            take(lab.open())


@pytest.mark.parametrize("when", [2**63, -(2**63), 10**400, 1e300])
def test_F32_a_lock_row_of_a_time_that_no_calendar_has_is_one_line(lab: Lab, dead: int, when: float) -> None:
    put(lab, dead, 0, memprov="0" * 16, acquiredAt=when)
    with pytest.raises(LockHeldError, match="--break-lock"):
        take(lab.open())
    take(lab.open(), break_lock=True)


def test_F32_a_lock_row_of_any_depth_is_somebodys(lab: Lab) -> None:
    lab.state_row(LOCKS, sha(str(lab.workspace)), "[" * 3000 + "]" * 3000)
    with pytest.raises(LockHeldError, match="an unknown owner"):
        take(lab.open())


def test_D19_a_run_that_is_killed_blocks_nobody(lab: Lab) -> None:
    source = """
import os, sys
from memprov.shell.openclaw import open_openclaw
with open_openclaw(sys.argv[1]).exclusive():
    os._exit(9)
"""
    subprocess.run([sys.executable, "-c", source, str(lab.state)], check=False)
    assert len(lock_rows(lab)) == 1
    lab.clock.now = lock_rows(lab)[sha(str(lab.workspace))]["acquiredAt"] / 1000
    began = lab.clock.now
    take(lab.open())
    assert lab.clock.now - began < 0.5


def test_a_second_writer_in_this_process_waits_too(lab: Lab) -> None:
    with lab.open().exclusive(), pytest.raises(LockHeldError):
        take(lab.open())
    take(lab.open())


def test_D12_all_spellings_are_locked_together(lab: Lab, live: int) -> None:
    alias = lab.root / "alias"
    alias.symlink_to(lab.workspace)
    entries = {"main": {"workspace": str(lab.workspace)}, "helper": {"workspace": str(alias)}}
    lab.write_config({"agents": {"entries": entries, "ownership": "explicit"}})
    lab.add_agent("helper")
    with lab.open("helper").exclusive():
        assert lock_rows(lab).keys() == {sha(str(lab.workspace)), sha(str(alias))}
        with pytest.raises(LockHeldError):
            take(lab.open("main"))
    lab.state_row(LOCKS, sha(str(alias)), json.dumps({"owner": f"{live}:x", "acquiredAt": NOW}))
    with pytest.raises(LockHeldError):
        take(lab.open("main"))
    assert lock_rows(lab).keys() == {sha(str(alias))}  # nothing is held while waiting


def test_the_lock_is_given_back_whatever_happens(lab: Lab) -> None:
    store = lab.open()
    with pytest.raises(RuntimeError, match="on the way"), store.exclusive():
        raise RuntimeError("on the way")
    assert lock_rows(lab) == {}


def test_a_lock_that_was_stolen_is_noticed_and_left_to_the_thief(lab: Lab) -> None:
    lab.row("short-term-recall", "k", {"key": "k"})
    thief = json.dumps({"owner": "1:thief", "acquiredAt": NOW})
    with lab.open().exclusive() as writer:
        lab.sql(lab.shared, "UPDATE plugin_state_entries SET value_json = ? WHERE namespace = ?", thief, LOCKS)
        with pytest.raises(PartialError, match="taken over"):
            writer.apply(DropRecall(("k",)), NO_BASIS)
    assert lock_rows(lab) == {sha(str(lab.workspace)): json.loads(thief)}
    assert [row.key for row in lab.open().snapshot().recall] == ["k"]


def test_a_lock_that_grows_old_is_renewed(lab: Lab) -> None:
    with lab.open().exclusive() as writer:
        for _ in range(5):
            lab.clock.now += 15
            writer.apply(DropRecall(("none",)), NO_BASIS)
            (row,) = lock_rows(lab).values()
            assert lab.clock.now * 1000 - row["acquiredAt"] <= 20_000
    assert lock_rows(lab) == {}


def test_other_locks_are_nobodys_business(lab: Lab, live: int) -> None:
    other = json.dumps({"owner": f"{live}:x", "acquiredAt": NOW})
    lab.state_row(LOCKS, sha("/srv/other"), other)
    take(lab.open())
    assert lock_rows(lab) == {sha("/srv/other"): json.loads(other)}


def test_I3_a_refused_lock_leaves_no_trace_but_sqlites(lab: Lab, live: int) -> None:
    put(lab, live, 1)
    before = {path: state[5] for path, state in fingerprint(lab.root).items()}
    with pytest.raises(LockHeldError):
        take(lab.open())
    assert {path: state[5] for path, state in fingerprint(lab.root).items()} == before


def test_without_the_table_of_the_lock_the_store_is_refused(lab: Lab) -> None:
    lab.sql(lab.shared, "DROP TABLE plugin_state_entries")
    with pytest.raises(SchemaError, match="no table plugin_state_entries, where the workspace lock lies"):
        take(lab.open())


def test_a_lock_that_cannot_be_written_is_a_refusal_and_no_failure_half_way(lab: Lab) -> None:
    lab.sql(lab.shared, "CREATE TRIGGER full BEFORE INSERT ON plugin_state_entries BEGIN SELECT RAISE(FAIL, 'no'); END")
    with pytest.raises(RefusedError, match="nothing was changed"):
        take(lab.open())
