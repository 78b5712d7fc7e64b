"""Writing payloads: `read` accepts what `encode` returns, and fastavro reads the same value."""

from __future__ import annotations

import copy
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.schema import CompiledSchema, Encoder, Payload, compile_schema
from wirebook.schema.validator import SchemaValidator

RECORD = {
    "type": "record",
    "name": "n.R",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "d", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "b", "type": "bytes"},
        {"name": "x", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "u", "type": ["null", "string", "long", {"type": "map", "values": "boolean"}]},
        {"name": "a", "type": {"type": "array", "items": "string"}},
        {"name": "m", "type": {"type": "map", "values": ["null", "n.R"]}},
    ],
}
LOGICAL = {
    "type": "record",
    "name": "L",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "span", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
    ],
}


def avro(schema: Any) -> Any:
    compiled = compile_schema("Avro", schema)
    assert isinstance(compiled, Encoder)
    return compiled


INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def records(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "i": INT,
            "l": st.none() | LONG,
            "d": st.floats(allow_nan=False),
            "f": st.floats(width=32, allow_nan=False),
            "b": st.binary(max_size=5),
            "x": st.binary(min_size=3, max_size=3),
            "e": st.sampled_from("AB"),
            "u": st.none()
            | st.one_of(
                TEXT.map(lambda v: {"string": v}),
                LONG.map(lambda v: {"long": v}),
                st.dictionaries(TEXT, st.booleans(), max_size=2).map(lambda v: {"map": v}),
            ),
            "a": st.lists(TEXT, max_size=3),
            "m": st.dictionaries(TEXT, inner, max_size=2),
        }
    )


RECORDS = st.recursive(st.none(), records, max_leaves=4)


@given(records(RECORDS))
def test_avro_binary_is_read_by_fastavro(value: Any) -> None:
    encoded = avro(RECORD).encode(value)
    assert encoded.problems == ()
    assert encoded.payload.content_type == "application/vnd.apache.avro"
    read = fastavro.schemaless_reader(io.BytesIO(encoded.payload.raw), RECORD)
    assert read == plain(value)
    assert avro(RECORD).read(encoded.payload).problems == ()


def plain(value: Any) -> Any:
    """Return the value as fastavro reads it: without the names of branches."""
    return value and value | {
        "u": value["u"] and next(iter(value["u"].values())),
        "m": {key: plain(item) for key, item in value["m"].items()},
    }


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(records(RECORDS), FINITE, st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_avro_encodings_give_the_same_value(value: Any, double: float, single: float) -> None:
    value |= {"d": double, "f": single, "m": {}}
    compiled = avro(RECORD)
    binary, text = compiled.encode(value), compiled.encode(value, "application/json")
    assert (binary.problems, text.problems) == ((), ())
    assert compiled.read(binary.payload).value == compiled.read(text.payload).value


def test_avro_logical_values_round_trip() -> None:
    compiled = avro(LOGICAL)
    value = {
        "at": datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
        "day": date(1969, 12, 31),
        "sum": Decimal("-12.50"),
        "id": "8a2f1e4c-0000-4000-8000-000000000001",
        "span": {"months": 1, "days": 2, "milliseconds": 3},
    }
    for content_type in (None, "application/json"):
        assert compiled.read(compiled.encode(value, content_type).payload).value == value


@pytest.mark.parametrize(
    ("schema", "value", "slots"),
    [
        ("int", 2**31, ["payload#"]),
        ("long", True, ["payload#"]),
        ("float", 1e39, ["payload#"]),
        ("string", "\ud800", ["payload#"]),
        ("bytes", "€", ["payload#"]),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", ["payload#"]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", ["payload#"]),
        ({"type": "array", "items": "int"}, [1, "x", None], ["payload#/1", "payload#/2"]),
        ({"type": "map", "values": "int"}, {"a/b": "x"}, ["payload#/a~1b"]),
        (["null", "string"], 5, ["payload#"]),
        (["int", "long"], 5, ["payload#"]),
        (RECORD, {"i": 1, "z": 2}, ["payload#", "payload#/z"]),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("1.234"), ["payload#"]),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("123"), ["payload#"]),
        ("string", object(), ["payload#"]),
    ],
)
def test_avro_value_outside_schema_is_rejected_with_its_place(schema: Any, value: Any, slots: list[str]) -> None:
    encoded = avro(schema).encode(value)
    assert encoded.payload is None
    assert {problem.code for problem in encoded.problems} == {"payload-invalid"}
    assert sorted({problem.slot for problem in encoded.problems}) == slots


