"""Planning on a cluster, and a fleet of stores purged by one: collected where dask is installed (`nox -s dask`)."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

import pytest
from attrs import evolve

from memprov import Report, Selectors, forget, open_store, preview
from memprov.shell.native import NativeStore
from memprov.shell.workspace.reading import WorkspaceReading
from tests.shell.native.test_native_changes import Host

T = TypeVar("T")
FORGET = Selectors(sessions=["a"])


def remembering(directory: Path) -> NativeStore:
    """A store that took in two sessions, with notes that quote one of them."""
    host = Host(directory, "a", "b", length=30)
    host.sweep()
    for number in range(40):
        path = Path(host.store._layout.workspace) / "memory" / f"2026-01-{number:02}.md"
        path.parent.mkdir(exist_ok=True)
        said = [host.said(name, 1 + number % 30).content for name in "ab"]
        path.write_text("".join(f"- {text}\n" for text in said) + f"- a line of note {number}\n", "utf-8")
    return host.store


def forgotten_in(directory: str) -> Report:
    """What one worker does for one agent of the fleet."""
    return forget(open_store(directory), FORGET)


class KillingExecutor(Executor):
    """Kills a process of the pool after the first result has arrived."""

    def __init__(self, pool: Executor, victim: int) -> None:
        self.pool, self.victim = pool, victim

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[object], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[T]:
        for result in self.pool.map(fn, *iterables, timeout=timeout, chunksize=chunksize):
            yield result
            if self.victim:
                os.kill(self.victim, signal.SIGKILL)
                self.victim = 0


if importlib.util.find_spec("distributed"):
    from distributed import Client, LocalCluster

    @pytest.fixture(scope="module")
    def client() -> Iterator[Client]:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
            Client(cluster) as client,
        ):
            yield client

    @pytest.fixture(autouse=True)
    def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules[WorkspaceReading.__module__], "_BATCH", 10_000)

    def test_I14_a_plan_made_on_a_cluster_is_the_plan_made_here_though_a_worker_dies(
        tmp_path: Path, client: Client
    ) -> None:
        store = remembering(tmp_path)
        here = preview(store, FORGET)
        assert here.report.artifacts.memory_lines > 10
        assert preview(store, FORGET, executor=client.get_executor()).to_json() == here.to_json()
        victim = next(iter(client.run(os.getpid).values()))
        killing = KillingExecutor(client.get_executor(), victim)
        assert preview(store, FORGET, executor=killing).to_json() == here.to_json()
        assert not killing.victim, "the worker was killed on the way"

    def test_a_fleet_is_purged_by_a_cluster_as_by_one_machine(tmp_path: Path, client: Client) -> None:
        for name in ("one", "two", "three"):
            remembering(tmp_path / "here" / name)
            remembering(tmp_path / "there" / name)
        here, there = (sorted((tmp_path / place).iterdir()) for place in ("here", "there"))
        reports = client.gather(client.map(forgotten_in, [str(path) for path in there], pure=False))
        placeless = [evolve(forgotten_in(str(path)), plan_digest="") for path in here]
        assert [evolve(report, plan_digest="") for report in reports] == placeless
        for mine, theirs in zip(here, there, strict=True):
            files = [
                {path.relative_to(top): path.read_bytes() for path in (top / "workspace").rglob("*") if path.is_file()}
                for top in (mine, theirs)
            ]
            assert files[0] == files[1]
