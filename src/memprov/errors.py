"""One small tree of exceptions, by whose fault it is.

``InputError`` is the caller's to mend, ``RefusedError`` means that memprov declined and nothing was changed,
``PartialError`` means that work began and did not finish. Every class carries the exit code of the command line.
Messages name places (paths, keys, ids) and never contain memory text.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ConflictError",
    "CorruptStoreError",
    "InputError",
    "LockHeldError",
    "MemprovError",
    "NameNotFoundError",
    "PartialError",
    "PolicyError",
    "RefusedError",
    "SchemaError",
    "SelectorError",
    "StalePlanError",
    "StaleStateError",
    "StoreNotFoundError",
]


class MemprovError(Exception):
    """The root of everything memprov raises on purpose."""

    exit_code: ClassVar[int] = 1
    #: whether something may have been changed before it was raised
    changed: ClassVar[bool] = False


class InputError(MemprovError, ValueError):
    """An argument is wrong; it was refused before anything was read or written."""

    exit_code = 2


class SelectorError(InputError):
    """A selector is empty, blank, ``*``, holds a NUL, is no date, or none was given (D8, D15)."""


class PolicyError(InputError):
    """An admission policy has an unknown key, a value that is no string, or an unknown chat type (D15)."""


class StoreNotFoundError(InputError):
    """There is no store, agent or workspace at the place that was named."""


class NameNotFoundError(InputError):
    """There is no entry, session or line of the name that was asked for. To exist, and nothing to be known of it, is an
    answer.
    """


class RefusedError(MemprovError):
    """memprov declined to go on; nothing was changed."""

    exit_code = 3


class SchemaError(RefusedError):
    """A database has a schema this version does not know, or needs an extension that cannot be loaded."""


class CorruptStoreError(RefusedError):
    """A database or a row is damaged; it is never taken for empty."""


class LockHeldError(RefusedError):
    """Another process holds the workspace lock (``MEMORY_WORKSPACE_LOCK_HELD``)."""

    code: ClassVar[str] = "MEMORY_WORKSPACE_LOCK_HELD"


class StalePlanError(RefusedError):
    """A saved plan no longer describes what the purge would do (docs: Saved plans)."""


class StaleStateError(RefusedError):
    """The store kept changing while the purge was being planned; re-planning is bounded."""


class PartialError(MemprovError):
    """The purge stopped part-way. Running the same command again is safe and finishes it."""

    changed = True

    def __init__(self, message: str, *, remaining: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: what was not done, one line for each effect
        self.remaining = remaining


class ConflictError(PartialError):
    """A file is no longer what the plan was made from; it was left as it is."""
