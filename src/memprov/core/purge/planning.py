"""The purge plan: what goes when sessions are forgotten, in which order, and why (DESIGN 4).

A map and a fold. Corpus files are scanned for the selection's lines, whose text becomes the snippets; every other text
is scrubbed by the rules that follow; rows are matched by key, path or prefix. Nothing here multiplies lines by
snippets, and scans and scrubs of different files are independent, so that any ``map`` gives the same plan (I14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, compress
from typing import Protocol, TypeVar

from attrs import evolve, frozen

from memprov.core.lineage import Lineage
from memprov.core.purge.derived import DerivedRows, derived_rows, event_words
from memprov.core.purge.effects import (
    CutFile,
    CutPreimages,
    DropOrigins,
    PreimageCut,
    PurgeEffect,
    PurgeIndex,
    RecordTombstones,
    RemoveFile,
    Step,
)
from memprov.core.purge.index_rows import IndexRows, index_rows
from memprov.core.purge.plan import Level, PurgePlan, sealed
from memprov.core.purge.report import Artifacts, CuratedWriteLine, ExtraArtifacts, Report
from memprov.core.purge.review import citations_of, consolidation_refusal
from memprov.core.purge.scrub import Scrub, ScrubRules, promotion_keys, scrub_text
from memprov.core.purge.selection import Selection
from memprov.core.records import MemoryFile
from memprov.core.state import MemorySnapshot
from memprov.core.text import CorpusScan, SessionMatcher, Sieve, digest, scan_corpus
from memprov.errors import InputError

__all__ = ["Mapper", "assemble_plan", "is_phase_report", "plan_purge"]

_A = TypeVar("_A")
_B = TypeVar("_B")


class Mapper(Protocol):
    """``map`` over one iterable, or anything that gives the same results in the same order."""

    def __call__(self, function: Callable[[_A], _B], values: Iterable[_A], /) -> Iterable[_B]:
        """Apply the function to each value."""


def is_phase_report(path: str) -> bool:
    """Whether a memory file is a dreaming phase report, where nested rows go with their row (D16)."""
    return path.startswith("memory/dreaming/")


@frozen
class FileScrub:
    """One memory file with its scrub and the entry keys that its markers name, before and after."""

    file: MemoryFile
    scrub: Scrub
    keys_before: frozenset[str]
    keys_after: frozenset[str]


def plan_purge(
    snapshot: MemorySnapshot,
    selection: Selection,
    *,
    level: Level | str = Level.LOGICAL,
    entry_keys: Iterable[str] = (),
    mapper: Mapper = map,
) -> PurgePlan:
    """The plan that forgets the selection, from values alone (DESIGN 4, I14).

    ``entry_keys`` are keys that an earlier attempt had selected: they only grow (DESIGN 4.1). ``mapper`` maps a
    function over files, as ``map`` does; ``executor.map`` of any ``concurrent.futures`` executor gives the same plan.
    A selection of no session plans nothing and reports what must be reviewed. Raises ``InputError`` for an unknown
    level or a selection of another agent.
    """
    level = _level(level)
    agent = snapshot.store.agent_id
    if selection.agent_id != agent:
        raise InputError(f"the selection is of agent {selection.agent_id!r}, the store of {agent!r}")
    snapshot = _own(snapshot)
    matcher = SessionMatcher(agent, selection.session_ids)
    scanned = mapper(partial(scan_corpus, matcher=matcher), snapshot.corpus)
    scans = tuple(scan for scan in scanned if scan is not None)
    lineage = snapshot.origins.select(selection.session_ids, also=tuple(entry_keys))
    snippets = chain.from_iterable(scan.snippets for scan in scans)
    rules = _narrowed(ScrubRules(agent, selection.session_ids, lineage.entry_keys, snippets), snapshot)
    scrubs = tuple(mapper(partial(_scrub_file, rules=rules), snapshot.files))
    return assemble_plan(snapshot, selection, lineage, rules, scans, scrubs, level)


def _own(snapshot: MemorySnapshot) -> MemorySnapshot:
    """The snapshot with this agent's origins; rows of other agents only say which entries are theirs (I11, D17)."""
    agent = snapshot.store.agent_id
    mine = snapshot.origins.of_agent(agent)
    if mine is snapshot.origins:
        return snapshot
    theirs = frozenset(row.entry_key for row in snapshot.origins.rows() if row.agent_id != agent)
    return evolve(snapshot, origins=mine, sibling_keys=snapshot.sibling_keys | theirs)


