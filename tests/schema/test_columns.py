"""Columns agree with `read`: every settled row has the same cells and the same rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.schema.payloads import broken, damaged, find_texts, structure_payload, text
from wirebook.schema import REST, CompiledSchema, Payload, SchemaIndex, compile_schema, parse_format
from wirebook.schema.arrays import array_of
from wirebook.schema.json_reader import JsonReader
from wirebook.schema.layout import json_text
from wirebook.schema.reader import ColumnReading, DecodedPayload

PROPERTY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(schema: CompiledSchema, rows: list[bytes | None]) -> None:
    """Check that every row is as `read` returns it and that the settled rows are valid."""
    rows = [*rows, *[None] * (20 - len(rows))]  # enough to be read as a column, not row by row
    whole = pa.array([b"not one of them", *rows], pa.binary())[1:]  # a slice: offsets do not begin at 0
    readings = [None if raw is None else schema.read(Payload(raw)) for raw in rows]
    column = schema.read_column(whole)
    check_settled(schema, rows, readings, column)
    for raw, reading, settled in zip(rows, readings, column.settled, strict=True):
        assert settled or reading is None or reading.row is None or rare(raw), raw
    if isinstance(schema, JsonReader) and schema.json_columns:
        for start in range(0, len(rows), 8):  # more failures would leave rows out
            part = slice(start, start + 8)
            check_settled(schema, rows[part], readings[part], schema.json_columns.read(whole[part]))


def check_settled(
    schema: CompiledSchema, rows: list[bytes | None], readings: list[DecodedPayload | None], column: ColumnReading
) -> None:
    """Check that the settled rows are as `read` returned them, and that the others are null."""
    types = {field.name: field.arrow_type for field in schema.fields} | {REST: pa.string()}
    assert {name: column_array.type for name, column_array in column.columns.items()} == types
    for index, (raw, reading) in enumerate(zip(rows, readings, strict=True)):
        if not column.settled[index]:
            assert not any(column_array[index].is_valid for column_array in column.columns.values())
            continue
        assert reading is not None, raw
        assert reading.row is not None, (raw, reading.problems)
        for name, type_ in types.items():
            expected, actual = pa.array([reading.row[name]], type_), column.columns[name][index : index + 1]
            assert actual.equals(expected) or repr(actual.to_pylist()) == repr(expected.to_pylist()), (name, raw)


def rare(raw: bytes | None) -> bool:
    """Valid payloads that a column of JSON leaves to `read`: scalars, a byte order mark, many brackets."""
    text = (raw or b"").strip()
    return text[:1] not in (b"{", b"[") or text.count(b"[") + text.count(b"{") > 200


def rows_of(make: Callable[[], Any], random: Random, count: int = 40) -> Iterator[bytes | None]:
    """Payloads of every kind: valid, invalid, damaged and null."""
    for _ in range(count):
        value, chance = make(), random.random()
        if chance < 0.02:
            yield None
        elif chance < 0.6:
            yield text(value, random)
        elif chance < 0.85:
            yield text(broken(value, random), random)
        else:
            yield damaged(text(value, random), random)


@pytest.fixture(scope="session")
def structures(shared: Path) -> list[tuple[dict[str, Any], CompiledSchema]]:
    """Every JSON Structure document of the production catalogues, compiled."""
    contents = []
    for file in sorted((shared / "corpus/production").glob("*.json")):
        documents = SchemaIndex(json.loads(file.read_text())).documents.by_xid.values()
        contents += [
            schema.content for schema in documents if parse_format(schema.format or "").family == "JsonStructure"
        ]
    for document in contents:
        find_texts(document)
    return [(document, compile_schema("JsonStructure", document)) for document in contents]


@PROPERTY
@given(st.randoms(use_true_random=False))
def test_json_structure_columns_agree_with_read(
    structures: list[tuple[dict[str, Any], CompiledSchema]], random: Random
) -> None:
    document, schema = random.choice(structures)
    check(schema, list(rows_of(lambda: structure_payload(document, random), random)))


def test_json_structure_plain_rows_are_settled(structures: list[tuple[dict[str, Any], CompiledSchema]]) -> None:
    """Valid messages of the production catalogues need no `read`."""
    random = Random(1)
    for document, schema in structures:
        rows = [text(structure_payload(document, random), random) for _ in range(20)]
        valid = [schema.read(Payload(raw)).outcome is None for raw in rows]
        assert schema.read_column(pa.array(rows, pa.binary())).settled.tolist() == valid


@pytest.fixture(scope="session")
def events(shared: Path) -> list[tuple[Any, CompiledSchema]]:
    """Every conformance example of CDEvents, with its schema: references between files, closed objects, unions."""
    schemas = [json.loads(file.read_text()) for file in sorted((shared / "corpus/cdevents/schemas").rglob("*.json"))]
    by_id = {schema["$id"]: schema for schema in schemas if "$id" in schema}
    by_type = {_type_of(schema): schema for schema in schemas if _type_of(schema)}
    examples = [
        json.loads(file.read_text()) for file in sorted((shared / "corpus/cdevents/conformance").glob("*.json"))
    ]
    pairs = [
        (example, by_type[example["context"]["type"]]) for example in examples if example["context"]["type"] in by_type
    ]
    return [(pair, compile_schema("JsonSchema", schema, resolve=by_id.get)) for pair, schema in pairs]


def _type_of(schema: dict[str, Any]) -> Any:
    context = schema.get("properties", {}).get("context", {}).get("properties", {})
    return (context.get("type", {}).get("enum") or [None])[0]


def test_cdevents_examples_are_valid_and_settled(events: list[tuple[Any, CompiledSchema]]) -> None:
    assert len(events) > 20
    for example, schema in events:
        assert schema.read(Payload(None, example)).outcome is None, example["context"]["type"]
        assert schema.read_column(pa.array([json.dumps(example).encode()] * 20, pa.binary())).settled.all()


@PROPERTY
@given(st.randoms(use_true_random=False))
def test_json_schema_columns_agree_with_read(events: list[tuple[Any, CompiledSchema]], random: Random) -> None:
    example, schema = random.choice(events)
    check(schema, list(rows_of(lambda: example, random)))


NESTED = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"type": ["number", "null"]},
        "t": {"type": "string", "format": "date-time"},
        "any": {},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {}}}},
        "map": {"type": "object", "additionalProperties": {"oneOf": [{"type": "integer"}, {"type": "string"}]}},
    },
}
numbers = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2**53, 2.0**63, 1e19, -0.0])
)
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
instants = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
items = st.fixed_dictionaries({}, optional={"x": numbers, "y": anything, "z": anything})
plain_members = {
    "i": numbers,
    "n": numbers | st.none(),
    "more": anything,
}
nested = st.fixed_dictionaries(
    {},
    optional={
        **plain_members,
        "t": instants | st.text(),
        "any": anything,
        "list": st.lists(items | anything, max_size=3),
        "map": st.dictionaries(st.text(), st.integers() | st.text()),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(nested, min_size=1, max_size=8))
def test_json_columns_of_any_values_agree_with_read(values: list[Any]) -> None:
    """Open objects, untyped members, numbers at the limits of what columns hold."""
    schema = compile_schema("JsonSchema/draft/2020-12", NESTED)
    check(schema, [json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") for value in values])


def merged(cell: Any, rest: Any) -> Any:
    """Return the payload again: `_rest` merged over the columns (docs/types.md)."""
    if isinstance(rest, dict) and (cell is None or isinstance(cell, dict)):
        cell = cell or {}
        return {name: merged(cell.get(name), rest[name]) if name in rest else cell[name] for name in {**cell, **rest}}
    if isinstance(rest, list) and isinstance(cell, list):
        return [item if left is None else merged(item, left) for item, left in zip(cell, rest, strict=True)]
    return rest


def without_nulls(value: Any) -> Any:
    """Return a value without null members, which columns do not tell from absent ones."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({}, optional={**plain_members, "list": st.lists(items, max_size=3)}))
