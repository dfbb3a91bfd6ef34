"""Applying effects: what each does to the databases, that it does nothing else, and that doing it again is harmless."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memprov.core.lineage import Basis
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
    RemoveFile,
    TrimEvents,
    TrimRewinds,
    rewind_key,
)
from memprov.core.purge import (
    PurgeEffect as Effect,
)
from memprov.core.purge.effects import BatchTrim, PreimageCut
from memprov.core.state import MemorySnapshot
from memprov.core.text import cut, digest, json_text
from memprov.errors import ConflictError, InputError, PartialError, RefusedError, SchemaError
from memprov.shell.openclaw import OpenClawStore
from tests.shell.openclaw.lab import NOW, Lab, fingerprint, sha

CORPUS = "memory/.dreams/session-corpus/2026-11-25.txt"
CANDIDATES = [{"contentIndex": i, "hash": f"h{i}", "scope": f"s{i}", "stateKey": "ключ"} for i in range(3)]
TEXTS = tuple(map(json_text, CANDIDATES))
PREIMAGE = "# Memory\n- oolong tea\n- green kettle\n"


def fill(lab: Lab) -> Lab:
    """A bit of everything, in this workspace and in another."""
    with lab.batch():
        fill_databases(lab)
    for path, text in {
        "MEMORY.md": "# Memory\n- oolong tea\n- green kettle\n",
        CORPUS: "[main/sessions/main/s1#L1] User: oolong\n",
    }.items():
        (lab.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (lab.workspace / path).write_text(text, encoding="utf-8")
    return lab


def fill_databases(lab: Lab) -> None:
    for session_id in ("s1", "s2", "s3"):
        lab.session(session_id)
        lab.origin(f"key-{session_id}", session_id)
        scope = f"main:sessions/main/{session_id}"
        for chunk in (0, 1):
            lab.row("dreaming-session-ingestion-seen", f"{scope}:{chunk}", {"scope": scope, "index": chunk})
        lab.row("dreaming-session-ingestion-files", scope, {"size": 1})
    lab.origin("key-s1", "s2")
    lab.origin("key-s1", "s1", of="helper")
    for key in ("r1", "r2"):
        for workspace in (lab.workspace, "/srv/other"):
            lab.row("short-term-recall", key, {"key": key, "path": "memory/x.md", "snippet": "tea"}, workspace)
            lab.row("short-term-phase-signals", key, {"key": key}, workspace)
            lab.row("short-term-meta", "phase", {"updatedAt": "then"}, workspace) if key == "r1" else None
    lab.row("short-term-meta", "recall", {"updatedAt": "then"})
    lab.row("session-backfill-rewind", rewind_key(TEXTS), {"version": 1, "candidates": CANDIDATES, "more": "kept"})
    lab.row("session-backfill-rewind", "complete-baseline:main", {"version": 1, "complete": True})
    results = [{"path": CORPUS, "startLine": n} for n in (1, 2)]
    lab.host_event(1, {"type": "memory.recall.recorded", "query": "чай", "resultCount": 2, "results": results})
    lab.host_event(2, {"type": "memory.dream.completed", "phase": "light"})
    lab.state_row("memory-host.event-cursors", f"{sha(str(lab.workspace))[:24]}:cursor", '{"lastSequence":2}')
    backup = {"createdAt": "2026-11-25T00:00:00.000Z", "content": PREIMAGE, "contentHash": digest(PREIMAGE)}
    lab.row("dreaming-memory-backups", "2026-11-25T00:00:00.000Z:abc", backup)
    for path in ("MEMORY.md", "memory/x.md"):
        lab.chunk(path, f"- oolong in {path}")
        lab.source(path)
    lab.chunk("sessions/main/s1.jsonl", "oolong", source="sessions", cls="owner", kind="interactive")
    lab.source("sessions/main/s1.jsonl", "sessions")
    for number in range(3):
        lab.insert(lab.agent(), "memory_embedding_cache", provider="p", hash=str(number), embedding=b"x")


@pytest.fixture(params=["as written", "bare", "with vectors"])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    return fill(Lab(tmp_path, triggers=request.param != "bare", vectors=request.param == "with vectors"))


@pytest.fixture
def plain(lab: Lab) -> Lab:
    return fill(lab)


def effects_of(snapshot: MemorySnapshot) -> dict[str, Effect]:
    """One effect of each kind, naming things that are there and things that are not."""
    before, preimage = snapshot.files[0], snapshot.preimages[0]
    line = (9, 22)
    recalled = next(event for event in snapshot.events if "recall.recorded" in event.payload)
    dreamt = next(event for event in snapshot.events if "dream.completed" in event.payload)
    gone = tuple(row.id for row in snapshot.chunks.rows() if row.path != "memory/x.md")
    rest = rewind_key(TEXTS[1:])
    return {
        "tombstones": RecordTombstones("main", ("s1", "never seen", "ключ")),
        "index": PurgeIndex((*gone, "not there"), (("sessions/main/s1.jsonl", "sessions"), ("gone", "memory"))),
        "cache": PurgeIndex((), ()),
        "signals": DropSignals(("r1", "nobody")),
        "rewinds": TrimRewinds((BatchTrim(rewind_key(TEXTS), rewind_key(TEXTS), (0,), key_after=rest),)),
        "all rewinds": TrimRewinds((BatchTrim(rewind_key(TEXTS), rewind_key(TEXTS), (0, 1, 2), whole=True),)),
        "events": TrimEvents((BatchTrim(recalled.key, digest(recalled.payload), (0,)),)),
        "all events": TrimEvents((BatchTrim(dreamt.key, digest(dreamt.payload), (), whole=True),)),
        "recall": DropRecall(("r1", "nobody")),
        "checkpoints": DropCheckpoints(("main:sessions/main/s1", "nobody")),
        "scopes": DropSeenScopes(("main:sessions/main/s1", "nobody")),
        "preimages": CutPreimages(
            (PreimageCut(preimage.key, digest(PREIMAGE), digest(cut(PREIMAGE, [line])), (line,)),)
        ),
        "file": CutFile("MEMORY.md", (), digest(before.text), digest(cut(before.text, [line])), (line,)),
        "corpus": RemoveFile(CORPUS, (), digest(snapshot.corpus[0].text)),
        "origins": DropOrigins("main", ("key-s1", "nobody")),
    }


KINDS = (
    "tombstones",
    "index",
    "cache",
    "signals",
    "rewinds",
    "all rewinds",
    "events",
    "all events",
    "recall",
    "checkpoints",
    "scopes",
    "preimages",
    "file",
    "corpus",
    "origins",
)


def comparable(snapshot: MemorySnapshot) -> MemorySnapshot:
    """Less what the model leaves open: how far the revision grows, and the order of rows."""
    return evolve(snapshot, revision=0, rewinds=tuple(sorted(snapshot.rewinds, key=lambda row: row.key)))


def apply(store: OpenClawStore, effects: Iterable[Effect], basis: Basis | None = None) -> list[bool]:
    with store.exclusive() as writer:
        basis = basis or store.snapshot().origins.basis((), ())
        effects = tuple(effects)
        writer.admit(effects)
        return [writer.apply(effect, basis) for effect in effects]


@pytest.mark.parametrize("kind", KINDS)
def test_I15_each_effect_is_the_models(full: Lab, kind: str) -> None:
    store = full.open()
    before = store.snapshot()
    effect = effects_of(before)[kind]
    assert apply(store, [effect]) == [True]
    after = store.snapshot()
    assert comparable(after) == comparable(effect.applied_to(before))
    assert comparable(after) != comparable(before)
    assert after.revision >= before.revision


@pytest.mark.parametrize("kind", KINDS)
def test_I5_each_effect_may_be_repeated(full: Lab, kind: str) -> None:
    store = full.open()
    effect = effects_of(store.snapshot())[kind]
    apply(store, [effect])
    rows, files = everything(full), {p: s[5] for p, s in fingerprint(full.workspace).items()}
    assert apply(store, [effect]) == [True]
    if kind == "tombstones":
        assert [row for row in everything(full) if row[0] != "memory_index_state"] == [
            row for row in rows if row[0] != "memory_index_state"
        ]
    else:
        assert everything(full) == rows
    assert {p: s[5] for p, s in fingerprint(full.workspace).items()} == files


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return fill(Lab(tmp_path_factory.mktemp("template")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(kinds=st.lists(st.sampled_from(KINDS), max_size=6))
def test_I15_any_sequence_of_effects_is_the_models(template: Lab, kinds: list[str]) -> None:
    """Files and rows are put back afterwards, so that every example starts alike."""
    saved = {path: path.read_bytes() for path in template.root.rglob("*") if path.is_file()}
    try:
        store = template.open()
        before = store.snapshot()
        effects = [effects_of(before)[kind] for kind in kinds]
        model = before
        for effect in effects:
            try:
                apply(store, [effect], before.origins.basis((), ()))
            except ConflictError:  # an earlier effect took the row of which this one takes a part (D24)
                continue
            model = effect.applied_to(model)
        assert comparable(store.snapshot()) == comparable(model)
    finally:
        for path, data in saved.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def everything(lab: Lab) -> list[tuple[str, tuple[Any, ...]]]:
    """Every row of every table that is no shadow of another."""
    rows: list[tuple[str, tuple[Any, ...]]] = []
    for path in (lab.agent(), lab.shared):
        names = lab.sql(path, "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        for (name,) in names:
            if "_vec_" not in name:
                rows += [(name, row) for row in lab.sql(path, f"SELECT * FROM {name} ORDER BY 1, 2")]  # noqa: S608
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_I2_no_other_row_is_touched(plain: Lab, kind: str) -> None:
    store = plain.open()
    effect = effects_of(store.snapshot())[kind]
    before = everything(plain)
    apply(store, [effect])
    after = everything(plain)
    gone = [row for row in before if row not in after and "_fts_" not in row[0]]
    new = [row for row in after if row not in before and "_fts_" not in row[0]]
    tables = {
        "tombstones": ({"memory_index_state"}, {"memory_index_state", "memory_session_tombstones"}),
        "index": (INDEX, {"memory_index_state"}),  # the pages of full-text rows aside
        "cache": ({"memory_embedding_cache"}, set()),
        "signals": ({"plugin_state_entries"}, {"plugin_state_entries"}),
        "origins": ({"memory_entry_origins"}, set()),
        "file": (set(), set()),
        "corpus": (set(), set()),
    }.get(kind, ({"plugin_state_entries"}, None))
    assert {name for name, _ in gone} == tables[0]
    if tables[1] is not None:
        assert {name for name, _ in new} == tables[1]
    other = sha("/srv/other")
    assert not [row for row in gone if any(other in str(cell) for cell in row[1])]


INDEX = {
    "memory_embedding_cache",
    "memory_index_chunk_provenance",
    "memory_index_chunk_recall_metadata",
    "memory_index_chunks",
    "memory_index_sources",
    "memory_index_state",
}


def test_B36_index_rows_go_from_every_table_or_from_none(full: Lab) -> None:
    store = full.open()
    effect = effects_of(store.snapshot())["index"]
    full.main(
        "CREATE TRIGGER stop BEFORE DELETE ON memory_embedding_cache BEGIN SELECT RAISE(ABORT, 'no'); END"
    )  # the last of the deletions
    before = everything(full)
    with pytest.raises(PartialError, match="could not be changed"):
        apply(store, [effect])
    assert everything(full) == before
    full.main("DROP TRIGGER stop")
    apply(store, [effect])
    tables = ["chunks", "chunk_provenance", "chunk_recall_metadata", "chunks_fts", *(["chunks_vec"] * full.vectors)]
    counts = [full.main(f"SELECT count(*) FROM memory_index_{name}")[0][0] for name in tables]  # noqa: S608
    assert set(counts) == {1}
    assert full.main("SELECT count(*) FROM memory_index_paths_fts") == [(2,)]
    assert full.main("SELECT rowid FROM memory_index_chunks_fts WHERE memory_index_chunks_fts MATCH 'oolong'") == (
        full.main("SELECT chunk_rowid FROM memory_index_chunks")
    )


# -- tombstones


def tombstones(lab: Lab, table: str = "memory_session_tombstones") -> list[tuple[Any, ...]]:
    return lab.main(f"SELECT session_id, agent_id, reason, created_at FROM {table} ORDER BY 1")  # noqa: S608


def test_case_G11_and_G12_tombstones_are_kept_and_the_revision_grows_by_one(plain: Lab) -> None:
    store = plain.open()
    apply(store, [RecordTombstones("main", ("s1", "x"))])
    first = tombstones(plain)
    assert [(row[0], row[1], row[2]) for row in first] == [("s1", "main", "forgotten"), ("x", "main", "forgotten")]
    assert all(NOW <= row[3] < NOW + 2000 for row in first)
    assert store.snapshot().revision == 8
    plain.clock.now += 1000
    apply(store, [RecordTombstones("main", ("s1", "y"))])
    assert [row for row in tombstones(plain) if row[0] != "y"] == first
    assert store.snapshot().revision == 9
    assert store.snapshot().tombstones == {"s1", "x", "y"}


def test_case_G1_a_dry_run_creates_no_tombstone_table(plain: Lab) -> None:
    store, before = plain.open(), fingerprint(plain.root)
    store.snapshot()
    assert fingerprint(plain.root) == before


def test_tables_that_are_missing_are_made_as_openclaw_makes_them(plain: Lab) -> None:
    plain.main("DROP TABLE memory_index_state")
    apply(plain.open(), [RecordTombstones("main", ("s1",))])
    keys = plain.main("SELECT name FROM pragma_table_info('memory_session_tombstones') WHERE pk > 0")
    assert keys == [("session_id",)]
    assert plain.open().snapshot().revision == 1
    plain.main("DELETE FROM memory_index_state")
    apply(plain.open(), [RecordTombstones("main", ("s1",))])
    assert plain.open().snapshot().revision == 1


def test_D9_a_tombstone_is_per_agent_even_where_the_table_has_one_per_id(plain: Lab) -> None:
    plain.main(
        "CREATE TABLE memory_session_tombstones "
        "(session_id TEXT PRIMARY KEY, agent_id TEXT, reason TEXT, created_at INTEGER)"
    )
    plain.main("INSERT INTO memory_session_tombstones VALUES ('s1', 'helper', 'forgotten', 1)")
    store = plain.open()
    assert store.snapshot().tombstones == frozenset()
    for _ in range(2):
        apply(store, [RecordTombstones("main", ("s1", "s2"))])
        assert store.snapshot().tombstones == {"s1", "s2"}
    assert [row[:2] for row in tombstones(plain)] == [("s1", "helper"), ("s2", "main")]  # the other's stays
    assert [row[:2] for row in tombstones(plain, "memprov_session_tombstones")] == [("s1", "main")]


def test_case_G13_a_lineage_that_moved_is_noticed_in_the_transaction(plain: Lab) -> None:
    store = plain.open()
    basis = store.snapshot().origins.basis(("s1",), ("key-s1",))
    effects = effects_of(store.snapshot())
    assert apply(store, [effects["tombstones"], effects["index"]], basis) == [True, True]
    for change in (
        "INSERT INTO memory_entry_origins VALUES ('new', 'main', 's1', NULL, 'owner', 1)",
        "INSERT INTO memory_entry_origins VALUES ('key-s1', 'main', 's9', NULL, 'owner', 1)",
    ):
        plain.main(change)
        before = everything(plain)
        assert apply(store, [effects["tombstones"]], basis) == [False]
        assert apply(store, [effects["index"]], basis) == [False]
        assert everything(plain) == before
        basis = store.snapshot().origins.basis(("s1",), ("key-s1",))
    plain.main("INSERT INTO memory_entry_origins VALUES ('far', 'main', 's8', NULL, 'owner', 1)")
    plain.main("INSERT INTO memory_entry_origins VALUES ('new2', 'helper', 's1', NULL, 'owner', 1)")
    assert apply(store, [effects["tombstones"]], basis) == [True]  # neither is part of the basis
    plain.main("DROP TABLE memory_entry_origins")
    assert apply(store, [effects["tombstones"]], basis) == [False]


def test_I11_another_agents_rows_stay(plain: Lab) -> None:
    apply(plain.open(), [DropOrigins("main", ("key-s1",))])
    rows = plain.main("SELECT entry_key, agent_id, session_id FROM memory_entry_origins ORDER BY 1, 2, 3")
    assert rows == [("key-s1", "helper", "s1"), ("key-s2", "main", "s2"), ("key-s3", "main", "s3")]


# -- plugin state


def meta_times(lab: Lab) -> dict[tuple[str, str], str]:
    rows = lab.sql(lab.shared, "SELECT value_json FROM plugin_state_entries WHERE namespace = 'short-term-meta'")
    return {(v["workspaceDir"], v["key"]): v["value"]["updatedAt"] for (s,) in rows for v in [json.loads(s)]}


def test_the_phase_time_follows_dropped_signals_and_no_other_time_does(plain: Lab) -> None:
    store = plain.open()
    apply(store, [DropSignals(("nobody",))])
    assert set(meta_times(plain).values()) == {"then"}
    plain.clock.now = 1795597201.25
    apply(store, [DropSignals(("r1",)), DropRecall(("r1",))])
    found = meta_times(plain)
    moment = found.pop((str(plain.workspace), "phase"))
    assert moment.startswith("2026-11-25T09:00:01.")
    assert len(moment) == 24
    assert moment.endswith("Z")
    assert len(found) == 2
    assert set(found.values()) == {"then"}


def test_a_rewritten_preimage_keeps_its_key_and_gets_its_digest(plain: Lab) -> None:
    store = plain.open()
    apply(store, [effects_of(store.snapshot())["preimages"]])
    left = "# Memory\n- green kettle\n"
    assert plain.stored("dreaming-memory-backups") == {
        "2026-11-25T00:00:00.000Z:abc": {
            "createdAt": "2026-11-25T00:00:00.000Z",
            "content": left,
            "contentHash": sha(left),
        }
    }


def test_D21_a_trimmed_batch_moves_to_the_digest_of_what_is_left(plain: Lab) -> None:
    store = plain.open()
    effect = effects_of(store.snapshot())["rewinds"]
    apply(store, [effect])
    rest = rewind_key(TEXTS[1:])
    stored = plain.stored("session-backfill-rewind")
    assert stored == {
        rest: {"version": 1, "candidates": CANDIDATES[1:], "more": "kept"},
        "complete-baseline:main": {"version": 1, "complete": True},
    }
    keys = plain.sql(
        plain.shared, "SELECT entry_key, created_at FROM plugin_state_entries WHERE namespace LIKE '%rewind'"
    )
    assert (f"{sha(str(plain.workspace))}:{sha(rest)}", NOW) in keys
    plain.row("session-backfill-rewind", rewind_key(TEXTS), {"version": 1, "candidates": CANDIDATES})
    apply(store, [effect])  # the shorter batch was there already
    assert plain.stored("session-backfill-rewind").keys() == stored.keys()


def test_D21_events_are_trimmed_and_cursors_stay(plain: Lab) -> None:
    store = plain.open()
    effects = effects_of(store.snapshot())
    apply(store, [effects["events"], effects["all events"]])
    (event,) = store.snapshot().events
    assert json.loads(event.payload)["event"]["resultCount"] == 1
    cursors = plain.sql(plain.shared, "SELECT count(*) FROM plugin_state_entries WHERE namespace LIKE '%cursors'")
    assert cursors == [(1,)]


def test_a_row_that_changed_since_the_plan_is_left(plain: Lab) -> None:
    store = plain.open()
    effects = effects_of(store.snapshot())
    plain.sql(plain.shared, "UPDATE plugin_state_entries SET value_json = replace(value_json, 'h0', 'hX')")
    plain.sql(plain.shared, "UPDATE plugin_state_entries SET value_json = replace(value_json, 'kettle', 'pot')")
    plain.sql(plain.shared, "UPDATE plugin_state_entries SET value_json = replace(value_json, 'light', 'deep')")
    before = everything(plain)
    apply(store, [effects[kind] for kind in ("rewinds", "all rewinds", "all events")])
    with pytest.raises(ConflictError, match="preimages changed or vanished"):
        apply(store, [effects["preimages"]])
    assert everything(plain) == before


def test_D24_F01_a_preimage_that_is_away_is_not_taken_for_cut(plain: Lab) -> None:
    store = plain.open()
    effects = effects_of(store.snapshot())
    plain.sql(plain.shared, "DELETE FROM plugin_state_entries WHERE namespace = 'dreaming-memory-backups'")
    with pytest.raises(ConflictError, match="preimages changed or vanished"):
        apply(store, [effects["preimages"]])


def test_logical_deletion_overwrites_the_bytes_of_state_rows(plain: Lab) -> None:
    plain.row("short-term-recall", "canary", {"key": "canary", "snippet": "QUARRELSOME-CANARY"})
    assert b"QUARRELSOME-CANARY" in plain.shared.read_bytes()
    apply(plain.open(), [DropRecall(("canary",))])
    assert b"QUARRELSOME-CANARY" not in plain.shared.read_bytes()
    assert not Path(f"{plain.shared}-wal").exists()


def test_expired_rows_of_this_workspace_go_with_the_tombstones(plain: Lab) -> None:
    before = plain.stored("short-term-recall").keys()
    for workspace in (plain.workspace, "/srv/other"):
        plain.row("short-term-recall", f"expired in {workspace}", {"snippet": "QUARRELSOME-CANARY"}, workspace)
    plain.sql(plain.shared, "UPDATE plugin_state_entries SET expires_at = 1000 WHERE value_json LIKE '%CANARY%'")
    store = plain.open()
    apply(store, [DropRecall(("nobody",))])
    assert plain.stored("short-term-recall").keys() - before == {
        f"expired in {plain.workspace}",
        "expired in /srv/other",
    }
    apply(store, [RecordTombstones("main", ("s1",))])
    assert plain.stored("short-term-recall").keys() - before == {"expired in /srv/other"}


# -- files


def test_case_G14_a_file_that_changed_is_a_conflict_and_is_left(plain: Lab) -> None:
    store = plain.open()
    effects = effects_of(store.snapshot())
    (plain.workspace / "MEMORY.md").write_text("by hand\n")
    with pytest.raises(ConflictError):
        apply(store, [effects["file"]])
    assert (plain.workspace / "MEMORY.md").read_text() == "by hand\n"


# -- admission


def broken_loader(_: apsw.Connection) -> None:
    raise ImportError("No module named 'sqlite_vec'")


def test_case_G16_a_vector_table_that_cannot_be_opened_is_refused_before_any_write(tmp_path: Path) -> None:
    lab = fill(Lab(tmp_path, vectors=True))
    store = evolve(lab.open(), load_vectors=broken_loader)
    effects = effects_of(store.snapshot())  # reading needs no extension
    assert store.snapshot().chunks.vectors.all()
    before = everything(lab)
    with store.exclusive() as writer, pytest.raises(SchemaError, match="memory_index_chunks_vec cannot be opened"):
        writer.admit(tuple(effects.values()))
    assert everything(lab) == before
    apply(store, [effects["cache"]])  # nothing of it is concerned
    with pytest.raises(PartialError, match="memory_index_chunks_vec"), store.exclusive() as writer:
        writer.apply(effects["index"], store.snapshot().origins.basis((), ()))
    lab.main("DROP TABLE memory_index_chunks_vec_vector_chunks00")
    with pytest.raises(SchemaError, match="memory_index_chunks_vec cannot be opened"):
        apply(lab.open(), [effects["index"]])


@pytest.mark.parametrize("missing", ["memory_index_chunks_fts", "memory_index_paths_fts"])
def test_a_full_text_table_that_is_missing_is_an_empty_one_though_triggers_name_it(plain: Lab, missing: str) -> None:
    plain.main(f"DROP TABLE {missing}")
    store, chunks = plain.open(), [row.id for row in plain.open().snapshot().chunks.rows()]
    before = store.snapshot().revision
    effect = PurgeIndex(tuple(chunks), tuple((s.path, s.source) for s in store.snapshot().sources))
    with store.exclusive() as writer:
        writer.admit((effect,))
        writer.apply(effect, store.snapshot().origins.basis((), ()))
    left = store.snapshot()
    assert (len(left.chunks), left.sources, left.cache_rows) == (0, (), 0)
    assert left.revision > before  # the fence does not depend on a trigger


def test_undecodable_text_in_the_index_is_no_reason_to_refuse(plain: Lab) -> None:
    plain.main("UPDATE memory_index_chunks_fts SET text = CAST(x'ff41' AS TEXT)")
    chunks = tuple(row.id for row in plain.open().snapshot().chunks.rows())
    with plain.open().exclusive() as writer:
        writer.admit((PurgeIndex(chunks, ()),))


def test_a_database_that_takes_no_transaction_is_refused_before_any_write(plain: Lab) -> None:
    holder = apsw.Connection(str(plain.agent()))
    holder.execute("BEGIN IMMEDIATE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memprov.shell.sqlite.BUSY_MS", 1)
        with plain.open().exclusive() as writer, pytest.raises(RefusedError, match="nothing was changed"):
            writer.admit((RecordTombstones("main", ("s1",)),))
    holder.close()


def test_a_schema_that_could_not_be_purged_is_refused_before_any_write(plain: Lab) -> None:
    plain.main("ALTER TABLE memory_index_chunk_recall_metadata RENAME COLUMN chunk_id TO chunk")
    chunks = tuple(row.id for row in plain.open().snapshot().chunks.rows())
    with plain.open().exclusive() as writer, pytest.raises(SchemaError, match="recall_metadata has no column chunk_id"):
        writer.admit((RecordTombstones("main", ("s1",)), PurgeIndex(chunks, ())))
    plain.main("ALTER TABLE memory_index_state RENAME COLUMN id TO other")
    with pytest.raises(SchemaError, match="memory_index_state has no column id"):
        plain.open().snapshot()


def test_a_plan_for_another_agent_or_an_id_that_is_no_text_is_refused(plain: Lab) -> None:
    with plain.open().exclusive() as writer:
        for effect in (RecordTombstones("helper", ("s1",)), DropOrigins("helper", ("k",))):
            with pytest.raises(InputError, match="helper"):
                writer.admit((effect,))
        with pytest.raises(RefusedError, match="no valid text"):
            writer.admit((RecordTombstones("main", ("bad\udcff",)),))


def test_keys_that_are_no_text_are_in_no_table(plain: Lab) -> None:
    store, odd = plain.open(), "bad\udcff\ud800"
    before = comparable(store.snapshot())
    effects: list[Effect] = [
        DropOrigins("main", (odd,)),
        DropRecall((odd,)),
        DropSignals((odd,)),
        PurgeIndex((odd,), ((odd, odd),)),
    ]
    apply(store, effects, store.snapshot().origins.basis((), (odd,)))
    assert comparable(store.snapshot()) == evolve(before, cache_rows=0)


def test_too_late_to_refuse(plain: Lab) -> None:
    store = plain.open()
    effect = effects_of(store.snapshot())["index"]
    with store.exclusive() as writer:
        plain.main("PRAGMA user_version = 99")
        with pytest.raises(PartialError, match="schema version 99"):
            writer.apply(effect, Basis("", (), ()))


# -- scale


def test_D11_B80_more_ids_than_a_statement_has_variables(plain: Lab) -> None:
    store = plain.open()
    many = tuple(f"{number:064x}" for number in range(300_001))  # SQLite takes 250,000 at most, and 32,766 by default
    few = many[:40_000]
    chunks = tuple(row.id for row in store.snapshot().chunks.rows())
    basis = store.snapshot().origins.basis((*few, "s1"), (*few, "key-s1"))
    effects: list[Effect] = [
        RecordTombstones("main", (*few, "s1")),
        PurgeIndex((*many, *chunks), tuple(("memory", path) for path in many[:1000])),
        DropRecall((*few, "r1")),
        DropOrigins("main", (*few, "key-s1")),
    ]
    apply(store, effects, basis)
    snapshot = store.snapshot()
    assert len(snapshot.tombstones) == 40_001
    assert (len(snapshot.chunks), len(snapshot.recall)) == (0, 1)
    assert set(snapshot.origins.keys) == {"key-s2", "key-s3"}


def test_D11_many_rows_go_at_once(plain: Lab) -> None:
    db = plain.agent()
    connection = apsw.Connection(str(db))
    rows = [(f"{n:064x}", f"sessions/main/x{n}.jsonl", "sessions", "text") for n in range(40_000)]
    with connection:
        connection.executemany("INSERT INTO memory_index_chunks (id, path, source, text) VALUES (?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO memory_index_sources (path, source) VALUES (?, ?)", (r[1:3] for r in rows))
    connection.close()
    store = plain.open()
    assert len(store.snapshot().chunks) == 40_003
    apply(store, [PurgeIndex(tuple(r[0] for r in rows), tuple((r[1], r[2]) for r in rows))])
    assert (len(store.snapshot().chunks), len(store.snapshot().sources)) == (3, 3)
