"""Response bodies: small ones are bytes, large ones are written to a temporary file and sent from there.

A large response therefore takes no memory, its status is known before it is sent, and a slow client does not keep a
transaction open. An export is sent while it is rendered; if rendering fails, the response is cut off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from tempfile import TemporaryFile
from threading import Condition
from typing import IO, Final

from wirebook.problems.xregistry import refused

CHUNK_SIZE: Final = 1 << 16
"""Approximate number of bytes that are written and sent at once."""

MEMORY_LIMIT: Final = 1 << 20
"""Bytes up to which a body is kept in memory."""


class BrokenBody(Exception):
    """A body is incomplete: its rendering failed, or the client has disconnected."""


class BodySpool:
    """A large body in a temporary file. One thread writes it; others may read it while it is written."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._changed = Condition()
        self._has_ended = self._has_failed = False
        self.size = 0

    def __del__(self) -> None:
        if self._file:
            self._file.close()

    @property
    def is_complete(self) -> bool:
        return self._has_ended and not self._has_failed

    def write(self, chunk: bytes) -> None:
        """Append a chunk. Raises: BrokenBody, after the reader has ended the spool"""
        with self._changed:
            if self._has_ended:
                raise BrokenBody
            self._file = self._file or TemporaryFile()  # noqa: SIM115  it is closed when the spool is collected
            self._file.seek(self.size)
            self._file.write(chunk)
            self.size += len(chunk)
            self._changed.notify_all()

    def end(self, *, failed: bool = False) -> None:
        """Mark the end of the body. `failed`: it is incomplete or no longer read. Further calls have no effect."""
        with self._changed:
            self._has_failed = self._has_failed or (failed and not self._has_ended)
            self._has_ended = True
            self._changed.notify_all()

    def wait_for_start(self) -> bool:
        """Wait for the first bytes. Return False if the body ended without any."""
        with self._changed:
            self._changed.wait_for(lambda: self.size or self._has_ended)
            return self.size > 0

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body in chunks while it is written. Raises: BrokenBody"""
        offset = 0
        while chunk := self._read(offset):
            yield chunk
            offset += len(chunk)

    def _read(self, offset: int) -> bytes:
        """Return the next chunk after `offset`; empty at the end. Raises: BrokenBody"""
        with self._changed:
            self._changed.wait_for(lambda: self.size > offset or self._has_ended)
            if self._has_failed:
                raise BrokenBody
            if self._file is None:
                return b""
            self._file.seek(offset)
            return self._file.read(CHUNK_SIZE)


Body = bytes | BodySpool


def render_body(pieces: Iterable[str], path: str, limit: int | None = None, spool: BodySpool | None = None) -> Body:
    """Return the pieces as one body of at most `limit` bytes.

    A large body is written to `spool`, which other threads may already read.

    Raises: too_large
    """
    chunks, head, size = _limited_chunks(pieces, path, limit or sys.maxsize), list[bytes](), 0
    for chunk in chunks:
        head.append(chunk)
        size += len(chunk)
        if size > MEMORY_LIMIT:
            spool = spool or BodySpool()
            for spooled in chain(head, chunks):
                spool.write(spooled)
            spool.end()
            return spool
    return b"".join(head)


def _limited_chunks(pieces: Iterable[str], path: str, limit: int) -> Iterator[bytes]:
    """Yield the pieces, joined into chunks. Raises: too_large"""
    remaining = limit
    for chunk in _chunks(pieces):
        remaining -= len(chunk)
        if remaining < 0:
            raise refused("too_large", path, detail=f"The response is larger than {limit} bytes.")
        yield chunk


def _chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    pending: list[str] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size >= CHUNK_SIZE:
            yield "".join(pending).encode()
            pending, size = [], 0
    if pending:
        yield "".join(pending).encode()
