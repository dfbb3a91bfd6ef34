"""A real embedding model, so that nothing depends on how the toy one counts words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import wordllama
from numpy.typing import NDArray

from memprov.core.index import EmbedderIdentity
from memprov.shell.index import reconcile, search, sync_index
from tests.shell.index.world import World
from tests.shell.native.loading import scratch


class WordLlamaEmbedder:
    """WordLlama with the weights and the tokenizer that its wheel carries."""

    def __init__(self) -> None:
        package = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("wordllama", "l2_supercat_256")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._model.embed(list(texts))
        return rows


@pytest.fixture(scope="module")
def model() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


NOTES = {
    "memory/drinks.md": "Every morning starts with a cup of oolong.\n",
    "memory/bike.md": "The bicycle has a flat tyre and needs a new chain.\n",
    "memory/money.md": "The quarterly tax report is due in April.\n",
    "memory/pets.md": "A grey kitten called Minka sleeps on the sofa.\n",
}


@pytest.fixture(scope="module")
def notes(model: WordLlamaEmbedder) -> Iterator[World]:
    with scratch() as directory:
        world = World.at(directory)
        for path, text in NOTES.items():
            world.write(path, text)
        sync_index(world.store, model, world.reader)
        yield world


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("What tea does she drink at breakfast?", "memory/drinks.md"),
        ("repairing my cycle wheel", "memory/bike.md"),
        ("accounting and finance deadlines", "memory/money.md"),
        ("cats and other animals at home", "memory/pets.md"),
    ],
)
@pytest.mark.parametrize("engine", ["exact", "sqlite-vec"])
def test_a_real_model_finds_by_meaning(
    notes: World, model: WordLlamaEmbedder, question: str, path: str, engine: str
) -> None:
    hits = search(notes.store, question, embedder=model, limit=20, engine=engine)  # type: ignore[arg-type]
    ranked = sorted(hits, key=lambda hit: hit.vector_rank or 99)
    assert ranked[0].path == path
    assert reconcile(notes.store).sound


def test_a_purge_removes_a_real_models_vectors_and_a_sync_does_not_bring_them_back(model: WordLlamaEmbedder) -> None:
    with scratch() as directory:
        world = World.at(directory)
        sync_index(world.store, model, world.reader)
        world.forget("s1")
        sync_index(world.store, model, world.reader)
        hits = search(world.store, "sailing to an island in Africa", embedder=model, limit=50)
        assert hits
        assert not any("zanzibar" in hit.text for hit in hits)
        assert reconcile(world.store).sound
