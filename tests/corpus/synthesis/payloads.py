"""Payloads that are valid by a schema, drawn at random: JSON Structure, JSON Schema, and Avro in both encodings.

As much is varied as the schema leaves open: members left out or null, bounds hit exactly, times in all spellings, texts
with surprises, and members that the schema does not name where it allows them.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fastavro

from synthesis import texts
from synthesis.dice import Dice
from wirebook.catalog import Catalog
from wirebook.core.pointers import resolve as resolve_pointer
from wirebook.message.definition import Definition
from wirebook.schema.avro_types import Type, parse_types
from wirebook.schema.formats import parse_format
from wirebook.schema.jsonschema import pointer_in
from wirebook.schema.jsonstructure import root_pointer

Resolve = Callable[[str], Any]
DEEP = 5


@dataclass(frozen=True)
class Made:
    """A payload: a JSON value, or bytes of a format that is none."""

    value: Any = None
    raw: bytes | None = None

    @property
    def is_json(self) -> bool:
        return self.raw is None


def payload_for(catalog: Catalog, definition: Definition, dice: Dice, *, as_json: bool) -> Made:
    """A valid payload of a definition; anything at all where it has no schema, or none that is understood.

    `as_json`: of Avro's two encodings the JSON one.
    """
    found = source_of(catalog, definition)
    if found is None:
        return Made({"n": dice.randint(0, 9), "text": texts.text(dice)})
    family, document, part = found
    if family == "Avro":
        return _avro(document, part, dice, as_json)
    if family == "JsonStructure":
        return Made(Structure(document, dice).root(part))
    if family == "JsonSchema":
        return Made(JsonSchema(document, dice, catalog.schemas.resolve).root(part))
    return Made(raw=texts.strange(dice).encode())


def source_of(catalog: Catalog, definition: Definition) -> tuple[str, Any, str | None] | None:
    """The family of a definition's schema, its document, and the part of it that is meant."""
    attributes, inline = definition.attributes, definition.attributes.get("dataschema")
    if inline is not None:
        return parse_format(definition.schema_format or "").family, _parsed(inline), None
    for name in ("dataschemaxid", "dataschemauri"):
        found = catalog.schemas.documents.follow(attributes[name]) if attributes.get(name) else None
        if found is not None and found[0].content is not None:
            document, part = found
            return (
                parse_format(document.format or definition.schema_format or "").family,
                _parsed(document.content),
                part,
            )
    return None


def _parsed(document: Any) -> Any:
    is_text = isinstance(document, str) and document.lstrip()[:1] in ("{", "[", '"')
    return json.loads(document) if is_text else document


def spelled(dice: Dice, value: Any) -> bytes:
    """A JSON value as text, in one of the ways that writers have."""
    style = dice.choice(("wide", "indented", "escaped")) if dice.odd else "compact"
    separators = (",", ":") if style == "compact" else None
    made = json.dumps(
        value, ensure_ascii=style == "escaped", indent=1 if style == "indented" else None, separators=separators
    )
    return made.encode()


# -- numbers --------------------------------------------------------------------------------------------------------


def _integer(dice: Dice, low: int, high: int) -> int:
    return dice.choice((low, high, dice.randint(low, high), max(low, min(high, dice.randint(-9, 99)))))


def _number(dice: Dice, low: float, high: float) -> float | int:
    """Between the bounds: whole or broken, as integer or float."""
    low, high = max(low, -1e9), min(high, 1e9)
    made = dice.choice((low, high, dice.uniform(low, high), round(dice.uniform(low, high), 3)))
    whole = math.floor(made)
    return whole if dice.random() < 0.3 and low <= whole <= high else made


def _bounds(node: dict[str, Any], low: float, high: float) -> tuple[Any, Any]:
    """The bounds that a schema sets, as numbers."""
    found = [node.get("minimum", low), node.get("maximum", high)]
    if "exclusiveMinimum" in node:
        found[0] = float(node["exclusiveMinimum"]) + 1
    return tuple(type(low)(each) if isinstance(each, str) else each for each in found)


