"""Columns of all types that tables can have, with edge values and with random values of Hypothesis."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INSTANT, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)


def integers(bits: int) -> Any:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> Any:
    whole = st.integers(1 - 10**precision, 10**precision - 1)
    return whole.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


SCALARS: list[tuple[pa.DataType, Any]] = [
    (pa.int8(), integers(8)),
    (pa.int16(), integers(16)),
    (pa.int32(), integers(32)),
    (pa.int64(), integers(64)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary(max_size=6)),
    (pa.date32(), st.dates()),
    (INSTANT, st.datetimes(FIRST, LAST, timezones=st.just(UTC))),
    (LOCAL, st.datetimes(FIRST, LAST)),
    (pa.decimal128(38, 7), decimals(38, 7)),
    (pa.decimal128(20, 0), decimals(20, 0)),
    (pa.decimal128(5, 5), decimals(5, 5)),
]
NAMES = st.one_of(
    st.sampled_from(["a", "b", "row", "table", "definition", "key", "it's", 'say "x"', "`q`", "a.b", "Ω"])
)


def nested(types: Any) -> Any:
    """A list, a map or a struct of some types."""
    members = st.dictionaries(NAMES, types, min_size=1, max_size=3)
    return st.one_of(types.map(list_of), types.map(map_of), members.map(struct_of))


def list_of(typed: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
    return pa.list_(typed[0]), st.lists(st.none() | typed[1], max_size=3)


def map_of(typed: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
    pairs = st.dictionaries(TEXTS, st.none() | typed[1], max_size=3).map(lambda members: list(members.items()))
    return pa.map_(pa.string(), typed[0]), pairs


def struct_of(members: dict[str, tuple[pa.DataType, Any]]) -> tuple[pa.DataType, Any]:
    type_ = pa.struct([(name, member[0]) for name, member in members.items()])
    return type_, st.fixed_dictionaries({name: st.none() | member[1] for name, member in members.items()})


TYPES = st.recursive(st.sampled_from(SCALARS), nested, max_leaves=4)


@st.composite
def tables(draw: Any) -> pa.Table:
    """A table of a few columns and rows."""
    columns = draw(st.dictionaries(NAMES, TYPES, min_size=1, max_size=4))
    count = draw(st.integers(1, 4))
    arrays = {
        name: pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), type_)
        for name, (type_, values) in columns.items()
    }
    return pa.table(arrays)


EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, 127]),
    "i16": (pa.int16(), [-(2**15), 2**15 - 1]),
    "i32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "f32": (pa.float32(), [0.1, math.inf]),
    "f64": (pa.float64(), [5e-324, -0.0]),
    "nan": (pa.float64(), [math.nan, -math.inf]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ['a\x00\n"\\\U0001f6b2', ""]),
    "bytes": (pa.binary(), [bytes(range(256)), b""]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "at": (INSTANT, [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC)]),
    "local": (LOCAL, [datetime(2024, 2, 29, 1, 2, 3, 4), LAST]),
    "big": (pa.decimal128(38, 7), [Decimal("1234567890123456789012345678901.1234567"), Decimal("0.0000001")]),
    "whole": (pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(-1)]),
    "numbers": (pa.list_(pa.int64()), [[1, None, 2**63 - 1], []]),
    "blobs": (pa.list_(pa.binary()), [[b"\xff\x00", None], []]),
    "inside": (
        pa.struct({"x": pa.decimal128(9, 2), "y y": pa.struct({"z": pa.binary(), "w": INSTANT})}),
        [{"x": Decimal("1.50"), "y y": {"z": b"\x00", "w": None}}, {"x": None, "y y": None}],
    ),
    "many": (
        pa.map_(pa.string(), pa.struct({"d": pa.decimal128(9, 2), "b": pa.list_(pa.binary())})),
        [[("k", {"d": Decimal("2.00"), "b": [b"\xfe", None]}), ("", None)], []],
    ),
    'it\'s "odd" `x`.y': (pa.string(), ["'quoted'", "\\"]),
    "row": (pa.int64(), [1, 2]),
    "definition": (pa.string(), ["one", None]),
    "Table": (pa.bool_(), [None, True]),
    "ce_id": (pa.int32(), [7, 8]),
    "ce_source": (pa.string(), ["/a", None]),
    "ce_time": (INSTANT, [None, LAST.replace(tzinfo=UTC)]),
}
"""Two values of each type. Some columns have the names of columns of the staging table."""


def edges(place: pa.Table) -> pa.Table:
    """A table of three rows with them, the last all null, behind columns that say where a row is from."""
    columns = {name: pa.array([*values, None], type_) for name, (type_, values) in EDGES.items()}
    return pa.table({name: place[name] for name in place.column_names} | columns)
