"""Renders the Registry, Groups, Resources, meta entities, Versions and collections as responses.

Spec: core/http.md#registry-http-apis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wirebook.core.entities.rows import ResourceRow, group_entity, meta_entity, resource_entity, version_entity
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.filters import level_of
from wirebook.core.query.flags import WRITE_ONLY
from wirebook.httpapi.handlers.documents import document_response
from wirebook.httpapi.handlers.listing import CollectionListing
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.http.etags import etag_of_revisions, matching_etag
from wirebook.httpapi.http.messages import ApiResponse
from wirebook.problems.xregistry import refused


def read_target(context: ReadContext, target: RequestTarget, *, with_etag: bool = False) -> ApiResponse:
    """Return the response with the entity or collection at `target`.

    `with_etag`: set the ETag if it is known without rendering, and return 304 if the client has it.

    Raises: not_found, cannot_doc_xref, bad_request, too_large
    """
    if target.kind == "registry":
        return _read_registry(context)
    if target.kind == "group":
        return _read_group(context, target)
    if target.is_collection:
        return CollectionListing(context, target).response()
    row = context.find_resource(target)
    etag = None
    if with_etag and context.query.keys() <= WRITE_ONLY:  # each write to a Resource or below it changes its row
        etag = etag_of_revisions(f"{context.base}{target.path}", (context.settings.revision, *row.revisions))
    if etag and matching_etag(etag, context.if_none_match, accepts_any=False):  # `*` also matches what does not exist
        return ApiResponse(304, etag=etag)
    response = READERS[target.kind](context, target, row)
    response.etag = etag
    return response


def _read_registry(context: ReadContext) -> ApiResponse:
    members, counts = context.session.registry_members(), context.session.group_counts()
    target = RequestTarget("registry", "/")
    view = context.view(target, filtered=context.filter_entity(target, lambda: {**members, "xid": "/"}))
    settings = context.settings
    inlinable = {
        "capabilities": settings.capabilities,
        "model": settings.model.full,
        "modelsource": settings.modelsource,
    }
    return context.json_response(target, view.registry(members, counts, inlinable, bare=context.flags.collections))


def _read_group(context: ReadContext, target: RequestTarget) -> ApiResponse:
    type_ = target.group_type
    assert type_
    row = context.find_group(target)
    filtered = context.filter_entity(target, lambda: group_entity(row, type_), within=(row.key,))
    view = context.view(target, row.key, filtered)
    return context.json_response(target, view.group(row, type_, bare=context.flags.collections))


def _read_resource(context: ReadContext, target: RequestTarget, row: ResourceRow) -> ApiResponse:
    type_, xid = target.type, target.xid
    assert target.group_type
    assert type_
    if target.is_document and not context.flags.doc:
        return document_response(context, target, row, row.version, is_default=True)
    filtered = context.filter_entity(
        target, lambda: resource_entity(row, type_, xid), lambda: meta_entity(row, type_, xid), (row.parent, row.key)
    )
    view = context.view(target, row.key, filtered)
    return context.json_response(target, view.resource(row, target.group_type, type_, target.group_xid))


def _read_meta(context: ReadContext, target: RequestTarget, row: ResourceRow) -> ApiResponse:
    type_, xid = target.type, target.resource_xid
    assert type_
    context.filter_entity(target, dict, lambda: meta_entity(row, type_, xid))
    view = context.view(target, row.key)
    return context.json_response(target, [view.meta(row, type_, xid, has_default=False)])


def _read_version(context: ReadContext, target: RequestTarget, owner: ResourceRow) -> ApiResponse:
    type_ = target.type
    assert type_
    context.check_document_view(target, owner)
    version = context.session.version(owner, target.version, document=context.shows_document(target))
    if version is None:
        raise refused("not_found", target.xid)
    is_default = owner.default == version.id
    if target.is_document and not context.flags.doc:
        return document_response(context, target, owner, version, is_default=is_default)
    context.filter_entity(target, lambda: version_entity(version, type_, owner, target.xid))
    view = context.view(target, owner.key)
    rendered = view.version(version, type_, level_of(target), target.resource_xid, is_default=is_default)
    return context.json_response(target, [rendered])


READERS: Final[Mapping[str, Callable[[ReadContext, RequestTarget, ResourceRow], ApiResponse]]] = {
    "resource": _read_resource,
    "meta": _read_meta,
    "version": _read_version,
}
