"""Where a transcript is read from, how ingestion names it, and which transcripts may be read at all.

``admit_sources`` decides from metadata alone. A shell hands it what it could read, gets back what it may read, and only
then opens anything: ``read_admitted`` calls the shell's reader for admitted sources and for no other (I10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from attrs import evolve, field, frozen

from memprov.core.records import SessionRecord, described, is_moment
from memprov.core.state import Checkpoint, IngestState
from memprov.core.text import corpus_owner, u16_length
from memprov.core.writing.admission import Admission, AdmissionPolicy, Purpose, decide_admission
from memprov.core.writing.messages import Message
from memprov.core.writing.transcripts import Reading, read_transcript
from memprov.errors import InputError

__all__ = [
    "Admitted",
    "Source",
    "Transcript",
    "admit_sources",
    "read_admitted",
    "session_source",
]

#: What a corpus prefix may take of its line, so that text is left of it (docs: Corpus lines).
_LONGEST_PREFIX = 300


@frozen
class Source:
    """A transcript that could be read, with the names under which ingestion keeps its state (docs: Checkpoints and
    seen hashes).

    ``path`` is what corpus lines call it, ``state_key`` its checkpoint, ``scope`` the domain in which its messages are
    told apart; ``legacy_scope`` is an older name of that. ``modified_ms`` and ``size`` change whenever the transcript
    does; a host that does not know says a size of 0, and the transcript is read to see. ``updated_at_ms`` is when the
    host last touched the session.
    """

    agent_id: str
    path: str
    state_key: str
    scope: str
    session: SessionRecord
    legacy_scope: str | None = None
    modified_ms: int = 0
    size: int = 0
    updated_at_ms: int = 0


def _messages(values: Iterable[Message]) -> tuple[Message, ...]:
    result: tuple[object, ...] = tuple(values)
    for number, value in enumerate(result, 1):
        if not isinstance(value, Message):
            raise InputError(f"message {number} of a transcript is {described(value)}, not a memprov.Message")
    return tuple(value for value in result if isinstance(value, Message))


@frozen
class Transcript:
    """What a reader gives for a source: the messages, and the state of the transcript that they were read from."""

    source: Source
    messages: tuple[Message, ...] = field(converter=_messages)
    archived: bool = False

    @cached_property
    def reading(self) -> Reading:
        """Its lines, made once."""
        return read_transcript(self.messages, modified_ms=self.source.modified_ms, archived=self.archived)


@frozen
class Admitted:
    """The decision over a listing, in the order in which it is carried out.

    ``sources`` may be read. ``unchanged`` need not: nothing happened to them since they were read to the end.
    ``decisions`` has the reason for each session that may not be read; where it is news and belongs into a checkpoint,
    that is in ``excluded``, and the session in ``kept_out`` unless it is a forgotten one. ``known_keys`` are the state
    keys of the whole listing, if it was one; otherwise ``None``.
    """

    purpose: Purpose
    sources: tuple[Source, ...]
    unchanged: tuple[Source, ...] = ()
    decisions: tuple[Admission, ...] = ()
    excluded: tuple[Checkpoint, ...] = ()
    kept_out: tuple[str, ...] = ()
    known_keys: frozenset[str] | None = None


def session_source(
    session: SessionRecord,
    *,
    file_name: str | None = None,
    modified_ms: int = 0,
    size: int = 0,
    updated_at_ms: int | None = None,
) -> Source:
    """The source of a session: its transcript in the session store, or in the file of that name."""
    agent = session.agent_id
    modified_ms = modified_ms if is_moment(modified_ms) else 0
    path = f"sessions/{agent}/{session.session_id if file_name is None else file_name}"
    old_scope = f"{agent}:{session.session_id}"
    return Source(
        agent_id=agent,
        path=path,
        state_key=f"{agent}:{path}",
        scope=f"{agent}:{path}" if file_name is None else old_scope,
        session=session,
        legacy_scope=old_scope if file_name is None else None,
        modified_ms=max(modified_ms, 0),
        size=max(size, 0),
        updated_at_ms=max(modified_ms if updated_at_ms is None else updated_at_ms, 0),
    )


def admit_sources(
    listing: Iterable[Source],
    policy: AdmissionPolicy | None,
    state: IngestState,
    purpose: Purpose | str = Purpose.INGESTION,
    *,
    complete: bool = True,
) -> Admitted:
    """Decide which sources may be read, before any of them is opened.

    Sessions have their kinds resolved (``sessions.resolve_kinds``) and are of the state's agent; ``InputError``
    otherwise. ``complete`` says that the listing is everything there is, so that checkpoints of what is not in it are
    of sessions that are gone; for one transcript that changed it is not. What was never read to its end comes first, so
    that a sweep of bounded length gets on. A backfill reads what is unchanged as well: the range of days may be another
    one.
    """
    purpose = Purpose(purpose)
    checkpoints = {checkpoint.key: checkpoint for checkpoint in state.checkpoints}
    admitted: list[Source] = []
    read_before: list[Source] = []
    unchanged: list[Source] = []
    decisions: list[Admission] = []
    excluded: list[Checkpoint] = []
    kept_out: list[str] = []
    known: set[str] = set()
    for source in sorted(listing, key=lambda s: (s.path, s.state_key)):
        if source.agent_id != state.agent_id:
            raise InputError(f"a source of agent {source.agent_id!r} in the listing of agent {state.agent_id!r}")
        if source.state_key in known:
            continue
        known.add(source.state_key)
        decision = _decide(source, policy, state, purpose)
        if decision.admitted:
            checkpoint = checkpoints.get(source.state_key) if purpose is Purpose.INGESTION else None
            if checkpoint is None or not _was_read(checkpoint):
                admitted.append(source)
            else:
                (unchanged if _is_same(source, checkpoint) else read_before).append(source)
            continue
        decisions.append(decision)
        row = Checkpoint(source.state_key, mtime_ms=source.updated_at_ms, excluded_reason=decision.reason)
        if decision.checkpointed and row != checkpoints.get(row.key):
            excluded.append(row)
            if decision.session_id not in state.tombstones:
                kept_out.append(decision.session_id)
    return Admitted(
        purpose,
        (*admitted, *read_before),
        tuple(unchanged),
        tuple(decisions),
        tuple(excluded),
        tuple(kept_out),
        frozenset(known) if complete else None,
    )


def read_admitted(admitted: Admitted, reader: Callable[[Source], Transcript | None]) -> Iterator[Transcript]:
    """Read the admitted sources, each when it is asked for. A reader answers ``None`` for one that is gone."""
    for source in admitted.sources:
        transcript = reader(source)
        if transcript is not None:
            yield transcript


def _decide(source: Source, policy: AdmissionPolicy | None, state: IngestState, purpose: Purpose) -> Admission:
    decision = decide_admission(source.session, policy, state.tombstones, purpose)
    if decision.admitted and not _attributable(source):
        return evolve(decision, reason="unattributable")
    return decision


def _was_read(checkpoint: Checkpoint) -> bool:
    """Whether the transcript, as it was then, was read to its end."""
    return checkpoint.content_hash != "" and checkpoint.last_content_line >= checkpoint.line_count


def _is_same(source: Source, checkpoint: Checkpoint) -> bool:
    """Whether the transcript is the same since, as far as its metadata say."""
    return (
        source.modified_ms > 0
        and source.size > 0
        and (checkpoint.mtime_ms, checkpoint.size) == (source.modified_ms, source.size)
    )


def _attributable(source: Source) -> bool:
    """Whether a corpus line of this session would be read back as its own, which forgetting depends on (D1)."""
    prefix = f"[{source.agent_id}/{source.path}#L1] "
    return (
        u16_length(prefix) <= _LONGEST_PREFIX
        and prefix.isprintable()
        and corpus_owner(prefix, source.agent_id) == source.session.session_id
    )
