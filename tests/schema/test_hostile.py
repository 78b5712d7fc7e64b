"""Any bytes and any schema: reading has an outcome, never raises and never hangs."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.schema import CompileOptions, DecodedPayload, Encoded, Payload, PayloadLimits, Unsupported, compile_schema
from wirebook.schema.validator import SchemaValidator

SECONDS = 10  # far more than any of these takes
OBJECT = {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}}
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "next", "type": ["null", "R"]},
        {"name": "list", "type": {"type": "array", "items": "null"}},
        {"name": "map", "type": {"type": "map", "values": ["null", "string", {"type": "array", "items": "R"}]}},
    ],
}
SCHEMAS = {
    "JsonSchema": OBJECT,
    "JsonStructure": {"type": "object", "properties": {"a": {"type": "any"}, "b": {"type": "int64"}}},
    "Avro": RECORD,
}
BOMBS = {
    "depth": b'{"a":' * 1_000_000,
    "brackets": b"[" * 2_000_000,
    "quotes": b'{"a":"' + b'\\"' * 1_000_000,
    "digits": b'{"a":' + b"1" * 1_000_000 + b"}",
    "long text": b'{"b":"' + b"x" * 5_000_000 + b'"}',
    "zeros": bytes(1_000_000),
    "ones": b"\x01" * 1_000_000,
    "twos": b"\x02" * 1_000_000,
    "high bits": b"\xff" * 1_000_000,
    "members": b"{" + b",".join(b'"x%d":1' % n for n in range(200_000)) + b"}",
    "errors": b'{"b":[' + b",".join([b"1"] * 500_000) + b"]}",
}


def outcomes(schema: Any, raw: bytes) -> DecodedPayload:
    """Read some bytes with `read_column` and `read`."""
    for count in (1, 20):
        schema.read_column(pa.array([raw] * count, pa.binary()))
    return schema.read(Payload(raw))  # type: ignore[no-any-return]


@pytest.mark.parametrize("format", SCHEMAS)
@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=50) | st.text('[]{}",:0123456789eE+-.truefalsn\\ud8ab').map(str.encode))
def test_any_bytes_are_read_or_rejected(format: str, raw: bytes) -> None:
    reading = outcomes(compile_schema(format, SCHEMAS[format]), raw)
    assert (reading.row is None) == (reading.outcome is not None) == bool(reading.problems)


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("format", SCHEMAS)
def test_payload_bomb_is_rejected(format: str, bomb: str) -> None:
    schema = compile_schema(format, SCHEMAS[format])
    reading = schema.read(Payload(BOMBS[bomb]))
    assert reading.outcome in (None, "undecodable", "invalid-payload", "oversized")
    assert len(json.dumps([problem.to_dict() for problem in reading.problems])) < 50_000


def test_payload_limits_are_enforced() -> None:
    schema = compile_schema("JsonSchema", OBJECT, options=CompileOptions(limits=PayloadLimits(size=30, depth=3)))
    assert schema.read(Payload(b'{"a":1}')).outcome is None
    assert schema.read(Payload(b'{"a":[[1]]}')).outcome is None
    assert schema.read(Payload(b'{"a":[[[1]]]}')).outcome == "oversized"
    assert schema.read(Payload(b'{"b":"' + b"x" * 30 + b'"}')).outcome == "oversized"
    avro = compile_schema("Avro", RECORD, options=CompileOptions(limits=PayloadLimits(size=30, depth=3)))
    assert avro.read(Payload(b"\x02" * 4)).outcome == "oversized"
    assert avro.read(Payload(bytes(31))).outcome == "oversized"


def nested(levels: int, word: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {word: schema}
    return schema


DOUBLING = {f"d{n}": {"type": "object", "properties": {
    "a": {"$ref": f"#/definitions/d{n + 1}"}, "b": {"$ref": f"#/definitions/d{n + 1}"}}}
    for n in range(30)} | {"d30": {"type": "string"}}  # fmt: skip


def doubling_records(leaf: str, *, through: str = "") -> Any:
    """Each record contains the previous one twice, optionally in a union: 2**60 types when expanded."""
    schema: Any = leaf
    for number in range(60):
        last: Any = f"R{number - 1}" if number else leaf
        types: list[Any] = [["null", schema], ["null", last]] if through == "union" and number else [schema, last]
        schema = {"type": "record", "name": f"R{number}",
                  "fields": [{"name": name, "type": n} for name, n in zip("ab", types, strict=True)]}  # fmt: skip
    return schema


def doubling(word: str, **base: Any) -> dict[str, Any]:
    """Each definition refers to the next one twice: 2**60 references when expanded."""
    definitions: dict[str, Any] = {f"d{n}": base | {word: [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(60)}
    return {"definitions": definitions | {"d60": base | {"type": "object"}}}


def doubling_by_identifier(draft: str, identifier: str, *, beside: bool = False) -> dict[str, Any]:
    """Each definition refers to the next one twice, relative to the base URI of an identifier, which does not count
    `beside` the reference.
    """
    definitions: dict[str, Any] = {"d60": {identifier: "http://e/d60/next", "type": "object"}}
    for n in range(60):
        inner: dict[str, Any] = {identifier: f"http://e/d{n + 1}/", "allOf": [{"$ref": "next"}] * 2}
        if beside:
            inner = {"allOf": [{identifier: "http://elsewhere/", "$ref": f"../d{n + 1}/next"}] * 2}
        definitions[f"d{n}"] = {identifier: f"http://e/d{n}/next", "allOf": [inner]}
    schema = f"http://json-schema.org/{draft}/schema#"
    return {"$schema": schema, "definitions": definitions, "allOf": [{"$ref": "#/definitions/d0"}]}


def unevaluated() -> dict[str, Any]:
    """Each level evaluates the next one almost three times."""
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(40):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


def circles(count: int, word: str = "allOf") -> dict[str, Any]:
    """Every definition refers to every other one."""
    references = [{"$ref": f"#/definitions/d{n}"} for n in range(count)]
    definitions = {f"d{n}": {word: references[:n] + references[n + 1 :]} for n in range(count)}
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def dynamic_references() -> dict[str, Any]:
    """Dynamic references that double, but not where they are first visited."""
    names = [f"x{n}" for n in range(61)]
    ends = {name: {"$dynamicAnchor": name} for name in names}
    library = {f"d{n}": {"allOf": [{"$dynamicRef": f"#x{n + 1}"}] * 2} for n in range(60)}
    long = {name: {"$dynamicAnchor": name, "$ref": f"library#/$defs/d{n}"} for n, name in enumerate(names)}
    return {
        "$id": "http://e/root", "allOf": [{"$ref": "short"}, {"$ref": "long"}],
        "$defs": {
            "short": {"$id": "short", "$ref": "library#/$defs/d0", "$defs": ends},
            "long": {"$id": "long", "$ref": "library#/$defs/d0", "$defs": long},
            "library": {"$id": "library", "$defs": {**library, "d60": {"type": "object"}, **ends}},
        },
    }  # fmt: skip


def extending() -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{n}": {"type": "object", "name": f"d{n}", "properties": {f"p{n}": {"type": "int32"}},
                     "$extends": [f"#/definitions/d{n + 1}"] * 2} for n in range(60)
    } | {"d60": {"type": "object", "name": "d60", "properties": {"z": {"type": "int32"}}}}  # fmt: skip
    return {"$root": "#/definitions/d0", "definitions": definitions}


WIDE: dict[str, Any] = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(2000)}}
TRAPS: dict[str, tuple[str, Any]] = {
    "a schema that is itself": ("JsonSchema", {"allOf": [{"$ref": "#"}]}),
    "a schema that is not itself": ("JsonSchema", {"not": {"$ref": "#"}}),
    "two schemas that are each other": (
        "JsonSchema",
        {"$ref": "#/definitions/a", "definitions": {"a": {"anyOf": [{"$ref": "#/definitions/b"}]},
                                                    "b": {"anyOf": [{"$ref": "#/definitions/a"}]}}},
    ),
    "nested 500 deep": ("JsonSchema", nested(500, "not")),
    "nested 100,000 deep": ("JsonSchema", nested(100_000, "items")),
    "2**30 columns": ("JsonSchema", {"$ref": "#/definitions/d0", "definitions": DOUBLING}),
    "10,000 members": ("JsonSchema", {"type": "object", "properties": {f"p{n}": {} for n in range(10_000)}}),
    "an enormous pattern": ("JsonSchema", {"type": "string", "pattern": "(a{1000}){1000}"}),
    "a pattern that others backtrack on": ("JsonSchema", {"properties": {"b": {"pattern": "^(a+)+$"}}}),
    "a type that is itself": ("JsonStructure", {"type": {"$ref": "#"}}),
    "types that are each other": (
        "JsonStructure",
        {"$root": "#/definitions/a", "definitions": {"a": {"type": [{"$ref": "#/definitions/b"}, "null"]},
                                                     "b": {"type": {"$ref": "#/definitions/a"}}}},
    ),
    "a type that extends itself": (
        "JsonStructure",
        {"$root": "#/definitions/a",
         "definitions": {"a": {"type": "object", "$extends": "#/definitions/a", "properties": {}}}},
    ),
    "a record that contains itself": ("Avro", {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}),
    "arrays in arrays": ("Avro", json.loads('{"type":"array","items":' * 150 + '"int"' + "}" * 150)),
    "records that double": ("Avro", doubling_records("int")),
    "records that double and take no bytes": ("Avro", doubling_records("null")),
    "records that double through unions": ("Avro", doubling_records("int", through="union")),
    **{f"{word} that doubles": ("JsonSchema", {"$ref": "#/definitions/d0"} | doubling(word))
       for word in ("allOf", "anyOf", "oneOf")},
    "references that double with id": ("JsonSchema", doubling_by_identifier("draft-04", "id")),
    "references that double with $id": ("JsonSchema", doubling_by_identifier("draft-07", "$id")),
    "references that double beside $id": ("JsonSchema", doubling_by_identifier("draft-07", "$id", beside=True)),
    "nested unevaluated properties": ("JsonSchema", unevaluated()),
    "schemas that are all each other": ("JsonSchema", circles(9)),
    "dynamic references that double": ("JsonSchema", dynamic_references()),
    "composition that doubles": (
        "JsonStructure",
        {"$schema": "https://json-structure.org/meta/extended/v0/#", "$root": "#/definitions/d0"} | doubling("allOf"),
    ),
    "types that extend another twice": ("JsonStructure", extending()),
    "a wide type in a tuple many times": (
        "JsonStructure",
        {"type": "tuple", "properties": {"a": WIDE}, "tuple": ["a"] * 2000},
    ),
    "a wide type that many extend": (
        "JsonStructure",
        {"type": "object", "definitions": {"B": WIDE},
         "properties": {f"p{n}": {"type": "object", "$extends": "#/definitions/B"} for n in range(2000)}},
    ),
    "many aliases of a wide record": (
        "Avro",
        {"type": "record", "name": "R", "aliases": [f"A{n}" for n in range(20_000)],
         "fields": [{"name": f"f{n}", "type": "int"} for n in range(4000)]},
    ),
    "nothing": ("Avro", None),
    "a number": ("JsonStructure", 5),
    "a list": ("JsonSchema", []),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_hostile_schema_is_compiled_or_rejected_in_bounded_time(trap: str) -> None:
    start = time.process_time()
    schema = compile_schema(*TRAPS[trap])
    assert time.process_time() - start < SECONDS
    for raw in (b"{}", b'{"b":"' + b"a" * 10_000 + b'!"}', b'{"a":' * 100 + b"1" + b"}" * 100, b"\x02" * 100, b"null"):
        reading = outcomes(schema, raw)
        assert isinstance(schema, Unsupported) == (reading.outcome == "unsupported")


EXTENDED = {"$schema": "https://json-structure.org/meta/extended/v0/#"}
NAMED: dict[str, dict[str, Any]] = {
    "record": {"type": "record", "name": "N", "fields": []},
    "enum": {"type": "enum", "name": "N", "symbols": ["A"]},
    "fixed": {"type": "fixed", "name": "N", "size": 1},
}
INVALID: dict[str, tuple[str, Any]] = {
    **{f"the aliases {aliases} of {kind}": ("Avro", NAMED[kind] | {"aliases": aliases})
       for kind in NAMED
       for aliases in (5, True, False, 0, "xy", "", {}, {"x": "y"}, [5], ["x", None])},
    **{f"the aliases {aliases} of a field": ("Avro", NAMED["record"] | {
        "fields": [{"name": "a", "type": "int", "aliases": aliases}]})
       for aliases in (5, False, "xy", {"x": "y"}, [5])},
    **{f"{keyword} {bound} of {type_}": ("JsonStructure", EXTENDED | {"type": type_, keyword: bound})
       for type_ in ("int32", "int64", "decimal", "double")
       for keyword in ("minimum", "exclusiveMaximum", "multipleOf")
       for bound in ("Infinity", "-Infinity", "NaN", "sNaN", "1e1000000", "-1e200000", "1e-1000000", "", None, True)},
    **{f"the format {format_}": ("JsonStructure", EXTENDED | {"type": "string", "format": format_})
       for format_ in ({}, [], 5, None)},
    **{f"the {keyword} {value}": ("JsonStructure", EXTENDED | {"type": "string", keyword: value})
       for keyword in ("allOf", "anyOf", "oneOf")
       for value in ({"type": "string"}, {}, "x", None)},
    **{f"the {keyword} {value}": ("JsonStructure", EXTENDED | {"type": "string", keyword: value})
       for keyword in ("not", "if", "then")
       for value in ([{"type": "string"}], [], "x", None)},
    "a bound of many digits": ("JsonStructure", EXTENDED | {"type": "int64", "maximum": "9" * 1_000_000}),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_invalid_schema_is_rejected(name: str) -> None:
    format_, schema = INVALID[name]
    assert isinstance(compile_schema(format_, schema), Unsupported)
    fault = SchemaValidator().faults(format_, json.dumps(schema).encode())
    assert fault
    assert len(fault) < 1000


@pytest.mark.parametrize("bound", ["1e300", "-1e300", "9" * 400, "0." + "9" * 400, 1e300, 5e-324, 10**300])
@pytest.mark.parametrize("type_", ["int32", "int64", "decimal", "double"])
def test_extreme_bound_is_compiled(type_: str, bound: Any) -> None:
    schema = EXTENDED | {"type": type_, "minimum": bound, "maximum": bound}
    assert not isinstance(compile_schema("JsonStructure", schema), Unsupported)
    assert SchemaValidator().faults("JsonStructure", json.dumps(schema).encode()) is None


# -- schemas in which one value is replaced ---------------------------------------------------------------------------

BASE = {"abstract": True, "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
REFERENCE = {"$ref": "#/definitions/B"}
BOUNDS = {"minimum": 1, "maximum": 9, "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 1}
STRING = {"type": "string"}
CHANGED: dict[str, tuple[str, Any]] = {
    **{type_: ("JsonStructure", EXTENDED | BOUNDS | {"type": type_}) for type_ in ("int32", "int64", "double")},
    "decimal": ("JsonStructure", EXTENDED | BOUNDS | {"type": "decimal", "precision": 9, "scale": 2}),
    "string": (
        "JsonStructure",
        EXTENDED | STRING | {"minLength": 1, "maxLength": 9, "pattern": "^a", "format": "email", "enum": ["a"]},
    ),
    "binary": ("JsonStructure", {"type": "binary", "contentEncoding": "base64", "$uses": ["JSONStructureValidation"]}),
    "array": (
        "JsonStructure",
        EXTENDED
        | {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3, "uniqueItems": True}
        | {"contains": STRING, "minContains": 1, "maxContains": 2},
    ),
    "map": (
        "JsonStructure",
        EXTENDED
        | {"type": "map", "values": STRING, "minEntries": 1, "maxEntries": 3}
        | {"keyNames": STRING, "patternKeys": {"^a": STRING}},
    ),
    "tuple": ("JsonStructure", {"type": "tuple", "properties": {"a": STRING, "b": STRING}, "tuple": ["a", "b"]}),
    "choice": ("JsonStructure", {"type": "choice", "choices": {"a": STRING, "b": {"type": "int32"}}}),
    "inline choice": (
        "JsonStructure",
        {"type": "choice", "$extends": "#/definitions/B", "selector": "kind", "choices": {"a": {"type": REFERENCE}}}
        | {"definitions": {"B": BASE | {"abstract": False}}},
    ),
    "object": (
        "JsonStructure",
        EXTENDED
        | {"name": "S", "type": "object", "$extends": "#/definitions/B", "properties": {"a": STRING}, "required": ["a"]}
        | {"additionalProperties": False, "$offers": {"A": "#/definitions/B"}, "definitions": {"B": BASE}},
    ),
    "constrained object": (
        "JsonStructure",
        EXTENDED
        | {"type": "object", "properties": {"a": STRING}, "required": [["a"], ["b"]], "has": STRING}
        | {"dependentRequired": {"a": ["b"]}, "minProperties": 1, "maxProperties": 9}
        | {"patternProperties": {"^x": STRING}, "propertyNames": STRING},
    ),
    "union": (
        "JsonStructure",
        {"$root": "#/definitions/U", "definitions": {
            "U": {"type": ["null", "string", REFERENCE]}, "B": BASE | {"abstract": False}, "n": {"N": STRING}}},
    ),
    "conditions": (
        "JsonStructure",
        EXTENDED
        | {"allOf": [STRING], "anyOf": [STRING], "oneOf": [STRING], "not": {"type": "int32"}}
        | {"if": STRING, "then": STRING, "else": STRING},
    ),
    "Avro record": (
        "Avro",
        {"type": "record", "name": "R", "namespace": "a.b", "aliases": ["Q"], "doc": "text", "fields": [
            {"name": "i", "type": "int", "default": 5, "doc": "text", "aliases": ["j"]},
            {"name": "d", "type": "double", "default": 1.5},
            {"name": "u", "type": ["null", "string", "R"], "default": "a"},
            {"name": "a", "type": {"type": "array", "items": "int"}, "default": [1]},
            {"name": "m", "type": {"type": "map", "values": "int"}, "default": {"a": 1}},
            {"name": "r", "type": {"type": "record", "name": "I", "fields": []}, "default": {}},
        ]},
    ),
    "Avro enum": ("Avro", {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A", "aliases": ["F"]}),
    "Avro decimal": (
        "Avro",
        {"type": "fixed", "name": "F", "size": 6, "logicalType": "decimal", "precision": 10, "scale": 2},
    ),
    "Avro time": ("Avro", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
}  # fmt: skip
REPLACEMENTS: tuple[Any, ...] = (
    None, True, False, 0, 5, -1, 1.5, 1e300, 5e-324, 10**40, 10**4000, "", "x", "null", "Infinity", "NaN", "1e1000000",
    "1e-999999999", "9" * 5000, "1e99999999999999999999", "#", "(?=a)", [], [None], ["x"], [[]], [{}], {}, {"x": 5},
    {"x": {}}, STRING,
)  # fmt: skip


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a document."""
    yield path
    members = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, member in members:
        yield from places(member, (*path, name))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = replaced(document[path[0]], path[1:], value)
    return changed


