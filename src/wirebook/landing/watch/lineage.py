"""OpenLineage events of a run: its sources, and the tables that it writes, with their columns and numbers of rows.

Events are sent in the background. Failures are noted and do not affect the run.

Spec: docs/how-to/watch.md#openlineage; docs/decisions/0200
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, Location, location_of
from wirebook.landing.tables.layout import RESOLVED, STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import WirebookError
from wirebook.problems.extras import library

__all__ = ["Dataset", "RunLineage", "file_source", "is_configured"]

PRODUCER: Final = f"urn:wirebook:{version('wirebook')}"
CONFIGURATION: Final = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
MAX_EVENTS: Final = 1000
"""Maximum number of events that wait to be sent; further ones are dropped."""
MAX_TABLES: Final = 500
"""Maximum number of tables in one event: those with the most rows."""
CLOSE_SECONDS: Final = 10.0
"""Maximum time that the end of a run waits until its events are sent."""
ABORT_SECONDS: Final = 2.0
"""The same after an interrupt."""


class Dataset(NamedTuple):
    """A dataset that a run reads, by the naming rules of OpenLineage."""

    namespace: str
    name: str


def file_source(place: AnyPath) -> Dataset:
    """The dataset of a file, folder or object, or of a table."""
    return _dataset(location_of(place))


def _dataset(location: Location) -> Dataset:
    if isinstance(location, Path):
        return Dataset("file", str(location.absolute()))
    return Dataset(location.bucket, f"/{location.key}" if location.is_file_system else location.key or "/")


def is_configured() -> bool:
    """Whether OpenLineage is configured: by the environment, or by a file where its client looks for one."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    names = (name for name, value in os.environ.items() if value)
    if any(name in CONFIGURATION or name.startswith("OPENLINEAGE__TRANSPORT") for name in names):
        return True
    return any((folder / "openlineage.yml").is_file() for folder in (Path.cwd(), Path.home() / ".openlineage"))


