"""Asking, before anything else is done, whether a store knows what was named."""

from __future__ import annotations

from memprov.core.purge import Selectors, unfound_sessions, unmet_selectors
from memprov.core.trace import is_known_session, trace_sessions
from memprov.errors import SelectorError
from memprov.shell.port import Store
from memprov.shell.selecting import resolve

__all__ = ["require_known"]


def require_known(store: Store, selectors: Selectors) -> None:
    """Raise ``SelectorError`` when a selector meets no session that the store knows, naming the nearest that it knows.

    ``forget`` records such a name as forgotten, so that the session stays out when it comes; whoever does not mean that
    asks here first. A session is known by the catalogue, or by anything that memory still holds of it. Nothing is
    changed (I3).
    """
    selection = resolve(store, selectors)
    traced: set[str] = set()
    if unfound := unfound_sessions(selection):
        snapshot = store.snapshot(selection)
        traced = {name for name in unfound if is_known_session(trace_sessions(snapshot, [name]))}
    if unmet := unmet_selectors(store.catalogue(), selection, traced):
        raise SelectorError(f"{'; '.join(unmet)}. Nothing was changed")
