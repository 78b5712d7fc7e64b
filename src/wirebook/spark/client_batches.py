"""Run a stream over Spark Connect, where this process plans the batches instead of Spark.

Each batch is a DataFrame of a range of messages, and lands before the next one is planned. A streaming query does not
work here, because a Spark Connect server calls `foreachBatch` in a process of its own. The target records the position
of the stream. After a crash, a run may read messages again; those that have landed are skipped by their identity.

Spec: docs/how-to/cluster.md#spark-connect; docs/decisions/0226
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from wirebook.landing.follow import StopRequest
from wirebook.landing.watch.figures import BatchFigures
from wirebook.spark.stream_batches import POLL_SECONDS, SMALL_BATCH, Batches, StreamJob
from wirebook.spark.stream_sources import Unread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PlannedByClient"]

MOST_WAIT_SECONDS: Final = 15 * 60.0
"""How long a batch waits for `min_per_batch` messages: Spark's default for `maxTriggerDelay`."""
RETRIES: Final = 120
RETRY_MILLISECONDS: Final = 5000
"""Retries of a request to the server, and the longest wait between two: ten minutes in all, PySpark's default."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A batch to land, and the messages that remain unread after it."""

    batch: Unread
    rest: Unread


class PlannedByClient:
    """Plans the batches of a stream and lands them."""

    def __init__(
        self,
        spark: SparkSession,
        job: StreamJob,
        batches: Batches,
        stop: StopRequest,
        report: Callable[[BatchFigures], None],
    ) -> None:
        """Raises: missing-extra, bad-setting, and those of `Batches.recorded_position`"""
        self._spark, self._job, self._batches, self._stop, self._on_batch = spark, job, batches, stop, report
        _stop_retries(spark, stop)
        self._ranges = job.source.ranges(job.limits)
        self._position: Mapping[str, Any] | None = batches.recorded_position()
        self._query, self._number = str(uuid.uuid4()), 0
        self._plan: _Plan | None = None
        """The batch to land next. A batch that fails stays here and is retried."""
        self._ends: Mapping[str, int] | None = None
        """Where a run that is not continuous ends, as in `Unread.ends`."""
        self._landed_at = time.monotonic()

    def check(self) -> None:
        """Raises: broker-unreachable, unknown-topic, messages-lost"""
        self._ranges.unread(self._position)

    def start(self) -> None:
        self._batches.failure = None

    def run(self) -> Exception | None:
        """Land batches until everything has landed, a batch fails, or the stream stops. Return the failure, if any."""
        try:
            while not self._stop.is_set():
                begun = time.monotonic()
                self._plan = self._plan or self._next()
                has_plan = self._plan is not None
                if self._plan is not None:
                    self._land(self._plan)
                    self._plan = None
                if self._job.interval is not None:
                    pause = max(self._job.interval, 0 if has_plan else POLL_SECONDS)
                    self._stop.wait(max(begun + pause - time.monotonic(), 0))
                elif not has_plan or self._job.in_one_batch:
                    break
        except Exception as error:
            return error
        return None

    def _next(self) -> _Plan | None:
        """Plan a batch; None if there is nothing to read now.

        Raises: broker-unreachable, unknown-topic, messages-lost
        """
        unread, limits = self._ranges.unread(self._position), self._job.limits
        self._position = self._ranges.position_before(unread)  # fixes the start, also with `latest`
        batch = unread
        if not self._job.is_continuous:
            self._ends = self._ends or unread.ends
            batch = unread.before(self._ends)
        elif limits.min_per_batch and unread.count < limits.min_per_batch and not self._has_waited():
            return None
        if not self._job.in_one_batch:
            batch = batch.limited(limits.max_per_batch)
        return _Plan(batch, unread.after(batch)) if batch.count else None

    def _has_waited(self) -> bool:
        return time.monotonic() - self._landed_at >= MOST_WAIT_SECONDS

    def _land(self, plan: _Plan) -> None:
        """Raises: missing-jars, and those of `Batches.land`"""
        frame = self._ranges.frame(self._spark, plan.batch)
        frame = frame.coalesce(1) if plan.batch.count <= SMALL_BATCH else frame
        figures = self._batches.land(frame, self._number, self._query)
        self._position = self._ranges.position_before(plan.rest)
        self._number, self._landed_at = self._number + 1, time.monotonic()
        self._on_batch(replace(figures, partitions=plan.rest.counts, position=self._position))


def _stop_retries(spark: Any, stop: StopRequest) -> None:
    """End PySpark's retries of requests to the server, which can take ten minutes, when the stream is stopped."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 (of the extra)

    class UntilStopped(DefaultPolicy):
        def can_retry(self, error: BaseException) -> bool:
            return not stop.is_set() and super().can_retry(error)

    spark.client.set_retry_policies([UntilStopped(max_retries=RETRIES, max_backoff=RETRY_MILLISECONDS)])
