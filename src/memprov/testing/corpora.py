"""Synthetic memory of any size: what an agent would hold after many sessions, as a ``MemorySnapshot``.

A million corpus lines take seconds. What is derived in a real store is derived here too: claim hashes and entry keys,
the diary and its markers, reports, notes, recall rows, rewind rows, events, index chunks, each under the rules and caps
of OpenClaw 2026.9.6 (docs: Corpus lines, Markers). Every second day was ingested by backfill and the others by the
automatic sweep; some claims were heard in two sessions, so that their lineage is mixed; some texts were too long and
were cut.
"""

from __future__ import annotations

import hashlib
from itertools import repeat

from attrs import define, field

from memprov.core.lineage import OriginTable
from memprov.core.purge import rewind_key
from memprov.core.records import (
    CuratedWrite,
    HostEvent,
    IndexSource,
    MemoryFile,
    OriginClass,
    RecallEntry,
    RewindBatch,
    SessionKind,
    SessionRecord,
    StoreIdentity,
)
from memprov.core.state import Chunk, ChunkTable, MemorySnapshot
from memprov.core.text import json_text, promotion_marker
from memprov.errors import InputError
from memprov.testing.pages import (
    LINES_PER_CHUNK,
    CorpusLine,
    DayLines,
    daily_note,
    diary_block,
    diary_page,
    light_report,
    memory_page,
    preimages_of,
    session_file,
)
from memprov.testing.sessions import Day, Speaker, days_of

__all__ = ["synthetic_snapshot"]

_CORPUS = "memory/.dreams/session-corpus"
_SNIPPET_UNITS = 280
_BATCH = 240
_DIARY_LINES = 5
_RECENT_DAYS = 64
_CAP_EVENTS = 10_000
_CAP_ROWS = 50_000
_CAP_SCOPES = 2048


def synthetic_snapshot(
    sessions: int = 100,
    lines_per_session: int = 10,
    *,
    sessions_per_day: int = 8,
    seed: int = 0,
    agent_id: str = "main",
    recall_rows: int = 512,
    promoted: int = 20,
    vectors: bool = False,
    state_root: str = "/synthetic/state",
    workspace_root: str = "/synthetic/workspace",
) -> MemorySnapshot:
    """A snapshot with ``sessions * lines_per_session`` corpus lines and everything that follows from them.

    ``recall_rows`` and ``promoted`` bound the short-term store and MEMORY.md, which do not grow with the corpus;
    ``vectors`` gives every chunk a vector and fills the embedding cache. The sessions are those of
    ``synthetic_sessions`` with the same arguments. Raises ``InputError`` for a size below one.

    >>> snapshot = synthetic_snapshot(sessions=3, lines_per_session=2)
    >>> len(snapshot.corpus[0].text.splitlines())
    6
    """
    if min(sessions, lines_per_session, sessions_per_day) < 1:
        raise InputError("sessions, lines_per_session and sessions_per_day must be at least 1")
    memory = _Memory(agent_id, hashlib.sha256(workspace_root.encode()).hexdigest(), vectors)
    speaker = Speaker(seed)
    days = days_of(sessions, sessions_per_day, seed, agent_id)
    for number, day in enumerate(days):
        memory.live_through(number, day, speaker, lines_per_session)
    return memory.snapshot(
        StoreIdentity("synthetic", agent_id, state_root, workspace_root),
        days,
        recall_rows=recall_rows,
        promoted=promoted,
    )


