"""Reading payloads: the vectors of every format, by the reference and by the column reader."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wirebook.schema import REST, UNSET, Options, Payload, compile_schema, parse_format

VECTORS = Path(__file__).parent.parent / "vectors" / "schema"


def vectors(name: str) -> list[dict[str, Any]]:
    return list(json.loads((VECTORS / f"{name}.json").read_text()))


READING = [vector for name in ("json-schema", "json-structure", "avro") for vector in vectors(name)]


def payload_of(vector: dict[str, Any]) -> Payload:
    if "payload_hex" in vector:
        return Payload(bytes.fromhex(vector["payload_hex"]), content_type=vector.get("content_type"))
    if "value" in vector:
        return Payload(None, vector["value"])
    return Payload(vector["payload"].encode(), UNSET, vector.get("content_type"))


def schema_of(vector: dict[str, Any]) -> Any:
    options = Options(assert_formats=vector.get("assert_formats"))
    return compile_schema(vector["format"], vector["schema"], vector.get("fragment"), options=options)


def plain(cell: Any) -> Any:
    """A cell as a vector writes it."""
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, dict):
        return {name: plain(each) for name, each in cell.items() if each is not None}
    if isinstance(cell, list):
        return [plain(each) for each in cell]
    return f"base64:{base64.b64encode(cell).decode()}" if isinstance(cell, bytes) else _number(cell)


def _number(cell: Any) -> Any:
    return format(cell, "f") if isinstance(cell, Decimal) else cell


def labelled(vector: dict[str, Any]) -> str:
    return f"{vector['format']}: {vector['description']}"


@pytest.mark.parametrize("vector", vectors("formats"), ids=lambda v: v["description"])
def test_format_names(vector: dict[str, Any]) -> None:
    found = parse_format(vector["input"])
    assert {"family": found.family, "version": found.version} == vector["expected"]


@pytest.mark.parametrize("vector", READING, ids=labelled)
def test_read(vector: dict[str, Any]) -> None:
    expected, reading = vector["expected"], schema_of(vector).read(payload_of(vector))
    assert reading.outcome == expected.get("outcome"), reading.problems
    found = [{"code": p.code, **p.reason()} for p in reading.problems]
    for problem, wanted in zip(found, expected.get("problems", []), strict=True):
        assert {name: problem[name] for name in wanted} == wanted
    if "row" not in expected:
        assert reading.row is None
        return
    rest = reading.row.pop(REST)
    assert {name: plain(cell) for name, cell in reading.row.items()} == expected["row"]
    assert (rest and json.loads(rest)) == expected.get("rest")


@pytest.mark.parametrize("vector", [each for each in READING if "value" not in each], ids=labelled)
def test_columns_agree_with_the_reference(vector: dict[str, Any]) -> None:
    """A settled row is valid, has nothing left over and the same cells; any other is all null."""
    schema, payload = schema_of(vector), payload_of(vector)
    column = schema.read_column(pa.array([payload.raw, None], pa.binary()), payload.content_type)
    reading = schema.read(payload)
    assert not column.settled[1]
    for field in schema.fields:
        cells = column.columns[field.name]
        assert cells.type == field.arrow_type
        if column.settled[0]:
            assert reading.outcome is None
            assert cells[:1].equals(pa.array([reading.row[field.name]], field.arrow_type))
            assert reading.row[REST] is None
        else:
            assert not cells[0].is_valid


def test_common_payloads_are_settled() -> None:
    """The column reader is of use: it settles what is valid and lies as expected, in nearly every vector."""
    fitting = [each for each in READING if "row" in each["expected"] and "rest" not in each["expected"]]
    binary = [each for each in fitting if "value" not in each and "content_type" not in each]
    unsettled = []
    for vector in binary:
        column = schema_of(vector).read_column(pa.array([payload_of(vector).raw], pa.binary()))
        if not column.settled[0]:
            unsettled.append(labelled(vector))
    assert len(unsettled) <= len(binary) // 8, unsettled
