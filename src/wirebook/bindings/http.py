"""CloudEvents over HTTP 1.1, 2 and 3: requests and responses, binary, structured and batch.

Attribute `x` is the header ``ce-x``, percent-encoded. `datacontenttype` is ``Content-Type``; the header
``ce-datacontenttype`` is not allowed.

Spec: http-protocol-binding.md; docs/semantics.md D30
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import msgspec

from wirebook.bindings import headers
from wirebook.bindings.cloudevents import Binding, Contents, WireParts, read_parts
from wirebook.bindings.received import Received
from wirebook.bindings.wire import HttpMessage, bytes_of, from_bytes, preview, text_or_bytes
from wirebook.bindings.write_checks import Check, check_pairs, check_slots, integer, rejected, text
from wirebook.problems import Problem

BINDING: Final = Binding("HTTP", batch=True)
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_NOT_IN_TARGET: Final = re.compile(r"[^\x21-\x7e]|#|^(?!/|\*\Z|[A-Za-z][A-Za-z0-9+.-]*://)|%(?![0-9A-Fa-f]{2})")
_NOT_IN_METHOD: Final = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]|^\Z")


def read(wire: HttpMessage) -> tuple[Received, ...]:
    """Read the messages of a request or response."""
    # Reading: HTTP cannot distinguish an empty body from no body, so an empty body is no data.
    parts = WireParts(BINDING, wire, bytes_of(wire.body) or None)
    headers.read_headers(parts, wire.headers)
    forbidden = parts.attributes.pop("datacontenttype", None)
    if forbidden is not None:
        problem = Problem("forbidden-header", slot="ce-datacontenttype", expected=None, actual=preview(forbidden))
        parts.problems.append(problem)
    if parts.attributes and parts.content_type is not None:
        parts.attributes["datacontenttype"] = parts.content_type
    return read_parts(parts)


# -- slots ----------------------------------------------------------------------------------------------------------


def slots(wire: HttpMessage) -> dict[str, Any]:
    """Return the slots: `method`, `status`, the normalised `path`, and `query` and `headers` as decoded pairs."""
    path, query = split_target(wire.target)
    return {
        "method": wire.method,
        "path": path if path is None else normal_path(path),
        "query": query_pairs(query),
        "status": wire.status,
        "headers": headers.lines(wire.headers),
    }


def split_target(target: str | None) -> tuple[str | None, str]:
    """Split a request target in origin form or absolute form (``http://host/path``) into path and query."""
    if target is None:
        return None, ""
    path, _, query = target.partition("?")
    if not path.startswith("/") and "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path, query


class Escaped(str):
    """A query value that is already percent-encoded."""

    __slots__ = ()


def normal_path(path: str) -> str:
    """Return the path as it is compared (D30): unreserved characters unescaped, and escapes in upper case."""
    return _ESCAPE.sub(_normal_escape, path) if "%" in path else path


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def query_pairs(query: str) -> list[tuple[str, str | bytes]]:
    """Decode the names and values of a query. ``+`` is a space. A value that is not valid UTF-8 is bytes."""
    if not query:
        return []
    pairs = (item.partition("=") for item in query.split("&") if item)
    return [(_query_name(name), _query_text(value)) for name, _, value in pairs]


def _query_text(text: str) -> str | bytes:
    return text_or_bytes(unquote_to_bytes(text.replace("+", " ")))


def _query_name(text: str) -> str:
    name = _query_text(text)
    return name if isinstance(name, str) else text


# -- writing --------------------------------------------------------------------------------------------------------


def fill(wire: HttpMessage, contents: Contents) -> HttpMessage:
    """Set the attributes, the content type and the data."""
    lines = contents.content_type_line("content-type") + headers.attribute_lines(contents.texts)
    return msgspec.structs.replace(wire, headers=headers.replaced(wire.headers, lines), body=from_bytes(contents.data))


def with_slots(wire: HttpMessage, options: dict[str, Any]) -> tuple[HttpMessage, list[Problem]]:
    """Set protocol slots, named as in `slots`. Headers replace those of the same name."""
    if isinstance(status := options.get("status"), str) and status.isdecimal():
        options = options | {"status": int(status)}
    problems = list(_check(options))
    if problems:
        return wire, problems
    changes: dict[str, Any] = {name: options[name] for name in ("method", "status") if name in options}
    if "method" in changes:
        changes["method"] = changes["method"].upper()
    if "path" in options or "query" in options:
        path, query = split_target(wire.target)
        path = options.get("path", path) or "/"
        if (pairs := options.get("query")) is not None:
            items = ((name, value if isinstance(value, Escaped) else quote(value, safe="")) for name, value in pairs)
            query = "&".join(f"{quote(name, safe='')}={value}" for name, value in items)
        changes["target"] = f"{path}?{query}" if query else path
    if "headers" in options:
        changes["headers"] = headers.replaced(wire.headers, headers.wire_lines(options["headers"]))
    return msgspec.structs.replace(wire, **changes), problems


_CHECKS: Final[dict[str, Check]] = {
    "method": text(_NOT_IN_METHOD, "a method name"),
    "path": text(_NOT_IN_TARGET, "an ASCII path that starts with '/', without spaces, control characters and '#'"),
    "status": integer(100, 999),
}
_QUERY: Final = text()


def _check(options: dict[str, Any]) -> Iterator[Problem]:
    yield from check_slots(_CHECKS, options)
    yield from check_pairs("query", _QUERY, _QUERY, options)
    yield from headers.check_lines(options.get("headers", ()))
    if options.get("status") is not None and options.get("method") is not None:
        expected = "a request (method) or a response (status)"
        yield rejected("wrong-type", "protocoloptions.status", expected, options["status"])
