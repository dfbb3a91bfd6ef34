"""The index of the embedded store: keeping it in step with memory, searching it, and checking it.

``sync_index`` and ``rebuild_index`` are ``prepare_index`` and ``publish_index`` in one: preparing reads and embeds and
holds no lock; publishing takes a moment, under the lock, and lets through only what its fences leave open.
"""

from memprov.shell.index.embedding import Embedder
from memprov.shell.index.reconcile import ReconcileReport, reconcile
from memprov.shell.index.search import Hit, record_recall, search
from memprov.shell.index.sync import (
    IndexReport,
    PreparedIndex,
    prepare_index,
    publish_index,
    rebuild_index,
    sync_index,
    use_lancedb,
)

__all__ = [
    "Embedder",
    "Hit",
    "IndexReport",
    "PreparedIndex",
    "ReconcileReport",
    "prepare_index",
    "publish_index",
    "rebuild_index",
    "reconcile",
    "record_recall",
    "search",
    "sync_index",
    "use_lancedb",
]
