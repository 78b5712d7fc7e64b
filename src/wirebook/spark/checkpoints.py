"""Checkpoints of streaming queries, in folders of this machine and in stores."""

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
"""The beginning of a URL of a store. Some have no host: ``hdfs:/folder``."""
HADOOP_SCHEMES: Final = frozenset({
    "abfs", "abfss", "adl", "alluxio", "cos", "cosn", "dbfs", "ftp", "gs", "har", "hdfs", "jfs", "maprfs", "o3fs",
    "obs", "ofs", "oss", "s3", "s3a", "s3n", "sftp", "swebhdfs", "tos", "viewfs", "wasb", "wasbs", "webhdfs",
})  # fmt: skip
"""The schemes of Hadoop's file systems, and of those that other projects make for Hadoop."""
OF_FOLDERS: Final = "file://"


def check_checkpoint(checkpoint: AnyPath) -> None:
    """Check the place of a checkpoint as far as that is possible before Spark starts. A session that others provide may
    have file systems of its own.

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
    """The URL of a checkpoint for Spark. A path is one of this machine, whatever file system is Hadoop's default.

    Hadoop does not decode URLs, so a folder with a space in its name has one in its URL, too.

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
    """Whether the checkpoint at a URL of `checkpoint_url` is a folder of this machine."""
    return url.startswith(OF_FOLDERS)


def checkpoint_folder(url: str) -> Location:
    """Where the checkpoint at a URL of `checkpoint_url` is for Wirebook.

    Raises: unsupported-store, missing-extra if only Spark reaches it
    """
    return Path(url.removeprefix(OF_FOLDERS)) if is_folder(url) else location_of(url)


def clear_unfinished(url: str) -> None:
    """Delete the files that a killed process was still writing, unless a batch has begun: Spark refuses to begin its
    first batch beside them. `url` is one of `checkpoint_url`."""
    try:
        folder = checkpoint_folder(url)
        files = [folder / log / name for log in ("offsets", "commits") for name in files_in(folder / log)]
        if all(file.name.startswith(".") for file in files):
            for file in files:
                file.unlink()
    except WirebookError:  # a store that only Spark reaches
        return
