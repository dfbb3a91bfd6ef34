"""The effects of the write path: ingestion, backfill, diary, promotion.

These carry text, since they bring it in, but no time: whoever applies them stamps it. Two rules hold at any moment, in
every plan that is made of them. An origin is durable before anything that carries its text can be seen: hence
``RecordOrigins`` comes first, and a crash leaves origins without text, which harms nobody, and never text without
origins, which nobody could forget (B01, B03). And a plan that was prepared before a session was forgotten does not get
past its first effect, ``RequireAdmitted`` (I6).

What an effect is says ``state.effect``. Of another agent's ledger the model knows only which keys have origins there;
time stamps and what a snapshot does not hold are passed over. A model raises ``StaleStateError`` at a fence that is no
longer open and ``ConflictError`` for a file that is not the expected one.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, field, frozen

from memprov.core.purge import DropCheckpoints, DropOrigins, DropRecall, DropSeenScopes, DropSignals
from memprov.core.records import (
    CuratedWrite,
    MemoryFile,
    OriginClass,
    Preimage,
    RecallEntry,
    RewindBatch,
    strings,
)
from memprov.core.state import PARTS, Checkpoint, MemorySnapshot, StagedEntry
from memprov.core.text import digest
from memprov.core.writing.lineage_effects import (
    PruneOrigins,
    RecordOrigins,
    RecordTransfers,
    ReleaseOrigins,
    ReleaseTransfers,
    RequireAdmitted,
)
from memprov.errors import ConflictError

__all__ = [
    "MAX_PREIMAGES",
    "AddSeenHashes",
    "AppendCorpus",
    "DropSeenHashes",
    "MarkPromoted",
    "RecordArtifact",
    "RecordRewind",
    "ReleaseArtifact",
    "ReplaceText",
    "SetCheckpoints",
    "StageEntries",
    "StorePreimage",
    "TakeRewinds",
    "WriteEffect",
    "append_lines",
    "replaced_text",
]

#: How many preimages of MEMORY.md are retained (docs: Origins and merges).
MAX_PREIMAGES = 8


@frozen
class AppendCorpus:
    """Append lines to a corpus file if its digest is ``before`` (``None``: there is no such file). All lines or none.

    Where the last line is not ended it is ended first. A file that already ends with just these lines is left alone.
    """

    path: str
    before: str | None
    lines: tuple[str, ...] = field(converter=strings, repr=False)

    def words(self) -> str:
        """What is done, in words."""
        return f"append to {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        now = _text_of(snapshot.corpus, self.path)
        return evolve(snapshot, corpus=_with_text(snapshot.corpus, self.path, append_lines(now, self)))


@frozen
class StageEntries:
    """Write these entries, whole values, each in place of the one with its key; drop the ``evicted`` ones."""

    entries: tuple[StagedEntry, ...]
    evicted: tuple[str, ...] = field(default=(), converter=strings)

    def words(self) -> str:
        """What is done, in words."""
        return f"stage {len(self.entries)} entries"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, recall=_staged(snapshot.recall, self))


@frozen
class MarkPromoted:
    """Stamp these entries as promoted."""

    keys: tuple[str, ...] = field(converter=strings, metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"mark {len(self.keys)} entries as promoted"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return snapshot  # a time stamp, which the model has not


@frozen
class SetCheckpoints:
    """Write these checkpoints, each in place of the one with its key."""

    checkpoints: tuple[Checkpoint, ...] = field(metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"set {len(self.checkpoints)} ingestion checkpoints"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, checkpoints=_with(snapshot.checkpoints, (c.key for c in self.checkpoints)))


@frozen
class AddSeenHashes:
    """Add hashes to a scope, at its end and in this order, those not there already; drop the ``outdated`` ones."""

    scope: str
    hashes: tuple[str, ...] = field(converter=strings, metadata=PARTS)
    outdated: tuple[str, ...] = field(default=(), converter=strings)

    def words(self) -> str:
        """What is done, in words."""
        return "add seen hashes"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, seen_scopes=_with(snapshot.seen_scopes, (self.scope,)))


@frozen
class DropSeenHashes:
    """Take hashes out of a scope; a scope without any is gone."""

    scope: str
    hashes: tuple[str, ...] = field(converter=strings, metadata=PARTS)
    emptied: bool = False

    def words(self) -> str:
        """What is done, in words."""
        return "take back seen hashes"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        scopes = snapshot.seen_scopes
        return evolve(snapshot, seen_scopes=tuple(s for s in scopes if s != self.scope or not self.emptied))


@frozen
class RecordRewind:
    """Remember what a backfill took, so that it can be taken back. The key is a digest of the candidates."""

    batch: RewindBatch

    def words(self) -> str:
        """What is done, in words."""
        return "record a rewind batch"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        others = tuple(batch for batch in snapshot.rewinds if batch.key != self.batch.key)
        return evolve(snapshot, rewinds=tuple(sorted((*others, self.batch), key=lambda batch: batch.key)))


@frozen
class TakeRewinds:
    """Drop rewind batches whose content was taken back."""

    keys: tuple[str, ...] = field(converter=strings, metadata=PARTS)

    def words(self) -> str:
        """What is done, in words."""
        return f"drop {len(self.keys)} rewind batches"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        taken = frozenset(self.keys)
        return evolve(snapshot, rewinds=tuple(batch for batch in snapshot.rewinds if batch.key not in taken))


@frozen
class ReplaceText:
    """Replace a memory file or diary, atomically, if its digest is ``before`` (``None``: there is no such file)."""

    path: str
    before: str | None
    text: str = field(repr=False)

    def words(self) -> str:
        """What is done, in words."""
        return f"rewrite {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        now = _text_of(snapshot.files, self.path)
        return evolve(snapshot, files=_with_text(snapshot.files, self.path, replaced_text(now, self)))


@frozen
class StorePreimage:
    """Keep ``content`` as a preimage, under the time and its digest, and of all preimages the newest ``keep``.

    Nothing happens when the newest preimage is this content already.
    """

    content: str = field(repr=False)
    keep: int = MAX_PREIMAGES

    def words(self) -> str:
        """What is done, in words."""
        return "keep a preimage"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, preimages=_with_preimage(snapshot.preimages, self))


@frozen
class RecordArtifact:
    """Record an observed write of a file in place of the file's earlier record (docs: Curated writes).

    ``file_hash`` is the digest of the content after. The record is made before the file is written.
    """

    path: str
    origin_class: OriginClass = field(converter=OriginClass)
    file_hash: str
    session_id: str | None = None
    session_key: str | None = None

    def words(self) -> str:
        """What is done, in words."""
        return f"record a write of {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        write = CuratedWrite(self.path, 0, self.session_id, self.session_key)
        others = (w for w in snapshot.ledger_writes if w.path != self.path)
        return evolve(snapshot, ledger_writes=tuple(sorted((*others, write), key=lambda w: w.path)))


@frozen
class ReleaseArtifact:
    """Take the record of a write back that failed, if it is still the file's record."""

    path: str
    file_hash: str

    def words(self) -> str:
        """What is done, in words."""
        return f"take back the record of a write of {self.path}"

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done."""
        return evolve(snapshot, ledger_writes=tuple(w for w in snapshot.ledger_writes if w.path != self.path))


WriteEffect = (
    RequireAdmitted
    | RecordOrigins
    | ReleaseOrigins
    | RecordTransfers
    | ReleaseTransfers
    | PruneOrigins
    | AppendCorpus
    | StageEntries
    | MarkPromoted
    | SetCheckpoints
    | AddSeenHashes
    | DropSeenHashes
    | RecordRewind
    | TakeRewinds
    | ReplaceText
    | StorePreimage
    | RecordArtifact
    | ReleaseArtifact
    | DropSignals
    | DropRecall
    | DropCheckpoints
    | DropSeenScopes
    | DropOrigins
)


def append_lines(text: str | None, effect: AppendCorpus) -> str:
    """The corpus file after the effect, given what it holds now (``None``: it is not there).

    Raises ``ConflictError`` when that is neither what the plan was made from nor what it makes.
    """
    added = "".join(f"{line}\n" for line in effect.lines)
    if (None if text is None else digest(text)) == effect.before:
        start = text or ""
        return start + ("" if not start or start.endswith("\n") else "\n") + added
    if text is not None and (text == added or text.endswith("\n" + added)):
        return text
    raise ConflictError(f"{effect.path} changed before lines could be appended; nothing was appended")


def replaced_text(text: str | None, effect: ReplaceText) -> str:
    """The file after the effect, given what it holds now. Raises ``ConflictError`` as ``append_lines`` does."""
    if (None if text is None else digest(text)) == effect.before or text == effect.text:
        return effect.text
    raise ConflictError(f"{effect.path} changed before it could be replaced; it was left as it is")


def _text_of(files: tuple[MemoryFile, ...], path: str) -> str | None:
    return next((file.text for file in files if file.path == path), None)


def _with_text(files: tuple[MemoryFile, ...], path: str, text: str) -> tuple[MemoryFile, ...]:
    if any(file.path == path for file in files):
        return tuple(evolve(file, text=text) if file.path == path else file for file in files)
    return tuple(sorted((*files, MemoryFile(path, text)), key=lambda file: file.path))


def _with(values: tuple[str, ...], added: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*values, *added}))


def _staged(rows: tuple[RecallEntry, ...], effect: StageEntries) -> tuple[RecallEntry, ...]:
    gone = {*effect.evicted, *(entry.key for entry in effect.entries)}
    new = (
        RecallEntry(entry.key, entry.path, entry.snippet, entry.start_line, entry.end_line)
        for entry in effect.entries
        if entry.key not in effect.evicted
    )
    return tuple(sorted((*(row for row in rows if row.row_key not in gone), *new), key=lambda row: row.row_key))


def _with_preimage(preimages: tuple[Preimage, ...], effect: StorePreimage) -> tuple[Preimage, ...]:
    if preimages and preimages[-1].content == effect.content:
        return preimages
    # The newest key of a store begins with its time; the model has none, so it takes one after all times.
    kept = preimages[len(preimages) + 1 - effect.keep :] if len(preimages) + 1 > effect.keep else preimages
    return (*kept, Preimage(f"~{len(preimages)}:{digest(effect.content)[:12]}", effect.content))
