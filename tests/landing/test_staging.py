"""The staging table: which rows are staged, that no value changes, and that reports count staged rows."""

from __future__ import annotations

import base64
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from everything import edges, tables
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.landing.report.html import html_report
from wirebook.landing.report.run_statistics import run_statistics
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.json_text import json_objects
from wirebook.landing.tables.layout import STAGED_SCHEMA
from wirebook.landing.tables.spool import TableSpool
from wirebook.landing.tables.staged import StagingPolicy, decode_rows, encode_rows, read_staged_tables

XID = "/messagegroups/g/messages/{}"


def same(left: pa.Table, right: pa.Table) -> bool:
    """Equal, where NaN is NaN and -0.0 is not 0.0."""
    return left.schema.equals(right.schema) and repr(left.to_pylist()) == repr(right.to_pylist())


# -- rows ----------------------------------------------------------------------------------------------------------


def encoded(rows: pa.Table) -> pa.Table:
    """The rows as staged rows of the table `t`."""
    tables, definitions = (pa.array([name] * len(rows), pa.string()) for name in ("t", "/x"))
    return encode_rows(rows, tables, definitions, STAGED_SCHEMA)


@settings(max_examples=100, deadline=None)
@given(tables())
def test_staged_rows_are_decoded_without_loss(rows: pa.Table) -> None:
    staged = encoded(rows)
    assert staged.schema == STAGED_SCHEMA
    assert set(staged["table"].to_pylist()) == {"t"}
    assert same(decode_rows(staged, rows.schema), rows)


def test_rows_of_several_tables_are_read_in_one_pass(tmp_path: Path) -> None:
    own = {
        name: pa.table({"n": pa.array([len(name)] * 3), "_index": pa.array([0, 1, 2], pa.int32())})
        for name in ("a", "bb")
    }
    owners = pa.array(["a"] * 3 + ["bb"] * 3 + ["other"] * 3)
    rows = pa.concat_tables([*own.values(), own["a"]])
    staged = encode_rows(rows, owners, owners, STAGED_SCHEMA)
    pq.write_table(staged, tmp_path / "1.parquet", row_group_size=2)
    schemas = dict.fromkeys((*own, "none"), rows.schema)
    assert read_staged_tables(tmp_path / "1.parquet", schemas, ["_index"]) == own
    without = read_staged_tables(tmp_path / "1.parquet", {"bb": rows.schema}, [])
    assert without["bb"].to_pydict() == {"n": [2, 2, 2], "_index": [None, None, None]}
    assert read_staged_tables(tmp_path / "1.parquet", {"none": rows.schema}, []) == {}


def text_of(row: dict[str, Any]) -> str:
    """The JSON text of a row, value by value."""

    def value_of(value: Any) -> Any:
        if isinstance(value, float):
            return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(value), value)
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, dict):
            return {name: value_of(member) for name, member in value.items()}
        return [*map(value_of, value)] if isinstance(value, list) else value

    def column_of(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return value_of(value)

    members = {name: column_of(value) for name, value in row.items() if value is not None}
    return orjson.dumps(members, option=orjson.OPT_UTC_Z).decode()


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(0, 1))
def test_text_of_a_row_is_that_of_its_values(rows: pa.Table, first: int) -> None:
    texts = json_objects(rows.slice(first)).to_pylist()
    assert texts == [text_of(row) for row in rows.slice(first).to_pylist(maps_as_pydicts="strict")]


def test_text_of_edge_values_is_that_of_its_values() -> None:
    rows = edges(pa.table({"_file": ["a", "b", "c"]}))
    rows = pa.concat_tables([rows, rows])
    assert json_objects(rows).to_pylist() == [text_of(row) for row in rows.to_pylist(maps_as_pydicts="strict")]


def test_text_of_rows_without_values_is_an_empty_object() -> None:
    assert json_objects(pa.table({"a": pa.array([None, "x"]), "b": pa.nulls(2)})).to_pylist() == ["{}", '{"a":"x"}']
    assert json_objects(pa.table({"a": pa.nulls(2, pa.int64())})).to_pylist() == ["{}", "{}"]


