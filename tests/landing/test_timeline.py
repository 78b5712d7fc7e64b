"""The chart over time: counted by intervals from footers and columns, compared with the rows themselves."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.landing.test_html_report import Page, land, message
from wirebook.landing.report import timeline as module
from wirebook.landing.report.html import _duration, _moment, _round_up, html_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.report.timeline import GroupTimes, Timeline, group_times, timeline

START = datetime(2026, 1, 5, 6, 7, 8, 901234, tzinfo=UTC)


def groups(path: Path, times: list[datetime | None], size: int = 50) -> list[GroupTimes]:
    table = pa.table({"received": pa.array(times, pa.timestamp("us", "UTC"))})
    pq.write_table(table, path, row_group_size=size)
    return list(group_times(pq.read_metadata(path), path, "received"))


@pytest.mark.parametrize("seconds", [0.00001, 0.05, 1, 59, 3600, 86_400, 40 * 86_400, 3000 * 86_400])
def test_intervals_equal_those_of_the_rows(tmp_path: Path, seconds: float) -> None:
    dice = random.Random(seconds)
    times = sorted(START + timedelta(seconds=dice.random() * seconds) for _ in range(500))
    dead = [times[0], None, *dice.sample(times, 20), times[-1]]
    chart = timeline(groups(tmp_path / "a", [*times, None]), groups(tmp_path / "b", dead), 600)
    assert chart is not None
    assert len(chart) <= 60
    assert chart.missing == 600 - 500 - 22
    for number, (start, landed, died) in enumerate(chart.intervals()):
        end = chart.start + (number + 1) * chart.step
        assert landed == sum(start <= time < end for time in times)
        assert died == sum(time is not None and start <= time < end for time in dead)
    assert (chart.landed[0], chart.landed[-1]) > (0, 0)


def test_groups_within_an_interval_are_counted_by_footers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[datetime | None] = [START + timedelta(days=number // 50) for number in range(500)]
    found = groups(tmp_path / "a", times)
    monkeypatch.setattr(module, "_read", lambda _: pytest.fail("a column was read"))
    chart = timeline(found, [], 500)
    assert chart is not None
    assert (sum(chart.landed), max(chart.landed), chart.missing) == (500, 50, 0)


def test_missing_and_unreadable_times_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert timeline([], [], 3) is None
    assert groups(tmp_path / "n", [None] * 3) == []
    times: list[datetime | None] = [START, START + timedelta(hours=1)]
    found = groups(tmp_path / "a", times)
    (tmp_path / "a").unlink()
    assert timeline(found, groups(tmp_path / "b", [START]), 3) == Timeline(
        datetime(2026, 1, 5, 6, 6, tzinfo=UTC), timedelta(minutes=2), (0,) * 31, (1,) + (0,) * 30, 2
    )
    monkeypatch.setattr(module, "MAX_ROWS", 1)
    chart = timeline(groups(tmp_path / "a", times), [], 2)
    assert chart is not None
    assert chart.missing == 2


def test_same_moment_is_one_interval(tmp_path: Path) -> None:
    assert timeline(groups(tmp_path / "a", [START] * 4), [], 4) == Timeline(
        START.replace(microsecond=0), timedelta(seconds=1), (4,), (0,), 0
    )


@pytest.mark.parametrize("stage_below", [0, 1000])
def test_report_has_a_chart_for_eyes_and_readers(workspace: Any, stage_below: int) -> None:
    def at(minute: int, value: Any) -> bytes:
        return message("plants/p/l", {"celsius": value}).replace(b"08:00", b"08:%02d" % minute)

    lines = [at(minute, minute) for minute in range(40) for _ in range(minute % 3)]
    land(workspace, *lines, *[at(20, "hot")] * 4, stage_below=stage_below)
    statistics = run_statistics(workspace.to)
    assert statistics.timeline is not None
    assert (sum(statistics.timeline.landed), sum(statistics.timeline.dead)) == (len(lines), 4)
    assert statistics.timeline.step == timedelta(minutes=1)
    assert statistics.timeline.missing == 0
    html = html_report(statistics, "x")
    page, text = Page(html), " ".join(Page(html).texts)
    assert page.tags["figure"] == page.tags["desc"] == page.tags["figcaption"] == 1
    assert ("aria-labelledby", "chart-title chart-text") in page.attributes
    assert f"{len(lines):,} landed and 4 dead letters, at most 6 messages per interval of 1 minute." in text
    assert "Messages per 1 minute, by the time at which they were received" in text
    assert re.search(r"2026-01-05 08:20 UTC</td><td class=\"n\">2</td><td class=\"n\">4</td>", html)
    assert "the batch took " in text
    assert page.tags["script"] == 0
    heights = [float(height) for height in re.findall(r'<rect class="bad"[^>]* height="([\d.]+)"', html)]
    assert heights == [pytest.approx(4 / 6 * 160, abs=0.1)]


def test_report_of_messages_without_times_has_no_chart(workspace: Any) -> None:
    land(workspace, message("plants/p/l", {"celsius": 1}).replace(b'"received": "2026-01-05T08:00:00Z", ', b""))
    assert run_statistics(workspace.to).timeline is None
    assert "<figure" not in html_report(run_statistics(workspace.to), "x")


def test_numbers_of_the_chart_are_readable() -> None:
    assert [_round_up(count) for count in (1, 2, 9, 10, 11, 16, 23, 451, 999, 1001)] == [
        1, 2, 9, 10, 15, 20, 25, 500, 1000, 1500,
    ]  # fmt: skip
    assert [_duration(seconds) for seconds in (0.0005, 0.25, 1, 59.94, 60, 5400, 86_400, 1_209_600)] == [
        "0.5 milliseconds", "250 milliseconds", "1 second", "59.9 seconds", "1 minute", "1.5 hours", "1 day", "2 weeks",
    ]  # fmt: skip
    assert _moment(datetime(2026, 1, 5, tzinfo=UTC)) == "2026-01-05 00:00 UTC"
    assert _moment(START) == "2026-01-05 06:07:08.901234 UTC"
