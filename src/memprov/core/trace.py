"""Where does this line come from, and what came of that session: the questions that provenance is kept for.

An entry is answered with its origins, its class, the places where its markers stand, and the transfers that led to it;
a session with its entries, its corpus lines and the memory lines that hold something of it. The last are exactly those
that forgetting it would remove, since it is asked of the same rules. Keys, ids and places only: no memory text.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from attrs import frozen

from memprov.core.lineage import TransferEdge, contested_keys, edges_to, entry_classes, evidence_of
from memprov.core.purge import ScrubRules, promotion_keys, scrub_text
from memprov.core.records import MemoryFile, Origin, OriginClass, is_phase_report
from memprov.core.state import MemorySnapshot
from memprov.core.text import Document, SessionMatcher, corpus_owner, mentions_promotion, scan_corpus, to_bytes

__all__ = [
    "EntryTrace",
    "Place",
    "SessionTrace",
    "Trace",
    "is_known_entry",
    "is_known_session",
    "trace_entries",
    "trace_lines",
    "trace_sessions",
]


@frozen(order=True)
class Place:
    """A line of a file, from 1."""

    path: str
    line: int


@frozen
class EntryTrace:
    """What is known of an entry.

    ``places`` are where its markers stand; ``preimages`` and ``chunks`` are the keys and ids of those that show it.
    ``transfers`` are the edges of every way that leads to it, the nearest first: where they are not kept, or were
    before they were, there are none, and the origins say all the same whose it is. ``siblings`` says that another agent
    of the workspace has origins of it.
    """

    entry_key: str
    origin_class: OriginClass | None
    origins: tuple[Origin, ...] = ()
    places: tuple[Place, ...] = ()
    preimages: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    transfers: tuple[TransferEdge, ...] = ()
    siblings: bool = False


@frozen
class SessionTrace:
    """What came of a session: the keys of its entries, its corpus lines, and the memory lines that hold some of it."""

    session_ids: tuple[str, ...]
    entry_keys: tuple[str, ...] = ()
    corpus: tuple[Place, ...] = ()
    memory: tuple[Place, ...] = ()
    forgotten: bool = False


@frozen
class Trace:
    """The answer. ``entries`` are those that were asked about, or that the session or line leads to."""

    agent_id: str
    entries: tuple[EntryTrace, ...] = ()
    session: SessionTrace | None = None

    def to_json(self) -> str:
        """One JSON document, with the field names of the reports."""
        document: dict[str, object] = {"agentId": self.agent_id, "entries": [_entry_json(e) for e in self.entries]}
        if self.session is not None:
            document["session"] = {
                "sessionIds": list(self.session.session_ids),
                "forgotten": self.session.forgotten,
                "entryKeys": list(self.session.entry_keys),
                "corpus": [f"{place.path}:{place.line}" for place in self.session.corpus],
                "memory": [f"{place.path}:{place.line}" for place in self.session.memory],
            }
        return json.dumps(document, ensure_ascii=False, indent=2)


def _entry_json(entry: EntryTrace) -> dict[str, object]:
    return {
        "entryKey": entry.entry_key,
        "originClass": entry.origin_class,
        "origins": [
            {
                "agentId": row.agent_id,
                "sessionId": row.session_id,
                "sessionKey": row.session_key,
                "originClass": row.origin_class.value,
                "observedAt": row.observed_at_ms,
            }
            for row in entry.origins
        ],
        "places": [f"{place.path}:{place.line}" for place in entry.places],
        "preimages": list(entry.preimages),
        "chunks": list(entry.chunks),
        "transfers": [
            {"survivor": e.survivor, "parent": e.parent, "action": e.action, "at": e.at_ms, "transferId": e.transfer_id}
            for e in entry.transfers
        ],
        "siblings": entry.siblings,
    }


def trace_entries(snapshot: MemorySnapshot, entry_keys: Iterable[str]) -> tuple[EntryTrace, ...]:
    """What is known of these entries, in their order."""
    keys = tuple(dict.fromkeys(entry_keys))
    rows: dict[str, list[Origin]] = {key: [] for key in keys}
    for row in snapshot.origins.touching(entry_keys=keys).rows():
        rows[row.entry_key].append(row)
    classes = entry_classes(row for group in rows.values() for row in group)
    places: dict[str, list[Place]] = {key: [] for key in keys}
    for file in filter(lambda file: mentions_promotion(file.text), snapshot.files):
        for number, line in enumerate(Document(file.text.removeprefix("\ufeff")).lines, 1):
            for key in dict.fromkeys(line.keys):
                if key in places:
                    places[key].append(Place(file.path, number))
    preimages = {preimage.key: frozenset(promotion_keys(preimage.content)) for preimage in snapshot.preimages}
    chunks = {
        chunk_id: shown
        for chunk_id, text in zip(snapshot.chunks.ids, snapshot.chunks.texts, strict=True)
        if (shown := frozenset(promotion_keys(text)))
    }
    return tuple(
        EntryTrace(
            entry_key=key,
            origin_class=classes.get(key),
            origins=tuple(rows[key]),
            places=tuple(places[key]),
            preimages=tuple(name for name, shown in preimages.items() if key in shown),
            chunks=tuple(name for name, shown in chunks.items() if key in shown),
            transfers=edges_to(snapshot.transfers, key),
            siblings=key in snapshot.sibling_keys,
        )
        for key in keys
    )


def trace_sessions(snapshot: MemorySnapshot, session_ids: Iterable[str]) -> SessionTrace:
    """What came of these generations of one session."""
    agent, ids = snapshot.store.agent_id, tuple(dict.fromkeys(session_ids))
    matcher = SessionMatcher(agent, ids)
    keys = snapshot.origins.select(ids).entry_keys
    scans = [scan for file in snapshot.corpus if (scan := scan_corpus(file, matcher)) is not None]
    snippets = dict.fromkeys(snippet for scan in scans for snippet in scan.snippets)
    retained = [snippet for text in snapshot.retained if text.session_id in ids for snippet in text.snippets]
    searched = (*(file.text for file in snapshot.files), *(preimage.content for preimage in snapshot.preimages))
    contested = frozenset(key for text in searched for key in contested_keys(text, frozenset(keys)))
    evidence = evidence_of(contested, snapshot.origins.of_agent(agent), snapshot.recall)
    rules = ScrubRules(agent, ids, keys, snippets, retained, evidence)
    return SessionTrace(
        session_ids=ids,
        entry_keys=keys,
        corpus=tuple(Place(scan.path, line) for scan in scans for line in scan.lines),
        memory=tuple(place for file in snapshot.files for place in _removed(file, rules)),
        forgotten=bool(snapshot.tombstones.intersection(ids)),
    )


def trace_lines(
    snapshot: MemorySnapshot, path: str, first: int, last: int
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The entries that these lines of a memory file belong to, or the sessions that these lines of the corpus are of.

    Lines count from 1. ``None`` says that there is no such file or line, which is not the same as nothing known of it.
    """
    for file in snapshot.files:
        if path in (file.path, *file.aliases):
            document = Document(file.text.removeprefix("\ufeff"))
            numbers = range(first - 1, min(last, len(document.lines)))
            keys = dict.fromkeys(key for at in numbers for key in _keys_at(document, at))
            return (tuple(keys), ()) if numbers else None
    for file in snapshot.corpus:
        if path in (file.path, *file.aliases):
            lines = file.text.split("\n")[first - 1 : last]
            owners = dict.fromkeys(corpus_owner(line, snapshot.store.agent_id) for line in lines)
            return ((), tuple(owner for owner in owners if owner is not None)) if lines else None
    return None


