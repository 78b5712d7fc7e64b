"""Writing Groups and the Registry, and everything nested in what is sent.

Spec: core/http.md#creating-or-updating-entities; core/spec.md#updating-nested-registry-collections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.entities.attributes import as_map, check_epoch, check_id, nested_map, update
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.resources import How, write_resource
from wirebook.core.entities.state import Group, Resource, ResourceLocation
from wirebook.core.model.compiled import GroupType
from wirebook.problems.xregistry import refused

Sent = Mapping[str, Any]


def write_group(draft: ChangeSet, type_: GroupType, id_: str, sent: Sent, *, patch: bool, root: bool = False) -> Group:
    """Makes or changes a Group and the Resources sent in it.

    Raises: mismatched_id, mismatched_epoch, what `update` and `write_resource` raise
    """
    group = draft.group(type_, id_) or draft.add_group(type_, id_)
    check_id(sent, type_.singular, id_, group.xid, ignored=root and "id" in draft.ignore)
    check_epoch(group, sent, ignored="epoch" in draft.ignore)
    level = draft.level_of(type_)
    update(group, level, sent, patch=patch, now=draft.now, types=draft.types)
    draft.changed_groups[group.xid] = group
    for plural in type_.resources:
        draft.constraints(group, plural)
    write_nested_resources(draft, group, sent, patch=patch)
    return group


def write_groups(draft: ChangeSet, type_: GroupType, sent: Mapping[str, Sent], *, patch: bool) -> list[Group]:
    return [write_group(draft, type_, key, sent[key], patch=patch) for key in sent]


def write_nested_resources(draft: ChangeSet, group: Group, sent: Sent, *, patch: bool) -> None:
    for plural in group.type.resources:
        if sent.get(plural) is not None:
            write_resources(draft, group, plural, nested_map(sent[plural], plural, group.xid, draft.path), patch=patch)


def write_resources(
    draft: ChangeSet, group: Group, plural: str, sent: Mapping[str, Sent], *, patch: bool
) -> list[Resource]:
    type_ = group.type.resources[plural]
    return [write_resource(draft, ResourceLocation(group, type_, key), sent[key], How(patch=patch)) for key in sent]


def implied_group(draft: ChangeSet, type_: GroupType, id_: str) -> Group:
    """The Group of a Resource that is written; made with its defaults where it is not there.

    Raises: required_attribute_missing
    """
    return draft.group(type_, id_) or write_group(draft, type_, id_, {}, patch=False)


def post_to_group(draft: ChangeSet, type_: GroupType, id_: str, sent: Sent) -> dict[str, list[str]]:
    """The Resources in a map of Resource types, and nothing of the Group: the ids written, by type.

    Raises: resources_only, bad_request
    """
    group = implied_group(draft, type_, id_)
    for name in sent:
        if name not in type_.resources and not _is_helper(name, type_.resources):
            raise refused("resources_only", group.xid, name=name)
    named = {name: as_map(sent[name], name, draft.path) for name in sent if name in type_.resources}
    return {name: [each.id for each in write_resources(draft, group, name, named[name], patch=False)] for name in named}


def post_to_registry(draft: ChangeSet, sent: Sent) -> dict[str, list[str]]:
    """The Groups in a map of Group types, and nothing of the Registry: the ids written, by type.

    Raises: groups_only, bad_request
    """
    for name in sent:
        if name not in draft.model.groups and not _is_helper(name, draft.model.groups):
            raise refused("groups_only", draft.path, name=name)
    named = {name: as_map(sent[name], name, draft.path) for name in sent if name in draft.model.groups}
    return {
        name: [each.id for each in write_groups(draft, draft.model.groups[name], named[name], patch=False)]
        for name in named
    }


def _is_helper(name: str, plurals: Mapping[str, Any]) -> bool:
    """`<C>url` or `<C>count`, which an answer with the flag `collections` has."""
    return any(name in (f"{plural}url", f"{plural}count") for plural in plurals)


def write_registry(draft: ChangeSet, sent: Sent, *, patch: bool) -> None:
    """The Registry's own attributes and the Groups sent in it. Capabilities and model were written before.

    Raises: mismatched_id, mismatched_epoch, what `update` and `write_group` raise
    """
    registry = draft.registry
    check_id(sent, "registry", str(registry.members["registryid"]), "/", ignored="id" in draft.ignore)
    check_epoch(registry, sent, ignored="epoch" in draft.ignore)
    update(registry, draft.registry_level, sent, patch=patch, now=draft.now, types=draft.types)
    for plural, type_ in draft.model.groups.items():
        if sent.get(plural) is not None:
            write_groups(draft, type_, nested_map(sent[plural], plural, "/", draft.path), patch=patch)
