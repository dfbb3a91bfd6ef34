"""What an agent may be called (docs: Agent ids)."""

from __future__ import annotations

import re

from memprov.errors import InputError

__all__ = ["agent_id_of"]

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def agent_id_of(name: str) -> str:
    """The id under which an agent's memory is kept: its name in lower case.

    What is no name is refused and never mended, since a mended name is another agent's (F40). Raises ``InputError``.
    """
    given: object = name
    lowered = given.lower() if isinstance(given, str) and given.isascii() else ""
    if not _AGENT_ID.fullmatch(lowered):
        raise InputError(
            f"{name!r} is no agent id: up to 64 letters, digits, '_' and '-', of which the first is a letter or digit"
        )
    return lowered
