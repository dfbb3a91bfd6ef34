"""Receipts as values: canonical, sealed, chained, and without content."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from memprov.core.proof import Receipt, chain_problems, own_problems, seal_receipt, sessions_named
from memprov.errors import InputError

KEY = b"k" * 32
DRAFT = Receipt(0, None, 1_795_597_200_000, "memprov", "main", "erase", True, (), "plan", (("originRows", 3),))


def chain(*sessions: str, key: bytes = KEY) -> tuple[Receipt, ...]:
    made: list[Receipt] = []
    for session in sessions:
        made.append(seal_receipt(DRAFT, [session], key, made[-1] if made else None))
    return tuple(made)


def test_a_receipt_is_canonical_json_and_reads_back_as_itself() -> None:
    (receipt,) = chain("monday-chat")
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert Receipt.from_json(json.dumps(json.loads(receipt.to_json()), indent=3)).digest == receipt.digest


def test_it_names_sessions_to_the_holder_of_the_key_alone() -> None:
    (receipt,) = chain("monday-chat")
    assert "monday-chat" not in receipt.to_json()
    assert sessions_named(receipt, ["monday-chat", "monday-chat-2"], KEY) == ("monday-chat",)
    assert sessions_named(receipt, ["monday-chat"], b"another") == ()


def test_an_unbroken_chain_has_no_problems() -> None:
    receipts = chain("a", "b", "c")
    assert chain_problems(receipts, KEY, receipts[1].digest) == ()
    assert [receipt.number for receipt in receipts] == [1, 2, 3]


A, B, C = chain("a", "b", "c")


@pytest.mark.parametrize(
    ("receipts", "head"),
    [
        ((A, C), None),  # a link is missing
        ((B, A, C), None),  # re-ordered
        ((A, A, B, C), None),  # doubled
        ((B, C), None),  # the beginning is missing
        ((A, B), C.digest),  # the tail was cut off
        ((), C.digest),
        (chain("a", "b", "c", key=b"other"), None),  # made by somebody else
        (chain("x", "y", "z"), C.digest),  # replaced as a whole
        ((A, evolve(B, complete=False), C), None),  # altered
        ((A, B, evolve(C, counts=(("originRows", 0),))), None),
        ((A, B, evolve(C, sessions=())), None),
    ],
)
def test_a_chain_that_was_tampered_with_has_problems(receipts: tuple[Receipt, ...], head: str | None) -> None:
    assert chain_problems(receipts, KEY, head)


def test_every_field_is_under_the_seal() -> None:
    whole = json.loads(B.to_json())
    others: dict[type, object] = {bool: False, int: 99, str: "x", list: [["x", "y"]], type(None): "x"}
    for name, value in whole.items():
        if name in ("format", "verification"):
            continue
        try:
            altered = Receipt.from_json(json.dumps({**whole, name: others[type(value)]}))
        except InputError:
            continue
        assert own_problems(altered, KEY), name


def test_what_was_never_made_by_this_store_does_not_verify() -> None:
    assert own_problems(DRAFT, KEY)
    assert own_problems(A, None)
    assert not own_problems(A, KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        '{"format": "memprov receipt 1"}',
        A.to_json()[:-9],
        json.dumps({**json.loads(A.to_json()), "extra": 1}),
        json.dumps({**json.loads(A.to_json()), "complete": "yes"}),
        json.dumps({**json.loads(A.to_json()), "number": True}),
        json.dumps({**json.loads(A.to_json()), "format": "memprov receipt 2"}),
    ],
)
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Receipt.from_json(text)
