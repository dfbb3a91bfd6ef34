"""Which sessions does a selection mean? Selectors and a session catalogue in, exact session ids out.

Selectors are joined by *or*; ``since`` narrows what they select. A session is found by id, key, hook source or
participant, an archived one too where the store keeps its metadata (F16); by key also in the origin rows that carry it,
when the catalogue knows its former generations no more (F17). What names nothing is still recorded, literally: a
session that is forgotten before the store has ever seen it must stay out when it comes (docs: Selectors, cases B1-B14).
Everything is compared exactly and only within the chosen agent (I12).

A selector that cannot have been meant is refused: by its shape when it is written down, long before a store is opened
(D15), and by what it names before anything is planned (F64a). What may not have been meant is a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from enum import StrEnum

from attrs import define, field, frozen

from memprov.core.purge.naming import KnownNames, misdirected, read_reference, whole_names
from memprov.core.purge.selectors import EPOCH, Selectors
from memprov.core.records import Identity, Origin, SessionRecord, SessionState, identity_json, is_session_key
from memprov.core.text import json_text
from memprov.errors import SelectorError

__all__ = [
    "ParticipantMatch",
    "Resolution",
    "Selection",
    "SelectionSource",
    "select_sessions",
    "unfound_sessions",
    "unmet_selectors",
]

#: How many names that nothing is called are compared with known ones by single edits.
_EDITED = 20


class SelectionSource(StrEnum):
    """Where a selected session was found. A retained session counts as live; one that only origin rows know by its key
    is of ``origins``; an unresolved one was found nowhere.
    """

    LIVE = "live"
    ARCHIVED = "archived"
    ORIGINS = "origins"
    UNRESOLVED = "unresolved"


@frozen
class Resolution:
    """One selected session, and where it was found.

    ``since`` compares the time at which a session began. ``judged_by`` says that this time is not known, and which
    later one stood in for it: ``archived`` or ``observed``; the session may have begun before ``since`` (F47).
    """

    session_id: str
    source: SelectionSource = field(converter=SelectionSource)
    session_key: str | None = None
    judged_by: str | None = None


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


def select_sessions(
    catalogue: Iterable[SessionRecord],
    selectors: Selectors,
    agent_id: str = "main",
    *,
    origins: Iterable[Origin] = (),
) -> Selection:
    """Resolve the selectors against the sessions of one agent, in one pass over the catalogue.

    The catalogue may list other agents' sessions; they are never selected, and only tell whose a name is (D10).
    ``origins`` are the agent's origin rows that carry a selected key, or more. Raises ``SelectorError`` when nothing is
    asked for, before the catalogue is read, and for a name that is something else than a session's (F64a).
    """
    selectors.require()
    own: list[SessionRecord] = []
    others: list[SessionRecord] = []
    for record in catalogue:
        (own if record.agent_id == agent_id else others).append(record)
    rows = [row for row in origins if row.agent_id == agent_id]
    names = _Names.read(selectors.sessions, own, rows, agent_id)
    judge = _Judge(selectors)

    matched = _matched(own, names.wanted, selectors)
    present = [record for record in matched if record.state is not SessionState.ARCHIVED]
    # A live session speaks for its archive rows: `since` cannot bring it back through one of them (D8).
    present_ids = {record.session_id for record in present}
    archives = [r for r in matched if r.state is SessionState.ARCHIVED and r.session_id not in present_ids]
    known_ids = present_ids.union(record.session_id for record in archives)
    found = [
        Resolution(record.session_id, source, record.session_key, judged)
        for source, records in ((SelectionSource.LIVE, present), (SelectionSource.ARCHIVED, archives))
        for record in sorted(records, key=_preferred)
        for judged in judge.admitted(record)
    ]
    found += [
        Resolution(session_id, SelectionSource.ORIGINS, key, judged)
        for session_id, key, observed in _of_keys(rows, names.wanted)
        if session_id not in known_ids
        for judged in judge.observed(session_id, observed)
    ]
    found += [Resolution(value, SelectionSource.UNRESOLVED) for value in names.unresolved]
    resolutions: dict[str, Resolution] = {}
    for resolution in found:
        resolutions.setdefault(resolution.session_id, resolution)

    targets = [record for record in matched if record.session_id in resolutions and judge.in_time(record)]
    matches = _participants(targets, selectors)
    rejected = judge.rejected(resolutions, names.wanted)
    session_ids = tuple(sorted(resolutions))
    return Selection(
        agent_id,
        selectors,
        session_ids,
        tuple(resolutions[session_id] for session_id in session_ids),
        matches,
        tuple(
            sorted(
                {*names.notes, *rejected, *_doubts(names, own, others, agent_id), *_unjudged(own, selectors, matched)}
            )
        ),
    )


@frozen
class _Names:
    """The names that were asked for. ``wanted`` are ids and keys, ``unresolved`` those that nothing is called, and
    ``notes`` says which names were read as another.
    """

    wanted: frozenset[str]
    unresolved: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def read(cls, names: tuple[str, ...], own: list[SessionRecord], rows: list[Origin], agent_id: str) -> _Names:
        """Read each name: as what is called so, else as a reference to a session; else it is refused or recorded."""
        known = {name for record in own for name in (record.session_id, record.session_key)}
        known.update(row.session_key for row in rows)
        recorded = known.union(row.session_id for row in rows)
        entry_keys = frozenset(row.entry_key for row in rows)
        wanted: set[str] = set()
        unresolved: set[str] = set()
        notes = []
        for value in dict.fromkeys(names):
            if value in known:
                wanted.add(value)
                continue
            if (error := misdirected(value, entry_keys)) is not None and value not in recorded:
                raise error
            if value not in recorded and (whole := whole_names(value, filter(None, known))):
                raise SelectorError(
                    f"{value!r} is a shortened name; write it whole: {' or '.join(map(repr, whole[:3]))}"
                )
            named = None if value in recorded else read_reference(value, agent_id)
            if named is not None and named.agent_id != agent_id:
                raise SelectorError(
                    f"{value!r} refers to session {named.session_id!r} of agent {named.agent_id!r}, and this is agent "
                    f"{agent_id!r}; name that agent (--agent)"
                )
            scope = value.removeprefix(f"{agent_id}:")
            read_as = named.session_id if named else scope if scope in known else value
            if read_as != value:
                notes.append(f"{value!r} is read as session {read_as!r}")
            (wanted if read_as in known else unresolved).add(read_as)
        return cls(frozenset(wanted), tuple(sorted(unresolved)), tuple(notes))


@define
class _Judge:
    """What ``since`` says of a session, and of which it could not say it."""

    selectors: Selectors
    timeless: dict[str, None] = field(factory=dict)
    early: dict[str, tuple[str | None, int]] = field(factory=dict)

    def in_time(self, record: SessionRecord) -> bool:
        """Whether ``since`` leaves the session in."""
        since, moment = self.selectors.since_ms, record.created_at_ms
        moment = record.archived_at_ms if moment is None else moment
        return since is None or (moment is not None and moment >= since)

    def admitted(self, record: SessionRecord) -> Iterator[str | None]:
        """For a session that is left in, the time that it was judged by (``None``: its own); nothing for another."""
        if self.in_time(record):
            own = self.selectors.since_ms is None or record.created_at_ms is not None
            yield None if own else "archived"
        elif record.created_at_ms is None and record.archived_at_ms is None:
            self.timeless[record.session_id] = None
        else:
            moment = record.archived_at_ms if record.created_at_ms is None else record.created_at_ms
            self.early[record.session_id] = record.session_key, moment or 0

    def observed(self, session_id: str, observed_ms: int) -> Iterator[str | None]:
        """The same for a session of which only origin rows are left: when it was first observed."""
        since = self.selectors.since_ms
        if since is None:
            yield None
        elif not observed_ms:
            self.timeless[session_id] = None
        elif observed_ms >= since:
            yield "observed"
        else:
            self.early[session_id] = None, observed_ms

    def rejected(self, resolutions: Collection[str], wanted: frozenset[str]) -> Iterator[str]:
        """Sentences about sessions that ``since`` could not judge, and about named ones that it leaves out (F50)."""
        for session_id in self.timeless:
            yield f"session {session_id!r} has no creation time; 'since' leaves it out"
        for session_id, (key, moment) in self.early.items():
            if session_id not in resolutions and (session_id in wanted or key in wanted or key is None):
                day = _date_time(moment)
                yield f"session {session_id!r} is known and was named, and 'since' leaves it out: it is of {day}"


def _date_time(moment_ms: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=moment_ms)).strftime("%Y-%m-%d %H:%M UTC")
    except OverflowError:
        return f"{moment_ms} ms"


def _matched(own: Iterable[SessionRecord], wanted: frozenset[str], selectors: Selectors) -> list[SessionRecord]:
    """The sessions that a selector finds, and the present ones whose archive row it finds."""
    hooks = frozenset(selectors.hook_sources)
    actors = frozenset(selectors.participants)
    found: list[SessionRecord] = []
    left: list[SessionRecord] = []
    for record in own:
        hit = (
            record.session_id in wanted
            or record.session_key in wanted
            or record.hook_source in hooks
            or any(identity.id in actors for identity in record.participants)
        )
        (found if hit else left).append(record)
    archived_ids = {record.session_id for record in found if record.state is SessionState.ARCHIVED}
    return found + [r for r in left if r.state is not SessionState.ARCHIVED and r.session_id in archived_ids]


def _of_keys(rows: Iterable[Origin], wanted: frozenset[str]) -> list[tuple[str, str, int]]:
    """Session id, key and first observation of the sessions whose origin rows carry a wanted key, sorted."""
    found: dict[str, tuple[str, int]] = {}
    for row in rows:
        if row.session_key is not None and row.session_key in wanted:
            key, moment = found.get(row.session_id, (row.session_key, row.observed_at_ms))
            found[row.session_id] = min(key, row.session_key), min(moment, row.observed_at_ms)
    return sorted((session_id, key, moment) for session_id, (key, moment) in found.items())


def _preferred(record: SessionRecord) -> tuple[bool, bool, str]:
    """Which of several rows of one id is reported, whatever the order of the catalogue."""
    return (record.state is not SessionState.LIVE, record.session_key is None, record.session_key or "")


def _doubts(names: _Names, own: list[SessionRecord], others: list[SessionRecord], agent_id: str) -> Iterator[str]:
    """Why an unresolved value may not be what was meant (D10, F50)."""
    if not names.unresolved:
        return
    sought = frozenset(names.unresolved)
    owners: dict[str, set[str]] = {}
    for record in others:
        scope = f"{record.agent_id}:{record.session_id}"
        for value in sought.intersection((record.session_id, record.session_key, scope)):
            owners.setdefault(value, set()).add(record.agent_id)
    known = KnownNames(own)
    for place, value in enumerate(names.unresolved):
        if value in owners:
            agents = ", ".join(map(repr, sorted(owners[value])))
            yield f"{value!r} belongs to agent {agents}; agent {agent_id!r} records it as a session id of its own"
        elif (near := list(known.doubts(value))) or (place < _EDITED and (near := list(known.mistyped(value)))):
            yield from near
        elif is_session_key(value):
            yield f"{value!r} is shaped like a session key and names no session; it is recorded as a session id"


def _unjudged(own: list[SessionRecord], selectors: Selectors, matched: list[SessionRecord]) -> Iterator[str]:
    """What hook sources and participants may have missed: archives without metadata, and names that are nearly one."""
    if not (selectors.hook_sources or selectors.participants):
        return
    selected = {record.session_id for record in matched}
    bare = {r.session_id for r in own if r.state is SessionState.ARCHIVED and _is_bare(r)} - selected
    if bare:
        sessions = "1 archived session" if len(bare) == 1 else f"{len(bare)} archived sessions"
        yield f"of {sessions} no metadata is kept, so that no participant or hook source finds them; name them by id"
    known = KnownNames(own)
    people = {identity.id for record in own for identity in record.participants}
    for actor in sorted(set(selectors.participants) - people):
        yield from (f"nobody is {actor!r}; did you mean participant {name!r}?" for name in known.near_people(actor))
    for source in sorted(set(selectors.hook_sources) - {record.hook_source for record in own}):
        yield from (f"no hook source is {source!r}; did you mean {name!r}?" for name in known.near_hooks(source))


def _is_bare(record: SessionRecord) -> bool:
    return not (record.participants or record.hook_source or record.channel or record.chat_type)


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


def unfound_sessions(selection: Selection) -> tuple[str, ...]:
    """The selected names that no session store and no origin row's key knows, sorted."""
    return tuple(r.session_id for r in selection.resolutions if r.source is SelectionSource.UNRESOLVED)


