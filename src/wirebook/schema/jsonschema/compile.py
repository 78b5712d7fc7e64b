"""Compiles a JSON Schema, draft-04 to 2020-12, into a reader and writer of payloads.

Rule: `$schema` determines the draft, else the version in the name of the format; the default is 2020-12. `format` is
asserted if the draft asserts it (D52), unless an option overrides this. Patterns run on a linear-time engine: schemas
with look-around or back-references do not compile. References resolve to documents of the catalogue, by `$id` or
address, and never to the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import jsonschema_rs as js
from referencing import Registry, Resource
from referencing.jsonschema import specification_with

from wirebook.schema.json_reader import LINEAR, JsonReader
from wirebook.schema.jsonschema.columns import layout_of
from wirebook.schema.jsonschema.constraints import ObjectConstraint, constraints_of
from wirebook.schema.jsonschema.cost import check_cost
from wirebook.schema.jsonschema.references import References
from wirebook.schema.payload_problems import not_compilable, preview
from wirebook.schema.reader import CompiledSchema, Unsupported
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import resolve as resolve_pointer

DRAFTS: dict[str, tuple[int, Any]] = {
    "draft-04": (js.Draft4, js.Draft4Validator),
    "draft-06": (js.Draft6, js.Draft6Validator),
    "draft-07": (js.Draft7, js.Draft7Validator),
    "draft/2019-09": (js.Draft201909, js.Draft201909Validator),
    "draft/2020-12": (js.Draft202012, js.Draft202012Validator),
}
META_SCHEMAS = {
    draft: f"http{'s' if '/' in draft else ''}://json-schema.org/{draft}/schema{'' if '/' in draft else '#'}"
    for draft in DRAFTS
}
SPECIFICATIONS = {draft: specification_with(uri) for draft, uri in META_SCHEMAS.items()}
LATEST = "draft/2020-12"
_BY_DIGITS = {"04": "draft-04", "4": "draft-04", "06": "draft-06", "6": "draft-06", "07": "draft-07", "7": "draft-07",
              "201909": "draft/2019-09", "202012": LATEST, "2019": "draft/2019-09", "2020": LATEST}  # fmt: skip
FORMAT = "JsonSchema"
JSON_TYPES = (dict, list, str, int, float, bool)
"""The classes of JSON values. A tuple, because `isinstance` would create a union for each call."""


def draft_of(document: Any, version: str | None) -> str:
    """Return the draft of a document: from its `$schema`, else from the version of the format, else the latest."""
    identifier = document.get("$schema") if isinstance(document, dict) else None
    texts = [text for text in (identifier, version) if isinstance(text, str)]
    return next((draft for draft in map(_draft_in, texts) if draft), LATEST)


def _draft_in(text: str) -> str | None:
    name = text.lower().rstrip("#/").removesuffix("/schema").rpartition("json-schema.org/")[2]
    return _BY_DIGITS.get(name.replace("draft", "").strip("-/ ").replace("-", ""))


def compile_json_schema(source: SchemaSource) -> CompiledSchema | Unsupported:
    """Return a reader for the document, or for the part that the fragment names (a JSON Pointer or an anchor).

    Problems: schema-not-compilable
    """
    document, fragment = source.document, source.fragment
    draft = draft_of(document, source.format.version)
    label, (number, validator_class) = f"{FORMAT}/{draft}", DRAFTS[draft]
    base = _base_of(document, source.base_uri)
    root = {"$ref": f"{base}#{quote(pointer_in(document, fragment), safe='/~')}" if fragment else base}

    def retrieve(uri: str) -> Any:
        contents = source.resolve(uri)
        if contents is None:
            raise LookupError(f"'{uri}' is not in the catalogue")
        return contents

    def build(schema: dict[str, Any]) -> Any:
        return validator_class(
            schema,
            registry=js.Registry([(base, document)], draft=number, retriever=retrieve),
            validate_formats=source.options.assert_formats,
            pattern_options=LINEAR,
            offline=True,
        )

    try:
        _check_against_meta_schema(document, draft)
        resolver = _resolver(document, base, draft, retrieve)
        references = References(resolver, SPECIFICATIONS[draft])
        check_cost(root, references)
        validator, layout = build(root), layout_of(root, references)
    except (js.ValidationError, js.ReferencingError, ValueError, RecursionError, OverflowError) as error:
        return not_compilable(label, error)

    def constrain() -> ObjectConstraint | None:
        return constraints_of(root["$ref"], resolver, layout, combines="/" in draft)

    return JsonReader(label, layout, source.options.limits, root, validator, build, expected, constrain)


def _resolver(document: Any, base: str, draft: str, retrieve: Callable[[str], Any]) -> Any:
    """Return the resolver of references for columns. Unlike that of the validator, it keeps the order of members."""

    def retrieve_resource(uri: str) -> Resource[Any]:
        contents = retrieve(uri)
        return SPECIFICATIONS[draft_of(contents, draft)].create_resource(contents)

    registry: Registry[Any] = Registry(retrieve=retrieve_resource)  # type: ignore[call-arg]
    return registry.with_resource(base, SPECIFICATIONS[draft].create_resource(document)).resolver(base)


def _check_against_meta_schema(document: Any, draft: str) -> None:
    """Validate a document against the meta-schema of its draft. Raises: ValidationError, ValueError"""
    if not isinstance(document, dict | bool):
        raise ValueError("a JSON Schema must be an object or a boolean")
    if isinstance(document, dict):  # with the `$schema` of the draft: the library would resolve any other
        js.meta.validate({**document, "$schema": META_SCHEMAS[draft]})


def _base_of(document: Any, base_uri: str) -> str:
    """Return the base URI of the references in a document: its `$id` if that is absolute, else `base_uri`."""
    identifier = (document.get("$id") or document.get("id")) if isinstance(document, dict) else None
    is_absolute = isinstance(identifier, str) and ":" in identifier.split("/", 1)[0]
    return str(identifier).rstrip("#") if is_absolute else base_uri


def pointer_in(document: Any, part: str) -> str:
    """Return the URI fragment of a part of a document.

    `part` is a JSON Pointer with or without the leading slash, the name of a definition, or an anchor.
    """
    pointers = [part] if part.startswith("/") else [f"/{part}", f"/definitions/{part}", f"/$defs/{part}"]
    return next((pointer for pointer in pointers if resolve_pointer(document, pointer) is not None), part)


def expected(error: js.ValidationError) -> dict[str, Any]:
    """Return the keyword that a value violates, with the value of the keyword."""
    kind = error.kind
    details = kind.as_dict()
    values = list(details.values())
    if kind.name in ("additionalProperties", "falseSchema"):
        return {kind.name: False}
    if kind.name in ("anyOf", "oneOf"):
        return {kind.name: f"{len(details['context'])} alternatives"}
    if kind.name == "type":
        types = details["types"]
        return {"type": types[0] if len(types) == 1 else types}
    is_json = bool(values) and isinstance(values[0], JSON_TYPES)
    return {kind.name: preview(values[0]) if is_json else True}
