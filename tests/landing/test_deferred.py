"""Records that match no definition land together with those of other chunks, and become what they become at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.landing.workspace import Workspace, engine_calls
from wirebook.catalog import Catalog
from wirebook.landing.job import catalogue_of
from wirebook.landing.runs import engine, joined_chunks
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import RunSettings
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.lines import Sizes

FILES, RECORDS = 5, 400
CATALOG = Catalog.load({
    "specversion": "1.0-rc4",
    "registryid": "r",
    "messagegroups": {
        "g": {
            "messages": {
                "reading": {
                    "protocol": "MQTT/5.0",
                    "protocoloptions": {
                        "topic_name": "plants/{plant}/readings",
                        "user_properties": [{"name": "plant", "value": "{plant}"}],
                    },
                },
                "order": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {"type": {"value": "order"}, "source": {"value": "/shop"}},
                    "protocol": "KAFKA",
                },
            }
        }
    },
})  # fmt: skip


def record(file: int, number: int) -> dict[str, Any]:
    """One in twenty records matches no definition; in the last file, every other one."""
    is_wrong = number % (2 if file == FILES - 1 else 20) == 1
    if number % 2:
        topic = "plants/p1/alarms" if is_wrong else "plants/p1/readings"
        properties = [["plant", "p2" if is_wrong and number % 3 else "p1"]]
        return {"protocol": "MQTT/5.0", "topic": topic, "user_properties": properties, "payload": f"{file}-{number}"}
    headers = [["ce_specversion", "1.0"], ["ce_id", f"{file}-{number}"], ["ce_type", "order"]]
    headers.append(["ce_source", f"/{'other' if is_wrong else 'shop'}"])
    return {"protocol": "KAFKA", "headers": headers, "key": str(number)}


def write_files(folder: Path, form: str) -> None:
    for file in range(FILES):
        records = [record(file, number) for number in range(RECORDS // (1 + file % 3))]
        if form == "lines":
            (folder / f"{file}.jsonl").write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in records))
            continue
        pairs = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
        columns = {
            name: pa.array([_pairs(one.get(name)) for one in records], pairs) for name in ("headers", "user_properties")
        }
        columns |= {name: pa.array([one.get(name) for one in records], pa.string()) for name in ("protocol", "topic")}
        columns["payload"] = pa.array([one.get("payload", "").encode() or None for one in records], pa.binary())
        pq.write_table(pa.table(columns), folder / f"{file}.parquet", row_group_size=50)


def _pairs(values: list[list[str]] | None) -> list[dict[str, Any]] | None:
    return values and [{"name": name, "value": value.encode()} for name, value in values]


def land(workspace: Workspace, **settings: Any) -> Report:
    own = RunSettings(workspace.runner, engine.engine_for, sizes=Sizes(chunk=1 << 12))
    return land_files(replace(own, **settings), workspace.source, catalogue_of(CATALOG), Target(workspace.to))


@pytest.mark.parametrize("form", ["lines", "parquet"])
@pytest.mark.parametrize("limit", [500, 20])
def test_deferred_records_land_as_they_land_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, limit: int
) -> None:
    (tmp_path / "other").mkdir()
    later, at_once = Workspace(tmp_path), Workspace(tmp_path / "other")
    for workspace in (later, at_once):
        write_files(workspace.source, form)
    monkeypatch.setattr(joined_chunks, "MAX_RECORDS", limit)
    calls = engine_calls(monkeypatch)
    report = land(later)
    deferred = sum(len(landed.deferred) for _, landed in calls)
    assert deferred > 20
    assert len(calls) > 2
    monkeypatch.setattr(engine, "DEFERRED_SHARE", 1 << 40)
    calls.clear()
    other = land(at_once)
    assert not any(len(landed.deferred) for _, landed in calls)
    assert report.closing_line() == other.closing_line()
    assert report.closing_line()["outcomes"]["unexpected"] > deferred  # half of the last file does not match
    assert later.rows() == at_once.rows()
    assert Target(later.to).history().ledger == Target(at_once.to).history().ledger
    assert report.read == len(later.rows())


def test_single_chunk_defers_nothing(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(workspace.source, "lines")
    for path in sorted(workspace.source.iterdir())[1:]:
        path.unlink()
    calls = engine_calls(monkeypatch)
    land(workspace, sizes=Sizes())
    [(_, landed)] = calls
    assert len(landed.dead_letters)
    assert not len(landed.deferred)
