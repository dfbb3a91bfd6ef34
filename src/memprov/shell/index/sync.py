"""Keeping the index in step with memory, in two steps.

*Preparing* reads files and transcripts and asks the embedder, for as long as that takes and without a lock. A rebuild's
private generation is a value in memory: one that is abandoned leaves no copy of anything behind (B37). *Publishing*
takes the lock and one transaction, asks the fence of every source, and tells which results it refused and why. What it
queued, ``sync_index`` prepares again, a few times.

The transcripts of forgotten and internal sessions are never asked for, whatever is forced (I10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import evolve, field, frozen

from memprov.core.index import (
    FULL_TEXT_ONLY,
    Change,
    ChunkBudget,
    DroppedSource,
    IndexPlan,
    Refusal,
    embedded,
    indexable_sessions,
    missing_texts,
    plan_index,
    plan_rebuild,
    session_path,
    session_text,
    sessions_to_repair,
)
from memprov.core.records import StoreIdentity, string_set
from memprov.core.text import digest, json_text
from memprov.core.writing import Admission
from memprov.errors import InputError
from memprov.shell.arguments import need
from memprov.shell.index.embedding import Embedder, embed, read_cache
from memprov.shell.index.files import file_look, files_seen, read_memory_files, recorded_classes
from memprov.shell.index.ledger import Publication, note_standing, read_index_state, read_standing
from memprov.shell.native import NativeStore, NativeWriter, embedded_only
from memprov.shell.native.reader import QuietReading
from memprov.shell.native.transcripts import catalogue_version, unfollowed
from memprov.shell.port import TranscriptReader, failure
from memprov.shell.sqlite import explained
from memprov.shell.statements import transaction
from memprov.shell.vectors.lance import LanceVectors
from memprov.shell.vectors.mirror import distrust, mirror_directory, reflect

__all__ = [
    "IndexReport",
    "PreparedIndex",
    "prepare_index",
    "publish_index",
    "rebuild_index",
    "sync_index",
    "use_lancedb",
]

_ATTEMPTS = 3


@frozen
class PreparedIndex:
    """What is ready to be published, and of which store. It may be kept for any time; the fences decide in the end."""

    store: StoreIdentity
    _plan: IndexPlan = field(repr=False)
    asked_texts: int = 0
    cached_texts: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    marks: Mapping[str, str] = field(factory=dict, repr=False)
    seen: str | None = field(default=None, repr=False)


@frozen
class IndexReport:
    """What became of a publication, in numbers and names; no memory text.

    ``dropped`` are sources that were taken out, ``excluded`` sessions whose transcripts were not read, ``failed`` those
    whose reader raised, and why, and ``refused`` results that were not published. ``asked_texts`` were sent to the
    embedder, ``cached_texts`` known already.
    """

    published: tuple[str, ...] = ()
    unchanged: int = 0
    added_chunks: int = 0
    removed_chunks: int = 0
    dropped: tuple[DroppedSource, ...] = ()
    excluded: tuple[Admission, ...] = ()
    refused: tuple[Refusal, ...] = ()
    asked_texts: int = 0
    cached_texts: int = 0
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def queued(self) -> tuple[Refusal, ...]:
        """What has to be prepared again."""
        return tuple(refusal for refusal in self.refused if refusal.queued)


@embedded_only
def prepare_index(
    store: NativeStore,
    embedder: Embedder | None = None,
    reader: TranscriptReader | None = None,
    *,
    sessions: Iterable[str] | None = None,
    rebuild: bool = False,
    budget: ChunkBudget | None = None,
) -> PreparedIndex:
    """Read what is new, cut it into chunks and have them embedded. Changes nothing and holds no lock.

    Without an embedder there is full text only. Without a reader, sessions that are indexed stay as they are, but for
    those that may not be; with one, all indexable sessions are read, or those among ``sessions``. A session at which
    the reader fails stays as it is indexed, and is named in the report. ``rebuild`` prepares a whole new generation,
    from what can be read now and nothing else: without a reader, one without sessions.
    """
    chosen = None if sessions is None else string_set(sessions)
    if rebuild and chosen is not None:
        raise InputError("a rebuild is of all sessions; without rebuild=True, some may be named")
    access = QuietReading(store._sleep)
    model = _model(embedder)
    seen = None if rebuild or chosen is not None else _seen(store, access, model, reader)
    state, stale = access.read(
        store._layout.ledger,
        lambda ledger: (
            read_index_state(ledger, store._layout.agent_id),
            unfollowed(ledger, "indexed", model, chosen),
        ),
    )
    files = read_memory_files(store, recorded_classes(store, access))
    admitted, excluded = indexable_sessions(state)
    wanted = stale.keys() | sessions_to_repair(state, model)
    read = [
        session
        for session in admitted
        if reader is not None
        and (chosen is None or session.session_id in chosen)
        and (rebuild or session.session_id in wanted)
    ]

    sources, failed, gone = list(files), dict[str, str](), set[str]()
    for session in read:
        try:
            messages = reader(session) if reader is not None else None
            source = None if messages is None else session_text(session, messages)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is of this session alone
            failed[session.session_id] = failure(error)
        else:
            sources += [] if source is None else [source]
            gone |= set() if messages is not None else {session.session_id}
    if rebuild:
        plan = plan_rebuild(state, sources, model=model, budget=budget)
    else:
        ids = [session.session_id for session in read if session.session_id not in failed]
        plan = plan_index(state, sources, model=model, budget=budget, read_sessions=ids)
    looked_at = {session.session_id for session in read}.union(decision.session_id for decision in excluded)
    followed = looked_at - failed.keys() - gone
    marks = {name: mark for name, mark in stale.items() if mark and name in followed}
    prepared = PreparedIndex(store.identity, plan, failed=tuple(sorted(failed.items())), marks=marks, seen=seen)
    return prepared if embedder is None else _embedded(store, prepared, embedder)


@embedded_only
def publish_index(store: NativeStore, prepared: PreparedIndex) -> IndexReport:
    """Publish what was prepared, as far as it is still true: under the lock, in one transaction (docs: Index).

    A result whose session was forgotten in the meantime is refused for good; one whose source changed is refused and
    queued, which means that the next ``sync_index`` prepares it again. Raises ``InputError`` for another store's.
    """
    need(prepared, PreparedIndex, "prepared")
    if prepared.store != store.identity:
        raise InputError("what is to be published was prepared for another store")
    with store.exclusive() as writer:
        publication = _publish(store, writer, prepared)
        _note(store, writer, prepared, publication)
    plan = prepared._plan
    rebuilt = not any(refusal.change is Change.REVISION for refusal in publication.refusals)
    return IndexReport(
        tuple(publication.published),
        plan.unchanged,
        publication.added,
        publication.removed,
        plan.dropped if rebuilt else (),
        plan.excluded,
        tuple(publication.refusals),
        prepared.asked_texts,
        prepared.cached_texts,
        prepared.failed,
    )


@embedded_only
def sync_index(
    store: NativeStore,
    embedder: Embedder | None = None,
    reader: TranscriptReader | None = None,
    *,
    sessions: Iterable[str] | None = None,
    budget: ChunkBudget | None = None,
) -> IndexReport:
    """Bring the index up to date: prepare and publish, again where something changed in between.

    A session whose record says when its transcript changed (``SessionRecord.changed``) is read once after each change.
    Where that holds for all, and no file changed since the last call, nothing is opened and nothing is written.

    See ``prepare_index`` for the arguments. The report's ``queued`` is not empty when memory kept changing.
    """
    chosen = None if sessions is None else tuple(string_set(sessions))
    if chosen is None and (unchanged := _standing(store, _model(embedder), reader)) is not None:
        return IndexReport(unchanged=unchanged)
    return _repeated(store, embedder, reader, chosen, budget, rebuild=False)


@embedded_only
def rebuild_index(
    store: NativeStore,
    embedder: Embedder | None = None,
    reader: TranscriptReader | None = None,
    *,
    budget: ChunkBudget | None = None,
) -> IndexReport:
    """Make the index anew, from what can be read now and nothing else, and put it in place of the old one at once.

    Until then searches find the old one. What is forgotten or internal stays out of this one too (B53).
    """
    return _repeated(store, embedder, reader, None, budget, rebuild=True)


@embedded_only
def use_lancedb(store: NativeStore) -> None:
    """Keep a copy of the vectors in LanceDB from now on, and search there. Raises ``SchemaError`` without LanceDB."""
    with store.exclusive() as writer:
        path = store._layout.ledger.path
        rows = list(writer._ledger.execute("SELECT dimensions FROM vectors LIMIT 1"))
        LanceVectors(mirror_directory(path), int(str(rows[0][0])) if rows else 1)
        reflect(path, writer._ledger)


def _repeated(
    store: NativeStore,
    embedder: Embedder | None,
    reader: TranscriptReader | None,
    sessions: tuple[str, ...] | None,
    budget: ChunkBudget | None,
    *,
    rebuild: bool,
) -> IndexReport:
    report = IndexReport()
    for attempt in range(_ATTEMPTS):
        # A rebuild that was published leaves only single sources to be done again, which a sync does.
        anew = rebuild and (not attempt or any(refusal.change is Change.REVISION for refusal in report.queued))
        prepared = prepare_index(store, embedder, reader, sessions=sessions, rebuild=anew, budget=budget)
        report = _joined(report, publish_index(store, prepared))
        if not report.queued:
            break
    return report


def _joined(before: IndexReport, after: IndexReport) -> IndexReport:
    """Two attempts as one report: what was queued by the first is told only if it is refused again."""
    lasting = tuple(refusal for refusal in before.refused if not refusal.queued)
    return evolve(
        after,
        published=(*before.published, *after.published),
        added_chunks=before.added_chunks + after.added_chunks,
        removed_chunks=before.removed_chunks + after.removed_chunks,
        dropped=(*before.dropped, *after.dropped),
        refused=(*lasting, *after.refused),
        asked_texts=before.asked_texts + after.asked_texts,
        cached_texts=before.cached_texts + after.cached_texts,
    )


def _embedded(store: NativeStore, prepared: PreparedIndex, embedder: Embedder) -> PreparedIndex:
    wanted = missing_texts(prepared._plan)
    access = QuietReading(store._sleep)
    known = access.read(store._layout.ledger, lambda ledger: read_cache(ledger, embedder.identity, list(wanted)))
    widths = {len(blob) // 4 for blob in known.values()}
    fresh = [name for name in wanted if name not in known] if len(widths) < 2 else list(wanted)
    matrix = embed(embedder, [wanted[name] for name in fresh])
    if len(fresh) and widths not in (set(), {matrix.shape[1]}):  # the cache is of a model that was exchanged silently
        known, fresh = {}, list(wanted)
        matrix = embed(embedder, list(wanted.values()))
    rows = np.ascontiguousarray(matrix, dtype="<f4")
    vectors = {**known, **{name: row.tobytes() for name, row in zip(fresh, rows, strict=True)}}
    plan = embedded(prepared._plan, embedder.identity, vectors, frozenset(fresh))
    return evolve(prepared, plan=plan, asked_texts=len(fresh), cached_texts=len(wanted) - len(fresh))


def _model(embedder: Embedder | None) -> str:
    return FULL_TEXT_ONLY if embedder is None else embedder.identity.name


def _seen(store: NativeStore, access: QuietReading, model: str, reader: TranscriptReader | None) -> str | None:
    """What tells all that a sync reads, transcripts apart, from any other state of it; ``None`` if nothing can."""
    catalogue = access.read(store._layout.ledger, catalogue_version)
    files = files_seen(store, recorded_classes(store, access))
    return None if files is None else digest(json_text([files, catalogue, model, reader is not None]))


def _standing(store: NativeStore, model: str, reader: TranscriptReader | None) -> int | None:
    """How many sources are indexed, if there is nothing to do: nothing that a sync reads has changed since the last."""
    access = QuietReading(store._sleep)
    noted, sources = access.read(store._layout.ledger, read_standing)
    if noted is None or noted != _seen(store, access, model, reader):
        return None
    if reader is not None and access.read(store._layout.ledger, lambda ledger: unfollowed(ledger, "indexed", model)):
        return None
    return sources


def _note(store: NativeStore, writer: NativeWriter, prepared: PreparedIndex, publication: Publication) -> None:
    """Note what was looked at, so far as it was published or nothing was to be."""
    if any(refusal.change is Change.REVISION for refusal in publication.refusals):
        return
    agent_id = store._layout.agent_id
    refused = {refusal.path for refusal in publication.refusals}
    marks = {name: mark for name, mark in prepared.marks.items() if session_path(agent_id, name) not in refused}
    if marks:
        writer.mark_followed("indexed", marks)
    if prepared.seen is not None and not refused and not prepared.failed:
        with explained(store._layout.ledger.database, "writing"):
            note_standing(writer._ledger, prepared.seen)


def _publish(store: NativeStore, writer: NativeWriter, prepared: PreparedIndex) -> Publication:
    path = store._layout.ledger.path
    look = file_look(store, recorded_classes(store, writer._access))
    publication = Publication(writer._ledger, store._layout.agent_id, look, int(store._clock() * 1000))
    if not prepared._plan.effects:
        return publication
    distrust(path)
    with explained(store._layout.ledger.database, "writing"):
        with transaction(writer._ledger):
            publication.carry_out(prepared._plan.effects)
        reflect(path, writer._ledger)
    return publication
