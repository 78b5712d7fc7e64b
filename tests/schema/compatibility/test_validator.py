"""The validator of the registry: format names, invalid documents, incompatibilities as text, and hostile schemas."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.attributes import COMPATIBILITIES
from wirebook.core.model.offered_formats import FORMATS, OFFER
from wirebook.schema.validator import SchemaValidator

VALIDATOR: DocumentValidator = SchemaValidator()
SECONDS = 20  # far more than any of these takes
HEAD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
RECORD: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


def xsd(content: str) -> str:
    return f"{HEAD}{content}</xs:schema>"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network is not to be used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("JsonSchema/draft-07", "JsonSchema"),
        ("JSONSchema/Draft-07", "JsonSchema"),
        ("jsonschema", "JsonSchema"),
        ("jsonschema/draft-99", "JsonSchema"),
        ("JsonSchema/draft/2020-12", "JsonSchema"),
        ("Avro/1.11.0", "Avro"),
        ("AVRO", "Avro"),
        ("Protobuf/3", "Protobuf"),
        ("Proto/3", "Protobuf"),
        ("protobuf/2.0", "Protobuf"),
        ("XSD/1.1", "XSD"),
        ("XMLSchema/1.0", "XSD"),
        ("JSONStructure", "JsonStructure"),
        ("JsonStructure/draft-04", "JsonStructure"),
        ("numbers", None),
        ("OpenAPI/3", None),
        ("", None),
    ],
)
def test_format_name_ignores_case_and_has_aliases(name: str, family: str | None) -> None:
    assert VALIDATOR.family(name) == family
    assert VALIDATOR.rules(name) == (frozenset(COMPATIBILITIES) if family else frozenset())


def test_every_format_offers_all_rules() -> None:
    assert OFFER.formats == FORMATS == tuple(sorted(FORMATS))
    assert {len(rules) for rules in OFFER.rules.values()} == {6}
    assert all(VALIDATOR.family(pattern.removesuffix("*")) for pattern in OFFER.formats)


VALID: list[tuple[str, Any]] = [
    ("jsonschema", {}),
    ("jsonschema", True),
    ("jsonschema", {"type": "object"}),
    ("jsonschema", {"$ref": "https://x.test/elsewhere"}),
    ("jsonschema/draft-04", {"id": "https://x.test/a", "minimum": 1, "exclusiveMinimum": True}),
    ("avro", "string"),
    ("avro", RECORD),
    ("avro", ["null", RECORD]),
    ("avro", {"type": {"type": "array", "items": "int"}}),
    ("jsonstructure", {"type": "int32"}),
    ("jsonstructure", {"$root": "#/definitions/A", "definitions": {"A": {"type": "string"}}}),
    ("jsonstructure", {"definitions": {"n": {"A": {"type": "object", "properties": {}}}}}),
]
INVALID: list[tuple[str, Any]] = [
    ("jsonschema", {"type": 5}),
    ("jsonschema", []),
    ("jsonschema", 7),
    ("jsonschema", {"required": "a"}),
    ("jsonschema", {"properties": {"a": {"minimum": "1"}}}),
    ("jsonschema/draft-04", {"exclusiveMinimum": 1}),
    ("jsonschema/draft-04", True),
    ("jsonschema", {"$schema": 5}),
    ("avro", {}),
    ("avro", "strin"),
    ("avro", {"type": "record"}),
    ("avro", {"type": "enum", "name": "E", "symbols": ["A", "A"]}),
    ("avro", {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}),
    ("avro", ["int", "int"]),
    ("avro", RECORD | {"fields": [{"name": "a", "type": "int", "default": "x"}]}),
    ("avro", RECORD | {"fields": [{"name": "a", "type": "Unknown"}]}),
    ("jsonstructure", {}),
    ("jsonstructure", []),
    ("jsonstructure", {"type": "int33"}),
    ("jsonstructure", {"type": {"$ref": "#/definitions/none"}}),
]
VALID_TEXTS = [
    ("Protobuf/3", 'syntax = "proto3"; message M { int32 a = 1; }'),
    ("Protobuf/3", "message M { int32 a = 1; }"),
    ("Protobuf/2", "message M { required int32 a = 1; }"),
    ("Protobuf/2.0", 'syntax = "proto2"; message M { required int32 a = 1; }'),
    ("Protobuf", 'syntax = "proto2"; message M { required int32 a = 1; }'),
    ("Protobuf/31.1", 'syntax = "proto2"; message M { required int32 a = 1; }'),
    ("Protobuf/3", 'edition = "2023"; message M { int32 a = 1; }'),
    ("Protobuf/3", 'import "x/y.proto"; message M { x.Y a = 1; .x.Z.Inner b = 2; }'),
    ("Protobuf/3", 'import "x/y.proto"; message M { int32 a = 1 [(x.rule) = true]; }'),
    ("XSD/1.0", xsd('<xs:element name="o" type="xs:int"/>')),
    ("XSD/1.0", xsd('<xs:include schemaLocation="a.xsd"/><xs:element name="o" type="T"/>')),
    ("XSD", xsd('<xs:import namespace="urn:a"/><xs:element name="o" type="a:T" xmlns:a="urn:a"/>')),
]
INVALID_TEXTS = [
    ("Protobuf/3", "message M { int32 a = 1 }"),
    ("Protobuf/3", "message M { int32 a = 1; int32 b = 1; }"),
    ("Protobuf/3", "message M { Unknown a = 1; }"),
    ("Protobuf/3", 'import "x/y.proto"; message M { x.Y a = 1 }'),
    ("Protobuf/3", "{}"),
    ("Protobuf/3", 'syntax = "proto2"; message M { optional int32 a = 1; }'),
    ("PROTOBUF/2", 'syntax = "proto3"; message M { optional int32 a = 1; }'),
    ("Protobuf/3.0", 'import "x/y.proto"; /* */ syntax = "proto2"; message M { optional x.Y a = 1; }'),
    ("XSD/1.0", "<a/>"),
    ("XSD/1.0", "text"),
    ("XSD/1.0", xsd('<xs:element name="o" type="xs:itn"/>')),
    ("XSD/1.0", xsd('<xs:include schemaLocation="a.xsd"/><xs:element nam="o"/>')),
    ("XSD/1.0", '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + xsd("&e;")),
    ("Avro", "string"),
    ("JsonSchema", "{"),
    ("JsonSchema", '{"a": NaN}'),
    ("JsonSchema", "[" * 5000),
]


@pytest.mark.parametrize("format_", ["jsonschema", "avro", "protobuf", "xsd", "jsonstructure", "xmlschema/1.1"])
@pytest.mark.parametrize("document", [b"", b" \n", b"\xff\xfe", b"\x00"])
def test_empty_or_undecodable_document_is_rejected(format_: str, document: bytes) -> None:
    assert VALIDATOR.faults(format_, document)


@pytest.mark.parametrize(("format_", "document"), [*((f, json.dumps(d)) for f, d in VALID), *VALID_TEXTS])
def test_valid_schema_is_accepted(format_: str, document: str) -> None:
    assert VALIDATOR.faults(format_, document.encode()) is None


@pytest.mark.parametrize(("format_", "document"), [*((f, json.dumps(d)) for f, d in INVALID), *INVALID_TEXTS])
def test_invalid_schema_is_rejected_with_a_reason(format_: str, document: str) -> None:
    assert VALIDATOR.faults(format_, document.encode())


def test_incompatibility_names_path_rule_old_and_new() -> None:
    old, new = b'{"type": "integer"}', b'{"type": "string"}'
    text = '/type: type-narrowed (old: {"type": "integer"}, new: ["string"])'
    hint = "To fix: in the new schema, accept every type that the old schema allows"
    assert VALIDATOR.incompatible("backward", "JsonSchema", old, new) == f"{text}. {hint}"
    assert VALIDATOR.incompatible("backward", "JsonSchema", old, old) is None
    assert VALIDATOR.incompatible("forward", "Avro", b'"long"', b'"int"') is None
    assert VALIDATOR.incompatible("backward", "Avro", b'"long"', b'"int"') == "/: type-mismatch (old: long, new: int)"


def test_many_incompatibilities_are_counted() -> None:
    documents = [{"properties": {f"p{at}": {"type": type_} for at in range(9)}} for type_ in ("number", "integer")]
    old, new = (json.dumps(document).encode() for document in documents)
    answer = str(VALIDATOR.incompatible("backward", "jsonschema", old, new))
    assert "; and 6 more. To fix: " in answer
    assert answer.count("in the new schema, accept") == 1


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
WIDER = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
STRICT = SchemaValidator(as_declared=False)


def compared(rule: str, old: Any, new: Any, validator: DocumentValidator = VALIDATOR) -> str | None:
    return validator.incompatible(rule, "JsonSchema/draft/2020-12", json.dumps(old).encode(), json.dumps(new).encode())


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"additionalProperties": True},
        {"additionalProperties": {}},
        {"unevaluatedProperties": True},
        {"required": ["a"]},
        {"patternProperties": {"^x-": {"type": "string"}}},
        {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": True},
    ],
)
def test_optional_property_added_or_removed_in_open_object_is_compatible(more: dict[str, Any]) -> None:
    def nested(schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "properties": {"n": schema, "l": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
            "$defs": {"x": schema},
        }

    for rule in ("backward", "forward"):
        assert compared(rule, {**OPEN, **more}, {**WIDER, **more}) is None
        assert compared(rule, nested({**OPEN, **more}), nested({**WIDER, **more})) is None
        assert compared(rule, {**WIDER, **more}, {**OPEN, **more}) is None
    assert "property-added-to-open-content" in str(compared("backward", {**OPEN, **more}, {**WIDER, **more}, STRICT))


def test_pattern_properties_added_to_open_object_are_compatible() -> None:
    wider = {**OPEN, "patternProperties": {"^x-": {"type": "string"}}}
    for old in (OPEN, {**OPEN, "additionalProperties": True}):
        assert compared("backward", old, {**old, **wider}) is None
        assert compared("backward", old, {**old, **wider}, STRICT)
    assert "type-narrowed" in str(
        compared("backward", wider, {**wider, "patternProperties": {"^x-": {"type": "null"}}})
    )
    assert compared("backward", OPEN, {**OPEN, "patternProperties": {"^a": {"type": "null"}}})
    for constrained in (
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^xy": {"type": "string"}}},
    ):
        for pattern in ("^x", "^xyz"):
            more = {**constrained.get("patternProperties", {}), pattern: {"type": "integer"}}
            old = {**OPEN, **constrained}
            assert compared("backward", old, {**old, "patternProperties": more}), (constrained, pattern)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (OPEN, {**WIDER, "required": ["b"]}, "required-added"),
        ({**OPEN, "required": ["b"]}, WIDER, "type-narrowed"),
        ({**OPEN, "additionalProperties": {"type": "string"}}, WIDER, "property-added-to-open-content"),
        ({**OPEN, "patternProperties": {"^b": {"type": "string"}}}, WIDER, "property-added-to-open-content"),
        (
            {**OPEN, "additionalProperties": True},
            {**OPEN, "additionalProperties": False},
            "additional-properties-closed",
        ),
        (OPEN, {**OPEN, "properties": {"a": {"type": "null"}}}, "type-narrowed"),
    ],
)
def test_narrowed_property_that_documents_may_have_is_incompatible(old: Any, new: Any, rule: str) -> None:
    assert rule in str(compared("backward", old, new))
    assert rule in str(compared("forward", new, old))


def test_incompatibility_names_the_schema_to_change() -> None:
    required = {**WIDER, "required": ["b"]}
    backward, forward = compared("backward", OPEN, required), compared("forward", required, OPEN)
    assert str(backward).endswith("To fix: make the property optional in the new schema")
    assert str(forward).endswith("To fix: make the property optional in the old schema")
    strict = str(compared("backward", OPEN, WIDER, STRICT))
    assert 'set "additionalProperties": false in the old schema' in strict


# -- hostile ----------------------------------------------------------------------------------------------------------


def _many_choices(word: str, type_: str) -> dict[str, Any]:
    part = {word: [{"properties": {f"p{at}": {"type": type_}}, "required": [f"p{at}"]} for at in range(6)]}
    return {"allOf": [{**part, "title": str(at)} for at in range(12)]}


def _deep_references(type_: str) -> dict[str, Any]:
    """Each definition refers to the next one twice: 2 to the power of 60 when expanded."""
    definitions: dict[str, Any] = {}
    for at in range(60):
        following = {"$ref": f"#/$defs/d{at + 1}"}
        definitions[f"d{at}"] = {"anyOf": [{"properties": {name: following}} for name in "ab"]}
    return {"$defs": {**definitions, "d60": {"type": type_}}, "$ref": "#/$defs/d0"}


def _doubling(type_: str) -> dict[str, Any]:
    """The same with `allOf`, for the same value."""
    definitions: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)}
    return {"$defs": {**definitions, "d60": {"type": type_}}, "$ref": "#/$defs/d0"}


def _circles(type_: str) -> dict[str, Any]:
    """Every definition refers to every other one."""
    references = [{"$ref": f"#/$defs/d{at}"} for at in range(12)]
    definitions = {f"d{at}": {"allOf": references[:at] + references[at + 1 :]} for at in range(12)}
    return {"$defs": definitions, "$ref": "#/$defs/d0", "type": type_}


def _wide_union(type_: str) -> list[Any]:
    return [RECORD | {"name": f"R{at}", "fields": [{"name": "n", "type": [*(f"R{to}" for to in range(at)), type_]}]}
            for at in range(40)]  # fmt: skip


def _deep_default() -> dict[str, Any]:
    """Two branches fit each level of the default, except its innermost value."""
    inner = {"type": "record", "name": "B", "fields": [{"name": "n", "type": ["null", "A", "B"]}]}
    outer = {"type": "record", "name": "A", "fields": [{"name": "n", "type": ["null", "A", inner]}]}
    default: Any = 5
    for _ in range(28):
        default = {"n": default}
    return RECORD | {"fields": [{"name": "a", "type": outer, "default": default}]}


def _content(inner: str) -> str:
    return xsd(f'<xs:element name="o"><xs:complexType>{inner}</xs:complexType></xs:element>')


def _occurrences(count: int) -> str:
    inner = (f'<xs:element name="e{at}" type="xs:int" minOccurs="0" maxOccurs="{count}"/>' for at in range(30))
    return _content(f"<xs:sequence>{''.join(inner)}</xs:sequence>")


def _any_order(more: str) -> str:
    inner = (f'<xs:element name="e{at}" {more if at == 3 else ""}/>' for at in range(20))
    return _content(f"<xs:all>{''.join(inner)}</xs:all>")


def _unions(base: str) -> str:
    """Each union type has the next one as a member twice: 2 to the power of 60 members when expanded."""
    types = (f'<xs:simpleType name="u{at}"><xs:union memberTypes="u{at + 1} u{at + 1}"/></xs:simpleType>'
             for at in range(60))  # fmt: skip
    last = f'<xs:restriction base="{base}"><xs:minLength value="3"/></xs:restriction>'
    return xsd(f'{"".join(types)}<xs:simpleType name="u60">{last}</xs:simpleType><xs:element name="o" type="u0"/>')


def _properties(count: int, type_: str) -> dict[str, Any]:
    return {"properties": {f"p{at}": {"type": type_} for at in range(count)}}


def _many_required(type_: str) -> dict[str, Any]:
    definitions = {
        base: {
            "type": "object",
            "properties": {"a": {"type": type_}},
            "required": [f"{base}{at}" for at in range(60_000)],
        }
        for base in "AB"
    }
    bases = [f"#/definitions/{base}" for base in definitions]
    return {"type": "object", "properties": {}, "$extends": bases, "definitions": definitions}


ALIASES = [f"A{at}" for at in range(20000)]
HOSTILE: dict[str, tuple[str, Any, Any]] = {
    "choices in choices": ("jsonschema", _many_choices("anyOf", "number"), _many_choices("anyOf", "integer")),
    "one of many": ("jsonschema", _many_choices("oneOf", "number"), _many_choices("oneOf", "integer")),
    "references in references": ("jsonschema", _deep_references("number"), _deep_references("integer")),
    "references that double": ("jsonschema", _doubling("number"), _doubling("integer")),
    "unevaluated references that double": (
        "jsonschema",
        _doubling("object") | {"unevaluatedProperties": False},
        _doubling("object") | {"unevaluatedProperties": False, "minProperties": 1},
    ),
    "circles": ("jsonschema", _circles("number"), _circles("integer")),
    "a reference to itself": ("jsonschema", {"$ref": "#"}, {"$ref": "#", "minLength": 1}),
    "a circle": ("jsonschema", {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {"type": "string"}),
    "a choice within itself": ("jsonschema", {"oneOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
    "many properties": ("jsonschema", _properties(4000, "number"), _properties(4000, "integer")),
    "a pattern that backtracks": ("jsonschema", {"const": "a" * 5000 + "b"}, {"pattern": "^(a+)+$"}),
    "look-around": ("jsonschema", {"pattern": "^(?=a)"}, {"patternProperties": {"(?=a)": False}, "pattern": "(?<!b)"}),
    "many digits": ("jsonschema", {"minimum": 10**400}, {"minimum": 10**401, "multipleOf": 1e-300}),
    "no address": ("jsonschema", {"$id": "::%%", "properties": {"a": {"$id": "http://[", "$ref": "x"}}}, {"$ref": "["}),
    "names in names": ("avro", _wide_union("int"), _wide_union("string")),
    "a deep default": ("avro", _deep_default(), _deep_default()),
    "many aliases": ("avro", RECORD | {"aliases": ALIASES}, RECORD | {"name": "Q", "aliases": ALIASES}),
    "occurrences": ("xsd", _occurrences(1000), _occurrences(999)),
    "unions in unions": ("xsd", _unions("xs:string"), _unions("xs:token")),
    "any order": ("xsd", _any_order(""), _any_order('minOccurs="0"')),
    "many required names": ("jsonstructure", _many_required("int32"), _many_required("int16")),
    "types without end": ("jsonstructure", {"type": "array", "items": {"$ref": "#"}}, {"type": {"$ref": "#"}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pair_is_compared_in_bounded_time(name: str) -> None:
    """Whatever the answer: it comes soon, and it is not an exception."""
    format_, old, new = HOSTILE[name]
    raws = [schema.encode() if isinstance(schema, str) else json.dumps(schema).encode() for schema in (old, new)]
    start = time.process_time()
    faults = [VALIDATOR.faults(format_, raw) for raw in raws]
    for rule in () if any(faults) else ("backward", "forward"):
        answer = VALIDATOR.incompatible(rule, format_, *raws)
        assert answer is None or 0 < len(answer) < 2000
    assert time.process_time() - start < SECONDS


def _nested_content(name: str, levels: int) -> str:
    inner = f'<xs:element name="{name}" type="xs:string"/>'
    return _content("<xs:sequence>" * levels + inner + "</xs:sequence>" * levels)


@pytest.mark.filterwarnings("ignore:can't verify the content model")
@pytest.mark.parametrize(("levels", "rule"), [(5, "element-removed"), (62, "cannot-be-shown")])
def test_renamed_element_in_nested_content_is_incompatible(levels: int, rule: str) -> None:
    answer = VALIDATOR.incompatible("backward", "xsd", *[_nested_content(name, levels).encode() for name in "ab"])
    assert rule in (answer or "")


def test_end_of_the_stack_is_no_panic_wherever_it_is() -> None:
    """The registry of schemas is native code, in which the end of the stack is not an exception."""
    format_, *schemas = HOSTILE["references in references"]
    old, new = (json.dumps(schema).encode() for schema in schemas)

    def above(frames: int) -> str | None:
        return above(frames - 1) if frames else VALIDATOR.incompatible("backward", format_, old, new)

    for frames in range(0, 120, 3):
        answer = above(frames)
        assert answer is None or len(answer) < 2000


@pytest.mark.parametrize(
    ("format_", "old", "new"),
    [
        (
            "Protobuf/3",
            'syntax = "proto3"; message M { int32 a = 1; }',
            'syntax = "proto3"; message M { string a = 1; }',
        ),
        ("XSD/1.1", xsd('<xs:element name="a" type="xs:int"/>'), xsd('<xs:element name="a" type="xs:date"/>')),
        ("Avro/1.11.0", '{"type": "array", "items": "int"}', '{"type": "array", "items": "string"}'),
        ("JsonSchema/draft-07", '{"type": "integer"}', '{"type": "string"}'),
    ],
)
def test_schema_in_a_json_string_is_validated_as_its_text(format_: str, old: str, new: str) -> None:
    """A registry stores a schema sent as text without a content type as a JSON string."""
    quoted = [json.dumps(text).encode() for text in (old, new)]
    assert [VALIDATOR.faults(format_, document) for document in quoted] == [None, None]
    assert VALIDATOR.faults(format_, json.dumps(old[:-1]).encode())
    for rule in ("backward", "forward"):
        assert VALIDATOR.incompatible(rule, format_, old.encode(), quoted[0]) is None
        assert VALIDATOR.incompatible(rule, format_, *quoted)