def _level(level: Level | str) -> Level:
    try:
        return Level(level)
    except ValueError:
        raise InputError(f"level {level!r} is not one of: {', '.join(Level)}") from None


def _narrowed(rules: ScrubRules, snapshot: MemorySnapshot) -> ScrubRules:
    """Rules that decide the same about every text here, less most of the keys and snippets that none of them holds.

    To look for everything costs what it is, or what the texts are: whichever is less. Also, rules travel to workers.
    """
    sought = sum(map(len, rules.entry_keys)) + sum(len(snippet.text) for snippet in rules.snippets)
    if sought <= sum(len(file.text) for file in snapshot.files) + sum(map(len, snapshot.chunks.texts)):
        return rules
    texts = tuple(_searched_texts(snapshot))
    sieve = Sieve()
    for text in texts:
        sieve.add(text)
    return evolve(
        rules,
        entry_keys=compress(rules.entry_keys, sieve.passes(rules.entry_keys)),
        snippets=rules.quotations.narrowed(texts).snippets,
    )


def _searched_texts(snapshot: MemorySnapshot) -> Iterator[str]:
    """Every text in which a marker or a quotation is looked for."""
    yield from (file.text.removeprefix("\ufeff") for file in snapshot.files)
    yield from (preimage.content.removeprefix("\ufeff") for preimage in snapshot.preimages)
    yield from (text.removeprefix("\ufeff") for text in snapshot.chunks.texts)
    yield from (row.snippet.replace("\n", " ") for row in snapshot.recall)
    yield from (words.replace("\n", " ") for row in snapshot.events for words in event_words(row))


def _scrub_file(file: MemoryFile, rules: ScrubRules) -> FileScrub:
    scrub = scrub_text(file.text, rules, phase_report=is_phase_report(file.path))
    before = frozenset(promotion_keys(file.text))
    after = frozenset(promotion_keys(scrub.text)) if scrub.changed else before
    return FileScrub(file, scrub, before, after)


def assemble_plan(
    snapshot: MemorySnapshot,
    selection: Selection,
    lineage: Lineage,
    rules: ScrubRules,
    scans: tuple[CorpusScan, ...],
    scrubs: tuple[FileScrub, ...],
    level: Level,
) -> PurgePlan:
    """Fold scans, scrubs and rows into effects and report."""
    purge = _Purge(snapshot, selection, lineage, rules, scans, scrubs)
    plan = PurgePlan(
        store=snapshot.store,
        selection=selection,
        level=level,
        effects=tuple(purge.effects()) if selection.session_ids else (),
        report=purge.report(level),
        basis=snapshot.origins.basis(selection.session_ids, lineage.entry_keys),
    )
    return sealed(plan)


