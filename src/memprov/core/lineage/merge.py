"""How origins move: recording, transfer to a survivor, release, pruning.

Origins form a lattice (D14): two rows of one (entry, agent, session) join to the weakest class and the earliest time.
Everything here only joins. Hence recording and transfer may run twice, in any order, or be interrupted and run again
(I8), and a merge can add origins and lower trust but do neither the other way round (I7). What is never done here is
to take a row away because something else replaced it: a row goes when nothing shows the text any more
(``prunable_keys``), or when the publication it was reserved for certainly did not happen (``rows_to_release``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from attrs import field, frozen

from memprov.core.records import TRUST_ORDER, Origin, OriginClass, strings, weakest
from memprov.errors import InputError

__all__ = [
    "PublicationOutcome",
    "Transfer",
    "entry_classes",
    "join_origins",
    "keeps_reserved",
    "prunable_keys",
    "record_origins",
    "rows_to_release",
    "transfer_origins",
]

_RANK = {origin_class: rank for rank, origin_class in enumerate(TRUST_ORDER)}

_Source = tuple[str, str]  # (agent id, session id): an origin but for its entry
_Facts = tuple[int, int, str | None]  # (rank of the class, observed at, session key): what joins
_Sources = dict[_Source, _Facts]


@frozen
class Transfer:
    """``survivor`` replaces ``parents``, or was made of them: it inherits their origins (docs: host, promotion)."""

    survivor: str
    parents: tuple[str, ...] = field(converter=strings)


class PublicationOutcome(StrEnum):
    """What is known of a file replacement after it was asked for (docs: Origins and merges)."""

    NOT_ATTEMPTED = "not_attempted"
    REFUSED = "refused"
    COMMITTED = "committed"
    COMMITTED_THEN_FAILED = "committed_then_failed"
    UNKNOWN = "unknown"


def join_origins(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    """The rows with equal (entry, agent, session) joined to one, in the order of the table (D14)."""
    return tuple(_rows(_by_entry(origins)))


def entry_classes(origins: Iterable[Origin]) -> dict[str, OriginClass]:
    """Entry key -> the weakest class of its rows (D14)."""
    classes: dict[str, OriginClass] = {}
    for row in origins:
        classes[row.entry_key] = weakest((row.origin_class, classes.get(row.entry_key, row.origin_class)))
    return classes


def record_origins(
    existing: Iterable[Origin], new: Iterable[Origin], *, agent_id: str, forgotten: Iterable[str] = ()
) -> tuple[Origin, ...]:
    """The rows that recording ``new`` beside ``existing`` adds or weakens.

    One call records for one agent: a row of another is an error, and then nothing is recorded (docs: Origins and
    merges). Rows of sessions that were forgotten in the meantime are left out (I6).
    """
    new, gone = tuple(new), frozenset(strings(forgotten))
    for row in new:
        if row.agent_id != agent_id:
            raise InputError(
                f"origins recorded for agent {agent_id!r} hold one of agent {row.agent_id!r} (entry {row.entry_key!r})"
            )
    before = _by_entry(existing)
    after = {entry: dict(sources) for entry, sources in before.items()}
    for row in new:
        if row.session_id not in gone:
            _absorb(after.setdefault(row.entry_key, {}), _facts(row))
    return tuple(_rows(_changed(before, after)))


def transfer_origins(origins: Iterable[Origin], transfers: Iterable[Transfer]) -> tuple[Origin, ...]:
    """The rows that the transfers add or weaken, for every agent among ``origins``, in the order of the table.

    Transfers compose: a survivor that is itself a parent hands on what it inherits, whatever the order they come in,
    so the result is the least fixpoint and a second call on ``origins`` with the result adds nothing (I7, I8). A
    transfer to itself adds nothing; around a cycle every member ends with the origins of all.
    """
    before = _by_entry(origins)
    parents: dict[str, dict[str, None]] = {}  # dictionaries as ordered sets: no result depends on hashing
    heirs: dict[str, list[str]] = {}
    for transfer in transfers:
        known = parents.setdefault(transfer.survivor, {})
        for parent in transfer.parents:
            if parent not in known and parent != transfer.survivor:
                known[parent] = None
                heirs.setdefault(parent, []).append(transfer.survivor)

    after = {entry: dict(before.get(entry, {})) for entry in parents}
    order = _parents_first(parents)
    pending = set(order)
    while pending:  # one round is enough unless the transfers form a cycle
        for entry in order:
            if entry not in pending:
                continue
            pending.discard(entry)
            sources = after[entry]
            changes = [
                _absorb(sources, item)
                for parent in parents[entry]
                for item in after.get(parent, before.get(parent, {})).items()
            ]
            if any(changes):
                pending.update(heirs.get(entry, ()))
    return tuple(_rows(_changed(before, after)))


def keeps_reserved(outcome: PublicationOutcome) -> bool:
    """Do the origins that were reserved for a publication stay (F6, B09)?

    Only a replacement that certainly did not happen gives them up. Where these stay and the replacement is not known
    to have succeeded, the error is raised and nothing is retried as an append: the text may be there already.
    """
    return PublicationOutcome(outcome) not in (PublicationOutcome.NOT_ATTEMPTED, PublicationOutcome.REFUSED)


def rows_to_release(
    existing: Iterable[Origin], reserved: Iterable[Origin], outcome: PublicationOutcome
) -> tuple[Origin, ...]:
    """The reserved rows to delete again: those that were added, if the publication certainly did not happen.

    ``existing`` is what was there before the reservation. A row that the reservation merely weakened is not given
    back its trust: another writer may have weakened it as well, and trust is never raised (I7).
    """
    if keeps_reserved(outcome):
        return ()
    there = {(row.entry_key, row.agent_id, row.session_id) for row in existing}
    return tuple(row for row in reserved if (row.entry_key, row.agent_id, row.session_id) not in there)


def prunable_keys(
    candidates: Iterable[str],
    *,
    live: Iterable[str],
    preimages: Iterable[str],
    diaries: Iterable[str],
    reports: Iterable[str],
    indexed: Iterable[str],
) -> frozenset[str]:
    """The candidates that nothing refers to any more, so that their origins may go (I9, D13).

    Each argument is the set of keys found in one kind of place: live entries and recall rows, retained preimages,
    diaries, phase reports, and text in this agent's index. Keys that are no candidates are never touched.
    """
    places = (live, preimages, diaries, reports, indexed)
    return frozenset(strings(candidates)).difference(*(strings(keys) for keys in places))


def _facts(row: Origin) -> tuple[_Source, _Facts]:
    return (row.agent_id, row.session_id), (_RANK[row.origin_class], row.observed_at_ms, row.session_key)


def _by_entry(origins: Iterable[Origin]) -> dict[str, _Sources]:
    result: dict[str, _Sources] = {}
    for row in origins:
        _absorb(result.setdefault(row.entry_key, {}), _facts(row))
    return result


def _absorb(sources: _Sources, item: tuple[_Source, _Facts]) -> bool:
    """Join one source into those of an entry; did that change them?"""
    source, facts = item
    mine = sources.get(source)
    if mine == facts:
        return False
    joined = facts if mine is None else _join(mine, facts)
    sources[source] = joined
    return joined != mine


def _join(a: _Facts, b: _Facts) -> _Facts:
    # of two session keys the first by code point: any rule would do that makes this a join
    key = b[2] if a[2] is None else a[2] if b[2] is None else min(a[2], b[2])
    return max(a[0], b[0]), min(a[1], b[1]), key


def _changed(before: dict[str, _Sources], after: dict[str, _Sources]) -> dict[str, _Sources]:
    nothing: _Sources = {}
    return {
        entry: {source: facts for source, facts in sources.items() if before.get(entry, nothing).get(source) != facts}
        for entry, sources in after.items()
    }


def _rows(entries: dict[str, _Sources]) -> Iterator[Origin]:
    for entry in sorted(entries):
        for (agent, session), (rank, observed, key) in sorted(entries[entry].items(), key=lambda item: item[0]):
            yield Origin(entry, agent, session, key, TRUST_ORDER[rank], observed)


def _parents_first(parents: dict[str, dict[str, None]]) -> list[str]:
    """The survivors, each after its parents as far as cycles allow; without recursion, for chains of any depth."""
    order: list[str] = []
    seen: set[str] = set()
    for start, first in parents.items():
        stack = [] if start in seen else [(start, iter(first))]
        seen.add(start)
        while stack:
            entry, rest = stack[-1]
            for parent in rest:
                if parent in parents and parent not in seen:
                    seen.add(parent)
                    stack.append((parent, iter(parents[parent])))
                    break
            else:
                order.append(entry)
                stack.pop()
    return order
