"""Which entities a request that writes has to know: those that it names, found without looking at the registry.

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
class Touched:
    """Keys with ids in lower case: Groups as (type, id), Resources as (Group type, Group id, type, id).

    `every_group` is a type of which all are deleted, `every_resource` a (Group type, Group id, type).
    """

    groups: set[GroupKey] = field(default_factory=set)
    resources: set[ResourceKey] = field(default_factory=set)
    every_group: str | None = None
    every_resource: tuple[str, str, str] | None = None


def touched(method: str, target: RequestTarget, sent: Any, model: Model) -> Touched:
    """What a request names. `sent` may be anything: what is no map names nothing, and what is no id nobody has."""
    found = Touched()
    if target.group_type is None:
        _of_registry(found, sent, model)
        return found
    type_, group = target.group_type, target.group
    if target.kind == "groups":
        if method == "DELETE" and sent is None:
            found.every_group = type_.plural
        for id_, entry in _entries(sent):
            _of_group(found, type_, id_, entry)
        return found
    _of_group(found, type_, group, sent if target.kind == "group" and method != "DELETE" else None)
    if target.type is not None:
        _of_resources(found, method, target, sent)
    return found


def _entries(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _of_registry(found: Touched, sent: Any, model: Model) -> None:
    for plural, groups in _entries(sent):
        if plural in model.groups:
            for id_, group in _entries(groups):
                _of_group(found, model.groups[plural], id_, group)


def _of_group(found: Touched, type_: GroupType, id_: str, sent: Any) -> None:
    if not is_identifier(id_):
        return
    found.groups.add((type_.plural, id_.lower()))
    for plural, resources in _entries(sent):
        if plural in type_.resources:
            _of_ids(found, (type_.plural, id_.lower(), plural), (resource for resource, _ in _entries(resources)))


def _of_ids(found: Touched, place: tuple[str, str, str], ids: Iterable[str]) -> None:
    found.resources |= {(*place, id_.lower()) for id_ in ids if is_identifier(id_)}


def _of_resources(found: Touched, method: str, target: RequestTarget, sent: Any) -> None:
    assert target.group_type is not None
    assert target.type is not None
    place = (target.group_type.plural, target.group.lower(), target.type.plural)
    if target.kind != "resources":
        _of_ids(found, place, (target.resource,))
    elif method == "DELETE" and sent is None:
        found.every_resource = place
    else:
        _of_ids(found, place, (id_ for id_, _ in _entries(sent)))


def targets_of(resources: Iterable[str | None]) -> set[ResourceKey]:
    """The keys of the Resources that cross-references lead to."""
    found = set()
    for xref in resources:
        parts = (xref or "").split("/")
        if len(parts) == 5 and is_identifier(parts[2]) and is_identifier(parts[4]):
            found.add((parts[1], parts[2].lower(), parts[3], parts[4].lower()))
    return found