class _Purge:
    """One purge, worked out. Attributes are in the order in which they follow from each other."""

    def __init__(
        self,
        snapshot: MemorySnapshot,
        selection: Selection,
        lineage: Lineage,
        rules: ScrubRules,
        scans: tuple[CorpusScan, ...],
        scrubs: tuple[FileScrub, ...],
    ) -> None:
        self.snapshot = snapshot
        self.selection = selection
        self.lineage = lineage
        self.scans = scans
        self._scans = {scan.path: scan for scan in scans}
        self.scrubs = scrubs
        self.changed = tuple(s for s in scrubs if s.scrub.changed)
        self.preimages = tuple((p, scrub_text(p.content, rules)) for p in snapshot.preimages)
        self.quoted_recall = _quoting_keys(snapshot, rules)
        self.index: IndexRows = index_rows(snapshot, rules, self._changed_paths(), self._removed_paths())
        self.collateral = self._collateral()
        self.orphaned = self._orphaned()
        self.derived: DerivedRows = derived_rows(
            snapshot,
            rules,
            # Another agent's rows of a collateral key stay (D4, I11); this agent's origins go either way.
            keys=frozenset(lineage.entry_keys) | (self.orphaned - snapshot.sibling_keys),
            quoted=self.quoted_recall,
        )

    def _changed_paths(self) -> frozenset[str]:
        files = chain((s.file for s in self.changed), (f for f in self.snapshot.corpus if self._scan_of(f) is not None))
        return frozenset(path for file in files for path in (file.path, *file.aliases))

    def _removed_paths(self) -> frozenset[str]:
        removed = (f for f in self.snapshot.corpus if (scan := self._scan_of(f)) is not None and scan.emptied)
        return frozenset(path for file in removed for path in (file.path, *file.aliases))

    def _scan_of(self, file: MemoryFile) -> CorpusScan | None:
        return self._scans.get(file.path)

    def _collateral(self) -> frozenset[str]:
        """The unselected keys in anything that is removed (D3, D4)."""
        in_texts = chain(
            (key for s in self.changed for key in s.scrub.collateral_entry_keys),
            (key for _, scrub in self.preimages for key in scrub.collateral_entry_keys),
            self.quoted_recall.values(),
        )
        return frozenset(in_texts) - frozenset(self.lineage.entry_keys)

    def _orphaned(self) -> frozenset[str]:
        """The collateral keys that no surviving text carries (D4)."""
        if not self.collateral:
            return frozenset()
        alive = chain(
            (s.keys_after for s in self.scrubs),
            (promotion_keys(scrub.text) for _, scrub in self.preimages),
            (promotion_keys(text) for text in self.index.surviving_texts(self.snapshot)),
        )
        return self.collateral.difference(*alive)

    def effects(self) -> Iterator[PurgeEffect]:
        """The effects, in the order of DESIGN 4.1."""
        agent = self.snapshot.store.agent_id
        yield RecordTombstones(agent, self.selection.session_ids)
        yield PurgeIndex(self.index.chunk_ids, self.index.sources)
        yield from self.derived.effects_before_collateral()
        if mine := tuple(sorted(self.orphaned & self.snapshot.origins.keys)):
            yield DropOrigins(agent, mine, step=Step.DERIVED)
        yield from self.derived.effects_after_collateral()
        if cuts := tuple(self._preimage_cuts()):
            yield CutPreimages(cuts)
        for copy in self.snapshot.stale_copies:
            if copy.writer_gone or copy.over_an_hour:
                yield RemoveFile(copy.path, (), copy.digest, step=Step.MEMORY)
        for changed in self.changed:
            file, scrub = changed.file, changed.scrub
            yield CutFile(file.path, file.aliases, digest(file.text), digest(scrub.text), scrub.spans)
        aliases = {file.path: file.aliases for file in self.snapshot.corpus}
        for scan in self.scans:
            if scan.emptied:
                yield RemoveFile(scan.path, aliases[scan.path], scan.before)
            else:
                yield CutFile(scan.path, aliases[scan.path], scan.before, scan.after, scan.spans, step=Step.CORPUS)
        known = self.snapshot.origins.keys
        if selected := tuple(key for key in self.lineage.entry_keys if key in known):
            yield DropOrigins(agent, selected)

    def _preimage_cuts(self) -> Iterator[PreimageCut]:
        for preimage, scrub in self.preimages:
            if scrub.changed:
                yield PreimageCut(preimage.key, digest(preimage.content), digest(scrub.text), scrub.spans)

    def report(self, level: Level) -> Report:
        """The report, computed before anything is written."""
        snapshot, selection, lineage = self.snapshot, self.selection, self.lineage
        in_files = frozenset(chain.from_iterable(s.keys_before for s in self.scrubs))
        untargetable = in_files - snapshot.origins.keys - frozenset(lineage.entry_keys)
        refusals = (consolidation_refusal(s.file.path, s.scrub.text) for s in self.scrubs)
        return Report(
            agent_id=snapshot.store.agent_id,
            dry_run=True,
            session_ids=selection.session_ids,
            participant_matches=selection.participant_matches,
            session_resolutions=selection.resolutions,
            entry_keys=lineage.entry_keys,
            mixed_lineage_entry_keys=lineage.mixed,
            untargetable_entry_keys=tuple(sorted(untargetable)),
            curated_writes=tuple(self._curated_writes()),
            artifacts=self._artifacts(),
            refusals=tuple(sorted(r for r in refusals if r is not None)),
            collateral_entry_keys=tuple(sorted(self.collateral)),
            sibling_entry_keys=tuple(sorted(untargetable & snapshot.sibling_keys)),
            dangling_markers=tuple(sorted({key for s in self.changed for key in s.scrub.dangling_markers})),
            extra_artifacts=self._extra_artifacts(),
            warnings=tuple(sorted({*selection.warnings, *snapshot.unscanned, *self._warnings()})),
            level=level.value,
        )

    def _artifacts(self) -> Artifacts:
        snapshot, index = self.snapshot, self.index
        return Artifacts(
            memory_files=len(self.changed),
            memory_entries=sum(s.scrub.removed_entries for s in self.changed),
            memory_lines=sum(s.scrub.removed_lines for s in self.changed),
            session_corpus_files=len(self.scans),
            session_corpus_lines=sum(len(scan.lines) for scan in self.scans),
            index_chunks=len(index.chunk_ids),
            index_sources=len(index.sources),
            fts_rows=index.full_text_rows,
            vector_rows=index.vector_rows,
            embedding_cache_rows=snapshot.cache_rows if self.selection.session_ids else 0,
            short_term_entries=len(self.derived.recall),
            seen_hash_scopes=len(self.derived.seen_scopes),
            backups=sum(1 for _, scrub in self.preimages if scrub.changed),
            origin_rows=snapshot.origins.count({*self.lineage.entry_keys, *self.orphaned}),
        )

    def _extra_artifacts(self) -> ExtraArtifacts:
        selected = bool(self.selection.session_ids)
        return ExtraArtifacts(
            signals=len(self.derived.signals),
            rewind_rows=len(self.derived.rewinds),
            events=len(self.derived.events),
            stale_copies=sum(c.writer_gone or c.over_an_hour for c in self.snapshot.stale_copies) if selected else 0,
        )

    def _curated_writes(self) -> Iterator[CuratedWriteLine]:
        """Ledger rows of the selected sessions, then writes found in their transcripts; the first of a path counts."""
        ids = frozenset(self.selection.session_ids)
        keys = frozenset(self.selection.session_keys)
        found: dict[str, CuratedWriteLine] = {}
        for write in chain(self.snapshot.ledger_writes, self.snapshot.transcript_writes):
            selected = write.session_id in ids if write.session_id is not None else write.session_key in keys
            if selected:
                found.setdefault(write.path, CuratedWriteLine(write.path, write.observed_at_ms))
        yield from (found[path] for path in sorted(found))

    def _warnings(self) -> Iterator[str]:
        if self.lineage.entry_keys and not self.snapshot.corpus and not any(s.keys_before for s in self.scrubs):
            yield (
                f"{self.snapshot.store.workspace_root} has no corpus file and no marked memory file, while the ledger "
                "knows entries of these sessions; make sure that it is the agent's workspace"
            )
        removed = {scan.path: scan.lines for scan in self.scans}
        for scrubbed in self.scrubs:
            if removed and is_phase_report(scrubbed.file.path):
                yield from citations_of(scrubbed.file.path, scrubbed.scrub.text, removed)
        for copy in self.snapshot.stale_copies:
            if not (copy.writer_gone or copy.over_an_hour):
                yield f"{copy.path} is a copy that a rewrite is making or left behind less than an hour ago; it stays"


def _quoting_keys(snapshot: MemorySnapshot, rules: ScrubRules) -> dict[str, str]:
    """Recall rows whose snippet quotes a selected corpus line (D4): the row's key and its entry key."""
    if not rules.quotations or not snapshot.recall:
        return {}
    lines = "\n".join(row.snippet.replace("\n", " ") for row in snapshot.recall)
    quoted = rules.quotations.quoted_lines(lines)
    return {snapshot.recall[number].row_key: snapshot.recall[number].key for number in sorted(quoted)}
