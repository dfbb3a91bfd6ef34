"""What vanishes and comes back while a purge runs: files, folders, the whole workspace, on both stores (F01, D24).

An editor that renames and rewrites, a disk that is unmounted, a synchroniser: at any effect something that the purge
needs may be away for a moment. It ends with everything gone, or says that it does not and finishes when run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import evolve

from memprov import Basis, PartialError, Report, Selectors, forget, open_openclaw, open_store, preview
from memprov.core.purge import PurgeEffect
from memprov.shell.port import Store, Writer
from memprov.testing import synthetic_snapshot
from tests.golden import recorded_commands
from tests.shell.native.loading import scratch, write_snapshot
from tests.test_golden import files_of

Meddler = Callable[[Path, int, str], None]


class Meddled:
    """A store in whose workspace somebody meddles: ``meddle(workspace, number, when)`` around every effect."""

    def __init__(self, inner: Any, workspace: Path, meddle: Meddler) -> None:
        self._inner, self._workspace, self._meddle = inner, workspace, meddle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[Writer]:
        outer, number = self, -1
        with self._inner.exclusive(break_lock=break_lock) as writer:

            class Between:
                def __getattr__(self, name: str) -> Any:
                    return getattr(writer, name)

                def apply(self, effect: PurgeEffect, basis: Basis) -> bool:
                    nonlocal number
                    number += 1
                    outer._meddle(outer._workspace, number, "before")
                    try:
                        done: bool = writer.apply(effect, basis)
                    finally:
                        outer._meddle(outer._workspace, number, "after")
                    return done

            yield Between()


def away(name: str, at: int, back: str) -> Meddler:
    """Something is renamed away before effect ``at`` and comes back after it, or one effect later."""

    def meddle(workspace: Path, number: int, when: str) -> None:
        place = workspace / name if name else workspace
        hidden = workspace.parent / "hidden"
        if (number, when) == (at, "before") and place.exists():
            place.rename(hidden)
        if ((number, when) == (at, "after") if back == "at once" else number > at) and hidden.exists():
            if place.is_dir():  # somebody made it anew
                return
            place.unlink(missing_ok=True)
            hidden.rename(place)

    return meddle


def restored(workspace: Path) -> None:
    """Whoever took it puts it back before the purge is run again."""
    hidden = workspace.parent / "hidden"
    if hidden.exists():
        for place in (workspace, workspace / "MEMORY.md", workspace / "memory"):
            if not place.exists():
                hidden.rename(place)
                return


def run(store: Store, selectors: Selectors) -> Report | PartialError:
    try:
        return forget(store, selectors)
    except PartialError as error:
        return error


@pytest.mark.needs_store("mixed")
@pytest.mark.parametrize(("name", "back"), [("MEMORY.md", "at once"), ("memory", "later"), ("", "at once")])
def test_F01_D24_what_is_away_at_any_effect_is_purged_or_named_and_then_purged(
    name: str,
    back: str,
    unpacked_store: Callable[[str], Path],
    store_copy: Callable[..., Path],
) -> None:
    selectors = next(iter(recorded_commands(unpacked_store("mixed")))).selectors
    reference = store_copy("mixed")
    store = open_openclaw(reference / "state", workspace=reference / "ws")
    count = len(preview(store, selectors).effects)
    forget(store, selectors)
    expected = files_of(reference / "ws")
    stopped = 0
    for number in range(count):
        root = store_copy("mixed")
        inner = open_openclaw(root / "state", workspace=root / "ws")
        ended = run(Meddled(inner, root / "ws", away(name, number, back)), selectors)
        restored(root / "ws")
        if isinstance(ended, PartialError):
            stopped += 1
            assert ended.remaining
            forget(inner, selectors)
        assert files_of(root / "ws") == expected, (name, number, back)
        assert preview(inner, selectors).removes_nothing
    assert stopped, "the twin: at the effect on the file itself it cannot go through"


@pytest.mark.needs_store("mixed")
def test_F01a_a_file_that_appears_during_a_purge_is_purged_too(
    unpacked_store: Callable[[str], Path], store_copy: Callable[..., Path]
) -> None:
    selectors = next(iter(recorded_commands(unpacked_store("mixed")))).selectors
    root = store_copy("mixed")
    store = open_openclaw(root / "state", workspace=root / "ws")
    count = len(preview(store, selectors).effects)
    corpus = "".join(p.read_text() for p in sorted((root / "ws/memory/.dreams/session-corpus").glob("*.txt")))
    quoted = next(line.split("] ", 1)[1] for line in corpus.splitlines() if selectors.sessions[0] in line)
    for number in range(count):
        copy = store_copy("mixed")
        inner = open_openclaw(copy / "state", workspace=copy / "ws")

        def appear(workspace: Path, at: int, when: str, number: int = number) -> None:
            if (at, when) == (number, "before"):
                (workspace / "memory" / "new.md").write_text(f"mine\n- {quoted}\nmine too\n")

        report = run(Meddled(inner, copy / "ws", appear), selectors)
        assert isinstance(report, Report), number
        assert (copy / "ws/memory/new.md").read_text() == "mine\nmine too\n", number
        assert any("memory/new.md" in warning for warning in report.warnings)


def test_F01_D24_an_embedded_store_whose_file_is_away() -> None:
    snapshot = synthetic_snapshot(60, seed=4)
    selectors = Selectors(sessions=sorted(snapshot.origins.sessions)[:2])
    with scratch() as top:
        reference = open_store(top / "reference")
        write_snapshot(reference, snapshot)
        plan = preview(reference, selectors)
        paths = [*(effect.path for effect in plan.effects if hasattr(effect, "path")), "memory", ""]
        forget(reference, selectors)
        expected = files_of(top / "reference" / "workspace")
        for number in range(len(plan.effects)):
            for path in paths:
                directory = top / f"{number}-{paths.index(path)}"
                workspace, inner = directory / "workspace", open_store(directory)
                write_snapshot(inner, snapshot)
                ended = run(Meddled(inner, workspace, away(path, number, "at once")), selectors)
                if isinstance(ended, PartialError):
                    assert ended.remaining
                    forget(inner, selectors)
                assert files_of(workspace) == expected, (number, path)
                assert preview(inner, selectors).removes_nothing


def rows_away(database: Path, tables: dict[str, str], at: int) -> Meddler:
    """Rows are deleted before effect ``at`` and put back after it, by another hand than the purge's."""
    taken: dict[str, list[tuple[Any, ...]]] = {}

    def meddle(_workspace: Path, number: int, when: str) -> None:
        if number != at:
            return
        with apsw.Connection(str(database)) as connection:
            connection.set_busy_timeout(5000)
            for table, where in tables.items():
                if when == "before":
                    taken[table] = list(connection.execute(f"SELECT * FROM {table} WHERE {where}"))  # noqa: S608  # ours
                    connection.execute(f"DELETE FROM {table} WHERE {where}")  # noqa: S608  # ours
                for row in taken[table] if when == "after" else ():
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)  # noqa: S608  # ours

    return meddle


