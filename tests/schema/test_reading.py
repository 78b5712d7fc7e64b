"""The vectors of reading payloads in every format, by `read` and by `read_column`."""

from __future__ import annotations

import base64
import json
import pickle
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wirebook.schema import REST, UNSET, CompileOptions, Payload, compile_schema, parse_format

VECTORS = Path(__file__).parent.parent / "vectors" / "schema"


def vectors(name: str) -> list[dict[str, Any]]:
    return list(json.loads((VECTORS / f"{name}.json").read_text()))


READING = [vector for name in ("json-schema", "json-structure", "avro", "protobuf", "xsd") for vector in vectors(name)]


def payload_of(vector: dict[str, Any]) -> Payload:
    if "payload_hex" in vector:
        return Payload(bytes.fromhex(vector["payload_hex"]), content_type=vector.get("content_type"))
    if "value" in vector:
        return Payload(None, vector["value"])
    return Payload(vector["payload"].encode(), UNSET, vector.get("content_type"))


def schema_of(vector: dict[str, Any]) -> Any:
    options = CompileOptions(assert_formats=vector.get("assert_formats"))
    return compile_schema(vector["format"], vector["schema"], vector.get("fragment"), options=options)


def plain(cell: Any) -> Any:
    """Return a cell as a vector writes it."""
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, dict):
        return {name: plain(item) for name, item in cell.items() if item is not None}
    if isinstance(cell, list):
        return [plain(item) for item in cell]
    return f"base64:{base64.b64encode(cell).decode()}" if isinstance(cell, bytes) else _number(cell)


def _number(cell: Any) -> Any:
    return format(cell, "f") if isinstance(cell, Decimal) else cell


def labelled(vector: dict[str, Any]) -> str:
    return f"{vector['format']}: {vector['description']}"


@pytest.mark.parametrize("vector", vectors("formats"), ids=lambda v: v["description"])
def test_format_name_is_parsed(vector: dict[str, Any]) -> None:
    format_ = parse_format(vector["input"])
    assert {"family": format_.family, "version": format_.version} == vector["expected"]


@pytest.mark.parametrize("vector", READING, ids=labelled)
def test_payload_is_read(vector: dict[str, Any]) -> None:
    expected, reading = vector["expected"], schema_of(vector).read(payload_of(vector))
    assert reading.outcome == expected.get("outcome"), reading.problems
    problems = [{"code": p.code, **p.reason()} for p in reading.problems]
    for problem, fields in zip(problems, expected.get("problems", []), strict=True):
        assert {name: problem[name] for name in fields} == fields
    if "row" not in expected:
        assert reading.row is None
        return
    rest = reading.row.pop(REST)
    assert {name: plain(cell) for name, cell in reading.row.items()} == expected["row"]
    assert (rest and json.loads(rest)) == expected.get("rest")


@pytest.mark.parametrize("vector", READING, ids=labelled)
def test_pickled_reading_keeps_its_row(vector: dict[str, Any]) -> None:
    reading = schema_of(vector).read(payload_of(vector))
    again = pickle.loads(pickle.dumps(reading))
    assert (again, again.row) == (reading, reading.row)


# Valid payloads that do not decode as part of a column: scalars, and a byte order mark.
LEFT = ("a byte order mark is tolerated", "a payload that is a scalar")
MANY = 20  # rows: enough to be read as a column, not row by row


@pytest.mark.parametrize("vector", [vector for vector in READING if "value" not in vector], ids=labelled)
@pytest.mark.parametrize("count", [1, MANY])
def test_columns_agree_with_read(vector: dict[str, Any], count: int) -> None:
    """Every valid row is settled, with the same cells and rest; all others are null."""
    schema, payload = schema_of(vector), payload_of(vector)
    column = schema.read_column(pa.array([payload.raw] * count + [None], pa.binary()), payload.content_type)
    reading = schema.read(payload)
    settled = column.settled.tolist()
    assert settled in ([reading.row is not None] * count + [False], [False] * (count + 1))
    if not any(settled):
        assert reading.row is None or vector["description"] in LEFT
        return
    for name, type_ in {field.name: field.arrow_type for field in schema.fields}.items():
        cells = column.columns[name]
        assert cells.type == type_
        cell = reading.row[name] if reading.row else None
        assert cells.equals(pa.array([cell] * count + [None], type_))


def test_avro_reports_the_first_of_many_unknown_and_missing_members() -> None:
    """Sets of names have another order in each process."""
    fields = [{"name": f"f{number:02}", "type": "int"} for number in range(40)]
    schema = compile_schema("Avro/1.11", {"type": "record", "name": "R", "fields": fields})
    unknown = schema.read(Payload(None, {f"u{number:02}": 1 for number in range(40)}, "application/json")).problems
    assert {problem.slot for problem in unknown} == {f"payload#/u{number:02}" for number in range(20)}
    missing = schema.read(Payload(None, {}, "application/json")).problems
    assert {problem.expected["required"] for problem in missing} == {f"f{number:02}" for number in range(20)}


@pytest.mark.parametrize("doc", [5, True, None, {}, ["text"]])
def test_avro_doc_that_is_not_a_string_is_ignored(doc: Any) -> None:
    fields = [{"name": "a", "type": "int", "doc": doc}, {"name": "b", "type": "int", "doc": "text"}]
    schema = compile_schema("Avro/1.11", {"type": "record", "name": "R", "fields": fields})
    assert [field.doc for field in schema.fields] == [None, "text"]
