"""``trace``: ask any store where a line comes from. It reads and changes nothing (I3)."""

from __future__ import annotations

import os

from memprov.core.purge import Selectors, select_sessions
from memprov.core.trace import Trace, trace_entries, trace_line, trace_sessions
from memprov.errors import InputError
from memprov.shell.port import Store

__all__ = ["trace"]


def trace(store: Store, *, entry: str | None = None, session: str | None = None, file: str | None = None) -> Trace:
    """Where an entry, a session (id or key) or a line (``PATH:LINE``, relative to the workspace) comes from, or led to.

    Exactly one of them. Of a line that belongs to no entry and no session nothing is known: the answer is empty. Raises
    ``InputError`` for another question.
    """
    if sum(question is not None for question in (entry, session, file)) != 1:
        raise InputError("ask about one thing: an entry, a session, or a file and line")
    agent = store.identity.agent_id
    if session is not None:
        selectors = Selectors(sessions=[session])
        selectors.require()
        ids = select_sessions(store.catalogue(), selectors, agent).session_ids
        snapshot = store.snapshot()
        of_session = trace_sessions(snapshot, ids)
        return Trace(agent, trace_entries(snapshot, of_session.entry_keys), of_session)
    snapshot = store.snapshot()
    if entry is not None:
        if not entry.strip():
            raise InputError("an entry key is not blank")
        return Trace(agent, trace_entries(snapshot, [entry]))
    path, number = _place(file or "", store.identity.workspace_root)
    keys, sessions = trace_line(snapshot, path, number)
    of_line = trace_sessions(snapshot, sessions) if sessions else None
    return Trace(agent, trace_entries(snapshot, keys), of_line)


def _place(place: str, workspace: str) -> tuple[str, int]:
    path, separator, line = place.rpartition(":")
    if not (separator and path and line.isascii() and line.isdecimal() and len(line) < 10 and int(line)):
        raise InputError(f"{place!r} is no PATH:LINE, with lines counted from 1")
    if os.path.isabs(path):
        path = os.path.relpath(path, workspace)
    return os.path.normpath(path).replace(os.sep, "/"), int(line)
