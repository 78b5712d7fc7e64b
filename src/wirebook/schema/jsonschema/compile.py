"""JSON Schema, draft-04 to 2020-12: one document to a reader of payloads.

Rule: `$schema` names the draft, else the version in the format's name, else 2020-12. `format` is asserted as the draft
says (D52). Patterns run on the linear-time engine: a schema that needs look-around or back-references does not compile.
References lead to other documents of the catalogue, by their `$id` or address, never to the network.
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
from wirebook.schema.jsonschema.cost import check_cost
from wirebook.schema.payload_problems import not_compilable, preview
from wirebook.schema.reader import CompiledSchema, Unsupported
from wirebook.schema.source import Resolve, SchemaSource
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


def draft_of(document: Any, version: str | None) -> str:
    """The draft of a document: its `$schema`, else the version of the format's name, else the latest."""
    declared = document.get("$schema") if isinstance(document, dict) else None
    texts = [text for text in (declared, version) if isinstance(text, str)]
    return next((draft for draft in map(_draft_in, texts) if draft), LATEST)


def _draft_in(text: str) -> str | None:
    words = text.lower().rstrip("#/").removesuffix("/schema").rpartition("json-schema.org/")[2]
    return _BY_DIGITS.get(words.replace("draft", "").strip("-/ ").replace("-", ""))


def compile_json_schema(source: SchemaSource) -> CompiledSchema | Unsupported:
    """A reader for the document, or for the part of it that the fragment (a JSON Pointer or an anchor) names."""
    document, fragment = source.document, source.fragment
    draft = draft_of(document, source.format.version)
    label, (number, validator_class) = f"{FORMAT}/{draft}", DRAFTS[draft]
    base = _base_of(document, source.base_uri)
    retriever = _retriever(source.resolve)
    root = {"$ref": f"{base}#{quote(pointer_in(document, fragment), safe='/~')}" if fragment else base}

    def build(schema: dict[str, Any]) -> Any:
        return validator_class(
            schema,
            registry=js.Registry([(base, document)], draft=number, retriever=retriever),
            validate_formats=source.options.assert_formats,
            pattern_options=LINEAR,
            offline=True,
        )

    try:
        _check_against_meta_schema(document, draft)
        resolver = _resolver(document, base, draft, source.resolve)
        check_cost(root, resolver)
        validator, layout = build(root), layout_of(root, resolver)
    except (js.ValidationError, js.ReferencingError, ValueError, RecursionError, OverflowError) as error:
        return not_compilable(label, error)
    return JsonReader(label, layout, source.options.limits, root, validator, build, expected)


def _resolver(document: Any, base: str, draft: str, resolve: Resolve) -> Any:
    """What follows references for the columns: it keeps the order of members, which the validator's own does not."""

    def retrieve(uri: str) -> Resource[Any]:
        found = resolve(uri)
        if found is None:
            raise LookupError(uri)
        return SPECIFICATIONS[draft_of(found, draft)].create_resource(found)

    registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    return registry.with_resource(base, SPECIFICATIONS[draft].create_resource(document)).resolver(base)


def _check_against_meta_schema(document: Any, draft: str) -> None:
    """Raises: ValidationError, ValueError when the document is no schema of the draft."""
    if not isinstance(document, dict | bool):
        raise ValueError("a JSON Schema is an object or a boolean")
    if isinstance(document, dict):  # with the draft's own `$schema`: another would be looked for on the network
        js.meta.validate({**document, "$schema": META_SCHEMAS[draft]})


def _base_of(document: Any, base_uri: str) -> str:
    """The URI that references in the document are relative to: its own `$id` where that is absolute."""
    declared = (document.get("$id") or document.get("id")) if isinstance(document, dict) else None
    absolute = isinstance(declared, str) and ":" in declared.split("/", 1)[0]
    return str(declared).rstrip("#") if absolute else base_uri


def pointer_in(document: Any, part: str) -> str:
    """The fragment that names a part of a document: a JSON Pointer, with or without its first slash, the name of a
    definition, or an anchor."""
    pointers = [part] if part.startswith("/") else [f"/{part}", f"/definitions/{part}", f"/$defs/{part}"]
    return next((pointer for pointer in pointers if resolve_pointer(document, pointer) is not None), part)


def _retriever(resolve: Resolve) -> Callable[[str], Any]:
    def retrieve(uri: str) -> Any:
        found = resolve(uri)
        if found is None:
            raise LookupError(f"'{uri}' is not in the catalogue")
        return found

    return retrieve


def expected(error: js.ValidationError) -> dict[str, Any]:
    """The keyword that a value breaks, with its value."""
    kind = error.kind
    described = kind.as_dict()
    values = list(described.values())
    if kind.name in ("additionalProperties", "falseSchema"):
        return {kind.name: False}
    if kind.name in ("anyOf", "oneOf"):
        return {kind.name: f"{len(described['context'])} alternatives"}
    if kind.name == "type":
        types = described["types"]
        return {"type": types[0] if len(types) == 1 else types}
    return {kind.name: preview(values[0]) if values and _is_json(values[0]) else True}


def _is_json(value: Any) -> bool:
    return isinstance(value, dict | list | str | int | float | bool)
