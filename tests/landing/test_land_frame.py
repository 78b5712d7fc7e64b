"""Landing DataFrames without Spark: each row once, whatever lands again and wherever a run stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landing.workspace import Workspace
from wirebook.landing.runs.frame_task import FrameInput, run_frame_task
from wirebook.landing.runs.land_frame import land_frame
from wirebook.landing.runs.manifests import FrameBatch
from wirebook.landing.runs.offsets import Offsets, RepeatedMessage, add_offsets, fill_offsets, intervals_of, is_within
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import Catalogue
from wirebook.landing.runs.target import Target, no_stop
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.sources.dataframes import Identity, InputColumns
from wirebook.problems import WirebookError

LINES = InputColumns("lines", {"value": "value"})
POINTS = ("locked", "pinned", "begun", "staged", "committed", "moved", "tabled", "finished")


class Stopped(Exception):
    """A run was stopped at a point."""


def rows(numbers: Iterable[int], file: str = "a") -> pa.RecordBatch:
    values = [orjson.dumps({"t": f"t{number % 3}", "n": number}) for number in numbers]
    return pa.RecordBatch.from_pydict({"value": values, "file": [file] * len(values), "line": [*numbers]})


def land(
    workspace: Workspace,
    *partitions: pa.RecordBatch,
    batch: FrameBatch = FrameBatch(),  # noqa: B008 (frozen)
    at: Callable[[str], None] = no_stop,
    identity: bool = True,
    target: Target | None = None,
    **settings: Any,
) -> Report:
    """Land partitions of one or more batches of rows."""
    columns = Identity("file", "line") if identity else None
    source = FrameInput(LINES, batch, columns, None if identity else f"{batch.query}/{batch.batch_id}")

    def runner(job: Job, frame: FrameInput) -> list[TaskResult]:
        return [run_frame_task(job, frame, [part], number) for number, part in enumerate(partitions)]

    run_settings = replace(workspace.settings, **settings)
    return land_frame(run_settings, runner, source, Catalogue("c1", b"{}"), target or Target(workspace.to, at))


@pytest.mark.parametrize("table_format", ["parquet", "delta"])
def test_rows_land_once_whatever_lands_again(workspace: Workspace, table_format: str) -> None:
    first = land(workspace, rows(range(5, 8)), rows(range(8, 10)), table_format=table_format)
    again = land(workspace, rows(range(12)), rows(range(9), "b"))
    assert (first.read, first.skipped, again.read, again.skipped) == (5, 0, 16, 5)
    workspace.check_conserved(21)


def test_rows_between_those_that_landed_are_new(workspace: Workspace) -> None:
    assert land(workspace, rows(range(0, 100, 2))).read == 50
    assert land(workspace, rows(range(100))).read == 50
    workspace.check_conserved(100)


@pytest.mark.parametrize("partitions", [(rows([1, 2, 1]),), (rows([1, 2]), rows([2, 3]))])
def test_row_that_occurs_twice_lands_nothing(workspace: Workspace, partitions: tuple[pa.RecordBatch, ...]) -> None:
    with pytest.raises(
        WirebookError, match=r"message-twice: two rows of the DataFrame have the same identity, line [12] of 'a'"
    ):
        land(workspace, *partitions)
    assert not workspace.rows()
    land(workspace, rows([1, 2, 3]))
    workspace.check_conserved(3)


def test_streaming_batch_lands_once(workspace: Workspace) -> None:
    batch = FrameBatch(query="q", batch_id=7)
    assert land(workspace, rows(range(4)), batch=batch, identity=False).read == 4
    repeated = land(workspace, rows(range(4)), batch=batch, identity=False)
    assert (repeated.read, repeated.skipped) == (0, 4)
    assert land(workspace, rows(range(4)), batch=FrameBatch(query="q", batch_id=8), identity=False).read == 4
    assert land(workspace, rows(range(4)), batch=FrameBatch(query="r", batch_id=7), identity=False).read == 4
    workspace.check_conserved(12)
    assert {row["_file"] for row in workspace.rows()} == {"q/7/0", "q/8/0", "r/7/0"}


def test_kept_target_reads_each_manifest_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    target, reads = Target(workspace.to), list[str]()
    read = target.records.read
    monkeypatch.setattr(target.records, "read", lambda names: reads.extend(names) or read(names))
    for number in range(5):
        batch = FrameBatch(query="q", batch_id=number)
        report = land(workspace, rows(range(number * 3 + 4)), batch=batch, target=target)
        assert (report.read, report.skipped) == ((3, number * 3 + 1) if number else (4, 0))
    land(workspace, rows(range(16, 20)))  # by another run
    land(workspace, rows(range(30)), batch=FrameBatch(query="q", batch_id=5), target=target)
    assert land(workspace, rows(range(30)), batch=FrameBatch(query="q", batch_id=5), target=target).skipped == 10
    workspace.check_conserved(30)
    read_once = [name for name in reads if name.removeprefix("batches/").removesuffix(".json").isdecimal()]
    assert read_once == ["batches/6.json", "batches/7.json"]  # that of the other run, and that of the repeated batch


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("identity", [True, False], ids=["identified", "streaming"])
def test_run_that_stops_is_completed_by_the_next(workspace: Workspace, point: str, identity: bool) -> None:
    batch = FrameBatch() if identity else FrameBatch(query="q", batch_id=0)

    def stop(name: str) -> None:
        if name == point:
            raise Stopped

    with pytest.raises(Stopped):
        land(workspace, rows(range(6)), rows(range(6, 9)), batch=batch, identity=identity, at=stop)
    land(workspace, rows(range(6)), rows(range(6, 9)), batch=batch, identity=identity)
    workspace.check_conserved(9)
    workspace.write("file.jsonl", b'{"t": "t0"}\n')  # landing files recovers it as well
    workspace.land()
    workspace.check_conserved(10)


def test_files_land_after_a_frame_that_stopped(workspace: Workspace) -> None:
    def stop(name: str) -> None:
        if name == "staged":
            raise Stopped

    with pytest.raises(Stopped):
        land(workspace, rows(range(6)), at=stop)
    workspace.write("file.jsonl", b'{"t": "t0"}\n')
    assert workspace.land().read == 1
    assert land(workspace, rows(range(6))).read == 6
    workspace.check_conserved(7)


def test_gaps_of_a_query_that_lands_all_messages_are_closed(workspace: Workspace) -> None:
    """Transactions of Kafka leave gaps, which would be more and more intervals."""
    target = Target(workspace.to)

    def whole(number: int, query: str = "q") -> FrameBatch:
        return FrameBatch(query=query, batch_id=number, is_whole=True)

    land(workspace, rows([7]), batch=FrameBatch(query="other", batch_id=0), target=target)
    land(workspace, rows([3, 5, 7, 9]), batch=whole(0), target=target)
    assert target.history().offsets == {"a": [(3, 9)]}
    land(workspace, rows([30, 31]), target=target)
    land(workspace, rows([15, 17], "b"), batch=whole(1), target=target)
    land(workspace, rows([12, 14, 30, 33]), batch=whole(3), target=target)
    assert target.history().offsets == {"a": [(3, 33)], "b": [(15, 17)]}
    land(workspace, rows([50, 52]), batch=whole(0, "r"), target=target)
    assert target.history().offsets == {"a": [(3, 33), (50, 52)], "b": [(15, 17)]}
    assert Target(workspace.to).history() == target.history()
    workspace.check_conserved(13)


@given(st.sets(st.integers(0, 30)), st.integers(0, 30), st.integers(0, 9))
def test_filled_offsets_have_all_lines_between(lines: set[int], first: int, more: int) -> None:
    total: Offsets = {}
    add_offsets(total, "f", intervals_of("f", np.array([*lines], np.int64)))
    fill_offsets(total, "f", first, first + more)
    everything = np.arange(-1, 43)
    assert set(everything[is_within(everything, total["f"])].tolist()) == lines | {*range(first, first + more + 1)}
    assert all(end + 1 < start for (_, end), (start, _) in zip(total["f"], total["f"][1:], strict=False))


@given(st.lists(st.sets(st.integers(0, 60)), max_size=4))
def test_offsets_are_the_lines_that_were_added(parts: list[set[int]]) -> None:
    total: Offsets = {}
    seen: set[int] = set()
    for part in parts:
        numbers = np.array([*part], np.int64)
        if part & seen:
            with pytest.raises(RepeatedMessage):
                add_offsets(total, "f", intervals_of("f", numbers))
            continue
        add_offsets(total, "f", intervals_of("f", numbers))
        seen |= part
        everything = np.arange(-1, 63)
        assert set(everything[is_within(everything, total["f"])].tolist()) == seen
        assert all(end + 1 < start for (_, end), (start, _) in zip(total["f"], total["f"][1:], strict=False))