@pytest.mark.parametrize("name", CHANGED)
def test_schema_with_any_value_replaced_is_checked_compared_and_used(name: str) -> None:
    format_, schema = CHANGED[name]
    validator, original = SchemaValidator(), json.dumps(schema).encode()
    assert validator.faults(format_, original) is None
    for path in places(schema):
        for value in REPLACEMENTS:
            changed = replaced(schema, path, value)
            document = json.dumps(changed).encode()
            compiled = compile_schema(format_, changed)
            if not isinstance(compiled, Unsupported):
                assert all(field.doc is None or isinstance(field.doc, str) for field in compiled.fields)
                for payload in ({}, {"a": "x"}, 5, "5", ["x"], None):
                    compiled.read(Payload(json.dumps(payload).encode()))
                    assert isinstance(compiled.encode(payload), Encoded)
            if validator.faults(format_, document) is None:
                for rule in ("backward", "forward"):
                    validator.incompatible(rule, format_, original, document)


def test_schemas_that_refer_back_are_compiled() -> None:
    """A base type that lists its subtypes, which refer to the base type: common in OpenAPI documents."""
    subtypes = [f"T{n}" for n in range(20)]
    base = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in subtypes]}
    definitions = {name: {"allOf": [{"$ref": "#/definitions/base"}, {"required": [name]}]} for name in subtypes}
    for schema in (circles(3), {"$ref": "#/definitions/base", "definitions": {"base": base, **definitions}}):
        assert not isinstance(compile_schema("JsonSchema", schema), Unsupported)
