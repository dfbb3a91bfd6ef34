"""Which sessions would take a line, if that one alone were forgotten, and by which rule (I17).

It is asked of the scrub, with the rules that a purge of the session has. What no session could take is known after one
scrub for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from attrs import frozen

from memprov.core.lineage import OriginTable, contested_keys, evidence_of
from memprov.core.purge import ScrubRules, promotion_keys, scrub_text
from memprov.core.records import MemoryFile, is_phase_report
from memprov.core.state import MemorySnapshot
from memprov.core.text import (
    Document,
    QuotationMatcher,
    Snippet,
    corpus_owner,
    corpus_said,
    machine_lines,
    named_sessions,
)
from memprov.core.trace.answers import LineReason, Place
from memprov.core.trace.reasons import RemovalRule, explain_text, lines_within

__all__ = ["explain_lines", "is_machine_written"]


def is_machine_written(snapshot: MemorySnapshot, path: str, first: int, last: int) -> bool:
    """Whether a program wrote one of these lines of a memory file, from 1: what was said is sought there (D23)."""
    for file in snapshot.files:
        if path in (file.path, *file.aliases):
            lines = machine_lines(Document(file.text.removeprefix("\ufeff")), phase_report=is_phase_report(file.path))
            return not lines.isdisjoint(range(first - 1, last))
    return False


def explain_lines(
    snapshot: MemorySnapshot, path: str, first: int, last: int, session_ids: Iterable[str] = ()
) -> tuple[LineReason, ...]:
    """Which sessions would take one of these lines, from 1, if that one alone were forgotten, and by which rule (I17).

    ``session_ids`` are more sessions than the snapshot knows of by itself. Where the snapshot has what sessions said by
    their transcripts, quotations of that are known too (D23).
    """
    for file in snapshot.files:
        if path in (file.path, *file.aliases):
            claims = _Claims(snapshot, file, range(first, last + 1))
            return tuple(sorted(chain.from_iterable(map(claims.reasons, claims.takers(session_ids)))))
    for file in snapshot.corpus:
        if path in (file.path, *file.aliases):
            lines = enumerate(file.text.split("\n")[first - 1 : last], first)
            owners = ((number, corpus_owner(line, snapshot.store.agent_id)) for number, line in lines)
            return tuple(
                LineReason(Place(file.path, n), owner, RemovalRule.CORPUS) for n, owner in owners if owner is not None
            )
    return ()


@frozen
class _Claims:
    """Who would take some lines, from 1, of a file."""

    snapshot: MemorySnapshot
    file: MemoryFile
    numbers: range

    @cached_property
    def _origins(self) -> OriginTable:
        """Those of the entries that the file names: no other key changes anything in it."""
        mine = self.snapshot.origins.of_agent(self.snapshot.store.agent_id)
        return mine.touching(entry_keys=frozenset(promotion_keys(self.file.text)))

    @cached_property
    def _said(self) -> dict[str, list[Snippet]]:
        """By session, the corpus lines that the file may quote."""
        agent = self.snapshot.store.agent_id
        return self._quotable(chain.from_iterable(corpus_said(file, agent) for file in self.snapshot.corpus))

    @cached_property
    def _retained(self) -> dict[str, list[Snippet]]:
        """By session, what its transcript says and the file may quote."""
        return self._quotable(
            (text.session_id, snippet) for text in self.snapshot.retained for snippet in text.snippets
        )

    def _quotable(self, said: Iterable[tuple[str, Snippet]]) -> dict[str, list[Snippet]]:
        owners: dict[Snippet, dict[str, None]] = {}
        for owner, snippet in said:
            owners.setdefault(snippet, {})[owner] = None
        found: dict[str, list[Snippet]] = {}
        for snippet in QuotationMatcher(tuple(owners)).quotable(self.file.text.removeprefix("\ufeff")):
            for owner in owners[snippet]:
                found.setdefault(owner, []).append(snippet)
        return found

    def takers(self, session_ids: Iterable[str]) -> Iterator[str]:
        """The sessions that alone would take one of the lines, or of those around them.

        What one takes, several with it take too, so that all others are ruled out by halves and not one by one.
        """
        named = named_sessions(self.file.text, self.snapshot.store.agent_id)
        known = named.union(session_ids, self._origins.sessions, self._said, self._retained, self.snapshot.tombstones)
        return _found_by_halves(sorted(known), self._takes)

    def _takes(self, session_ids: Sequence[str]) -> bool:
        scrub = scrub_text(self.file.text, self._rules(session_ids), phase_report=is_phase_report(self.file.path))
        return not self._around.isdisjoint(lines_within(self.file.text, scrub.spans))

    @cached_property
    def _around(self) -> frozenset[int]:
        """The lines, from 0, and what they stay or go with: one that several leave there may go with one (F10)."""
        document = Document(self.file.text.removeprefix("\ufeff"))
        numbers = (number - 1 for number in self.numbers if number <= len(document.lines))
        return frozenset(chain.from_iterable(range(*document.unit(number)) for number in numbers))

    def reasons(self, session_id: str) -> Iterator[LineReason]:
        """Why this session alone takes those that it takes."""
        rules = self._rules([session_id])
        for removed in explain_text(self.file.text, rules, phase_report=is_phase_report(self.file.path)):
            if removed.line in self.numbers:
                yield LineReason(Place(self.file.path, removed.line), session_id, removed.rule, removed.entry_key)

    def _rules(self, session_ids: Sequence[str]) -> ScrubRules:
        keys = self._origins.select(session_ids).entry_keys
        contested = contested_keys(self.file.text, frozenset(keys))
        return ScrubRules(
            self.snapshot.store.agent_id,
            session_ids,
            keys,
            dict.fromkeys(chain.from_iterable(self._said.get(name, ()) for name in session_ids)),
            dict.fromkeys(chain.from_iterable(self._retained.get(name, ()) for name in session_ids)),
            evidence_of(contested, self._origins, self.snapshot.recall),
        )


def _found_by_halves(values: Sequence[str], holds: Callable[[Sequence[str]], bool]) -> Iterator[str]:
    """Those of the values that ``holds`` is true of alone, where it is true of all that hold one of them."""
    pending = [values]
    while pending:
        part = pending.pop()
        if not part or not holds(part):
            continue
        if len(part) == 1:
            yield part[0]
        else:
            pending += part[len(part) // 2 :], part[: len(part) // 2]
