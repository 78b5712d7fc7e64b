"""Requests and responses, independent of ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from wirebook.httpapi.http.codings import SUPPORTED
from wirebook.httpapi.http.fetching import FetchedIncludes
from wirebook.httpapi.http.spool import Body, BodySpool
from wirebook.problems.xregistry import Refused, refused
from wirebook.text.json import parse_json

JSON: Final = "application/json; charset=utf-8"
MAX_DEPTH: Final = 100
"""Maximum nesting depth of the JSON of a request."""

RETRY_AFTER: Final = "1"
"""Seconds after which a client may repeat a request that failed with 503."""

BODY_NOT_READ: Final = (408, 413, 415)
"""Status codes of requests whose body may not be read to its end, so that the connection cannot be used again."""

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(slots=True)
class ApiRequest:
    """A request to the registry.

    Shape: `path` is decoded and without the base path, `base` is the URL of the Registry without a trailing slash, and
    header names are in lower case. Three members are prepared outside of the transaction: `spool` receives the body of
    an export, which is sent while it is rendered; `includes` has the documents that a new model includes; `catalogue`
    is the parsed body of an import.
    """

    method: str
    path: str
    base: str
    query: Mapping[str, list[str]]
    headers: list[tuple[str, str]]
    body: bytes = b""
    spool: BodySpool | None = None
    includes: FetchedIncludes | None = None
    catalogue: Any = None

    def header(self, name: str) -> str | None:
        """Return the value of the first header with this name, or None."""
        return next((value for header, value in self.headers if header == name), None)

    def joined(self, name: str) -> str | None:
        """Return the value of a list header, joined from all its lines; None without the header."""
        values = [value for header, value in self.headers if header == name]
        return ", ".join(values) if values else None


@dataclass(slots=True)
class ApiResponse:
    """A response.

    Shape: `body` is in memory, in a spool that another thread may still write (`http/spool.py`), or an endless stream.
    `etag` is the entity tag without quotes; a handler sets it if it is known without the body (`http/etags.py`).
    """

    status: int = 200
    body: Body | AsyncIterator[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)
    etag: str | None = None


class MethodNotAllowed(Refused):
    """The path does not support the method of the request, only those in `allowed`."""

    def __init__(self, error: Refused, allowed: tuple[str, ...]) -> None:
        super().__init__(error.problem)
        self.allowed = allowed


def parse_query(text: str) -> dict[str, list[str]]:
    """Return the query parameters by name, in order. A plus sign is a space, as in HTML forms."""
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True) if text else ():
        query.setdefault(name, []).append(value)
    return query


def decode_path(raw: str) -> str:
    """Return a percent-encoded path as text. Raises: UnicodeDecodeError"""
    return unquote(raw, errors="strict") if "%" in raw else raw


def read_json(request: ApiRequest) -> Any:
    """Return the JSON value of the body. Raises: missing_body, parsing_data"""
    if not request.body:
        raise refused("missing_body", request.path)
    try:
        return parse_json(request.body, max_depth=MAX_DEPTH, strict=True)
    except ValueError as error:
        raise refused("parsing_data", request.path, error_detail=error) from None


# -- responses ------------------------------------------------------------------------------------------------------


def json_response(value: Any) -> ApiResponse:
    """Return a 200 response with a JSON body."""
    return ApiResponse(200, msgspec.json.encode(value), {"Content-Type": JSON})


def text_response(status: int, text: str) -> ApiResponse:
    """Return a response with a plain text body."""
    return ApiResponse(status, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})


def options_response(methods: tuple[str, ...]) -> ApiResponse:
    """Return the response to OPTIONS, which also answers CORS preflights."""
    names = allow_header(methods)
    return ApiResponse(200, b"", {"Allow": names, "Access-Control-Allow-Methods": names})


def error_response(error: Refused) -> ApiResponse:
    """Return the response to a rejected request: the error as JSON, with the headers that its status requires."""
    problem, code = error.problem, error.type
    body: dict[str, Any] = {"type": code.uri, "title": problem.message}
    if problem.detail:
        body["detail"] = problem.detail
    if problem.xid:
        body["subject"] = problem.xid
    if problem.args:
        body["args"] = dict(sorted(problem.args.items()))
    assert code.status
    response = json_response(body)
    response.status = code.status
    if response.status == 503:
        response.headers["Retry-After"] = RETRY_AFTER
    if response.status in BODY_NOT_READ:
        response.headers["Connection"] = "close"
    if response.status == 415:
        response.headers["Accept-Encoding"] = ", ".join(SUPPORTED)
    if response.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = allow_header(error.allowed)
    return response


def allow_header(methods: tuple[str, ...]) -> str:
    """Return the value of the header Allow."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


def add_root_link(response: ApiResponse, base: str) -> ApiResponse:
    """Add a link to the Registry at `base` after existing links; return the response. Spec: core/http.md#http-apis"""
    links = (response.headers.get("Link"), f"<{base}>;rel=xregistry-root")
    response.headers["Link"] = ", ".join(filter(None, links))
    return response
