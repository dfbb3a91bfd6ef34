"""The command line: what a person types, and what they read. The library does not import it.

``commands`` is the group; each command has a module of its own, takes its store from ``options``, puts its answer into
words with ``reading``, and prints through ``printing``. ``demo`` is the whole path in one.
Nothing here decides: what a command shows, a public call returned.
"""

from memprov.cli.commands import main

__all__ = ["main"]