def test_rest_merged_over_columns_is_the_payload(value: dict[str, Any]) -> None:
    """Columns and `_rest` together are the payload; vectors cover JSON text and timestamps."""
    plain = json.loads(json.dumps(NESTED))
    del plain["properties"]["list"]["items"]["properties"]["y"]
    del plain["properties"]["map"]
    schema = compile_schema("JsonSchema/draft/2020-12", plain)
    reading = schema.read(Payload(None, value))
    if reading.row is None:
        return
    rest = reading.row.pop(REST)
    whole = merged(reading.row, json.loads(rest)) if rest else reading.row
    assert without_nulls(whole) == without_nulls(value)


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "s", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "u", "type": ["null", "int", "string"]},
        {"name": "l", "type": {"type": "array", "items": ["null", {"type": "map", "values": "double"}]}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_avro_columns_of_any_bytes_agree_with_read(rows: list[bytes]) -> None:
    check(compile_schema("Avro", AVRO), list(rows))


def test_null_struct_members_are_not_cast() -> None:
    """Arrow keeps an empty text below a null, which is not a valid time."""
    dated = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}
    members = {"one": dated, "many": {"type": "array", "items": dated}}
    members["named"] = {"type": "object", "additionalProperties": dated}
    schema = compile_schema("JsonSchema", {"type": "object", "properties": members})
    assert isinstance(schema, JsonReader)
    at = {"at": "2026-01-02T03:04:05Z"}
    rows = [{"one": at}, {}, {"many": [at, {}]}, {"named": {"a": at, "b": {}}}]
    assert array_of(schema.layout.columns, rows).null_count == 0
    check(schema, [json.dumps(row).encode() for row in rows])


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_columns_of_any_length_agree_with_read(count: int) -> None:
    """Empty, short, and longer than one batch."""
    schema = compile_schema("JsonSchema", {"type": "object", "properties": {"a": {"type": "integer"}}})
    column = schema.read_column(pa.array([b'{"a":%d}' % index for index in range(count)], pa.binary()))
    assert column.columns["a"].to_pylist() == list(range(count))
    assert column.settled.tolist() == [True] * count
    avro = compile_schema("Avro", "int").read_column(pa.array([b"\x02"] * count, pa.binary()))
    assert avro.columns["value"].to_pylist() == [1] * count


