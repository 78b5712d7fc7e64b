"""HTTP by httpx: from and to requests and responses.

outcome = catalog.match(record_of(response))
client.send(request_of(catalog.build(...), "https://example.com"))
"""

from __future__ import annotations

from typing import Any

import httpx

from wirebook.bindings import AnyMessage, HttpMessage, bytes_of, from_bytes
from wirebook.convert.checks import not_expressible, of_protocol
from wirebook.convert.http_headers import ascii_of, pairs_of, raw_of

NAME = "httpx"


def record_of(message: httpx.Request | httpx.Response) -> HttpMessage:
    """Return the record of a message. Its body must have been read, by `read()` or `await aread()`.

    The body of a response is decompressed, because the content type describes the decompressed body.
    """
    if isinstance(message, httpx.Request):
        first_line: dict[str, Any] = {"method": message.method, "target": message.url.raw_path.decode("ascii")}
    elif isinstance(message, httpx.Response):
        first_line = {"status": message.status_code}
    else:
        raise TypeError(f"expected httpx.Request or httpx.Response, got {type(message).__name__}")
    body = from_bytes(message.content or None)
    return HttpMessage(**first_line, headers=pairs_of(message.headers.raw), body=body)


def request_of(wire: AnyMessage, server: str) -> httpx.Request:
    """Return the request. The path of the message is appended to `server` (such as ``https://example.com/base``).

    Raises: WirebookError (``not-expressible``)
    """
    http = of_protocol(wire, NAME, HttpMessage)
    if http.method is None:
        raise not_expressible(NAME, "protocoloptions.method", "present in a request", None)
    url, headers = _url(server, http.target), raw_of(http, NAME)
    return httpx.Request(http.method, url, headers=headers, content=bytes_of(http.body))


def _url(server: str, target: str | None) -> httpx.URL:
    """Return the URL with the target unchanged. A target that httpx would change is an error."""
    base = httpx.URL(server)
    if not target:
        return base
    raw = ascii_of(target, NAME)
    absolute = "://" in target.partition("?")[0]
    path = raw if absolute else base.raw_path.partition(b"?")[0].rstrip(b"/") + raw
    try:
        url = httpx.URL(target) if absolute else base.copy_with(raw_path=path)
    except httpx.InvalidURL as error:
        raise not_expressible(NAME, "the target", "a path with its query, or a URL", target) from error
    if not absolute and url.raw_path != path:
        raise not_expressible(NAME, "the target", "a path without '.' and '..' segments", target)
    return url


def response_of(wire: AnyMessage) -> httpx.Response:
    """Return the response. Raises: WirebookError (``not-expressible``)"""
    http = of_protocol(wire, NAME, HttpMessage)
    if http.status is None:
        raise not_expressible(NAME, "protocoloptions.status", "present in a response", None)
    headers = raw_of(http, NAME)
    try:
        return httpx.Response(http.status, headers=headers, content=bytes_of(http.body))
    except httpx.DecodingError as error:
        raise not_expressible(NAME, "the body", "encoded as its 'content-encoding'", str(error)) from error
