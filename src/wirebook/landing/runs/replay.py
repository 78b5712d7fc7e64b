"""Replay: dead letters that a corrected catalogue can land, each once, whatever dies in between.

Files of dead letters stay as they are. A letter that lands has its row in a typed table and one in `resolved`, both in
one batch; a letter that still does not land leaves nothing behind.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.runs.batches import Batches, Catalogue, Landing
from wirebook.landing.runs.landing import Run
from wirebook.landing.runs.plan import make_tasks, pack
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Chosen, Target
from wirebook.landing.sources.splits import OPENING, Split
from wirebook.landing.tables.layout import DEAD_LETTERS
from wirebook.landing.tables.names import FORMATS
from wirebook.problems import CODES, Problem, WirebookError

__all__ = ["replay_letters"]


class Pinned(NamedTuple):
    """What the batch that made some dead letters was told beside its catalogue."""

    endpoint: str | None
    options: MatchOptions


def replay_letters(landing: Landing, catalogue: Catalogue, target: Target, chosen: Chosen) -> Report:
    """Lands what can be landed now of the dead letters that are chosen.

    What the landing that made a letter was told (endpoint, options of matching) holds again, unless `landing` says
    otherwise.

    Raises: no-target, unknown-code, unknown-endpoint, target-locked, unwritable-target, broken-target, not-conserved
    """
    started = time.monotonic()
    _check(target, chosen)
    with nullcontext() if landing.dry_run else target.locked():
        batches = Batches(landing, target, catalogue)
        Run(batches).recover()
        before = batches.report.read
        units = list(_units(target, landing))
        for pinned in dict.fromkeys(pinned for pinned, _ in units):
            if pinned.endpoint is not None:
                catalogue.check_endpoint(pinned.endpoint)
        if landing.watch:
            landing.watch.begin(sum(unit.weight for _, unit in units))
        _replay(batches, chosen, units)
        batches.report.skipped = sum(unit.last for _, unit in units) - (batches.report.read - before)
    batches.report.seconds = time.monotonic() - started
    return batches.report


def _check(target: Target, chosen: Chosen) -> None:
    if not target.exists:
        raise WirebookError(Problem(code="no-target", message=f"'{target.root}' is no folder that was landed into"))
    unknown = [_unknown(code) for code in chosen.codes if code not in CODES]
    if unknown:
        raise WirebookError(*unknown)


def _unknown(code: str) -> Problem:
    near = get_close_matches(code, CODES, n=1)
    hint = f"did you mean '{near[0]}'?" if near else None
    return Problem(code="unknown-code", message=f"no problem has the code '{code}'", actual=code, hint=hint)


def _replay(batches: Batches, chosen: Chosen, units: Sequence[tuple[Pinned, Split]]) -> None:
    if not _are_open(batches.target, units):
        return
    for pinned, group in groupby(sorted(units, key=_by_pinned), key=lambda unit: unit[0]):
        for some in pack([unit for _, unit in group], batches.landing.batch_bytes):
            tasks = make_tasks(some, batches.landing.runner.parallelism)
            begun = batches.begin(tasks, chosen=chosen, **pinned._asdict())
            batches.run_replay(begun, batches.catalogue.document)


def _by_pinned(each: tuple[Pinned, Split]) -> tuple[Any, ...]:
    return each[0].endpoint or "", astuple(each[0].options)


def _are_open(target: Target, units: Sequence[tuple[Pinned, Split]]) -> bool:
    """Whether some letter may not have landed yet. Each that has is one row in `resolved`."""
    resolved: int = sum(pq.read_metadata(path).num_rows for path in target.resolved())
    return sum(unit.last for _, unit in units) > resolved


def _units(target: Target, landing: Landing) -> Iterator[tuple[Pinned, Split]]:
    """A unit for each row group of the dead letters; its `last` is how many rows it has."""
    made: dict[str, Pinned] = {}
    for manifest in target.manifests():
        pinned = Pinned(landing.endpoint or manifest.endpoint, landing.options.over(manifest.options))
        made |= {Path(file.path).name: pinned for file in manifest.files if file.table == DEAD_LETTERS}
    for path in _files(target, list(made)):
        yield from ((_pinned(path, made), unit) for unit in _units_of(path))


def _files(target: Target, made: list[str]) -> list[Path]:
    """The files of dead letters: as they were made, unless the format lets others rewrite them."""
    folder, form = target.root / DEAD_LETTERS, FORMATS[target.format() or "parquet"]
    return [folder / name for name in made] if form.name == "parquet" else form.files(folder)


def _pinned(path: Path, made: Mapping[str, Pinned]) -> Pinned:
    """What the landing of a file's letters was told; of a file that somebody wrote anew, if all were told the same.

    Raises: broken-target
    """
    if path.name in made:
        return made[path.name]
    told = set(made.values())
    if len(told) == 1:
        return told.pop()
    message = f"'{path}' was written anew, and its landings had other endpoints or options than one another"
    raise WirebookError(Problem(code="broken-target", file=str(path), message=message, hint="give --endpoint"))


def _units_of(path: Path) -> Iterator[Split]:
    """Raises: broken-target"""
    try:
        facts = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read the dead letters in '{path}': {error}"
        raise WirebookError(Problem(code="broken-target", file=str(path), message=message)) from error
    for number in range(facts.num_row_groups):
        group = facts.row_group(number)
        yield Split(
            file=f"{DEAD_LETTERS}/{path.name}",
            path=str(path.absolute()).encode(),
            codec="parquet",
            kind="letters",
            form="letters",
            start=number,
            end=number + 1,
            last=group.num_rows,
            weight=OPENING + group.total_byte_size,
        )
