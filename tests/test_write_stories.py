"""Stories of the write path, from messages to what can be seen, through public names alone.

Each is a capability that the documents promise, or an input on which an earlier version failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from memprov import (
    BackfillRange,
    ConsolidationReport,
    ConsolidationRequest,
    Decision,
    Dropped,
    Gate,
    IngestReport,
    InputError,
    Message,
    NativeStore,
    Origin,
    OriginClass,
    PendingNarrative,
    RecallReport,
    Reflection,
    Selectors,
    SessionRecord,
    Skipped,
    Thresholds,
    annotate_entry,
    backfill,
    consolidate,
    forget,
    ingest,
    message_classes,
    open_store,
    prepare_index,
    prepare_narrative,
    promote,
    publish_narrative,
    rebuild_index,
    reconcile,
    record_recall,
    rollback_backfill,
    search,
    sync_index,
    use_lancedb,
)

T = 1_795_597_200_000
DAY = 86_400_000
TEA = "I prefer oolong tea over coffee in the morning."
BIKE = "My bicycle is a green Kestrelwing touring model."


def owner(text: str, at_ms: int = T, **more: Any) -> Message:
    return Message("user", text, timestamp_ms=at_ms, sender_is_owner=True, **more)


@define
class Gateway:
    """A host: a store and its conversations. What is no message stands for what a platform hands over by mistake."""

    store: NativeStore
    chats: dict[str, Iterable[Any]] = field(factory=dict)

    def say(self, session_id: str, *messages: Any, **known: Any) -> None:
        self.store.record_session(
            SessionRecord("main", session_id, f"agent:main:{session_id}", created_at_ms=T, **known)
        )
        self.chats[session_id] = messages

    def read(self, session: SessionRecord, /) -> Iterable[Message]:
        chat = self.chats[session.session_id]
        for message in chat:
            if isinstance(message, Exception):
                raise message
            yield message() if callable(message) else message

    def ingest(self, **more: Any) -> IngestReport:
        return ingest(self.store, self.read, now_ms=T + DAY, **more)

    @property
    def corpus(self) -> str:
        files = sorted(Path(self.store._layout.workspace).rglob("session-corpus/*"))
        return "".join(file.read_text(encoding="utf-8") for file in files)


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    return Gateway(open_store(tmp_path / "store"))


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        (OSError("no such file: the spare key is under the pot"), "OSError"),
        ({"role": "user", "content": TEA}, "InputError: message 2 of a transcript is a dict, not a memprov.Message"),
        (lambda: Message("human", TEA), "InputError: the role of a message is 'human'"),  # type: ignore[arg-type]
        (lambda: Message("user", timestamp_ms=T, content=5), "InputError: the content of a message is 5"),  # type: ignore[arg-type]
    ],
    ids=["raises", "no message", "no role", "no content"],
)
def test_F22_a_session_that_cannot_be_read_fails_alone_and_is_named(gateway: Gateway, odd: object, named: str) -> None:
    gateway.say("a1", owner(TEA))
    gateway.say("b2", owner("My umbrella is yellow with white dots."), odd)
    gateway.say("c3", owner(BIKE))
    for _ in range(2):  # and it stays so: nothing of it was taken for read
        report = gateway.ingest()
        assert [name for name, _ in report.failed] == ["b2"]
        assert report.failed[0][1].startswith(named)
        assert "spare key" not in str(report)
    assert TEA in gateway.corpus
    assert BIKE in gateway.corpus
    gateway.say("b2", owner("My umbrella is yellow with white dots."))
    assert gateway.ingest().failed == ()
    assert "umbrella" in gateway.corpus


def test_F22_a_session_that_cannot_be_read_stays_as_it_is_indexed(gateway: Gateway) -> None:
    gateway.say("a1", owner(TEA))
    gateway.say("b2", owner(BIKE))
    assert sync_index(gateway.store, reader=gateway.read).failed == ()
    gateway.say("a1", owner("I prefer lapsang now."))
    gateway.say("b2", OSError())
    assert sync_index(gateway.store, reader=gateway.read).failed == (("b2", "OSError"),)
    assert [bool(search(gateway.store, word)) for word in ("lapsang", "Kestrelwing")] == [True, True]


@pytest.mark.parametrize("at", [T * 1000, T * 1_000_000, 253_402_300_799_999, T + 0.5, "lately", None], ids=str)
def test_F22_a_message_of_no_known_time_is_taken_on_the_day_of_its_session(gateway: Gateway, at: Any) -> None:
    gateway.say("a1", owner(TEA, at))
    gateway.say("b2", owner(BIKE))
    report = gateway.ingest()
    assert report.lines == (("2026-11-25", 2),)
    assert (report.untimed, report.failed) == (1, ())


def test_F21_a_host_sees_what_its_messages_were_not_taken_for(gateway: Gateway) -> None:
    parts = [{"type": "text", "text": TEA}, {"type": "image_url", "image_url": {"url": "file:///x.png"}}]
    gateway.say("a1", *[Message("system", "You are helpful.")] * 400, owner(parts), Message("assistant", None))  # type: ignore[arg-type]
    report = gateway.ingest()
    assert report.skipped == ((Skipped.ROLE, 400), (Skipped.WORDLESS, 1))
    assert f"User: {TEA}" in gateway.corpus


def test_F25_the_answer_to_a_generated_prompt_is_no_memory(gateway: Gateway) -> None:
    gateway.say(
        "a1", owner("[OpenClaw heartbeat poll]"), Message("assistant", "All quiet, door is locked."), owner(TEA)
    )
    report = gateway.ingest()
    assert (len(report.added_keys), report.skipped) == (1, ((Skipped.GENERATED, 2),))
    assert "door" not in gateway.corpus
    sync_index(gateway.store, reader=gateway.read)
    assert not search(gateway.store, "door")


# --- recall -----------------------------------------------------------------------------------------------------------

QUESTIONS = (
    "where is the spare key?",
    "spare key",
    "is there a key under the flowerpot?",
    "which flowerpot hides the key",
    "key flowerpot blue",
)
KEY = "The spare key to the garden shed is under the blue flowerpot."


@pytest.fixture
def asked(gateway: Gateway) -> Gateway:
    """Somebody said where the key is, and it was asked for on five days."""
    gateway.say("a1", owner(KEY), owner(TEA))
    gateway.say("b2", owner(BIKE))
    gateway.ingest()
    sync_index(gateway.store, reader=gateway.read)
    for day, question in enumerate(QUESTIONS, 1):
        search(gateway.store, question, record=True, now_ms=T + (day + 1) * DAY)
    return gateway


def test_F60_what_was_said_and_asked_for_is_promoted_with_the_default_thresholds(asked: Gateway) -> None:
    report = promote(asked.store, now_ms=T + 7 * DAY)
    memory = Path(asked.store._layout.workspace, "MEMORY.md").read_text(encoding="utf-8")
    assert len(report.promoted) == 1
    assert KEY in memory
    assert {gate for _, gate in report.refused} == {Gate.WEAK}, "and nothing that nobody asked for"
    assert TEA not in memory
    assert BIKE not in memory
    forget(asked.store, Selectors(sessions=["a1"]))
    assert KEY not in Path(asked.store._layout.workspace, "MEMORY.md").read_text(encoding="utf-8")


def test_F60_a_consolidation_fires_with_the_default_thresholds_too(asked: Gateway) -> None:
    report = consolidate(asked.store, superseding, now_ms=T + 7 * DAY)
    assert len(report.added) == 1
    assert [KEY in line for line in memory(asked)] == [True]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("备用钥匙在蓝色花盆下面, 不要告诉别人。", "备用钥匙放哪儿了"),
        ("予備の鍵は青い植木鉢の下にあります。", "鍵"),
        ("여분의 열쇠는 파란 화분 아래에 있어요.", "열쇠"),
        ("กุญแจสำรองอยู่ใต้กระถางต้นไม้สีฟ้า", "กุญแจอยู่ไหน"),
    ],
)
def test_F60_a_question_in_any_script_counts(gateway: Gateway, said: str, question: str) -> None:
    gateway.say("a1", owner(said), owner("A line that nobody asks for."))
    gateway.ingest()
    sync_index(gateway.store, reader=gateway.read)
    hits = search(gateway.store, question)
    assert len(record_recall(gateway.store, question, hits, now_ms=T + 2 * DAY).recalled) == 1


def test_F60_a_recall_of_what_was_forgotten_since_brings_nothing_back(gateway: Gateway) -> None:
    gateway.say("a1", owner(KEY))
    gateway.say("b2", owner(BIKE))
    gateway.ingest()
    sync_index(gateway.store, reader=gateway.read)
    hits = search(gateway.store, "key bicycle")
    forget(gateway.store, Selectors(sessions=["a1"]))
    after = gateway.store.snapshot()
    report = record_recall(gateway.store, "key bicycle", hits, now_ms=T + DAY)
    assert (len(report.recalled), report.forgotten) == (1, 1)
    assert gateway.store.snapshot() == after
    assert KEY not in str(gateway.store.ingest_state())


def test_F60_a_question_counts_once_a_day_and_a_hit_that_nothing_staged_says_not_at_all(asked: Gateway) -> None:
    def recalls() -> list[int]:
        return sorted(entry.recall_count for entry in asked.store.ingest_state().entries)

    assert recalls() == [0, 0, 5]
    hits = search(asked.store, QUESTIONS[0])
    for query in (QUESTIONS[0], f" {QUESTIONS[0].upper()} "):
        record_recall(asked.store, query, hits, now_ms=T + 2 * DAY)
    assert recalls() == [0, 0, 5]
    Path(asked.store._layout.workspace, "MEMORY.md").write_text("# Memory\n\n- a zebra by hand\n", encoding="utf-8")
    sync_index(asked.store)
    report = record_recall(asked.store, "zebra", search(asked.store, "zebra"), now_ms=T + 2 * DAY)
    assert report == RecallReport(unmatched=1)
    with pytest.raises(InputError, match="a hit is 'spare'"):
        record_recall(asked.store, "key", ["spare"])  # type: ignore[list-item]


def test_F64_there_is_one_clock(asked: Gateway) -> None:
    promote(asked.store, now_ms=T + 7 * DAY)
    times = [
        (entry.first_recalled_at_ms, entry.last_recalled_at_ms, entry.promoted_at_ms)
        for entry in asked.store.ingest_state().entries
    ]
    assert sorted(times, key=str) == [*[(T + DAY, T + DAY, None)] * 2, (T + DAY, T + 6 * DAY, T + 7 * DAY)]
    for use in (ingest, promote, consolidate, record_recall):
        arguments: dict[str, Any] = {"reader": asked.read, "model": lambda request: (), "query": "x", "hits": ()}
        taken = {name: value for name, value in arguments.items() if name in use.__annotations__}
        with pytest.raises(InputError, match="now_ms is"):
            use(asked.store, **taken, now_ms=T * 1000)


@pytest.mark.parametrize(
    ("use", "wrong", "named"),
    [
        (ingest, {"reader": "s1"}, "reader is 's1'"),
        (ingest, {"policy": {"channels": ["slack"]}}, r"policy is a dict; it must be a memprov\.AdmissionPolicy"),
        (ingest, {"look_back_days": -1}, "look_back_days is -1"),
        (ingest, {"look_back_days": 1.5}, r"look_back_days is 1\.5"),
        (ingest, {"sessions": "a1"}, "lone string"),
        (ingest, {"zone": "Europe/Oslo"}, "zone is 'Europe/Oslo'"),
        (backfill, {"days": ("2026-01-01", "2026-01-02")}, "days is a tuple"),
        (backfill, {"mode": "look"}, "'look' is no backfill mode"),
        (promote, {"thresholds": {"score": 0.5}}, "thresholds is a dict"),
        (promote, {"limits": 5}, "limits is 5"),
        (consolidate, {"model": "gpt"}, "model is 'gpt'"),
        (rollback_backfill, {"now_ms": "today"}, "now_ms is 'today'"),
        (publish_narrative, {"narrative": "Once upon a time"}, "narrative is a text of 16 characters"),
    ],
)
def test_a_call_with_a_wrong_thing_is_refused_by_name(gateway: Gateway, use: Any, wrong: Any, named: str) -> None:
    gateway.say("a1", owner(TEA))
    right: dict[str, Any] = {"reader": gateway.read, "model": lambda request: ()}
    taken = {name: value for name, value in right.items() if name in use.__annotations__}
    with pytest.raises(InputError, match=named):
        use(gateway.store, **{**taken, **wrong})
    with pytest.raises(InputError, match=r"memprov's own store \(open_store\), not of a object"):
        use(object(), **taken, **({"narrative": None} if use is publish_narrative else {}))
    assert gateway.corpus == ""


@pytest.mark.parametrize(
    "use", [search, record_recall, sync_index, rebuild_index, prepare_index, reconcile, use_lancedb]
)
def test_the_index_is_that_of_an_embedded_store(use: Any) -> None:
    arguments = {"query": "tea", "hits": ()}
    taken = {name: value for name, value in arguments.items() if name in use.__annotations__}
    with pytest.raises(InputError, match=r"memprov's own store \(open_store\), not of a dict"):
        use({}, **taken)


# --- narratives -------------------------------------------------------------------------------------------------------


def diary(gateway: Gateway) -> str:
    path = Path(gateway.store._layout.workspace, "DREAMS.md")
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture
def dreaming(gateway: Gateway) -> Gateway:
    """Two sessions, and a diary block that tells of the first."""
    gateway.say("a1", owner(TEA))
    gateway.say("b2", owner(BIKE))
    gateway.ingest()
    tea, _ = keys_of(gateway)
    pending = prepare_narrative(gateway.store, [tea]).telling("A cup of oolong steams at dawn.")
    assert publish_narrative(gateway.store, pending, now_ms=T + DAY) is None
    return gateway


def keys_of(gateway: Gateway) -> tuple[str, str]:
    by_text = {TEA in entry.snippet: entry.key for entry in gateway.store.ingest_state().entries}
    return by_text[True], by_text[False]


def test_F04_a_narrative_goes_with_the_session_that_it_tells_of(dreaming: Gateway) -> None:
    _, bike = keys_of(dreaming)
    assert publish_narrative(dreaming.store, PendingNarrative("A green frame gleams.", [bike]), now_ms=T + DAY) is None
    assert "gleams" in diary(dreaming)
    forget(dreaming.store, Selectors(sessions=["b2"]))
    assert "gleams" not in diary(dreaming)
    assert "oolong steams" in diary(dreaming)


def test_F04_a_narrative_of_no_known_source_is_not_published(gateway: Gateway) -> None:
    gateway.say("a1", owner(TEA))
    believed = (Origin("k", "main", "a1"),)
    for narrative in (PendingNarrative("A quiet night."), PendingNarrative("A quiet night.", origins=believed)):
        assert publish_narrative(gateway.store, narrative, now_ms=T) is Dropped.NO_ORIGIN
    assert diary(gateway) == ""
    with pytest.raises(InputError, match="has no text"):
        publish_narrative(gateway.store, PendingNarrative(" "))


@pytest.mark.parametrize("believed", [(), (Origin("k", "main", "b2"),)])
def test_F15_a_narrative_goes_with_the_session_of_the_diary_block_that_it_was_shown(
    dreaming: Gateway, believed: tuple[Origin, ...]
) -> None:
    tea, bike = keys_of(dreaming)
    pending = prepare_narrative(dreaming.store, [bike])
    assert pending.context == ("A cup of oolong steams at dawn.",)
    assert {origin.session_id for origin in pending.origins} == {"a1", "b2"}
    for text, keys, context in (("Steam on a saddle.", [bike], pending.context), ("Dawn on a frame.", [tea, bike], ())):
        narrative = PendingNarrative(text, keys, believed, context)
        assert publish_narrative(dreaming.store, narrative, now_ms=T + DAY) is None
    forget(dreaming.store, Selectors(sessions=["a1"]))
    assert not [word for word in ("oolong", "saddle", "Dawn") if word in diary(dreaming)]


def test_F15_a_narrative_has_the_origins_of_every_agent_of_the_workspace(dreaming: Gateway) -> None:
    store = dreaming.store
    other = Gateway(open_store(store._layout.directory, "other", store._layout.workspace))
    other.store.record_session(SessionRecord("other", "o1", "agent:other:o1", created_at_ms=T))
    other.chats["o1"] = [owner("The lighthouse keeper waters his tulips.")]
    other.ingest()
    pending = prepare_narrative(dreaming.store, [entry.key for entry in dreaming.store.ingest_state().entries])
    assert {origin.agent_id for origin in pending.origins} == {"main", "other"}
    assert publish_narrative(dreaming.store, pending.telling("Tulips by a lamp."), now_ms=T + DAY) is None
    forget(other.store, Selectors(sessions=["o1"]))
    assert "Tulips" not in diary(dreaming)
    assert publish_narrative(dreaming.store, pending.telling("Tulips again."), now_ms=T + DAY) is Dropped.ENTRY_GONE
    assert "Tulips" not in repr(pending.telling("Tulips again."))


# --- what supersedes what ---------------------------------------------------------------------------------------------

TUESDAY = "The rowing club meets on Tuesday evening."
THURSDAY = "The rowing club meets on Thursday evening now."
ANY = Thresholds(score=0, signals=1, unique_queries=0)


def superseding(request: ConsolidationRequest) -> list[Decision]:
    """A model that lets an entry take the place of those that it is said to supersede."""
    decisions = []
    for candidate in request.candidates:
        prior = [entry.line for entry in request.entries if candidate.lineage in entry.known_as]
        decisions.append(Decision(candidate.key, "superseded" if prior else "added", prior))
    return decisions


def memory(gateway: Gateway) -> list[str]:
    text = Path(gateway.store._layout.workspace, "MEMORY.md").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("- ")]


def merged(gateway: Gateway, at: int) -> ConsolidationReport:
    return consolidate(gateway.store, superseding, thresholds=ANY, now_ms=at)


def test_F61_what_a_message_supersedes_leaves_one_line_with_the_origins_of_both(gateway: Gateway) -> None:
    gateway.say("a1", owner(TUESDAY, supersedes_key="rowing-club", project_key="club"))
    gateway.ingest()
    assert len(merged(gateway, T + DAY).added) == 1
    gateway.say("b2", owner(THURSDAY, supersedes_key="rowing-club", project_key="club"))
    gateway.ingest()
    report = merged(gateway, T + 2 * DAY)
    assert (report.rejected, len(report.superseded)) == (None, 1)
    (line,) = memory(gateway)
    assert THURSDAY in line
    assert "<!-- project: club -->" in line
    assert {row.session_id for row in gateway.store.origins_of(report.superseded)} == {"a1", "b2"}
    forget(gateway.store, Selectors(sessions=["a1"]))
    assert memory(gateway) == []


@pytest.mark.parametrize("promoted", [True, False])
def test_F61_an_entry_is_said_to_supersede_an_earlier_one_by_its_key(gateway: Gateway, *, promoted: bool) -> None:
    gateway.say("a1", owner(TUESDAY))
    (tuesday,) = gateway.ingest().added_keys
    if promoted:
        promote(gateway.store, thresholds=ANY, now_ms=T + DAY)
    else:
        merged(gateway, T + DAY)
    gateway.say("b2", owner(THURSDAY))
    (thursday,) = gateway.ingest().added_keys
    assert annotate_entry(gateway.store, thursday, supersedes_key=tuesday)
    assert not annotate_entry(gateway.store, thursday, supersedes_key=tuesday)
    assert merged(gateway, T + 2 * DAY).superseded == (thursday,)
    (line,) = memory(gateway)
    assert THURSDAY in line
    assert {row.session_id for row in gateway.store.origins_of([thursday])} == {"a1", "b2"}


def test_F61_a_promoted_entry_keeps_what_it_is_known_as(gateway: Gateway) -> None:
    gateway.say("a1", owner(TUESDAY, supersedes_key="rowing-club"))
    gateway.ingest()
    promote(gateway.store, thresholds=ANY, now_ms=T + DAY)
    gateway.say("b2", owner(THURSDAY, supersedes_key="rowing-club"))
    gateway.ingest()
    assert len(merged(gateway, T + 2 * DAY).superseded) == 1
    assert len(memory(gateway)) == 1


@pytest.mark.parametrize("key", ["", " x", "a --> b", "a\nb", "x" * 201, "\ud800", 5], ids=repr)
def test_F61_a_key_that_no_marker_could_name_is_refused(gateway: Gateway, key: Any) -> None:
    for name in ("supersedes_key", "project_key"):
        with pytest.raises(InputError, match=name):
            owner(TUESDAY, **{name: key})
    gateway.say("a1", owner(TUESDAY))
    (tuesday,) = gateway.ingest().added_keys
    for entry, wrong in ((tuesday, key), (tuesday, tuesday), ("k9", "x")):
        with pytest.raises(InputError):
            annotate_entry(gateway.store, entry, supersedes_key=wrong)


# --- what the host makes of it ----------------------------------------------------------------------------------------


def test_F63_a_preview_of_a_backfill_shows_the_texts_of_each_day(gateway: Gateway) -> None:
    gateway.say("a1", owner(TEA), Message("user", "A stranger says hello."))
    gateway.say("b2", owner(BIKE, T + 2 * DAY))
    report = backfill(gateway.store, gateway.read)
    shown = {day.day: [(line.text, line.session_id, line.origin_class) for line in day.lines] for day in report.days}
    assert shown == {
        "2026-11-25": [(f"User: {TEA}", "a1", "owner")],
        "2026-11-27": [(f"User: {BIKE}", "b2", "owner")],
    }
    assert TEA not in repr(report)
    assert gateway.corpus == ""
    days = BackfillRange("2026-11-26")
    assert [day.day for day in backfill(gateway.store, gateway.read, days=days).days] == ["2026-11-27"]
    assert not any(day.lines for day in backfill(gateway.store, gateway.read, mode="apply").days)


def test_F62_a_reflection_on_a_preview_has_the_origins_of_all_that_it_was_made_from(gateway: Gateway) -> None:
    for number in range(1, 5):
        gateway.say(f"s{number}", owner(f"Fact number {number} of the house.", T + number))
    (day,) = backfill(gateway.store, gateway.read).days
    every = [line.hash for line in day.lines]
    reflections = {
        day.day: [
            Reflection("1. The house has facts. [1, 2, 3]", every),
            Reflection("2. One fact stands alone.", every[:1]),
            Reflection("3. Nobody said so.", ["0" * 40]),
        ]
    }
    report = backfill(gateway.store, gateway.read, mode="diary", reflections=reflections)
    assert (report.diary_blocks, report.left_out) == (1, 1)
    assert "Nobody" not in diary(gateway)
    assert forget(gateway.store, Selectors(sessions=["s4"])).artifacts.memory_entries == 1
    assert "has facts" not in diary(gateway)
    assert "stands alone" in diary(gateway)


def test_F62_B28_a_file_is_as_weak_as_the_messages_that_are_copied_into_it(gateway: Gateway) -> None:
    said = [owner(TEA), Message("assistant", "Noted."), Message("toolResult", "a page", result_source="network")]
    assert message_classes(said) == (OriginClass.OWNER, OriginClass.AGENT, OriginClass.UNTRUSTED)
    file = Path(gateway.store._layout.workspace, "memory", "2026-11-25.md")
    file.parent.mkdir()
    for messages, expected in ((said[:2], "agent"), (said, "untrusted")):
        with gateway.store.observe_write(
            "a1", file, sender_is_owner=True, tainted=False, parts=message_classes(messages)
        ) as write:
            file.write_text(f"{TEA} {len(messages)}\n", encoding="utf-8")
        assert write.origin_class == expected
