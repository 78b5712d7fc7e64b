"""Parts of the OpenAPI document that are the same for every model: flags, errors, the registry's own paths.

Spec: core/http.md#request-flags--query-parameters; core/http.md#error-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wirebook.core.model.compiled import SCALARS
from wirebook.core.model.json_schema import TEXT, reference
from wirebook.httpapi.handlers.imports import PATH as IMPORT
from wirebook.problems.xregistry import ERRORS, OWN_ERRORS

Json = dict[str, Any]

URIS: Final = sorted(error.uri for errors in (ERRORS, OWN_ERRORS) for error in errors.values())
PROBLEM: Final[Json] = {
    "type": "object",
    "description": "What was wrong, as RFC 9457 says it.",
    "properties": {
        "type": {"type": "string", "format": "uri-reference", "examples": URIS},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "subject": {"type": "string", "description": "The xid of the entity, or the path of the request."},
        "args": {"type": "object", "additionalProperties": {"type": "string"}},
        "instance": {"type": "string"},
        "source": {"type": "string"},
    },
    "required": ["type", "title"],
}
DIAGNOSTIC: Final[Json] = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "severity": {"enum": ["error", "warning", "info"]},
        "message": {"type": "string"},
        "pointer": {"type": "string", "description": "The place in the document, as a JSON Pointer."},
        "line": {"type": "integer"},
        "column": {"type": "integer"},
    },
    "required": ["code", "message"],
}
IMPORTED: Final[Json] = {
    "type": "object",
    "properties": {
        "diagnostics": {"type": "array", "items": DIAGNOSTIC},
        "changed": {"type": "array", "items": {"type": "string"}, "description": "The xids of what was written."},
    },
    "required": ["diagnostics", "changed"],
}


def json_content(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def body(content: Json, *, required: bool = True) -> Json:
    return {"required": required, "content": content}


def answer(description: str, content: Json | None = None) -> Json:
    return {"description": description} | ({"content": content} if content else {})


def problem(description: str) -> Json:
    return answer(description, json_content(reference("problem")))


def errors(*, has_body: bool) -> Json:
    """The errors of an operation on the registry."""
    names = {"412": "failed", "4XX": "problem", "503": "unavailable", "507": "full", "5XX": "problem"}
    if has_body:
        names |= {"413": "too_large", "415": "unsupported"}
    return {status: {"$ref": f"#/components/responses/{names[status]}"} for status in sorted(names)}


CONDITIONS: Final = ("If-Match", "If-None-Match")


def conditions() -> Json:
    """The headers with preconditions, as components."""
    texts = ("Do this only if one of these entity tags is current.", "Do this only if none of them is current.")
    return {
        name: {
            "name": name,
            "in": "header",
            "description": text,
            "schema": {"type": "string", "examples": ["*", '"1a2b"']},
        }
        for name, text in zip(CONDITIONS, texts, strict=True)
    }


def condition_parameters() -> list[Json]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in CONDITIONS]


def responses() -> Json:
    """The answers that many operations have."""
    location = {"Location": {"schema": {"type": "string", "format": "uri-reference"}}}
    return {
        "problem": problem("The request was rejected; the body explains why."),
        "failed": problem("A precondition (If-Match, If-None-Match) is false."),
        "too_large": problem("The body is too large, before or after it is decoded."),
        "unsupported": {
            **problem("The body has a Content-Encoding that is not supported."),
            "headers": {"Accept-Encoding": {"schema": {"type": "string"}, "description": "The supported codings."}},
        },
        "unavailable": {
            **problem("The server is busy, or its database is not available."),
            "headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}},
        },
        "full": problem("The server has no space left."),
        "elsewhere": {"description": "The document is elsewhere.", "headers": location},
    }


# -- flags ----------------------------------------------------------------------------------------------------------

_PRESENCE: Final = {"type": "string", "const": ""}
_FLAGS: Final[Mapping[str, tuple[str, Json]]] = {
    "binary": ("Documents are base64, whatever they are.", _PRESENCE),
    "collections": ("Collections alone, with everything in them.", _PRESENCE),
    "doc": ("Document view: URLs are pointers, nothing is there twice.", _PRESENCE),
    "epoch": ("The epoch that the entity must have.", {"type": "integer", "minimum": 0}),
    "filter": ("Expressions, all of which must hold, with commas between; any of several parameters is enough.", TEXT),
    "ignore": ("What of the body does not count: names with commas between, or * for all.", TEXT),
    "inline": ("What is shown in place: paths with commas between, or *.", TEXT),
    "setdefaultversionid": ("The Version to be the default: its id, or null for the newest, or request.", TEXT),
    "sort": ("The attribute to sort by, =asc or =desc.", TEXT),
    "specversion": ("The version of the text that the answer is for.", TEXT),
}
_REPEATED: Final = ("filter", "ignore", "inline")
LIMIT: Final[Json] = {
    "name": "limit",
    "in": "query",
    "description": "How many entities a page has at most; the header Link leads to the next.",
    "schema": {"type": "integer", "minimum": 1},
}


def flag_parameters(capabilities: Mapping[str, Any]) -> Json:
    """The flags that the registry offers, as components."""
    flags = {name: _flag(name, capabilities) for name in capabilities["flags"]}
    return flags | ({"limit": LIMIT} if capabilities["pagination"] else {})


def _flag(name: str, capabilities: Mapping[str, Any]) -> Json:
    text, schema = _FLAGS[name]
    allowed = {"ignore": [*capabilities["ignores"], "*"], "specversion": capabilities["specversions"]}.get(name)
    if allowed:
        schema = schema | {"examples": list(allowed)}
    if name in _REPEATED:
        schema = {"type": "array", "items": schema}
    parameter: Json = {"name": name, "in": "query", "description": text, "schema": schema}
    return parameter | ({"allowEmptyValue": True} if schema is _PRESENCE else {})


def document_headers(attributes: Mapping[str, Any]) -> list[Json]:
    """The attributes that come as headers beside a document."""
    return [
        {"name": f"xRegistry-{name}", "in": "header", "schema": {"type": "string"}}
        for name, attribute in attributes.items()
        if attribute["type"] in SCALARS and not attribute.get("readonly") and name not in ("*", "contenttype")
    ]


# -- paths of their own ---------------------------------------------------------------------------------------------

_OBJECT: Final[Json] = {"type": "object"}
_DISCOVERY: Final[Json] = {
    "type": "object",
    "properties": {"registries": {"type": "array", "items": {"type": "string", "format": "uri"}}},
    "required": ["registries"],
}
_OWN: Final[Mapping[str, tuple[str, Json]]] = {
    "capabilities": ("What the registry offers.", reference("capabilities")),
    "capabilitiesoffered": ("What it could offer.", _OBJECT),
    "export": ("Everything, in document view.", reference("registry")),
    "model": ("The full model.", _OBJECT),
    "modelsource": ("The model as it was written.", _OBJECT),
    ".xregistry": ("Where registries are.", _DISCOVERY),
    ".well-known/xregistry": ("Where registries are.", _DISCOVERY),
    ".wirebook/openapi.json": ("This document.", _OBJECT),
    IMPORT: ("Takes in a document of any dialect that Wirebook reads.", IMPORTED),
}
TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "/healthz": ("Whether the server is up.", "text/plain"),
    "/readyz": ("Whether its database answers, too.", "text/plain"),
    "/.wirebook/healthz": ("As /healthz, which a Group type of that name hides.", "text/plain"),
    "/.wirebook/readyz": ("As /readyz, which a Group type of that name hides.", "text/plain"),
    "/.wirebook/metrics": ("Metrics for Prometheus.", "text/plain"),
    "/.wirebook/events": ("What changes, as server-sent events.", "text/event-stream"),
}
"""Paths whose answers are texts."""


def own_paths(special: Mapping[str, Sequence[str]]) -> Json:
    """The paths that are no entities'. `special` has the methods of those that answer JSON."""
    paths = {f"/{name}": {method.lower(): _own(name, method) for method in special[name]} for name in special}
    return paths | {path: {"get": _text(path)} for path in TEXTS}


def _text(path: str) -> Json:
    description, media_type = TEXTS[path]
    found = answer(description, {media_type: {"schema": {"type": "string"}}})
    return {"operationId": f"get-{path[1:].replace('/', '-')}", "responses": {"200": found, **_probe_errors()}}


def _probe_errors() -> Json:
    return {status: {"$ref": "#/components/responses/problem"} for status in ("4XX", "5XX")}


def _own(name: str, method: str) -> Json:
    description, schema = _OWN[name]
    operation: Json = {"operationId": f"{method.lower()}-{name.replace('/', '-')}"}
    if method != "GET":
        operation["requestBody"] = body(dict(_sent(name, schema)))
        operation["parameters"] = condition_parameters()
    found = {"200": answer(description, json_content(schema))}
    return operation | {"responses": {**found, **errors(has_body=method != "GET")}}


def _sent(name: str, schema: Json) -> Iterator[tuple[str, Json]]:
    yield "application/json", {"schema": _OBJECT if name == IMPORT else schema}
    if name == IMPORT:
        yield "application/yaml", {"schema": _OBJECT}
