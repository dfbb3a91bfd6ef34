"""What an effect is: one change to a store, as a value that is compared, described, modelled and carried out.

There are three vocabularies, one for each kind of plan (``purge.effects``, ``writing.effects``, ``index.effects``), and
one algebra. An effect is *idempotent*: carried out again, it changes nothing (I5). It is *ordered*: its place in a plan
is part of the plan's meaning. It is *modelled*: ``applied_to`` says what it does to a snapshot, and both stores are
tested against that (I15). It is *described*: ``words`` names what is done and where, without memory text. It is
*compared* by its ``atoms``, so that what is left of an interrupted plan is seen to be part of it.

To add an effect: its class with these parts, its place in the vocabulary's union, and a case in each store, which the
type checker asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from attrs import Attribute, AttrsInstance, fields

from memprov.core.state.snapshot import MemorySnapshot
from memprov.core.text import to_bytes

__all__ = ["PARTS", "Atom", "Effect", "after_all", "atoms"]

#: The smallest part of an effect: the effect's name, then what is done to what.
Atom = tuple[str, ...]

#: The metadata of a field whose items are done independently: of an interrupted effect, some of them are left.
PARTS = MappingProxyType({"parts": True})


@runtime_checkable
class Effect(Protocol):
    """One change to a store (see the module)."""

    def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
        """The snapshot once this is done. Pure; what is named here and absent there is no error."""

    def words(self) -> str:
        """What is done and where, in a few words and without memory text."""


def atoms(effect: AttrsInstance) -> Iterator[Atom]:
    """The effect in its smallest parts: one for each item of its ``PARTS`` fields, or else all of it at once."""
    described: tuple[Attribute[object], ...] = fields(type(effect))
    name = type(effect).__name__
    whole = tuple(_shown(effect, each) for each in described if not each.metadata.get("parts"))
    several = [each for each in described if each.metadata.get("parts")]
    if not several:
        yield (name, *whole)
    for each in several:
        for item in getattr(effect, each.name):
            yield (name, *((each.name,) if len(several) > 1 else ()), _text(item), *whole)


def after_all(snapshot: MemorySnapshot, effects: Iterable[Effect]) -> MemorySnapshot:
    """The snapshot once all of these are done, in order. Pure. Raises what the model of an effect raises."""
    for effect in effects:
        snapshot = effect.applied_to(snapshot)
    return snapshot


def _shown(effect: AttrsInstance, each: Attribute[object]) -> str:
    text = _text(getattr(effect, each.name))
    return text if each.repr else hashlib.sha256(to_bytes(text)).hexdigest()


def _text(value: object) -> str:
    return str(value) if isinstance(value, str) else repr(value)
