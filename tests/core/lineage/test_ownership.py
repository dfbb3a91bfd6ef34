"""Whose an entry below several markers is (F10): by its words, the place it cites, its session; and what then goes."""

from __future__ import annotations

import pytest

from memprov import MemoryFile, MemorySnapshot, Origin, RecallEntry, Selectors, plan_purge, select_sessions
from memprov.core.lineage import EntryEvidence, OriginTable
from memprov.core.purge import Scrub, ScrubRules, scrub_text
from memprov.core.records import SessionRecord, StoreIdentity
from memprov.core.text import claim_hash, claim_key, lineage_marker, promotion_marker

P = promotion_marker
K1, K2, K3 = P("k1"), P("k2"), P("k3")
DAY = "memory/.dreams/session-corpus/2026-11-26.txt"
ENTRY = f"- bicycle [main/sessions/main/s2#L2] is green [score=0.8 signals=2 recalls=1 avg=0.6 source={DAY}:1-1]"
BY_SESSION = [EntryEvidence("k1", ["s1"]), EntryEvidence("k2", ["s2"])]
BY_PLACE = [EntryEvidence("k1", places=[(DAY, 2, 2)]), EntryEvidence("k2", places=[(DAY, 1, 1)])]
BY_WORDS = [EntryEvidence("k2", snippets=["[main/sessions/main/s3#L9] User: and the bicycle is red"])]


def scrub(lines: list[str], keys: list[str], evidence: list[EntryEvidence]) -> Scrub:
    text = "".join(f"{line}\n" for line in lines)
    return scrub_text(text, ScrubRules("main", ["s1"], keys, evidence=tuple(evidence)))


@pytest.mark.parametrize("evidence", [BY_SESSION, BY_PLACE], ids=["session", "place"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_F10_a_marker_that_the_entry_contradicts_dangles(evidence: list[EntryEvidence], ending: str) -> None:
    for lines, left in [
        ([K1, K2, ENTRY, "x"], [K2, ENTRY, "x"]),
        ([K2, K1, ENTRY, "x"], [K2, ENTRY, "x"]),
        ([lineage_marker("l"), K1, lineage_marker("m"), K2, ENTRY], [lineage_marker("m"), K2, ENTRY]),
        ([K1, ENTRY + K2, "  more"], [ENTRY + K2, "  more"]),
    ]:
        result = scrub_text(ending.join([*lines, ""]), ScrubRules("main", ["s1"], ["k1"], evidence=tuple(evidence)))
        assert result.text == ending.join([*left, ""])
        assert (result.removed_entries, result.dangling_markers, result.collateral_entry_keys) == (1, ("k1",), ())
        assert not result.undecided
    both = scrub([K1 + K2, ENTRY], ["k1"], evidence)
    assert both.text == f"{K2}\n{ENTRY}\n"


@pytest.mark.parametrize("evidence", [BY_SESSION, BY_PLACE], ids=["session", "place"])
def test_F10_the_entry_goes_with_the_marker_that_is_its_own(evidence: list[EntryEvidence]) -> None:
    alone = scrub([K1, K2, ENTRY, "  more", "", "x"], ["k2"], evidence)
    assert (alone.text, alone.removed_entries, alone.collateral_entry_keys) == (f"{K1}\n\nx\n", 1, ())
    above = scrub([K1, K2, ENTRY, "- by hand"], ["k2"], evidence)
    assert (above.text, above.collateral_entry_keys, above.dangling_markers) == ("- by hand\n", ("k1",), ("k1",))
    both = scrub([K1, K2, ENTRY, "- by hand"], ["k1", "k2"], evidence)
    assert (both.text, both.removed_entries) == ("- by hand\n", 2)


def test_F10_words_and_keys_decide_too() -> None:
    red = "- and the bicycle is red, as said"
    assert scrub([K1, K2, red], ["k1"], BY_WORDS).text == f"{K2}\n{red}\n"
    ranged = f"memory:{DAY}:1:1:0123456789ab"
    assert scrub([K1, P(ranged), ENTRY], ["k1"], []).text == f"{P(ranged)}\n{ENTRY}\n"
    claim = claim_key(claim_hash("User: the bicycle is green"))
    said = (
        f"- [main/sessions/main/s9#L1] User: the bicycle is green [score=0.8 source={DAY}:7-7] <!-- importance: 5 -->"
    )
    assert scrub([K1, P(claim), said], ["k1"], []).text == f"{P(claim)}\n{said}\n"


def test_F10_where_nothing_decides_the_entry_goes_and_is_named() -> None:
    for evidence in ([], [EntryEvidence("k1", ["s1"]), EntryEvidence("k2", ["s3"])]):
        result = scrub(["x", K1, K2, ENTRY], ["k1"], evidence)
        assert (result.text, result.undecided) == ("x\n", ((4, ("k1", "k2")),))
    shared = scrub([K1, K2, ENTRY], ["k1"], [EntryEvidence("k1", ["s1", "s2"]), EntryEvidence("k2", ["s2"])])
    assert (shared.text, shared.collateral_entry_keys, shared.undecided) == ("", ("k2",), ())


def test_F10_in_a_plan_origins_and_recall_rows_decide() -> None:
    text = f"# M\n\n{K1}\n{K2}\n{ENTRY}\n\n{K1}\n{K3}\n- nothing says whose\n"
    sessions = [SessionRecord("main", name) for name in ("s1", "s2", "s3")]
    origins = [Origin(key, "main", name) for key, name in (("k1", "s1"), ("k2", "s2"), ("k3", "s3"))]
    snapshot = MemorySnapshot(
        store=StoreIdentity("test", "main", "/state", "/work"),
        files=(MemoryFile("MEMORY.md", text),),
        origins=OriginTable.from_rows(origins),
        recall=(RecallEntry("k2", DAY, "bicycle", 1, 1),),
    )
    plan = plan_purge(snapshot, select_sessions(sessions, Selectors(["s1"]), "main"))
    assert plan.report.collateral_entry_keys == ("k3",)
    assert plan.report.dangling_markers == ("k1",)
    assert [w for w in plan.report.warnings if "MEMORY.md line 9 " in w and "k1, k3" in w]
