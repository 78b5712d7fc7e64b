"""Run the tasks of a batch on Spark, using only its public API, so that Spark Connect works, too.

A DataFrame with one row per partition goes through `mapInArrow`. Each partition runs its task in a Python worker and
returns one row: the encoded summary. No message passes through the JVM.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from wirebook.landing.runs.settings import Tasks
from wirebook.landing.runs.task import Job, TaskResult, run_task
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import missing_extra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkRunner", "collect_whole", "parallelism_of", "spark_failures"]

MAX_MESSAGE = 300
WORKER_DIED = "Python worker exited unexpectedly"
JAVA_GONE = ("JAVA_GATEWAY_EXITED", "Gateway is not connected", "Java side is empty", "Error while ")
"""Parts of the error messages of PySpark and py4j after the Java process has ended."""
NO_ANSWER = re.compile(r"An error occurred while calling \S+")
"""The whole message of py4j if Java ends during a call. If Java throws an exception, the exception follows."""
TRACEBACK = "Traceback (most recent call last):"


class SparkRunner:
    """Runs tasks on the session that `start` returns. The session is started only if there is something to run."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start

    @cached_property
    def _spark(self) -> SparkSession:
        with spark_failures():
            return self._start()

    @cached_property
    def parallelism(self) -> int:
        """The number of tasks that run at once."""
        return parallelism_of(self._spark)

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        with spark_failures():
            frame = self._spark.range(0, len(tasks), 1, len(tasks))
            rows = collect_whole(frame.mapInArrow(partial(run_rows, job, tasks), "task long, result binary"))
        decoded = {row["task"]: msgspec.msgpack.decode(row["result"], type=TaskResult) for row in rows}
        return [decoded[number] for number in range(len(tasks))]


def collect_whole(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a small DataFrame: all of its rows, or an exception.

    If Java ends during the transfer, `DataFrame.collect` returns fewer rows without an error. The data that `toArrow`
    reads states how much there is, so a truncated transfer raises an exception.

    Raises: exceptions of PySpark, py4j and the socket to Java
    """
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def parallelism_of(spark: SparkSession) -> int:
    """The number of tasks that run at once; over Spark Connect, the default number of partitions.

    Raises: spark-failed
    """
    with suppress(AttributeError):
        return int(spark.sparkContext.defaultParallelism)
    from pyspark.sql import functions as F  # noqa: PLC0415 (half a second)

    with spark_failures():
        partitions = spark.range(1 << 16).select(F.spark_partition_id().alias("partition"))
        return max(partitions.distinct().count(), 1)


@contextmanager
def spark_failures() -> Iterator[None]:
    """Convert the exceptions of py4j, PySpark and the socket connection to Java.

    Raises: spark-failed, missing-extra
    """
    root = logging.getLogger()
    root.addFilter(_is_not_py4j)
    try:
        yield
    except WirebookError:
        raise
    except Exception as error:
        if isinstance(error, ImportError) and (missing := missing_extra(error)):
            raise missing from error
        message = f"Spark stopped: {_cause(error)[:MAX_MESSAGE]}"
        hint = "run the command again to continue where it stopped; WIREBOOK_SPARK_LOG=error shows Spark's messages"
        raise WirebookError(Problem(code="spark-failed", message=message, hint=hint)) from error
    finally:
        root.removeFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """Whether py4j did not log a record. It sometimes logs a lost connection, with a traceback, through the root
    logger, although the exception already reports it."""
    return "py4j" not in Path(record.pathname).parts


def _cause(error: Exception) -> str:
    """Return why Spark stopped, if it is known; else Spark's message without stack traces."""
    text = str(error)
    is_gone = isinstance(error, OSError | EOFError) or NO_ANSWER.fullmatch(text.strip())
    if is_gone or any(part in text for part in JAVA_GONE):
        return "its Java process ended or cannot be reached"
    if WORKER_DIED in text:
        return "a Python worker ended unexpectedly; it was killed or ran out of memory"
    if query := re.search(r"terminated with exception: (.*?)(?: SQLSTATE: \w+)?$", text, re.MULTILINE):
        return query[1]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    first = next((place for place, line in enumerate(lines) if "Exception: " in line), 0)
    unindented = (line for line in lines[first:] if not line[0].isspace() and not line.endswith(TRACEBACK))
    return next(unindented, type(error).__name__).rpartition("Exception: ")[2]


def run_rows(job: Job, tasks: Tasks, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose numbers are in `rows`. Columns in: id. Columns out: task, result."""
    for batch in rows:
        for number in batch.column(0).to_pylist():
            result = msgspec.msgpack.encode(run_task(job, tasks[number], number))
            yield pa.RecordBatch.from_pydict({"task": [number], "result": [result]})