def test_avro_union_branch_is_inferred_if_unambiguous() -> None:
    compiled = avro(
        ["null", "string", "long", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}]
    )
    for value, wrapped in [("a", {"string": "a"}), (5, {"long": 5}), ({"x": 1}, {"P": {"x": 1}}), (None, None)]:
        assert json.loads(compiled.encode(value, "application/json").payload.raw) == wrapped
        assert compiled.encode(value).payload == compiled.encode(wrapped).payload


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DAY = {"type": "int", "logicalType": "date"}
LOCAL_MICROS = {"type": "long", "logicalType": "local-timestamp-micros"}
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
MEANT: list[tuple[Any, Any, Any]] = [
    (MONEY, "1.5", Decimal("1.50")),
    (MONEY, 1.5, Decimal("1.50")),
    (MONEY, 15, Decimal("15.00")),
    (["null", MONEY], "-0.01", Decimal("-0.01")),
    (MILLIS, "2024-05-01T14:00:00+02:00", NOON),
    (["null", MILLIS], "2024-05-01T12:00:00Z", NOON),
    (DAY, "2024-05-01", date(2024, 5, 1)),
    (LOCAL_MICROS, "2024-05-01T12:00:00.5", datetime(2024, 5, 1, 12, 0, 0, 500000)),
    (["null", "bytes"], "ÿ", b"\xff"),
]


@pytest.mark.parametrize(("schema", "value", "meant"), MEANT)
def test_avro_plain_json_is_converted(schema: Any, value: Any, meant: Any) -> None:
    """fastavro writes the same bytes for the converted value."""
    compiled, out = avro(schema), io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), meant)
    encoded = compiled.encode(value)
    assert encoded.payload is not None, encoded.problems
    assert encoded.payload.raw == out.getvalue()
    for content_type in (None, "application/json"):
        assert compiled.read(compiled.encode(value, content_type).payload).value == meant


@pytest.mark.parametrize(
    ("schema", "value"),
    [(MONEY, 1.555), (MONEY, "155.55"), (MONEY, True), (MILLIS, "2024-05-01T12:00:00.1234Z"), (MILLIS, "x"),
     (DAY, "2024-05-32"), (LOCAL_MICROS, "2024-05-01T12:00:00Z"), (["null", "bytes"], "€"),
     ("float", 3.4028235677973366e38)],
)  # fmt: skip
def test_avro_inexact_plain_json_is_rejected(schema: Any, value: Any) -> None:
    assert [problem.code for problem in avro(schema).encode(value).problems] == ["payload-invalid"]


def test_avro_string_in_union_stays_a_string() -> None:
    assert (
        avro(["null", MILLIS, "string"]).encode("2024-05-01T12:00:00Z").payload
        == avro(["null", MILLIS, "string"]).encode({"string": "2024-05-01T12:00:00Z"}).payload
    )


def test_avro_omitted_fields_get_defaults() -> None:
    """As in fastavro's writer."""
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["long", "string"]}]}
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "int", "default": 5},
        {"name": "b", "type": ["string", "null"], "default": "x"},
        {"name": "c", "type": ["null", "string"], "default": None},
        {"name": "e", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "r", "type": inner, "default": {"x": 7}},
    ]}  # fmt: skip
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {})
    assert avro(schema).encode({}).payload.raw == out.getvalue()
    assert avro(schema).read(avro(schema).encode({"a": 1, "b": None}).payload).value["b"] is None


CHOICE = {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["null", "int", "long", "string"]}]}


