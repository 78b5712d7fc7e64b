"""What must hold at the end of a request, when all of it is written.

In the order of the text: formats, constraints, attributes that Versions share, compatibility, number of Versions.

Spec: core/spec.md#resource-processing-algorithm (steps 6 to 10); core/model.md#attributesstringmatchversions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from wirebook.core.dotpath import format_dotpath, values_at
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.defaults import prune_surplus
from wirebook.core.entities.state import Group, Members, Resource
from wirebook.core.entities.validation import DocumentValidator, check_compatibility, check_formats
from wirebook.core.model.compiled import Attributes, GroupConstraint
from wirebook.core.model.constraints import violations
from wirebook.core.model.datatypes import preview
from wirebook.problems.xregistry import refused

__all__ = ["check_constraints", "check_invariants", "check_shared"]


def check_invariants(change_set: ChangeSet, validator: DocumentValidator) -> None:
    """Raises: format_*, constraint_failure, mismatched_version_attribute, compatibility_*, multiple_roots"""
    changed = [
        resource for resource in change_set.changed.values() if not resource.deleted and not resource.group.deleted
    ]
    for resource in changed:
        if resource.xref is None:
            check_formats(change_set, resource, validator)
    _check_constraints(change_set, changed)
    for resource in changed:
        if resource.xref is None:
            check_shared(resource)
            check_compatibility(change_set, resource, validator)
            if prune_surplus(change_set, resource):
                check_compatibility(change_set, resource, validator)  # of neighbours that were none before


# -- constraints --------------------------------------------------------------------------------------------------


def _check_constraints(change_set: ChangeSet, changed: Collection[Resource]) -> None:
    """Of Resources that changed, of all in a Group that demands more, and of cross-references to what changed."""
    bound = [resource for resource in changed if change_set.constraints(resource.group, resource.type.plural)]
    elsewhere = {resource.xref for resource in bound if resource.xref and resource.xref not in change_set.changed}
    shown = (
        {target.xid: target.versions for target in change_set.snapshot.reader.versions_shown_by(elsewhere)}
        if elsewhere
        else {}
    )
    for resource in (*bound, *_sources(change_set, changed)):
        check_constraints(change_set, resource, _versions(change_set, resource, shown))
    for group in change_set.changed_groups.values():
        if not group.is_new and not group.deleted:
            _check_group(change_set, group)


def _sources(change_set: ChangeSet, changed: Iterable[Resource]) -> Iterator[Resource]:
    """The cross-references to what changed that did not change themselves."""
    targets = {resource.xid for resource in changed if resource.xref is None}
    for source in change_set.snapshot.reader.sources_of(targets) if targets else ():
        if source.xid not in change_set.changed:
            yield source


def _versions(change_set: ChangeSet, resource: Resource, shown: Mapping[str, dict[str, Members]]) -> dict[str, Members]:
    """The Versions that a Resource shows; `shown` are those of Resources that did not change."""
    target = change_set.changed.get(resource.xref) if resource.xref else resource
    if target is None:
        return shown.get(resource.xref or "", {})
    return {} if target.xref or target.deleted else members_of(target)


def _check_group(change_set: ChangeSet, group: Group) -> None:
    """Holds what is in a Group and did not change against what the Group demands and did not before."""
    is_remodelled = group.xid in change_set.groups_with_new_model
    new = list(change_set.constraints_of(group, group.members)) if is_remodelled else _tightened(change_set, group)
    if not new:
        return
    with closing(
        change_set.snapshot.reader.versions_shown_in(group, {constraint.resources for constraint in new})
    ) as resources:
        for xid, plural, xref, versions in resources:
            if xid not in change_set.changed and xref not in change_set.changed:
                _check_versions(
                    (constraint for constraint in new if constraint.resources == plural), group, xid, versions
                )


def _tightened(change_set: ChangeSet, group: Group) -> list[GroupConstraint]:
    """The constraints that are not what they were, or compare with an attribute that is not what it was."""
    old = {
        _requirement(constraint, group.before or {})
        for constraint in change_set.constraints_of(group, group.before or {})
    }
    return [
        constraint
        for constraint in change_set.constraints_of(group, group.members)
        if _requirement(constraint, group.members) not in old
    ]


def _requirement(constraint: GroupConstraint, group: Members) -> tuple[Any, ...]:
    """What a constraint asks of the Versions in a Group with those members."""
    expected = tuple(values_at(group, constraint.equals)) if constraint.equals else ()
    return constraint.resources, constraint.path, constraint.enum, tuple(map(repr, expected))


def check_constraints(change_set: ChangeSet, resource: Resource, versions: Mapping[str, Members]) -> None:
    """Raises: constraint_failure"""
    _check_versions(
        change_set.constraints(resource.group, resource.type.plural), resource.group, resource.xid, versions
    )


def members_of(resource: Resource) -> dict[str, Members]:
    return {id_: version.members for id_, version in resource.versions.items()}


def _check_versions(
    constraints: Iterable[GroupConstraint], group: Group, xid: str, versions: Mapping[str, Members]
) -> None:
    """Raises: constraint_failure"""
    for constraint, kind, ids in violations(constraints, group.members, versions):
        detail = f"Group: {group.xid}; {_required(constraint, kind, group.members)}; Versions: {', '.join(ids)}."
        raise refused("constraint_failure", xid, kind=kind, path=constraint.key, detail=detail)


def _required(constraint: GroupConstraint, kind: str, group: Members) -> str:
    """The values that a constraint allows, for a message."""
    if kind == "enum":
        return f"allowed: {', '.join(map(preview, constraint.enum))}"
    assert constraint.equals
    value = preview(next(values_at(group, constraint.equals)))
    return f"must equal {format_dotpath(constraint.equals)} of the Group, {value}"


# -- attributes that all Versions share ---------------------------------------------------------------------------


def check_shared(resource: Resource) -> None:
    """Raises: mismatched_version_attribute"""
    members = [version.members for version in resource.versions.values()]
    if len(members) < 2:
        return
    for path in shared_paths(resource.type.attributes):
        values = [_at(member, path) for member in members]
        if len({_comparable(path, value) for value in values}) > 1:
            raise refused("mismatched_version_attribute", resource.xid, name=".".join(path))


def shared_paths(attributes: Attributes, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Attributes, and members of objects, that have the same value in all Versions."""
    for name, attribute in attributes.items():
        if attribute.matchversions:
            yield (*above, name)
        if attribute.type == "object":
            yield from shared_paths(attribute.attributes, (*above, name))


def _at(members: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        members = members.get(name) if isinstance(members, Mapping) else None
    return members


def _comparable(path: tuple[str, ...], value: Any) -> tuple[str, Any]:
    """A value as it is compared: names of formats are the same whatever their case."""
    if isinstance(value, str) and path == ("format",):
        value = value.casefold()
    return type(value).__name__ if isinstance(value, (bool, str, type(None))) else "number", value
