"""Payloads that Arrow parses, and whose columns are checked, are valid and as `read` returns them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.schema.payloads import broken, damaged, text
from tests.schema.test_columns import check
from wirebook.schema import Payload, compile_schema
from wirebook.schema.json_columns import MOST_PAUSED, Attempts, JsonColumns
from wirebook.schema.json_reader import MIN_CHECKED, JsonReader

Schema = dict[str, Any]
TEXTS = ("", "a", "abc", "null", "é€😀", 'say "hi"\n', "2026-01-02", "2026-02-30")
INSTANTS = (
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.123456+02:00",
    "2026-01-02T03:04:05.1234567Z",
    "2026-02-30T00:00:00Z",
)
NUMBERS = (0, 1, -1, 5, 7.5, -0.0, 1e-400, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 1e300, 10**30)


class Maker:
    """Random schemas, most of which columns can check, and values that often fit them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.definitions: dict[str, Schema] = {}

    def schema(self) -> Schema:
        draft = self.random.choice(
            ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
        )
        return {"$schema": draft, **self.object(2), "definitions": self.definitions}

    def object(self, level: int) -> Schema:
        names = self.random.sample(["a", "b", "c/d", "e~f", "g h"], self.random.randint(1, 4))
        schema: Schema = {"type": "object", "properties": {name: self.member(level) for name in names}}
        if self.random.random() < 0.6:
            schema["required"] = self.random.sample(names, self.random.randint(1, len(names)))
        if self.random.random() < 0.3:
            schema["additionalProperties"] = self.random.choice([True, False])
        return schema

    def member(self, level: int) -> Schema:
        chance = self.random.random()
        if level and chance < 0.2:
            schema = self.object(level - 1)
        elif level and chance < 0.35:
            limits = self.some({"minItems": 1, "maxItems": 2})
            schema = {"type": "array", "items": self.member(level - 1), **limits}
        else:
            schema = self.scalar()
        if self.random.random() < 0.2 and "type" in schema:
            schema["type"] = [schema["type"], "null"]
        if self.random.random() < 0.15:
            name = f"definition{len(self.definitions)}"
            self.definitions[name] = schema
            return {
                "$ref": f"#/definitions/{name}",
                **self.some({"description": "referred", "maxLength": 3, "minimum": 1}),
            }
        return {**schema, **self.some({"title": "a title", "x-note": 1})}

    def scalar(self) -> Schema:
        kind = self.random.choice(["string", "instant", "date", "integer", "number", "boolean", "enum", "both"])
        if kind == "string":
            return {"type": kind, **self.some({"minLength": 1, "maxLength": 3, "pattern": "^[a-z]*$"})}
        if kind in ("instant", "date"):
            return {
                "type": "string",
                "format": "date-time" if kind == "instant" else "date",
                **self.some({"minLength": 11}),
            }
        if kind in ("integer", "number"):
            return {"type": kind, **self.some({"minimum": 0, "exclusiveMaximum": 7.5, "multipleOf": 0.5})}
        if kind == "enum":
            return {"enum": self.random.choice([["a", "abc"], [1, 5], [1, 7.5], ["a", None], [True]])}
        if kind == "both":
            return {"allOf": [{"type": "string", "minLength": 1}, {"maxLength": 3}]}
        return {"type": kind}

    def some(self, keywords: Schema) -> Schema:
        return {name: value for name, value in keywords.items() if self.random.random() < 0.25}

    def value(self, schema: Schema) -> Any:
        """A value of about the right kind."""
        while "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        types = schema.get("type", "string")
        kind = types if isinstance(types, str) else self.random.choice([types[0], types[0], "null"])
        if kind == "object":
            required = schema.get("required", ())
            members = {
                name: member
                for name, member in schema["properties"].items()
                if name in required or self.random.random() < 0.7
            }
            return {name: self.value(member) for name, member in members.items()}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(self.random.randint(0, 3))]
        if kind == "string":
            fitting = {"date-time": INSTANTS, "date": TEXTS[6:]}.get(
                schema.get("format", ""), ("a", "abc", "abc", *TEXTS)
            )
            return self.random.choice(fitting)
        if kind in ("integer", "number"):
            number = self.random.choice((0, 1, 5, *NUMBERS))
            return int(number) if kind == "integer" and number == number // 1 else number
        return self.random.random() < 0.5 if kind == "boolean" else None


@pytest.mark.parametrize("seed", range(150))
def test_random_schemas(seed: int) -> None:
    random = Random(seed)
    maker = Maker(random)
    document = maker.schema()
    schema = compile_schema("JsonSchema", document)
    assert isinstance(schema, JsonReader)
    rows = []
    for _ in range(60):
        value, chance = maker.value(document), random.random()
        value = broken(value, random) if chance < 0.1 else value
        raw = json.dumps(value).encode() if chance < 0.8 else text(value, random)
        rows.append(damaged(raw, random) if chance > 0.98 else raw)
    check(schema, list(rows))


def columns_of(document: Schema) -> JsonColumns | None:
    schema = compile_schema("JsonSchema", document)
    assert isinstance(schema, JsonReader)
    return schema.json_columns


def settled(document: Schema, *texts: str) -> list[bool]:
    columns = columns_of(document)
    assert columns is not None
    return columns.read(pa.array([text.encode() for text in texts], pa.binary())).settled.tolist()


