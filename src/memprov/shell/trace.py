"""``trace``: ask any store where a line comes from. It reads and changes nothing (I3)."""

from __future__ import annotations

import os
import re

from memprov.core.purge import Selection, SelectionSource, Selectors, read_reference
from memprov.core.trace import (
    Trace,
    explain_lines,
    is_known_entry,
    is_known_session,
    is_machine_written,
    trace_entries,
    trace_lines,
    trace_sessions,
)
from memprov.errors import InputError, NameNotFoundError
from memprov.shell.port import Store
from memprov.shell.selecting import resolve

__all__ = ["trace"]

#: ``PATH:LINE``, and the other ways in which a place is printed: ``PATH:1-2``, ``PATH#L1``, ``PATH#L1-L2``.
_PLACE = re.compile(r"(.+?)(?::([0-9]{1,9})(?:-([0-9]{1,9}))?|#L([0-9]{1,9})(?:-L?([0-9]{1,9}))?)", re.DOTALL)


def trace(store: Store, *, entry: str | None = None, session: str | None = None, file: str | None = None) -> Trace:
    """Where an entry, a session (id, key, or any printed form) or a line comes from, or led to.

    Exactly one of them. A line is ``PATH:LINE``, or ``PATH#L1-L2`` as a search hit names it, relative to the workspace;
    one of an indexed transcript leads to its session. ``reasons`` names each session that takes the line when it alone
    is forgotten, and the rule (I17). Of a line that is there, and that no entry has and no session takes, nothing is
    known: the answer is empty. Raises ``NameNotFoundError`` for what is not there at all, and ``InputError`` for
    another question.
    """
    if sum(question is not None for question in (entry, session, file)) != 1:
        raise InputError("ask about one thing: an entry, a session, or a file and line")
    if session is not None:
        return _of_session(store, session)
    if entry is not None:
        return _of_entry(store, entry)
    return _of_place(store, file or "")


def _of_session(store: Store, name: str) -> Trace:
    agent = store.identity.agent_id
    selection = resolve(store, Selectors(sessions=[name]))
    snapshot = store.snapshot(selection)
    answer = trace_sessions(snapshot, selection.session_ids)
    if all(r.source is SelectionSource.UNRESOLVED for r in selection.resolutions) and not is_known_session(answer):
        raise NameNotFoundError("; ".join((f"there is no session {name!r} of agent {agent!r}", *selection.warnings)))
    return Trace(agent, trace_entries(snapshot, answer.entry_keys), answer)


def _of_entry(store: Store, key: str) -> Trace:
    if not key.strip():
        raise InputError("an entry key is not blank")
    agent = store.identity.agent_id
    entries = trace_entries(store.snapshot(), [key])
    if any(map(is_known_entry, entries)):
        return Trace(agent, entries)
    sessions = {name for r in store.catalogue() if r.agent_id == agent for name in (r.session_id, r.session_key)}
    hint = ""
    if key in sessions or read_reference(key, agent) is not None:
        hint = ": that is a session (memprov trace --session)"
    elif _PLACE.fullmatch(key) and not key.startswith("memory:"):
        hint = ": that is a line (memprov trace --file)"
    raise NameNotFoundError(f"there is no entry {key!r}{hint}")


def _of_place(store: Store, place: str) -> Trace:
    agent = store.identity.agent_id
    path, first, last = _parsed(place, store.identity.workspace_root)
    named = read_reference(path, agent) if path.startswith("sessions/") else None
    if named is not None:
        return _of_session(store, path)
    snapshot = store.snapshot()
    found = trace_lines(snapshot, path, first, last)
    if found is None:
        raise NameNotFoundError(f"no memory file and no corpus file has a line {place!r}")
    keys, sessions = found
    known = sorted({record.session_id for record in store.catalogue() if record.agent_id == agent})
    if known and is_machine_written(snapshot, path, first, last):
        snapshot = store.snapshot(Selection(agent, Selectors(sessions=known), tuple(known)))  # what each of them said
    return Trace(
        agent,
        trace_entries(snapshot, keys),
        trace_sessions(snapshot, sessions) if sessions else None,
        explain_lines(snapshot, path, first, last, known),
    )


def _parsed(place: str, workspace: str) -> tuple[str, int, int]:
    """The path, relative to the workspace, and the first and last line."""
    match = _PLACE.fullmatch(place)
    first = 0 if match is None else int(match[2] or match[4])
    if match is None or not first:
        raise InputError(f"{place!r} is no PATH:LINE, with lines counted from 1")
    path = match[1]
    if os.path.isabs(path):
        path = os.path.relpath(path, workspace)
    return os.path.normpath(path).replace(os.sep, "/"), first, max(first, int(match[3] or match[5] or first))
