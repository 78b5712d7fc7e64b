"""Land the rows of a Spark DataFrame: find the columns with messages, and land each partition in a Python worker."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from wirebook.catalog import Catalog
from wirebook.landing.runs.frame_task import FrameInput, run_frame_task
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.sources.column_types import ColumnType, check_types
from wirebook.landing.sources.dataframes import InputColumns, input_columns, missing_topic
from wirebook.problems import Problem
from wirebook.spark.runner import collect_whole, spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["frame_columns", "missing_columns", "run_frame", "warn"]


def frame_columns(frame: DataFrame, chosen: Mapping[str, str] | None) -> InputColumns:
    """Find the columns of a DataFrame that hold messages, and check their types. `chosen` is as for `input_columns`.

    Raises: frame-columns
    """
    fields = frame.schema.fields
    inputs = input_columns([field.name for field in fields], chosen)
    types = {field.name: ColumnType(field.dataType.jsonValue(), field.dataType.simpleString()) for field in fields}
    check_types(inputs, types)
    return inputs


def missing_columns(
    frame: DataFrame, inputs: InputColumns, chosen: Mapping[str, str] | None, catalog: Catalog
) -> list[Problem]:
    """Return a warning if Kafka rows lack the headers by which the catalogue recognises messages, or lack the topic,
    so that they are read as lines.

    A caller who maps columns has chosen which ones to read, so there is no warning.
    """
    return missing_topic(inputs, frame.columns, chosen) or _missing_headers(inputs, chosen, catalog)


def _missing_headers(inputs: InputColumns, chosen: Mapping[str, str] | None, catalog: Catalog) -> list[Problem]:
    is_complete = inputs.form != "kafka" or "headers" in inputs.names or chosen is not None
    if is_complete or not any(_needs_headers(message.attributes) for message in catalog.registry.messages.values()):
        return []
    message = (
        "the DataFrame has the columns of Kafka messages, but no 'headers', so CloudEvents are not recognised, and the "
        "headers that definitions require are missing"
    )
    hint = (
        "read the topic with .option('includeHeaders', 'true'); if the messages have no headers, map the columns to "
        f"read, as in columns={dict(inputs.names)}"
    )
    return [Problem("missing-headers", message, hint=hint)]


def _needs_headers(attributes: Mapping[str, Any]) -> bool:
    """Whether the headers of Kafka messages matter to a definition with these attributes."""
    if attributes.get("protocol") not in (None, "KAFKA"):
        return False
    return bool(attributes.get("envelope") or (attributes.get("protocoloptions") or {}).get("headers"))


def warn(problems: Iterable[Problem], stacklevel: int) -> None:
    """Issue problems as Python warnings. `stacklevel` is as for `warnings.warn`, counted from the caller."""
    for problem in problems:
        warnings.warn(f"{problem.message} [{problem.code}]; {problem.hint}", stacklevel=stacklevel + 1)


def run_frame(frame: DataFrame, job: Job, source: FrameInput) -> list[TaskResult]:
    """Land the partitions of a DataFrame, and return one result per partition.

    Raises: spark-failed
    """
    with spark_failures():
        rows = collect_whole(frame.mapInArrow(partial(land_partition, job, source), "result binary"))
    return [msgspec.msgpack.decode(row["result"], type=TaskResult) for row in rows]


def land_partition(job: Job, source: FrameInput, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Land one partition. Columns out: result."""
    from pyspark import TaskContext  # noqa: PLC0415 (only in Spark's workers)

    context = TaskContext.get()
    result = run_frame_task(job, source, batches, context.partitionId() if context else 0)
    yield pa.RecordBatch.from_pydict({"result": [msgspec.msgpack.encode(result)]})
