"""Determine the entities that a write request names, from the request alone.

Spec: core/http.md#creating-or-updating-entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.model.compiled import GroupType, Model
from wirebook.core.model.target import RequestTarget
from wirebook.core.names import is_identifier

GroupKey = tuple[str, str]
ResourceKey = tuple[str, str, str, str]


@dataclass(slots=True)
class AffectedEntities:
    """Keys with lower-case ids: Groups as (type, id), Resources as (Group type, Group id, type, id).

    `every_group`: the Group type of which the request deletes all Groups. `every_resource`: the (Group type, Group id,
    type) of which it deletes all Resources.
    """

    groups: set[GroupKey] = field(default_factory=set)
    resources: set[ResourceKey] = field(default_factory=set)
    every_group: str | None = None
    every_resource: tuple[str, str, str] | None = None


def affected_entities(method: str, target: RequestTarget, metadata: Any, model: Model) -> AffectedEntities:
    """Return the entities that a request names. `metadata` may be any JSON value: invalid maps and ids are skipped."""
    affected = AffectedEntities()
    if target.group_type is None:
        for plural, groups in _entries(metadata):
            if plural in model.groups:
                for id_, entry in _entries(groups):
                    _add_group(affected, model.groups[plural], id_, entry)
        return affected
    type_, group = target.group_type, target.group
    if target.kind == "groups":
        if method == "DELETE" and metadata is None:
            affected.every_group = type_.plural
        for id_, entry in _entries(metadata):
            _add_group(affected, type_, id_, entry)
        return affected
    _add_group(affected, type_, group, metadata if target.kind == "group" and method != "DELETE" else None)
    if target.type is not None:
        _add_resources(affected, method, target, metadata)
    return affected


def _entries(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _add_group(affected: AffectedEntities, type_: GroupType, id_: str, metadata: Any) -> None:
    if not is_identifier(id_):
        return
    affected.groups.add((type_.plural, id_.lower()))
    for plural, resources in _entries(metadata):
        if plural in type_.resources:
            _add_resource_ids(
                affected, (type_.plural, id_.lower(), plural), (resource for resource, _ in _entries(resources))
            )


def _add_resource_ids(affected: AffectedEntities, collection: tuple[str, str, str], ids: Iterable[str]) -> None:
    affected.resources |= {(*collection, id_.lower()) for id_ in ids if is_identifier(id_)}


def _add_resources(affected: AffectedEntities, method: str, target: RequestTarget, metadata: Any) -> None:
    assert target.group_type is not None
    assert target.type is not None
    collection = (target.group_type.plural, target.group.lower(), target.type.plural)
    if target.kind != "resources":
        _add_resource_ids(affected, collection, (target.resource,))
    elif method == "DELETE" and metadata is None:
        affected.every_resource = collection
    else:
        _add_resource_ids(affected, collection, (id_ for id_, _ in _entries(metadata)))


def targets_of(resources: Iterable[str | None]) -> set[ResourceKey]:
    """Return the keys of the Resources with these xids, the targets of cross-references. Invalid xids are skipped."""
    keys = set()
    for xref in resources:
        parts = (xref or "").split("/")
        if len(parts) == 5 and is_identifier(parts[2]) and is_identifier(parts[4]):
            keys.add((parts[1], parts[2].lower(), parts[3], parts[4].lower()))
    return keys
