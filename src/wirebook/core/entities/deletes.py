"""Delete entities: a single entity, the entities in a map, or a whole collection.

Spec: core/spec.md#deleting-entities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from wirebook.core.entities.attributes import check_epoch
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.resources import WriteOptions, finish, is_locked
from wirebook.core.entities.state import Entity, Group, Resource
from wirebook.core.entities.xref import check_no_reference, visible_epoch
from wirebook.core.model.compiled import GroupType
from wirebook.core.model.datatypes import preview
from wirebook.problems.xregistry import refused

Listed = Mapping[str, Any] | None
"""The entities that a request lists for deletion, by id; None for all."""


def listed_map(value: Any, path: str) -> Mapping[str, Any]:
    """Return the map of entities to delete. Raises: parsing_data"""
    if not isinstance(value, Mapping):
        raise refused(
            "parsing_data",
            path,
            error_detail=f"the body must be an object with the entities by id; got {preview(value)}",
        )
    return value


def _entry(listed: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    """Return the members that were sent for an entity to delete. Raises: parsing_data"""
    metadata = listed[key]
    if metadata is not None and not isinstance(metadata, Mapping):
        raise refused("parsing_data", path, error_detail=f"'{key}' must be an object; got {preview(metadata)}")
    return metadata or {}


def delete_groups(change_set: ChangeSet, type_: GroupType, listed: Listed, groups: Iterable[Group]) -> None:
    """Delete the listed Groups or, if `listed` is None, `groups`, which are all of the type.

    Listed Groups that do not exist are ignored.
    Raises: parsing_data, mismatched_id, mismatched_epoch, invalid_attribute, readonly
    """
    if listed is None:
        gone = list(groups)
    else:
        named = {key: change_set.snapshot.groups.get((type_.plural, key.lower())) for key in listed}
        gone = [group for key, group in named.items() if group is not None and group.id == key]
        for group in gone:
            metadata = _entry(listed, group.id, change_set.path)
            _check_id(metadata, type_.singular, group, group.id)
            _check_epoch(change_set, group, metadata)
    _delete_unlocked(change_set, gone)


def _check_id(metadata: Mapping[str, Any], singular: str, entity: Entity | Resource, id_: str) -> None:
    """Check that an id, which may have any JSON type, equals the entity's. Raises: mismatched_id"""
    requested = metadata.get(f"{singular}id")
    if requested is not None and requested != id_:
        invalid = requested if isinstance(requested, str) else preview(requested)
        raise refused("mismatched_id", entity.xid, singular=singular, invalid_id=invalid, expected_id=id_)


def _check_epoch(
    change_set: ChangeSet, entity: Entity, metadata: Mapping[str, Any], current: int | None = None
) -> None:
    check_epoch(entity, metadata, ignored="epoch" in change_set.ignore, current=current)


def _delete_unlocked(change_set: ChangeSet, groups: Collection[Group]) -> None:
    """Delete Groups; skip those with a read-only Resource if the request ignores `readonly`. Raises: readonly"""
    locked = change_set.snapshot.reader.locked_in(groups) if groups else {}
    for group in groups:
        if group.xid not in locked:
            change_set.delete_group(group)
        elif "readonly" not in change_set.ignore:
            raise refused("readonly", group.xid, detail=f"{locked[group.xid]} is read-only.")


def delete_group(change_set: ChangeSet, group: Group) -> None:
    """Delete a single Group with everything in it. Raises: readonly, bad_flag"""
    _delete_unlocked(change_set, [group])
    if not group.deleted:
        raise refused(
            "bad_flag",
            change_set.path,
            flag="ignore",
            detail=f"{group.xid} contains a read-only Resource, so it cannot be deleted.",
        )


