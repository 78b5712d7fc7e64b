"""HTTP by httpx: requests and responses, both ways.

outcome = catalog.match(record_of(response))
client.send(request_of(catalog.build(...), "https://example.com"))
"""

from __future__ import annotations

from functools import singledispatch

import httpx

from wirebook.bindings import AnyMessage, HttpMessage, bytes_of, from_bytes
from wirebook.convert.httplines import ascii_of, pairs_of, raw_of
from wirebook.convert.refusal import refuse, require

NAME = "httpx"


@singledispatch
def record_of(message: httpx.Request | httpx.Response) -> HttpMessage:
    """The message as it is on the wire. Its body must have been read: `read()` or `await aread()` before."""
    raise TypeError(f"{type(message).__name__} is no message of httpx")


@record_of.register
def _(message: httpx.Request) -> HttpMessage:
    return HttpMessage(
        method=message.method,
        target=message.url.raw_path.decode("ascii"),
        headers=pairs_of(message.headers.raw),
        body=from_bytes(message.content or None),
    )


@record_of.register
def _(message: httpx.Response) -> HttpMessage:
    """The body as it is after decompression: what the content type is about."""
    return HttpMessage(
        status=message.status_code, headers=pairs_of(message.headers.raw), body=from_bytes(message.content or None)
    )


def request_of(wire: AnyMessage, server: str) -> httpx.Request:
    """The request, to `server` (``https://example.com/base``), at the message's path below it.

    Raises: WirebookError (``not-expressible``).
    """
    found = _http(wire)
    if found.method is None:
        raise refuse(NAME, "protocoloptions.method", "there, for a request", None)
    url, headers = _url(server, found.target), raw_of(found, NAME)
    return httpx.Request(found.method, url, headers=headers, content=bytes_of(found.body))


def _url(server: str, target: str | None) -> httpx.URL:
    """The target as it is: nothing in it is escaped again, or put in order; what httpx would change is refused."""
    base = httpx.URL(server)
    if not target:
        return base
    raw = ascii_of(target, NAME)
    absolute = "://" in target.partition("?")[0]
    path = raw if absolute else base.raw_path.partition(b"?")[0].rstrip(b"/") + raw
    try:
        url = httpx.URL(target) if absolute else base.copy_with(raw_path=path)
    except httpx.InvalidURL as error:
        raise refuse(NAME, "the target", "a path with its query, or a URL", target) from error
    if not absolute and url.raw_path != path:
        raise refuse(NAME, "the target", "a path without '.' and '..' segments", target)
    return url


def response_of(wire: AnyMessage) -> httpx.Response:
    """The response. Raises: WirebookError (``not-expressible``)."""
    found = _http(wire)
    if found.status is None:
        raise refuse(NAME, "protocoloptions.status", "there, for a response", None)
    headers = raw_of(found, NAME)
    try:
        return httpx.Response(found.status, headers=headers, content=bytes_of(found.body))
    except httpx.DecodingError as error:
        raise refuse(NAME, "the body", "encoded as 'content-encoding' says", str(error)) from error


def _http(wire: AnyMessage) -> HttpMessage:
    require(wire, NAME, HttpMessage)
    assert isinstance(wire, HttpMessage)
    return wire
