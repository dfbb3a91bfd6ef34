"""Lineage: the columnar table against plain Python, and the laws of the merge rules (D14, I7–I9, cases F, B02, B46)."""

from __future__ import annotations

import hashlib
import pickle
import random
from itertools import permutations
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.lineage import (
    OriginTable,
    PublicationOutcome,
    Transfer,
    entry_classes,
    join_origins,
    keeps_reserved,
    lineage_digest,
    prunable_keys,
    record_origins,
    rows_to_release,
    transfer_origins,
)
from memprov.core.records import Origin, OriginClass
from memprov.errors import CorruptStoreError, InputError

OWNER, AGENT, SYSTEM, UNTRUSTED = OriginClass.OWNER, OriginClass.AGENT, OriginClass.SYSTEM, OriginClass.UNTRUSTED
ORDER = [OWNER, AGENT, SYSTEM, UNTRUSTED]

KEYS = ["", "K", "k", "k1", "k10", "k\udc80", "ключ", "\U0001f9e0"]
SESSIONS = ["s1", "S1", "s10", "s", "", "a b", "\udcff"]

origins = st.builds(
    Origin,
    st.sampled_from(KEYS),
    st.sampled_from(["main", "b"]),
    st.sampled_from(SESSIONS),
    st.sampled_from([None, "agent:main:a", "agent:main:b"]),
    st.sampled_from(ORDER),
    st.integers(-5, 5),
)
rows = st.lists(origins, max_size=25)
main_rows = st.lists(st.builds(evolve, origins, agent_id=st.just("main")), max_size=25)
session_sets = st.sets(st.sampled_from([*SESSIONS, "unknown"]))
key_sets = st.sets(st.sampled_from([*KEYS, "unknown"]))
transfers = st.lists(
    st.builds(Transfer, st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=3)), max_size=8
)


def identity(row: Origin) -> tuple[str, str, str]:
    return (row.entry_key, row.agent_id, row.session_id)


def joined(*groups: list[Origin] | tuple[Origin, ...]) -> dict[tuple[str, str, str], Origin]:
    """D14 said once more, by brute force."""
    grouped: dict[tuple[str, str, str], list[Origin]] = {}
    for group in groups:
        for row in group:
            grouped.setdefault(identity(row), []).append(row)
    return {
        key: Origin(
            *key,
            min((r.session_key for r in same if r.session_key is not None), default=None),
            max((r.origin_class for r in same), key=ORDER.index),
            min(r.observed_at_ms for r in same),
        )
        for key, same in grouped.items()
    }


def in_order(found: dict[tuple[str, str, str], Origin]) -> list[Origin]:
    return [found[key] for key in sorted(found)]


# --- the table against an oracle --------------------------------------------------------------------------------------


@given(rows)
def test_D14_table_rows_are_the_joined_rows_in_order(given_rows: list[Origin]) -> None:
    table = OriginTable.from_rows(given_rows)
    assert list(table.rows()) == in_order(joined(given_rows))
    assert len(table) == len(joined(given_rows))
    assert table.keys == {row.entry_key for row in given_rows}


@given(main_rows, session_sets, key_sets)
def test_selection_equals_the_oracle(given_rows: list[Origin], sessions: set[str], also: set[str]) -> None:
    table = OriginTable.from_rows(given_rows)
    keys = {row.entry_key for row in given_rows if row.session_id in sessions} | also
    mixed = {row.entry_key for row in given_rows if row.entry_key in keys and row.session_id not in sessions}
    lineage = table.select(sessions, also=also)
    assert lineage.entry_keys == tuple(sorted(keys))
    assert lineage.mixed == tuple(sorted(mixed))
    plain = table.select(sessions)
    assert plain.entry_keys == tuple(sorted({r.entry_key for r in given_rows if r.session_id in sessions}))
    assert set(plain.entry_keys) <= set(lineage.entry_keys), "selected keys only grow"
    assert set(plain.mixed) == set(mixed) & set(plain.entry_keys)


