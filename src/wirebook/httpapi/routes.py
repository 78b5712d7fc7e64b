"""The routes of a registry: the table of path patterns, methods and handlers, and the dispatch of requests.

A path is first looked up among the fixed paths. All other paths address entities and collections of the types in the
model of the registry. HEAD is handled like GET, and OPTIONS by `dispatch`.

Starlette's Router is not used: which entity paths exist depends on the model, which a request may change, and the rules
for `$details`, short URLs and error precedence are not expressible as route patterns.

Spec: core/http.md#http-api-patterns; docs/registry.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from wirebook.core.model.target import DETAILS, METHODS, RequestTarget, parse_target
from wirebook.core.query.flags import Flags, parse_flags
from wirebook.core.query.shortself import checksum_of, parse_short
from wirebook.httpapi.handlers.context import RequestContext
from wirebook.httpapi.handlers.entities import get_entity, write_entity
from wirebook.httpapi.handlers.events import EVENTS_PATH, stream_events
from wirebook.httpapi.handlers.health import ServerState, get_liveness, get_metrics, get_readiness
from wirebook.httpapi.handlers.imports import IMPORT_PATH, import_catalogue
from wirebook.httpapi.handlers.openapi import openapi
from wirebook.httpapi.handlers.registry_settings import (
    export,
    get_capabilities,
    get_model,
    get_modelsource,
    get_offered_capabilities,
    get_registries,
    put_capabilities,
    put_modelsource,
)
from wirebook.httpapi.handlers.write_requests import flags_before_write
from wirebook.httpapi.http.etags import etag_of_content
from wirebook.httpapi.http.messages import (
    ApiRequest,
    ApiResponse,
    MethodNotAllowed,
    add_root_link,
    json_response,
    options_response,
)
from wirebook.httpapi.http.preconditions import IF_MATCH, IF_NONE_MATCH, Representation, check_write
from wirebook.httpapi.http.spool import BodySpool
from wirebook.problems.xregistry import Refused, refused
from wirebook.storage.session import Session

EntityHandler = Callable[[RequestContext, RequestTarget, Flags], ApiResponse]
Handler = Callable[[RequestContext], ApiResponse]
ServerHandler = Callable[[ServerState, ApiRequest], Awaitable[ApiResponse]]


@dataclass(frozen=True, slots=True)
class EntityRoute:
    """The paths of one kind of entity or collection (`RequestTarget.kind`), and their handlers by method."""

    pattern: str
    kind: str
    handlers: Mapping[str, EntityHandler]


@dataclass(frozen=True, slots=True)
class FixedRoute:
    """One path and its handlers by method, which run in a transaction.

    `setting` is its name in the capability `available`; None if the path is always available.
    """

    pattern: str
    handlers: Mapping[str, Handler]
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class ServerRoute:
    """One path that supports GET and is handled outside of a transaction.

    A Group type with the name of the path replaces it. `is_probe`: the Host header is not checked.
    """

    pattern: str
    handler: ServerHandler
    is_probe: bool = False


Route = EntityRoute | FixedRoute | ServerRoute


def get_openapi(context: RequestContext) -> ApiResponse:
    """Return the OpenAPI document of the registry. This handler is in this module because it needs `ROUTES`."""
    settings, base = context.settings, context.request.base
    fixed = {route.pattern: tuple(route.handlers) for route in ROUTES if isinstance(route, FixedRoute)}
    return json_response(openapi(settings.model, settings.capabilities, context.server.offer, base, fixed))


def _entity_route(pattern: str, kind: str) -> EntityRoute:
    handlers = {method: get_entity if method == "GET" else write_entity for method in METHODS[kind]}
    return EntityRoute(pattern, kind, handlers)


def _shape(path: str) -> tuple[int, str]:
    """Return what distinguishes entity paths: the number of segments, and the fifth one (`meta` or `versions`)."""
    segments = [segment for segment in path.split("/") if segment]
    return len(segments), segments[4] if len(segments) > 4 else ""


ROUTES: Final[tuple[Route, ...]] = (
    _entity_route("/", "registry"),
    _entity_route("/{groups}", "groups"),
    _entity_route("/{groups}/{group}", "group"),
    _entity_route("/{groups}/{group}/{resources}", "resources"),
    _entity_route("/{groups}/{group}/{resources}/{resource}", "resource"),
    _entity_route("/{groups}/{group}/{resources}/{resource}/meta", "meta"),
    _entity_route("/{groups}/{group}/{resources}/{resource}/versions", "versions"),
    _entity_route("/{groups}/{group}/{resources}/{resource}/versions/{version}", "version"),
    FixedRoute(
        "/capabilities",
        {"GET": get_capabilities, "PATCH": put_capabilities, "PUT": put_capabilities},
        setting="capabilities",
    ),
    FixedRoute("/capabilitiesoffered", {"GET": get_offered_capabilities}, setting="capabilitiesoffered"),
    FixedRoute("/export", {"GET": export}, setting="export"),
    FixedRoute("/model", {"GET": get_model}, setting="model"),
    FixedRoute("/modelsource", {"GET": get_modelsource, "PUT": put_modelsource}, setting="modelsource"),
    FixedRoute("/.xregistry", {"GET": get_registries}, setting=".xregistry"),
    FixedRoute("/.well-known/xregistry", {"GET": get_registries}),
    FixedRoute(IMPORT_PATH, {"POST": import_catalogue}),
    FixedRoute("/.wirebook/openapi.json", {"GET": get_openapi}),
    ServerRoute("/healthz", get_liveness, is_probe=True),
    ServerRoute("/readyz", get_readiness, is_probe=True),
    ServerRoute("/.wirebook/healthz", get_liveness, is_probe=True),
    ServerRoute("/.wirebook/readyz", get_readiness, is_probe=True),
    ServerRoute("/.wirebook/metrics", get_metrics),
    ServerRoute(EVENTS_PATH, stream_events),
)
FIXED: Final = {route.pattern: route for route in ROUTES if isinstance(route, FixedRoute)}
SERVER: Final = {route.pattern: route for route in ROUTES if isinstance(route, ServerRoute)}
ENTITIES: Final = {route.kind: route for route in ROUTES if isinstance(route, EntityRoute)}
ENTITIES_BY_SHAPE: Final = {_shape(route.pattern): route for route in ENTITIES.values()}
RESERVED: Final = frozenset(pattern.split("/")[1] for pattern in FIXED)
"""First segments of fixed paths. They cannot be names of Group types."""


def find_route(path: str) -> Route | None:
    """Return the route of a path, regardless of the model; None for a path that no registry has."""
    path = "/" + path.strip("/")
    if route := FIXED.get(path) or SERVER.get(path):
        return route
    return None if path.startswith("/.") else ENTITIES_BY_SHAPE.get(_shape(path.removesuffix(DETAILS)))


def find_server_route(path: str) -> ServerRoute | None:
    """Return the route of a path that is handled outside of a transaction; None for any other path."""
    return SERVER.get("/" + path.strip("/"))


# -- dispatch ---------------------------------------------------------------------------------------------------------


def dispatch(context: RequestContext) -> ApiResponse:
    """Handle a request in its transaction: find its route, check its method, flags and preconditions, call its handler.

    Raises: Refused, DryRun
    """
    path = expand_short_path(context.request.path, context.session)
    if path != context.request.path:
        context = replace(context, request=replace(context.request, path=path))
    if route := FIXED.get("/" + path.strip("/")):
        return _dispatch_fixed(route, context)
    first = path.strip("/").partition("/")[0]
    if first.startswith(".") or first in RESERVED:
        raise refused("api_not_found", path)
    return _dispatch_entity(context)


def _dispatch_fixed(route: FixedRoute, context: RequestContext) -> ApiResponse:
    request, settings = context.request, context.settings
    methods = tuple(route.handlers)
    if route.setting and not settings.is_available(route.setting):
        raise refused("api_not_found", request.path)
    is_mutable = route.setting is None or settings.is_mutable(route.setting)
    if request.method == "OPTIONS":
        return options_response(methods if is_mutable else ("GET",))
    if request.method not in ("PATCH", "PUT") and route.setting != "export":  # these check their flags themselves
        target = RequestTarget("settings", request.path)
        parse_flags(request.query, target, request.method, settings.model, settings.capabilities)
    if request.method not in route.handlers:
        raise _not_allowed(request, methods)
    if request.method != "GET":
        if not is_mutable:
            raise refused("not_available", f"/{route.setting}")
        check_write(request, lambda: _current_representation(context))
    return route.handlers[request.method](context)


def _dispatch_entity(context: RequestContext) -> ApiResponse:
    request, settings = context.request, context.settings
    target = parse_target(request.path, settings.model)
    methods = target.methods if settings.is_mutable("entities") else ("GET",)
    if request.method == "OPTIONS":
        return options_response(methods)
    query = flags_before_write(request, target)
    flags = parse_flags(query, target, request.method, settings.model, settings.capabilities)
    if request.method not in methods:
        if request.method == "PATCH" and "PUT" in methods:
            raise MethodNotAllowed(refused("details_required", target.resource_xid), methods)
        raise _not_allowed(request, methods)
    if request.method != "GET":
        check_write(request, lambda: _current_representation(context))
    return ENTITIES[target.kind].handlers[request.method](context, target, flags)


def _not_allowed(request: ApiRequest, methods: tuple[str, ...]) -> MethodNotAllowed:
    return MethodNotAllowed(refused("action_not_supported", request.path, action=request.method), methods)


def _current_representation(context: RequestContext) -> Representation | None:
    """Return what a GET of the URL of a write returns in the transaction of the write; None for 404 and 405."""
    request = context.request
    headers = [(IF_NONE_MATCH, value) for name, value in request.headers if name in (IF_MATCH, IF_NONE_MATCH)]
    reading = ApiRequest("GET", request.path, request.base, request.query, headers)
    try:
        response = dispatch(replace(context, request=reading))
    except Refused as error:
        # Flags may be valid only by the settings in the request: until it is processed, a GET of its URL is an error.
        has_new_flags = flags_before_write(request, RequestTarget("registry", "/")) is not request.query
        if error.type.status in (404, 405) or (request.path == "/" and has_new_flags):
            return None
        raise
    return Representation(complete_read(response, request.base).etag)


def complete_read(response: ApiResponse, base: str) -> ApiResponse:
    """Add the link to the root and, if the body is complete, the ETag to the response to a GET, and return it."""
    add_root_link(response, base)
    if response.status == 200 and response.etag is None:
        body = response.body
        if isinstance(body, bytes) or (isinstance(body, BodySpool) and body.is_complete):
            response.etag = etag_of_content(response.headers, body)
    return response


def expand_short_path(path: str, session: Session) -> str:
    """Return the path that a short path (`shortself`) stands for; any other path unchanged. Raises: not_found"""
    short = parse_short(path)
    if short is None:
        return path
    xid = session.xid_of(is_group=short.is_group, key=short.key)
    if xid is None or checksum_of(xid) != short.check:
        raise refused("not_found", path)
    return xid + short.rest
