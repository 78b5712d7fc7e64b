"""Names of Avro types.

Spec: Avro 1.11, "Names" and "Complex Types".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))


def full_name(name: str, namespace: str | None) -> str:
    """A name with its namespace; one with a dot has it already."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(schema: dict[str, Any], enclosing: str | None) -> str | None:
    """The namespace in force inside a named type."""
    name, declared = str(schema.get("name", "")), schema.get("namespace")
    if "." in name:
        return name.rpartition(".")[0]
    return declared if isinstance(declared, str) else enclosing


def named_types(schema: Any, namespace: str | None = None) -> Iterator[tuple[str, Any]]:
    """The named types that a schema defines, by full name; each with its namespace written out."""
    if isinstance(schema, list):
        for branch in schema:
            yield from named_types(branch, namespace)
    elif isinstance(schema, dict):
        inside = namespace
        kind = schema.get("type")
        if isinstance(kind, str) and kind in NAMED and isinstance(schema.get("name"), str):
            inside = namespace_of(schema, namespace)
            yield full_name(schema["name"], inside), schema | ({"namespace": inside} if inside else {})
        for part in _parts(schema):
            yield from named_types(part, inside)


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas inside a schema."""
    fields = schema.get("fields")
    yield from (field.get("type") for field in fields if isinstance(field, dict)) if isinstance(fields, list) else ()
    yield from (schema[word] for word in ("items", "values") if word in schema)
    if isinstance(schema.get("type"), dict | list):
        yield schema["type"]
