"""The life of a store: ingest, backfill, roll back, promote, merge, edit by hand, change the policy, forget, die,
reopen, and feed the same conversations again, in any order (I6, I7, I10, I15).

Every message carries a canary of its session. Whatever happens, no reader shows the canary of a forgotten session, and
what a never-forgotten twin said in the corpus stays.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, fields
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memprov import (
    AdmissionPolicy,
    MemorySnapshot,
    OriginClass,
    Selectors,
    SessionRecord,
    apply_to_snapshot,
    forget,
    preview,
)
from memprov.core.consolidation import ConsolidationLimits, ConsolidationRequest, Decision
from memprov.core.consolidation.decisions import Action, claim_of
from memprov.core.records import TRUST_ORDER
from memprov.core.writing import Message, Thresholds
from memprov.shell.consolidation import consolidate
from memprov.shell.native import NativeStore, open_store
from memprov.shell.sweeps import backfill, ingest, promote, rollback_backfill

START = 1_795_597_200_000
SESSIONS = ("a0", "a1", "twin")
CHANNELS = {"a0": "telegram", "a1": "slack", "twin": "telegram"}
SHARED = "Everybody here agrees that the kiln runs at nine hundred degrees."
ANY = Thresholds(score=0, signals=1, unique_queries=0)
LOOSE = ConsolidationLimits(loss=1)


def merge_what_is_the_same(request: ConsolidationRequest) -> Iterator[Decision]:
    """A model that merges every candidate with the entries that say the same."""
    taken: set[str] = set()
    for candidate in request.candidates:
        claim = claim_of(f"- {candidate.text}")
        same = [e.line for e in request.entries if e.replaceable and e.claim == claim and e.line not in taken]
        taken.update(same)
        yield Decision(candidate.key, Action.MERGED if same else Action.ADDED, same)


class CrashError(Exception):
    """The process died here."""


class Dying:
    """A store whose writer dies at its ``left``-th effect."""

    def __init__(self, store: NativeStore, left: int) -> None:
        self._store, self._left = store, left

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @contextmanager
    def exclusive(self, **options: bool) -> Iterator[object]:
        with self._store.exclusive(**options) as writer:
            outer = self

            class Writer:
                def __getattr__(self, name: str) -> object:
                    value = getattr(writer, name)
                    return self._counted(value) if name in ("apply", "write") else value

                @staticmethod
                def _counted(call: Callable[..., object]) -> Callable[..., object]:
                    def counted(*arguments: object) -> object:
                        outer._left -= 1
                        if outer._left < 0:
                            raise CrashError
                        return call(*arguments)

                    return counted

            yield Writer()


class Life(RuleBasedStateMachine):
    """One store, three sessions, and what was promised about them."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="memprov-life-"))
        self.said: dict[str, list[Message]] = {name: [] for name in SESSIONS}
        self.forgotten: set[str] = set()
        self.by_hand: list[str] = []
        self.classes: dict[tuple[str, str], OriginClass] = {}
        self.policy = AdmissionPolicy()
        self.opened: list[str] = []
        self.reopen()
        for number, name in enumerate(SESSIONS):
            moment = START + number * 86_400_000
            record = SessionRecord("main", name, f"agent:main:{name}", created_at_ms=moment, channel=CHANNELS[name])
            self.store.record_session(record)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    def reader(self, session: SessionRecord) -> list[Message]:
        self.opened.append(session.session_id)
        return self.said[session.session_id]

    @rule()
    def reopen(self) -> None:
        self.store = open_store(self.directory)

    @rule(name=st.sampled_from(SESSIONS), owner=st.booleans(), shared=st.booleans())
    def talk(self, name: str, owner: bool, shared: bool) -> None:
        number = len(self.said[name]) + 2
        words = SHARED if shared else f"The canary {name}x{number} sings about violet kettles."
        moment = START + SESSIONS.index(name) * 86_400_000 + number * 1000
        self.said[name].append(Message("user", words, number, moment, sender_is_owner=owner))

    def write_path(self, kind: str, store: NativeStore) -> None:
        now = START + 5 * 86_400_000
        match kind:
            case "ingest":
                ingest(store, self.reader, policy=self.policy, now_ms=now)
            case "backfill":
                backfill(store, self.reader, mode="apply", policy=self.policy)
            case "diary":
                backfill(store, self.reader, mode="diary", policy=self.policy)
            case "rollback":
                rollback_backfill(store)
            case "consolidate":
                consolidate(
                    store, merge_what_is_the_same, thresholds=ANY, limits=ConsolidationLimits(loss=1), now_ms=now
                )
            case _:
                promote(store, thresholds=ANY, now_ms=now)

    kinds = st.sampled_from(["ingest", "backfill", "diary", "rollback", "promote", "consolidate"])

    @rule(kind=kinds)
    def write(self, kind: str) -> None:
        self.opened.clear()
        self.write_path(kind, self.store)
        # I10: what the policy or a tombstone keeps out is not even opened
        assert not self.forgotten.intersection(self.opened)
        assert not any(CHANNELS[name] in self.policy.channels for name in self.opened)

    @rule(kind=kinds, after=st.integers(0, 6))
    def write_and_die(self, kind: str, after: int) -> None:
        try:
            self.write_path(kind, Dying(self.store, after))  # type: ignore[arg-type]  # stands in for a store
        except CrashError:
            self.reopen()

    @rule(channels=st.lists(st.sampled_from(["telegram", "slack"]), max_size=1))
    def change_policy(self, channels: list[str]) -> None:
        self.policy = AdmissionPolicy(channels=channels)

    @rule()
    def edit_by_hand(self) -> None:
        line = f"- by hand, line {len(self.by_hand)}"
        memory = self.directory / "workspace" / "MEMORY.md"
        before = memory.read_bytes() if memory.exists() else b""
        memory.write_bytes(before + (b"" if not before or before.endswith(b"\n") else b"\n") + f"\n{line}\n".encode())
        self.by_hand.append(line)

    @rule(name=st.sampled_from(["a0", "a1"]))
    def forget_one(self, name: str) -> None:
        selectors = Selectors(sessions=[name])
        plan = preview(self.store, selectors)
        model = apply_to_snapshot(self.store.snapshot(plan.selection), plan)
        report = forget(self.store, selectors)
        self.forgotten.add(name)
        assert evolve(report, dry_run=True) == plan.report
        self.assert_equal(self.store.snapshot(plan.selection), model)
        assert preview(self.store, selectors).removes_nothing

    @rule(name=st.sampled_from(["a0", "a1"]), after=st.integers(0, 8))
    def forget_and_die_then_again(self, name: str, after: int) -> None:
        try:
            forget(Dying(self.store, after), Selectors(sessions=[name]))  # type: ignore[arg-type]  # stands in for it
        except CrashError:
            self.reopen()
            forget(self.store, Selectors(sessions=[name]))
        self.forgotten.add(name)

    @staticmethod
    def assert_equal(store: MemorySnapshot, model: MemorySnapshot) -> None:
        """I15, but for the revision, which only grows, and the order of rewind rows, whose keys are digests."""
        for field in fields(MemorySnapshot):
            ours, theirs = getattr(store, field.name), getattr(model, field.name)
            if field.name == "rewinds":
                ours, theirs = {batch.key: batch for batch in ours}, {batch.key: batch for batch in theirs}
            if field.name != "revision":
                assert ours == theirs, field.name

    def texts(self) -> str:
        files = [path for path in (self.directory / "workspace").rglob("*") if path.is_file()]
        return "\n".join(path.read_text(encoding="utf-8") for path in files)

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def forgotten_sessions_are_gone_from_every_reader(self) -> None:
        snapshot, texts = self.store.snapshot(), self.texts()
        assert snapshot.tombstones >= self.forgotten
        for name in self.forgotten:
            assert f"canary {name}x" not in texts
            assert f"/{name}#L" not in texts
            assert not any(f"canary {name}x" in row.snippet for row in snapshot.recall)
            assert not any(row.session_id == name for row in snapshot.origins.rows())
            assert not any(f"/{name}" in candidate for batch in snapshot.rewinds for candidate in batch.candidates)

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def twins_and_hands_stay(self) -> None:
        texts = self.texts()
        for line in self.by_hand:
            assert line in texts
        taken = {line for file in self.store.snapshot().corpus for line in file.text.splitlines() if "/twin#L" in line}
        assert taken >= getattr(self, "taken", set())
        self.taken = taken

    @precondition(lambda self: hasattr(self, "store"))
    @invariant()
    def trust_is_never_raised(self) -> None:
        """I7: a row of one (entry, session) only ever weakens while it lives."""
        rows = {(row.entry_key, row.session_id): row.origin_class for row in self.store.snapshot().origins.rows()}
        for key, origin_class in rows.items():
            if key in self.classes:
                assert TRUST_ORDER.index(origin_class) >= TRUST_ORDER.index(self.classes[key])
        self.classes = rows


TestLifeI6I7I10I15 = Life.TestCase
TestLifeI6I7I10I15.settings = settings(
    max_examples=max(8, (settings.default.max_examples if settings.default else 48) // 6), stateful_step_count=12
)
