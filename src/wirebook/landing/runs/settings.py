"""The inputs of a run: its settings, its catalogue, the runner of its tasks, and the listener for its progress.

Spec: docs/land.md; docs/reference/cli.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.chunks import EngineFactory
from wirebook.landing.runs.manifests import Manifest
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.sources.lines import DEFAULT_SIZES, Sizes
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.tables.settings import TableSettings
from wirebook.problems import Problem

__all__ = ["BATCH_BYTES", "Catalogue", "CommittedBatch", "ProgressListener", "RunSettings", "Runner", "Tasks"]

BATCH_BYTES = 1 << 30

Tasks = list[list[FileSplit]]
"""The splits of each task of a batch."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The catalogue of a run.

    Shape: `document` is the JSON that is pinned and sent to tasks; `name` and `epoch` are taken from it.
    `check_endpoint` raises if the catalogue has no endpoint with this XID. `xids` returns the XIDs of the definitions
    that have tables; if it is None, the engine names the tables. `describe` returns the description of a definition.
    `prepare` returns the compiled catalogue for the messages of an endpoint, so that tasks need not compile it.
    `endpoint_of` returns the endpoint of a definition, if only one has it; `endpoints` returns the XIDs of all
    endpoints. `options` are the match options. `errors` counts the errors that were found while loading; `unread` are
    the problems of sources that could not be read.
    """

    fingerprint: str
    document: bytes
    check_endpoint: Callable[[str], None] = lambda _: None
    name: str | None = None
    epoch: int | None = None
    xids: Callable[[], Iterable[str]] | None = None
    describe: Callable[[str], str | None] = lambda _: None
    prepare: Callable[[str | None], bytes | None] = lambda _: None
    endpoint_of: Callable[[str], str | None] = lambda _: None
    endpoints: Callable[[], Collection[str]] = lambda: ()
    options: MatchOptions = DEFAULT_OPTIONS
    errors: int = 0
    unread: Sequence[Problem] = ()


class Runner(Protocol):
    """Runs the tasks of a batch, each at least once, on any machine; returns one result per task."""

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]: ...
    @property
    def parallelism(self) -> int: ...


class ProgressListener(Protocol):
    """Shows the progress of a run."""

    def begin(self, total: int) -> None:
        """Set the total number of bytes to read."""

    def during(self, progress_folder: str) -> AbstractContextManager[None]:
        """Follow the progress files in a folder while a batch runs."""


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A committed batch, whose files have entered their tables. `report` covers only this batch."""

    manifest: Manifest
    report: Report


@dataclass(slots=True)
class RunSettings:
    """Settings of a run of `land_files`, `land_frame` or `replay_dead_letters`.

    Shape: if `table_format` is None, the format of the target applies. A new target then gets Iceberg if
    `iceberg_catalog` is set, else Delta in a store and Parquet in a folder. `stage_below` is as in `StagingPolicy`. If
    `table_settings` is None, those of the target apply. `iceberg_catalog` is a name in PyIceberg's configuration; None
    means the catalogue of the target. `deduplicate` is the time window in which repeats are found; None turns the
    search off. `on_batch` is called after each batch, except in a dry run. `is_stopping` returns whether the run must
    end after the current batch; the next run lands the rest.
    """

    runner: Runner
    factory: EngineFactory
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    dry_run: bool = False
    batch_bytes: int = BATCH_BYTES
    table_format: str | None = None
    iceberg_catalog: str | None = None
    iceberg_namespace: str | None = None
    stage_below: int | None = None
    table_settings: TableSettings | None = None
    deduplicate: timedelta | None = None
    sizes: Sizes = DEFAULT_SIZES
    progress: ProgressListener | None = None
    on_batch: Callable[[CommittedBatch], None] | None = None
    is_stopping: Callable[[], bool] = lambda: False
