"""Preconditions: If-Match and If-None-Match, compared with the representation that a GET of the same URL returns.

A write evaluates them in its own transaction, so nothing can change between the comparison and the write.
If-Modified-Since and If-Unmodified-Since are ignored, because no response has Last-Modified.

Spec: RFC 9110#13; docs/registry.md#conditional-requests; docs/decisions/0151-conditional-writes.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from wirebook.httpapi.http.etags import format_etag
from wirebook.httpapi.http.messages import ApiRequest
from wirebook.problems.xregistry import Refused, refused

IF_MATCH, IF_NONE_MATCH = "if-match", "if-none-match"
NAMES: Final = {IF_MATCH: "If-Match", IF_NONE_MATCH: "If-None-Match"}
LIST_ELEMENT: Final = re.compile(r'[ \t]*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")?[ \t]*(?:,|\Z)')
PREVIEW: Final = 200
"""Maximum number of characters of a header value that an error quotes."""


class Representation(NamedTuple):
    """The representation that a GET returns. `etag` is without quotes; None if the representation has no ETag."""

    etag: str | None


def check_read(request: ApiRequest, etag: str | None) -> None:
    """Check the If-Match of a successful GET.

    Its If-None-Match is never an error; a match leads to 304.

    Raises: precondition_failed, header_error
    """
    etags = _parse_etags(request, IF_MATCH)
    if etags is not None and not _matches(etags, Representation(etag)):
        raise _failed(request, IF_MATCH, Representation(etag))


def check_write(request: ApiRequest, read_current: Callable[[], Representation | None]) -> None:
    """Check all preconditions of a write.

    `read_current` returns what a GET of the same URL returns now; None if there is nothing.

    Raises: precondition_failed, header_error
    """
    if not any(name in NAMES for name, _ in request.headers):
        return
    if_match, if_none_match = _parse_etags(request, IF_MATCH), _parse_etags(request, IF_NONE_MATCH)
    current = read_current()
    if current is None and request.method == "DELETE":
        return  # the response is 404 with or without preconditions, so they are ignored (RFC 9110#13.2.1)
    if if_match is not None and not _matches(if_match, current):
        raise _failed(request, IF_MATCH, current)
    if if_none_match is not None and _matches([etag.removeprefix("W/") for etag in if_none_match], current):
        raise _failed(request, IF_NONE_MATCH, current)


def _parse_etags(request: ApiRequest, name: str) -> list[str] | None:
    """Return the entity tags of a header: ["*"] for any, None without the header. Raises: header_error"""
    text = request.joined(name)
    if text is None or text.strip() == "*":
        return None if text is None else ["*"]
    etags, offset = [], 0
    while offset < len(text):
        element = LIST_ELEMENT.match(text, offset)
        if element is None:
            reason = f"'{text[:PREVIEW]}' is not * or a list of entity tags such as \"1a2b\""
            raise refused("header_error", request.path, name=NAMES[name], error_detail=reason)
        etags += [element[1]] if element[1] else []
        offset = element.end()
    return etags


def _matches(etags: list[str], current: Representation | None) -> bool:
    """Return whether one of the ETags is current, by the strong comparison, in which a weak ETag matches nothing."""
    if current is None or etags == ["*"]:
        return current is not None
    return current.etag is not None and any(format_etag(current.etag, is_gzip=gzip) in etags for gzip in (False, True))


def _failed(request: ApiRequest, name: str, current: Representation | None) -> Refused:
    """Return the error precondition_failed."""
    if current is None:
        state = "there is nothing at this URL"
    elif current.etag is None:
        state = "the current representation has no entity tag"
    else:
        state = f"the current entity tag is {format_etag(current.etag, is_gzip=False)}"
    value = (request.joined(name) or "")[:PREVIEW]
    detail = f"{NAMES[name]} is {value}, and {state}. Read it again before you repeat the request."
    return refused("precondition_failed", request.path, detail=detail, header=NAMES[name])
