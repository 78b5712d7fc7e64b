"""Batches: begun with what they are pinned to, run as tasks, checked, committed. What is common to landing and replay.

The driver sees file names and counts, never a message.

Spec: docs/land.md#what-is-promised; docs/land.md#kill-and-resume; docs/decisions/0013
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.runs.checks import Tasks, check_conservation, check_replayed, sum_of, table_entries
from wirebook.landing.runs.ledger import Entry
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Begun, Chosen, Manifest, Target
from wirebook.landing.runs.task import Job, Letters, TaskResult
from wirebook.landing.sources.batches import EngineFactory
from wirebook.landing.sources.lines import DEFAULT_SIZES, Sizes
from wirebook.landing.tables.formats import StagedFile
from wirebook.landing.tables.layout import STAGED
from wirebook.landing.tables.names import FORMATS
from wirebook.landing.tables.staged import Rare, rows_by_table
from wirebook.problems import Problem, WirebookError

__all__ = ["BATCH_BYTES", "Batches", "Catalogue", "Landing", "Runner", "Watch"]

BATCH_BYTES = 1 << 30
MAX_FAULTS = 3
"""Of a batch whose tasks all stop, the faults that are reported."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The catalogue of a run: its fingerprint, the document that is pinned and shipped; `check_endpoint` raises when it
    has no endpoint of an XID."""

    fingerprint: str
    document: bytes
    check_endpoint: Callable[[str], None] = lambda _: None


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
    """Settings of a run: see `land_files` and `replay_letters`. `form` is the format of the tables: None for the one
    that the target has, Parquet for a new one. `stage_below` as `Rare` has it."""

    runner: Runner
    factory: EngineFactory
    endpoint: str | None = None
    options: MatchOptions = DEFAULT_OPTIONS
    dry_run: bool = False
    batch_bytes: int = BATCH_BYTES
    form: str | None = None
    stage_below: int | None = None
    sizes: Sizes = DEFAULT_SIZES
    watch: Watch | None = None


class Batches:
    """The batches of one run, one after the other, and its report. Each is begun, run and committed."""

    def __init__(self, landing: Landing, target: Target, catalogue: Catalogue) -> None:
        self.report = Report(dry_run=landing.dry_run)
        self.landing, self.target, self.catalogue = landing, target, catalogue
        self.form = FORMATS[_format(landing, target)]
        self.form.check()
        self._number = target.next_batch()
        self._own: set[str] = set()
        self._staged: Counter[str] = Counter()
        for manifest in target.manifests():
            self._note_tables(manifest)

    def _note_tables(self, manifest: Manifest) -> None:
        """Which tables have files of their own, and which how many staged rows."""
        self._own.update(file.table for file in manifest.files)
        self._staged.update(manifest.staged)

    def take_number(self) -> int:
        self._number += 1
        return self._number - 1

    def begin(self, tasks: Tasks, entries: Sequence[Entry] = (), **pinned: Any) -> Begun:
        """Pins a batch to its tasks and to the catalogue; `pinned` are other members of its record."""
        settings: dict[str, Any] = {
            "endpoint": self.landing.endpoint,
            "options": self.landing.options,
            "format": self.form.name,
            "stage_below": self.landing.stage_below,
        }
        number, fingerprint = self.take_number(), self.catalogue.fingerprint
        begun = Begun(batch=number, catalogue=fingerprint, tasks=tasks, entries=[*entries], **settings | pinned)
        if not self.landing.dry_run:
            self.target.begin(begun, self.catalogue.document)
        return begun

    def run(self, begun: Begun, document: bytes, tasks: Tasks) -> list[TaskResult]:
        """Runs tasks of a batch: their results. Raises: the faults that stopped them"""
        if not tasks:
            return []
        job = self._job(begun, document)
        if job.staging:
            self.target.clear_staging(job.batch)
            Path(job.staging).mkdir(parents=True, exist_ok=True)  # a worker of a killed run may still write there
        watch = self.landing.watch
        with (
            tempfile.TemporaryDirectory(prefix="marks-", dir=job.staging, ignore_cleanup_errors=True) as marks,
            watch.during(marks) if watch else nullcontext(),
        ):
            results = self.landing.runner(replace(job, marks=marks), tasks)
        faults = dict.fromkeys(result.fault for result in results if result.fault)
        if faults:
            problems = [Problem(code=code, message=message) for code, message in faults]
            raise WirebookError(*problems[:MAX_FAULTS]) from RuntimeError("\n".join(result.trace for result in results))
        return results

    def run_replay(self, begun: Begun, document: bytes) -> None:
        """Runs a batch of dead letters and commits it. What does not land leaves no trace."""
        results = self.run(begun, document, begun.tasks)
        self.commit(begun, [], results)

    def _job(self, begun: Begun, document: bytes) -> Job:
        staging = None if self.landing.dry_run else str(self.target.staging(begun.batch).absolute())
        return Job(
            factory=self.landing.factory,
            catalogue=Job.pack(document),
            options={
                "endpoint": begun.endpoint,
                "catalogue": begun.catalogue,
                "match": begun.options,
            },
            batch=begun.batch,
            staging=staging,
            format=self.form.name,
            tables=str(self.target.table_list.absolute()),
            rare=self._rare(begun.stage_below),
            sizes=self.landing.sizes,
            letters=self._letters(begun.chosen) if begun.chosen else None,
        )

    def _rare(self, below: int | None) -> Rare:
        """The same whenever a batch is run again, as nothing is committed between."""
        limit = Rare(below).limit
        enough = (name for name, rows in self._staged.items() if rows >= limit)
        return Rare(below, frozenset({*self._own, *enough}) if limit else frozenset())

    def _letters(self, chosen: Chosen) -> Letters:
        """What tasks of a replay must know; the same whenever they are run again, as nothing is committed between."""
        events = frozenset(entry.file for entry in self.target.ledger().values() if entry.kind == "events")
        resolved = tuple(str(path.absolute()) for path in self.target.resolved())
        return Letters(
            frozenset(chosen.codes), frozenset(chosen.definitions), resolved, events, self.form.column("_file")
        )

    def commit(self, begun: Begun, entries: list[Entry], results: list[TaskResult]) -> None:
        """Makes a batch count; one that has nothing to say is forgotten. Raises: not-conserved"""
        check = check_replayed if begun.chosen else check_conservation
        if self.landing.dry_run:
            check(results, sum_of(result.rows for result in results))
        elif not entries and not any(result.files for result in results):
            self.target.abandon(begun.batch)
        else:
            manifest = self._manifest(begun, entries, results, check)
            self.target.commit(manifest)
            self._note_tables(manifest)
            self.target.finish(manifest)
        self.report.add(results)

    def _manifest(self, begun: Begun, entries: list[Entry], results: list[TaskResult], check: Check) -> Manifest:
        files = [file for result in results for file in result.files]
        staging = self.target.staging(begun.batch)
        with ThreadPoolExecutor(4) as pool:
            counted = pool.map(lambda file: self._rows_in(staging, file), files)
            check(results, sum_of(counted))
        return Manifest(
            batch=begun.batch,
            catalogue=begun.catalogue,
            endpoint=begun.endpoint,
            options=begun.options,
            format=self.form.name,
            files=files,
            staged=dict(sum_of(result.staged for result in results)),
            tables=list(table_entries(results, self.target.tables())),
            entries=entries,
            read=sum(result.read for result in results),
            empty=sum(result.empty for result in results),
        )

    def _rows_in(self, staging: Path, file: StagedFile) -> dict[str, int]:
        """The rows of each table in a staged file, as the file itself says it."""
        if file.table == STAGED:
            return rows_by_table([staging / file.path])
        return {file.table: self.form.count(staging / file.path)}


def _format(landing: Landing, target: Target) -> str:
    """Raises: format-differs"""
    there = target.format()
    if landing.form and there and landing.form != there:
        message = f"the tables in '{target.root}' are {there}, not {landing.form}"
        hint = "land into another folder"
        raise WirebookError(Problem("format-differs", message, expected=there, actual=landing.form, hint=hint))
    return landing.form or there or "parquet"


Check = Callable[[Sequence[TaskResult], Mapping[str, int]], None]
