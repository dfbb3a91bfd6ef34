"""Admission: cases C, decision D15, reports B02, B06, B14, B18, and the boundary table of the documents."""

from __future__ import annotations

import inspect
import itertools
import random
import time
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.records import SessionKind, SessionRecord, SessionState, is_dream_narrative, key_kind, resolve_kinds
from memprov.core.writing import Admission, AdmissionPolicy, Purpose, decide_admission, explain_policy
from memprov.errors import InputError, PolicyError

NO_POLICY = AdmissionPolicy()
INTERNAL = [kind for kind in SessionKind if kind is not SessionKind.INTERACTIVE]


def session(**fields: Any) -> SessionRecord:
    return evolve(SessionRecord("main", "s1", "agent:main:chat"), **fields)


GMAIL = session(hook_source="gmail")


def reason(record: SessionRecord, policy: AdmissionPolicy | None = NO_POLICY, purpose: str = "ingestion") -> str | None:
    return decide_admission(record, policy, frozenset(), purpose).reason


# --- cases C ----------------------------------------------------------------------------------------------------------


def test_case_C1_a_hook_source_is_excluded_with_its_reason() -> None:
    decision = decide_admission(GMAIL, AdmissionPolicy(hook_sources=["gmail"]), frozenset())
    assert not decision.admitted
    assert decision.reason == "hookExternalContentSource:gmail"
    assert (decision.agent_id, decision.session_id, decision.checkpointed) == ("main", "s1", True)


def test_I10_nothing_that_holds_a_transcript_can_be_handed_over() -> None:
    assert list(inspect.signature(decide_admission).parameters) == ["session", "policy", "forgotten", "purpose"]
    assert not {field.name for field in attrs.fields(SessionRecord)} & {"text", "transcript", "messages", "reader"}


def test_case_C2_forgotten_comes_first() -> None:
    policy = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"], chat_types=["group"])
    record = session(hook_source="gmail", channel="slack", chat_type="group", kind="cron", state="archived")
    for purpose in Purpose:
        decision = decide_admission(record, policy, {"s1"}, purpose)
        assert decision.reason == "forgotten"
        assert decision.checkpointed is (purpose is Purpose.INGESTION), "backfill and indexing record nothing"


def test_case_C3_hook_source_then_channel_then_chat_type_then_kind() -> None:
    policy = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"], chat_types=["group"])
    record = session(hook_source="gmail", channel="slack", chat_type="group", kind="cron")
    assert reason(record, policy) == "hookExternalContentSource:gmail"
    assert reason(evolve(record, hook_source=None), policy) == "channel:slack"
    assert reason(evolve(record, hook_source=None, channel=None), policy) == "chatType:group"
    assert reason(evolve(record, hook_source=None, channel=None, chat_type=None), policy) == "internal:cron"
    archived = evolve(record, hook_source=None, channel=None, chat_type=None, state="archived")
    assert reason(archived, policy) == "archive"


