"""Land the rows of a DataFrame: on Spark, each partition is landed by a Python worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from wirebook.landing.runs.frame_task import FrameInput, run_frame_task
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.spark.runner import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["run_frame"]


def run_frame(frame: DataFrame, job: Job, source: FrameInput) -> list[TaskResult]:
    """Land the partitions of a DataFrame, and return one result per partition.

    Raises: spark-failed
    """
    with spark_failures():
        rows = frame.mapInArrow(partial(land_partition, job, source), "result binary").collect()
    return [msgspec.msgpack.decode(bytes(row["result"]), type=TaskResult) for row in rows]


def land_partition(job: Job, source: FrameInput, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Land one partition. Columns out: result."""
    from pyspark import TaskContext  # noqa: PLC0415 (in Spark's workers alone)

    context = TaskContext.get()
    result = run_frame_task(job, source, batches, context.partitionId() if context else 0)
    yield pa.RecordBatch.from_pydict({"result": [msgspec.msgpack.encode(result)]})
