"""Selectors, resolution and identities: cases B, decisions D8, D10, D15, invariant I12, reports B02, B42, B57, B80."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from memprov.core.purge import ParticipantMatch, Resolution, Selection, SelectionSource, Selectors, select_sessions
from memprov.core.records import (
    Identity,
    SessionRecord,
    SessionState,
    identity_from_json,
    identity_json,
    is_session_key,
)
from memprov.core.text import json_text
from memprov.errors import CorruptStoreError, InputError, SelectorError

PROFILE = Identity("profile", "p7")
OBSERVED = Identity("observation", "p7", plugin_id="telegram", account_id="default", sender_kind="human")
LIVE, ARCHIVED, UNRESOLVED = SelectionSource.LIVE, SelectionSource.ARCHIVED, SelectionSource.UNRESOLVED


def session(session_id: str, key: str | None = None, **more: Any) -> SessionRecord:
    return evolve(SessionRecord("main", session_id, key or f"agent:main:{session_id}", created_at_ms=1000), **more)


A = session("a", hook_source="gmail")
B = session("b", participants=[PROFILE], created_at_ms=2000)
C = session("c")
CATALOGUE = (A, B, C)


def ids(selection: Selection) -> list[str]:
    return list(selection.session_ids)


class Unread:
    """A catalogue that must not be read."""

    def __iter__(self) -> Iterator[SessionRecord]:
        raise AssertionError("the catalogue was read")


# --- cases B ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selectors", [Selectors(), Selectors(since="2026-01-01"), Selectors(since=0)])
def test_case_B1_no_selector_is_an_error_before_anything_is_read(selectors: Selectors) -> None:
    with pytest.raises(SelectorError, match="no selector"):
        selectors.require()
    with pytest.raises(SelectorError, match="no selector"):
        select_sessions(Unread(), selectors)


def test_case_B2_selectors_are_joined_by_or() -> None:
    selection = select_sessions(CATALOGUE, Selectors(hook_sources=["gmail"], participants=["p7"]))
    assert ids(selection) == ["a", "b"]
    assert {resolution.source for resolution in selection.resolutions} == {LIVE}


def test_case_B3_since_narrows_and_what_it_rejects_is_not_unresolved() -> None:
    selection = select_sessions(CATALOGUE, Selectors(hook_sources=["gmail"], participants=["p7"], since=1001))
    assert selection.resolutions == (Resolution("b", LIVE, "agent:main:b"),)
    by_id = select_sessions(CATALOGUE, Selectors(sessions=["a", "agent:main:a"], since=1001))
    assert by_id.resolutions == ()
    assert ids(select_sessions(CATALOGUE, Selectors(sessions=["a"], since=1000))) == ["a"], "since includes its moment"


def test_case_B4_an_id_that_is_nowhere_is_recorded_literally_whatever_since() -> None:
    selection = select_sessions(CATALOGUE, Selectors(sessions=["nope"], since="2999-01-01"))
    assert selection.resolutions == (Resolution("nope", UNRESOLVED, None),)
    assert selection.session_ids == ("nope",)
    assert selection.warnings == ()


@pytest.mark.parametrize("value", ["old", "agent:main:old-key"])
def test_case_B6_an_archive_is_found_by_id_and_by_key(value: str) -> None:
    archive = session("old", "agent:main:old-key", state="archived", participants=[PROFILE])
    selection = select_sessions((*CATALOGUE, archive), Selectors(sessions=[value], participants=["zz"]))
    assert selection.resolutions == (Resolution("old", ARCHIVED, "agent:main:old-key"),)
    assert selection.session_keys == ("agent:main:old-key",)
    with_participant = select_sessions([archive], Selectors(sessions=[value], participants=["p7"]))
    assert with_participant.participant_matches == (ParticipantMatch("p7", (PROFILE,)),)


def test_case_B7_a_hook_source_finds_no_archive_without_metadata() -> None:
    archive = session("old", state="archived")
    assert select_sessions([archive], Selectors(hook_sources=["gmail"], participants=["p7"])).session_ids == ()


def test_case_B9_hook_sources_are_exact_and_missing_ones_match_nothing() -> None:
    catalogue = [session("e", hook_source="email"), session("w", hook_source="webhook"), session("n")]
    assert ids(select_sessions(catalogue, Selectors(hook_sources=["email"]))) == ["e"]
    assert ids(select_sessions(catalogue, Selectors(hook_sources=["webhook"]))) == ["w"]
    for value in ("Email", "mail", "None"):
        assert ids(select_sessions(catalogue, Selectors(hook_sources=[value]))) == []


def test_case_B10_participant_matches_list_every_requested_participant_with_its_identities() -> None:
    catalogue = [session("b", participants=[PROFILE]), session("d", participants=[OBSERVED, PROFILE])]
    expected = (ParticipantMatch("p7", (OBSERVED, PROFILE)), ParticipantMatch("zz", ()))
    for order in (catalogue, catalogue[::-1]):
        selection = select_sessions(order, Selectors(participants=["zz", "p7", "p7"]))
        assert ids(selection) == ["b", "d"]
        assert selection.participant_matches == expected
    later = [evolve(catalogue[1], created_at_ms=5), catalogue[0]]
    selection = select_sessions(later, Selectors(participants=["p7"], since=1000))
    assert selection.participant_matches == (ParticipantMatch("p7", (PROFILE,)),), "of the targets only"


def test_participant_matches_cover_targets_that_another_selector_found() -> None:
    catalogue = [session("d", hook_source="gmail", participants=[OBSERVED]), session("x", participants=[PROFILE])]
    selection = select_sessions(catalogue, Selectors(hook_sources=["gmail"]))
    assert selection.participant_matches == ()
    selection = select_sessions(catalogue[:1], Selectors(hook_sources=["gmail"], participants=["p7"]))
    assert selection.participant_matches == (ParticipantMatch("p7", (OBSERVED,)),)


@pytest.mark.parametrize(
    "since",
    [
        *("2026-13-99", "", "yesterday", " 2026-01-01", "2026-01-01 ", "2026-02-30", "2026-1-1", "2026-01-01T25:00"),
        *("2026-01-01T00:00:60", "20260101", "2026-W01", "٢٠٢٦-01-01", "2026-01-01T00", "2026-01-01T00:00+1", "26"),
        *("1700000000000", "2026-01-01x00:00", "\0", 1.5, True),
    ],
)
def test_case_B11_a_since_that_is_no_date_is_named(since: object) -> None:
    with pytest.raises(SelectorError) as caught:
        Selectors(sessions=["a"], since=since)  # type: ignore[arg-type]
    assert repr(since) in str(caught.value)


def test_case_B14_a_hook_source_that_matches_nothing_selects_nothing() -> None:
    selection = select_sessions(CATALOGUE, Selectors(hook_sources=["imap"]))
    assert (selection.session_ids, selection.resolutions, selection.warnings) == ((), (), ())


# --- D8, D10, D15 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "moment"),
    [
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02T03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        ("2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.678Z", datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)),
        ("2026-01-02t03:04:05.6789999z", datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05+0530", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        ("2026-01-02T03:04:05-08:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-8)))),
        ("1969-12-31T23:59:59.9999Z", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_D8_since_without_a_zone_is_utc(since: str, moment: datetime) -> None:
    selectors = Selectors(sessions=["a"], since=since)
    assert selectors.since == since, "kept as it was given"
    assert selectors.since_ms == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize("since", ["0001-01-01T00:00+23:59", "9999-12-31T23:59:59.999-23:59"])
def test_D8_the_ends_of_the_calendar_are_no_overflow(since: str) -> None:
    assert isinstance(Selectors(since=since).since_ms, int)


def test_D8_since_may_be_epoch_milliseconds() -> None:
    assert Selectors(since=-5).since_ms == -5
    assert Selectors(since=None).since_ms is None


@pytest.mark.parametrize(
    "selectors", [{"sessions": ["a"]}, {"sessions": ["agent:main:a"]}, {"sessions": ["archive-key"]}]
)
def test_D8_a_live_session_that_since_rejects_does_not_come_back_through_its_archive(
    selectors: dict[str, Any],
) -> None:
    newer = session("a", "archive-key", state="archived", created_at_ms=9000)
    for catalogue in ((A, newer), (newer, A)):
        assert select_sessions(catalogue, Selectors(**selectors, since=5000)).resolutions == ()
        kept = select_sessions(catalogue, Selectors(**selectors, since=500))
        assert kept.resolutions == (Resolution("a", LIVE, "agent:main:a"),), "both live and archived is live"
        assert not kept.warnings


def test_D8_an_archive_is_narrowed_by_its_own_time() -> None:
    older, newer = (session("o", state="archived", created_at_ms=t) for t in (10, 20))
    assert select_sessions([older, newer], Selectors(sessions=["o"], since=15)).session_ids == ("o",)
    assert select_sessions([older, newer], Selectors(sessions=["o"], since=25)).resolutions == ()


def test_since_leaves_a_session_without_a_time_out_and_says_so() -> None:
    selection = select_sessions([session("a", created_at_ms=None)], Selectors(sessions=["a"], since=0))
    assert selection.session_ids == ()
    assert "'a'" in selection.warnings[0]
    assert not select_sessions([session("b", created_at_ms=None)], Selectors(sessions=["b"])).warnings


def test_D10_an_unresolved_key_or_a_siblings_session_is_recorded_with_a_warning() -> None:
    sibling = SessionRecord("helper", "h1", "agent:helper:x")
    wanted = Selectors(sessions=["agent:main:gone", "h1", "agent:helper:x", "plain"])
    selection = select_sessions((*CATALOGUE, sibling), wanted)
    assert {r.source for r in selection.resolutions} == {UNRESOLVED}
    assert {r.session_key for r in selection.resolutions} == {None}
    assert ids(selection) == sorted(wanted.sessions)
    warned = {value: [w for w in selection.warnings if repr(value) in w] for value in wanted.sessions}
    assert ["shaped like a session key" in w for w in warned["agent:main:gone"]] == [True]
    assert ["'helper'" in w for w in warned["h1"]] == [True]
    assert ["'helper'" in w for w in warned["agent:helper:x"]] == [True]
    assert warned["plain"] == []


def test_D10_a_value_that_the_agent_knows_itself_is_no_doubt() -> None:
    shared = SessionRecord("helper", "a", "agent:main:a")
    assert select_sessions([A, shared], Selectors(sessions=["a", "agent:main:a"])).warnings == ()


@pytest.mark.parametrize("value", ["", " ", "\t\n", "\ufeff", "\x1c", "\x85", "*", " * ", "a\0b", "a\udcff"])
@pytest.mark.parametrize("field", ["sessions", "hook_sources", "participants"])
def test_D15_report_B57_a_bad_selector_is_named_before_anything_is_read(field: str, value: str) -> None:
    arguments: dict[str, Any] = {field: ["good", value]}
    with pytest.raises(SelectorError) as caught:
        Selectors(**arguments)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("field", ["sessions", "hook_sources", "participants"])
@pytest.mark.parametrize("values", ["s1", b"s1", [None], [5], [["s1"]], None, 5])
def test_D15_report_B57_only_collections_of_strings_are_selectors(field: str, values: object) -> None:
    arguments: dict[str, Any] = {field: values}
    with pytest.raises(SelectorError):
        Selectors(**arguments)


def test_a_selector_error_is_an_input_error() -> None:
    with pytest.raises(InputError):
        Selectors(sessions=["*"])


def test_values_are_exact_and_any_iterable_will_do() -> None:
    selectors = Selectors(sessions=(v for v in [" a", "a", "a"]))
    assert selectors.sessions == (" a", "a", "a")
    assert ids(select_sessions(CATALOGUE, selectors)) == [" a", "a"]


# --- exactness and scope ----------------------------------------------------------------------------------------------


def test_I12_report_B02_ids_and_keys_match_exactly() -> None:
    catalogue = [session(s) for s in ("chat-1", "chat-10", "Chat-1", "chat-", "chat-1 ")]
    assert ids(select_sessions(catalogue, Selectors(sessions=["chat-1"]))) == ["chat-1"]
    assert ids(select_sessions(catalogue, Selectors(sessions=["agent:main:chat-1"]))) == ["chat-1"]
    assert ids(select_sessions(catalogue, Selectors(participants=["chat-1"], hook_sources=["chat"]))) == []


def test_I11_only_the_given_agents_sessions_are_selected() -> None:
    mine = session("a", hook_source="gmail", participants=[PROFILE])
    theirs = evolve(mine, agent_id="other", session_id="b", session_key="agent:main:a")
    wanted = Selectors(sessions=["agent:main:a"], hook_sources=["gmail"], participants=["p7"])
    assert ids(select_sessions([mine, theirs], wanted)) == ["a"]
    assert ids(select_sessions([mine, theirs], wanted, "other")) == ["b"]
    assert select_sessions([mine, theirs], wanted, "other").agent_id == "other"


def test_a_key_selects_all_its_generations() -> None:
    catalogue = [
        session("now", "agent:main:chat"),
        session("before", "agent:main:chat", state="retained"),
        session("first", "agent:main:chat", state="archived"),
        session("else"),
    ]
    selection = select_sessions(catalogue, Selectors(sessions=["agent:main:chat"]))
    assert [(r.session_id, r.source) for r in selection.resolutions] == [
        ("before", LIVE),
        ("first", ARCHIVED),
        ("now", LIVE),
    ]
    assert selection.session_keys == ("agent:main:chat",)


def test_retained_sessions_match_by_their_metadata() -> None:
    catalogue = [session("r", state="retained", hook_source="gmail")]
    assert select_sessions(catalogue, Selectors(hook_sources=["gmail"])).resolutions[0].source == LIVE


def test_report_B42_an_unknown_scope_selects_nothing_and_an_empty_one_is_refused() -> None:
    assert ids(select_sessions(CATALOGUE, Selectors(participants=["nobody"]))) == []
    with pytest.raises(SelectorError):
        select_sessions(CATALOGUE, Selectors(sessions=[], participants=[]))


def test_lists_are_sorted_by_code_point() -> None:
    names = ["a", "B", "ä", "Z", "\uffff", "\U0001f9e0", "_"]
    selection = select_sessions([], Selectors(sessions=names))
    assert ids(selection) == sorted(names)
    assert [r.session_id for r in selection.resolutions] == sorted(names)


def test_warnings_and_keys_are_sorted_and_distinct() -> None:
    keys = [f"agent:main:{name}" for name in "hgfedcba"]
    selection = select_sessions([], Selectors(sessions=[*keys, *keys]))
    assert list(selection.warnings) == sorted(selection.warnings)
    assert len(selection.warnings) == len(keys)
    live = [session(f"s{i}", key, created_at_ms=None) for i, key in enumerate([*keys, *keys])]
    selection = select_sessions(live, Selectors(sessions=keys))
    assert list(selection.session_keys) == sorted(keys)
    assert list(select_sessions([*live, *live], Selectors(sessions=keys, since=0)).warnings) == [
        f"session {name!r} has no creation time; 'since' leaves it out" for name in sorted(r.session_id for r in live)
    ]


def test_several_owners_of_a_siblings_session_are_named_in_order() -> None:
    others = [SessionRecord(agent, "x") for agent in "hgfedcb"]
    (warning,) = select_sessions(others, Selectors(sessions=["x"])).warnings
    assert "'b', 'c', 'd', 'e', 'f', 'g', 'h'" in warning


def test_of_several_rows_of_one_id_the_live_one_with_a_key_is_reported() -> None:
    rows = [
        SessionRecord("main", "x", "agent:main:b", state="retained"),
        SessionRecord("main", "x", None),
        SessionRecord("main", "x", "agent:main:c"),
        SessionRecord("main", "x", "agent:main:d"),
        SessionRecord("main", "x", "agent:main:a", state="archived"),
    ]
    for catalogue in itertools.permutations(rows):
        assert select_sessions(catalogue, Selectors(sessions=["x"])).resolutions == (
            Resolution("x", LIVE, "agent:main:c"),
        )


def test_report_B80_three_hundred_thousand_ids_are_resolved() -> None:
    count = 300_001
    catalogue = [SessionRecord("main", f"s{i}", created_at_ms=i) for i in range(count)]
    selection = select_sessions(catalogue, Selectors(sessions=[f"s{i}" for i in range(count)]))
    assert len(selection.session_ids) == count
    assert selection.resolutions[0].source == LIVE


# --- against an oracle ------------------------------------------------------------------------------------------------

NAMES = ["s1", "s10", "S1", "agent:main:s1", "agent:main:k", "agent:b:k"]
records = st.builds(
    SessionRecord,
    st.sampled_from(["main", "main", "main", "b"]),
    st.sampled_from(NAMES[:4]),
    st.sampled_from([None, *NAMES]),
    state=st.sampled_from(SessionState),
    created_at_ms=st.sampled_from([None, 1, 2, 3]),
    hook_source=st.sampled_from([None, "gmail", "email"]),
    participants=st.lists(st.sampled_from([PROFILE, OBSERVED, Identity("agent", "x")]), max_size=2),
)
catalogues = st.lists(records, max_size=8)
wanted_selectors = st.builds(
    Selectors,
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    st.lists(st.sampled_from(["gmail", "email"]), max_size=1),
    st.lists(st.sampled_from(["p7", "x"]), max_size=2),
    st.sampled_from([None, 2]),
)


def expected_sources(catalogue: Iterable[SessionRecord], wanted: Selectors) -> dict[str, SelectionSource]:
    """The rules once more, session id by session id, without any index."""
    mine = [r for r in catalogue if r.agent_id == "main"]

    def in_time(record: SessionRecord) -> bool:
        since = wanted.since_ms
        return since is None or (record.created_at_ms is not None and record.created_at_ms >= since)

    def named(record: SessionRecord) -> bool:
        return any(value in (record.session_id, record.session_key) for value in wanted.sessions)

    def by_metadata(record: SessionRecord) -> bool:
        actors = [identity.id for identity in record.participants]
        return record.hook_source in wanted.hook_sources or any(actor in wanted.participants for actor in actors)

    result: dict[str, SelectionSource] = {}
    for value in wanted.sessions:
        if not any(named(record) and value in (record.session_id, record.session_key) for record in mine):
            result[value] = UNRESOLVED
    for session_id in {record.session_id for record in mine}:
        live = [r for r in mine if r.session_id == session_id and r.state is not SessionState.ARCHIVED]
        archived = [r for r in mine if r.session_id == session_id and r.state is SessionState.ARCHIVED]
        archived = [r for r in archived if named(r) or by_metadata(r)]
        hits = [r for r in live if archived or named(r) or by_metadata(r)]
        if any(in_time(r) for r in hits):
            result[session_id] = LIVE
        elif not hits and any(in_time(r) for r in archived):
            result[session_id] = ARCHIVED
    return result


@settings(max_examples=max(400, settings().max_examples))  # rare conjunctions of rows
@given(catalogues, wanted_selectors, st.randoms(use_true_random=False))
def test_resolution_equals_the_oracle_in_any_order(
    catalogue: list[SessionRecord], wanted: Selectors, order: random.Random
) -> None:
    selection = select_sessions(catalogue, wanted)
    assert {r.session_id: r.source for r in selection.resolutions} == expected_sources(catalogue, wanted)
    assert ids(selection) == sorted(expected_sources(catalogue, wanted))
    order.shuffle(catalogue)
    assert select_sessions(iter(catalogue), wanted) == selection


@given(catalogues, wanted_selectors, wanted_selectors)
def test_selection_is_monotone_in_its_selectors(
    catalogue: list[SessionRecord], one: Selectors, other: Selectors
) -> None:
    both = evolve(
        one,
        sessions=one.sessions + other.sessions,
        hook_sources=one.hook_sources + other.hook_sources,
        participants=one.participants + other.participants,
    )
    assert set(ids(select_sessions(catalogue, one))) <= set(ids(select_sessions(catalogue, both)))
    assert set(ids(select_sessions(catalogue, both))) <= set(ids(select_sessions(catalogue, evolve(both, since=None))))


# --- identities -------------------------------------------------------------------------------------------------------

IDENTITIES = {
    '{"type":"profile","id":"i"}': Identity("profile", "i"),
    '{"type":"agent","id":"i"}': Identity("agent", "i"),
    '{"type":"remote","pluginId":"p","domain":"d","idKind":"k","id":"i"}': Identity(
        "remote", "i", plugin_id="p", domain="d", id_kind="k"
    ),
    '{"type":"observation","pluginId":null,"accountId":null,"senderKind":"bot","id":"i"}': Identity(
        "observation", "i", sender_kind="bot"
    ),
    '{"type":"legacy","actorType":"user","source":null,"id":"i"}': Identity("legacy", "i", actor_type="user"),
}


@pytest.mark.parametrize(("text", "identity"), IDENTITIES.items())
def test_identities_are_written_as_the_reports_write_them_and_read_as_the_store_writes_them(
    text: str, identity: Identity
) -> None:
    assert json_text(identity_json(identity)) == text
    namespace = {name: value for name, value in json.loads(text).items() if name != "id"}
    assert identity_from_json(json.dumps(namespace), "i") == identity


@pytest.mark.parametrize(
    "namespace",
    [
        "",
        "{",
        "[]",
        "null",
        '"profile"',
        "{}",
        '{"type":"robot"}',
        '{"type":["profile"]}',
        '{"type":"profile","id":"i"}',
        '{"type":"remote","pluginId":"p","domain":"d"}',
        '{"type":"remote","pluginId":null,"domain":"d","idKind":"k"}',
        '{"type":"observation","pluginId":"p","accountId":"a","senderKind":"ghost"}',
        '{"type":"observation","pluginId":"p","accountId":"a","senderKind":null}',
        '{"type":"legacy","actorType":5,"source":null}',
    ],
)
def test_an_identity_that_cannot_be_read_is_corruption(namespace: str) -> None:
    with pytest.raises(CorruptStoreError, match="'i'"):
        identity_from_json(namespace, "i")


def test_an_identity_of_an_unknown_kind_has_no_json() -> None:
    with pytest.raises(InputError, match="robot"):
        identity_json(Identity("robot", "i"))


def test_identities_that_a_report_cannot_tell_apart_are_one() -> None:
    odd = Identity("profile", "p7", plugin_id="belongs to no profile")
    selection = select_sessions([session("b", participants=[PROFILE, odd])], Selectors(participants=["p7"]))
    assert len(selection.participant_matches[0].identities) == 1


@pytest.mark.parametrize("key", ["agent:main:x", "AGENT:a:b:c", "agent:a::b"])
def test_the_shape_of_a_session_key(key: str) -> None:
    assert is_session_key(key) is (key != "agent:a::b")


@pytest.mark.parametrize("text", ["", "agent", "agent:", "agent:main", "agent:main:", "agent::x", "x:agent:main:x"])
def test_what_is_no_session_key(text: str) -> None:
    assert not is_session_key(text)
