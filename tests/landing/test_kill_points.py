"""A run that is killed at each point of a commit and run again lands every message once, with the batch's own
catalogue.

The process ends by `os._exit` without handlers. scripts/kill_test.py kills real Spark runs at random moments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from wirebook.landing.runs.manifests import Manifest
from wirebook.landing.runs.target import Target
from wirebook.problems import WirebookError

POINTS = ["locked", "pinned", "begun", "staged", "committed", "moved", "tabled", "finished"]


def manifests(workspace: Any) -> list[Manifest]:
    return sorted(Target(workspace.to).manifests(), key=lambda manifest: manifest.batch)


@pytest.mark.parametrize(
    ("point", "times"), [*((point, 0) for point in POINTS), *((point, 1) for point in ("begun", "staged", "moved"))]
)
def test_kill_at_each_point_loses_and_duplicates_nothing(workspace: Any, point: str, times: int) -> None:
    expected = workspace.write_two_files()
    workspace.die(point, times)
    seen = len(workspace.rows())
    report = workspace.land(name="new", batch_bytes=1)
    assert report.recovered.total() == (21 if point in ("committed", "moved", "tabled") else 0)
    workspace.check_conserved(expected)
    assert report.read == report.landed + report.dead_lettered
    assert report.read + report.skipped == expected
    assert seen <= report.skipped or point in ("moved",)
    for manifest in manifests(workspace):
        pinned = begun_before(point, times) >= manifest.batch
        assert manifest.catalogue == ("old" if pinned else "new")
    assert (workspace.land().read, workspace.land().skipped) == (0, expected)
    assert sorted(path.name for path in (workspace.to / "_wirebook").iterdir()) == [
        "batches",
        "catalogues",
        "lock",
        "tables.json",
    ]


def begun_before(point: str, times: int) -> int:
    """How many batches had been begun when a run died at a point for the (times + 1)-th time."""
    if point in ("locked", "pinned"):
        return times
    if point == "moved":  # comes once for each of three tables
        return 1
    return times + 1


def test_kill_in_task_and_in_its_retry_loses_nothing(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.write("b", workspace.source.joinpath("b").read_bytes() + b'{"protocol":"X","t":"a","n":999}\n')
    for _ in range(2):
        workspace.die("task", record="999")
        assert len(workspace.rows()) == 21
    assert list((workspace.to / "_wirebook" / "staging").glob("*"))
    report = workspace.land(name="new")
    assert (report.read, report.skipped) == (22, 21)
    workspace.check_conserved(43)


def test_worker_that_outlives_its_run_does_not_affect_the_next(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may make its folder below staging again when the next run has just cleared that."""
    clear_staging = Target.clear_staging

    def clear_and_write(target: Target, batch: int | None = None) -> None:
        clear_staging(target, batch)
        stray = target.staging(batch or 1) / "stray"
        stray.mkdir(parents=True, exist_ok=True)
        (stray / "a.parquet").write_bytes(b"PAR1")

    monkeypatch.setattr(Target, "clear_staging", clear_and_write)
    expected = workspace.write_two_files()
    assert workspace.land(batch_bytes=1).read == expected
    workspace.check_conserved(expected)


def test_missing_pinned_catalogue_is_reported(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.die("staged")
    (workspace.to / "_wirebook" / "catalogues" / "old.json").unlink()
    with pytest.raises(WirebookError, match=r"old\.json") as caught:
        workspace.land(name="new")
    assert [problem.code for problem in caught.value.problems] == ["broken-target"]


def test_file_changed_after_kill_lands_as_it_is_now(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.die("staged")
    workspace.write("a", b'{"protocol":"X","t":"a"}\n')
    report = workspace.land(name="new")
    assert (report.problems, report.read) == ([], 22)
    assert {row["_file"] for row in workspace.rows()} == {"a", "b"}
    assert [manifest.catalogue for manifest in manifests(workspace)] == ["new"]


def test_partly_landed_file_changed_after_kill_is_reported(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.land()
    path = workspace.source / "a"
    path.write_bytes(path.read_bytes() + b'{"protocol":"X","t":"a"}\n')
    workspace.die("staged")
    path.write_bytes(b'{"protocol":"X","t":"a"}\n')
    report = workspace.land()
    assert ([problem.code for problem in report.problems], report.read) == (["source-changed"], 0)
    workspace.check_conserved(42)


def test_pinned_batch_skips_deleted_file(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.die("staged")
    (workspace.source / "a").unlink()
    report = workspace.land()
    assert (report.problems, report.read) == ([], 21)


def test_pinned_batch_finishes_the_source_it_began_with(workspace: Any, tmp_path: Path) -> None:
    workspace.write_two_files()
    workspace.die("begun")
    other = tmp_path / "other"
    other.mkdir()
    (other / "c").write_bytes(b'{"protocol":"X","t":"a"}\n')
    report = workspace.land(other)
    assert report.read == 22
    assert {row["_file"] for row in workspace.rows()} == {"a", "c"}


def test_invalid_manifest_is_reported(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.land()
    (workspace.to / "_wirebook" / "batches" / "1.json").write_bytes(b"{")
    with pytest.raises(Exception, match="broken-target"):
        workspace.land()


def test_missing_staged_file_is_reported(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.die("committed")
    for path in (workspace.to / "_wirebook" / "staging").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="broken-target"):
        workspace.land()


def test_batch_records_are_json(workspace: Any) -> None:
    workspace.write_two_files()
    workspace.land()
    manifest = msgspec.json.decode((workspace.to / "_wirebook" / "batches" / "1.json").read_bytes())
    assert (manifest["read"], len(manifest["entries"])) == (42, 2)
    assert manifest["entries"][0]["lines"] == 21
