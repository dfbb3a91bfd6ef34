"""Lineage at size: chains and fans of transfers, their edges, forgetting at their end, and pruning.

    python -m benchmarks.lineage [--depth 100 1000] [--fan 1000 10000] [--keys 100000 1000000]

A chain is the worst order for a merge of merges (each survivor is the next parent), a fan the widest. Pruning asks
about that many keys, a tenth of which are still shown somewhere. Growth near the growth of the size is what is wanted.
Times are medians on whatever machine this is: compare within a run, do not quote.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from memprov import MemoryFile, MemorySnapshot, Origin, OriginTable, StoreIdentity, open_store, prunable_keys
from memprov.core.consolidation.prune import plan_prune
from memprov.core.lineage import Transfer, TransferEdge, edges_after_drop, edges_to, transfer_origins
from memprov.core.purge import DropOrigins
from memprov.core.text import promotion_marker
from memprov.core.writing import PruneOrigins, RecordOrigins, RecordTransfers

__all__ = ["main", "measure_chain", "measure_fan", "measure_prune"]

REPEATS = 5

Row = tuple[str, float]


def timed(what: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        what()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def names(count: int, kind: str = "k") -> list[str]:
    return [f"memory:claim:{kind}{number:08d}" for number in range(count)]


def measure_chain(depth: int) -> Iterator[Row]:
    """A line that was merged again and again; every entry brought one session of its own."""
    keys = names(depth)
    origins = [Origin(key, "main", f"s{number}") for number, key in enumerate(keys)]
    transfers = [Transfer(after, (before,)) for before, after in pairwise(keys)]
    edges = [TransferEdge(t.survivor, t.parents[0], f"t{n}") for n, t in enumerate(transfers)]
    yield "chain: one transfer at its end", timed(lambda: transfer_origins(origins, transfers[-1:]))
    if depth <= 1000:  # the result itself is quadratic: every survivor holds all before it
        yield "chain: all transfers at once", timed(lambda: transfer_origins(origins, transfers), 1)
    yield "chain: the way to its end", timed(lambda: edges_to(edges, keys[-1]))
    known = {keys[-1]}
    yield "chain: edges after pruning all else", timed(lambda: edges_after_drop(edges, known))
    assert len(edges_to(edges, keys[-1])) == depth - 1
    yield from measure_ledger(keys, [Origin(keys[-1], "main", f"s{n}") for n in range(depth)], edges, "chain")


def measure_fan(parents: int) -> Iterator[Row]:
    """One line made of as many as this; each brought one session."""
    keys = names(parents)
    origins = [Origin(key, "main", f"s{number}") for number, key in enumerate(keys)]
    transfer = Transfer("heir", keys)
    yield "fan: the transfer", timed(lambda: transfer_origins(origins, [transfer]))
    added = transfer_origins(origins, [transfer])
    assert len(added) == parents
    table = OriginTable.from_rows([*origins, *added])
    yield "fan: select one session", timed(lambda: table.select(["s7"]))
    edges = [TransferEdge("heir", key, "t") for key in keys]
    yield "fan: the ways to it", timed(lambda: edges_to(edges, "heir"))
    yield from measure_ledger([*keys, "heir"], [*origins, *added], edges, "fan")


def measure_ledger(keys: list[str], origins: list[Origin], edges: list[TransferEdge], name: str) -> Iterator[Row]:
    """The same in an embedded store, durably."""
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory) / "state", workspace=Path(directory) / "workspace")
        with store.exclusive() as writer:
            yield f"{name}: record origins", timed(lambda: writer.write(RecordOrigins("main", tuple(origins))), 1)
            yield f"{name}: record edges", timed(lambda: writer.write(RecordTransfers("main", tuple(edges))), 1)
            yield f"{name}: prune the parents", timed(lambda: writer.write(PruneOrigins("main", keys[:-1])), 1)
            assert len(writer.snapshot().transfers) == len(edges)
            yield f"{name}: forget the survivor", timed(lambda: writer.write(DropOrigins("main", (keys[-1],))), 1)
            assert writer.snapshot().transfers == ()


def measure_prune(count: int) -> Iterator[Row]:
    """Which of as many keys nothing shows any more."""
    keys = names(count)
    shown = [set(keys[place::50]) for place in range(5)]
    places = dict(zip(("live", "preimages", "diaries", "reports", "indexed"), shown, strict=True))
    yield "prune: five sets", timed(lambda: prunable_keys(keys, **places), 3)
    left = prunable_keys(keys, **places)
    assert len(left) == count - count // 10
    text = "".join(f"{promotion_marker(key)}\n- said\n" for key in keys[:: max(count // 1000, 1)])
    snapshot = MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=(MemoryFile("MEMORY.md", text),),
        origins=OriginTable.from_rows(Origin(key, "main", "s") for key in keys),
    )
    asked = frozenset(keys)
    yield "prune: a bounded plan", timed(lambda: plan_prune(snapshot, asked), 3)
    (effect,) = plan_prune(snapshot, asked)
    yield "prune: one round on the model", timed(lambda: snapshot.origins.without(effect.entry_keys), 3)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--fan", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--keys", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args(arguments)
    for measure, sizes in (
        (measure_chain, options.depth),
        (measure_fan, options.fan),
        (measure_prune, options.keys),
    ):
        found: dict[str, list[float]] = {}
        for size in sorted(sizes):
            for name, value in measure(size):
                found.setdefault(name, []).append(value)
                print(f"{size:>8}  {name:<38} {value:10.5f}", flush=True)
        if len(sizes) > 1:
            print(f"\ngrowth, {max(sizes) / min(sizes):g} times as many:")
            for name, values in found.items():
                if len(values) > 1:
                    print(f"  {name:<46} {values[-1] / max(values[0], 1e-9):8.1f}")
            print()


if __name__ == "__main__":
    main()
