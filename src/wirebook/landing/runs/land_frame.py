"""Landing of a DataFrame, on the driver: run it as one batch, check that no message is lost, commit.

Spec: docs/how-to/dataframes.md; docs/land.md#what-is-promised
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from wirebook.landing.runs.batches import Batches, Catalogue, RunSettings, check_settings
from wirebook.landing.runs.checks import total_offsets
from wirebook.landing.runs.frame_task import FrameInput
from wirebook.landing.runs.land import Run
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
from wirebook.landing.runs.task import Job, TaskResult

__all__ = ["FrameRunner", "land_frame"]

FrameRunner = Callable[[Job, FrameInput], list[TaskResult]]
"""Lands the partitions of a DataFrame, each at least once; returns one result per partition."""


def land_frame(
    settings: RunSettings, runner: FrameRunner, source: FrameInput, catalogue: Catalogue, target: Target
) -> Report:
    """Land the rows of a DataFrame that have not landed, completely or not at all.

    A batch of a streaming query that has landed is not read again.

    Raises: format-differs, target-locked, unwritable-target, frame-identity, message-twice, not-conserved
    """
    started = time.monotonic()
    check_settings(settings, target)
    with nullcontext() if settings.dry_run else target.locked():
        batches = Batches(settings, target, catalogue)
        Run(batches).recover()
        report = batches.report
        history = target.history()
        if history.has_landed(source.batch):
            same = (one for one in target.manifests(newest_first=True) if one.frame and one.frame.is_same(source.batch))
            report.skipped = next(same).read
        else:
            pending = batches.begin([], frame=source.batch)
            known = replace(source, landed=history.offsets)
            results = batches.execute(pending, catalogue.document, lambda job: runner(job, known))
            total_offsets(results)  # a dry run too reports messages that occur twice
            batches.commit(pending, [], results)
            report.skipped = sum(result.skipped for result in results)
        report.problems += target.problems
    report.seconds = time.monotonic() - started
    return report
