"""The writer of an embedded store: siblings' ledgers, fences, the lock, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov import Identity, Origin, OriginClass, Preimage, RewindBatch, Selectors, SessionRecord, forget
from memprov.core.lineage import Basis, PublicationOutcome, Transfer, lineage_digest, transfer_origins
from memprov.core.purge import (
    CutFile,
    DropOrigins,
    DropRecall,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    TrimRewinds,
    rewind_key,
)
from memprov.core.purge.effects import BatchTrim
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.text import digest
from memprov.core.writing import (
    AddSeenHashes,
    AppendCorpus,
    RecordOrigins,
    RecordRewind,
    ReleaseOrigins,
    ReplaceText,
    RequireAdmitted,
    SetCheckpoints,
    StageEntries,
    StorePreimage,
)
from memprov.errors import ConflictError, InputError, LockHeldError, PartialError, RefusedError, StaleStateError
from memprov.shell.native import NativeStore, open_store
from memprov.shell.statements import transaction
from memprov.shell.workspace.publish import PublicationError
from tests.shell.native.loading import Clock, fresh_store, hasty, rows, unhurried

NOTHING = Basis(lineage_digest(()), (), ())


@pytest.fixture
def store(tmp_path: Path) -> NativeStore:
    return fresh_store(tmp_path / "store")


def origins(store: NativeStore) -> list[tuple[str, str, str | None, str, int]]:
    return [
        (o.entry_key, o.session_id, o.session_key, o.origin_class.value, o.observed_at_ms)
        for o in store.snapshot().origins.rows()
    ]


# --- lineage ---


def test_D14_recording_joins_to_the_weakest_class_and_the_earliest_time(store: NativeStore) -> None:
    first = Origin("k", "main", "s1", None, OriginClass.OWNER, 5)
    second = Origin("k", "main", "s1", "agent:main:x", OriginClass.UNTRUSTED, 9)
    for order in ((first, second), (second, first)):
        with unhurried(store) as writer:
            for origin in order:
                writer.write(RecordOrigins("main", (origin,)))
            assert origins(store) == [("k", "s1", "agent:main:x", "untrusted", 5)]
            writer.write(ReleaseOrigins("main", (("k", "s1"), ("k", "s2"))))
            assert not origins(store)


def test_rows_that_would_not_change_are_not_written(store: NativeStore) -> None:
    with unhurried(store) as writer:
        effect = RecordOrigins("main", tuple(Origin(f"k{n}", "main", "s1", None, "agent", 5) for n in range(9)))
        writer.write(effect)
        before = writer._ledger.total_changes()
        writer.write(effect)
        writer.write(RecordOrigins("main", (Origin("k1", "main", "s1", None, "owner", 7),)))
        assert writer._ledger.total_changes() == before


def test_case_F2_origins_of_two_agents_in_one_call_are_an_error_and_nothing_is_written(store: NativeStore) -> None:
    with unhurried(store) as writer:
        mixed = (Origin("k", "main", "s1"), Origin("k", "other", "s1"))
        with pytest.raises(InputError, match="'other'"):
            writer.write(RecordOrigins("main", mixed))
    assert not origins(store)


def test_a_merge_hands_on_the_origins_of_every_agent_of_the_workspace(tmp_path: Path) -> None:
    main, other = fresh_store(tmp_path / "store"), fresh_store(tmp_path / "store", "other")
    for store in (main, other):
        agent = store._layout.agent_id
        with unhurried(store) as writer:
            writer.write(RecordOrigins(agent, (Origin("parent", agent, f"{agent}-session"),)))
    with unhurried(main) as writer:
        for store in (main, other):
            agent = store._layout.agent_id
            added = transfer_origins(store.snapshot().origins.rows(), [Transfer("survivor", ("parent",))])
            writer.write(RequireAdmitted(agent, [f"{agent}-session"]))
            writer.write(RecordOrigins(agent, added))
        assert writer.snapshot().sibling_keys == {"parent", "survivor"}
    assert [row[:2] for row in origins(other)] == [("parent", "other-session"), ("survivor", "other-session")]
    with unhurried(main) as writer:
        writer.write(ReleaseOrigins("other", (("survivor", "other-session"),)))
        writer.write(DropOrigins("other", ("parent",)))
    assert (len(origins(main)), origins(other)) == (2, [])


def test_a_sibling_that_forgot_its_session_closes_the_fence(tmp_path: Path) -> None:
    main, other = fresh_store(tmp_path / "store"), fresh_store(tmp_path / "store", "other")
    forget(other, Selectors(sessions=["s1"]))
    with unhurried(main) as writer:
        writer.write(RequireAdmitted("main", ["s1"]))
        with pytest.raises(StaleStateError, match="s1"):
            writer.write(RequireAdmitted("other", ["s1"]))


def test_I11_no_agent_of_another_workspace_is_written_to(tmp_path: Path) -> None:
    store = fresh_store(tmp_path / "store")
    far = hasty(open_store(tmp_path / "store" / "state", "far", tmp_path / "far"))
    with unhurried(store) as writer:
        for agent in ("far", "nobody"):
            for effect in (RecordOrigins(agent, (Origin("k", agent, "s"),)), ReleaseOrigins(agent, (("k", "s"),))):
                with pytest.raises(InputError, match=agent):
                    writer.write(effect)
        with pytest.raises(InputError, match="nobody"):
            writer.write(RequireAdmitted("nobody", ("s",)))
    assert not origins(far)


# --- files ---


def test_case_G14_a_file_that_is_not_the_expected_one_is_left(store: NativeStore) -> None:
    path = Path(store._layout.workspace) / "MEMORY.md"
    path.write_text("edited by hand\n")
    with unhurried(store) as writer:
        for effect in (ReplaceText("MEMORY.md", digest("planned"), "new"), ReplaceText("MEMORY.md", None, "new")):
            with pytest.raises(ConflictError):
                writer.write(effect)
        with pytest.raises(ConflictError):
            writer.apply(CutFile("MEMORY.md", (), digest("planned"), digest(""), ((0, 7),)), NOTHING)
        with pytest.raises(ConflictError):
            writer.apply(RemoveFile("MEMORY.md", (), digest("planned")), NOTHING)
    assert path.read_text() == "edited by hand\n"


def test_a_corpus_file_is_appended_to_once(store: NativeStore) -> None:
    name = "memory/.dreams/session-corpus/2026-01-01.txt"
    path = Path(store._layout.workspace) / name
    path.parent.mkdir(parents=True)
    path.write_text("not ended")
    effect = AppendCorpus(name, digest("not ended"), ("one", "two"))
    with unhurried(store) as writer:
        writer.write(effect)
        writer.write(effect)
    assert path.read_text() == "not ended\none\ntwo\n"


def test_B09_a_write_that_the_system_refuses_says_what_became_of_the_file(store: NativeStore) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    broken = evolve(store, calls=evolve(store._calls, write=full))
    with unhurried(broken) as writer, pytest.raises(PublicationError, match="No space left") as caught:
        writer.write(ReplaceText("MEMORY.md", None, "new"))
    assert caught.value.outcome is PublicationOutcome.NOT_ATTEMPTED
    assert not list(Path(store._layout.workspace).iterdir())


# --- preimages ---


def test_preimages_of_one_moment_do_not_hide_each_other(store: NativeStore) -> None:
    with unhurried(store) as writer:
        for content in ("a", "b", "b", "a", "c"):
            writer.write(StorePreimage(content, keep=3))
        kept = writer.snapshot().preimages
    assert [preimage.content for preimage in kept] == ["b", "a", "c"]
    assert kept[0] == Preimage(f"2026-11-18T11:06:40.001Z:{digest('b')[:12]}", "b")
    assert [p.key for p in kept] == sorted(p.key for p in kept)


def test_a_clock_that_is_set_back_does_not_reorder_preimages(store: NativeStore) -> None:
    clock = Clock()
    with unhurried(hasty(store, clock)) as writer:
        writer.write(StorePreimage("first", keep=2))
        clock.now -= 3600
        writer.write(StorePreimage("second", keep=2))
        writer.write(StorePreimage("third", keep=2))
        assert [preimage.content for preimage in writer.snapshot().preimages] == ["second", "third"]


def test_D21_a_rewind_row_is_trimmed_once(store: NativeStore) -> None:
    batch = RewindBatch("a key of its own", ("[1]", "[2]", "[3]"))
    trim = TrimRewinds((BatchTrim(batch.key, rewind_key(batch.candidates), (0,)),))
    with unhurried(store) as writer:
        writer.write(RecordRewind(batch))
        for _ in range(2):
            assert writer.apply(trim, NOTHING)
            assert writer.snapshot().rewinds == (RewindBatch(batch.key, ("[2]", "[3]")),)


# --- what is refused ---


def test_what_no_ledger_can_hold_is_an_input_error(store: NativeStore) -> None:
    odd = "k\udcff"
    with unhurried(store) as writer:
        for effect in (
            RecordOrigins("main", (Origin(odd, "main", "s"),)),
            StageEntries((StagedEntry(odd, "memory/x.md", 1, 1, "s"),)),
            SetCheckpoints((Checkpoint(odd),)),
            AddSeenHashes(odd, ("h",)),
        ):
            with pytest.raises(InputError, match="no valid text"):
                writer.write(effect)
        writer.apply(DropRecall((odd,)), NOTHING)  # there can be no such row
    assert not rows(store._layout.shared, "recall")


def test_effects_of_a_purge_need_a_basis(store: NativeStore) -> None:
    with unhurried(store) as writer:
        for effect in (RecordTombstones("main", ("s",)), PurgeIndex((), ()), RemoveFile("x.md", (), "")):
            with pytest.raises(InputError, match="belongs to a purge"):
                writer.write(effect)  # type: ignore[arg-type]


def test_a_ledger_that_another_program_keeps_locked_is_an_error_and_not_a_half(store: NativeStore) -> None:
    blocker = apsw.Connection(store._layout.shared.path)
    with unhurried(store) as writer:
        writer._shared.set_busy_timeout(1)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(PartialError, match="could not be changed"):
            writer.write(AddSeenHashes("scope", ("h",)))
        blocker.execute("ROLLBACK")
        writer.write(AddSeenHashes("scope", ("h",)))
    blocker.close()
    assert store.snapshot().seen_scopes == ("scope",)


def test_hosts_record_sessions_while_a_purge_holds_the_lock(store: NativeStore) -> None:
    with unhurried(store):
        store.record_session(SessionRecord("main", "s1", participants=[Identity("profile", "p")]))
    assert [s.session_id for s in store.catalogue()] == ["s1"]


def test_F32_a_full_disk_is_told_by_its_name(store: NativeStore) -> None:
    with unhurried(store) as writer:
        pages = next(iter(writer._shared.execute("PRAGMA page_count")))[0]
        list(writer._shared.execute(f"PRAGMA max_page_count = {pages}"))
        with pytest.raises(PartialError, match="disk is full"):
            writer.write(AddSeenHashes("scope", tuple(f"{n:064}" for n in range(2000))))
        list(writer._shared.execute("PRAGMA max_page_count = 1000000"))
        writer.write(AddSeenHashes("scope", ("h",)))


def test_F32_where_rolling_back_fails_too_the_first_error_is_told() -> None:
    class Full:
        in_transaction = True

        def execute(self, statement: str) -> None:
            if statement == "ROLLBACK":
                raise apsw.SQLError("cannot rollback - no transaction is active")

    with pytest.raises(apsw.FullError), transaction(Full()):  # type: ignore[arg-type]  # what is used of a connection
        raise apsw.FullError("database or disk is full")


def test_F49_a_refusal_names_the_way_out(store: NativeStore) -> None:
    wait = r"end it, or wait for it.*--break-lock has nothing to break"
    with store.exclusive(), pytest.raises(LockHeldError, match=wait), hasty(store).exclusive():
        pass


def test_F32_a_note_of_a_holder_that_makes_no_sense_is_another_process(store: NativeStore) -> None:
    for since in ("1e400", "-1e300", '"now"', "[" * 3000 + "]" * 3000, str(2**63)):
        with store.exclusive():
            Path(store._layout.lock).write_text(f'{{"pid": 1, "host": "oak", "since": {since}}}')
            with pytest.raises(LockHeldError, match="is held by"), hasty(store).exclusive():
                pass


# --- the lock ---


def test_I5_what_an_earlier_run_did_to_files_is_durable_before_evidence_is_dropped(store: NativeStore) -> None:
    workspace = Path(store._layout.workspace)
    (workspace / "memory").mkdir()
    synced: list[int] = []
    watched = evolve(store._calls, sync=lambda fd: synced.append(os.fstat(fd).st_ino))
    with evolve(store, calls=watched).exclusive():
        assert {path.stat().st_ino for path in (workspace, workspace / "memory")} <= set(synced)


def test_D19_a_lock_whose_holder_was_killed_is_free_at_once(store: NativeStore) -> None:
    script = (
        "import os, signal, sys\n"
        "from memprov.shell.native import open_store\n"
        "with open_store(sys.argv[1]).exclusive():\n"
        "    print('held', flush=True)\n"
        "    signal.pause()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, store._layout.directory], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    clock = Clock()
    waiting = hasty(store, clock)
    with pytest.raises(RefusedError, match=f"process {holder.pid} on .* since 20"), waiting.exclusive():
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    slept = len(clock.slept)
    with waiting.exclusive():
        assert len(clock.slept) - slept <= 4  # for the clock of the file system, not for the lock


def test_a_lock_that_cannot_be_taken_is_one_clear_error(store: NativeStore) -> None:
    Path(store._layout.lock).unlink(missing_ok=True)
    Path(store._layout.lock).mkdir()
    with pytest.raises(RefusedError, match="cannot be taken"), store.exclusive():
        pass


def test_the_lock_is_taken_before_the_ledgers_are_opened(store: NativeStore) -> None:
    with store.exclusive() as writer:
        assert os.path.exists(writer._layout.lock)  # noqa: PTH110
        second = hasty(open_store(store._layout.directory))
        before = sorted(path.name for path in Path(store._layout.directory).rglob("*"))
        with pytest.raises(RefusedError), second.exclusive():
            pass
        assert sorted(path.name for path in Path(store._layout.directory).rglob("*")) == before
