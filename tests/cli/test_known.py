"""Names that nothing has: said first and loudest, and refused where known sessions are asked for (``--known``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memprov import (
    Identity,
    Message,
    Report,
    Resolution,
    SelectionSource,
    SelectorError,
    Selectors,
    SessionRecord,
    forget,
    ingest,
    open_store,
    require_known,
    select_sessions,
)
from memprov.cli.reading import describe_report
from memprov.core.purge import unmet_selectors
from tests.cli.running import Run
from tests.test_golden import files_of

BOB = Identity("profile", "Bob")
RECORDS = [
    SessionRecord("main", "kiln-0001", "agent:main:kiln", created_at_ms=9, participants=[BOB], hook_source="gmail"),
    SessionRecord("ops", "other", "agent:ops:other"),
]


def unmet(**asked: object) -> tuple[str, ...]:
    selectors = Selectors(**asked)  # type: ignore[arg-type]  # fields as they are named
    return unmet_selectors(RECORDS, select_sessions(RECORDS, selectors))


def test_what_meets_a_session_is_known_whatever_since_says_of_it() -> None:
    known = {"sessions": ["kiln-0001", "agent:main:kiln"], "participants": ["Bob"], "hook_sources": ["gmail"]}
    assert unmet(**known) == ()
    assert unmet(**known, since=10) == ()


def test_what_meets_none_is_named_with_what_it_nearly_is() -> None:
    (session,) = unmet(sessions=["KILN-0001", "kiln-0001"])
    assert "'KILN-0001'" in session
    assert "did you mean 'kiln-0001'?" in session
    assert "record" not in session, "nothing is recorded where it is refused"
    (person,) = unmet(participants=["bob", "Bob"])
    assert "did you mean participant 'Bob'?" in person
    assert len(unmet(sessions=["x"], participants=["y"], hook_sources=["z", "gmail"])) == 3
    assert len(unmet(sessions=["other"])) == 1, "another agent's session is none of this agent's"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    opened = open_store(tmp_path / "store")
    opened.record_session(SessionRecord("main", "kiln-0001", "agent:main:kiln", created_at_ms=9))
    said = [Message("user", "I prefer oolong tea.", sender_is_owner=True, timestamp_ms=9, number=2)]
    ingest(opened, lambda _: said, now_ms=9)
    return tmp_path / "store"


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--json",), ("--plan-out", "plan")])
def test_known_refuses_one_unknown_name_among_known_ones_and_changes_nothing(
    run: Run, store: Path, tmp_path: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files_of(tmp_path)
    ran = run("forget", "--store", store, "--session", "kiln-0001", "--session", "kiln-000", "--known", *more)
    assert ran.code == 2
    assert "did you mean 'kiln-0001'?" in ran.err
    assert files_of(tmp_path) == before


def test_known_lets_through_what_the_store_knows_also_by_what_it_left(run: Run, store: Path) -> None:
    open_store(store).delete_session("kiln-0001")
    require_known(open_store(store), Selectors(sessions=["kiln-0001"]))
    assert run("forget", "--store", store, "--session", "kiln-0001", "--known").code == 0
    require_known(open_store(store), Selectors(sessions=["kiln-0001"]))  # as forgotten
    with pytest.raises(SelectorError, match="no session is 'strange'"):
        require_known(open_store(store), Selectors(sessions=["strange"]))
    assert forget(open_store(store), Selectors(sessions=["strange"])).session_ids == ("strange",)


def test_the_preview_says_unknown_names_first_and_loudest(run: Run, store: Path) -> None:
    words = ("forget", "--store", store, "--session", "kiln-0001", "--session", "kiln-000", "--participant", "zoe")
    first, near, person, *rest = run(*words, "--dry-run").out.splitlines()
    assert first.startswith("UNKNOWN SESSION 'kiln-000'")
    assert "did you mean 'kiln-0001'" in near
    assert person.startswith("NOBODY IS 'zoe'")
    assert any("--known" in line for line in rest)
    assert "UNKNOWN" not in run("forget", "--store", store, "--session", "kiln-0001", "--dry-run").out


def test_many_unknown_names_are_counted_and_not_all_listed() -> None:
    strange = tuple(Resolution(f"x{n:02}", SelectionSource.UNRESOLVED) for n in range(30))
    lines = list(describe_report(Report("main", dry_run=True, session_resolutions=strange), None))
    assert sum(line.startswith("UNKNOWN") for line in lines) == 10
    assert "20 more" in "".join(lines[:12])
