"""A host for tests: sessions with their messages, a ledger, and the reader whose every call is remembered."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, evolve, field

from memprov.core.records import SessionKind, SessionRecord
from memprov.core.writing import (
    AdmissionPolicy,
    Admitted,
    BackfillMode,
    BackfillRange,
    Message,
    Source,
    Transcript,
    admit_sources,
    plan_ingestion,
    plan_rollback,
    read_admitted,
    session_source,
)
from memprov.core.writing.backfill import BackfillPlan, plan_backfill
from memprov.core.writing.ingest import IngestPlan
from memprov.core.writing.rewind import RollbackPlan
from tests.core.ledger_model import Ledger

DAY_MS = 86_400_000
#: 2026-11-25T09:00:00Z
START_MS = 1_795_597_200_000


def owner(text: str, at_ms: int | None = START_MS) -> Message:
    """What the owner says."""
    return Message("user", text, timestamp_ms=at_ms, sender_is_owner=True)


def guest(text: str, at_ms: int | None = START_MS) -> Message:
    """What anybody else says."""
    return Message("user", text, timestamp_ms=at_ms)


def agent(text: str, at_ms: int | None = START_MS) -> Message:
    """What the agent answers."""
    return Message("assistant", text, timestamp_ms=at_ms)


@define
class Host:
    """Sessions of one agent, and their memory."""

    ledger: Ledger = field(factory=Ledger)
    sessions: dict[str, SessionRecord] = field(factory=dict)
    messages: dict[str, list[Message]] = field(factory=dict)
    policy: AdmissionPolicy | None = None
    opened: list[str] = field(factory=list)
    today: str = "2026-11-30"

    def say(self, session_id: str, *said: Message, **metadata: object) -> None:
        """Append messages to a session, which begins with the first."""
        if session_id not in self.sessions or metadata:
            key = f"agent:{self.ledger.agent_id}:dashboard:{session_id}"
            record = SessionRecord(self.ledger.agent_id, session_id, key)
            self.sessions[session_id] = evolve(record, **metadata)  # type: ignore[arg-type]
        log = self.messages.setdefault(session_id, [])
        log += [evolve(message, number=n) for n, message in enumerate(said, len(log) + 1)]

    def source(self, session_id: str) -> Source:
        """What the host knows of a transcript without opening it."""
        said = self.messages.get(session_id, [])
        size = sum(len(message.content) for message in said)
        return session_source(self.sessions[session_id], modified_ms=START_MS + len(said), size=size)

    def listing(self) -> list[Source]:
        """Every source."""
        return [self.source(session_id) for session_id in self.sessions]

    def read(self, source: Source) -> Transcript:
        """Open a transcript, and say so."""
        assert source.session is not None
        self.opened.append(source.session.session_id)
        return Transcript(source, tuple(self.messages.get(source.session.session_id, ())))

    def admit(self, purpose: str) -> Admitted:
        """Decide over everything there is."""
        return admit_sources(self.listing(), self.policy, self.ledger.state(), purpose)

    def plan_sweep(self) -> IngestPlan:
        """Plan automatic ingestion."""
        admitted = self.admit("ingestion")
        return plan_ingestion(self.ledger.state(), admitted, read_admitted(admitted, self.read), today=self.today)

    def sweep(self) -> IngestPlan:
        """Ingest automatically."""
        plan = self.plan_sweep()
        self.ledger.apply(plan.effects)
        return plan

    def plan_backfill(self, mode: str = "apply", days: BackfillRange | None = None, **more: object) -> BackfillPlan:
        """Plan one batch of a backfill."""
        admitted = self.admit("backfill")
        transcripts = read_admitted(admitted, self.read)
        return plan_backfill(self.ledger.state(), admitted, transcripts, mode=mode, days=days, **more)  # type: ignore[arg-type]

    def backfill(self, mode: str = "apply", days: BackfillRange | None = None, **more: object) -> BackfillPlan:
        """Backfill one batch."""
        plan = self.plan_backfill(mode, days, **more)
        assert mode != BackfillMode.PREVIEW or not plan.effects
        self.ledger.apply(plan.effects)
        return plan

    def rollback(self) -> RollbackPlan:
        """Take the backfills back."""
        plan = plan_rollback(self.ledger.state())
        self.ledger.apply(plan.effects)
        return plan

    @property
    def corpus_lines(self) -> list[str]:
        """Every corpus line, day by day."""
        return [line for path in sorted(self.ledger.corpus) for line in self.ledger.corpus[path].splitlines()]


def host(sessions: dict[str, Iterable[Message]] | None = None) -> Host:
    """A host with these sessions."""
    made = Host()
    for session_id, said in (sessions or {}).items():
        made.say(session_id, *said)
    return made


KINDS = tuple(kind for kind in SessionKind if kind is not SessionKind.INTERACTIVE)
