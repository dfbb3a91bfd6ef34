"""Testifying to a purge: what was seen before it, what is left after it, and the receipt."""

from __future__ import annotations

import platform
from importlib.metadata import version

import apsw
from attrs import evolve, frozen

from memprov.core.proof import Control, NeedleKind, NeedleSet, Receipt, Verification, attested
from memprov.core.purge import PurgePlan
from memprov.errors import InputError
from memprov.shell.port import Attesting, ProvableStore, Store, TranscriptReader
from memprov.shell.proof.scan import scan_store
from memprov.shell.proof.sources import look_for

__all__ = ["Before", "attest", "look_before"]


@frozen
class Before:
    """What a scan saw before a purge. Of a text that it could not see then, not seeing it later proves nothing."""

    store: ProvableStore
    needles: NeedleSet
    doubts: tuple[str, ...]
    control: Control

    def verify(self) -> Verification:
        """What the same scan sees now."""
        seen = scan_store(self.store.identity, self.needles, self.doubts)
        return evolve(seen, controls=(*seen.controls, self.control))


def look_before(store: Store, session_ids: frozenset[str], reader: TranscriptReader | None = None) -> Before:
    """Look for the sessions once before they are forgotten. Raises ``InputError`` for a store that cannot say what was
    said.
    """
    if not isinstance(store, ProvableStore):
        raise InputError("this store cannot say what was said in a session, so nothing can be proven of it")
    looked = look_for(store, session_ids, reader=reader)
    found = {hit.needle for hit in scan_store(store.identity, looked.needles).hits}
    kept = tuple(n for n in looked.needles.needles if n.kind is NeedleKind.ID or n.name in found)
    seen = evolve(looked.needles, needles=kept)
    return Before(store, seen, looked.doubts, Control("texts seen before the purge", looked.needles.texts, seen.texts))


def attest(writer: Attesting, plan: PurgePlan, before: Before | None) -> Receipt:
    """Append the receipt of a purge that has ended; with ``before``, after looking once more.

    A purge ends only when planning again has found nothing to remove.
    """
    draft = attested(
        plan,
        nothing_left=True,
        erasure=writer.erasures[-1] if writer.erasures else None,
        verification=None if before is None else before.verify(),
        versions=_versions(),
    )
    return writer.attest(draft, plan.selection.session_ids)


def _versions() -> dict[str, str]:
    return {
        "memprov": version("memprov"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