@given(rows, session_sets, key_sets)
def test_counts_and_parts_equal_the_oracle(given_rows: list[Origin], sessions: set[str], keys: set[str]) -> None:
    table = OriginTable.from_rows(given_rows)
    everything = in_order(joined(given_rows))
    assert table.count(keys) == sum(row.entry_key in keys for row in everything)
    touching = [row for row in everything if row.entry_key in keys or row.session_id in sessions]
    assert list(table.touching(sessions, keys).rows()) == touching
    assert list(table.without(keys).rows()) == [row for row in everything if row.entry_key not in keys]
    assert list(table.of_agent("b").rows()) == [row for row in everything if row.agent_id == "b"]


@given(rows, key_sets)
def test_I11_without_and_of_agent_leave_other_agents_alone(given_rows: list[Origin], keys: set[str]) -> None:
    table = OriginTable.from_rows(given_rows)
    left = table.without(keys, agent_id="main")
    assert left.of_agent("b") == table.of_agent("b")
    assert left.of_agent("main") == table.of_agent("main").without(keys)


@given(rows, rows)
def test_equality_is_equality_of_rows(one: list[Origin], other: list[Origin]) -> None:
    a, b = OriginTable.from_rows(one), OriginTable.from_rows(other)
    assert (a == b) is (list(a.rows()) == list(b.rows()))
    assert a == OriginTable.from_rows(a.rows())
    shuffled = [*one, *one]
    random.Random(len(one)).shuffle(shuffled)
    assert a == OriginTable.from_rows(shuffled)


def test_tables_that_differ_in_one_value_are_unequal() -> None:
    row = Origin("k", "main", "s1", "agent:main:a", AGENT, 5)
    table = OriginTable.from_rows([row])
    others: list[dict[str, Any]] = [
        {"entry_key": "l"},
        {"agent_id": "b"},
        {"session_id": "s2"},
        {"session_key": None},
        {"origin_class": OWNER},
        {"observed_at_ms": 6},
    ]
    for changed in others:
        assert (table == OriginTable.from_rows([evolve(row, **changed)])) is False
    assert (table == "no table") is False


@given(main_rows)
def test_columns_and_rows_build_the_same_table(given_rows: list[Origin]) -> None:
    table = OriginTable.from_columns(
        [row.entry_key for row in given_rows],
        (row.session_id for row in given_rows),
        (row.session_key for row in given_rows),
        (str(row.origin_class) for row in given_rows),
        (row.observed_at_ms for row in given_rows),
        "main",
    )
    assert table == OriginTable.from_rows(given_rows)


@given(rows, session_sets)
def test_a_table_survives_a_process_pool(given_rows: list[Origin], sessions: set[str]) -> None:
    table = OriginTable.from_rows(given_rows)
    before = table.select(sessions)  # fills the caches, which do not travel
    copy = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert copy == table
    assert copy.select(sessions) == before


def test_an_unmixed_table_is_returned_as_it_is() -> None:
    table = OriginTable.from_rows([Origin("k", "main", "s1")])
    assert table.without(["other"]) is table
    assert table.without(["k"], agent_id="other") is table
    assert table.of_agent("main") is table
    assert len(table.of_agent("nobody")) == 0


def test_a_class_that_no_writer_knows_is_corruption() -> None:
    with pytest.raises(CorruptStoreError, match="royal"):
        OriginTable.from_columns(["k"], ["s"], [None], ["royal"], [0], "main")


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(InputError):
        OriginTable.from_columns(["k", "l"], ["s"], [None], ["agent"], [0], "main")


@pytest.mark.parametrize("lone", ["s1", b"s1"])
def test_a_lone_string_is_no_collection(lone: str) -> None:
    table = OriginTable.from_rows([Origin("k", "main", "s1")])
    for call in (table.select, table.count, table.without, table.touching):
        with pytest.raises(InputError):
            call(lone)
    with pytest.raises(InputError):
        Transfer("k", lone)
    with pytest.raises(InputError):
        prunable_keys(lone, live=(), preimages=(), diaries=(), reports=(), indexed=())