def unmet_selectors(
    records: Iterable[SessionRecord], selection: Selection, traced: Collection[str] = ()
) -> tuple[str, ...]:
    """A sentence for each selector that meets no session known to the store, with what it nearly is.

    ``records`` are the store's sessions, ``traced`` those of the unfound names that memory still knows: a session that
    was deleted from the catalogue is known by what it left. ``since`` plays no part.
    """
    own = [record for record in records if record.agent_id == selection.agent_id]
    people = {identity.id for record in own for identity in record.participants}
    hooks = {record.hook_source for record in own}
    asked = selection.selectors
    unmet = [
        *((value, "no session is") for value in unfound_sessions(selection) if value not in traced),
        *((value, "nobody is") for value in asked.participants if value not in people),
        *((value, "no hook source is") for value in asked.hook_sources if value not in hooks),
    ]
    return tuple("; ".join((f"{what} {value!r}", *_nearly(value, selection))) for value, what in dict.fromkeys(unmet))


def _nearly(value: str, selection: Selection) -> Iterator[str]:
    """What the selection itself says of a value, but for that it would be recorded, which it is not."""
    begins = tuple(f"{what}{value!r}" for what in ("", "nobody is ", "no hook source is "))
    for warning in selection.warnings:
        if warning.startswith(begins) and "did you mean" in warning:
            yield warning[warning.rindex("did you mean") :]
        elif warning.startswith(begins) and "record" not in warning:
            yield warning
