"""Files that hold other bytes than they show: unpacked within bounds, or named as what cannot be proven.

Nothing is written anywhere (D20). A file that looks like noise is compressed or encrypted, and says so; pictures, sound
and film look the same and are passed over, which the limits of a verification say.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from math import log2
from typing import IO

from memprov.core.proof import Root

__all__ = ["MAX_UNPACKED", "is_noise", "unpacker_of"]

#: No file is unpacked to more bytes than this.
MAX_UNPACKED = 1 << 30
_PIECE = 1 << 20
_SAMPLE = 1 << 16

Unpacker = Callable[[IO[bytes]], Iterator[bytes]]

_MEDIA = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"OggS", b"ID3", b"\xff\xfb", b"wOFF", b"wOF2")


def unpacker_of(root: Root, path: str, head: bytes) -> Unpacker | str | None:
    """How to unpack a file that begins with ``head``; why it cannot be; or ``None`` for what is not packed."""
    for magic, unpack in _PACKED.items():
        if head.startswith(magic):
            return unpack
    if head[:1] == b"\x78" and head[1:2] in b"\x01\x5e\x9c\xda" and int.from_bytes(head[:2], "big") % 31 == 0:
        return _zlib if root is Root.WORKSPACE or "/objects/" in path else None
    for magic, name in ((b"PACK", "a Git pack"), (b"7z\xbc\xaf'\x1c", "a 7z archive"), (b"\x04\x22\x4d\x18", "LZ4")):
        if head.startswith(magic):
            return f"it is {name}, which is not unpacked"
    return None


def is_noise(head: bytes, size: int) -> bool:
    """Whether the first bytes of a file of this size are spread as evenly as only packed or encrypted bytes are."""
    sample = head[:_SAMPLE]
    if size < 256 or len(sample) < 256 or head.startswith(_MEDIA) or head[4:8] == b"ftyp":
        return False
    total = len(sample)
    entropy = -sum(n / total * log2(n / total) for n in Counter(sample).values())
    # What random bytes reach falls short of 8 by about 255 / (2 n ln 2).
    return entropy > min(7.9, 8 - 184 / total - 0.1)


def _through(open_: Callable[[IO[bytes]], io.BufferedIOBase]) -> Unpacker:
    def unpack(file: IO[bytes]) -> Iterator[bytes]:
        try:
            with open_(file) as inner:
                while piece := inner.read(_PIECE):
                    yield piece
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            raise OSError(f"it is damaged ({type(error).__name__})") from error

    return unpack


def _zlib(file: IO[bytes]) -> Iterator[bytes]:
    stream = zlib.decompressobj()
    try:
        while packed := file.read(_PIECE):
            while packed:
                yield stream.decompress(packed, _PIECE)
                packed = stream.unconsumed_tail
    except zlib.error as error:
        raise OSError("it is damaged") from error


def _zstd(file: IO[bytes]) -> Iterator[bytes]:
    try:
        import zstandard  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise OSError("it is packed with zstd; install memprov[openclaw] to read it") from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as inner:
            while piece := inner.read(_PIECE):
                yield piece
    except zstandard.ZstdError as error:
        raise OSError("it is damaged") from error


def _zip(file: IO[bytes]) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(file.read(MAX_UNPACKED))) as archive:
            for member in archive.infolist():
                yield member.filename.encode("utf-8", "surrogateescape") + b"\n"
                with archive.open(member) as inner:
                    while piece := inner.read(_PIECE):
                        yield piece
                yield b"\n"
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError) as error:
        raise OSError("it is a ZIP archive that cannot be read") from error


_PACKED: dict[bytes, Unpacker] = {
    b"\x1f\x8b": _through(lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": _through(bz2.BZ2File),
    b"\xfd7zXZ\0": _through(lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": _zstd,
    b"PK\x03\x04": _zip,
}
