"""Decide which malformed CloudEvents are matched nevertheless, because only attribute values are wrong.

An attribute with a value that CloudEvents does not allow makes its message malformed, with three exceptions. If the
closest definition declares the attribute and reports the value, the message is unexpected. A definition that declares a
number accepts a native number that has no CloudEvents type (a fraction, or more than 32 bits). A definition with a
value for a URI accepts a URI with non-ASCII characters that matches it.

Spec: cloudevents-spec.md#type-system; docs/semantics.md D5, D10; docs/decisions/0170-malformed-attributes.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wirebook.bindings import Received
from wirebook.bindings.attributes import FORBIDDEN, WELL_KNOWN, attribute_slot, wrong_attributes, wrong_value
from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.slots import ENVELOPE
from wirebook.problems import Problem, Severity

NUMBER_TYPES: Final = ("number", "ulong", "any")
NOT_TOLERATED: Final = ("specversion", "id", "type")
NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def has_only_wrong_values(received: Received) -> bool:
    """Whether all errors of a malformed CloudEvent are wrong values of attributes other than those in NOT_TOLERATED."""
    slots = {attribute_slot(name) for name in _names_with_wrong_value(received)}
    return bool(slots) and all(
        problem.slot in slots for problem in received.problems if problem.severity is Severity.ERROR
    )


def tolerate(definition: Definition, received: Received) -> Received | None:
    """Return the message as a CloudEvent if the definition accepts its wrong values; None if it remains malformed."""
    if received.kind != "malformed":
        return received
    if not has_only_wrong_values(received):
        return None
    declared = {
        constraint.slot.name: constraint for constraint in definition.constraints if constraint.slot.section == ENVELOPE
    }
    for name in _names_with_wrong_value(received):
        if not _accepts(declared.get(name), received.attributes[name]):
            return None
    notes = tuple(problem for problem in received.problems if problem.severity is not Severity.ERROR)
    return msgspec.structs.replace(received, kind="cloudevent", problems=notes)


def reports_wrong_value(received: Received, problems: Iterable[Problem]) -> bool:
    """Whether the problems of the closest definition include a wrong value that makes the event malformed."""
    slots = {attribute_slot(name) for name in _names_with_wrong_value(received)}
    return any(problem.slot in slots for problem in problems)


def _names_with_wrong_value(received: Received) -> list[str]:
    return [
        name
        for name, _, value in wrong_attributes(received.attributes)
        if name not in NOT_TOLERATED and value not in (None, "") and wrong_value(name, value)
    ]


def _accepts(constraint: Constraint | None, value: Any) -> bool:
    """Whether the constraint accepts a wrong value: a native number, or a URI with non-ASCII characters."""
    if constraint is None:
        return False
    name = constraint.slot.name
    if name not in WELL_KNOWN:
        return isinstance(value, (int, float)) and constraint.type in NUMBER_TYPES
    if not (constraint.fixed and constraint.kind.place.uri and isinstance(value, str)) or FORBIDDEN.search(value):
        return False
    return wrong_value(name, NOT_ASCII.sub("x", value)) is None
