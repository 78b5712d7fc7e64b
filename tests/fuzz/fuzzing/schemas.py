"""Fuzz schemas: damaged real ones and hostile invented ones, with payloads to validate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from synthesis.dice import Dice
from synthesis.rich import PARTS, SCHEMAS

from fuzzing import junk, stock
from fuzzing.case import Input
from fuzzing.payloads import read_both
from wirebook.schema import Encoder, Unsupported, compile_schema
from wirebook.schema.source import SchemaText

FAMILIES = ("json-schema", "json-structure", "avro", "protobuf", "xsd")
FORMATS = {
    "json-schema": ("JsonSchema/draft-07", "JsonSchema/draft/2020-12", "JsonSchema/draft-04", "JsonSchema"),
    "json-structure": ("JsonStructure/draft-02", "JsonStructure"),
    "avro": ("Avro/1.12", "Avro/1.8", "avro"),
    "protobuf": ("Protobuf/3", "Protobuf/2", "Protobuf/2023"),
    "xsd": ("XMLSchema/1.0", "XMLSchema/1.1", "XSD"),
}
NAMES = {
    "json-schema": (
        "$ref", "$id", "$schema", "$defs", "definitions", "type", "properties", "items", "prefixItems", "additionalProperties", "allOf", "anyOf",
        "oneOf", "not", "if", "then", "else", "enum", "const", "pattern", "format", "minimum", "maximum", "multipleOf", "required", "$anchor",
        "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "patternProperties", "dependentSchemas", "contains", "uniqueItems",
        "maxLength", "contentEncoding", "$vocabulary", "default", "propertyNames",
    ),
    "json-structure": (
        "$schema", "$id", "$root", "$uses", "$extends", "$ref", "name", "type", "properties", "definitions", "items", "values", "choices",
        "selector", "tuple", "required", "abstract", "precision", "scale", "enum", "const", "minimum", "maxLength", "pattern", "$offers",
        "$import", "$importdefs", "altnames", "additionalProperties", "contentEncoding",
    ),
    "avro": ("type", "name", "namespace", "fields", "symbols", "items", "values", "size", "logicalType", "precision", "scale", "default", "aliases", "order"),
    "protobuf": (),
    "xsd": (),
}  # fmt: skip
PAYLOADS: tuple[bytes, ...] = (
    b"",
    b"{}",
    b"null",
    b"[]",
    b'{"a":1,"b":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}',
    b"\0" * 8,
    b"\x0a\x02a!",
    b"<a/>",
    b"<a>1</a>",
)


@cache
def existing(family: str) -> tuple[Any, ...]:
    """Schemas of the vectors, of the rich catalogues, and of the corpus."""
    file = stock.VECTORS / "schema" / f"{family}.json"
    schemas = [vector["schema"] for vector in json.loads(file.read_bytes()) if "schema" in vector]
    for parts in PARTS.values():
        for _, name, format_ in parts:
            if format_.partition("/")[0] == FORMATS[family][0].partition("/")[0]:
                text = (SCHEMAS / name).read_text(encoding="utf-8")
                schemas.append(text if family in ("protobuf", "xsd") else json.loads(text))
    return tuple(schemas)


def maker(family: str) -> Callable[[Dice], Input]:
    def make(dice: Dice) -> Input:
        schema = dice.choice(HOSTILE[family])(dice) if dice.random() < 0.35 else dice.choice(existing(family))
        if isinstance(schema, str):
            schema = _text_spoiled(family, schema, dice) if dice.random() < 0.8 else schema
        elif dice.random() < 0.8:
            schema = junk.spoiled(schema, dice, dice.choice((1, 1, 2, 4, 8)), NAMES[family])
        part = dice.choice((None, None, None, "M", "a", "/definitions/a", "#/x", "É", "", "Order.Line", "::"))
        more = [*dice.sample(PAYLOADS, 3), *([junk.noise(dice)[:2000]] if dice.random() < 0.5 else ())]
        return {
            "format": dice.choice(FORMATS[family]),
            "schema": schema,
            "part": part,
            "others": _others(family, dice),
            "payloads": more,
        }

    return make


def _others(family: str, dice: Dice) -> dict[str, Any]:
    """What may be imported; some of it imports again, in circles."""
    if dice.random() < 0.5:
        return {}
    if family == "protobuf":
        return {
            name: f'syntax = "proto3"; import "{other}"; message {name[0].upper()} {{ int32 x = 1; }}'
            for name, other in CIRCLE.items()
        }
    if family == "xsd":
        return {
            name: f'{XS}<xs:include schemaLocation="{other}"/><xs:element name="{name[0]}" type="xs:int"/></xs:schema>'
            for name, other in CIRCLE.items()
        }
    return {
        name: dice.choice(existing(family)) if dice.random() < 0.5 else {"$ref": other}
        for name, other in CIRCLE.items()
    }


CIRCLE = {
    "a.proto": "b.proto",
    "b.proto": "a.proto",
    "c.xsd": "d.xsd",
    "d.xsd": "c.xsd",
    "https://h/e": "https://h/f",
    "https://h/f": "https://h/e",
}
XS = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'


def _text_spoiled(family: str, text: str, dice: Dice) -> str:
    """A text with words exchanged, or with bytes changed."""
    if dice.random() < 0.4:
        return junk.octets(text.encode("utf-8", "replace"), dice).decode("utf-8", "replace")
    words = text.split(" ")
    for _ in range(dice.choice((1, 1, 3))):
        words[dice.randrange(len(words))] = dice.choice((*words, *WORDS.get(family, ())))
    return " ".join(words)


WORDS = {
    "protobuf": (
        "repeated", "optional", "required", "oneof", "map<string,M>", "message", "enum", "=", "0", "536870912", "-1", "{", "}", ";", "import",
        '"a.proto"', '"c/../a.proto"', '"/etc/passwd"', "reserved", "extensions", "100 to max;", "option", "(x)", "[packed=true]", "group", "M", ".M",
        "google.protobuf.Any", "edition", '"2023";', "syntax", "/*", "//", "service", "extend", "stream", '"' + "x" * 5000,
    ),
    "xsd": (
        'minOccurs="1000000000"', 'maxOccurs="4294967296"', 'maxOccurs="-1"', 'ref="a"', 'type="xs:anyType"', 'type="nope"', 'base="a"', 'name=""',
        'fixed="x"', 'use="prohibited"', 'abstract="true"', 'nillable="maybe"', "<xs:any/>", '<xs:include schemaLocation="c.xsd"/>',
        '<xs:import namespace="urn:x" schemaLocation="http://h/x.xsd"/>', '<xs:include schemaLocation="file:///etc/passwd"/>', "</xs:schema>",
        '<xs:assert test="true()"/>', '<xs:assert test="for $i in 1 to 100000000 return $i"/>', "<xs:redefine/>", "<xs:all/>", "&x;", "]]>",
    ),
}  # fmt: skip


# -- hostile ones -----------------------------------------------------------------------------------------------------


def _deep(word: str) -> Callable[[Dice], Any]:
    def make(dice: Dice) -> Any:
        schema: Any = {"type": "string"}
        for _ in range(dice.choice((20, 120, 190, 260))):
            schema = {
                word: [schema]
                if word in ("allOf", "anyOf", "oneOf")
                else {"a": schema}
                if word == "properties"
                else schema
            }
        return schema

    return make


def _doubling(dice: Dice) -> Any:
    depth = dice.choice((8, 16, 30))
    word = dice.choice(("properties", "allOf", "anyOf"))
    definitions: dict[str, Any] = {f"d{depth}": {"type": "string", "pattern": "^(a+)+$"}}
    for level in range(depth):
        both = [{"$ref": f"#/definitions/d{level + 1}"}] * 2
        definitions[f"d{level}"] = (
            {"type": "object", "properties": dict(zip("ab", both, strict=True))}
            if word == "properties"
            else {word: both}
        )
    return {"$ref": "#/definitions/d0", "definitions": definitions}


def _pattern(dice: Dice) -> Any:
    pattern = dice.choice(
        (
            "^(a+)+$",
            "(a|a)*b",
            "^(a|aa)+$",
            "(.*)*x",
            "(a{1000}){1000}",
            "(?=a)",
            "(a)\\1",
            "[",
            "\\p{L}{1,1000}",
            "a" * 20_000,
            "^(\\w+\\s?)*$",
            "(?i)a",
            "\\ud800",
        )
    )
    return {
        "type": "object",
        "properties": {"b": {"type": "string", "pattern": pattern}},
        "patternProperties": {pattern: {"type": "integer"}},
    }


def _numbers(dice: Dice) -> Any:
    number = dice.choice((10**30, 10**400, -(10**400), 1e308, 5e-324, 0, -1, 2**64, 0.1))
    words = (
        "minimum",
        "maximum",
        "exclusiveMaximum",
        "multipleOf",
        "maxLength",
        "minLength",
        "maxItems",
        "minProperties",
    )
    return {
        "type": "object",
        "properties": {
            "a": {"type": dice.choice(("integer", "number", "string", "array")), dice.choice(words): number}
        },
    }


def _enum(dice: Dice) -> Any:
    count = dice.choice((10, 5000, 40_000))
    return {
        "type": "object",
        "properties": {"a": {"enum": [*range(count), *map(str, range(count // 4)), {"x": 10**30}, None]}},
    }


def _wide(dice: Dice) -> Any:
    return {
        "type": "object",
        "properties": {f"p{number}": {"type": "integer"} for number in range(dice.choice((10, 3000)))},
    }


def _circles(dice: Dice) -> Any:
    return dice.choice((
        {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"not": {"$ref": "#"}}, {"$ref": "https://h/e"}, {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}},
        {"$id": "https://h/e", "$ref": "https://h/f#/x"}, {"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}}, {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"if": {"$ref": "#"}, "then": {"$ref": "#"}}, {"$ref": "file:///etc/passwd"}, {"$ref": "http://127.0.0.1:1/x"},
        {"$schema": "https://h/e"}, {"$schema": "http://127.0.0.1:1/x", "$vocabulary": {}}, {"$recursiveRef": "#", "$recursiveAnchor": True},
    ))  # fmt: skip


def _structure(dice: Dice) -> Any:
    head = {"$schema": "https://json-structure.org/meta/extended/v0/#", "$id": "https://h/s", "name": "S"}
    body = dice.choice((
        {"type": {"$ref": "#"}}, {"$root": "#/definitions/a", "definitions": {"a": {"type": "object", "$extends": "#/definitions/a", "properties": {}}}},
        {"type": "object", "properties": {f"p{n}": {"type": "int64"} for n in range(2000)}}, {"type": "map", "values": {"type": {"$ref": "#"}}},
        {"type": "string", "pattern": "(a+)+$"}, {"type": "decimal", "precision": 10**9, "scale": -5}, {"type": "string", "enum": [str(n) for n in range(30_000)]},
        {"type": "choice", "selector": "k", "$extends": "#/definitions/a", "choices": {"x": {"type": {"$ref": "#/definitions/a"}}}, "definitions": {"a": {"type": "object", "properties": {}}}},
        {"type": "tuple", "properties": {"x": {"type": "int8"}}, "tuple": ["x", "y", "x"]}, {"type": "int8", "minimum": 10**30}, {"type": "set", "items": {"type": "any"}},
        {"type": ["null", {"$ref": "#/definitions/b"}], "definitions": {"b": {"type": ["null", {"$ref": "#/definitions/b"}]}}},
    ))  # fmt: skip
    return head | body


def _avro(dice: Dice) -> Any:
    deep: Any = "int"
    for _ in range(dice.choice((10, 150, 190))):
        deep = dice.choice(
            (
                {"type": "array", "items": deep},
                {"type": "map", "values": deep},
                ["null", deep] if not isinstance(deep, list) else {"type": deep},
            )
        )
    doubling = [
        {
            "name": f"R{n}",
            "type": "record",
            "fields": [{"name": "a", "type": f"R{n + 1}"}, {"name": "b", "type": f"R{n + 1}"}],
        }
        for n in range(25)
    ]
    return dice.choice((
        deep, [*doubling, {"name": "R25", "type": "record", "fields": []}], {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]},
        {"type": "record", "name": "M", "fields": [{"name": "a", "type": ["null", "M"]}, {"name": "b", "type": {"type": "array", "items": "M"}}]},
        {"type": "array", "items": "null"}, {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, {"type": "fixed", "name": "F", "size": 10**12},
        {"type": "fixed", "name": "F", "size": -1}, {"type": "enum", "name": "E", "symbols": []}, {"type": "enum", "name": "E", "symbols": [f"s{n}" for n in range(20_000)]},
        {"type": "bytes", "logicalType": "decimal", "precision": 10**9, "scale": 10**9}, {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 9},
        {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "long"} for n in range(3000)]}, ["int", "int"], [["null"]], "", "nope", "a.b.C", [],
        {"type": "record", "name": "1", "fields": [{"name": "-", "type": "int"}]}, {"type": {"type": {"type": "int"}}}, {"type": "fixed", "name": "D", "size": 2, "logicalType": "duration"},
    ))  # fmt: skip


def _proto(dice: Dice) -> str:
    deep = "".join(f"message D{n} {{ " for n in range(dice.choice((5, 60, 300))))
    chain = (
        " ".join(f"message C{n} {{ C{n + 1} a = 1; C{n + 1} b = 2; }}" for n in range(25))
        + " message C25 { int32 x = 1; }"
    )
    return 'syntax = "proto3"; ' + dice.choice((
        "message M { M m = 1; repeated M r = 2; map<string, M> k = 3; }", deep + "int32 x = 1;" + "}" * deep.count("{"), chain,
        "message M { " + " ".join(f"int64 f{n} = {n};" for n in range(1, 3000) if not 19000 <= n < 20000) + " }", "message M { int32 a = 536870912; }",
        "enum E { " + " ".join(f"V{n} = {n};" for n in range(5000)) + " } message M { E e = 1; }", 'import "a.proto"; message M { int32 x = 1; }', "message M {" * 3000,
        'import "../../etc/passwd"; message M {}', 'import "/etc/passwd"; message M {}', "option java_package = " + '"' + "x" * 50_000 + '"; message M { string s = 1; }',
        "message M { oneof o { int32 a = 1; M b = 2; } google.protobuf.Any c = 3; }", "/*" * 2000, "message M { string s = 1 [json_name=\"s2\"]; string s2 = 2; }",
        'import "google/protobuf/struct.proto"; message M { google.protobuf.Struct s = 1; google.protobuf.NullValue n = 2; }', 'import "google/protobuf/descriptor.proto"; message M { google.protobuf.FileDescriptorSet f = 1; }',
    ))  # fmt: skip


def _xsd(dice: Dice) -> str:
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    nest = dice.choice((10, 80, 300))
    return dice.choice((
        f'<!DOCTYPE x [<!ENTITY l0 "lol">{lol}]>{XS}<xs:element name="a" type="&l9;"/></xs:schema>', f'<!DOCTYPE x SYSTEM "file:///etc/passwd">{XS}</xs:schema>',
        f'{XS}<xs:element name="a"><xs:complexType><xs:sequence maxOccurs="100000"><xs:element name="b" type="xs:int" minOccurs="0" maxOccurs="100000"/></xs:sequence></xs:complexType></xs:element></xs:schema>',
        f'{XS}<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{dice.choice(("(a+)+b", "(a|a)*b", "(.*)*", "[a-z-[aeiou]]+", "((a{1,100}){1,100}){1,100}", "(", chr(92) + "i" + chr(92) + "c*"))}"/></xs:restriction></xs:simpleType></xs:element></xs:schema>',
        f'{XS}<xs:element name="a" type="T"/><xs:complexType name="T"><xs:sequence><xs:element name="a" type="T" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:schema>',
        XS + '<xs:element name="a"><xs:complexType><xs:sequence>' * nest + "</xs:sequence></xs:complexType></xs:element>" * nest + "</xs:schema>",
        f'{XS}<xs:complexType name="T"><xs:complexContent><xs:extension base="T"/></xs:complexContent></xs:complexType><xs:element name="a" type="T"/></xs:schema>',
        f'{XS}<xs:group name="g"><xs:sequence><xs:group ref="g"/></xs:sequence></xs:group><xs:element name="a"><xs:complexType><xs:group ref="g"/></xs:complexType></xs:element></xs:schema>',
        f'{XS}<xs:include schemaLocation="c.xsd"/><xs:element name="a" type="xs:string"/></xs:schema>', f'{XS}<xs:import namespace="urn:x" schemaLocation="http://127.0.0.1:1/x.xsd"/><xs:element name="a"/></xs:schema>',
        f'{XS}<xs:element name="a"><xs:simpleType><xs:restriction base="xs:string">' + "".join(f'<xs:enumeration value="v{n}"/>' for n in range(3000)) + "</xs:restriction></xs:simpleType></xs:element></xs:schema>",
        f'{XS}<xs:element name="a"><xs:simpleType><xs:restriction base="xs:decimal"><xs:totalDigits value="{"9" * 300}"/><xs:minInclusive value="-{"9" * 5000}"/></xs:restriction></xs:simpleType></xs:element></xs:schema>',
        f'{XS}<xs:element name="a"><xs:complexType><xs:sequence>' + "".join(f'<xs:element name="e{n}" type="xs:int" minOccurs="0"/>' for n in range(600)) + "</xs:sequence></xs:complexType></xs:element></xs:schema>",
        f'{XS}<xs:element name="a"><xs:complexType><xs:sequence/><xs:assert test="(for $i in 1 to 1000000000 return $i)[1] = 1"/></xs:complexType></xs:element></xs:schema>',
        f'{XS}<xs:element name="a"><xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded"><xs:sequence><xs:element name="b" minOccurs="0"/><xs:element name="b" minOccurs="0"/></xs:sequence></xs:choice></xs:complexType></xs:element></xs:schema>',
    ))  # fmt: skip


JSON_TRAPS = (
    *(_deep(word) for word in ("items", "not", "allOf", "anyOf", "properties")),
    _doubling,
    _pattern,
    _numbers,
    _enum,
    _wide,
    _circles,
)
HOSTILE: dict[str, tuple[Callable[[Dice], Any], ...]] = {
    "json-schema": JSON_TRAPS, "json-structure": (_structure, _structure, _circles, _deep("items")), "avro": (_avro,), "protobuf": (_proto,), "xsd": (_xsd,),
}  # fmt: skip


def run(case: Input) -> Iterator[Any]:
    others = case["others"]

    def include(name: str, base_uri: str) -> SchemaText | None:
        key = name.rpartition("/")[2]
        return SchemaText(others[key], f"https://h/{key}") if isinstance(others.get(key), str) else None

    def resolve(uri: str) -> Any:
        return None if isinstance(others.get(uri), str) else others.get(uri)

    schema = compile_schema(case["format"], case["schema"], case["part"], resolve=resolve, include=include)
    yield getattr(schema, "problems", ()) if isinstance(schema, Unsupported) else ()
    yield [(field.name, str(field.arrow_type)) for field in schema.fields]
    for raw in case["payloads"]:
        if isinstance(schema, Unsupported):
            return
        yield from read_both(schema, raw, None)
    if isinstance(schema, Encoder):
        for value in (None, {}, {"a": 1}, "x", 5):
            yield schema.encode(value).problems
