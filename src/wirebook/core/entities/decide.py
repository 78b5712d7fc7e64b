"""Deciding: what a request that writes does to the registry that it found. Pure: no clock, no storage.

    draft = Draft(snapshot, now, path, ignore); outcome = decide(draft, request, validator)

`draft` then has everything that changed, to be stored in one transaction, or a `Refused` was raised and nothing is.

Spec: core/http.md#registry-http-apis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.core.entities.attributes import as_id, as_map, check_epoch
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.deletes import (
    delete_group,
    delete_groups,
    delete_resource,
    delete_resources,
    delete_version,
    delete_versions,
    listed_map,
)
from wirebook.core.entities.documents import Body
from wirebook.core.entities.groups import (
    implied_group,
    post_to_group,
    post_to_registry,
    write_group,
    write_groups,
    write_registry,
    write_resources,
)
from wirebook.core.entities.invariants import settle
from wirebook.core.entities.resources import (
    How,
    write_meta_alone,
    write_one_version,
    write_resource,
    write_versions,
)
from wirebook.core.entities.state import Group, Resource, ResourceLocation
from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.datatypes import shown
from wirebook.core.model.target import RequestTarget
from wirebook.problems.xregistry import refused

ALL: Final = None
"""What is sent with a DELETE that has no body: everything in the collection."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request that writes entities.

    Shape: `sent` is the metadata, from the body or from headers; of a DELETE the map of what to delete, or `ALL`.
    `body` is the document, where the body is one. `default` is the flag setdefaultversionid ("": not given), `epoch`
    the flag of that name.
    """

    method: str
    target: RequestTarget
    sent: Any = field(default_factory=dict)
    body: Body | None = None
    default: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What is to be answered: the `target` itself, or the entities of `ids` in it; `version` if a Version is shown.

    `created`: the target was not there before. `new_version`: the id of a Version that was.
    """

    created: bool = False
    ids: Mapping[str, list[str]] | list[str] | None = None
    version: str = ""
    new_version: str = ""


def decide(
    draft: ChangeSet,
    request: WriteRequest,
    validator: DocumentValidator,
    check: Callable[[ChangeSet], None] | None = None,
) -> WriteResult:
    """`check` is called once everything is written, before the end-of-request checks.

    Raises: Refused, with any error that a write can have
    """
    outcome = _WRITES[request.method, request.target.kind](draft, request)
    if check:
        check(draft)
    settle(draft, validator)
    return outcome


def _object(request: WriteRequest) -> Mapping[str, Any]:
    if not isinstance(request.sent, Mapping):
        why = f"the body must be a JSON object, not {shown(request.sent)}"
        raise refused("parsing_data", request.target.path, error_detail=why)
    return {name: value for name, value in request.sent.items() if name != "$schema"}


def _map(request: WriteRequest) -> Mapping[str, Mapping[str, Any]]:
    return as_map(_object(request), request.target.xid.rpartition("/")[2], request.target.path)


def _how(request: WriteRequest) -> How:
    is_document = request.body is not None
    return How(request.method == "PATCH", True, request.default, headers=is_document, body=request.body)


# -- Registry and Groups ------------------------------------------------------------------------------------------


