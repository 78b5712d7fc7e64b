"""Lists the files of a source, and scans each one: a pass over its bytes computes digests and line counts per block.

A file is identified by its name: the path below the source folder, or the file name if the source is a file.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wirebook.landing.sources.file_formats import FileFormat
from wirebook.landing.sources.lines import LF
from wirebook.landing.stores.locations import Location, source_location
from wirebook.landing.stores.objects import ObjectPath, ObjectStatus
from wirebook.problems import Problem, WirebookError

__all__ = [
    "BLOCK",
    "FileBlock",
    "FileListing",
    "Scan",
    "SourceFile",
    "digest_of",
    "identity_of",
    "list_files",
    "read_at",
    "scan_files",
]

BLOCK = 4 << 20
"""Size of a block in bytes. Each block has a digest of its own, so that several threads can scan one file."""

AHEAD = 64
"""Scans of further files are started until this many blocks are pending."""


class SourceFile(NamedTuple):
    """One file of a source: its name in the source, and its path in the file system, or its URL.

    Shape: an object has `size` and `version`, and a file of HDFS `size` and `modified` (in milliseconds), as listed. A
    local file has none of them.
    """

    name: str
    path: bytes
    size: int = 0
    version: str | None = None
    modified: int = 0


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files of a source in the order of their names, and the problems of folders that cannot be listed."""

    files: tuple[SourceFile, ...]
    problems: tuple[Problem, ...] = ()


def list_files(source: str | os.PathLike[str] | ObjectPath, *, without: Location | None = None) -> FileListing:
    """List a file, or all files of a folder and its subfolders.

    Files and folders whose names begin with ``.`` or ``_`` are skipped, and so is the folder `without` (a target inside
    its source).

    Raises: unreadable-file if the source does not exist or cannot be read; store-failed
    """
    if isinstance(source, ObjectPath):
        return _list_objects(source, without)
    root = os.path.join(os.getcwdb(), os.fsencode(source))  # `abspath` would resolve `link/..` without the link
    try:
        mode = os.stat(root).st_mode
    except OSError as error:
        raise WirebookError(_unreadable(os.fspath(source), error)) from error
    if not stat.S_ISDIR(mode):
        return FileListing((SourceFile(_readable(os.path.basename(root)), root),))
    problems: list[Problem] = []
    hidden = os.fsencode(without.resolve()) if isinstance(without, Path) else None
    paths = _walk(root, hidden or b"", lambda error: problems.append(_unreadable(error.filename, error)))
    files = (SourceFile(_readable(os.path.relpath(path, root)), path) for path in paths)
    return FileListing(tuple(sorted(files)), tuple(problems))


def _list_objects(source: ObjectPath, without: Location | None) -> FileListing:
    """Raises: unreadable-file, store-failed"""
    if source.key and source.exists():
        return FileListing((_listed(source, source.name, source.status()),))
    files, is_empty = [], True
    for path, status in source.below():
        is_empty = False
        name = path.key.removeprefix(source.key).lstrip("/")
        is_visible = not any(part.startswith((".", "_")) for part in name.split("/"))
        if is_visible and name and not str(path).startswith(f"{without}/"):
            files.append(_listed(path, name, status))
    if is_empty:
        message = f"cannot read '{source}': there is no such object, and none below it"
        raise WirebookError(Problem("unreadable-file", message, file=str(source)))
    return FileListing(tuple(sorted(files)))


def _listed(path: ObjectPath, name: str, status: ObjectStatus) -> SourceFile:
    if path.is_file_system:
        return SourceFile(name, str(path).encode(), status.size, modified=status.milliseconds)
    return SourceFile(name, str(path).encode(), status.size, status.version)


