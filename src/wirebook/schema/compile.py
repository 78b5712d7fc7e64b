"""Compile a schema document with the compiler of its format.

The module of a compiler is imported when the first schema of its format is compiled, because some libraries take a
quarter of a second to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wirebook.problems import Problem
from wirebook.problems.extras import library
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, TEXTS, XSD, parse_format
from wirebook.schema.reader import CompiledSchema, CompileOptions, Unsupported
from wirebook.schema.source import Include, Resolve, SchemaSource
from wirebook.text.json import MAX_DEPTH, JsonError, parse_json

Compiler = Callable[[SchemaSource], CompiledSchema | Unsupported]

COMPILERS: Final = {
    JSON_SCHEMA: ("wirebook.schema.jsonschema.compile", "compile_json_schema"),
    JSON_STRUCTURE: ("wirebook.schema.jsonstructure.compile", "compile_json_structure"),
    AVRO: ("wirebook.schema.avro.compile", "compile_avro"),
    PROTOBUF: ("wirebook.schema.protobuf.compile", "compile_protobuf"),
    XSD: ("wirebook.schema.xsd.compile", "compile_xsd"),
}
"""The compiler of each family: module and function."""
DEFAULT = CompileOptions()
ANONYMOUS = "https://catalogue.invalid/inline"


def compile_schema(
    format: str,
    document: Any,
    fragment: str | None = None,
    *,
    base_uri: str = ANONYMOUS,
    resolve: Resolve = lambda _: None,
    include: Include = lambda _, __: None,
    options: CompileOptions = DEFAULT,
) -> CompiledSchema | Unsupported:
    """Return a reader of payloads of `document`, or of the part of it that `fragment` names.

    `document` is a JSON value or JSON text; for Protobuf and XSD it is the text of the schema. `resolve` and `include`
    return the documents that the schema refers to (source.py). Nothing is fetched.
    Raises: WirebookError (``missing-extra``) if the library of the format is not installed.
    Problems: unsupported-format, schema-not-compilable, unnamed-type
    """
    name = parse_format(format)
    if name.family not in COMPILERS:
        message = f"the format '{format}' is not supported; use one of {', '.join(COMPILERS)}"
        problem = Problem("unsupported-format", message, slot="payload", expected=list(COMPILERS), actual=format)
        return Unsupported(str(name), (problem,))
    try:
        content = _content(name.family, document)
    except ValueError as error:
        return Unsupported(str(name), (Problem("schema-not-compilable", str(error), slot="payload"),))
    module, function = COMPILERS[name.family]
    compiler: Compiler = getattr(library(module), function)
    return compiler(SchemaSource(name, content, fragment, base_uri, resolve, include, options))


def _content(family: str, document: Any) -> Any:
    """Return a Protobuf or XSD schema as text, any other as a JSON value, parsed if it is JSON text. Raises: ValueError

    A string that does not begin like a JSON object, array or string is the schema itself, such as Avro's ``string``.
    """
    if family in TEXTS:
        if not isinstance(document, str):
            raise ValueError(f"a schema of the format {family} must be a string, the text of the schema")
        return document
    is_text = isinstance(document, str) and document.lstrip("\ufeff \t\r\n")[:1] in ("{", "[", '"')
    try:
        content = parse_json(document.encode()) if is_text else document
    except (JsonError, UnicodeEncodeError) as error:
        raise ValueError(f"the schema is not valid JSON: {error}") from None
    if is_deep(content):
        raise ValueError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    return content


def is_deep(document: Any) -> bool:
    """Return whether a schema is nested too deeply for the recursive code, partly native, that reads it."""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True