def _text(node: dict[str, Any], dice: Dice) -> str:
    if "pattern" in node:
        return texts.matching(dice, node["pattern"])
    if node.get("format") in texts.FORMATS:
        return texts.FORMATS[node["format"]](dice)
    least, most = node.get("minLength", 0), node.get("maxLength", 64)
    made = texts.text(dice)[:most]
    return made + texts.word(dice, least, least)[: max(0, least - len(made))]


def _anything(dice: Dice, level: int = 0) -> Any:
    """A value of no schema."""
    kinds = [lambda: None, lambda: True, lambda: dice.randint(-(2**40), 2**40), dice.random, lambda: texts.text(dice)]
    if level < 2:
        kinds += [lambda: [_anything(dice, level + 1)], lambda: {texts.word(dice): _anything(dice, level + 1)}]
    return dice.choice(kinds)()


# -- JSON Structure -------------------------------------------------------------------------------------------------

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1), "uint8": (0, 2**8 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1), "integer": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1),
}  # fmt: skip
INTEGER_TEXTS = {
    "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1),
    "int128": (-(2**127), 2**127 - 1), "uint128": (0, 2**128 - 1),
}  # fmt: skip
STRUCTURE_TEXTS = {
    **{name: texts.FORMATS[name] for name in ("date", "time", "uuid", "uri", "duration", "datetime")},
    "binary": lambda dice: dice.choice(("", "AA==", "AAEC", "//8=")),
    "jsonpointer": lambda dice: dice.choice(("", "/a/0", "/a~1b")),
    "decimal": lambda dice: f"{dice.randint(-999, 999)}.{dice.randint(0, 99):02}",
}


