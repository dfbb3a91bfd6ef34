"""A purge leaves a receipt that a stranger can check: in a fresh process, after tampering, after a backup came back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import (
    CorruptStoreError,
    Message,
    NativeStore,
    OpenClawStore,
    PartialError,
    Receipt,
    RefusedError,
    Selectors,
    SessionRecord,
    Verdict,
    check_receipt,
    forget,
    ingest,
    open_openclaw,
    preview,
    receipts,
    sessions_in_receipt,
    verify,
)
from memprov.shell.openclaw.receipts import receipts_beside
from tests.real_stores import store_archives, unpack
from tests.shell.proof.world import NOW, SAID, embedded, reopened

MONDAY = Selectors(sessions=["monday-chat"])
TEXT = SAID["monday-chat"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made")
    embedded(directory)
    return directory


@pytest.fixture
def top(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "store", symlinks=True)


def purged(top: Path) -> tuple[NativeStore, Receipt]:
    store = reopened(top)
    forget(store, MONDAY, level="erase", prove=True)
    return store, receipts(store)[-1]


def test_a_purge_is_testified_to_and_the_receipt_holds(top: Path) -> None:
    store, receipt = purged(top)
    assert receipt.complete
    assert receipt.verification is not None
    assert receipt.verification.verdict is Verdict.CLEAN
    assert ("texts seen before the purge", 1, 1) in receipt.verification.controls
    assert dict(receipt.counts)["originRows"] == 1
    assert {name for name, _ in receipt.versions} == {"memprov", "python", "sqlite"}
    checked = check_receipt(store, receipt)
    assert checked.valid
    assert checked.session_ids == ("monday-chat",)
    assert checked.head == receipt.digest


def test_a_receipt_holds_no_content(top: Path) -> None:
    _, receipt = purged(top)
    for word in ("monday-chat", "fern", "Quill", str(top)):
        assert word not in receipt.to_json()


def test_I3_neither_a_preview_nor_a_check_writes_a_receipt(top: Path) -> None:
    store, receipt = purged(top)
    preview(store, Selectors(sessions=["tuesday-chat"]), level="erase")
    check_receipt(store, receipt)
    verify(store, receipt, [TEXT])
    assert receipts(store) == (receipt,)


def test_an_empty_selection_is_not_testified_to(top: Path) -> None:
    store = reopened(top)
    forget(store, Selectors(hook_sources=["nobody"]))
    assert receipts(store) == ()


def test_verify_takes_a_receipt_for_the_sessions_that_it_names(top: Path) -> None:
    store, receipt = purged(top)
    assert verify(store, receipt, [TEXT]).verdict is Verdict.CLEAN
    assert verify(store, receipt, [SAID["tuesday-chat"]]).verdict is Verdict.RESIDUE


def test_a_purge_that_stops_part_way_is_testified_to_by_nobody(top: Path) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store = reopened(top)
    with pytest.raises(PartialError):
        forget(evolve(store, calls=evolve(store._calls, rename=full_disk)), MONDAY)
    assert receipts(store) == ()


def test_what_could_not_be_reached_is_not_complete(top: Path) -> None:
    reader = apsw.Connection(str(top / "state/agents/main/ledger.sqlite"))
    reader.execute("BEGIN")
    list(reader.execute("SELECT count(*) FROM origins"))
    store = reopened(top)
    with store.exclusive() as writer:
        writer._ledger.set_busy_timeout(0)
        plan = preview(store, MONDAY, level="erase")
        for effect in plan.effects:
            writer.apply(effect, plan.basis)
        assert any("log" in line for line in writer.erasures[-1].unreached)
    reader.close()


def tampered(store: NativeStore, statement: str) -> None:
    connection = apsw.Connection(store._layout.ledger.path)
    list(connection.execute("PRAGMA foreign_keys = OFF"))
    connection.execute(statement)
    connection.close()


TAMPERING: dict[str, str] = {
    "a cut tail": "DELETE FROM receipts WHERE number = 3",
    "a missing link": "DELETE FROM receipts WHERE number = 2",
    "another order": "UPDATE receipts SET number = 9 WHERE number = 2",
    "another content": "UPDATE receipts SET document = replace(document, '\"complete\":true', '\"complete\":false') "
    "WHERE number = 2",
    "a damaged row": "UPDATE receipts SET document = 'x' WHERE number = 1",
    "a replaced key": "UPDATE meta SET value = '00' WHERE name = 'receipt_key'",
    "a replaced log": "DELETE FROM receipts",
    "a lost tombstone": "DELETE FROM tombstones WHERE session_id = 'tuesday-chat'",
}


@pytest.fixture(scope="module")
def three(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a receipt for each of its sessions."""
    directory = shutil.copytree(made, tmp_path_factory.mktemp("three") / "store", symlinks=True)
    for name in SAID:
        forget(reopened(directory), Selectors(sessions=[name]))
    return directory


