"""Batches: pin, run as tasks, check, commit. Landing and replay share this.

The driver handles file names and counts, never messages.

Spec: docs/land.md#what-is-promised; docs/land.md#kill-and-resume; docs/decisions/0013
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing.chunks import EngineFactory
from wirebook.landing.runs.checks import (
    Tasks,
    check_conservation,
    check_replayed,
    table_entries,
    total_counts,
    total_offsets,
)
from wirebook.landing.runs.ledger import LedgerEntry
from wirebook.landing.runs.manifests import BatchRun, Manifest, TableEntry, read_columns
from wirebook.landing.runs.repeats import (
    Deduplication,
    RepeatSearch,
    SeenEvents,
    delete_unneeded,
    record_events,
    settle,
)
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import DeadLetterFilter, PendingBatch, Target
from wirebook.landing.runs.task import Job, ReplaySelection, TaskResult
from wirebook.landing.sources.lines import DEFAULT_SIZES, Sizes
from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE, ObjectPath
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import NO_TRAITS, StagedFile, TableFormat, TableTraits
from wirebook.landing.tables.iceberg_catalog import CatalogPlace, TargetCatalog, place_for, place_of, remember
from wirebook.landing.tables.layout import DEAD_LETTERS, STAGED
from wirebook.landing.tables.names import assign_names
from wirebook.landing.tables.partitions import partition_of
from wirebook.landing.tables.settings import TableSettings
from wirebook.landing.tables.staged import StagingPolicy, rows_by_table
from wirebook.problems import Problem, WirebookError

__all__ = ["BATCH_BYTES", "Batches", "Catalogue", "CommittedBatch", "ProgressListener", "RunSettings", "Runner"]

BATCH_BYTES = 1 << 30
MAX_FAULTS = 3
"""Maximum number of task faults that are reported for a batch."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The catalogue of a run.

    Shape: `document` is the JSON that is pinned and sent to tasks. `check_endpoint` raises if the catalogue has no
    endpoint with an XID. `name` and `epoch` are those in the document. `xids` returns the definitions
    that have tables; without it, the engine names them. `prepare` returns the compiled catalogue for messages of an
    endpoint, so that tasks need not compile it. `endpoint_of` returns the endpoint of a definition, if only one has it;
    `endpoints` returns the XIDs of all. `options` are those that messages are matched with. `errors` counts the errors
    that loading has found; `unread` are those of sources that could not be read.
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


@dataclass(slots=True)
class RunSettings:
    """Settings of a run of `land_files` or `replay_dead_letters`.

    Shape: `table_format` None is the format of the target, or Parquet for a new one. `stage_below` as in
    `StagingPolicy`. `table_settings` None are those of the target. `iceberg_catalog` is a name in PyIceberg's
    configuration; None: that of the target. `deduplicate` is the window in which repeats are found; None: they are
    not searched. `on_batch` is called after each batch; not in a dry run.
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


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that has been committed and has entered its tables; `report` is that of the batch alone."""

    manifest: Manifest
    report: Report


def check_settings(settings: RunSettings, target: Target) -> None:
    """Check what can be known before a new target is created, so that a mistake leaves nothing behind.

    Raises: bad-setting, format-differs, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, table-settings,
    unsupported-store
    """
    with suppress(OSError):  # locking the target says what is wrong with its place
        if not target.exists:
            _check_new(settings, target)


def _check_new(settings: RunSettings, target: Target) -> None:
    table_format = FORMATS[_format(settings, target)]
    place = _iceberg_place(settings, target, has_tables=False) if table_format.name == "iceberg" else None
    if place is None:
        table_format.check(target.root)
    else:
        TargetCatalog.of(place)
    if settings.table_settings is not None:
        check_properties(settings.table_settings, table_format)


def check_properties(settings: TableSettings, table_format: TableFormat) -> None:
    """Check the properties of tables. Raises: table-settings"""
    problems = []
    for options in settings:
        if options.properties and (reason := table_format.check_properties(options.properties)):
            hint = f"the properties are: {', '.join(options.properties)}"
            message = f"tables of the format '{table_format.name}' cannot have these properties: {reason}"
            problems.append(Problem("table-settings", message, actual=options.properties, hint=hint))
    if problems:
        raise WirebookError(*problems)


