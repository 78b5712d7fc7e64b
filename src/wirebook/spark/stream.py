"""Land an endpoint as a streaming query: `wirebook stream`.

Each micro-batch refreshes the catalogue, lands, and is reported. A stop is asked for by an event: the batch that runs
is finished, and the next one, if Spark has begun it, is refused and read again by the next run.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0196
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from wirebook.catalog import Catalog
from wirebook.catalog.live import LiveCatalog
from wirebook.landing.follow import StopRequest, is_transient
from wirebook.landing.job import LandOptions, name_and_epoch
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.watch.figures import BatchFigures, RecentBatches
from wirebook.problems import Problem, WirebookError
from wirebook.spark.checkpoints import checkpoint_url, clear_unfinished, is_folder
from wirebook.spark.job import land_batch_of_endpoint
from wirebook.spark.runner import spark_failures
from wirebook.spark.stream_sources import ReadLimits, StreamSource, messages_lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["StreamJob", "checkpoint_of", "run_stream"]

POLL_SECONDS: Final = 0.2
LOCK_SECONDS: Final = 60.0
"""How long a batch waits for another run that writes to the target, before it fails."""
COMMIT_SECONDS: Final = 10.0
"""How long a stop waits until Spark has written that a batch is done; else it runs again, and is skipped."""
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Waits between attempts to reach a broker or a store again; the last one repeats."""
METRICS_DEFECT: Final = 'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value'
"""Spark 4.1 fails so after it has committed the first batch, if that one had been begun by an earlier run
(KafkaMicroBatchStream.metrics). Starting the query again suffices."""
SMALL_BATCH: Final = 20_000
"""One task lands a batch if the batch before it had at most so many messages: a file costs as much as a hundred of
them, and every task writes one for each table. After a quiet time, one large batch is landed so, too."""
SETTINGS: Final = {
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.redaction.options.regex": "(?i)url|password|jaas|secret|token|keystore|truststore",
    "spark.sql.streaming.stopTimeout": "60s",
}
CHECKPOINT_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINT_MANAGER_OF_FOLDERS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""For checkpoints in folders: Spark's default runs twenty programs a batch there (decision 0220)."""


@dataclass(slots=True)
class StreamJob:
    """A stream to run.

    Shape: `trigger` has the arguments of Spark's `trigger`; it is `continuous` if the stream goes on until it is
    stopped. `checkpoint` is the folder of the query's progress; without one, a run continues where the
    target says that the stream has read, and Spark's own record lasts as long as the run.
    """

    source: StreamSource
    to: AnyPath
    name: str
    checkpoint: AnyPath | None
    limits: ReadLimits
    trigger: Mapping[str, Any]
    continuous: bool = True
    options: LandOptions = field(default_factory=LandOptions)


def checkpoint_of(to: AnyPath, name: str) -> Path | None:
    """The default checkpoint of a query with this name: a folder of the target; None for a target in an object store,
    which Spark needs further jars to write to."""
    folder = location_of(to)
    return folder / "_wirebook" / "checkpoints" / name if isinstance(folder, Path) else None


# -- the query ------------------------------------------------------------------------------------------------------


class _Stopping(Exception):
    """Refuses a batch because the stream stops."""


