"""JSON Structure compatibility: does the new document allow every value that the old one describes?

Rule: both documents are translated to JSON Schema, as for reading (to_jsonschema.py), and compared as declared. A type
describes only the properties that it names, so a new optional property is compatible unless the old type constrains it.

Spec: draft-vasters-json-structure-core, -validation, -conditional-composition.
"""

from __future__ import annotations

from typing import Any

from referencing import Registry
from referencing.jsonschema import specification_with

from wirebook.schema.incompatibilities import Incompatibility
from wirebook.schema.jsonschema.compatibility import contained
from wirebook.schema.jsonschema.compatibility_keywords import FlatDocument
from wirebook.schema.jsonstructure.compile import root_pointer
from wirebook.schema.jsonstructure.constraints import bound_of, is_multiple
from wirebook.schema.jsonstructure.to_jsonschema import DOCUMENT, Translation
from wirebook.schema.jsonstructure.types import DECIMAL, PRIMITIVES, URN
from wirebook.schema.source import SchemaSource

RANGES = {primitive.schema["pattern"]: primitive.bounds for primitive in PRIMITIVES.values() if primitive.bounds}
TYPES = {
    primitive.schema.get("pattern") or primitive.schema.get("format"): name for name, primitive in PRIMITIVES.items()
}
"""The type that each pattern and format represents."""
Bound = dict[str, Any]


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return why some values of `old` are not values of `new`. Both must be valid documents.

    Raises: TooComplexError, StructureError
    """
    (before, named_before), (after, named_after) = _translated(old, True), _translated(new, False)

    def implied(one: str, other: str) -> bool:
        range_, other_range = RANGES.get(one), RANGES.get(other)
        if range_ and other_range:
            return other_range[0] <= range_[0] and range_[1] <= other_range[1]
        if range_ and other == DECIMAL:
            return True
        return one in named_before and other in named_after and _is_tighter(named_before[one], named_after[other])

    incompatibilities = contained(before, after, implied)
    return [_in_words(incompatibility, named_before | named_after) for incompatibility in incompatibilities]


def _translated(source: SchemaSource, declared_only: bool) -> tuple[FlatDocument, dict[str, Bound]]:
    """Return the document as JSON Schema, and the constraints that its patterns and formats represent."""
    translation = Translation(source.document)
    schema = {"$id": DOCUMENT, **translation.document(root_pointer(source.document, source.fragment))}
    registry: Registry[Any] = Registry()
    for uri, primitive in translation.resources():
        resource = specification_with(primitive["$schema"]).create_resource({"$id": uri, "id": uri, **primitive})
        registry = registry.with_resource(uri, resource)
    document = FlatDocument(schema, None, registry, translation.formats, declared_only)
    return document, dict(translation.named)


def _is_tighter(old: Bound, new: Bound) -> bool:
    keyword = next(iter(old))
    if keyword not in new:
        return False
    first, second = bound_of(old, keyword), bound_of(new, keyword)
    if keyword == "multipleOf":
        return is_multiple(first, second)
    return first >= second if keyword.lower().endswith("minimum") else first <= second


def _in_words(incompatibility: Incompatibility, named: dict[str, Bound]) -> Incompatibility:
    """Return an incompatibility in the terms of JSON Structure."""

    def named_as(value: Any) -> Any:
        if isinstance(value, str):
            return named.get(value) or ({"type": TYPES[value]} if value in TYPES else value)
        if isinstance(value, dict) and str(value.get("$ref", "")).startswith(URN):
            return {"type": value["$ref"].removeprefix(URN)}
        return [named_as(item) for item in value] if isinstance(value, list) else value

    old, new, rule = incompatibility.old, incompatibility.new, incompatibility.rule
    if rule in ("pattern-changed", "format-changed") and new in TYPES:
        rule = "type-narrowed"
    return Incompatibility(incompatibility.path, rule, named_as(old), named_as(new))
