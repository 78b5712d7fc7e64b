"""Object stores as Spark sees them: by Hadoop's file systems, which PySpark does not contain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebook.landing.stores.locations import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hadoop_url", "has_file_system"]


def hadoop_url(place: Location | str) -> str:
    """A folder or URL as Spark names it: the objects of S3 have the scheme of Hadoop's file system."""
    return str(place) if isinstance(place, Path) else re.sub("^s3n?:", "s3a:", str(place))


def has_file_system(spark: SparkSession, url: str) -> bool:
    """Whether Spark has the jars of the file system of a URL."""
    from py4j.protocol import Py4JError  # noqa: PLC0415

    java: Any = spark.sparkContext
    try:
        java._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            url.partition(":")[0], java._jsc.hadoopConfiguration()
        )
    except Py4JError:
        return False
    return True
