"""What a name may mean where a session is asked for: F14a, F16, F17, F47, F50, F64a, on values alone."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from memprov import Identity, Origin, Selection, SelectorError, Selectors, SessionRecord, select_sessions
from memprov.core.purge import Resolution
from memprov.core.purge.naming import Reference, read_reference

ARCHIVE = ".jsonl.deleted.2026-08-26T10-00-00.000Z"
SESSIONS = (
    SessionRecord("main", "kiln", "agent:main:dashboard:kiln", created_at_ms=1000, hook_source="gmail"),
    SessionRecord("main", "Kiln-2", "agent:main:k2", created_at_ms=2000, participants=[Identity("profile", "Ann")]),
)
HELPERS = SessionRecord("helper", "h1", "agent:helper:x")


def chosen(*sessions: str, catalogue: Any = SESSIONS, **more: Any) -> Selection:
    return select_sessions(catalogue, Selectors(sessions=sessions, **more))


# --- F14a, F64a: what was printed is understood where a session is asked for ------------------------------------------

PRINTED = [
    "sessions/main/kiln",
    "sessions/main/kiln.jsonl",
    f"sessions/main/kiln{ARCHIVE}",
    f"sessions/main/kiln{ARCHIVE}.zst",
    "main:sessions/main/kiln",
    "main/sessions/main/kiln",
    "main/sessions/main/kiln.jsonl",
    "[main/sessions/main/kiln#L2]",
    "[main/sessions/main/kiln.jsonl#L2] ",
    "main/sessions/main/kiln#L2",
    "sessions/main/kiln.jsonl:12",
    "sessions/main/kiln.jsonl:12-14",
    "sessions/main/kiln.jsonl#L3-L9",
    "kiln.jsonl",
    f"kiln{ARCHIVE}",
    f"kiln{ARCHIVE}.{'0' * 32}.zst",
    "/srv/agents/main/sessions/kiln.jsonl",
    f"agents/main/sessions/kiln{ARCHIVE}",
    "main:kiln",
]


@pytest.mark.parametrize("printed", PRINTED)
def test_F14a_F64a_a_printed_form_of_a_session_is_that_session(printed: str) -> None:
    selection = chosen(printed)
    assert selection.resolutions == (Resolution("kiln", "live", "agent:main:dashboard:kiln"),)
    assert selection.warnings == (f"{printed!r} is read as session 'kiln'",)


@pytest.mark.parametrize("printed", [form for form in PRINTED if form != "main:kiln"])
def test_F14a_of_a_session_that_nobody_knows_the_id_is_recorded_and_never_the_form(printed: str) -> None:
    selection = chosen(printed, catalogue=())
    assert selection.resolutions == (Resolution("kiln", "unresolved"),)
    assert "'kiln'" in selection.warnings[0]


@pytest.mark.parametrize("printed", PRINTED)
def test_I12_a_session_that_is_called_like_a_reference_is_meant_by_its_name(printed: str) -> None:
    odd = SessionRecord("main", printed)
    selection = chosen(printed, catalogue=(*SESSIONS, odd))
    assert (selection.session_ids, selection.warnings) == ((printed,), ())


@pytest.mark.parametrize(
    ("value", "command"),
    [
        ("memory:claim:0123456789ab", "--entry"),
        ("memory:memory/2026-11-25.md:3:4:0123456789ab", "--entry"),
        ("memory:MEMORY.md:3:4", "--entry"),
        (f"memory:session-backfill:{'a' * 64}", "--entry"),
        ("MEMORY.md:3", "--file"),
        ("MEMORY.md", "--file"),
        ("/srv/ws/memory/2026-11-25.md:7", "--file"),
        ("memory/.dreams/session-corpus/2026-11-25.txt:1-1", "--file"),
        ("memory/2026-11-25.md#L3-L9", "--file"),
        ("users/ann/USER.md:2", "--file"),
        ("notes/extra.md:2", "--file"),
    ],
)
def test_F64a_what_names_an_entry_or_a_place_is_refused_with_the_command_that_takes_it(
    value: str, command: str
) -> None:
    with pytest.raises(SelectorError, match=command) as caught:
        chosen("kiln", value)
    assert repr(value) in str(caught.value)
    assert chosen(value, catalogue=[SessionRecord("main", value)]).session_ids == (value,), "unless a session has it"


def test_F64a_a_hosts_own_entry_key_is_known_by_its_origins() -> None:
    row = Origin("tea", "main", "s1")
    with pytest.raises(SelectorError, match="'tea' is an entry key"):
        select_sessions(SESSIONS, Selectors(sessions=["tea"]), origins=[row])
    with_id = select_sessions(SESSIONS, Selectors(sessions=["tea"]), origins=[row, Origin("k", "main", "tea")])
    assert with_id.session_ids == ("tea",), "a session may be called like an entry"


@pytest.mark.parametrize("value", ["sessions/helper/h1", "helper:sessions/helper/h1.jsonl", "helper/sessions/helper/x"])
def test_F14a_a_reference_to_another_agents_session_is_refused_by_name(value: str) -> None:
    with pytest.raises(SelectorError, match="of agent 'helper'"):
        chosen(value)


@given(st.text(min_size=1))
def test_every_reference_that_is_rendered_is_read_back(name: str) -> None:
    reference = read_reference(f"sessions/main/{name}.jsonl", "main")
    if "/" not in name and read_reference(f"{name}.jsonl", "main") == Reference("main", name):
        assert reference == Reference("main", name)


# --- F16 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selectors", [{"participants": ["Ann"]}, {"hook_sources": ["gmail"]}])
def test_F16_an_archived_session_is_found_by_the_metadata_that_is_kept(selectors: dict[str, Any]) -> None:
    kept = [evolve(record, state="archived") for record in SESSIONS]
    (found,) = select_sessions(kept, Selectors(**selectors)).resolutions
    assert found.source == "archived"


def test_F16_archived_sessions_that_could_not_be_judged_are_counted() -> None:
    bare = [SessionRecord("main", f"old{n}", state="archived") for n in range(3)]
    asked = Selectors(participants=["Ann"], sessions=["old0"])
    (warning,) = select_sessions((*SESSIONS, *bare), asked).warnings
    assert "2 archived sessions" in warning, "what is selected by its name needs no judging"
    assert chosen("kiln", catalogue=(*SESSIONS, *bare)).warnings == ()


# --- F17 --------------------------------------------------------------------------------------------------------------

KEY = "agent:main:dashboard:kiln"


def test_F17_a_key_finds_the_generations_that_only_origins_know() -> None:
    rows = [
        Origin("k1", "main", "former", KEY),
        Origin("k2", "main", "former", KEY),
        Origin("k3", "main", "kiln", KEY),
        Origin("k4", "main", "other", "agent:main:other"),
        Origin("k5", "main", "keyless"),
        Origin("k6", "helper", "theirs", KEY),
    ]
    selection = select_sessions(SESSIONS, Selectors(sessions=[KEY]), origins=rows)
    assert selection.resolutions == (Resolution("former", "origins", KEY), Resolution("kiln", "live", KEY))
    alone = select_sessions((), Selectors(sessions=[KEY]), origins=rows)
    assert [(r.session_id, str(r.source)) for r in alone.resolutions] == [("former", "origins"), ("kiln", "origins")]
    assert alone.warnings == (), "a key that is known by origins is no unknown key"
    assert KEY not in alone.session_ids


def test_F17_D8_origins_do_not_bring_back_what_since_rejects() -> None:
    rows = [Origin("k", "main", "kiln", KEY, observed_at_ms=9000), Origin("k", "main", "old", KEY, observed_at_ms=5)]
    rows += [Origin("k", "main", "new", KEY, observed_at_ms=9000), Origin("k", "main", "when", KEY)]
    selection = select_sessions(SESSIONS, Selectors(sessions=[KEY], since=5000), origins=rows)
    assert selection.resolutions == (Resolution("new", "origins", KEY, judged_by="observed"),)
    assert [any(repr(name) in w for w in selection.warnings) for name in ("kiln", "old", "when")] == [True] * 3


# --- F47, F50 ---------------------------------------------------------------------------------------------------------


def test_F47_since_compares_a_sessions_own_time_and_says_where_it_could_not() -> None:
    held, since = 1000, 5000
    archive = SessionRecord("main", "old", state="archived", created_at_ms=held, archived_at_ms=9000)
    assert chosen("old", catalogue=[archive], since=since).session_ids == (), "held before, archived after"
    unknown = evolve(archive, created_at_ms=None)
    (resolution,) = chosen("old", catalogue=[unknown], since=since).resolutions
    assert (resolution.session_id, resolution.judged_by) == ("old", "archived")
    assert chosen("old", catalogue=[unknown], since=9001).session_ids == (), "archived before is held before"
    assert chosen("old", catalogue=[unknown]).resolutions[0].judged_by is None, "without since nothing is judged"


@pytest.mark.parametrize("name", ["kiln", "agent:main:dashboard:kiln", "sessions/main/kiln"])
def test_F50_a_named_session_that_since_leaves_out_is_said_to_exist(name: str) -> None:
    selection = chosen(name, since=5000)
    assert selection.session_ids == ()
    assert any("'kiln' is known and was named" in w and "1970-01-01 00:00 UTC" in w for w in selection.warnings)
    by_metadata = select_sessions(SESSIONS, Selectors(hook_sources=["gmail"], since=5000))
    assert by_metadata.warnings == (), "nobody named it"


@pytest.mark.parametrize(
    "near", ["KILN", " kiln", "kiln ", "Kiln", "kiln\u00a0", "kiln.JSONL", "AGENT:main:dashboard:kiln", "kil\u212a"]
)
def test_F50_a_name_that_differs_by_case_blank_or_ending_is_said_to_be_nearly_one(near: str) -> None:
    near = near.replace("kil\u212a", "\u212ailn")  # the Kelvin sign folds to k
    selection = chosen(near)
    assert [str(r.source) for r in selection.resolutions] == ["unresolved"]
    assert any("did you mean" in w and "kiln" in w for w in selection.warnings)


def test_F50_a_beginning_of_names_a_participant_and_a_hook_source_are_recognised() -> None:
    assert any("'kiln'" in w for w in chosen("kiln.of").warnings) is False
    assert any("'agent:main:k2'" in w for w in chosen("agent:main:k").warnings)
    assert any("--participant" in w for w in chosen("Ann").warnings)
    assert any("digest of a plan" in w for w in chosen("0a" * 32).warnings)
    assert any("--hook-source" in w for w in chosen("gmail").warnings)
    asked = select_sessions(SESSIONS, Selectors(participants=["ann"], hook_sources=["Gmail "]))
    assert asked.session_ids == ()
    assert [any(name in w for w in asked.warnings) for name in ("'Ann'", "'gmail'")] == [True, True]


@pytest.mark.parametrize("name", ["h1", "agent:helper:x", "helper:h1"])
def test_F50_D10_a_name_of_a_sibling_agent_says_whose_it_is(name: str) -> None:
    selection = chosen(name, catalogue=(*SESSIONS, HELPERS))
    assert selection.session_ids == (name,)
    assert any("belongs to agent 'helper'" in w for w in selection.warnings)


@pytest.mark.parametrize("typed", ["kil", "kxln", "kilnn", "xkiln", "kilm", "agent:main:dashboard:kilm"])
def test_F50_a_name_one_edit_away_is_said_to_be_nearly_one(typed: str) -> None:
    catalogue = [SessionRecord("main", "kiln", "agent:main:dashboard:kiln")]
    warnings = chosen(typed, catalogue=catalogue).warnings
    near = any("did you mean" in warning and "kiln" in warning for warning in warnings)
    assert near == (len(typed) > 3), "very short names are near to everything"


def test_F50_two_edits_are_another_name_and_many_unknown_names_stay_cheap() -> None:
    catalogue = [SessionRecord("main", f"session-{number:05}") for number in range(2000)]
    assert chosen("sessoin-00001", catalogue=catalogue).warnings == ()
    strange = [f"nothing-{number:05}" for number in range(2000)]
    assert chosen(*strange, catalogue=catalogue).session_ids == tuple(strange)


def test_a_shortened_name_is_never_recorded_and_its_whole_is_named() -> None:
    catalogue = [SessionRecord("main", "3f2a9c1b-0001"), SessionRecord("main", "kiln…")]
    for short in ("3f2a9c1b…", "…0001"):
        with pytest.raises(SelectorError, match="write it whole: '3f2a9c1b-0001'"):
            chosen(short, catalogue=catalogue)
    assert chosen("kiln…", catalogue=catalogue).session_ids == ("kiln…",)
    assert chosen("oven…", catalogue=catalogue).session_ids == ("oven…",), "nothing here was shortened to that"