def test_most_random_schemas_are_checked_by_columns() -> None:
    checked = [columns_of(Maker(Random(seed)).schema()) is not None for seed in range(150)]
    assert sum(checked) > 75


def test_orders_are_settled() -> None:
    """A schema with references, bounds, an enumeration and a list, and the orders of a shop."""
    line = {
        "type": "object",
        "properties": {"sku": {"type": "string", "pattern": "^[A-Z]+$"}, "count": {"type": "integer", "minimum": 1}},
    }
    document = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "at": {"type": "string", "format": "date-time"},
            "state": {"enum": ["open", "paid"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1},
            "note": {"type": ["string", "null"], "maxLength": 5},
        },
        "required": ["id", "at", "lines"],
        "$defs": {"line": {**line, "required": ["sku", "count"]}},
    }  # fmt: skip
    order = {"id": "6f1a3c1e-8a1b-4c1d-9e1f-0a1b2c3d4e5f", "at": "2026-01-02T03:04:05Z", "state": "open"}
    order |= {"lines": [{"sku": "AB", "count": 1}, {"sku": "C", "count": 2}]}
    assert settled(document, *map(json.dumps, [order, order | {"note": None}, order | {"note": "short"}])) == [True] * 3
    wrong = [
        {"state": "lost"},
        {"note": "too long"},
        {"lines": []},
        {"lines": [{"sku": "AB", "count": 0}]},
        {"at": None},
    ]
    wrong += [{"lines": [{"sku": "AB"}]}, {"lines": [None]}, {"more": 1}]
    assert settled(document, *(json.dumps(order | change) for change in wrong)) == [False] * len(wrong)


@pytest.mark.parametrize(
    "member",
    [
        {"type": "number", "multipleOf": 0.1},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "properties": {"a": {"type": "string"}}, "if": {"required": ["a"]}},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": ["string", "integer"]},
        {},
        True,
    ],
)
def test_other_schemas_are_left_to_the_validator(member: Any) -> None:
    assert columns_of({"type": "object", "properties": {"member": member}}) is None


def combined(part: Schema, draft: str = "https://json-schema.org/draft/2020-12/schema") -> Schema:
    """An object that must also satisfy a part."""
    members = {"type": "object", "properties": {"b": {"type": "string"}}}
    return {"$schema": draft, **members, "allOf": [part], "$defs": {"a": {"properties": {"a": {"type": "string"}}}}}


@pytest.mark.parametrize(
    "part",
    [
        {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
        {"required": ["other"]},
        {"$id": "https://example.com/part", "properties": {"a": {"type": "string"}}},
    ],
)
def test_parts_that_columns_cannot_check(part: Schema) -> None:
    """A part of `allOf` that is closed, or names a member without a column, or has references of its own."""
    assert columns_of(combined(part)) is None


def test_keywords_beside_a_reference_count_as_the_draft_says() -> None:
    part = {"$ref": "#/$defs/a", "required": ["a"]}
    assert settled(combined(part), '{"a":"x"}', '{"b":"x"}') == [True, False]
    assert columns_of(combined(part, "http://json-schema.org/draft-07/schema#")) is None


def test_null_and_absent() -> None:
    members = {"one": {"type": "string"}, "two": {"type": ["string", "null"]}, "three": {"type": ["string", "null"]}}
    document = {"type": "object", "properties": members, "required": ["three"]}
    texts = ['{"three":"x"}', '{"one":"null","three":"x"}', '{"one":"x","two":null,"three":"x"}']
    assert settled(document, *texts) == [True, True, True]
    wrong = [
        '{"two":null,"three":"x"}',
        '{"one":null,"three":"x"}',
        '{"one":"x","three":null}',
        '{"one":"x","two":"x"}',
    ]
    assert (
        settled(document, *wrong) == [False] * 4
    )  # of the first, `one` may be null; of the third, `three` may be absent


def test_columns_that_are_not_worth_it_are_tried_less_and_less() -> None:
    """A producer may send what no column holds, such as members that the schema does not name."""
    attempts, tried = Attempts(), []
    for number in range(200):
        if attempts.is_due():
            tried.append(number)
            attempts.note(is_worth_it=False)
    assert tried == [0, 2, 5, 10, 19, 36, 69, 134, 199]
    assert attempts.pause == MOST_PAUSED
    attempts.note(is_worth_it=True)
    assert attempts.is_due()


def test_columns_and_values_are_read_alike() -> None:
    """Some rows of a long column are settled by columns, the others as values."""
    schema = compile_schema("JsonSchema", {"type": "object", "properties": {"a": {"type": "integer", "maximum": 400}}})
    rows = [b'{"a":%d%s}' % (number, b"" if number % 10 else b',"more":1') for number in range(2 * MIN_CHECKED)]
    column = schema.read_column(pa.array(rows, pa.binary()))
    assert column.settled.tolist() == [number <= 400 for number in range(len(rows))]
    assert column.columns["a"].to_pylist() == [n if n <= 400 else None for n in range(len(rows))]
    assert column.columns["_rest"][10].as_py() == '{"more":1}'
    assert schema.read(Payload(rows[401])).outcome == "invalid-payload"