def test_a_large_table_selects_what_the_oracle_selects() -> None:
    source = random.Random(7)
    table_rows = [
        Origin(f"k{source.randrange(20_000)}", "main", f"s{source.randrange(3_000)}", None, AGENT, 1)
        for _ in range(60_000)
    ]
    table = OriginTable.from_rows(table_rows)
    selected = {f"s{i}" for i in range(0, 3_000, 7)}
    keys = {row.entry_key for row in table_rows if row.session_id in selected}
    mixed = {row.entry_key for row in table_rows if row.entry_key in keys and row.session_id not in selected}
    lineage = table.select(selected)
    assert lineage.entry_keys == tuple(sorted(keys))
    assert lineage.mixed == tuple(sorted(mixed))
    assert table.count(keys) == sum(row.entry_key in keys for row in table.rows())


# --- selection, exactness, mixed --------------------------------------------------------------------------------------


def test_I12_ids_match_exactly() -> None:
    table = OriginTable.from_rows(
        Origin(f"k:{s}", "main", s) for s in ("chat-1", "chat-10", "Chat-1", "chat-", "chat-1 ")
    )
    assert table.select(["chat-1"]).entry_keys == ("k:chat-1",)


def test_report_B02_a_prefix_selects_no_longer_id() -> None:
    table = OriginTable.from_rows([Origin("a", "main", "chat-1"), Origin("b", "main", "chat-10")])
    assert table.select(["chat-1"]).entry_keys == ("a",)
    assert table.select(["chat-10"]).entry_keys == ("b",)


def test_case_G3_an_entry_with_an_unselected_origin_is_selected_whole_and_mixed() -> None:
    table = OriginTable.from_rows([Origin("k", "main", "s1"), Origin("k", "main", "s2"), Origin("l", "main", "s2")])
    lineage = table.select(["s1"])
    assert (lineage.entry_keys, lineage.mixed) == (("k",), ("k",))
    assert table.count(lineage.entry_keys) == 2
    assert table.select(["s1", "s2"]).mixed == ()


def test_report_B42_an_unknown_scope_selects_nothing() -> None:
    table = OriginTable.from_rows([Origin("m1", "main", "ana"), Origin("m3", "main", "bo")])
    assert table.select(["nobody"]).entry_keys == ()
    assert table.select([]).entry_keys == ()
    assert list(table.without(table.select(["nobody"]).entry_keys).rows()) == list(table.rows())


# --- the basis --------------------------------------------------------------------------------------------------------


@given(main_rows, session_sets)
def test_a_store_can_recompute_the_basis_from_its_rows(given_rows: list[Origin], sessions: set[str]) -> None:
    table = OriginTable.from_rows(given_rows)
    keys = table.select(sessions).entry_keys
    basis = table.basis(sessions, keys)
    assert basis.session_ids == tuple(sorted(sessions))
    assert basis.entry_keys == keys
    by_sql = [(r.entry_key, r.session_id) for r in given_rows if r.session_id in sessions or r.entry_key in keys]
    random.Random(1).shuffle(by_sql)
    assert lineage_digest(by_sql) == basis.lineage


def test_report_B10_lineage_added_after_planning_changes_the_basis() -> None:
    before = [Origin("k1", "main", "s1"), Origin("z", "main", "s9")]
    planned = OriginTable.from_rows(before).basis(["s1"], ["k1"])
    for added in (Origin("k2", "main", "s1"), Origin("k1", "main", "s2")):
        assert OriginTable.from_rows([*before, added]).basis(["s1"], ["k1"]) != planned
    unrelated = Origin("z", "main", "s8")
    assert OriginTable.from_rows([*before, unrelated]).basis(["s1"], ["k1"]) == planned


def test_the_digest_is_part_of_saved_plans() -> None:
    assert lineage_digest([]) == hashlib.sha256(b"").hexdigest()
    two = [("k2", "s"), ("é", "\udc80")]
    assert lineage_digest(two) == hashlib.sha256(b"2:k21:s2:\xc3\xa91:\x80").hexdigest()


def test_the_digest_keeps_pairs_apart() -> None:
    texts = ["", "a", "ab", "b", "1", "1:", "a\0b", "\udc80", "é"]
    pairs = [(x, y) for x in texts for y in texts]
    assert len({lineage_digest([pair]) for pair in pairs}) == len(pairs)
    assert lineage_digest([("a", "b"), ("c", "d")]) == lineage_digest([("c", "d"), ("a", "b"), ("a", "b")])
    assert lineage_digest([("a", "b"), ("c", "d")]) != lineage_digest([("a", "d"), ("c", "b")])


