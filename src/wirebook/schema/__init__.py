"""Payload formats: one module per format, the same functions in each: compile, read, columns, read a column.

    schema = compile_schema("JsonSchema/draft-07", {"type": "object", ...})
    schema.fields                               # the columns
    schema.read(Payload(b'{"a": 1}'))           # one payload: the reference
    schema.read_column(payloads)                # a whole Arrow column

Spec: xregistry-1.0-rc4/schema/spec.md. Types: docs/types.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirebook.problems import Problem
from wirebook.schema.formats import JSON_SCHEMA, SchemaFormat, parse_format
from wirebook.schema.jsonschema import compile_json_schema
from wirebook.schema.payload import UNSET, Payload
from wirebook.schema.reading import ColumnReading, CompiledSchema, Limits, Options, Reading, Unsupported
from wirebook.schema.shapes import REST, Field

__all__ = [
    "REST",
    "UNSET",
    "ColumnReading",
    "CompiledSchema",
    "Field",
    "Limits",
    "Options",
    "Payload",
    "Reading",
    "SchemaFormat",
    "Unsupported",
    "compile_schema",
    "parse_format",
]

COMPILERS = {JSON_SCHEMA: compile_json_schema}
DEFAULT = Options()
ANONYMOUS = "wirebook:/inline"


def _nowhere(uri: str) -> None:  # noqa: ARG001
    return None


def compile_schema(
    format: str,
    document: Any,
    fragment: str | None = None,
    *,
    base_uri: str = ANONYMOUS,
    resolve: Callable[[str], Any | None] = _nowhere,
    options: Options = DEFAULT,
) -> CompiledSchema | Unsupported:
    """A reader for payloads of `document`, or of the part of it that `fragment` names.

    `resolve` gives the document behind an absolute URI that the schema refers to, or None; nothing is fetched.
    """
    name = parse_format(format)
    compiler = COMPILERS.get(name.family)
    if compiler is None:
        problem = Problem(code="unsupported-format", slot="payload", expected=sorted(COMPILERS), actual=format)
        return Unsupported(str(name), (problem,))
    return compiler(name, document, fragment, base_uri, resolve, options)
