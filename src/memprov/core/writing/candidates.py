"""Which lines of a transcript are new, and how they are written into the corpus (docs: Checkpoints and seen hashes,
Corpus lines).

A checkpoint says from where to look, the seen hashes what was taken. The checkpoint is a shortcut and the hashes are
the truth: when a transcript was rewritten, or a rule that kept it out is gone, everything is looked at again and what
was taken before is known again by its hash.

Corpus lines can be gone before their session is forgotten: another program purged them, they were pruned, somebody
deleted a file. So what they said is also read from the transcript alone (D23), and rendered as its lines would be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, tzinfo
from enum import Enum

from attrs import evolve, frozen

from memprov.core.records import (
    CuratedWrite,
    OriginClass,
    Provenance,
    Roots,
    SessionKind,
    SessionRecord,
    SessionState,
    key_kind,
    written_paths,
)
from memprov.core.state import Checkpoint, IngestState, RetainedText
from memprov.core.text import Snippet, collapse, corpus_snippet, neutralise_inline, seen_hash, u16_length
from memprov.core.writing.messages import Message
from memprov.core.writing.sources import Source, Transcript, session_source
from memprov.core.writing.transcripts import ContentLine, Skipped, content_hash, read_transcript

__all__ = [
    "Candidate",
    "DayRule",
    "Scan",
    "TranscriptFindings",
    "corpus_line",
    "corpus_path",
    "day_of",
    "joined_texts",
    "per_source_limit",
    "read_findings",
    "scan_source",
    "snippet_of",
    "truncated",
    "written_snippet",
]

MIN_SNIPPET_UNITS = 12
MAX_SNIPPET_UNITS = 280
MAX_LINE_UNITS = 344
#: The kinds of sessions that ingestion has ever read.
_READ = frozenset({SessionKind.INTERACTIVE, SessionKind.UNKNOWN})
#: How many lines one sweep or batch takes.
MAX_LINES = 240


class DayRule(Enum):
    """What to do with the lines of a day: take them, pass them over for good, or leave them for another time."""

    TAKE = "take"
    SKIP = "skip"
    LATER = "later"


@frozen
class Candidate:
    """A line to be taken, as it will be written.

    ``index`` is its place among the lines of its transcript, ``number`` that of its event.
    """

    source: Source
    index: int
    number: int
    day: str
    snippet: str
    line: str
    hash: str
    provenance: Provenance
    project_key: str | None = None


@frozen
class Scan:
    """What a transcript has to offer. ``checkpoint`` holds if all candidates are taken, ``None`` if nothing changed.

    ``blocked`` is the place of the first line that is left for another time. ``internal`` is the reason for which the
    transcript is no conversation after all. ``skipped`` and ``untimed`` are those of its reading.
    """

    source: Source
    candidates: tuple[Candidate, ...] = ()
    checkpoint: Checkpoint | None = None
    blocked: int | None = None
    internal: str | None = None
    skipped: tuple[Skipped, ...] = ()
    untimed: int = 0


def day_of(moment_ms: int, zone: tzinfo) -> str:
    """The day of a time, ``YYYY-MM-DD``, in this zone."""
    return datetime.fromtimestamp(moment_ms / 1000, zone).date().isoformat()


def corpus_path(day: str) -> str:
    """The corpus file of a day."""
    return f"memory/.dreams/session-corpus/{day}.txt"


def truncated(text: str, limit: int) -> str:
    """The longest start of the text that has at most ``limit`` UTF-16 units."""
    if u16_length(text) <= limit:
        return text
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * limit]
    if "\ud800" <= chr(int.from_bytes(units[-2:], "little")) <= "\udbff":
        units = units[:-2]  # half of a character
    return units.decode("utf-16-le", "surrogatepass")


def snippet_of(line: str) -> str:
    """What a line contributes: blanks collapsed, cut at 280 units. Still as it was said: a message is known by this."""
    return truncated(collapse(line), MAX_SNIPPET_UNITS)


def written_snippet(snippet: str) -> str:
    """The snippet as it is written down: no part of it is structure any more (J11)."""
    return truncated(neutralise_inline(snippet), MAX_SNIPPET_UNITS)


def corpus_line(source: Source, number: int, snippet: str) -> str:
    """The corpus line of a snippet. Its prefix is what makes it this session's (D1)."""
    return truncated(f"[{source.agent_id}/{source.path}#L{number}] {snippet}", MAX_LINE_UNITS)


