"""Checks and sums over what tasks hand back, before a batch may be committed. All pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from wirebook.landing.runs.ledger import Entry, Ledger
from wirebook.landing.runs.plan import unfinished
from wirebook.landing.runs.target import TableEntry
from wirebook.landing.runs.task import TaskResult, UnitResult
from wirebook.landing.sources.splits import Split
from wirebook.landing.tables.layout import RESOLVED
from wirebook.problems import Problem, WirebookError

Tasks = list[list[Split]]


def only(tasks: Tasks, wanted: Callable[[Split], bool]) -> Tasks:
    """The tasks without some units; a task without units is none."""
    return [kept for task in tasks if (kept := [unit for unit in task if wanted(unit)])]


def _units(results: Iterable[TaskResult]) -> Iterator[UnitResult]:
    return (unit for result in results for unit in result.units)


def changed_units(results: Iterable[TaskResult]) -> dict[str, str]:
    """Files that turned out not to be as planned, and why."""
    return {unit.unit.file: unit.changed for unit in _units(results) if unit.changed}


def without_lost(tasks: Tasks, results: Iterable[TaskResult]) -> Tasks:
    """The tasks without units that lie behind damage in the same file: they land when the file is whole."""
    damaged = {unit.unit.file: unit.unit.start for unit in _units(results) if unit.progress.problem}
    return only(tasks, lambda unit: unit.start <= damaged.get(unit.file, unit.start))


def unfinished_units(results: Iterable[TaskResult]) -> list[Problem]:
    found = (unit for unit in _units(results) if unit.progress.unfinished)
    return [unfinished(each.unit.file, each.progress.lines + 1) for each in found]


def settle(entries: Iterable[Entry], results: Iterable[TaskResult], ledger: Ledger) -> Iterator[Entry]:
    """The entries of files of which units were read, with what only reading told. Pure."""
    read: dict[str, list[UnitResult]] = {}
    for unit in sorted(_units(results), key=lambda unit: unit.unit.start):
        read.setdefault(unit.unit.file, []).append(unit)
    for entry in entries:
        units = read.get(entry.file)
        if units:
            messages = sum(unit.messages for unit in units)
            messages += ledger[entry.file].messages if entry.file in ledger else 0
            yield _settled(msgspec.structs.replace(entry, messages=messages), units[-1])


def _settled(entry: Entry, last: UnitResult) -> Entry:
    progress = last.progress
    if last.unit.is_lines:
        return entry
    if progress.problem:
        entry = msgspec.structs.replace(entry, problem=progress.problem, content=progress.content, complete=False)
    if last.unit.problem:
        return entry
    return msgspec.structs.replace(entry, lines=progress.lines, open_line=progress.open_line)


def check_conservation(results: Iterable[TaskResult], written: Mapping[str, int]) -> None:
    """What the engine read is what the files hold, table by table. Raises: not-conserved"""
    results = list(results)
    counted = sum_of(result.rows for result in results)
    read, rows = sum(result.read for result in results), sum(written.values())
    wrong = {name: (counted[name], written.get(name, 0)) for name in counted.keys() | written.keys()}
    wrong = {name: counts for name, counts in wrong.items() if counts[0] != counts[1]}
    if wrong or read != rows:
        message = f"{read} messages were read and {rows} rows were written; they differ in: {wrong or 'the sum'}"
        raise WirebookError(Problem(code="not-conserved", message=message, expected=read, actual=rows))


def check_replayed(results: Iterable[TaskResult], written: Mapping[str, int]) -> None:
    """Each dead letter that landed has one row in its table and one that says so. Raises: not-conserved"""
    results = list(results)
    counted = +sum_of(result.rows for result in results)
    read, landed = sum(result.read for result in results), counted.total() - counted[RESOLVED]
    if counted != +Counter(written) or landed != counted[RESOLVED] or landed > read:
        message = f"{read} dead letters were read, {counted[RESOLVED]} were resolved and {landed} rows written"
        raise WirebookError(Problem(code="not-conserved", message=message, expected=counted[RESOLVED], actual=landed))


def sum_of(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def table_entries(results: Iterable[TaskResult], known: Mapping[str, TableEntry]) -> Iterator[TableEntry]:
    """The tables with rows in `results` that are new, or have other columns than they had.

    Raises: not-conserved when two tasks disagree on columns
    """
    definitions: dict[str, str] = {}
    columns: dict[str, bytes] = {}
    for result in results:
        definitions |= result.definitions
        for table in {file.table for file in result.files} | result.staged.keys():
            if columns.setdefault(table, result.columns[table]) != result.columns[table]:
                raise WirebookError(Problem("not-conserved", f"table '{table}' has two shapes in one batch"))
    for table, schema in columns.items():
        if table not in known or known[table].arrow != TableEntry.encoded(schema):
            yield TableEntry.of(table, definitions.get(table), schema)  # letters have no definition
