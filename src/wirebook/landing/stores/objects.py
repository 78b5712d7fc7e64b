"""Objects of S3, GCS and Azure, accessed with `obstore`, which reads credentials from the environment or the instance.

An object is written completely or not at all. It can be created on the condition that it does not exist. Objects are
not renamed. Files of HDFS have the same interface: see `stores.hdfs`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = [
    "OBJECTS_AT_ONCE",
    "RETRY_OPTIONS",
    "ObjectChanged",
    "ObjectPath",
    "ObjectReader",
    "ObjectStatus",
    "ObjectWriter",
    "is_refusal",
    "store_failed",
]

MAX_MESSAGE: Final = 300
LONG_URL: Final = re.compile(r"(https?://\S{77})\S{3,}")
INVALID_KEY: Final = "object with invalid path"
REFUSAL: Final = re.compile(
    rf"{INVALID_KEY}|lacked the necessary privileges|lacked valid authentication|' does not exist$|"
    r"status code\W+4(?!08|09|29)\d\d|"
    r"\b(AccessControl|Authorization|InvalidPath|\w+QuotaExceeded|UnresolvedPath)Exception\b|"
    r"AWS Error (ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|MISSING_AUTHENTICATION_TOKEN|"
    r"NO_SUCH_BUCKET|RESOURCE_NOT_FOUND|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT|"
    r"UNKNOWN \(HTTP status 4(?!08|09|29)\d\d\))"
)
"""Error messages of `object_store`, `deltalake`, Arrow and the NameNode for requests that fail again if repeated."""
CREDENTIALS: Final = "check the URL, the credentials in the environment and the network; then run the command again"
UNSUPPORTED_KEY: Final = (
    "rename the object, or read another prefix: a key cannot have an empty segment ('//'), or '.' or '..' as a segment"
)
RETRIES: Final[Any] = {
    "max_retries": 10,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(seconds=0.5), "max_backoff": timedelta(seconds=5), "base": 2},
}
"""Requests that a store does not answer, or answers with 5xx, are retried for 10 to 20 seconds."""
RETRY_OPTIONS: Final = {
    "max_retries": str(RETRIES["max_retries"]),
    "retry_timeout": f"{RETRIES['retry_timeout'].total_seconds():g}s",
    "backoff_config.init_backoff": f"{RETRIES['backoff']['init_backoff'].total_seconds() * 1000:g}ms",
    "backoff_config.max_backoff": f"{RETRIES['backoff']['max_backoff'].total_seconds():g}s",
    "backoff_config.base": str(RETRIES["backoff"]["base"]),
}
"""`RETRIES` as storage options of `deltalake`."""
OBJECTS_AT_ONCE: Final = 16
"""Maximum number of small objects that are read in parallel."""


class ObjectChanged(OSError):
    """The object has another version than the requested one."""


class ObjectStatus(NamedTuple):
    """The state of an object. `version` is its ETag, or its modification time if it has none; two states with the same
    version have the same content."""

    size: int
    version: str
    modified: datetime

    @property
    def milliseconds(self) -> int:
        """The modification time in milliseconds."""
        return round(self.modified.timestamp() * 1000)


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """An object, or all objects below a prefix, with the methods of `pathlib.Path` that landing needs.

    Shape: `bucket` is the URL of the bucket or container. `key` is the rest of the URL, without slashes at its ends.
    `is_file_system` is true in stores whose files can be renamed and can grow (`stores.hdfs`).
    """

    bucket: str
    key: str

    is_file_system: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    def __truediv__(self, name: str) -> Self:
        return type(self)(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        return type(self)(self.bucket, self.key.rpartition("/")[0])

    @property
    def _prefix(self) -> str | None:
        return f"{self.key}/" if self.key else None

    def absolute(self) -> Self:
        return self

    @contextmanager
    def failures(self, *, writes: bool = False) -> Iterator[None]:
        """Convert the exceptions of obstore. In a request that `writes`, "not found" means that the bucket is missing.

        Raises: FileNotFoundError, FileExistsError, ObjectChanged; WirebookError (store-failed) for all others
        """
        exceptions = library("obstore.exceptions")
        try:
            yield
        except FileNotFoundError as error:
            if writes:
                raise self.failed(f"'{self.bucket}' does not exist") from error
            raise FileNotFoundError(f"'{self}' does not exist") from error
        except exceptions.AlreadyExistsError as error:
            raise FileExistsError(f"'{self}' exists") from error
        except exceptions.PreconditionError as error:
            raise ObjectChanged(f"'{self}' has been replaced") from error
        except (exceptions.BaseError, OSError, ValueError) as error:  # in some cases, `obstore` raises PermissionError
            raise self.failed(str(error).partition("\n\nDebug source")[0]) from error

    def failed(self, reason: str) -> WirebookError:
        """The error of a request that failed."""
        return store_failed(self, reason, UNSUPPORTED_KEY if INVALID_KEY in reason else CREDENTIALS)

    # -- reading -------------------------------------------------------------------------------------------------

    def status(self) -> ObjectStatus:
        """Raises: FileNotFoundError, store-failed"""
        with self.failures():
            return _status(library("obstore").head(_store(self.bucket), self.key))

    def exists(self) -> bool:
        """Whether an object with this key exists. Raises: store-failed"""
        try:
            self.status()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether any object exists below this prefix. Raises: store-failed"""
        return next(self.below(at_least=1), None) is not None

    def read_bytes(self, start: int = 0, end: int | None = None, version: str | None = None) -> bytes:
        """The bytes from `start` to `end` of the object, which must have this `version`, if it is specified.

        Raises: FileNotFoundError, ObjectChanged, store-failed
        """
        options: dict[str, Any] = {"if_match": version} if version else {}
        if start or end is not None:
            options["range"] = (start, end) if end is not None else {"offset": start}
        with self.failures():
            return bytes(library("obstore").get(_store(self.bucket), self.key, options=options).bytes())

    def open_input(self, version: str | None = None) -> ObjectReader:
        """Open the object for reading at any position. Raises: FileNotFoundError, ObjectChanged, store-failed"""
        return ObjectReader(self, self.checked_status(version))

    def checked_status(self, version: str | None) -> ObjectStatus:
        """The state of the object, which must have this version, unless it is None.

        Raises: FileNotFoundError, ObjectChanged, store-failed
        """
        status = self.status()
        if version and status.version != version:
            raise ObjectChanged(f"'{self}' has been replaced")
        return status

    def below(self, at_least: int = 1000) -> Iterator[tuple[ObjectPath, ObjectStatus]]:
        """All objects below this prefix, fetched in pages of at least `at_least`. Raises: store-failed"""
        with self.failures():
            pages = library("obstore").list(_store(self.bucket), self._prefix, chunk_size=at_least)
            for page in pages:
                yield from ((ObjectPath(self.bucket, meta["path"]), _status(meta)) for meta in page)

    def folders(self) -> list[str]:
        """The names of the prefixes one level below, sorted. Raises: store-failed"""
        with self.failures():
            listed = library("obstore").list_with_delimiter(_store(self.bucket), self._prefix)
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in listed["common_prefixes"])

    # -- writing -------------------------------------------------------------------------------------------------

    def write_bytes(self, data: bytes) -> None:
        """Raises: store-failed"""
        with self.failures(writes=True):
            library("obstore").put(_store(self.bucket), self.key, data, use_multipart=False)

    def create(self, data: bytes) -> None:
        """Write the object on the condition that it does not exist. An existing object with the same content is not an
        error: if the answer of the store is lost, the client repeats the request, which then finds its own object.

        Raises: FileExistsError, store-failed
        """
        try:
            with self.failures(writes=True):
                library("obstore").put(_store(self.bucket), self.key, data, mode="create", use_multipart=False)
        except FileExistsError:
            with suppress(FileNotFoundError):  # deleted meanwhile
                if self.read_bytes() == data:
                    return
            raise

    def copy_to(self, other: ObjectPath) -> None:
        """Copy the object within its bucket. Raises: FileNotFoundError, store-failed"""
        with self.failures():
            library("obstore").copy(_store(self.bucket), self.key, other.key)

    def unlink(self) -> None:
        """Delete the object, if it exists. Raises: store-failed"""
        with suppress(FileNotFoundError), self.failures():  # S3 does not report a missing object
            library("obstore").delete(_store(self.bucket), self.key)

    def open_output(self) -> ObjectWriter:
        """Open the object for writing. It exists once the writer is closed. Raises: store-failed"""
        with self.failures():
            return ObjectWriter(self, library("obstore").open_writer(_store(self.bucket), self.key))