def _iceberg_place(settings: RunSettings, target: Target, *, has_tables: bool) -> CatalogPlace | None:
    """As `place_for`."""
    return place_for(target.root, settings.iceberg_catalog, settings.iceberg_namespace, has_tables=has_tables)


class Batches:
    """The batches of one run and its report. Each batch is begun, run and committed in turn."""

    def __init__(self, settings: RunSettings, target: Target, catalogue: Catalogue) -> None:
        self.report = Report(dry_run=settings.dry_run)
        self.settings, self.target, self.catalogue = settings, target, catalogue
        self._history = target.history()
        self.table_format = FORMATS[_format(settings, target)]
        self._check_format()
        self._number = target.next_batch()
        self._begun: tuple[int, datetime, float] | None = None
        self.unread: tuple[int, int] | None = None
        self._table_settings = self._history.table_settings
        if settings.table_settings is not None:
            self._table_settings = settings.table_settings.with_names(self._own_name)

    def _check_format(self) -> None:
        """Check that tables can be written, and note in which Iceberg catalogue they are.

        Raises: iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, unsupported-store
        """
        if self.table_format.name == "iceberg":
            place = _iceberg_place(self.settings, self.target, has_tables=self._history.format is not None)
            if place is not None and self.settings.dry_run:
                TargetCatalog.of(place)  # the namespace may not exist
                return
            if place is not None:
                remember(self.target.root, place)
        self.table_format.check(self.target.root)

    def _own_name(self, name: str) -> str:
        """As in `TableFormat`."""
        return self.table_format.own_name(self.target.root, name) if "." in name and self._has_catalogue else name

    @property
    def _has_catalogue(self) -> bool:
        """Whether the target can have a catalogue of tables: in a dry run, a new target has none."""
        return self.target.exists or not self.settings.dry_run

    def take_number(self) -> int:
        """The number of the next batch."""
        self._number += 1
        return self._number - 1

    def begin(self, tasks: Tasks, entries: Sequence[LedgerEntry] = (), **pinned: Any) -> PendingBatch:
        """Pin a batch to its tasks and to the catalogue; `pinned` are further fields of its record."""
        self._start_clock(self._number)
        settings: dict[str, Any] = {
            "endpoint": self.settings.endpoint,
            "options": self.settings.options,
            "format": self.table_format.name,
            "stage_below": self.settings.stage_below,
            "table_settings": self._table_settings,
            "names": self.table_names(),
        }
        window = self.settings.deduplicate
        if window is not None and "chosen" not in pinned:  # a replay adds no events
            begun = int(datetime.now(UTC).timestamp())
            settings["deduplication"] = Deduplication(window=int(window.total_seconds()), begun=begun)
        number, fingerprint = self.take_number(), self.catalogue.fingerprint
        pending = PendingBatch(
            batch=number, catalogue=fingerprint, tasks=tasks, entries=[*entries], **settings | pinned
        )
        if not self.settings.dry_run:
            self.target.begin(pending, self.catalogue.document)
        return pending

    def table_names(self) -> dict[str, str] | None:
        """The names of the tables of the catalogue, as in `assign_names`; None if the engine names them.

        Raises: table-settings
        """
        if self.catalogue.xids is None:
            return None
        settings = self._table_settings
        xids = [*self.catalogue.xids()]
        existing = {entry.xid: entry.table for entry in self.target.tables().values() if entry.xid is not None}
        fixed = settings.fixed_names(xids, existing)

        def rule(xid: str) -> str | None:
            name = settings.rule(xid)
            return name and name.removeprefix(f"{self._namespace}.")

        return assign_names(xids, existing, fixed, rule)

    @cached_property
    def _namespace(self) -> str:
        """As in `TableFormat`, if settings name levels."""
        has_levels = any("." in (options.name or "") for options in self._table_settings)
        return self.table_format.namespace(self.target.root) if has_levels and self._has_catalogue else ""

    def _traits(
        self,
        settings: TableSettings,
        before: TableEntry | None,
        xid: str | None,
        arrow: bytes,
        descriptions: dict[str, str] | None,
    ) -> TableTraits:
        """What a table has beside its columns. The partition of an existing table stays."""
        if xid is None:
            return NO_TRAITS
        options, old = settings.of(xid), before.traits if before else NO_TRAITS
        name = settings.fixed_name(xid)
        day = old.day if before else partition_of(options.partition, read_columns(arrow))
        return TableTraits(
            day=day,
            properties=options.properties or {},
            description=self.catalogue.describe(xid) or old.description,
            comments=old.comments if descriptions is None else descriptions,
            is_named=name is not None and (before is None or before.table == name),
            adds_columns=options.add_columns is not False,
            may_rewrite=options.widen == "rewrite",
        )

    def traits_now(self, entry: TableEntry) -> TableTraits:
        """The traits of an existing table, with what the settings of this run allow."""
        if entry.xid is None:
            return entry.traits
        options, name = self._table_settings.of(entry.xid), self._table_settings.fixed_name(entry.xid)
        return msgspec.structs.replace(
            entry.traits,
            is_named=name == entry.table,
            adds_columns=options.add_columns is not False,
            may_rewrite=options.widen == "rewrite",
        )

    def check_table_settings(self) -> None:
        """Check the settings of this run against the tables and their format.

        Raises: table-settings
        """
        if self.settings.table_settings is None:
            return
        settings = self._table_settings
        problems = [
            problem
            for entry in self.target.tables().values()
            if entry.xid in settings.tables
            for problem in settings.contradictions(entry.xid, entry.table, entry.traits.day, entry.columns)
        ]
        if problems:
            raise WirebookError(*problems)
        check_properties(settings, self.table_format)
        self.table_names()

    def run(self, pending: PendingBatch, document: bytes, tasks: Tasks) -> list[TaskResult]:
        """Run tasks of a batch and return their results.

        Raises: WirebookError with the faults that stopped them
        """
        return self.execute(pending, document, lambda job: self.settings.runner(job, tasks)) if tasks else []

    def execute(
        self, pending: PendingBatch, document: bytes, run: Callable[[Job], list[TaskResult]]
    ) -> list[TaskResult]:
        """Run the job of a batch with `run`, in an empty staging folder, and return the results.

        If tasks have landed the same event, the job runs again, and one of them lands it.

        Raises: WirebookError with the faults that stopped it, not-conserved
        """
        results = self._execute(self._job(pending, document), pending, run)
        if pending.deduplication is None:
            return results
        window = pending.deduplication.window
        if chosen := settle([result.events for result in results], window):
            results = self._execute(self._job(pending, document, chosen), pending, run)
            if settle([result.events for result in results], window):
                message = "the rows of the batch differ when they are read again, so repeated events cannot be found"
                hint = "land a DataFrame that returns the same rows each time, such as one that is cached"
                raise WirebookError(Problem("not-conserved", message, hint=hint))
        return results

    def _execute(self, job: Job, pending: PendingBatch, run: Callable[[Job], list[TaskResult]]) -> list[TaskResult]:
        """Run a job in an empty staging folder.

        Raises: WirebookError with the faults that stopped it
        """
        self._start_clock(pending.batch)
        folder = None
        if isinstance(job.staging, Path):
            self.target.clear_staging(job.batch)
            job.staging.mkdir(parents=True, exist_ok=True)  # a worker of a killed run may still write to it
            folder = job.staging
        progress = self.settings.progress
        with (
            tempfile.TemporaryDirectory(prefix="marks-", dir=folder, ignore_cleanup_errors=True) as progress_folder,
            progress.during(progress_folder) if progress else nullcontext(),
        ):
            results = run(replace(job, progress_folder=progress_folder))
        faults = dict.fromkeys(result.fault for result in results if result.fault)
        if faults:
            problems = [Problem(code=code, message=message, hint=hint) for code, message, hint in faults]
            if any(problem.code == "not-shared" for problem in problems):
                self.give_up(pending)
            raise WirebookError(*problems[:MAX_FAULTS]) from RuntimeError("\n".join(result.trace for result in results))
        return results

    def give_up(self, pending: PendingBatch) -> None:
        """Drop a batch whose source or target the workers do not see: else every later run would begin with it, and
        fail."""
        if not self.settings.dry_run:
            self.target.abandon(pending.batch)

    def run_replay(self, pending: PendingBatch, document: bytes) -> None:
        """Run a batch of dead letters and commit it."""
        results = self.run(pending, document, pending.tasks)
        self.commit(pending, [], results)

    def _job(self, pending: PendingBatch, document: bytes, chosen: bytes = b"") -> Job:
        """The job of a batch; `chosen` as in `RepeatSearch`."""
        is_own = pending.catalogue == self.catalogue.fingerprint and pending.options == self.settings.options
        prepared = self.catalogue.prepare(pending.endpoint) if is_own else None
        staging = None if self.settings.dry_run else self.target.staging(pending.batch).absolute()
        return Job(
            factory=self.settings.factory,
            catalogue=Job.pack(document) if prepared is None else b"",
            options={
                "endpoint": pending.endpoint,
                "catalogue": pending.catalogue,
                "match": pending.options,
                "prepared": prepared,
            },
            batch=pending.batch,
            staging=staging,
            format=self.table_format.name,
            tables=tables.absolute() if (tables := self.target.table_list()) else None,
            names=pending.names,
            table_settings=pending.table_settings,
            staging_policy=self._staging_policy(pending.stage_below),
            sizes=self.settings.sizes,
            dead_letters=self._replay_selection(pending.chosen) if pending.chosen else None,
            repeats=self._repeat_search(pending, chosen),
        )

    def _repeat_search(self, pending: PendingBatch, chosen: bytes) -> RepeatSearch | None:
        """The same each time a batch is run, because nothing is committed in between."""
        if pending.deduplication is None:
            return None
        seen = self._history.seen
        known = tuple(file.absolute() for file in seen.locations(self.target.records))
        return RepeatSearch(pending.deduplication, known, chosen, seen.horizon - pending.deduplication.window)

    def _staging_policy(self, below: int | None) -> StagingPolicy:
        """The same each time a batch is run, because nothing is committed in between."""
        limit = StagingPolicy(below).limit
        enough = (name for name, rows in self._history.staged.items() if rows >= limit)
        return StagingPolicy(below, frozenset({*self._history.with_files, *enough}) if limit else frozenset())

    def _replay_selection(self, chosen: DeadLetterFilter) -> ReplaySelection:
        """The same each time a batch is run, because nothing is committed in between."""
        ledger = self._history.ledger
        events = frozenset(entry.file for entry in ledger.values() if entry.file_type == "events")
        captures = frozenset(ledger.keys() - events) if self._history.has_frames else None
        resolved = tuple(path.absolute() for path in self.target.resolved())
        return ReplaySelection(
            frozenset(chosen.codes),
            frozenset(chosen.definitions),
            resolved,
            events,
            captures,
            self.table_format.column("_file"),
        )

    def commit(self, pending: PendingBatch, entries: list[LedgerEntry], results: list[TaskResult]) -> None:
        """Check and commit a batch; a batch without rows or ledger entries is dropped.

        Raises: not-conserved
        """
        check = check_replayed if pending.chosen else check_conservation
        endpoints, dead = self._by_endpoint(pending, results), self._dead_by_endpoint(pending, results)
        if self.settings.dry_run:
            check(results, total_counts(result.rows for result in results))
        elif not entries and not any(result.files for result in results):
            self.target.abandon(pending.batch)
        else:
            manifest = self._manifest(pending, entries, results, endpoints, check)
            self.target.commit(manifest)
            self._history.add(manifest)
            self.target.finish(manifest, _files(results))
            if manifest.seen is not None:
                delete_unneeded(self.target.records, manifest.seen)
            if self.settings.on_batch:
                report = Report(problems=self.target.problems, endpoints=Counter(endpoints), dead_letter_endpoints=dead)
                report.add(results)
                report.seconds = time.monotonic() - self._start_clock(pending.batch)[1]
                self.settings.on_batch(CommittedBatch(manifest, report))
        self.report.add(results)
        self.report.endpoints.update(endpoints)
        self.report.dead_letter_endpoints.update(dead)

    def _start_clock(self, batch: int) -> tuple[datetime, float]:
        """When this run began the batch: now, unless it has begun it before."""
        if self._begun is None or self._begun[0] != batch:
            self._begun = (batch, datetime.now(UTC), time.monotonic())
        return self._begun[1:]

    def _manifest(
        self,
        pending: PendingBatch,
        entries: list[LedgerEntry],
        results: list[TaskResult],
        endpoints: dict[str, int],
        check: Check,
    ) -> Manifest:
        files = [msgspec.structs.replace(file, statistics="") for file in _files(results)]
        staging = self.target.staging(pending.batch)
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            map_ = pool.map if isinstance(staging, ObjectPath) else map  # threads read files of a folder no faster
            check(results, total_counts(map_(partial(self._rows_in, staging), files)))
        started, clock = self._start_clock(pending.batch)
        is_own = pending.catalogue == self.catalogue.fingerprint  # else an earlier run began the batch
        run = BatchRun(
            started=started,
            seconds=round(time.monotonic() - clock, 3),
            bytes_read=sum(result.bytes_read for result in results),
            bytes_written=sum(file.size for file in files),
            reasons=dict(total_counts(result.reasons for result in results)),
            name=self.catalogue.name if is_own else None,
            epoch=self.catalogue.epoch if is_own else None,
            unread=self.unread,
        )
        return Manifest(
            batch=pending.batch,
            catalogue=pending.catalogue,
            endpoint=pending.endpoint,
            options=pending.options,
            format=self.table_format.name,
            table_settings=None if pending.table_settings == self._history.table_settings else pending.table_settings,
            files=files,
            staged=dict(total_counts(result.staged for result in results)),
            tables=list(table_entries(results, self.target.tables(), partial(self._traits, pending.table_settings))),
            entries=entries,
            frame=pending.frame,
            offsets=total_offsets(results),
            seen=self._seen_after(pending, results),
            read=sum(result.read for result in results),
            empty=sum(result.empty for result in results),
            outcomes=dict(total_counts(result.outcomes for result in results)),
            endpoints=endpoints,
            late=sum(result.late for result in results),
            run=run,
        )

    def _by_endpoint(self, pending: PendingBatch, results: list[TaskResult]) -> dict[str, int]:
        """The landed messages by endpoint, without those of definitions that no endpoint has, or several."""
        is_own = pending.catalogue == self.catalogue.fingerprint
        definitions = {table: xid for result in results for table, xid in result.definitions.items()}
        counts: Counter[str] = Counter()
        for table, rows in total_counts(result.rows for result in results).items():
            if rows and table in definitions:
                known = self.catalogue.endpoint_of(definitions[table]) if is_own else None
                if endpoint := pending.endpoint or known:
                    counts[endpoint] += rows
        return dict(counts)

    def _dead_by_endpoint(self, pending: PendingBatch, results: list[TaskResult]) -> Counter[str]:
        """The dead letters by endpoint: that of the run, or those of the catalogue that records name."""
        if pending.endpoint:
            dead = sum(result.rows.get(DEAD_LETTERS, 0) for result in results)
            return Counter({pending.endpoint: dead} if dead else {})
        known = self.catalogue.endpoints() if pending.catalogue == self.catalogue.fingerprint else ()
        counts = total_counts(result.dead_letter_endpoints for result in results)
        return Counter({endpoint: count for endpoint, count in counts.items() if endpoint in known})

    def _seen_after(self, pending: PendingBatch, results: list[TaskResult]) -> SeenEvents | None:
        """The events that the target remembers from the batch on; None if repeats are not searched."""
        if pending.deduplication is None:
            return None
        events = [result.events for result in results]
        window, seen = pending.deduplication.window, self._history.seen
        return record_events(self.target.records, seen, pending.batch, events, window)

    def _rows_in(self, staging: Location, file: StagedFile) -> dict[str, int]:
        """The number of rows of each table in a staged file, read from the file itself."""
        if file.table == STAGED:
            return rows_by_table([staging / file.path])
        return {file.table: self.table_format.count(staging / file.path)}


def _files(results: Iterable[TaskResult]) -> list[StagedFile]:
    """The files that tasks have written."""
    return [file for result in results for file in result.files]


def _format(settings: RunSettings, target: Target) -> str:
    """The table format of the target or of the settings.

    Raises: format-differs
    """
    requested = settings.table_format or ("iceberg" if settings.iceberg_catalog else None)
    current = target.format() or ("iceberg" if place_of(target.root) else None)
    if requested and current and requested != current:
        message = f"the tables in '{target.root}' have the format '{current}', not '{requested}'"
        hint = "omit the format, or choose another target folder"
        raise WirebookError(Problem("format-differs", message, expected=current, actual=requested, hint=hint))
    default = "delta" if isinstance(target.root, ObjectPath) else "parquet"
    chosen = requested or current or default
    if chosen != "iceberg" and (settings.iceberg_catalog or settings.iceberg_namespace):
        message = f"tables of the format '{chosen}' are in no Iceberg catalogue"
        hint = "omit the Iceberg catalogue and its namespace, or choose --format iceberg"
        raise WirebookError(Problem("bad-setting", message, actual=chosen, hint=hint))
    return chosen


Check = Callable[[Sequence[TaskResult], Mapping[str, int]], None]
