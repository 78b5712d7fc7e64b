"""Events that are received again: each lands once within the window, and every message is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.landing.workspace import Workspace
from wirebook.catalog import Catalog
from wirebook.landing.job import catalogue_of, land, replay
from wirebook.landing.report.html import write_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.report.show import tables_in
from wirebook.landing.runs.engine import engine_for
from wirebook.landing.runs.event_keys import EventIndex, EventKeys, first_of_each, read_keys
from wirebook.landing.runs.frame_task import FrameInput, run_frame_task
from wirebook.landing.runs.land_frame import land_frame
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.runs.manifests import FrameBatch
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import RunSettings, Tasks
from wirebook.landing.runs.target import Target, no_stop
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.landing.sources.dataframes import Identity, InputColumns
from wirebook.landing.stores.locations import location_of
from wirebook.landing.watch.status import target_status
from wirebook.problems import WirebookError

HOUR = timedelta(hours=1)
EVENT = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {"type": {"value": "seen"}},
    "dataschemaformat": "JsonSchema/draft-07",
    "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
PLAIN = {
    "protocol": "NATS",
    "protocoloptions": {"subject": "plain"},
    "dataschemaformat": "JsonSchema/draft-07",
    "dataschema": {"type": "object", "properties": {"ce_source": {"type": "string"}, "ce_id": {"type": "string"}}},
}
DOCUMENT = {"messagegroups": {"g": {"messages": {"seen": EVENT, "plain": PLAIN}}}}
START = datetime(2026, 3, 1, tzinfo=UTC)


def received_at(minute: float) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


def line(id_: str, minute: float | None, source: str = "/s", data: bytes = b'{"n": 1}') -> bytes:
    """A captured event."""
    headers = {"content-type": "application/json", "ce-specversion": "1.0", "ce-type": "seen"}
    headers |= {"ce-id": id_, "ce-source": source}
    record = {"protocol": "HTTP", "method": "POST", "target": "/", "headers": [*headers.items()], "body": data.decode()}
    return orjson.dumps(record | ({} if minute is None else {"received": received_at(minute)}))


def batch_line(ids: Iterable[str], minute: float) -> bytes:
    """A captured batch of events."""
    events = [{"specversion": "1.0", "type": "seen", "source": "/s", "id": id_, "data": {"n": 1}} for id_ in ids]
    headers = [["content-type", "application/cloudevents-batch+json"]]
    body = orjson.dumps(events).decode()
    times = {"received": received_at(minute)}
    return orjson.dumps({"protocol": "HTTP", "method": "POST", "target": "/", "headers": headers, "body": body} | times)


def rows(lines: Sequence[bytes], file: str, first: int = 1) -> pa.RecordBatch:
    numbers = [*range(first, first + len(lines))]
    return pa.RecordBatch.from_pydict({"value": [*lines], "file": [file] * len(lines), "line": numbers})


def land_parts(
    to: Any,
    *partitions: pa.RecordBatch,
    at: Callable[[str], None] = no_stop,
    window: timedelta | None = HOUR,
    **more: Any,
) -> Report:
    """Land a DataFrame, a task for each partition."""
    source = FrameInput(InputColumns("lines", {"value": "value"}), FrameBatch(), Identity("file", "line"))

    def runner(job: Job, frame: FrameInput) -> list[TaskResult]:
        return [run_frame_task(job, frame, [part], number) for number, part in enumerate(partitions)]

    settings = RunSettings(LocalRunner(), engine_for, deduplicate=window, **more)
    return land_frame(settings, runner, source, catalogue_of(Catalog.load(DOCUMENT)), Target(location_of(to), at))


def landed(workspace: Workspace) -> list[tuple[str, int, int]]:
    """The places of the events that have landed."""
    return [(row["_file"], row["_line"], row["_index"]) for row in workspace.rows("g__seen")]


def repeated(workspace: Workspace) -> list[tuple[str, int, int]]:
    return [(row["_file"], row["_line"], row["_index"]) for row in workspace.rows("repeated")]


def check_counted(workspace: Workspace, report: Report, *, read: int, landing: int, repeats: int) -> None:
    """The counts of a run, and those of the status, which sums up all runs."""
    assert (report.read, report.landed, report.dead_lettered, report.repeated) == (read, landing, 0, repeats)
    status = target_status(workspace.to)
    assert status.read == status.landed + status.dead_lettered + status.repeated == len(workspace.rows())
    assert (len(landed(workspace)), len(repeated(workspace))) == (status.landed, status.repeated)


# -- which events land -----------------------------------------------------------------------------------------------


def test_repeat_in_the_window_does_not_land_again(workspace: Workspace) -> None:
    first = land_parts(workspace.to, rows([line("1", 0), line("2", 0), line("1", 5)], "a"))
    check_counted(workspace, first, read=3, landing=2, repeats=1)
    second = land_parts(workspace.to, rows([line("1", 60), line("2", 61), line("3", 61)], "b"))
    check_counted(workspace, second, read=3, landing=2, repeats=1)
    assert landed(workspace) == [("a", 1, 0), ("a", 2, 0), ("b", 2, 0), ("b", 3, 0)]
    assert second.outcomes == {"matched": 2, "repeated": 1}
    assert second.closing_line()["repeated"] == 1
    assert (second.tables(), second.definition_rows()) == (
        {"g__seen": {"definition": "/messagegroups/g/messages/seen", "rows": 2}},
        {"/messagegroups/g/messages/seen": 2},
    )


def test_row_of_a_repeat_says_what_and_where_it_was(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("1", 0), line("1", 5, data=b'{"n": 2}')], "a"))
    (row,) = workspace.rows("repeated")
    assert orjson.loads(row.pop("raw"))["body"] == '{"n": 2}'
    assert row == {
        "_file": "a",
        "_line": 2,
        "_index": 0,
        "received": START + timedelta(minutes=5),
        "source": "/s",
        "id": "1",
        "definition": "/messagegroups/g/messages/seen",
        "table": "g__seen",
        "_catalogue": Catalog.load(DOCUMENT).fingerprint,
    }


def test_same_id_of_another_source_is_another_event(workspace: Workspace) -> None:
    report = land_parts(workspace.to, rows([line("1", 0), line("1", 0, "/t")], "a"))
    assert (report.landed, report.repeated) == (2, 0)


def test_smallest_place_lands_whichever_task_reads_it(workspace: Workspace) -> None:
    parts = [rows([line("1", 0), line("2", 0)], "b"), rows([line("2", 0)], "c"), rows([line("1", 0)], "a", 7)]
    check_counted(workspace, land_parts(workspace.to, *parts), read=4, landing=2, repeats=2)
    assert landed(workspace) == [("a", 7, 0), ("b", 2, 0)]


def test_window_is_counted_from_the_event_that_landed(workspace: Workspace) -> None:
    """Between tasks too: the first is out of the window of the third, and only the driver knows the second."""
    parts = [rows([line("1", 50), line("1", 90)], "b"), rows([line("1", 0)], "a")]
    check_counted(workspace, land_parts(workspace.to, *parts), read=3, landing=2, repeats=1)
    assert landed(workspace) == [("a", 1, 0), ("b", 2, 0)]


def test_events_of_one_record_are_told_apart_by_index(workspace: Workspace) -> None:
    report = land_parts(workspace.to, rows([batch_line("121", 0), batch_line("23", 0)], "a"))
    check_counted(workspace, report, read=5, landing=3, repeats=2)
    assert landed(workspace) == [("a", 1, 0), ("a", 1, 1), ("a", 2, 1)]


def test_other_messages_are_not_compared(workspace: Workspace) -> None:
    """Not those without an envelope, whatever their payloads have, nor dead letters."""
    plain = orjson.dumps({"protocol": "NATS", "subject": "plain", "data": '{"ce_source": "/s", "ce_id": "1"}'})
    invalid = line("1", 0, data=b'{"n": "x"}')
    report = land_parts(workspace.to, rows([plain, plain, invalid, invalid, b"{", b"{", line("1", 0)], "a"))
    assert (report.read, report.landed, report.dead_lettered, report.repeated) == (7, 3, 4, 0)


def test_message_without_a_time_counts_as_received_when_its_batch_began(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("1", None), line("2", None)], "a"))
    assert land_parts(workspace.to, rows([line("1", None), line("2", 0)], "b")).repeated == 1


def test_time_in_the_future_does_not_make_the_target_forget(workspace: Workspace) -> None:
    now = (datetime.now(UTC) - START) / timedelta(minutes=1)
    land_parts(workspace.to, rows([line("1", now), line("2", now + 1e7)], "a"))
    report = land_parts(workspace.to, rows([line("1", now), line("2", now + 2e7)], "b"))
    assert (report.landed, report.repeated) == (0, 2)


def test_repeats_are_not_searched_by_default(workspace: Workspace) -> None:
    report = land_parts(workspace.to, rows([line("1", 0), line("1", 0)], "a"), window=None)
    assert (report.landed, report.repeated) == (2, 0)
    assert "repeated" not in report.closing_line()
    assert not (workspace.to / "_wirebook" / "events").exists()
    assert land_parts(workspace.to, rows([line("1", 0)], "b")).repeated == 0, "batches without the option are not known"


def test_dry_run_counts_and_writes_nothing(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("1", 0)], "a"))
    before = sorted(workspace.to.rglob("*"))
    report = land_parts(workspace.to, rows([line("1", 1), line("2", 1)], "b"), dry_run=True)
    assert (report.read, report.landed, report.repeated) == (2, 1, 1)
    assert sorted(workspace.to.rglob("*")) == before


@pytest.mark.parametrize("second", [["1", "1"], ["2", "1"], ["1"]])
def test_dataframe_that_changes_between_reads_lands_nothing(workspace: Workspace, second: list[str]) -> None:
    """The driver lets the event of the smallest place land; it must be there when the tasks run again."""
    source = FrameInput(InputColumns("lines", {"value": "value"}), FrameBatch(query="q", batch_id=1), name="q/1")
    reads = iter([[["1"], ["1"]], [["3"], second]])

    def runner(job: Job, frame: FrameInput) -> list[TaskResult]:
        parts = [rows([line(id_, 0) for id_ in ids], "a") for ids in next(reads)]
        return [run_frame_task(job, frame, [part], number) for number, part in enumerate(parts)]

    settings = RunSettings(LocalRunner(), engine_for, deduplicate=HOUR)
    with pytest.raises(WirebookError, match="not-conserved: the rows of the batch differ when they are read again"):
        land_frame(settings, runner, source, catalogue_of(Catalog.load(DOCUMENT)), Target(workspace.to))
    assert not workspace.rows()


def test_window_below_a_second_is_refused(workspace: Workspace) -> None:
    with pytest.raises(WirebookError, match=r"bad-setting: the window of 'deduplicate' is 0:00:00"):
        land(workspace.source, Catalog.load(DOCUMENT), workspace.to, deduplicate=timedelta(0))


@pytest.mark.parametrize("window", ["24h", 24, 0, True])
def test_window_of_another_type_is_an_error(window: Any, workspace: Workspace) -> None:
    with pytest.raises(WirebookError, match="must be a timedelta; got") as error:
        land(workspace.source, Catalog.load(DOCUMENT), workspace.to, deduplicate=window)
    assert error.value.problems[0].code == "bad-setting"
    assert error.value.problems[0].hint == "write it as in deduplicate=timedelta(hours=24)"


def test_unknown_option_is_named(workspace: Workspace) -> None:
    other: Any = {"dedupliacte": HOUR}
    with pytest.raises(TypeError, match="unknown option 'dedupliacte'; did you mean 'deduplicate'"):
        land(workspace.source, Catalog.load(DOCUMENT), workspace.to, **other)
    other = {"table_format": "delta"}
    with pytest.raises(TypeError, match="unknown option 'table_format'; the options are: batch_bytes, "):
        replay(workspace.to, Catalog.load(DOCUMENT), **other)


@dataclass
class Model:
    """What lands, computed one event at a time."""

    window: int
    known: dict[str, list[int]] = field(default_factory=dict)

    def land(self, events: Sequence[tuple[str, int, str, int]]) -> set[tuple[str, int]]:
        """The places of the events (file, line, id, minute) that land."""
        landing = set()
        for file, number, id_, minute in sorted(events):
            if all(abs(minute - other) > self.window for other in self.known.get(id_, [])):
                self.known.setdefault(id_, []).append(minute)
                landing.add((file, number))
        return landing


IDS = st.sampled_from("abcdef")
PART = st.lists(st.tuples(IDS, st.integers(0, 100)), max_size=12)
BATCH = st.tuples(st.lists(PART, min_size=1, max_size=4), st.randoms(use_true_random=False))


@given(st.lists(BATCH, min_size=1, max_size=4), st.sampled_from([1, 30, 60, 150, 400]))
@settings(max_examples=25, deadline=None)
def test_same_events_land_as_in_a_model(batches: Any, window: int) -> None:
    """Events of several partitions and batches, of which each begins where the one before it ended."""
    with TemporaryDirectory() as folder:
        workspace, model, expected = Workspace(Path(folder)), Model(window), set[tuple[str, int]]()
        for number, (parts, dice) in enumerate(batches):
            events = [
                (f"{number}-{part}", place, id_, number * 100 + minute)
                for part, events in enumerate(parts)
                for place, (id_, minute) in enumerate(events, 1)
            ]
            expected |= model.land(events)
            batch = [
                rows([line(id_, minute) for name, _, id_, minute in events if name == file], file)
                for file in {event[0] for event in events}
            ]
            dice.shuffle(batch)
            land_parts(workspace.to, *batch, window=timedelta(minutes=window))
        assert {(file, place) for file, place, _ in landed(workspace)} == expected
        workspace.check_conserved(sum(len(part) for parts, _ in batches for part in parts))


# -- kills -----------------------------------------------------------------------------------------------------------


class Stopped(Exception):
    """A run was stopped at a point."""


@pytest.mark.parametrize("point", ["begun", "staged", "committed", "moved", "tabled", "finished"])
def test_batch_that_is_run_again_decides_the_same(workspace: Workspace, point: str) -> None:
    def stop(reached: str) -> None:
        if reached == point:
            raise Stopped

    land_parts(workspace.to, rows([line("1", 0)], "a"))
    parts = [rows([line("2", 1), line("1", 1)], "c"), rows([line("2", 1), line("3", 1)], "b")]
    with pytest.raises(Stopped):
        land_parts(workspace.to, *parts, at=stop)
    land_parts(workspace.to, *parts)
    assert landed(workspace) == [("a", 1, 0), ("b", 1, 0), ("b", 2, 0)]
    assert repeated(workspace) == [("c", 1, 0), ("c", 2, 0)]
    assert land_parts(workspace.to, rows([line("1", 2), line("2", 2), line("3", 2)], "d")).repeated == 3
    (seen,) = [manifest.seen for manifest in Target(workspace.to).manifests()][-1:]
    assert seen is not None
    files = {file.name for file in (workspace.to / "_wirebook" / "events").iterdir()}
    assert files == {file.name for file in seen.files}, "files of the run that was stopped are deleted"


def test_kill_of_a_landing_of_files(workspace: Workspace) -> None:
    """The next run, which does not search repeats, runs the batch again as it began."""
    workspace.settings = replace(workspace.settings, factory=engine_for)
    for minute, name in enumerate("ab"):
        workspace.write(name, line("1", minute) + b"\n" + line("2", minute) + b"\n")

    def stop(reached: str) -> None:
        if reached == "staged":
            raise Stopped

    with pytest.raises(Stopped):
        workspace.land(engine=DOCUMENT, deduplicate=HOUR, at=stop)
    report = workspace.land(engine=DOCUMENT)
    assert (report.read, report.landed, report.repeated) == (4, 2, 2)
    assert landed(workspace) == [("a", 1, 0), ("a", 2, 0)]


def test_processes_that_read_the_same_events_agree(workspace: Workspace) -> None:
    """Each event is in two files, which two processes read."""
    padding = "x" * 300
    events = [line(f"{number}{padding}", 0) for number in range(2500)]
    workspace.write("a", b"\n".join(events) + b"\n")
    workspace.write("b", b"\n".join(reversed(events)) + b"\n")
    options: Any = {"runner": CountingRunner(2), "deduplicate": HOUR}
    report = land(workspace.source, Catalog.load(DOCUMENT), workspace.to, **options)
    check_counted(workspace, report, read=5000, landing=2500, repeats=2500)
    assert landed(workspace) == [("a", number, 0) for number in range(1, 2501)]
    assert options["runner"].tasks == [2, 2], "the batch is read twice"


class CountingRunner(LocalRunner):
    """Counts the tasks of each job."""

    def __init__(self, parallelism: int) -> None:
        super().__init__(parallelism)
        self.tasks: list[int] = []

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        self.tasks.append(len(tasks))
        return super().__call__(job, tasks)


# -- formats, stores, and what else reads the target ------------------------------------------------------------------


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_files_land_in_batches_of_every_format(workspace: Workspace, table_format: str) -> None:
    for number, name in enumerate("abc"):
        lines = [line("1", number), line(name, number), batch_line([name, "x"], number)]
        workspace.write(name, b"\n".join(lines) + b"\n")
    options: Any = {"batch_bytes": 1, "table_format": table_format, "deduplicate": HOUR}
    report = land(workspace.source, Catalog.load(DOCUMENT), workspace.to, **options)
    assert (report.read, report.landed, report.repeated) == (12, 5, 7)
    statistics = run_statistics(workspace.to)
    assert (statistics.read, statistics.landed, statistics.repeated) == (12, 5, 7)
    again = land(workspace.source, Catalog.load(DOCUMENT), workspace.to, **options)
    assert (again.read, again.skipped) == (0, 12)
    assert [table.name for table in tables_in(workspace.to)] == ["g__seen", "repeated"]


def test_replayed_dead_letters_land_whatever_has_landed(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("1", 0), line("1", 1, data=b'{"n": "x"}')], "a"))
    corrected = orjson.loads(orjson.dumps(DOCUMENT).replace(b'"integer"', b'["integer", "string"]'))
    report = replay(workspace.to, Catalog.load(corrected))
    assert report.repeated == 0
    assert land_parts(workspace.to, rows([line("1", 2)], "b")).repeated == 1, "a replay makes nothing forgotten"


@pytest.mark.xdist_group("servers")
def test_target_in_an_object_store(tmp_path: Path, bucket: str) -> None:
    workspace = Workspace(tmp_path, f"{bucket}/tables")

    def stop(reached: str) -> None:
        if reached == "staged":
            raise Stopped

    land_parts(workspace.to, rows([line("1", 0)], "a"), rows([line("1", 0)], "0"))
    parts = [rows([line("1", 1), line("2", 1)], "b"), rows([line("2", 1)], "c")]
    with pytest.raises(Stopped):
        land_parts(workspace.to, *parts, at=stop)
    check_counted(workspace, land_parts(workspace.to, *parts), read=3, landing=1, repeats=2)
    assert landed(workspace) == [("0", 1, 0), ("b", 2, 0)]
    assert len([*(workspace.to / "_wirebook" / "events").below()]) == 1


# -- what the target remembers ----------------------------------------------------------------------------------------


def test_events_beyond_the_window_are_forgotten(workspace: Workspace) -> None:
    """Files of keys are merged, so there are few, and the events in them are those of the window."""
    for number in range(40):
        land_parts(workspace.to, rows([line(f"{number}-{place}", number * 10) for place in range(5)], f"{number:02}"))
        seen = Target(workspace.to).history().seen
        assert [file.events for file in seen.files] == sorted((file.events for file in seen.files), reverse=True)
        assert len(seen.files) <= 3
        assert sum(file.events for file in seen.files) <= 2 * 7 * 5
    assert seen.horizon == int((START + timedelta(minutes=390)).timestamp())


def test_late_events_are_counted(workspace: Workspace) -> None:
    """Those that are older than what earlier batches have left: forgotten events may be among them."""
    land_parts(workspace.to, rows([line("1", 0)], "a"))
    land_parts(workspace.to, rows([line("2", 120)], "a", 2))  # 1 is forgotten from here on
    report = land_parts(workspace.to, rows([line("1", 0), line("1", 1), line("3", 61), line("2", 121)], "a", 3))
    check_counted(workspace, report, read=4, landing=2, repeats=2)
    assert (report.late, report.closing_line()["late"]) == (1, 1)
    assert landed(workspace) == [("a", line_, 0) for line_ in (1, 2, 3, 5)]
    status = target_status(workspace.to)
    assert (status.late, status.recent.late, status.to_dict()["late"]) == (1, 1, 1)
    assert run_statistics(workspace.to).late == 1
    assert "late event" in write_report(workspace.to).read_text()
    assert land_parts(workspace.to, rows([line("4", 0)], "b"), window=None).late == 0


def test_file_of_keys_that_is_lost_or_cut_is_named(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("1", 0)], "a"))
    (file,) = (workspace.to / "_wirebook" / "events").iterdir()
    for damage in (lambda: file.write_bytes(file.read_bytes()[:9]), file.unlink):
        damage()
        with pytest.raises(WirebookError, match=rf"broken-target: cannot read the events that have landed in '{file}'"):
            land_parts(workspace.to, rows([line("1", 1)], "b"))
    assert land_parts(workspace.to, rows([line("1", 1)], "b"), window=None).landed == 1


def test_partition_that_is_behind_is_remembered(workspace: Workspace) -> None:
    land_parts(workspace.to, rows([line("new", 10_000)], "p0"), rows([line("old", 0)], "p1"))
    report = land_parts(workspace.to, rows([line("new", 10_001)], "p0", 2), rows([line("old", 1)], "p1", 2))
    assert (report.landed, report.repeated) == (0, 2)


KEYS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 50)), max_size=30)


def keys_of(values: Sequence[tuple[int, int, int]]) -> EventKeys:
    high, low, seconds = np.array(values, np.uint64).reshape(-1, 3).T
    return EventKeys(high, low << np.uint64(32) | seconds)


@given(st.lists(KEYS, max_size=5), KEYS, st.integers(0, 20))
def test_keys_are_found_as_in_a_list(parts: Any, needles: Any, window: int) -> None:
    index = EventIndex()
    for part in parts:
        index.add(keys_of(part))
    known = [key for part in parts for key in part]
    expected = [any(a[:2] == b[:2] and abs(a[2] - b[2]) <= window for b in known) for a in needles]
    assert index.find(keys_of(needles), window).tolist() == expected


@given(KEYS, st.integers(0, 20))
def test_first_of_each_event_is_that_of_a_loop(values: Any, window: int) -> None:
    kept: list[tuple[int, int, int]] = []
    expected = []
    for value in values:
        expected.append(not any(value[:2] == other[:2] and abs(value[2] - other[2]) <= window for other in kept))
        kept += [value] if expected[-1] else []
    assert first_of_each(keys_of(values), window).tolist() == expected


def test_keys_are_the_same_in_every_version(tmp_path: Path) -> None:
    """Targets keep them."""
    keys = EventKeys.of(pa.array(["/s", "/s"]), pa.array(["1", "ü"]), np.array([5, -1]))
    path = tmp_path / "keys"
    path.write_bytes(keys.merged().to_bytes())
    assert path.read_bytes().hex() == "3b094fd6c14c4082595dda552a9ddf9f0500000007fd094b00000000a666e736"
    stored = read_keys(path)
    assert (stored.seconds.tolist(), len(stored)) == ([5, 0], 2)
