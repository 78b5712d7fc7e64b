"""Handlers for the paths of entities and collections, which the model defines.

Spec: core/http.md#registry-http-apis.
"""

from __future__ import annotations

from wirebook.core.model.target import RequestTarget
from wirebook.core.query.flags import Flags
from wirebook.httpapi.handlers.context import RequestContext
from wirebook.httpapi.handlers.entity_reader import read_target
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.handlers.registry_writer import RegistryWriter
from wirebook.httpapi.http.messages import ApiResponse
from wirebook.httpapi.http.preconditions import IF_NONE_MATCH


def get_entity(context: RequestContext, target: RequestTarget, flags: Flags) -> ApiResponse:
    """Handle GET of an entity or a collection."""
    request = context.request
    reading = ReadContext(
        context.session,
        context.settings,
        request.base,
        flags,
        request.query,
        limits=context.server.limits,
        if_none_match=request.joined(IF_NONE_MATCH),
    )
    return read_target(reading, target, with_etag=True)


def write_entity(context: RequestContext, target: RequestTarget, flags: Flags) -> ApiResponse:
    """Handle PUT, PATCH, POST or DELETE of an entity or a collection."""
    return RegistryWriter.for_request(context).write_entity(context.request, target, flags)
