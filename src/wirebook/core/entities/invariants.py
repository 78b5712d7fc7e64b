"""End-of-request checks: invariants that must hold after all changes of a request.

They are checked in the order of the specification: formats, constraints, attributes with the same value in all
Versions, compatibility, number of Versions.

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
    """Check all Resources that the request changed, and others that depend on its changes; prune surplus Versions.

    Raises: format_*, constraint_failure, mismatched_version_attribute, compatibility_*, multiple_roots
    """
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
                check_compatibility(change_set, resource, validator)  # pruning changes the ancestors of Versions


# -- constraints --------------------------------------------------------------------------------------------------


def _check_constraints(change_set: ChangeSet, changed: Collection[Resource]) -> None:
    """Check changed Resources, cross-references to them, and all Resources in Groups with stricter constraints."""
    bound = [resource for resource in changed if change_set.constraints(resource.group, resource.type.plural)]
    elsewhere = {resource.xref for resource in bound if resource.xref and resource.xref not in change_set.changed}
    shown = (
        {target.xid: target.versions for target in change_set.snapshot.reader.versions_shown_by(elsewhere)}
        if elsewhere
        else {}
    )
    targets = {resource.xid for resource in changed if resource.xref is None}
    sources = change_set.snapshot.reader.sources_of(targets) if targets else ()
    for resource in (*bound, *(source for source in sources if source.xid not in change_set.changed)):
        check_constraints(change_set, resource, _versions_shown(change_set, resource, shown))
    for group in change_set.changed_groups.values():
        if not group.is_new and not group.deleted:
            _check_group(change_set, group)


def _versions_shown(
    change_set: ChangeSet, resource: Resource, shown: Mapping[str, dict[str, Members]]
) -> dict[str, Members]:
    """Return the Versions of a Resource or its target, by id; `shown` contains those of unchanged targets."""
    target = change_set.changed.get(resource.xref) if resource.xref else resource
    if target is None:
        return shown.get(resource.xref or "", {})
    return {} if target.xref or target.deleted else members_of(target)


def _check_group(change_set: ChangeSet, group: Group) -> None:
    """Check the unchanged Resources of a Group against its new or stricter constraints."""
    is_remodelled = group.xid in change_set.groups_with_new_model
    new = (
        list(change_set.constraints_of(group, group.members))
        if is_remodelled
        else _stricter_constraints(change_set, group)
    )
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


def _stricter_constraints(change_set: ChangeSet, group: Group) -> list[GroupConstraint]:
    """Return the constraints that changed, or that refer to an attribute of the Group that changed."""
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
    """Return a comparison key for what a constraint requires of the Versions in a Group with these members."""
    expected = tuple(values_at(group, constraint.equals)) if constraint.equals else ()
    return constraint.resources, constraint.path, constraint.enum, tuple(map(repr, expected))


def check_constraints(change_set: ChangeSet, resource: Resource, versions: Mapping[str, Members]) -> None:
    """Check Versions of a Resource, or of its target, against its Group's constraints. Raises: constraint_failure"""
    _check_versions(
        change_set.constraints(resource.group, resource.type.plural), resource.group, resource.xid, versions
    )


def members_of(resource: Resource) -> dict[str, Members]:
    """Return the members of each Version, by id."""
    return {id_: version.members for id_, version in resource.versions.items()}


def _check_versions(
    constraints: Iterable[GroupConstraint], group: Group, xid: str, versions: Mapping[str, Members]
) -> None:
    for constraint, kind, ids in violations(constraints, group.members, versions):
        detail = f"Group: {group.xid}; {_allowed_values(constraint, kind, group.members)}; Versions: {', '.join(ids)}."
        raise refused("constraint_failure", xid, kind=kind, path=constraint.key, detail=detail)


def _allowed_values(constraint: GroupConstraint, kind: str, group: Members) -> str:
    """Return the values that a constraint allows, for an error message."""
    if kind == "enum":
        return f"allowed: {', '.join(map(preview, constraint.enum))}"
    assert constraint.equals
    value = preview(next(values_at(group, constraint.equals)))
    return f"must equal {format_dotpath(constraint.equals)} of the Group, {value}"


# -- attributes with matchversions --------------------------------------------------------------------------------


def check_shared(resource: Resource) -> None:
    """Check that attributes with `matchversions` are equal in all Versions. Raises: mismatched_version_attribute"""
    members = [version.members for version in resource.versions.values()]
    if len(members) < 2:
        return
    for path in shared_paths(resource.type.attributes):
        values = [_value_at(member, path) for member in members]
        if len({_comparable(path, value) for value in values}) > 1:
            raise refused("mismatched_version_attribute", resource.xid, name=".".join(path))


def shared_paths(attributes: Attributes, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of attributes, and of members of objects, with `matchversions`."""
    for name, attribute in attributes.items():
        if attribute.matchversions:
            yield (*above, name)
        if attribute.type == "object":
            yield from shared_paths(attribute.attributes, (*above, name))


def _value_at(members: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        members = members.get(name) if isinstance(members, Mapping) else None
    return members


def _comparable(path: tuple[str, ...], value: Any) -> tuple[str, Any]:
    """Return the comparison key of a value; format names compare case-insensitively."""
    if isinstance(value, str) and path == ("format",):
        value = value.casefold()
    return type(value).__name__ if isinstance(value, (bool, str, type(None))) else "number", value
