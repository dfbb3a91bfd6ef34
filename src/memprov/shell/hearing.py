"""What the selected sessions said and wrote, where a host keeps the transcripts and hands over a reader (D23, F19)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from attrs import evolve

from memprov.core.purge import Answer, Question, RestOf, SaidBy, Selection, SelectionSource, Surroundings
from memprov.core.records import Roots, SessionKind, SessionRecord, SessionState
from memprov.core.state import RetainedText
from memprov.core.writing import TranscriptFindings, joined_texts, read_findings
from memprov.shell.port import Answering, Store, TranscriptReader, failure

__all__ = ["Hearing"]


class Hearing:
    """Asks the reader about each selected session once, whatever is asked of it, and adds what it says to answers.

    A transcript at which the reader fails is a warning of the report, and stops nothing.
    """

    def __init__(self, store: Store, reader: TranscriptReader) -> None:
        self._store = store
        self._reader = reader
        self._roots = Roots([store.identity.workspace_root])
        self._failures: dict[str, str] = {}
        self._heard = cache(self._listen)  # once for a session, however often a plan is made

    def answering(self, inner: Answering, selection: Selection) -> Answering:
        """The same answers, with what the transcripts of these sessions say."""
        sessions = tuple(_sessions(self._store.catalogue(), selection))

        def answer(question: Question) -> Answer:
            known = inner(question)
            if not isinstance(question, SaidBy | RestOf):
                return known
            found = [heard for session in sessions if (heard := self._heard(session)) is not None]
            if isinstance(known, Surroundings):
                return evolve(
                    known,
                    transcript_writes=(*known.transcript_writes, *(w for heard in found for w in heard.writes)),
                    unscanned=(*known.unscanned, *self._failures.values()),
                )
            texts = known if isinstance(known, tuple) else ()
            said = (text for text in texts if isinstance(text, RetainedText))
            return joined_texts((*said, *(heard.text for heard in found)))

        return answer

    def _listen(self, session: SessionRecord) -> TranscriptFindings | None:
        try:
            messages = self._reader(session)
            return None if messages is None else read_findings(session, messages, self._roots)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is of this session alone
            name = session.session_id
            self._failures[name] = f"the transcript of session {name} could not be read: {failure(error)}"
            return None


def _sessions(catalogue: Iterable[SessionRecord], selection: Selection) -> Iterator[SessionRecord]:
    """The selected sessions as they are known: by the catalogue, or by their origins alone."""
    known = {r.session_id: r for r in catalogue if r.agent_id == selection.agent_id}
    for resolution in selection.resolutions:
        unknown = SessionRecord(
            selection.agent_id,
            resolution.session_id,
            resolution.session_key,
            kind=SessionKind.UNKNOWN,
            state=SessionState.ARCHIVED,
        )
        if resolution.session_id in known or resolution.source is not SelectionSource.UNRESOLVED:
            yield known.get(resolution.session_id, unknown)