def _walk(root: bytes, hidden: bytes, onerror: Callable[[OSError], None]) -> Iterator[bytes]:
    """The paths of regular files. Symbolic links are followed.

    Each file is returned once: by its path without links, or else by the first path in the order of names.
    """
    seen = {hidden}
    folder_links, file_links = deque([root]), list[bytes]()
    while folder_links:
        for folder, folders, names in os.walk(folder_links.popleft(), onerror=onerror):
            real = os.path.realpath(folder)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(filter(_is_visible, folders))
            folder_links += [path for name in folders if os.path.islink(path := os.path.join(folder, name))]
            for path in (os.path.join(folder, name) for name in names if _is_visible(name)):
                if os.path.islink(path):
                    file_links.append(path)
                elif os.path.isfile(path):
                    yield path
    for path in sorted(file_links):
        real = os.path.realpath(path)
        folder, name = os.path.split(real)
        is_listed = real in seen or (folder in seen and _is_visible(name))
        if os.path.isfile(real) and not is_listed:
            seen.add(real)
            yield path


def _is_visible(name: bytes) -> bool:
    return not name.startswith((b".", b"_"))


def _readable(name: bytes) -> str:
    r"""The name as text; bytes that are not valid UTF-8 are written as ``\xff``."""
    return name.replace(os.sep.encode(), b"/").decode("utf-8", "backslashreplace")


def _unreadable(file: str | bytes, error: OSError) -> Problem:
    name = _readable(file) if isinstance(file, bytes) else file
    return Problem(code="unreadable-file", file=name, message=f"cannot read '{name}': {error.strerror or error}")


