"""Clean, residue or cannot prove: what a scan amounts to."""

from __future__ import annotations

import json

import pytest

from memprov.core.proof import (
    Control,
    Encoding,
    NeedleKind,
    NeedleSet,
    Root,
    Sighting,
    Spot,
    Verdict,
    Verification,
    judge,
)

BOTH = NeedleSet.of(["s-000001"], ["what was said there"])
LEDGER = "agents/main/ledger.sqlite"


def verdict(
    needles: NeedleSet = BOTH, *seen: Sighting, controls: tuple[Control, ...] = (), **more: object
) -> Verification:
    return judge("memprov", "main", needles, seen, controls=controls, **more)  # type: ignore[arg-type]


def sighting(table: str, kind: NeedleKind, path: str = LEDGER) -> Sighting:
    return Sighting(Spot(Root.STATE, path, table), kind, "s-000001", Encoding.UTF8)


def test_nothing_seen_and_everything_read_is_clean() -> None:
    assert verdict().verdict is Verdict.CLEAN
    assert verdict().exit_code == 0


def test_what_is_left_is_residue_whatever_else_is_unknown() -> None:
    answer = verdict(BOTH, sighting("origins", NeedleKind.ID), obstacles=("unreadable",))
    assert answer.verdict is Verdict.RESIDUE
    assert answer.exit_code == 1


@pytest.mark.parametrize(
    "answer",
    [
        verdict(BOTH, obstacles=("a file is encrypted",)),
        verdict(BOTH, controls=(Control("planted", 3, 2),)),
        verdict(NeedleSet.of(["s-000001"], [])),
        verdict(NeedleSet.of([], [])),
    ],
)
def test_absence_of_evidence_is_never_clean(answer: Verification) -> None:
    assert answer.verdict is Verdict.CANNOT_PROVE
    assert answer.exit_code == 4
    assert answer.obstacles


def test_what_a_contract_retains_is_counted_apart_with_the_way_to_remove_it() -> None:
    answer = verdict(BOTH, *[sighting("tombstones", NeedleKind.ID)] * 2)
    assert answer.verdict is Verdict.CLEAN
    assert [(hit.count, bool(hit.removal)) for hit in answer.retained] == [(2, True)]
    assert answer.residue == ()


def test_a_contract_covers_the_kind_it_names_and_no_other() -> None:
    assert verdict(BOTH, sighting("tombstones", NeedleKind.TEXT)).verdict is Verdict.RESIDUE
    assert verdict(BOTH, sighting("a table nobody declared", NeedleKind.ID)).verdict is Verdict.RESIDUE
    assert verdict(BOTH, sighting("free pages", NeedleKind.ID)).verdict is Verdict.RESIDUE


def test_another_agents_store_is_not_this_agents_residue() -> None:
    other = sighting("origins", NeedleKind.TEXT, "agents/other/ledger.sqlite")
    assert verdict(BOTH, other).verdict is Verdict.CLEAN
    assert verdict(BOTH, sighting("origins", NeedleKind.TEXT)).verdict is Verdict.RESIDUE


def test_a_verification_as_json_says_where_and_no_memory_text() -> None:
    answer = verdict(BOTH, sighting("origins", NeedleKind.ID), sighting("tombstones", NeedleKind.ID))
    document = json.loads(answer.to_json())
    assert document["verdict"] == "residue"
    assert document["residue"][0]["table"] == "origins"
    assert document["retained"][0]["retained"]
    assert "what was said" not in answer.to_json()
