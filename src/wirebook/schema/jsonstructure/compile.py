"""Compile a JSON Structure document into a reader and writer of payloads.

The document is translated to JSON Schema, type by type, and read like JSON Schema (json_reader.py), whose validator is
native code and validates whole columns. Primitive types keep their names, as URNs, so that errors name `int64` instead
of a pattern.

Spec: draft-vasters-json-structure-core, -validation, -conditional-composition.
Reading: where the drafts are ambiguous, the json-structure package decides. Validation and composition keywords count
if `$uses` names their extension or `$schema` is the extended or validation meta-schema. In a union of types, only the
types count, not the keywords beside them.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs as js
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from wirebook.schema.json_reader import LINEAR, JsonReader
from wirebook.schema.jsonschema.compile import expected as expected_by_json_schema
from wirebook.schema.jsonschema.constraints import ObjectConstraint, constraints_of
from wirebook.schema.jsonschema.cost import check_cost
from wirebook.schema.jsonschema.references import References
from wirebook.schema.jsonstructure.columns import layout_of
from wirebook.schema.jsonstructure.imports import with_imports
from wirebook.schema.jsonstructure.to_jsonschema import DOCUMENT, UNION, StructureError, Translation
from wirebook.schema.jsonstructure.types import URN
from wirebook.schema.payload_problems import not_compilable
from wirebook.schema.reader import CompiledSchema, Unsupported
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import resolve as resolve_pointer

LATEST = "draft-02"


def compile_json_structure(source: SchemaSource) -> CompiledSchema | Unsupported:
    """Return a reader for the root type of the document, or for the type that the fragment (a JSON Pointer) names.

    Problems: schema-not-compilable
    """
    label = f"JsonStructure/{source.format.version or LATEST}"
    try:
        document = with_imports(source.document, source.base_uri, source.resolve)
        pointer = root_pointer(document, source.fragment)
        translation = Translation(document)
        schema = translation.document(pointer)
        expected = _Expected(schema, translation)

        def build(wrapper: dict[str, Any]) -> Any:
            return js.Draft202012Validator(
                wrapper,
                registry=js.Registry([(DOCUMENT, schema), *translation.resources()]),
                formats=translation.formats,
                validate_formats=True,
                pattern_options=LINEAR,
                offline=True,
            )

        root = {"$ref": DOCUMENT}
        # crawled once: otherwise, each lookup of a primitive type, which is not in the schema, would crawl the schema
        registry: Registry[Any] = Registry().with_resource(DOCUMENT, DRAFT202012.create_resource(schema)).crawl()
        check_cost(schema, References(registry.resolver(DOCUMENT), DRAFT202012))
        validator, layout = build(root), layout_of(document, pointer)
    except (StructureError, js.ValidationError, js.ReferencingError, ValueError, RecursionError) as error:
        return not_compilable(label, error)

    def constrain() -> ObjectConstraint | None:
        primitives = [(uri, Resource.from_contents(contents)) for uri, contents in translation.resources()]
        resolver = registry.with_resources(primitives).resolver(DOCUMENT)
        return constraints_of(DOCUMENT, resolver, layout, combines=True)

    return JsonReader(label, layout, source.options.limits, root, validator, build, expected, constrain)


def root_pointer(document: Any, fragment: str | None) -> str:
    """Return the pointer of the payload type: the type that the fragment names, else `$root`, else the document.

    Raises: StructureError
    """
    if not isinstance(document, dict):
        raise StructureError("a JSON Structure document must be an object")
    if fragment:
        candidates = [fragment if fragment.startswith("/") else f"/{fragment}", f"/definitions/{fragment}"]
    elif "type" not in document and isinstance(document.get("$root"), str):
        candidates = [document["$root"].removeprefix("#")]
    else:
        return ""
    pointer = next(
        (candidate for candidate in candidates if isinstance(resolve_pointer(document, candidate), dict)), None
    )
    if pointer is None:
        raise StructureError(f"'{candidates[0]}' is not in the document")
    return pointer


class _Expected:
    """Returns what was expected where a validation error occurred, in the terms of JSON Structure."""

    def __init__(self, schema: dict[str, Any], translation: Translation) -> None:
        self.schema, self.named = schema, translation.named

    def __call__(self, error: js.ValidationError) -> Any:
        location = error.absolute_keyword_location or ""
        if location.startswith(URN) and not location.startswith(DOCUMENT):
            types = location.removeprefix(URN).partition("#")[0].split(":")
            return {"type": types[0] if len(types) == 1 else types}
        if error.kind.name == "anyOf":
            union = resolve_pointer(self.schema, location.partition("#")[2].rpartition("/")[0])
            if isinstance(union, dict) and UNION in union:
                return {"type": union[UNION]}
        keyword = error.kind.as_dict()
        text = keyword.get("pattern") or keyword.get("format")
        return (text and self.named.get(text)) or expected_by_json_schema(error)
