"""Resources that clients cannot change: locked and unlocked by who runs the registry.

Spec: core/spec.md#readonly-attribute.
"""

from __future__ import annotations

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.state import Resource, ResourceLocation
from wirebook.core.model.target import RequestTarget
from wirebook.problems.xregistry import refused


def set_lock(draft: ChangeSet, target: RequestTarget, *, is_on: bool) -> bool:
    """Makes a Resource read-only or not; says whether it was not so before. Raises: not_found, bad_request"""
    resource = _resource(draft, target)
    if resource.xref is not None:
        why = "a cross-reference shows what its target has"
        raise refused("bad_request", resource.xid, error_detail=why)
    if bool(resource.meta.members.get("readonly")) == is_on:
        return False
    resource.meta.members["readonly"] = is_on
    resource.meta.touch(draft.now)
    draft.changed[resource.xid] = resource
    return True


def _resource(draft: ChangeSet, target: RequestTarget) -> Resource:
    assert target.group_type
    assert target.type
    group = draft.group(target.group_type, target.group)
    found = draft.resource(ResourceLocation(group, target.type, target.resource)) if group else None
    if found is None:
        raise refused("not_found", target.resource_xid)
    return found