def test_case_C4_values_are_trimmed_and_empties_dropped() -> None:
    policy = AdmissionPolicy(hook_sources=[" gmail ", "", "\u00a0\ufeff", "gmail"])
    assert policy == AdmissionPolicy(hook_sources=["gmail"])
    assert policy.hook_sources == ("gmail",)
    assert reason(GMAIL, policy) == "hookExternalContentSource:gmail"


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"channels": ["slack", 5]}, ["channels", "5"]),
        ({"channels": [None]}, ["channels", "None"]),
        ({"channels": [["slack"]]}, ["channels", "slack"]),
        ({"channels": "slack"}, ["channels", "slack"]),
        ({"channels": {"slack": True}}, ["channels", "slack"]),
        ({"channels": None}, ["channels", "None"]),
        ({"channels": 5}, ["channels", "5"]),
        ({"chatTypes": ["dm"]}, ["chatTypes", "dm"]),
        ({"chatTypes": ["Direct"]}, ["chatTypes", "Direct"]),
        ({"hookSources": ["gmail"]}, ["hookSources", "gmail"]),
        ({"hook_sources": ["gmail"]}, ["hook_sources", "gmail"]),
        ({"channels": [], "Channels": ["slack"]}, ["Channels", "slack"]),
        ({"channels": [], 5: ["slack"]}, ["5", "slack"]),
    ],
)
def test_case_C4_D15_what_is_not_understood_is_named(config: dict[str, object], named: list[str]) -> None:
    for nested in (config, {"excludeSessions": config}, {"memoryPolicy": {"excludeSessions": config}}):
        with pytest.raises(PolicyError) as caught:
            AdmissionPolicy.from_config(nested)
        for text in named:
            assert text in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [{"channels": "slack"}, {"channels": [5]}, {"channels": b"x"}, {"hook_sources": 5}]
)
def test_D15_the_constructor_refuses_what_a_configuration_may_not_hold(arguments: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        AdmissionPolicy(**arguments)
    with pytest.raises(InputError):
        AdmissionPolicy(chat_types=["dm"])


@pytest.mark.parametrize("values", [["*"], ["slack", "*"], ["tele*"], [" * "], ["", " "], ["\u00a0"]])
@pytest.mark.parametrize("name", ["hookExternalContentSources", "channels", "chatTypes"])
def test_F24_a_rule_that_would_keep_nothing_out_is_refused_by_name(name: str, values: list[str]) -> None:
    with pytest.raises(PolicyError, match=rf"{name}.*(wildcard|blanks)|chatTypes holds 'slack'"):
        AdmissionPolicy.from_config({"excludeSessions": {name: values}})


@pytest.mark.parametrize("value", ["\u200b", "\u200b\u2060", "a\0", "caf\udce9", "a\nb"])
def test_F24_a_value_that_cannot_be_read_keeps_nothing_out_and_is_refused(value: str) -> None:
    for name in ("hookExternalContentSources", "channels", "chatTypes"):
        with pytest.raises(PolicyError, match=rf"{name} holds .*no text"):
            AdmissionPolicy.from_config({"excludeSessions": {name: ["slack"] * (name != "chatTypes") + [value]}})
    assert AdmissionPolicy(channels=["\ufeffslack\u00a0", "👩\u200d👧 family"]).channels == (
        "slack",
        "👩\u200d👧 family",
    )


@pytest.mark.parametrize("value", ["GMAIL", "gmai", "gmail2", "g mail"])
def test_case_C5_values_are_compared_exactly(value: str) -> None:
    assert reason(GMAIL, AdmissionPolicy(hook_sources=[value], channels=[value])) is None


@pytest.mark.parametrize("value", ["None", "none", "null"])
def test_case_C5_missing_metadata_matches_nothing(value: str) -> None:
    assert reason(session(), AdmissionPolicy(hook_sources=[value], channels=[value])) is None


def test_case_C6_empty_lists_exclude_nothing() -> None:
    record = session(hook_source="gmail", channel="slack", chat_type="group")
    for policy in (NO_POLICY, None, AdmissionPolicy.from_config({}), AdmissionPolicy.from_config({"channels": []})):
        assert decide_admission(record, policy, ()).admitted


@pytest.mark.parametrize("kind", INTERNAL)
@pytest.mark.parametrize("purpose", ["ingestion", "backfill"])
def test_case_C8_internal_kinds_are_kept_out_and_not_recorded(kind: SessionKind, purpose: str) -> None:
    decision = decide_admission(session(kind=kind), NO_POLICY, (), purpose)
    assert decision.reason == f"internal:{kind}"
    assert not decision.checkpointed


def test_case_C9_archives_and_retained_sessions_are_no_source_of_a_sweep() -> None:
    assert reason(session(state="archived")) == "archive"
    assert reason(session(state="archived", kind="unknown")) == "archive"
    assert reason(session(state="retained")) == "retained"
    assert not decide_admission(session(state="archived"), NO_POLICY, ()).checkpointed


@pytest.mark.parametrize("state", SessionState)
def test_case_C10_backfill_never_sees_a_forgotten_session(state: SessionState) -> None:
    assert decide_admission(session(state=state), NO_POLICY, {"s1"}, "backfill").reason == "forgotten"


def test_backfill_reads_archives_of_known_kind_and_retained_sessions_without_a_hook() -> None:
    assert reason(session(state="archived"), purpose="backfill") is None
    assert reason(session(state="archived", kind="unknown"), purpose="backfill") == "internal:unknown"
    assert reason(session(state="retained"), purpose="backfill") is None
    assert reason(session(state="retained", hook_source="gmail"), purpose="backfill") == "retained"


# --- the boundary table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("purpose", "applied"), [("ingestion", True), ("backfill", True), ("indexing", False)])
def test_the_policy_applies_to_ingestion_and_backfill_only(purpose: str, *, applied: bool) -> None:
    policy = AdmissionPolicy(hook_sources=["gmail"])
    assert (reason(GMAIL, policy, purpose) is not None) is applied


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (session(), None),
        (session(kind="subagent"), None),
        (session(kind="unknown"), None),
        (session(state="archived", kind="unknown"), None),
        (session(state="retained", hook_source="gmail"), None),
        (session(kind="cron"), "internal:cron"),
        (session(kind="heartbeat"), "internal:heartbeat"),
        (session(session_key="agent:main:cron:j:run:r"), "internal:cron"),
        (session(session_key="agent:main:dreaming-narrative-1"), "internal:narrative"),
        (session(session_key="agent:main:chat:heartbeat"), None),
        (session(session_key="agent:main:chat:heartbeat", state="archived"), "internal:heartbeat"),
    ],
)
def test_indexing_keeps_internal_sessions_out(record: SessionRecord, expected: str | None) -> None:
    decision = decide_admission(record, None, (), "indexing")
    assert (decision.reason, decision.checkpointed) == (expected, False)


