"""Landing: the driver's side of the main job. It plans, pins, lets tasks read, checks that nothing got lost, commits.

The driver sees file names and counts, never a message.

Spec: docs/land.md#what-is-promised; docs/land.md#the-target-folder; docs/decisions/0010, 0013
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import msgspec

from wirebook.landing.runs.batches import BATCH_BYTES, Batches, Catalogue, Landing, Runner, Watch
from wirebook.landing.runs.checks import (
    Tasks,
    changed_units,
    only,
    settle,
    unfinished_units,
    without_lost,
)
from wirebook.landing.runs.ledger import Entry, Ledger
from wirebook.landing.runs.plan import Batch, Plan, changed, make_batches, make_plan, make_tasks
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Begun, Manifest, Target
from wirebook.landing.sources.files import Scan, SourceFile, identity_of, list_files, scan_files
from wirebook.problems import Problem, WirebookError

__all__ = ["BATCH_BYTES", "Catalogue", "Landing", "Run", "Runner", "Watch", "land_files"]


def land_files(landing: Landing, source: Path, catalogue: Catalogue, target: Target) -> Report:
    """Lands what is new in `source`: everything, or nothing of a batch, whenever it is stopped.

    Raises: unreadable-file (no such source), target-is-source, format-differs, target-locked, unwritable-target,
    not-conserved
    """
    started = time.monotonic()
    if source.resolve() == target.root.resolve():
        message = f"'{source}' cannot be the source and the target at once"
        raise WirebookError(Problem(code="target-is-source", message=message))
    with nullcontext() if landing.dry_run else target.locked():
        run = Run(Batches(landing, target, catalogue))
        run.recover()
        run.land(source)
    run.report.seconds = time.monotonic() - started
    return run.report


class Run:
    """One run: the ledger as it grows. Its `batches` have the report."""

    def __init__(self, batches: Batches) -> None:
        self.report = batches.report
        self._batches = batches
        self._landing, self._target, self._catalogue = batches.landing, batches.target, batches.catalogue
        self._ledger: Ledger = self._target.ledger()
        self._before: Ledger = dict(self._ledger)
        self._scans: dict[str, Scan] = {}
        self._stopped: set[str] = set()  # files that went no further: their units in later batches must not land

    def recover(self) -> None:
        """Finishes what an earlier run left: committed batches, then the begun one, with the catalogue of then."""
        if self._landing.dry_run:
            return
        self._target.recover()
        begun = self._target.pending()
        if begun is None:
            return
        document = self._target.catalogue(begun.catalogue)
        if begun.chosen:
            self._batches.run_replay(begun, document)
            return
        units = [unit for task in begun.tasks for unit in task]
        files = {unit.file: SourceFile(unit.file, unit.path) for unit in units}
        self._scans = {scan.file.name: scan for scan in scan_files(files.values())}
        self._land_batch(begun, document)
        self._stopped.clear()  # a file that is no longer what was begun is planned anew, as what it is now
        self.report.problems = [problem for problem in self.report.problems if problem.code != "source-changed"]

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
            entries = [entry for entry in batch.entries if entry.file not in self._stopped]
            begun = self._batches.begin(tasks, entries)
            self._land_batch(begun, self._catalogue.document)

    def _land_batch(self, begun: Begun, document: bytes) -> None:
        """Reads, checks, commits. What is not as planned is left out, and the rest read again."""
        entries = {entry.file: entry for entry in begun.entries}
        tasks: Tasks | None = None
        kept = self._without_changed(begun.tasks, entries, {})
        while tasks != kept:
            tasks = kept
            results = self._batches.run(begun, document, tasks)
            kept = self._without_changed(tasks, entries, changed_units(results))
            kept = without_lost(kept, results)
        settled = list(settle(begun.entries, results, self._ledger))
        self._stopped |= entries.keys() - {entry.file for entry in settled if not entry.problem}
        self._batches.commit(begun, settled, results)
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

    def _record_copies(self, plan: Plan) -> None:
        """Gives a copy the entry of the file that landed in its place: when it grows, its new lines land."""
        copies = []
        for name, (end, twin) in plan.same.items():
            landed = self._ledger.get(twin)
            if landed and (landed.size, landed.digest) == (end.size, end.digest):
                copies.append(msgspec.structs.replace(landed, file=name, same_as=twin))
        self._ledger.update({entry.file: entry for entry in copies})
        if copies and not self._landing.dry_run:
            number, fingerprint = self._batches.take_number(), self._catalogue.fingerprint
            self._target.commit(Manifest(batch=number, catalogue=fingerprint, entries=copies))

    def _count_files(self, plan: Plan) -> None:
        """Counts what the target had already: whole files, and the first lines of files that grew."""
        had = [*plan.skipped, *(planned.scan.file.name for planned in plan.files)]
        copied = [self._ledger[twin].messages for _, twin in plan.same.values() if twin in self._ledger]
        self.report.skipped = sum(self._before[name].messages for name in had if name in self._before) + sum(copied)
        self.report.files = len(plan.files)
        self.report.skipped_files = len(plan.skipped) + len(plan.same)
