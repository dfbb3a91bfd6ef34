"""Which index rows belong to a selection: chunks with their full-text rows and vectors, and sources (step 1)."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from memprov.core.purge.questions import IndexPart
from memprov.core.purge.scrub import ScrubRules, scrub_text
from memprov.core.records import OriginClass, SessionKind
from memprov.core.text import SessionMatcher

__all__ = ["IndexRows", "index_rows"]


@frozen
class IndexRows:
    """The rows of step 1."""

    chunk_ids: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    full_text_rows: int
    vector_rows: int


def index_rows(part: IndexPart, rules: ScrubRules, changed: frozenset[str], removed: frozenset[str]) -> IndexRows:
    """The index rows to drop, given the paths of files that change and of those that are removed (FACTS 6.3).

    All chunks of a changed file go, not only the matching ones. A memory chunk whose text alone would change is a stale
    snapshot, of a file that a sibling agent has cleaned already, say: its whole path goes too.
    """
    chunks, sessions = part.chunks, rules.sessions
    if not sessions.session_ids:
        return IndexRows((), (), 0, 0)
    owned = np.array([path in changed or sessions.owns_path(path) for path in chunks.paths], dtype=np.bool_)
    selected = owned[chunks.path_codes] if len(chunks) else np.zeros(0, dtype=np.bool_)
    stale = {
        int(chunks.path_codes[number])
        for number in np.flatnonzero(~selected & ~chunks.is_session)
        if scrub_text(chunks.texts[number], rules).changed
    }
    selected |= np.isin(chunks.path_codes, list(stale))
    internal = SessionMatcher(sessions.agent_id, part.internal_sessions)
    internal_paths = np.array([internal.owns_path(path) for path in chunks.paths], dtype=np.bool_)
    if len(chunks):
        selected |= chunks.is_session & (
            chunks.class_mask(OriginClass.SYSTEM)
            | chunks.kind_mask(SessionKind.CRON, SessionKind.HEARTBEAT)
            | internal_paths[chunks.path_codes]
        )
    session_paths = {chunks.paths[code] for code in np.unique(chunks.path_codes[selected & chunks.is_session])}
    sources = sorted(
        (s.path, s.source)
        for s in part.sources
        if s.path in removed or (s.source == "sessions" and s.path in session_paths)
    )
    return IndexRows(
        chunk_ids=tuple(sorted(chunks.ids[number] for number in np.flatnonzero(selected))),
        sources=tuple(sources),
        full_text_rows=int(np.count_nonzero(selected & chunks.full_text)),
        vector_rows=int(np.count_nonzero(selected & chunks.vectors)),
    )
