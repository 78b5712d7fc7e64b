"""The jobs on Spark that are compared: the product, the bare job, and one filter for each definition."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import traffic
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from wirebook.catalog import Catalog
from wirebook.spark.job import land
from wirebook.spark.report import Report
from wirebook.spark.session import session

RECORD_DDL = (
    "protocol string, received timestamp, topic string, partition bigint, offset bigint, key string, "
    "headers array<array<string>>, value string, qos bigint, retain boolean, "
    "properties struct<content_type: string>, user_properties array<array<string>>, payload string"
)
KEPT = ("protocol", "received", "topic", "partition", "offset", "key", "headers", "qos", "retain", "user_properties")
THREADS = 8


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    spark = session("benchmarks")
    try:
        yield spark
    finally:
        spark.stop()


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


# -- the product ----------------------------------------------------------------------------------------------------


def product(spark: SparkSession, source: Path, catalog: Catalog, to: Path, **settings: Any) -> Report:
    """`wirebook land` into a fresh folder: match, validate, decode, one table for each definition, dead letters."""
    return land(spark, source, catalog, emptied(to), **settings)


# -- the bare job ---------------------------------------------------------------------------------------------------


def records(spark: SparkSession, source: Path) -> DataFrame:
    """The records of a capture, parsed, with the payload as text in `data`."""
    if list(source.glob("*.parquet")):
        frame = spark.read.parquet(str(source))
        data = F.coalesce(F.col("value"), F.col("payload")).cast("string")
        return frame.select(*KEPT, data.alias("data"))
    parsed = spark.read.text(str(source)).select(F.from_json("value", RECORD_DDL).alias("record")).select("record.*")
    return parsed.select(*KEPT, F.coalesce("value", "payload").alias("data"))


def payload() -> Column:
    return F.from_json("data", traffic.PAYLOAD_DDL)


def bare(spark: SparkSession, source: Path, to: Path) -> None:
    """Read, `from_json` of record and payload, one Parquet table: no matching, no validation."""
    frame = records(spark, source).select(*KEPT, payload().alias("payload")).select(*KEPT, "payload.*")
    frame.write.parquet(str(emptied(to)))


# -- one filter for each definition ---------------------------------------------------------------------------------


def filters(spark: SparkSession, source: Path, definitions: int, to: Path) -> None:
    """What is written inside `foreachBatch`: the batch cached, then a filter and a write for each definition.

    It is spared the templates, the equality of placeholders, validation and dead letters: only `type` or topic count.
    """
    emptied(to)
    frame = records(spark, source).withColumn("type", _event_type(source)).persist()
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda number: _write(frame, number, to), range(definitions)))
    finally:
        frame.unpersist()


def _event_type(source: Path) -> Column:
    if list(source.glob("*.parquet")):
        found = F.filter("headers", lambda header: header["name"] == "ce_type")
        return F.get(found, F.lit(0))["value"].cast("string")
    return F.get(F.get(F.filter("headers", lambda header: header[0] == "ce_type"), F.lit(0)), F.lit(1))


def _write(frame: DataFrame, number: int, to: Path) -> None:
    label = traffic.name(number)
    fits = F.col("type") == label if traffic.is_event(number) else F.col("topic").endswith(f"/{label}")
    chosen = frame.where(fits).select(*KEPT, payload().alias("payload")).select(*KEPT, "payload.*")
    chosen.write.parquet(str(to / label))
