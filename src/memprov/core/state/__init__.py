"""What a store holds, as one value: read by a shell, made by a notebook, changed only by making another.

``snapshot`` is all that a purge looks at, ``staging`` what ingestion goes on from. Both are plain frozen fields with a
public constructor; a store that cannot fill one of them says so and never leaves it empty instead. ``effect`` says what
every change to a store is, whichever plan it belongs to.
"""

from memprov.core.state.effect import PARTS, Atom, Effect, after_all, atoms
from memprov.core.state.siblings import Sibling, SiblingIndex, sibling_views
from memprov.core.state.snapshot import Chunk, ChunkTable, MemorySnapshot, RetainedText, StaleCopy
from memprov.core.state.staging import (
    Checkpoint,
    IngestState,
    StagedEntry,
    evicted_entries,
    evicted_scopes,
    outdated_hashes,
)

__all__ = [
    "PARTS",
    "Atom",
    "Checkpoint",
    "Chunk",
    "ChunkTable",
    "Effect",
    "IngestState",
    "MemorySnapshot",
    "RetainedText",
    "Sibling",
    "SiblingIndex",
    "StagedEntry",
    "StaleCopy",
    "after_all",
    "atoms",
    "evicted_entries",
    "evicted_scopes",
    "outdated_hashes",
    "sibling_views",
]
