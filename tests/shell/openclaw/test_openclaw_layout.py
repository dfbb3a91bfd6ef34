"""Where things are: agents, workspaces and session stores as openclaw.json names them, also in a copied directory."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from memprov.core.purge import Selectors, select_sessions
from memprov.errors import CorruptStoreError, RefusedError, StoreNotFoundError
from memprov.shell.openclaw import open_openclaw
from memprov.shell.openclaw.layout import read_config, resolve_place
from tests.shell.openclaw.lab import Lab, sha

HOME = {"HOME": "/home/ana"}


def workspaces(tmp_path: Path, config: Any, environ: dict[str, str] | None = None) -> dict[str, str]:
    (tmp_path / "openclaw.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return dict(read_config(tmp_path, environ or HOME).workspaces)


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ({"entries": {"main": {"workspace": "/w/one"}}}, {"main": "/w/one"}),
        ({"list": [{"id": "Main", "workspace": "~/ws/"}]}, {"main": "/home/ana/ws"}),
        ({"list": [{"id": "a"}], "entries": {"b": {"workspace": "/w"}}}, {"b": "/w"}),  # never merged
        ({"entries": {"Big Agent!": {"workspace": "/w"}}}, {"big-agent": "/w"}),
        ({"entries": {"main": {}}, "defaults": {"workspace": "/d"}}, {"main": "/d"}),
        ({"defaults": {"workspace": " ~/d/../e "}}, {"main": "/home/ana/e"}),
        ({}, {"main": "STATE/workspace"}),
        ({"entries": {"solo": {}}}, {"solo": "STATE/workspace"}),
        (
            {"entries": {"main": {}, "helper": {}}, "ownership": "explicit"},
            {"main": "STATE/workspace-main", "helper": "STATE/workspace-helper"},
        ),
        (
            {"list": [{"id": "main"}, {"id": "ops", "default": True}]},
            {"main": "STATE/workspace-main", "ops": "STATE/workspace"},
        ),
        (
            {"entries": {"main": {"default": True}, "ops": {}}, "defaults": {"workspace": "/d"}},
            {"main": "/d", "ops": "/d/ops"},
        ),
        ({"entries": {"main": {"workspace": "  "}}}, {"main": "STATE/workspace"}),
    ],
)
def test_agents_and_their_workspaces(tmp_path: Path, agents: Any, expected: dict[str, str]) -> None:
    found = workspaces(tmp_path, {"agents": agents})
    assert found == {agent: path.replace("STATE", str(tmp_path)) for agent, path in expected.items()}


def test_environment_and_json5(tmp_path: Path) -> None:
    source = """{ // a comment
        agents: {entries: {main: {workspace: '${WHERE}/ws',},},},
    }"""
    assert workspaces(tmp_path, source, {"WHERE": "/mnt"}) == {"main": "/mnt/ws"}
    assert workspaces(tmp_path, {}, {"OPENCLAW_WORKSPACE_DIR": "/elsewhere"}) == {"main": "/elsewhere"}
    home = {"HOME": "/home/ana", "OPENCLAW_HOME": "/opt/oc"}
    assert workspaces(tmp_path, {"agents": {"defaults": {"workspace": "~/ws"}}}, home) == {"main": "/opt/oc/ws"}


def test_a_configuration_that_cannot_be_read_is_not_the_default_one(tmp_path: Path) -> None:
    with pytest.raises(CorruptStoreError, match=r"openclaw\.json is not JSON5"):
        workspaces(tmp_path, "{agents: ")
    with pytest.raises(CorruptStoreError, match="does not hold an object"):
        workspaces(tmp_path, "[]")
    for config in (
        {"$include": "x"},
        {"agents": {"entries": {"main": {"$include": "x"}}}},
        {"session": {"$include": 1}},
    ):
        with pytest.raises(RefusedError, match="includes other files"):
            workspaces(tmp_path, config)
    assert workspaces(tmp_path, {"models": {"$include": "x"}}) == {"main": f"{tmp_path}/workspace"}
    (tmp_path / "openclaw.json").write_bytes(b"\xff")
    with pytest.raises(RefusedError, match="cannot be read"):
        read_config(tmp_path)
    with pytest.raises(CorruptStoreError, match=r"openclaw\.json is not JSON5"):
        workspaces(tmp_path, "[" * 100_000)
    (tmp_path / "openclaw.json").unlink()
    os.mkfifo(tmp_path / "openclaw.json")
    with pytest.raises(RefusedError, match="no regular file"):
        read_config(tmp_path)


def test_a_nul_in_the_configured_session_store_is_left_out_as_elsewhere(lab: Lab) -> None:
    lab.write_config({**lab.config, "session": {"store": "/nowhere/a\0b.sqlite"}})
    with pytest.raises(StoreNotFoundError, match=r"there is no session database /nowhere/ab\.sqlite"):
        lab.open()


def test_D12_rows_that_only_a_former_path_of_the_workspace_explains_are_a_doubt(lab: Lab) -> None:
    lab.row("short-term-recall", "k", {"key": "k", "path": "memory/x.md", "snippet": "tea"}, "/srv/former")
    (doubt,) = lab.open().snapshot().unscanned
    assert "no rows of this workspace, but some of /srv/former" in doubt
    lab.row("short-term-recall", "k", {"key": "k", "path": "memory/x.md", "snippet": "tea"})
    assert lab.open().snapshot().unscanned == ()


def test_D12_rows_that_were_filed_under_a_link_to_the_workspace_are_its_rows(lab: Lab) -> None:
    alias = lab.root / "alias"
    alias.symlink_to(lab.workspace)
    for key, path in (("k1", alias), ("k2", lab.workspace)):
        lab.row("short-term-recall", key, {"key": key, "path": "memory/x.md", "snippet": "tea"}, path)
    assert {row.key for row in lab.open().snapshot().recall} == {"k1", "k2"}


def test_D12_rows_of_other_agents_workspaces_are_no_doubt(lab: Lab) -> None:
    entries = {"main": {"workspace": str(lab.workspace)}, "helper": {"workspace": "/srv/helper"}}
    lab.write_config({"agents": {"entries": entries}})
    lab.row("short-term-recall", "k", {"key": "k", "path": "memory/x.md", "snippet": "tea"}, "/srv/helper")
    assert lab.open().snapshot().unscanned == ()


def test_what_is_not_there_is_named(lab: Lab) -> None:
    with pytest.raises(StoreNotFoundError, match="no OpenClaw state directory"):
        open_openclaw(lab.root / "nowhere")
    lab.add_agent("helper")
    with pytest.raises(StoreNotFoundError, match="known agents: helper, main"):
        lab.open("nobody")
    lab.write_config({"agents": {"entries": {"main": {"workspace": str(lab.workspace)}, "new": {}}}})
    (lab.state / "workspace-new").mkdir()
    with pytest.raises(StoreNotFoundError, match="there is no agent database"):
        lab.open("new")
    lab.shared.unlink()
    with pytest.raises(StoreNotFoundError, match="shared state database"):
        lab.open()


def test_the_workspace_of_a_copied_directory_must_be_named(lab: Lab, tmp_path: Path) -> None:
    lab.row("short-term-recall", "k", {"key": "k", "path": "memory/x.md", "snippet": "tea"})
    moved = tmp_path / "moved"
    lab.workspace.rename(moved)
    with pytest.raises(StoreNotFoundError, match="pass workspace"):
        lab.open()
    store = lab.open(workspace=moved)
    assert [row.key for row in store.snapshot().recall] == ["k"]
    assert store.identity.workspace_root == str(moved)


def test_rows_of_an_implied_workspace_are_found_after_a_copy(tmp_path: Path) -> None:
    lab = Lab(tmp_path, config={"agents": {}})
    original = lab.state / "workspace"
    original.mkdir()
    lab.row("short-term-recall", "k", {"key": "k"}, workspace=original)
    lab.row("short-term-recall", "other", {"key": "other"}, workspace="/srv/other")
    copy = tmp_path / "copy"
    shutil.copytree(lab.state, copy)
    assert [row.key for row in open_openclaw(copy).snapshot().recall] == ["k"]
    lab.row("short-term-recall", "k2", {"key": "k2"}, workspace="/srv/b/workspace")  # which of the two was it?
    shutil.rmtree(copy)
    shutil.copytree(lab.state, copy)
    assert open_openclaw(copy).snapshot().recall == ()
    assert [row.key for row in lab.open().snapshot().recall] == ["k"]


def test_D12_every_spelling_of_a_workspace_is_one_workspace(lab: Lab, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(lab.workspace)
    entries = {"main": {"workspace": str(lab.workspace)}, "helper": {"workspace": str(alias)}, "far": {}}
    lab.write_config({"agents": {"entries": entries, "ownership": "explicit"}})
    lab.add_agent("helper")
    lab.add_agent("far")
    (lab.state / "workspace-far").mkdir()
    lab.row("short-term-recall", "a", {"key": "a"})
    lab.row("short-term-recall", "b", {"key": "b"}, workspace=alias)
    lab.row("short-term-recall", "c", {"key": "c"}, workspace=lab.state / "workspace-far")
    lab.origin("shared", "h1", "helper")
    lab.origin("elsewhere", "f1", "far")
    for agent, siblings in (("main", {"shared"}), ("helper", set())):
        store = lab.open(agent)
        snapshot = store.snapshot()
        assert [row.key for row in snapshot.recall] == ["a", "b"]
        assert snapshot.sibling_keys == siblings
        assert store.identity.workspace_root == str(lab.workspace)
    keys = resolve_place(read_config(lab.state), "main", None).keys
    assert keys == {sha(str(lab.workspace)), sha(str(alias))}


def test_B34_composed_and_decomposed_folders_are_two(tmp_path: Path) -> None:
    lab = Lab(tmp_path, config={"agents": {"entries": {"main": {"workspace": str(tmp_path / "e\u0301")}}}})
    for name in ("e\u0301", "\u00e9"):
        (tmp_path / name).mkdir()
    assert lab.open().identity.workspace_root == str(tmp_path / "e\u0301")
    lab.host_event(1, {"type": "t"}, workspace=tmp_path / "\u00e9")  # the host composes the path before it hashes
    lab.row("short-term-recall", "mine", {"key": "mine"}, workspace=tmp_path / "e\u0301")
    snapshot = lab.open().snapshot()
    assert ([row.key for row in snapshot.recall], len(snapshot.events)) == (["mine"], 1)


# -- session.store


def ids(lab: Lab, agent: str = "main", **arguments: Any) -> list[str]:
    return [record.session_id for record in lab.open(agent, **arguments).catalogue()]


def with_store(lab: Lab, store: str) -> None:
    lab.write_config({**lab.config, "session": {"store": store}})


def test_the_default_store_is_the_agents_own_database(lab: Lab) -> None:
    lab.session("s1")
    assert ids(lab) == ["s1"]
    with_store(lab, str(lab.state / "agents" / "{agentId}" / "sessions" / "sessions.json"))
    assert ids(lab) == ["s1"]


@pytest.mark.parametrize(
    ("store", "database"),
    [
        ("TOP/custom/{agentId}/sessions/sessions.json", "custom/main/sessions/openclaw-agent.sqlite"),
        ("TOP/custom/{agentId}.json", "custom/main.sqlite"),
        ("TOP/custom/all.db", "custom/all.sqlite"),
        ("TOP/custom/all.sqlite", "custom/all.sqlite"),
    ],
)
def test_a_configured_store_holds_the_sessions_and_nothing_else(lab: Lab, store: str, database: str) -> None:
    path = lab.root / database
    lab.make_agent_database(path)
    lab.session("there", database=path)
    lab.session("here")
    lab.origin("k", "s")
    lab.insert(path, "memory_entry_origins", entry_key="wrong", agent_id="main", session_id="s", origin_class="owner")
    with_store(lab, store.replace("TOP", str(lab.root)))
    assert ids(lab) == ["there"]
    assert set(lab.open().snapshot().origins.keys) == {"k"}
    with_store(lab, "/nowhere/x.sqlite")
    assert ids(lab, session_store=store.replace("TOP", str(lab.root))) == ["there"]


def test_a_store_below_home(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(lab.root / "home"))
    monkeypatch.delenv("OPENCLAW_HOME", raising=False)
    path = lab.root / "home" / "oc" / "main.sqlite"
    lab.make_agent_database(path)
    lab.session("at home", database=path)
    with_store(lab, "~/oc/{agentId}.json")
    assert ids(lab) == ["at home"]


def two_agents(lab: Lab) -> None:
    entries = {name: {"workspace": str(lab.workspace)} for name in ("main", "helper")}
    lab.write_config({"agents": {"entries": entries, "ownership": "explicit"}})
    lab.add_agent("helper")


def test_a_fixed_file_belongs_to_one_agent_and_the_others_have_theirs_beside_it(lab: Lab) -> None:
    two_agents(lab)
    base, beside = (lab.root / "shared" / name for name in ("all.sqlite", "all.helper.sqlite"))
    lab.make_agent_database(base, "main")
    lab.make_agent_database(beside, "helper")
    lab.session("m", database=base)
    lab.session("h", "plain", database=beside)
    with_store(lab, str(lab.root / "shared" / "all.json"))
    assert ids(lab) == ["m"]
    assert [(r.agent_id, r.session_id) for r in lab.open("helper").catalogue()] == [("helper", "h")]
    lab.insert(lab.shared, "agent_databases", agent_id="helper", path="../shared/all.sqlite")  # the registry decides
    assert ids(lab, "helper") == ["m"]
    beside.rename(lab.root / "shared" / "all.main.sqlite")
    lab.sql(lab.root / "shared" / "all.main.sqlite", "UPDATE schema_meta SET agent_id = 'somebody'")
    lab.make_agent_database(lab.root / "shared" / "all.main.2.sqlite", "main")
    lab.session("second", database=lab.root / "shared" / "all.main.2.sqlite")
    assert ids(lab) == ["second"]


def test_one_file_shared_by_all_lists_every_agents_sessions(lab: Lab) -> None:
    two_agents(lab)
    path = lab.root / "all.sqlite"
    lab.make_agent_database(path)
    lab.session("m", "agent:main:x", database=path)
    lab.session("h", "AGENT:Helper:x", database=path)
    lab.session("n", "no agent in this key", database=path)
    with_store(lab, str(path))
    for agent in ("main", "helper"):
        records = lab.open(agent).catalogue()
        assert [(r.agent_id, r.session_id) for r in records] == [("helper", "h"), ("main", "m"), ("main", "n")]
    selection = select_sessions(lab.open("helper").catalogue(), Selectors(sessions=["m", "h"]), "helper")
    assert [(r.session_id, str(r.source)) for r in selection.resolutions] == [("h", "live"), ("m", "unresolved")]


def test_a_store_that_was_copied_with_the_directory_is_found_there(lab: Lab) -> None:
    path = lab.state / "shared" / "all.sqlite"
    lab.make_agent_database(path)
    lab.session("copied", database=path)
    with_store(lab, "/srv/agents/gone/state/shared/all.json")
    assert ids(lab) == ["copied"]
    path.unlink()
    with pytest.raises(StoreNotFoundError, match="pass session_store"):
        lab.open()
