"""Lines of transcripts, packed or not, within bounds: what a file unpacks to may be anything.

A piece of packed input is so small that what it unpacks to fits into memory whatever it holds. What a transcript has in
all, and how long a line of it is, is bounded too: past the bound it could not be read, which is an error like damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO

from attrs import define

from memprov.core.text import to_text
from memprov.errors import RefusedError

__all__ = ["Allowance", "lines"]

_PIECE = 1 << 18
#: A block of four bytes may stand for 128 KiB, so this is 16 MiB at most.
_PACKED_PIECE = 512
_LONGEST_LINE = 1 << 26


@define
class Allowance:
    """How much of one transcript may still be read: bytes and lines. The largest known is far below."""

    size: int = 1 << 28
    count: int = 1 << 20

    def spend(self, size: int, count: int) -> None:
        """Take so much of it. Raises ``OSError`` when there is no more."""
        self.size -= size
        self.count -= count
        if self.size < 0 or self.count < 0:
            raise OSError("it is too large")


def lines(file: IO[bytes], allowance: Allowance, *, packed: bool) -> Iterator[str]:
    """The lines of a file, a piece at a time; what is torn off is an error, and not the end."""
    begun: list[bytes] = []
    length = 0
    for piece in _unpacked(file) if packed else iter(partial(file.read, _PIECE), b""):
        first, *others = piece.split(b"\n")
        allowance.spend(len(piece), len(others))
        begun.append(first)
        length += len(first)
        if length > _LONGEST_LINE:
            raise OSError("a line of it is too long")
        for other in others:
            yield to_text(b"".join(begun))
            begun, length = [other], len(other)
    if length:
        yield to_text(b"".join(begun))


def _unpacked(file: IO[bytes]) -> Iterable[bytes]:
    try:
        import zstandard  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise RefusedError("a transcript is packed; install memprov[openclaw] to read it") from error
    frame = None
    try:
        while packed := file.read(_PACKED_PIECE):
            while packed:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(packed)
                packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    except zstandard.ZstdError as error:
        raise OSError(f"it is damaged ({error})") from error
    if frame is not None:
        raise OSError("it is damaged (its end is missing)")
