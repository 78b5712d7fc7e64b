"""Byte streams: a range of a plain file, or the decompressed content of a gzip or zstd file.

A truncated or damaged file yields all bytes before the damage; then `problem` describes it.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from typing import Final, NamedTuple, Protocol

import zstandard

from wirebook.landing.stores.locations import open_source, source_location
from wirebook.landing.stores.objects import ObjectChanged, ObjectPath, ObjectReader

__all__ = ["CODECS", "ByteStream", "FileRange", "Inflated", "ObjectRange", "SourceChanged", "open_stream"]


class SourceChanged(Exception):
    """The file has changed since the run was planned: it is shorter, or a line that has landed is different."""


class ByteStream(Protocol):
    """The content of a file. `position` is the number of bytes of the file that were read (of a compressed file,
    compressed ones). `problem` is set if the content is truncated or damaged."""

    position: int
    problem: str | None

    def readinto(self, buffer: memoryview, /) -> int: ...
    def close(self) -> None: ...


class FileRange:
    """The bytes of a file from `start` to `end`."""

    problem: str | None = None

    def __init__(self, path: bytes, start: int, end: int) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._start, self._end, self.position = start, end, 0

    def readinto(self, buffer: memoryview, /) -> int:
        """Raises: SourceChanged if the file ends before the range"""
        offset = self._start + self.position
        size = min(len(buffer), self._end - offset)
        count = os.preadv(self._fd, [buffer[:size]], offset) if size else 0
        if size and not count:
            raise SourceChanged(f"the file ends at byte {offset}; it had {self._end} bytes when the run began")
        self.position += count
        return count

    def close(self) -> None:
        os.close(self._fd)


class ObjectRange:
    """The bytes of an object from `start` to `end`."""

    problem: str | None = None

    def __init__(self, path: ObjectPath, start: int, end: int, version: str | None) -> None:
        self._path, self._next, self._end, self._version = path, start, end, version
        self._part = memoryview(b"")
        self.position = 0

    def readinto(self, buffer: memoryview, /) -> int:
        """Raises: FileNotFoundError, ObjectChanged, store-failed; SourceChanged if the object ends before the range"""
        if not self._part and self._next < self._end:
            stop = min(self._next + OBJECT_READ_SIZE, self._end)
            self._part = memoryview(self._path.read_bytes(self._next, stop, self._version))
            if not self._part:
                raise SourceChanged(f"the file ends at byte {self._next}; it had {self._end} bytes when the run began")
            self._next += len(self._part)
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        self.position += count
        return count

    def close(self) -> None:
        pass


class Decoder(Protocol):
    """Decompresses one gzip member or zstd frame: the decompress objects of zlib and zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class Codec(NamedTuple):
    """How to read one compressed format.

    Units: `piece` is the number of compressed bytes per call. It bounds the output of a call: gzip expands data at most
    1,032 times, and zstd can expand 4 bytes to 128 KiB.
    Shape: `starts` is whether data begins with a member or frame, as far as the data goes.
    """

    decoder: Callable[[], Decoder]
    piece: int
    starts: Callable[[bytes], bool]
    error: type[Exception]


def _starts_gzip(data: bytes) -> bool:
    return data.startswith(b"\x1f\x8b"[: len(data)])


def _starts_zstd(data: bytes) -> bool:
    """Whether the data begins with a frame or a skippable frame (magic number 184D2A5?, little endian)."""
    skippable = 0x50 <= data[0] <= 0x5F and b"\x2a\x4d\x18".startswith(data[1:4])
    return skippable or data.startswith(b"\x28\xb5\x2f\xfd"[: len(data)])


CODECS: Final = {
    "gzip": Codec(lambda: zlib.decompressobj(wbits=31), 16 << 10, _starts_gzip, zlib.error),
    "zstd": Codec(lambda: zstandard.ZstdDecompressor().decompressobj(), 2 << 10, _starts_zstd, zstandard.ZstdError),
}
READ_SIZE = 1 << 20
OBJECT_READ_SIZE = 8 << 20
"""Bytes per request to an object store, where each request takes several milliseconds."""


class Inflated:
    """The decompressed content of the first `end` bytes of a file. All its members or frames are read as one stream."""

    def __init__(self, file: io.RawIOBase | io.BytesIO, codec: Codec, end: int) -> None:
        self.position, self._end = 0, end
        self.problem: str | None = None
        self._codec = codec
        self._file = file
        self._parts = self._inflate()
        self._part = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not self._part:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._part = memoryview(part)
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count

    def close(self) -> None:
        self._file.close()

    def _inflate(self) -> Iterator[bytes]:
        """Yield the content in parts. Sets `problem` if a member is truncated or damaged, or if other data follows."""
        decoder: Decoder | None = None
        try:
            for piece in self._pieces():
                data = piece if decoder else self._next_member(piece)
                while data:
                    decoder = decoder or self._codec.decoder()
                    yield decoder.decompress(data)
                    if not decoder.eof:
                        break
                    data, decoder = self._next_member(decoder.unused_data), None
                if self.problem:
                    return
        except (FileNotFoundError, ObjectChanged):
            raise
        except (self._codec.error, OSError) as error:
            self.problem = f"{error} (near byte {self.position})"
            return
        if decoder:
            self.problem = f"the compressed data is truncated at byte {self.position}"

    def _next_member(self, data: bytes) -> bytes:
        """The data from the start of the next member. Zero padding before it is skipped; other data sets `problem`."""
        data = data.lstrip(b"\0")
        if data and not self._codec.starts(data):
            self.problem = f"unknown data after the compressed data (before byte {self.position})"
            return b""
        return data

    def _pieces(self) -> Iterator[bytes]:
        size = OBJECT_READ_SIZE if isinstance(self._file, ObjectReader) else READ_SIZE
        while block := self._file.read(min(size, self._end - self.position)):
            for start in range(0, len(block), self._codec.piece):
                piece = block[start : start + self._codec.piece]
                self.position += len(piece)
                yield piece


def open_stream(
    path: bytes, codec: str, start: int, end: int, version: str | None = None
) -> AbstractContextManager[ByteStream]:
    """Open the bytes from `start` to `end` of a plain file, or the decompressed first `end` bytes of a compressed one.

    Raises: OSError, store-failed
    """
    if codec != "plain":
        return closing(Inflated(open_source(path, version), CODECS[codec], end))
    location = source_location(path)
    return closing(
        ObjectRange(location, start, end, version)
        if isinstance(location, ObjectPath)
        else FileRange(location, start, end)
    )
