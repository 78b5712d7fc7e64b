"""JSON Structure: is every value that the old document describes one that the new document describes?

Rule: both are translated to JSON Schema as for reading (jsonstructure_schema.py) and compared as declared: a type
describes the properties that it names, so a new optional property narrows nothing, unless the old type constrains it.

Spec: draft-vasters-json-structure-core, -validation, -conditional-composition.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from referencing import Registry
from referencing.jsonschema import specification_with

from wirebook.schema.incompatibilities import Incompatibility
from wirebook.schema.jsonschema.compatibility import contained
from wirebook.schema.jsonschema.compatibility_keywords import FlatDocument
from wirebook.schema.jsonstructure.compile import root_pointer
from wirebook.schema.jsonstructure.to_jsonschema import DOCUMENT, Translation
from wirebook.schema.jsonstructure.types import DECIMAL, PRIMITIVES, URN
from wirebook.schema.source import SchemaSource

RANGES = {primitive.schema["pattern"]: primitive.bounds for primitive in PRIMITIVES.values() if primitive.bounds}
Bound = dict[str, Any]


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Why values of `old` are not all values of `new`; both are valid documents.

    Raises: TooComplexError, StructureError
    """
    (before, named_before), (after, named_after) = _translated(old, True), _translated(new, False)
    found = contained(before, after, _implied(named_before, named_after))
    return [_in_words(each, named_before | named_after) for each in found]


def _translated(source: SchemaSource, declared_only: bool) -> tuple[FlatDocument, dict[str, Bound]]:
    """The document as JSON Schema, and what its patterns and formats stand for."""
    translation = Translation(source.document)
    schema = {"$id": DOCUMENT, **translation.document(root_pointer(source.document, source.fragment))}
    registry: Registry[Any] = Registry()
    for uri, primitive in translation.resources():
        resource = specification_with(primitive["$schema"]).create_resource({"$id": uri, "id": uri, **primitive})
        registry = registry.with_resource(uri, resource)
    document = FlatDocument(schema, None, registry, translation.formats, declared_only)
    return document, dict(translation.named)


def _implied(old: dict[str, Bound], new: dict[str, Bound]) -> Callable[[str, str], bool]:
    def implied(one: str, other: str) -> bool:
        """Do texts with the pattern or format `one` have `other`?"""
        first, second = RANGES.get(one), RANGES.get(other)
        if first and second:
            return second[0] <= first[0] and first[1] <= second[1]
        if first and other == DECIMAL:
            return True
        return one in old and other in new and _is_tighter(old[one], new[other])

    return implied


def _is_tighter(old: Bound, new: Bound) -> bool:
    (word, had), (other, wanted) = next(iter(old.items())), next(iter(new.items()))
    if word != other:
        return False
    try:
        first, second = Decimal(str(had)), Decimal(str(wanted))
    except InvalidOperation:
        return False
    if word == "multipleOf":
        return second != 0 and first % second == 0
    return first >= second if word.lower().endswith("minimum") else first <= second


def _in_words(incompatibility: Incompatibility, named: dict[str, Bound]) -> Incompatibility:
    """A refusal in words of JSON Structure."""
    texts = {
        primitive.schema.get("pattern") or primitive.schema.get("format"): name
        for name, primitive in PRIMITIVES.items()
    }

    def named_as(value: Any) -> Any:
        if isinstance(value, str):
            return named.get(value) or ({"type": texts[value]} if value in texts else value)
        if isinstance(value, dict) and str(value.get("$ref", "")).startswith(URN):
            return {"type": value["$ref"].removeprefix(URN)}
        return [named_as(each) for each in value] if isinstance(value, list) else value

    rule = (
        "type-narrowed"
        if incompatibility.rule in ("pattern-changed", "format-changed") and incompatibility.new in texts
        else incompatibility.rule
    )
    return Incompatibility(incompatibility.path, rule, named_as(incompatibility.old), named_as(incompatibility.new))
