"""Decide what a write request changes. Pure: no clock, no storage.

    change_set = ChangeSet(snapshot, now, path, ignore)
    result = decide(change_set, request, validator)

Afterwards, `change_set` contains all changes, which the caller stores in one transaction. If `decide` raises `Refused`,
the caller must discard the change set.

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
from wirebook.core.entities.invariants import check_invariants
from wirebook.core.entities.resources import (
    WriteOptions,
    write_meta_alone,
    write_one_version,
    write_resource,
    write_versions,
)
from wirebook.core.entities.state import Group, Resource, ResourceLocation
from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.datatypes import preview
from wirebook.core.model.target import RequestTarget
from wirebook.problems.xregistry import refused

ALL: Final = None
"""The `metadata` of a DELETE without a body: delete everything in the collection."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request that writes entities.

    Shape: `metadata` comes from the body or from headers; for DELETE it is the map of entities to delete, or `ALL`.
    `body` is the document if it was sent as the HTTP body. `default` is the flag setdefaultversionid ("" if absent);
    `epoch` is the flag of that name.
    """

    method: str
    target: RequestTarget
    metadata: Any = field(default_factory=dict)
    body: Body | None = None
    default: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What the response contains: the entities `ids` of the target, the Version `version`, or else the target itself.

    `created`: the target did not exist before. `new_version`: the id of a Version that the request created.
    """

    created: bool = False
    ids: Mapping[str, list[str]] | list[str] | None = None
    version: str = ""
    new_version: str = ""


def decide(
    change_set: ChangeSet,
    request: WriteRequest,
    validator: DocumentValidator,
    check: Callable[[ChangeSet], None] | None = None,
) -> WriteResult:
    """Apply a request to the change set, then check the invariants of everything that it changed.

    `check` is called after the writes and before the invariants are checked.
    Raises: Refused, with any error type that a write can have
    """
    outcome = _WRITES[request.method, request.target.kind](change_set, request)
    if check:
        check(change_set)
    check_invariants(change_set, validator)
    return outcome


def _metadata_object(request: WriteRequest) -> Mapping[str, Any]:
    if not isinstance(request.metadata, Mapping):
        why = f"the body must be a JSON object; got {preview(request.metadata)}"
        raise refused("parsing_data", request.target.path, error_detail=why)
    return {name: value for name, value in request.metadata.items() if name != "$schema"}


def _metadata_map(request: WriteRequest) -> Mapping[str, Mapping[str, Any]]:
    return as_map(_metadata_object(request), request.target.xid.rpartition("/")[2], request.target.path)


def _write_options(request: WriteRequest) -> WriteOptions:
    is_document = request.body is not None
    return WriteOptions(request.method == "PATCH", True, request.default, headers=is_document, body=request.body)


# -- Registry and Groups ------------------------------------------------------------------------------------------


