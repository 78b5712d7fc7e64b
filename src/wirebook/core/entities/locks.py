"""Lock Resources against changes by clients. Administrators set and remove the lock.

Spec: core/spec.md#readonly-attribute.
"""

from __future__ import annotations

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.state import Resource, ResourceLocation
from wirebook.core.model.target import RequestTarget
from wirebook.problems.xregistry import refused


def set_lock(change_set: ChangeSet, target: RequestTarget, *, is_on: bool) -> bool:
    """Make a Resource read-only or writable. Return whether that is a change. Raises: not_found, bad_request"""
    resource = _resource(change_set, target)
    if resource.xref is not None:
        why = f"a cross-reference cannot be locked; lock its target '{resource.xref}' instead"
        raise refused("bad_request", resource.xid, error_detail=why)
    if bool(resource.meta.members.get("readonly")) == is_on:
        return False
    resource.meta.members["readonly"] = is_on
    resource.meta.mark_updated(change_set.now)
    change_set.changed[resource.xid] = resource
    return True


def _resource(change_set: ChangeSet, target: RequestTarget) -> Resource:
    assert target.group_type
    assert target.type
    group = change_set.group(target.group_type, target.group)
    resource = change_set.resource(ResourceLocation(group, target.type, target.resource)) if group else None
    if resource is None:
        raise refused("not_found", target.resource_xid)
    return resource
