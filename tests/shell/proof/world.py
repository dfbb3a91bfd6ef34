"""An embedded store in which three conversations became memory: on a ledger, in files, in the full text."""

from __future__ import annotations

from pathlib import Path

from memprov import (
    Message,
    NativeStore,
    SessionRecord,
    Thresholds,
    ingest,
    open_store,
    promote,
    sync_index,
)

__all__ = ["NOW", "SAID", "embedded", "reopened"]

NOW = 1_795_597_200_000
#: What each session said, and nobody else.
SAID = {
    "monday-chat": "The spare key is with Mrs. Quill, behind the third fern.",
    "monday-chat-2": "The boiler was serviced by Farrow and Daughters again.",
    "tuesday-chat": "Ann wants to read the Ambergate essays in the spring.",
}


def embedded(directory: Path) -> NativeStore:
    """A store in ``directory/state`` with its files in ``directory/workspace``, after a sweep and an index."""
    store = open_store(directory / "state", workspace=directory / "workspace")
    for name in SAID:
        store.record_session(SessionRecord("main", name, f"agent:main:{name}", created_at_ms=NOW))

    def said(session: SessionRecord) -> list[Message]:
        text = SAID[session.session_id]
        return [Message("user", text, number=2, timestamp_ms=NOW, sender_is_owner=True)]

    ingest(store, said, now_ms=NOW)
    promote(store, thresholds=Thresholds(score=0, signals=1, unique_queries=0), now_ms=NOW)
    sync_index(store)
    return store


def reopened(directory: Path) -> NativeStore:
    """The same store, opened once more."""
    return open_store(directory / "state", create=False)
