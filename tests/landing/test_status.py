"""The status of a target, and the figures of batches: compared with what landed, beside a run, of older targets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.landing.test_table_formats import forbid, lines
from tests.landing.test_table_settings import Shop, event, registry
from wirebook.cli.app import run
from wirebook.cli.run_output import print_report
from wirebook.landing.report.html import write_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.runs.settings import CommittedBatch
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.records import ObjectRecords
from wirebook.landing.watch.figures import RecentBatches, figures_of, percentile
from wirebook.landing.watch.status import target_status
from wirebook.problems import WirebookError


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


# -- figures -----------------------------------------------------------------------------------------------------------


def test_figures_of_batches_add_up_to_the_run(workspace: Any) -> None:
    batches: list[CommittedBatch] = []
    workspace.write_two_files()
    report = workspace.land(batch_bytes=1, on_batch=batches.append)
    recent = RecentBatches()
    figures = [recent.add(figures_of(batch)).to_dict() for batch in batches]
    assert [one["batch"] for one in figures] == [1, 2]
    for name in ("read", "landed", "dead_lettered", "bytes_read", "bytes_written"):
        assert sum(one[name] for one in figures) == getattr(report, name) > 0
    assert report.bytes_written == sum(file.stat().st_size for file in workspace.to.glob("*/*.parquet"))
    text = b"".join(file.read_bytes() for file in workspace.source.iterdir())
    assert report.bytes_read == len(text.replace(b"\n", b""))
    assert [(one["unread_files"], one["unread_bytes"] > 0) for one in figures] == [(1, True), (0, False)]
    assert figures[0]["outcomes"] == {"malformed": 1, "matched": 20}
    assert sum(figures[0]["definitions"].values()) == figures[0]["landed"] == 20
    assert all(one["p50_seconds"] <= one["p95_seconds"] for one in figures)
    assert figures[1]["p95_seconds"] == max(one["seconds"] for one in figures)


def test_dry_run_reports_no_batch(workspace: Any) -> None:
    batches: list[CommittedBatch] = []
    workspace.write_two_files()
    assert workspace.land(dry_run=True, on_batch=batches.append).read == 42
    assert batches == []


def test_percentiles() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (0, 1, 50, 95, 100)] == [1, 1, 50, 95, 100]
    assert (percentile([3.0], 95), percentile([], 50)) == (3, None)


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_equals_what_landed(workspace: Any) -> None:
    workspace.write_two_files()
    report = workspace.land(batch_bytes=1)
    workspace.write("c", lines(10))
    workspace.land(name="c2")
    before = snapshot(workspace.to)
    status = target_status(workspace.to)
    assert snapshot(workspace.to) == before
    assert (status.batches, status.read, status.landed, status.dead_lettered) == (3, 52, 50, 2)
    assert status.last is not None
    assert (status.last.batch, status.last.read, status.last.catalogue) == (3, 10, "c2")
    assert (status.recent.batches, status.recent.read) == (3, 52)
    assert status.recent.bytes_read > report.bytes_read
    assert status.recent.outcomes == {"matched": 50, "malformed": 2}
    assert status.recent.rate is not None
    last = target_status(workspace.to, recent=1)
    assert (last.recent.batches, last.recent.read, last.read) == (1, 10, 52)
    assert last.recent.p50_seconds == last.recent.p95_seconds == status.last.run.seconds  # type: ignore[union-attr]


def test_status_of_a_target_of_an_earlier_version(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.land(batch_bytes=1)
    for path in (workspace.to / "_wirebook" / "batches").iterdir():
        manifest = json.loads(path.read_bytes())
        del manifest["run"], manifest["outcomes"]
        for file in manifest["files"]:
            del file["size"]
        path.write_bytes(msgspec.json.encode(manifest))
    status = target_status(workspace.to)
    assert (status.batches, status.read, status.landed, status.dead_lettered) == (2, 42, 40, 2)
    assert (status.committed, status.recent.p50_seconds, status.recent.rate) == (None, None, None)
    assert status.to_dict()["last_batch"]["started"] is None
    workspace.write("c", lines(10))
    assert workspace.land().read == 10
    assert target_status(workspace.to).committed is not None


def test_status_names_the_run_that_holds_the_target(workspace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workspace.write_two_files()
    seen: dict[str, Any] = {}

    def at(point: str) -> None:
        before = snapshot(workspace.to)
        status = target_status(workspace.to)
        seen[point] = (status.holder, status.pending, status.batches)
        if point != "moved":  # then files of other tables enter theirs at the same time
            assert snapshot(workspace.to) == before

    workspace.land(at=at)
    holder, pending, batches = seen["begun"]
    assert (holder.owner, holder.is_running) == (f"process {os.getpid()} on {os.uname().nodename}", True)
    assert (pending, batches) == (1, 0)
    assert seen["committed"][1:] == (1, 1)
    status = target_status(workspace.to)
    assert status.holder is not None
    assert (status.holder.is_running, status.pending) == (False, None)
    assert run(["status", str(workspace.to)]) == 0
    assert "run: none" in capsys.readouterr().out


def test_killed_run_leaves_a_batch_that_is_not_finished(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.die("begun")
    status = target_status(workspace.to)
    assert (status.pending, status.holder.is_running, status.last) == (1, False, None)  # type: ignore[union-attr]
    assert status.to_dict()["last_batch"] is None


def test_batch_that_ends_while_it_is_looked_up_is_not_pending(workspace: Any) -> None:
    workspace.write("1", lines(20))
    workspace.land()

    class Beside(Target):
        """The target of a process that lists the records just before a run deletes one of them."""

        listed: tuple[set[int], ...] = ({7}, set())

        def _begun(self) -> set[int]:
            first, *rest = self.listed
            self.listed = (*rest, first)
            return first

    assert Beside(workspace.to).pending() is None
    assert Beside(workspace.to).format() == "parquet"


def test_set_aside_tables_are_named_with_their_reason(workspace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(20))
    workspace.land()
    commit = forbid(workspace.to / "a")
    workspace.write("2", lines(20, pad="2"))
    workspace.land()
    assert run(["status", "--json", str(workspace.to)]) == 0
    aside = json.loads(capsys.readouterr().out)["set_aside"]
    assert aside["a"]["batches"] == [2]
    assert "Unsupported table features required" in aside["a"]["reason"]
    assert run(["status", str(workspace.to)]) == 0
    assert "[table-set-aside]; recreate the table without the features clustering" in capsys.readouterr().err
    record = workspace.to / "_wirebook" / "batches" / "2.aside.json"
    record.write_text('["a"]')  # as an earlier version wrote it
    assert list(target_status(workspace.to).aside) == ["a"]
    commit.unlink()
    report = workspace.land()
    assert report.recovered == {"a": 10}
    assert target_status(workspace.to).aside == {}
    print_report(report, workspace.to)
    assert "recovered: 10 rows of earlier batches were written to 1 table\n" in capsys.readouterr().out


def test_sum_of_runs_has_the_problems_of_the_last(workspace: Any) -> None:
    """A stream whose table is corrected meanwhile ends without an error."""
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(20))
    total = workspace.land()
    commit = forbid(workspace.to / "a")
    workspace.write("2", lines(20, pad="2"))
    total.include(workspace.land())
    assert total.has_errors
    commit.unlink()
    total.include(workspace.land())
    assert (total.problems, total.recovered, total.read) == ([], {"a": 10}, 40)


def test_copies_of_files_are_a_batch_without_a_catalogue(workspace: Any) -> None:
    workspace.write("a", lines(10))
    workspace.land()
    workspace.write("b", lines(10))
    workspace.land(name="never pinned")
    status = target_status(workspace.to)
    assert (status.batches, status.read, status.name) == (2, 10, None)


def test_replays_count_no_message_twice(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.land(engine={"unknown": ["b"]})
    fixed = workspace.replay()
    status = target_status(workspace.to)
    assert (status.read, status.landed, status.dead_lettered, status.resolved) == (42, 40, 2, 20)
    assert (fixed.landed, status.recent.read, status.recent.outcomes.total()) == (20, 42, 42)


def test_folder_without_a_target_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WirebookError, match="not a target folder"):
        target_status(tmp_path / "missing")
    assert run(["status", str(tmp_path)]) == 2
    assert "[no-target]" in capsys.readouterr().err
    assert not (tmp_path / "_wirebook").exists()


def test_figures_of_streams_are_recorded(workspace: Any) -> None:
    workspace.write("a", lines(10))
    workspace.land()
    target = Target(workspace.to)
    for lag in (7, 3):
        target.record_stream("orders", {"batch": lag, "query": "orders", "lag": lag})
    assert target_status(workspace.to).streams == [{"batch": 3, "query": "orders", "lag": 3}]


def test_land_prints_a_json_line_per_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path), "--yes"]) == 0
    message = (tmp_path / "orders.jsonl").read_text()
    (tmp_path / "orders.jsonl").write_text(message * 3 + '{"protocol": "KAFKA", "topic": "other"}\n{"protocol"')
    capsys.readouterr()
    arguments = [str(tmp_path / "orders.jsonl"), "--catalog", str(tmp_path / "orders.xreg.json")]
    arguments += ["--to", str(tmp_path / "t"), "--local", "--no-report"]
    assert run(["land", *arguments, "--progress", "json"]) == 0
    out, err = capsys.readouterr()
    batch, unfinished = map(json.loads, err.splitlines())
    assert (batch["batch"], batch["read"], batch["landed"], batch["dead_lettered"]) == (1, 4, 3, 1)
    assert (batch["outcomes"], batch["catalogue_name"]) == ({"matched": 3, "unexpected": 1}, "shop")
    assert "[unfinished-line]" in unfinished["message"]
    assert "read 4 = landed 3 + dead-lettered 1" in out
    assert run(["land", *arguments, "--progress", "none", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["skipped"] == 4


# -- object stores -----------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("servers")
def test_status_of_a_target_in_an_object_store(tmp_path: Path, bucket: str) -> None:
    from tests.landing.workspace import Workspace

    remote = Workspace(tmp_path, f"{bucket}/lake/tables")
    remote.write_two_files()
    seen: dict[str, Any] = {}

    def names() -> set[tuple[str, str]]:
        return {(str(path), status.version) for path, status in remote.to.below()}

    def at(point: str) -> None:
        before = names()
        seen[point] = target_status(str(remote.to))
        if point != "moved":  # then, other tables may be committed at the same time
            assert names() == before

    remote.land(at=at)
    assert seen["begun"].holder.is_running
    assert (seen["begun"].pending, seen["begun"].batches) == (1, 0)
    status = target_status(str(remote.to))
    assert (status.read, status.landed, status.dead_lettered, status.format) == (42, 40, 2, "delta")
    assert (status.holder.is_running, status.pending) == (False, None)  # type: ignore[union-attr]
    assert isinstance(Target(remote.to).records, ObjectRecords)


def test_landed_messages_are_counted_by_endpoint(tmp_path: Path) -> None:
    """Of definitions that one endpoint has; `both` is of two, `free` of none."""
    xids = {name: f"/messagegroups/{name}/messages/seen" for name in ("own", "both", "free")}
    catalogue = registry(*xids.values())
    inner = catalogue["messagegroups"]["own"]["messages"]["seen"] | {"messageid": "in"}
    inner["envelopemetadata"] = {"type": {"value": "in"}}
    catalogue["endpoints"] = {
        "a": {"usage": ["consumer"], "messagegroups": ["/messagegroups/own", "/messagegroups/both"]},
        "b": {"usage": ["consumer"], "messagegroups": ["/messagegroups/both"], "messages": {"in": inner}},
    }
    shop = Shop(tmp_path)
    events = [event(xids[name], number) for number, name in enumerate(["own", "own", "both", "free"])]
    report = shop.land(catalogue, *events, event("/x/g/messages/in", 9) | {"type": "in"}, {"bad": 1})
    expected = {"/endpoints/a": 2, "/endpoints/b": 1}
    assert (report.landed, report.endpoints, report.closing_line()["endpoints"]) == (5, expected, expected)
    shop.land(catalogue, event(xids["both"], 7), endpoint="/endpoints/b")
    shop.land(catalogue, event(xids["own"], 8))
    total = {"/endpoints/a": 3, "/endpoints/b": 2}
    assert target_status(shop.to).to_dict()["recent"]["endpoints"] == total
    assert run_statistics(shop.to).by_endpoint == total
    section = write_report(shop.to).read_text().partition("<h2>Endpoints</h2>")[2].partition("<h2>")[0]
    assert section.index("/endpoints/a") < section.index("/endpoints/b")
    assert shop.land(catalogue, event(xids["free"], 10)).closing_line().get("endpoints") is None