INTRUDERS = [
    b'{"a":1},{"a":2}',
    b'{"a":1}{"a":2}',
    b'{"a":1}\n{"a":2}',
    b'{"a":[{}',
    b"{}]}",
    b'{"a":"}',
    b'{"}',
    b'{"a":1',
    b"}",
    b'{"a":{"b":1}',
    b"{}}",
    b"[]",
    b"[1",
    b'{"a":"\n"}',
    b"{} {}",
    b"\x00{}",
    b"",
    b" ",
    b"null",
    b'{"a":1e999}',
    b'{"a":"\xff"}',
    b'{"a":"\\ud800"}',
    b'{"a":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*INTRUDERS, b'{"a":7}', b'{"a":[8]}', b' {"a":9} ']), min_size=1, max_size=12))
def test_malformed_payload_does_not_shift_other_rows(rows: list[bytes]) -> None:
    """Payloads are decoded as one stream; none may end another's text or add a value."""
    schema = compile_schema("JsonSchema", {"type": "object", "properties": {"a": {}}})
    check(schema, list(rows))
    column = schema.read_column(pa.array(rows * 20, pa.binary()))
    good = (b'{"a":7}', b'{"a":[8]}', b' {"a":9} ', b"{}")
    assert all(settled for settled, raw in zip(column.settled, rows * 20, strict=True) if raw in good)


def test_rest_with_lone_surrogate_is_escaped() -> None:
    assert json_text({"a": "\ud800", "b": b"x", "c": 2**70}) == '{"a":"\\ud800","b":"eA==","c":1180591620717411303424}'


@pytest.mark.parametrize(("draft", "identifier"), [("draft-04", "id"), ("draft-06", "$id"), ("draft/2020-12", "$id")])
def test_column_of_reference_follows_the_identifier_of_the_draft(draft: str, identifier: str) -> None:
    schema = compile_schema(f"JsonSchema/{draft}", {
        "type": "object",
        "properties": {"a": {identifier: "http://e/sub/a", "type": "object", "properties": {"b": {"$ref": "b"}}}},
        "definitions": {"b": {identifier: "http://e/sub/b", "type": "integer"}},
    })  # fmt: skip
    assert schema.layout.arrow == pa.struct({"a": pa.struct({"b": pa.int64()})})
