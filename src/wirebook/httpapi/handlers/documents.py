"""Documents as responses: the document is the body, and the attributes of its Version are headers.

Spec: core/http.md#serializing-resource-domain-specific-documents; docs/decisions/0096-document-responses.md.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlsplit

from wirebook.core.entities.rows import ResourceRow, VersionRow, parse_members
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.shortself import short_path
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.http.headers import encode, format_headers
from wirebook.httpapi.http.messages import ApiResponse

SAFE: Final = "!#$%&'()*+,/:;=?@[]~"
REDIRECT_SCHEMES: Final = frozenset({"", "http", "https", "urn"})
"""URL schemes that a client is redirected to. Others could make it run scripts or read local content."""


def document_response(
    context: ReadContext, target: RequestTarget, owner: ResourceRow, version: VersionRow | None, *, is_default: bool
) -> ApiResponse:
    """Return the document of a Resource or a Version; empty for a cross-reference without a target (no `version`).

    `owner` is the row of the Resource.
    """
    assert target.type
    url = f"{context.base}{target.xid}"
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Content-Disposition": encode(target.resource),
    }
    members: dict[str, Any] = {target.type.id_name: target.resource, "self": url}
    if context.settings.capabilities["shortself"]:
        members["shortself"] = context.base + short_path(target.xid, owner.key)
    members["xid"] = target.xid
    if version:
        head, tail = parse_members(version.head), parse_members(version.tail)
        ids = {target.type.id_name: target.resource, "versionid": version.id, **members}
        members = {**ids, **head, "isdefault": is_default, **tail}
        headers["Content-Location"] = f"{context.base}{target.resource_xid}/versions/{version.id}"
        if version.contenttype:
            headers["Content-Type"] = version.contenttype
    if target.kind == "resource":
        members["metaurl"] = f"{url}/meta"
        if owner.version:
            members |= {"versionsurl": f"{url}/versions", "versionscount": owner.count}
    headers |= format_headers(members, target.type)
    if location := members.get(target.type.document_names[1]):
        return _redirect(location, headers)
    return ApiResponse(200, (version.document if version else None) or b"", headers)


def _redirect(url: str, headers: dict[str, str]) -> ApiResponse:
    """Return the redirect to a document that is stored elsewhere, without a Location if its URL is not safe."""
    try:
        is_safe = urlsplit(url).scheme in REDIRECT_SCHEMES
    except ValueError:
        is_safe = False
    return ApiResponse(303, b"", {**headers, "Location": quote(url, safe=SAFE)} if is_safe else headers)
