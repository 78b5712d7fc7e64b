"""Generate values that are valid by an Avro schema, in JSON and in binary encoding (by fastavro)."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro

from synthesis import texts
from synthesis.dice import Dice
from synthesis.scalars import integer
from wirebook.schema.avro.types import AvroType, parse_types

DEEP = 5  # levels below which nothing optional is there

AVRO_INTEGERS = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
MICROS = (-62135596800000000, 253402300799999999)


def avro(document: Any, part: str | None, dice: Dice, *, as_json: bool) -> Any:
    """A valid value: of the JSON encoding the JSON value, else its bytes."""
    type_, names = parse_types(document, lambda _: None)
    if part:
        type_name = part.rpartition("/")[2]
        type_ = next(
            candidate for name, candidate in names.items() if name.rpartition(".")[2] == type_name.rpartition(".")[2]
        )
    value = _avro_value(type_, dice, 0)
    if as_json:
        return _avro_json(type_, value)
    return _avro_bytes(document, type_, value)


def _avro_bytes(document: Any, type_: AvroType, value: Any) -> bytes:
    """Written by fastavro, which knows nothing of Wirebook's types."""
    buffer, named = io.BytesIO(), {}
    schema = fastavro.parse_schema(document, named)
    chosen = named.get(type_.name, schema) if type_.name else schema
    fastavro.schemaless_writer(buffer, chosen, value, disable_tuple_notation=False)
    return buffer.getvalue()


def _avro_value(type_: AvroType, dice: Dice, level: int) -> Any:
    """A value as fastavro writes it; of a union (name of the branch, value)."""
    if type_.logical in ("timestamp-micros", "timestamp-millis") and type_.kind == "long":
        return dice.randint(*MICROS) // (1 if type_.logical.endswith("micros") else 1000)
    if type_.logical == "uuid" and type_.kind == "string":
        return texts.uuid(dice)
    if type_.kind in AVRO_INTEGERS:
        return integer(dice, *AVRO_INTEGERS[type_.kind])
    makers: dict[str, Callable[[], Any]] = {
        "null": lambda: None,
        "boolean": lambda: dice.random() < 0.5,
        "float": lambda: dice.choice((0.0, 0.5, -2.25, 1024.125)),
        "double": lambda: dice.choice((0.1, -1e300, dice.random())),
        "bytes": lambda: bytes(dice.choices(range(256), k=3)),
        "string": lambda: texts.text(dice),
        "fixed": lambda: bytes(dice.choices(range(256), k=type_.size)),
        "enum": lambda: dice.choice(type_.symbols),
        "record": lambda: {name: _avro_value(field, dice, level + 1) for name, field in type_.fields},
        "array": lambda: [_avro_value(type_.items, dice, level + 1) for _ in range(dice.randint(0, 3))],
        "map": lambda: {texts.word(dice): _avro_value(type_.items, dice, level + 1) for _ in range(dice.randint(0, 2))},
        "union": lambda: _avro_branch(type_, dice, level),
    }
    return makers[type_.kind]()


def _avro_branch(type_: AvroType, dice: Dice, level: int) -> Any:
    empty = [branch for branch in type_.branches if branch.kind == "null"]
    chosen = empty[0] if empty and level > DEEP else dice.choice(type_.branches)
    return (chosen.branch_name, _avro_value(chosen, dice, level + 1))


def _avro_json(type_: AvroType, value: Any) -> Any:
    """A value in Avro's JSON encoding."""
    if type_.kind == "union":
        name, inner = value
        branch = next(item for item in type_.branches if item.branch_name == name)
        return None if branch.kind == "null" else {name: _avro_json(branch, inner)}
    if type_.kind == "record":
        return {name: _avro_json(field, value[name]) for name, field in type_.fields}
    if type_.kind == "array":
        return [_avro_json(type_.items, item) for item in value]
    if type_.kind == "map":
        return {name: _avro_json(type_.items, item) for name, item in value.items()}
    return value.decode("latin-1") if isinstance(value, bytes) else value