def test_staged_rows_are_decoded_with_current_columns() -> None:
    before = pa.table({"n": pa.array([1], pa.int32()), "d": pa.array([None], pa.decimal128(4, 2)), "gone": ["x"]})
    now = pa.schema({"n": pa.int64(), "d": pa.decimal128(9, 4), "gone": pa.string(), "new": pa.list_(pa.string())})
    rows = decode_rows(encoded(before), now)
    assert (rows.schema, rows.to_pylist()) == (now, [{"n": 1, "d": None, "gone": "x", "new": None}])


@pytest.mark.parametrize(
    ("below", "apart", "rows", "chosen"),
    [
        (0, [], {"a": 1}, []),
        (3, [], {"a": 1, "b": 2, "c": 3}, ["a", "b"]),
        (3, ["a"], {"a": 1, "b": 2}, ["b"]),
        (None, [], {f"t{i:04}": 99 for i in range(1000)}, []),
        (None, [], {f"t{i:04}": 99 for i in range(1001)}, [f"t{i:04}" for i in range(1001)]),
        (None, [], {f"t{i:04}": 100 for i in range(2000)}, []),
        (None, ["t0000"], {f"t{i:04}": 1 for i in range(1001)}, []),
    ],
)
def test_policy_selects_small_tables(
    below: int | None, apart: list[str], rows: dict[str, int], chosen: list[str]
) -> None:
    assert StagingPolicy(below, frozenset(apart)).choose(rows) == chosen


def test_spool_over_budget_stages_small_tables(tmp_path: Path) -> None:
    spool = TableSpool(FORMATS["parquet"], tmp_path, "1", staging_policy=StagingPolicy(100), budget=20_000)
    rows = pa.table({"n": pa.array(range(10), pa.int64()), "s": ["x" * 20] * 10})
    for i in range(1000):
        spool.add(f"t{i % 200}", rows, XID.format(i % 200))
    spool.add("dead_letters", rows)
    files = spool.finish()
    assert sum(file.rows for file in files) == 10_010
    assert spool.staged.total() == 200 * 50 == sum(file.rows for file in files if file.table == "staged")
    assert {file.table for file in files} == {"staged", "dead_letters"}


# -- landing -------------------------------------------------------------------------------------------------------


def lines(**rows: int) -> bytes:
    values = ({"protocol": "X", "t": table, "n": i} for table, count in rows.items() for i in range(count))
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


@pytest.fixture(params=list(FORMATS))
def lake(request: pytest.FixtureRequest, workspace: Any) -> Any:
    workspace.settings.table_format, workspace.settings.stage_below = request.param, 5
    return workspace


def row_counts(workspace: Any) -> dict[str, tuple[int, int]]:
    """Rows and staged rows of each table."""
    return {table.name: (table.rows, table.staged) for table in tables_in(workspace.to, with_staging=True)}


def numbers(workspace: Any, table: str) -> list[tuple[str, int]]:
    rows = first_rows(find_table(tables_in(workspace.to), table), 1000)
    file = FORMATS[workspace.settings.table_format].column("_file")
    return sorted(zip(rows[file].to_pylist(), rows["_line"].to_pylist(), strict=True))


def test_small_tables_are_staged_until_they_grow(lake: Any) -> None:
    lake.write("1", lines(rare=2, often=9) + b"bad\n")
    report = lake.land()
    assert (report.read, report.landed, report.dead_lettered) == (12, 11, 1)
    assert {name: table["rows"] for name, table in report.tables().items()} == {"rare": 2, "often": 9}
    assert row_counts(lake) == {"often": (9, 0), "rare": (2, 2), "dead_letters": (1, 0), "staged": (2, 0)}
    assert not (lake.to / "rare").exists()
    lake.write("2", lines(rare=3, often=1))
    lake.land(table_format=None)
    assert row_counts(lake)["rare"] == (5, 5)  # as many as make it worth files, from the next batch on
    assert row_counts(lake)["often"] == (10, 0)  # has files, however few there are in a batch
    lake.write("3", lines(rare=1) + b"\n")
    assert lake.land(table_format=None).landed == 1
    assert row_counts(lake)["rare"] == (6, 5)
    assert numbers(lake, "rare") == [("1", 1), ("1", 2), ("2", 1), ("2", 2), ("2", 3), ("3", 1)]
    assert lake.land(table_format=None).read == 0


