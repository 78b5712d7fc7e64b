"""Packed manifests: what a target knows does not depend on which of its manifests have files of their own."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from tests.landing.test_land_frame import Stopped, land, rows
from tests.landing.workspace import Workspace
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.runs import target as target_module
from wirebook.landing.runs.history import History
from wirebook.landing.runs.manifests import FrameBatch
from wirebook.landing.runs.target import Target
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import CommitFailed
from wirebook.landing.watch.status import target_status
from wirebook.problems import WirebookError

PACK_SIZE = 3
BATCHES = 20


@pytest.fixture(params=[PACK_SIZE, 1000], ids=["packed", "in files"])
def filled(request: pytest.FixtureRequest, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A target with twenty batches of four rows, packed or not."""
    monkeypatch.setattr(target_module, "PACK_SIZE", request.param)
    for number in range(BATCHES):
        land_one(workspace, number)
    return workspace


@pytest.fixture
def packed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(target_module, "PACK_SIZE", PACK_SIZE)
    for number in range(BATCHES):
        land_one(workspace, number)
    return workspace


def land_one(workspace: Workspace, number: int, target: Target | None = None) -> None:
    batch = FrameBatch(query="q", batch_id=number)
    report = land(workspace, rows(range(4 * number, 4 * number + 4)), batch=batch, target=target)
    assert (report.read, report.skipped) == (4, 0)


def records(workspace: Workspace, pattern: str) -> Iterator[str]:
    return (path.name for path in (workspace.to / "_wirebook").glob(pattern))


def test_target_says_the_same(filled: Workspace) -> None:
    target = Target(filled.to)
    manifests = list(target.manifests())
    assert [manifest.batch for manifest in manifests] == target.batch_numbers() == list(range(1, BATCHES + 1))
    assert list(target.manifests(newest_first=True)) == manifests[::-1]
    total = History()
    for manifest in manifests:
        total.add(manifest)
    assert target.history() == total
    status = target_status(filled.to, recent=15)
    assert (status.batches, status.read, status.landed + status.dead_lettered) == (BATCHES, 80, 80)
    assert (status.recent.batches, status.recent.read) == (15, 60)
    assert run_statistics(filled.to, [2, 19]).read == 8
    assert target.next_batch() == BATCHES + 1
    filled.check_conserved(80)


def test_batches_that_have_landed_are_skipped(filled: Workspace) -> None:
    for number in (0, 7, BATCHES - 1):
        again = land(filled, rows(range(4)), batch=FrameBatch(query="q", batch_id=number))
        assert (again.read, again.skipped) == (0, 4)
    other = land(filled, rows(range(100)), batch=FrameBatch(query="r", batch_id=0))
    assert (other.read, other.skipped) == (20, 80)
    filled.write("file.jsonl", b'{"t": "t0"}\n')
    assert (filled.land().read, filled.land().skipped) == (1, 1)
    filled.check_conserved(101)


def test_files_that_are_packed_are_deleted(packed: Workspace) -> None:
    assert sorted(records(packed, "packs/*.gz")) == [f"{number}.jsonl.gz" for number in (12, 15, 3, 6, 9)]
    assert sorted(records(packed, "packs/*.json")) == ["12.json", "15.json"]
    files = {int(name.partition(".")[0]) for name in records(packed, "batches/*")}
    assert files == set(range(13, BATCHES + 1))


def test_kept_target_and_others_take_turns(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "PACK_SIZE", PACK_SIZE)
    kept = Target(workspace.to)
    for number in range(40):
        land_one(workspace, number, kept if number % 11 == 0 else None)
    assert kept.history() == Target(workspace.to).history()
    workspace.check_conserved(160)


@pytest.mark.parametrize("point", ["packed", "summed"])
def test_run_that_stops_while_it_packs_is_completed_by_the_next(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(target_module, "PACK_SIZE", PACK_SIZE)
    stops = 0

    def stop(name: str) -> None:
        nonlocal stops
        if name == point:
            stops += 1
            raise Stopped

    for number in range(BATCHES):
        try:
            land_one(workspace, number, Target(workspace.to, stop))
        except Stopped:  # its rows have landed
            again = land(workspace, rows(range(4)), batch=FrameBatch(query="q", batch_id=number))
            assert (again.read, again.skipped) == (0, 4)
    assert stops > 1
    target = Target(workspace.to)
    assert target.batch_numbers() == [manifest.batch for manifest in target.manifests()] == [*range(1, BATCHES + 1)]
    workspace.check_conserved(80)


def test_batch_that_was_begun_long_ago_cannot_take_a_packed_number(packed: Workspace) -> None:
    """As a run of another machine does that was suspended for an hour, after its lease had expired."""
    target = Target(packed.to)
    first = next(target.manifests())
    assert f"{first.batch}.json" not in records(packed, "batches/*")
    with pytest.raises(WirebookError, match=r"target-locked: another run has taken over .* batch 1"):
        target.commit(msgspec.structs.replace(first, read=1000))
    assert next(Target(packed.to).manifests()) == first
    assert f"{first.batch}.json" not in records(packed, "batches/*")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", gzip.compress(b"{", mtime=0), gzip.compress(b"{}" * 1000, mtime=0)[:20]],
    ids=["empty", "plain", "no JSON", "cut off"],
)
def test_damaged_pack_is_reported(packed: Workspace, content: bytes) -> None:
    (packed.to / "_wirebook" / "packs" / "9.jsonl.gz").write_bytes(content)
    with pytest.raises(WirebookError, match=r"broken-target: .*9\.jsonl\.gz"):
        list(Target(packed.to).manifests())


def test_files_that_were_set_aside_enter_from_packed_batches(packed: Workspace) -> None:
    def refuse(folder: Path, *_: object) -> None:
        if folder.name == "t0":
            raise CommitFailed("a reason")
        commit(folder, *_)

    table_format = FORMATS["parquet"]
    commit = table_format.commit
    with mock.patch.object(table_format, "commit", refuse):
        for number in range(BATCHES, BATCHES + 10):
            land_one(packed, number)
    assert Target(packed.to).set_aside()["t0"]
    assert len(packed.rows()) < 4 * (BATCHES + 10)
    land(packed, rows(range(1000, 1001)))
    assert not Target(packed.to).set_aside()
    packed.check_conserved(4 * (BATCHES + 10) + 1)
