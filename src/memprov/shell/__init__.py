"""Everything that touches the world: snapshots are taken and effects are applied here.

What lives here: the stores, the workspace's files and locks, vectors, the runner. One module per kind of
effect, each thin: it reads what the core asks for and does what the core decided. A decision that a test
would want to reach without I/O belongs on the other side of the wall, in `memprov.core`; the core never
imports this package.
"""

__all__: list[str] = []
