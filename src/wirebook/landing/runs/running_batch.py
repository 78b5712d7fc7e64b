"""The life cycle of a batch: pin it, run its tasks, check the results, commit. Landing and replay share this.

To pin a batch is to record its input and its catalogue before anything is read, so that it can run again after a crash.
The driver handles file names and counts, never messages.

Spec: docs/land.md#what-is-promised; docs/land.md#kill-and-resume; docs/decisions/0013
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from wirebook.landing.runs.checks import check_conservation, check_replayed
from wirebook.landing.runs.jobs import job_of
from wirebook.landing.runs.ledger import LedgerEntry
from wirebook.landing.runs.manifests import BatchRun, Manifest
from wirebook.landing.runs.repeats import Deduplication
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.seen_events import SeenEvents, delete_unneeded, record_events
from wirebook.landing.runs.settings import Catalogue, CommittedBatch, Tasks
from wirebook.landing.runs.target import PendingBatch
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.runs.task_events import decide_events
from wirebook.landing.runs.totals import dead_letters_by_endpoint, landed_by_endpoint, total_counts, total_offsets
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE, ObjectPath
from wirebook.landing.tables.formats import StagedFile
from wirebook.landing.tables.layout import STAGED
from wirebook.landing.tables.staged import rows_by_table
from wirebook.problems import Problem, WirebookError

__all__ = ["RunningBatch"]

MAX_FAULTS = 3
"""Maximum number of task faults that are reported for a batch."""


@dataclass(frozen=True, slots=True)
class _Clock:
    """Measures the time since this run began a batch."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    start: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """How long the batch has been running."""
        return time.monotonic() - self.start


class RunningBatch:
    """A pinned batch. `pending` is its begin record; `catalogue` is the one that it was begun with."""

    def __init__(self, run: Run, pending: PendingBatch, catalogue: Catalogue, clock: _Clock | None = None) -> None:
        self.pending = pending
        self._run, self._catalogue = run, catalogue
        self._clock = clock or _Clock()

    # -- pin --------------------------------------------------------------------------------------------------------

    @classmethod
    def begin(cls, run: Run, tasks: Tasks, entries: Sequence[LedgerEntry] = (), **pinned: Any) -> RunningBatch:
        """Pin a new batch to its tasks and to the catalogue of the run; `pinned` are further fields of its record.

        Raises: table-settings, unwritable-target, store-failed
        """
        clock, settings = _Clock(), run.settings
        fields: dict[str, Any] = {
            "endpoint": settings.endpoint,
            "options": settings.options,
            "format": run.table_format.name,
            "stage_below": settings.stage_below,
            "table_settings": run.tables.settings,
            "names": run.tables.names(),
        }
        window = settings.deduplicate
        if window is not None and "chosen" not in pinned:  # a replay does not search for repeats
            begun = int(datetime.now(UTC).timestamp())
            fields["deduplication"] = Deduplication(window=int(window.total_seconds()), begun=begun)
        number, fingerprint = run.take_number(), run.catalogue.fingerprint
        pending = PendingBatch(batch=number, catalogue=fingerprint, tasks=tasks, entries=[*entries], **fields | pinned)
        if not settings.dry_run:
            run.target.begin(pending, run.catalogue.document)
        return cls(run, pending, run.catalogue, clock)

    @classmethod
    def resume(cls, run: Run, pending: PendingBatch) -> RunningBatch:
        """Continue a batch that an earlier run has pinned.

        Raises: broken-target
        """
        catalogue = Catalogue(pending.catalogue, run.target.catalogue(pending.catalogue))
        if pending.catalogue == run.catalogue.fingerprint:
            catalogue = replace(run.catalogue, document=catalogue.document)
        return cls(run, pending, catalogue)

    def give_up(self) -> None:
        """Drop a batch whose source or target the workers do not see. Otherwise every later run would first resume it,
        and fail."""
        if not self._run.settings.dry_run:
            self._run.target.abandon(self.pending.batch)

    # -- run as tasks -----------------------------------------------------------------------------------------------

    def run_tasks(self, tasks: Tasks) -> list[TaskResult]:
        """Run tasks of the batch and return their results.

        Raises: as `execute`
        """
        return self.execute(lambda job: self._run.settings.runner(job, tasks)) if tasks else []

    def execute(self, run_job: Callable[[Job], list[TaskResult]]) -> list[TaskResult]:
        """Run the job of the batch with `run_job` and return the results.

        If several tasks have landed the same event, the job runs again, so that only one of them lands it.

        Raises: WirebookError with the faults that stopped it, not-conserved
        """
        results = self._execute(run_job)
        if self.pending.deduplication is None:
            return results
        window = self.pending.deduplication.window
        if decision := decide_events([result.events for result in results], window):
            results = self._execute(run_job, decision)
            if decide_events([result.events for result in results], window):
                message = "the rows of the batch differ when they are read again, so repeated events cannot be found"
                hint = "land a DataFrame that returns the same rows each time, such as one that is cached"
                raise WirebookError(Problem("not-conserved", message, hint=hint))
        return results

    def _execute(self, run_job: Callable[[Job], list[TaskResult]], decision: bytes = b"") -> list[TaskResult]:
        """Run the job in an empty staging folder; `decision` as in `RepeatSearch`.

        Raises: WirebookError with the faults that stopped it
        """
        job = job_of(self._run, self.pending, self._catalogue, decision)
        folder = None
        if isinstance(job.staging, Path):
            self._run.target.clear_staging(job.batch)
            job.staging.mkdir(parents=True, exist_ok=True)  # a worker of a killed run may still write to it
            folder = job.staging
        progress = self._run.settings.progress
        with (
            tempfile.TemporaryDirectory(prefix="marks-", dir=folder, ignore_cleanup_errors=True) as progress_folder,
            progress.during(progress_folder) if progress else nullcontext(),
        ):
            results = run_job(replace(job, progress_folder=progress_folder))
        faults = dict.fromkeys(result.fault for result in results if result.fault)
        if faults:
            problems = [Problem(code=code, message=message, hint=hint) for code, message, hint in faults]
            if any(problem.code == "not-shared" for problem in problems):
                self.give_up()
            raise WirebookError(*problems[:MAX_FAULTS]) from RuntimeError("\n".join(result.trace for result in results))
        return results

    # -- check and commit -------------------------------------------------------------------------------------------

    def commit(self, results: list[TaskResult], entries: Sequence[LedgerEntry] = ()) -> None:
        """Check the results and commit the batch, with the ledger entries of its files. A batch that has neither rows
        nor ledger entries is dropped.

        Raises: not-conserved
        """
        run, pending, catalogue = self._run, self.pending, self._catalogue
        check = check_replayed if pending.chosen else check_conservation
        files = [file for result in results for file in result.files]
        endpoints = landed_by_endpoint(results, pending.endpoint, catalogue.endpoint_of)
        dead = dead_letters_by_endpoint(results, pending.endpoint, catalogue.endpoints)
        if run.settings.dry_run:
            check(results, total_counts(result.rows for result in results))
        elif not entries and not files:
            run.target.abandon(pending.batch)
        else:
            check(results, self._written_rows(files))
            manifest = self._manifest(results, entries, files, endpoints)
            run.target.commit(manifest)
            run.history.add(manifest)
            run.target.finish(manifest, files)
            if manifest.seen is not None:
                delete_unneeded(run.target.records, manifest.seen)
            if run.settings.on_batch:
                report = Report(
                    problems=run.target.problems, endpoints=Counter(endpoints), dead_letter_endpoints=Counter(dead)
                )
                report.add(results)
                report.seconds = self._clock.seconds()
                run.settings.on_batch(CommittedBatch(manifest, report))
        run.report.add(results)
        run.report.endpoints.update(endpoints)
        run.report.dead_letter_endpoints.update(dead)

    def _written_rows(self, files: Sequence[StagedFile]) -> Counter[str]:
        """The number of rows by table in staged files, read from the files themselves."""
        staging = self._run.target.staging(self.pending.batch)

        def count(file: StagedFile) -> dict[str, int]:
            if file.table == STAGED:
                return rows_by_table([staging / file.path])
            return {file.table: self._run.table_format.count(staging / file.path)}

        if not isinstance(staging, ObjectPath):  # threads do not read the files of a folder faster
            return total_counts(map(count, files))
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            return total_counts(pool.map(count, files))

    def _manifest(
        self,
        results: list[TaskResult],
        entries: Sequence[LedgerEntry],
        files: Sequence[StagedFile],
        endpoints: Mapping[str, int],
    ) -> Manifest:
        run, pending, history = self._run, self.pending, self._run.history
        batch_run = BatchRun(
            started=self._clock.started,
            seconds=round(self._clock.seconds(), 3),
            bytes_read=sum(result.bytes_read for result in results),
            bytes_written=sum(file.size for file in files),
            reasons=dict(total_counts(result.reasons for result in results)),
            name=self._catalogue.name,
            epoch=self._catalogue.epoch,
            unread=run.unread,
        )
        return Manifest(
            batch=pending.batch,
            catalogue=pending.catalogue,
            endpoint=pending.endpoint,
            options=pending.options,
            format=run.table_format.name,
            table_settings=None if pending.table_settings == history.table_settings else pending.table_settings,
            files=[msgspec.structs.replace(file, statistics="") for file in files],
            staged=dict(total_counts(result.staged for result in results)),
            tables=list(run.tables.changed(results, pending.table_settings)),
            entries=[*entries],
            frame=pending.frame,
            offsets=total_offsets(results),
            seen=self._seen_after(results),
            read=sum(result.read for result in results),
            empty=sum(result.empty for result in results),
            outcomes=dict(total_counts(result.outcomes for result in results)),
            endpoints=dict(endpoints),
            late=sum(result.late for result in results),
            run=batch_run,
        )

    def _seen_after(self, results: list[TaskResult]) -> SeenEvents | None:
        """Write the keys of the landed events, and return the events that the target remembers from this batch on; None
        if there is no search for repeats."""
        if self.pending.deduplication is None:
            return None
        events, window = [result.events for result in results], self.pending.deduplication.window
        records, seen = self._run.target.records, self._run.history.seen
        return record_events(records, seen, self.pending.batch, events, window)
