"""Segments: files of capture lines in a folder, which are durable before a message is acknowledged.

A segment that is still being written is named ``.<name>.jsonl.partial``; `wirebook land` skips names that begin with a
dot. A complete segment is renamed to ``<name>.jsonl`` and never changes again. After a crash, the complete lines of a
partial segment are recovered into a segment.

Spec: docs/how-to/capture.md#segments
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from wirebook.problems import Problem, WirebookError

PARTIAL: Final = ".partial"
SUFFIX: Final = ".jsonl"
IDENTITY_FILE: Final = ".wirebook-capture"
"""Contains the identity of the folder. The gateway that writes to the folder locks this file."""


class Sink(Protocol):
    """Where the gateway writes. The methods are called from one thread; a WirebookError ends the gateway. Brokers
    identify the gateway by `identity`, which is as permanent as the data. `linger_seconds` is how long messages wait
    for others, if each write is expensive."""

    identity: str
    linger_seconds: float

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines and return when they are durable. Raises: OSError; none of them counts as written then"""

    def roll(self) -> None:
        """Complete the current segment if it is old enough. Called about once a second. Raises: OSError"""

    def close(self) -> None:
        """Complete the current segment. Raises: OSError"""


@dataclass(slots=True)
class _OpenSegment:
    path: Path
    descriptor: int
    opened: float
    size: int = 0
    """Durable bytes."""


class SegmentFolder:
    """Writes segments to a folder, one gateway at a time.

    Shape: `segments` counts complete segments, `recovered` the messages found in partial ones at the start.
    Units: `segment_bytes` and `segment_seconds` bound a segment; it may exceed the size by one group of messages.
    """

    linger_seconds = 0.0

    def __init__(self, folder: Path, *, segment_bytes: int, segment_seconds: float) -> None:
        """Create the folder if it is missing, lock it, and recover partial segments.

        Raises: WirebookError (``unwritable-target``, ``target-locked``)
        """
        self.segments = self.recovered = 0
        self._folder, self._bytes, self._seconds = folder, segment_bytes, segment_seconds
        self._open: _OpenSegment | None = None
        self._incomplete: dict[Path, int] = {}  # durable bytes of segments that could not be completed yet
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock, self.identity = _lock(folder)
            for path in sorted(folder.glob(f".*{SUFFIX}{PARTIAL}")):
                lines, size = _complete_lines(path)
                self._complete(path, size)
                self.recovered += lines
        except OSError as error:
            message = f"cannot write to '{folder}': {error.strerror or error}"
            raise WirebookError(Problem("unwritable-target", message, file=str(folder))) from error

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines to the current segment; they are durable when this returns.

        After an error the kernel may have dropped what it could not write, so the segment is abandoned at its last
        durable byte, and the next write starts another one.

        Raises: OSError
        """
        self._complete_abandoned()
        segment = self._open = self._open or self._begin()
        data = b"\n".join(lines) + b"\n"
        try:
            _write_all(segment.descriptor, data)
            _sync(segment.descriptor)
        except OSError:
            self._abandon(segment)
            raise
        segment.size += len(data)
        if segment.size >= self._bytes:
            self._abandon(segment)
            with suppress(OSError):  # the lines are durable; `roll` tries again
                self._complete_abandoned()

    def roll(self) -> None:
        """Complete the current segment if it has reached its maximum age. Raises: OSError"""
        if self._open is not None and time.monotonic() - self._open.opened >= self._seconds:
            self._abandon(self._open)
        self._complete_abandoned()

    def close(self) -> None:
        """Complete the current segment and unlock the folder. Raises: OSError"""
        try:
            if self._open is not None:
                self._abandon(self._open)
            self._complete_abandoned()
        finally:
            os.close(self._lock)

    def _begin(self) -> _OpenSegment:
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}{SUFFIX}"
        path = self._folder / f".{name}{PARTIAL}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            _sync_folder(self._folder)  # the name of the file must be durable before its lines are acknowledged
        except OSError:
            os.close(descriptor)
            self._incomplete[path] = 0
            raise
        return _OpenSegment(path, descriptor, time.monotonic())

    def _abandon(self, segment: _OpenSegment) -> None:
        """Stop writing to a segment, and remember to complete it."""
        self._open = None
        self._incomplete[segment.path] = segment.size
        with suppress(OSError):  # everything up to `size` is durable
            os.close(segment.descriptor)

    def _complete_abandoned(self) -> None:
        for path, size in list(self._incomplete.items()):
            self._complete(path, size)
            del self._incomplete[path]

    def _complete(self, path: Path, size: int) -> None:
        """Cut a partial segment at its durable size and rename it into place; delete it if it is empty."""
        if size == 0:
            path.unlink(missing_ok=True)
        else:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(path, path.with_name(path.name.removeprefix(".").removesuffix(PARTIAL)))
            self.segments += 1
        _sync_folder(self._folder)


def _lock(folder: Path) -> tuple[int, str]:
    """Lock a folder. Return the descriptor of the lock, and the identity of the folder, which is created once.

    Raises: WirebookError (``target-locked``), OSError
    """
    descriptor = os.open(folder / IDENTITY_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (identity := os.read(descriptor, 64).decode("ascii", "replace").strip()):
            identity = secrets.token_hex(8)
            _write_all(descriptor, f"{identity}\n".encode())
            os.fsync(descriptor)
            _sync_folder(folder)
    except BlockingIOError:
        os.close(descriptor)
        message = f"another gateway is writing to '{folder}'"
        hint = "stop it, or choose another folder; one gateway can receive from several endpoints"
        raise WirebookError(Problem("target-locked", message, file=str(folder), hint=hint)) from None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, identity


def _complete_lines(path: Path) -> tuple[int, int]:
    """Return the number of complete lines at the start of a partial segment, and their size in bytes.

    After a power failure, blocks that were not synced may be zeros; JSON has no byte 0, so the lines end before it.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return 0, 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            zero = data.find(b"\0")
            size = data.rfind(b"\n", 0, zero if zero >= 0 else len(data)) + 1
            return sum(block.count(b"\n") for block in _blocks(data, size)), size


def _blocks(data: mmap.mmap, size: int, block: int = 4 << 20) -> Iterator[bytes]:
    return (data[start : min(start + block, size)] for start in range(0, size, block))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(descriptor: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync does not flush the cache of the drive
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
