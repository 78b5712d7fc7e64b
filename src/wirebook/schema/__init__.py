"""Payload formats: one module per format, the same functions in each: compile, read, columns, read a column.

    schema = compile_schema("JsonSchema/draft-07", {"type": "object", ...})
    schema.fields                               # the columns
    schema.read(Payload(b'{"a": 1}'))           # one payload: the reference
    schema.read_column(payloads)                # a whole Arrow column
    schema.encode({"a": 1})                     # a value as a payload, where the schema is an `Encoder`

Spec: xregistry-1.0-rc4/schema/spec.md. Types: docs/types.md.
"""

from __future__ import annotations

from wirebook.schema.compile import compile_schema
from wirebook.schema.confluent import column_without_prefix, without_prefix
from wirebook.schema.formats import SchemaFormat, parse_format
from wirebook.schema.layout import REST, Field
from wirebook.schema.lookup import SchemaIndex
from wirebook.schema.payload import UNSET, Payload
from wirebook.schema.reader import (
    ColumnReading,
    CompiledSchema,
    CompileOptions,
    DecodedPayload,
    Encoded,
    Encoder,
    PayloadLimits,
    Unsupported,
)

__all__ = [
    "REST",
    "UNSET",
    "ColumnReading",
    "CompileOptions",
    "CompiledSchema",
    "DecodedPayload",
    "Encoded",
    "Encoder",
    "Field",
    "Payload",
    "PayloadLimits",
    "SchemaFormat",
    "SchemaIndex",
    "Unsupported",
    "column_without_prefix",
    "compile_schema",
    "parse_format",
    "without_prefix",
]
