"""How strong the evidence for a staged entry is: six signals, their weights, and the gates before them.

Weights, half-life and thresholds are those that OpenClaw documents for its deep phase; the curves of the signals were
measured on 2026.9.6 by ranking made-up entries.
"""

from __future__ import annotations

import math
from datetime import date
from enum import StrEnum

from attrs import frozen

from memprov.core.records import OriginClass, eligible
from memprov.core.state import StagedEntry

__all__ = ["Gate", "Signals", "Thresholds", "gate", "signals_of"]

_HALF_LIFE_MS = 14 * 86_400_000


class Gate(StrEnum):
    """Why an entry is not promoted, whatever its score."""

    UNTRUSTED = "untrusted"
    NO_ORIGIN = "no origin"
    FORGOTTEN = "a source session is forgotten"
    NOT_INTERACTIVE = "not from an interactive session"
    PROMOTED = "promoted already"
    SOURCE_GONE = "its source no longer says so"
    TOO_SHORT = "too short"
    WEAK = "below the thresholds"
    NO_ROOM = "no room in the file"


@frozen
class Thresholds:
    """What an entry must reach, all of it."""

    score: float = 0.8
    signals: int = 3
    unique_queries: int = 3


@frozen
class Signals:
    """The six signals, each from 0 to 1."""

    frequency: float
    relevance: float
    diversity: float
    recency: float
    consolidation: float
    conceptual: float

    @property
    def score(self) -> float:
        """The weighted sum."""
        return (
            0.24 * self.frequency
            + 0.30 * self.relevance
            + 0.15 * self.diversity
            + 0.15 * self.recency
            + 0.10 * self.consolidation
            + 0.06 * self.conceptual
        )


def gate(entry: StagedEntry, origin_class: OriginClass | None) -> Gate | None:
    """The gate that an entry does not pass, asked before anything is scored (case D11, report B29).

    ``origin_class`` is the weakest class of the entry's origin rows, ``None`` when it has none (B17). The entry's own
    provenance must be eligible too: however often untrusted text is recalled, it is never promoted.
    """
    if origin_class is None:
        return Gate.NO_ORIGIN
    if not eligible(origin_class) or entry.provenance is None or not eligible(entry.provenance.origin_class):
        return Gate.UNTRUSTED
    return Gate.PROMOTED if entry.promoted_at_ms is not None else None


def unique_queries(entry: StagedEntry) -> int:
    """How many different questions somebody asked that found the entry; a sweep's own queries do not count."""
    if entry.user_query_hashes:
        return len(set(entry.user_query_hashes))
    return len(set(entry.query_hashes)) if entry.recall_count and not (entry.daily_count + entry.grounded_count) else 0


def signals_of(entry: StagedEntry, now_ms: int) -> Signals:
    """The signals of an entry at a moment, in epoch milliseconds."""
    count = entry.recall_count + entry.daily_count + entry.grounded_count
    age = max(now_ms - (entry.last_recalled_at_ms if entry.last_recalled_at_ms is not None else now_ms), 0)
    return Signals(
        frequency=_unit(math.log1p(count) / math.log1p(10)),
        relevance=_unit(entry.total_score / max(count, 1)),
        diversity=_unit(unique_queries(entry) / 5),
        recency=2 ** (-age / _HALF_LIFE_MS),
        consolidation=max(_spread(entry.recall_days), _unit(entry.grounded_count / 3)),
        conceptual=_unit(len(entry.concept_tags) / 6),
    )


def _spread(recall_days: tuple[str, ...]) -> float:
    """How far apart the days are on which the entry came up."""
    days = sorted({date.fromisoformat(day) for day in recall_days if _is_day(day)})
    if len(days) < 2:
        return 0.2 * len(days)
    spacing = _unit(math.log1p(len(days) - 1) / math.log1p(4))
    return 0.55 * spacing + 0.45 * _unit((days[-1] - days[0]).days / 7)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