def test_an_unknown_purpose_is_refused() -> None:
    with pytest.raises(ValueError, match="curiosity"):
        decide_admission(session(), None, (), "curiosity")


def test_forgotten_is_any_collection_of_ids_compared_exactly() -> None:
    for forgotten in (["s1"], ("s1",), iter(["s1"]), {"s1": 1}.keys(), {"s1"}):
        assert not decide_admission(session(), None, forgotten).admitted
    for forgotten in ({"s10"}, {"S1"}, ["s"], ["agent:main:chat"]):
        assert decide_admission(session(), None, forgotten).admitted
    for lone in ("s1", b"s1"):
        with pytest.raises(InputError):
            decide_admission(session(), None, lone)  # type: ignore[arg-type]


def test_a_million_decisions_are_cheap() -> None:
    record = session(channel="slack")
    policy = AdmissionPolicy(channels=[f"c{i}" for i in range(5_000)], hook_sources=[f"h{i}" for i in range(5_000)])
    forgotten = frozenset(f"f{i}" for i in range(100_000))
    began = time.perf_counter()
    for _ in range(20_000):
        decide_admission(record, policy, forgotten)
    assert time.perf_counter() - began < 5, "a decision must not depend on the length of the lists"


# --- explain ----------------------------------------------------------------------------------------------------------


def test_explain_policy_lists_what_a_rule_keeps_out_and_nothing_else() -> None:
    sessions = [GMAIL, session(session_id="s2", kind="cron"), session(session_id="s3", channel="slack", kind="cron")]
    policy = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"])
    assert explain_policy(policy, sessions) == (
        Admission("s1", "main", "hookExternalContentSource:gmail", checkpointed=True),
        Admission("s3", "main", "channel:slack", checkpointed=True),
    )
    assert explain_policy(NO_POLICY, sessions) == ()


texts = st.sampled_from([None, "gmail", "slack", "group", "direct"])
records = st.builds(session, hook_source=texts, channel=texts, chat_type=texts)
policies = st.builds(
    AdmissionPolicy,
    st.lists(st.sampled_from(["gmail", "slack"]), max_size=2),
    st.lists(st.sampled_from(["gmail", "slack"]), max_size=2),
    st.lists(st.sampled_from(["group", "direct"]), max_size=2),
)


@given(records, policies)
def test_explain_and_decide_agree_and_any_match_excludes(record: SessionRecord, policy: AdmissionPolicy) -> None:
    matches = (
        record.hook_source in policy.hook_sources
        or record.channel in policy.channels
        or record.chat_type in policy.chat_types
    )
    decision = decide_admission(record, policy, ())
    assert decision.admitted is not matches
    assert explain_policy(policy, [record]) == ((decision,) if matches else ())


# --- the configuration ------------------------------------------------------------------------------------------------

LISTS = {"hookExternalContentSources": ["gmail"], "channels": ["slack"], "chatTypes": ["group"]}
POLICY = AdmissionPolicy(hook_sources=["gmail"], channels=["slack"], chat_types=["group"])


def nested(*names: str, inside: Mapping[str, object] = LISTS) -> dict[str, object]:
    result: dict[str, object] = dict(inside)
    for name in reversed(names):
        result = {name: result}
    return result


WHOLE = ("plugins", "entries", "memory-core", "config", "memoryPolicy", "excludeSessions")


@pytest.mark.parametrize("start", range(len(WHOLE) + 1))
def test_a_policy_is_read_from_any_level_of_the_configuration(start: int) -> None:
    assert AdmissionPolicy.from_config(nested(*WHOLE[start:])) == POLICY


@pytest.mark.parametrize("length", range(1, len(WHOLE) + 1))
def test_case_C6_a_missing_section_excludes_nothing(length: int) -> None:
    assert AdmissionPolicy.from_config(nested(*WHOLE[:length], inside={})) == NO_POLICY


