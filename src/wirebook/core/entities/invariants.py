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
from wirebook.core.model.datatypes import shown
from wirebook.problems.xregistry import refused

__all__ = ["check_constraints", "check_shared", "settle"]


def settle(draft: ChangeSet, validator: DocumentValidator) -> None:
    """Raises: format_*, constraint_failure, mismatched_version_attribute, compatibility_*, multiple_roots"""
    changed = [each for each in draft.changed.values() if not each.deleted and not each.group.deleted]
    for resource in changed:
        if resource.xref is None:
            check_formats(draft, resource, validator)
    _check_constraints(draft, changed)
    for resource in changed:
        if resource.xref is None:
            check_shared(resource)
            check_compatibility(draft, resource, validator)
            if prune_surplus(draft, resource):
                check_compatibility(draft, resource, validator)  # of neighbours that were none before


# -- constraints --------------------------------------------------------------------------------------------------


def _check_constraints(draft: ChangeSet, changed: Collection[Resource]) -> None:
    """Of Resources that changed, of all in a Group that demands more, and of cross-references to what changed."""
    bound = [each for each in changed if draft.constraints(each.group, each.type.plural)]
    elsewhere = {each.xref for each in bound if each.xref and each.xref not in draft.changed}
    shown = {each.xid: each.versions for each in draft.snapshot.reader.shown_by(elsewhere)} if elsewhere else {}
    for resource in (*bound, *_sources(draft, changed)):
        check_constraints(draft, resource, _versions(draft, resource, shown))
    for group in draft.changed_groups.values():
        if not group.is_new and not group.deleted:
            _check_group(draft, group)


def _sources(draft: ChangeSet, changed: Iterable[Resource]) -> Iterator[Resource]:
    """The cross-references to what changed that did not change themselves."""
    targets = {each.xid for each in changed if each.xref is None}
    for source in draft.snapshot.reader.sources_of(targets) if targets else ():
        if source.xid not in draft.changed:
            yield source


def _versions(draft: ChangeSet, resource: Resource, shown: Mapping[str, dict[str, Members]]) -> dict[str, Members]:
    """The Versions that a Resource shows; `shown` are those of Resources that did not change."""
    target = draft.changed.get(resource.xref) if resource.xref else resource
    if target is None:
        return shown.get(resource.xref or "", {})
    return {} if target.xref or target.deleted else members_of(target)


def _check_group(draft: ChangeSet, group: Group) -> None:
    """Holds what is in a Group and did not change against what the Group demands and did not before."""
    is_remodelled = group.xid in draft.remodelled
    new = list(draft.constraints_of(group, group.members)) if is_remodelled else _tightened(draft, group)
    if not new:
        return
    with closing(draft.snapshot.reader.shown_in(group, {each.resources for each in new})) as found:
        for xid, plural, xref, versions in found:
            if xid not in draft.changed and xref not in draft.changed:
                _hold((each for each in new if each.resources == plural), group, xid, versions)


def _tightened(draft: ChangeSet, group: Group) -> list[GroupConstraint]:
    """The constraints that are not what they were, or compare with an attribute that is not what it was."""
    old = {_demand(constraint, group.before or {}) for constraint in draft.constraints_of(group, group.before or {})}
    return [
        constraint
        for constraint in draft.constraints_of(group, group.members)
        if _demand(constraint, group.members) not in old
    ]


def _demand(constraint: GroupConstraint, group: Members) -> tuple[Any, ...]:
    """What a constraint asks of the Versions in a Group with those members."""
    wanted = tuple(values_at(group, constraint.equals)) if constraint.equals else ()
    return constraint.resources, constraint.path, constraint.enum, tuple(map(repr, wanted))


def check_constraints(draft: ChangeSet, resource: Resource, versions: Mapping[str, Members]) -> None:
    """Raises: constraint_failure"""
    _hold(draft.constraints(resource.group, resource.type.plural), resource.group, resource.xid, versions)


def members_of(resource: Resource) -> dict[str, Members]:
    return {id_: version.members for id_, version in resource.versions.items()}


def _hold(constraints: Iterable[GroupConstraint], group: Group, xid: str, versions: Mapping[str, Members]) -> None:
    """Raises: constraint_failure"""
    for constraint, kind, ids in violations(constraints, group.members, versions):
        detail = f"Group: {group.xid}; {_required(constraint, kind, group.members)}; Versions: {', '.join(ids)}."
        raise refused("constraint_failure", xid, kind=kind, path=constraint.key, detail=detail)


def _required(constraint: GroupConstraint, kind: str, group: Members) -> str:
    """The values that a constraint allows, for a message."""
    if kind == "enum":
        return f"allowed: {', '.join(map(shown, constraint.enum))}"
    assert constraint.equals
    value = shown(next(values_at(group, constraint.equals)))
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
