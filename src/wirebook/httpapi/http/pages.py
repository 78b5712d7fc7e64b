"""Pages of collections: which page a client requested, and the links to other pages.

A page starts after the last entity of the previous page: after its id, or after its sort value and its id.

Spec: pagination/spec.md#http-binding.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from wirebook.core.names import is_identifier
from wirebook.problems.xregistry import refused
from wirebook.storage.ordering import SortPosition

AFTER, LIMIT = "after", "limit"
SORT_TYPES: Final = {0: (bool,), 1: (int, float), 2: (str,)}
"""The types of sort values, by their rank in `comparable`."""


@dataclass(frozen=True, slots=True)
class PageWindow:
    """The requested page: at most `limit` entities (None: all), starting after the position `after`."""

    limit: int | None = None
    after: SortPosition | None = None


def parse_page_window(query: Mapping[str, Sequence[str]], path: str, *, max_limit: int, is_sorted: bool) -> PageWindow:
    """Return the page that the query requests, with at most `max_limit` entities. Raises: bad_request"""
    if LIMIT not in query:
        return PageWindow()
    limit = query[LIMIT][0]
    if not (limit.isascii() and limit.isdigit() and len(limit) < 21 and 1 <= int(limit) < 1 << 64):
        reason = f"'{limit[:40]}' is not a valid limit; it must be an integer of at least 1"
        raise refused("bad_request", path, error_detail=reason)
    after = query.get(AFTER, [""])[0]
    position = _parse_sort_position(after) if is_sorted else _id_position(after)
    if after and position is None:
        reason = f"'{after[:40]}' is not a position in this collection; follow the links of a response"
        raise refused("bad_request", path, error_detail=reason)
    return PageWindow(min(int(limit), max_limit), position)


def format_page_link(url: str, query: Mapping[str, Sequence[str]], count: int, rel: str, after: str = "") -> str:
    """Return a link to another page, with all other query parameters of the request."""
    pairs = [(name, value) for name, values in query.items() if name != AFTER for value in values]
    position = [(AFTER, after)] if after else []
    return f"<{url}?{urlencode([*pairs, *position])}>;rel={rel};count={count}"


# -- positions ------------------------------------------------------------------------------------------------------


def format_position(position: SortPosition, *, is_sorted: bool) -> str:
    """Return a position as the value of the parameter `after`."""
    if not is_sorted:
        return position.id
    text = json.dumps([position.value, position.id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _id_position(id_: str) -> SortPosition | None:
    return SortPosition(0, None, id_.lower()) if is_identifier(id_) else None


def _parse_sort_position(text: str) -> SortPosition | None:
    try:
        value, id_ = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        position = _id_position(id_)
        return position and position._replace(value=_check_sort_value(*value) if value else None)
    except (ValueError, TypeError, RecursionError):
        return None


def _check_sort_value(rank: int, scalar: Any) -> tuple[int, Any]:
    """Return a value in the form of `comparable`. Raises: ValueError"""
    if type(scalar) not in SORT_TYPES.get(rank, ()) or (isinstance(scalar, float) and math.isnan(scalar)):
        raise ValueError
    if isinstance(scalar, str):
        scalar.encode()
    return rank, scalar
