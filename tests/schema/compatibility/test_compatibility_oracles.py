"""Other implementations read what is compatible: fastavro, jsonschema-rs, Google's Protobuf, libxml2."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import fastavro
import jsonschema_rs
import pytest
from google.protobuf import descriptor_pool, message_factory
from lxml import etree

from tests.schema.compatibility.jsonschemas import Schemas
from tests.schema.compatibility.test_compatibility_vectors import CASES, source
from wirebook.schema.avro import compatibility as avro
from wirebook.schema.compatibility import TooComplexError, backward
from wirebook.schema.jsonschema import compatibility as jsonschema
from wirebook.schema.protobuf import compatibility as protobuf
from wirebook.schema.protobuf.protoc import compile_files

# -- Avro -------------------------------------------------------------------------------------------------------------

TYPES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
VALUES: dict[str, list[Any]] = {
    "null": [None], "boolean": [True], "int": [1, -1], "long": [2**40], "float": [0.5], "double": [0.25],
    "bytes": [b"x"], "string": ["y"],
}  # fmt: skip


class AvroSchemas:
    """Small random schemas. Names repeat, so that two schemas of one seed have names in common."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def schema(self, levels: int) -> Any:
        one = self.random
        kind = one.choice([*TYPES, "record", "record", "enum", "fixed", "array", "map", "union"])
        if levels == 0 or kind in TYPES:
            return one.choice(TYPES)
        if kind == "union":
            return self._union(levels)
        if kind in ("array", "map"):
            return {"type": kind, {"array": "items", "map": "values"}[kind]: self.schema(levels - 1)}
        self.count += 1
        named: dict[str, Any] = {"type": kind, "name": f"N{self.count}"}
        if kind == "enum":
            return named | {"symbols": one.sample("ABC", 2)}
        if kind == "fixed":
            return named | {"size": one.choice([1, 2])}
        names = one.sample("abcd", one.choice([1, 2, 3]))
        return named | {"fields": [{"name": name, "type": self.schema(levels - 1)} for name in names]}

    def _union(self, levels: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for branch in [self.schema(levels - 1) for _ in range(self.random.choice([2, 3]))]:
            if not isinstance(branch, list):
                key = branch if isinstance(branch, str) else branch.get("name", branch["type"])
                branches.setdefault(key, branch)
        return list(branches.values()) or ["null"]

    def changed(self, schema: Any) -> Any:
        """Return the schema with random changes."""
        one = self.random
        if one.random() < 0.1:
            return one.choice(TYPES) if not isinstance(schema, list) else schema[0]
        if isinstance(schema, str):
            wider = [branch for branch in avro.PROMOTIONS.get(schema, ()) if one.random() < 0.3]
            return wider[0] if wider else schema
        if isinstance(schema, list):
            branches = {repr(branch): branch for branch in map(self.changed, schema) if not isinstance(branch, list)}
            names = {
                branch if isinstance(branch, str) else branch.get("name", branch["type"]): branch
                for branch in branches.values()
            }
            return list(names.values())
        made_ = dict(schema)
        if made_["type"] == "record":
            made_["fields"] = self._fields(made_["fields"])
        elif made_["type"] == "enum":
            made_["symbols"] = one.choice([made_["symbols"], [*made_["symbols"], "Z"], made_["symbols"][:1]])
            if one.random() < 0.2:
                made_["default"] = made_["symbols"][0]
        elif made_["type"] == "fixed":
            made_["size"] = one.choice([made_["size"]] * 4 + [3])
        else:
            word = "items" if "items" in made_ else "values"
            made_[word] = self.changed(made_[word])
        if "name" in made_ and one.random() < 0.15:
            made_ |= {"name": f"{made_['name']}x"} | one.choice([{}, {"aliases": [made_["name"]]}])
        return made_

    def _fields(self, fields: list[Any]) -> list[Any]:
        one = self.random
        made = [{**field, "type": self.changed(field["type"])} for field in fields if one.random() < 0.9]
        for field_ in made:
            if one.random() < 0.1:
                field_ |= {"name": f"{field_['name']}x"} | one.choice([{}, {"aliases": [field_["name"]]}])
        if one.random() < 0.3:
            made.append({"name": "new", "type": "int"} | one.choice([{}, {"default": 0}, {"default": 0}]))
        return made or fields


def avro_values(schema: Any) -> list[Any]:
    """Yield values that use every branch and every symbol at least once."""
    if isinstance(schema, str):
        return VALUES[schema]
    if isinstance(schema, list):
        return [_branch(branch, value) for branch in schema for value in avro_values(branch)]
    kind = schema["type"]
    if kind == "enum":
        return list(schema["symbols"])
    if kind == "fixed":
        return [b"x" * schema["size"]]
    if kind == "array":
        return [[value] for value in avro_values(schema["items"])]
    if kind == "map":
        return [{"k": value} for value in avro_values(schema["values"])]
    columns = [avro_values(field["type"]) for field in schema["fields"]]
    names = [field["name"] for field in schema["fields"]]
    rows = itertools.zip_longest(*columns)
    return [{n: c[0] if v is None else v for n, v, c in zip(names, row, columns, strict=True)} for row in rows]


def _branch(schema: Any, value: Any) -> Any:
    return (schema["name"], value) if isinstance(schema, dict) and "name" in schema else value


def reads(old: Any, new: Any) -> bool:
    """Whether fastavro reads, with `new`, everything that it wrote with `old`."""
    writer, reader = fastavro.parse_schema(old), fastavro.parse_schema(new)
    for value in avro_values(old):
        raw = io.BytesIO()
        fastavro.schemaless_writer(raw, writer, value)
        raw.seek(0)
        try:
            fastavro.schemaless_reader(raw, writer, reader)
        except Exception:
            return False
    return True


@pytest.mark.parametrize("start", range(0, 1500, 500))
def test_avro_compatibility_agrees_with_fastavro(start: int) -> None:
    verdicts = []
    for seed in range(start, start + 500):
        schemas = AvroSchemas(seed)
        old = schemas.schema(3)
        new = schemas.changed(old)
        expected = reads(old, new)
        verdicts.append(expected)
        assert (not avro.backward(source("avro", old), source("avro", new))) is expected, (seed, old, new)
    assert verdicts.count(True) > 100
    assert verdicts.count(False) > 100


# -- JSON Schema ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, 1000, 250))
def test_json_schema_values_are_valid_against_compatible_schema(start: int) -> None:
    compatible, incompatible = 0, 0
    for seed in range(start, start + 250):
        modern = seed % 2 == 0
        schemas = Schemas(seed, modern)
        pair = schemas.document()
        documents = [pair, schemas.changed(pair)][:: 1 if seed % 4 < 2 else -1]
        validator = jsonschema_rs.Draft202012Validator if modern else jsonschema_rs.Draft7Validator
        old, new = map(validator, documents)
        name = "JsonSchema/draft/2020-12" if modern else "JsonSchema/draft-07"
        try:
            is_incompatible = bool(jsonschema.backward(*(source(name, document) for document in documents)))
        except TooComplexError:
            is_incompatible = True
        incompatible += is_incompatible
        compatible += not is_incompatible
        for _ in range(0 if is_incompatible else 120):
            value = schemas.value()
            assert not old.is_valid(value) or new.is_valid(value), (seed, documents, value)
    assert compatible > 50
    assert incompatible > 20


# -- Protobuf ---------------------------------------------------------------------------------------------------------

EXTREMES: dict[str, list[Any]] = {
    "int32": [1, -1, 2**31 - 1], "int64": [1, -(2**63)], "uint32": [2**32 - 1], "uint64": [2**64 - 1],
    "sint32": [-1], "sint64": [-(2**63)], "bool": [True], "fixed32": [2**32 - 1], "fixed64": [1], "sfixed32": [-1],
    "sfixed64": [-1], "float": [0.5], "double": [0.5], "string": ["é"], "bytes": [b"\xff"],
}  # fmt: skip


def message_class(text: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in compile_files({"schema.proto": text}, "schema.proto").file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))


