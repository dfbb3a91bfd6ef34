"""The snapshot: what an agent's databases and its workspace hold, as one value.

Each database is read in one transaction of its own. Session metadata comes from the database that ``session.store``
addresses; origins, tombstones and the index always from the agent's own (docs: Selectors).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

from attrs import evolve

from memprov.core.proof import is_stale_rebuild
from memprov.core.purge import Selection
from memprov.core.records import Roots
from memprov.core.state import MemorySnapshot, SiblingIndex
from memprov.core.text import to_text
from memprov.shell.cells import text
from memprov.shell.openclaw.curated import search_transcripts
from memprov.shell.openclaw.index import count_cache, read_chunks, read_indexed_digests, read_revision, read_sources
from memprov.shell.openclaw.layout import Config, Layout, suffixed
from memprov.shell.openclaw.origins import entry_keys_of, read_origins, read_tombstones
from memprov.shell.openclaw.sessions import SessionList, read_sessions
from memprov.shell.openclaw.state import has_rows, read_state, recorded_workspaces
from memprov.shell.remembering import Remembered, standing_of
from memprov.shell.sqlite import Access, Database, Reader
from memprov.shell.workspace import scan
from memprov.shell.workspace.tree import shown

__all__ = [
    "elsewhere",
    "find_session_database",
    "left_overs",
    "read_catalogue",
    "read_sibling_indexes",
    "read_sibling_keys",
    "read_snapshot",
    "with_recorded_spelling",
]


def read_catalogue(layout: Layout, access: Access, known: Remembered | None = None) -> SessionList:
    """The sessions that the agent's session store knows; not read again while what is ``known`` of them stands."""
    database, owner = find_session_database(layout, access)

    def read() -> SessionList:
        return access.read(database, lambda reader: read_sessions(reader, owner))

    if known is None:
        return read()
    return known.recall(("sessions", database.path, owner), standing_of([database.path]), read)


def read_snapshot(
    layout: Layout,
    access: Access,
    selection: Selection | None = None,
    clock: Callable[[], float] = time.time,
) -> MemorySnapshot:
    """Everything that a purge reads; with a selection, the transcripts of its sessions too."""
    place, config = layout.place, layout.config
    sessions = read_catalogue(layout, access)
    agent = layout.agent_id
    internal = frozenset(session_id for owner, session_id in sessions.internal if owner == agent)
    snapshot = access.read(
        config.agent_database(agent),
        lambda reader: MemorySnapshot(
            store=layout.identity,
            origins=read_origins(reader, agent),
            tombstones=read_tombstones(reader, agent),
            chunks=read_chunks(reader),
            sources=read_sources(reader),
            cache_rows=count_cache(reader),
            revision=read_revision(reader),
            internal_sessions=internal,
        ),
    )
    state, doubts = access.read(
        config.shared_database,
        lambda reader: (
            read_state(reader, place.keys, int(clock() * 1000)),
            elsewhere(reader, place.keys, config),
        ),
    )
    files = scan(place.workspace)
    snapshot = evolve(
        snapshot,
        files=files.files,
        corpus=files.corpus,
        stale_copies=files.stale_copies,
        unscanned=(*files.unscanned, *doubts, *left_overs(layout)),
        sibling_keys=read_sibling_keys(layout, access),
        siblings=read_sibling_indexes(layout, access),
        recall=state.recall,
        signals=state.signals,
        checkpoints=state.checkpoints,
        seen_scopes=state.seen_scopes,
        rewinds=state.rewinds,
        events=state.events,
        preimages=state.preimages,
        ledger_writes=state.ledger,
    )
    if selection is None or not selection.session_ids:
        return snapshot
    database, _ = find_session_database(layout, access)
    found = search_transcripts(
        access,
        database,
        sessions,
        agent_id=agent,
        selected=frozenset(selection.session_ids),
        directories=layout.sessions.archive_directories,
        roots=Roots(place.spellings),
        indexed=snapshot.chunks.paths,
        owned_only=layout.sessions.fixed,
    )
    return evolve(
        snapshot,
        transcript_writes=found.writes,
        retained=found.retained,
        internal_sessions=internal | found.internal,
        unscanned=(*snapshot.unscanned, *found.unread),
    )


def find_session_database(layout: Layout, access: Access) -> tuple[Database, str]:
    """The database behind ``session.store``, and the agent of its sessions whose key names none (docs: Session
    metadata).
    """
    store, agent = layout.sessions, layout.agent_id
    own = layout.config.agent_database(agent)
    database = evolve(own, path=store.database)
    if os.path.realpath(store.database) == os.path.realpath(own.path):
        return own, agent
    database = evolve(database, title="session database")
    if store.owner is not None:
        return database, store.owner
    if store.shared:
        return database, _owner(database, layout, access) or "main"
    if (_owner(database, layout, access) or "main") == agent:
        return database, agent
    beside = (evolve(database, path=suffixed(store.database, agent, number)) for number in count(1))
    mine = (d for d in beside if not os.path.isfile(d.path) or (_owner(d, layout, access) or agent) == agent)
    return next(mine), agent