class ObjectReader(io.RawIOBase):
    """Reads one version of an object. Seekable; each read is a request."""

    def __init__(self, path: ObjectPath, status: ObjectStatus) -> None:
        self._path, self._status, self._position = path, status, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._status.size

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._status.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Raises: FileNotFoundError, ObjectChanged, store-failed"""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        """Raises: FileNotFoundError, ObjectChanged, store-failed"""
        end = self._status.size if size is None or size < 0 else min(self._position + size, self._status.size)
        if self._position >= end:
            return b""
        data = self._path.read_bytes(self._position, end, self._status.version)
        self._position += len(data)
        return data


class ObjectWriter(io.RawIOBase):
    """Uploads an object in parts. The object exists once the writer is closed. The upload is aborted if a `with` block
    ends by an exception, or if the writer is never closed.
    """

    def __init__(self, path: ObjectPath, writer: Any) -> None:
        self._path, self._writer = path, writer
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Raises: store-failed"""
        with self._path.failures(writes=True):
            self._writer.write(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """The number of bytes written."""
        return self._size

    def close(self) -> None:
        """Raises: store-failed"""
        if not self.closed:
            with self._path.failures(writes=True):
                self._writer.close()
        super().close()

    def abandon(self) -> None:
        """Abort the upload, after a failure."""
        if not self.closed:
            with suppress(Exception):  # at worst, the store keeps the parts
                self._writer.__exit__(InterruptedError, InterruptedError(), None)
        super().close()

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> None:
        """Raises: store-failed"""
        if exc_value is None:
            self.close()
        else:
            self.abandon()

    def __del__(self) -> None:
        self.abandon()  # `io.RawIOBase` calls `close`


@lru_cache(maxsize=16)
def _store(bucket: str) -> ObjectStore:
    from_url = library("obstore.store").from_url
    store: ObjectStore = from_url(bucket, client_options={"allow_http": True}, retry_config=RETRIES)
    return store


def _status(meta: Any) -> ObjectStatus:
    version = meta["e_tag"] or meta["last_modified"].isoformat()
    if not version.endswith('"'):  # Azure omits the quotes in listings; conditions need them
        version = f'"{version}"'
    return ObjectStatus(meta["size"], version, meta["last_modified"])


def store_failed(path: ObjectPath, reason: str, hint: str = CREDENTIALS) -> WirebookError:
    """The error of a store that refused a request or did not answer. A long reason is cut."""
    reason = LONG_URL.sub(r"\1...", " ".join(reason.split()))[:MAX_MESSAGE]  # the status follows the URL
    message = f"the store of '{path}' refused a request or did not answer: {reason}"
    return WirebookError(Problem("store-failed", message, file=str(path), hint=hint))


def is_refusal(problem: Problem) -> bool:
    """Whether a store refused a request, for example for its credentials, so that a retry does not help. A store that
    does not answer or is busy has not refused it."""
    return problem.code == "store-failed" and REFUSAL.search(problem.message) is not None
