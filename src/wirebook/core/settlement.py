"""What must hold at the end of a request, when all of it is written.

In the order of the text: formats, constraints, attributes that Versions share, compatibility.

Spec: core/spec.md#resource-processing-algorithm (steps 6 to 9); core/model.md#attributesstringmatchversions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirebook.core.constraints import violations
from wirebook.core.draft import Draft
from wirebook.core.model import Attributes, Constraint
from wirebook.core.state import Group, Members, Resource
from wirebook.core.validation import Validator, check_compatibility, check_formats
from wirebook.problems.xregistry import refused

__all__ = ["check_constraints", "check_shared", "settle"]


def settle(draft: Draft, validator: Validator) -> None:
    """Raises: format_*, constraint_failure, mismatched_version_attribute, compatibility_*"""
    changed = [each for each in draft.changed.values() if not each.deleted and not each.group.deleted]
    for resource in changed:
        if resource.xref is None:
            check_formats(draft, resource, validator)
    _check_constraints(draft, changed)
    for resource in changed:
        if resource.xref is None:
            check_shared(resource)
            check_compatibility(draft, resource, validator)


# -- constraints --------------------------------------------------------------------------------------------------


def _check_constraints(draft: Draft, changed: Iterable[Resource]) -> None:
    """Of Resources that changed, of all in a Group whose demands changed, and of the sources of what changed."""
    done: set[str] = set()
    for resource in (*changed, *_of_changed_groups(draft), *_sources(draft)):
        if resource.xid not in done:
            done.add(resource.xid)
            check_constraints(draft, resource)


def _of_changed_groups(draft: Draft) -> Iterator[Resource]:
    for group in draft.changed_groups.values():
        if not group.is_new and not group.deleted and _demands_changed(draft, group):
            for resource in draft.snapshot.reader.resources_of(group):
                if resource.xid not in draft.changed:
                    yield resource


def _demands_changed(draft: Draft, group: Group) -> bool:
    """Whether a Group's constraints, or an attribute that one compares with, are not what they were."""
    before = group.before or {}
    every = [each for plural in group.type.resources for each in draft.constraints(group, plural)]
    if not every:
        return False
    names = {"constraints"} | {str(getattr(each.equals[0], "name", "")) for each in every if each.equals}
    return any(group.members.get(name) != before.get(name) for name in names)


def _sources(draft: Draft) -> Iterator[Resource]:
    for resource in draft.changed.values():
        if resource.xref is None and not resource.deleted:
            yield from draft.snapshot.reader.sources_of(resource.xid)


def check_constraints(draft: Draft, resource: Resource) -> None:
    """Raises: constraint_failure"""
    constraints = draft.constraints(resource.group, resource.type.plural)
    if not constraints:
        return
    found = first_violation(constraints, resource.group.members, _versions(draft, resource))
    if found:
        constraint, kind, ids = found
        detail = f"Versions: {', '.join(ids)}."
        raise refused("constraint_failure", resource.xid, kind=kind, path=constraint.key, detail=detail)


def first_violation(
    constraints: tuple[Constraint, ...], group: Members, versions: Mapping[str, Members]
) -> tuple[Constraint, str, list[str]] | None:
    return next(violations(constraints, group, versions), None)


def _versions(draft: Draft, resource: Resource) -> dict[str, Members]:
    """The Versions that a Resource shows: of a cross-reference those of its target."""
    shown: Resource | None = resource
    if resource.xref is not None:
        shown = draft.changed.get(resource.xref) or draft.snapshot.targets.get(resource.xref)
    return {id_: each.members for id_, each in shown.versions.items()} if shown else {}


# -- attributes that all Versions share ---------------------------------------------------------------------------


def check_shared(resource: Resource) -> None:
    """Raises: mismatched_version_attribute"""
    members = [version.members for version in resource.versions.values()]
    if len(members) < 2:
        return
    for path in shared_paths(resource.type.attributes):
        values = [_at(each, path) for each in members]
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
