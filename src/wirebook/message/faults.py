"""Malformed CloudEvents whose attributes can still be compared: what a definition may excuse, and what it reports.

Rule: an attribute whose value breaks the CloudEvents rules makes its message malformed. There are two exceptions. A
definition that declares the attribute, and comes nearest, reports the value itself: the message is unexpected. And a
native number that CloudEvents has no type for (a fraction, more than 32 bits) is accepted where the definition declares
a number.

Spec: cloudevents-spec.md#type-system; docs/semantics.md D5, D10; docs/decisions/0170-malformed-attributes.md
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from wirebook.bindings import Received
from wirebook.bindings.attributes import WELL_KNOWN, attribute_slot, wrong_attributes, wrong_value
from wirebook.message.definition import Definition
from wirebook.message.slots import ENVELOPE
from wirebook.problems import Problem, Severity

NUMBERS: Final = ("number", "ulong", "any")


def only_values(received: Received) -> bool:
    """Do values of attributes alone make a CloudEvent malformed, none of them `specversion`, `id` or `type`?"""
    slots = {attribute_slot(name) for name in _wrong_values(received)}
    return bool(slots) and all(each.slot in slots for each in received.problems if each.severity is Severity.ERROR)


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
    declared = {each.slot.name: each.type for each in definition.constraints if each.slot.section == ENVELOPE}
    names = _wrong_values(received)
    if not only_values(received) or not all(
        _is_number(received, name) and declared.get(name) in NUMBERS for name in names
    ):
        return None
    remarks = tuple(each for each in received.problems if each.severity is not Severity.ERROR)
    return msgspec.structs.replace(received, kind="cloudevent", problems=remarks)


def _is_number(received: Received, name: str) -> bool:
    return name not in WELL_KNOWN and isinstance(received.attributes[name], (int, float))


def are_reported(received: Received, problems: Iterable[Problem]) -> bool:
    """Does the nearest definition report a value that makes the event malformed?"""
    slots = {attribute_slot(name) for name in _wrong_values(received)}
    return any(problem.slot in slots for problem in problems)