@pytest.mark.needs_store("mixed")
def test_D24_rows_that_are_away_at_any_effect_are_purged_when_they_are_back(
    unpacked_store: Callable[[str], Path], store_copy: Callable[..., Path]
) -> None:
    selectors = next(iter(recorded_commands(unpacked_store("mixed")))).selectors
    reference = store_copy("mixed")
    store = open_openclaw(reference / "state", workspace=reference / "ws")
    count = len(preview(store, selectors).effects)
    forget(store, selectors)
    state = {"plugin_state_entries": "plugin_id = 'memory-core' AND namespace <> 'short-term-locks'"}
    for number in range(count):
        root = store_copy("mixed")
        inner = open_openclaw(root / "state", workspace=root / "ws")
        ended = run(
            Meddled(inner, root / "ws", rows_away(root / "state/state/openclaw.sqlite", state, number)), selectors
        )
        if isinstance(ended, PartialError):
            forget(inner, selectors)
        assert preview(inner, selectors).removes_nothing, number
        assert files_of(root / "ws") == files_of(reference / "ws"), number
        assert evolve(inner.snapshot(), revision=0) == evolve(store.snapshot(), store=inner.identity, revision=0), (
            number
        )


def test_D24_rows_of_an_embedded_store_that_are_away() -> None:
    snapshot = synthetic_snapshot(60, seed=4)
    selectors = Selectors(sessions=sorted(snapshot.origins.sessions)[:2])
    everything = dict.fromkeys(("recall", "signals", "checkpoints", "preimages"), "true")
    with scratch() as top:
        reference = open_store(top / "reference")
        write_snapshot(reference, snapshot)
        count = len(preview(reference, selectors).effects)
        forget(reference, selectors)
        for number in range(count):
            directory = top / str(number)
            inner = open_store(directory)
            write_snapshot(inner, snapshot)
            (ledger,) = (directory / "shared").rglob("ledger.sqlite")
            ended = run(Meddled(inner, directory / "workspace", rows_away(ledger, everything, number)), selectors)
            if isinstance(ended, PartialError):
                forget(inner, selectors)
            assert preview(inner, selectors).removes_nothing, number
            assert files_of(directory / "workspace") == files_of(top / "reference" / "workspace"), number
            same = evolve(inner.snapshot(), store=reference.identity, revision=0)
            assert same == evolve(reference.snapshot(), revision=0), number
