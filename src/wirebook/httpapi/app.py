"""The ASGI application: checks access, reads the request, passes it to a handler, and sends the response.

Spec: docs/registry.md; core/http.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from wirebook.httpapi.handlers.health import ServerState
from wirebook.httpapi.handlers.metrics import OTHER, Metrics
from wirebook.httpapi.http.access import Caller
from wirebook.httpapi.http.bodies import read_body
from wirebook.httpapi.http.messages import (
    ApiRequest,
    ApiResponse,
    add_root_link,
    decode_path,
    error_response,
    parse_query,
)
from wirebook.httpapi.http.responses import ResponseSender, complete_response, send_response
from wirebook.httpapi.logs import log_access
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.routes import ServerRoute, find_route, find_server_route
from wirebook.httpapi.service import Service
from wirebook.httpapi.web import authority_of, is_body_complete
from wirebook.problems.xregistry import Refused, refused

WELL_KNOWN: Final = "/.well-known/xregistry"
"""Path that is served without the base path."""

LARGE_BODY: Final = 64 * 1024
"""Body size in bytes above which a response is compressed in a worker thread."""


class App:
    """A registry as an ASGI application."""

    def __init__(self, service: Service, options: ServerOptions) -> None:
        self.service, self.options = service, options
        self.metrics, self.stopping = Metrics(), asyncio.Event()
        self._access, self._body_limits = options.access_policy, options.body_limits
        self._state = ServerState(service.database, service.is_ready, self.metrics, self.stopping)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, then count and log it."""
        if scope["type"] != "http":
            return
        started, sender = time.perf_counter(), ResponseSender(send)
        method, raw_path = scope["method"], _raw_path(scope)
        try:
            await self._handle(scope, receive, sender)
        finally:
            seconds = time.perf_counter() - started
            route = find_route(scope["path"].removeprefix(self.options.prefix))
            self.metrics.request(method, route.pattern if route else OTHER, sender.status, seconds)
            peer = _peer(scope)
            log_access(method, raw_path, status=sender.status, size=sender.size, seconds=seconds, peer=peer)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        # uvicorn keeps trailing blanks, which are not part of a header value (RFC 9110#5.5).
        headers = [(name.decode("latin-1"), value.decode("latin-1").strip(" \t")) for name, value in scope["headers"]]
        first_headers = dict(reversed(headers))
        response, origin = await self._respond(scope, headers, first_headers, receive)
        if isinstance(response.body, bytes) and len(response.body) <= LARGE_BODY:
            complete_response(response, method, headers, first_headers, origin)
        else:
            await run_in_threadpool(complete_response, response, method, headers, first_headers, origin)
        await send_response(scope, receive, send, response)

    async def _respond(
        self, scope: Scope, headers: list[tuple[str, str]], first_headers: Mapping[str, str], receive: Receive
    ) -> tuple[ApiResponse, str | None]:
        """Return the response, and the origin of the request if pages of that origin may read the response."""
        method, path = scope["method"], scope["path"]
        probe = self._server_route(method, path.removeprefix(self.options.prefix))
        caller = Caller(
            method,
            path,
            first_headers,
            headers,
            scope["scheme"],
            _peer(scope),
            authority_of(scope),
            is_probe=probe is not None and probe.is_probe,
        )
        base = origin = None
        try:
            base = self._access.base_of(caller)
            self._access.check(caller, base)
            origin = first_headers.get("origin")
            if origin and not self._access.is_allowed_origin(origin, base):
                origin = None
            is_complete = is_body_complete(scope)
            body = await read_body(receive, headers, path, self._body_limits, is_complete=is_complete)
            request = self._parse(scope, base, headers, body)
            route = self._server_route(method, request.path)
            if route:
                return await route.handler(self._state, request), origin
            return await self.service.respond(request, self.options.request_timeout), origin
        except Refused as error:
            response = error_response(error)
            return (add_root_link(response, base) if base is not None else response), origin

    def _server_route(self, method: str, path: str) -> ServerRoute | None:
        """Return the `ServerRoute` of a request, unless a Group type with the name of its path replaces it."""
        route = find_server_route(path)
        if route is None or method not in ("GET", "HEAD"):
            return None
        return None if self.service.has_group_type(path.strip("/")) else route

    def _parse(self, scope: Scope, base: str, headers: list[tuple[str, str]], body: bytes) -> ApiRequest:
        """Return the request, with its path relative to the base path. Raises: bad_request, api_not_found"""
        try:
            path = decode_path(_raw_path(scope).decode("ascii", "strict"))
        except UnicodeDecodeError:
            raise refused("bad_request", scope["path"], error_detail="the path is not valid UTF-8") from None
        if path != WELL_KNOWN:
            if not f"{path}/".startswith(f"{self.options.prefix}/"):
                raise refused("api_not_found", path)
            path = path.removeprefix(self.options.prefix)
        query = parse_query(scope["query_string"].decode("latin-1"))
        return ApiRequest(scope["method"], "/" + path.strip("/"), base, query, headers, body)


def _peer(scope: Scope) -> str | None:
    """Return the IP address of the client, or of the nearest proxy."""
    return scope["client"][0] if scope.get("client") else None


def _raw_path(scope: Scope) -> bytes:
    """Return the path as it was sent, percent-encoded."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0]
