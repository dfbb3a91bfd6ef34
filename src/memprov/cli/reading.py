"""A report in plain words, for people: what goes, from where, what stays and must be reviewed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memprov.core.purge import CutFile, PurgePlan, RemoveFile, Report, SelectionSource
from memprov.core.trace import EntryTrace, LineReason, RemovalRule, Trace

__all__ = ["LIMITS", "describe_report", "describe_trace", "moment"]

#: The page of the documentation that every report ends with.
LIMITS = "docs/limits.md"

_SHOWN = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOURCES = {
    SelectionSource.UNRESOLVED: "in no session store; recorded as forgotten",
    SelectionSource.ORIGINS: "known by its origin rows only",
}
_RULES = {
    RemovalRule.MARKER: "it is an entry of it, {key}",
    RemovalRule.CONTINUATION: "it continues an entry of it, {key}",
    RemovalRule.DANGLING: "it is a marker of an entry of it, {key}, and stands above nothing",
    RemovalRule.LABEL: "it names the session",
    RemovalRule.SECTION: "it stands below what names the session",
    RemovalRule.SNAPSHOT: "it is part of a saved conversation, the session's snapshot file",
    RemovalRule.QUOTATION: "it quotes a corpus line",
    RemovalRule.TRANSCRIPT: "it is machine-written and quotes what was said",
    RemovalRule.COLLATERAL: "it is of another entry, {key}, in which a line goes",
    RemovalRule.CONSEQUENCE: "it cannot stay without a line that goes",
    RemovalRule.CORPUS: "it is a corpus line of it",
}
_JUDGED = {
    "archived": "; when it began is not known: 'since' was compared with when it was archived",
    "observed": "; when it began is not known: 'since' was compared with its first origin row",
}


def moment(epoch_ms: int | None) -> str:
    """A time as a person reads it, to the minute, in UTC; ``-`` where none is known."""
    if epoch_ms is None:
        return "-"
    try:
        return (_EPOCH + timedelta(milliseconds=epoch_ms)).strftime("%Y-%m-%d %H:%M")
    except OverflowError:
        return f"{epoch_ms} ms"


def describe_report(report: Report, plan: PurgePlan | None) -> Iterator[str]:
    """The report as lines of text. With a plan, the files that change are named."""
    yield from _unknown(report)
    verb = "Would forget" if report.dry_run else "Forgot"
    yield f"{verb} {_count(len(report.session_ids), 'session')} of agent {report.agent_id}"
    if not report.session_ids:
        yield "  no session matches"
    for resolution in report.session_resolutions[:_SHOWN]:
        key = f"  {resolution.session_key}" if resolution.session_key else ""
        source = _SOURCES.get(resolution.source, resolution.source.value)
        yield f"  {resolution.session_id}{key}  ({source}{_JUDGED.get(resolution.judged_by or '', '')})"
    yield from _more(len(report.session_resolutions))
    for match in report.participant_matches:
        kinds = ", ".join(f"{i.kind} {i.id}" for i in match.identities) or "nobody"
        yield f"  participant {match.actor_id}: {kinds}"
    yield ""
    yield "Would go" if report.dry_run else "Gone"
    yield from _gone(report)
    yield from _shared(report)
    if plan is not None:
        yield from _files(plan)
    yield ""
    if report.warnings:
        yield "Take note"
        yield from (f"  {warning}" for warning in report.warnings)
        yield ""
    yield "Would stay, and must be reviewed" if report.dry_run else "Stays, and must be reviewed"
    review = list(_review(report))
    yield from review or ["  nothing that memprov knows of"]
    yield "The transcripts themselves still hold what was said; memprov never deletes them."
    yield f"What else a purge does not cover: {LIMITS}"
    yield ""


def describe_trace(answer: Trace) -> Iterator[str]:
    """Where an entry, session or line comes from, or led to."""
    session = answer.session
    if session is not None:
        yield f"Session {', '.join(session.session_ids)} of agent {answer.agent_id}{', forgotten' * session.forgotten}"
        for name, places in (("corpus", session.corpus), ("memory", session.memory)):
            yield f"  {name}: {_count(len(places), 'line')}"
            yield from (f"    {place.path}:{place.line}" for place in places[:_SHOWN])
            yield from _more(len(places))
    for entry in answer.entries[:_SHOWN]:
        yield from _entry(entry)
    yield from _more(len(answer.entries))
    yield from map(_reason, answer.reasons[:_SHOWN])
    yield from _more(len(answer.reasons))
    if session is None and not answer.entries and not answer.reasons:
        yield "It is there, and belongs to no entry and to no session that is known."


def _reason(reason: LineReason) -> str:
    """Which session takes a line, and why."""
    why = _RULES[reason.rule].format(key=reason.entry_key)
    return f"{reason.place.path}:{reason.place.line} goes with session {reason.session_id}: {why}"


def _entry(entry: EntryTrace) -> Iterator[str]:
    yield f"Entry {entry.entry_key}  ({entry.origin_class or 'no origin here'})"
    yield from (f"  from {row.session_id}  ({row.origin_class})" for row in entry.origins)
    yield from (f"  in {place.path}:{place.line}" for place in entry.places)
    yield from (f"  {edge.action}: {edge.parent} -> {edge.survivor}" for edge in entry.transfers[:_SHOWN])
    yield from _more(len(entry.transfers))
    if entry.siblings:
        yield "  another agent of the workspace has origins of it"


def _unknown(report: Report) -> Iterator[str]:
    """What was named and is not known, with what it nearly is: the first thing to be read."""
    recorded = "would be recorded" if report.dry_run else "was recorded"
    strange = [r.session_id for r in report.session_resolutions if r.source is SelectionSource.UNRESOLVED]
    for value in strange[:_SHOWN]:
        yield f"UNKNOWN SESSION {value!r}: no session store knows it, and it {recorded} as forgotten all the same"
        yield from (f"  {warning}" for warning in report.warnings if warning.startswith(repr(value)))
    yield from _more(len(strange))
    nobody = [match.actor_id for match in report.participant_matches if not match.identities]
    for actor in nobody:
        yield f"NOBODY IS {actor!r} in the sessions that are selected"
        yield from (f"  {warning}" for warning in report.warnings if warning.startswith(f"nobody is {actor!r}"))
    if strange or nobody:
        yield "To refuse unknown names: --known"
        yield ""


def _gone(report: Report) -> Iterator[str]:
    a, extra = report.artifacts, report.extra_artifacts
    rows = (
        (a.memory_entries, "entries and sections", f"in {_count(a.memory_files, 'memory file')}"),
        (a.memory_lines, "quoting lines", ""),
        (a.session_corpus_lines, "corpus lines", f"in {_count(a.session_corpus_files, 'file')}"),
        (a.index_chunks, "index chunks", f"{a.fts_rows} full-text rows, {a.vector_rows} vectors"),
        (a.index_sources, "sources of the index", ""),
        (a.embedding_cache_rows, "cached embeddings", ""),
        (a.short_term_entries, "recall rows", f"{_count(extra.signals, 'signal')}"),
        (a.seen_hash_scopes, "seen-hash scopes", ""),
        (a.backups, "preimages (of each, its part)", ""),
        (extra.rewind_rows, "rewind rows (of each, its part)", ""),
        (extra.events, "host events (of each, its part)", ""),
        (extra.stale_copies, "stale copies of files", ""),
        (a.origin_rows, "origin rows", f"of {_count(len(report.entry_keys), 'entry', 'entries')}"),
    )
    found = [(count, what, note) for count, what, note in rows if count]
    for count, what, note in found:
        yield f"  {count:>7}  {what}" + (f" ({note})" if note else "")
    if not found:
        yield "  nothing"
    if report.mixed_lineage_entry_keys:
        mixed = _count(len(report.mixed_lineage_entry_keys), "entry", "entries")
        yield f"  {mixed} of them came from other sessions too, and a shared entry goes whole"


def _shared(report: Report) -> Iterator[str]:
    """The entries that go though others know them: which, where they stand, and whose they are."""
    go = "would go" if report.dry_run else "went"
    collateral = frozenset(report.collateral_entry_keys)
    for entry in report.shared_entries[:_SHOWN]:
        what = f"{go} along, unselected" if entry.entry_key in collateral else f"{go} for every agent"
        where = ", ".join(entry.places) or "in no memory file"
        whose = f"also of agent {' or '.join(entry.agents)}" if entry.agents else "of no agent here"
        yield f"  {entry.entry_key} at {where}: {what}; {whose}"
    yield from _more(len(report.shared_entries))


def _files(plan: PurgePlan) -> Iterator[str]:
    files = [effect for effect in plan.effects if isinstance(effect, CutFile | RemoveFile)]
    for effect in files[:_SHOWN]:
        if isinstance(effect, RemoveFile):
            yield f"           {effect.path}: the whole file"
        else:
            yield f"           {effect.path}: {sum(end - start for start, end in effect.spans)} bytes of it"
    yield from _more(len(files))


def _review(report: Report) -> Iterator[str]:
    written = [line.relative_path for line in report.curated_writes if line.relative_path not in report.emptied_files]
    nameless = [key for key in report.untargetable_entry_keys if key not in report.gone_markers]
    groups = (
        ("files that these sessions wrote", written),
        ("markers without an origin here", nameless),
        ("of which another agent has the origin", [key for key in nameless if key in report.sibling_entry_keys]),
        ("lines that may be of these sessions", [f"{s.path}:{s.line}: {s.reason}" for s in report.suspects]),
        ("refusals", list(report.refusals)),
    )
    for title, items in groups:
        if items:
            yield f"  {title}: {len(items)}"
            yield from (f"    {item}" for item in items[:_SHOWN])
            yield from _more(len(items))


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"    … and {count - _SHOWN} more (--json lists all)"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
