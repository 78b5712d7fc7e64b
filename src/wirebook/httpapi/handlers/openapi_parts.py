"""Parts of the OpenAPI document that do not depend on the model: flags, preconditions, errors and fixed paths.

Spec: core/http.md#request-flags--query-parameters; core/http.md#error-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from wirebook.core.model.compiled import SCALARS
from wirebook.core.model.json_schema import TEXT, reference
from wirebook.httpapi.handlers.imports import IMPORT_PATH
from wirebook.problems import CODES

Json = dict[str, Any]

URIS: Final = sorted(code.uri for code in CODES.values() if code.status)
PROBLEM: Final[Json] = {
    "type": "object",
    "description": "An error, as RFC 9457 defines it.",
    "properties": {
        "type": {"type": "string", "format": "uri-reference", "examples": URIS},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "subject": {
            "type": "string",
            "description": "The xid of the entity that the error is about, or the path of the request.",
        },
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
        "pointer": {"type": "string", "description": "The location in the document, as a JSON Pointer."},
        "line": {"type": "integer"},
        "column": {"type": "integer"},
    },
    "required": ["code", "message"],
}
IMPORTED: Final[Json] = {
    "type": "object",
    "properties": {
        "diagnostics": {"type": "array", "items": DIAGNOSTIC},
        "changed": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The xids of the entities that were written.",
        },
    },
    "required": ["diagnostics", "changed"],
}


def json_content(schema: Json) -> Json:
    """Return the `content` of a JSON body."""
    return {"application/json": {"schema": schema}}


def request_body(content: Json, *, required: bool = True) -> Json:
    """Return a Request Body Object."""
    return {"required": required, "content": content}


def response(description: str, content: Json | None = None) -> Json:
    """Return a Response Object."""
    return {"description": description} | ({"content": content} if content else {})


def problem_response(description: str) -> Json:
    """Return the Response Object of an error."""
    return response(description, json_content(reference("problem")))


def error_responses(*, has_body: bool) -> Json:
    """Return the error responses of an operation, by status. `has_body`: the request may have a body."""
    names = {"412": "failed", "4XX": "problem", "503": "unavailable", "507": "full", "5XX": "problem"}
    if has_body:
        names |= {"413": "too_large", "415": "unsupported"}
    return {status: {"$ref": f"#/components/responses/{names[status]}"} for status in sorted(names)}


PRECONDITIONS: Final = {
    "If-Match": "Process the request only if one of these entity tags is the current one.",
    "If-None-Match": "Process the request only if none of these entity tags is the current one.",
}


def precondition_components() -> Json:
    """Return the headers If-Match and If-None-Match as components."""
    return {
        name: {
            "name": name,
            "in": "header",
            "description": text,
            "schema": {"type": "string", "examples": ["*", '"1a2b"']},
        }
        for name, text in PRECONDITIONS.items()
    }


def precondition_parameters() -> list[Json]:
    """Return references to the headers If-Match and If-None-Match."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in PRECONDITIONS]


def shared_responses() -> Json:
    """Return the responses that several operations share, as components."""
    location = {"Location": {"schema": {"type": "string", "format": "uri-reference"}}}
    return {
        "problem": problem_response("The request was rejected; the body explains why."),
        "failed": problem_response("A precondition (If-Match, If-None-Match) is false."),
        "too_large": problem_response("The body is too large, before or after decoding."),
        "unsupported": {
            **problem_response("The Content-Encoding of the body is not supported."),
            "headers": {"Accept-Encoding": {"schema": {"type": "string"}, "description": "The supported codings."}},
        },
        "unavailable": {
            **problem_response("The server is busy, or its database is unavailable."),
            "headers": {
                "Retry-After": {
                    "schema": {"type": "integer"},
                    "description": "Seconds to wait before the next attempt.",
                }
            },
        },
        "full": problem_response("The server has no disk space left."),
        "elsewhere": {"description": "The document is stored elsewhere.", "headers": location},
    }


# -- flags ----------------------------------------------------------------------------------------------------------

