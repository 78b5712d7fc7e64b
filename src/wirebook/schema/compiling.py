"""One schema document to a reader of payloads: which module does it depends on the format's family."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wirebook.core.jsonvalue import MAX_DEPTH, JsonError, parse_json
from wirebook.problems import Problem
from wirebook.schema.avro import compile_avro
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, parse_format
from wirebook.schema.jsonschema import compile_json_schema
from wirebook.schema.jsonstructure import compile_json_structure
from wirebook.schema.reading import CompiledSchema, Options, Unsupported
from wirebook.schema.source import Resolve, Source

Compiler = Callable[[Source], CompiledSchema | Unsupported]

COMPILERS: dict[str, Compiler] = {
    JSON_SCHEMA: compile_json_schema,
    JSON_STRUCTURE: compile_json_structure,
    AVRO: compile_avro,
}
DEFAULT = Options()
ANONYMOUS = "https://catalogue.invalid/inline"


def _nowhere(uri: str) -> None:  # noqa: ARG001
    return None


def compile_schema(
    format: str,
    document: Any,
    fragment: str | None = None,
    *,
    base_uri: str = ANONYMOUS,
    resolve: Resolve = _nowhere,
    options: Options = DEFAULT,
) -> CompiledSchema | Unsupported:
    """A reader for payloads of `document`, or of the part of it that `fragment` names.

    `document` is JSON, or its text. `resolve` gives the document behind an absolute URI (or the full name of an Avro
    type) that the schema refers to, or None; nothing is fetched.
    """
    name = parse_format(format)
    compiler = COMPILERS.get(name.family)
    if compiler is None:
        message = f"'{format}' is not supported; supported are {', '.join(COMPILERS)}"
        problem = Problem("unsupported-format", message, slot="payload", expected=list(COMPILERS), actual=format)
        return Unsupported(str(name), (problem,))
    try:
        parsed = parse_json(document.encode()) if _is_text(document) else document
    except JsonError as error:
        problem = Problem("schema-not-compilable", f"the schema is not JSON: {error}", slot="payload")
        return Unsupported(str(name), (problem,))
    if is_deep(parsed):
        problem = Problem("schema-not-compilable", f"the schema is nested deeper than {MAX_DEPTH}", slot="payload")
        return Unsupported(str(name), (problem,))
    return compiler(Source(name, parsed, fragment, base_uri, resolve, options))


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
