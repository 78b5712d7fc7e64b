"""Locations from paths and URLs, and operations on them that work for local files, objects and HDFS."""

from __future__ import annotations

import io
import os
import re
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from urllib.parse import unquote

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
    "masked_url",
    "move",
    "open_output",
    "open_source",
    "parquet_source",
    "refuse_credentials",
    "size_and_time",
    "source_location",
]

Location: TypeAlias = Path | ObjectPath
AnyPath: TypeAlias = str | PathLike[str] | ObjectPath
"""A location as callers specify it: a path or a URL."""

URL: Final = re.compile(r"(?is)([a-z][a-z0-9+.-]+)://([^/?#]*)([^?#]*)(.*)")
LIKE_URL: Final = re.compile(r"(?is)([a-z][a-z0-9+.-]+):(/*)(.*)")
ADDRESS: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(:\d*)?")
"""The host of a URL, and its port if it has one."""
AT: Final = re.compile("@|%40")
FILE_URL: Final = re.compile(r"(?is)file:(?://(?:localhost)?(?=/)|(?!//))(/[^?#]*).*")
STORES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfs", "az": "az", "hdfs": "hdfs"}
"""Maps the URL schemes of stores to those that `obstore`, `hdfs-native` and `deltalake` accept."""
OTHER_STORES: Final = frozenset({
    "adl", "azure", "cosn", "dbfs", "gcs", "maprfs", "obs", "ofs", "oss", "r2", "s3n", "swebhdfs", "viewfs", "wasb",
    "wasbs", "webhdfs",
})  # fmt: skip
OF_AZURE: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes whose URLs have a container before the ``@``."""


def location_of(place: AnyPath) -> Location:
    """The file, folder or object at a path or URL. A colon alone does not make a URL: ``run:2026`` is a folder.

    Malformed URLs of stores, such as ``s3:/lake`` or a `Path` of a URL, are rejected, so that they do not become local
    folders.

    Raises: WirebookError (unsupported-store for malformed URLs, other schemes and URLs with credentials; missing-extra)
    """
    if isinstance(place, ObjectPath):
        return place
    text, is_path = fspath(place), not isinstance(place, str)
    if not is_path and (url := FILE_URL.fullmatch(text)):
        return Path(unquote(url[1]))
    if like := LIKE_URL.fullmatch(text):
        scheme = like[1].lower()
        if scheme in {"file", *STORES, *OTHER_STORES} or (like[2] and not is_path):
            return _object_of(text, scheme, is_path=is_path)
    path = Path(place)
    return (
        path.absolute() if ":" in text or text.startswith("~") else path
    )  # PyArrow would take a relative path with a colon for a URL, and expand ``~``


def _object_of(text: str, scheme: str, *, is_path: bool) -> ObjectPath:
    """The object at a URL. Raises: unsupported-store, missing-extra"""
    shown = masked_url(text)
    url = None if is_path else URL.fullmatch(text)
    folder = "an absolute path" if is_path else f"'./{shown}'"
    folder = f"for a folder of that name, write {folder}"
    if scheme not in STORES:
        message = f"'{shown}' is in a store that Wirebook does not read or write: '{scheme}'"
        expected = f"a path, a file: URL, or a URL of {', '.join(STORES)}"
        hint = "use a folder, HDFS, or an object store of S3, GCS or Azure"
        if scheme == "file":
            message = f"'{shown}' is not the URL of a file of this machine"
            hint = "write it as file:///FOLDER"
        raise WirebookError(Problem("unsupported-store", message, expected=expected, hint=f"{hint}; {folder}"))
    refuse_credentials(text)
    if url is None or not url[2] or url[4]:
        store, parts = ("HDFS", "HOST:PORT") if scheme == "hdfs" else ("a bucket", "BUCKET")
        parts = "CONTAINER@ACCOUNT.dfs.core.windows.net" if scheme in OF_AZURE else parts
        hint = f"write it as {'a string, ' if is_path else ''}{scheme}://{parts}/FOLDER"
        hint = hint if url else f"{hint}; {folder}"
        raise WirebookError(Problem("unsupported-store", f"'{shown}' names no folder of {store}", hint=hint))
    library("hdfs_native" if scheme == "hdfs" else "obstore")
    return _remote(STORES[scheme], url[2], re.sub("//+", "/", url[3]).strip("/"))


def refuse_credentials(url: str) -> None:
    """Reject the URL of a store if it contains credentials.

    Secret keys of AWS can contain slashes, so if the host has a colon, an ``@`` in the path also ends credentials. HDFS
    is an exception: its hosts have ports, and its URLs have no passwords.

    Raises: WirebookError (unsupported-store)
    """
    match = LIKE_URL.fullmatch(url)
    if match is None:
        return
    scheme, (host, _, path) = match[1].lower(), match[3].partition("/")
    user, at, address = unquote(host).rpartition("@")
    port = ADDRESS.fullmatch(address)
    is_container = scheme in OF_AZURE and ":" not in user
    if (not at or is_container) and port and not (port[1] and "@" in unquote(path) and scheme != "hdfs"):
        return
    message = f"the URL of '{masked_url(url)}' has credentials" + (
        "" if port or at else ", or a port that is no number"
    )
    of_s3, of_hdfs = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "HADOOP_USER_NAME, or in a Kerberos ticket"
    hint = f"put credentials into the environment, as in {of_hdfs if scheme == 'hdfs' else of_s3}"
    raise WirebookError(Problem("unsupported-store", message, hint=hint))


def masked_url(url: str) -> str:
    """A URL for messages, without possible secrets: the text before the last ``@``, a port that is not a number and
    everything after it, the query and the fragment. URLs of Azure keep a container before the ``@``."""
    match = LIKE_URL.fullmatch(re.split("[?#]", url, maxsplit=1)[0])
    if match is None:
        return url
    *before, rest = AT.split(match[3])
    if match[1].lower() in OF_AZURE and not any(":" in unquote(part) for part in before):
        rest = match[3]
    host = rest.partition("/")[0]
    if not ADDRESS.fullmatch(unquote(AT.split(host)[-1])):
        rest = f"{re.split(':|%3[aA]', host, maxsplit=1)[0]}:***"
    return f"{match[1]}:{match[2]}{rest}"


def _remote(scheme: str, host: str, key: str) -> ObjectPath:
    return (HdfsPath if scheme == "hdfs" else ObjectPath)(f"{scheme}://{host}", key)


def is_file_system(location: Location) -> bool:
    """Whether files can be renamed there, so that staged files become part of their tables by renames."""
    return isinstance(location, Path) or location.is_file_system


def local_path(place: AnyPath) -> Path:
    """The path of a local file or folder.

    Raises: WirebookError (unsupported-store, for any other location)
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
    """Rename a file within a file system (see `is_file_system`). Raises: OSError, store-failed"""
    if isinstance(file, HdfsPath) and isinstance(to, HdfsPath):
        file.rename_to(to)
    else:
        os.rename(str(file), str(to))


