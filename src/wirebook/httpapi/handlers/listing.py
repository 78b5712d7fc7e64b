"""Responses with collections: all entities, one page, or those that a filter selects, in the order of ids or sorted.

Spec: core/http.md#pagination; core/spec.md#sort-flag; core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wirebook.core.entities.rows import ResourceRow
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.evaluation import FilterEvaluation, FilterResult
from wirebook.core.query.filters import level_of
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.http.messages import ApiResponse
from wirebook.httpapi.http.pages import PageWindow, format_page_link, format_position, parse_page_window
from wirebook.storage.ordering import BY_ID, Ordering, SortPosition
from wirebook.storage.reading import Page


class CollectionListing:
    """One collection in one response. Raises: not_found, cannot_doc_xref"""

    def __init__(self, context: ReadContext, target: RequestTarget) -> None:
        self._context, self._target = context, target
        self._level = level_of(target)
        self._owner: ResourceRow | None = None
        self._owner_keys: tuple[int, ...] = ()
        self._owner_xid = ""
        self._total: int | None = None
        if target.kind == "resources":
            group = context.find_group(target)
            assert target.type
            self._owner_keys, self._owner_xid = (group.key,), target.group_xid
            self._total = group.counts.get(target.type.plural, 0)
        elif target.kind == "versions":
            self._owner = context.find_resource(target)
            context.check_document_view(target, self._owner)
            self._owner_keys, self._owner_xid = (self._owner.parent, self._owner.key), target.resource_xid
            self._total = self._owner.count
        self._owner_key = self._owner_keys[-1] if self._owner_keys else 0

    def response(self) -> ApiResponse:
        """Return the response to a GET: the requested page, with links to others. Raises: bad_request, too_large"""
        context = self._context
        window = PageWindow()
        if context.settings.capabilities["pagination"]:
            is_sorted = context.flags.sort is not None
            window = parse_page_window(
                context.query, self._target.path, max_limit=context.limits.page, is_sorted=is_sorted
            )
        filtered = self._filter()
        scope, next_after = self._page_scope(window, filtered)
        links = ", ".join(self._page_links(window, filtered, next_after))
        response = context.json_response(self._target, self._render(filtered, scope))
        if links:
            response.headers["Link"] = links
        return response

    def render_members(self, ids: Iterable[str]) -> Iterator[str]:
        """Return the entities of the collection with these ids, in the requested order, as pieces of JSON."""
        filtered, listed = self._filter(), tuple(ids)
        sort = self._context.flags.sort
        if sort is None:
            return self._render(filtered, {"ids": listed})
        positions = self._ordering(filtered, listed).positions(sort)
        return self._render(filtered, {"order": tuple(position.key for position in positions)})

    def _render(self, filtered: FilterResult | None, scope: dict[str, Any]) -> Iterator[str]:
        view = self._context.view(self._target, self._owner_key, filtered, **scope)
        yield "{"
        yield from view.collection_members(self._level, self._owner_xid, self._owner_key, self._owner)
        yield "}"

    def _filter(self) -> FilterResult | None:
        """Return what the filter flag selects of the collection; None without a filter."""
        context = self._context
        if context.flags.filter is None:
            return None
        evaluation = FilterEvaluation(context.flags.filter, self._level[:-1], self._owner_key)
        evaluation.enter()
        context.session.search(context.settings.model, self._owner_keys).decide(evaluation)
        return evaluation.result

    # -- pages ------------------------------------------------------------------------------------------------------

    def _page_scope(
        self, window: PageWindow, filtered: FilterResult | None
    ) -> tuple[dict[str, Any], SortPosition | None]:
        """Return the entities of the page, as members of a `ReadScope`, and the last position if more pages follow."""
        sort = self._context.flags.sort
        if sort is None and window.limit is None:
            return {}, None
        positions = self._ordering(filtered).positions(sort or BY_ID, window.after, window.limit and window.limit + 1)
        page = positions[: window.limit]
        last = page[-1] if len(positions) > len(page) else None
        if sort is None and filtered is None:
            return {"page": Page(window.after.id if window.after else "", last.id if last else None)}, last
        return {"order": tuple(position.key for position in page)}, last

    def _ordering(self, filtered: FilterResult | None, ids: tuple[str, ...] | None = None) -> Ordering:
        selected = None if filtered is None else filtered.left.get(self._level, {}).get(self._owner_key, set())
        model = self._context.settings.model
        return self._context.session.ordering(model, self._target, self._owner_key, selected, ids=ids)

    def _page_links(
        self, window: PageWindow, filtered: FilterResult | None, next_after: SortPosition | None
    ) -> Iterator[str]:
        if window.limit is None:
            return
        context = self._context
        url, query = context.base + self._target.xid, context.query
        total = self._total
        if total is None:
            total = context.session.group_counts().get(self._level[0], 0)
        count = total if filtered is None else filtered.count(self._level, self._owner_key, total)
        yield format_page_link(url, query, count, "first")
        if next_after is not None:
            after = format_position(next_after, is_sorted=context.flags.sort is not None)
            yield format_page_link(url, query, count, "next", after)