class RunLineage:
    """The events of one run: START, RUNNING after each batch, and COMPLETE, ABORT (stopped) or FAIL.

    Does nothing if OpenLineage is not configured. Numbers of rows are totals since the start of the run.
    """

    def __init__(
        self,
        job: str,
        sources: Sequence[Dataset],
        to: AnyPath,
        note: Callable[[str], None],
        *,
        is_streaming: bool = False,
    ) -> None:
        self._job, self._sources, self._to, self._note = job, sources, to, note
        self._processing = "STREAMING" if is_streaming else "BATCH"
        self._rows: Counter[str] = Counter()
        self._waiting: queue.Queue[tuple[str, datetime, dict[str, int], str | None] | None] = queue.Queue(MAX_EVENTS)
        self._dropped = 0
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> RunLineage:
        if not is_configured():
            return self
        try:
            library("openlineage.client")
        except WirebookError as error:
            problem = error.problems[0]
            self._note(f"OpenLineage is configured, but no events are sent: {problem.message}; {problem.hint}")
            return self
        self._thread = threading.Thread(target=self._send, name="openlineage", daemon=True)
        self._thread.start()
        self._put("START", {})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread is None:
            return
        if error is None:
            self._put("COMPLETE", dict(self._rows))
        elif isinstance(error, WirebookError):
            self._put("FAIL", dict(self._rows), str(error))
        else:
            is_failure = isinstance(error, Exception)
            self._put("FAIL" if is_failure else "ABORT", dict(self._rows), type(error).__name__ if is_failure else None)
        seconds = CLOSE_SECONDS if error is None or isinstance(error, Exception) else ABORT_SECONDS
        end = time.monotonic() + seconds
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            self._dropped += 1
        self._thread.join(max(end - time.monotonic(), 0.0))
        if self._thread.is_alive() or self._dropped:
            unsent = self._dropped + self._waiting.qsize()
            self._note(f"OpenLineage: {unsent or 'some'} events were not sent, because the server is too slow")

    def add(self, report: Report) -> None:
        """Send the tables that a batch has written."""
        if self._thread is not None:
            rows = {name: count for name, count in report.rows.items() if count}
            self._rows.update(rows)
            self._put("RUNNING", {name: self._rows[name] for name in rows})

    def _put(self, kind: str, rows: dict[str, int], failure: str | None = None) -> None:
        try:
            self._waiting.put_nowait((kind, datetime.now(UTC), rows, failure))
        except queue.Full:
            self._dropped += 1

    # -- the thread ------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send events until None arrives."""
        client = run_id = None
        while (event := self._waiting.get()) is not None:
            try:
                if client is None:
                    from openlineage.client import OpenLineageClient  # noqa: PLC0415 (half a second)
                    from openlineage.client.uuid import generate_new_uuid  # noqa: PLC0415

                    run_id = run_id or str(generate_new_uuid())
                    client = OpenLineageClient()
                client.emit(self._event(str(run_id), *event))
                self._has_failed = False
            except Exception as error:
                if not self._has_failed:
                    self._note(f"OpenLineage: an event was not sent: {_reason(error)}")
                self._has_failed = True
        try:
            if client is not None:
                client.close(CLOSE_SECONDS)
        except Exception as error:
            self._note(f"OpenLineage: events were not sent: {_reason(error)}")

    def _event(self, run_id: str, kind: str, when: datetime, rows: dict[str, int], failure: str | None) -> Any:
        """Build the OpenLineage event."""
        from openlineage.client import event_v2 as lineage  # noqa: PLC0415
        from openlineage.client.facet_v2 import (  # noqa: PLC0415
            error_message_run,
            job_type_job,
            processing_engine_run,
        )

        facets: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=version("wirebook"), name="wirebook", producer=PRODUCER
            )
        }
        if failure is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=failure, programmingLanguage="python", producer=PRODUCER
            )
        job = lineage.Job(
            namespace=os.environ.get("OPENLINEAGE_NAMESPACE") or "wirebook",
            name=self._job,
            facets={
                "jobType": job_type_job.JobTypeJobFacet(
                    processingType=self._processing, integration="WIREBOOK", jobType="JOB", producer=PRODUCER
                )
            },
        )
        return lineage.RunEvent(
            eventType=lineage.RunState[kind],
            eventTime=when.isoformat(timespec="milliseconds"),
            run=lineage.Run(runId=run_id, facets=facets),
            job=job,
            inputs=[lineage.InputDataset(namespace=source.namespace, name=source.name) for source in self._sources],
            outputs=self._outputs(rows),
            producer=PRODUCER,
        )

    def _outputs(self, rows: dict[str, int]) -> list[Any]:
        """The tables with their current columns and the numbers of rows of this run."""
        from openlineage.client import event_v2 as lineage  # noqa: PLC0415
        from openlineage.client.facet_v2 import output_statistics_output_dataset, schema_dataset  # noqa: PLC0415

        root = location_of(self._to)
        known = Target(root).tables() if rows else {}
        outputs = []
        for table, count in Counter(rows).most_common(MAX_TABLES):
            if table in (RESOLVED, STAGED):
                continue
            columns = known[table].columns if table in known else {}
            schema = schema_dataset.SchemaDatasetFacet(
                fields=[schema_dataset.SchemaDatasetFacetFields(name, type_) for name, type_ in columns.items()],
                producer=PRODUCER,
            )
            statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=count, producer=PRODUCER
            )
            dataset = _dataset(TablePlace(root, table).folder)
            outputs.append(
                lineage.OutputDataset(
                    namespace=dataset.namespace,
                    name=dataset.name,
                    facets={"schema": schema},
                    outputFacets={"outputStatistics": statistics},
                )
            )
        return outputs


def _reason(error: Exception) -> str:
    """The class of an error, and its HTTP status, if any. The message is left out: a URL in it may have credentials."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ + (f" (HTTP {status})" if status is not None else "")