_PRESENT: Final = {"type": "string", "const": ""}
_FLAGS: Final[Mapping[str, tuple[str, Json]]] = {
    "binary": ("Return documents in base64, whatever their content type.", _PRESENT),
    "collections": ("Return only the collections, with everything inlined.", _PRESENT),
    "doc": ("Return the document view: references inside of the response are JSON Pointers.", _PRESENT),
    "epoch": (
        "The epoch that the entity must have; otherwise the request is rejected.",
        {"type": "integer", "minimum": 0},
    ),
    "filter": (
        "Comma-separated expressions that must all match. If the parameter is repeated, one of them must match.",
        TEXT,
    ),
    "ignore": ("Comma-separated names of what to ignore in the body, or * for all.", TEXT),
    "inline": ("Comma-separated paths of what to include in the response, or * for everything.", TEXT),
    "setdefaultversionid": (
        "The default Version: its id, null for the newest Version, or request for the Version in the request.",
        TEXT,
    ),
    "sort": ("The attribute to sort by, with =asc (default) or =desc.", TEXT),
    "specversion": ("The version of the xRegistry specification that the response must comply with.", TEXT),
}
_REPEATED: Final = ("filter", "ignore", "inline")
LIMIT: Final[Json] = {
    "name": "limit",
    "in": "query",
    "description": "Maximum number of entities on a page. The header Link has the URL of the next page.",
    "schema": {"type": "integer", "minimum": 1},
}


def flag_parameters(capabilities: Mapping[str, Any]) -> Json:
    """Return the flags that the registry supports as components, with `limit` if it supports pagination."""
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
    return parameter | ({"allowEmptyValue": True} if schema is _PRESENT else {})


def document_headers(attributes: Mapping[str, Any]) -> list[Json]:
    """Return the attributes that a client may send as headers with a document."""
    return [
        {"name": f"xRegistry-{name}", "in": "header", "schema": {"type": "string"}}
        for name, attribute in attributes.items()
        if attribute["type"] in SCALARS and not attribute.get("readonly") and name not in ("*", "contenttype")
    ]


# -- fixed paths ------------------------------------------------------------------------------------------------------

_OBJECT: Final[Json] = {"type": "object"}
_DISCOVERY: Final[Json] = {
    "type": "object",
    "properties": {"registries": {"type": "array", "items": {"type": "string", "format": "uri"}}},
    "required": ["registries"],
}
_FIXED: Final[Mapping[str, tuple[str, Json]]] = {
    "/capabilities": ("The capabilities of the registry.", reference("capabilities")),
    "/capabilitiesoffered": ("The values that each capability may have.", _OBJECT),
    "/export": ("The whole registry, in document view.", reference("registry")),
    "/model": ("The full model.", _OBJECT),
    "/modelsource": ("The model as it was written.", _OBJECT),
    "/.xregistry": ("The URLs of the registries on this host.", _DISCOVERY),
    "/.well-known/xregistry": ("The URLs of the registries on this host.", _DISCOVERY),
    "/.wirebook/openapi.json": ("This document.", _OBJECT),
    IMPORT_PATH: ("Import a catalogue document of any dialect that Wirebook supports.", IMPORTED),
}
TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "/healthz": ("Whether the server is running.", "text/plain"),
    "/readyz": ("Whether the server is running and its database is available.", "text/plain"),
    "/.wirebook/healthz": ("Like /healthz, for a registry with a Group type of that name.", "text/plain"),
    "/.wirebook/readyz": ("Like /readyz, for a registry with a Group type of that name.", "text/plain"),
    "/.wirebook/metrics": ("Metrics in the text format of Prometheus.", "text/plain"),
    "/.wirebook/events": ("Changes of the registry, as server-sent events.", "text/event-stream"),
}
"""Paths that return text, with their description and media type."""


def fixed_paths(methods: Mapping[str, Sequence[str]]) -> Json:
    """Return the paths that the model does not define. `methods` has the methods of the paths that return JSON."""
    paths = {path: {method.lower(): _json_operation(path, method) for method in methods[path]} for path in methods}
    return paths | {path: {"get": _text_operation(path)} for path in TEXTS}


def _text_operation(path: str) -> Json:
    description, media_type = TEXTS[path]
    success = response(description, {media_type: {"schema": {"type": "string"}}})
    failures = {status: {"$ref": "#/components/responses/problem"} for status in ("4XX", "5XX")}
    return {"operationId": _operation_id(path, "GET"), "responses": {"200": success, **failures}}


def _json_operation(path: str, method: str) -> Json:
    description, schema = _FIXED[path]
    operation: Json = {"operationId": _operation_id(path, method)}
    if method != "GET":
        content = json_content(_OBJECT if path == IMPORT_PATH else schema)
        if path == IMPORT_PATH:
            content |= {"application/yaml": {"schema": _OBJECT}}
        operation["requestBody"] = request_body(content)
        operation["parameters"] = precondition_parameters()
    success = {"200": response(description, json_content(schema))}
    return operation | {"responses": success | error_responses(has_body=method != "GET")}


def _operation_id(path: str, method: str) -> str:
    return f"{method.lower()}-{path[1:].replace('/', '-')}"
