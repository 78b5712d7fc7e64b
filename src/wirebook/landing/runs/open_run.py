"""Opens a run on a target. Every landing and every replay begins with this.

Spec: docs/land.md#kill-and-resume; docs/decisions/0013
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from wirebook.landing.runs.file_batches import FileBatches
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.running_batch import RunningBatch
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.table_format import check_new_target
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.files import SourceFile, scan_files

__all__ = ["open_run"]


@contextmanager
def open_run(settings: RunSettings, target: Target, catalogue: Catalogue) -> Iterator[Run]:
    """Check the settings, lock the target, finish the batches that an earlier run left unfinished, and yield the run.

    The report of the run is complete when the context exits. A dry run neither locks the target nor finishes batches.

    Raises: bad-setting, format-differs, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, table-settings,
    unsupported-store, target-locked, unwritable-target, broken-target, store-failed, not-conserved
    """
    started = time.monotonic()
    check_new_target(settings, target)
    with nullcontext() if settings.dry_run else target.locked():
        run = Run.read(settings, target, catalogue)
        if not settings.dry_run:
            _recover(run)
        if settings.table_settings is not None:  # existing tables include those of a recovered batch
            run.tables.check()
            run.report.problems += run.tables.unused_settings()
        yield run
        run.report.problems += target.problems
    run.report.seconds = time.monotonic() - started


def _recover(run: Run) -> None:
    """Finish committed batches, then run and commit the pending batch with the catalogue that it was begun with."""
    run.report.recovered = run.target.recover(run.tables.traits_now)
    pending = run.target.pending()
    if pending is None:
        return
    if pending.frame:  # it is not committed, and its caller lands the DataFrame again
        run.target.abandon(pending.batch)
        return
    if pending.chosen and not run.target.can_go_on(pending):  # it is not committed
        run.target.abandon(pending.batch)
        return
    if pending.chosen:
        batch = RunningBatch.resume(run, pending)
        batch.commit(batch.run_tasks(pending.tasks))
        return
    files = {split.file: SourceFile(split.file, split.path) for task in pending.tasks for split in task}
    scans = {scan.file.name: scan for scan in scan_files(files.values())}
    FileBatches(run, scans).land(RunningBatch.resume(run, pending))
    # Not an error here: the run plans a file again that has changed since the batch was begun.
    run.report.problems = [problem for problem in run.report.problems if problem.code != "source-changed"]
