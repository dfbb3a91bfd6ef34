"""One purge, worked out: its effects in their order, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import frozen

from memprov.core.lineage import Lineage
from memprov.core.purge.derived import DerivedRows
from memprov.core.purge.effects import (
    CutFile,
    CutPreimages,
    DropOrigins,
    Erase,
    PreimageCut,
    PurgeEffect,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    Step,
)
from memprov.core.purge.index_rows import IndexRows
from memprov.core.purge.naming import read_reference
from memprov.core.purge.plan import Level
from memprov.core.purge.questions import KnownKeys, Surroundings
from memprov.core.purge.report import Artifacts, CuratedWriteLine, ExtraArtifacts, Report, SharedEntry
from memprov.core.purge.review import (
    citations_of,
    marked_at,
    refusal_sentence,
    said_in,
    shared_sentence,
    stale_index_sentences,
)
from memprov.core.purge.selection import Selection
from memprov.core.purge.texts import Texts
from memprov.core.records import StoreIdentity, is_phase_report
from memprov.core.state import StaleCopy
from memprov.core.text import WSP, digest

__all__ = ["Evidence", "Outcome"]

_SHOWN = 5


@frozen
class Evidence:
    """Of which sessions the ledger has origins, the workspace recall rows, and which transcripts could be read."""

    origins: frozenset[str]
    recall: frozenset[str]
    transcripts: frozenset[str]

    def warnings(self, selected: Iterable[str], corpus: frozenset[str], seen: frozenset[str]) -> Iterator[str]:
        """What is said of selected sessions that are known here and of which no corpus line is left (F05a)."""
        lost = [name for name in selected if name in self.origins | self.recall | seen and name not in corpus]
        if read := [name for name in lost if name in self.transcripts]:
            yield (
                f"no corpus line is left of {_named(read)}, of which entries are known; what was said is known from "
                "transcripts, and lines that quote it are removed from machine-written places only"
            )
        if unread := [name for name in lost if name not in self.transcripts]:
            yield (
                f"no corpus line is left of {_named(unread)}, of which entries are known, and no transcript could be "
                "read; lines that quote what was said there cannot be found"
            )


@frozen
class Outcome:
    """What a purge comes to. ``collateral`` are the unselected keys in what goes, ``orphaned`` those of them that lose
    their origins (D4), ``origin_rows`` counts the origins that go, and ``known`` is of every key that the report names.
    """

    store: StoreIdentity
    selection: Selection
    lineage: Lineage
    origin_rows: int
    known_selected: frozenset[str]
    texts: Texts
    index: IndexRows
    derived: DerivedRows
    collateral: frozenset[str]
    orphaned: frozenset[str]
    known: KnownKeys
    rest: Surroundings
    evidence: Evidence

    def effects(self, level: Level) -> Iterator[PurgeEffect]:
        """The effects, in the order of docs: order."""
        agent = self.store.agent_id
        yield RecordTombstones(agent, self.selection.session_ids)
        yield PurgeIndex(self.index.chunk_ids, self.index.sources)
        yield from self.derived.effects_before_collateral()
        if self.orphaned:
            yield DropOrigins(agent, tuple(sorted(self.orphaned)), step=Step.DERIVED)
        yield from self.derived.effects_after_collateral()
        if cuts := tuple(self._preimage_cuts()):
            yield CutPreimages(cuts)
        for copy in filter(_is_stale, self.rest.stale_copies):
            yield RemoveFile(copy.path, (), copy.digest, step=Step.MEMORY)
        for changed in self.texts.changed:
            file, scrub = changed.file, changed.scrub
            yield CutFile(file.path, file.aliases, digest(file.text), digest(scrub.text), scrub.spans)
        for scanned in self.texts.scans:
            file, scan = scanned.file, scanned.scan
            if scan.emptied:
                yield RemoveFile(file.path, file.aliases, scan.before)
            else:
                yield CutFile(file.path, file.aliases, scan.before, scan.after, scan.spans, step=Step.CORPUS)
        dropped = self.known_selected - self.texts.unreadable_keys  # what cannot be found in its place is kept (F08)
        if selected := tuple(key for key in self.lineage.entry_keys if key in dropped):
            yield DropOrigins(agent, selected)
        if level is Level.ERASE:
            yield Erase()

    def _preimage_cuts(self) -> Iterator[PreimageCut]:
        for preimage, scrub in self.texts.preimages:
            if scrub.changed:
                yield PreimageCut(preimage.key, digest(preimage.content), digest(scrub.text), scrub.spans)

    def report(self, level: Level) -> Report:
        """The report, computed before anything is written."""
        selection, lineage, texts = self.selection, self.lineage, self.texts
        untargetable = texts.keys_before - self.known.mine - frozenset(lineage.entry_keys)
        return Report(
            agent_id=self.store.agent_id,
            dry_run=True,
            session_ids=selection.session_ids,
            participant_matches=selection.participant_matches,
            session_resolutions=selection.resolutions,
            entry_keys=lineage.entry_keys,
            mixed_lineage_entry_keys=lineage.mixed,
            untargetable_entry_keys=tuple(sorted(untargetable)),
            curated_writes=tuple(self._curated_writes()),
            artifacts=self._artifacts(),
            refusals=tuple(sorted(refusal_sentence(facts.path) for facts in texts.facts_after if facts.untraceable)),
            collateral_entry_keys=tuple(sorted(self.collateral)),
            sibling_entry_keys=tuple(sorted((untargetable | self._going) & self.known.siblings)),
            dangling_markers=tuple(sorted({key for s in texts.changed for key in s.scrub.dangling_markers})),
            extra_artifacts=self._extra_artifacts(),
            warnings=tuple(sorted({*selection.warnings, *self.rest.unscanned, *self._warnings()})),
            level=level.value,
            shared_entries=self._shared(),
            emptied_files=tuple(
                sorted(
                    path
                    for changed in texts.changed
                    if not changed.scrub.text.strip(WSP)
                    for path in (changed.file.path, *changed.file.aliases)
                )
            ),
            gone_markers=tuple(sorted(texts.keys_before - texts.marked_after - frozenset(lineage.entry_keys))),
            suspects=tuple(sorted(chain.from_iterable(read.suspects for read in texts.files))),
        )

    @property
    def _going(self) -> frozenset[str]:
        """The entries that lose their text, or this agent's knowledge of them."""
        return self.collateral.union(self.lineage.entry_keys)

    def _shared(self) -> tuple[SharedEntry, ...]:
        """The entries that go though others know them (F12)."""
        keys = self.collateral | (self._going & self.known.siblings)
        places: dict[str, list[str]] = {key: [] for key in keys}
        for changed in self.texts.changed:
            if keys & changed.before.keys:
                for key, line in marked_at(changed.file.text, keys):
                    places[key].append(f"{changed.file.path}:{line}")
        others = tuple(sibling.agent_id for sibling in self.rest.siblings)
        own = (self.store.agent_id,)
        return tuple(
            SharedEntry(
                key,
                tuple(places[key]),
                own * (key in self.collateral and key in self.known.mine) + others * (key in self.known.siblings),
            )
            for key in sorted(keys)
        )

    def _artifacts(self) -> Artifacts:
        texts, index = self.texts, self.index
        return Artifacts(
            memory_files=len(texts.changed),
            memory_entries=sum(s.scrub.removed_entries for s in texts.changed),
            memory_lines=sum(s.scrub.removed_lines for s in texts.changed),
            session_corpus_files=len(texts.scans),
            session_corpus_lines=sum(len(scanned.scan.lines) for scanned in texts.scans),
            index_chunks=len(index.chunk_ids),
            index_sources=len(index.sources),
            fts_rows=index.full_text_rows,
            vector_rows=index.vector_rows,
            embedding_cache_rows=self.rest.cache_rows if self.selection.session_ids else 0,
            short_term_entries=len(self.derived.recall),
            seen_hash_scopes=len(self.derived.seen_scopes),
            backups=sum(1 for _, scrub in texts.preimages if scrub.changed),
            origin_rows=self.origin_rows,
        )

    def _extra_artifacts(self) -> ExtraArtifacts:
        selected = bool(self.selection.session_ids)
        return ExtraArtifacts(
            signals=len(self.derived.signals),
            rewind_rows=len(self.derived.rewinds),
            events=len(self.derived.events),
            stale_copies=sum(map(_is_stale, self.rest.stale_copies)) if selected else 0,
        )

    def _curated_writes(self) -> Iterator[CuratedWriteLine]:
        """Ledger rows of the selected sessions, then writes found in their transcripts; the first of a path counts."""
        ids = frozenset(self.selection.session_ids)
        keys = frozenset(self.selection.session_keys)
        found: dict[str, CuratedWriteLine] = {}
        for write in chain(self.rest.ledger_writes, self.rest.transcript_writes):
            selected = write.session_id in ids if write.session_id is not None else write.session_key in keys
            if selected:
                found.setdefault(write.path, CuratedWriteLine(write.path, write.observed_at_ms))
        yield from (found[path] for path in sorted(found))

    def _corpus_sessions(self) -> frozenset[str]:
        """The sessions of which a corpus line is left."""
        return frozenset(chain.from_iterable(scanned.scan.session_ids for scanned in self.texts.scans))

    def _seen_sessions(self) -> frozenset[str]:
        """The sessions of which a line was taken once, by the hashes of what was."""
        agent = self.store.agent_id
        scopes = (scope.removeprefix(f"{agent}:") for scope in self.derived.seen_scopes)
        references = ((scope, read_reference(scope, agent)) for scope in scopes)
        return frozenset(scope if found is None else found.session_id for scope, found in references)

    def _warnings(self) -> Iterator[str]:
        if self.lineage.entry_keys and not self.rest.corpus_files and not self.texts.keys_before:
            yield (
                f"{self.store.workspace_root} has no corpus file and no marked memory file, while the ledger "
                "knows entries of these sessions; make sure that it is the agent's workspace"
            )
        for path in self.texts.unreadable:
            yield (
                f"{path} is not readable as text throughout (it holds NUL characters, or bytes that are no UTF-8); "
                "what it says in another encoding was not looked for"
            )
        for read in self.texts.files:
            for number, key in read.broken:
                yield (
                    f"{read.file.path} line {number} holds a marker of {key} that cannot be read; the line stays, and "
                    "so do the origins of that entry until it is mended or gone"
                )
            for number, keys in read.scrub.undecided:
                yield (
                    f"{read.file.path} line {number} stands below the markers of {', '.join(keys)}, and nothing that "
                    "it shows or the store knows says which of them it is of; it goes with the forgotten one"
                )
        yield from self.evidence.warnings(self.selection.session_ids, self._corpus_sessions(), self._seen_sessions())
        removed = {scanned.file.path: scanned.scan.lines for scanned in self.texts.scans}
        reports = [scrubbed for scrubbed in self.texts.files if is_phase_report(scrubbed.file.path)]
        if removed and reports:
            scans = self.texts.scans
            staying = {s.file.path: said_in(s.file, s.scan.lines, self.store.agent_id) for s in scans}
            for scrubbed in reports:
                yield from citations_of(scrubbed.file.path, scrubbed.scrub.text, removed, staying)
        theirs = [entry for entry in self._shared() if entry.entry_key in self.known.siblings]
        if theirs:
            yield shared_sentence(theirs)
        if self.selection.session_ids:
            yield from stale_index_sentences(self.rest.siblings, self.texts.changed_paths, self.store)
        for copy in self.rest.stale_copies:
            if not _is_stale(copy):
                yield f"{copy.path} is a copy that a rewrite is making or left behind less than an hour ago; it stays"


def _is_stale(copy: StaleCopy) -> bool:
    """Whether a left-over copy goes (D18)."""
    return copy.writer_gone or copy.over_an_hour


def _named(session_ids: list[str]) -> str:
    more = len(session_ids) - _SHOWN
    names = ", ".join(session_ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"session{'s' * (len(session_ids) > 1)} {names}"