def parquet_source(location: Location | bytes, version: str | None = None) -> Any:
    """The source argument for the functions of `pyarrow.parquet` that read a file. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        return pa.PythonFile(location.open_input(version), "r")
    return pa.OSFile(location) if isinstance(location, bytes) else location


def files_in(location: Location) -> list[str]:
    """The names of the entries of a folder, which need not exist; in a store, only those of files.

    Raises: OSError, store-failed
    """
    if isinstance(location, ObjectPath):
        return [path.name for path, _ in location.below() if path.parent == location]
    return [path.name for path in location.iterdir()] if location.is_dir() else []


def folders_in(location: Location) -> list[str]:
    """The names of the folders in a folder, which need not exist, sorted. Raises: OSError, store-failed"""
    if isinstance(location, ObjectPath):
        return location.folders()
    return sorted(path.name for path in location.iterdir() if path.is_dir()) if location.is_dir() else []


def open_source(path: bytes, version: str | None = None) -> io.RawIOBase:
    """Open a source file for reading without a buffer. Raises: OSError, store-failed"""
    location = source_location(path)
    return location.open_input(version) if isinstance(location, ObjectPath) else io.FileIO(os.fsdecode(location))


def size_and_time(location: Location | bytes) -> tuple[int, int]:
    """The size of a file in bytes, and its modification time in milliseconds. Raises: OSError, store-failed"""
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
        try:
            if not self.closed:
                os.fsync(self.fileno())
        finally:
            super().close()
