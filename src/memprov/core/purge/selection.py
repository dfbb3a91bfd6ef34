"""Which sessions does a selection mean? Selectors and a session catalogue in, exact session ids out.

Selectors are joined by *or*; ``since`` narrows what metadata selects. A session is found live by id, key, hook source
or participant, and archived by id or key only, because an archive keeps no other metadata. What names nothing is still
recorded, literally: a session that is forgotten before the store has ever seen it must stay out when it comes
(FACTS 1.7, cases B1–B14). Everything is compared exactly and only within the chosen agent (I12).

A selector that cannot have been meant is refused when it is written down, long before a store is opened (D15).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from attrs import field, frozen

from memprov.core.records import Identity, SessionRecord, SessionState, identity_json, is_session_key, strings
from memprov.core.text import WSP, json_text
from memprov.errors import InputError, SelectorError

__all__ = ["ParticipantMatch", "Resolution", "Selection", "SelectionSource", "Selectors", "select_sessions"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)


class SelectionSource(StrEnum):
    """Where a selected session was found. A retained session counts as live; an unresolved one was found nowhere."""

    LIVE = "live"
    ARCHIVED = "archived"
    UNRESOLVED = "unresolved"


def _values(values: Iterable[str]) -> tuple[str, ...]:
    try:
        result = strings(values)
    except (InputError, TypeError) as error:
        raise SelectorError(f"bad selector: {error}") from None
    for value in result:
        bare = value.strip(WSP).strip()  # blank to JavaScript or to Python
        if bare in ("", "*") or "\0" in value:
            raise SelectorError(
                f"bad selector {value!r}: it must name one thing exactly, hence be neither blank nor '*' nor hold a NUL"
            )
    return result


def _since_ms(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and _DATE_TIME.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value.upper())
        except ValueError:  # shaped like a date, and none
            pass
        else:
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(milliseconds=1)
    raise SelectorError(f"bad selector since={value!r}: it must be an ISO date or date-time")


@frozen
class Selectors:
    """What a caller asks for, as it was written: any of these sessions, hook sources and participants, since a time.

    ``sessions`` are ids or keys. Values are exact and are not trimmed. ``since`` is an ISO date or date-time, in UTC
    where it names no zone (D8), or epoch milliseconds. Raises ``SelectorError`` naming a value that is blank, ``*``,
    holds a NUL, or is no date (D15). To select nothing at all is an error only when something is to be selected.
    """

    sessions: tuple[str, ...] = field(default=(), converter=_values)
    hook_sources: tuple[str, ...] = field(default=(), converter=_values)
    participants: tuple[str, ...] = field(default=(), converter=_values)
    since: str | int | None = None
    since_ms: int | None = field(init=False, repr=False, eq=False)

    @since_ms.default
    def _(self) -> int | None:
        return _since_ms(self.since)

    def require(self) -> None:
        """Raise ``SelectorError`` unless something is selected; ``since`` alone selects nothing (case B1)."""
        if not (self.sessions or self.hook_sources or self.participants):
            raise SelectorError("no selector: name at least one session, hook source or participant")


@frozen
class Resolution:
    """One selected session, and where it was found."""

    session_id: str
    source: SelectionSource = field(converter=SelectionSource)
    session_key: str | None = None


@frozen
class ParticipantMatch:
    """A requested participant, and who that is in the selected sessions: nobody, one identity, or several."""

    actor_id: str
    identities: tuple[Identity, ...] = ()


@frozen
class Selection:
    """The sessions of one agent that selectors resolve to. All tuples are sorted by code point."""

    agent_id: str
    selectors: Selectors
    session_ids: tuple[str, ...] = ()
    resolutions: tuple[Resolution, ...] = ()
    participant_matches: tuple[ParticipantMatch, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def session_keys(self) -> tuple[str, ...]:
        """The keys of the selected sessions, as far as they are known (case H2)."""
        return tuple(sorted({r.session_key for r in self.resolutions if r.session_key is not None}))


def select_sessions(catalogue: Iterable[SessionRecord], selectors: Selectors, agent_id: str = "main") -> Selection:
    """Resolve the selectors against the sessions of one agent, in one pass over the catalogue.

    The catalogue may list other agents' sessions; they are never selected. Raises ``SelectorError`` when nothing is
    asked for, before the catalogue is read.
    """
    selectors.require()
    named = frozenset(selectors.sessions)
    present: list[SessionRecord] = []
    archives: list[SessionRecord] = []
    siblings: dict[str, set[str]] = {}
    for record in catalogue:
        if record.agent_id != agent_id:
            for value in named.intersection((record.session_id, record.session_key)):
                siblings.setdefault(value, set()).add(record.agent_id)
        elif record.state is not SessionState.ARCHIVED:
            present.append(record)
        elif record.session_id in named or record.session_key in named:
            archives.append(record)

    matched = _matched(present, selectors, {record.session_id for record in archives})
    resolved = {name for record in (*matched, *archives) for name in (record.session_id, record.session_key)}
    # A live session speaks for its archive rows: `since` cannot bring it back through one of them (D8).
    live_ids = {record.session_id for record in matched}
    archives = [record for record in archives if record.session_id not in live_ids]
    warnings: list[str] = []
    targets = [record for record in matched if _in_time(record, selectors, warnings)]
    found = [
        Resolution(record.session_id, source, record.session_key)
        for source, records in (
            (SelectionSource.LIVE, targets),
            (SelectionSource.ARCHIVED, (r for r in archives if _in_time(r, selectors, warnings))),
        )
        for record in sorted(records, key=_preferred)
    ]
    for value in sorted(named - resolved):
        found.append(Resolution(value, SelectionSource.UNRESOLVED))
        warnings.extend(_doubts(value, agent_id, sorted(siblings.get(value, ()))))

    resolutions: dict[str, Resolution] = {}
    for resolution in found:
        resolutions.setdefault(resolution.session_id, resolution)
    session_ids = tuple(sorted(resolutions))
    return Selection(
        agent_id,
        selectors,
        session_ids,
        tuple(resolutions[session_id] for session_id in session_ids),
        _participants(targets, selectors),
        tuple(sorted(set(warnings))),
    )


def _matched(present: Iterable[SessionRecord], selectors: Selectors, archived_ids: set[str]) -> list[SessionRecord]:
    """The live and retained sessions that a selector names, or whose archive row one names."""
    named = frozenset(selectors.sessions)
    hooks = frozenset(selectors.hook_sources)
    actors = frozenset(selectors.participants)
    return [
        record
        for record in present
        if record.session_id in named
        or record.session_key in named
        or record.hook_source in hooks
        or record.session_id in archived_ids
        or any(identity.id in actors for identity in record.participants)
    ]


def _in_time(record: SessionRecord, selectors: Selectors, warnings: list[str]) -> bool:
    if selectors.since_ms is None:
        return True
    if record.created_at_ms is None:
        warnings.append(f"session {record.session_id!r} has no creation time; 'since' leaves it out")
        return False
    return record.created_at_ms >= selectors.since_ms


def _preferred(record: SessionRecord) -> tuple[bool, bool, str]:
    """Which of several rows of one id is reported, whatever the order of the catalogue."""
    return (record.state is not SessionState.LIVE, record.session_key is None, record.session_key or "")


def _doubts(value: str, agent_id: str, siblings: list[str]) -> list[str]:
    """Why an unresolved value may not be what was meant (D10)."""
    if siblings:
        owners = ", ".join(map(repr, siblings))
        return [f"{value!r} belongs to agent {owners}; agent {agent_id!r} records it as a session id of its own"]
    if is_session_key(value):
        return [f"{value!r} is shaped like a session key and names no session; it is recorded as a session id"]
    return []


def _participants(targets: Iterable[SessionRecord], selectors: Selectors) -> tuple[ParticipantMatch, ...]:
    """One item for each requested participant, with the distinct identities of that id in the selected sessions."""
    known: dict[str, dict[Identity, None]] = {actor: {} for actor in sorted(selectors.participants)}
    for record in targets:
        for identity in record.participants:
            if identity.id in known:
                known[identity.id][identity] = None
    result = []
    for actor, identities in known.items():
        # two are one when a report could not tell them apart
        distinct = {json_text(identity_json(identity)): identity for identity in identities}
        result.append(ParticipantMatch(actor, tuple(distinct[text] for text in sorted(distinct))))
    return tuple(result)
