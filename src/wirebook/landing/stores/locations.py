"""Places that callers name, paths and URLs, and what files of this machine and objects have in common."""

from __future__ import annotations

import io
import os
import re
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from wirebook.landing.stores.hdfs import HdfsPath
from wirebook.landing.stores.objects import ObjectPath, ObjectWriter
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library

__all__ = [
    "AnyPath",
    "DurableFile",
    "Location",
    "files_in",
    "folders_in",
    "is_file_system",
    "local_path",
    "location_of",
    "move",
    "open_output",
    "open_source",
    "parquet_source",
    "size_and_time",
    "source_location",
]

Location: TypeAlias = Path | ObjectPath
AnyPath: TypeAlias = str | PathLike[str] | ObjectPath
"""What callers may write for a location: a path, or a URL."""

URL: Final = re.compile(r"(?i)file:/|[a-z][a-z0-9+.-]+://")
STORES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfs", "az": "az", "hdfs": "hdfs"}
"""The schemes of stores, each with the one that `obstore`, `hdfs-native` and `deltalake` know."""


def location_of(place: AnyPath) -> Location:
    """The file, folder or object at a path or URL. A colon alone makes no URL: ``run:2026`` is a folder.

    Raises: WirebookError (unsupported-store for other schemes and for URLs with credentials, missing-extra)
    """
    if isinstance(place, ObjectPath):
        return place
    text = fspath(place)
    if not isinstance(place, str) or not URL.match(text):
        path = Path(place)
        return path.absolute() if ":" in text else path  # pyarrow takes a relative path with a colon for a URL
    url = urlsplit(text)
    scheme = url.scheme.lower()
    if scheme == "file" and url.netloc.lower() in ("", "localhost"):
        return Path(unquote(url.path))
    shown = re.sub(r"(?<=://)[^/@]*@", "", text) if url.password is not None or not scheme.startswith("abfs") else text
    if scheme not in STORES:
        message = f"'{shown}' is in a store that Wirebook does not read or write: '{url.scheme}'"
        expected = f"a path, a file: URL, or a URL of {', '.join(STORES)}"
        hint = "use a folder, HDFS, or an object store of S3, GCS or Azure"
        raise WirebookError(Problem("unsupported-store", message, expected=expected, hint=hint))
    if url.password is not None or (url.username is not None and not scheme.startswith("abfs")):
        of_s3, of_hdfs = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "HADOOP_USER_NAME, or in a Kerberos ticket"
        hint = f"put credentials into the environment, as in {of_hdfs if scheme == 'hdfs' else of_s3}"
        raise WirebookError(Problem("unsupported-store", f"the URL of '{shown}' has credentials", hint=hint))
    if not url.netloc or url.query or url.fragment:
        place, parts = ("HDFS", "HOST:PORT") if scheme == "hdfs" else ("a bucket", "BUCKET")
        hint = f"write it as {scheme}://{parts}/FOLDER"
        raise WirebookError(Problem("unsupported-store", f"'{shown}' names no folder of {place}", hint=hint))
    library("hdfs_native" if scheme == "hdfs" else "obstore")
    return _remote(STORES[scheme], url.netloc, re.sub("//+", "/", url.path).strip("/"))


def _remote(scheme: str, host: str, key: str) -> ObjectPath:
    return (HdfsPath if scheme == "hdfs" else ObjectPath)(f"{scheme}://{host}", key)


def is_file_system(location: Location) -> bool:
    """Whether files there are renamed, so that staged files become part of their tables by renames."""
    return isinstance(location, Path) or location.is_file_system


def local_path(place: AnyPath) -> Path:
    """The path of a place of this machine.

    Raises: WirebookError (unsupported-store, for any other)
    """
    location = location_of(place)
    if isinstance(location, Path):
        return location
    hint = "use a folder of this machine or of a file system that all machines mount, or a file: URL"
    raise WirebookError(Problem("unsupported-store", f"'{location}' is not in a file system", hint=hint))


def source_location(path: bytes) -> bytes | ObjectPath:
    """The location of a source file: the absolute path itself, or the object whose URL it is."""
    if path.startswith(b"/"):
        return path
    scheme, rest = path.decode().split("://", 1)
    host, _, key = rest.partition("/")
    return _remote(scheme, host, key)


def move(file: Location, to: Location) -> None:
    """Rename a file in a file system, to which `is_file_system` applies. Raises: OSError, store-failed"""
    if isinstance(file, HdfsPath) and isinstance(to, HdfsPath):
        file.rename_to(to)
    else:
        os.rename(str(file), str(to))


def parquet_source(location: Location | bytes, version: str | None = None) -> Any:
    """What the functions of `pyarrow.parquet` read a file from. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        return pa.PythonFile(location.open_input(version), "r")
    return pa.OSFile(location) if isinstance(location, bytes) else location


def files_in(location: Location) -> list[str]:
    """The names of the files in a folder, which need not exist. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        return [path.name for path, _ in location.below() if path.parent == location]
    return [path.name for path in location.iterdir()] if location.is_dir() else []


def folders_in(location: Location) -> list[str]:
    """The names of the folders in a folder. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        return location.folders()
    return sorted(path.name for path in location.iterdir() if path.is_dir()) if location.is_dir() else []


def open_source(path: bytes, version: str | None = None) -> io.RawIOBase:
    """Open a source file for reading without a buffer. Raises: OSError, store-failed"""
    location = source_location(path)
    return location.open_input(version) if isinstance(location, ObjectPath) else io.FileIO(os.fsdecode(location))


def size_and_time(location: Location | bytes) -> tuple[int, int]:
    """The size of a file in bytes, and when it was last written, in milliseconds. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        status = location.status()
        return status.size, status.milliseconds
    of_file = os.stat(location)
    return of_file.st_size, of_file.st_mtime_ns // 1_000_000


def open_output(location: Location) -> IO[bytes] | ObjectWriter:
    """Open a new file for writing; it survives a power failure once it is closed. Raises: OSError, store-failed"""
    return location.open_output() if isinstance(location, ObjectPath) else io.BufferedWriter(DurableFile(location, "w"))


class DurableFile(io.FileIO):
    """A file that is flushed to the disk when it is closed."""

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
        super().close()
