"""Write Groups and the Registry, with all entities nested in the request.

Spec: core/http.md#creating-or-updating-entities; core/spec.md#updating-nested-registry-collections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.entities.attributes import as_map, check_epoch, check_id, nested_map, update
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.resources import WriteOptions, write_resource
from wirebook.core.entities.state import Group, Resource, ResourceLocation
from wirebook.core.model.compiled import GroupType
from wirebook.problems.xregistry import refused

Metadata = Mapping[str, Any]


def write_group(
    change_set: ChangeSet, type_: GroupType, id_: str, metadata: Metadata, *, patch: bool, root: bool = False
) -> Group:
    """Create or update a Group and the Resources nested in it.

    Raises: mismatched_id, mismatched_epoch, all errors of `update` and `write_resource`
    """
    group = change_set.group(type_, id_) or change_set.add_group(type_, id_)
    check_id(metadata, type_.singular, id_, group.xid, ignored=root and "id" in change_set.ignore)
    check_epoch(group, metadata, ignored="epoch" in change_set.ignore)
    attribute_set = change_set.group_attributes(type_)
    update(group, attribute_set, metadata, patch=patch, now=change_set.now, types=change_set.types)
    change_set.changed_groups[group.xid] = group
    for plural in type_.resources:
        change_set.constraints(group, plural)
    write_nested_resources(change_set, group, metadata, patch=patch)
    return group


def write_groups(
    change_set: ChangeSet, type_: GroupType, metadata: Mapping[str, Metadata], *, patch: bool
) -> list[Group]:
    """Create or update the Groups in a map by id."""
    return [write_group(change_set, type_, key, metadata[key], patch=patch) for key in metadata]


def write_nested_resources(change_set: ChangeSet, group: Group, metadata: Metadata, *, patch: bool) -> None:
    """Write the Resource collections nested in a Group."""
    for plural in group.type.resources:
        if metadata.get(plural) is not None:
            write_resources(
                change_set, group, plural, nested_map(metadata[plural], plural, group.xid, change_set.path), patch=patch
            )


def write_resources(
    change_set: ChangeSet, group: Group, plural: str, metadata: Mapping[str, Metadata], *, patch: bool
) -> list[Resource]:
    """Create or update the Resources in a map by id."""
    type_ = group.type.resources[plural]
    return [
        write_resource(change_set, ResourceLocation(group, type_, key), metadata[key], WriteOptions(patch=patch))
        for key in metadata
    ]


def implied_group(change_set: ChangeSet, type_: GroupType, id_: str) -> Group:
    """Return the Group that contains the entity to write; if it does not exist, create it with default values.

    Raises: required_attribute_missing
    """
    return change_set.group(type_, id_) or write_group(change_set, type_, id_, {}, patch=False)


def post_to_group(change_set: ChangeSet, type_: GroupType, id_: str, metadata: Metadata) -> dict[str, list[str]]:
    """Write Resources, a map by type and id without attributes of the Group. Return the ids by type.

    Raises: resources_only, bad_request
    """
    group = implied_group(change_set, type_, id_)
    for name in metadata:
        if name not in type_.resources and not _is_helper(name, type_.resources):
            raise refused("resources_only", group.xid, name=name)
    named = {name: as_map(metadata[name], name, change_set.path) for name in metadata if name in type_.resources}
    return {
        name: [resource.id for resource in write_resources(change_set, group, name, named[name], patch=False)]
        for name in named
    }


def post_to_registry(change_set: ChangeSet, metadata: Metadata) -> dict[str, list[str]]:
    """Write Groups, a map by type and id without attributes of the Registry. Return the ids by type.

    Raises: groups_only, bad_request
    """
    for name in metadata:
        if name not in change_set.model.groups and not _is_helper(name, change_set.model.groups):
            raise refused("groups_only", change_set.path, name=name)
    named = {
        name: as_map(metadata[name], name, change_set.path) for name in metadata if name in change_set.model.groups
    }
    return {
        name: [group.id for group in write_groups(change_set, change_set.model.groups[name], named[name], patch=False)]
        for name in named
    }


def _is_helper(name: str, plurals: Mapping[str, Any]) -> bool:
    """Return whether a name is `<COLLECTION>url` or `<COLLECTION>count`.

    Responses with the flag `collections` contain these members, so requests may contain them, too.
    """
    return any(name in (f"{plural}url", f"{plural}count") for plural in plurals)


def write_registry(change_set: ChangeSet, metadata: Metadata, *, patch: bool) -> None:
    """Write the Registry's own attributes and the Groups nested in it, after capabilities and model are written.

    Raises: mismatched_id, mismatched_epoch, all errors of `update` and `write_group`
    """
    registry = change_set.registry
    check_id(metadata, "registry", str(registry.members["registryid"]), "/", ignored="id" in change_set.ignore)
    check_epoch(registry, metadata, ignored="epoch" in change_set.ignore)
    update(registry, change_set.registry_attributes, metadata, patch=patch, now=change_set.now, types=change_set.types)
    for plural, type_ in change_set.model.groups.items():
        if metadata.get(plural) is not None:
            write_groups(change_set, type_, nested_map(metadata[plural], plural, "/", change_set.path), patch=patch)