class _Batches:
    """Lands the batches of a query, which Spark passes to `land` in a thread of its own."""

    def __init__(self, job: StreamJob, live: LiveCatalog, stop: StopRequest) -> None:
        self._job, self._live, self._stop = job, live, stop
        self._target = Target(location_of(job.to))
        self._running = threading.Lock()
        self.landed: dict[int, BatchFigures] = {}
        """Batches that have landed and are not reported yet."""
        self.failure: Exception | None = None
        self._position: Mapping[str, Any] | None = None
        self.has_landed = False
        """Whether the query that was started last has landed a batch."""
        self._is_small = False

    def land(self, frame: DataFrame, number: int) -> None:
        """Land one batch; Spark calls it again if it raises."""
        with self._running:
            if self._stop.is_set():
                raise _Stopping
            started = datetime.now(UTC)
            try:
                catalog = self._live.refresh()
                report = self._land_when_free(frame.coalesce(1) if self._is_small else frame, number, catalog)
            except Exception as error:
                self.failure = error
                raise
            self.has_landed, self._is_small = True, report.read + report.skipped <= SMALL_BATCH
            name, epoch = name_and_epoch(catalog.registry.document)
            self.landed[number] = BatchFigures(
                number=number,
                report=report,
                started=started,
                catalogue=catalog.fingerprint,
                name=name,
                epoch=epoch,
                query=self._job.name,
                endpoint=self._job.options.get("endpoint"),
            )

    def _land_when_free(self, frame: DataFrame, number: int, catalog: Catalog) -> Report:
        """Land a batch; waits if another run writes to the target.

        Raises: WirebookError, as `land_batch_of_endpoint`
        """
        end, source = time.monotonic() + LOCK_SECONDS, self._job.source
        while True:
            try:
                return land_batch_of_endpoint(
                    frame,
                    number,
                    catalog,
                    self._target,
                    is_whole=source.reads_whole_files,
                    identity=source.identity,
                    **self._job.options,
                )
            except WirebookError as error:
                if error.problems[0].code != "target-locked" or time.monotonic() > end or self._stop.is_set():
                    raise
                time.sleep(POLL_SECONDS)

    def record(self, figures: BatchFigures) -> None:
        """Record the figures of the last batch in the target.

        Raises: unwritable-target, store-failed
        """
        self._position = figures.position or self._position
        self._target.record_stream(self._job.name, figures.to_dict() | {"position": self._position})

    def recorded_position(self) -> Mapping[str, Any] | None:
        """Up to where an earlier run of the stream has read, if the target says so.

        Raises: broken-target, store-failed
        """
        records = self._target.streams()
        own = (record for record in records if record["query"] == self._job.name)
        self._position = next((record.get("position") for record in own), None)
        return self._position

    def forget_target(self) -> None:
        """Read the records of the target again: they may differ from what is known after a failure."""
        self._target = Target(location_of(self._job.to))

    def finish(self) -> None:
        """Wait for the batch that runs."""
        with self._running:
            pass

    def wait(self) -> None:
        """Wait for the work that the batches have left to other threads."""
        self._target.wait()


