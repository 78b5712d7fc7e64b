"""Computes the statistics of a run, or of some batches, from the manifests, footers and a few columns of a target.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from wirebook.landing.report.column_statistics import TableStatistics, add_staged, table_statistics
from wirebook.landing.report.dead_letter_statistics import DeadLetterStatistics, dead_letter_statistics
from wirebook.landing.report.timeline import Timeline, timeline
from wirebook.landing.runs.manifests import Manifest
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, Location, location_of
from wirebook.landing.tables.layout import DEAD_LETTERS, NO_DEFINITION, REPEATED, RESOLVED, STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import Problem, WirebookError

__all__ = ["RunStatistics", "committed_batches", "run_statistics"]

MAX_TABLES = 100
MAX_STAGED_TABLES = 20
MANY_STAGED = 100_000


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """The statistics of some batches.

    Shape: `read` is the sum over the manifests, without replays, which read dead letters; `empty` and `late` are sums
    over all manifests. `resolved` counts dead letters that a replay landed; `repeated` counts events that had landed
    before. Over all batches of a target, `read` equals `landed` plus `repeated` plus the unresolved dead letters.
    `sources` counts source files. `tables` are the largest tables, at most a hundred; `rows` maps all tables to their
    numbers of rows. `started` is when the first batch started, `ended` when the last one was committed, and `seconds`
    the sum of the durations; they are None if an earlier version of Wirebook wrote all batches. `by_endpoint` counts
    landed messages by endpoint, as in `Manifest`.
    """

    batches: tuple[int, ...]
    read: int
    empty: int
    sources: int
    catalogues: tuple[str, ...]
    endpoints: tuple[str, ...]
    rows: dict[str, int]
    resolved: int
    tables: tuple[TableStatistics, ...]
    dead_letters: DeadLetterStatistics
    timeline: Timeline | None = None
    started: datetime | None = None
    ended: datetime | None = None
    seconds: float | None = None
    repeated: int = 0
    late: int = 0
    by_endpoint: dict[str, int] = field(default_factory=dict)

    @property
    def landed(self) -> int:
        """The number of rows of all tables."""
        return sum(self.rows.values())


def committed_batches(folder: AnyPath) -> set[int]:
    """The numbers of the committed batches, from the names of their manifests."""
    return set(Target(location_of(folder)).batch_numbers())


def run_statistics(folder: AnyPath, batches: Collection[int] | None = None) -> RunStatistics:
    """The statistics of these batches, or of all.

    Cost: reads the footers of their files, and the columns of placeholders and of dead letters.
    Raises: WirebookError (``no-target``, ``unknown-batch``, ``broken-target``).
    """
    target = Target(location_of(folder))
    target.check_exists()
    _check_known(target, batches)
    manifests = [manifest for manifest in target.manifests() if batches is None or manifest.batch in batches]
    known = target.tables()
    files = _files(target, manifests)
    sizes = {name: sum(rows for _, rows in table_files) for name, table_files in files.items()}
    staged = sum((Counter(manifest.staged) for manifest in manifests), Counter())
    tables = Counter({name: rows for name, rows in sizes.items() if name not in NO_DEFINITION and rows}) + staged
    described = _described(tables, staged)
    paths = {name: [path for path, _ in table_files] for name, table_files in files.items()}
    staged_in = paths.get(STAGED, [])
    statistics = {
        name: table_statistics(name, known[name].xid if name in known else None, paths.get(name, []))
        for name in described
    }
    schemas = {name: known[name].schema for name in statistics if name in staged and name in known}
    add_staged({name: statistics[name] for name in schemas}, staged_in, schemas)
    dead_letters = dead_letter_statistics(paths.get(DEAD_LETTERS, ()))
    times = [group for table in statistics.values() for group in table.times]
    runs = [manifest.run for manifest in manifests if manifest.run is not None]
    return RunStatistics(
        batches=tuple(manifest.batch for manifest in manifests),
        read=sum(manifest.read for manifest in manifests if not manifest.is_replay),
        empty=sum(manifest.empty for manifest in manifests),
        sources=len({entry.file for manifest in manifests for entry in manifest.entries}),
        catalogues=tuple(dict.fromkeys(manifest.catalogue for manifest in manifests)),
        endpoints=tuple(dict.fromkeys(manifest.endpoint for manifest in manifests if manifest.endpoint)),
        rows=dict(tables),
        resolved=sizes.get(RESOLVED, 0),
        repeated=sizes.get(REPEATED, 0),
        tables=tuple(statistics.values()),
        dead_letters=dead_letters,
        timeline=timeline(times, dead_letters.times, sum(tables.values()) + dead_letters.rows),
        started=min((run.started for run in runs), default=None),
        ended=max((run.started + timedelta(seconds=run.seconds) for run in runs), default=None),
        seconds=sum(run.seconds for run in runs) if runs else None,
        late=sum(manifest.late for manifest in manifests),
        by_endpoint=dict(sum((Counter(manifest.endpoints) for manifest in manifests), Counter())),
    )


def _described(rows: Mapping[str, int], staged: Mapping[str, int]) -> list[str]:
    """The names of the tables with the most rows. If there are many staged rows, only the largest tables among those
    with staged rows are included, because these rows can be anywhere in the files of the staging table."""
    by_size = sorted(rows, key=lambda name: (-rows[name], name))
    if sum(staged.values()) > MANY_STAGED:
        left_out = {*[name for name in by_size if name in staged][MAX_STAGED_TABLES:]}
        by_size = [name for name in by_size if name not in left_out]
    return by_size[:MAX_TABLES]


def _check_known(target: Target, batches: Collection[int] | None) -> None:
    there = target.batch_numbers()
    unknown = sorted(set(batches or ()).difference(there))
    if unknown:
        known = f"1 to {max(there)}" if there else "none"
        message = f"unknown batch {unknown[0]}; the batches in '{target.root}' are: {known}"
        raise WirebookError(Problem(code="unknown-batch", message=message, actual=unknown[0]))


def _files(target: Target, manifests: list[Manifest]) -> dict[str, list[tuple[Location, int]]]:
    """The files of each table in these batches, each with its number of rows."""
    table_files: dict[str, list[tuple[Location, int]]] = {}
    for manifest in manifests:
        for file in manifest.files:
            path = TablePlace(target.root, file.table).folder / file.name
            if isinstance(path, Path) and not path.exists():  # some formats place files in subfolders
                path = next(path.parent.glob(f"*/{path.name}"), path)
            table_files.setdefault(file.table, []).append((path, file.rows))
    return table_files
