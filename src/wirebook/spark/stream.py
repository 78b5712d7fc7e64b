"""Land the messages of an endpoint as they arrive: `wirebook stream`.

Each batch reloads the catalogue if it has changed, lands its messages, and is reported. Spark plans the batches
(`streaming_query`); over Spark Connect, this process does (`client_batches`). When a stop is requested, the current
batch is finished first.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0196, 0226
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from wirebook.catalog.live import LiveCatalog
from wirebook.landing.follow import StopRequest
from wirebook.landing.runs.report import Report
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.watch.figures import BatchFigures, RecentBatches
from wirebook.problems import Problem, WirebookError
from wirebook.spark.client_batches import PlannedByClient
from wirebook.spark.runner import spark_failures
from wirebook.spark.session import is_connect
from wirebook.spark.stream_batches import Batches, StreamJob
from wirebook.spark.stream_outages import Outages, explained
from wirebook.spark.streaming_query import planned_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StreamJob", "checkpoint_of", "run_stream"]

REDACTION: Final = "spark.sql.redaction.options.regex"
REDACTED: Final = "(?i)url|password|jaas|secret|token|keystore|truststore"


def checkpoint_of(to: AnyPath, name: str) -> Path | None:
    """Return the default checkpoint of a query: a folder in the target. None for a target in an object store, because
    Spark needs additional jars to write there."""
    folder = location_of(to)
    return folder / "_wirebook" / "checkpoints" / name if isinstance(folder, Path) else None


class _Planned(Protocol):
    """The batches of a stream, planned by Spark or by this process."""

    def check(self) -> None:
        """Check that the broker answers, accepts the credentials, and has the messages.

        Raises: broker-unreachable, unknown-topic, messages-lost
        """

    def start(self) -> None:
        """Start, or restart after a failure.

        Raises: missing-jars
        """

    def run(self) -> Exception | None:
        """Land batches until the stream stops, fails, or has landed everything. Return the failure, if any."""


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
    """Land the messages of an endpoint until `stop` is set. A job that is not continuous ends when the messages that
    the endpoint had at the start have landed.

    If the broker or the store of the target cannot be reached, a continuous stream waits until it can, and runs the
    failed batch again. Returns the totals of all batches. `on_start` is called when the stream has started: from then
    on, only `stop` should end it. `on_connection` is called with the reason when the broker or the store cannot be
    reached, and with None when the stream has started and when the connection works again.

    Raises: unsupported-store, missing-jars, missing-extra, broker-unreachable, messages-lost, spark-failed, and those
    of `land_batch`
    """
    total, recent, batches = Report(), RecentBatches(), Batches(job, live, stop)
    outages = Outages(job.source, batches, stop, on_connection, note)

    def report(batch: BatchFigures) -> None:
        figures = recent.add(batch)
        outages.note_batch()
        total.include(figures.report)
        try:
            batches.record(figures)
        except WirebookError as error:  # not fatal: the batch has landed
            note(f"the figures of batch {figures.number} are not recorded: {error}")
        on_batch(figures)

    with _masked(job.source.secrets), spark_failures(), ExitStack() as stack:
        spark.conf.set(REDACTION, REDACTED)
        planned: _Planned
        if is_connect(spark):
            planned = PlannedByClient(spark, job, batches, stop, report)
        else:
            planned = stack.enter_context(planned_by_spark(spark, job, batches, stop, report))
        planned.check()
        planned.start()
        on_start()
        on_connection(None)
        while (failure := planned.run()) is not None:
            if stop.is_set() and failure is not batches.failure:
                break  # not a failure: the batch was rejected because of the stop
            if not job.is_continuous or stop.is_set():
                raise explained(failure, job.source)
            outages.wait(failure, planned.check)
            if stop.is_set():
                break
            planned.start()
        batches.wait()
    return total


@contextmanager
def _masked(secrets: Sequence[str]) -> Iterator[None]:
    """Remove secrets from the problems that the block raises, because messages of Spark and Kafka may contain them."""
    try:
        yield
    except WirebookError as error:
        if not any(secret in f"{problem.message}{problem.hint}" for problem in error.problems for secret in secrets):
            raise
        raise WirebookError(*(_without(problem, secrets) for problem in error.problems)) from None


def _without(problem: Problem, secrets: Sequence[str]) -> Problem:
    message, hint = problem.message, problem.hint
    for secret in sorted(secrets, key=len, reverse=True):
        message = message.replace(secret, "***")
        hint = hint.replace(secret, "***") if hint else hint
    return Problem(problem.code, message, hint=hint)