# --- the join (D14) ---------------------------------------------------------------------------------------------------


def test_case_F1_recording_joins_to_the_weakest_class_and_the_earliest_time() -> None:
    first = Origin("k", "main", "s1", None, OWNER, 5)
    second = Origin("k", "main", "s1", None, UNTRUSTED, 9)
    expected = (Origin("k", "main", "s1", None, UNTRUSTED, 5),)
    for one, other in permutations([first, second]):
        assert join_origins([one, other]) == expected
        existing = record_origins((), [one], agent_id="main")
        assert join_origins([*existing, *record_origins(existing, [other], agent_id="main")]) == expected


@given(rows, rows, rows)
def test_D14_the_join_is_a_join(a: list[Origin], b: list[Origin], c: list[Origin]) -> None:
    assert join_origins([*a, *b]) == join_origins([*b, *a])
    assert join_origins([*join_origins([*a, *b]), *c]) == join_origins([*a, *join_origins([*b, *c])])
    assert join_origins([*a, *a]) == join_origins(a) == tuple(in_order(joined(a)))


@given(rows)
def test_D14_the_class_of_an_entry_is_the_weakest_of_its_rows(given_rows: list[Origin]) -> None:
    expected = {
        key: max((r.origin_class for r in given_rows if r.entry_key == key), key=ORDER.index)
        for key in {r.entry_key for r in given_rows}
    }
    assert entry_classes(given_rows) == expected


# --- recording --------------------------------------------------------------------------------------------------------


@given(main_rows, main_rows, session_sets)
def test_recording_returns_what_it_adds_or_weakens(old: list[Origin], new: list[Origin], gone: set[str]) -> None:
    before = joined(old)
    after = joined(old, [row for row in new if row.session_id not in gone])
    added = record_origins(old, new, agent_id="main", forgotten=gone)
    assert list(added) == in_order({key: row for key, row in after.items() if before.get(key) != row})
    assert record_origins([*old, *added], new, agent_id="main", forgotten=gone) == ()


def test_case_F2_origins_of_two_agents_in_one_call_are_an_error() -> None:
    with pytest.raises(InputError, match="'b'"):
        record_origins((), [Origin("k", "main", "s1"), Origin("k", "b", "s1")], agent_id="main")


def test_I6_recording_leaves_forgotten_sessions_out() -> None:
    new = [Origin("k", "main", "s1"), Origin("k", "main", "s2")]
    assert record_origins((), new, agent_id="main", forgotten=["s1"]) == (new[1],)


# --- transfer (I7, I8) ------------------------------------------------------------------------------------------------


def transferred(given_rows: list[Origin], moves: list[Transfer]) -> dict[tuple[str, str, str], Origin]:
    """The least fixpoint, by repeating single steps until nothing changes."""
    state = joined(given_rows)
    while True:
        step = [
            evolve(row, entry_key=move.survivor)
            for move in moves
            for row in state.values()
            if row.entry_key in move.parents
        ]
        after = joined(list(state.values()), step)
        if after == state:
            return state
        state = after


@given(rows, transfers)
def test_transfer_equals_the_oracle(given_rows: list[Origin], moves: list[Transfer]) -> None:
    before, after = joined(given_rows), transferred(given_rows, moves)
    changed = {key: row for key, row in after.items() if before.get(key) != row}
    assert list(transfer_origins(given_rows, moves)) == in_order(changed)


@given(rows, transfers)
def test_I7_transfer_only_adds_origins_and_never_raises_trust(given_rows: list[Origin], moves: list[Transfer]) -> None:
    before = joined(given_rows)
    after = joined(given_rows, transfer_origins(given_rows, moves))
    assert before.keys() <= after.keys()
    for key, row in before.items():
        assert ORDER.index(after[key].origin_class) >= ORDER.index(row.origin_class)
        assert after[key].observed_at_ms <= row.observed_at_ms
    for move in moves:
        inherited = {(a, s) for k, a, s in after if k in move.parents}
        assert inherited <= {(a, s) for k, a, s in after if k == move.survivor}