def test_protobuf_bytes_are_parsed_by_compatible_types() -> None:
    """All scalar types, singular and repeated; the value is the same if the types are."""
    kinds = [(type_, label) for type_ in EXTREMES for label in ("", "repeated ")]
    texts = {kind: f'syntax = "proto3"; message M {{ {kind[1]}{kind[0]} v = 1; }}' for kind in kinds}
    classes = {kind: message_class(text) for kind, text in texts.items()}
    files = {kind: source("Protobuf/3", text) for kind, text in texts.items()}
    compatible = 0
    for one, other in itertools.product(kinds, repeat=2):
        if (one[0] != other[0] and one[1] != other[1]) or protobuf.backward(files[one], files[other]):
            continue
        compatible += 1
        for value in EXTREMES[one[0]]:
            raw = classes[one](v=[value, value] if one[1] else value).SerializeToString()
            parsed = classes[other].FromString(raw)
            if one[0] == other[0]:
                assert parsed.v in (value, [value], [value, value])
            assert not parsed.UnknownFieldSet() if hasattr(parsed, "UnknownFieldSet") else True
    assert compatible > 60


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES["protobuf"]])
def test_protobuf_bytes_are_parsed_by_compatible_message(case: dict[str, Any]) -> None:
    if not case["backward"] or "import" in case["old"] or "edition" in case["old"] or "message M" not in case["new"]:
        return
    try:
        old, new = (message_class(_with_syntax(case[word])) for word in ("old", "new"))
    except KeyError:
        pytest.fail("no message M")
    message = old()
    _fill(message, 2)
    parsed = new.FromString(message.SerializeToString())
    assert parsed.IsInitialized() or not message.IsInitialized()
    for number in {field.number for field in old.DESCRIPTOR.fields} & {field.number for field in new.DESCRIPTOR.fields}:
        field = new.DESCRIPTOR.fields_by_number[number]
        was = old.DESCRIPTOR.fields_by_number[number]
        if field.type == was.type and field.message_type is None and not field.is_repeated and not was.is_repeated:
            assert getattr(parsed, field.name) == getattr(message, was.name)


