"""Checks and sums over task results, before a batch may be committed. All pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.manifests import TableEntry
from wirebook.landing.runs.offsets import Offsets, RepeatedMessage, add_offsets
from wirebook.landing.runs.plan import MAX_REASON, unfinished_line
from wirebook.landing.runs.task import SplitResult, TaskResult
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.tables.formats import NO_TRAITS, TableTraits
from wirebook.landing.tables.layout import RESOLVED
from wirebook.problems import Problem, WirebookError

Tasks = list[list[FileSplit]]


def keep_splits(tasks: Tasks, condition: Callable[[FileSplit], bool]) -> Tasks:
    """The tasks with only the splits that `condition` accepts; tasks without splits are dropped."""
    return [splits for task in tasks if (splits := [split for split in task if condition(split)])]


def _split_results(results: Iterable[TaskResult]) -> Iterator[SplitResult]:
    return (split for result in results for split in result.splits)


def changed_files(results: Iterable[TaskResult]) -> dict[str, str]:
    """Files that have changed since they were planned, and why."""
    return {split.split.file: split.changed for split in _split_results(results) if split.changed}


def check_sources_are_shared(results: Iterable[TaskResult], is_there: Callable[[bytes], bool]) -> None:
    """Check that workers see the source files that the driver sees (`is_there`).

    Raises: not-shared
    """
    splits = (result.split for result in _split_results(results) if result.is_missing)
    unseen = sorted({split.file for split in splits if is_there(split.path)})
    if unseen:
        message = f"workers do not see {len(unseen)} of the source files that the driver sees, such as '{unseen[0]}'"
        hint = (
            "choose a source that the driver and all workers reach: an object store, or a folder that all of them "
            "mount under the same path"
        )
        raise WirebookError(Problem("not-shared", message, file=unseen[0], hint=hint))


def without_splits_after_damage(tasks: Tasks, results: Iterable[TaskResult]) -> Tasks:
    """The tasks without the splits that follow damage in the same file; they land once the file is repaired."""
    damaged: dict[str, int] = {}  # where the first split with damage begins, by file
    for split in _split_results(results):
        if split.progress.problem:
            start = split.split.start
            damaged[split.split.file] = min(damaged.get(split.split.file, start), start)
    return keep_splits(tasks, lambda split: split.start <= damaged.get(split.file, split.start))


def unfinished_line_problems(results: Iterable[TaskResult]) -> list[Problem]:
    """The notes about last lines that were left for a later run."""
    unfinished = (split for split in _split_results(results) if split.progress.unfinished)
    return [unfinished_line(result.split.file, result.progress.lines + 1) for result in unfinished]


def settled_entries(
    entries: Iterable[LedgerEntry], results: Iterable[TaskResult], ledger: Ledger
) -> Iterator[LedgerEntry]:
    """The ledger entries of files of which splits were read, completed with what reading revealed."""
    read: dict[str, list[SplitResult]] = {}
    for split in sorted(_split_results(results), key=lambda split: split.split.start):
        read.setdefault(split.split.file, []).append(split)
    for entry in entries:
        splits = read.get(entry.file)
        if splits:
            messages = sum(split.messages for split in splits)
            messages += ledger[entry.file].messages if entry.file in ledger else 0
            yield _settled(msgspec.structs.replace(entry, messages=messages), splits[-1])


def _settled(entry: LedgerEntry, last: SplitResult) -> LedgerEntry:
    progress = last.progress
    if last.split.is_lines:
        return entry
    if progress.problem:
        entry = msgspec.structs.replace(entry, problem=progress.problem, content=progress.content, complete=False)
        if progress.reason:  # else the plan knew it
            entry = msgspec.structs.replace(entry, reason=progress.reason[:MAX_REASON])
    if last.split.problem:
        return entry
    return msgspec.structs.replace(entry, lines=progress.lines, open_line=progress.open_line)


def check_conservation(results: Iterable[TaskResult], written: Mapping[str, int]) -> None:
    """Check that the number of messages read equals the number of rows written, table by table.

    Raises: not-conserved
    """
    results = list(results)
    counted = total_counts(result.rows for result in results)
    read, rows = sum(result.read for result in results), sum(written.values())
    wrong = {name: (counted[name], written.get(name, 0)) for name in counted.keys() | written.keys()}
    wrong = {name: counts for name, counts in wrong.items() if counts[0] != counts[1]}
    if wrong or read != rows:
        message = (
            f"{read} messages were read but {rows} rows were written; (read, written) differ in: {wrong or 'the total'}"
        )
        raise WirebookError(Problem(code="not-conserved", message=message, expected=read, actual=rows))


def check_replayed(results: Iterable[TaskResult], written: Mapping[str, int]) -> None:
    """Check that each dead letter that landed has one row in its table and one in `resolved`.

    Raises: not-conserved
    """
    results = list(results)
    counted = +total_counts(result.rows for result in results)
    read, landed = sum(result.read for result in results), counted.total() - counted[RESOLVED]
    if counted != +Counter(written) or landed != counted[RESOLVED] or landed > read:
        message = f"{read} dead letters were read, {counted[RESOLVED]} resolved, but {landed} rows were written"
        raise WirebookError(Problem(code="not-conserved", message=message, expected=counted[RESOLVED], actual=landed))


def total_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum of several counts."""
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def total_offsets(results: Iterable[TaskResult]) -> Offsets:
    """The rows of a DataFrame that its tasks landed.

    Raises: message-twice
    """
    total: Offsets = {}
    try:
        for result in results:
            for file, intervals in result.offsets.items():
                add_offsets(total, file, intervals)
    except RepeatedMessage as error:
        raise WirebookError(Problem("message-twice", str(error))) from error
    return total


def no_traits(*_: object) -> TableTraits:
    """The traits of a table that has nothing but columns."""
    return NO_TRAITS


def table_entries(
    results: Iterable[TaskResult],
    known: Mapping[str, TableEntry],
    traits_of: Callable[[TableEntry | None, str | None, bytes, dict[str, str] | None], TableTraits] = no_traits,
) -> Iterator[TableEntry]:
    """The tables with rows in `results` that are new or that changed. `traits_of` returns the traits of a table from
    its entry, if it exists, its definition, its columns, and their descriptions if these have changed.

    Raises: not-conserved if two tasks disagree on columns
    """
    definitions: dict[str, str] = {}
    columns: dict[str, bytes] = {}
    descriptions: dict[str, dict[str, str]] = {}
    for result in results:
        definitions |= result.definitions
        descriptions |= result.descriptions
        for table in {file.table for file in result.files} | result.staged.keys():
            schema = result.schemas[result.columns[table]]
            if columns.setdefault(table, schema) != schema:
                raise WirebookError(
                    Problem("not-conserved", f"table '{table}' has different columns in two tasks of one batch")
                )
    for table, schema in columns.items():
        before, xid = known.get(table), definitions.get(table)  # dead letters have no definition
        traits = traits_of(before, xid, schema, descriptions.get(table))
        if before is None or before.arrow != TableEntry.encoded(schema) or before.traits != traits:
            yield TableEntry.of(table, xid, schema, traits)