def delete_resources(
    change_set: ChangeSet, group: Group, plural: str, listed: Listed, resources: Iterable[Resource]
) -> None:
    """Delete the listed Resources or, if `listed` is None, `resources`, which are all of the type.

    Listed Resources that do not exist are ignored.
    Raises: parsing_data, mismatched_id, mismatched_epoch, misplaced_epoch, invalid_attribute, readonly
    """
    if listed is None:
        gone = list(resources)
    else:
        named = {key: change_set.snapshot.resources.get((group.xid, plural, key.lower())) for key in listed}
        gone = [resource for key, resource in named.items() if resource is not None and resource.id == key]
    for resource in gone:
        if not is_locked(change_set, resource, WriteOptions()):
            if listed is not None:
                _check_resource(change_set, resource, _entry(listed, resource.id, change_set.path))
            change_set.delete_resource(resource)


def _check_resource(change_set: ChangeSet, resource: Resource, metadata: Mapping[str, Any]) -> None:
    """Check the id, and the epoch of the meta.

    Raises: mismatched_id, mismatched_epoch, misplaced_epoch, invalid_attribute
    """
    _check_id(metadata, resource.type.singular, resource, resource.id)
    meta = metadata.get("meta")
    if meta is None or (isinstance(meta, Mapping) and "epoch" not in meta and "epoch" in metadata):
        if metadata.get("epoch") is not None:
            raise refused("misplaced_epoch", resource.xid)
        return
    if not isinstance(meta, Mapping):
        why = f"it must be an object; got {preview(meta)}"
        raise refused("invalid_attribute", resource.xid, name="meta", error_detail=why)
    _check_id(meta, resource.type.singular, resource.meta, resource.id)
    _check_epoch(change_set, resource.meta, meta, visible_epoch(change_set, resource))


def delete_resource(change_set: ChangeSet, resource: Resource, epoch: int | None) -> None:
    """Delete a single Resource. Raises: mismatched_epoch, readonly, bad_flag"""
    if not is_locked(change_set, resource, WriteOptions(root=True)):
        _check_epoch(change_set, resource.meta, {"epoch": epoch}, visible_epoch(change_set, resource))
        change_set.delete_resource(resource)


def delete_version(change_set: ChangeSet, resource: Resource, id_: str, epoch: int | None, default: str) -> None:
    """Delete a single Version. Raises: not_found, mismatched_epoch, all errors of `delete_versions`"""
    xid = f"{resource.xid}/versions/{id_}"
    is_locked(change_set, resource, WriteOptions(root=True), xid)
    check_no_reference(change_set, resource)
    if id_ not in resource.versions:
        raise refused("not_found", xid)
    _check_epoch(change_set, resource.versions[id_], {"epoch": epoch})
    delete_versions(change_set, resource, {id_: {}}, default)


def delete_versions(change_set: ChangeSet, resource: Resource, listed: Listed, default: str = "") -> None:
    """Delete the listed Versions, or all if `listed` is None. The Resource is deleted with its last Version.

    Listed Versions that do not exist are ignored. `default` is the flag setdefaultversionid.
    Raises: parsing_data, unknown_id, mismatched_id, mismatched_epoch, invalid_attribute, readonly, bad_flag,
    bad_request, all errors of `finish`
    """
    is_locked(change_set, resource, WriteOptions(root=True))
    check_no_reference(change_set, resource)
    gone = [key for key in (resource.versions if listed is None else listed) if key in resource.versions]
    for key in gone:
        metadata = _entry(listed, key, change_set.path) if listed is not None else {}
        _check_id(metadata, "version", resource.versions[key], key)
        _check_epoch(change_set, resource.versions[key], metadata)
    for key in gone:
        del resource.versions[key]
    if default not in ("", "null", *resource.versions):
        detail = f"The request deletes the Version '{default}'." if default in gone else None
        raise refused("unknown_id", resource.meta.xid, singular="version", id=default, detail=detail)
    if not resource.versions:
        change_set.delete_resource(resource)
    elif gone or default:
        finish(change_set, resource, None, WriteOptions(default=default))