def _with_syntax(text: str) -> str:
    return text if "syntax" in text else f'syntax = "proto3"; {text}'


def _fill(message: Any, levels: int) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            if levels and field.message_type.GetOptions().map_entry:
                continue
            if levels:
                inner = getattr(message, field.name)
                _fill(inner.add() if field.is_repeated else inner, levels - 1)
                if not field.is_repeated:
                    inner.SetInParent()
        else:
            value = {9: "x", 12: b"x", 8: True}.get(field.type, 1 if field.enum_type is None else None)
            value = field.enum_type.values[-1].number if value is None else value
            if field.is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


# -- XML Schema -------------------------------------------------------------------------------------------------------

HEAD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="o"><xs:complexType>'
TAIL = "</xs:complexType></xs:element></xs:schema>"
WORDS = [word for length in range(6) for word in itertools.product("abc", repeat=length)]


def content(one: random.Random, levels: int) -> str:
    occurs = one.choice(["", "", ' minOccurs="0"', ' maxOccurs="2"', ' minOccurs="0" maxOccurs="unbounded"'])
    if levels == 0 or one.random() < 0.4:
        return f'<xs:element name="{one.choice("abc")}"{occurs}/>'
    kind = one.choice(["sequence", "choice"])
    inner = "".join(content(one, levels - 1) for _ in range(one.choice([1, 2, 3])))
    return f"<xs:{kind}{occurs}>{inner}</xs:{kind}>"


def changed_content(one: random.Random, text: str) -> str:
    pairs = [(' minOccurs="0"', ""), (' maxOccurs="2"', ' maxOccurs="3"'), ('name="a"', 'name="b"'),
             ('name="c"/>', 'name="c" minOccurs="0"/>'), ("unbounded", "2")]  # fmt: skip
    before, after = one.choice(pairs)
    return text.replace(*one.choice([(before, after), (after or "\0", before)]), 1)


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_xsd_content_model_inclusion_agrees_with_libxml2(start: int) -> None:
    compared = 0
    for seed in range(start, start + 100):
        one = random.Random(seed)
        first = f"<xs:sequence>{content(one, 2)}</xs:sequence>"
        texts = [f"{HEAD}{content}{TAIL}" for content in (first, changed_content(one, first))]
        try:
            old, new = (etree.XMLSchema(etree.fromstring(text)) for text in texts)
        except etree.XMLSchemaParseError:  # the content is not deterministic
            continue
        incompatibilities = backward(*(source("XSD/1.0", text) for text in texts))
        if {reason.rule for reason in incompatibilities} == {"cannot-be-shown"}:
            continue
        compared += 1
        elements = [etree.fromstring(f"<o>{''.join(f'<{name}/>' for name in word)}</o>") for word in WORDS]
        counter = [element for element in elements if old.validate(element) and not new.validate(element)]
        beyond = (
            bool(incompatibilities) and str(incompatibilities[0].old).count(",") >= 3
        )  # the difference is longer than the words that were tried
        assert bool(incompatibilities) is bool(counter) or beyond, (
            seed,
            texts,
            incompatibilities,
            list(map(etree.tostring, counter[:1])),
        )
    assert compared > 20
