"""Files of HDFS, accessed with the package `hdfs-native`, which needs neither Java nor libhdfs.

HDFS is a file system: files can be appended to, and are renamed atomically. It offers no locks, so the records of a
target are kept as in an object store. The addresses of a nameservice and the settings of Kerberos are read from
core-site.xml and hdfs-site.xml in HADOOP_CONF_DIR.

Spec: docs/decisions/0216
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wirebook.landing.stores.objects import (
    ObjectChanged,
    ObjectPath,
    ObjectReader,
    ObjectStatus,
    ObjectWriter,
    store_failed,
)
from wirebook.problems import WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus

__all__ = ["HdfsPath"]

ATTEMPTS: Final = {"dfs.client.failover.max.attempts": "4"}
"""Attempts to reach a single NameNode, which take 10 to 20 seconds, as with object stores. For a nameservice, whose
failover may take longer, the settings of the cluster apply."""
OPENINGS: Final = 50
OPENING_SECONDS: Final = 0.1
"""Attempts to open a file that changes, or not all of whose blocks are known yet, and the pause between them."""
TEMPORARY: Final = "._wirebook-"
"""Prefix of the names of files that are being written. They are renamed when they are complete."""
COPYING: Final = "._COPYING_"
"""Suffix of the names of files that `hdfs dfs -put` is writing."""
RPC_ERROR: Final = re.compile(r'RPCError\("(?:[\w$]+\.)*(?P<name>[\w$]+)", "(?P<text>.*?)(?:\\n|"\)|$)', re.DOTALL)


class HdfsPath(ObjectPath):
    """A file or folder of HDFS. `bucket` is the URL of the NameNode or nameservice, `key` the path below its root."""

    __slots__ = ()

    is_file_system: ClassVar[bool] = True

    @property
    def _path(self) -> str:
        return f"/{self.key}"

    @contextmanager
    def failures(self, *, writes: bool = False) -> Iterator[None]:
        """Convert the exceptions of hdfs-native.

        Raises: FileNotFoundError, FileExistsError; WirebookError (store-failed) for all others
        """
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(f"'{self}' does not exist") from error
        except FileExistsError as error:
            raise FileExistsError(f"'{self}' exists") from error
        except ObjectChanged:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            if not writes and "(is not a directory)" in str(error):  # a folder above is a file
                raise FileNotFoundError(f"'{self}' does not exist") from error
            raise self.failed(_reason(error)) from error

    def failed(self, reason: str) -> WirebookError:
        hint = "check the URL, the settings in HADOOP_CONF_DIR, the user and the network; then run the command again"
        return store_failed(self, reason, hint)

    # -- reading -------------------------------------------------------------------------------------------------

    def status(self) -> ObjectStatus:
        with self.failures():
            status = _client(self.bucket).get_file_info(self._path)
        if status.isdir:
            raise FileNotFoundError(f"'{self}' is a folder")
        return _status(status)

    def read_bytes(self, start: int = 0, end: int | None = None, version: str | None = None) -> bytes:
        with self.open_input(version) as reader:
            reader.seek(start)
            return reader.read(-1 if end is None else end - start)

    def open_input(self, version: str | None = None) -> ObjectReader:
        """Open the file at its current length; bytes that are appended later are not read.

        Raises: FileNotFoundError, ObjectChanged, store-failed
        """
        for _ in range(OPENINGS):
            expected = version or self.status().version
            with self.failures():
                reader, status = _client(self.bucket).read(self._path), self.checked_status(version)
            if status.version == expected and len(reader) >= status.size:
                return HdfsReader(self, reader, status)
            time.sleep(OPENING_SECONDS)  # between the requests, the file was replaced or a block was completed
        raise self.failed(f"it keeps changing, or the NameNode knows only {len(reader)} of its {status.size} bytes")

    def below(self, at_least: int = 1000) -> Iterator[tuple[ObjectPath, ObjectStatus]]:  # noqa: ARG002
        """All files below this folder, except those that are still being written. Raises: store-failed"""
        for status in self._listed(recursive=True):
            path = HdfsPath(self.bucket, status.path.strip("/"))
            if not (status.isdir or path.name.startswith(TEMPORARY) or path.name.endswith(COPYING) or path == self):
                yield path, _status(status)

    def folders(self) -> list[str]:
        return sorted(status.path.rpartition("/")[2] for status in self._listed(recursive=False) if status.isdir)

    def _listed(self, *, recursive: bool) -> Iterator[FileStatus]:
        """The contents of a folder, which need not exist. Folders that are deleted meanwhile are left out.

        Raises: store-failed
        """
        folders = [self._path]
        while folders:
            folder = folders.pop()
            with suppress(FileNotFoundError), self.failures():
                for status in _client(self.bucket).list_status(folder, recursive=False):
                    if recursive and status.isdir:
                        folders.append(status.path)
                    yield status

    # -- writing -------------------------------------------------------------------------------------------------

    def write_bytes(self, data: bytes) -> None:
        try:
            self._write(data, overwrite=True)
        except OSError as error:
            raise self.failed("another process replaced or deleted the file while it was written") from error

    def create(self, data: bytes) -> None:
        self._write(data, overwrite=False)

    def _write(self, data: bytes, *, overwrite: bool) -> None:
        """Write a file under a temporary name, then rename it.

        If the answer of the NameNode is lost, the client repeats the rename, which then fails although the first one
        has succeeded. So after a failure, the content of the file is compared.

        Raises: FileNotFoundError, FileExistsError, ObjectChanged, store-failed
        """
        temporary = HdfsPath(self.bucket, f"{self.parent.key}/{TEMPORARY}{secrets.token_hex(8)}".strip("/"))
        try:
            with temporary.open_output() as file:
                file.write(data)
            try:
                temporary.rename_to(self, overwrite=overwrite)
            except (FileExistsError, FileNotFoundError) as error:
                if self.read_bytes() != data:
                    raise FileExistsError(f"'{self}' exists") from error
                temporary.unlink()
        except (OSError, WirebookError):
            with suppress(WirebookError):
                temporary.unlink()
            raise

    def copy_to(self, other: ObjectPath) -> None:
        with self.open_input() as source, other.open_output() as target:
            while part := source.read(8 << 20):
                target.write(part)

    def rename_to(self, other: ObjectPath, *, overwrite: bool = True) -> None:
        """Rename the file. Missing parent folders are created.

        Raises: FileNotFoundError, FileExistsError unless `overwrite`, store-failed
        """
        client = _client(self.bucket)
        with self.failures(writes=True):
            if other.parent != self.parent:
                client.mkdirs(f"/{other.parent.key}", create_parent=True)
            client.rename(self._path, f"/{other.key}", overwrite)

    def unlink(self) -> None:
        """Delete the file, or a folder with all files below it, if it exists. Raises: store-failed"""
        with suppress(FileNotFoundError), self.failures(writes=True):
            _client(self.bucket).delete(self._path, recursive=True)

    def open_output(self) -> ObjectWriter:
        """Open a file for writing. It is complete, and survives a power failure, once the writer is closed."""
        options = library("hdfs_native").WriteOptions(overwrite=True, create_parent=True)
        with self.failures(writes=True):
            return HdfsWriter(self, _client(self.bucket).create(self._path, options))


class HdfsReader(ObjectReader):
    """Reads a file at the length that it had when it was opened."""

    def __init__(self, path: HdfsPath, reader: Any, status: ObjectStatus) -> None:
        super().__init__(path, status)
        self._reader = reader

    def read(self, size: int | None = -1, /) -> bytes:
        """Raises: FileNotFoundError, ObjectChanged, store-failed"""
        length = min(self._status.size, len(self._reader))
        end = length if size is None or size < 0 else min(self._position + size, length)
        if self._position >= end:
            return b""
        try:
            with self._path.failures():
                data = bytes(self._reader.read_range(self._position, end - self._position))
        except WirebookError as error:  # a file that is replaced loses its blocks
            if self._path.status().version != self._status.version:
                raise ObjectChanged(f"'{self._path}' has been replaced") from error
            raise
        self._position += len(data)
        return data


class HdfsWriter(ObjectWriter):
    """Writes a file, which is complete only once the writer is closed. The file is deleted if a `with` block ends by an
    exception. If the writer is never closed, a part of the file may be left.
    """

    def close(self) -> None:
        """Raises: store-failed"""
        if not self.closed:
            with self._path.failures(writes=True):
                try:
                    self._writer.hsync()
                except (OSError, RuntimeError, ValueError) as error:
                    if "not supported for erasure-coded" not in str(error):  # those files can only be closed
                        raise
        super().close()

    def abandon(self) -> None:
        """Delete the file, after a failure."""
        if not self.closed:
            with suppress(WirebookError):
                self._path.unlink()
        super().abandon()

    def __del__(self) -> None:
        super().abandon()  # deletes nothing: the path may have another file by now


@lru_cache(maxsize=16)
def _client(bucket: str) -> Client:
    """The client of a NameNode or nameservice. Raises: store-failed"""
    path = HdfsPath(bucket, "")
    is_address = ":" in bucket.partition("://")[2]
    with path.failures():
        client: Client = library("hdfs_native").Client(bucket, ATTEMPTS if is_address else None)
        return client


def _status(status: FileStatus) -> ObjectStatus:
    """The state of a file. Its version is the time at which it was last closed, in milliseconds, and its length."""
    modified = datetime.fromtimestamp(status.modification_time / 1000, UTC)
    return ObjectStatus(status.length, f"{status.modification_time}-{status.length}", modified)


def _reason(error: Exception) -> str:
    """The message of an exception, without the stack trace of the server."""
    text = str(error)
    if match := RPC_ERROR.match(text):
        return f"{match['name']}: {match['text']}"
    return text.partition("\n")[0]
