"""Lineage at size: chains and fans of transfers, their edges, forgetting at their end, and pruning.

    python -m benchmarks.lineage [--depth 100 1000] [--fan 1000 10000] [--keys 100000 1000000] [--json FILE]

A chain is the worst order for a merge of merges (each survivor is the next parent), a fan the widest. Pruning asks
about that many keys, a tenth of which are still shown somewhere. Growth near the growth of the size is what is wanted.
CPU seconds, medians: compare within a run, do not quote.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.measure import Tables, median_cpu, options
from memprov import MemoryFile, MemorySnapshot, Origin, OriginTable, StoreIdentity, open_store, prunable_keys
from memprov.core.consolidation.prune import plan_prune
from memprov.core.lineage import Transfer, TransferEdge, edges_after_drop, edges_to, transfer_origins
from memprov.core.purge import DropOrigins
from memprov.core.text import promotion_marker
from memprov.core.writing import PruneOrigins, RecordOrigins, RecordTransfers

__all__ = ["main", "measure_chain", "measure_fan", "measure_prune"]

Found = tuple[str, float]


def names(count: int, kind: str = "k") -> list[str]:
    return [f"memory:claim:{kind}{number:08d}" for number in range(count)]


def measure_chain(depth: int) -> Iterator[Found]:
    """A line that was merged again and again; every entry brought one session of its own."""
    keys = names(depth)
    origins = [Origin(key, "main", f"s{number}") for number, key in enumerate(keys)]
    transfers = [Transfer(after, (before,)) for before, after in pairwise(keys)]
    edges = [TransferEdge(t.survivor, t.parents[0], f"t{n}") for n, t in enumerate(transfers)]
    yield "chain: one transfer at its end", median_cpu(lambda: transfer_origins(origins, transfers[-1:]))
    if depth <= 1000:  # the result itself is quadratic: every survivor holds all before it
        yield "chain: all transfers at once", median_cpu(lambda: transfer_origins(origins, transfers), 1)
    yield "chain: the way to its end", median_cpu(lambda: edges_to(edges, keys[-1]))
    known = {keys[-1]}
    yield "chain: edges after pruning all else", median_cpu(lambda: edges_after_drop(edges, known))
    assert len(edges_to(edges, keys[-1])) == depth - 1
    yield from measure_ledger(keys, [Origin(keys[-1], "main", f"s{n}") for n in range(depth)], edges, "chain")


def measure_fan(parents: int) -> Iterator[Found]:
    """One line made of as many as this; each brought one session."""
    keys = names(parents)
    origins = [Origin(key, "main", f"s{number}") for number, key in enumerate(keys)]
    transfer = Transfer("heir", keys)
    yield "fan: the transfer", median_cpu(lambda: transfer_origins(origins, [transfer]))
    added = transfer_origins(origins, [transfer])
    assert len(added) == parents
    table = OriginTable.from_rows([*origins, *added])
    yield "fan: select one session", median_cpu(lambda: table.select(["s7"]))
    edges = [TransferEdge("heir", key, "t") for key in keys]
    yield "fan: the ways to it", median_cpu(lambda: edges_to(edges, "heir"))
    yield from measure_ledger([*keys, "heir"], [*origins, *added], edges, "fan")


def measure_ledger(keys: list[str], origins: list[Origin], edges: list[TransferEdge], name: str) -> Iterator[Found]:
    """The same in an embedded store, durably."""
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(Path(directory) / "state", workspace=Path(directory) / "workspace")
        with store.exclusive() as writer:
            yield f"{name}: record origins", median_cpu(lambda: writer.write(RecordOrigins("main", tuple(origins))), 1)
            yield f"{name}: record edges", median_cpu(lambda: writer.write(RecordTransfers("main", tuple(edges))), 1)
            yield f"{name}: prune the parents", median_cpu(lambda: writer.write(PruneOrigins("main", keys[:-1])), 1)
            assert len(writer.snapshot().transfers) == len(edges)
            yield f"{name}: forget the survivor", median_cpu(lambda: writer.write(DropOrigins("main", (keys[-1],))), 1)
            assert writer.snapshot().transfers == ()


def measure_prune(count: int) -> Iterator[Found]:
    """Which of as many keys nothing shows any more."""
    keys = names(count)
    shown = [set(keys[place::50]) for place in range(5)]
    places = dict(zip(("live", "preimages", "diaries", "reports", "indexed"), shown, strict=True))
    yield "prune: five sets", median_cpu(lambda: prunable_keys(keys, **places), 3)
    left = prunable_keys(keys, **places)
    assert len(left) == count - count // 10
    text = "".join(f"{promotion_marker(key)}\n- said\n" for key in keys[:: max(count // 1000, 1)])
    snapshot = MemorySnapshot(
        StoreIdentity("model", "main", "/state", "/workspace"),
        files=(MemoryFile("MEMORY.md", text),),
        origins=OriginTable.from_rows(Origin(key, "main", "s") for key in keys),
    )
    asked = frozenset(keys)
    yield "prune: a bounded plan", median_cpu(lambda: plan_prune(snapshot, asked), 3)
    (effect,) = plan_prune(snapshot, asked)
    yield "prune: one round on the model", median_cpu(lambda: snapshot.origins.without(effect.entry_keys), 3)


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, "depth", (100, 300, 1000, 3000))
    parser.add_argument("--fan", type=int, nargs="+", default=[300, 1000, 3000, 10_000])
    parser.add_argument("--keys", type=int, nargs="+", default=[30_000, 100_000, 300_000, 1_000_000])
    given = parser.parse_args(arguments)
    tables = Tables(given.json)
    for measure, sizes in ((measure_chain, given.depth), (measure_fan, given.fan), (measure_prune, given.keys)):
        for size in sorted(sizes):
            for name, seconds in measure(size):
                tables.add("Lineage", {"what": name, "size": size, "CPU s": seconds})
    tables.keep()


if __name__ == "__main__":
    main()