def test_the_hosts_own_keys_are_none_of_our_business() -> None:
    whole = nested(*WHOLE)
    whole |= {"agents": {}, "channels": {"slack": {"enabled": True}}, "session": {}}
    assert AdmissionPolicy.from_config(whole) == POLICY
    assert AdmissionPolicy.from_config({"dreaming": {"enabled": True}, **nested(*WHOLE[4:])}) == POLICY


@pytest.mark.parametrize("length", range(1, len(WHOLE) + 1))
@pytest.mark.parametrize("value", [None, [], "gmail", 5, True])
def test_D15_a_level_that_is_no_object_is_refused(length: int, value: object) -> None:
    config = nested(*WHOLE[: length - 1], inside={WHOLE[length - 1]: value})
    with pytest.raises(PolicyError):
        AdmissionPolicy.from_config(config)


@pytest.mark.parametrize("value", [None, [], "gmail"])
def test_D15_a_configuration_that_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(PolicyError):
        AdmissionPolicy.from_config(value)


@pytest.mark.parametrize(
    "config",
    [
        {"disableSessionIngestion": True},
        {"excludeSessions": LISTS, "disableSessionIngestion": True},
        nested("memoryPolicy", inside={"excludeSession": LISTS}),
        nested("memoryPolicy", inside={"disableSessionIngestion": True}),
        nested(*WHOLE[:4], inside={"memoryPolcy": {"excludeSessions": LISTS}}),
        nested(*WHOLE[:4], inside={"memorypolicy": {"excludeSessions": LISTS}}),
        nested(*WHOLE[:4], inside={"excludeSessions": LISTS}),
        nested(*WHOLE[:4], inside=LISTS),
        nested(*WHOLE[:3], inside={"memoryPolicy": {"excludeSessions": LISTS}}),
        nested(*WHOLE[:2], inside={"memory_core": {"config": {}}}),
        nested("plugins", inside={"entries": {}, "memoryPolicy": {}}),
        {"agents": {}},
    ],
)
def test_report_B18_a_rule_that_would_be_ignored_is_an_error(config: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        AdmissionPolicy.from_config(config)


def test_report_B18_the_decision_names_the_rule_that_applied() -> None:
    assert reason(session(channel="slack"), POLICY) == "channel:slack"


@pytest.mark.parametrize("source", ["email", "gmail", "webhook", None])
@pytest.mark.parametrize("rule", ["email", "gmail", "webhook"])
def test_report_B06_hook_sources_are_excluded_only_by_themselves(source: str | None, rule: str) -> None:
    decision = decide_admission(session(hook_source=source), AdmissionPolicy(hook_sources=[rule]), ())
    assert decision.admitted is (source != rule)


def test_report_B02_backfill_applies_the_exclusions_too() -> None:
    policy = AdmissionPolicy(hook_sources=["gmail"])
    assert reason(GMAIL, policy, "backfill") == "hookExternalContentSource:gmail"
    assert decide_admission(session(session_id="chat-10"), policy, {"chat-1"}, "backfill").admitted


# --- kinds by descent -------------------------------------------------------------------------------------------------


def family(**parents: str | None) -> dict[str, SessionRecord]:
    return {
        name: SessionRecord("main", name, f"agent:main:{name}", parent_key=parent and f"agent:main:{parent}")
        for name, parent in parents.items()
    }


def kinds(people: Mapping[str, SessionRecord]) -> dict[str, str]:
    return {record.session_id: str(record.kind) for record in resolve_kinds(people.values())}


def test_report_B14_only_the_live_conversation_is_admitted() -> None:
    people = family(live=None, child="cron", grandchild="child", ring1="ring2", ring2="ring1", orphan="gone", cron=None)
    people |= {"cron": evolve(people["cron"], kind="cron"), "archive": session(session_id="archive", state="archived")}
    people |= {"self": SessionRecord("main", "self", "agent:main:self", parent_key="agent:main:self")}
    decided = {r.session_id: decide_admission(r, NO_POLICY, ()).reason for r in resolve_kinds(people.values())}
    assert decided == {
        "live": None,
        "child": "internal:cron",
        "grandchild": "internal:cron",
        "cron": "internal:cron",
        "ring1": "internal:unknown",
        "ring2": "internal:unknown",
        "self": "internal:unknown",
        "orphan": "internal:unknown",
        "archive": "archive",
    }


def test_a_conversation_inside_a_conversation_is_one() -> None:
    assert kinds(family(a=None, b="a", c="b")) == {"a": "interactive", "b": "interactive", "c": "interactive"}


def test_a_missing_parent_is_judged_by_its_key() -> None:
    people = family(child="cron:job:run:7", other="x:subagent:y")
    assert kinds(people) == {"child": "cron", "other": "subagent"}


def test_the_strictest_ancestor_counts() -> None:
    people = family(a=None, b="a", c="b", d="gone")
    people |= {"a": evolve(people["a"], kind="cron"), "b": evolve(people["b"], kind="subagent")}
    people |= {"d": evolve(people["d"], kind="heartbeat")}
    assert kinds(people) == {"a": "cron", "b": "cron", "c": "cron", "d": "heartbeat"}


def test_an_archive_does_not_speak_for_a_session_that_is_there() -> None:
    live = SessionRecord("main", "now", "agent:main:a")
    older = evolve(live, session_id="old", state="archived", kind="unknown")
    child = SessionRecord("main", "child", "agent:main:c", parent_key="agent:main:a")
    assert [str(r.kind) for r in resolve_kinds([older, live, child])] == ["unknown", "interactive", "interactive"]
    assert [str(r.kind) for r in resolve_kinds([older, child])] == ["unknown", "unknown"]


def test_every_generation_of_a_key_counts_with_its_own_parent() -> None:
    now = SessionRecord("main", "now", "agent:main:a", parent_key="agent:main:p")
    before = evolve(now, session_id="before", state="retained", parent_key="agent:main:job")
    parents = [SessionRecord("main", "p", "agent:main:p"), SessionRecord("main", "j", "agent:main:job", kind="cron")]
    child = SessionRecord("main", "child", "agent:main:c", parent_key="agent:main:a")
    for people in itertools.permutations([now, before, *parents, child]):
        found = {record.session_id: str(record.kind) for record in resolve_kinds(people)}
        assert found == {"now": "interactive", "before": "cron", "p": "interactive", "j": "cron", "child": "cron"}


def test_a_session_without_a_key_keeps_its_kind() -> None:
    assert resolve_kinds([SessionRecord("main", "s", kind="heartbeat")])[0].kind == "heartbeat"


def test_a_long_ancestry_is_followed() -> None:
    depth = 20_000  # beyond any recursion limit
    people = [
        SessionRecord("main", f"{i}", f"agent:main:{i}", parent_key=f"agent:main:{i - 1}") for i in range(1, depth)
    ]
    people.append(SessionRecord("main", "0", "agent:main:0", kind="cron"))
    random.Random(5).shuffle(people)
    assert {record.kind for record in resolve_kinds(people)} == {SessionKind.CRON}


STRICTNESS = ["interactive", "unknown", "subagent", "heartbeat", "cron"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, *"abcdefg"]), st.sampled_from(STRICTNESS)),
        max_size=7,
        unique_by=lambda row: row[0],
    )
)
def test_descent_equals_the_oracle(people: list[tuple[str, str | None, str]]) -> None:
    by_name = {name: (parent, kind) for name, parent, kind in people}

    def climb(name: str | None, seen: tuple[str, ...] = ()) -> list[str]:
        if name is None:
            return ["interactive"]
        if name in seen or name not in by_name:
            return ["unknown"]
        parent, kind = by_name[name]
        return [kind, *climb(parent, (*seen, name))]

    sessions = [
        SessionRecord("main", name, f"agent:main:{name}", kind, parent_key=parent and f"agent:main:{parent}")
        for name, parent, kind in people
    ]
    expected = {name: max(climb(name), key=STRICTNESS.index) for name in by_name}
    assert {record.session_id: str(record.kind) for record in resolve_kinds(sessions)} == expected


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (None, "interactive"),
        ("agent:main:chat", "interactive"),
        ("agent:main:cron:job:run:1", "cron"),
        ("AGENT:main:cron:job:run:1:child", "cron"),
        ("agent:main:cron:job:with:colons:run:1", "cron"),
        ("agent:main:cron:job", "interactive"),
        ("agent:main:cron:job:run:", "interactive"),
        ("agent:main:cron::run:1", "interactive"),
        ("agent:main:x:cron:job:run:1", "interactive"),
        ("cron:job:run:1", "interactive"),
        ("agent:main:a:subagent:b", "subagent"),
        ("agent:main:dreaming-narrative-2026", "subagent"),
        ("dreaming-narrative-2026", "subagent"),
        ("dreaming-narrative-a:b", "subagent"),
        ("dreaming-narrative-a:b:c", "interactive"),
        ("agent:main:my-dreaming-narrative-x", "interactive"),
    ],
)
def test_the_kind_that_a_key_gives_away(key: str | None, kind: str) -> None:
    assert key_kind(key) == kind
    assert is_dream_narrative(key) is (kind == "subagent" and "narrative" in str(key))
