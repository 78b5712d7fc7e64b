"""Names and namespaces of Avro types, and the definitions in a document that other documents can use.

Spec: Avro 1.11 "Names" and "Complex Types".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))


def full_name(name: str, namespace: str | None) -> str:
    """Return a name with its namespace. A name with a dot is already a full name."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(schema: dict[str, Any], enclosing: str | None) -> str | None:
    """Return the namespace inside a named type; `enclosing` is the namespace around it."""
    name, namespace = str(schema.get("name", "")), schema.get("namespace")
    if "." in name:
        return name.rpartition(".")[0]
    return namespace if isinstance(namespace, str) else enclosing


def definitions(schema: Any, namespace: str | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the full name and the definition of each named type in a schema, so that other schemas can refer to it.

    Shape: each definition has an explicit namespace. The schema need not be valid.
    """
    if isinstance(schema, list):
        for branch in schema:
            yield from definitions(branch, namespace)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if isinstance(kind, str) and kind in NAMED and isinstance(schema.get("name"), str):
            namespace = namespace_of(schema, namespace)
            yield full_name(schema["name"], namespace), schema | ({"namespace": namespace} if namespace else {})
        for part in _parts(schema):
            yield from definitions(part, namespace)


def _parts(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly inside a schema."""
    fields = schema.get("fields")
    if isinstance(fields, list):
        yield from (field.get("type") for field in fields if isinstance(field, dict))
    yield from (schema[keyword] for keyword in ("items", "values") if keyword in schema)
    if isinstance(schema.get("type"), dict | list):
        yield schema["type"]
