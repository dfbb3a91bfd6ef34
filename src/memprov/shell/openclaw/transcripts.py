"""Reading transcripts, of selected sessions for their writes to memory files, of archives for what they are.

Everything is unpacked in memory and nothing is restored (D20): a session in cold storage stays there. What a transcript
says is only reported for review, so a line that cannot be read is no error; a whole transcript that cannot be read is
named, since its writes are then unknown.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import IO

from attrs import define, field, frozen

from memprov.core.records import is_dream_narrative
from memprov.core.text import session_id_from_file_name, to_text
from memprov.errors import RefusedError
from memprov.shell.openclaw.sessions import ArchiveRow, is_cron_run
from memprov.shell.openclaw.values import Json, Value, json_value, member, milliseconds, object_of, text
from memprov.shell.sqlite import Reader

__all__ = ["ArchiveFile", "Findings", "Roots", "archive_files", "read_archive_row", "read_file", "read_window"]

_TOOLS = frozenset({"write", "edit", "apply_patch"})
_CALLS = frozenset({"toolCall", "tool_call", "tool_use"})
_PIECE = 1 << 18
_PATCH_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


@frozen
class ArchiveFile:
    """An archived transcript that lies beside the session store."""

    session_id: str
    path: str
    modified_ms: int


@frozen
class Roots:
    """The spellings of the workspace in which a tool call may name a file; relative paths start at the first."""

    spellings: tuple[str, ...]

    def relative(self, directory: str, path: str) -> str | None:
        """The path below the workspace, or ``None`` for one that is elsewhere."""
        for root in self.spellings:
            full = os.path.normpath(os.path.join(root, directory, path))
            if full.startswith(root.rstrip("/") + "/"):
                return full[len(root.rstrip("/")) + 1 :]
        return None


@define
class Findings:
    """What a transcript shows: the memory files that its calls name, and whether it is no conversation at all."""

    writes: dict[str, int] = field(factory=dict)
    narrative: bool = False
    cron_run: bool = False

    def absorb(self, records: Iterable[Json], roots: Roots, fallback_ms: int) -> None:
        """Read on. ``fallback_ms`` is when a message without a time stamp counts as observed."""
        for record in records:
            self._judge(record)
            message = object_of(record.get("message"))
            if record.get("type") == "message" and message.get("role") == "assistant":
                observed = milliseconds(message.get("timestamp")) or milliseconds(record.get("timestamp"))
                for path in _written_paths(message.get("content"), roots):
                    self.writes.setdefault(path, observed or fallback_ms)

    def _judge(self, record: Json) -> None:
        """A dream narrative or a scheduled run says so somewhere in its records (FACTS-EXTRA h)."""
        data = object_of(record.get("data"))
        message = object_of(record.get("message"))
        names = [member(holder, name) for holder in (record, data) for name in ("runId", "sessionKey")]
        if message.get("role") in ("assistant", "toolResult"):
            names.append(member(object_of(message.get("__openclaw")), "runId"))
        self.narrative = self.narrative or any(map(is_dream_narrative, names))
        self.cron_run = self.cron_run or any(is_cron_run(member(holder, "sessionKey")) for holder in (record, data))


def read_window(reader: Reader, session_id: str, directories: Sequence[str]) -> Iterator[Json]:
    """The events of a window, from the table or from cold storage (a file below one of ``directories``)."""
    rows = reader.rows(
        "transcript_events",
        "session_id seq",
        "event_json event_zstd",
        where="WHERE session_id = ? ORDER BY seq",
        bindings=(session_id,),
    )
    for _, _, event, packed in rows:
        yield from _records([text(event)] if event is not None else _lines(io.BytesIO(_bytes(packed)), packed=True))
    cold = reader.rows(
        "session_transcript_cold_archives",
        "session_id archive_name",
        "archive_blob",
        where="WHERE session_id = ?",
        bindings=(session_id,),
    )
    for _, name, blob in cold:
        cold_records = _cold(text(name), blob, directories)
        events = (object_of(record.get("row")) for record in cold_records if record.get("kind") == "event")
        yield from _records(member(row, "event_json") for row in events)


def read_archive_row(reader: Reader, archive: ArchiveRow) -> Iterator[Json]:
    """The records of an archive that the database holds."""
    rows = reader.rows(
        "session_transcript_archives",
        "session_id generation",
        "archive_blob encoding",
        where="WHERE session_id = ? AND generation = ?",
        bindings=(archive.session_id, archive.generation),
    )
    for _, _, blob, encoding in rows:
        yield from _records(_lines(io.BytesIO(_bytes(blob)), packed=encoding == "zstd"))


def read_file(path: str) -> Iterator[Json]:
    """The records of a transcript file, packed or not."""
    with open(path, "rb") as file:
        yield from _records(_lines(file, packed=path.endswith(".zst")))


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


def _written_paths(content: object, roots: Roots) -> Iterator[str]:
    """The memory files that the calls in a message name. Whether a call succeeded is not asked (case-H3)."""
    for item in content if isinstance(content, list) else ():
        call = object_of(item)
        if call.get("type") not in _CALLS or call.get("name") not in _TOOLS:
            continue
        arguments = call.get("arguments") if call.get("arguments") is not None else call.get("input")
        directory, paths = _named_paths(arguments, patch=call["name"] == "apply_patch")
        for path in paths:
            relative = roots.relative(directory, path)
            if relative is not None and (relative in ("MEMORY.md", "USER.md") or relative.startswith("memory/")):
                yield relative


def _named_paths(arguments: object, *, patch: bool) -> tuple[str, list[str]]:
    """The working directory and the paths in a call's arguments, which may be JSON in a string or a bare patch."""
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments)
        except ValueError:
            return "", _patched_paths(str(arguments)) if patch else []
    values = object_of(arguments)
    paths = [path for name in ("path", "file_path", "filePath") if (path := member(values, name))]
    if patch:
        script = values.get("input") if isinstance(values.get("input"), str) else values.get("patch")
        paths += _patched_paths(script) if isinstance(script, str) else []
        changes = values.get("changes")
        if isinstance(changes, dict):
            paths += [name for name in changes if isinstance(name, str)]
        for change in changes if isinstance(changes, list) else ():
            paths.append(member(object_of(change), "path"))
            paths.append(member(object_of(object_of(change).get("kind")), "move_path"))
    return member(values, "cwd"), [path for path in paths if path]


