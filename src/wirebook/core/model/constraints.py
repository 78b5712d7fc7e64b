"""Constraints of a Group and its type on attributes of the Group's Resources.

Spec: core/model.md#groupsstringconstraints; core/spec.md#constraints-attribute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from wirebook.core.dotpath import BadPath, DotPath, PathMember, format_dotpath, values_at
from wirebook.core.model.compiled import Attribute, Attributes, GroupConstraint, GroupType, Model, parse_constraints
from wirebook.core.model.datatypes import check_value, is_one_of, preview
from wirebook.core.model.faults import InvalidValue
from wirebook.core.model.source import model_error


def find_attribute(attributes: Attributes, path: DotPath) -> Attribute | None:
    """Return the attribute at `path`, which may lead through objects only; None if the model does not define it."""
    attribute: Attribute | None = None
    for step in path:
        if not isinstance(step, PathMember) or step.name == "*":
            return None
        attribute = attributes.get(step.name)
        if attribute is None:
            return None
        attributes = attribute.attributes
    return attribute


# -- Group types --------------------------------------------------------------------------------------------------


def check_model_constraints(model: Model) -> None:
    """Check the constraints of all Group types. Raises: model_error"""
    for group in model.groups.values():
        for constraint in group.constraints:
            path = f"groups.{group.plural}.constraints['{constraint.resources}.{constraint.key}']"
            why = constraint_fault(constraint, group)
            if why:
                raise model_error(f"{path}: {why}")


def constraint_fault(constraint: GroupConstraint, group: GroupType) -> str | None:
    """Return why a constraint is invalid, or None."""
    resources = group.resources.get(constraint.resources)
    if resources is None:
        return f"the Group type has no Resource type '{constraint.resources}'"
    attribute = find_attribute(resources.attributes, constraint.path)
    if attribute is None or not attribute.is_scalar:
        return f"'{constraint.key}' is not a scalar attribute in the model"
    if constraint.equals:
        other = find_attribute(group.attributes, constraint.equals)
        if other is None or other.type != attribute.type:
            return (
                f"'{format_dotpath(constraint.equals)}' is not an attribute of the Group with the type {attribute.type}"
            )
    return _fault_of_values(constraint, attribute)


def _fault_of_values(constraint: GroupConstraint, attribute: Attribute) -> str | None:
    bare = Attribute(attribute.name, attribute.type, enum=attribute.enum, strict=attribute.strict)
    for value in (*constraint.enum, *([] if constraint.default is None else [constraint.default])):
        try:
            check_value(bare, value, attribute.name, lambda *_: True)
        except InvalidValue as error:
            return error.first.why
    default = attribute.default if constraint.default is None else constraint.default
    if constraint.enum and default is not None and not is_one_of(default, constraint.enum):
        return f"the default {preview(default)} is not in its enum"
    return None


# -- Groups -------------------------------------------------------------------------------------------------------


class BadConstraint(ValueError):
    """A Group has a constraint that its type does not allow."""


def constraints_of(group: GroupType, own: Mapping[str, Any] | None) -> tuple[GroupConstraint, ...]:
    """Return the effective constraints: those of the type, narrowed by those of the Group. Raises: BadConstraint"""
    if not own:
        return group.constraints
    merged = {f"{constraint.resources}.{constraint.key}": constraint for constraint in group.constraints}
    try:
        narrower = parse_constraints(own)
    except BadPath as error:
        raise BadConstraint(f"constraints: {error}") from None
    for key, constraint in zip(own, narrower, strict=True):
        wide = merged.get(key)
        merged[key] = _narrow(key, wide, constraint) if wide else constraint
        if why := constraint_fault(merged[key], group):
            raise BadConstraint(f"constraints['{key}']: {why}")
    return tuple(merged.values())


def _narrow(key: str, wide: GroupConstraint, own: GroupConstraint) -> GroupConstraint:
    if wide.enum and any(not is_one_of(value, wide.enum) for value in own.enum):
        raise BadConstraint(f"constraints['{key}'].enum contains values that the model's constraint does not allow")
    if wide.equals and own.equals and wide.equals != own.equals:
        raise BadConstraint(f"constraints['{key}'].equals differs from the model's constraint")
    return replace(
        own,
        default=wide.default if own.default is None else own.default,
        enum=own.enum or wide.enum,
        equals=own.equals or wide.equals,
    )


# -- effects ------------------------------------------------------------------------------------------------------


def fill_defaults(constraints: Iterable[GroupConstraint], version: dict[str, Any], managed: Collection[str]) -> None:
    """Fill the defaults of a Group's constraints into a Version.

    The default of an object's member applies only if the object exists. null means absent. `managed` attributes are
    skipped, since the server sets them.
    """
    for constraint in constraints:
        names = [step.name for step in constraint.path if isinstance(step, PathMember)]
        if constraint.default is not None and names[0] not in managed:
            _fill(version, names, constraint.default)


def _fill(members: dict[str, Any], names: list[str], default: Any) -> None:
    """Fill in a default. Objects on the path are copied, since they may be shared with the former members."""
    first, *inner = names
    value = members.get(first)
    if not inner and value is None:
        members[first] = default
    elif inner and isinstance(value, Mapping):
        members[first] = {**value}
        _fill(members[first], inner, default)


def violations(
    constraints: Iterable[GroupConstraint], group: Mapping[str, Any], versions: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[GroupConstraint, str, list[str]]]:
    """Yield each constraint that Versions violate, with the violated aspect and the ids of these Versions."""
    for constraint in constraints:
        enum = constraint.enum
        if enum:
            bad = [
                id_
                for id_, version in versions.items()
                if not all(is_one_of(v, enum) for v in values_at(version, constraint.path))
            ]
            if bad:
                yield constraint, "enum", bad
        expected = list(values_at(group, constraint.equals)) if constraint.equals else []
        if expected:
            key = constraint.key
            bad = [
                id_
                for id_, version in versions.items()
                if not _agrees(key, list(values_at(version, constraint.path)), expected)
            ]
            if bad:
                yield constraint, "equals", bad


def _agrees(key: str, values: list[Any], expected: list[Any]) -> bool:
    """Return whether the first values are equal; format names compare case-insensitively."""
    if not values or isinstance(values[0], bool) != isinstance(expected[0], bool):
        return False
    if key == "format" and isinstance(values[0], str) and isinstance(expected[0], str):
        return values[0].casefold() == expected[0].casefold()
    return bool(values[0] == expected[0])
