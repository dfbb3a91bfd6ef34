"""Finding the session to forget: filters, short names, what was said, and rows that fit a terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memprov import Identity, InputError, Message, SessionRecord, SessionState, ingest, open_store
from memprov.cli.finding import (
    SessionFilter,
    find_sessions,
    read_time,
    saying,
    short_ids,
    spoken_in_corpus,
)
from memprov.cli.listing import describe_sessions, fitted
from memprov.core.records import AgentRoster, roster_of
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.cli.running import Run
from tests.test_golden import files_of

NOON = 1_764_072_000_000  # 2025-11-25 12:00 UTC
DAY = 86_400_000


def record(name: str, **known: object) -> SessionRecord:
    return SessionRecord("main", name, **known)  # type: ignore[arg-type]  # fields as they are named


@pytest.fixture
def roster() -> AgentRoster:
    bob = Identity("profile", "bob")
    return roster_of(
        "main",
        "/w",
        [
            record("old", created_at_ms=NOON - DAY, channel="telegram", participants=[bob]),
            record("new", created_at_ms=NOON + DAY, channel="telegram", hook_source="gmail"),
            record("mid", created_at_ms=NOON, channel="slack", state=SessionState.RETAINED),
            record("gone", archived_at_ms=NOON + 1, state=SessionState.ARCHIVED),
            record("undated"),
        ],
        forgotten=["mid"],
    )


def ids(roster: AgentRoster, **wanted: object) -> list[str]:
    return [r.session_id for r in find_sessions(roster, SessionFilter(**wanted)).records]  # type: ignore[arg-type]


def test_without_a_filter_every_session_is_listed_newest_first(roster: AgentRoster) -> None:
    assert ids(roster) == ["new", "gone", "mid", "old", "undated"]


def test_filters_narrow_each_other_and_several_values_of_one_add_up(roster: AgentRoster) -> None:
    assert ids(roster, channels=["telegram"]) == ["new", "old"]
    assert ids(roster, channels=["telegram", "slack"]) == ["new", "mid", "old"]
    assert ids(roster, channels=["telegram"], participants=["bob"]) == ["old"]
    assert ids(roster, hook_sources=["gmail"]) == ["new"]
    assert ids(roster, hook_sources=["gmail"], participants=["bob"]) == []
    assert ids(roster, states=["archived"]) == ["gone"]
    assert ids(roster, states=["forgotten"]) == ["mid"]
    assert ids(roster, states=["retained", "archived"]) == ["gone", "mid"]


def test_times_are_bounds_that_are_included_and_what_has_no_time_is_counted(roster: AgentRoster) -> None:
    assert ids(roster, since_ms=NOON) == ["new", "gone", "mid"]
    assert ids(roster, until_ms=NOON) == ["mid", "old"]
    assert ids(roster, since_ms=NOON, until_ms=NOON) == ["mid"]
    assert find_sessions(roster, SessionFilter(since_ms=0)).undated == 1
    assert find_sessions(roster, SessionFilter()).undated == 0


def test_until_a_date_takes_its_whole_day_in_and_a_bad_time_names_its_option() -> None:
    assert read_time("--since", "2025-11-25") == NOON - DAY // 2
    assert read_time("--until", "2025-11-25") == NOON + DAY // 2 - 1
    assert read_time("--until", "2025-11-25T12:00Z") == NOON
    assert read_time("--until", None) is None
    with pytest.raises(InputError, match="--until is 'yesterday'"):
        read_time("--until", "yesterday")


@given(st.sets(st.text(alphabet="ab-0", max_size=24)))
def test_short_ids_tell_every_session_of_the_store_apart_and_lead_back_to_it(names: set[str]) -> None:
    short = short_ids(names)
    assert short.keys() == names
    assert len(set(short.values())) == len(names)
    for name, shown in short.items():
        assert len(shown) <= len(name)
        piece = shown.strip("…")
        if shown == name:
            continue
        meets = str.startswith if shown.endswith("…") else str.endswith
        assert [other for other in names if meets(other, piece)] == [name]


def test_ids_with_one_beginning_are_told_apart_by_their_ends() -> None:
    first, second = (f"11111111-aaaa-4aaa-8aaa-00000000000{n}" for n in (1, 2))
    assert short_ids([first, second]) == {first: "…00000001", second: "…00000002"}


def test_words_are_looked_for_in_one_line_in_any_order_case_and_width() -> None:
    lines = [
        ("a", "User: The KILN is hot"),
        ("b", "User: the kiln"),
        ("b", "User: is hot"),
        ("c", "User: \uff2biln hot"),
    ]
    assert saying(lines, "hot kiln") == {"a", "c"}
    assert list(spoken_in_corpus(["[main/sessions/main/s1#L2] User: hi\nby hand\n[x/sessions/x/s#L1] no"], "main")) == [
        ("s1", "User: hi")
    ]


@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=5, unique=True),
    st.text(max_size=90),
    st.text(max_size=40),
)
def test_no_row_is_wider_than_a_terminal_whatever_strangers_named(names: list[str], words: str, channel: str) -> None:
    person = Identity("profile", words)
    rows = [record(name, created_at_ms=NOON, channel=channel, participants=[person]) for name in names]
    lines = list(describe_sessions(rows, short_ids(names), names[:1], dict.fromkeys(names, words)))
    assert len(lines) == 1 + 2 * len(rows)
    assert max(map(cell_len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    assert cell_len(fitted(channel.replace("\n", ""), 10)) <= 10


@pytest.fixture
def store(tmp_path: Path) -> Path:
    opened = open_store(tmp_path / "store")
    for number in range(53):
        opened.record_session(record(f"quiet-{number:02}-{'x' * 20}", created_at_ms=NOON - number - 1))
    opened.record_session(record("spoken", created_at_ms=NOON, channel="telegram"))
    said = {"spoken": [Message("user", "I prefer oolong tea.", sender_is_owner=True, timestamp_ms=NOON, number=2)]}
    ingest(opened, lambda session: said.get(session.session_id), now_ms=NOON)
    return tmp_path / "store"


def test_the_newest_fifty_are_listed_and_the_number_of_the_others_is_said(run: Run, store: Path) -> None:
    shown = run("sessions", "--store", store)
    assert "4 older sessions are left out; --limit all" in shown.out
    assert shown.out.splitlines()[1].startswith("spoken")
    assert "quiet-00…" in shown.out, "told apart within the store"
    assert "oolong" not in shown.out, "what was said is shown on request only"
    listed = run("sessions", "--store", store, "--json")
    assert len(listed.json) == 50
    assert "4 older sessions" in listed.err
    assert len(run("sessions", "--store", store, "--json", "--limit", "all").json) == 54


def test_sessions_are_found_by_what_was_said_and_where_it_was_looked_for_is_said(run: Run, store: Path) -> None:
    before = files_of(store)
    found = run("sessions", "--store", store, "--text", "TEA oolong", "--json", "--preview")
    assert [row["sessionId"] for row in found.json] == ["spoken"]
    assert "oolong" in found.json[0]["preview"]
    assert "searched 1 corpus lines; no transcripts" in found.err
    text = run("sessions", "--store", store, "--text", "coffee").out
    assert "spoken" not in text
    assert "searched 1 corpus lines" in text
    assert "oolong" in run("sessions", "--store", store, "--preview", "--limit", "1").out
    open_store(store).delete_session("spoken")
    assert "no session store knows any more: spoken" in run("sessions", "--store", store, "--text", "tea").out
    assert files_of(store).keys() == before.keys()


def test_transcripts_are_searched_where_they_can_be_read(run: Run, tmp_path: Path) -> None:
    snapshot, sessions = synthetic_snapshot(sessions=2, seed=1), synthetic_sessions(sessions=2, seed=1)
    write_openclaw_store(tmp_path, snapshot, sessions)
    found = run("sessions", "--openclaw", tmp_path / "state", "--text", "near", "--json")
    assert found.code == 0
    assert "transcripts" in found.err
    assert "no transcripts" not in found.err


def test_sessions_are_listed_without_a_workspace_and_what_was_said_needs_one(run: Run, store: Path) -> None:
    shutil.rmtree(store / "workspace")
    assert run("sessions", "--store", store).code == 0
    assert run("sessions", "--store", store, "--text", "tea").code == 2


@pytest.mark.parametrize(
    "words", [("--since", "yesterday"), ("--until", ""), ("--text", " "), ("--state", "asleep"), ("--limit", "0")]
)
def test_a_bad_filter_is_refused_before_a_store_is_looked_for(run: Run, words: tuple[str, ...]) -> None:
    ran = run("sessions", "--store", "/no/such/place", *words)
    assert (ran.code, ran.out) == (2, "")
    assert words[0] in ran.err


def test_filters_meet_in_the_command(run: Run, store: Path) -> None:
    listed = run("sessions", "--store", store, "--channel", "telegram", "--state", "live", "--json").json
    assert [row["sessionId"] for row in listed] == ["spoken"]
    assert run("sessions", "--store", store, "--until", "2025-11-24", "--json").json == []
