"""Which index rows belong to a selection: chunks with their full-text rows and vectors, and sources (step 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from memprov.core.purge.questions import IndexPart
from memprov.core.purge.scrub import ScrubRules, scrub_text
from memprov.core.purge.texts import Texts
from memprov.core.records import OriginClass, SessionKind, is_diary, is_phase_report
from memprov.core.text import WSP, SessionMatcher

__all__ = ["IndexRows", "index_rows"]


@frozen
class IndexRows:
    """The rows of step 1."""

    chunk_ids: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]
    full_text_rows: int
    vector_rows: int


def index_rows(part: IndexPart, rules: ScrubRules, texts: Texts) -> IndexRows:
    """The index rows to drop, given the files that change and those that are removed (docs: Purge of an index).

    All chunks of a changed file go, not only the matching ones. A memory chunk whose text alone would change is a stale
    snapshot, of a file that a sibling agent has cleaned already, say: its whole path goes too.
    """
    chunks, sessions = part.chunks, rules.sessions
    if not sessions.session_ids:
        return IndexRows((), (), 0, 0)
    owned = np.array([path in texts.changed_paths or sessions.owns_path(path) for path in chunks.paths], dtype=np.bool_)
    selected = owned[chunks.path_codes] if len(chunks) else np.zeros(0, dtype=np.bool_)
    stale = {
        int(chunks.path_codes[number])
        for number in np.flatnonzero(~selected & ~chunks.is_session)
        if _is_stale(chunks.texts[number], chunks.paths[chunks.path_codes[number]], rules, texts.diary_lines)
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
        if s.path in texts.removed_paths or (s.source == "sessions" and s.path in session_paths)
    )
    return IndexRows(
        chunk_ids=tuple(sorted(chunks.ids[number] for number in np.flatnonzero(selected))),
        sources=tuple(sources),
        full_text_rows=int(np.count_nonzero(selected & chunks.full_text)),
        vector_rows=int(np.count_nonzero(selected & chunks.vectors)),
    )


def _is_stale(text: str, path: str, rules: ScrubRules, diaries: Mapping[str, frozenset[str]]) -> bool:
    """Whether a chunk of a file that does not change holds what the file should not (any more) hold.

    A chunk of the diary may begin and end anywhere, fences unseen: a line in it that quotes what a session said (D23)
    is a managed one unless it stands in the diary as it is, where no managed one does.
    """
    if scrub_text(text, rules, phase_report=is_phase_report(path)).changed:
        return True
    if not is_diary(path):
        return False
    standing = diaries.get(path, frozenset())
    lines = text.split("\n")
    return any(lines[n].strip(WSP) not in standing for n in rules.machine_quotations.quoted_lines(text))
