"""Stores that OpenClaw wrote: all of them is read, nothing is touched by reading, and effects do as the model does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from attrs import evolve

from memprov.core.purge import (
    CutFile,
    CutPreimages,
    DropCheckpoints,
    DropOrigins,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    PurgeIndex,
    RecordTombstones,
    Selectors,
    TrimEvents,
    TrimRewinds,
    rewind_key,
    select_sessions,
)
from memprov.core.purge import (
    PurgeEffect as Effect,
)
from memprov.core.purge.effects import BatchTrim, PreimageCut
from memprov.core.state import MemorySnapshot
from memprov.core.text import QuotationMatcher, SessionMatcher, cut, digest, scan_corpus
from memprov.errors import SchemaError
from memprov.shell.openclaw import OpenClawStore, open_openclaw
from memprov.shell.runner import forget, preview
from tests.shell.openclaw.lab import Leftover, fingerprint

Unpacked = Callable[[str], Path]


def opened(tree: Path) -> OpenClawStore:
    return open_openclaw(tree / "state", workspace=tree / "ws")


def agent_database(tree: Path) -> Path:
    return tree / "state" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"


def shared_database(tree: Path) -> Path:
    return tree / "state" / "state" / "openclaw.sqlite"


def count(path: Path, what: str) -> int:
    """Asked of SQLite without memprov."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{path}?immutable=1", flags=flags)
    try:
        return int(next(iter(connection.execute(f"SELECT count(*) FROM {what}")))[0])  # noqa: S608
    finally:
        connection.close()


def test_I3_reading_a_real_store_leaves_no_trace(store_name: str, unpacked_store: Unpacked) -> None:
    tree = unpacked_store(store_name) / "before"
    before = fingerprint(tree)
    store = opened(tree)
    records = store.catalogue()
    selection = select_sessions(records, Selectors(sessions=[record.session_id for record in records]))
    store.snapshot(selection)
    assert fingerprint(tree) == before


def test_every_row_of_a_real_store_is_read(store_name: str, unpacked_store: Unpacked) -> None:
    tree = unpacked_store(store_name) / "before"
    store = opened(tree)
    snapshot, records = store.snapshot(), store.catalogue()
    agent, shared = agent_database(tree), shared_database(tree)
    namespace = "plugin_state_entries WHERE namespace = "
    assert len(records) == count(agent, "session_windows") + count(agent, "session_transcript_archives") > 0
    assert len(snapshot.origins) == count(agent, "memory_entry_origins") > 0
    assert len(snapshot.chunks) == count(agent, "memory_index_chunks") > 0
    assert snapshot.chunks.full_text.sum() == count(agent, "memory_index_chunks_fts")
    assert snapshot.cache_rows == count(agent, "memory_embedding_cache")
    assert len(snapshot.sources) == count(agent, "memory_index_sources")
    assert len(snapshot.recall) == count(shared, f"{namespace}'short-term-recall'") > 0
    assert len(snapshot.signals) == count(shared, f"{namespace}'short-term-phase-signals'")
    assert len(snapshot.checkpoints) == count(shared, f"{namespace}'dreaming-session-ingestion-files'")
    assert len(snapshot.seen_scopes) == count(shared, f"{namespace}'dreaming-session-ingestion-seen'")
    assert len(snapshot.rewinds) == count(shared, f"{namespace}'session-backfill-rewind'")
    assert len(snapshot.events) == count(shared, f"{namespace}'memory-host.events'")
    assert len(snapshot.preimages) == count(shared, f"{namespace}'dreaming-memory-backups'")
    for batch in snapshot.rewinds:  # so JSON written by memprov is JSON as OpenClaw writes it
        assert rewind_key(batch.candidates) == batch.key


@pytest.mark.needs_store("vectors")
def test_vectors_are_found_without_the_extension(unpacked_store: Unpacked) -> None:
    tree = unpacked_store("vectors") / "before"
    snapshot = opened(tree).snapshot()
    assert snapshot.chunks.vectors.sum() == len(snapshot.chunks) > 0
    assert snapshot.cache_rows > 0


@pytest.mark.needs_store("basic")
def test_I3_a_left_over_wal_of_a_real_store_is_seen_and_left(store_copy: Callable[..., Path]) -> None:
    tree = store_copy("basic")
    Leftover(
        agent_database(tree),
        "DELETE FROM memory_entry_origins WHERE rowid IN (SELECT min(rowid) FROM memory_entry_origins)",
    )
    Leftover(shared_database(tree), "DELETE FROM plugin_state_entries WHERE namespace = 'short-term-recall'")
    before = fingerprint(tree)
    snapshot = opened(tree).snapshot()
    assert fingerprint(tree) == before
    assert len(snapshot.origins) == count(agent_database(tree), "memory_entry_origins") - 1
    assert (snapshot.recall, count(shared_database(tree), "plugin_state_entries")) != ((), 0)
    assert snapshot.recall == ()


@pytest.mark.needs_store("basic")
def test_D12_a_real_store_is_found_through_its_configured_path(store_copy: Callable[..., Path], tmp_path: Path) -> None:
    tree = store_copy("basic")
    moved = Path(shutil.move(tree / "ws", tmp_path / "elsewhere"))
    store = open_openclaw(tree / "state", workspace=moved)
    assert (len(store.snapshot().recall), len(store.snapshot().files)) == (6, 2)


