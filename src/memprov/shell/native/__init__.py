"""The embedded store: one directory, a ledger for each agent and one for each workspace, no server.

``open_store`` opens it. The store reads without a trace (I3), records sessions and writes for its host, and under the
workspace lock carries out the effects of a purge and of the write path.
"""

from memprov.shell.native.curated import FileRecord, ObservedWrite
from memprov.shell.native.rosters import store_agents, store_roster
from memprov.shell.native.store import NativeStore, embedded_only, open_store
from memprov.shell.native.writer import NativeWriter

__all__ = [
    "FileRecord",
    "NativeStore",
    "NativeWriter",
    "ObservedWrite",
    "embedded_only",
    "open_store",
    "store_agents",
    "store_roster",
]
