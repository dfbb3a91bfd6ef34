"""The purge plan: what goes when sessions are forgotten, in which order, and why (docs: order).

The planner asks and folds. It asks which entries and corpus files are the selection's; the lines' text becomes the
snippets; it asks which other texts and rows may hold any of it, scrubs those, and asks once more who else carries what
goes with them. Nothing here multiplies lines by snippets, and scans and scrubs of different files are independent, so
that any ``map`` gives the same plan (I14). What it is answered beyond what it asked for changes nothing (I16).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, compress
from typing import Protocol, TypeVar

from attrs import evolve

from memprov.core.lineage import contested_keys, evidence_of
from memprov.core.purge.derived import derived_rows, event_words, gone_recall
from memprov.core.purge.index_rows import IndexRows, index_rows
from memprov.core.purge.outcome import Evidence, Outcome
from memprov.core.purge.plan import Level, PurgePlan, sealed
from memprov.core.purge.questions import (
    Asking,
    CarriersOf,
    CorpusOf,
    IndexUnder,
    KeyOwners,
    OriginsOf,
    RecallUnder,
    RestOf,
    SaidBy,
    StateUnder,
    TextsUnder,
    answer_from,
    answered,
    ask,
)
from memprov.core.purge.scrub import ScrubRules, promotion_keys, scrub_text
from memprov.core.purge.selection import Selection
from memprov.core.purge.texts import ScannedFile, Texts, scrub_file
from memprov.core.records import MemoryFile, RecallEntry, StoreIdentity, is_machine_path
from memprov.core.state import MemorySnapshot
from memprov.core.text import SessionMatcher, Sieve, corpus_owner, is_readable, scan_corpus
from memprov.errors import InputError

__all__ = ["Mapper", "plan_by_asking", "plan_purge"]

_A = TypeVar("_A")
_B = TypeVar("_B")


class Mapper(Protocol):
    """``map`` over one iterable, or anything that gives the same results in the same order."""

    def __call__(self, function: Callable[[_A], _B], values: Iterable[_A], /) -> Iterable[_B]:
        """Apply the function to each value."""


def plan_purge(
    snapshot: MemorySnapshot,
    selection: Selection,
    *,
    level: Level | str = Level.LOGICAL,
    entry_keys: Iterable[str] = (),
    mapper: Mapper = map,
) -> PurgePlan:
    """The plan that forgets the selection, from values alone (docs: order, I14): every question of the planner is
    answered with all that the snapshot has.

    ``entry_keys`` are keys that an earlier attempt had selected: they only grow (docs: order). ``mapper`` maps a
    function over files, as ``map`` does; ``executor.map`` of any ``concurrent.futures`` executor gives the same plan.
    A selection of no session plans nothing and reports what must be reviewed. Raises ``InputError`` for an unknown
    level or a selection of another agent.
    """
    asking = plan_by_asking(snapshot.store, selection, level=level, entry_keys=entry_keys, mapper=mapper)
    return answered(asking, partial(answer_from, snapshot))


def plan_by_asking(
    store: StoreIdentity,
    selection: Selection,
    *,
    level: Level | str = Level.LOGICAL,
    entry_keys: Iterable[str] = (),
    mapper: Mapper = map,
) -> Asking[PurgePlan]:
    """The plan of ``plan_purge`` as a dialogue: yields questions, is sent answers, returns the plan (docs: Planning by
    asking, I16).

    Drive it with ``answered``. Raises as ``plan_purge`` does, when the first question is asked for.
    """
    level = _level(level)
    if selection.agent_id != store.agent_id:
        raise InputError(f"the selection is of agent {selection.agent_id!r}, the store of {store.agent_id!r}")
    ids, also = selection.session_ids, tuple(entry_keys)
    origins = (yield from ask(OriginsOf(ids, also))).of_agent(store.agent_id)
    lineage = origins.select(ids, also=also)
    corpus = yield from ask(CorpusOf(SessionMatcher(store.agent_id, ids)))
    scans = _scans(corpus, SessionMatcher(store.agent_id, ids), mapper)
    snippets = chain.from_iterable(scanned.scan.snippets for scanned in scans)
    said = tuple(text for text in (yield from ask(SaidBy(ids))) if text.session_id in frozenset(ids))
    retained = chain.from_iterable(text.snippets for text in said)
    rules = ScrubRules(store.agent_id, ids, lineage.entry_keys, snippets, retained)
    scrubbed, rules = yield from _texts(rules, scans, mapper)
    texts = evolve(
        scrubbed,
        unreadable_corpus=tuple(file.path for file in corpus if ids and not is_readable(file.text)),
    )

    recall = yield from ask(RecallUnder(rules))
    quoted = _quoting_keys(recall, rules)
    index = yield from _index(rules, texts)
    collateral = frozenset(chain(texts.collateral, quoted.values())) - frozenset(lineage.entry_keys)
    orphaned = yield from _orphaned(collateral, texts, index)
    known = yield from ask(KeyOwners(texts.keys_before.union(collateral, lineage.entry_keys)))
    orphans = 0
    if orphaned:
        table = yield from ask(OriginsOf(entry_keys=tuple(sorted(orphaned))))
        orphans = table.of_agent(store.agent_id).count(orphaned)

    # Another agent's rows of a collateral key stay (D4, I11); this agent's origins go either way.
    if dropped := orphaned - known.siblings:
        recall = (*recall, *(yield from ask(RecallUnder(ScrubRules(store.agent_id, entry_keys=dropped)))))
    gone = gone_recall(recall, rules.sessions, frozenset(lineage.entry_keys) | dropped, quoted)
    state = yield from ask(StateUnder(rules, gone.keys, gone.places))
    words = tuple(text.replace("\n", " ") for row in state.events for text in event_words(row))
    derived = derived_rows(gone, state, _narrowed(rules, words))
    outcome = Outcome(
        store=store,
        selection=selection,
        lineage=lineage,
        texts=texts,
        index=index,
        derived=derived,
        collateral=collateral,
        orphaned=orphaned & known.mine,
        known=known,
        known_selected=origins.keys,
        origin_rows=origins.count(frozenset(lineage.entry_keys) - texts.unreadable_keys) + orphans,
        evidence=Evidence(
            frozenset(origins.touching(ids).sessions),
            frozenset(owner for row in recall if (owner := corpus_owner(row.snippet, store.agent_id)) is not None),
            frozenset(text.session_id for text in said),
        ),
        rest=(yield from ask(RestOf(ids, selection.session_keys))),
    )
    plan = PurgePlan(
        store=store,
        selection=selection,
        level=level,
        effects=tuple(outcome.effects(level)) if ids else (),
        report=outcome.report(level),
        basis=origins.basis(ids, lineage.entry_keys),
    )
    return sealed(plan)


def _level(level: Level | str) -> Level:
    try:
        return Level(level)
    except ValueError:
        raise InputError(f"level {level!r} is not one of: {', '.join(Level)}") from None


def _narrowed(rules: ScrubRules, texts: Sequence[str]) -> ScrubRules:
    """Rules that decide the same about these texts, less most of the keys and snippets that none of them holds.

    To look for everything costs what it is, or what the texts are: whichever is less. Also, rules travel to workers.
    """
    snippets = chain(rules.snippets, rules.retained)
    sought = sum(map(len, rules.entry_keys)) + sum(len(snippet.text) for snippet in snippets)
    if sought <= sum(map(len, texts)):
        return rules
    texts = tuple(text.removeprefix("\ufeff") for text in texts)
    sieve = Sieve()
    for text in texts:
        sieve.add(text)
        if "\0" in text:
            sieve.add(text.replace("\0", ""))  # a key in UTF-16 (F08)
    return evolve(
        rules,
        entry_keys=compress(rules.entry_keys, sieve.passes(rules.entry_keys)),
        snippets=rules.quotations.narrowed(texts).snippets,
        retained=rules.machine_quotations.narrowed(texts).snippets if rules.retained else (),
    )


def _scans(files: tuple[MemoryFile, ...], sessions: SessionMatcher, mapper: Mapper) -> tuple[ScannedFile, ...]:
    """The corpus files that lose lines, in order."""
    scans = mapper(partial(scan_corpus, matcher=sessions), files)
    return tuple(ScannedFile(f, scan) for f, scan in zip(files, scans, strict=True) if scan is not None)


def _texts(rules: ScrubRules, scans: tuple[ScannedFile, ...], mapper: Mapper) -> Asking[tuple[Texts, ScrubRules]]:
    """The memory files and preimages under the rules, and the rules with what decides about shared entries (F10)."""
    texts = yield from ask(TextsUnder(rules, tuple(scanned.file.path for scanned in scans)))
    searched = (*(file.text for file in texts.files), *(preimage.content for preimage in texts.preimages))
    narrow = _narrowed(rules, searched)
    contested = frozenset(chain.from_iterable(contested_keys(text, narrow.entry_keys) for text in searched))
    if contested:
        origins = yield from ask(OriginsOf(entry_keys=tuple(sorted(contested))))
        recall = yield from ask(RecallUnder(ScrubRules(rules.agent_id, entry_keys=contested)))
        evidence = evidence_of(contested, origins.of_agent(rules.agent_id), recall)
        rules, narrow = evolve(rules, evidence=evidence), evolve(narrow, evidence=evidence)
    scrubbed = Texts(
        scans=scans,
        files=tuple(mapper(partial(scrub_file, rules=narrow), texts.files)),
        preimages=tuple((preimage, scrub_text(preimage.content, narrow)) for preimage in texts.preimages),
        facts=texts.facts,
    )
    return scrubbed, rules


def _index(rules: ScrubRules, texts: Texts) -> Asking[IndexRows]:
    """The rows of the index that go."""
    part = yield from ask(IndexUnder(rules, texts.changed_paths, texts.removed_paths))
    return index_rows(part, _narrowed(rules, part.chunks.texts), texts)


def _orphaned(collateral: frozenset[str], texts: Texts, index: IndexRows) -> Asking[frozenset[str]]:
    """The collateral keys that no surviving text carries (D4)."""
    left = collateral - texts.keys_after
    if not left:
        return left
    carriers = yield from ask(CarriersOf(left))
    scrubbed = {preimage for preimage, _ in texts.preimages}
    gone = frozenset(index.chunk_ids)
    alive = chain(
        (promotion_keys(preimage.content) for preimage in carriers.preimages if preimage not in scrubbed),
        (
            promotion_keys(chunk.text)
            for chunk in carriers.chunks.rows()
            if chunk.source == "memory" and chunk.id not in gone
        ),
    )
    return left.difference(*alive)


def _quoting_keys(recall: tuple[RecallEntry, ...], rules: ScrubRules) -> dict[str, str]:
    """Recall rows whose snippet quotes a selected corpus line (D4), or what a selected session said by its transcript,
    if it was taken from a machine-written place (D23): the row's key and its entry key.
    """
    if not (rules.snippets or rules.retained) or not recall:
        return {}
    lines = "\n".join(row.snippet.replace("\n", " ") for row in recall)
    rules = _narrowed(rules, (lines,))
    said = rules.machine_quotations.quoted_lines(lines)
    quoted = rules.quotations.quoted_lines(lines).union(n for n in said if is_machine_path(recall[n].path))
    return {recall[number].row_key: recall[number].key for number in sorted(quoted)}
