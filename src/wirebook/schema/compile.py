"""One schema document to a reader of payloads: which module does it depends on the format's family.

A module is imported with the first schema of its family: some of the libraries below take a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from wirebook.problems import Problem
from wirebook.problems.extras import library
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, TEXTS, XSD, SchemaFormat, parse_format
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
"""Where the `Compiler` of a family is: module and function."""
DEFAULT = CompileOptions()
ANONYMOUS = "https://catalogue.invalid/inline"


def _nowhere(uri: str) -> None:  # noqa: ARG001
    return None


def _nothing(name: str, base_uri: str) -> None:  # noqa: ARG001
    return None


def compile_schema(
    format: str,
    document: Any,
    fragment: str | None = None,
    *,
    base_uri: str = ANONYMOUS,
    resolve: Resolve = _nowhere,
    include: Include = _nothing,
    options: CompileOptions = DEFAULT,
) -> CompiledSchema | Unsupported:
    """A reader for payloads of `document`, or of the part of it that `fragment` names.

    `document` is JSON, or its text; of Protobuf and XSD it is a text. `resolve` gives the document behind an absolute
    URI (or the full name of an Avro type) that the schema refers to, `include` the text that a text imports; None where
    there is none. Nothing is fetched.
    Raises: WirebookError (``missing-extra``) where the library that reads the format is not installed.
    """
    name = parse_format(format)
    if name.family not in COMPILERS:
        message = f"'{format}' is not supported; supported are {', '.join(COMPILERS)}"
        problem = Problem("unsupported-format", message, slot="payload", expected=list(COMPILERS), actual=format)
        return Unsupported(str(name), (problem,))
    read = _text_of if name.family in TEXTS else _json_of
    parsed = read(name, document)
    if isinstance(parsed, Unsupported):
        return parsed
    return _compiler_of(name.family)(SchemaSource(name, parsed, fragment, base_uri, resolve, include, options))


def _compiler_of(family: str) -> Compiler:
    module, function = COMPILERS[family]
    compiler: Compiler = getattr(library(module), function)
    return compiler


def _text_of(name: SchemaFormat, document: Any) -> str | Unsupported:
    if isinstance(document, str):
        return document
    return _not_compilable(name, f"a schema of the format {name.family} is a text")


def _json_of(name: SchemaFormat, document: Any) -> Any:
    try:
        parsed = parse_json(document.encode()) if _is_text(document) else document
    except (JsonError, UnicodeEncodeError) as error:
        return _not_compilable(name, f"the schema is not JSON: {error}")
    return _not_compilable(name, f"the schema is nested deeper than {MAX_DEPTH}") if is_deep(parsed) else parsed


def _not_compilable(name: SchemaFormat, message: str) -> Unsupported:
    return Unsupported(str(name), (Problem("schema-not-compilable", message, slot="payload"),))


def _is_text(document: Any) -> bool:
    """Is `document` the text of a schema? A bare word is one itself: the Avro schema ``string``."""
    return isinstance(document, str) and document.lstrip("\ufeff \t\r\n")[:1] in ("{", "[", '"')


def is_deep(document: Any) -> bool:
    """Is a schema nested so deeply that what reads it (recursion, some of it in native code) would fail?"""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
