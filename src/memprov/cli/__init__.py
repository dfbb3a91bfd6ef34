"""The command line: what a person types, and what they read. The library does not import it.

``commands`` parses arguments and prints, ``reading`` puts a report into words, ``demo`` is the whole path in one.
Nothing here decides: what a command shows, a public call returned.
"""

from memprov.cli.commands import main

__all__ = ["main"]
