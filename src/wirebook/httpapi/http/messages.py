"""What comes in and what goes out, without the framework: a request that was read, an answer to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from wirebook.httpapi.http.fetching import Fetched
from wirebook.httpapi.http.spool import Body, BodySpool
from wirebook.problems.xregistry import Refused, refused
from wirebook.text.json import parse_json

JSON: Final = "application/json; charset=utf-8"
MAX_DEPTH: Final = 100


@dataclass(slots=True)
class Incoming:
    """A request. `path` is decoded and without the base path; `base` the Registry's URL; header names in lower case;
    `spool` is where a large answer goes that is sent while it is made; `fetched` is what the request needs from
    elsewhere, where it may need something; `begun` what becomes of it, where it was handed to the writer."""

    method: str
    path: str
    base: str
    query: Mapping[str, list[str]]
    headers: list[tuple[str, str]]
    body: bytes = b""
    spool: BodySpool | None = None
    fetched: Fetched | None = None
    begun: Future[ApiResponse] | None = None

    def header(self, name: str) -> str | None:
        """The first header of a name."""
        return next((value for header, value in self.headers if header == name), None)

    def joined(self, name: str) -> str | None:
        """The value of a header that is a list, which may come in several lines."""
        values = [value for header, value in self.headers if header == name]
        return ", ".join(values) if values else None


@dataclass(slots=True)
class ApiResponse:
    """An answer. `body` may be large, and not yet whole (see `wirebook.httpapi.http.spool`); `tag` is given where it
    is made of something else than the answer (see `wirebook.httpapi.http.etags`)."""

    status: int = 200
    body: Body = b""
    headers: dict[str, str] = field(default_factory=dict)
    tag: str | None = None


def parse_query(text: str) -> dict[str, list[str]]:
    """Parameters by name, in order. Forms, and most clients, write a blank as a plus."""
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True) if text else ():
        query.setdefault(name, []).append(value)
    return query


def decode_path(raw: str) -> str:
    return unquote(raw, errors="strict") if "%" in raw else raw


def read_json(incoming: Incoming) -> Any:
    """Return the JSON value of a body. Raises: missing_body, parsing_data"""
    if not incoming.body:
        raise refused("missing_body", incoming.path)
    try:
        return parse_json(incoming.body, max_depth=MAX_DEPTH, strict=True)
    except ValueError as error:
        raise unparsable(incoming.path, str(error)) from None


def unparsable(path: str, why: str) -> Refused:
    return refused("parsing_data", path, error_detail=why)
