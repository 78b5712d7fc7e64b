"""Reading: entities and collections as the answers to GET, and to what was written.

Spec: core/http.md#registry-http-apis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.core.entities.rows import (
    GroupRow,
    ResourceRow,
    group_entity,
    meta_entity,
    resource_entity,
    version_entity,
)
from wirebook.core.entities.state import Members
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.evaluation import FilterEvaluation, FilterResult
from wirebook.core.query.filters import level_of
from wirebook.core.query.flags import WRITE_ONLY, Flags
from wirebook.core.query.views import EntityRenderer
from wirebook.httpapi.handlers.documents import document_of
from wirebook.httpapi.handlers.listing import CollectionListing
from wirebook.httpapi.http.etags import known_as, tag_of_revisions
from wirebook.httpapi.http.messages import JSON, ApiResponse
from wirebook.httpapi.http.spool import BodySpool, body_of
from wirebook.httpapi.options import LIMITS, ResponseLimits
from wirebook.httpapi.settings import Settings
from wirebook.problems.xregistry import refused
from wirebook.storage.reading import ReadScope
from wirebook.storage.session import Session


@dataclass(slots=True)
class EntityReads:
    """Reads for one answer, in one transaction. `root` is what the answer is about, if more than what is read; `known`
    the tags of what the client has (If-None-Match). A large answer goes to the `spool`, if
    there is one."""

    session: Session
    settings: Settings
    base: str
    flags: Flags
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    root: RequestTarget | None = None
    limits: ResponseLimits = LIMITS
    known: str | None = None
    spool: BodySpool | None = None

    def entity(self, target: RequestTarget, *, tagged: bool = False) -> ApiResponse:
        """What `target` addresses; `tagged`: with its tag, where that is known before. Raises: not_found,
        cannot_doc_xref"""
        if target.kind == "registry":
            return self._registry()
        if target.kind == "group":
            return self._group(target)
        if target.is_collection:
            return self.collection(target)
        row = self.resource_row(target)
        tag = self._tag(target, row) if tagged and self.query.keys() <= WRITE_ONLY else None
        if tag and known_as(tag, self.known, any_too=False):  # only what was there under this URL has the tag
            return ApiResponse(304, tag=tag)
        answer = POINTS[target.kind](self, target, row)
        answer.tag = tag
        return answer

    def _tag(self, target: RequestTarget, row: ResourceRow) -> str:
        """The tag of a Resource, its meta or one of its Versions, without flags: each write to one numbers the row."""
        return tag_of_revisions(f"{self.base}{target.path}", (self.settings.revision, *row.revisions))

    def collection(self, target: RequestTarget, ids: Iterable[str] | None = None) -> ApiResponse:
        """A collection, or of it the entities with `ids`."""
        listing = CollectionListing(self, target)
        return self.json_of(target, listing.members(ids)) if ids is not None else listing.answer()

    def view(
        self, target: RequestTarget, key: int = 0, kept: FilterResult | None = None, **scope: Any
    ) -> EntityRenderer:
        """How things below a target are shown, and where their rows come from; `scope` are members of a `ReadScope`."""
        rows = ReadScope(target, key, documents=self._has_documents(), filter_result=kept, **scope)
        flags, root = self.flags, self.root or target
        return EntityRenderer(
            self.settings.model,
            self.base,
            root.xid,
            flags.inline,
            flags.doc,
            flags.binary,
            self.settings.capabilities["shortself"],
            kept,
            self.session.row_source(rows),
            level_of(root),
            flags.specversion,
        )

    def _has_documents(self) -> bool:
        """Whether documents are inlined."""
        if self.flags.inline.is_empty:
            return False
        names = {type_.singular for _, type_ in self.settings.model.resource_types() if type_.hasdocument}
        return bool(names) and self.flags.inline.mentions(names)

    def json_of(self, target: RequestTarget, pieces: Iterable[str]) -> ApiResponse:
        """The answer about `target` that is made of pieces. Raises: too_large; TooSlow"""
        body = body_of(pieces, target.path, self.limits.response, self.spool)
        return ApiResponse(200, body, {"Content-Type": JSON})

    # -- Registry and Groups --------------------------------------------------------------------------------------

    def _registry(self) -> ApiResponse:
        members, counts = self.session.registry_members(), self.session.group_counts()
        target = RequestTarget("registry", "/")
        view = self.view(target, kept=self.kept(target, lambda: {**members, "xid": "/"}))
        special = {
            "capabilities": self.settings.capabilities,
            "model": self.settings.model.full,
            "modelsource": self.settings.modelsource,
        }
        return self.json_of(target, view.registry(members, counts, special, bare=self.flags.collections))

    def group_row(self, target: RequestTarget) -> GroupRow:
        """Raises: not_found"""
        assert target.group_type
        row = self.session.group(target.group_type.plural, target.group)
        if row is None:
            raise refused("not_found", target.xid if target.kind == "group" else target.group_xid)
        return row

    def _group(self, target: RequestTarget) -> ApiResponse:
        assert target.group_type
        row = self.group_row(target)
        type_ = target.group_type
        kept = self.kept(target, lambda: group_entity(row, type_), within=(row.key,))
        view = self.view(target, row.key, kept)
        return self.json_of(target, view.group(row, type_, bare=self.flags.collections))

    def kept(
        self,
        target: RequestTarget,
        entity: Callable[[], Members],
        meta: Callable[[], Members] = dict,
        within: tuple[int, ...] = (),
    ) -> FilterResult | None:
        """What the filter of the request leaves of an entity and what is below it; None without a filter. `within` are
        the keys of its Group and Resource. Raises: not_found"""
        if self.flags.filter is None:
            return None
        evaluation = FilterEvaluation(self.flags.filter, level_of(target), within[-1] if within else 0)
        evaluation.enter(entity(), meta())
        self.session.search(self.settings.model, within).decide(evaluation)
        if evaluation.result.is_empty:
            raise refused("not_found", target.xid)
        return evaluation.result

    def check_doc(self, target: RequestTarget, row: ResourceRow) -> None:
        if self.flags.doc and row.xref:
            raise refused("cannot_doc_xref", target.resource_xid)

    def _has_body(self, target: RequestTarget) -> bool:
        """Whether the answer to a single entity has its document."""
        type_ = target.type
        return type_ is not None and type_.hasdocument and (target.is_document or type_.singular in self.flags.inline)

    # -- Resources and Versions -----------------------------------------------------------------------------------

    def resource_row(self, target: RequestTarget) -> ResourceRow:
        """Raises: not_found, about the entity that was asked for; for a collection, about who should have it"""
        row = self.session.resource(target.resource_xid, document=self._has_body(target))
        if row is None:
            if target.kind == "versions":
                self.group_row(target)
            raise refused("not_found", target.xid if target.kind != "versions" else target.resource_xid)
        return row

    def _resource(self, target: RequestTarget, row: ResourceRow) -> ApiResponse:
        assert target.group_type
        assert target.type
        if target.is_document and not self.flags.doc:
            return document_of(self, target, row, row.version, is_default=True)
        type_, xid = target.type, target.xid
        kept = self.kept(
            target,
            lambda: resource_entity(row, type_, xid),
            lambda: meta_entity(row, type_, xid),
            (row.parent, row.key),
        )
        view = self.view(target, row.key, kept)
        return self.json_of(target, view.resource(row, target.group_type, type_, target.group_xid))

    def _meta(self, target: RequestTarget, row: ResourceRow) -> ApiResponse:
        assert target.type
        type_, xid = target.type, target.resource_xid
        self.kept(target, dict, lambda: meta_entity(row, type_, xid))
        view = self.view(target, row.key)
        return self.json_of(target, [view.meta(row, type_, xid, has_default=False)])

    def _version(self, target: RequestTarget, owner: ResourceRow) -> ApiResponse:
        self.check_doc(target, owner)
        assert target.type
        version = self.session.version(owner, target.version, document=self._has_body(target))
        if version is None:
            raise refused("not_found", target.xid)
        is_default = owner.default == version.id
        if target.is_document and not self.flags.doc:
            return document_of(self, target, owner, version, is_default=is_default)
        type_, level = target.type, level_of(target)
        self.kept(target, lambda: version_entity(version, type_, owner, target.xid))
        view = self.view(target, owner.key)
        return self.json_of(target, [view.version(version, type_, level, target.resource_xid, is_default=is_default)])


POINTS: Final = {"resource": EntityReads._resource, "meta": EntityReads._meta, "version": EntityReads._version}
