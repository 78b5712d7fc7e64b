"""Pages of collections: which one a client asked for, and the links to the others.

A page begins after the last entity of the page before: after its id, or after the value it is sorted by and its id.

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
KINDS: Final = {0: (bool,), 1: (int, float), 2: (str,)}
"""The types of values that are sorted by, by their kind (see `comparable`)."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a client asked for: at most `limit` entities, those behind `after`."""

    limit: int | None = None
    after: SortPosition | None = None


def parse_window(query: Mapping[str, Sequence[str]], path: str, *, most: int, is_sorted: bool) -> Window:
    """At most `most` entities. Raises: bad_request"""
    if LIMIT not in query:
        return Window()
    limit = min(_number(query[LIMIT][0], path), most)
    after = query.get(AFTER, [""])[0]
    place = _read_place(after) if is_sorted else _by_id(after)
    if after and place is None:
        raise refused("bad_request", path, error_detail=f"'{after[:40]}' is no place in this collection")
    return Window(limit, place)


def _number(text: str, path: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 21 and 1 <= int(text) < 1 << 64):
        raise refused("bad_request", path, error_detail=f"'{text[:40]}' is no number of entities, 1 or more")
    return int(text)


def link(url: str, query: Mapping[str, Sequence[str]], count: int, rel: str, after: str = "") -> str:
    """A link to another page, with everything else that was asked for."""
    pairs = [(name, value) for name, values in query.items() if name != AFTER for value in values]
    place = [(AFTER, after)] if after else []
    return f"<{url}?{urlencode([*pairs, *place])}>;rel={rel};count={count}"


# -- places -------------------------------------------------------------------------------------------------------


def format_place(place: SortPosition, *, is_sorted: bool) -> str:
    """A place in a link."""
    if not is_sorted:
        return place.id
    text = json.dumps([place.value, place.id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _by_id(id_: str) -> SortPosition | None:
    return SortPosition(0, None, id_.lower()) if is_identifier(id_) else None


def _read_place(text: str) -> SortPosition | None:
    try:
        value, id_ = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        place = _by_id(id_)
        return place and place._replace(value=_value(*value) if value else None)
    except (ValueError, TypeError, RecursionError):
        return None


def _value(kind: int, scalar: Any) -> tuple[int, Any]:
    """What `comparable` gave. Raises: ValueError"""
    if type(scalar) not in KINDS.get(kind, ()) or (isinstance(scalar, float) and math.isnan(scalar)):
        raise ValueError
    if isinstance(scalar, str):
        scalar.encode()
    return kind, scalar
