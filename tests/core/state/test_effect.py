"""One algebra of effects: every effect of every vocabulary has all its parts."""

from __future__ import annotations

from typing import get_args

import attrs
import pytest
from attrs import field, frozen

from memprov.core.index import IndexEffect
from memprov.core.purge import CutFile, DropRecall, PurgeEffect, PurgeIndex
from memprov.core.state import PARTS, Effect, MemorySnapshot, atoms
from memprov.core.writing import ReplaceText, WriteEffect

EFFECTS = sorted({*get_args(PurgeEffect), *get_args(WriteEffect), *get_args(IndexEffect)}, key=lambda e: e.__name__)


def lacking(effect: type) -> list[str]:
    """What an effect lacks of what ``state.effect`` asks for."""
    found = [name for name in ("applied_to", "words") if not callable(vars(effect).get(name))]
    if not attrs.has(effect):
        return [*found, "fields"]
    try:
        attrs.resolve_types(effect)
    except NameError:
        found.append("types")
    if effect.__setattr__ is object.__setattr__:
        found.append("frozen")
    if not (effect.__doc__ or "").strip():
        found.append("docstring")
    parted = [each for each in attrs.fields(effect) if each.metadata.get("parts")]
    return found + [f"{each.name}: parts are a tuple" for each in parted if not str(each.type).startswith("tuple")]


@pytest.mark.parametrize("effect", EFFECTS)
def test_every_effect_is_modelled_described_and_compared(effect: type) -> None:
    assert lacking(effect) == []


def test_an_effect_that_lacks_a_part_rings() -> None:
    @attrs.define
    class Careless:
        keys: str = field(default="", metadata=PARTS)

    assert lacking(Careless) == ["applied_to", "words", "frozen", "docstring", "keys: parts are a tuple"]
    assert lacking(int)[-1] == "fields"
    assert not isinstance(Careless(), Effect)


def test_independent_parts_are_compared_one_by_one_and_the_rest_as_a_whole() -> None:
    assert set(atoms(DropRecall(("a",)))) < set(atoms(DropRecall(("a", "b"))))
    assert set(atoms(PurgeIndex(("x",), ()))).isdisjoint(atoms(PurgeIndex((), (("x", "memory"),))))
    one, other = (CutFile("MEMORY.md", (), "d", "e", spans) for spans in (((0, 4),), ((0, 5),)))
    assert len(list(atoms(one))) == 1
    assert set(atoms(one)).isdisjoint(atoms(other))


def test_atoms_hold_no_memory_text() -> None:
    (atom,) = atoms(ReplaceText("MEMORY.md", None, "the spare key is under the pot"))
    assert "spare key" not in " ".join(atom)
    assert atom != next(atoms(ReplaceText("MEMORY.md", None, "another text")))


def test_an_effect_is_whatever_has_these_parts() -> None:
    @frozen
    class Nothing:
        """Do nothing."""

        def words(self) -> str:
            return "nothing"

        def applied_to(self, snapshot: MemorySnapshot) -> MemorySnapshot:
            return snapshot

    assert isinstance(Nothing(), Effect)
    assert list(atoms(Nothing())) == [("Nothing",)]
