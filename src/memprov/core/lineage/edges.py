"""Which entry was made of which others: the edges beside the origins.

Origins answer *whose is this line* in one look-up, however many merges lie between: a survivor has the origins of all
its parents. How a session came there is another question, and edges answer it: one for each parent that a transfer
took in. They name entry keys and nothing else, so that forgetting an entry takes them along.

An edge may outlive its parent, whose origins are pruned once nothing shows its text any more, but never what it leads
to: an edge from which no way leads to an entry with origins says nothing about anything, and goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable

from attrs import field, frozen

__all__ = ["TransferEdge", "edges_after_drop", "edges_to", "joined_edges"]


@frozen
class TransferEdge:
    """``survivor`` took in the origins of ``parent`` in this transfer. ``action`` is what was decided then.

    The time is what the store knows, and no part of what an edge is.
    """

    survivor: str
    parent: str
    transfer_id: str
    action: str = "merged"
    at_ms: int = field(default=0, eq=False)


def joined_edges(edges: Iterable[TransferEdge]) -> tuple[TransferEdge, ...]:
    """The edges, each once, in the order of the ledger."""
    return tuple(sorted({(e.survivor, e.parent, e.transfer_id): e for e in edges}.values(), key=_order))


def edges_after_drop(
    edges: Iterable[TransferEdge], known: Container[str], *, named: Container[str] = ()
) -> tuple[TransferEdge, ...]:
    """The edges that stay when the keys with origins are ``known``; none that names one of ``named`` does."""
    edges = tuple(edge for edge in edges if edge.survivor not in named and edge.parent not in named)
    above = _parents(edges)
    pending = [edge.survivor for edge in edges if edge.survivor in known]
    reached: set[str] = set()
    while pending:
        key = pending.pop()
        if key not in reached:
            reached.add(key)
            pending.extend(edge.parent for edge in above.get(key, ()))
    return tuple(edge for edge in edges if edge.survivor in reached)


def edges_to(edges: Iterable[TransferEdge], key: str) -> tuple[TransferEdge, ...]:
    """Every edge on a way that leads to this entry, the nearest first; each once, around cycles too."""
    above = _parents(edges)
    found: dict[TransferEdge, None] = {}
    level, seen = [key], {key}
    while level:
        below: list[str] = []
        for edge in (edge for survivor in level for edge in sorted(above.get(survivor, ()), key=_order)):
            found[edge] = None
            if edge.parent not in seen:
                seen.add(edge.parent)
                below.append(edge.parent)
        level = below
    return tuple(found)


def _parents(edges: Iterable[TransferEdge]) -> dict[str, list[TransferEdge]]:
    above: defaultdict[str, list[TransferEdge]] = defaultdict(list)
    for edge in edges:
        above[edge.survivor].append(edge)
    return above


def _order(edge: TransferEdge) -> tuple[str, str, str]:
    return edge.survivor, edge.parent, edge.transfer_id