@pytest.mark.parametrize("how", TAMPERING)
def test_tampering_with_the_log_is_detected(three: Path, tmp_path: Path, how: str) -> None:
    store = reopened(shutil.copytree(three, tmp_path / "store", symlinks=True))
    last = receipts(store)[-1]
    assert check_receipt(store, last, last.digest).valid, "the twin"
    tampered(store, TAMPERING[how])
    assert not check_receipt(store, last, last.digest).valid


def test_a_receipt_for_something_that_never_was_does_not_verify(top: Path) -> None:
    store, receipt = purged(top)
    for forged in (evolve(receipt, sessions=("0" * 64,)), evolve(receipt, number=2, previous=receipt.digest)):
        assert not check_receipt(store, forged).valid
        with pytest.raises(RefusedError):
            sessions_in_receipt(store, forged)
    assert not check_receipt(None, receipt).valid, "without a store nothing is known"


def test_a_session_that_came_back_makes_its_receipt_untrue(top: Path) -> None:
    store, receipt = purged(top)
    line = "[main/sessions/main/monday-chat#L2] User: it is back again\n"
    (top / "workspace/memory/.dreams/session-corpus/2026-11-30.txt").write_text(line)
    assert not check_receipt(store, receipt).valid


def test_after_a_backup_came_back_the_receipt_finds_and_forgets_it_again(top: Path) -> None:
    store = reopened(top)
    forget(store, Selectors(sessions=["tuesday-chat"]))  # with which the key was made
    backup = shutil.copytree(top, top.parent / "backup", symlinks=True)
    _, receipt = purged(top)
    restored = reopened(backup)
    checked = check_receipt(restored, receipt)
    assert checked.lost == ("monday-chat",)
    assert not checked.valid
    forget(restored, Selectors(sessions=sessions_in_receipt(restored, receipt)), level="erase")
    assert verify(restored, MONDAY, [TEXT]).verdict is Verdict.CLEAN

    def said(session: SessionRecord) -> list[Message]:
        return [Message("user", SAID[session.session_id], number=2, timestamp_ms=NOW, sender_is_owner=True)]

    ingest(restored, said, now_ms=NOW)
    assert verify(restored, MONDAY, [TEXT]).verdict is Verdict.CLEAN


@pytest.fixture
def openclaw(tmp_path: Path) -> OpenClawStore:
    unpacked = unpack(store_archives()["basic"], tmp_path)
    return open_openclaw(unpacked / "before" / "state", workspace=unpacked / "before" / "ws")


@pytest.mark.needs_store("basic")
def test_an_OpenClaw_store_keeps_receipts_beside_the_database(openclaw: OpenClawStore) -> None:
    first, second = (Selectors(sessions=[record.session_id]) for record in openclaw.catalogue()[:2])
    forget(openclaw, first, level="erase", prove=True)
    forget(openclaw, second)
    one, two = receipts(openclaw)
    assert one.verification is not None
    assert one.verification.verdict is Verdict.CLEAN
    assert one.complete
    assert check_receipt(openclaw, one, two.digest).valid
    (log,) = Path(openclaw.identity.state_root).rglob("memprov-receipts.jsonl")
    assert log.parent.name == "agent"
    assert log.stat().st_mode & 0o777 == 0o600


