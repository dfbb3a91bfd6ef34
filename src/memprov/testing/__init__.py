"""Tools for testing a program that keeps memory, for users of memprov as well as for memprov itself.

What lives here: synthetic corpora, Hypothesis strategies, a deterministic embedder. This package may import
`memprov.core` and `memprov.shell`; neither of them may import it, so that no part of the library depends
on Hypothesis or on made-up data.
"""

__all__: list[str] = []