def run_stream(
    spark: SparkSession,
    job: StreamJob,
    live: LiveCatalog,
    stop: StopRequest,
    *,
    on_start: Callable[[], None] = lambda: None,
    on_batch: Callable[[BatchFigures], None] = lambda _: None,
    on_connection: Callable[[str | None], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Report:
    """Land what an endpoint sends, until `stop` is set or, unless the job is continuous, until all of it has landed.

    A continuous stream waits for a broker or a store that goes away, and goes on when it is back: Spark runs the batch
    that failed again. Returns the sum of all batches. `on_start` is called when the query has started: from then on,
    only `stop` should end it. `on_connection` is called with the reason when the broker or the store cannot be reached,
    and with None when the query has started and when they are back.

    Raises: unsupported-store, missing-jars, broker-unreachable, messages-lost, spark-failed, and those of `land_batch`
    """
    total, source = Report(), job.source
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    batches, recent = _Batches(job, live, stop), RecentBatches()
    outages = _Outages(source, batches, stop, on_connection, note)

    def report(query: StreamingQuery) -> None:
        for figures in map(recent.add, _reported(query, batches, source)):
            outages.note_batch()
            total.include(figures.report)
            try:
                batches.record(figures)
            except WirebookError as error:  # the batch has landed
                note(f"the figures of batch {figures.number} are not recorded: {error}")
            on_batch(figures)

    with _masked(source.secrets), spark_failures(), ExitStack() as stack:
        checkpoint = None if job.checkpoint is None else checkpoint_url(spark, job.checkpoint)
        source.check(spark)
        if checkpoint is None:
            folder = stack.enter_context(TemporaryDirectory(prefix="wirebook-checkpoint-", ignore_cleanup_errors=True))
            checkpoint = checkpoint_url(spark, folder)
            if position := batches.recorded_position():
                job = replace(job, limits=replace(job.limits, starting=source.start_after(spark, position, job.limits)))
        query = _start(spark, job, checkpoint, batches)
        on_start()
        on_connection(None)
        while True:
            failure = _follow(query, batches, stop, report)
            if stop.is_set() and failure is not batches.failure:
                break  # a batch that was refused because the stream stops is no failure
            if failure is None:
                if not (source.plans_one_batch and "availableNow" in job.trigger and batches.has_landed):
                    break
            elif METRICS_DEFECT not in str(failure):
                if not job.continuous or stop.is_set():
                    raise _explained(failure, source)
                outages.wait(failure, spark)
            if stop.is_set():
                break
            query = _start(spark, job, checkpoint, batches)
        batches.wait()
    return total


def _start(spark: SparkSession, job: StreamJob, checkpoint: str, batches: _Batches) -> StreamingQuery:
    """Raises: missing-jars"""
    clear_unfinished(checkpoint)
    if is_folder(checkpoint):
        spark.conf.set(CHECKPOINT_MANAGER, CHECKPOINT_MANAGER_OF_FOLDERS)
    frame = job.source.frame(spark, job.limits, checkpoint)
    writer = frame.writeStream.queryName(job.name).foreachBatch(batches.land)
    return writer.option("checkpointLocation", checkpoint).trigger(**job.trigger).start()


def _follow(
    query: StreamingQuery, batches: _Batches, stop: StopRequest, report: Callable[[StreamingQuery], None]
) -> Exception | None:
    """Wait until a query ends or is stopped; returns why it failed."""
    batches.failure, batches.has_landed, failure = None, False, None
    try:
        while query.isActive and not stop.wait(POLL_SECONDS):
            report(query)
        if stop.is_set():
            batches.finish()
            end = time.monotonic() + COMMIT_SECONDS
            while batches.landed and query.isActive and time.monotonic() < end:  # Spark still has to commit the batch
                time.sleep(POLL_SECONDS / 4)
                report(query)
            query.stop()
        query.awaitTermination()
    except Exception as error:  # StreamingQueryException, or py4j's if Java is gone
        failure = batches.failure or error
    report(query)
    return failure


def _reported(query: StreamingQuery, batches: _Batches, source: StreamSource) -> Iterator[BatchFigures]:
    """The batches that Spark has finished, with their lag; after the end of a query, all that have landed."""
    if not batches.landed:
        return
    progress, is_active = {}, False
    with suppress(Exception):  # Java may be gone
        is_active = query.isActive
        updates = ((update["batchId"], json.loads(update.json)["sources"]) for update in query.recentProgress)
        progress = {number: sources[0] for number, sources in updates if sources}
    for number in sorted(batches.landed):
        if number in progress or not is_active:
            read = progress.get(number, {})
            yield replace(batches.landed.pop(number), partitions=source.lag(read), position=source.position(read))


# -- failures -------------------------------------------------------------------------------------------------------


def _explained(failure: Exception, source: StreamSource) -> Exception:
    """The failure of a query as a problem, if it has a code of its own."""
    if lost := source.lost(failure):
        return messages_lost(lost)
    if away := source.away(failure):
        message = f"the broker cannot be reached ({source.description}): {away}"
        return WirebookError(Problem("broker-unreachable", message, hint="run the command again to continue"))
    return failure


class _Outages:
    """Waits while the broker or the store of the target is away."""

    def __init__(
        self,
        source: StreamSource,
        batches: _Batches,
        stop: StopRequest,
        on_connection: Callable[[str | None], None],
        note: Callable[[str], None],
    ) -> None:
        self._source, self._batches, self._stop = source, batches, stop
        self._on_connection, self._note = on_connection, note
        self._attempts = 0
        """How often a batch has failed because of the target, since the last one that landed."""

    def wait(self, failure: Exception, spark: SparkSession) -> None:
        """Wait until the query is worth starting again, or the stream stops.

        Raises: the failure as a problem, if it does not pass by itself
        """
        if isinstance(failure, WirebookError) and is_transient(failure):
            self._await_target(failure)
        elif away := self._source.away(failure):
            self._note(f"the broker cannot be reached, trying again: {away}")
            self._on_connection(away)
            self._await_broker(spark)
            self._on_connection(None)
        else:
            raise _explained(failure, self._source)

    def note_batch(self) -> None:
        """Note that a batch has landed, so that the target can be written to."""
        if self._attempts:
            self._note("the target can be written to again")
            self._on_connection(None)
            self._attempts = 0

    def _await_target(self, failure: WirebookError) -> None:
        if not self._attempts:
            self._note(f"the target cannot be written to, trying again: {failure}")
        self._on_connection(str(failure))
        self._batches.forget_target()
        if self._stop.wait(_pause(self._attempts)):
            self._note("the last batch was not finished; the next run lands it")
        self._attempts += 1

    def _await_broker(self, spark: SparkSession) -> None:
        attempt = 0
        while not self._stop.wait(_pause(attempt)):
            attempt += 1
            try:
                self._source.check(spark)
            except WirebookError as error:
                if error.problems[0].code != "broker-unreachable":
                    raise
            else:
                return


def _pause(attempt: int) -> float:
    return RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]


@contextmanager
def _masked(secrets: Sequence[str]) -> Iterator[None]:
    """Raise problems without secrets, whatever Spark or Kafka put into their messages."""
    try:
        yield
    except WirebookError as error:
        if not any(secret in f"{problem.message}{problem.hint}" for problem in error.problems for secret in secrets):
            raise
        raise WirebookError(*(_without(problem, secrets) for problem in error.problems)) from None


def _without(problem: Problem, secrets: Sequence[str]) -> Problem:
    message = problem.message
    for secret in sorted(secrets, key=len, reverse=True):
        message = message.replace(secret, "***")
    return Problem(problem.code, message, hint=problem.hint)
