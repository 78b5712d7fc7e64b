"""Land the batches of a stream, and record its figures in the target. Spark or `client_batches` plans the batches."""

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
"""How long a batch waits while another run writes to the target, before it fails."""
SMALL_BATCH: Final = 20_000
"""A batch of at most this many messages lands in one task. Each task writes a file for each table, and a file costs as
much as a hundred messages."""


@dataclass(slots=True)
class StreamJob:
    """A stream to run.

    Units: `interval` is the number of seconds between the starts of two batches. If it is None, the run ends when it
    has read the messages that exist at its start, in one batch (`in_one_batch`) or in several.
    Shape: `checkpoint` is the checkpoint location of the query. Without one, a run continues at the position that the
    target records, and Spark's checkpoint is temporary. Over Spark Connect there is no checkpoint.
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
        """Whether the stream runs until it is stopped."""
        return self.interval is not None


class Batches:
    """Lands the batches of a stream, and records its figures in the target."""

    def __init__(self, job: StreamJob, live: LiveCatalog, stop: StopRequest) -> None:
        self._job, self._live, self._stop = job, live, stop
        self._target = Target(location_of(job.to))
        self._position: Mapping[str, Any] | None = None
        self.failure: Exception | None = None
        """The exception of the last batch, if it has not landed."""

    def land(self, frame: DataFrame, number: int, query: str | None = None) -> BatchFigures:
        """Land one batch. Its figures lack the lag and the position, which only the source knows. `query` is described
        in `FrameBatch`; the default is Spark's id of the query.

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
        """Return the position up to which an earlier run of the stream has read; None if the target records none.

        Raises: broken-target, store-failed
        """
        records = self._target.streams()
        own = (record for record in records if record["query"] == self._job.name)
        self._position = next((record.get("position") for record in own), None)
        return self._position

    def forget_target(self) -> None:
        """Discard the cached records of the target, which may be outdated after a failure."""
        self._target = Target(location_of(self._job.to))

    def wait(self) -> None:
        """Wait for background work of the batches, such as checkpoints of tables."""
        self._target.wait()
