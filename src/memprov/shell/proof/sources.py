"""Where needles come from: the session ids, and what was said, from the corpus or from retained transcripts.

What the caller gives is looked for as it is. What is derived is looked for unless a session that stays said it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from memprov.core.proof import NeedleSet, Receipt, own_problems, sessions_named
from memprov.core.records import SessionState, strings
from memprov.core.state import MemorySnapshot
from memprov.core.text import corpus_owner, line_spans, strip_prefix
from memprov.core.writing import read_transcript
from memprov.errors import InputError, RefusedError
from memprov.shell.port import ProvableStore, Spoken, TranscriptReader, failure

__all__ = ["Looked", "known_by", "look_for"]


@frozen
class Looked:
    """What to look for, and why that may not be all of it."""

    needles: NeedleSet
    doubts: tuple[str, ...] = ()


def look_for(
    store: ProvableStore,
    session_ids: frozenset[str],
    given: Iterable[str] | None = None,
    reader: TranscriptReader | None = None,
) -> Looked:
    """The needles of these sessions. ``reader`` hands over the transcripts of the selected sessions, where the host
    keeps them. Raises ``InputError`` for a given text that is blank.
    """
    snapshot = store.snapshot()
    agent = store.identity.agent_id
    known = _known(store, snapshot)
    if given is not None:
        texts = strings(given)
        if any(not text.strip() for text in texts):
            raise InputError("a needle is blank")
        return Looked(NeedleSet.of(sorted(session_ids), texts, others=known))
    mine: list[Spoken] = []
    others: list[Spoken] = []
    for said in store.spoken():
        (mine if said.agent_id == agent and said.session_id in session_ids else others).append(said)
    if reader is not None:
        mine.extend(_heard(store, session_ids, reader))
    texts = (*_corpus(snapshot, session_ids), *(text for said in mine for text in said.texts))
    staying = (text for said in others for text in said.texts)
    return Looked(
        NeedleSet.of(sorted(session_ids), texts, others=known, unselected=_chain(staying, snapshot, session_ids)),
        tuple(f"what session {said.session_id} said is not known: {said.unread}" for said in mine if said.unread),
    )


def _heard(store: ProvableStore, session_ids: frozenset[str], reader: TranscriptReader) -> Iterator[Spoken]:
    """What the host's reader says of the selected sessions; a session at which it fails stops no other."""
    agent = store.identity.agent_id
    for record in store.catalogue():
        if record.agent_id != agent or record.session_id not in session_ids:
            continue
        try:
            messages = reader(record)
            archived = record.state is SessionState.ARCHIVED
            lines = () if messages is None else read_transcript(messages, archived=archived).lines
        except Exception as error:  # noqa: BLE001  # whatever it is, it is of this session alone
            yield Spoken(agent, record.session_id, unread=failure(error))
        else:
            yield Spoken(agent, record.session_id, tuple(line.text for line in lines))


def known_by(store: ProvableStore, receipt: Receipt) -> tuple[str, ...]:
    """The sessions that a receipt of this store names, as far as the store knows them, forgotten or not.

    Raises ``RefusedError`` for a receipt that the store did not make.
    """
    key = store.receipt_log().key
    if problems := own_problems(receipt, key):
        raise RefusedError(f"{problems[0]}; nothing was changed")
    return sessions_named(receipt, _known(store, store.snapshot()), key or b"")


def _known(store: ProvableStore, snapshot: MemorySnapshot) -> frozenset[str]:
    return frozenset({r.session_id for r in store.catalogue()} | snapshot.tombstones | set(snapshot.origins.sessions))


def _chain(staying: Iterator[str], snapshot: MemorySnapshot, session_ids: frozenset[str]) -> Iterator[str]:
    yield from staying
    yield from _corpus(snapshot, session_ids, selected=False)


def _corpus(snapshot: MemorySnapshot, session_ids: frozenset[str], *, selected: bool = True) -> Iterator[str]:
    """What the corpus lines of the selected sessions say, or those of all others."""
    agent = snapshot.store.agent_id
    for file in snapshot.corpus:
        for start, end in line_spans(file.text):
            line = file.text[start:end]
            owner = corpus_owner(line, agent)
            if owner is not None and (owner in session_ids) is selected:
                yield strip_prefix(line, agent)
