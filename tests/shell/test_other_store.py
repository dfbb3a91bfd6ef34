"""A call that is of one kind of store refuses the other with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

import memprov
from memprov import InputError, SessionRecord, StoreNotFoundError, open_openclaw, open_store
from tests.shell.openclaw.lab import Lab


def takes_the_embedded_store(function: object) -> bool:
    if not inspect.isfunction(function):
        return False
    return [p.annotation for p in inspect.signature(function).parameters.values()][:1] == ["NativeStore"]


EMBEDDED_ONLY = [name for name in memprov.__all__ if takes_the_embedded_store(getattr(memprov, name))]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "claw")


def test_there_are_calls_of_the_embedded_store_only() -> None:
    assert {"ingest", "promote", "search", "sync_index", "consolidate"} <= set(EMBEDDED_ONLY)


@pytest.mark.parametrize("name", EMBEDDED_ONLY)
def test_a_call_of_the_embedded_store_refuses_an_installation_by_name(lab: Lab, name: str) -> None:
    call: Callable[..., object] = getattr(memprov, name)
    with pytest.raises(InputError, match=rf"^{name} is of memprov's own store .* not of the OpenClaw installation"):
        call(lab.open())
    with pytest.raises(InputError, match="not of a str"):
        call(store="somewhere")


def test_an_installation_is_no_place_for_a_store_of_our_own(lab: Lab) -> None:
    for create in (True, False):
        with pytest.raises(StoreNotFoundError, match="open_openclaw"):
            open_store(lab.state, create=create)
    assert not list(lab.state.rglob("ledger.sqlite"))


def test_a_store_of_our_own_is_no_installation(tmp_path: Path) -> None:
    open_store(tmp_path / "store").record_session(SessionRecord("main", "s1"))
    with pytest.raises(StoreNotFoundError, match="open_store"):
        open_openclaw(tmp_path / "store")
