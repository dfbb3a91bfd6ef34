"""What a host says of when its transcripts changed, and which of these changes were followed.

A transcript has a *version*, which rises when the host says that it changed, and when anything becomes known of its
session, or of one that it descends from, that could decide otherwise about it. Whoever has followed a transcript to its
end, or decided against it, leaves a *mark* of the version and of what the decision rested on. Where the mark is
still the same there is nothing to do, so the transcript is not asked for.

A mark is only ever set after the work that it speaks of is durable, and holds no text. A tombstone takes the marks of
its session away, in its own transaction (I4); a session of which the host says nothing has no row here and is always
looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import apsw

from memprov.shell.cells import text
from memprov.shell.statements import batches, transaction

__all__ = [
    "Followed",
    "catalogue_version",
    "forget_marks",
    "mark_followed",
    "raise_versions",
    "say_changed",
    "unfollowed",
]

Followed = Literal["ingested", "indexed"]

_DESCENDANTS = """
WITH RECURSIVE line (key) AS (
    SELECT session_key FROM sessions WHERE session_id = :id AND session_key IS NOT NULL
    UNION
    SELECT s.session_key FROM line JOIN sessions AS s ON s.parent_key = line.key WHERE s.session_key IS NOT NULL
)
"""


def say_changed(connection: apsw.Connection, session_id: str, changed: str) -> None:
    """Note what the host says; another word than before is a new version."""
    connection.execute(
        "INSERT INTO transcripts (session_id, changed, version) VALUES (?, ?, 1) "
        "ON CONFLICT (session_id) DO UPDATE SET changed = excluded.changed, version = version + 1 "
        "WHERE changed <> excluded.changed",
        (session_id, changed),
    )


def raise_versions(connection: apsw.Connection, session_id: str) -> None:
    """What is known of this session changes: it and what descends from it must be decided upon once more (B14)."""
    connection.execute(
        f"{_DESCENDANTS} UPDATE transcripts SET version = version + 1 WHERE session_id = :id OR session_id IN "
        "(SELECT s.session_id FROM line JOIN sessions AS s ON s.parent_key = line.key)",
        {"id": session_id},
    )
    connection.execute(
        "INSERT INTO meta VALUES ('catalogue', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def catalogue_version(connection: apsw.Connection) -> str:
    """Another after everything that became known of any session."""
    return next((text(row[0]) for row in connection.execute("SELECT value FROM meta WHERE name = 'catalogue'")), "0")


def unfollowed(
    connection: apsw.Connection, purpose: Followed, basis: str, session_ids: Iterable[str] | None = None
) -> dict[str, str | None]:
    """The sessions, or those among these, that must be looked at: id -> the mark for having done so.

    ``None`` stands for a session of which the host says nothing. ``basis`` is whatever else the decision rests on.
    """
    columns = "s.session_id, t.version || ' ' || :basis"
    joined = f"FROM sessions AS s LEFT JOIN transcripts AS t ON t.session_id = s.session_id WHERE t.{purpose} IS NOT "
    stale = f"SELECT {columns} {joined} t.version || ' ' || :basis OR t.version IS NULL"
    if session_ids is None:
        return {text(name): mark and text(mark) for name, mark in connection.execute(stale, {"basis": basis})}
    found: dict[str, str | None] = {}
    for batch in batches(session_ids):
        rows = connection.execute(
            f"SELECT * FROM ({stale}) WHERE session_id IN (SELECT value FROM json_each(:ids))",
            {"basis": basis, "ids": batch},
        )
        found.update((text(name), mark and text(mark)) for name, mark in rows)
    return found


def mark_followed(connection: apsw.Connection, purpose: Followed, marks: Mapping[str, str]) -> None:
    """Note that these sessions were looked at, under the marks that ``unfollowed`` gave for them."""
    with transaction(connection):
        connection.executemany(
            f"UPDATE transcripts SET {purpose} = ? WHERE session_id = ?", ((mark, name) for name, mark in marks.items())
        )


def forget_marks(connection: apsw.Connection, session_ids: Iterable[str]) -> None:
    """Take the marks away, and let none that is under way become true."""
    for batch in batches(session_ids):
        connection.execute(
            "UPDATE transcripts SET ingested = NULL, indexed = NULL, version = version + 1 "
            "WHERE session_id IN (SELECT value FROM json_each(?))",
            (batch,),
        )
