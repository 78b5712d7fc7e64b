"""Compile an Avro schema into a reader and writer of payloads, in the binary or the JSON encoding.

Rule: the content type selects the encoding. A payload with a JSON type (``application/json``, ``...+json``), and a JSON
value in a structured event, are in Avro's JSON encoding. Any other payload is binary: exactly one value, written with
the same schema.

Spec: Avro 1.11; schema/spec.md#433-apache-avro-schema (a reference can name a record of the document).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa

from wirebook.problems import Problem
from wirebook.schema.avro.checks import Mismatches
from wirebook.schema.avro.columns import layout_of
from wirebook.schema.avro.read import DecodeError, Decoder, decode, decoder_of
from wirebook.schema.avro.read_columns import is_columnar, read_values
from wirebook.schema.avro.read_json import from_json
from wirebook.schema.avro.types import AvroError, AvroType, parse_types
from wirebook.schema.avro.write import normalise, to_binary, to_json
from wirebook.schema.cursor import Cursor
from wirebook.schema.json_reader import json_payload, parse_payload
from wirebook.schema.layout import REST, Struct
from wirebook.schema.payload import Payload
from wirebook.schema.payload_problems import MAX_PROBLEMS, failed, not_compilable, preview, too_large, undecodable
from wirebook.schema.reader import (
    ColumnReading,
    CompiledSchema,
    DecodedPayload,
    Encoded,
    SchemaReader,
    Unsupported,
    joined,
    read_each,
    with_others,
)
from wirebook.schema.source import SchemaSource
from wirebook.text.json import JsonError
from wirebook.text.mediatypes import is_json
from wirebook.text.pointers import format_pointer

MEDIA_TYPE: Final = "application/vnd.apache.avro"
MIN_COLUMN: Final = 16
"""Columns with fewer rows are read row by row: reading a column has a fixed cost of about 100 µs per field."""
BATCH: Final = 8192
"""Number of rows that are read at a time."""


def compile_avro(source: SchemaSource) -> CompiledSchema | Unsupported:
    """Return a reader for the type of the document, or for the type in it that the fragment names.

    Problems: schema-not-compilable
    """
    label = str(source.format)
    try:
        root, names = parse_types(source.document, source.resolve)
        type_ = _named_type(names, source.fragment) if source.fragment else root
        reader = AvroReader(label, layout_of(type_), source.options.limits, type_)
        _ = reader.decoder
    except (AvroError, RecursionError) as error:
        return not_compilable(label, error)
    return reader


def _named_type(names: dict[str, AvroType], fragment: str) -> AvroType:
    """Return the type that a fragment names, with or without its namespace. Raises: AvroError"""
    name = fragment.rpartition("/")[2]
    full = name if name in names else next((known for known in names if known.endswith(f".{name}")), None)
    if full is None:
        raise AvroError(f"the schema does not define '{name}'; it defines {', '.join(names) or 'no named type'}")
    return names[full]


@dataclass(frozen=True, eq=False)
class AvroReader(SchemaReader):
    """A compiled Avro schema."""

    type: AvroType

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder of the binary encoding."""
        return decoder_of(self.type)

    def read(self, payload: Payload) -> DecodedPayload:
        """Decode and validate one payload."""
        if payload.raw is None or is_json(payload.content_type):
            return self._read_json(payload)
        if len(payload.raw) > self.limits.size:
            return undecodable(too_large(payload.raw, self.limits))
        try:
            return self.decoded(decode(self.decoder, payload.raw, self.limits.depth))
        except DecodeError as error:
            slot = f"payload#{format_pointer(reversed(error.path))}"
            message = f"{error.message} (byte {error.offset})"
            expected = {"type": self.type.branch_name}
            return failed(Problem(error.code, message, slot=slot, expected=expected, actual=error.message))

    def _read_json(self, payload: Payload) -> DecodedPayload:
        try:
            value = parse_payload(payload, self.limits)
        except JsonError as error:
            return undecodable(error)
        mismatches = Mismatches(MAX_PROBLEMS)
        decoded = from_json(self.type, value, "", mismatches)
        if not mismatches.entries:
            return self.decoded(decoded)
        return DecodedPayload(value, None, _problems(mismatches.entries), "invalid-payload")

    def encode(self, value: Any, content_type: str | None = None) -> Encoded:
        """Write a value, in the JSON encoding if the content type is JSON, else in the binary encoding.

        Problems: payload-invalid, payload-too-deep
        """
        mismatches = Mismatches(MAX_PROBLEMS)
        try:
            normalised = normalise(self.type, value, "", mismatches)
        except RecursionError:
            return Encoded(None, (Problem("payload-too-deep", "the value is nested too deeply", slot="payload"),))
        if mismatches.entries:
            shown = (
                (pointer, expected, value if isinstance(value, str | bool | int | float | None) else repr(value))
                for pointer, expected, value in mismatches.entries
            )
            return Encoded(None, _problems(shown))
        if is_json(content_type):
            return json_payload(to_json(self.type, normalised), str(content_type))
        return Encoded(Payload(to_binary(self.type, normalised), content_type=content_type or MEDIA_TYPE))

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """Decode and validate a column.

        Cost: 0.05 to 0.1 µs per field and row. Short columns, JSON-encoded payloads, and types that are recursive or
        otherwise not `columnar` are read row by row.
        """
        if len(payloads) < MIN_COLUMN or is_json(content_type) or not self.columnar:
            return read_each(self, payloads, content_type)
        return joined([self._read_batch(payloads[at : at + BATCH]) for at in range(0, len(payloads), BATCH)])

    @cached_property
    def columnar(self) -> bool:
        """Whether whole columns of binary payloads can be decoded at once."""
        return is_columnar(self.type) and REST not in dict(self.type.fields)

    def _read_batch(self, payloads: pa.BinaryArray) -> ColumnReading:
        cursor = Cursor.over(payloads)
        cursor.require(cursor.end - cursor.at <= self.limits.size)
        values = read_values(self.type, cursor)
        cursor.require(cursor.at == cursor.end)
        columns = values.flatten() if isinstance(self.layout, Struct) else [values]
        named = dict(zip((field.name for field in self.fields), columns, strict=True))
        reading = ColumnReading(named | {REST: pa.nulls(len(payloads), pa.string())}, cursor.good)
        return with_others(partial(read_each, self), payloads, reading)


def _problems(mismatches: Iterable[tuple[str, Any, Any]]) -> tuple[Problem, ...]:
    """Return the problem of each mismatch (pointer, expected, actual), sorted by text."""
    problems = []
    for pointer, expected, actual in sorted(mismatches, key=str):
        keyword, value = next(iter(expected.items()))
        message = MESSAGES[keyword].format(", ".join(map(str, value)) if isinstance(value, list) else value)
        slot = f"payload#{pointer}"
        problems.append(Problem("payload-invalid", message, slot=slot, expected=expected, actual=preview(actual)))
    return tuple(problems)


MESSAGES: Final = {
    "type": "expected a value of the type {}",
    "enum": "expected one of the symbols {}",
    "fields": "unknown field; the record has the fields {}",
    "required": "the field '{}' is missing",
    "defaults": "the defaults of omitted fields have more than {} parts",
    "union": 'expected a value of one of the types {}, written as {{"type": value}} unless it is null',
    "one of, by name": 'the value can be of several types: write {{"type": value}} with one of {}',
}
"""The message of a mismatch, by the keyword of what was expected."""
