"""Fuzz payloads of each format: valid and damaged ones, values of other formats, and random bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from synthesis.change_payloads import NUMBERS
from synthesis.dice import Dice
from synthesis.payloads import payload_for, spelled

from fuzzing import junk, stock
from fuzzing.case import Input, check
from wirebook.schema import Encoder, Payload

TYPES = (
    None,
    "application/json",
    "application/protobuf",
    "application/xml",
    "application/vnd.apache.avro",
    "text/plain",
    "a/b+json",
    ";",
)


def maker(name: str) -> Callable[[Dice], Input]:
    def make(dice: Dice) -> Input:
        catalog = stock.catalog(f"rich {name}")
        xid = dice.choice(list(catalog.definitions))
        as_json = dice.random() < 0.5
        drawn = payload_for(catalog, catalog.definitions[xid], dice, as_json=as_json)
        stated = "application/json" if drawn.is_json else drawn.media_type
        case: Input = {
            "catalogue": f"rich {name}",
            "definition": xid,
            "type": dice.choice(TYPES) if dice.random() < 0.1 else stated,
        }
        value = drawn.value
        if drawn.is_json and dice.random() < 0.6:
            value = junk.spoiled(value, dice, dice.choice((1, 1, 2, 4)))
        elif drawn.is_json and dice.random() < 0.2:
            value = _with_number(value, dice)
        raw = drawn.raw if drawn.raw is not None else _spelled(dice, value)
        if dice.random() < (0.25 if drawn.is_json else 0.6):
            raw = junk.octets(raw, dice)
        case["raw"] = junk.noise(dice) if dice.random() < 0.08 else raw
        if drawn.is_json and dice.random() < 0.3:
            case["value"] = value
        return case

    return make


def _spelled(dice: Dice, value: Any) -> bytes:
    try:
        return spelled(dice, value)
    except UnicodeEncodeError:
        return junk.json_of(value)


def _with_number(value: Any, dice: Dice) -> Any:
    paths = list(junk.places(value))
    if not paths:
        return value
    *path, last = dice.choice(paths)
    copy = stock.json.loads(junk.json_of(value))
    holder = copy
    for key in path:
        holder = holder[key]
    holder[last] = dice.choice((*NUMBERS, str(dice.choice(NUMBERS)), str(10**40), "1e400", "-0", "0x10", "1_000"))
    return copy


def run(case: Input) -> Iterator[Any]:
    """Read alone and in a column, and written again."""
    catalog = stock.catalog(case["catalogue"])
    schema = catalog.schema_of(catalog.definitions[case["definition"]])
    assert schema is not None
    yield from read_both(schema, case["raw"], case["type"])
    if isinstance(schema, Encoder) and "value" in case:
        encoded = schema.encode(case["value"], case["type"])
        yield encoded.problems
        if encoded.payload is not None:
            again = schema.read(encoded.payload)
            check(again.outcome is None, f"what is encoded is read as {again.outcome}: {again.problems}")
    in_event = schema.read(Payload(None, case.get("value"), "application/json"))
    yield in_event.problems
    yield repr(in_event.row)


def read_both(schema: Any, raw: bytes, content_type: str | None) -> Iterator[Any]:
    """One payload by the reference, and as a column: what that settles the reference has to say too."""
    reading = schema.read(Payload(raw, content_type=content_type))
    yield reading.problems
    check(
        (reading.row is None) == (reading.outcome is not None) == bool(reading.problems), "an outcome without a reason"
    )
    types = {field.name: field.arrow_type for field in schema.fields} | {"_rest": pa.string()}
    row = reading.row and {name: pa.array([value], types[name]) for name, value in reading.row.items()}
    yield row and {name: _text_of(column) for name, column in row.items()}
    for count in (1, 20):  # short columns are read in another way
        column = schema.read_column(pa.array([raw] * count, pa.binary()), content_type)
        if column.settled.any():
            check(row is not None, "a column settles what the reference refuses")
            for name, value in row.items():
                text = _text_of(column.columns[name].slice(count - 1, 1))
                check(text == _text_of(value), f"{name}: the column has {text}, the reference {_text_of(value)}")


def _text_of(column: pa.Array) -> str:
    """A value as text; instants and days as numbers, as Python has fewer of them."""
    return str(_plain(column).to_pylist())


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
