"""Landing: the driver's side of the main job. It plans, pins, lets tasks read, checks that nothing got lost, commits.

The driver sees file names and counts, never a message.

Spec: docs/land.md#what-is-promised; docs/land.md#the-target-folder; docs/decisions/0010, 0013
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from wirebook.problems import Problem, WirebookError
from wirebook.spark.checks import (
    Tables,
    Tasks,
    changed_units,
    check_columns,
    check_conservation,
    only,
    settle,
    sum_of,
    table_entries,
    unfinished_units,
    without_lost,
)
from wirebook.spark.chunks import EngineFactory
from wirebook.spark.formats import FORMATS
from wirebook.spark.ledger import Entry, Ledger
from wirebook.spark.lines import DEFAULT_SIZES, Sizes
from wirebook.spark.plan import Batch, Plan, changed, make_batches, make_plan, make_tasks
from wirebook.spark.report import Report
from wirebook.spark.sources import Scan, SourceFile, identity_of, list_files, scan_files
from wirebook.spark.target import Begun, Manifest, Target
from wirebook.spark.task import Job, TaskResult

__all__ = ["BATCH_BYTES", "Catalogue", "Landing", "Runner", "Watch", "land_files"]

BATCH_BYTES = 1 << 30
MAX_FAULTS = 3
"""Of a batch whose tasks all stop, the faults that are reported."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The catalogue of a run: its fingerprint, the document that is pinned and shipped; `tables` gives, of the tables
    that are named, those it has definitions for."""

    fingerprint: str
    document: bytes
    tables: Callable[[Collection[str]], Tables]


class Runner(Protocol):
    """Runs the tasks of a batch, each at least once, wherever it likes; one result for each."""

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]: ...
    @property
    def parallelism(self) -> int: ...


class Watch(Protocol):
    """Shows how far a run is. `total` bytes are to be read in all."""

    def begin(self, total: int) -> None: ...
    def during(self, marks: str) -> AbstractContextManager[None]:
        """Watches the marks of tasks in a folder while a batch runs."""


@dataclass(slots=True)
class Landing:
    """Settings of a run: see `land_files`."""

    runner: Runner
    factory: EngineFactory
    endpoint: str | None = None
    confluent_prefix: bool = False
    dry_run: bool = False
    batch_bytes: int = BATCH_BYTES
    form: str = "parquet"
    sizes: Sizes = DEFAULT_SIZES
    watch: Watch | None = None


def land_files(landing: Landing, source: Path, catalogue: Catalogue, target: Target) -> Report:
    """Lands what is new in `source`: everything, or nothing of a batch, whenever it is stopped.

    Raises: unreadable-file (no such source), target-is-source, columns-changed, target-locked, unwritable-target,
    not-conserved
    """
    started = time.monotonic()
    if source.resolve() == target.root.resolve():
        message = f"'{source}' cannot be the source and the target at once"
        raise WirebookError(Problem(code="target-is-source", message=message))
    with nullcontext() if landing.dry_run else target.locked():
        run = _Run(landing, target, catalogue)
        run.recover()
        existing = target.tables()
        check_columns(existing, catalogue.tables(existing))
        run.land(source)
    run.report.seconds = time.monotonic() - started
    return run.report


class _Run:
    """One run: the ledger as it grows, and the report."""

    def __init__(self, landing: Landing, target: Target, catalogue: Catalogue) -> None:
        self.report = Report(dry_run=landing.dry_run)
        self._landing, self._target, self._catalogue = landing, target, catalogue
        self._ledger: Ledger = target.ledger()
        self._before: Ledger = dict(self._ledger)
        self._scans: dict[str, Scan] = {}
        self._stopped: set[str] = set()  # files that went no further: their units in later batches must not land
        self._number = target.next_batch()

    def recover(self) -> None:
        """Finishes what an earlier run left: committed batches, then the begun one, with the catalogue of then."""
        if self._landing.dry_run:
            return
        self._target.recover()
        begun = self._target.pending()
        if begun is None:
            return
        units = [unit for task in begun.tasks for unit in task]
        files = {unit.file: SourceFile(unit.file, unit.path) for unit in units}
        self._scans = {scan.file.name: scan for scan in scan_files(files.values())}
        self._land_batch(begun, self._target.catalogue(begun.catalogue))
        self._stopped.clear()  # a file that is no longer what was begun is planned anew, as what it is now
        self.report.problems = [each for each in self.report.problems if each.code != "source-changed"]

    def land(self, source: Path) -> None:
        listing = list_files(source, without=self._target.root)
        self.report.problems += listing.problems
        plan = make_plan(scan_files(listing.files), self._ledger)
        self.report.problems += plan.problems
        self._scans = {planned.scan.file.name: planned.scan for planned in plan.files}
        if self._landing.watch:
            self._landing.watch.begin(sum(unit.weight for planned in plan.files for unit in planned.units))
        for batch in make_batches(plan.files, self._landing.batch_bytes):
            self._begin(batch)
        self._record_copies(plan)
        self._count_files(plan)

    def _begin(self, batch: Batch) -> None:
        units = [unit for unit in batch.units if unit.file not in self._stopped]
        if units:
            tasks = make_tasks(units, self._landing.runner.parallelism)
            begun = self._begun(tasks, [entry for entry in batch.entries if entry.file not in self._stopped])
            self._land_batch(begun, self._catalogue.document)

    def _begun(self, tasks: Tasks, entries: list[Entry]) -> Begun:
        begun = Begun(
            batch=self._number,
            catalogue=self._catalogue.fingerprint,
            endpoint=self._landing.endpoint,
            confluent_prefix=self._landing.confluent_prefix,
            tasks=tasks,
            entries=entries,
        )
        self._number += 1
        if not self._landing.dry_run:
            self._target.begin(begun, self._catalogue.document)
        return begun

    def _land_batch(self, begun: Begun, document: bytes) -> None:
        """Reads, checks, commits. What is not as planned is left out, and the rest read again."""
        job = self._job(begun, document)
        entries = {entry.file: entry for entry in begun.entries}
        tasks: Tasks | None = None
        kept = self._without_changed(begun.tasks, entries, {})
        while tasks != kept:
            tasks = kept
            results = self._run(job, tasks)
            kept = self._without_changed(tasks, entries, changed_units(results))
            kept = without_lost(kept, results)
        settled = list(settle(begun.entries, results, self._ledger))
        self._stopped |= entries.keys() - {entry.file for entry in settled if not entry.problem}
        self._commit(begun, settled, results)
        self._ledger.update({entry.file: entry for entry in settled})
        self.report.problems += unfinished_units(results)

    def _without_changed(self, tasks: Tasks, entries: Mapping[str, Entry], why: dict[str, str]) -> Tasks:
        """The tasks without files that changed since they were planned: those in `why`, and those that look changed."""
        for name in {unit.file for task in tasks for unit in task} - why.keys():
            if not self._is_as_planned(entries[name]):
                why[name] = "it was written to while it was read"
        self.report.problems += [changed(name, reason) for name, reason in sorted(why.items())]
        return only(tasks, lambda unit: unit.file not in why)

    def _is_as_planned(self, entry: Entry) -> bool:
        """Whether the bytes the entry speaks of are still there. Cost: a file written to is read again."""
        if entry.problem == "unreadable-file":
            return True
        scan = self._scans.get(entry.file)
        if scan is None:
            return False
        try:
            if identity_of(scan.file.path) != scan.identity:
                scan = self._scans[entry.file] = next(scan_files([scan.file]), scan)
            return scan.size >= entry.size and scan.prefix_digest(entry.size) == entry.digest
        except OSError:
            return False

    def _job(self, begun: Begun, document: bytes) -> Job:
        staging = None if self._landing.dry_run else str(self._target.staging(begun.batch).absolute())
        return Job(
            factory=self._landing.factory,
            catalogue=Job.pack(document),
            options={
                "endpoint": begun.endpoint,
                "catalogue": begun.catalogue,
                "confluent_prefix": begun.confluent_prefix,
            },
            batch=begun.batch,
            staging=staging,
            format=self._landing.form,
            sizes=self._landing.sizes,
        )

    def _run(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        if not tasks:
            return []
        if job.staging:
            self._target.clear_staging(job.batch)
            Path(job.staging).mkdir(parents=True, exist_ok=True)  # a worker of a killed run may still write there
        watch = self._landing.watch
        with (
            tempfile.TemporaryDirectory(prefix="marks-", dir=job.staging, ignore_cleanup_errors=True) as marks,
            watch.during(marks) if watch else nullcontext(),
        ):
            results = self._landing.runner(replace(job, marks=marks), tasks)
        faults = dict.fromkeys(result.fault for result in results if result.fault)
        if faults:
            problems = [Problem(code=code, message=message) for code, message in faults]
            raise WirebookError(*problems[:MAX_FAULTS]) from RuntimeError("\n".join(result.trace for result in results))
        return results

    def _commit(self, begun: Begun, entries: list[Entry], results: list[TaskResult]) -> None:
        if self._landing.dry_run:
            check_conservation(results, sum_of(result.rows for result in results))
        elif not entries:
            self._target.abandon(begun.batch)
        else:
            manifest = self._manifest(begun, entries, results)
            self._target.commit(manifest)
            self._target.finish(manifest)
        self.report.add(results)

    def _manifest(self, begun: Begun, entries: list[Entry], results: list[TaskResult]) -> Manifest:
        """Raises: not-conserved"""
        files = [file for result in results for file in result.files]
        staging, form = self._target.staging(begun.batch), FORMATS[self._landing.form]
        with ThreadPoolExecutor(4) as pool:
            counted = pool.map(lambda file: {file.table: form.count(staging / file.path)}, files)
            check_conservation(results, sum_of(counted))
        return Manifest(
            batch=begun.batch,
            catalogue=begun.catalogue,
            endpoint=begun.endpoint,
            format=self._landing.form,
            files=files,
            tables=list(table_entries(results)),
            entries=entries,
            read=sum(result.read for result in results),
            empty=sum(result.empty for result in results),
        )

    def _record_copies(self, plan: Plan) -> None:
        """Gives a copy the entry of the file that landed in its place: when it grows, its new lines land."""
        copies = []
        for name, (end, twin) in plan.same.items():
            landed = self._ledger.get(twin)
            if landed and (landed.size, landed.digest) == (end.size, end.digest):
                copies.append(msgspec.structs.replace(landed, file=name, same_as=twin))
        self._ledger.update({entry.file: entry for entry in copies})
        if copies and not self._landing.dry_run:
            self._target.commit(Manifest(batch=self._number, catalogue=self._catalogue.fingerprint, entries=copies))
            self._number += 1

    def _count_files(self, plan: Plan) -> None:
        """Counts what the target had already: whole files, and the first lines of files that grew."""
        had = [*plan.skipped, *(planned.scan.file.name for planned in plan.files)]
        copied = [self._ledger[twin].messages for _, twin in plan.same.values() if twin in self._ledger]
        self.report.skipped = sum(self._before[name].messages for name in had if name in self._before) + sum(copied)
        self.report.files = len(plan.files)
        self.report.skipped_files = len(plan.skipped) + len(plan.same)
