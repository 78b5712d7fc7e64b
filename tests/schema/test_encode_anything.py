"""Writing accepts any Python value: it returns a payload or problems, and never raises."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.test_encode import RECORD
from tests.schema.test_protobuf import SCHEMAS
from tests.schema.test_xsd import ORDER, RECURSIVE, compiled
from wirebook.schema import Encoded, compile_schema

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 10**400, 1.5, float("nan"), float("inf"), 1j, "", "x", "1", "é", "\ud800", "\0", "1e400",
    "<", "<a/>", "2024-01-01T00:00:00Z", b"", b"\xff", [], {}, [None], (1, 2), {"a": 1}, {1: 2}, {None: 1}, {"": {}},
    set(), object(),
    Decimal("1.5"), Decimal("NaN"), Decimal("Infinity"), datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), date(1, 1, 1), time(1), timedelta(1), UUID(int=5),
    {"seconds": 1}, {"type_url": 1}, {"paths": [None]}, {"@type": "x"}, {"<q>": ["<q>"]}, {"<q>": 5}, {"@xsi:type": 5},
)  # fmt: skip
LOGICAL = {"type": "record", "name": "R", "fields": [
    {"name": "a", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}]},
    {"name": "b", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "c", "type": ["null", "R", "string", "long"]},
    {"name": "d", "type": {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}},
    {"name": "e", "type": {"type": "int", "logicalType": "date"}},
]}  # fmt: skip
WRITERS: dict[str, Any] = {
    "XML": compiled(ORDER),
    "XML, recursive": compiled(RECURSIVE),
    "Avro": compile_schema("Avro", RECORD),
    "Avro, logical types": compile_schema("Avro", LOGICAL),
    "JSON Schema": compile_schema("JsonSchema", {"properties": {"a": {"type": "integer"}, "b": {"format": "date"}}}),
    "JSON Structure": compile_schema("JsonStructure", {"type": "object", "properties": {"a": {"type": "decimal"}}}),
    **{f"Protobuf, {name}": schema for name, schema in SCHEMAS.items()},
}


def value_of(random: Random, names: list[str], level: int = 0) -> Any:
    chance = random.random()
    if level and (level > 3 or chance < 0.4):
        return random.choice(VALUES)
    if level == 0 or chance < 0.8:
        return {random.choice(names): value_of(random, names, level + 1) for _ in range(random.randint(0, 5))}
    return [value_of(random, names, level + 1) for _ in range(random.randint(0, 3))]


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_any_python_value_is_encoded_or_rejected(name: str, seed: int) -> None:
    writer, random = WRITERS[name], Random(seed)
    names = [*(field.name for field in writer.fields), "a", "x", "value"]
    for value in (value_of(random, names), random.choice(VALUES)):
        for content_type in (None, "application/json"):
            encoded = writer.encode(value, content_type)
            assert isinstance(encoded, Encoded)
            assert (encoded.payload is None) is bool(encoded.problems)
