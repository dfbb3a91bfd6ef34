"""Tools for testing a program that keeps memory, for users of memprov as well as for memprov itself.

``synthetic_snapshot`` makes the memory of any number of sessions, ``synthetic_sessions`` their catalogue, and
``write_openclaw_store`` puts both on disk in the form of OpenClaw 2026.9.6. All of it is made up and reproducible.

This package may import ``memprov.core`` and ``memprov.shell``; neither of them may import it, so that no part of the
library depends on made-up data.
"""

from memprov.testing.corpora import synthetic_snapshot
from memprov.testing.embedding import ToyEmbedder
from memprov.testing.openclaw_store import write_openclaw_store
from memprov.testing.sessions import synthetic_sessions

__all__ = ["ToyEmbedder", "synthetic_sessions", "synthetic_snapshot", "write_openclaw_store"]
