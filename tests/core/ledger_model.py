"""A store for tests that is nothing but values: everything the write path reads, changed by its effects.

It applies effects as a real store must and stamps them with a clock that the test holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from attrs import define, evolve, field

from memprov.core.lineage import record_origins
from memprov.core.purge import (
    DropCheckpoints,
    DropOrigins,
    DropRecall,
    DropSeenScopes,
    DropSignals,
    ScrubRules,
    rewind_key,
    scrub_text,
)
from memprov.core.records import MemoryFile, Origin, RewindBatch
from memprov.core.state import Checkpoint, IngestState, StagedEntry
from memprov.core.text import corpus_owner, strip_prefix
from memprov.core.writing import (
    AddSeenHashes,
    AppendCorpus,
    DropSeenHashes,
    MarkPromoted,
    RecordOrigins,
    RecordRewind,
    ReleaseOrigins,
    ReplaceText,
    RequireAdmitted,
    SetCheckpoints,
    StageEntries,
    TakeRewinds,
    WriteEffect,
    append_lines,
    replaced_text,
)
from memprov.errors import StaleStateError


@define
class Ledger:
    """One agent's memory."""

    agent_id: str = "main"
    now_ms: int = 1_000
    entries: dict[str, StagedEntry] = field(factory=dict)
    origins: dict[tuple[str, str, str], Origin] = field(factory=dict)
    signals: set[str] = field(factory=set)
    checkpoints: dict[str, Checkpoint] = field(factory=dict)
    seen: dict[str, list[str]] = field(factory=dict)
    corpus: dict[str, str] = field(factory=dict)
    files: dict[str, str] = field(factory=dict)
    tombstones: set[str] = field(factory=set)
    sibling_keys: set[str] = field(factory=set)
    rewinds: dict[str, RewindBatch] = field(factory=dict)
    log: list[str] = field(factory=list)

    def state(self) -> IngestState:
        """What a plan is computed from."""
        diary = self.files.get("DREAMS.md")
        return IngestState(
            agent_id=self.agent_id,
            entries=tuple(self.entries[key] for key in sorted(self.entries)),
            signals=self.signals,
            checkpoints=tuple(self.checkpoints.values()),
            seen={scope: tuple(hashes) for scope, hashes in self.seen.items()},
            corpus=dict(self.corpus),
            tombstones=self.tombstones,
            sibling_keys=self.sibling_keys,
            rewinds=tuple(self.rewinds[key] for key in sorted(self.rewinds)),
            diary=None if diary is None else MemoryFile("DREAMS.md", diary),
        )

    def copy(self) -> Ledger:
        """As it is now."""
        return evolve(
            self,
            entries=dict(self.entries),
            origins=dict(self.origins),
            signals=set(self.signals),
            checkpoints=dict(self.checkpoints),
            seen={scope: list(hashes) for scope, hashes in self.seen.items()},
            corpus=dict(self.corpus),
            files=dict(self.files),
            tombstones=set(self.tombstones),
            sibling_keys=set(self.sibling_keys),
            rewinds=dict(self.rewinds),
            log=list(self.log),
        )

    def content(self) -> dict[str, object]:
        """Everything but times and the log, to be compared."""
        return {
            "entries": {k: evolve(e, first_recalled_at_ms=0, last_recalled_at_ms=0) for k, e in self.entries.items()},
            "origins": self.origins,
            "signals": self.signals,
            "checkpoints": self.checkpoints,
            "seen": self.seen,
            "corpus": self.corpus,
            "files": self.files,
            "tombstones": self.tombstones,
            "rewinds": self.rewinds,
        }

    def origins_of(self, key: str) -> dict[str, str]:
        """Session id -> origin class, for one entry."""
        return {o.session_id: str(o.origin_class) for o in self.origins.values() if o.entry_key == key}

    def apply(self, effects: Iterable[WriteEffect]) -> None:
        """Carry the effects out, in order."""
        self.now_ms += 1
        for effect in effects:
            self.log.append(type(effect).__name__)
            self._apply(effect)

    def _apply(self, effect: WriteEffect) -> None:  # noqa: C901, PLR0912  # a table
        match effect:
            case RequireAdmitted():
                if self.tombstones.intersection(effect.session_ids):
                    raise StaleStateError("forgotten")
            case RecordOrigins():
                rows = record_origins(self.origins.values(), effect.origins, agent_id=effect.agent_id)
                self.origins.update({(row.entry_key, row.agent_id, row.session_id): row for row in rows})
            case ReleaseOrigins():
                for key, session in effect.rows:
                    self.origins.pop((key, effect.agent_id, session), None)
            case DropOrigins():
                gone = frozenset(effect.entry_keys)
                self.origins = {k: o for k, o in self.origins.items() if o.entry_key not in gone}
            case AppendCorpus():
                self.corpus[effect.path] = append_lines(self.corpus.get(effect.path), effect)
            case ReplaceText():
                self.files[effect.path] = replaced_text(self.files.get(effect.path), effect)
            case StageEntries():
                for entry in effect.entries:
                    first, last = entry.first_recalled_at_ms, entry.last_recalled_at_ms
                    self.entries[entry.key] = evolve(
                        entry,
                        first_recalled_at_ms=self.now_ms if first is None else first,
                        last_recalled_at_ms=self.now_ms if last is None else last,
                    )
                for key in effect.evicted:
                    self.entries.pop(key, None)
            case MarkPromoted():
                for key in effect.keys:
                    if key in self.entries:
                        self.entries[key] = evolve(self.entries[key], promoted_at_ms=self.now_ms)
            case DropRecall():
                for key in effect.row_keys:
                    self.entries.pop(key, None)
            case DropSignals():
                self.signals.difference_update(effect.keys)
            case SetCheckpoints():
                self.checkpoints.update({checkpoint.key: checkpoint for checkpoint in effect.checkpoints})
            case DropCheckpoints():
                for key in effect.keys:
                    self.checkpoints.pop(key, None)
            case AddSeenHashes():
                hashes = self.seen.setdefault(effect.scope, [])
                hashes += [h for h in dict.fromkeys(effect.hashes) if h not in hashes]
                self.seen[effect.scope] = [h for h in hashes if h not in effect.outdated]
            case DropSeenHashes():
                left = [h for h in self.seen.get(effect.scope, []) if h not in effect.hashes]
                self.seen.pop(effect.scope, None)
                if left:
                    self.seen[effect.scope] = left
            case DropSeenScopes():
                for scope in effect.scopes:
                    self.seen.pop(scope, None)
            case RecordRewind():
                self.rewinds[effect.batch.key] = effect.batch
            case TakeRewinds():
                for key in effect.keys:
                    self.rewinds.pop(key, None)
            case _:
                raise AssertionError(f"neither ingestion nor backfill does this: {effect}")

    def forget(self, session_id: str) -> None:
        """What a purge does to the parts that the write path reads and writes: tombstone first, origins last."""
        self.tombstones.add(session_id)
        state = f"{self.agent_id}:sessions/{self.agent_id}/{session_id}"
        keys = {o.entry_key for o in self.origins.values() if o.session_id == session_id}
        snippets = []
        for path, text in list(self.corpus.items()):
            lines = text.splitlines(keepends=True)
            gone = [line for line in lines if corpus_owner(line, self.agent_id) == session_id]
            snippets += [strip_prefix(line, self.agent_id).removesuffix("\n") for line in gone]
            self.corpus[path] = "".join(line for line in lines if line not in gone)
            if not self.corpus[path]:
                del self.corpus[path]
        rules = ScrubRules(self.agent_id, [session_id], keys, snippets)
        self.files = {path: scrub_text(text, rules).text for path, text in self.files.items()}
        quoting = {key for key, entry in self.entries.items() if rules.quotations.quoted_lines(entry.snippet)}
        self.entries = {key: entry for key, entry in self.entries.items() if key not in keys | quoting}
        self.signals -= keys
        self.seen.pop(state, None)
        self.checkpoints.pop(state, None)
        for key, batch in list(self.rewinds.items()):
            kept = tuple(row for row in batch.candidates if json.loads(row)["scope"] != state)
            if kept != batch.candidates:
                del self.rewinds[key]
                if kept:
                    self.rewinds[rewind_key(kept)] = RewindBatch(rewind_key(kept), kept)
        self.origins = {k: o for k, o in self.origins.items() if o.entry_key not in keys}