class FileBlock(NamedTuple):
    """A block of a file: its digest, its number of LFs, and the file offsets of its first and last LF (-1: none)."""

    digest: bytes
    newlines: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of a file when it was scanned.

    Shape: `identity` changes when the file is written to or replaced. With an `error`, `blocks` are the blocks before
    it. Objects are not scanned: `version` identifies the content, there are no blocks, and `file_format` is detected
    before the object lands. A file of HDFS that has not been written to since it landed is not scanned either: `landed`
    is the digest that it had then.
    """

    file: SourceFile
    size: int
    identity: tuple[int, ...] = ()
    blocks: tuple[FileBlock, ...] = ()
    error: str | None = None
    version: str | None = None
    file_format: FileFormat | None = None
    landed: str | None = None

    @property
    def digest(self) -> str:
        """The digest of the whole file; of an object, its version."""
        if self.version is not None:
            return f"version:{self.version}"
        if self.landed is not None:
            return self.landed
        return digest_of(block.digest for block in self.blocks)

    @property
    def end_of_lines(self) -> int:
        """The offset after the last LF."""
        return max((block.last + 1 for block in self.blocks), default=0)

    def prefix_digest(self, size: int) -> str:
        """The digest of the first `size` bytes; of a part of an object, ``unknown``.

        Cost: reads at most one block again.
        Raises: OSError
        """
        if size == self.size:
            return self.digest
        if self.version is not None:
            return "unknown"
        whole, rest = divmod(size, BLOCK)
        digests = [block.digest for block in self.blocks[:whole]]
        if rest:
            digests.append(hashlib.sha256(read_at(self.file.path, whole * BLOCK, rest)).digest())
        return digest_of(digests)

    def newlines_before(self, offset: int) -> int:
        """The number of LFs in the first `offset` bytes.

        Cost: reads at most one block again.
        Raises: OSError
        """
        if offset == self.size:
            return sum(block.newlines for block in self.blocks)
        whole, rest = divmod(offset, BLOCK)
        partly = read_at(self.file.path, whole * BLOCK, rest).count(b"\n") if rest else 0
        return sum(block.newlines for block in self.blocks[:whole]) + partly


def digest_of(digests: Iterable[bytes]) -> str:
    """The digest of a file, computed from the digests of its blocks so that all cores can share the work."""
    return f"sha256/{BLOCK}:{hashlib.sha256(b''.join(digests)).hexdigest()}"


def identity_of(path: bytes) -> tuple[int, ...]:
    """Device, inode, size and modification time of a file, which change when the file is written to or replaced.

    Units: the time is in nanoseconds. In HDFS, device and inode are 0, and the time is in milliseconds.

    Raises: OSError, store-failed
    """
    location = source_location(path)
    if isinstance(location, ObjectPath):
        in_store = location.status()
        return (0, 0, in_store.size, in_store.milliseconds)
    status = os.stat(path)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def scan_files(
    files: Iterable[SourceFile], known: Mapping[str, Scan] | None = None, *, threads: int | None = None
) -> Iterator[Scan]:
    """Scan each file that still exists, in order. `known` maps names to earlier scans; a scan is reused if its file has
    not been written to since.

    Cost: reads every other file once, in parallel, even a single large one. Objects are not read.
    Raises: store-failed; a file that cannot be read does not raise, but its scan has an `error`
    """
    known = known or {}
    with ThreadPoolExecutor(threads or min(os.cpu_count() or 1, 16)) as pool:
        waiting: deque[tuple[Scan, list[Future[FileBlock]]]] = deque()
        blocks = 0
        for file in files:
            started = _start(pool, file, known.get(file.name))
            if started is None:
                continue
            waiting.append(started)
            blocks += len(started[1]) + 1
            while blocks > AHEAD and len(waiting) > 1:
                scan, futures = waiting.popleft()
                blocks -= len(futures) + 1
                yield _finish(scan, futures)
        for scan, futures in waiting:
            yield _finish(scan, futures)


def _start(
    pool: ThreadPoolExecutor, file: SourceFile, known: Scan | None
) -> tuple[Scan, list[Future[FileBlock]]] | None:
    """Start to scan a file. Returns the scan and its pending blocks; None if the file no longer exists."""
    if file.version is not None:
        return Scan(file, file.size, version=file.version), []
    location = source_location(file.path)
    if isinstance(location, ObjectPath) and not location.is_file_system:
        try:
            status = location.status()
        except FileNotFoundError:
            return None
        return Scan(file, status.size, version=status.version), []
    try:
        identity = (0, 0, file.size, file.modified) if file.modified else identity_of(file.path)
        if known is not None and (known.identity, known.file, known.error) == (identity, file, None):
            return known, []
        if isinstance(location, bytes):
            os.close(os.open(location, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return None
    except OSError as error:
        return Scan(file, 0, error=error.strerror or str(error)), []
    size = identity[2]
    read = partial(_scan_block, file.path, size)
    return Scan(file, size, identity), [pool.submit(read, start) for start in range(0, size, BLOCK)]


def _finish(scan: Scan, futures: list[Future[FileBlock]]) -> Scan:
    if not futures:
        return scan
    blocks: list[FileBlock] = []
    for future in futures:
        try:
            blocks.append(future.result())
        except OSError as error:
            readable = len(blocks) * BLOCK
            return replace(scan, size=readable, blocks=tuple(blocks), error=error.strerror or str(error))
    return replace(scan, blocks=tuple(blocks))


def _scan_block(path: bytes, size: int, start: int) -> FileBlock:
    data = read_at(path, start, min(BLOCK, size - start))
    digest = hashlib.sha256(data).digest()
    newlines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == LF))
    first, last = (start + data.find(b"\n"), start + data.rfind(b"\n")) if newlines else (-1, -1)
    return FileBlock(digest, newlines, first, last)


def read_at(path: bytes, start: int, size: int) -> bytes:
    """Read `size` bytes at `start`.

    Raises: OSError, also if the file is shorter; store-failed
    """
    location = source_location(path)
    if isinstance(location, ObjectPath):
        data = location.read_bytes(start, start + size)
        if len(data) < size:
            raise OSError(f"the file ends at byte {start + len(data)}; it became shorter while it was read")
        return data
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while size and (part := os.pread(fd, size, start)):
            parts.append(part)
            start, size = start + len(part), size - len(part)
    finally:
        os.close(fd)
    if size:
        raise OSError(f"the file ends at byte {start}; it became shorter while it was read")
    return b"".join(parts)
