"""The texts of a workspace under the rules of one purge: which are needed, and what becomes of those.

A store tells from a file's bytes whether it is needed as text (``Sifting``); what was read is scrubbed (``Texts``).
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from attrs import frozen

from memprov.core.purge.questions import FileFacts, TextsUnder, facts_of
from memprov.core.purge.report import Suspect
from memprov.core.purge.review import OLD_HISTORY, broken_markers, suspects_of
from memprov.core.purge.scrub import Scrub, ScrubRules, promotion_keys, scrub_text
from memprov.core.records import MemoryFile, Preimage, is_diary, is_phase_report
from memprov.core.text import WSP, CorpusScan, Gate, to_text

__all__ = ["FileScrub", "ScannedFile", "Sifting", "Texts", "gate_within", "scrub_file", "sifting_of"]


@frozen
class ScannedFile:
    """A corpus file that loses lines."""

    file: MemoryFile
    scan: CorpusScan


@frozen
class FileScrub:
    """A memory file with its scrub, and what the report needs of it before and after. ``broken`` are lines, from 1, in
    which a marker of a selected key cannot be read, with the key.
    """

    file: MemoryFile
    scrub: Scrub
    before: FileFacts
    after: FileFacts
    suspects: tuple[Suspect, ...] = ()
    broken: tuple[tuple[int, str], ...] = ()


def scrub_file(file: MemoryFile, rules: ScrubRules) -> FileScrub:
    """Scrub a memory file. A map over files."""
    scrub = scrub_text(file.text, rules, phase_report=is_phase_report(file.path))
    before = facts_of(file.path, file.text)
    after = facts_of(file.path, scrub.text) if scrub.changed else before
    suspects = tuple(suspects_of(file.path, file.text, scrub, rules))
    return FileScrub(file, scrub, before, after, suspects, tuple(broken_markers(file.text, scrub, rules.entry_keys)))


@frozen
class Texts:
    """Everything that was read, each tuple in the order of the snapshot. ``facts`` are of the files that were not."""

    scans: tuple[ScannedFile, ...]
    files: tuple[FileScrub, ...]
    preimages: tuple[tuple[Preimage, Scrub], ...]
    facts: tuple[FileFacts, ...]
    unreadable_corpus: tuple[str, ...] = ()

    @cached_property
    def changed(self) -> tuple[FileScrub, ...]:
        """The memory files that change."""
        return tuple(file for file in self.files if file.scrub.changed)

    @cached_property
    def changed_paths(self) -> frozenset[str]:
        """Every name of every file that changes or goes."""
        files = chain((changed.file for changed in self.changed), (scanned.file for scanned in self.scans))
        return frozenset(path for file in files for path in (file.path, *file.aliases))

    @cached_property
    def removed_paths(self) -> frozenset[str]:
        """Every name of every corpus file that goes."""
        files = (scanned.file for scanned in self.scans if scanned.scan.emptied)
        return frozenset(path for file in files for path in (file.path, *file.aliases))

    @cached_property
    def diary_lines(self) -> dict[str, frozenset[str]]:
        """The lines of the diary, under each of its names, where it stays as it is."""
        return {
            path: frozenset(line.strip(WSP) for line in read.file.text.split("\n"))
            for read in self.files
            for path in (read.file.path, *read.file.aliases)
            if is_diary(path) and not read.scrub.changed
        }

    @cached_property
    def keys_before(self) -> frozenset[str]:
        """The keys of the live promotion markers in memory files."""
        return frozenset(chain.from_iterable(facts.keys for facts in (*(f.before for f in self.files), *self.facts)))

    @cached_property
    def marked_after(self) -> frozenset[str]:
        """The keys of the live promotion markers that stay in memory files."""
        return frozenset(chain.from_iterable(facts.keys for facts in self.facts_after))

    @cached_property
    def keys_after(self) -> frozenset[str]:
        """The keys of those that stay, and of those that stay in the preimages that were scrubbed."""
        files = (facts.keys for facts in self.facts_after)
        return frozenset(chain(*files, *(promotion_keys(scrub.text) for _, scrub in self.preimages)))

    @cached_property
    def unreadable_keys(self) -> frozenset[str]:
        """The selected keys that a file still names in a marker which cannot be read (F08)."""
        return frozenset(key for read in self.files for _, key in read.broken)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The files that are not text throughout (F06)."""
        read = (facts.path for facts in (*(file.before for file in self.files), *self.facts) if facts.unreadable)
        return (*read, *self.unreadable_corpus)

    @property
    def facts_after(self) -> tuple[FileFacts, ...]:
        """What the report says of the files as they will be."""
        return (*(file.after for file in self.files), *self.facts)

    @cached_property
    def collateral(self) -> frozenset[str]:
        """The unselected keys in anything that goes from a memory file or preimage (D3, D4)."""
        scrubs = chain((changed.scrub for changed in self.changed), (scrub for _, scrub in self.preimages))
        return frozenset(key for scrub in scrubs for key in scrub.collateral_entry_keys)


@frozen
class Sifting:
    """The tests of one ``TextsUnder``. Travels to workers as these values. Without a gate every text is needed."""

    gate: Gate | None
    citing: Gate

    def needs(self, path: str, data: bytes) -> bool:
        """Whether the memory file with these bytes must be read as text."""
        if self.gate is None or self.gate.may_hold(data):
            return True
        if b"\0" in data and self.gate.may_hold(data.replace(b"\0", b"")):  # a key in UTF-16
            return True
        return is_phase_report(path) and self.citing.may_hold(data)

    def facts(self, path: str, data: bytes) -> FileFacts | None:
        """What the report needs of a file that must not be read, if anything."""
        if b"<!--" not in data and OLD_HISTORY.encode() not in data and b"\0" not in data and data.isascii():
            return None
        facts = facts_of(path, to_text(data))
        return facts if facts.keys or facts.untraceable or facts.unreadable else None


def sifting_of(question: TextsUnder, size: int) -> Sifting:
    """The tests for memory files of ``size`` bytes together."""
    return Sifting(gate_within(question.rules, size), Gate(question.citing))


def gate_within(rules: ScrubRules, size: int) -> Gate | None:
    """The rules' gate, where the texts, of ``size`` bytes together, are more than what it would look for in them."""
    snippets = chain(rules.snippets, rules.retained)
    sought = sum(map(len, rules.entry_keys)) + sum(len(snippet.text) for snippet in snippets)
    return rules._gate if sought <= size else None  # noqa: SLF001  # kept with the rules, and none of their promises
