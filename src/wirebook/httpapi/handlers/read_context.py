"""The read context: what the rendering of entities, documents and collections shares in one response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.entities.rows import GroupRow, ResourceRow
from wirebook.core.entities.state import Members
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.evaluation import FilterEvaluation, FilterResult
from wirebook.core.query.filters import level_of
from wirebook.core.query.flags import Flags
from wirebook.core.query.views import EntityRenderer
from wirebook.httpapi.handlers.context import DEFAULT_LIMITS, ResponseLimits
from wirebook.httpapi.handlers.settings import Settings
from wirebook.httpapi.http.messages import JSON, ApiResponse
from wirebook.httpapi.http.spool import BodySpool, render_body
from wirebook.problems.xregistry import refused
from wirebook.storage.reading import ReadScope
from wirebook.storage.session import Session


@dataclass(slots=True)
class ReadContext:
    """The inputs of one response, which is rendered in one transaction.

    Shape: `base` is the URL of the Registry; `query` has the parameters of a GET; `root` is the target of the whole
    response if it combines several rendered targets; `if_none_match` is that header of the request; `spool` receives a
    large body.
    """

    session: Session
    settings: Settings
    base: str
    flags: Flags
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    root: RequestTarget | None = None
    limits: ResponseLimits = DEFAULT_LIMITS
    if_none_match: str | None = None
    spool: BodySpool | None = None

    def json_response(self, target: RequestTarget, pieces: Iterable[str]) -> ApiResponse:
        """Return the response for `target` with the pieces as its body. Raises: too_large, TooSlow"""
        body = render_body(pieces, target.path, self.limits.response, self.spool)
        return ApiResponse(200, body, {"Content-Type": JSON})

    def view(
        self, target: RequestTarget, key: int = 0, filtered: FilterResult | None = None, **scope: Any
    ) -> EntityRenderer:
        """Return the renderer for a target and the entities below it, with the source of their rows.

        `key` is the row key of the target, `filtered` what its filter selects; `scope` has further members of a
        `ReadScope`.
        """
        root = self.root or target
        rows = ReadScope(target, key, documents=self._has_inlined_documents(), filter_result=filtered, **scope)
        return EntityRenderer(
            self.settings.model,
            self.base,
            root.xid,
            self.flags.inline,
            self.flags.doc,
            self.flags.binary,
            self.settings.capabilities["shortself"],
            filtered,
            self.session.row_source(rows),
            level_of(root),
            self.flags.specversion,
        )

    def _has_inlined_documents(self) -> bool:
        if self.flags.inline.is_empty:
            return False
        names = {type_.singular for _, type_ in self.settings.model.resource_types() if type_.hasdocument}
        return bool(names) and self.flags.inline.mentions(names)

    def filter_entity(
        self,
        target: RequestTarget,
        entity: Callable[[], Members],
        meta: Callable[[], Members] = dict,
        within: tuple[int, ...] = (),
    ) -> FilterResult | None:
        """Return what the filter flag selects of an entity and below it; None without a filter.

        `within` has the row keys of its Group and its Resource. Raises: not_found, if nothing is selected
        """
        if self.flags.filter is None:
            return None
        evaluation = FilterEvaluation(self.flags.filter, level_of(target), within[-1] if within else 0)
        evaluation.enter(entity(), meta())
        self.session.search(self.settings.model, within).decide(evaluation)
        if evaluation.result.is_empty:
            raise refused("not_found", target.xid)
        return evaluation.result

    def check_document_view(self, target: RequestTarget, row: ResourceRow) -> None:
        """Reject the document view of a cross-reference. Raises: cannot_doc_xref"""
        if self.flags.doc and row.xref:
            raise refused("cannot_doc_xref", target.resource_xid)

    def shows_document(self, target: RequestTarget) -> bool:
        """Return whether the response to a single entity contains its document."""
        type_ = target.type
        return type_ is not None and type_.hasdocument and (target.is_document or type_.singular in self.flags.inline)

    def find_group(self, target: RequestTarget) -> GroupRow:
        """Return the row of the Group of a target. Raises: not_found"""
        assert target.group_type
        row = self.session.group(target.group_type.plural, target.group)
        if row is None:
            raise refused("not_found", target.xid if target.kind == "group" else target.group_xid)
        return row

    def find_resource(self, target: RequestTarget) -> ResourceRow:
        """Return the row of the Resource of a target.

        Raises: not_found, about the requested entity; for a collection of Versions about its Group or its Resource
        """
        row = self.session.resource(target.resource_xid, document=self.shows_document(target))
        if row is None:
            if target.kind == "versions":
                self.find_group(target)
            raise refused("not_found", target.xid if target.kind != "versions" else target.resource_xid)
        return row
