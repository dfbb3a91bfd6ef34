"""``memprov agents``: whose memory is there, said also where a workspace or a database is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memprov import AgentRoster, InputError, SessionRecord, open_store, openclaw_agents, store_agents
from memprov.cli.agents import describe_agents
from memprov.core.records import roster_of
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.cli.running import Run
from tests.test_golden import files_of

DAY = 86_400_000


def test_the_last_activity_is_the_latest_time_that_is_known_and_other_agents_do_not_count() -> None:
    records = [
        SessionRecord("main", "a", created_at_ms=3),
        SessionRecord("main", "b", archived_at_ms=7),
        SessionRecord("ops", "c", created_at_ms=99),
    ]
    assert roster_of("main", "/w", records).last_activity_ms == 7
    assert roster_of("main", "/w", records, moments=[8]).last_activity_ms == 8
    assert [record.session_id for record in roster_of("main", "/w", records).sessions] == ["a", "b"]
    assert roster_of("ghost", "/w", records) == AgentRoster("ghost", "/w")


def test_an_agent_that_could_not_be_read_says_why_and_is_never_shown_as_empty() -> None:
    rows = list(describe_agents([AgentRoster("a", "/w", last_activity_ms=DAY), AgentRoster("b", "/v", unread="torn")]))
    assert rows[1] == ("a", "0", "1970-01-02 00:00", "/w")
    assert rows[2] == ("b", "?", "?", "/v (torn)")


def test_the_agents_of_an_embedded_store_without_a_trace_and_without_workspaces(run: Run, tmp_path: Path) -> None:
    top = tmp_path / "store"
    open_store(top, "ops", tmp_path / "ops-files")
    main = open_store(top)
    for day in (1, 2):
        main.record_session(SessionRecord("main", f"s{day}", created_at_ms=day * DAY))
    shutil.rmtree(tmp_path / "ops-files")
    before = files_of(top)
    found = run("agents", "--store", top, "--json").json
    assert [(row["agentId"], row["sessions"]) for row in found] == [("main", 2), ("ops", 0)]
    assert [row["workspace"] for row in found] == [str(top / "workspace"), str(tmp_path / "ops-files")]
    assert found[0]["lastActivityAt"] >= 2 * DAY
    assert found[1]["lastActivityAt"] is None
    assert "ops-files" in run("agents", "--store", top).out
    assert files_of(top) == before
    (top / "agents" / "ops" / "ledger.sqlite").write_bytes(b"this is no database, but long enough" * 60)
    torn = {agent.agent_id: agent for agent in store_agents(top)}
    assert torn["ops"].unread
    assert (torn["main"].unread, len(torn["main"].sessions)) == ("", 2)


def test_the_agents_of_an_installation_also_where_a_workspace_or_database_is_missing(run: Run, tmp_path: Path) -> None:
    write_openclaw_store(tmp_path, synthetic_snapshot(sessions=3, seed=1), synthetic_sessions(sessions=3, seed=1))
    shutil.rmtree(tmp_path / "workspace")
    before = files_of(tmp_path)
    (agent,) = run("agents", "--openclaw", tmp_path / "state", "--json").json
    assert (agent["agentId"], agent["sessions"], agent["unread"]) == ("main", 3, None)
    assert agent["lastActivityAt"]
    assert files_of(tmp_path) == before
    shutil.rmtree(tmp_path / "state" / "agents")
    (gone,) = openclaw_agents(tmp_path / "state")
    assert "agent database" in gone.unread


@pytest.mark.parametrize("find", [store_agents, openclaw_agents])
def test_a_place_that_holds_nothing_is_refused(find: Callable[[Path], object], tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError):
            find(place)


def test_the_other_kind_of_place_is_named_with_its_option(run: Run, tmp_path: Path) -> None:
    write_openclaw_store(tmp_path, synthetic_snapshot(sessions=1, seed=1), synthetic_sessions(sessions=1, seed=1))
    assert "--openclaw" in run("agents", "--store", tmp_path / "state").err
    open_store(tmp_path / "own")
    assert "--store" in run("agents", "--openclaw", tmp_path / "own").err
    assert run("agents").code == 2