DAMAGE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a cut tail": lambda lines: lines[:-1],
    "a missing link": lambda lines: [lines[0], *lines[2:]],
    "another order": lambda lines: [lines[0], lines[2], lines[1]],
    "another key": lambda lines: [b'{"format": "memprov receipts 1", "key": "00"}\n', *lines[1:]],
    "no log": lambda lines: [],
}


@pytest.mark.needs_store("basic")
def test_tampering_with_an_OpenClaw_log_is_detected(openclaw: OpenClawStore) -> None:
    for record in openclaw.catalogue()[:2]:
        forget(openclaw, Selectors(sessions=[record.session_id]))
    last = receipts(openclaw)[-1]
    (log,) = Path(openclaw.identity.state_root).rglob("memprov-receipts.jsonl")
    whole = log.read_bytes()
    for how, damage in DAMAGE.items():
        log.write_bytes(b"".join(damage(whole.splitlines(keepends=True))))
        assert not check_receipt(openclaw, last, last.digest).valid, how
    log.write_bytes(whole)
    assert check_receipt(openclaw, last, last.digest).valid, "the twin"


@pytest.mark.needs_store("basic")
def test_what_a_killed_process_left_of_a_line_is_cut_off_before_the_next(openclaw: OpenClawStore) -> None:
    records = openclaw.catalogue()
    forget(openclaw, Selectors(sessions=[records[0].session_id]))
    (log,) = Path(openclaw.identity.state_root).rglob("memprov-receipts.jsonl")
    log.write_bytes(log.read_bytes() + b'{"agentId":"ma')
    assert len(receipts(openclaw)) == 1
    forget(openclaw, Selectors(sessions=[records[1].session_id]))
    one, two = receipts(openclaw)
    assert two.previous == one.digest
    assert check_receipt(openclaw, two, one.digest).valid


def test_after_a_damaged_receipt_the_purge_is_done_and_says_that_its_receipt_is_missing(top: Path) -> None:
    store, _ = purged(top)
    tampered(store, "UPDATE receipts SET document = 'x'")
    with pytest.raises(PartialError, match="the purge is done"):
        forget(store, Selectors(sessions=["tuesday-chat"]))
    assert preview(store, Selectors(sessions=["tuesday-chat"])).removes_nothing


@pytest.mark.needs_store("basic")
@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder", "another file"])
def test_what_stands_where_the_receipts_belong_is_left_alone_and_named(openclaw: OpenClawStore, what: str) -> None:
    place = Path(receipts_beside(openclaw._layout.config.agent_database("main").path))
    target = place.with_name("precious")
    target.write_text("x")
    makers: dict[str, Callable[[], object]] = {
        "a link": lambda: place.symlink_to(target),
        "a pipe": lambda: os.mkfifo(place),
        "a folder": place.mkdir,
        "another file": lambda: place.write_text("mine\n"),
    }
    makers[what]()
    with pytest.raises(PartialError, match="the purge is done"):
        forget(openclaw, Selectors(sessions=[openclaw.catalogue()[0].session_id]))
    with pytest.raises(CorruptStoreError):
        receipts(openclaw)
    assert target.read_text() == "x"
    assert what != "another file" or place.read_text() == "mine\n"


def test_the_command_line_checks_a_receipt_in_a_second_process(top: Path) -> None:
    file = top.parent / "receipt.json"
    place = ["--store", str(top / "state")]

    def memprov(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memprov", *arguments, *place]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    needles = top.parent / "needles"
    needles.write_text(TEXT)
    done = memprov("forget", "--session", "monday-chat", "--level", "erase", "--prove", "--receipt", str(file))
    assert done.returncode == 0, done.stderr
    assert "complete, verified: clean" in done.stdout
    head = Receipt.from_json(file.read_text()).digest
    checked = memprov("receipt", "check", str(file), "--head", head, "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["valid"]
    assert memprov("verify", "--receipt", str(file), "--needles", str(needles)).returncode == 0
    assert head in memprov("receipt", "show").stdout
    assert memprov("forget", "--from-receipt", str(file)).returncode == 0
    file.write_text(file.read_text().replace('"complete":true', '"complete":false'))
    assert memprov("receipt", "check", str(file)).returncode == 1
    assert memprov("forget", "--from-receipt", str(file)).returncode == 3
