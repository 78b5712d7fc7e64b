"""A task that lands the rows of one partition of a DataFrame. It does not depend on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from wirebook.landing.chunks import Numbers
from wirebook.landing.runs.manifests import FrameBatch
from wirebook.landing.runs.offsets import Offsets, RepeatedMessage, add_offsets, intervals_of, is_within
from wirebook.landing.runs.task import Job, Task, TaskError, TaskResult, guarded
from wirebook.landing.sources.dataframes import Identity, InputColumns, chunks_of, identified_rows

__all__ = ["FrameInput", "run_frame_task"]


@dataclass(frozen=True, slots=True)
class FrameInput:
    """The rows of a DataFrame as messages.

    Shape: rows are identified by the columns of `identity`, else by their Kafka offsets. Without either, `name` is set:
    the file of a row is then `name` and the number of its partition, and its line is its position in the partition.
    `landed` has the rows that are already in the target.
    """

    columns: InputColumns
    batch: FrameBatch
    identity: Identity | None = None
    name: str | None = None
    landed: Offsets = field(default_factory=dict)


def run_frame_task(job: Job, source: FrameInput, batches: Iterable[pa.RecordBatch], number: int) -> TaskResult:
    """Land the rows of partition `number`, except those that have already landed. Errors that `batches` raises are
    propagated; any other error becomes the fault of the result."""
    task = FrameTask(job, source, number)
    for batch in batches:
        fault = guarded(task.task, partial(task.land, batch))
        if fault is not None:
            return fault
    return guarded(task.task, task.finish)


class FrameTask:
    """A running task of a DataFrame. It tracks the rows that it has landed or skipped."""

    def __init__(self, job: Job, source: FrameInput, number: int) -> None:
        self.task = Task(job, number)
        self._source, self._number = source, number
        self._rows = self._skipped = 0
        self._offsets: Offsets = {}

    def land(self, batch: pa.RecordBatch) -> None:
        """Land the new rows of a batch.

        Raises: TaskError (frame-identity, message-twice, not-conserved)
        """
        for file, numbers, rows in self._identified(batch):
            is_new = ~is_within(numbers, self._source.landed.get(file, []))
            new = numbers[is_new]
            self._skipped += len(numbers) - len(new)
            if self._source.name is None:
                try:
                    add_offsets(self._offsets, file, intervals_of(file, new))
                except RepeatedMessage as error:
                    raise TaskError("message-twice", str(error)) from error
            if len(new):
                selected = rows if is_new.all() else rows.filter(pa.array(is_new))
                for chunk in chunks_of(file, new, selected, self._source.columns):
                    self.task.add(chunk)

    def _identified(self, batch: pa.RecordBatch) -> Iterator[tuple[str, Numbers, pa.RecordBatch]]:
        """The files of a batch, each with its line numbers and rows."""
        if self._source.name is not None:
            first = self._rows + 1
            self._rows += len(batch)
            yield f"{self._source.name}/{self._number}", np.arange(first, self._rows + 1, dtype=np.int64), batch
            return
        try:
            yield from identified_rows(batch, self._source.columns, self._source.identity)
        except ValueError as error:
            raise TaskError("frame-identity", str(error)) from error

    def finish(self) -> TaskResult:
        """Write the staged rows and return the summary of the task."""
        return self.task.finish([], offsets=self._offsets, skipped=self._skipped)