@given(rows, transfers)
def test_I8_transfer_is_idempotent(given_rows: list[Origin], moves: list[Transfer]) -> None:
    once = transfer_origins(given_rows, moves)
    assert transfer_origins([*given_rows, *once], moves) == ()
    assert transfer_origins(given_rows, [*moves, *moves]) == once


@given(rows, transfers, st.randoms(use_true_random=False))
def test_I8_transfer_is_commutative(given_rows: list[Origin], moves: list[Transfer], order: random.Random) -> None:
    expected = transfer_origins(given_rows, moves)
    order.shuffle(moves)
    order.shuffle(given_rows)
    assert transfer_origins(given_rows, moves) == expected


@given(rows, transfers, transfers)
def test_I8_transfer_is_associative(given_rows: list[Origin], first: list[Transfer], second: list[Transfer]) -> None:
    together = joined(given_rows, transfer_origins(given_rows, [*first, *second]))
    state = list(joined(given_rows).values())
    for _ in range(2 * len(KEYS) + 2):  # in turns, until neither has anything to add
        state = list(joined(state, transfer_origins(state, first)).values())
        state = list(joined(state, transfer_origins(state, second)).values())
    assert joined(state) == together


def test_case_F3_a_merge_hands_the_prior_origins_to_the_candidate_and_then_prunes_the_prior() -> None:
    start = [Origin("prior", "main", "s1"), Origin("candidate", "main", "s2")]
    added = transfer_origins(start, [Transfer("candidate", ["prior"])])
    assert added == (Origin("candidate", "main", "s1"),)
    gone = prunable_keys(["prior"], live=["candidate"], preimages=(), diaries=(), reports=(), indexed=())
    left = OriginTable.from_rows([*start, *added]).without(gone)
    assert [(row.entry_key, row.session_id) for row in left.rows()] == [("candidate", "s1"), ("candidate", "s2")]


def test_case_F4_a_superseding_candidate_without_origins_inherits_and_others_are_untouched() -> None:
    start = [Origin("stale", "main", "s1"), Origin("unrelated", "main", "s3")]
    assert transfer_origins(start, [Transfer("new", ["stale"])]) == (Origin("new", "main", "s1"),)


def test_case_F10_forgetting_any_of_four_contributors_reaches_the_line() -> None:
    start = [Origin("rem", "main", f"s{i}") for i in range(1, 5)]
    table = OriginTable.from_rows([*start, Origin("other", "main", "s9")])
    for session in ("s1", "s2", "s3", "s4"):
        assert table.select([session]).entry_keys == ("rem",)


def test_transfer_reaches_every_agent_of_the_workspace() -> None:
    start = [Origin("old", "main", "s1"), Origin("old", "b", "s1")]
    added = transfer_origins(start, [Transfer("new", ["old"])])
    assert added == (Origin("new", "b", "s1"), Origin("new", "main", "s1"))


def test_transfer_lowers_the_trust_that_the_survivor_had() -> None:
    start = [Origin("old", "main", "s1", None, UNTRUSTED, 9), Origin("new", "main", "s1", None, OWNER, 5)]
    assert transfer_origins(start, [Transfer("new", ["old"])]) == (Origin("new", "main", "s1", None, UNTRUSTED, 5),)


def test_a_transfer_to_itself_or_from_nothing_adds_nothing() -> None:
    start = [Origin("k", "main", "s1")]
    assert transfer_origins(start, [Transfer("k", ["k"]), Transfer("k", ["missing"]), Transfer("x", [])]) == ()


def test_a_circle_of_transfers_gives_every_member_all_origins() -> None:
    size = 200
    start = [Origin(f"k{i}", "main", f"s{i}") for i in range(size)]
    moves = [Transfer(f"k{(i + 1) % size}", [f"k{i}"]) for i in range(size)]
    after = OriginTable.from_rows([*start, *transfer_origins(start, moves)])
    assert len(after) == size * size


