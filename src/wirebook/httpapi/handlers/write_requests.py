"""Parses write requests: the members, the document and the flags that apply before the write.

Spec: core/http.md#creating-or-updating-entities; core/http.md#request-flags--query-parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wirebook.core.entities.decide import ALL, WriteRequest
from wirebook.core.entities.deletes import listed_map
from wirebook.core.entities.documents import Body
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.flags import Flags, Query
from wirebook.httpapi.http.headers import PREFIX, parse_headers
from wirebook.httpapi.http.messages import ApiRequest, read_json
from wirebook.problems.xregistry import Refused, refused

SETTINGS: Final = ("capabilities", "modelsource")
"""Members of a Registry that change how the rest of the request is interpreted."""


def parse_write(request: ApiRequest, target: RequestTarget, flags: Flags) -> WriteRequest:
    """Return the write that a request describes in its body or its headers.

    Raises: missing_body, parsing_data, bad_flag, extra_xregistry_header, header_error, extra_xref_attribute
    """
    method = request.method
    if method == "DELETE":
        return WriteRequest(method, target, _deleted(request, target, flags), None, flags.default, flags.epoch)
    if not target.is_document:
        header = next((name for name, _ in request.headers if name.startswith(PREFIX)), None)
        if header and request.body:
            reason = "the attributes are in the body; send them in the body only"
            raise refused("extra_xregistry_header", request.path, name=header, error_detail=reason)
        value = read_json(request)
        return WriteRequest(method, target, {} if value is None else value, None, flags.default)
    assert target.type
    members = parse_headers(request.headers, target.type, request.path)
    url = target.type.document_names[1]
    if members.get(url) is not None and request.body:
        reason = "the document is stored elsewhere, so the body must be empty"
        raise refused("extra_xregistry_header", request.path, name=f"xRegistry-{url}", error_detail=reason)
    return WriteRequest(method, target, members, Body(request.body), flags.default)


def _deleted(request: ApiRequest, target: RequestTarget, flags: Flags) -> Mapping[str, Any] | None:
    """Return the entities of a collection that a DELETE lists, else `ALL`. Raises: parsing_data, bad_flag"""
    if target.is_collection and request.body:
        return listed_map(read_json(request), request.path)
    if target.is_collection and flags.epoch is not None:
        # Reading: an epoch belongs to one entity, so a client that sends it must not lose a whole collection (checklist
        # AMB-05).
        detail = "The flag applies to one entity; without a map in the body this request would delete all of them."
        raise refused("bad_flag", target.path, flag="epoch", detail=detail)
    return ALL


def changes_settings(target: RequestTarget, method: str, value: Any) -> bool:
    """Return whether a request writes the Registry with capabilities or a model in its body."""
    if target.kind != "registry" or method not in ("PUT", "PATCH") or not isinstance(value, Mapping):
        return False
    return any(name in value for name in SETTINGS)


def flags_before_write(request: ApiRequest, target: RequestTarget) -> Query:
    """Return the query parameters to parse before a request is processed.

    These are all parameters, unless the request changes the model or the capabilities: then only `ignore` is parsed
    before, and `RegistryWriter.write_entity` parses the others by the new model and capabilities.
    """
    if not request.query or target.kind != "registry" or request.method not in ("PATCH", "PUT"):
        return request.query
    try:
        value = read_json(request)
    except Refused:  # `parse_write` raises it again; a bad flag is reported first
        return request.query
    if not changes_settings(target, request.method, value):
        return request.query
    return {name: values for name, values in request.query.items() if name == "ignore"}


def flags_after_write(request: ApiRequest) -> Query:
    """Return the query parameters that `flags_before_write` leaves out if the request changes the settings."""
    return {name: values for name, values in request.query.items() if name != "ignore"}
