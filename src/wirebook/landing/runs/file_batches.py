"""Batches of files: run their tasks, leave out files that have changed since planning, and update the ledger.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.plan import source_changed
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.running_batch import RunningBatch
from wirebook.landing.runs.settings import Tasks
from wirebook.landing.runs.split_results import (
    changed_files,
    check_sources_are_shared,
    completed_entries,
    keep_splits,
    unfinished_line_problems,
    without_splits_after_damage,
)
from wirebook.landing.sources.files import Scan, identity_of, scan_files
from wirebook.problems import WirebookError

__all__ = ["FileBatches"]


class FileBatches:
    """Lands batches of files.

    Shape: `scans` has the scan that each file was planned from, by file. `ledger` has the landed part of each file, or
    in a dry run the part that would have landed. `stopped` are files that have changed or are damaged, so that later
    batches must land nothing from them.
    """

    def __init__(self, run: Run, scans: dict[str, Scan]) -> None:
        self.ledger: Ledger = dict(run.history.ledger)
        self.stopped: set[str] = set()
        self._run, self._scans = run, scans

    def land(self, batch: RunningBatch) -> None:
        """Run the tasks of a batch, check the results, and commit. If files have changed, the tasks run again without
        them.

        Raises: not-shared, not-conserved, and those of tasks
        """
        pending = batch.pending
        entries = {entry.file: entry for entry in pending.entries}
        tasks: Tasks | None = None
        remaining = self._without_changed(pending.tasks, entries, {})
        while tasks != remaining:
            tasks = remaining
            results = batch.run_tasks(tasks)
            try:
                check_sources_are_shared(results, os.path.exists)
            except WirebookError:
                batch.give_up()
                raise
            remaining = self._without_changed(tasks, entries, changed_files(results))
            remaining = without_splits_after_damage(remaining, results)
        completed = list(completed_entries(pending.entries, results, self.ledger))
        self.stopped |= entries.keys() - {entry.file for entry in completed if not entry.problem}
        batch.commit(results, completed)
        self.ledger.update({entry.file: entry for entry in completed})
        self._run.report.problems += unfinished_line_problems(results)

    def _without_changed(self, tasks: Tasks, entries: Mapping[str, LedgerEntry], why: dict[str, str]) -> Tasks:
        """The tasks without changed files, which are reported: those in `why`, which maps files to reasons, and those
        that were written to since they were planned."""
        for name in {split.file for task in tasks for split in task} - why.keys():
            if not self._is_as_planned(entries[name]):
                why[name] = "it was written to during the run"
        self._run.report.problems += [source_changed(name, reason) for name, reason in sorted(why.items())]
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
        if scan.version is not None:  # the workers read only this version
            return scan.digest == entry.digest
        try:
            if identity_of(scan.file.path) != scan.identity:
                scan = self._scans[entry.file] = next(scan_files([scan.file._replace(modified=0)]), scan)
            return scan.size >= entry.size and scan.prefix_digest(entry.size) == entry.digest
        except OSError:
            return False
