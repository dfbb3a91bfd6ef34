"""Ingest, backfill, take back, change the policy, forget, crash, publish what was prepared earlier, in any order.

Whatever happens, nothing of a forgotten session is to be found again (I6), nothing is shown that could not be forgotten
(B01), nothing is opened that was not admitted (I10), and what nobody forgot stays.
"""

from __future__ import annotations

from datetime import UTC

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memprov import AdmissionPolicy
from memprov.core.purge import promotion_keys
from memprov.core.text import corpus_owner
from memprov.core.writing import DIARY_PATH, MarkPromoted, PendingNarrative, WriteEffect, narrative_keys, plan_narrative
from memprov.core.writing.diary import diary_context
from memprov.errors import ConflictError, StaleStateError
from tests.core.write_world import DAY_MS, START_MS, agent, guest, host, owner

SESSIONS = ("s1", "s2", "S1", "s1-b")
SHARED = ("I like oolong tea very much.", "The kiln runs at nine hundred degrees.", "<!-- x --> Session ID: s2 `` ``` ")
CANARY = {"s1": "quokka", "s2": "axolotl", "S1": "pangolin", "s1-b": "narwhal"}

sessions = st.sampled_from(SESSIONS)


class WritePath(RuleBasedStateMachine):
    """One host, one ledger, and results that wait to be published."""

    @initialize()
    def begin(self) -> None:
        self.host = host()
        self.forgotten: set[str] = set()
        self.excluded: set[str] = set()
        self.written: set[str] = set()
        self.waiting: list[tuple[WriteEffect, ...]] = []
        self.narrative: PendingNarrative | None = None

    @rule(
        session=sessions,
        make=st.sampled_from([owner, guest, agent]),
        text=st.sampled_from(SHARED) | st.none(),
        day=st.integers(0, 2),
    )
    def say(self, session: str, make: object, text: str | None, day: int) -> None:
        words = text or f"My {CANARY[session]} sleeps in the garden."
        self.host.say(session, make(words, START_MS + day * DAY_MS))  # type: ignore[operator]

    def apply(self, effects: tuple[WriteEffect, ...]) -> None:
        self.host.ledger.apply(effects)
        self.written = {line for line in self.host.corpus_lines if self.owner_of(line) not in self.forgotten}

    @rule(cut=st.integers(0, 99) | st.none())
    def sweep(self, cut: int | None) -> None:
        self.apply(self.host.plan_sweep().effects[:cut])

    @rule(cut=st.integers(0, 99) | st.none(), mode=st.sampled_from(["preview", "diary", "apply"]))
    def backfill(self, cut: int | None, mode: str) -> None:
        self.apply(self.host.plan_backfill(mode).effects[:cut])

    @rule()
    def take_back(self) -> None:
        self.host.rollback()

    @rule(mode=st.sampled_from(["sweep", "diary", "apply"]))
    def prepare(self, mode: str) -> None:
        plan = self.host.plan_sweep() if mode == "sweep" else self.host.plan_backfill(mode)
        self.waiting.append(plan.effects)

    @precondition(lambda self: self.waiting)
    @rule()
    def publish_what_was_prepared(self) -> None:
        effects = self.waiting.pop(0)
        try:
            self.host.ledger.apply(effects)
        except (ConflictError, StaleStateError):
            return
        self.written.update(line for line in self.host.corpus_lines if self.owner_of(line) not in self.forgotten)

    @rule()
    def ask_for_a_narrative(self) -> None:
        ledger = self.host.ledger
        keys = sorted(ledger.entries)[:2]
        told = " ".join(ledger.entries[key].snippet for key in keys)
        context = diary_context(ledger.files.get(DIARY_PATH))
        self.narrative = PendingNarrative(f"I dreamt: {told}", tuple(keys), context=context)

    @precondition(lambda self: self.narrative is not None)
    @rule()
    def publish_the_narrative(self) -> None:
        assert self.narrative is not None
        ledger = self.host.ledger
        keys = narrative_keys(ledger.state(), self.narrative)
        known = [row for row in ledger.origins.values() if row.entry_key in keys]
        plan = plan_narrative(ledger.state(), self.narrative, known, written_ms=START_MS, zone=UTC)
        self.host.ledger.apply(plan.effects)

    @precondition(lambda self: self.host.ledger.entries)
    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.host.ledger.entries)))
        self.host.ledger.apply([MarkPromoted([key])])

    @rule(session=sessions)
    def forget(self, session: str) -> None:
        self.host.ledger.forget(session)
        self.forgotten.add(session)
        self.host.opened.clear()
        self.written = {line for line in self.written if self.owner_of(line) != session}

    @rule(names=st.sets(sessions, max_size=2))
    def change_the_policy(self, names: set[str]) -> None:
        for name in self.host.sessions:
            self.host.say(name, channel="slack" if name in names else None)
        self.excluded = names & self.host.sessions.keys()
        self.host.policy = AdmissionPolicy(channels=["slack"])
        self.host.opened.clear()

    @staticmethod
    def owner_of(line: str) -> str | None:
        return corpus_owner(line, "main")

    @invariant()
    def nothing_forgotten_is_found_again(self) -> None:
        ledger = self.host.ledger
        for session in self.forgotten:
            everything = (
                *ledger.corpus.values(),
                *ledger.files.values(),
                *(e.snippet for e in ledger.entries.values()),
            )
            assert not any(CANARY[session] in text for text in everything)
            assert session not in {self.owner_of(line) for line in self.host.corpus_lines}
            assert session not in {row.session_id for row in ledger.origins.values()}
            state = f"main:sessions/main/{session}"
            assert state not in ledger.seen
            assert not any(f'"{state}"' in row for batch in ledger.rewinds.values() for row in batch.candidates)
            if state in ledger.checkpoints:
                assert ledger.checkpoints[state].excluded_reason == "forgotten"
        assert self.forgotten == ledger.tombstones

    @invariant()
    def whatever_is_shown_can_be_forgotten(self) -> None:
        ledger = self.host.ledger
        shown = {*ledger.entries, *promotion_keys(ledger.files.get(DIARY_PATH, ""))}
        assert shown <= {row.entry_key for row in ledger.origins.values()}
        assert None not in {self.owner_of(line) for line in self.host.corpus_lines}

    @invariant()
    def nothing_was_opened_that_was_not_admitted(self) -> None:
        assert not (self.forgotten | self.excluded) & set(self.host.opened)

    @invariant()
    def what_nobody_forgot_stays(self) -> None:
        assert self.written <= set(self.host.corpus_lines)


TestWritePath = WritePath.TestCase
TestWritePath.settings = settings(max_examples=settings().max_examples, stateful_step_count=25)
