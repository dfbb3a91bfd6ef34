"""Carrying a purge out: plan, apply, look again, and only then let the evidence go.

Selected entry keys only grow while the store moves under the plan. Before the corpus goes, and once more before *done*,
everything is asked anew: a file that an editor had put aside, or that appeared meanwhile, is planned again, with all
that the corpus said when it was whole (D24).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, evolve, field

from memprov.core.purge import (
    Answer,
    CorpusOf,
    CutFile,
    PurgeEffect,
    PurgePlan,
    Question,
    RemoveFile,
    Step,
    is_exclusion,
)
from memprov.core.records import MemoryFile
from memprov.errors import MemprovError, PartialError, StalePlanError, StaleStateError
from memprov.shell.port import Answering, Writer

__all__ = ["MAX_ATTEMPTS", "Corpus", "Planning", "Progress", "Purge", "shortened"]

#: How often a plan is made anew when the store changes under it, before giving up (docs: order).
MAX_ATTEMPTS = 8

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

_SHOWN = 5


@define
class Corpus:
    """What the corpus said, for the looks that come after it has gone."""

    seen: dict[MemoryFile, None] = field(factory=dict)
    gone: bool = False

    def kept_by(self, answering: Answering) -> Answering:
        """Answers that keep what the corpus said and, once it is gone, still say it."""

        def answer(question: Question) -> Answer:
            said = answering(question)
            if not isinstance(question, CorpusOf):
                return said
            files: tuple[MemoryFile, ...] = said  # type: ignore[assignment]  # the answer to this question
            if self.gone:
                return tuple({**self.seen, **dict.fromkeys(files)})
            self.seen |= dict.fromkeys(files)
            return files

        return answer


#: Plans with at least these entry keys, and with what the corpus is remembered to have said.
Planning = Callable[[Iterable[str], Corpus], PurgePlan]


@define
class Purge:
    """One purge on its way, under the lock."""

    writer: Writer
    make_plan: Planning
    progress: Progress
    corpus: Corpus = field(factory=Corpus)
    keys: tuple[str, ...] = ()
    late: dict[str, None] = field(factory=dict)

    def carry_out(self) -> PurgePlan:
        """All of it; the answer is the plan whose report says what was removed.

        Raises ``StaleStateError`` when lineage never holds still, and ``PartialError`` for what stops it on the way.
        """
        plan = self._excluded_and_removed()
        if not plan.removes_nothing:
            latest = self._look_again(plan)
            self._apply(_evidence(plan, latest), latest)
            self.corpus.gone = True
            self._look_again(latest)
        self._apply(tuple(effect for effect in plan.effects if effect.step >= Step.ERASURE), plan)
        self.progress("done", len(plan.effects), len(plan.effects))
        late = (f"{words}: this appeared, or came back, while the purge ran, and was purged too" for words in self.late)
        return evolve(plan, report=evolve(plan.report, warnings=tuple(sorted((*plan.report.warnings, *late)))))

    def _excluded_and_removed(self) -> PurgePlan:
        """Plan and apply until a plan holds. Only the first two effects can find it moved, before anything goes."""
        for _ in range(MAX_ATTEMPTS):
            plan = self._planned()
            self.writer.admit(plan.effects)
            if self._apply(tuple(effect for effect in plan.effects if effect.step < Step.CORPUS), plan):
                return plan
        raise StaleStateError(
            f"the origins of the selected sessions changed {MAX_ATTEMPTS} times while the purge was being planned; "
            "nothing was removed and the sessions are recorded as forgotten; pause what writes memory and run the "
            "command again"
        )

    def _look_again(self, plan: PurgePlan) -> PurgePlan:
        """Plan anew until nothing is left to remove but the evidence."""
        for _ in range(MAX_ATTEMPTS):
            try:
                fresh = self._planned()
                left = tuple(e for e in fresh.effects if e.step < Step.CORPUS and not is_exclusion(e))
                self.writer.admit(left)
            except StalePlanError as error:
                raise self._stopped(f"while the purge ran: {error}", plan.effects, Step.CORPUS) from error
            except MemprovError as error:  # it is too late to refuse
                raise self._stopped(str(error), plan.effects, Step.CORPUS) from error
            if not left:
                return fresh
            self.late |= dict.fromkeys(effect.words() for effect in left)
            self._apply(left, fresh)
        raise self._stopped(
            f"what the sessions left kept coming back ({shortened(self.late)}); pause what writes memory",
            plan.effects,
            Step.CORPUS,
        )

    def _planned(self) -> PurgePlan:
        plan = self.make_plan(self.keys, self.corpus)
        self.keys = plan.basis.entry_keys
        return plan

    def _apply(self, effects: tuple[PurgeEffect, ...], plan: PurgePlan) -> bool:
        """Carry out effects of the plan in order; ``False`` when the basis moved."""
        total = len(plan.effects)
        numbers = {id(effect): number for number, effect in enumerate(plan.effects)}
        for effect in effects:
            number = numbers.get(id(effect), total)
            self.progress(effect.words(), number, total)
            try:
                if not self.writer.apply(effect, plan.basis):
                    return False
            except MemprovError as error:
                if number == 0 and not isinstance(error, PartialError):
                    raise
                raise _stopped(error, plan.effects, number) from error
        return True

    def _stopped(self, why: str, effects: tuple[PurgeEffect, ...], step: Step) -> PartialError:
        number = next((n for n, effect in enumerate(effects) if effect.step >= step), len(effects))
        return _stopped(PartialError(why), effects, number)


def _evidence(plan: PurgePlan, latest: PurgePlan) -> tuple[PurgeEffect, ...]:
    """What leads to what was removed, as it is now; a file of it that has vanished since is a conflict (D24)."""
    found = tuple(effect for effect in latest.effects if Step.CORPUS <= effect.step < Step.ERASURE)
    paths = {effect.path for effect in found if isinstance(effect, CutFile | RemoveFile)}
    vanished = (e for e in plan.effects if isinstance(e, CutFile | RemoveFile) and e.step is Step.CORPUS)
    return (*(effect for effect in vanished if effect.path not in paths), *found)


def _stopped(error: MemprovError, effects: tuple[PurgeEffect, ...], number: int) -> PartialError:
    remaining = tuple(effect.words() for effect in effects[number:])
    kind = type(error) if isinstance(error, PartialError) else PartialError
    return kind(
        f"{error} ({number} of {len(effects)} effects were carried out; remaining: {shortened(remaining)}). "
        "Running the same command again is safe and finishes the purge",
        remaining=remaining,
    )


def shortened(parts: Iterable[str]) -> str:
    """The first few of these, and how many more there are."""
    listed = list(parts)
    return ", ".join(listed[:_SHOWN]) + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
