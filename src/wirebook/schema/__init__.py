"""Payload formats: compile a schema document into a reader and writer of payloads.

  schema = compile_schema("JsonSchema/draft-07", {"type": "object", ...})
  schema.fields                       # the columns of a payload
  schema.read(Payload(b'{"a": 1}'))   # decode and validate one payload
  schema.read_column(payloads)        # the same for a whole Arrow column
  schema.encode({"a": 1})             # write a value as a payload, if the schema is an `Encoder`

Each format is a package with the modules `compile` (the entry point), `columns` (the column layout) and `compatibility`
(the comparison of two schemas). `read` and `write` decode and encode single payloads; `read_columns` of Avro and
Protobuf decodes whole columns. JSON Schema and JSON Structure share schema/json_reader.py instead.

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