@define
class _Memory:
    """What has come together so far. Lists are in the order of time."""

    agent_id: str
    workspace_key: str
    vectors: bool
    corpus: list[MemoryFile] = field(factory=list)
    pages: list[MemoryFile] = field(factory=list)
    diary: list[str] = field(factory=list)
    chunks: list[Chunk] = field(factory=list)
    sources: list[IndexSource] = field(factory=list)
    events: list[HostEvent] = field(factory=list)
    rewinds: list[RewindBatch] = field(factory=list)
    ledger: list[CuratedWrite] = field(factory=list)
    candidates: list[str] = field(factory=list)
    scopes: list[str] = field(factory=list)
    recent: list[DayLines] = field(factory=list)
    # the columns of the origins
    entry_keys: list[str] = field(factory=list)
    session_ids: list[str] = field(factory=list)
    session_keys: list[str | None] = field(factory=list)
    classes: list[str] = field(factory=list)
    observed: list[int] = field(factory=list)

    def live_through(self, number: int, day: Day, speaker: Speaker, turns: int) -> None:
        """One day: what was said, and what became of it."""
        backfilled = number % 2 == 0
        lines = self._ingest(day, speaker, turns, backfilled=backfilled)
        self.corpus.append(MemoryFile(lines.path, lines.text()))
        self.recent = [*self.recent, lines][-_RECENT_DAYS:]
        if backfilled:
            self._write_diary(day, lines)
        self._write_pages(number, day, lines)
        self._log(day, lines, promoted=backfilled)
        for record in day.internal:  # indexed before it was known for what it is
            self._index_session(record, [f"User: tidy the notes of {day.iso}"], OriginClass.SYSTEM)

    def _ingest(self, day: Day, speaker: Speaker, turns: int, *, backfilled: bool) -> DayLines:
        """The corpus lines of the day, their origins, and the sessions in the index."""
        numbers = [int(record.session_id[-12:]) for record in day.ingested]
        texts = speaker.texts(numbers, turns, abroad=day.abroad)
        for position, number in enumerate(numbers):
            first, last = position * turns, (position + 1) * turns - 1
            if number % 20 == 19 and position:
                texts[first] = texts[first - turns]  # heard before: two sessions, one claim
            elif number % 20 == 2:
                texts[last] = " ".join([texts[last]] * 6)  # too long, so that it is cut
        labels = ("User: ", "Assistant: ")
        snippets = [f"{labels[i % turns % 2]}{text}"[:_SNIPPET_UNITS] for i, text in enumerate(texts)]
        path = f"{_CORPUS}/{day.iso}.txt"
        keys = _backfill_keys(path, texts) if backfilled else [f"memory:claim:{_sha1(s)[:12]}" for s in snippets]
        for position, record in enumerate(day.ingested):
            part = slice(position * turns, (position + 1) * turns)
            self._heard(record, keys[part], snippets[part], backfilled=backfilled)
        return DayLines(self.agent_id, path, day.ingested, turns, snippets, keys)

    def _heard(self, record: SessionRecord, keys: list[str], snippets: list[str], *, backfilled: bool) -> None:
        """One session of the day."""
        scope = f"{self.agent_id}:sessions/{self.agent_id}/{record.session_id}"
        self.scopes.append(scope)
        foreign = record.hook_source is not None or record.chat_type == "group"
        classes = ("untrusted", "untrusted") if foreign else ("owner", "agent")
        start, turns = record.created_at_ms or 0, range(len(keys))
        self._observe(keys, record, [classes[turn % 2] for turn in turns], [start + 1000 * (t + 1) for t in turns])
        if backfilled:
            for turn, snippet in enumerate(snippets):
                self._stage(scope, turn, start + 1000 * (turn + 1), snippet)
        self._index_session(record, snippets, OriginClass.UNTRUSTED if foreign else OriginClass.AGENT)

    def _observe(self, keys: list[str], record: SessionRecord, classes: list[str], observed_at_ms: list[int]) -> None:
        self.entry_keys.extend(keys)
        self.session_ids.extend(repeat(record.session_id, len(keys)))
        self.session_keys.extend(repeat(record.session_key, len(keys)))
        self.classes.extend(classes)
        self.observed.extend(observed_at_ms)

    def _stage(self, scope: str, turn: int, observed: int, snippet: str) -> None:
        seen = _sha1(f"{scope}\nts:{observed}\n{snippet}")
        self.candidates.append(f'{{"contentIndex":{turn},"hash":"{seen}","scope":"{scope}","stateKey":"{scope}"}}')
        if len(self.candidates) == _BATCH:
            self._close_batch()

    def _close_batch(self) -> None:
        if self.candidates:
            batch = tuple(self.candidates)
            self.rewinds.append(RewindBatch(rewind_key(batch), batch))
            self.candidates.clear()

    def _write_diary(self, day: Day, lines: DayLines) -> None:
        entries = []
        for line in lines.first(_DIARY_LINES):
            shown = f"- {line.snippet}"
            key = f"memory:session-backfill:{hashlib.sha256(json_text([day.iso, shown]).encode()).hexdigest()}"
            self._observe([key], line.session, ["owner"], [line.session.created_at_ms or 0])
            entries.append(f"{promotion_marker(key)}\n{shown}\n")
        self.diary.append(diary_block(day.date, lines.path, len(lines), entries))

    def _write_pages(self, number: int, day: Day, lines: DayLines) -> None:
        self._page(MemoryFile(f"memory/{day.iso}.md", daily_note(number, day.iso, lines)), OriginClass.AGENT)
        self._page(MemoryFile(f"memory/dreaming/light/{day.iso}.md", light_report(lines)), OriginClass.SYSTEM)
        if number % 7 == 5:
            page, session = MemoryFile(f"memory/{day.iso}-1800.md", session_file(day.iso, lines)), day.ingested[-1]
            self._page(page, OriginClass.AGENT)
            self.ledger.append(
                CuratedWrite(page.path, day.start_ms + 64_800_000, session.session_id, session.session_key)
            )

    def _page(self, page: MemoryFile, origin_class: OriginClass) -> None:
        self.pages.append(page)
        self.index_page(page, origin_class)

    def index_page(self, page: MemoryFile, origin_class: OriginClass) -> None:
        """A memory file in the index, in chunks of some lines."""
        self.sources.append(IndexSource(page.path))
        rows = page.text.removesuffix("\n").split("\n")
        for start in range(0, len(rows), LINES_PER_CHUNK):
            part = rows[start : start + LINES_PER_CHUNK]
            self._chunk("memory", page.path, start, part, origin_class, SessionKind.UNKNOWN)

    def _index_session(self, record: SessionRecord, spoken: list[str], origin_class: OriginClass) -> None:
        path = f"sessions/{self.agent_id}/{record.session_id}.jsonl"
        self.sources.append(IndexSource(path, "sessions"))
        for start in range(0, len(spoken), LINES_PER_CHUNK):
            self._chunk("sessions", path, start, spoken[start : start + LINES_PER_CHUNK], origin_class, record.kind)

    def _chunk(
        self, source: str, path: str, start: int, rows: list[str], origin_class: OriginClass, kind: SessionKind
    ) -> None:
        text = "\n".join(rows)
        content = hashlib.sha256(text.encode()).hexdigest()
        name = f"{source}:{path}:{start + 1}:{start + len(rows)}:{content}:fts-only"
        identifier = hashlib.sha256(name.encode()).hexdigest()
        text = "" if source == "sessions" else text
        self.chunks.append(Chunk(identifier, path, source, text, origin_class, kind, vector=self.vectors))

    def _log(self, day: Day, lines: DayLines, *, promoted: bool) -> None:
        """The host's event of the day."""
        event: dict[str, object] = {"timestamp": f"{day.iso}T22:00:00.000Z"}
        listed: list[dict[str, object]] = [
            {"key": line.key, "path": line.path, "startLine": line.number, "endLine": line.number, "score": 0.58}
            for line in lines.first(10)
        ]
        if promoted:
            event |= {"type": "memory.promotion.applied", "memoryPath": "MEMORY.md", "applied": len(listed)}
            event["candidates"] = listed
        else:
            event |= {"type": "memory.recall.recorded", "query": f"__dreaming_sessions__:{day.iso}"}
            event |= {"resultCount": len(listed), "results": listed}
        sequence = len(self.events) + 1
        payload = {"kind": "event", "event": event, "recordedAt": day.start_ms + 79_200_000, "sequence": sequence}
        self.events.append(HostEvent(f"{self.workspace_key[:24]}:event:1:{sequence:016d}", json_text(payload)))

    def snapshot(self, identity: StoreIdentity, days: list[Day], *, recall_rows: int, promoted: int) -> MemorySnapshot:
        """Everything, each part in the order in which a store is read."""
        self._close_batch()
        chosen = self._newest(promoted)
        memory = MemoryFile("MEMORY.md", memory_page(days[-1].iso, chosen))
        user = MemoryFile("USER.md", "# User\n\n- Writes in several languages.\n")
        self.index_page(memory, OriginClass.AGENT)
        self.index_page(user, OriginClass.AGENT)
        self.ledger.append(CuratedWrite("USER.md", days[0].start_ms, session_key=days[0].ingested[0].session_key))
        recall = self._recall(recall_rows)
        names = sorted(recall)
        scopes = sorted(self.scopes)
        return MemorySnapshot(
            store=identity,
            files=(
                memory,
                user,
                *sorted(self.pages, key=lambda page: page.path),
                MemoryFile("DREAMS.md", diary_page(self.diary, chosen)),
            ),
            corpus=tuple(self.corpus),
            origins=OriginTable.from_columns(
                self.entry_keys, self.session_ids, self.session_keys, self.classes, self.observed, self.agent_id
            ),
            recall=tuple(recall[name] for name in names),
            signals=tuple(names[::2]),
            checkpoints=tuple(sorted(self.scopes[-_CAP_ROWS:])),
            seen_scopes=tuple(scopes[-_CAP_SCOPES:]),
            rewinds=tuple(sorted(self.rewinds, key=lambda row: row.key)),
            events=tuple(self.events[-_CAP_EVENTS:]),
            preimages=preimages_of(days[-1].iso, chosen),
            chunks=ChunkTable.from_rows(self.chunks),
            sources=tuple(sorted(self.sources, key=lambda row: (row.path, row.source))),
            cache_rows=len(self.chunks) if self.vectors else 0,
            tombstones=frozenset({"forgotten-before-1", "forgotten-before-2"}),
            revision=len(self.chunks) + len(self.sources),
            internal_sessions=frozenset(record.session_id for day in days for record in day.internal),
            ledger_writes=tuple(sorted(self.ledger, key=lambda write: (write.path, write.observed_at_ms))),
        )

    def _recall(self, count: int) -> dict[str, RecallEntry]:
        """The newest claims, some as the whole corpus line and some as the bare text."""
        found: dict[str, RecallEntry] = {}
        for line in reversed(self._newest(count + count // 10 + 8)):  # a few are heard twice
            if len(found) < count:
                snippet = line.text if line.number % 2 else line.said
                found.setdefault(line.key, RecallEntry(line.key, line.path, snippet, line.number, line.number))
        return found

    def _newest(self, count: int) -> list[CorpusLine]:
        """The last lines of the corpus, as far as the last days have them."""
        found: list[CorpusLine] = []
        for lines in reversed(self.recent):
            if len(found) < count:
                found = [*lines.last(count - len(found)), *found]
        return found


def _backfill_keys(path: str, texts: list[str]) -> list[str]:
    """Keys of staged claims; a claim that is heard again belongs to the first line that has it."""
    keys: dict[str, str] = {}
    claims = [_sha1(text)[:12] for text in texts]
    return [keys.setdefault(claim, f"memory:{path}:{i + 1}:{i + 1}:{claim}") for i, claim in enumerate(claims)]


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