def half(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(values[::2])


def half_of_everything(snapshot: MemorySnapshot) -> list[Effect]:
    """Effects that take every other row of each kind."""
    chunks = [row.id for row in snapshot.chunks.rows()]
    rewinds, events = [], []
    for number, batch in enumerate(snapshot.rewinds):
        kept = batch.candidates[1:]
        whole = number % 2 == 1 or not kept
        items = tuple(range(len(batch.candidates))) if whole else (0,)
        after = None if whole else rewind_key(kept)
        rewinds.append(BatchTrim(batch.key, rewind_key(batch.candidates), items, whole=whole, key_after=after))
    for number, event in enumerate(snapshot.events):
        events.append(BatchTrim(event.key, digest(event.payload), (0,), whole=number % 2 == 1))
    cuts = [
        PreimageCut(p.key, digest(p.content), digest(cut(p.content, [(0, 3)])), ((0, 3),)) for p in snapshot.preimages
    ]
    return [
        RecordTombstones("main", ("forgotten", *half(tuple(snapshot.origins.sessions)))),
        PurgeIndex(half(tuple(chunks)), tuple((s.path, s.source) for s in snapshot.sources[::2])),
        DropSignals(half(snapshot.signals)),
        TrimRewinds(tuple(rewinds)),
        TrimEvents(tuple(events)),
        DropRecall(half(tuple(row.row_key for row in snapshot.recall))),
        DropCheckpoints(half(snapshot.checkpoints)),
        DropSeenScopes(half(snapshot.seen_scopes)),
        CutPreimages(tuple(cuts)),
        DropOrigins("main", half(snapshot.origins.entries)),
    ]


def comparable(snapshot: MemorySnapshot) -> MemorySnapshot:
    return evolve(snapshot, revision=0, rewinds=tuple(sorted(snapshot.rewinds, key=lambda row: row.key)))


def test_I15_effects_on_a_real_store_are_the_models(store_name: str, store_copy: Callable[..., Path]) -> None:
    tree = store_copy(store_name)
    store = opened(tree)
    before = model = store.snapshot()
    effects = half_of_everything(before)
    for _ in range(2):  # repeating changes nothing
        with store.exclusive() as writer:
            writer.admit(tuple(effects))
            for effect in effects:
                assert writer.apply(effect, before.origins.basis((), ()))
                model = effect.applied_to(model)
            assert comparable(writer.snapshot()) == comparable(model)
        assert comparable(store.snapshot()) == comparable(model)
    assert len(model.origins) < len(before.origins)
    for path in (agent_database(tree), shared_database(tree)):
        connection = apsw.Connection(str(path))
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
        assert list(connection.execute("PRAGMA foreign_key_check")) == []
        connection.close()
    assert count(agent_database(tree), "memory_index_chunks_fts") == len(model.chunks)
    assert count(agent_database(tree), "memory_index_paths_fts") == len(model.sources)


@pytest.mark.needs_store("vectors")
def test_case_G16_on_a_real_store(store_copy: Callable[..., Path]) -> None:
    def broken(_: apsw.Connection) -> None:
        raise apsw.ExtensionLoadingError("no such file")

    tree = store_copy("vectors")
    store = evolve(opened(tree), load_vectors=broken)
    effects = half_of_everything(store.snapshot())
    before = store.snapshot()
    with store.exclusive() as writer, pytest.raises(SchemaError, match="no such file"):
        writer.admit(tuple(effects))
    assert store.snapshot() == before


@pytest.mark.needs_store("meta")
def test_F05_D23_what_another_program_forgot_first_goes_from_the_reports(store_copy: Callable[..., Path]) -> None:
    """OpenClaw took the corpus lines, and with them all that told whose a candidate without its label is."""
    tree = store_copy("meta", "after-participant-tg-1001")
    report = tree / "ws" / "memory" / "dreaming" / "light" / "2026-11-29.md"
    others = report.read_text()
    said = (
        "The reading club meets at Larkspur hall on Tuesdays.",
        "I will bring the Ambergate essays to the reading club.",
    )
    rows = "  - confidence: 0.58\n  - status: staged\n"
    report.write_text(others + "".join(f"- Candidate: {text}\n{rows}" for text in said))
    (tree / "ws" / "memory" / "club.md").write_text(f"# Club\n\n{said[0]}\n")
    store, selectors = opened(tree), Selectors(participants=["tg-1001"])
    plan = preview(store, selectors)
    cut_files = [effect.path for effect in plan.effects if isinstance(effect, CutFile)]
    assert cut_files == ["memory/dreaming/light/2026-11-29.md"]
    assert [(suspect.path, suspect.line) for suspect in plan.report.suspects] == [("memory/club.md", 3)]
    assert evolve(forget(store, selectors), dry_run=True) == plan.report
    assert report.read_text() == others
    again = preview(store, selectors)
    assert again.removes_nothing
    assert again.report.suspects == plan.report.suspects


def test_D23_a_transcript_is_read_as_its_corpus_lines_were_written(
    store_name: str, unpacked_store: Callable[[str], Path]
) -> None:
    store = opened(unpacked_store(store_name) / "before")
    catalogue = store.catalogue()
    selection = select_sessions(catalogue, Selectors(sessions=[record.session_id for record in catalogue]))
    snapshot = store.snapshot(selection)
    matcher = SessionMatcher("main", selection.session_ids)
    scans = [scan for file in snapshot.corpus if (scan := scan_corpus(file, matcher)) is not None]
    copied = {snippet for scan in scans for snippet in scan.snippets}
    retained = QuotationMatcher(tuple(snippet for text in snapshot.retained for snippet in text.snippets))
    assert len(retained.quoted_lines("\n".join(snippet.text for snippet in copied))) == len(copied) > 0
    assert {snippet for snippet in copied if not snippet.cut} <= set(retained.snippets)
