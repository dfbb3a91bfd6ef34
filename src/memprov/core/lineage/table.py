"""Origin rows as columns: select the entries of some sessions out of 10^7 rows in milliseconds.

A ledger's origins are the one thing that grows with everything an agent was ever told, so they are never Python objects
by the row. Strings are pooled; a row is six numbers. Three things make selection cheap: pools are sorted, so that a
code's order is its string's order; rows are sorted by entry, so that the rows of a key are one slice and its degree a
difference; and postings lead from a session to its rows. The direction of that index is what matters: a mask over all
rows, or a scan for the degree, costs ten times as much (TESTING, "Speed").

Pools hold nothing but what a row uses and equal rows are joined (D14), so a table has one form only: equal tables are
equal arrays.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, repeat
from typing import Any, TypeVar

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from memprov.core.records import TRUST_ORDER, Origin, strings
from memprov.core.text import to_bytes
from memprov.errors import CorruptStoreError, InputError

__all__ = ["Basis", "Lineage", "OriginTable", "lineage_digest"]

_Codes = NDArray[np.int32]
_T = TypeVar("_T")
_FEW = 16
_CLASS_CODES = {str(origin_class): code for code, origin_class in enumerate(TRUST_ORDER)}


@frozen
class Lineage:
    """The entries that a selection reaches, sorted.

    ``mixed`` are those of ``entry_keys`` that have unselected origins as well; they are removed whole all the same.
    """

    entry_keys: tuple[str, ...]
    mixed: tuple[str, ...]


@frozen
class Basis:
    """What a plan was computed from, small enough to be compared inside a transaction (docs: order, step 0).

    ``lineage`` is the digest of every origin that belongs to one of the sessions or one of the keys.
    """

    lineage: str
    session_ids: tuple[str, ...]
    entry_keys: tuple[str, ...]


def lineage_digest(pairs: Iterable[tuple[str, str]]) -> str:
    """The identity of a lineage: a digest of (entry key, session id) pairs, in whatever order they come (docs: Purge
    of an index).

    A store computes it from the rows whose session is in ``Basis.session_ids`` or whose key is in
    ``Basis.entry_keys``. Lengths are hashed too, so that no two lists of pairs share a digest by running together.
    """
    parts = map(to_bytes, chain.from_iterable(sorted(set(pairs))))
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()


@frozen(eq=False)
class OriginTable:
    """The origin rows of a ledger; row ``i`` of every ``*_codes`` column, of ``classes`` and ``observed_at_ms`` is one.

    Make one with ``from_rows`` or ``from_columns``; the fields are for reading. Classes are positions in
    ``trust.TRUST_ORDER``. A pool of session keys holds ``None`` where a row has none.
    """

    entries: tuple[str, ...]
    agents: tuple[str, ...]
    sessions: tuple[str, ...]
    session_keys: tuple[str | None, ...]
    entry_codes: _Codes
    agent_codes: _Codes
    session_codes: _Codes
    key_codes: _Codes
    classes: NDArray[np.int8]
    observed_at_ms: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<OriginTable: {len(self)} rows of {len(self.entries)} entries and {len(self.sessions)} sessions>"

    @classmethod
    def from_rows(cls, rows: Iterable[Origin]) -> OriginTable:
        """Build the columns from objects, in any order; equal (entry, agent, session) are joined (D14)."""
        rows = tuple(rows)
        return cls._build(
            (row.entry_key for row in rows),
            (row.agent_id for row in rows),
            (row.session_id for row in rows),
            (row.session_key for row in rows),
            (row.origin_class for row in rows),
            (row.observed_at_ms for row in rows),
        )

    @classmethod
    def from_columns(
        cls,
        entry_keys: Sequence[str],
        session_ids: Iterable[str],
        session_keys: Iterable[str | None],
        classes: Iterable[str],
        observed_at_ms: Iterable[int],
        agent_id: str,
    ) -> OriginTable:
        """Build the columns of one agent's ledger from a store's columns, without an object per row.

        Each is read once, in turn. Rows that come ordered by entry key and session id, as a primary key gives them,
        cost no sort. Raises ``CorruptStoreError`` for a class that no writer knows.
        """
        return cls._build(
            entry_keys, repeat(agent_id, len(entry_keys)), session_ids, session_keys, classes, observed_at_ms
        )

    @classmethod
    def _build(
        cls,
        entry_keys: Iterable[str],
        agent_ids: Iterable[str],
        session_ids: Iterable[str],
        session_keys: Iterable[str | None],
        classes: Iterable[str],
        observed_at_ms: Iterable[int],
    ) -> OriginTable:
        entries, entry_codes = _encode(entry_keys)
        agents, agent_codes = _encode(agent_ids)
        sessions, session_codes = _encode(session_ids)
        # no key sorts after every key, so that in a join any key is better than none
        keys, key_codes = _encode(session_keys, order=lambda key: (key is None, key or ""))
        try:
            class_codes = np.fromiter(map(_CLASS_CODES.__getitem__, classes), dtype=np.int8)
        except KeyError as error:
            raise CorruptStoreError(f"an origin row has the unknown class {error.args[0]!r}") from None
        observed = np.fromiter(observed_at_ms, dtype=np.int64)
        if len({len(c) for c in (entry_codes, agent_codes, session_codes, key_codes, class_codes, observed)}) != 1:
            raise InputError("the columns of origin rows differ in length")
        table = cls(
            entries, agents, sessions, keys, entry_codes, agent_codes, session_codes, key_codes, class_codes, observed
        )
        return _joined(_sorted(table))

    def __len__(self) -> int:
        return len(self.entry_codes)

    def rows(self) -> Iterator[Origin]:
        """The rows as objects, in (entry key, agent, session) order."""
        for entry, agent, session, key, code, observed in zip(
            self.entry_codes.tolist(),
            self.agent_codes.tolist(),
            self.session_codes.tolist(),
            self.key_codes.tolist(),
            self.classes.tolist(),
            self.observed_at_ms.tolist(),
            strict=True,
        ):
            yield Origin(
                self.entries[entry],
                self.agents[agent],
                self.sessions[session],
                self.session_keys[key],
                TRUST_ORDER[code],
                observed,
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OriginTable):
            return NotImplemented
        pools = ("entries", "agents", "sessions", "session_keys")
        columns = ("entry_codes", "agent_codes", "session_codes", "key_codes", "classes", "observed_at_ms")
        return all(getattr(self, name) == getattr(other, name) for name in pools) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in columns
        )

    __hash__ = None  # type: ignore[assignment]  # mutable columns inside: comparable, never a key

    @cached_property
    def keys(self) -> frozenset[str]:
        """The entry keys that have an origin here."""
        return frozenset(self.entries)

    @cached_property
    def _entry_starts(self) -> NDArray[np.int64]:
        """Entry code -> its first row; one more at the end."""
        return np.searchsorted(self.entry_codes, np.arange(len(self.entries) + 1, dtype=np.int32)).astype(np.int64)

    @cached_property
    def _postings(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Session code -> where its rows start in the second array; one more at the end."""
        order = np.argsort(self.session_codes)
        counts = np.bincount(self.session_codes, minlength=len(self.sessions))
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), order.astype(np.int64)

    def _rows_of_sessions(self, session_ids: Iterable[str]) -> NDArray[np.int64]:
        """The rows of these sessions, ids compared exactly (I12)."""
        starts, order = self._postings
        return order[_slices(starts, _codes_of(self.sessions, session_ids))]

    def select(self, session_ids: Iterable[str], *, also: Iterable[str] = ()) -> Lineage:
        """The entries with at least one origin in these sessions, and the keys in ``also``, which only adds.

        ``also`` is what earlier rounds of planning had selected: selected keys only grow (docs: order). A ledger is one
        agent's; of a table with several, take ``of_agent`` first (I11).
        """
        ids, extra = strings(session_ids), strings(also)
        rows = self._rows_of_sessions(ids)
        if extra:  # the selected rows of an added key count as selected, too, and there may be none
            added = _codes_of(self.entries, extra)
            codes = np.union1d(np.unique(self.entry_codes[rows]), added)
            hits = np.bincount(np.searchsorted(codes, self.entry_codes[rows]), minlength=len(codes))
        else:
            codes, hits = np.unique(self.entry_codes[rows], return_counts=True)
        degrees = self._entry_starts[codes + 1] - self._entry_starts[codes]
        found = [self.entries[code] for code in codes.tolist()]
        mixed = tuple(compress(found, (degrees > hits).tolist()))
        return Lineage(tuple(sorted({*found, *extra})) if extra else tuple(found), mixed)

    def count(self, entry_keys: Iterable[str]) -> int:
        """How many rows these keys have."""
        codes = _codes_of(self.entries, strings(entry_keys))
        return int((self._entry_starts[codes + 1] - self._entry_starts[codes]).sum())

    def touching(self, session_ids: Iterable[str] = (), entry_keys: Iterable[str] = ()) -> OriginTable:
        """The rows that belong to one of the sessions or to one of the keys."""
        of_sessions = self._rows_of_sessions(strings(session_ids))
        of_keys = _slices(self._entry_starts, _codes_of(self.entries, strings(entry_keys)))
        return _compact(_take(self, np.union1d(of_sessions, of_keys)))

    def basis(self, session_ids: Iterable[str], entry_keys: Iterable[str]) -> Basis:
        """What a plan for these sessions and keys rests on; see ``Basis``."""
        ids = tuple(sorted(set(strings(session_ids))))
        keys = tuple(sorted(set(strings(entry_keys))))
        part = self.touching(ids, keys)
        pairs = zip(part.entry_codes.tolist(), part.session_codes.tolist(), strict=True)
        return Basis(lineage_digest((part.entries[e], part.sessions[s]) for e, s in pairs), ids, keys)

    def without(self, entry_keys: Iterable[str], *, agent_id: str | None = None) -> OriginTable:
        """The table less the rows of these keys; with an agent, less that agent's rows of them (I11)."""
        gone = np.zeros(len(self.entries), dtype=np.bool_)
        gone[_codes_of(self.entries, strings(entry_keys))] = True
        dropped = gone[self.entry_codes]
        if agent_id is not None:
            dropped &= self._is_agent(agent_id)
        return _compact(_take(self, ~dropped)) if dropped.any() else self

    def of_agent(self, agent_id: str) -> OriginTable:
        """That agent's rows only."""
        mine = self._is_agent(agent_id)
        return self if mine.all() else _compact(_take(self, mine))

    def _is_agent(self, agent_id: str) -> NDArray[np.bool_]:
        return np.isin(self.agent_codes, _codes_of(self.agents, (agent_id,)))


