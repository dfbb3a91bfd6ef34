"""What is known of an entry, a session, or a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memprov.core.lineage import contested_keys, edges_to, entry_classes, evidence_of
from memprov.core.purge import ScrubRules, promotion_keys, scrub_text
from memprov.core.records import MemoryFile, Origin, is_phase_report
from memprov.core.state import MemorySnapshot
from memprov.core.text import (
    Document,
    SessionMatcher,
    corpus_owner,
    mentions_promotion,
    scan_corpus,
    to_bytes,
)
from memprov.core.trace.answers import EntryTrace, Place, SessionTrace
from memprov.core.trace.reasons import keys_at, lines_within

__all__ = ["trace_entries", "trace_lines", "trace_sessions"]


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
            keys = dict.fromkeys(key for at in numbers for key in keys_at(document, at))
            return (tuple(keys), ()) if numbers else None
    for file in snapshot.corpus:
        if path in (file.path, *file.aliases):
            lines = file.text.split("\n")[first - 1 : last]
            owners = dict.fromkeys(corpus_owner(line, snapshot.store.agent_id) for line in lines)
            return ((), tuple(owner for owner in owners if owner is not None)) if lines else None
    return None


def _removed(file: MemoryFile, rules: ScrubRules) -> Iterator[Place]:
    """The lines of a file, blank ones left out, of which a purge by these rules removes something."""
    spans = scrub_text(file.text, rules, phase_report=is_phase_report(file.path)).spans
    if spans:
        lines = file.text.split("\n")
        yield from (Place(file.path, n + 1) for n in lines_within(file.text, spans) if to_bytes(lines[n]).strip())