def _patched_paths(script: str) -> list[str]:
    """The files of a patch. A blank at the end of a line is part of the name, as OpenClaw has it (FACTS 11.30)."""
    return [
        line[len(head) :]
        for line in script.replace("\r\n", "\n").split("\n")
        for head in _PATCH_LINES
        if line.startswith(head)
    ]


def _cold(name: str, blob: Value, directories: Sequence[str]) -> Iterator[Json]:
    if isinstance(blob, bytes):
        return _records(_lines(io.BytesIO(blob), packed=True))
    paths = (os.path.join(directory, "cold", os.path.basename(name)) for directory in directories)
    found = next((path for path in paths if os.path.isfile(path)), None)
    if found is None:
        raise FileNotFoundError(f"its cold archive {name} is missing")
    return read_file(found)


def _records(lines: Iterable[str]) -> Iterator[Json]:
    """The objects among JSON lines. A line that is none is passed over, as OpenClaw does."""
    for line in lines:
        try:
            record = object_of(json_value(line))
        except ValueError:
            continue
        if record:
            yield record


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else text(value).encode("utf-8", "surrogateescape")


def _lines(file: IO[bytes], *, packed: bool) -> Iterator[str]:
    """The lines of a file, a piece at a time; what is torn off is an error, and not the end."""
    rest = b""
    for piece in _unpacked(file) if packed else iter(partial(file.read, _PIECE), b""):
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(to_text, lines)
    if rest:
        yield to_text(rest)


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    try:
        import zstandard  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise RefusedError("a transcript is packed; install memprov[openclaw] to read it") from error
    frame = None
    try:
        while packed := file.read(_PIECE):
            while packed:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(packed)
                packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    except zstandard.ZstdError as error:
        raise OSError(f"it is damaged ({error})") from error
    if frame is not None:
        raise OSError("it is damaged (its end is missing)")
