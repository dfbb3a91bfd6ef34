"""Planning inline and on a pool of processes: the same plan, byte for byte, and what the pool costs or gains.

    python -m benchmarks.executors [--lines 100000 1000000] [--json FILE]

Only the map runs in the pool: scanning corpus files and scrubbing memory files. Their texts travel to the workers and
the findings back, while the rows and the fold stay where they are; so what a pool can gain is bounded by the share of
scan and scrub that ``benchmarks.planning`` shows, and a pool is for files that cost more to scrub than to send.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from attrs import frozen

from benchmarks.measure import Row, Tables, apart, options, timed
from benchmarks.planning import PER_SESSION, SHARES, chosen
from memprov import MemorySnapshot, Origin, Selection, Selectors, SessionRecord, StoreIdentity, preview
from memprov.core.purge import Mapper, answer_from
from memprov.shell.port import Answering, Neighbours, Writer
from memprov.shell.remembering import Remembered
from memprov.testing import synthetic_sessions, synthetic_snapshot

__all__ = ["main", "measure"]


@frozen
class InMemory:
    """A store for reading only."""

    held: MemorySnapshot
    sessions: tuple[SessionRecord, ...]

    @property
    def identity(self) -> StoreIdentity:
        return self.held.store

    def catalogue(self) -> tuple[SessionRecord, ...]:
        return self.sessions

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:  # noqa: ARG002
        return ()

    def began(self, session_ids: Collection[str]) -> dict[str, int]:  # noqa: ARG002
        return {}

    def neighbours(self) -> Neighbours:
        return Neighbours()

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:  # noqa: ARG002
        return self.held

    def sessions_standing(self) -> object | None:
        return None

    def answering(
        self,
        selection: Selection,  # noqa: ARG002
        mapper: Mapper = map,  # noqa: ARG002
        remembered: Remembered | None = None,  # noqa: ARG002
    ) -> Answering:
        return partial(answer_from, self.held)

    def exclusive(self, *, break_lock: bool = False) -> AbstractContextManager[Writer]:
        raise NotImplementedError


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes are there already."""
    with ProcessPoolExecutor(workers) as executor:
        list(executor.map(abs, range(workers)))
        yield executor


def measure(lines: int, percent: int) -> Row:
    """The same preview with and without a pool."""
    sessions = lines // PER_SESSION
    store = InMemory(synthetic_snapshot(sessions, PER_SESSION), synthetic_sessions(sessions))
    selectors = Selectors(sessions=chosen(sessions, percent).session_ids)
    workers = os.cpu_count() or 1
    with pool(workers) as executor:
        pooled, _, in_pool = timed(lambda: preview(store, selectors, executor=executor))
    inline, _, alone = timed(lambda: preview(store, selectors))
    assert pooled.digest == inline.digest
    assert pooled == inline
    return {"workers": workers, "inline wall s": alone, "pool wall s": in_pool, "pool / inline": in_pool / alone}


def main(arguments: list[str] | None = None) -> None:
    given = options(__doc__, "lines", (100_000, 1_000_000)).parse_args(arguments)
    tables = Tables(given.json)
    for lines in given.lines:
        for name, percent in SHARES.items():
            row = apart(measure, lines=lines, percent=percent)
            tables.add("A pool of processes", {"forgotten": name, "lines": lines, **row})
    tables.keep()


if __name__ == "__main__":
    main()
