"""The write path on real transcripts: the same memory as OpenClaw wrote there.

Every transcript in the `before` trees is ingested or backfilled again, from nothing, and what comes out is compared
with what stands in the tree. The deviations, all of them:

=============================  =================================================================================
what                           why
=============================  =================================================================================
`curated`: end of DREAMS.md    written by hand into the store
concept tags                   our own list of words that say nothing: `deploy` is a tag (in `meta`)
snippets of promoted entries   promotion copied the corpus line over the staged text: compared without its prefix
size and time of transcripts   measured by the host, not by memprov: taken from the store
=============================  =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memprov import AdmissionPolicy
from memprov.core.purge import promotion_keys
from memprov.core.state import Checkpoint, StagedEntry
from memprov.core.text import json_text, neutralise, neutralise_inline, redact, strip_prefix, strip_speaker
from memprov.core.writing import (
    Source,
    Transcript,
    admit_sources,
    content_hash,
    plan_ingestion,
    read_admitted,
    read_transcript,
)
from memprov.core.writing.backfill import plan_backfill
from tests.core.ledger_model import Ledger
from tests.core.recorded_stores import Recorded, read_recorded

BACKFILLED = [
    pytest.param(name, marks=pytest.mark.needs_store(name))
    for name in ("basic", "mixed", "curated", "vectors", "scale300")
]
Unpacked = Callable[[str], Path]


def reader(recorded: Recorded, opened: list[str] | None = None) -> Callable[[Source], Transcript]:
    def read(source: Source) -> Transcript:
        assert source.session is not None
        if opened is not None:
            opened.append(source.session.session_id)
        return recorded.transcripts[source.session.session_id]

    return read


def origins(ledger: Ledger) -> set[tuple[str, str, str | None, str, int]]:
    return {
        (row.entry_key, row.session_id, row.session_key, str(row.origin_class), row.observed_at_ms)
        for row in ledger.origins.values()
    }


def checkpoint(row: Checkpoint) -> dict[str, Any]:
    excluded = {} if row.excluded_reason is None else {"excludedReason": row.excluded_reason}
    return {
        "mtimeMs": row.mtime_ms,
        "size": row.size,
        "contentHash": row.content_hash,
        "lineCount": row.line_count,
        "lastContentLine": row.last_content_line,
        **excluded,
    }


def entry(row: StagedEntry) -> dict[str, Any]:
    assert row.provenance is not None
    return {
        "path": row.path,
        "startLine": row.start_line,
        "endLine": row.end_line,
        "snippet": row.snippet,
        "recallCount": row.recall_count,
        "dailyCount": row.daily_count,
        "groundedCount": row.grounded_count,
        "totalScore": row.total_score,
        "maxScore": row.max_score,
        "queryHashes": list(row.query_hashes),
        "recallDays": list(row.recall_days),
        "conceptTags": [tag for tag in row.concept_tags if tag != "deploy"],
        "provenance": {
            "originClass": row.provenance.origin_class,
            "sessionKind": row.provenance.session_kind,
            "observedAt": row.provenance.observed_at_ms,
        },
        "claimHash": row.claim_hash,
    }


def recorded_entry(row: dict[str, Any]) -> dict[str, Any]:
    left_out = ("key", "source", "firstRecalledAt", "lastRecalledAt", "promotedAt")
    kept = {name: value for name, value in row.items() if name not in left_out}
    if "promotedAt" in row:
        kept["snippet"] = strip_speaker(strip_prefix(row["snippet"], "main"))
    return kept


@pytest.mark.parametrize("name", BACKFILLED)
def test_a_backfill_gives_the_memory_that_openclaw_wrote(name: str, unpacked_store: Unpacked) -> None:
    recorded = read_recorded(unpacked_store(name) / "before")
    ledger, batches = Ledger(), 0
    while True:
        state = ledger.state()
        admitted = admit_sources(recorded.sources, None, state, "backfill")
        plan = plan_backfill(state, admitted, read_admitted(admitted, reader(recorded)), mode="apply")
        ledger.apply(plan.effects)
        batches += 1
        if not plan.report.more:
            break
    assert batches == (13 if name == "scale300" else 1)
    assert ledger.corpus == recorded.corpus
    assert origins(ledger) == recorded.origins
    assert ledger.seen == recorded.seen
    assert {key: checkpoint(row) for key, row in ledger.checkpoints.items()} == recorded.checkpoints
    assert ledger.rewinds.keys() == recorded.rewinds.keys()
    for key, batch in ledger.rewinds.items():
        assert list(batch.candidates) == [json_text(candidate) for candidate in recorded.rewinds[key]]
    assert {key: entry(row) for key, row in ledger.entries.items()} == {
        key: recorded_entry(row) for key, row in recorded.entries.items()
    }
    diary = ledger.files["DREAMS.md"]
    assert recorded.diary is not None
    assert recorded.diary.startswith(diary)
    assert (recorded.diary == diary) is (name != "curated")
    assert set(promotion_keys(diary)) <= {row.entry_key for row in ledger.origins.values()}


@pytest.mark.needs_store("meta")
def test_two_sweeps_give_the_memory_that_openclaw_wrote(unpacked_store: Unpacked) -> None:
    """Six sessions, then two more and a policy: the first sweep took the hooks in, the second keeps them out."""
    recorded = read_recorded(unpacked_store("meta") / "before")
    ledger, opened = Ledger(), list[str]()

    def sweep(sources: list[Source], policy: AdmissionPolicy | None) -> list[tuple[str, str | None]]:
        opened.clear()
        state = ledger.state()
        admitted = admit_sources(sources, policy, state)
        transcripts = read_admitted(admitted, reader(recorded, opened))
        plan = plan_ingestion(state, admitted, transcripts, today="2026-11-29", earliest_day="2026-11-27")
        ledger.apply(plan.effects)
        return [(decision.session_id[-1], decision.reason) for decision in plan.report.excluded]

    sources = sorted(recorded.sources, key=lambda source: source.path)
    assert sweep(sources[:6], None) == []
    assert len(opened) == 6
    policy = AdmissionPolicy(hook_sources=["gmail", "email"], channels=["slack"], chat_types=["channel"])
    assert sweep(sources, policy) == [
        ("1", "hookExternalContentSource:gmail"),
        ("6", "hookExternalContentSource:email"),
        ("7", "hookExternalContentSource:gmail"),
        ("8", "channel:slack"),
    ]
    assert opened == []  # what is excluded is not opened, and the rest has not changed
    assert ledger.corpus == recorded.corpus
    assert origins(ledger) == recorded.origins
    assert ledger.seen == recorded.seen
    assert {key: checkpoint(row) for key, row in ledger.checkpoints.items()} == recorded.checkpoints
    assert {key: entry(row) for key, row in ledger.entries.items()} == {
        key: recorded_entry(row) for key, row in recorded.entries.items()
    }
    assert recorded.diary is None


def test_ordinary_text_is_neither_escaped_nor_redacted(store_name: str, unpacked_store: Unpacked) -> None:
    recorded = read_recorded(unpacked_store(store_name) / "before")
    count = 0
    for transcript in recorded.transcripts.values():
        for message in transcript.messages:
            for text in (message.content,) if isinstance(message.content, str) else message.content:
                count += 1
                assert neutralise(text) == neutralise_inline(text) == redact(text) == text
    assert count


def test_lines_are_known_again_by_the_hash_that_openclaw_keeps(store_name: str, unpacked_store: Unpacked) -> None:
    recorded = read_recorded(unpacked_store(store_name) / "before")
    read = 0
    for transcript in recorded.transcripts.values():
        row = recorded.checkpoints.get(transcript.source.state_key)
        if row is not None and row["contentHash"]:
            lines = read_transcript(transcript.messages, modified_ms=transcript.source.modified_ms).lines
            assert (content_hash(lines), len(lines)) == (row["contentHash"], row["lineCount"])
            read += 1
    assert read