def _owner(database: Database, layout: Layout, access: Access) -> str | None:
    """Whose a database is: by the registry, else by what the file says of itself."""
    real = os.path.realpath(database.path)

    def registered(reader: Reader) -> set[str]:
        rows = reader.rows("agent_databases", "agent_id path")
        state = layout.config.state_dir
        return {text(name) for name, path in rows if os.path.realpath(os.path.join(state, text(path))) == real}

    owners = access.read(layout.config.shared_database, registered)
    if len(owners) == 1:
        return owners.pop()
    if not os.path.isfile(real):
        return None

    def recorded(reader: Reader) -> str | None:
        rows = reader.rows("schema_meta", "agent_id meta_key", where="WHERE meta_key = 'primary'")
        return next((text(row[0]) for row in rows), None) or None

    return access.read(database, recorded)


def with_recorded_spelling(layout: Layout, access: Access) -> Layout:
    """The layout, knowing under which other paths the rows of the workspace were written.

    A recorded path that leads to the workspace is one (D12). And a workspace that is not configured is a folder of the
    state directory, whose rows are filed under the path that this folder once had: where none is filed under the
    present one, the one recorded path that ends alike is taken.
    """
    place, config = layout.place, layout.config
    recorded = access.read(config.shared_database, recorded_workspaces)
    aliases = sorted(path for path in recorded.difference(place.spellings) if os.path.realpath(path) == place.workspace)
    place = evolve(place, spellings=(*place.spellings, *aliases))
    layout = evolve(layout, place=place)
    if place.agent_id not in config.implied:
        return layout
    if access.read(config.shared_database, lambda reader: has_rows(reader, place.keys)):
        return layout
    ending = os.sep + os.path.relpath(config.workspace(place.agent_id), config.state_dir)
    alike = sorted(path for path in recorded if path.endswith(ending))
    if len(alike) != 1:
        return layout
    return evolve(layout, place=evolve(place, spellings=(*place.spellings, alike[0])))


def elsewhere(reader: Reader, keys: Iterable[str], config: Config) -> tuple[str, ...]:
    """A doubt for the report: this workspace has no rows, and some are filed under paths that no agent has now."""
    if has_rows(reader, keys):
        return ()
    configured = {os.path.realpath(config.workspace(agent)) for agent in config.agents()}
    paths = sorted(path for path in recorded_workspaces(reader) if os.path.realpath(path) not in configured)
    if not paths:
        return ()
    named = ", ".join(map(shown, paths))
    doubt = f"the shared state database has no rows of this workspace, but some of {named}, which no agent uses now"
    return (f"{doubt}; if the workspace was there once, configure that path and pass the present one",)


def left_overs(layout: Layout) -> tuple[str, ...]:
    """What killed rebuilds of an index left beside the agent's databases, as sentences for the report (F18a)."""
    paths = {layout.config.agent_database(layout.agent_id).path, layout.sessions.database}
    found = []
    for folder, name in sorted({os.path.split(os.path.realpath(path)) for path in paths}):
        try:
            beside = os.listdir(os.fsencode(folder))
        except OSError:
            continue
        found += [os.path.join(folder, entry) for entry in map(to_text, beside) if is_stale_rebuild(entry, name)]
    return tuple(
        f"{shown(path)} is left over from a rebuild of the index and may hold text of any session; level erase removes "
        "it once nobody has written to it for an hour"
        for path in sorted(found)
        if not path.endswith(("-wal", "-shm", "-journal"))
    )


def read_sibling_keys(layout: Layout, access: Access, among: Iterable[str] | None = None) -> frozenset[str]:
    """The entries with an origin in the ledger of another agent of the same workspace (D17), all or among these."""
    asked = None if among is None else tuple(among)
    keys: set[str] = set()
    for sibling in layout.place.siblings:
        for holder in (sibling, layout.agent_id):  # its own ledger, and rows of it in ours
            database = layout.config.agent_database(holder)
            if os.path.isfile(database.path):
                keys |= access.read(database, partial(entry_keys_of, agent_id=sibling, among=asked))
    return frozenset(keys)


def read_sibling_indexes(layout: Layout, access: Access) -> tuple[SiblingIndex, ...]:
    """The other agents of the same workspace, and what the texts in their indexes were made from."""
    databases = ((agent, layout.config.agent_database(agent)) for agent in layout.place.siblings)
    return tuple(
        SiblingIndex(agent, access.read(database, read_indexed_digests))
        for agent, database in databases
        if os.path.isfile(database.path)
    )
