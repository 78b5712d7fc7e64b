"""Sums over the results of tasks and over the counts of batches. All pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from wirebook.landing.runs.offsets import Offsets, RepeatedMessage, add_offsets
from wirebook.landing.runs.task import TaskResult
from wirebook.landing.tables.layout import DEAD_LETTERS, REPEATED, RESOLVED
from wirebook.problems import Problem, WirebookError

__all__ = [
    "NO_TYPED_TABLES",
    "dead_letters_by_endpoint",
    "landed_by_endpoint",
    "landed_rows",
    "total_counts",
    "total_offsets",
]

NO_TYPED_TABLES: Final = (DEAD_LETTERS, REPEATED, RESOLVED)
"""Tables whose rows do not count as landed messages."""


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


def landed_rows(rows: Mapping[str, int]) -> int:
    """The messages that landed in typed tables, from the rows of all tables."""
    return sum(rows.values()) - sum(rows.get(table, 0) for table in NO_TYPED_TABLES)


def landed_by_endpoint(
    results: Sequence[TaskResult], endpoint: str | None, endpoint_of: Callable[[str], str | None]
) -> Counter[str]:
    """Count landed messages by endpoint: that of the run, or else that of their definition. Messages of definitions
    that belong to no endpoint, or to several, are left out."""
    definitions = {table: xid for result in results for table, xid in result.definitions.items()}
    counts: Counter[str] = Counter()
    for table, rows in total_counts(result.rows for result in results).items():
        if rows and table in definitions and (owner := endpoint or endpoint_of(definitions[table])):
            counts[owner] += rows
    return counts


def dead_letters_by_endpoint(
    results: Sequence[TaskResult], endpoint: str | None, endpoints: Callable[[], Collection[str]]
) -> Counter[str]:
    """Count dead letters by endpoint: that of the run, or else the one that their record names, if it is among the
    `endpoints` of the catalogue."""
    if endpoint:
        dead = sum(result.rows.get(DEAD_LETTERS, 0) for result in results)
        return Counter({endpoint: dead} if dead else {})
    known, counts = endpoints(), total_counts(result.dead_letter_endpoints for result in results)
    return Counter({name: count for name, count in counts.items() if name in known})
