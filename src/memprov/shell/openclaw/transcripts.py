"""Reading transcripts: of selected sessions for what they wrote and said, of archives for what they are.

Everything is unpacked in memory and nothing is restored (D20): a session in cold storage stays there. A transcript that
cannot be read is named, and lines of it that cannot be read are counted, since what they hold is then unknown.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, frozen

from memprov.core.text import session_id_from_file_name
from memprov.core.writing import Message, message_from_event
from memprov.shell.cells import Value, is_storable, text
from memprov.shell.openclaw.packed import Allowance, lines
from memprov.shell.openclaw.sessions import ArchiveRow
from memprov.shell.openclaw.values import Json, json_value, member, object_of
from memprov.shell.sqlite import Reader

__all__ = ["ArchiveFile", "Messages", "Record", "archive_files", "read_archive_row", "read_file", "read_window"]

_JSON_BLANKS = " \t\n\r"


@frozen
class ArchiveFile:
    """An archived transcript that lies beside the session store."""

    session_id: str
    path: str
    modified_ms: int


#: A record of a transcript, or ``None`` for a line of it that could not be read.
Record = Json | None


@define
class Messages:
    """The messages among the records of a transcript, and what was lost: lines that are no JSON, and the rest of it.

    A line that cannot be read may have been a write, or something that was said: it is counted, and never passed over
    silently (F07). What could be read before a failure counts.
    """

    records: Iterator[Record]
    lost: int = 0
    failure: OSError | None = None

    def __iter__(self) -> Iterator[Message]:
        try:
            for number, record in enumerate(self.records, 1):
                if record is None:
                    self.lost += 1
                else:
                    yield message_from_event(record, number)
        except OSError as error:
            self.failure = error


def read_window(reader: Reader, session_id: str, directories: Sequence[str]) -> Iterator[Record]:
    """The events of a window, from the table or from cold storage (a file below one of ``directories``).

    An id that is no valid text (a damaged cell) is that of no transcript.
    """
    if not is_storable(session_id):
        return
    rows = reader.rows(
        "transcript_events",
        "session_id seq",
        "event_json event_zstd",
        where="WHERE session_id = ? ORDER BY seq",
        bindings=(session_id,),
    )
    allowance = Allowance()
    for _, _, event, packed in rows:
        whole = [text(event)] if event is not None else lines(io.BytesIO(_bytes(packed)), allowance, packed=True)
        yield from _records(["\n".join(whole)])
    cold = reader.rows(
        "session_transcript_cold_archives",
        "session_id archive_name",
        "archive_blob",
        where="WHERE session_id = ?",
        bindings=(session_id,),
    )
    for _, name, blob in cold:
        yield from _cold_events(_cold(text(name), blob, directories, allowance))


def read_archive_row(reader: Reader, archive: ArchiveRow) -> Iterator[Record]:
    """The records of an archive that the database holds."""
    rows = reader.rows(
        "session_transcript_archives",
        "session_id generation",
        "archive_blob encoding",
        where="WHERE session_id = ? AND generation = ?",
        bindings=(archive.session_id, archive.generation),
    )
    for _, _, blob, encoding in rows:
        yield from _records(lines(io.BytesIO(_bytes(blob)), Allowance(), packed=encoding == "zstd"))


def read_file(path: str) -> Iterator[Record]:
    """The records of a transcript file, packed or not."""
    with open(path, "rb") as file:
        yield from _records(lines(file, Allowance(), packed=path.endswith(".zst")))


def archive_files(directories: Iterable[str], rows: Iterable[ArchiveRow]) -> Iterator[ArchiveFile]:
    """The archives in the session directories; a row knows whose a file is better than its name does."""
    owners = {row.name: row.session_id for row in rows}
    for directory in directories:
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = entry.name
            if ".jsonl." not in name or not entry.is_file():
                continue
            session_id = owners.get(name) or session_id_from_file_name(name)
            if session_id is not None:
                yield ArchiveFile(session_id, entry.path, entry.stat().st_mtime_ns // 1_000_000)


def _cold(name: str, blob: Value, directories: Sequence[str], allowance: Allowance) -> Iterator[Record]:
    if isinstance(blob, bytes):
        yield from _records(lines(io.BytesIO(blob), allowance, packed=True))
        return
    paths = (os.path.join(directory, "cold", os.path.basename(name)) for directory in directories)
    found = next((path for path in paths if os.path.isfile(path)), None)
    if found is None:
        raise FileNotFoundError(f"its cold archive {name} is missing")
    with open(found, "rb") as file:
        yield from _records(lines(file, allowance, packed=found.endswith(".zst")))


def _cold_events(records: Iterable[Record]) -> Iterator[Record]:
    """The events in a cold archive, which keeps each as a row of the table."""
    for record in records:
        if record is None:
            yield None
        elif record.get("kind") == "event":
            yield from _records([member(object_of(record.get("row")), "event_json")])


def _records(source: Iterable[str]) -> Iterator[Record]:
    """The objects among JSON lines. What is JSON and no object is no event, and nothing is lost with it."""
    for line in source:
        if not line.strip(_JSON_BLANKS):
            continue
        try:
            record = object_of(json_value(line))
        except ValueError:
            yield None
        else:
            if record:
                yield record


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else text(value).encode("utf-8", "surrogateescape")
