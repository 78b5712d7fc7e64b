"""Pages of collections: which entities are on one, in which order, and the links to the others.

Pages in the order of ids are found by the last id of the page before; those of a sorted or filtered collection by
their place in it.

Spec: pagination/spec.md#http-binding; core/spec.md#sort-flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from wirebook.core.comparison import comparable
from wirebook.core.dotpath import values_at
from wirebook.core.filters import Level, attributes_of
from wirebook.core.flags import Sort
from wirebook.core.model import Model
from wirebook.core.names import is_identifier
from wirebook.core.rows import GroupRow, ResourceRow, VersionRow
from wirebook.core.sieve import entity_of
from wirebook.problems.xregistry import refused

AFTER, OFFSET, LIMIT = "after", "offset", "limit"
MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Window:
    """What a client asked for: at most `limit` entities after the id `after`, or from `offset` on."""

    limit: int | None = None
    after: str = ""
    offset: int = 0


def parse_window(query: Mapping[str, Sequence[str]], path: str, *, max_page: int = MAX_PAGE) -> Window:
    """Raises: bad_request"""
    if LIMIT not in query:
        return Window()
    return Window(
        min(_number(query[LIMIT][0], path, least=1), max_page),
        _id(query.get(AFTER, [""])[0], path),
        _number(query.get(OFFSET, ["0"])[0], path, least=0),
    )


def _id(text: str, path: str) -> str:
    if text and not is_identifier(text):
        raise refused("bad_request", path, error_detail=f"'{text[:40]}' is no id to go on from")
    return text.lower()


def _number(text: str, path: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16 and int(text) >= least):
        raise refused("bad_request", path, error_detail=f"'{text[:40]}' is no number of entities, {least} or more")
    return int(text)


def link(base: str, path: str, query: Mapping[str, Sequence[str]], count: int, rel: str, **place: str | int) -> str:
    """A link to another page, with everything else that was asked for."""
    kept = [(name, value) for name, values in query.items() if name not in (AFTER, OFFSET) for value in values]
    return f"<{base}{path}?{urlencode([*kept, *place.items()])}>;rel={rel};count={count}"


Row = GroupRow | ResourceRow | VersionRow


def sort_rows(rows: Sequence[Row], sort: Sort, level: Level, model: Model, owner: str) -> list[Row]:
    """Rows by the value of an attribute, then by id; those without a value are the lowest."""
    attribute = attributes_of(level, model).get(str(getattr(sort.path[0], "name", "")))
    type_ = attribute.type if attribute and len(sort.path) == 1 else None

    def rank(row: Row) -> tuple[Any, ...]:
        found = next(values_at(entity_of(row, level, model, owner), sort.path), None)
        value = comparable(found, type_)
        return (() if value is None else value, row.id.lower())

    return sorted(rows, key=rank, reverse=sort.descending)