def test_few_tables_are_not_staged_by_default(workspace: Any) -> None:
    workspace.write("1", lines(rare=2, often=9))
    workspace.land()
    assert row_counts(workspace) == {"often": (9, 0), "rare": (2, 0)}


def test_replayed_dead_letters_are_staged(lake: Any) -> None:
    lake.write("1", lines(a=4, b=2))
    lake.land(engine={"unknown": ["a"]})
    assert lake.replay(table_format=None).landed == 4
    assert row_counts(lake) == {"a": (4, 4), "b": (2, 2), "dead_letters": (4, 0), "resolved": (4, 0), "staged": (6, 0)}
    assert lake.replay(table_format=None).read == 0


def test_staged_rows_follow_their_definition(lake: Any) -> None:
    def land(name: str, columns: dict[str, str], **members: Any) -> Any:
        lake.write(name, msgspec.json.encode({"protocol": "X", "t": "a", **members}) + b"\n")
        return lake.land(engine={"columns": {"a": columns}}, name=name)

    land("1", {"v": "int32", "s": "struct<a>"}, v=1, s={"a": 1})
    land("2", {"v": "int32", "s": "struct<a,b>", "new": "string"}, v=2, s={"a": 2, "b": ["b"]}, new="n")
    wider = land("3", {"v": "int64"}, v=2**40)
    rows = first_rows(find_table(tables_in(lake.to), "a"), 9).sort_by("v")
    is_delta = lake.settings.table_format == "delta"
    assert wider.landed == (not is_delta)
    assert rows["v"].to_pylist() == [1, 2] + [2**40] * (not is_delta)
    assert rows["s"].to_pylist()[:2] == [{"a": 1, "b": None}, {"a": 2, "b": ["b"]}]
    assert rows["new"].to_pylist()[:2] == [None, "n"]
    assert land("4", {"v": "string"}, v="x").reasons == {"columns-changed": 1}


@pytest.mark.parametrize(
    ("point", "times"), [("begun", 1), ("staged", 1), ("committed", 1), ("moved", 1), ("moved", 3), ("tabled", 1)]
)
def test_kill_at_each_point_loses_and_duplicates_nothing(lake: Any, point: str, times: int) -> None:
    for name in ("1", "2", "3"):
        lake.write(name, lines(a=3, b=2, c=7) + f"bad {name}\n".encode())
    lake.die(point, times, stage_below=5)
    lake.land(name="new", batch_bytes=1, stage_below=0)  # begun batches keep their settings
    rows = {table.name: table.rows for table in tables_in(lake.to)}
    assert rows == {"a": 9, "b": 6, "c": 21, "dead_letters": 3}
    assert {name: Counter(numbers(lake, name)).most_common(1)[0][1] for name in "abc"} == {"a": 1, "b": 1, "c": 1}
    assert lake.land(table_format=None).read == 0


def test_report_counts_staged_rows(lake: Any) -> None:
    columns = {"columns": {"a": {"v": "int64"}}}
    lake.write("1", b"".join(b'{"protocol":"X","t":"a","v":%d}\n' % i for i in range(3)))
    lake.land(engine=columns)
    lake.write("2", b"".join(b'{"protocol":"X","t":"a","v":%d}\n' % i for i in range(10, 19)))
    lake.land(engine=columns)
    statistics = run_statistics(lake.to)
    (table,) = statistics.tables
    assert (statistics.rows, statistics.landed, table.rows, table.staged) == ({"a": 12}, 12, 12, 3)
    field = table.fields["v"]
    assert (field.filled, field.lowest, field.highest) == (12, 0, 18)
    assert run_statistics(lake.to, [1]).tables[0].staged == 3
    assert "12 rows" in html_report(statistics, "lake")
    assert "3 staged" in html_report(statistics, "lake")


def test_staged_texts_have_no_dictionaries(lake: Any) -> None:
    lake.settings.stage_below = 5000
    lake.write("1", lines(rare=2000, often=5001))
    lake.land()
    encodings = {
        name: has_dictionaries(find_table(tables_in(lake.to, with_staging=True), name)) for name in ("staged", "often")
    }
    assert encodings == {"staged": False, "often": True}


def has_dictionaries(table: Any) -> bool:
    [group, *_] = (pq.read_metadata(file).row_group(0) for file in table.files)
    return any(group.column(number).has_dictionary_page for number in range(group.num_columns))
