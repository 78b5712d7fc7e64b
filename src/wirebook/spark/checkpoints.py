"""Locations of the checkpoints of streaming queries: local folders and remote stores."""

from __future__ import annotations

import re
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebook.landing.stores.locations import (
    AnyPath,
    Location,
    files_in,
    local_path,
    location_of,
    masked_url,
    refuse_credentials,
)
from wirebook.landing.stores.objects import ObjectPath
from wirebook.problems import Problem, WirebookError
from wirebook.spark.hadoop import hadoop_url, has_file_system
from wirebook.spark.session import is_submitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_checkpoint", "checkpoint_folder", "checkpoint_url", "clear_unfinished", "is_folder"]

URL: Final = re.compile(r"(?i)(?!file:)[a-z][a-z0-9+.-]+:/")
"""Matches the start of a store URL. Some have no host: ``hdfs:/folder``."""
HADOOP_SCHEMES: Final = frozenset({
    "abfs", "abfss", "adl", "alluxio", "cos", "cosn", "dbfs", "ftp", "gs", "har", "hdfs", "jfs", "maprfs", "o3fs",
    "obs", "ofs", "oss", "s3", "s3a", "s3n", "sftp", "swebhdfs", "tos", "viewfs", "wasb", "wasbs", "webhdfs",
})  # fmt: skip
"""The URL schemes of Hadoop's own file systems and of those that other projects provide for Hadoop."""
OF_FOLDERS: Final = "file://"


def check_checkpoint(checkpoint: AnyPath) -> None:
    """Check the location of a checkpoint as far as possible before Spark starts. Unknown schemes are accepted if
    spark-submit or Spark Connect provides the session, because it may have other file systems.

    Raises: unsupported-store
    """
    text = str(checkpoint) if isinstance(checkpoint, ObjectPath) else fspath(checkpoint)
    if not isinstance(checkpoint, str | ObjectPath) or not URL.match(text):
        local_path(checkpoint)
        return
    refuse_credentials(text)
    if text.partition(":")[0].lower() not in HADOOP_SCHEMES and not is_submitted():
        raise _without_file_system(text)


def checkpoint_url(spark: SparkSession, checkpoint: AnyPath) -> str:
    """Return the URL of a checkpoint for Spark. A path is local, whatever Hadoop's default file system is.

    Hadoop does not decode URLs, so spaces in folder names are not percent-encoded.

    Raises: unsupported-store if Spark cannot write to the store, and for URLs with credentials
    """
    text = str(checkpoint) if isinstance(checkpoint, ObjectPath) else fspath(checkpoint)
    if not isinstance(checkpoint, str | ObjectPath) or not URL.match(text):
        return f"{OF_FOLDERS}{local_path(checkpoint).absolute()}"
    refuse_credentials(text)
    scheme, _, rest = text.partition(":")
    url = hadoop_url(f"{scheme.lower()}:{rest}")
    if not has_file_system(spark, url):
        raise _without_file_system(url)
    return url


def _without_file_system(url: str) -> WirebookError:
    shown = masked_url(url)
    message = f"Spark cannot keep the progress of the query in '{shown}': it lacks Hadoop's file system for this store"
    hint = (
        "name a folder that later runs see too as the checkpoint, such as '/var/lib/wirebook/orders', or start "
        "Spark with the jars of the store, such as org.apache.hadoop:hadoop-aws; `wirebook stream` without "
        "--checkpoint needs neither"
    )
    return WirebookError(Problem("unsupported-store", message, actual=shown, hint=hint))


def is_folder(url: str) -> bool:
    """Whether a URL from `checkpoint_url` is a local folder."""
    return url.startswith(OF_FOLDERS)


def checkpoint_folder(url: str) -> Location:
    """Convert a URL from `checkpoint_url` to a location that Wirebook can access without Spark.

    Raises: unsupported-store, missing-extra if only Spark reaches it
    """
    return Path(url.removeprefix(OF_FOLDERS)) if is_folder(url) else location_of(url)


def clear_unfinished(url: str) -> None:
    """Delete the temporary files of a process that was killed while it wrote them, unless the checkpoint already
    records a batch: Spark does not start the first batch while such files exist. `url` comes from `checkpoint_url`."""
    try:
        folder = checkpoint_folder(url)
        files = [folder / log / name for log in ("offsets", "commits") for name in files_in(folder / log)]
        if all(file.name.startswith(".") for file in files):
            for file in files:
                file.unlink()
    except WirebookError:  # only Spark can access the store
        return
