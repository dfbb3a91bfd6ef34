"""Take the lock, ask, plan, apply, re-plan, resume: the same few lines for every store.

The runner decides nothing about memory. It keeps three promises of docs: order: a preview reads without a trace,
nothing is destroyed before the exclusion is durable, and selected entry keys only grow while the store moves under the
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from typing import TypeVar

from attrs import evolve

from memprov.core.purge import (
    Level,
    Mapper,
    PurgePlan,
    Report,
    Selection,
    Selectors,
    answered,
    plan_atoms,
    plan_by_asking,
)
from memprov.core.records import StoreIdentity
from memprov.errors import StalePlanError, StaleStateError
from memprov.shell.carrying_out import MAX_ATTEMPTS, Corpus, Progress, Purge, shortened
from memprov.shell.hearing import Hearing
from memprov.shell.port import Attesting, FoldingWriter, Store, TranscriptReader, WaitingStore, Writer
from memprov.shell.proof.attest import Before, attest, look_before
from memprov.shell.remembering import Remembered
from memprov.shell.selecting import resolve
from memprov.shell.workspace import MovedError

__all__ = ["MAX_ATTEMPTS", "Progress", "apply_plan", "forget", "preview"]

#: Into how many parts the files go that an executor maps. With each part travels everything that is selected.
_CHUNKS = 8

_A = TypeVar("_A")
_B = TypeVar("_B")


def _silent(what: str, done: int, total: int) -> None:
    """Say nothing."""


def preview(
    store: Store,
    selectors: Selectors,
    *,
    level: Level | str = Level.LOGICAL,
    executor: Executor | None = None,
    reader: TranscriptReader | None = None,
) -> PurgePlan:
    """What ``forget`` would do now, as a plan that can be read, saved and compared. Changes no byte (I3).

    ``executor`` maps corpus and memory files in parallel; the plan is the same (I14). ``reader`` hands over the
    transcripts of the selected sessions where the host keeps them, as it does beside an embedded store: what they said
    is looked for although its corpus lines are gone (D23), and the memory files that their tools wrote are listed.
    Raises ``SelectorError`` before anything is read, and ``RefusedError`` for a store that cannot be read.
    """
    selection = resolve(store, selectors)
    return _plan(store, selection, store.identity, level, executor, hearing=_hearing(store, reader))


def forget(
    store: Store,
    selectors: Selectors,
    *,
    level: Level | str = Level.LOGICAL,
    executor: Executor | None = None,
    break_lock: bool = False,
    prove: bool = False,
    progress: Progress = _silent,
    reader: TranscriptReader | None = None,
) -> Report:
    """Forget the selected sessions: remove what they produced and keep it out from now on.

    Returns the report, equal to the preview's but for ``dry_run``; a receipt is appended to the store's (``receipts``).
    ``prove`` looks for the sessions before and afterwards, as ``verify`` does, and the receipt says what was found.
    Safe to run again at any time, also after a crash at any point (I5). ``break_lock`` takes over a lock whose owner
    cannot be judged from here, never a live one (D19). ``reader`` is as for ``preview``; it is asked once about each
    selected session, and once more to ``prove``. Raises ``SelectorError`` before anything is read, ``RefusedError``
    when nothing was changed, ``PartialError`` when something was; the message names what remains.
    """
    reading = _about_to_write(store)
    standing = reading.sessions_standing()
    selection = resolve(reading, selectors)
    # What cannot be read is refused here, before even the lock is written.
    hearing, remembered = _hearing(reading, reader), Remembered()
    plan = _plan(reading, selection, store.identity, level, executor, hearing=hearing, remembered=remembered)
    if not selection.session_ids:
        return evolve(plan.report, dry_run=False)
    with store.exclusive(break_lock=break_lock) as writer:
        if standing is None or reading.sessions_standing() != standing:
            selection = resolve(reading, selectors)

        def planned(keys: Iterable[str], corpus: Corpus) -> PurgePlan:
            return _plan(writer, selection, store.identity, level, executor, keys, hearing, corpus, remembered)

        before = look_before(store, frozenset(selection.session_ids), reader) if prove else None
        done = Purge(writer, planned, progress).carry_out()
        return _testified(writer, done, before)


def apply_plan(
    store: Store,
    plan: PurgePlan,
    *,
    executor: Executor | None = None,
    break_lock: bool = False,
    prove: bool = False,
    progress: Progress = _silent,
    reader: TranscriptReader | None = None,
) -> Report:
    """Forget as a saved plan says, provided that it still describes what would be done (docs: Saved plans).

    The saved effects are compared and never executed: the purge is planned again under the lock. It goes ahead when the
    plans are equal or, after an interruption, when what is left to do is part of the saved plan. Otherwise raises
    ``StalePlanError``, which says what differs, and nothing is changed. A plan that was made with a ``reader`` needs it
    here, too: what the transcripts said is no part of the plan.
    """
    if plan.store != store.identity:
        raise StalePlanError(
            f"the plan was made for {_place(plan)} and this store is another; nothing was changed; make a new preview"
        )
    reading = _about_to_write(store)
    hearing, remembered = _hearing(reading, reader), Remembered()
    with store.exclusive(break_lock=break_lock) as writer:
        selection = resolve(reading, plan.selection.selectors)
        if selection.session_ids != plan.selection.session_ids:
            raise StalePlanError(_moved_selection(plan.selection, selection))

        def planned(keys: Iterable[str], corpus: Corpus) -> PurgePlan:
            return _plan(writer, selection, store.identity, plan.level, executor, keys, hearing, corpus, remembered)

        def checked(keys: Iterable[str], corpus: Corpus) -> PurgePlan:
            fresh = planned(keys, corpus)
            if added := plan_atoms(fresh) - plan_atoms(plan):
                raise StalePlanError(_stale(added))
            return fresh

        before = look_before(store, frozenset(selection.session_ids), reader) if prove else None
        done = Purge(writer, checked, progress).carry_out()
        return _testified(writer, done, before)


def _testified(writer: Writer, done: PurgePlan, before: Before | None) -> Report:
    """The report of a plan that was carried out, once its receipt is written."""
    if isinstance(writer, Attesting):
        attest(writer, done, before)
    held_back = writer.held_back() if isinstance(writer, FoldingWriter) else ()
    return evolve(done.report, dry_run=False, warnings=tuple(sorted({*done.report.warnings, *held_back})))


def _about_to_write(store: Store) -> Store:
    return store.about_to_write() if isinstance(store, WaitingStore) else store


def _hearing(store: Store, reader: TranscriptReader | None) -> Hearing | None:
    return None if reader is None else Hearing(store, reader)


def _plan(
    asked: Store | Writer,
    selection: Selection,
    identity: StoreIdentity,
    level: Level | str,
    executor: Executor | None,
    entry_keys: Iterable[str] = (),
    hearing: Hearing | None = None,
    corpus: Corpus | None = None,
    remembered: Remembered | None = None,
) -> PurgePlan:
    """Lead the planner's dialogue with the store, from the start when files were moved about meanwhile."""
    keys, mapper = tuple(entry_keys), _mapper(executor)
    for _ in range(MAX_ATTEMPTS):
        asking = plan_by_asking(identity, selection, level=level, entry_keys=keys, mapper=mapper)
        with suppress(MovedError):
            answering = (corpus or Corpus()).kept_by(asked.answering(selection, mapper, remembered))
            return answered(asking, answering if hearing is None else hearing.answering(answering, selection))
    raise StaleStateError(f"files below {identity.workspace_root} were moved about while they were being read")


def _place(plan: PurgePlan) -> str:
    store = plan.store
    return f"agent {store.agent_id!r} of {store.state_root} with workspace {store.workspace_root}"


def _moved_selection(saved: Selection, now: Selection) -> str:
    added = sorted(set(now.session_ids) - set(saved.session_ids))
    lost = sorted(set(saved.session_ids) - set(now.session_ids))
    parts = [f"new: {shortened(added)}"] * bool(added) + [f"gone: {shortened(lost)}"] * bool(lost)
    return f"the selectors now resolve to other sessions ({'; '.join(parts)}); nothing was changed; make a new preview"


def _stale(added: frozenset[tuple[str, ...]]) -> str:
    shown = shortened(" ".join(part for part in atom[:2] if part) for atom in sorted(added))
    return (
        f"the purge would do {len(added)} things that the plan does not hold ({shown}); "
        "nothing was changed; make a new preview"
    )


def _mapper(executor: Executor | None) -> Mapper:
    if executor is None:
        return map
    pool = executor

    def mapped(function: Callable[[_A], _B], values: Iterable[_A], /) -> Iterable[_B]:
        files = list(values)
        return pool.map(function, files, chunksize=-(-len(files) // _CHUNKS) or 1)

    return mapped
