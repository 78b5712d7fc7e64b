"""The Spark jobs that are compared: the product, a bare job, and one filter per definition."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import traffic
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from wirebook.catalog import Catalog
from wirebook.landing.runs.report import Report
from wirebook.spark.job import land, land_batch
from wirebook.spark.session import session

RECORD_DDL = (
    "protocol string, received timestamp, topic string, partition bigint, offset bigint, key string, "
    "headers array<array<string>>, value string, qos bigint, retain boolean, "
    "properties struct<content_type: string>, user_properties array<array<string>>, payload string"
)
KEPT = ("protocol", "received", "topic", "partition", "offset", "key", "headers", "qos", "retain", "user_properties")
THREADS = 8
BATCH = 250_000  # messages


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
    """`wirebook land` into an empty folder: match, validate, decode, one table per definition, dead letters."""
    return land(spark, source, catalog, emptied(to), **settings)


def product_frame(spark: SparkSession, source: Path, catalog: Catalog, to: Path) -> Report:
    """The same for the rows of a DataFrame: lines of JSON in one column, or the columns of a capture in Parquet."""
    return land_batch(_raw(spark, source), 0, catalog, emptied(to), query="bench")


# -- the bare job ---------------------------------------------------------------------------------------------------


def records(spark: SparkSession, source: Path) -> DataFrame:
    """The parsed records of a capture, with the payload as text in `data`."""
    return _parsed(_raw(spark, source))


def _raw(spark: SparkSession, source: Path) -> DataFrame:
    return spark.read.parquet(str(source)) if _is_parquet(source) else spark.read.text(str(source))


def _is_parquet(source: Path) -> bool:
    return bool(list(source.glob("*.parquet")))


def _parsed(raw: DataFrame) -> DataFrame:
    if "protocol" in raw.columns:
        return raw.select(*KEPT, F.coalesce("value", "payload").cast("string").alias("data"))
    parsed = raw.select(F.from_json("value", RECORD_DDL).alias("record")).select("record.*")
    return parsed.select(*KEPT, F.coalesce("value", "payload").alias("data"))


def payload() -> Column:
    return F.from_json("data", traffic.PAYLOAD_DDL)


def bare(spark: SparkSession, source: Path, to: Path) -> None:
    """Read, `from_json` of record and payload, one Parquet table: no matching, no validation."""
    frame = records(spark, source).select(*KEPT, payload().alias("payload")).select(*KEPT, "payload.*")
    frame.write.parquet(str(emptied(to)))


# -- one filter per definition --------------------------------------------------------------------------------------


def filters(spark: SparkSession, source: Path, definitions: int, to: Path) -> None:
    """The usual job written by hand: `foreachBatch` caches the batch, then filters and writes it per definition.

    A batch has about `BATCH` messages, in whole files. The job compares only `type` or the topic: it has no templates,
    no equality of placeholders, no validation and no dead letters.
    """
    emptied(to)
    write = partial(_write_all, definitions=definitions, by_struct=_is_parquet(source), to=to)
    with tempfile.TemporaryDirectory(prefix="wirebook-bench-") as checkpoint:
        writer = _stream(spark, source).writeStream.foreachBatch(write).trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()


def _stream(spark: SparkSession, source: Path) -> DataFrame:
    whole = spark.read.parquet(str(source)) if _is_parquet(source) else spark.read.text(str(source))
    messages = int(source.name.split("-")[2])
    reader = spark.readStream.schema(whole.schema).option(
        "maxFilesPerTrigger", max(1, BATCH * traffic.FILES // messages)
    )
    return reader.parquet(str(source)) if _is_parquet(source) else reader.text(str(source))


def _write_all(batch: DataFrame, _: int, *, definitions: int, by_struct: bool, to: Path) -> None:
    frame = _parsed(batch).withColumn("type", _event_type(by_struct)).persist()
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda number: _write(frame, number, to), range(definitions)))
    finally:
        frame.unpersist()


def _event_type(by_struct: bool) -> Column:
    if by_struct:
        types = F.filter("headers", lambda header: header["name"] == "ce_type")
        return F.get(types, F.lit(0))["value"].cast("string")
    return F.get(F.get(F.filter("headers", lambda header: header[0] == "ce_type"), F.lit(0)), F.lit(1))


def _write(frame: DataFrame, number: int, to: Path) -> None:
    label = traffic.name(number)
    fits = F.col("type") == label if traffic.is_event(number) else F.col("topic").endswith(f"/{label}")
    chosen = frame.where(fits).select(*KEPT, payload().alias("payload")).select(*KEPT, "payload.*")
    chosen.write.mode("append").parquet(str(to / label))
