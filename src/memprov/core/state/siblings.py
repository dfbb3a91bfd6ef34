"""The other agents of a workspace, as far as one agent's purge must speak of them (I11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

__all__ = ["Sibling", "SiblingIndex", "sibling_views"]


@frozen
class SiblingIndex:
    """Another agent of the same workspace, and what its index was made from: the digests of memory files, by path."""

    agent_id: str
    sources: tuple[tuple[str, str], ...] = ()


@frozen
class Sibling:
    """Another agent of the workspace. ``shown`` are memory files that its index has, ``stale`` those of them that are
    gone or hold another text than the index was made from.
    """

    agent_id: str
    shown: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()


def sibling_views(siblings: Iterable[SiblingIndex], digests: Mapping[str, str]) -> tuple[Sibling, ...]:
    """The other agents of the workspace, given the digests of its memory files, by path, of all that any index has."""
    return tuple(
        Sibling(
            index.agent_id,
            frozenset(path for path, _ in index.sources),
            frozenset(path for path, made_from in index.sources if digests.get(path) != made_from),
        )
        for index in siblings
    )
