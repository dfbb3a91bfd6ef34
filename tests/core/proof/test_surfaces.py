"""The surface registry: each place is declared, and what is not declared is retained by nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memprov.core.proof import SURFACES, NeedleKind, Root, Spot, retained_at, surface_at


@pytest.mark.parametrize(
    ("store", "spot", "name"),
    [
        ("memprov", Spot(Root.STATE, "agents/main/ledger.sqlite", "origins"), "origins"),
        ("memprov", Spot(Root.STATE, "agents/main/ledger.sqlite", "chunks_text_data"), "full text"),
        ("memprov", Spot(Root.STATE, "agents/helper/ledger.sqlite", "origins"), "another agent's ledger"),
        ("memprov", Spot(Root.STATE, "shared/0a/ledger.sqlite", "checkpoints", "excluded"), "exclusions"),
        ("memprov", Spot(Root.STATE, "shared/0a/ledger.sqlite", "checkpoints", "included"), "checkpoints"),
        ("memprov", Spot(Root.STATE, "agents/main/vectors.lance/vectors.lance/data/1.lance"), "LanceDB copy"),
        ("memprov", Spot(Root.WORKSPACE, "memory/2026-01-02.md"), "memory files"),
        (
            "openclaw",
            Spot(Root.STATE, "agents/main/sessions/x.jsonl.deleted.2026.zst"),
            "transcripts and archives (files)",
        ),
        (
            "openclaw",
            Spot(Root.STATE, "agents/main/agent/openclaw-agent.sqlite", "session_windows"),
            "transcripts and archives (tables)",
        ),
        (
            "openclaw",
            Spot(Root.STATE, "agents/main/agent/openclaw-agent.sqlite", "memory_index_chunks_fts_data"),
            "full text",
        ),
        (
            "openclaw",
            Spot(Root.STATE, "state/openclaw.sqlite", "plugin_state_entries", "memory-core/short-term-recall"),
            "memory state",
        ),
        ("openclaw", Spot(Root.STATE, "state/openclaw.sqlite", "audit_events"), "host's records"),
    ],
)
def test_a_place_belongs_to_its_surface(store: str, spot: Spot, name: str) -> None:
    surface = surface_at(store, "main", spot)
    assert surface is not None
    assert surface.name == name


@pytest.mark.parametrize(
    "spot",
    [
        Spot(Root.STATE, "agents/main/ledger.sqlite", "a_copy"),
        Spot(Root.STATE, "agents/main/ledger.sqlite", "free pages"),
        Spot(Root.STATE, "state/openclaw.sqlite", "free pages"),
        Spot(Root.STATE, "agents/main/agent/openclaw-agent.sqlite", "free pages"),
        Spot(Root.STATE, "state/openclaw.sqlite", "plugin_state_entries: unused bytes"),
        Spot(Root.STATE, "state/openclaw.sqlite", "old WAL frames"),
        Spot(Root.STATE, "notes.txt"),
        Spot(Root.WORKSPACE, "MEMORY.md.bak"),
    ],
)
def test_what_nobody_declared_is_retained_by_nobody(spot: Spot) -> None:
    for store in ("memprov", "openclaw"):
        for kind in NeedleKind:
            assert retained_at(store, "main", spot, kind) is None


def test_audit_rows_may_keep_an_id_but_no_text() -> None:
    audit = Spot(Root.STATE, "state/openclaw.sqlite", "audit_events")
    assert retained_at("openclaw", "main", audit, NeedleKind.ID) is not None
    assert retained_at("openclaw", "main", audit, NeedleKind.TEXT) is None


def test_a_surface_is_reached_or_says_why_it_stays_and_how_it_goes() -> None:
    for surface in SURFACES:
        assert bool(surface.retained) == bool(surface.why) == bool(surface.removal), surface.name
        reached = surface.purged and surface.erased
        assert (
            surface.retained or reached or surface.name in {"bookkeeping", "lock", "receipts", "stale rebuild copies"}
        ), surface.name


def table() -> str:
    """The registry as docs/proof.md shows it."""
    lines = ["| store | surface | place | holds | the purge | level `erase` | retained |", "| --- " * 7 + "|"]
    for surface in SURFACES:
        tables = f" ({', '.join(surface.tables)}{': ' + ', '.join(surface.rows) if surface.rows else ''})"
        place = f"`{surface.root}/{surface.files}`" + (tables if surface.tables not in ((), ("**",)) else "")
        kinds = " and ".join(sorted(f"{kind}s" for kind in surface.retained))
        kept = f"{kinds}: {surface.why}; {surface.removal}" if kinds else ""
        cells = (surface.store, surface.name, place, surface.holds, surface.purged, surface.erased, kept)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def test_the_documentation_shows_the_registry() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "proof.md").read_text("utf-8")
    shown = re.search(r"<!-- surfaces -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == table()
