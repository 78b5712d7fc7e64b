"""Object stores in Spark, which accesses them through Hadoop's file systems. PySpark does not include these."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebook.landing.stores.locations import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hadoop_url", "has_file_system"]


def hadoop_url(place: Location | str) -> str:
    """Return a folder or URL in the form that Spark expects: S3 URLs get Hadoop's scheme ``s3a``."""
    return str(place) if isinstance(place, Path) else re.sub("^s3n?:", "s3a:", str(place))


def has_file_system(spark: SparkSession, url: str) -> bool:
    """Whether Spark has the jars of Hadoop's file system for a URL."""
    from py4j.protocol import Py4JError  # noqa: PLC0415

    java: Any = spark.sparkContext
    try:
        java._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            url.partition(":")[0], java._jsc.hadoopConfiguration()
        )
    except Py4JError:
        return False
    return True
