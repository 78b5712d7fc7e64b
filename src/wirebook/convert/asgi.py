"""HTTP in ASGI applications: from the scope of a request, and to the events of a response. Requires no package.

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
from wirebook.convert.checks import not_expressible, of_protocol
from wirebook.convert.http_headers import ascii_of, pairs_of, raw_of
from wirebook.problems import Problem, WirebookError

NAME = "ASGI"
MAX_BODY = 64 * 1024 * 1024

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


async def record_of(scope: Scope, receive: Receive, max_body: int = MAX_BODY) -> HttpMessage:
    """Read the body of a request and return its record.

    Raises: WirebookError (``too-large`` beyond `max_body` bytes, ``malformed-record`` if the client disconnects)
    """
    body = bytearray()
    more = True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise WirebookError(Problem("malformed-record", "the client disconnected before the end of the body"))
        body += event.get("body", b"")
        more = event.get("more_body", False)
        if len(body) > max_body:
            raise WirebookError(Problem("too-large", f"the body exceeds {max_body:,} bytes", expected=max_body))
    return request_of(scope, bytes(body))


def request_of(scope: Scope, body: bytes = b"") -> HttpMessage:
    """Return the record of a scope and a body.

    Raises: WirebookError (``malformed-record``) for a scope of another type, such as a WebSocket
    """
    if scope.get("type", "http") != "http":
        text = f"the scope has the type '{scope['type']}'; only 'http' is supported"
        raise WirebookError(Problem("malformed-record", text, expected="http", actual=scope["type"]))
    path = scope.get("raw_path") or quote(scope["path"], safe="/%:@!$&'()*+,;=~").encode()
    query = scope.get("query_string") or b""
    target = (path + b"?" + query if query else path).decode("latin-1")
    return HttpMessage(
        method=scope["method"], target=target, headers=pairs_of(scope.get("headers", ())), body=from_bytes(body or None)
    )


def scope_of(wire: AnyMessage) -> tuple[dict[str, Any], bytes]:
    """Return the scope and the body of a request, for a test or a gateway. Raises: as `events_of`"""
    http = of_protocol(wire, NAME, HttpMessage)
    if http.method is None:
        raise not_expressible(NAME, "protocoloptions.method", "present in a request", None)
    path, _, query = ascii_of(http.target or "/", NAME).partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": http.method,
        "path": unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in raw_of(http, NAME)],
    }
    return scope, bytes_of(http.body) or b""


def events_of(wire: AnyMessage) -> list[dict[str, Any]]:
    """Return the events that send a response. Raises: WirebookError (``not-expressible``)"""
    http = of_protocol(wire, NAME, HttpMessage)
    if http.status is None:
        raise not_expressible(NAME, "protocoloptions.status", "present in a response", None)
    headers = [(name.lower(), value) for name, value in raw_of(http, NAME)]
    return [
        {"type": "http.response.start", "status": http.status, "headers": headers},
        {"type": "http.response.body", "body": bytes_of(http.body) or b""},
    ]
