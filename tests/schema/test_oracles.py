"""Reading compared with other implementations: the json-structure package and fastavro."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pytest
from json_structure import InstanceValidator

from tests.schema.payloads import broken, find_texts, structure_payload, text
from wirebook.schema import REST, Payload, SchemaIndex, compile_schema, parse_format

# Wirebook is stricter than the json-structure package, as the text is: the package accepts true as a number, 13 as a
# month, and any value of the base type for a reference to an enum.
STRICTER = ("int32", "integer", "double", "float", "datetime", "enum", "E")


def documents(shared: Path) -> list[dict[str, Any]]:
    schemas: list[dict[str, Any]] = []
    for file in sorted((shared / "corpus/production").glob("*.json")):
        index = SchemaIndex(json.loads(file.read_text())).documents.by_xid.values()
        schemas += [
            document.content for document in index if parse_format(document.format or "").family == "JsonStructure"
        ]
    return schemas


def is_stricter(problem: Any) -> bool:
    """Whether a difference is a known one."""
    expected, actual = problem.expected, problem.actual
    types = expected.get("type", ())
    types = [types] if isinstance(types, str) else list(types)
    number = isinstance(actual, bool) and any(type_ in STRICTER for type_ in types)
    return number or "datetime" in types or "enum" in expected or any(type_[:1].isupper() for type_ in types)


def test_json_structure_read_agrees_with_json_structure_package(shared: Path) -> None:
    """Valid and broken payloads of every production schema."""
    random, compared = Random(5), 0
    for document in documents(shared):
        find_texts(document)
        schema = compile_schema("JsonStructure", document)
        for turn in range(4):
            value = structure_payload(document, random)
            value = broken(value, random) if turn % 2 else value
            reading = schema.read(Payload(text(value, random)))
            errors = InstanceValidator(copy.deepcopy(document)).validate_instance(copy.deepcopy(value))
            compared += 1
            if errors:
                assert reading.outcome == "invalid-payload", (value, errors)
            elif reading.outcome:
                assert any(is_stricter(problem) for problem in reading.problems), (value, reading.problems)
    assert compared > 600


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
SAMPLES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "int": (0, 1, -1, 63, 64, -65, 8191, 2**31 - 1, -(2**31)),
    "long": (0, -1, 2**40, 2**55, -(2**56), 2**62, 2**63 - 1, -(2**63)),
    "float": (0.0, 1.5, -2.25),
    "double": (0.0, 1.5, 1e300),
    "bytes": (b"", b"\x00\xff", b"abc" * 30),
    "string": ("", "a", "hé€😀", "x" * 70),
}


class Maker:
    """Random Avro schemas, and values of them."""

    def __init__(self, random: Random) -> None:
        self.random, self.names = random, 0

    def schema(self, level: int) -> Any:
        self.names += 1
        name, kinds = f"T{self.names}", ("enum", "fixed", "union", "array", "map", "record")
        kind = self.random.choice(kinds) if level and self.random.random() < 0.6 else self.random.choice(PRIMITIVES)
        if kind == "enum":
            return {"type": kind, "name": name, "symbols": ["A", "B", "C"]}
        if kind == "fixed":
            return {"type": kind, "name": name, "size": self.random.choice([1, 4, 20])}
        if kind == "union":
            others = [self.random.choice(PRIMITIVES[1:4]), self.random.choice(PRIMITIVES[5:])]
            return ["null", *others[: self.random.randint(1, 2)]]
        if kind in ("array", "map"):
            return {"type": kind, "items" if kind == "array" else "values": self.schema(level - 1)}
        if kind == "record":
            fields = [{"name": f"f{part}", "type": self.schema(level - 1)} for part in range(self.random.randint(1, 4))]
            return {"type": kind, "name": name, "fields": fields}
        return kind

    def value(self, schema: Any) -> Any:
        """(branch, value) for a union, as fastavro's writer takes it."""
        if isinstance(schema, list):
            return self.value(self.random.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in SAMPLES:
            return self.random.choice(SAMPLES[kind])
        if kind == "enum":
            return self.random.choice(schema["symbols"])
        if kind == "fixed":
            return self.random.randbytes(schema["size"])
        if kind == "record":
            return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
        items = [self.value(schema["items" if kind == "array" else "values"]) for _ in range(self.random.randint(0, 3))]
        return items if kind == "array" else {f"k{index}": item for index, item in enumerate(items)}


def unwrapped(cell: Any, schema: Any) -> Any:
    """Return a cell as fastavro has it: the value of a union without the name of its branch."""
    if isinstance(schema, list):
        branches = {item: item for item in schema if item != "null"}
        if cell is None:
            return None
        chosen = next(iter(cell)) if len(branches) > 1 else next(iter(branches))
        return cell[chosen] if len(branches) > 1 else cell
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return {field["name"]: unwrapped(cell.get(field["name"]), field["type"]) for field in schema["fields"]}
    if kind == "array":
        return [unwrapped(item, schema["items"]) for item in cell]
    return {key: unwrapped(item, schema["values"]) for key, item in cell.items()} if kind == "map" else cell


@pytest.mark.parametrize("seed", range(20))
def test_avro_read_agrees_with_fastavro(seed: int) -> None:
    """What fastavro writes, read binary and JSON encoded."""
    maker = Maker(Random(seed))
    fields = [{"name": f"f{index}", "type": maker.schema(3)} for index in range(4)]
    schema = {"type": "record", "name": "Root", "namespace": "n.s", "fields": fields}
    parsed, compiled = fastavro.parse_schema(copy.deepcopy(schema)), compile_schema("Avro/1.11", schema)
    for _ in range(25):
        value, binary, written = maker.value(schema), io.BytesIO(), io.StringIO()
        fastavro.schemaless_writer(binary, parsed, value)
        reading = compiled.read(Payload(binary.getvalue()))
        assert reading.row is not None, reading.problems
        assert reading.row[REST] is None
        expected = fastavro.schemaless_reader(io.BytesIO(binary.getvalue()), parsed)
        assert unwrapped(reading.value, schema) == expected
        fastavro.json_writer(written, parsed, [value])
        again = compiled.read(Payload(written.getvalue().encode(), content_type="application/json"))
        assert again.row == reading.row, again.problems
