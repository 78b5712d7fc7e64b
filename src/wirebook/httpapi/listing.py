"""Collections: all of one, a page, or what a filter leaves; in the order of ids, or sorted.

Spec: core/http.md#pagination; core/spec.md#sort-flag; core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wirebook.core.filters import level_of
from wirebook.core.sieve import Kept
from wirebook.core.target import Target
from wirebook.httpapi.messages import JSON, Answer
from wirebook.httpapi.pages import AFTER, OFFSET, Row, Window, link, parse_window, sort_rows
from wirebook.storage.reading import Page, Scope

if TYPE_CHECKING:
    from wirebook.httpapi.reads import Reading


class Listing:
    """A collection as one answer shows it. Raises: not_found, cannot_doc_xref"""

    def __init__(self, reading: Reading, target: Target) -> None:
        self._reading, self._target = reading, target
        self._level = level_of(target)
        self._owner: Any = None
        self._key, self._owner_xid = 0, ""
        if target.kind == "resources":
            self._key, self._owner_xid = reading.group_row(target).key, target.group_xid
        elif target.kind == "versions":
            self._owner = reading.resource_row(target)
            reading.check_doc(target, self._owner)
            self._key, self._owner_xid = self._owner.key, target.resource_xid

    def answer(self) -> Answer:
        reading = self._reading
        paged = reading.settings.capabilities["pagination"]
        window = parse_window(reading.query, self._target.path) if paged else Window()
        kept = self._kept()
        scope: dict[str, Any] = {}
        links: list[str] = []
        if reading.flags.sort or (kept and window.limit):
            scope, links = self._by_place(window, kept)
        elif window.limit:
            scope, links = self._by_id(window)
        text = "".join(self._shown(kept, scope))
        headers = {"Content-Type": JSON} | ({"Link": ", ".join(links)} if links else {})
        return Answer(200, text.encode(), headers)

    def members(self, ids: Iterable[str]) -> Iterator[str]:
        """Those of its entities that have `ids`."""
        return self._shown(self._kept(), {"ids": tuple(ids)})

    def _shown(self, kept: Kept | None, scope: dict[str, Any]) -> Iterator[str]:
        view = self._reading.view(self._target, self._key, kept, **scope)
        yield "{"
        yield from view.collection_members(self._level, self._owner_xid, self._key, self._owner)
        yield "}"

    # -- what a filter leaves ---------------------------------------------------------------------------------------

    def _kept(self) -> Kept | None:
        target, sifting = self._target, self._reading.sifting(self._target, self._key)
        if sifting is None:
            return None
        assert target.group_type
        if target.kind == "groups":
            sifting.groups(target.group_type, sifting.start)
        elif target.kind == "resources":
            sifting.resources(self._level, sifting.start, self._key, self._owner_xid, may=True)
        else:
            sifting.versions(self._level, sifting.start, self._owner_xid, self._owner)
        return sifting.kept

    # -- pages ------------------------------------------------------------------------------------------------------

    def _by_id(self, window: Window) -> tuple[dict[str, Any], list[str]]:
        """A page in the order of ids: the ids it lies between, and its links."""
        owner = self._key if self._owner is None else self._reading.shown_key(self._owner)
        assert window.limit
        ids = self._reading.session.ids_after(self._target, owner, window.after, window.limit + 1)
        page = Page(window.after, ids[window.limit - 1] if len(ids) > window.limit else None)
        links = []
        if page.last is not None:
            count = self._reading.session.count(self._target, owner)
            links.append(self._link(count, "next", **{AFTER: page.last}))
        return {"page": page}, links

    def _by_place(self, window: Window, kept: Kept | None) -> tuple[dict[str, Any], list[str]]:
        """A page of a sorted or filtered collection: the keys on it in their order, and its links."""
        rows = [row for row in self._rows() if kept is None or kept.has(self._level, row.key, self._key)]
        sort = self._reading.flags.sort
        if sort:
            rows = sort_rows(rows, sort, self._level, self._reading.settings.model, self._owner_xid)
        limit = window.limit or len(rows)
        shown = rows[window.offset : window.offset + limit]
        links = []
        if window.limit and window.offset + limit < len(rows):
            links.append(self._link(len(rows), "next", **{OFFSET: window.offset + limit}))
        if window.limit and window.offset:
            links.append(self._link(len(rows), "prev", **{OFFSET: max(window.offset - limit, 0)}))
        return {"order": tuple(row.key for row in shown)}, links

    def _link(self, count: int, rel: str, **place: str | int) -> str:
        path = self._target.xid
        return link(self._reading.base, path, self._reading.query, count, rel, **place)

    def _rows(self) -> list[Row]:
        streams = self._reading.session.streams(Scope(self._target, self._key))
        opening = (streams.groups, streams.resources, streams.versions)[len(self._level) - 1]
        return list(opening(self._level).of(self._key))
