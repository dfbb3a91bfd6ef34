"""Every decision, as pure functions on immutable values.

What lives here: the nouns, references and markers, corpus lines, lineage, selection, scrubbing, the closed
set of effects, the plans, and the report. Nothing here reads a file, a socket, the clock, the environment
or a random source, and nothing logs: texts arrive decoded, times and ids arrive as arguments. Nothing here
imports `memprov.shell`, `memprov.cli` or `memprov.testing`; `tests/test_architecture.py` and the import
contract in `pyproject.toml` hold that wall. So a plan can be computed in a notebook, twice, on any
executor, with the same bytes.
"""

__all__: list[str] = []
