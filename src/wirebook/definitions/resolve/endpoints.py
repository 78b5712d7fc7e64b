"""Find the definitions of each endpoint: its own messages, and those of the message groups that it refers to.

Spec: endpoint/spec.md#messagegroups; docs/semantics.md R29, D43, D50.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.xid import parse_xid
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.messages import ABSOLUTE_URI
from wirebook.text.pointers import escape


@dataclass(frozen=True)
class ResolvedEndpoint:
    """An endpoint with the XIDs of its definitions.

    Shape: `messages` are the XIDs of its messages, then of the messages of its groups; `groups` are the XIDs of its
    message groups; `dangling` are references to groups that are not in the catalogue.
    """

    xid: str
    attributes: dict[str, Any]
    messages: tuple[str, ...]
    dangling: tuple[str, ...]
    groups: tuple[str, ...]


def resolve_endpoints(document: dict[str, Any], log: Log) -> dict[str, ResolvedEndpoint]:
    """Resolve every endpoint of a normalised registry document; return a map from XID to endpoint."""
    endpoints = (_resolve(key, endpoint, document, log) for key, endpoint in document.get("endpoints", {}).items())
    return {endpoint.xid: endpoint for endpoint in endpoints}


def _resolve(key: str, endpoint: dict[str, Any], document: dict[str, Any], log: Log) -> ResolvedEndpoint:
    xid, groups = f"/endpoints/{key}", document.get("messagegroups", {})
    first: dict[str, int] = {}
    for index, reference in enumerate(endpoint.get("messagegroups") or ()):
        first.setdefault(reference, index)
    known = [reference for reference in first if _group_id(reference) in groups]
    dangling = [reference for reference in first if _group_id(reference) not in groups]
    for reference in dangling:
        code = group_code(reference)
        message = f"the message group '{preview(reference)}' {GROUP_MESSAGES[code]}"
        log.report(code, f"/endpoints/{escape(key)}/messagegroups/{first[reference]}", message, xid, actual=reference)
    messages = [f"{xid}/messages/{message}" for message in endpoint.get("messages") or ()]
    for reference in known:
        members = groups[_group_id(reference)].get("messages") or ()
        messages += [f"{reference}/messages/{message}" for message in members]
    attributes = {name: value for name, value in endpoint.items() if name != "messages"}
    return ResolvedEndpoint(xid, attributes, tuple(messages), tuple(dangling), tuple(known))


def _group_id(reference: str) -> str:
    """Return the id in a reference to a message group of this registry, or "" for any other reference."""
    prefix, separator, group = reference.partition("/messagegroups/")
    return group if separator and not prefix else ""


GROUP_MESSAGES: Final = {
    "external-group": "is in another registry and is not fetched; load that registry too",
    "dangling-group": "does not exist in the catalogue",
    "bad-group": "is neither an XID ('/messagegroups/GROUP') nor an absolute URI",
}


def group_code(reference: str) -> str:
    """Return the problem code of a reference to a group that is not in the catalogue."""
    if not reference.startswith("/"):
        return "external-group" if ABSOLUTE_URI.match(reference) else "bad-group"
    xid = parse_xid(reference)
    is_group = xid is not None and xid.groups == "messagegroups" and xid.resource is None
    return "dangling-group" if is_group else "bad-group"
