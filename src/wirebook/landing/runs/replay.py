"""Replay: land dead letters with a corrected catalogue, each exactly once, even after a crash.

A replay does not change the files of dead letters. A dead letter that lands adds a row to a typed table and one to
`resolved`, both in one batch. A dead letter that still does not land adds nothing.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from difflib import get_close_matches
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.runs.open_run import open_run
from wirebook.landing.runs.plan import group_by_weight, make_tasks
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.running_batch import RunningBatch
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.target import DeadLetterFilter, Target
from wirebook.landing.sources.splits import OPENING, FileSplit
from wirebook.landing.stores.locations import Location, parquet_source
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import unreadable_table
from wirebook.landing.tables.layout import DEAD_LETTERS, RESOLVED
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import CODES, Problem, WirebookError

__all__ = ["replay_dead_letters"]


class PinnedSettings(NamedTuple):
    """The endpoint and the match options of the batch that wrote a dead letter."""

    endpoint: str | None
    options: MatchOptions


def replay_dead_letters(
    settings: RunSettings, catalogue: Catalogue, target: Target, chosen: DeadLetterFilter
) -> Report:
    """Land the selected dead letters that now match.

    The endpoint and match options of the original landing apply, unless `settings` override them.

    Raises: no-target, unknown-code, unknown-endpoint, target-locked, unreadable-deletions, unreadable-table,
    unwritable-target, broken-target, not-conserved
    """
    _check(target, chosen)
    with open_run(settings, target, catalogue) as run:
        before = run.report.read
        deleted = sum(map(len, target.deleted_dead_letters().values()))
        splits = list(_splits(target, settings))
        for pinned in dict.fromkeys(pinned for pinned, _ in splits):
            if pinned.endpoint is not None:
                catalogue.check_endpoint(pinned.endpoint)
        if settings.progress:
            settings.progress.begin(sum(split.weight for _, split in splits))
        resolved = _count_resolved(target)
        dead_letters = sum(split.last for _, split in splits) - deleted
        # Skip this if all dead letters are resolved. The counts show that only if none has been deleted from the table.
        if dead_letters > resolved or dead_letters < run.history.rows.get(DEAD_LETTERS, 0):
            _replay(run, chosen, splits)
        run.report.skipped = dead_letters - (run.report.read - before)
        target.wait()
    return run.report


def _count_resolved(target: Target) -> int:
    """Raises: unreadable-table"""
    files = target.resolved()
    try:
        counts: Iterator[int] = (pq.read_metadata(parquet_source(file)).num_rows for file in files)
        return sum(counts)
    except (OSError, pa.ArrowException) as error:
        raise WirebookError(unreadable_table(RESOLVED, error)) from error


def _check(target: Target, chosen: DeadLetterFilter) -> None:
    target.check_exists()
    problems = []
    for code in chosen.codes:
        if code not in CODES:
            near = get_close_matches(code, CODES, n=1)
            hint = f"did you mean '{near[0]}'?" if near else None
            problems.append(
                Problem(code="unknown-code", message=f"unknown problem code '{code}'", actual=code, hint=hint)
            )
    if problems:
        raise WirebookError(*problems)


def _replay(run: Run, chosen: DeadLetterFilter, splits: Sequence[tuple[PinnedSettings, FileSplit]]) -> None:
    """Land the selected dead letters in batches. All dead letters of a batch have the same pinned settings."""
    for pinned, group in groupby(sorted(splits, key=_by_pinned), key=lambda split: split[0]):
        for splits_of_batch in group_by_weight([split for _, split in group], run.settings.batch_bytes):
            tasks = make_tasks(splits_of_batch, run.settings.runner.parallelism)
            batch = RunningBatch.begin(run, tasks, chosen=chosen, **pinned._asdict())
            batch.commit(batch.run_tasks(tasks))


def _by_pinned(pinned_split: tuple[PinnedSettings, FileSplit]) -> tuple[Any, ...]:
    pinned, _ = pinned_split
    return pinned.endpoint or "", astuple(pinned.options)


def _splits(target: Target, settings: RunSettings) -> Iterator[tuple[PinnedSettings, FileSplit]]:
    """One split per row group of the dead letters; its `last` is the number of rows."""
    written: dict[str, PinnedSettings] = {}
    for manifest in target.manifests():
        pinned = PinnedSettings(settings.endpoint or manifest.endpoint, settings.options.over(manifest.options))
        written |= {file.name: pinned for file in manifest.files if file.table == DEAD_LETTERS}
    place, table_format = TablePlace(target.root, DEAD_LETTERS), FORMATS[target.format() or "parquet"]
    # In the other formats, the files that the manifests name may have been rewritten.
    paths = [place.folder / name for name in written] if table_format.name == "parquet" else target.dead_letters()
    for path in paths:
        yield from ((_pinned(path, written), split) for split in _splits_of(path))


def _pinned(path: Location, written: Mapping[str, PinnedSettings]) -> PinnedSettings:
    """The settings under which the dead letters of a file were written. For a rewritten file, all manifests must agree.

    Raises: broken-target
    """
    if path.name in written:
        return written[path.name]
    distinct = set(written.values())
    if len(distinct) == 1:
        return distinct.pop()
    message = f"'{path}' has been rewritten, and the dead letters in it landed with different endpoints or options"
    raise WirebookError(
        Problem(code="broken-target", file=str(path), message=message, hint="specify the endpoint with --endpoint")
    )


def _splits_of(path: Location) -> Iterator[FileSplit]:
    """Raises: broken-target"""
    try:
        metadata = pq.read_metadata(parquet_source(path))
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read the dead letters in '{path}': {error}"
        raise WirebookError(Problem(code="broken-target", file=str(path), message=message)) from error
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield FileSplit(
            file=f"{DEAD_LETTERS}/{path.name}",
            path=str(path.absolute()).encode(),
            codec="parquet",
            file_type="letters",
            framing="letters",
            start=number,
            end=number + 1,
            last=group.num_rows,
            weight=OPENING + group.total_byte_size,
        )
