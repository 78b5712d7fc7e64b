"""Which definitions an endpoint has: its own messages, and those of every message group it names.

Spec: endpoint/spec.md#messagegroups; docs/semantics.md R29, D43, D50.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.xid import parse_xid
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.messages import ABSOLUTE_URI
from wirebook.text.pointers import escape


@dataclass(frozen=True)
class ResolvedEndpoint:
    """One endpoint.

    Shape: `messages` are XIDs, its own first; `groups` are those found, `dangling` the references that are not.
    """

    xid: str
    attributes: dict[str, Any]
    messages: tuple[str, ...]
    dangling: tuple[str, ...]
    groups: tuple[str, ...]


def resolve_endpoints(document: dict[str, Any], log: Log) -> dict[str, ResolvedEndpoint]:
    """Every endpoint of a normalised registry document, by XID."""
    found = (_resolve(key, endpoint, document, log) for key, endpoint in document.get("endpoints", {}).items())
    return {endpoint.xid: endpoint for endpoint in found}


def _resolve(key: str, endpoint: dict[str, Any], document: dict[str, Any], log: Log) -> ResolvedEndpoint:
    xid, groups = f"/endpoints/{key}", document.get("messagegroups", {})
    first: dict[str, int] = {}
    for index, reference in enumerate(endpoint.get("messagegroups") or ()):
        first.setdefault(reference, index)
    known = [reference for reference in first if _group_id(reference) in groups]
    dangling = [reference for reference in first if _group_id(reference) not in groups]
    for reference in dangling:
        _report(xid, key, first[reference], reference, log)
    messages = [f"{xid}/messages/{message}" for message in endpoint.get("messages") or ()]
    messages += [message for reference in known for message in _messages_of(reference, groups)]
    attributes = {name: value for name, value in endpoint.items() if name != "messages"}
    return ResolvedEndpoint(xid, attributes, tuple(messages), tuple(dangling), tuple(known))


def _group_id(reference: str) -> str:
    """The id of a group of this registry; that of no group for a reference to elsewhere."""
    prefix, found, group = reference.partition("/messagegroups/")
    return group if found and not prefix else ""


def _messages_of(reference: str, groups: dict[str, Any]) -> Iterator[str]:
    for message in groups[_group_id(reference)].get("messages") or ():
        yield f"{reference}/messages/{message}"


def _report(xid: str, key: str, index: int, reference: str, log: Log) -> None:
    code = group_code(reference)
    pointer = f"/endpoints/{escape(key)}/messagegroups/{index}"
    log.report(code, pointer, f"the message group '{preview(reference)}' {GROUP_MESSAGES[code]}", xid, actual=reference)


GROUP_MESSAGES: Final = {
    "external-group": "is in another registry, which is not fetched",
    "dangling-group": "does not exist in the catalogue",
    "bad-group": "is neither the XID of a message group nor an absolute URI",
}


def group_code(reference: str) -> str:
    """What is wrong with a reference that led to no group of this registry."""
    if not reference.startswith("/"):
        return "external-group" if ABSOLUTE_URI.match(reference) else "bad-group"
    xid = parse_xid(reference)
    is_group = xid is not None and xid.groups == "messagegroups" and xid.resource is None
    return "dangling-group" if is_group else "bad-group"
