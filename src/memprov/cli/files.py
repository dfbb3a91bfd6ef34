"""Files that a person names: read whole and bounded, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from memprov.errors import InputError

__all__ = ["load_file", "save_file"]


def save_file(text: str, target: str, option: str) -> None:
    """Write a file in one step; what was there before stays until then. Raises ``InputError``."""
    if not target.strip():
        raise InputError(f"{option} is blank")
    path = Path(target).resolve()
    if path.exists() and not path.is_file():
        raise InputError(f"{option} {target} is no regular file; it was left as it is")
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise InputError(f"{option} {target} cannot be written: {error.strerror}") from error


def load_file(source: str, most: int) -> str:
    """Read a file, one byte more than ``most`` at most: who parses it refuses that. Raises ``InputError``."""
    try:
        with Path(source).open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}; nothing was changed") from error
    return data.decode("utf-8", "replace")
