"""The session catalogue: what hosts record, what may not be recorded, and what a late writer cannot undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import evolve

from memprov import (
    AdmissionPolicy,
    Identity,
    Origin,
    Selectors,
    SessionKind,
    SessionRecord,
    decide_admission,
    forget,
    preview,
    select_sessions,
)
from memprov.core.writing import RecordOrigins, RequireAdmitted
from memprov.errors import InputError, RefusedError, SelectorError, StaleStateError
from memprov.shell.native import NativeStore
from tests.shell.native.loading import NOW, Clock, fresh_store, hasty, rows, unhurried

KEY = "agent:main:dashboard:x"
T = 1_795_597_200_000
PEOPLE = (
    Identity("profile", "p7"),
    Identity("agent", "p7"),
    Identity("remote", "r", plugin_id="slack", domain="d", id_kind="user"),
    Identity("observation", "o", plugin_id=None, account_id="a", sender_kind="human"),
    Identity("legacy", "l", actor_type="user", source=None),
)


@pytest.fixture
def store(tmp_path: Path) -> NativeStore:
    return fresh_store(tmp_path / "store")


def states(store: NativeStore) -> dict[str, str]:
    return {session.session_id: session.state.value for session in store.catalogue()}


def test_a_session_is_read_back_as_it_was_recorded(store: NativeStore) -> None:
    whole = SessionRecord(
        "main", "s1", KEY, "subagent", "live", 5, "slack", "group", "gmail", PEOPLE, "agent:main:parent"
    )
    parent = SessionRecord("main", "s0", "agent:main:parent", created_at_ms=4)
    store.record_session(whole)
    store.record_session(parent)
    first, second = store.catalogue()
    assert first == parent
    assert evolve(second, participants=()) == evolve(whole, participants=())
    assert set(second.participants) == set(PEOPLE)


def test_a_session_without_a_time_gets_the_moment_of_its_first_record(store: NativeStore) -> None:
    clock = Clock()
    store = hasty(store, clock)
    store.record_session(SessionRecord("main", "s1"))
    clock.now += 60
    store.record_session(SessionRecord("main", "s1", channel="slack"))
    assert [(s.created_at_ms, s.channel) for s in store.catalogue()] == [(NOW, "slack")]


def test_what_a_later_record_does_not_know_stays_known(store: NativeStore) -> None:
    store.record_session(
        SessionRecord(
            "main", "s1", KEY, "interactive", "live", 5, "slack", "group", "gmail", PEOPLE[:1], "agent:main:p"
        )
    )
    store.record_session(SessionRecord("main", "s1", kind="cron", participants=PEOPLE[1:2]))
    (session,) = store.catalogue()
    assert session.kind == "cron"
    assert (session.session_key, session.channel, session.chat_type, session.hook_source) == (
        KEY,
        "slack",
        "group",
        "gmail",
    )
    assert (session.created_at_ms, session.parent_key, set(session.participants)) == (5, "agent:main:p", {*PEOPLE[:2]})
    store.record_session(SessionRecord("main", "s1", channel="mail", hook_source="email"))
    (session,) = store.catalogue()
    assert (session.channel, session.hook_source) == ("mail", "email")


def test_B14_kinds_are_inherited_over_the_whole_catalogue(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "job", "agent:main:cron:tidy:run:1"))
    store.record_session(SessionRecord("main", "child", "agent:main:c", parent_key="agent:main:cron:tidy:run:1"))
    store.record_session(SessionRecord("main", "grandchild", "agent:main:g", parent_key="agent:main:c"))
    store.record_session(SessionRecord("main", "orphan", "agent:main:o", parent_key="agent:main:gone"))
    kinds = {session.session_id: session.kind.value for session in store.catalogue()}
    assert kinds == {"job": "cron", "child": "cron", "grandchild": "cron", "orphan": "unknown"}
    assert store.snapshot().internal_sessions == {"job", "child", "grandchild"}


@pytest.mark.parametrize("said", list(SessionKind))
def test_F20_a_kind_only_gets_stricter(store: NativeStore, said: SessionKind) -> None:
    store.record_session(SessionRecord("main", "s1", KEY, "cron"))
    store.record_session(SessionRecord("main", "s2", "agent:main:y"))
    for name in ("s1", "s2"):
        store.record_session(SessionRecord("main", name, kind=said, participants=PEOPLE[:1]))
    kinds = {session.session_id: session.kind for session in store.catalogue()}
    assert kinds == {"s1": "cron", "s2": said}


def test_F20_a_state_is_moved_by_rotating_archiving_and_restoring_alone(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY, "subagent"))
    store.rotate_session(SessionRecord("main", "s2", KEY))
    store.archive_session("s2")
    for name in ("s1", "s2"):  # a host that goes on to say what it learns of them
        store.record_session(SessionRecord("main", name, KEY, channel="slack", participants=PEOPLE[:1]))
    assert states(store) == {"s1": "retained", "s2": "archived"}
    assert [session.kind.value for session in store.catalogue()] == ["subagent", "interactive"]
    for name, state in (("s1", "archived"), ("s2", "retained")):
        with pytest.raises(InputError, match="archive_session"):
            store.record_session(SessionRecord("main", name, state=state))
    assert states(store) == {"s1": "retained", "s2": "archived"}


def test_F20_an_archived_session_is_restored_to_where_there_is_room(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    assert not store.restore_session("s1")
    store.archive_session("s1")
    store.record_session(SessionRecord("main", "s2", KEY))
    assert store.restore_session("s1")
    assert states(store) == {"s1": "retained", "s2": "live"}
    store.archive_session("s2")
    assert store.restore_session("s2")
    assert states(store)["s2"] == "live"
    with pytest.raises(InputError, match="no session 's9' to restore"):
        store.restore_session("s9")


def test_F20_a_key_that_another_live_session_has_is_refused_in_words(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    store.record_session(SessionRecord("main", "s2"))
    with pytest.raises(InputError, match=r"'s1' is the live session of .*; rotate it"):
        store.record_session(SessionRecord("main", "s2", KEY))


# --- generations ---


def test_rotating_retains_the_former_generation(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    assert store.rotate_session(SessionRecord("main", "s2", KEY)) == ("s1",)
    assert store.rotate_session(SessionRecord("main", "s2", KEY)) == ()
    assert store.rotate_session(SessionRecord("main", "s3", KEY, channel="slack")) == ("s2",)
    assert states(store) == {"s1": "retained", "s2": "retained", "s3": "live"}
    selected = select_sessions(store.catalogue(), Selectors(sessions=[KEY]))
    assert selected.session_ids == ("s1", "s2", "s3")


def test_a_key_has_one_live_session(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    store.record_session(SessionRecord("main", "s0", KEY, state="retained"))
    with pytest.raises(InputError, match="'s1' is the live session"):
        store.record_session(SessionRecord("main", "s2", KEY))
    assert states(store) == {"s0": "retained", "s1": "live"}
    store.record_session(SessionRecord("main", "keyless-1"))
    store.record_session(SessionRecord("main", "keyless-2"))
    with store._layout.ledger.writing() as connection, pytest.raises(apsw.ConstraintError):  # nor by another way
        connection.execute("UPDATE sessions SET state = 'live'")


def test_what_was_rotated_out_does_not_come_back_by_rotation(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    store.rotate_session(SessionRecord("main", "s2", KEY))
    with pytest.raises(InputError, match="'s1' is retained"):
        store.rotate_session(SessionRecord("main", "s1", KEY))
    with pytest.raises(InputError, match="no key"):
        store.rotate_session(SessionRecord("main", "s3"))
    with pytest.raises(InputError, match="not live"):
        store.rotate_session(SessionRecord("main", "s3", KEY, state="archived"))
    assert states(store) == {"s1": "retained", "s2": "live"}


def test_F16_an_archived_session_is_selected_by_all_that_is_kept_of_it(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY, hook_source="gmail"))
    assert store.archive_session("s1")
    assert not store.archive_session("s1")
    assert states(store) == {"s1": "archived"}
    for selectors, found in (
        (Selectors(sessions=["s1"]), ("s1",)),
        (Selectors(sessions=[KEY]), ("s1",)),
        (Selectors(hook_sources=["gmail"]), ("s1",)),
    ):
        assert preview(store, selectors).report.session_ids == found
    with pytest.raises(InputError, match="no session 's9'"):
        store.archive_session("s9")


# --- deleting and forgetting ---


def test_B56_deleting_is_idempotent_and_a_late_writer_does_not_lift_the_exclusion(store: NativeStore) -> None:
    session = SessionRecord("main", "s1", KEY, participants=PEOPLE)
    store.record_session(session)
    forget(store, Selectors(sessions=["s1"]))
    assert store.delete_session("s1")
    assert (store.catalogue(), rows(store._layout.ledger, "participants")) == ((), [])
    after_delete = store.snapshot()
    store.record_session(session)  # the late writer
    assert decide_admission(store.catalogue()[0], AdmissionPolicy(), store.forgotten(["s1"])).reason == "forgotten"
    with unhurried(store) as writer, pytest.raises(StaleStateError, match="s1"):
        writer.write(RequireAdmitted("main", ("s2", "s1")))
    assert store.delete_session("s1")
    assert not store.delete_session("s1")
    assert store.snapshot() == after_delete
    assert store.forgotten() == {"s1"}


def test_B60_a_session_that_was_forgotten_before_it_was_ever_seen_stays_out(store: NativeStore) -> None:
    forget(store, Selectors(sessions=["queued"]))
    store.record_session(SessionRecord("main", "queued", KEY))
    assert states(store) == {"queued": "live"}
    assert not decide_admission(store.catalogue()[0], None, store.forgotten()).admitted


def test_a_deleted_session_can_still_be_forgotten_by_its_id(store: NativeStore) -> None:
    store.record_session(SessionRecord("main", "s1", KEY))
    with unhurried(store) as writer:
        writer.write(RecordOrigins("main", (Origin("k", "main", "s1"),)))
    store.delete_session("s1")
    assert forget(store, Selectors(sessions=["s1"])).entry_keys == ("k",)
    assert not store.snapshot().origins.keys


def test_D9_a_tombstone_is_of_one_agent(tmp_path: Path) -> None:
    main, other = fresh_store(tmp_path / "store"), fresh_store(tmp_path / "store", "other")
    forget(main, Selectors(sessions=["s1"]))
    assert [set(store.forgotten(["s1"])) for store in (main, other)] == [{"s1"}, set()]
    forget(other, Selectors(sessions=["s1"]))
    assert other.forgotten() == {"s1"}


def test_case_G12_a_tombstone_that_is_there_keeps_its_time(store: NativeStore) -> None:
    clock = Clock()
    store = hasty(store, clock)
    forget(store, Selectors(sessions=["s1"]))
    first = rows(store._layout.ledger, "tombstones")
    assert [row[:2] for row in first] == [("s1", "forgotten")]
    clock.now += 60
    forget(store, Selectors(sessions=["s1"]))
    assert rows(store._layout.ledger, "tombstones") == first
    assert store.snapshot().revision == 2


def test_forgotten_ids_are_matched_exactly(store: NativeStore) -> None:
    forget(store, Selectors(sessions=["s1", "S2"]))
    assert store.forgotten(["s1", "s1 ", "S1", "s1x", "s2", "S2", "\udcff", ""]) == {"s1", "S2"}
    with pytest.raises(InputError, match="lone string"):
        store.forgotten("s1")


# --- what may not be recorded ---


@pytest.mark.parametrize("value", ["", " ", "\u3000", "*", "a\0b", None, 5, ()])
def test_B57_deleting_refuses_what_recording_refuses(store: NativeStore, value: Any) -> None:
    with pytest.raises(SelectorError):
        store.record_session(SessionRecord("main", value))
    for use in (store.delete_session, store.archive_session, lambda v: Selectors(sessions=[v])):
        with pytest.raises(SelectorError):
            use(value)
    assert not store.catalogue()


@pytest.mark.parametrize(
    "session",
    [
        SessionRecord("other", "s1"),
        SessionRecord("main", "\udcff"),
        SessionRecord("main", "s1", ""),
        SessionRecord("main", "s1", " "),
        SessionRecord("main", "s1", "a\0b"),
        SessionRecord("main", "s1", channel=""),
        SessionRecord("main", "s1", chat_type="dm"),
        SessionRecord("main", "s1", chat_type=""),
        SessionRecord("main", "s1", hook_source="\ud800"),
        SessionRecord("main", "s1", parent_key=7),  # type: ignore[arg-type]
        SessionRecord("main", "s1", created_at_ms=1.5),  # type: ignore[arg-type]
        SessionRecord("main", "s1", created_at_ms=2**60),
        SessionRecord("main", "s1", created_at_ms=T * 1000),
        SessionRecord("main", "s1", created_at_ms=True),
        SessionRecord("main", "s1", participants=[Identity("person", "x")]),
        SessionRecord("main", "s1", participants=[Identity("remote", "x")]),
        SessionRecord("main", "s1", participants=[Identity("observation", "x", sender_kind="robot")]),
        SessionRecord("main", "s1", participants=[Identity("profile", " ")]),
    ],
    ids=repr,
)
def test_a_record_that_could_not_be_selected_later_is_refused(store: NativeStore, session: SessionRecord) -> None:
    for use in (store.record_session, store.rotate_session):
        with pytest.raises(InputError):
            use(session)
    assert not store.catalogue()


@pytest.mark.parametrize("wrong", [{"kind": "batch"}, {"state": "open"}, {"kind": None}])
def test_a_made_up_kind_or_state_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"one of (interactive, cron|live, retained)"):
        SessionRecord("main", "s1", **wrong)


@pytest.mark.parametrize("wrong", ["bob", ["bob"], [None], [("profile", "bob")]])
def test_a_participant_that_is_no_identity_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"a participant is .*; it must be a memprov\.Identity"):
        SessionRecord("main", "s1", participants=wrong)


def test_a_record_is_written_whole_or_not_at_all(store: NativeStore) -> None:
    with store._layout.ledger.writing() as connection:
        connection.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON participants BEGIN SELECT raise(ABORT, 'the disk is full'); END"
        )
    with pytest.raises(RefusedError, match="recording failed, and nothing was changed: the disk is full"):
        store.record_session(SessionRecord("main", "s1", participants=PEOPLE))
    assert not store.catalogue()
