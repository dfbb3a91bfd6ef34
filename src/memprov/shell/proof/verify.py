"""``verify``: is anything of these sessions left below a store's roots? A reader that shares nothing with the purge."""

from __future__ import annotations

from collections.abc import Iterable

from memprov.core.proof import Receipt, Verification
from memprov.core.purge import Selection, Selectors
from memprov.errors import InputError
from memprov.shell.port import ProvableStore, TranscriptReader
from memprov.shell.proof.scan import scan_store
from memprov.shell.proof.sources import known_by, look_for
from memprov.shell.selecting import resolve

__all__ = ["verify"]


def verify(
    store: ProvableStore,
    selection: Selection | Selectors | Receipt,
    needles: Iterable[str] | None = None,
    *,
    reader: TranscriptReader | None = None,
) -> Verification:
    """Whether any byte below the store's and the workspace's roots still names the selected sessions or repeats them.

    ``needles`` are texts to look for; without them what the sessions said is taken from their corpus lines and their
    retained transcripts, less what a session that stays said as well; ``reader`` hands over the transcripts that the
    host keeps. The answer is *clean*, *residue* (which file, table or free page, with what is retained by contract
    counted apart) or *cannot prove*; before a purge it is residue, and says where the sessions are kept. Reads only
    (I3), unpaged, from the files as they are.

    A receipt stands for the sessions that it names. Raises ``SelectorError`` for a bad selector, ``InputError`` when
    nothing is selected or a needle is blank, and ``RefusedError`` for a receipt that the store did not make or a store
    that cannot be read at all.
    """
    doubts: tuple[str, ...] = ()
    if isinstance(selection, Receipt):
        named = known_by(store, selection)
        if unknown := len(selection.sessions) - len(named):
            doubts = (f"{unknown} sessions of the receipt are not known here",)
        selection = Selectors(sessions=named)
    if isinstance(selection, Selectors):
        selection = resolve(store, selection)
    if not selection.session_ids:
        raise InputError("no session is selected, so there is nothing to look for")
    looked = look_for(store, frozenset(selection.session_ids), needles, reader)
    return scan_store(store.identity, looked.needles, (*doubts, *looked.doubts))
