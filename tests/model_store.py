"""A store on plain values: the model behind the port, with a place to interfere before and after every effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial

from memprov import Basis, MemorySnapshot, Origin, Selection, SessionRecord, StoreIdentity
from memprov.core.purge import Mapper, PurgeIndex, RecordTombstones, answer_from
from memprov.core.purge import PurgeEffect as Effect
from memprov.shell.port import Answering, Neighbours
from memprov.shell.remembering import Remembered

__all__ = ["ModelStore"]


class ModelStore:
    """The pure model as a store. ``before`` and ``after`` are called with the effect's number, and may raise."""

    def __init__(self, snapshot: MemorySnapshot, catalogue: tuple[SessionRecord, ...] = ()) -> None:
        self.state = snapshot
        self.sessions = catalogue
        self.applied: list[Effect] = []
        self.locked = 0
        self.before: Callable[[int, Effect], None] = lambda number, effect: None
        self.after: Callable[[int, Effect], None] = lambda number, effect: None

    @property
    def identity(self) -> StoreIdentity:
        return self.state.store

    def catalogue(self) -> tuple[SessionRecord, ...]:
        return self.sessions

    def named_origins(self, names: tuple[str, ...]) -> tuple[Origin, ...]:
        rows = self.state.origins.rows()
        return tuple(row for row in rows if row.session_key in names or row.entry_key in names)

    def began(self, session_ids: Collection[str]) -> dict[str, int]:
        return {}

    def neighbours(self) -> Neighbours:
        return Neighbours()

    def snapshot(self, selection: Selection | None = None) -> MemorySnapshot:
        return self.state

    def sessions_standing(self) -> object | None:
        return None

    def answering(self, selection: Selection, mapper: Mapper = map, remembered: Remembered | None = None) -> Answering:
        return partial(answer_from, self.state)

    @contextmanager
    def exclusive(self, *, break_lock: bool = False) -> Iterator[ModelStore]:
        self.locked += 1
        yield self

    def admit(self, effects: tuple[Effect, ...]) -> None:
        pass

    def apply(self, effect: Effect, basis: Basis) -> bool:
        number = len(self.applied)
        self.before(number, effect)
        if isinstance(effect, RecordTombstones | PurgeIndex):
            now = self.state.origins.basis(basis.session_ids, basis.entry_keys)
            if now.lineage != basis.lineage:
                return False
        self.state = effect.applied_to(self.state)
        self.applied.append(effect)
        self.after(number, effect)
        return True
