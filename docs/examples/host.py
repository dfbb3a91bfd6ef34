"""A gateway with memory: what to call, and when."""

from __future__ import annotations

from collections.abc import Iterable

import memprov

Chats = dict[str, list[memprov.Message]]


class Gateway:
    """Transcripts are the gateway's; memprov is handed a reader and asks for those that it may read."""

    def __init__(self, directory: str) -> None:
        self.store = memprov.open_store(directory, agent_id="main")
        self.policy = memprov.AdmissionPolicy(hook_sources=["gmail", "email"])
        self.thresholds = memprov.Thresholds(score=0.4, signals=1, unique_queries=0)  # the default is strict
        self.chats: Chats = {}

    def started(self, chat: str, channel: str, people: Iterable[str], at_ms: int, hook: str | None = None) -> None:
        """A conversation began: record what is known of it before anything is said."""
        identities = [memprov.Identity("observation", name, plugin_id=channel, sender_kind="human") for name in people]
        record = memprov.SessionRecord(
            "main", chat, f"agent:main:{channel}:{chat}", created_at_ms=at_ms, channel=channel, hook_source=hook,
            participants=identities,
        )  # fmt: skip
        self.store.record_session(record)
        self.chats[chat] = []

    def said(self, chat: str, text: str, *, owner: bool, at_ms: int) -> None:
        """Somebody wrote something. Who is the owner is the gateway's to know, never the text's to claim."""
        number = len(self.chats[chat]) + 1
        self.chats[chat].append(memprov.Message("user", text, number, at_ms, sender_is_owner=owner))

    def nightly(self, now_ms: int) -> memprov.PromotionReport:
        """Take in what is new, and promote what has proved itself."""
        while memprov.ingest(self.store, self._read, policy=self.policy, now_ms=now_ms).more:
            pass
        return memprov.promote(self.store, thresholds=self.thresholds, now_ms=now_ms)

    def forget_person(self, actor_id: str) -> memprov.Report:
        """Remove everything that came from conversations with a person, and keep it out."""
        return memprov.forget(self.store, memprov.Selectors(participants=[actor_id]))

    def _read(self, session: memprov.SessionRecord) -> list[memprov.Message] | None:
        return self.chats.get(session.session_id)
