"""Landing, on the driver: plan, pin a batch, run its tasks, check that no message is lost, commit.

The driver handles file names and counts, never messages.

Spec: docs/land.md#what-is-promised; docs/land.md#the-target-folder; docs/decisions/0010, 0013
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from wirebook.landing.runs.batches import Batches, Catalogue, RunSettings, check_settings
from wirebook.landing.runs.checks import (
    Tasks,
    changed_files,
    check_sources_are_shared,
    keep_splits,
    settled_entries,
    unfinished_line_problems,
    without_splits_after_damage,
)
from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.manifests import BatchRun, Manifest
from wirebook.landing.runs.plan import Plan, incomplete_file, make_batches, make_plan, make_tasks, source_changed
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import PendingBatch, Target
from wirebook.landing.sources.files import Scan, SourceFile, identity_of, list_files, scan_files
from wirebook.landing.stores.locations import Location
from wirebook.problems import Problem, WirebookError

__all__ = ["Run", "land_files"]


def land_files(
    settings: RunSettings,
    source: Location,
    catalogue: Catalogue,
    target: Target,
    scans: dict[str, Scan] | None = None,
) -> Report:
    """Land what is new in `source`. Each batch lands completely or not at all, whenever the run is stopped.

    `scans` are those of an earlier run of this process, by file: unchanged files are not read again. They become those
    of this run.

    Raises: unreadable-file (the source does not exist), target-is-source, format-differs, target-locked,
    unwritable-target, not-conserved
    """
    started = time.monotonic()
    if _resolved(source) == _resolved(target.root):
        message = f"'{source}' cannot be both the source and the target"
        raise WirebookError(Problem(code="target-is-source", message=message, hint="choose another target folder"))
    check_settings(settings, target)
    with nullcontext() if settings.dry_run else target.locked():
        run = Run(Batches(settings, target, catalogue), scans)
        run.recover()
        run.land(source)
        run.report.problems += target.problems
        target.wait()
    run.report.seconds = time.monotonic() - started
    return run.report


def _resolved(location: Location) -> Location:
    return location.resolve() if isinstance(location, Path) else location


class Run:
    """One run and the ledger as it grows. The report is that of its `batches`."""

    def __init__(self, batches: Batches, scans: dict[str, Scan] | None = None) -> None:
        self.report = batches.report
        self._earlier_scans = scans
        self._batches = batches
        self._settings, self._target, self._catalogue = batches.settings, batches.target, batches.catalogue
        self._ledger: Ledger = dict(self._target.history().ledger)
        self._before: Ledger = dict(self._ledger)
        self._scans: dict[str, Scan] = {}
        self._stopped: set[str] = set()  # files whose splits in later batches must not land

    def recover(self) -> None:
        """Finish what an earlier run left, and then check the settings of tables, which are about existing tables.

        Raises: table-settings
        """
        if not self._settings.dry_run:
            self._recover()
        self._batches.check_table_settings()

    def _recover(self) -> None:
        """Finish committed batches first, then the pending one with the catalogue that it began with."""
        self.report.recovered = self._target.recover(self._batches.traits_now)
        pending = self._target.pending()
        if pending is None:
            return
        if pending.frame:  # nothing of it is committed; its caller lands it once more
            self._target.abandon(pending.batch)
            return
        document = self._target.catalogue(pending.catalogue)
        if pending.chosen:
            self._batches.run_replay(pending, document)
            return
        splits = [split for task in pending.tasks for split in task]
        files = {split.file: SourceFile(split.file, split.path) for split in splits}
        self._scans = {scan.file.name: scan for scan in scan_files(files.values())}
        self._land_batch(pending, document)
        self._stopped.clear()  # a file that changed since the batch began is planned again
        self.report.problems = [problem for problem in self.report.problems if problem.code != "source-changed"]

    def land(self, source: Location) -> None:
        """Plan the files of `source`, land them batch by batch, and count what was there before."""
        listing = list_files(source, without=self._target.root)
        self.report.problems += listing.problems
        plan = make_plan(self._scan(listing.files), self._ledger)
        self.report.problems += plan.problems
        self._scans = {planned.scan.file.name: planned.scan for planned in plan.files}
        unread = Counter({planned.scan.file.name: len(planned.splits) for planned in plan.files})
        weight = sum(split.weight for planned in plan.files for split in planned.splits)
        if self._settings.progress:
            self._settings.progress.begin(weight)
        for batch in make_batches(plan.files, self._settings.batch_bytes):
            unread -= Counter(split.file for split in batch.splits)
            weight -= sum(split.weight for split in batch.splits)
            self._batches.unread = (len(unread), weight)
            splits = [split for split in batch.splits if split.file not in self._stopped]
            if splits:
                tasks = make_tasks(splits, self._settings.runner.parallelism)
                entries = [entry for entry in batch.entries if entry.file not in self._stopped]
                self._land_batch(self._batches.begin(tasks, entries), self._catalogue.document)
        self._record_copies(plan)
        self.report.problems += self._incomplete_files(plan)
        self._count_files(plan)

    def _scan(self, files: Iterable[SourceFile]) -> Iterator[Scan]:
        files = list(files)
        known = dict(self._landed_scans(files))
        if self._earlier_scans is None:
            yield from scan_files(files, known)
            return
        known |= self._earlier_scans
        self._earlier_scans.clear()
        for scan in scan_files(files, known):
            self._earlier_scans[scan.file.name] = scan
            yield scan

    def _landed_scans(self, files: Iterable[SourceFile]) -> Iterator[tuple[str, Scan]]:
        """The scans of files of HDFS that have landed and were not written to since."""
        for file in files:
            entry = self._ledger.get(file.name) if file.modified else None
            if entry and (entry.size, entry.modified) == (file.size, file.modified):
                yield file.name, Scan(file, file.size, (0, 0, file.size, file.modified), landed=entry.digest)

    def _land_batch(self, pending: PendingBatch, document: bytes) -> None:
        """Run the tasks of a batch, check the results, commit. Files that changed are left out and the rest is read
        again."""
        entries = {entry.file: entry for entry in pending.entries}
        tasks: Tasks | None = None
        remaining = self._without_changed(pending.tasks, entries, {})
        while tasks != remaining:
            tasks = remaining
            results = self._batches.run(pending, document, tasks)
            try:
                check_sources_are_shared(results, os.path.exists)
            except WirebookError:
                self._batches.give_up(pending)
                raise
            remaining = self._without_changed(tasks, entries, changed_files(results))
            remaining = without_splits_after_damage(remaining, results)
        settled = list(settled_entries(pending.entries, results, self._ledger))
        self._stopped |= entries.keys() - {entry.file for entry in settled if not entry.problem}
        self._batches.commit(pending, settled, results)
        self._ledger.update({entry.file: entry for entry in settled})
        self.report.problems += unfinished_line_problems(results)

    def _without_changed(self, tasks: Tasks, entries: Mapping[str, LedgerEntry], why: dict[str, str]) -> Tasks:
        """The tasks without the files in `why` and without files that were written to since they were planned."""
        for name in {split.file for task in tasks for split in task} - why.keys():
            if not self._is_as_planned(entries[name]):
                why[name] = "it was written to during the run"
        self.report.problems += [source_changed(name, reason) for name, reason in sorted(why.items())]
        return keep_splits(tasks, lambda split: split.file not in why)

    def _is_as_planned(self, entry: LedgerEntry) -> bool:
        """Whether the bytes that the entry covers are unchanged.

        Cost: a file that was written to is scanned again.
        """
        if entry.problem == "unreadable-file":
            return True
        scan = self._scans.get(entry.file)
        if scan is None:
            return False
        if scan.version is not None:  # the workers read this version alone
            return scan.digest == entry.digest
        try:
            if identity_of(scan.file.path) != scan.identity:
                scan = self._scans[entry.file] = next(scan_files([scan.file._replace(modified=0)]), scan)
            return scan.size >= entry.size and scan.prefix_digest(entry.size) == entry.digest
        except OSError:
            return False

    def _record_copies(self, plan: Plan) -> None:
        """Give a copy the ledger entry of the file that landed instead; if it grows, its new lines land."""
        copies = []
        for name, (end, original) in plan.copies.items():
            landed = self._ledger.get(original)
            if landed and (landed.size, landed.digest) == (end.size, end.digest):
                copies.append(msgspec.structs.replace(landed, file=name, same_as=original))
        self._ledger.update({entry.file: entry for entry in copies})
        if copies and not self._settings.dry_run:
            number, fingerprint = self._batches.take_number(), self._catalogue.fingerprint
            run = BatchRun(started=datetime.now(UTC), seconds=0.0)
            self._target.commit(Manifest(batch=number, catalogue=fingerprint, entries=copies, run=run))

    def _incomplete_files(self, plan: Plan) -> list[Problem]:
        """The problems of files that could not be read to their end, by this run or by an earlier one.

        Files that have changed are left out: nothing of them was to land.
        """
        changed = {problem.file for problem in self.report.problems if problem.code == "source-changed"}
        names = {*plan.incomplete, *plan.copies, *(planned.scan.file.name for planned in plan.files)} - changed
        entries = (self._ledger[name] for name in sorted(names & self._ledger.keys()))
        return [incomplete_file(entry) for entry in entries if entry.problem]

    def _count_files(self, plan: Plan) -> None:
        """Count the messages that the target had already: those of whole files, and of the first lines of files that
        grew."""
        had = [*plan.skipped, *(planned.scan.file.name for planned in plan.files)]
        copied = [self._ledger[original].messages for _, original in plan.copies.values() if original in self._ledger]
        self.report.skipped = sum(self._before[name].messages for name in had if name in self._before) + sum(copied)
        self.report.files = len(plan.files)
        self.report.skipped_files = len(plan.skipped) + len(plan.copies)
