"""Crashes on a real store: the process dies at every effect and leaves its lock; a rerun ends as if it never died."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memprov import Basis, Selectors, apply_plan, forget, open_openclaw, preview
from memprov.core.purge import PurgeEffect as Effect
from memprov.shell.port import Writer
from tests.golden import recorded_commands
from tests.test_golden import files_of, rows_of

_DIE_AT = """
import os, sys
from contextlib import contextmanager
from memprov import Selectors, forget, open_openclaw

state, workspace, session, at, when = sys.argv[1:]

class Dying:
    def __init__(self, inner):
        self.inner, self.number = inner, 0
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def apply(self, effect, basis):
        if when == "before" and self.number == int(at):
            os._exit(9)
        result = self.inner.apply(effect, basis)
        if when == "after" and self.number == int(at):
            os._exit(9)
        self.number += 1
        return result

class Store:
    def __init__(self, inner):
        self.inner = inner
    def __getattr__(self, name):
        return getattr(self.inner, name)
    @contextmanager
    def exclusive(self, **options):
        with self.inner.exclusive(**options) as writer:
            yield Dying(writer)

forget(Store(open_openclaw(state, workspace=workspace)), Selectors(sessions=[session]))
"""


class SimulatedError(Exception):
    """Raised by the test at an effect."""


class FaultyStore:
    """A store that raises before or after its ``at``-th effect."""

    def __init__(self, root: Path, at: int, when: str) -> None:
        self._inner = open_openclaw(root / "state", workspace=root / "ws")
        self._at, self._when = at, when
        self.identity = self._inner.identity
        self.catalogue = self._inner.catalogue
        self.named_origins = self._inner.named_origins
        self.began = self._inner.began
        self.neighbours = self._inner.neighbours
        self.snapshot = self._inner.snapshot
        self.answering = self._inner.answering
        self.sessions_standing = self._inner.sessions_standing

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[Writer]:
        with self._inner.exclusive(break_lock=break_lock) as writer:
            number = -1
            apply = writer.apply

            class Faulty:
                snapshot = writer.snapshot
                answering = writer.answering
                admit = writer.admit

                @staticmethod
                def apply(effect: Effect, basis: Basis) -> bool:
                    nonlocal number
                    number += 1
                    if (number, self._when) == (self._at, "before"):
                        raise SimulatedError
                    result = apply(effect, basis)
                    if (number, self._when) == (self._at, "after"):
                        raise SimulatedError
                    return result

            yield Faulty()


def everything(root: Path) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    return files_of(root / "ws"), rows_of(root / "state", "main")


@pytest.mark.needs_store("mixed", "meta", "vectors")
@pytest.mark.parametrize("name", ["mixed", "meta", "vectors"])
def test_I5_a_fault_at_every_effect_of_a_real_store_converges(
    name: str, unpacked_store: Callable[[str], Path], store_copy: Callable[..., Path]
) -> None:
    selectors = next(iter(recorded_commands(unpacked_store(name)))).selectors
    reference = store_copy(name)
    store = open_openclaw(reference / "state", workspace=reference / "ws")
    effects = preview(store, selectors).effects
    forget(store, selectors)
    expected = everything(reference)
    for number in range(len(effects)):
        for when in ("before", "after"):
            root = store_copy(name)
            faulty = FaultyStore(root, number, when)
            plan = preview(faulty, selectors)
            with pytest.raises(SimulatedError):
                forget(faulty, selectors)
            again = open_openclaw(root / "state", workspace=root / "ws")
            apply_plan(again, plan)  # what is left is part of what was reviewed
            assert everything(root) == expected, (number, when)
            assert preview(again, selectors).removes_nothing


@pytest.mark.needs_store("basic")
def test_I5_D19_a_process_that_dies_at_any_effect_leaves_a_lock_that_the_rerun_takes_over_at_once(
    unpacked_store: Callable[[str], Path], store_copy: Callable[..., Path]
) -> None:
    selectors = next(iter(recorded_commands(unpacked_store("basic")))).selectors
    reference = store_copy("basic")
    store = open_openclaw(reference / "state", workspace=reference / "ws")
    count = len(preview(store, selectors).effects)
    forget(store, selectors)
    expected = everything(reference)
    for number in range(count):
        root = store_copy("basic")
        words = [str(root / "state"), str(root / "ws"), selectors.sessions[0], str(number), "after"]
        died = subprocess.run([sys.executable, "-c", _DIE_AT, *words], check=False)
        assert died.returncode == 9
        forget(open_openclaw(root / "state", workspace=root / "ws"), Selectors(sessions=selectors.sessions))
        assert everything(root) == expected, number
