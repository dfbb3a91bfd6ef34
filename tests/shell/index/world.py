"""A store with sessions, memory files and an index, and a scheduler for what may happen to it in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve, field

from memprov import Selectors, SessionRecord, forget
from memprov.core.records import Origin
from memprov.core.text import promotion_marker
from memprov.core.writing import Message, RecordOrigins
from memprov.shell.index import IndexReport, search, sync_index
from memprov.shell.native import NativeStore, open_store
from memprov.testing import ToyEmbedder
from tests.shell.native.loading import fresh_store, hasty, unhurried

__all__ = ["CANARY", "TWIN", "World", "schedules"]

#: Words of the session that will be forgotten, and of the one that stays.
CANARY = "zanzibar"
TWIN = "kestrelwing"


@define
class World:
    """One agent: sessions s1 (of the canary) and s2 (of the twin), each with a transcript and an entry in MEMORY.md."""

    store: NativeStore
    chats: dict[str, list[Message]] = field(factory=dict)
    embedder: ToyEmbedder = field(factory=ToyEmbedder)
    read: list[str] = field(factory=list)

    @classmethod
    def at(cls, directory: Path) -> World:
        """The usual world."""
        world = cls(fresh_store(directory / "store"))
        world.say("s1", f"I sail to {CANARY} in spring")
        world.say("s2", f"my bicycle is a {TWIN}")
        world.remember({"k1": ("s1", f"The owner sails to {CANARY}."), "k2": ("s2", f"The bicycle is a {TWIN}.")})
        return world

    def again(self) -> World:
        """The same, opened by another process."""
        layout = self.store._layout
        return evolve(self, store=hasty(open_store(layout.directory, layout.agent_id)))

    @property
    def workspace(self) -> Path:
        return Path(self.store._layout.workspace)

    def say(self, session_id: str, text: str, *, owner: bool = True, **metadata: object) -> None:
        if session_id not in self.chats:
            record = SessionRecord("main", session_id, f"agent:main:telegram:{session_id}", created_at_ms=1000)
            self.store.record_session(evolve(record, **metadata))  # type: ignore[arg-type]
        chat = self.chats.setdefault(session_id, [])
        number = len(chat) + 1
        chat.append(Message("user", text, number, 1000 * number, sender_is_owner=owner))

    def remember(self, entries: Mapping[str, tuple[str, str]], path: str = "MEMORY.md") -> None:
        """Write entries with their markers, and record their origins."""
        with unhurried(self.store) as writer:
            writer.write(RecordOrigins("main", tuple(Origin(key, "main", s) for key, (s, _) in entries.items())))
        lines = [f"{promotion_marker(key)}\n- {text}\n" for key, (_, text) in entries.items()]
        self.write(path, "# Memory\n\n" + "".join(lines))

    def write(self, path: str, text: str) -> None:
        (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (self.workspace / path).write_bytes(text.encode())

    def reader(self, session: SessionRecord, /) -> Iterable[Message] | None:
        self.read.append(session.session_id)
        return self.chats.get(session.session_id)

    def sync(self) -> IndexReport:
        return sync_index(self.store, self.embedder, self.reader)

    def forget(self, *sessions: str) -> None:
        forget(self.store, Selectors(sessions=sessions or ["s1"]))

    def found(self, query: str, *, automatic: bool = False) -> list[str]:
        """The texts that any way of searching finds, by full text and by each engine."""
        ways: list[Callable[[], Sequence[str]]] = [
            lambda: [hit.text for hit in search(self.store, query, limit=50, automatic=automatic)],
            *(
                lambda engine=engine: [
                    hit.text
                    for hit in search(
                        self.store, query, embedder=self.embedder, limit=50, automatic=automatic, engine=engine
                    )
                ]
                for engine in ("auto", "exact", "sqlite-vec")
            ),
        ]
        return [text for way in ways for text in way()]

    def finds(self, word: str) -> bool:
        return any(word in text for text in self.found(word))


def schedules(actors: Mapping[str, int], preemptions: int = 2) -> Iterator[tuple[str, ...]]:
    """Every order of the actors' steps in which at most so many actors are interrupted before their last step."""

    def run(left: dict[str, int], last: str | None, budget: int, done: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not any(left.values()):
            yield done
        for actor, steps in left.items():
            cost = last is not None and actor != last and left[last] > 0
            if steps and cost <= budget:
                yield from run({**left, actor: steps - 1}, actor, budget - cost, (*done, actor))

    yield from run(dict(actors), None, preemptions, ())
