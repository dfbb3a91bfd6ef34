"""The purge plan as a value: effects, report, basis, and the digest that binds a review to what is later done.

A plan holds no memory text: files are named by digests and byte ranges. As JSON it is data to compare with, never
instructions to execute (docs: Saved plans).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from enum import StrEnum
from functools import cache

import cattrs
from attrs import evolve, frozen
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from memprov.core.lineage import Basis
from memprov.core.purge.effects import Erase, PurgeEffect, PurgeIndex, RecordTombstones, apply_effects
from memprov.core.purge.report import Report
from memprov.core.purge.selection import Selection
from memprov.core.records import StoreIdentity
from memprov.core.state import Atom, MemorySnapshot, atoms
from memprov.core.text import html_table
from memprov.errors import InputError

__all__ = ["MAX_PLAN_BYTES", "Level", "PurgePlan", "apply_to_snapshot", "is_exclusion", "plan_atoms"]

#: A plan read from disk may not be larger (docs: Saved plans). The largest of a million effects is far below.
MAX_PLAN_BYTES = 1 << 28
_FORMAT = "memprov purge plan 1"


class Level(StrEnum):
    """How far a purge goes (docs: proof). ``logical``: gone from every reader. ``erase``: and from the bytes of every
    file that the store owns.
    """

    LOGICAL = "logical"
    ERASE = "erase"


@frozen
class PurgePlan:
    """What a purge does, in order. Compute one with ``plan_purge``."""

    store: StoreIdentity
    selection: Selection
    level: Level
    effects: tuple[PurgeEffect, ...]
    report: Report
    basis: Basis

    def __repr__(self) -> str:
        sessions = len(self.report.session_ids)
        return f"<PurgePlan {self.digest[:12]} ({self.level}): {sessions} sessions, {len(self.effects)} effects>"

    def _repr_html_(self) -> str:
        kinds = Counter(type(effect).__name__ for effect in self.effects)
        return html_table(f"PurgePlan {self.digest[:12]}, {self.level}", kinds.items())

    @property
    def digest(self) -> str:
        """SHA-256 over the store, the selection, the level and the effects."""
        return self.report.plan_digest

    @property
    def removes_nothing(self) -> bool:
        """Whether only tombstones, the revision, the embedding cache and freed bytes would be touched (I1)."""
        return all(is_exclusion(effect) for effect in self.effects)

    def to_json(self) -> str:
        """The plan as one JSON document, byte-equal for equal plans (I14)."""
        return json.dumps({"format": _FORMAT, **_converter().unstructure(self)}, sort_keys=True, indent=1)

    @classmethod
    def from_json(cls, text: str) -> PurgePlan:
        """Read a saved plan back. Raises ``InputError`` when it is too large, no plan, or was altered."""
        if len(text) > MAX_PLAN_BYTES:
            raise InputError(f"the plan is larger than {MAX_PLAN_BYTES} bytes; nothing was read or changed")
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
                raise InputError("this is not a memprov purge plan; nothing was changed")
            plan = _converter().structure(data, cls)
        except (ValueError, TypeError, KeyError, RecursionError, BaseValidationError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("this is not a memprov purge plan, or it is damaged; nothing was changed") from error
        if plan.digest != digest_of(plan.store, plan.selection, plan.level, plan.effects):
            raise InputError("the plan was altered: its digest does not fit its effects; make a new preview")
        return plan


def is_exclusion(effect: PurgeEffect) -> bool:
    """Whether the effect removes nothing that a reader sees: it may remain in the plan of a purge that is done (I1)."""
    return isinstance(effect, RecordTombstones | Erase) or (
        isinstance(effect, PurgeIndex) and not effect.chunk_ids and not effect.sources
    )


def digest_of(store: StoreIdentity, selection: Selection, level: Level, effects: tuple[PurgeEffect, ...]) -> str:
    """The digest of a plan's content; the report is derived from it and is left out."""
    data = [_converter().unstructure(value) for value in (store, selection, level)]
    data.append(_converter().unstructure(list(effects), list[PurgeEffect]))
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def sealed(plan: PurgePlan) -> PurgePlan:
    """The plan with its digest written into its report."""
    digest = digest_of(plan.store, plan.selection, plan.level, plan.effects)
    return evolve(plan, report=evolve(plan.report, plan_digest=digest))


def plan_atoms(plan: PurgePlan) -> frozenset[Atom]:
    """The plan's effects in their smallest parts, so that an interrupted purge's plan is a subset of the saved one."""
    return frozenset(atom for effect in plan.effects for atom in atoms(effect))


def apply_to_snapshot(snapshot: MemorySnapshot, plan: PurgePlan) -> MemorySnapshot:
    """What the snapshot would be after the plan: the model that both stores are tested against (I15), and a notebook's
    answer to "what would be left?". Pure.
    """
    return apply_effects(snapshot, plan.effects)


@cache
def _converter() -> cattrs.Converter:
    converter = make_converter(forbid_extra_keys=True)
    configure_tagged_union(PurgeEffect, converter, tag_name="effect")
    return converter
