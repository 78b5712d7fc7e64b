"""Chunks of small files land as one, and become what they become one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.landing.workspace import Workspace, engine_calls
from wirebook.landing.runs import joined_chunks
from wirebook.landing.runs.target import Target

COLUMNS = {"columns": {"a": {"n": "int32"}, "c": {"n": "int64"}}, "unknown": ["b"]}


def write_files(workspace: Workspace) -> None:
    for number in range(12):
        records = [{"t": "abc"[row % 3], "n": row, "x": row % 4} for row in range(number)]
        text = "\n".join(json.dumps(record) for record in records)
        workspace.write(f"{number:02}.jsonl", f"\n{text}\nnot json\n".encode())
    workspace.write("05.gz", b"\x1f\x8b damaged")
    workspace.write("06.empty", b"")
    for name, rows in (("p1", [{"t": "a", "n": 1}]), ("p2", [{"t": "b", "n": 2}]), ("p3", [{"t": "a", "m": 3}])):
        pq.write_table(pa.Table.from_pylist(rows), workspace.write(f"{name}.parquet", b""))


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def workspaces(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Workspace, Workspace]:
    """Two targets of the same source; table `c` has a column that the engine changes to a type that conflicts."""
    (tmp_path / "other").mkdir()
    one, other = Workspace(tmp_path), Workspace(tmp_path / "other")
    for workspace in (one, other):
        workspace.write("0", json.dumps({"t": "c", "n": "text"}).encode() + b"\n")
        workspace.land(engine={"columns": {"c": {"n": "string"}}}, table_format=request.param)
        write_files(workspace)
    return one, other


def test_small_files_land_together_as_they_land_alone(
    workspaces: tuple[Workspace, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    together, alone = workspaces
    calls = engine_calls(monkeypatch)
    report = together.land(engine=COLUMNS)
    assert max(len(chunk) for chunk, _ in calls) > 20
    monkeypatch.setattr(joined_chunks, "MAX_RECORDS", 0)
    calls.clear()
    assert alone.land(engine=COLUMNS).closing_line() == report.closing_line()
    assert max(len(chunk) for chunk, _ in calls) < 20
    assert report.closing_line()["outcomes"] == {"matched": 43, "unexpected": 20, "malformed": 13, "unsupported": 24}
    assert together.rows() == alone.rows()
    assert Target(together.to).history().ledger == Target(alone.to).history().ledger
    assert len(together.rows()) == report.read + 1


def test_large_chunks_land_alone(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_chunks, "MAX_BYTES", 500)
    calls = engine_calls(monkeypatch)
    for number in range(4):
        workspace.write(f"{number}", b'{"t": "a", "n": %d}\n' % number * (100 if number == 2 else 2))
    assert workspace.land().landed == 106
    assert sorted(len(chunk) for chunk, _ in calls) == [2, 4, 100]