def test_a_chain_of_transfers_is_followed_to_its_end() -> None:
    depth = 5_000  # beyond any recursion limit
    moves = [Transfer(f"k{i + 1}", [f"k{i}"]) for i in range(depth)]
    random.Random(3).shuffle(moves)
    added = transfer_origins([Origin("k0", "main", "s1", None, UNTRUSTED, 2)], moves)
    assert {row.entry_key for row in added} == {f"k{i + 1}" for i in range(depth)}
    assert {(row.session_id, row.origin_class, row.observed_at_ms) for row in added} == {("s1", UNTRUSTED, 2)}


def test_a_survivor_may_have_ten_thousand_parents() -> None:
    width = 10_000
    start = [Origin(f"p{i}", "main", f"s{i}") for i in range(width)]
    added = transfer_origins(start, [Transfer("k", [f"p{i}" for i in range(width)])])
    assert len(added) == width
    assert {row.entry_key for row in added} == {"k"}


def test_a_ladder_of_diamonds_is_no_exponential() -> None:
    rungs = 2_000  # two ways at every rung
    moves = [Transfer(f"{side}{i + 1}", [f"l{i}", f"r{i}"]) for i in range(rungs) for side in "lr"]
    added = transfer_origins([Origin("l0", "main", "s1")], moves)
    assert len(added) == 2 * rungs


# --- publication and pruning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "kept"),
    [
        (PublicationOutcome.NOT_ATTEMPTED, False),
        (PublicationOutcome.REFUSED, False),
        (PublicationOutcome.COMMITTED, True),
        (PublicationOutcome.COMMITTED_THEN_FAILED, True),
        (PublicationOutcome.UNKNOWN, True),
    ],
)
def test_case_F6_report_B09_only_a_certain_failure_gives_reserved_origins_up(
    outcome: PublicationOutcome, *, kept: bool
) -> None:
    start = [Origin("k1", "main", "s1"), Origin("k2", "main", "s2")]
    reserved = transfer_origins(start, [Transfer("k3", ["k1", "k2"])])
    assert {row.session_id for row in reserved} == {"s1", "s2"}
    assert keeps_reserved(outcome) is kept
    assert rows_to_release(start, reserved, outcome) == (() if kept else reserved)


def test_every_outcome_is_decided() -> None:
    assert [str(outcome) for outcome in PublicationOutcome] == [
        "not_attempted",
        "refused",
        "committed",
        "committed_then_failed",
        "unknown",
    ]
    assert not keeps_reserved(PublicationOutcome("refused"))
    assert {outcome for outcome in PublicationOutcome if not keeps_reserved(outcome)} == {
        PublicationOutcome.NOT_ATTEMPTED,
        PublicationOutcome.REFUSED,
    }
    with pytest.raises(ValueError, match="perhaps"):
        keeps_reserved("perhaps")  # type: ignore[arg-type]


def test_I7_a_rollback_deletes_no_row_that_was_there_before() -> None:
    start = [Origin("new", "main", "s1", None, OWNER, 5), Origin("old", "main", "s1", None, UNTRUSTED, 9)]
    reserved = transfer_origins([*start, Origin("old", "main", "s2")], [Transfer("new", ["old"])])
    released = rows_to_release(start, reserved, PublicationOutcome.REFUSED)
    assert [(row.entry_key, row.session_id) for row in released] == [("new", "s2")]


PLACES = ("live", "preimages", "diaries", "reports", "indexed")


@pytest.mark.parametrize("place", [*PLACES, None])
def test_case_F7_a_replaced_key_is_kept_by_any_place_that_refers_to_it(place: str | None) -> None:
    found = {name: {"replaced"} if name == place else set[str]() for name in PLACES}
    assert prunable_keys(["replaced"], **found) == (frozenset() if place else {"replaced"})


def test_D13_prune_looks_into_the_phase_reports() -> None:
    assert prunable_keys(["k"], live=(), preimages=(), diaries=(), reports={"k"}, indexed=()) == frozenset()


@given(key_sets, st.fixed_dictionaries(dict.fromkeys(PLACES, key_sets)))
def test_I9_prune_keeps_what_is_referred_to_and_touches_candidates_only(
    candidates: set[str], found: dict[str, set[str]]
) -> None:
    gone = prunable_keys(candidates, **found)
    assert gone == {key for key in candidates if not any(key in keys for keys in found.values())}
