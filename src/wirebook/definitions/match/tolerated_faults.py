"""Malformed CloudEvents whose attributes can still be compared: what a definition may excuse, and what it reports.

Rule: an attribute whose value breaks the CloudEvents rules makes its message malformed. There are three exceptions. A
definition that declares the attribute, and comes nearest, reports the value itself: the message is unexpected. A native
number that CloudEvents has no type for (a fraction, more than 32 bits) is accepted where the definition declares a
number. A URI with characters beyond ASCII is accepted where it fits the URI that the definition gives.

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

NUMBERS: Final = ("number", "ulong", "any")
NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def only_values(received: Received) -> bool:
    """Do values of attributes alone make a CloudEvent malformed, none of them `specversion`, `id` or `type`?"""
    slots = {attribute_slot(name) for name in _wrong_values(received)}
    return bool(slots) and all(
        problem.slot in slots for problem in received.problems if problem.severity is Severity.ERROR
    )


def _wrong_values(received: Received) -> list[str]:
    return [
        name
        for name, _, value in wrong_attributes(received.attributes)
        if name not in ("specversion", "id", "type") and value not in (None, "") and wrong_value(name, value)
    ]


def accepted(definition: Definition, received: Received) -> Received | None:
    """The event as the definition takes it; None for a malformed one."""
    if received.kind != "malformed":
        return received
    declared = {
        constraint.slot.name: constraint for constraint in definition.constraints if constraint.slot.section == ENVELOPE
    }
    values = {name: received.attributes[name] for name in _wrong_values(received)}
    if not only_values(received) or not all(_is_excused(value, declared.get(name)) for name, value in values.items()):
        return None
    remarks = tuple(problem for problem in received.problems if problem.severity is not Severity.ERROR)
    return msgspec.structs.replace(received, kind="cloudevent", problems=remarks)


def _is_excused(value: Any, declared: Constraint | None) -> bool:
    """May the value be there, as the definition declares it: a native number, or a URI with characters beyond ASCII?"""
    if declared is None:
        return False
    name = declared.slot.name
    if name in WELL_KNOWN:
        is_uri = declared.fixed and declared.kind.place.uri and isinstance(value, str) and not FORBIDDEN.search(value)
        return is_uri and wrong_value(name, NOT_ASCII.sub("x", value)) is None
    return isinstance(value, (int, float)) and declared.type in NUMBERS


def are_reported(received: Received, problems: Iterable[Problem]) -> bool:
    """Does the nearest definition report a value that makes the event malformed?"""
    slots = {attribute_slot(name) for name in _wrong_values(received)}
    return any(problem.slot in slots for problem in problems)
