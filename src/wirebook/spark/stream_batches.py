"""The batches of a stream, whoever plans them: landing one, and what the target records of the stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from wirebook.catalog import Catalog
from wirebook.catalog.live import LiveCatalog
from wirebook.landing.follow import StopRequest
from wirebook.landing.job import LandOptions, name_and_epoch
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.watch.figures import BatchFigures
from wirebook.problems import WirebookError
from wirebook.spark.job import land_batch_of_endpoint
from wirebook.spark.stream_sources import ReadLimits, StreamSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["POLL_SECONDS", "SMALL_BATCH", "Batches", "StreamJob"]

POLL_SECONDS: Final = 0.2
LOCK_SECONDS: Final = 60.0
"""How long a batch waits for another run that writes to the target, before it fails."""
SMALL_BATCH: Final = 20_000
"""One task lands a batch of at most so many messages: a file costs as much as a hundred of them, and every task writes
one for each table."""


@dataclass(slots=True)
class StreamJob:
    """A stream to run.

    Units: `interval` has the seconds between the starts of two batches; None: the run ends when it has read what there
    is, `in_one_batch` or in several.
    Shape: `checkpoint` is the folder of the query's progress; without one, a run continues where the target says that
    the stream has read, and Spark's own record lasts as long as the run. A client of Spark Connect has none.
    """

    source: StreamSource
    to: AnyPath
    name: str
    checkpoint: AnyPath | None
    limits: ReadLimits
    interval: float | None
    in_one_batch: bool = False
    options: LandOptions = field(default_factory=LandOptions)

    @property
    def is_continuous(self) -> bool:
        """Whether the stream goes on until it is stopped."""
        return self.interval is not None


class Batches:
    """Lands the batches of a stream, and records its figures in the target."""

    def __init__(self, job: StreamJob, live: LiveCatalog, stop: StopRequest) -> None:
        self._job, self._live, self._stop = job, live, stop
        self._target = Target(location_of(job.to))
        self._position: Mapping[str, Any] | None = None
        self.failure: Exception | None = None
        """Why the last batch that was begun has not landed."""

    def land(self, frame: DataFrame, number: int, query: str | None = None) -> BatchFigures:
        """Land one batch; its figures lack what only the source knows. `query` as in `FrameBatch`; by default it is
        Spark's id.

        Raises: WirebookError, as `land_batch_of_endpoint`, and exceptions of PySpark; `failure` has them too
        """
        started, self.failure = datetime.now(UTC), None
        try:
            catalog = self._live.refresh()
            report = self._land_when_free(frame, number, query, catalog)
        except Exception as error:
            self.failure = error
            raise
        name, epoch = name_and_epoch(catalog.registry.document)
        return BatchFigures(
            number=number,
            report=report,
            started=started,
            catalogue=catalog.fingerprint,
            name=name,
            epoch=epoch,
            query=self._job.name,
            endpoint=self._job.options.get("endpoint"),
        )

    def _land_when_free(self, frame: DataFrame, number: int, query: str | None, catalog: Catalog) -> Report:
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
                    query=query,
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

    def wait(self) -> None:
        """Wait for the work that the batches have left to other threads."""
        self._target.wait()
