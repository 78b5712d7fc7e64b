"""Cross-references: Resources that appear with the content of another Resource.

Only the ids, the epoch and the creation time of a cross-reference are its own.

Spec: core/spec.md#cross-referencing-resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.entities.attributes import check_epoch, check_id
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.documents import Body
from wirebook.core.entities.state import Resource, ResourceLocation
from wirebook.core.model.compiled import ResourceType
from wirebook.core.model.datatypes import entity_type
from wirebook.problems.xregistry import refused

SHOWN = ("self", "shortself", "xid", "metaurl")
"""Attributes of a cross-reference in an export; a request may send them back."""

READ_ONLY = frozenset({"self", "shortself", "xid", "readonly", "defaultversionurl"})


def is_reference(resource: Resource | None, meta: Mapping[str, Any] | None, patch: bool) -> bool:
    """Return whether a Resource is a cross-reference after `meta` (None if none was sent) is written."""
    if meta is not None and "xref" in meta:
        return meta["xref"] is not None
    was = resource is not None and resource.xref is not None
    return was and (meta is None or patch)


def write_reference(
    change_set: ChangeSet,
    location: ResourceLocation,
    metadata: Mapping[str, Any],
    meta: Mapping[str, Any],
    *,
    body: Body | None = None,
    default: str = "",
) -> Resource:
    """Make a Resource a cross-reference, or keep it one. Its former content is deleted.

    `default` is the flag setdefaultversionid, which is rejected like an attribute of the meta.
    Raises: malformed_xref, extra_xref_attribute, mismatched_id, mismatched_epoch
    """
    resource = change_set.resource(location)
    target = meta.get("xref", resource.xref if resource else None)
    _check_target(change_set, location.type, target)
    _check_no_extra_attributes(location, metadata, body)
    flag = {"defaultversionid": default} if default else {}
    _check_no_extra_meta_attributes(
        location, {**meta, **flag}, was_normal=resource is not None and resource.xref is None
    )
    resource = resource or change_set.add_resource(location)
    check_id(meta, location.type.singular, location.id, resource.meta.xid)
    check_epoch(resource.meta, meta, ignored="epoch" in change_set.ignore)
    if resource.xref == target:
        return resource
    before = resource.meta.members
    resource.meta.members = {
        location.type.id_name: location.id,
        "xref": target,
        "epoch": before["epoch"],  # if the Resource becomes a normal one again, its epoch will be higher
        "createdat": before.get("createdat", change_set.now),
    }
    resource.meta.is_updated = True
    resource.versions.clear()
    change_set.changed[resource.xid] = resource
    return resource


def _check_target(change_set: ChangeSet, type_: ResourceType, target: Any) -> None:
    """Check that `target` is a valid target of a cross-reference. Raises: malformed_xref"""
    why = (
        "it must be the xid of a Resource, a string such as '/<GROUPS>/<id>/<RESOURCES>/<id>'"
        if not isinstance(target, str)
        else target_fault(change_set, type_, target)
    )
    if why:
        raise refused(
            "malformed_xref", change_set.path, xref=target if isinstance(target, str) else "", error_detail=why
        )


def target_fault(change_set: ChangeSet, type_: ResourceType, target: str) -> str | None:
    """Return why a Resource of a type cannot be a cross-reference to `target`, or None. The target need not exist."""
    parts = target.split("/")
    type_of_target = entity_type(target, change_set.types)
    other = change_set.model.resource_type(parts[1], parts[3]) if type_of_target and len(parts) == 5 else None
    if other is None:
        return "it is not the xid of a Resource whose type is in the model"
    if other.home != type_.home:
        return f"'{parts[3]}' of '{parts[1]}' is a different Resource type; share the type with ximportresources"
    return None


def _check_no_extra_attributes(location: ResourceLocation, metadata: Mapping[str, Any], body: Body | None) -> None:
    """Check that there are no attributes but the id, the meta and those in `SHOWN`. Raises: extra_xref_attribute"""
    extra = [name for name in metadata if name not in (location.type.id_name, "meta", *SHOWN)]
    if body is not None:  # its media type is always among the attributes
        extra = [name for name in extra if metadata[name] is not None]
        extra += [location.type.singular] if body.document else []
    if extra:
        raise _extra_attributes_error(location, extra)


def _check_no_extra_meta_attributes(location: ResourceLocation, meta: Mapping[str, Any], *, was_normal: bool) -> None:
    """Check that the meta contains only the id, `xref` and read-only attributes.

    The epoch is allowed if the Resource was a normal one. null counts as absent. Raises: extra_xref_attribute
    """
    allowed = {location.type.id_name, "xref", *READ_ONLY} | ({"epoch"} if was_normal else set())
    extra = [name for name, value in meta.items() if name not in allowed and value is not None]
    if extra:
        raise _extra_attributes_error(location, extra)


def _extra_attributes_error(location: ResourceLocation, names: list[str]) -> Exception:
    detail = f"All attributes to remove: {', '.join(sorted(names))}." if len(names) > 1 else None
    return refused(
        "extra_xref_attribute", location.xid, name=min(names), singular=location.type.singular, detail=detail
    )


def check_no_reference(change_set: ChangeSet, resource: Resource) -> None:
    """Reject a write to the Versions of a cross-reference, which belong to its target. Raises: bad_request"""
    if resource.xref is not None:
        why = f"'{resource.xid}' is a cross-reference; write to its target '{resource.xref}'"
        raise refused("bad_request", change_set.path, error_detail=why)


def visible_epoch(change_set: ChangeSet, resource: Resource) -> int | None:
    """Return the meta's epoch that clients saw before the request; for a cross-reference, that of its target."""
    before = resource.meta.before or {}
    target = change_set.snapshot.targets.get(before.get("xref", ""))
    shown = target.meta.before if target and target is not resource else None
    return (shown if shown and "xref" not in shown else before).get("epoch")


def leave_reference(change_set: ChangeSet, resource: Resource) -> None:
    """Make a cross-reference a normal Resource again, still without Versions.

    Its epoch is higher than all epochs that clients have seen for it.
    """
    target = change_set.snapshot.targets.get(resource.xref or "")
    seen = target.meta.epoch if target else 0
    members = resource.meta.members
    epoch = max(members["epoch"], seen) + 1
    resource.meta.members = {
        resource.type.id_name: resource.id,
        "epoch": epoch,
        "createdat": members["createdat"],
    }
    resource.meta.is_updated = True
