"""Run a stream as a structured streaming query: Spark plans the batches, and `foreachBatch` lands them in this process.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0196
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from wirebook.landing.follow import StopRequest
from wirebook.landing.watch.figures import BatchFigures
from wirebook.spark.checkpoints import checkpoint_url, clear_unfinished, is_folder
from wirebook.spark.stream_batches import POLL_SECONDS, SMALL_BATCH, Batches, StreamJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["PlannedBySpark", "finished_batches", "planned_by_spark"]

COMMIT_SECONDS: Final = 10.0
"""How long a stop waits for Spark to commit the last batch. If it is not committed, the next run runs it again, and
skips its messages because they have landed."""
METRICS_DEFECT: Final = 'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value'
"""Spark 4.1 fails with this message after it has committed the first batch, if an earlier run had started that batch
(KafkaMicroBatchStream.metrics). It suffices to restart the query."""
SETTINGS: Final = {
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.stopTimeout": "60s",
}
CHECKPOINT_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_MANAGER_OF_FOLDERS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""For checkpoints in local folders, where Spark's default starts twenty processes for each batch (decision 0220)."""


class _Stopping(Exception):
    """Rejects a batch because the stream is stopping."""


@contextmanager
def planned_by_spark(
    spark: SparkSession, job: StreamJob, batches: Batches, stop: StopRequest, report: Callable[[BatchFigures], None]
) -> Iterator[PlannedBySpark]:
    """Yield the query of a stream. If the job has no checkpoint, a temporary one exists until the end of the block.

    Raises: unsupported-store, messages-lost, broker-unreachable, and those of `Batches.recorded_position`
    """
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    if job.checkpoint is not None:
        yield PlannedBySpark(spark, job, checkpoint_url(spark, job.checkpoint), batches, stop, report)
        return
    if position := batches.recorded_position():
        job = replace(job, limits=replace(job.limits, starting=job.source.start_after(spark, position, job.limits)))
    with TemporaryDirectory(prefix="wirebook-checkpoint-", ignore_cleanup_errors=True) as folder:
        yield PlannedBySpark(spark, job, checkpoint_url(spark, folder), batches, stop, report)


class PlannedBySpark:
    """The query of a stream, which can be restarted after a failure. Spark lands its batches in a separate thread."""

    def __init__(  # noqa: PLR0917 (as `planned_by_spark`, and the checkpoint)
        self,
        spark: SparkSession,
        job: StreamJob,
        checkpoint: str,
        batches: Batches,
        stop: StopRequest,
        report: Callable[[BatchFigures], None],
    ) -> None:
        self._spark, self._job, self._checkpoint = spark, job, checkpoint
        self._batches, self._stop, self._on_batch = batches, stop, report
        self._running = threading.Lock()
        self._landed: dict[int, BatchFigures] = {}
        """Batches that have landed but are not reported yet."""
        self._has_landed = False
        """Whether the query has landed a batch since it was last started."""
        self._is_small = False
        """Whether the last batch was small. The next batch then lands in one task, even if it turns out to be large."""

    def check(self) -> None:
        """Raises: broker-unreachable, unknown-topic"""
        self._job.source.check(self._spark)

    def start(self) -> None:
        """Start the query.

        Raises: missing-jars
        """
        clear_unfinished(self._checkpoint)
        if is_folder(self._checkpoint):
            self._spark.conf.set(CHECKPOINT_MANAGER, CHECKPOINT_MANAGER_OF_FOLDERS)
        frame = self._job.source.frame(self._spark, self._job.limits, self._checkpoint)
        writer = frame.writeStream.queryName(self._job.name).foreachBatch(self._land)
        writer = writer.option("checkpointLocation", self._checkpoint).trigger(**self._trigger())
        self._has_landed, self._batches.failure = False, None
        self._query = writer.start()

    def _trigger(self) -> Mapping[str, Any]:
        """The arguments of Spark's `trigger`."""
        if self._job.interval is not None:
            return {"processingTime": f"{self._job.interval:.0f} seconds"}
        return {"once": True} if self._job.in_one_batch else {"availableNow": True}

    def run(self) -> Exception | None:
        """Wait until the query has landed everything, fails, or is stopped. Return the failure, if any."""
        while True:
            failure = self._follow(self._query)
            if self._stop.is_set():
                return failure
            if failure is None:
                has_more = self._job.source.plans_one_batch and self._has_landed
                if self._job.is_continuous or self._job.in_one_batch or not has_more:
                    return None
            elif METRICS_DEFECT not in str(failure):
                return failure
            self.start()

    def _land(self, frame: DataFrame, number: int) -> None:
        """Land one batch; Spark calls it again if it raises."""
        with self._running:
            if self._stop.is_set():
                raise _Stopping
            self._landed[number] = self._batches.land(frame.coalesce(1) if self._is_small else frame, number)
            report = self._landed[number].report
            self._has_landed, self._is_small = True, report.read + report.skipped <= SMALL_BATCH

    def _follow(self, query: StreamingQuery) -> Exception | None:
        """Wait until a query ends or is stopped. Return the failure, if any."""
        failure = None
        try:
            while query.isActive and not self._stop.wait(POLL_SECONDS):
                self._report(query)
            if self._stop.is_set():
                with self._running:
                    pass  # wait for the current batch
                end = time.monotonic() + COMMIT_SECONDS
                while self._landed and query.isActive and time.monotonic() < end:  # Spark still has to commit the batch
                    time.sleep(POLL_SECONDS / 4)
                    self._report(query)
                query.stop()
            query.awaitTermination()
        except Exception as error:  # StreamingQueryException, or py4j's if Java is gone
            failure = self._batches.failure or error
        self._report(query)
        return failure

    def _report(self, query: StreamingQuery) -> None:
        """Report the batches that Spark has finished, with their lag. After the end of a query, report all batches
        that have landed."""
        if not self._landed:
            return
        finished, is_active = dict[int, dict[str, Any]](), False
        with suppress(Exception):  # Java may be gone
            is_active = query.isActive
            finished = finished_batches(query, {*self._landed})
        source = self._job.source
        for number in sorted(self._landed):
            if number in finished or not is_active:
                read = finished.get(number, {})
                figures = self._landed.pop(number)
                self._on_batch(replace(figures, partitions=source.lag(read), position=source.position(read)))


def finished_batches(query: StreamingQuery, numbers: set[int]) -> dict[int, dict[str, Any]]:
    """Return those of the batches `numbers` that Spark has finished, with what it reports about their source.

    All recent updates are read only if several batches may have finished: that takes 9 to 15 ms instead of 0.4.
    """
    last = query.lastProgress
    if last is None or last["batchId"] < min(numbers):
        return {}
    updates = [last] if numbers == {last["batchId"]} else query.recentProgress
    # Without new messages, an update lacks this step and has the number of the next batch.
    done = (json.loads(update.json) for update in updates if "addBatch" in update["durationMs"])
    return {update["batchId"]: update["sources"][0] for update in done if update["sources"]}
