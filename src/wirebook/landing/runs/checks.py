"""Checks that a batch loses no message, from the results of all its tasks, before the commit. All pure.

Spec: docs/land.md#what-is-promised
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from wirebook.landing.runs.task import TaskResult
from wirebook.landing.runs.totals import total_counts
from wirebook.landing.tables.layout import RESOLVED
from wirebook.problems import Problem, WirebookError

__all__ = ["check_conservation", "check_replayed"]


def check_conservation(results: Iterable[TaskResult], written: Mapping[str, int]) -> None:
    """Check that the number of messages read equals the number of rows written, in total and for each table.

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
