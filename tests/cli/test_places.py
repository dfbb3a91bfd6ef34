"""Which store a command takes, and that it says so when nobody named it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from memprov import InputError, SessionRecord, open_store
from memprov.cli.places import USUAL, StorePlace, find_place
from memprov.testing import synthetic_sessions, synthetic_snapshot, write_openclaw_store
from tests.cli.running import Run

HOME = {"HOME": "/home/zoe"}
BOTH = {**HOME, "MEMPROV_STORE": "/m", "OPENCLAW_STATE_DIR": "~/claw"}


def found(store: str | None, openclaw: str | None, environ: Mapping[str, str], *there: str) -> tuple[str, bool, str]:
    place = find_place(store, openclaw, environ, there.__contains__)
    return place.directory, place.openclaw, place.led_by


def test_what_is_named_counts_before_everything_and_needs_no_announcement() -> None:
    assert found("/s", None, BOTH, "/home/zoe/.openclaw") == ("/s", False, "")
    assert found(None, "/o", BOTH, "/home/zoe/.openclaw") == ("/o", True, "")


def test_the_environment_counts_before_the_usual_place_and_memprovs_own_first() -> None:
    assert found(None, None, BOTH) == ("/m", False, "MEMPROV_STORE")
    assert found(None, USUAL, BOTH) == ("/home/zoe/claw", True, "OPENCLAW_STATE_DIR")
    assert found(None, None, {**BOTH, "MEMPROV_STORE": "  "}) == ("/home/zoe/claw", True, "OPENCLAW_STATE_DIR")
    usual = "/home/zoe/.openclaw"
    for option in (None, USUAL):
        assert found(None, option, HOME, usual) == (usual, True, "the usual place")
    assert found(None, USUAL, {**HOME, "MEMPROV_STORE": "/m"}, usual) == (usual, True, "the usual place")
    assert found(None, None, {**HOME, "OPENCLAW_HOME": "/srv"}, "/srv/.openclaw")[0] == "/srv/.openclaw"


@pytest.mark.parametrize(
    ("store", "openclaw", "environ", "said"),
    [
        ("/s", "/o", BOTH, "name one store"),
        ("/s", USUAL, BOTH, "name one store"),
        (" ", None, BOTH, "--store is blank"),
        (None, "", BOTH, "--openclaw is blank"),
        (None, None, HOME, "/home/zoe/.openclaw"),
        (None, USUAL, {}, "home directory"),
    ],
)
def test_two_names_a_blank_one_and_none_anywhere_are_refused(
    store: str | None, openclaw: str | None, environ: Mapping[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        found(store, openclaw, environ)


def test_the_announcement_says_what_and_why() -> None:
    place = StorePlace("/x", openclaw=True, led_by="the usual place")
    assert place.announcement == "taking the OpenClaw installation in /x (the usual place)"


def test_every_command_says_once_on_standard_error_which_store_it_took(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    open_store(store).record_session(SessionRecord("main", "s1"))
    monkeypatch.setenv("MEMPROV_STORE", str(store))
    for words in (
        ("agents",),
        ("sessions", "--text", "tea"),
        ("admit",),
        ("trace", "--session", "s1"),
        ("receipt", "show"),
        ("forget", "--session", "s1", "--dry-run", "--json"),
        ("verify", "--session", "s1"),
    ):
        ran = run(*words)
        assert ran.code in (0, 4), (words, ran.err)
        assert ran.err.count(f"taking the store in {store} (MEMPROV_STORE)") == 1, words
        assert "taking" not in ran.out
    assert "taking" not in run("agents", "--store", store).err


def test_openclaw_alone_is_the_installation_in_the_usual_place(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_openclaw_store(tmp_path, synthetic_snapshot(sessions=2, seed=1), synthetic_sessions(sessions=2, seed=1))
    home.mkdir()
    (home / ".openclaw").symlink_to(tmp_path / "state")
    for words in (
        ("sessions", "--openclaw", "--agent", "main", "--json"),
        ("sessions", "--json"),
        ("sessions", "--json", "--openclaw"),
    ):
        ran = run(*words)
        assert len(ran.json) == 2
        assert f"taking the OpenClaw installation in {home / '.openclaw'} (the usual place)" in ran.err


def test_a_bad_argument_is_refused_before_any_store_is_taken(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMPROV_STORE", str(tmp_path / "none"))
    ran = run("forget", "--session", " ")
    assert (ran.code, "taking" in ran.err) == (2, False)
