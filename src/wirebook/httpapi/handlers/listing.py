"""Collections: all of one, a page, or what a filter leaves; in the order of ids, or sorted.

Spec: core/http.md#pagination; core/spec.md#sort-flag; core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wirebook.core.entities.rows import ResourceRow
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.evaluation import FilterEvaluation, FilterResult
from wirebook.core.query.filters import level_of
from wirebook.httpapi.http.messages import ApiResponse
from wirebook.httpapi.http.pages import Window, format_place, link, parse_window
from wirebook.storage.ordering import BY_ID, Ordering, SortPosition
from wirebook.storage.reading import Page

if TYPE_CHECKING:
    from wirebook.httpapi.handlers.reads import EntityReads


class CollectionListing:
    """A collection as one answer shows it. Raises: not_found, cannot_doc_xref"""

    def __init__(self, reading: EntityReads, target: RequestTarget) -> None:
        self._reading, self._target = reading, target
        self._level = level_of(target)
        self._owner: ResourceRow | None = None
        self._within: tuple[int, ...] = ()
        self._owner_xid, self._every = "", -1
        if target.kind == "resources":
            group = reading.group_row(target)
            assert target.type
            self._within, self._owner_xid = (group.key,), target.group_xid
            self._every = group.counts.get(target.type.plural, 0)
        elif target.kind == "versions":
            self._owner = reading.resource_row(target)
            reading.check_doc(target, self._owner)
            self._within, self._owner_xid = (self._owner.parent, self._owner.key), target.resource_xid
            self._every = self._owner.count

    @property
    def _key(self) -> int:
        return self._within[-1] if self._within else 0

    def answer(self) -> ApiResponse:
        window, kept = self._window(), self._kept()
        scope, last = self._scope(window, kept)
        links = ", ".join(self._links(window, kept, last))
        answer = self._reading.json_of(self._target, self._shown(kept, scope))
        if links:
            answer.headers["Link"] = links
        return answer

    def members(self, ids: Iterable[str]) -> Iterator[str]:
        """Those of its entities that have `ids`, in the order that was asked for."""
        kept, named = self._kept(), tuple(ids)
        sort = self._reading.flags.sort
        if sort is None:
            return self._shown(kept, {"ids": named})
        places = self._ordering(kept, named).positions(sort)
        return self._shown(kept, {"order": tuple(place.key for place in places)})

    def _shown(self, kept: FilterResult | None, scope: dict[str, Any]) -> Iterator[str]:
        view = self._reading.view(self._target, self._key, kept, **scope)
        yield "{"
        yield from view.collection_members(self._level, self._owner_xid, self._key, self._owner)
        yield "}"

    def _kept(self) -> FilterResult | None:
        """What the filter of the request leaves of the collection; None without one."""
        if self._reading.flags.filter is None:
            return None
        evaluation = FilterEvaluation(self._reading.flags.filter, self._level[:-1], self._key)
        evaluation.enter()
        self._reading.session.search(self._reading.settings.model, self._within).decide(evaluation)
        return evaluation.result

    # -- pages ------------------------------------------------------------------------------------------------------

    def _window(self) -> Window:
        reading = self._reading
        if not reading.settings.capabilities["pagination"]:
            return Window()
        is_sorted = reading.flags.sort is not None
        return parse_window(reading.query, self._target.path, most=reading.limits.page, is_sorted=is_sorted)

    def _scope(self, window: Window, kept: FilterResult | None) -> tuple[dict[str, Any], SortPosition | None]:
        """What is shown, as members of a `Scope`; and the last entity of the page, if there are more behind it."""
        sort = self._reading.flags.sort
        if sort is None and window.limit is None:
            return {}, None
        places = self._ordering(kept).positions(sort or BY_ID, window.after, window.limit and window.limit + 1)
        shown = places[: window.limit]
        last = shown[-1] if len(places) > len(shown) else None
        if sort is None and kept is None:
            return {"page": Page(window.after.id if window.after else "", last.id if last else None)}, last
        return {"order": tuple(place.key for place in shown)}, last

    def _ordering(self, kept: FilterResult | None, ids: tuple[str, ...] | None = None) -> Ordering:
        left = None if kept is None else kept.left.get(self._level, {}).get(self._key, set())
        return self._reading.session.ordering(self._reading.settings.model, self._target, self._key, left, ids=ids)

    def _links(self, window: Window, kept: FilterResult | None, last: SortPosition | None) -> Iterator[str]:
        if window.limit is None:
            return
        url, query = self._reading.base + self._target.xid, self._reading.query
        count = self._count(kept)
        yield link(url, query, count, "first")
        if last is not None:
            after = format_place(last, is_sorted=self._reading.flags.sort is not None)
            yield link(url, query, count, "next", after)

    def _count(self, kept: FilterResult | None) -> int:
        """How many there are on all pages together."""
        every = self._every
        if every < 0:
            every = self._reading.session.group_counts().get(self._level[0], 0)
        return every if kept is None else kept.count(self._level, self._key, every)
