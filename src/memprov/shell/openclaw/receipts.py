"""The receipts of an agent of an OpenClaw installation: a file of memprov's own beside the agent's database.

Its first line says what it is and holds the key that seals the receipts; each further line is one receipt. Lines are
only ever appended, durably; what a killed process left of a line is cut off before the next.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from contextlib import closing

from memprov.core.proof import Receipt, seal_receipt
from memprov.errors import CorruptStoreError, PartialError
from memprov.shell.port import UNWRITTEN, ReceiptLog, last_receipt

__all__ = ["append_receipt", "read_receipt_log", "receipts_beside"]

_NAME = "memprov-receipts.jsonl"
_FORMAT = "memprov receipts 1"


def receipts_beside(database: str) -> str:
    """Where the receipts of the agent with this database are."""
    return os.path.join(os.path.dirname(os.path.realpath(database)), _NAME)


def read_receipt_log(path: str) -> ReceiptLog:
    """The receipts as they are kept, oldest first. Raises ``CorruptStoreError`` for a file that is something else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ReceiptLog()
    except OSError as error:
        raise CorruptStoreError(f"the receipts {path} cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CorruptStoreError(f"the receipts {path} are no regular file")
        with open(fd, "rb", closefd=False) as file:
            return _parsed(file.read(), path)
    finally:
        os.close(fd)


def append_receipt(path: str, draft: Receipt, session_ids: tuple[str, ...]) -> Receipt:
    """Seal the draft as the next receipt; with the first one, file and key are made. Raises ``PartialError``."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        with closing(open(fd, "r+b", buffering=0)) as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise PartialError(f"{UNWRITTEN}: {path} is no regular file; set it aside")
            fcntl.flock(fd, fcntl.LOCK_EX)
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            log = _parsed(whole, path)
            last = last_receipt(log)
            head = b"" if log.key else _line({"format": _FORMAT, "key": secrets.token_hex(32)})
            key = log.key or _parsed(head, path).key or b""
            receipt = seal_receipt(draft, session_ids, key, last)
            os.ftruncate(fd, len(whole))
            os.lseek(fd, len(whole), os.SEEK_SET)
            rest = memoryview(head + receipt.to_json().encode() + b"\n")
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        _sync(os.path.dirname(path))
    except OSError as error:
        raise PartialError(f"{UNWRITTEN}: {path}: {error.strerror}") from error
    except CorruptStoreError as error:
        raise PartialError(f"{UNWRITTEN}: {error}; set it aside") from error
    return receipt


def _parsed(data: bytes, path: str) -> ReceiptLog:
    if not data:
        return ReceiptLog()
    first, *lines = data.decode("utf-8", "replace").split("\n")
    try:
        head = json.loads(first)
        key = bytes.fromhex(head["key"]) if head["format"] == _FORMAT else b""
    except (ValueError, KeyError, TypeError):
        key = b""
    if not key:
        raise CorruptStoreError(f"{path} does not hold memprov's receipts")
    return ReceiptLog(tuple(line for line in lines[:-1] if line), key)


def _line(values: dict[str, str]) -> bytes:
    return json.dumps(values, sort_keys=True).encode() + b"\n"


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
