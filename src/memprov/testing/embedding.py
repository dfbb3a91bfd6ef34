"""A deterministic embedder that needs no model: texts that share words have vectors that are close."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from memprov.core.index import EmbedderIdentity

__all__ = ["ToyEmbedder"]

_WORD = re.compile(r"\w+")


@define
class ToyEmbedder:
    """A bag of hashed words as a vector of ``dimensions`` numbers. ``calls`` counts the texts that it was given."""

    dimensions: int = 64
    model: str = "toy"
    calls: int = field(default=0, init=False)
    _known: dict[str, NDArray[np.float32]] = field(factory=dict, init=False, repr=False)

    @property
    def identity(self) -> EmbedderIdentity:
        """Of the provider ``memprov``."""
        return EmbedderIdentity("memprov", f"{self.model}-{self.dimensions}")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row for each text: the sum of the vectors of its words."""
        self.calls += len(texts)
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(text.casefold())
            if words:
                row[:] = np.sum([self._vector(word) for word in words], axis=0)
        return rows

    def _vector(self, word: str) -> NDArray[np.float32]:
        known = self._known.get(word)
        if known is None:
            seed = int.from_bytes(hashlib.sha256(f"{self.model}:{word}".encode()).digest()[:8], "big")
            known = np.random.default_rng(seed).standard_normal(self.dimensions).astype(np.float32)
            self._known[word] = known
        return known