def _keys_at(document: Document, at: int) -> tuple[str, ...]:
    """The keys of the entry that a line, from 0, belongs to, or of the markers that stand there without one."""
    if at in document.entry_at:
        return tuple(document.entry_at[at].keys)
    run = document.run_at.get(at)
    return () if run is None else tuple(run.keys)


def is_known_entry(entry: EntryTrace) -> bool:
    """Whether anything here names the entry."""
    return bool(entry.origins or entry.places or entry.preimages or entry.chunks or entry.transfers or entry.siblings)


def is_known_session(session: SessionTrace) -> bool:
    """Whether anything here is of the session, or it is recorded as forgotten."""
    return bool(session.forgotten or session.entry_keys or session.corpus or session.memory)


def _removed(file: MemoryFile, rules: ScrubRules) -> Iterator[Place]:
    """The lines of a file, blank ones left out, of which a purge by these rules removes something."""
    spans = scrub_text(file.text, rules, phase_report=is_phase_report(file.path)).spans
    if not spans:
        return
    data = to_bytes(file.text)
    starts = [0]
    while (end := data.find(b"\n", starts[-1])) >= 0:
        starts.append(end + 1)
    for start, end in spans:
        for at in range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)):
            if data[starts[at] : starts[at + 1] if at + 1 < len(starts) else len(data)].strip():
                yield Place(file.path, at + 1)
