"""Evaluates the results of splits: which files have changed or are damaged, and which part of each has landed.

All pure.

Spec: docs/land.md#messages-lines-files
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from wirebook.landing.runs.ledger import Ledger, LedgerEntry
from wirebook.landing.runs.plan import MAX_REASON, unfinished_line
from wirebook.landing.runs.settings import Tasks
from wirebook.landing.runs.task import SplitResult, TaskResult
from wirebook.landing.sources.splits import FileSplit
from wirebook.problems import Problem, WirebookError

__all__ = [
    "changed_files",
    "check_sources_are_shared",
    "completed_entries",
    "keep_splits",
    "unfinished_line_problems",
    "without_splits_after_damage",
]


def keep_splits(tasks: Tasks, condition: Callable[[FileSplit], bool]) -> Tasks:
    """The tasks with only the splits that `condition` accepts; tasks without splits are dropped."""
    return [splits for task in tasks if (splits := [split for split in task if condition(split)])]


def _split_results(results: Iterable[TaskResult]) -> Iterator[SplitResult]:
    return (split for result in results for split in result.splits)


def changed_files(results: Iterable[TaskResult]) -> dict[str, str]:
    """Files that have changed since they were planned, and why."""
    return {split.split.file: split.changed for split in _split_results(results) if split.changed}


def check_sources_are_shared(results: Iterable[TaskResult], is_there: Callable[[bytes], bool]) -> None:
    """Check that workers see all source files that the driver sees. `is_there` returns whether the driver sees a path.

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
    damaged: dict[str, int] = {}  # start of the first split with damage, by file
    for split in _split_results(results):
        if split.progress.problem:
            start = split.split.start
            damaged[split.split.file] = min(damaged.get(split.split.file, start), start)
    return keep_splits(tasks, lambda split: split.start <= damaged.get(split.file, split.start))


def unfinished_line_problems(results: Iterable[TaskResult]) -> list[Problem]:
    """The notes about last lines that were left for a later run."""
    unfinished = (split for split in _split_results(results) if split.progress.unfinished)
    return [unfinished_line(result.split.file, result.progress.lines + 1) for result in unfinished]


def completed_entries(
    entries: Iterable[LedgerEntry], results: Iterable[TaskResult], ledger: Ledger
) -> Iterator[LedgerEntry]:
    """The ledger entries of files whose splits were read, completed with what reading revealed."""
    read: dict[str, list[SplitResult]] = {}
    for split in sorted(_split_results(results), key=lambda split: split.split.start):
        read.setdefault(split.split.file, []).append(split)
    for entry in entries:
        splits = read.get(entry.file)
        if splits:
            messages = sum(split.messages for split in splits)
            messages += ledger[entry.file].messages if entry.file in ledger else 0
            yield _completed(msgspec.structs.replace(entry, messages=messages), splits[-1])


def _completed(entry: LedgerEntry, last: SplitResult) -> LedgerEntry:
    progress = last.progress
    if last.split.is_lines:
        return entry
    if progress.problem:
        entry = msgspec.structs.replace(entry, problem=progress.problem, content=progress.content, complete=False)
        if progress.reason:  # otherwise the entry has the reason from the plan
            entry = msgspec.structs.replace(entry, reason=progress.reason[:MAX_REASON])
    if last.split.problem:
        return entry
    return msgspec.structs.replace(entry, lines=progress.lines, open_line=progress.open_line)
