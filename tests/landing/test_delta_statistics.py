"""The statistics of files in Delta's log: readers skip files by them, and miss no row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wirebook.landing.stores.locations import Location
from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.delta_statistics import file_statistics
from wirebook.landing.tables.formats import FileLayout, StagedFile, TableTraits
from wirebook.landing.tables.names import TablePlace

MOMENT = datetime(2026, 5, 1, 12, 0, 0, 123456, UTC)


def statistics_of(tmp_path: Path, rows: list[dict[str, Any]], schema: pa.Schema, **options: Any) -> dict[str, Any]:
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet", **options)
    return file_statistics(pq.read_metadata(tmp_path / "a.parquet"))


def written(path: Path, rows: pa.Table, row_group_rows: int | None = None) -> tuple[int, str]:
    """The size and the statistics of a file that a task writes."""
    writer = DeltaFormat().open(path, rows.schema, FileLayout(row_group_rows=row_group_rows))
    writer.write(rows)
    writer.close()
    return writer.size, writer.statistics


def test_bounds_of_each_type(tmp_path: Path) -> None:
    columns: dict[str, tuple[Any, ...]] = {
        "n": (pa.int64(), [3, None, -5], -5, 3),
        "t": (pa.string(), ["b", "a" * 40, "c" * 40], "a" * 32, "c" * 32 + "\U0010ffff"),
        "d": (pa.date32(), [date(2026, 1, 2), date(2025, 1, 2), None], "2025-01-02", "2026-01-02"),
        "at": (pa.timestamp("us", "UTC"), [MOMENT] * 3, "2026-05-01T12:00:00.123Z", "2026-05-01T12:00:00.124Z"),
        "local": (
            pa.timestamp("us"),
            [MOMENT.replace(tzinfo=None)] * 3,
            "2026-05-01T12:00:00.123",
            "2026-05-01T12:00:00.124",
        ),
        "float": (pa.float64(), [1.0, float("nan"), 2.0], None, None),
        "decimal": (pa.decimal128(9, 2), [Decimal("1.50")] * 3, Decimal("1.50"), Decimal("1.50")),
        "flag": (pa.bool_(), [True, False, None], False, True),
        "bytes": (pa.binary(), [b"a", b"b", None], None, None),
        "none": (pa.string(), [None] * 3, None, None),
        "list": (pa.list_(pa.int32()), [[1], [2], None], None, None),
        "infinite": (pa.float64(), [1.0, None, float("inf")], None, None),
        "inner": (
            pa.struct(
                {"a": pa.int32(), "b": pa.struct({"t": pa.string()}), "l": pa.list_(pa.int32()), "x.y": pa.int32()}
            ),
            [{"a": 1, "b": {"t": "x"}, "l": [1], "x.y": 1}, {"a": 4, "b": None}, None],
            {"a": 1, "b": {"t": "x"}},
            {"a": 4, "b": {"t": "x"}},
        ),
        "a.b": (pa.int32(), [1] * 3, None, None),
    }
    schema = pa.schema([(name, column[0]) for name, column in columns.items()])
    rows = [{name: column[1][i] for name, column in columns.items()} for i in range(3)]
    found = statistics_of(tmp_path, rows, schema, row_group_size=2)
    assert found["numRecords"] == 3
    assert found["minValues"] == {name: low for name, (*_, low, _) in columns.items() if low is not None}
    assert found["maxValues"] == {name: high for name, (*_, high) in columns.items() if high is not None}
    nulls = {name: column[1].count(None) for name, column in columns.items() if name not in ("list", "a.b")}
    assert found["nullCount"] == nulls | {"inner": {"a": 1, "b": {"t": 2}}}
    size, statistics = written(tmp_path / "b.parquet", pa.Table.from_pylist(rows, schema), 2)
    bounds = {"decimal": 1.5}
    found = {**found, "minValues": found["minValues"] | bounds, "maxValues": found["maxValues"] | bounds}
    assert (size, orjson.loads(statistics)) == ((tmp_path / "b.parquet").stat().st_size, found)
    assert statistics.count('"decimal":1.50') == 2


@pytest.mark.parametrize("instant", [2**62, -(2**62), 253_402_300_799_999_999])
def test_times_beyond_the_calendar_have_no_bounds(tmp_path: Path, instant: int) -> None:
    table = pa.table({"at": pa.array([instant], pa.timestamp("us", "UTC")), "n": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = file_statistics(pq.read_metadata(tmp_path / "a.parquet"))
    assert found["minValues"] == found["maxValues"] == {"n": 1}
    assert found["nullCount"] == {"at": 0, "n": 0}


def test_floats_have_bounds_where_the_writer_saw_no_nan(tmp_path: Path) -> None:
    pieces = [
        {"a": [1.5, None], "b": [1.0, 2.0], "s": [{"x": 0.5, "y": 1.0}, None]},
        {"a": [-2.0, 3.0], "b": [float("nan"), None], "s": [{"x": 4.0, "y": float("nan")}, {"x": None, "y": None}]},
    ]
    schema = pa.schema(
        {"a": pa.float32(), "b": pa.float64(), "s": pa.struct({"x": pa.float64(), "y": pa.float64()}), "n": pa.int32()}
    )
    writer = DeltaFormat().open(tmp_path / "a.parquet", schema)
    for piece in pieces:
        writer.write(pa.table(piece | {"n": [1, 2]}, schema))
    writer.close()
    found = orjson.loads(writer.statistics)
    assert found["minValues"] == {"a": -2.0, "s": {"x": 0.5}, "n": 1}
    assert found["maxValues"] == {"a": 3.0, "s": {"x": 4.0}, "n": 2}
    of_footer = file_statistics(pq.read_metadata(tmp_path / "a.parquet"))
    assert of_footer["minValues"] == {"n": 1}
    assert of_footer["nullCount"] == found["nullCount"] == {"a": 1, "b": 1, "s": {"x": 2, "y": 2}, "n": 0}


def test_only_the_first_columns_have_statistics(tmp_path: Path) -> None:
    schema = pa.schema([(f"c{i}", pa.int32()) for i in range(40)])
    assert len(statistics_of(tmp_path, [dict.fromkeys(schema.names, 1)], schema)["nullCount"]) == 32


def test_column_without_statistics_is_left_out(tmp_path: Path) -> None:
    found = statistics_of(tmp_path, [{"a": 1}], pa.schema([("a", pa.int32())]), write_statistics=False)
    assert found == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}


KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0]),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    pa.bool_(): st.booleans(),
    pa.decimal128(38, 9): st.decimals(-(10**29) + 1, 10**29 - 1, places=9),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.timestamp("us"): st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    pa.timestamp("us", "UTC"): st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
        lambda moment: moment.replace(tzinfo=UTC)
    ),
}


@pytest.mark.parametrize("type_", KINDS, ids=str)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_comparison_finds_every_row(tmp_path: Path, type_: pa.DataType, data: st.DataObject) -> None:
    """In files of their own, so that a reader can skip each."""
    values = KINDS[type_] | st.none()
    folder, schema = Path(mkdtemp(dir=tmp_path)), pa.schema({"x": type_, "s": pa.struct({"x": type_})})
    every = []
    for batch, part in enumerate(data.draw(st.lists(st.lists(values, min_size=1), min_size=1, max_size=3)), 1):
        path = folder.parent / f"{folder.name}-{batch}.parquet"
        every.append(pa.table({"x": part, "s": [{"x": value} for value in part]}, schema))
        size, statistics = written(path, every[-1])
        files: dict[Location, StagedFile] = {path: StagedFile("t", path.name, len(part), size, statistics)}
        DeltaFormat().commit(TablePlace(folder.parent, folder.name), batch, files, schema)
    dataset, whole = DeltaTable(str(folder)).to_pyarrow_dataset(), pa.concat_tables(every)
    for value in {value for value in whole["x"].to_pylist() if value is not None}:
        bound = pa.scalar(value, type_)
        for compared in (ds.field("x") >= bound, ds.field("x") == bound, ds.field("x") <= bound):
            assert dataset.to_table(filter=compared).num_rows == whole.filter(compared).num_rows


@given(
    texts=st.lists(st.lists(st.text("a\x00\U0010ffffz", max_size=40) | st.none(), min_size=1), min_size=1, max_size=4)
)
def test_filter_finds_every_row(tmp_path_factory: pytest.TempPathFactory, texts: list[list[str | None]]) -> None:
    folder = tmp_path_factory.mktemp("table")
    schema = pa.schema([("t", pa.string())])
    for batch, part in enumerate(texts, 1):
        path = folder.parent / f"{folder.name}-{batch}.parquet"
        rows = pa.table({"t": pa.array(part, pa.string())})
        size, statistics = written(path, rows)
        files: dict[Location, StagedFile] = {path: StagedFile("t", path.name, len(part), size, statistics)}
        DeltaFormat().commit(TablePlace(folder.parent, folder.name), batch, files, schema)
    dataset = DeltaTable(str(folder)).to_pyarrow_dataset()
    for text in {text for part in texts for text in part if text is not None}:
        expected = sum(part.count(text) for part in texts)
        assert dataset.to_table(filter=ds.field("t") == text).num_rows == expected


MIXED = pa.schema({
    "a": pa.int32(),
    "l": pa.list_(pa.struct({"i": pa.int32(), "j": pa.int32()})),
    "s": pa.struct({"x": pa.int32(), "y": pa.string(), "z": pa.struct({"q": pa.int32()})}),
    "m": pa.map_(pa.string(), pa.int32()),
    "c": pa.float64(),
    "d": pa.int32(),
})  # fmt: skip
MIXED_ROW = {"a": 1, "l": [{"i": 1, "j": 2}], "s": {"x": 2, "y": "t", "z": {"q": 3}}, "m": [("k", 1)], "c": 4.0, "d": 5}
NUMBER, NAMES = "delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"


@pytest.mark.parametrize(
    ("properties", "lowest"),
    [
        ({NUMBER: "0"}, {}),
        ({NUMBER: "2"}, {"a": 1}),
        ({NUMBER: "4"}, {"a": 1, "s": {"x": 2, "y": "t"}}),
        ({NUMBER: "6"}, {"a": 1, "s": {"x": 2, "y": "t", "z": {"q": 3}}}),
        ({NUMBER: "7"}, {"a": 1, "s": {"x": 2, "y": "t", "z": {"q": 3}}, "c": 4.0}),
        ({NUMBER: "-1"}, {"a": 1, "s": {"x": 2, "y": "t", "z": {"q": 3}}, "c": 4.0, "d": 5}),
        ({NUMBER: "x"}, {"a": 1, "s": {"x": 2, "y": "t", "z": {"q": 3}}, "c": 4.0, "d": 5}),
        ({NAMES: "s.y, `d`", NUMBER: "1"}, {"s": {"y": "t"}, "d": 5}),
        ({NAMES: "S,A"}, {"a": 1, "s": {"x": 2, "y": "t", "z": {"q": 3}}}),
        ({NAMES: "`s`.`z`"}, {"s": {"z": {"q": 3}}}),
        ({NAMES: "`s.z`"}, {}),
    ],
)
def test_properties_choose_the_columns_with_statistics(
    tmp_path: Path, properties: dict[str, str], lowest: dict[str, Any]
) -> None:
    writer = DeltaFormat().open(tmp_path / "a.parquet", MIXED, FileLayout(properties=properties))
    writer.write(pa.Table.from_pylist([MIXED_ROW], MIXED))
    writer.close()
    assert orjson.loads(writer.statistics)["minValues"] == lowest


WIDE = pa.schema({f"c{i}": pa.int32() for i in range(40)} | {"f": pa.float64()})


def indexed_columns(folder: Path) -> list[int]:
    """How many columns of each file have bounds, by batch."""
    logs = sorted((folder / "_delta_log").glob("*.json"))
    entries = [orjson.loads(line) for log in logs for line in log.read_bytes().splitlines()]
    return [len(orjson.loads(entry["add"]["stats"])["minValues"]) for entry in entries if "add" in entry]


@pytest.mark.parametrize("is_same_run", [True, False])
def test_tables_of_both_ways_obey_their_properties(tmp_path: Path, is_same_run: bool) -> None:
    place, table_format = TablePlace(tmp_path / "to", "t"), DeltaFormat()

    def land(batch: int, has_statistics: bool = True, **properties: str) -> None:
        path = tmp_path / f"{batch}.parquet"
        writer = table_format.open(path, WIDE, FileLayout(properties=properties))
        writer.write(pa.Table.from_pylist([dict.fromkeys(WIDE.names, 1)], WIDE))
        writer.close()
        staged = StagedFile("t", path.name, 1, writer.size, writer.statistics if has_statistics else "")
        used = table_format if is_same_run else DeltaFormat()
        used.commit(place, batch, {path: staged}, WIDE, TableTraits(properties=properties))

    land(1)
    land(2)
    land(3)
    DeltaTable(str(place.folder)).alter.set_table_properties({NUMBER: "3"})
    for batch in (4, 5, 6):
        land(batch)
    land(7, has_statistics=False)
    DeltaTable(str(place.folder)).alter.set_table_properties({NUMBER: "-1"})
    for batch in (8, 9, 10):
        land(batch)
    settings = {NUMBER: "41"}
    for batch in (11, 12, 13):
        land(batch, **settings)
    # The task writes the bounds of floats that it knows to be no NaN.
    assert indexed_columns(place.folder) == [32] * 3 + [3] * 4 + [40] * 3 + [41] * 3
