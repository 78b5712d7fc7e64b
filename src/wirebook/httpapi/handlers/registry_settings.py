"""Handlers of the fixed paths of a registry: capabilities, model, export and discovery.

Spec: core/http.md#capabilities; core/http.md#registry-model; core/http.md#exporting.
"""

from __future__ import annotations

from dataclasses import replace

from wirebook.core.model.capabilities import offered_capabilities
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.flags import parse_flags
from wirebook.httpapi.handlers.context import RequestContext
from wirebook.httpapi.handlers.entity_reader import read_target
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.handlers.registry_writer import RegistryWriter
from wirebook.httpapi.http.messages import ApiResponse, json_response


def get_capabilities(context: RequestContext) -> ApiResponse:
    """Return the current capabilities."""
    return json_response(context.settings.capabilities)


def put_capabilities(context: RequestContext) -> ApiResponse:
    """Handle PUT or PATCH of the capabilities."""
    return RegistryWriter.for_request(context).put_capabilities(context.request)


def get_offered_capabilities(context: RequestContext) -> ApiResponse:
    """Return the values that each capability may have."""
    return json_response(offered_capabilities(context.server.offer))


def get_model(context: RequestContext) -> ApiResponse:
    """Return the full model."""
    return json_response(context.settings.model.full)


def get_modelsource(context: RequestContext) -> ApiResponse:
    """Return the model as it was written."""
    return json_response(context.settings.modelsource)


def put_modelsource(context: RequestContext) -> ApiResponse:
    """Handle PUT of the model."""
    return RegistryWriter.for_request(context).put_modelsource(context.request)


def get_registries(context: RequestContext) -> ApiResponse:
    """Return the URLs of the registries on this host. Spec: core/http.md#registry-discovery"""
    return json_response({"registries": [context.request.base]})


def export(context: RequestContext) -> ApiResponse:
    """Return the Registry in document view with everything inlined, without a size limit.

    This works even if the registry does not support the flags `doc` and `inline`. Flags in the request take precedence
    if the registry supports them.
    """
    request, settings = context.request, context.settings
    supported = settings.capabilities["flags"]
    query = {
        "doc": [""],
        "inline": ["*", *(name for name in ("capabilities", "modelsource") if settings.is_available(name))],
        **{name: values for name, values in request.query.items() if name in supported},
    }
    target = RequestTarget("registry", request.path)
    capabilities = {**settings.capabilities, "flags": [*supported, "doc", "inline"]}
    flags = parse_flags(query, target, "GET", settings.model, capabilities)
    limits = replace(context.server.limits, response=None)
    reading = ReadContext(context.session, settings, request.base, flags, limits=limits, spool=request.spool)
    return read_target(reading, target)
