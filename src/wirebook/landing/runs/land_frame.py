"""Lands a DataFrame, on the driver: run it as one batch, check that no message is lost, and commit.

Spec: docs/how-to/dataframes.md; docs/land.md#what-is-promised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wirebook.landing.runs.frame_task import FrameInput
from wirebook.landing.runs.open_run import open_run
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.running_batch import RunningBatch
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.target import Target
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.runs.totals import total_offsets

__all__ = ["FrameRunner", "land_frame"]

FrameRunner = Callable[[Job, FrameInput], list[TaskResult]]
"""Lands the partitions of a DataFrame, each at least once; returns one result per partition."""


def land_frame(
    settings: RunSettings, runner: FrameRunner, source: FrameInput, catalogue: Catalogue, target: Target
) -> Report:
    """Land the rows of a DataFrame that have not landed yet: all of them, or none.

    A batch of a streaming query that has already landed is not read again. Background work of the commit may still be
    running when this returns; see `Target.wait`.

    Raises: format-differs, target-locked, unwritable-target, frame-identity, message-twice, not-conserved
    """
    with open_run(settings, target, catalogue) as run:
        if run.history.has_landed(source.batch):
            same = (one for one in target.manifests(newest_first=True) if one.frame and one.frame.is_same(source.batch))
            run.report.skipped = next(same).read
        else:
            batch = RunningBatch.begin(run, [], frame=source.batch)
            known = replace(source, landed=run.history.offsets)
            results = batch.execute(lambda job: runner(job, known))
            total_offsets(results)  # so that a dry run also reports messages that occur twice
            batch.commit(results)
            run.report.skipped = sum(result.skipped for result in results)
    return run.report