def per_source_limit(sources: int, max_lines: int = MAX_LINES) -> int:
    """How many lines one transcript may contribute to so many when there are this many transcripts."""
    return min(max(max_lines // 3, 1), max(12, -(-max_lines // max(sources, 1))))


def scan_source(
    transcript: Transcript,
    state: IngestState,
    checkpoint: Checkpoint | None,
    day_rule: Callable[[str], DayRule],
    *,
    zone: tzinfo,
    limit: int | None = None,
    classes: Collection[OriginClass] = tuple(OriginClass),
) -> Scan:
    """The new lines of a transcript, at most ``limit`` of them, of these origin classes only.

    ``checkpoint`` is what the state has for it.
    """
    source = transcript.source
    reading = transcript.reading
    lines = reading.lines
    done = Checkpoint(source.state_key, source.modified_ms, source.size, reading.hash, len(lines), len(lines))
    if reading.internal is not None:
        return Scan(source, (), None if done == checkpoint else done, internal=reading.internal)
    scan = Scan(source, skipped=reading.skipped, untimed=reading.untimed)
    if checkpoint == done:
        return scan
    seen = {*state.seen.get(source.scope, ())}
    old_seen = frozenset(state.seen.get(source.legacy_scope, ()) if source.legacy_scope else ())
    candidates: list[Candidate] = []
    blocked: int | None = None
    end = start = _first_unread(lines, done, checkpoint)
    for index in range(start, len(lines)):
        if limit is not None and len(candidates) >= limit:
            break
        end = index + 1
        line = lines[index]
        snippet = snippet_of(line.text)
        provenance = line.provenance
        if u16_length(snippet) < MIN_SNIPPET_UNITS or provenance.origin_class not in classes:
            continue
        day = day_of(line.timestamp_ms or source.modified_ms, zone)
        rule = day_rule(day)
        if rule is not DayRule.TAKE:
            if rule is DayRule.LATER and blocked is None:
                blocked = index
            continue
        hashed = seen_hash(source.scope, line.timestamp_ms, line.number, snippet)
        if hashed in seen or (
            source.legacy_scope is not None
            and old_seen
            and seen_hash(source.legacy_scope, line.timestamp_ms, line.number, snippet) in old_seen
        ):
            continue
        seen.add(hashed)
        written = written_snippet(snippet)
        text = corpus_line(source, line.number, written)
        candidates.append(
            Candidate(source, index, line.number, day, written, text, hashed, provenance, line.project_key)
        )
    checkpoint = evolve(done, last_content_line=end)
    return evolve(scan, candidates=tuple(candidates), checkpoint=checkpoint, blocked=blocked)


def _first_unread(lines: tuple[ContentLine, ...], done: Checkpoint, before: Checkpoint | None) -> int:
    """From where to look: where the checkpoint ended if the lines that it saw are still there, else the start."""
    if before is None:
        return 0
    same = done.content_hash if before.line_count == len(lines) else content_hash(lines[: before.line_count])
    return min(before.last_content_line, len(lines)) if same == before.content_hash else 0


@frozen
class TranscriptFindings:
    """What the transcript of a session shows to somebody who is to forget it.

    ``writes`` are the memory files that its calls name; ``generated_by`` are the internal runs that its events give
    away, so that it is no conversation at all.
    """

    text: RetainedText
    writes: tuple[CuratedWrite, ...] = ()
    generated_by: frozenset[str] = frozenset()


def read_findings(
    session: SessionRecord, messages: Iterable[Message], roots: Roots, *, fallback_ms: int = 0
) -> TranscriptFindings:
    """Read a transcript to its end. ``fallback_ms`` is when a message without a time counts as observed."""
    writes: dict[str, int] = {}
    generated: set[str] = set()

    def watched() -> Iterator[Message]:
        for message in messages:
            if message.generated_by is not None:
                generated.add(message.generated_by)
            if message.role == "assistant":
                for path in written_paths(message.tool_calls, roots):
                    writes.setdefault(path, message.timestamp_ms or fallback_ms)
            yield message

    reading = watched()
    lines = read_transcript(reading, archived=session.state is SessionState.ARCHIVED).lines
    for _ in reading:
        pass  # what an internal run said is not taken, but its writes count
    return TranscriptFindings(
        RetainedText(session.session_id, tuple(dict.fromkeys(_snippets(session, lines)))),
        tuple(CuratedWrite(path, observed, session.session_id) for path, observed in writes.items()),
        frozenset(generated),
    )


def _snippets(session: SessionRecord, lines: Iterable[ContentLine]) -> Iterator[Snippet]:
    """The lines as their corpus lines would have them.

    A scheduled job, a heartbeat and a subagent are never ingested, and said nothing in this sense; an archive of
    unknown kind may have been a conversation when it was.
    """
    kind = session.kind if session.kind is not SessionKind.INTERACTIVE else key_kind(session.session_key)
    if kind not in _READ:
        return
    # The longest name that corpus lines have had for a session: what was cut is cut earliest behind it.
    source = session_source(session, file_name=f"{session.session_id}.jsonl")
    for line in lines:
        said = snippet_of(line.text)
        if u16_length(said) >= MIN_SNIPPET_UNITS:
            prefix = corpus_line(source, line.number, "")
            yield corpus_snippet(prefix, corpus_line(source, line.number, written_snippet(said))[len(prefix) :])


def joined_texts(texts: Iterable[RetainedText]) -> tuple[RetainedText, ...]:
    """One value for each session, by id, whose transcript may lie in several pieces."""
    found: dict[str, dict[Snippet, None]] = {}
    for text in texts:
        found.setdefault(text.session_id, {}).update(dict.fromkeys(text.snippets))
    return tuple(RetainedText(session_id, tuple(found[session_id])) for session_id in sorted(found))
