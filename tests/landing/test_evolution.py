"""Schema evolution: which changes are accepted or rejected, and that no value changes."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.evolution import conform, evolve, widens
from wirebook.landing.tables.iceberg import IcebergFormat

INT8, INT32, INT64 = pa.int8(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (INT32, INT64, True),
        (INT8, INT32, True),
        (INT64, INT32, False),
        (INT32, DOUBLE, False),
        (FLOAT, DOUBLE, True),
        (DOUBLE, FLOAT, False),
        (decimal(10, 2), decimal(12, 2), True),
        (decimal(10, 2), decimal(12, 4), True),
        (decimal(10, 2), decimal(11, 4), False),
        (decimal(10, 2), decimal(12, 1), False),
        (pa.date32(), pa.timestamp("us"), False),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), False),
        (INT32, pa.string(), False),
        (pa.bool_(), INT32, False),
    ],
)
def test_widens_accepts_only_lossless_changes(old: pa.DataType, new: pa.DataType, expected: bool) -> None:
    assert widens(old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "parquet", "iceberg", "delta"),
    [
        (INT32, INT64, INT64, INT64, None),
        (INT64, INT32, INT64, INT64, INT64),
        (FLOAT, DOUBLE, DOUBLE, DOUBLE, None),
        (decimal(4, 2), decimal(9, 2), decimal(9, 2), decimal(9, 2), None),
        (decimal(4, 2), decimal(9, 4), decimal(9, 4), None, None),
        (pa.string(), INT32, None, None, None),
        (pa.list_(INT32), pa.list_(INT64), pa.list_(INT64), pa.list_(INT64), None),
        (pa.list_(INT32), INT32, None, None, None),
        (pa.map_(pa.string(), INT32), pa.map_(pa.string(), INT64), *2 * [pa.map_(pa.string(), INT64)], None),
        (pa.struct({"a": INT32}), pa.struct({"b": INT32}), *3 * [pa.struct({"a": INT32, "b": INT32})]),
        (pa.struct({"a": INT32}), pa.struct({"A": INT32}), None, None, None),
        (pa.struct({"a": INT32, "b": INT64}), pa.struct({"b": INT32}), *3 * [pa.struct({"a": INT32, "b": INT64})]),
    ],
)
def test_evolve_returns_type_that_holds_both(
    old: pa.DataType,
    new: pa.DataType,
    parquet: pa.DataType | None,
    iceberg: pa.DataType | None,
    delta: pa.DataType | None,
) -> None:
    in_iceberg, in_delta = IcebergFormat().can_widen, DeltaFormat().can_widen
    of_formats = (
        (widens, parquet),
        (in_iceberg, iceberg),
        (partial(in_iceberg, may_rewrite=True), iceberg),
        (in_delta, delta),
        (partial(in_delta, may_rewrite=True), parquet),
    )
    for can_widen, expected in of_formats:
        schema, conflicts = evolve(pa.schema({"x": old}), pa.schema({"x": new}), can_widen)
        if expected is None:
            assert [(misfit.column, misfit.before, misfit.now) for misfit in conflicts] == [("x", old, new)]
        else:
            assert (schema, conflicts) == (pa.schema({"x": expected}), [])


def test_evolve_appends_new_columns_and_keeps_old_ones() -> None:
    old, new = pa.schema({"a": INT32, "b": INT32}), pa.schema({"c": INT32, "b": INT32})
    assert evolve(old, new, widens) == (pa.schema({"a": INT32, "b": INT32, "c": INT32}), [])
    assert evolve(pa.schema({"a": INT32}), pa.schema({"A": INT32}), widens)[1][0].before is None


OLD = pa.schema({
    "i": INT32,
    "d": decimal(4, 2),
    "s": pa.struct({"a": INT32}),
    "l": pa.list_(pa.struct({"a": INT32})),
    "m": pa.map_(pa.string(), pa.struct({"a": INT8})),
    "t": pa.date32(),
})  # fmt: skip
NEW = pa.schema({
    "new": pa.string(),
    "i": INT64,
    "d": decimal(9, 4),
    "s": pa.struct({"b": pa.string(), "a": INT64}),
    "l": pa.list_(pa.struct({"a": INT32, "b": pa.list_(pa.string())})),
    "m": pa.map_(pa.string(), pa.struct({"a": INT32, "b": INT32})),
    "t": pa.date32(),
})  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "i": 1,
        "d": Decimal("1.25"),
        "s": {"a": 1},
        "l": [{"a": 1}, None, {"a": None}],
        "m": [("k", {"a": 1})],
        "t": None,
    },
    {"i": None, "d": None, "s": None, "l": None, "m": None, "t": date(2020, 1, 1)},
    {"i": 3, "d": Decimal("-99.99"), "s": {"a": None}, "l": [], "m": [], "t": None},
    {"i": 4, "d": None, "s": {"a": 4}, "l": [{"a": 4}], "m": [("x", None), ("y", {"a": -4})], "t": None},
]


def wide(value: Any, names: tuple[str, ...]) -> Any:
    """A struct with further members that are null."""
    return value if value is None else dict.fromkeys(names) | value


@pytest.mark.parametrize("start", range(5))
def test_conform_keeps_values_of_widened_types(start: int) -> None:
    rows = pa.Table.from_pylist(ROWS, OLD)
    two = pa.concat_tables([rows.slice(start), rows.slice(start, 1)])
    expected = [
        {
            "new": None,
            "t": None,
            **row,
            "s": wide(row["s"], ("b", "a")),
            "l": row["l"] and [wide(member, ("a", "b")) for member in row["l"]],
            "m": row["m"] and [(key, wide(member, ("a", "b"))) for key, member in row["m"]],
        }
        for row in ROWS[start:] + ROWS[start : start + 1]
    ]
    wider = conform(two, NEW)
    wider.validate(full=True)
    assert wider.schema == NEW
    assert wider.to_pylist() == expected


def test_conform_returns_matching_rows_unchanged() -> None:
    rows = pa.Table.from_pylist(ROWS, OLD)
    assert conform(rows, OLD) is rows
