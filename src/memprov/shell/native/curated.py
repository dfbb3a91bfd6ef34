"""Who wrote which memory file: observed writes, chained by the digests of what they left (docs: Trust, Curated writes).

A write is reserved before the file is touched and settled when it is done; one that failed without changing the file is
released (B28). The record of a file is its write that was settled last. Each names the digest that it found, so that an
edit by an unknown hand between two of them breaks the chain, is told as the reason, and leaves the file untrusted until
its owner attests it (B26). Nothing here raises trust: a reservation that nobody settled, after a crash, counts as a
write to be reviewed and as no link of the chain.

Every write stays recorded, not only a file's last one: whoever forgets a session wants to review all that it wrote.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

import apsw
from attrs import define, field, frozen

from memprov.core.records import (
    ArtifactClass,
    ArtifactReason,
    ArtifactRecord,
    CuratedWrite,
    OriginClass,
    artifact_class,
    path_class,
    weakest,
)
from memprov.core.text import to_bytes, to_text
from memprov.core.writing import RecordArtifact, ReleaseArtifact
from memprov.errors import InputError
from memprov.shell.cells import from_raw, integer, text
from memprov.shell.statements import json_array, transaction
from memprov.shell.workspace.listing import refusal
from memprov.shell.workspace.tree import Calls, Tree, parts_of, shown

__all__ = [
    "FileRecord",
    "ObservedWrite",
    "Writing",
    "file_digest",
    "memory_path",
    "read_file_records",
    "read_ledger_writes",
    "record_artifact",
    "release_artifact",
    "relink",
]

#: Opens the shared ledger for writing.
Opener = Callable[[], AbstractContextManager[apsw.Connection]]


@frozen
class FileRecord:
    """What is recorded of a memory file. ``edited`` says that it is not what was last seen to be written."""

    path: str
    record: ArtifactRecord
    reason: ArtifactReason | None
    session_id: str | None
    observed_at_ms: int
    edited: bool


@frozen
class Writing:
    """Whose write it is, and what the writer is worth."""

    agent_id: str
    session_id: str
    session_key: str | None
    writer: OriginClass
    attested: bool = False


def memory_path(workspace: str, path: str | os.PathLike[str]) -> str:
    """The one name of a memory file, relative to the real workspace, whatever spelling or link led to it (B28).

    Raises ``InputError`` for what is no memory file that an agent writes.
    """
    named = os.fspath(path)
    if not named or "\0" in named:
        raise InputError(f"{named!r} is no path")
    real = os.path.realpath(os.path.join(os.fsencode(workspace), to_bytes(named)))
    relative = to_text(os.path.relpath(real, os.path.realpath(os.fsencode(workspace))))
    if path_class(relative) is not OriginClass.AGENT:
        raise InputError(f"{shown(named)} is no memory file of the workspace, so writes to it are not recorded")
    return relative


def file_digest(workspace: str, path: str, calls: Calls) -> str | None:
    """The digest of a file's bytes; ``None`` where there is no such file."""
    *above, name = parts_of(path)
    try:
        with Tree(workspace, calls) as tree, tree.directory(tuple(above)) as directory:
            content = tree.content(directory, name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refusal(path, error) from error
    return None if content is None else content.digest


@define
class ObservedWrite:
    """One write of a memory file, from its reservation to its end. ``store.observe_write`` makes one.

    As a context manager it settles the write when its block ends, and releases it when the block raises and the file is
    still the one that it was. ``origin_class`` and ``reason`` are what the file is worth with this write.
    """

    path: str
    origin_class: OriginClass
    reason: ArtifactReason | None
    _writing: Writing = field(repr=False)
    hash_before: str | None = field(repr=False)
    _open: Opener = field(repr=False)
    _digest: Callable[[], str | None] = field(repr=False)
    _clock: Callable[[], float] = field(repr=False)
    _number: int | None = field(repr=False)

    @classmethod
    def _reserve(
        cls,
        path: str,
        writing: Writing,
        opener: Opener,
        digest: Callable[[], str | None],
        clock: Callable[[], float],
    ) -> ObservedWrite:
        """Record that the write is about to happen."""
        hash_before = digest()
        with opener() as connection, transaction(connection):
            verdict = artifact_class(
                writing.writer, _record_of(connection, path), hash_before, attested=writing.attested
            )
            number = _insert(connection, path, writing, verdict, hash_before, None, int(clock() * 1000))
        return cls(path, verdict.origin_class, verdict.reason, writing, hash_before, opener, digest, clock, number)

    def done(self) -> None:
        """The write has happened: record what the file is now. Said again, it changes nothing."""
        if self._number is None:
            return
        hash_after = self._digest()
        with self._open() as connection, transaction(connection):
            if hash_after is None:  # the file was deleted, and its records go with it (docs: Curated writes)
                connection.execute("DELETE FROM writes WHERE path = CAST(? AS TEXT)", (to_bytes(self.path),))
            else:
                self._settle(connection, hash_after)
        self._number = None

    def failed(self) -> None:
        """The write did not happen: release it. Where the file changed all the same, it counts as done."""
        if self._number is None:
            return
        if self._digest() != self.hash_before:
            self.done()
            return
        with self._open() as connection, transaction(connection):
            connection.execute("DELETE FROM writes WHERE write_id = ?", (self._number,))
        self._number = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.done()
        else:
            self.failed()

    def _settle(self, connection: apsw.Connection, hash_after: str) -> None:
        # Somebody may have settled a write of this file in between; the file is worth the less of both verdicts.
        writing, earlier = self._writing, _record_of(connection, self.path)
        verdict = artifact_class(writing.writer, earlier, self.hash_before, attested=writing.attested)
        if weakest((verdict.origin_class, self.origin_class)) is not self.origin_class:
            self.origin_class, self.reason = verdict.origin_class, verdict.reason
        connection.execute("DELETE FROM writes WHERE write_id = ?", (self._number,))
        _insert(
            connection,
            self.path,
            writing,
            ArtifactClass(self.origin_class, self.reason),
            self.hash_before,
            hash_after,
            int(self._clock() * 1000),
        )


def record_artifact(connection: apsw.Connection, effect: RecordArtifact, agent_id: str, now_ms: int) -> None:
    """Carry out the effect: the file's record is this one from now on. Equal to the one that is there, it stays."""
    path = to_bytes(effect.path)
    latest = connection.execute(
        "SELECT file_hash, origin_class, agent_id, session_id, session_key FROM writes "
        "WHERE path = CAST(? AS TEXT) AND file_hash IS NOT NULL ORDER BY write_id DESC LIMIT 1",
        (path,),
    )
    wanted = (effect.file_hash, effect.origin_class.value, agent_id, effect.session_id, effect.session_key)
    if next(iter(latest), None) == wanted:
        return
    writing = Writing(agent_id, effect.session_id or "", effect.session_key, effect.origin_class)
    _insert(connection, effect.path, writing, ArtifactClass(effect.origin_class), None, effect.file_hash, now_ms)


def release_artifact(connection: apsw.Connection, effect: ReleaseArtifact) -> None:
    """Take the file's record back if it is still of that content."""
    connection.execute(
        """
        DELETE FROM writes WHERE file_hash = :hash AND write_id = (
            SELECT max(write_id) FROM writes WHERE path = CAST(:path AS TEXT) AND file_hash IS NOT NULL)
        """,
        {"hash": effect.file_hash, "path": to_bytes(effect.path)},
    )


def relink(connection: apsw.Connection, paths: tuple[str, ...], before: str, after: str) -> None:
    """Let the chain of a file go on through what memprov itself does to it: that is no edit by an unknown hand.

    The class stays what it was. A purge only takes text out, and promotion lets nothing in that is untrusted.
    """
    connection.executemany(
        "UPDATE writes SET file_hash = ? WHERE path = CAST(? AS TEXT) AND file_hash = ?",
        [(after, to_bytes(path), before) for path in paths],
    )


def read_ledger_writes(
    connection: apsw.Connection,
    agent_id: str,
    session_ids: Iterable[str] | None = None,
    session_keys: Iterable[str] = (),
) -> tuple[CuratedWrite, ...]:
    """Which files this agent's sessions wrote, and when last, the attempts that were never settled included.

    With ids, only the writes of sessions known by one of them, or only by one of the keys.
    """
    chosen = """
        AND (session_id IN (SELECT value FROM json_each(:ids))
             OR (session_id IS NULL AND session_key IN (SELECT value FROM json_each(:keys))))"""
    rows = connection.execute(
        f"""
        SELECT CAST(path AS BLOB), max(observed_at_ms), session_id, session_key FROM writes
        WHERE agent_id = :agent AND (session_id IS NOT NULL OR session_key IS NOT NULL)
        {"" if session_ids is None else chosen}
        GROUP BY path, session_id, session_key ORDER BY path, max(observed_at_ms), session_id, session_key
        """,
        {"agent": agent_id}
        if session_ids is None
        else {"agent": agent_id, "ids": json_array(session_ids), "keys": json_array(session_keys)},
    )
    return tuple(
        CuratedWrite(from_raw(path), integer(observed), session_id and text(session_id), key and text(key))
        for path, observed, session_id, key in rows
    )


def read_file_records(connection: apsw.Connection) -> tuple[tuple[str, ArtifactRecord, str, str, int], ...]:
    """The record of each file: path, class and digest, reason, session, time."""
    rows = connection.execute(
        """
        SELECT CAST(path AS BLOB), origin_class, file_hash, reason, session_id, observed_at_ms FROM writes
        WHERE write_id IN (SELECT max(write_id) FROM writes WHERE file_hash IS NOT NULL GROUP BY path) ORDER BY path
        """
    )
    return tuple(
        (
            from_raw(path),
            ArtifactRecord(OriginClass(text(kind)), text(file_hash)),
            text(why),
            text(session),
            integer(at),
        )
        for path, kind, file_hash, why, session, at in rows
    )


def _record_of(connection: apsw.Connection, path: str) -> ArtifactRecord | None:
    rows = connection.execute(
        "SELECT origin_class, file_hash FROM writes WHERE path = CAST(? AS TEXT) AND file_hash IS NOT NULL "
        "ORDER BY write_id DESC LIMIT 1",
        (to_bytes(path),),
    )
    return next((ArtifactRecord(OriginClass(text(kind)), text(file_hash)) for kind, file_hash in rows), None)


def _insert(
    connection: apsw.Connection,
    path: str,
    writing: Writing,
    verdict: ArtifactClass,
    hash_before: str | None,
    file_hash: str | None,
    now_ms: int,
) -> int:
    """A row at the end; write ids rise in the order of settling."""
    connection.execute(
        "INSERT INTO writes (path, agent_id, session_id, session_key, origin_class, reason, hash_before, file_hash, "
        "observed_at_ms) VALUES (CAST(? AS TEXT), ?, nullif(?, ''), ?, ?, ?, ?, ?, ?)",
        (
            to_bytes(path),
            writing.agent_id,
            writing.session_id,
            writing.session_key,
            verdict.origin_class.value,
            verdict.reason.value if verdict.reason else None,
            hash_before,
            file_hash,
            now_ms,
        ),
    )
    return connection.last_insert_rowid()