def _sorted(table: OriginTable) -> OriginTable:
    """The rows in (entry, agent, session) order."""
    columns = (table.entry_codes, table.agent_codes, table.session_codes)
    in_order = np.ones(max(len(table) - 1, 0), dtype=np.bool_)
    for column in reversed(columns):  # two rows are in order when this column rises, or ties and the later ones are
        before, after = column[:-1], column[1:]
        in_order = (before < after) | ((before == after) & in_order)
    return table if in_order.all() else _take(table, np.lexsort(tuple(reversed(columns))))


def _joined(table: OriginTable) -> OriginTable:
    """The sorted rows with equal (entry, agent, session) joined to one (D14).

    Of several session keys of one row the first by code point stays, so that the join is a join there too.
    """
    columns = (table.entry_codes, table.agent_codes, table.session_codes)
    new = np.ones(len(table), dtype=np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    if new.all():
        return table
    starts = np.flatnonzero(new)
    return _compact(
        evolve(
            _take(table, starts),
            key_codes=np.minimum.reduceat(table.key_codes, starts),
            classes=np.maximum.reduceat(table.classes, starts),
            observed_at_ms=np.minimum.reduceat(table.observed_at_ms, starts),
        )
    )


def _take(table: OriginTable, index: NDArray[Any]) -> OriginTable:
    """The rows that a mask or an index names, over the same pools."""
    return evolve(
        table,
        entry_codes=table.entry_codes[index],
        agent_codes=table.agent_codes[index],
        session_codes=table.session_codes[index],
        key_codes=table.key_codes[index],
        classes=table.classes[index],
        observed_at_ms=table.observed_at_ms[index],
    )


def _compact(table: OriginTable) -> OriginTable:
    """The same rows over pools without unused strings."""
    entries, entry_codes = _used(table.entries, table.entry_codes)
    agents, agent_codes = _used(table.agents, table.agent_codes)
    sessions, session_codes = _used(table.sessions, table.session_codes)
    session_keys, key_codes = _used(table.session_keys, table.key_codes)
    return evolve(
        table,
        entries=entries,
        agents=agents,
        sessions=sessions,
        session_keys=session_keys,
        entry_codes=entry_codes,
        agent_codes=agent_codes,
        session_codes=session_codes,
        key_codes=key_codes,
    )


class _Pool(dict[_T, int]):
    """String -> code, in order of appearance."""

    def __missing__(self, value: _T) -> int:
        self[value] = code = len(self)
        return code


def _encode(values: Iterable[_T], order: Callable[[_T], Any] | None = None) -> tuple[tuple[_T, ...], _Codes]:
    """The distinct values, sorted, and the position of each value in them."""
    pool: _Pool[_T] = _Pool()
    codes = np.fromiter(map(pool.__getitem__, values), dtype=np.int32)
    names = tuple(pool)
    ranked = tuple(sorted(names, key=order))  # type: ignore[type-var, arg-type]  # strings, or ordered by `order`
    if ranked == names:
        return names, codes
    ranks = dict(zip(ranked, range(len(ranked)), strict=True))
    return ranked, np.fromiter(map(ranks.__getitem__, names), dtype=np.int32, count=len(names))[codes]


def _used(pool: tuple[_T, ...], codes: _Codes) -> tuple[tuple[_T, ...], _Codes]:
    """The pool less what no code names, and the codes into that."""
    used = np.zeros(len(pool), dtype=np.bool_)
    used[codes] = True
    if used.all():
        return pool, codes
    return tuple(compress(pool, used.tolist())), (np.cumsum(used, dtype=np.int32) - 1).astype(np.int32)[codes]


def _codes_of(pool: tuple[str, ...], values: Iterable[str]) -> NDArray[np.int64]:
    """The codes of those values that the sorted pool holds, rising and without repeats."""
    wanted = frozenset(values)
    if len(wanted) * _FEW > len(pool):  # reading the whole pool once is quicker than searching it so often
        return np.fromiter((code for code, value in enumerate(pool) if value in wanted), dtype=np.int64)
    found = ((bisect_left(pool, value), value) for value in wanted)
    return np.array(sorted(i for i, value in found if i < len(pool) and pool[i] == value), dtype=np.int64)


def _slices(starts: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every position in the slices ``starts[code]:starts[code + 1]``, slice after slice."""
    lengths = starts[codes + 1] - starts[codes]
    skipped = np.cumsum(lengths) - lengths
    return np.repeat(starts[codes] - skipped, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