class Structure:
    """Values of one JSON Structure document."""

    def __init__(self, document: dict[str, Any], dice: Dice) -> None:
        self.document, self.dice, self.level = document, dice, 0

    def root(self, part: str | None) -> Any:
        return self.value(resolve_pointer(self.document, root_pointer(self.document, part)))

    def value(self, node: dict[str, Any]) -> Any:
        self.level += 1
        try:
            return self._value(node)
        finally:
            self.level -= 1

    def _value(self, node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return self.value(self._definition(node["$ref"]))
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.dice.choice(node["enum"])
        type_ = node.get("type")
        if isinstance(type_, list):
            return self._of_union(node, type_)
        if isinstance(type_, dict):
            return self.value(type_)
        return self._of_type(node, type_)

    def _definition(self, reference: str) -> dict[str, Any]:
        return resolve_pointer(self.document, reference.removeprefix("#"))

    def _of_union(self, node: dict[str, Any], types: list[Any]) -> Any:
        if "null" in types and (self.dice.random() < 0.3 or self.level > DEEP):
            return None
        chosen = self.dice.choice([each for each in types if each != "null"])
        return self.value(chosen if isinstance(chosen, dict) else {**node, "type": chosen})

    def _of_type(self, node: dict[str, Any], type_: Any) -> Any:
        dice = self.dice
        if type_ in INTEGERS:
            return _integer(dice, *map(int, _bounds(node, *INTEGERS[type_])))
        if type_ in INTEGER_TEXTS:
            return str(_integer(dice, *map(int, _bounds(node, *INTEGER_TEXTS[type_]))))
        if type_ in ("number", "double", "float", "float8"):
            return _number(dice, *_bounds(node, -1e9, 1e9))
        if type_ in STRUCTURE_TEXTS:
            return STRUCTURE_TEXTS[type_](dice)
        made: dict[str, Callable[[], Any]] = {
            "string": lambda: _text(node, dice),
            "boolean": lambda: dice.random() < 0.5,
            "null": lambda: None,
            "any": lambda: _anything(dice),
            "object": lambda: self._object(node),
            "array": lambda: self._items(node),
            "set": lambda: self._items(node)[:1],
            "map": lambda: {texts.word(dice): self.value(node["values"]) for _ in range(dice.randint(0, 2))},
            "choice": lambda: self._choice(node),
        }
        return made[type_]()

    def _object(self, node: dict[str, Any]) -> dict[str, Any]:
        required, made = node.get("required", []), {}
        for name, each in node.get("properties", {}).items():
            if name in required or (self.dice.random() < 0.7 and self.level <= DEEP):
                made[name] = self.value(each)
        if node.get("additionalProperties") is not False and self.dice.odd and self.dice.random() < 0.2:
            made[f"x{texts.word(self.dice)}"] = _anything(self.dice)
        return made

    def _items(self, node: dict[str, Any]) -> list[Any]:
        count = self.dice.randint(node.get("minItems", 0), max(3, node.get("minItems", 0)))
        return [self.value(node["items"]) for _ in range(count)]

    def _choice(self, node: dict[str, Any]) -> dict[str, Any]:
        name, each = self.dice.choice(list(node["choices"].items()))
        return {name: self.value(each)}


# -- JSON Schema ----------------------------------------------------------------------------------------------------


class JsonSchema:
    """Values of one JSON Schema; references may lead to other documents, which `resolve` gives by their address."""

    def __init__(self, document: dict[str, Any], dice: Dice, resolve: Resolve) -> None:
        self.document, self.dice, self.resolve, self.level = document, dice, resolve, 0

    def root(self, part: str | None) -> Any:
        if not part:
            return self.value(self.document, self.document)
        return self.value(resolve_pointer(self.document, pointer_in(self.document, part)), self.document)

    def value(self, node: Any, document: dict[str, Any]) -> Any:
        self.level += 1
        try:
            return self._value(node if isinstance(node, dict) else {}, document)
        finally:
            self.level -= 1

    def _value(self, node: dict[str, Any], document: dict[str, Any]) -> Any:
        if "$ref" in node:
            return self._referred(node["$ref"], document)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.dice.choice(node["enum"])
        if "allOf" in node:
            return self.value(self._merged(node["allOf"], document), document)
        for word in ("oneOf", "anyOf"):
            if word in node:
                return self.value(_chosen(node, word, self.dice), document)
        return self._of_type(node, document)

    def _referred(self, reference: str, document: dict[str, Any]) -> Any:
        address, _, fragment = reference.partition("#")
        if address:
            base = document.get("$id", "")
            document = self.resolve(address if ":" in address else f"{base.rpartition('/')[0]}/{address}")
        return self.value(resolve_pointer(document, fragment), document)

    def _merged(self, parts: list[Any], document: dict[str, Any]) -> dict[str, Any]:
        """One schema that says what several say: good enough for objects of which later parts narrow single members."""
        merged: dict[str, Any] = {}
        for part in parts:
            found = resolve_pointer(document, part["$ref"].removeprefix("#")) if "$ref" in part else part
            for name, each in found.get("properties", {}).items():
                narrowed = {**merged.get("properties", {}).get(name, {}), **each}
                merged.setdefault("properties", {})[name] = narrowed
            merged |= {word: value for word, value in found.items() if word != "properties"}
        return merged

    def _of_type(self, node: dict[str, Any], document: dict[str, Any]) -> Any:
        dice, declared = self.dice, node.get("type")
        types = declared if isinstance(declared, list) else [declared]
        type_ = dice.choice(types)
        if type_ is None:
            return self._object(node, document) if "properties" in node else _anything(dice)
        made: dict[str, Callable[[], Any]] = {
            "integer": lambda: _integer(dice, *map(int, _bounds(node, -(2**63), 2**63 - 1))),
            "number": lambda: _number(dice, *_bounds(node, -1e9, 1e9)),
            "string": lambda: _text(node, dice),
            "boolean": lambda: dice.random() < 0.5,
            "null": lambda: None,
            "object": lambda: self._object(node, document),
            "array": lambda: [self.value(node.get("items"), document) for _ in range(self._length(node))],
        }
        return made[type_]()

    def _length(self, node: dict[str, Any]) -> int:
        return self.dice.randint(node.get("minItems", 0), max(2, node.get("minItems", 0)))

    def _object(self, node: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        required, extra, made = node.get("required", []), node.get("additionalProperties", True), {}
        for name, each in node.get("properties", {}).items():
            if name in required or (self.dice.random() < 0.7 and self.level <= DEEP):
                made[name] = self.value(each, document)
        if extra is not False and self.dice.odd and self.dice.random() < 0.3:
            made[f"x{texts.word(self.dice)}"] = (
                self.value(extra, document) if extra is not True else _anything(self.dice)
            )
        return made


def _chosen(node: dict[str, Any], word: str, dice: Dice) -> dict[str, Any]:
    """One of the alternatives, with what stands beside them."""
    chosen: dict[str, Any] = dice.choice(node[word])
    if "$ref" in chosen:
        return chosen
    required = [*node.get("required", ()), *chosen.get("required", ())]
    return {name: each for name, each in node.items() if name != word} | chosen | {"required": required}


# -- Avro -----------------------------------------------------------------------------------------------------------

AVRO_INTEGERS = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
MICROS = (-62135596800000000, 253402300799999999)


def _avro(document: Any, part: str | None, dice: Dice, as_json: bool) -> Made:
    type_, names = parse_types(document, lambda _: None)
    if part:
        wanted = part.rpartition("/")[2]
        type_ = next(each for name, each in names.items() if name.rpartition(".")[2] == wanted.rpartition(".")[2])
    value = _avro_value(type_, dice, 0)
    if as_json:
        return Made(_avro_json(type_, value))
    schema = {"type": type_.name} if part else document
    return Made(raw=_avro_bytes(document if part else schema, type_, value))


def _avro_bytes(document: Any, type_: Type, value: Any) -> bytes:
    """Written by fastavro, which knows nothing of Wirebook's types."""
    buffer, named = io.BytesIO(), {}
    schema = fastavro.parse_schema(document, named)
    chosen = named.get(type_.name, schema) if type_.name else schema
    fastavro.schemaless_writer(buffer, chosen, value, disable_tuple_notation=False)
    return buffer.getvalue()


def _avro_value(type_: Type, dice: Dice, level: int) -> Any:
    """A value as fastavro writes it; of a union (name of the branch, value)."""
    if type_.logical in ("timestamp-micros", "timestamp-millis") and type_.kind == "long":
        return dice.randint(*MICROS) // (1 if type_.logical.endswith("micros") else 1000)
    if type_.kind in AVRO_INTEGERS:
        return _integer(dice, *AVRO_INTEGERS[type_.kind])
    made: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: dice.random() < 0.5,
        "float": lambda: dice.choice((0.0, 0.5, -2.25, 1024.125)),
        "double": lambda: dice.choice((0.1, -1e300, dice.random())),
        "bytes": lambda: bytes(dice.choices(range(256), k=3)),
        "string": lambda: texts.text(dice),
        "fixed": lambda: bytes(dice.choices(range(256), k=type_.size)),
        "enum": lambda: dice.choice(type_.symbols),
        "record": lambda: {name: _avro_value(each, dice, level + 1) for name, each in type_.fields},
        "array": lambda: [_avro_value(type_.items, dice, level + 1) for _ in range(dice.randint(0, 3))],
        "map": lambda: {texts.word(dice): _avro_value(type_.items, dice, level + 1) for _ in range(dice.randint(0, 2))},
        "union": lambda: _avro_branch(type_, dice, level),
    }
    return made[type_.kind]()


def _avro_branch(type_: Type, dice: Dice, level: int) -> Any:
    empty = [each for each in type_.branches if each.kind == "null"]
    chosen = empty[0] if empty and level > DEEP else dice.choice(type_.branches)
    return (chosen.branch_name, _avro_value(chosen, dice, level + 1))


def _avro_json(type_: Type, value: Any) -> Any:
    """A value in Avro's JSON encoding."""
    if type_.kind == "union":
        name, inner = value
        branch = next(each for each in type_.branches if each.branch_name == name)
        return None if branch.kind == "null" else {name: _avro_json(branch, inner)}
    if type_.kind == "record":
        return {name: _avro_json(each, value[name]) for name, each in type_.fields}
    if type_.kind == "array":
        return [_avro_json(type_.items, each) for each in value]
    if type_.kind == "map":
        return {name: _avro_json(type_.items, each) for name, each in value.items()}
    return value.decode("latin-1") if isinstance(value, bytes) else value
