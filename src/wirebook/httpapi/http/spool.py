"""Bodies of answers: small ones are bytes, large ones are in a temporary file that they are sent from.

So a large answer takes no memory, is there before its status is sent, and a client that reads slowly keeps no
transaction open. An export is sent while it is made; if that fails, the answer ends without its end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from tempfile import TemporaryFile
from threading import Condition
from typing import IO, Final

from wirebook.problems.xregistry import refused

PART: Final = 1 << 16
"""Bytes, or so, that are written and sent at once."""

MEMORY: Final = 1 << 20
"""Bytes up to which a body is kept in memory."""


class BrokenBody(Exception):
    """A body ends before its end: what made it failed, or nobody wants it any more."""


class BodySpool:
    """A large body. One thread writes it, others read it, be it that it is not yet whole."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._changed = Condition()
        self._ended = self._failed = False
        self.size = 0

    def __del__(self) -> None:
        if self._file:
            self._file.close()

    @property
    def is_whole(self) -> bool:
        return self._ended and not self._failed

    def write(self, part: bytes) -> None:
        """Raises: Broken, once it was abandoned"""
        with self._changed:
            if self._ended:
                raise BrokenBody
            self._file = self._file or TemporaryFile()  # noqa: SIM115  it is closed once nobody has the spool
            self._file.seek(self.size)
            self._file.write(part)
            self.size += len(part)
            self._changed.notify_all()

    def end(self, *, failed: bool = False) -> None:
        """Nothing more comes; or it did not come to its end, or is abandoned: what is read then fails."""
        with self._changed:
            self._failed = self._failed or (failed and not self._ended)
            self._ended = True
            self._changed.notify_all()

    def begins(self) -> bool:
        """Waits for the first bytes; whether there are any."""
        with self._changed:
            self._changed.wait_for(lambda: self.size or self._ended)
            return self.size > 0

    def __iter__(self) -> Iterator[bytes]:
        """All of it, in parts, as they come. Raises: Broken"""
        at = 0
        while part := self._after(at):
            yield part
            at += len(part)

    def _after(self, at: int) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self.size > at or self._ended)
            if self._failed:
                raise BrokenBody
            if self._file is None:
                return b""
            self._file.seek(at)
            return self._file.read(PART)


Body = bytes | BodySpool


def body_of(pieces: Iterable[str], path: str, most: int | None = None, spool: BodySpool | None = None) -> Body:
    """A body of at most `most` bytes, if that is given; if it is large, in `spool`, which others may read already.

    Raises: too_large
    """
    parts, first, size = _limited(pieces, path, most or sys.maxsize), list[bytes](), 0
    for part in parts:
        first.append(part)
        size += len(part)
        if size > MEMORY:
            return _spooled(chain(first, parts), spool or BodySpool())
    return b"".join(first)


def _spooled(parts: Iterable[bytes], spool: BodySpool) -> BodySpool:
    for part in parts:
        spool.write(part)
    spool.end()
    return spool


def _limited(pieces: Iterable[str], path: str, most: int) -> Iterator[bytes]:
    rest, left = iter(pieces), most
    while part := _part(rest):
        left -= len(part)
        if left < 0:
            raise refused("too_large", path, detail=f"It has more than {most} bytes.")
        yield part


def _part(pieces: Iterator[str]) -> bytes:
    """The next pieces; empty when there are none."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PART:
            break
    return "".join(held).encode()
