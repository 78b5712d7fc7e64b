"""Which batches Spark says it has finished, from updates as Spark 4.1 gives them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wirebook.spark.streaming_query import finished_batches


class Update(dict[str, Any]):
    """An update, whose members PySpark has as JSON, too."""

    @property
    def json(self) -> str:
        return json.dumps(self)


class Query:
    def __init__(self, *updates: Update) -> None:
        self.recentProgress = list(updates)
        self.lastProgress = updates[-1] if updates else None


def batch(number: int, end: int) -> Update:
    return Update(batchId=number, durationMs={"addBatch": 8, "walCommit": 2}, sources=[{"endOffset": end}])


def quiet(number: int, end: int) -> Update:
    """An update without messages, ten seconds after the batch before `number`."""
    return Update(batchId=number, durationMs={"latestOffset": 1}, sources=[{"endOffset": end}])


@pytest.mark.parametrize(
    ("query", "numbers", "expected"),
    [
        pytest.param(Query(), {0}, {}, id="no update"),
        pytest.param(Query(batch(0, 5)), {0}, {0: 5}, id="last"),
        pytest.param(Query(batch(0, 5)), {1}, {}, id="not yet"),
        pytest.param(Query(batch(0, 5), quiet(1, 5), quiet(1, 5)), {1}, {}, id="quiet before"),
        pytest.param(Query(batch(0, 5), quiet(1, 5), batch(1, 9)), {1}, {1: 9}, id="quiet before, and finished"),
        pytest.param(Query(batch(0, 5), batch(1, 9), quiet(2, 9)), {0, 1}, {0: 5, 1: 9}, id="several"),
        pytest.param(Query(batch(0, 5), batch(1, 9)), {1, 2}, {1: 9}, id="one of several"),
    ],
)
def test_finished_batches(query: Query, numbers: set[int], expected: dict[int, int]) -> None:
    finished = finished_batches(query, numbers)  # type: ignore[arg-type]
    assert {number: finished[number]["endOffset"] for number in numbers & finished.keys()} == expected
