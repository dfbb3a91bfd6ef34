"""How values show themselves, in a log or a notebook: one short line, and no memory text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from attrs import evolve, fields

from memprov import (
    ChunkTable,
    EntryTrace,
    HostEvent,
    InputError,
    MemoryFile,
    Origin,
    OriginTable,
    Preimage,
    PurgePlan,
    RecallEntry,
    Receipt,
    Report,
    Selectors,
    Trace,
    Verdict,
    Verification,
    plan_purge,
    select_sessions,
)
from memprov.testing import synthetic_snapshot

CANARY = "<b>the spare key & the canary</b>\nsing"


def planted(value: Any) -> Any:
    """The same value with the canary in every field that is a list of texts."""
    lists = {part.name: (CANARY, CANARY) for part in fields(type(value)) if str(part.type) == "tuple[str, ...]"}
    return evolve(value, **lists)


SNAPSHOT = synthetic_snapshot(sessions=3)
ORIGINS = OriginTable.from_rows([Origin(CANARY, "main", CANARY, CANARY)])
CHUNKS = ChunkTable.from_rows([evolve(chunk, id=CANARY, path=CANARY, text=CANARY) for chunk in SNAPSHOT.chunks.rows()])
PLAN = plan_purge(
    SNAPSHOT, select_sessions((), Selectors(sessions=SNAPSHOT.origins.sessions[:1]), agent_id=SNAPSHOT.store.agent_id)
)
VALUES: list[object] = [
    ORIGINS,
    CHUNKS,
    planted(
        evolve(
            SNAPSHOT,
            files=(MemoryFile("MEMORY.md", CANARY),),
            recall=(RecallEntry(CANARY, CANARY, CANARY),),
            preimages=(Preimage(CANARY, CANARY),),
            events=(HostEvent(CANARY, CANARY),),
            origins=ORIGINS,
            chunks=CHUNKS,
        )
    ),
    evolve(PLAN, report=planted(PLAN.report)),
    planted(PLAN.report),
    planted(Trace("main", (planted(EntryTrace(CANARY, None)),))),
    planted(Verification(Verdict.CLEAN)),
    planted(Receipt(1, None, 0, CANARY, "main", "logical", complete=True, sessions=(), plan_digest="d")),
]
NAMES = [type(value).__name__ for value in VALUES]


@pytest.mark.parametrize("value", VALUES, ids=NAMES)
def test_a_value_shows_itself_in_one_short_line_without_memory_text(value: object) -> None:
    for shown in (repr(value), str(value), f"{value}", f"{value!r}"):
        assert type(value).__name__ in shown
        assert len(shown) < 200
        assert "\n" not in shown
        assert "canary" not in shown


@pytest.mark.parametrize("value", VALUES, ids=NAMES)
def test_what_is_raised_at_a_value_shows_no_memory_text(value: Any) -> None:
    with pytest.raises(AttributeError) as raised:
        value.no_such_field = 1
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("kind", [PurgePlan, Receipt])
def test_what_refuses_a_document_shows_none_of_it(kind: Any) -> None:
    for document in (CANARY, f'{{"format": "{CANARY[:20]} canary"}}'):
        with pytest.raises(InputError) as raised:
            kind.from_json(document)
        assert "canary" not in str(raised.value)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


@pytest.mark.parametrize("kind", [Report, PurgePlan, Trace])
def test_a_notebook_shows_a_table_in_which_everything_is_escaped(kind: type) -> None:
    (value,) = (value for value in VALUES if type(value) is kind)
    shown = value._repr_html_()  # type: ignore[attr-defined]
    tags = Tags()
    tags.feed(shown)
    assert tags.seen == {"table", "caption", "tr", "td"}


def test_an_agent_of_any_name_is_escaped_in_a_notebook() -> None:
    assert "<b>" not in Report(CANARY, dry_run=True)._repr_html_() + Trace(CANARY)._repr_html_()
    assert "\n" not in repr(Report(CANARY, dry_run=True)) + repr(Trace(CANARY))
    assert "&lt;b&gt;" in Report(CANARY, dry_run=True)._repr_html_()
