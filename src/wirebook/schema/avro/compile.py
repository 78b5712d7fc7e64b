"""Apache Avro: one document to a reader of payloads, binary or JSON encoded.

Rule: the content type decides. JSON (``application/json``, ``...+json``) and a JSON value in a structured event are
Avro's JSON encoding, everything else is binary: one value and nothing after it, written with this very schema.

Spec: Avro 1.11; schema/spec.md#433-apache-avro-schema (a record of the document by name).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from wirebook.problems import Problem
from wirebook.schema.avro.checks import ValueFault
from wirebook.schema.avro.columns import layout_of
from wirebook.schema.avro.read import DecodeError, Decoder, decode, decoder_of
from wirebook.schema.avro.read_columns import is_columnar, read_values
from wirebook.schema.avro.read_json import from_json
from wirebook.schema.avro.types import AvroError, AvroType, parse_types
from wirebook.schema.avro.write import settle, to_binary, to_json
from wirebook.schema.cursor import Cursor
from wirebook.schema.json_reader import json_payload, parse_payload
from wirebook.schema.layout import REST, Struct
from wirebook.schema.payload import Payload
from wirebook.schema.payload_problems import MAX_PROBLEMS, OUTCOMES, not_compilable, preview, too_large, undecodable
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

FEW = 16  # rows: fewer are read one by one, a column costs about 100 µs per field before its first row
BATCH = 8192  # rows read at a time
JSON_TYPES = (str, bool, int, float, type(None))
MEDIA_TYPE = "application/vnd.apache.avro"


def compile_avro(source: SchemaSource) -> CompiledSchema | Unsupported:
    """A reader for the document's type, or for the named type in it that the fragment names."""
    label = f"Avro/{source.format.version}" if source.format.version else "Avro"
    try:
        whole, names = parse_types(source.document, source.resolve)
        type_ = _chosen(whole, names, source.fragment)
        reader = AvroReader(label, layout_of(type_), source.options.limits, type_)
        _ = reader.decoder
    except (AvroError, RecursionError) as error:
        return not_compilable(label, error)
    return reader


def _chosen(whole: AvroType, names: dict[str, AvroType], part: str | None) -> AvroType:
    if not part:
        return whole
    wanted = part.rpartition("/")[2]
    found = names.get(wanted) or next((each for name, each in names.items() if name.endswith(f".{wanted}")), None)
    if found is None:
        raise AvroError(f"the schema does not define '{wanted}'; it defines {', '.join(names) or 'no named type'}")
    return found


@dataclass(frozen=True, eq=False)
class AvroReader(SchemaReader):
    """A compiled Avro schema."""

    type: AvroType

    @cached_property
    def decoder(self) -> Decoder:
        return decoder_of(self.type)

    def read(self, payload: Payload) -> DecodedPayload:
        """What one payload is."""
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
            problem = Problem(error.code, message, slot=slot, expected=expected, actual=error.message)
            return DecodedPayload(None, None, (problem,), OUTCOMES[error.code])

    def _read_json(self, payload: Payload) -> DecodedPayload:
        try:
            value = parse_payload(payload, self.limits)
        except JsonError as error:
            return undecodable(error)
        found = ValueFault(MAX_PROBLEMS)
        decoded = from_json(self.type, value, "", found)
        if not found.errors:
            return self.decoded(decoded)
        return DecodedPayload(
            value, None, tuple(_problem(*error) for error in sorted(found.errors, key=str)), "invalid-payload"
        )

    def encode(self, value: Any, content_type: str | None = None) -> Encoded:
        """A value in the JSON encoding where the content type is JSON, else in the binary one."""
        found = ValueFault(MAX_PROBLEMS)
        try:
            settled = settle(self.type, value, "", found)
        except RecursionError:
            deep = Problem("payload-too-deep", "the value is nested too deeply", slot="payload")
            return Encoded(None, (deep,))
        if found.errors:
            wrong = ((pointer, expected, _said(actual)) for pointer, expected, actual in found.errors)
            return Encoded(None, tuple(_problem(*each) for each in sorted(wrong, key=str)))
        if is_json(content_type):
            return json_payload(to_json(self.type, settled), str(content_type))
        return Encoded(Payload(to_binary(self.type, settled), content_type=content_type or MEDIA_TYPE))

    def read_column(self, payloads: pa.BinaryArray, content_type: str | None = None) -> ColumnReading:
        """What a column of payloads is. Cost: 0.05 to 0.1 µs per field and row; JSON encoded payloads, and types that
        contain themselves, are read one by one."""
        if len(payloads) < FEW or is_json(content_type) or not self.columnar:
            return read_each(self, payloads, content_type)
        return joined([self._read_batch(payloads[at : at + BATCH]) for at in range(0, len(payloads), BATCH)])

    @cached_property
    def columnar(self) -> bool:
        return is_columnar(self.type) and REST not in dict(self.type.fields)

    def _read_batch(self, payloads: pa.BinaryArray) -> ColumnReading:
        cursor = Cursor.over(payloads)
        cursor.require(cursor.end - cursor.at <= self.limits.size)
        values = read_values(self.type, cursor)
        cursor.require(cursor.at == cursor.end)
        columns = values.flatten() if isinstance(self.layout, Struct) else [values]
        named = dict(zip((field.name for field in self.fields), columns, strict=True))
        reading = ColumnReading(named | {REST: pa.nulls(len(payloads), pa.string())}, cursor.good)
        return with_others(self, payloads, reading)


def _said(value: Any) -> Any:
    """A value that an application gave, as a problem may show it: JSON, or its text."""
    return value if isinstance(value, JSON_TYPES) else repr(value)


def _problem(pointer: str, expected: Any, actual: Any) -> Problem:
    message = f"expected {expected}" if actual is not None else f"expected {expected}, found nothing"
    return Problem("payload-invalid", message, slot=f"payload#{pointer}", expected=expected, actual=preview(actual))
