"""Real stores: where they are, what they are called, and unpacking them.

The archives are no part of this repository. They are looked for in the directory that MEMPROV_STORES names,
else in `../shared/stores` beside the repository. Where there are none, the tests that need one are not
collected at all (`conftest.py`); nothing is skipped.

An archive `NAME.tgz` unpacks to one directory `NAME` with `before/`, `after*/` and the recorded reports.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

__all__ = ["Fingerprint", "fingerprint", "store_archives", "stores_directory", "unpack"]

REPOSITORY = Path(__file__).resolve().parent.parent

Fingerprint = dict[str, tuple[int, int]]


def stores_directory() -> Path:
    """Where the archives are expected, whether they are there or not."""
    named = os.environ.get("MEMPROV_STORES")
    return Path(named) if named else REPOSITORY.parent / "shared" / "stores"


def store_archives() -> dict[str, Path]:
    """Store name -> archive, sorted by name. A directory that was named and holds nothing is a mistake."""
    directory = stores_directory()
    found = {path.stem: path for path in sorted(directory.glob("*.tgz"))}
    if not found and os.environ.get("MEMPROV_STORES"):
        raise FileNotFoundError(f"MEMPROV_STORES names {directory}, where there is no store archive")
    return found


def unpack(archive: Path, into: Path) -> Path:
    """Unpack one archive below `into` and return its top directory."""
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    (top,) = into.iterdir()
    return top


def fingerprint(top: Path) -> Fingerprint:
    """Size and modification time of every file below `top`: enough to see that one was touched."""
    files = (path for path in sorted(top.rglob("*")) if not path.is_dir())
    stats = ((path.relative_to(top).as_posix(), path.lstat()) for path in files)
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats}
