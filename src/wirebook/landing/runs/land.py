"""Lands files, on the driver: plan what is new in a source, and land it batch by batch.

The driver handles file names and counts, never messages.

Spec: docs/land.md#what-is-promised; docs/land.md#the-target-folder; docs/decisions/0010, 0013
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from wirebook.landing.runs.file_batches import FileBatches
from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.manifests import BatchRun, Manifest
from wirebook.landing.runs.open_run import open_run
from wirebook.landing.runs.plan import Plan, incomplete_file, make_batches, make_plan, make_tasks
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.running_batch import RunningBatch
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.files import Scan, SourceFile, list_files, scan_files
from wirebook.landing.stores.locations import Location
from wirebook.problems import Problem, WirebookError

__all__ = ["land_files"]


def land_files(
    settings: RunSettings,
    source: Location,
    catalogue: Catalogue,
    target: Target,
    scans: dict[str, Scan] | None = None,
) -> Report:
    """Land what is new in `source`. Each batch lands completely or not at all, even if the run is killed.

    `scans` maps files to the scans of an earlier run of this process, so that unchanged files are not read again. They
    are replaced by the scans of this run.

    Raises: unreadable-file (the source does not exist), target-is-source, format-differs, target-locked,
    unwritable-target, not-conserved
    """
    if _resolved(source) == _resolved(target.root):
        message = f"'{source}' cannot be both the source and the target"
        raise WirebookError(Problem(code="target-is-source", message=message, hint="choose another target folder"))
    with open_run(settings, target, catalogue) as run:
        report = run.report
        listing = list_files(source, without=target.root)
        report.problems += listing.problems
        plan = make_plan(_scanned(listing.files, run.history.ledger, scans), run.history.ledger)
        report.problems += plan.problems
        ledger = _land_batches(run, plan)
        ledger |= _record_copies(run, plan, ledger)
        report.problems += _incomplete_files(plan, ledger, report.problems)
        _count_files(run, plan, ledger)
        target.wait()
    return report


def _resolved(location: Location) -> Location:
    return location.resolve() if isinstance(location, Path) else location


def _scanned(files: Sequence[SourceFile], ledger: Ledger, earlier: dict[str, Scan] | None) -> Iterator[Scan]:
    """Scan the files, except unchanged ones, and replace the contents of `earlier` with these scans."""
    known = dict(_landed_scans(files, ledger))
    if earlier is None:
        yield from scan_files(files, known)
        return
    known |= earlier
    earlier.clear()
    for scan in scan_files(files, known):
        earlier[scan.file.name] = scan
        yield scan


def _landed_scans(files: Iterable[SourceFile], ledger: Ledger) -> Iterator[tuple[str, Scan]]:
    """The scans, made without reading, of HDFS files that have landed and have not been written to since."""
    for file in files:
        entry = ledger.get(file.name) if file.modified else None
        if entry and (entry.size, entry.modified) == (file.size, file.modified):
            yield file.name, Scan(file, file.size, (0, 0, file.size, file.modified), landed=entry.digest)


def _land_batches(run: Run, plan: Plan) -> Ledger:
    """Land the planned files batch by batch, and return the resulting ledger. If the run is stopped, the files that it
    has not reached are removed from the plan."""
    batches = FileBatches(run, {planned.scan.file.name: planned.scan for planned in plan.files})
    unread = Counter({planned.scan.file.name: len(planned.splits) for planned in plan.files})
    weight = sum(split.weight for planned in plan.files for split in planned.splits)
    if run.settings.progress:
        run.settings.progress.begin(weight)
    for planned_batch in make_batches(plan.files, run.settings.batch_bytes):
        unread -= Counter(split.file for split in planned_batch.splits)
        weight -= sum(split.weight for split in planned_batch.splits)
        run.unread = (len(unread), weight)
        splits = [split for split in planned_batch.splits if split.file not in batches.stopped]
        if splits:
            tasks = make_tasks(splits, run.settings.runner.parallelism)
            entries = [entry for entry in planned_batch.entries if entry.file not in batches.stopped]
            batches.land(RunningBatch.begin(run, tasks, entries))
        if run.settings.is_stopping():
            plan.files = [planned for planned in plan.files if unread[planned.scan.file.name] < len(planned.splits)]
            break
    return batches.ledger


def _record_copies(run: Run, plan: Plan, ledger: Ledger) -> Ledger:
    """Commit a ledger entry for each copy: that of the file that landed instead. If the copy grows, only its new lines
    land. Return these entries."""
    copies: dict[str, LedgerEntry] = {}
    for name, (end, original) in plan.copies.items():
        landed = ledger.get(original)
        if landed and (landed.size, landed.digest) == (end.size, end.digest):
            copies[name] = msgspec.structs.replace(landed, file=name, same_as=original)
    if copies and not run.settings.dry_run:
        number, fingerprint = run.take_number(), run.catalogue.fingerprint
        batch_run = BatchRun(started=datetime.now(UTC), seconds=0.0)
        run.target.commit(Manifest(batch=number, catalogue=fingerprint, entries=[*copies.values()], run=batch_run))
    return copies


def _incomplete_files(plan: Plan, ledger: Ledger, problems: Iterable[Problem]) -> list[Problem]:
    """The problems of files that this run or an earlier one could not read to their end.

    Files that `problems` reports as changed are left out, because they must not land.
    """
    changed = {problem.file for problem in problems if problem.code == "source-changed"}
    names = {*plan.incomplete, *plan.copies, *(planned.scan.file.name for planned in plan.files)} - changed
    entries = (ledger[name] for name in sorted(names & ledger.keys()))
    return [incomplete_file(entry) for entry in entries if entry.problem]


def _count_files(run: Run, plan: Plan, ledger: Ledger) -> None:
    """Count the files, and the messages that were already in the target: those of skipped files and copies, and of the
    first lines of files that have grown."""
    before = run.ledger_before
    had = [*plan.skipped, *(planned.scan.file.name for planned in plan.files)]
    copied = [ledger[original].messages for _, original in plan.copies.values() if original in ledger]
    run.report.skipped = sum(before[name].messages for name in had if name in before) + sum(copied)
    run.report.files = len(plan.files)
    run.report.skipped_files = len(plan.skipped) + len(plan.copies)
