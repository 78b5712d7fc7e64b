"""Deleting entities: one, those of a map, or all of a collection.

Spec: core/spec.md#deleting-entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wirebook.core.datatypes import shown
from wirebook.core.draft import Draft
from wirebook.core.entity import check_epoch, check_id
from wirebook.core.model import GroupType
from wirebook.core.resources import How, finish, is_locked
from wirebook.core.state import Entity, Group, Resource
from wirebook.core.xref import check_no_reference
from wirebook.problems.xregistry import refused

Listed = Mapping[str, Any] | None
"""What a request lists to be deleted: entities by id; None: all."""


def check_listed(value: Any) -> None:
    """Raises: parsing_data"""
    if not isinstance(value, Mapping):
        raise refused("parsing_data", error_detail=f"a map of entities is needed, not {shown(value)}")
    for key, entity in value.items():
        if entity is not None and not isinstance(entity, Mapping):
            raise refused("parsing_data", error_detail=f"'{key}' must be an object, not {shown(entity)}")


def delete_groups(draft: Draft, type_: GroupType, listed: Listed, groups: Iterable[Group]) -> None:
    """`groups` are all of the type, where `listed` is None. Raises: mismatched_id, mismatched_epoch, readonly"""
    if listed is None:
        for group in list(groups):
            delete_group(draft, group)
        return
    for key, sent in listed.items():
        found = draft.snapshot.groups.get((type_.plural, key.lower()))
        if found is not None and found.id == key and not found.deleted:
            _check(draft, found, type_.singular, key, sent or {})
            delete_group(draft, found)


def _check(draft: Draft, entity: Entity, singular: str, id_: str, sent: Mapping[str, Any]) -> None:
    check_id(sent, singular, id_, entity.xid)
    check_epoch(entity, sent, ignored="epoch" in draft.ignore)


def delete_group(draft: Draft, group: Group) -> None:
    """A Group with everything in it. Raises: readonly"""
    locked = [each for each in draft.snapshot.reader.resources_of(group) if each.meta.members.get("readonly")]
    if locked and "readonly" not in draft.ignore:
        raise refused("readonly", group.xid, detail=f"{locked[0].xid} is read-only.")
    if not locked:
        draft.delete_group(group)


def delete_resources(draft: Draft, group: Group, plural: str, listed: Listed, resources: Iterable[Resource]) -> None:
    """`resources` are all of the type, where `listed` is None.

    Raises: mismatched_id, mismatched_epoch, misplaced_epoch, readonly
    """
    type_ = group.type.resources[plural]
    if listed is None:
        for resource in list(resources):
            delete_resource(draft, resource, How())
        return
    for key, sent in listed.items():
        found = draft.snapshot.resources.get((group.xid, plural, key.lower()))
        if found is not None and found.id == key and not found.deleted:
            check_id(sent or {}, type_.singular, key, found.xid)
            _check_meta(draft, found, sent or {})
            delete_resource(draft, found, How())


def _check_meta(draft: Draft, resource: Resource, sent: Mapping[str, Any]) -> None:
    meta = sent.get("meta")
    if meta is None or (isinstance(meta, Mapping) and "epoch" not in meta and "epoch" in sent):
        if sent.get("epoch") is not None:
            raise refused("misplaced_epoch", resource.xid)
        return
    if not isinstance(meta, Mapping):
        why = f"it must be an object, not {shown(meta)}"
        raise refused("invalid_attribute", resource.xid, name="meta", error_detail=why)
    _check(draft, resource.meta, resource.type.singular, resource.id, meta)


def delete_resource(draft: Draft, resource: Resource, how: How) -> None:
    """Raises: readonly, bad_flag"""
    if not is_locked(draft, resource, how):
        draft.delete_resource(resource)


def delete_versions(draft: Draft, resource: Resource, listed: Listed, default: str = "", *, root: bool = False) -> None:
    """Deletes Versions, and the Resource with the last of them. `default` is the flag setdefaultversionid.

    Raises: bad_request, mismatched_id, mismatched_epoch, readonly, unknown_id, what `finish` raises
    """
    if is_locked(draft, resource, How(root=root)):
        return
    check_no_reference(resource)
    gone = [key for key in (resource.versions if listed is None else listed) if key in resource.versions]
    for key in gone:
        sent = (listed or {}).get(key) or {}
        _check(draft, resource.versions[key], "version", key, sent)
    if default in gone:
        why = f"the Version '{default}' is deleted and cannot become the default"
        raise refused("bad_request", resource.versions[default].xid, error_detail=why)
    for key in gone:
        del resource.versions[key]
    if not resource.versions:
        draft.delete_resource(resource)
    elif gone or default:
        finish(draft, resource, None, How(default=default))