def _write_registry(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    write_registry(change_set, _metadata_object(request), patch=request.method == "PATCH")
    return WriteResult()


def _post_registry(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    return WriteResult(ids=post_to_registry(change_set, _metadata_object(request)))


def _write_groups(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    assert request.target.group_type
    written = write_groups(
        change_set, request.target.group_type, _metadata_map(request), patch=request.method == "PATCH"
    )
    return WriteResult(ids=[group.id for group in written])


def _write_group(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    assert target.group_type
    is_patch = request.method == "PATCH"
    group = write_group(
        change_set, target.group_type, target.group, _metadata_object(request), patch=is_patch, root=True
    )
    return WriteResult(created=group.is_new)


def _post_group(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    assert target.group_type
    return WriteResult(ids=post_to_group(change_set, target.group_type, target.group, _metadata_object(request)))


# -- Resources and Versions ---------------------------------------------------------------------------------------


def _resource_location(change_set: ChangeSet, target: RequestTarget) -> ResourceLocation:
    """Return the location of the target's Resource; its Group is created if it does not exist."""
    assert target.group_type
    group = implied_group(change_set, target.group_type, target.group)
    return ResourceLocation(group, group.type.resources[target.type.plural if target.type else ""], target.resource)


def _write_resources(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    metadata, location = _metadata_map(request), _resource_location(change_set, request.target)
    written = write_resources(
        change_set, location.group, location.type.plural, metadata, patch=request.method == "PATCH"
    )
    return WriteResult(ids=[resource.id for resource in written])


def _write_resource(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = write_resource(
        change_set, _resource_location(change_set, request.target), _metadata_object(request), _write_options(request)
    )
    return WriteResult(resource.is_new, new_version=_new_version(resource))


def _new_version(resource: Resource) -> str:
    """Return the id of the Version that was created: the default one if it is new, else the last; "" if none was."""
    new = [id_ for id_ in resource.versions if id_ not in resource.versions_before]
    if not new:
        return ""
    return resource.default if resource.default in new else new[-1]


def _post_resource(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    metadata = {name: value for name, value in _metadata_object(request).items() if name not in _HELPERS}
    id_ = metadata.get("versionid")
    if id_ not in (None, ""):
        as_id(id_, "versionid", request.target.xid)
    version = write_one_version(
        change_set, _resource_location(change_set, request.target), id_ or None, metadata, _write_options(request)
    )
    return WriteResult(version.is_new, version=version.id, new_version=version.id if version.is_new else "")


_HELPERS: Final = frozenset({"metaurl", "versionsurl", "versionscount"})


def _write_meta(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = write_meta_alone(
        change_set, _resource_location(change_set, request.target), _metadata_object(request), _write_options(request)
    )
    return WriteResult(resource.is_new)


def _write_versions(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    metadata = _metadata_map(request)
    return WriteResult(
        ids=write_versions(
            change_set, _resource_location(change_set, request.target), metadata, _write_options(request)
        )
    )


def _write_version(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    target = request.target
    version = write_one_version(
        change_set,
        _resource_location(change_set, target),
        target.version,
        _metadata_object(request),
        _write_options(request),
    )
    return WriteResult(version.is_new, new_version=version.id if version.is_new else "")


# -- deleting -----------------------------------------------------------------------------------------------------


def find_group(change_set: ChangeSet, target: RequestTarget) -> Group:
    """Return the Group of the target. Raises: not_found"""
    assert target.group_type
    group = change_set.snapshot.groups.get((target.group_type.plural, target.group.lower()))
    if group is None or group.id != target.group:
        raise refused("not_found", target.xid if target.kind == "group" else target.group_xid)
    return group


def find_resource(change_set: ChangeSet, target: RequestTarget) -> Resource:
    """Return the Resource of the target. Raises: not_found"""
    group = find_group(change_set, target)
    assert target.type
    resource = change_set.snapshot.resources.get((group.xid, target.type.plural, target.resource.lower()))
    if resource is None or resource.id != target.resource:
        raise refused("not_found", target.resource_xid)
    return resource


def _listed(request: WriteRequest) -> Mapping[str, Any] | None:
    return None if request.metadata is ALL else listed_map(request.metadata, request.target.path)


def _delete_groups(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    assert request.target.group_type
    type_ = request.target.group_type
    every = [group for (plural, _), group in change_set.snapshot.groups.items() if plural == type_.plural]
    delete_groups(change_set, type_, _listed(request), every)
    return WriteResult()


def _delete_group(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    group = find_group(change_set, request.target)
    check_epoch(group, {"epoch": request.epoch}, ignored="epoch" in change_set.ignore)
    delete_group(change_set, group)
    return WriteResult()


def _delete_resources(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    group = find_group(change_set, request.target)
    assert request.target.type
    every = [
        resource
        for resource in change_set.snapshot.resources.values()
        if resource.group is group and resource.type is request.target.type
    ]
    delete_resources(change_set, group, request.target.type.plural, _listed(request), every)
    return WriteResult()


def _delete_resource(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    delete_resource(change_set, find_resource(change_set, request.target), request.epoch)
    return WriteResult()


def _delete_versions(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = find_resource(change_set, request.target)
    delete_versions(change_set, resource, _listed(request), request.default)
    return WriteResult()


def _delete_version(change_set: ChangeSet, request: WriteRequest) -> WriteResult:
    resource = find_resource(change_set, request.target)
    delete_version(change_set, resource, request.target.version, request.epoch, request.default)
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
