"""LanceDB tables among the files: their strings as values, since a column may be encoded or compressed on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from attrs import evolve

from memprov.shell.proof.files import FileAt

__all__ = ["lance_tables", "lance_values"]

_VERSIONS = ".lance/_versions/"


def lance_tables(files: Iterable[FileAt]) -> Iterator[tuple[FileAt, str]]:
    """The folders of LanceDB databases among the files, each with the name of a table in it."""
    seen: set[tuple[str, str]] = set()
    for file in files:
        head, mark, _ = file.full.partition(_VERSIONS)
        if not mark or (key := (os.path.dirname(head), os.path.basename(head))) in seen:
            continue
        seen.add(key)
        path = os.path.dirname(file.path.partition(_VERSIONS)[0])
        yield evolve(file, full=key[0], path=path), key[1]


def lance_values(folder: str, name: str) -> Iterator[bytes]:
    """Every string and binary value of a table. Raises ``OSError`` for one that cannot be decoded."""
    try:
        import lancedb  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise OSError("a LanceDB table may be encoded; install memprov[lancedb] to read it") from error
    try:
        table = lancedb.connect(folder).open_table(name).to_arrow()
        for field in table.schema:
            if str(field.type) in ("string", "large_string", "binary", "large_binary"):
                for value in table.column(field.name).to_pylist():
                    if value is not None:
                        yield value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    except (OSError, RuntimeError, ValueError) as error:
        raise OSError(f"the LanceDB table {name} cannot be decoded ({type(error).__name__})") from error
