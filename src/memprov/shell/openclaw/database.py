"""The former place of ``memprov.shell.sqlite``."""

from memprov.shell.sqlite import Access, Database, OrdinaryAccess, QuietAccess, Reader, explained, writing

__all__ = ["Access", "Database", "OrdinaryAccess", "QuietAccess", "Reader", "writing"]

_explained = explained