def _write_registry(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    write_registry(draft, _object(request), patch=request.method == "PATCH")
    return WriteResult()


def _post_registry(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    return WriteResult(ids=post_to_registry(draft, _object(request)))


def _write_groups(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    assert request.target.group_type
    written = write_groups(draft, request.target.group_type, _map(request), patch=request.method == "PATCH")
    return WriteResult(ids=[each.id for each in written])


def _write_group(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    assert target.group_type
    is_patch = request.method == "PATCH"
    group = write_group(draft, target.group_type, target.group, _object(request), patch=is_patch, root=True)
    return WriteResult(created=group.is_new)


def _post_group(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    assert target.group_type
    return WriteResult(ids=post_to_group(draft, target.group_type, target.group, _object(request)))


# -- Resources and Versions ---------------------------------------------------------------------------------------


def _place(draft: ChangeSet, target: RequestTarget) -> ResourceLocation:
    """Where the Resource of the target is, in its Group, which is made if need be."""
    assert target.group_type
    group = implied_group(draft, target.group_type, target.group)
    return ResourceLocation(group, group.type.resources[target.type.plural if target.type else ""], target.resource)


def _write_resources(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    sent, place = _map(request), _place(draft, request.target)
    written = write_resources(draft, place.group, place.type.plural, sent, patch=request.method == "PATCH")
    return WriteResult(ids=[each.id for each in written])


def _write_resource(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = write_resource(draft, _place(draft, request.target), _object(request), _how(request))
    return WriteResult(resource.is_new, new_version=_new_version(resource))


def _new_version(resource: Resource) -> str:
    """The Version that was made, if any; of several the default, or else the last."""
    new = [id_ for id_ in resource.versions if id_ not in resource.had]
    if not new:
        return ""
    return resource.default if resource.default in new else new[-1]


def _post_resource(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    sent = {name: value for name, value in _object(request).items() if name not in _HELPERS}
    id_ = sent.get("versionid")
    if id_ not in (None, ""):
        as_id(id_, "versionid", request.target.xid)
    version = write_one_version(draft, _place(draft, request.target), id_ or None, sent, _how(request))
    return WriteResult(version.is_new, version=version.id, new_version=version.id if version.is_new else "")


_HELPERS: Final = frozenset({"metaurl", "versionsurl", "versionscount"})


def _write_meta(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = write_meta_alone(draft, _place(draft, request.target), _object(request), _how(request))
    return WriteResult(resource.is_new)


def _write_versions(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    sent = _map(request)
    return WriteResult(ids=write_versions(draft, _place(draft, request.target), sent, _how(request)))


def _write_version(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    version = write_one_version(draft, _place(draft, target), target.version, _object(request), _how(request))
    return WriteResult(version.is_new, new_version=version.id if version.is_new else "")


# -- deleting -----------------------------------------------------------------------------------------------------


def find_group(draft: ChangeSet, target: RequestTarget) -> Group:
    """Raises: not_found"""
    assert target.group_type
    found = draft.snapshot.groups.get((target.group_type.plural, target.group.lower()))
    if found is None or found.id != target.group:
        raise refused("not_found", target.xid if target.kind == "group" else target.group_xid)
    return found


def find_resource(draft: ChangeSet, target: RequestTarget) -> Resource:
    """Raises: not_found"""
    group = find_group(draft, target)
    assert target.type
    found = draft.snapshot.resources.get((group.xid, target.type.plural, target.resource.lower()))
    if found is None or found.id != target.resource:
        raise refused("not_found", target.resource_xid)
    return found


def _listed(request: WriteRequest) -> Mapping[str, Any] | None:
    return None if request.sent is ALL else listed_map(request.sent, request.target.path)


def _delete_groups(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    assert request.target.group_type
    type_ = request.target.group_type
    every = [group for (plural, _), group in draft.snapshot.groups.items() if plural == type_.plural]
    delete_groups(draft, type_, _listed(request), every)
    return WriteResult()


def _delete_group(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    group = find_group(draft, request.target)
    check_epoch(group, {"epoch": request.epoch}, ignored="epoch" in draft.ignore)
    delete_group(draft, group)
    return WriteResult()


def _delete_resources(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    group = find_group(draft, request.target)
    assert request.target.type
    every = [
        resource
        for resource in draft.snapshot.resources.values()
        if resource.group is group and resource.type is request.target.type
    ]
    delete_resources(draft, group, request.target.type.plural, _listed(request), every)
    return WriteResult()


def _delete_resource(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    delete_resource(draft, find_resource(draft, request.target), request.epoch)
    return WriteResult()


def _delete_versions(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = find_resource(draft, request.target)
    delete_versions(draft, resource, _listed(request), request.default)
    return WriteResult()


def _delete_version(draft: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = find_resource(draft, request.target)
    delete_version(draft, resource, request.target.version, request.epoch, request.default)
    return WriteResult()


_WRITES: Final[Mapping[tuple[str, str], Callable[[ChangeSet, WriteRequest], WriteResult]]] = {
    ("PUT", "registry"): _write_registry,
    ("PATCH", "registry"): _write_registry,
    ("POST", "registry"): _post_registry,
    ("POST", "groups"): _write_groups,
    ("PATCH", "groups"): _write_groups,
    ("DELETE", "groups"): _delete_groups,
    ("PUT", "group"): _write_group,
    ("PATCH", "group"): _write_group,
    ("POST", "group"): _post_group,
    ("DELETE", "group"): _delete_group,
    ("POST", "resources"): _write_resources,
    ("PATCH", "resources"): _write_resources,
    ("DELETE", "resources"): _delete_resources,
    ("PUT", "resource"): _write_resource,
    ("PATCH", "resource"): _write_resource,
    ("POST", "resource"): _post_resource,
    ("DELETE", "resource"): _delete_resource,
    ("PUT", "meta"): _write_meta,
    ("PATCH", "meta"): _write_meta,
    ("POST", "versions"): _write_versions,
    ("PATCH", "versions"): _write_versions,
    ("DELETE", "versions"): _delete_versions,
    ("PUT", "version"): _write_version,
    ("PATCH", "version"): _write_version,
    ("DELETE", "version"): _delete_version,
}