@pytest.mark.parametrize(
    ("schema", "default"),
    [(["null", "string"], "a"), (["null", "int", "long"], 5), (["string", "int"], 5), (["null", DAY], 5),
     (["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}], "B"), (CHOICE, {"x": 5}), (CHOICE, {"x": "s"}),
     (["null", CHOICE], {"x": 5}), ({"type": "array", "items": ["null", "int", "long"]}, [5, None]),
     ({"type": "map", "values": ["null", "string"]}, {"a": "s"}), ("double", "NaN"), ("float", "Infinity"),
     ("double", 5)],
)  # fmt: skip
def test_avro_default_is_written_in_the_first_branch_that_it_fits(schema: Any, default: Any) -> None:
    """As in fastavro's writer."""
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema, "default": default}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(copy.deepcopy(record)), {})
    encoded = avro(record).encode({})
    assert encoded.payload is not None, encoded.problems
    assert encoded.payload.raw == out.getvalue()


@pytest.mark.parametrize(
    ("schema", "default", "raw"),
    [(["null", "bytes"], "é", b"\x02\x02\xe9"), (MONEY, "12", b"\x0412"), (["string", "null"], None, b"\x02"),
     ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 2}, "12", b"12"),
     (["null", "long"], 5.0, b"\x02\n")],
)  # fmt: skip
def test_avro_default_is_written_as_its_type(schema: Any, default: Any, raw: bytes) -> None:
    """Bytes are characters, also those of a decimal. fastavro does not write these defaults."""
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema, "default": default}]}
    assert avro(record).encode({}).payload.raw == raw


@pytest.mark.parametrize(
    ("schema", "default"),
    [("int", "x"), (["null", "string"], 5), ("float", 1e300), (DAY, "2024-05-01"), (CHOICE, {}), (CHOICE, 5)],
)
def test_avro_default_of_another_type_is_rejected(schema: Any, default: Any) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema, "default": default}]}
    assert [problem.code for problem in avro(record).encode({}).problems] == ["payload-invalid"]
    assert SchemaValidator().faults("Avro", json.dumps(record).encode())


def test_avro_defaults_that_double_are_rejected_in_bounded_time() -> None:
    """Each record contains the previous one twice by default: 2**40 parts."""
    records: list[Any] = [{"type": "record", "name": "R0", "fields": []}]
    for number in range(40):
        union = [f"R{number}", "null"]
        fields = [{"name": name, "type": union, "default": {}} for name in "ab"]
        records.append({"type": "record", "name": f"R{number + 1}", "fields": fields})
    encoded = avro(records).encode({"R40": {}})
    assert [problem.code for problem in encoded.problems] == ["payload-invalid"]
    assert avro(records).encode({"R10": {}}).payload is not None


def test_avro_float_is_the_same_in_both_encodings() -> None:
    compiled = avro("float")
    rows = [
        compiled.read(compiled.encode(0.1, content_type).payload).row for content_type in (None, "application/json")
    ]
    assert rows[0] == rows[1] == {"value": 0.10000000149011612, "_rest": None}


def test_avro_cyclic_value_is_too_deep() -> None:
    schema = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    value: dict[str, Any] = {}
    value["next"] = value
    assert [problem.code for problem in avro(schema).encode(value).problems] == ["payload-too-deep"]


def test_avro_deep_union_is_encoded_in_linear_time() -> None:
    inner = {"type": "record", "name": "B", "fields": [{"name": "next", "type": ["null", "A", "B"]}]}
    schema = {"type": "record", "name": "A", "fields": [{"name": "next", "type": ["null", "A", inner]}]}
    value: Any = None
    for _ in range(60):
        value = {"next": value}
    assert avro(schema).encode(value).problems


NUMBERS = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]}
STRUCTURE = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://x.invalid/s", "name": "S"} | {
    "type": "object", "properties": {"n": {"type": "int32"}}, "required": ["n"]
}  # fmt: skip


@pytest.mark.parametrize(("format", "schema"), [("JsonSchema", NUMBERS), ("JsonStructure", STRUCTURE)])
def test_json_value_round_trips(format: str, schema: Any) -> None:
    compiled: CompiledSchema | Any = compile_schema(format, schema)
    assert compiled.encode({"n": 3}).payload == Payload(b'{"n":3}', content_type="application/json")
    assert compiled.encode({"n": 3}, "a/b+json").payload.content_type == "a/b+json"
    assert [problem.code for problem in compiled.encode({"m": "x"}).problems] == ["payload-invalid"]
    for value in (float("nan"), object(), b"x", "\ud800"):
        assert [problem.code for problem in compiled.encode({"n": value}).problems] == ["payload-invalid"]
