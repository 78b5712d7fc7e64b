"""Documents as answers: their bytes are the body, the attributes of their Versions are headers.

Spec: core/http.md#serializing-resource-domain-specific-documents; docs/decisions/0096-document-responses.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from wirebook.core.entities.rows import ResourceRow, VersionRow, parse_members
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.shortself import short_path
from wirebook.httpapi.http.headers import encode, format_headers
from wirebook.httpapi.http.messages import ApiResponse

if TYPE_CHECKING:
    from wirebook.httpapi.handlers.reads import EntityReads

SAFE: Final = "!#$%&'()*+,/:;=?@[]~"
FOLLOWED: Final = frozenset({"", "http", "https", "urn"})
"""Schemes that a client is sent to; with others it could be made to run or read something of its own."""


def document_of(
    reading: EntityReads, target: RequestTarget, owner: ResourceRow, version: VersionRow | None, *, is_default: bool
) -> ApiResponse:
    """The document of a Resource or Version; of a cross-reference that leads nowhere (no `version`) an empty one."""
    assert target.type
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
    headers["Content-Disposition"] = encode(target.resource)
    members = _ids(reading, target, owner.key)
    if version:
        members = _members(members, version, target, is_default=is_default)
        headers["Content-Location"] = f"{reading.base}{target.resource_xid}/versions/{version.id}"
        if version.contenttype:
            headers["Content-Type"] = version.contenttype
    if target.kind == "resource":
        members |= _own(reading, target, owner)
    headers |= format_headers(members, target.type)
    if elsewhere := members.get(target.type.document_names[1]):
        return _elsewhere(elsewhere, headers)
    return ApiResponse(200, (version.document if version else None) or b"", headers)


def _ids(reading: EntityReads, target: RequestTarget, key: int) -> dict[str, Any]:
    """The ids and URLs of an entity. `key` is the row of its Resource."""
    assert target.type
    url = f"{reading.base}{target.xid}"
    has_short = reading.settings.capabilities["shortself"]
    short = {"shortself": reading.base + short_path(target.xid, key)} if has_short else {}
    return {target.type.id_name: target.resource, "self": url, **short, "xid": target.xid}


def _members(ids: dict[str, Any], version: VersionRow, target: RequestTarget, *, is_default: bool) -> dict[str, Any]:
    assert target.type
    head, tail = parse_members(version.head), parse_members(version.tail)
    named = {target.type.id_name: target.resource, "versionid": version.id, **ids}
    return {**named, **head, "isdefault": is_default, **tail}


def _own(reading: EntityReads, target: RequestTarget, owner: ResourceRow) -> dict[str, Any]:
    """What a Resource has beside the attributes of its default Version."""
    url = f"{reading.base}{target.xid}"
    versions = {"versionsurl": f"{url}/versions", "versionscount": owner.count} if owner.version else {}
    return {"metaurl": f"{url}/meta", **versions}


def _elsewhere(url: str, headers: dict[str, str]) -> ApiResponse:
    try:
        is_followed = urlsplit(url).scheme in FOLLOWED
    except ValueError:
        is_followed = False
    return ApiResponse(303, b"", {**headers, "Location": quote(url, safe=SAFE)} if is_followed else headers)
