"""HTTP in ASGI applications: the request of a scope, and the events of a response. No package is needed.

    async def application(scope, receive, send):
        outcome = catalog.match(await record_of(scope, receive))
        for event in events_of(catalog.build(...)):
            await send(event)

Spec: https://asgi.readthedocs.io, HTTP and WebSocket, version 2.3
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from wirebook.bindings import AnyMessage, HttpMessage, bytes_of, from_bytes
from wirebook.convert.httplines import ascii_of, pairs_of, raw_of
from wirebook.convert.refusal import refuse, require
from wirebook.problems import Problem, WirebookError

NAME = "ASGI"
MAX_BODY = 64 * 1024 * 1024

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


async def record_of(scope: Scope, receive: Receive, max_body: int = MAX_BODY) -> HttpMessage:
    """The request, its body read to the end.

    Raises: WirebookError (``too-large`` beyond `max_body` bytes, ``malformed-record`` when the client goes away).
    """
    body = bytearray()
    more = True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise WirebookError(Problem("malformed-record", "the client went away before the end of the body"))
        body += event.get("body", b"")
        more = event.get("more_body", False)
        if len(body) > max_body:
            raise WirebookError(Problem("too-large", f"the body is over {max_body:,} bytes", expected=max_body))
    return request_of(scope, bytes(body))


def request_of(scope: Scope, body: bytes = b"") -> HttpMessage:
    """The request of a scope and a body that was read already.

    Raises: WirebookError (``malformed-record``) for a scope of another kind: a WebSocket, say.
    """
    if scope.get("type", "http") != "http":
        text = f"the scope is '{scope['type']}', which is no request"
        raise WirebookError(Problem("malformed-record", text, expected="http", actual=scope["type"]))
    path = scope.get("raw_path") or _encoded(scope["path"])
    query = scope.get("query_string") or b""
    target = (path + b"?" + query if query else path).decode("latin-1")
    return HttpMessage(
        method=scope["method"], target=target, headers=pairs_of(scope.get("headers", ())), body=from_bytes(body or None)
    )


def _encoded(path: str) -> bytes:
    return quote(path, safe="/%:@!$&'()*+,;=~").encode()


def scope_of(wire: AnyMessage) -> tuple[dict[str, Any], bytes]:
    """A request as scope and body: what a test, or a gateway, gives to an application. Raises: as `events_of`."""
    found = _http(wire)
    if found.method is None:
        raise refuse(NAME, "protocoloptions.method", "there, for a request", None)
    path, _, query = ascii_of(found.target or "/", NAME).partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": found.method,
        "path": unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in raw_of(found, NAME)],
    }
    return scope, bytes_of(found.body) or b""


def events_of(wire: AnyMessage) -> list[dict[str, Any]]:
    """A response as the events that an application sends. Raises: WirebookError (``not-expressible``)."""
    found = _http(wire)
    if found.status is None:
        raise refuse(NAME, "protocoloptions.status", "there, for a response", None)
    headers = [(name.lower(), value) for name, value in raw_of(found, NAME)]
    return [
        {"type": "http.response.start", "status": found.status, "headers": headers},
        {"type": "http.response.body", "body": bytes_of(found.body) or b""},
    ]


def _http(wire: AnyMessage) -> HttpMessage:
    require(wire, NAME, HttpMessage)
    assert isinstance(wire, HttpMessage)
    return wire
