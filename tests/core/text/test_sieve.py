"""The sieve: never wrong when it says no, and no plan depends on it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov import Selectors, apply_to_snapshot, plan_purge, select_sessions
from memprov.core.purge import ScrubRules
from memprov.core.purge import planning as purge
from memprov.core.text import QuotationMatcher, Sieve, Snippet
from memprov.testing import synthetic_sessions, synthetic_snapshot

TEXTS = st.lists(st.text("ab é語😀\udcff", max_size=80), max_size=5)


def sieve_of(texts: list[str]) -> Sieve:
    sieve = Sieve()
    for text in texts:
        sieve.add(text)
    return sieve


@given(TEXTS, TEXTS, st.data())
def test_what_a_text_contains_passes(texts: list[str], others: list[str], data: st.DataObject) -> None:
    held = []
    for text in texts:
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        held.append(text[start:end])
    patterns = data.draw(st.permutations([*held, *others]))
    passed = list(sieve_of(texts).passes(patterns))
    assert len(passed) == len(patterns)
    contained = [any(pattern in text for text in texts) for pattern in patterns]
    assert all(ok for ok, wanted in zip(passed, contained, strict=True) if wanted)


def test_what_no_text_contains_is_held_back() -> None:
    sieve = sieve_of(["I prefer oolong tea over coffee", "in the morning, when the kettle sings"])
    assert list(sieve.passes(["I prefer oolong tea over coffee", "the kettle sings"])) == [True, True]
    assert list(sieve.passes(["I prefer oolong tea over water", "the kettle sings again"])) == [False, False]
    assert list(sieve.passes(["no text, but short"[:15], ""])) == [True, True]


def test_a_text_is_remembered_across_the_blocks_in_which_it_is_read() -> None:
    text = "".join(f"{number:07d}" for number in range(200_000))
    cuts = range(1 << 20, len(text), 1 << 20)
    assert all(sieve_of([text]).passes([text[cut - 20 : cut + 20] for cut in cuts]))


@given(
    st.lists(st.sampled_from(["User: the kettle is on", "- the kettle is on", "é" * 14, "a kettle, on a stove"])), TEXTS
)
def test_a_narrowed_matcher_finds_the_same(snippets: list[str], texts: list[str]) -> None:
    matcher = QuotationMatcher(tuple(map(Snippet, snippets)))
    searched = [*texts, *snippets[:1], "the kettle is on\nthe kettle is off"]
    narrowed = matcher.narrowed(searched)
    assert [narrowed.quoted_lines(text) for text in searched] == [matcher.quoted_lines(text) for text in searched]


@pytest.mark.parametrize("step", [2, 50])
def test_no_plan_depends_on_the_sieve(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    snapshot, sessions = synthetic_snapshot(200, 20), synthetic_sessions(200)
    selection = select_sessions(sessions, Selectors(sessions=[r.session_id for r in sessions[::step]]))
    plan = plan_purge(snapshot, selection)
    asked: list[tuple[ScrubRules, Sequence[str]]] = []

    def untouched(rules: ScrubRules, texts: Sequence[str]) -> ScrubRules:
        asked.append((rules, texts))
        return rules

    narrowed = purge._narrowed
    monkeypatch.setattr(purge, "_narrowed", untouched)
    assert plan_purge(snapshot, selection) == plan
    rules, texts = asked[0]
    kept = narrowed(rules, texts)
    assert (len(kept.snippets) < len(rules.snippets) // 4) == (step == 2)
    assert (len(kept.entry_keys) < len(rules.entry_keys) // 2) == (step == 2)


def test_many_effects_at_once_are_the_effects_one_by_one() -> None:
    snapshot, sessions = synthetic_snapshot(100), synthetic_sessions(100)
    selection = select_sessions(sessions, Selectors(sessions=[r.session_id for r in sessions[:50]]))
    plan = plan_purge(snapshot, selection)
    one_by_one = snapshot
    for effect in plan.effects:
        one_by_one = effect.applied_to(one_by_one)
    assert apply_to_snapshot(snapshot, plan) == one_by_one


def test_a_worker_that_is_sent_equal_rules_again_keeps_those_that_it_has() -> None:
    rules = ScrubRules("main", {"s1"}, {"k"}, [Snippet("the kettle is on", cut=True)])
    packed = pickle.dumps(rules)
    first, second = pickle.loads(packed), pickle.loads(packed)  # noqa: S301
    assert first == rules
    assert second is first
