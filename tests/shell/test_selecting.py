"""What selectors mean in a store, beside its catalogue: origins, transcripts and the other agents, on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from memprov import (
    Identity,
    Message,
    RefusedError,
    SelectorError,
    Selectors,
    SessionRecord,
    Thresholds,
    forget,
    ingest,
    open_store,
    plan_purge,
    preview,
    promote,
    search,
    sync_index,
    trace,
)
from memprov.core.purge import Report
from memprov.core.text import digest
from memprov.shell.native import NativeStore
from memprov.shell.openclaw import OpenClawStore
from tests.shell.openclaw.lab import NOW, Lab

KEY = "agent:main:dashboard:kiln"
FIRST = NOW - 9_000_000


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "claw")


@pytest.fixture
def native(tmp_path: Path) -> NativeStore:
    """Two generations under one key, of which the older has left the catalogue; a third session is archived."""
    store = open_store(tmp_path / "store")
    ann = Identity("profile", "ann")
    for number, (name, key) in enumerate([("former", KEY), ("kiln", KEY), ("mail", "agent:main:mail")]):
        store.record_session(
            SessionRecord("main", name, key, created_at_ms=FIRST + number)
        ) if name != "kiln" else store.rotate_session(SessionRecord("main", name, key, created_at_ms=FIRST + number))
    store.record_session(SessionRecord("main", "mail", hook_source="gmail", participants=[ann]))

    def reader(session: SessionRecord) -> list[Message]:
        text = f"The {session.session_id} sentence is about oolong tea."
        return [Message("user", text, sender_is_owner=True, number=2, timestamp_ms=FIRST)]

    ingest(store, reader, now_ms=NOW)
    ingest(store, reader, sessions=["former"], now_ms=NOW)
    store.archive_session("mail")
    return store


def sources(report: Report) -> dict[str, str]:
    return {row.session_id: str(row.source) for row in report.session_resolutions}


def openclaw_with_a_former_generation(lab: Lab) -> OpenClawStore:
    lab.session("kiln", KEY)
    for entry, session in (("k1", "former"), ("k2", "kiln")):
        lab.origin(entry, session)
    lab.main("UPDATE memory_entry_origins SET session_key = ?", KEY)
    return lab.open()


def test_F17_a_key_finds_a_deleted_generation_by_its_origins_and_its_entries_go(lab: Lab) -> None:
    store = openclaw_with_a_former_generation(lab)
    report = preview(store, Selectors(sessions=[KEY])).report
    assert sources(report) == {"former": "origins", "kiln": "live"}
    assert report.entry_keys == ("k1", "k2")
    lab.main("DELETE FROM session_windows")
    lab.main("DELETE FROM session_nodes")
    assert sources(forget(store, Selectors(sessions=[KEY]))) == {"former": "origins", "kiln": "origins"}
    assert lab.main("SELECT count(*) FROM memory_entry_origins") == [(0,)]


def test_F32_a_damaged_id_is_one_line_and_stops_no_other_session(lab: Lab) -> None:
    lab.session("kiln", KEY)
    lab.session("other", "agent:main:other")
    lab.main("UPDATE session_windows SET session_id = x'ff00' WHERE session_id = 'kiln'")
    assert forget(lab.open(), Selectors(sessions=["other"])).session_ids == ("other",)
    with pytest.raises(RefusedError, match="no valid text"):
        forget(lab.open(), Selectors(sessions=[KEY]))


def test_F17_on_the_embedded_store(native: NativeStore) -> None:
    before = preview(native, Selectors(sessions=[KEY])).report
    assert len(before.entry_keys) >= 1
    for name in ("former", "kiln"):
        native.delete_session(name)
    report = forget(native, Selectors(sessions=[KEY]))
    assert set(sources(report).values()) == {"origins"}
    assert report.entry_keys == before.entry_keys
    assert KEY not in report.session_ids


@pytest.mark.parametrize("selectors", [Selectors(participants=["ann"]), Selectors(hook_sources=["gmail"])])
def test_F16_an_archived_session_of_the_embedded_store_is_found_by_what_was_recorded_of_it(
    native: NativeStore, selectors: Selectors
) -> None:
    report = forget(native, selectors)
    assert sources(report) == {"mail": "archived"}
    assert "mail" in native.forgotten()


def test_F16_archives_of_an_installation_keep_no_metadata_and_the_report_counts_them(lab: Lab) -> None:
    lab.session("kiln")
    lab.archive("old1")
    lab.archive("old2")
    report = preview(lab.open(), Selectors(participants=["ann"])).report
    assert any("2 archived sessions" in warning for warning in report.warnings)


def test_F47_since_compares_when_an_archived_session_began(lab: Lab) -> None:
    lab.archive("held", [{"type": "session", "timestamp": FIRST}, {"type": "message"}], created=NOW)
    lab.archive("silent", [{"type": "session"}], created=NOW)
    store = lab.open()
    late = preview(store, Selectors(sessions=["held", "silent"], since=FIRST + 1)).report
    assert [(r.session_id, r.judged_by) for r in late.session_resolutions] == [("silent", "archived")]
    assert any("'held' is known and was named" in warning for warning in late.warnings)
    assert '"judgedBy": "archived"' in late.to_json()
    early = preview(store, Selectors(sessions=["held", "silent"], since=FIRST)).report
    assert [(r.session_id, r.judged_by) for r in early.session_resolutions] == [("held", None), ("silent", "archived")]
    lab.main("UPDATE session_transcript_archives SET archive_blob = X'00' WHERE session_id = 'held'")
    damaged = preview(store, Selectors(sessions=["held"], since=FIRST + 1)).report
    assert damaged.session_resolutions[0].judged_by == "archived", "its own time cannot be read, and that is said"


def test_F47_on_the_embedded_store_an_archived_session_keeps_its_time(native: NativeStore) -> None:
    assert preview(native, Selectors(sessions=["mail"], since=FIRST + 3)).report.session_ids == ()
    assert preview(native, Selectors(sessions=["mail"], since=FIRST + 2)).report.session_ids == ("mail",)


def test_F50_D10_a_session_of_another_agent_of_the_installation_is_said_to_be_theirs(lab: Lab) -> None:
    lab.add_agent("helper")
    lab.session("h1", "agent:helper:x", database=lab.agent("helper"))
    for name in ("h1", "agent:helper:x"):
        report = preview(lab.open(), Selectors(sessions=[name])).report
        assert any("belongs to agent 'helper'" in warning for warning in report.warnings)


def test_F50_D10_on_the_embedded_store(native: NativeStore, tmp_path: Path) -> None:
    helper = open_store(tmp_path / "store", "helper")
    helper.record_session(SessionRecord("helper", "h1", "agent:helper:x"))
    for name in ("h1", "agent:helper:x"):
        report = preview(native, Selectors(sessions=[name])).report
        assert any("belongs to agent 'helper'" in warning for warning in report.warnings)
    assert preview(helper, Selectors(sessions=["kiln"])).report.warnings[0].startswith("'kiln' belongs to agent 'main'")


def test_F50_an_agent_whose_catalogue_cannot_be_read_is_named_and_stops_nothing(lab: Lab) -> None:
    lab.add_agent("helper")
    lab.agent("helper").write_bytes(b"no database at all, and long enough for a header " * 100)
    report = preview(lab.open(), Selectors(sessions=["nobody"])).report
    assert any("agent 'helper'" in w and "could not be read" in w for w in report.warnings)


def test_F64a_an_entry_key_of_our_own_report_is_refused_with_the_command_that_takes_it(native: NativeStore) -> None:
    (key, *_) = preview(native, Selectors(sessions=["kiln"])).report.entry_keys
    with pytest.raises(ValueError, match="--entry"):
        forget(native, Selectors(sessions=[key]))
    assert native.forgotten() == frozenset()


# --- an idle purge ----------------------------------------------------------------------------------------------------


def test_a_purge_stays_idle_when_sweeps_note_that_the_session_is_forgotten(native: NativeStore) -> None:
    selectors = Selectors(sessions=["kiln"])
    forget(native, selectors)
    assert preview(native, selectors).removes_nothing
    swept = ingest(native, lambda _: [], now_ms=NOW)
    assert [d.reason for d in swept.excluded if d.session_id == "kiln"] == ["forgotten"]
    assert preview(native, selectors).removes_nothing, "a host that looks every night is not alarmed for ever"
    native.record_session(SessionRecord("main", "kept", created_at_ms=FIRST))
    assert ingest(native, lambda _: [], now_ms=NOW).excluded


def test_an_installations_own_note_of_a_forgotten_session_is_nothing_that_a_purge_removes(lab: Lab) -> None:
    lab.session("kiln")
    forget(lab.open(), Selectors(sessions=["kiln"]))
    note = {"mtimeMs": 0, "size": 0, "contentHash": "", "lineCount": 0, "lastContentLine": 0}
    lab.row("dreaming-session-ingestion-files", "main:sessions/main/kiln", note | {"excludedReason": "forgotten"})
    assert preview(lab.open(), Selectors(sessions=["kiln"])).removes_nothing
    lab.row("dreaming-session-ingestion-files", "main:sessions/main/other", note | {"excludedReason": "channel:x"})
    assert not preview(lab.open(), Selectors(sessions=["other"])).removes_nothing


# --- another agent's index --------------------------------------------------------------------------------------------

TEXT = "<!-- openclaw-memory-promotion:k1 -->\n- The kiln sentence is about oolong tea.\n"


def stale(store: NativeStore | OpenClawStore) -> list[str]:
    plan = preview(store, Selectors(sessions=["kiln"]))
    assert plan.to_json() == plan_purge(store.snapshot(plan.selection), plan.selection).to_json(), "I16"
    return [warning for warning in plan.report.warnings if warning.startswith("the index of agent")]


def test_F50_I11_an_idle_purge_of_an_installation_names_the_index_that_still_shows_the_text(lab: Lab) -> None:
    entries = {"main": {"workspace": str(lab.workspace)}, "helper": {"workspace": str(lab.workspace)}}
    lab.write_config({"agents": {"entries": entries}})
    lab.add_agent("helper")
    lab.session("kiln")
    lab.origin("k1", "kiln")
    memory = lab.workspace / "MEMORY.md"
    memory.write_text(TEXT)
    place = {"path": "MEMORY.md", "source": "memory"}
    lab.insert(lab.agent("helper"), "memory_index_sources", **place, hash=digest(TEXT))
    assert stale(lab.open()) == [], "it shows no text of it"
    lab.insert(lab.agent("helper"), "memory_index_chunks", **place, id="c", text=TEXT, model="fts-only")
    (before,) = stale(lab.open())
    assert "openclaw memory index --agent helper --force" in before
    forget(lab.open(), Selectors(sessions=["kiln"]))
    assert stale(lab.open()) == [before]
    lab.sql(lab.agent("helper"), "UPDATE memory_index_sources SET hash = ?", digest(memory.read_text()))
    assert stale(lab.open()) == []


def test_F50_I11_on_the_embedded_store_what_is_named_clears_it(native: NativeStore, tmp_path: Path) -> None:
    promote(native, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)
    helper = open_store(tmp_path / "store", "helper")
    sync_index(helper)
    (before,) = stale(native)
    assert "'helper'" in before
    assert "MEMORY.md" in before
    assert "sync_index" in before
    report = forget(native, Selectors(sessions=["kiln"]))
    assert before in report.warnings
    assert stale(native) == [before], "nothing is left to do, and that is no certificate"
    sync_index(helper)
    assert stale(native) == []


def test_F64a_whatever_a_search_hit_says_of_its_place_can_be_asked_about(native: NativeStore) -> None:
    promote(native, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)

    def reader(session: SessionRecord) -> list[Message]:
        text = f"The {session.session_id} sentence is about oolong tea."
        return [Message("user", text, sender_is_owner=True, number=2, timestamp_ms=FIRST)]

    sync_index(native, reader=reader)
    hits = search(native, "kiln oolong")
    assert {hit.source for hit in hits} == {"memory", "sessions"}
    for hit in hits:
        for place in (f"{hit.path}:{hit.start_line}", f"{hit.path}#L{hit.start_line}-L{hit.end_line}"):
            answer = trace(native, file=place)
            assert answer.entries or answer.session
            if answer.session is not None and hit.source == "sessions":
                assert preview(native, Selectors(sessions=[place])).report.session_ids == answer.session.session_ids
            else:
                with pytest.raises(SelectorError, match="--file"):
                    preview(native, Selectors(sessions=[place]))
