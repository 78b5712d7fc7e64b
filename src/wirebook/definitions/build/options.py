"""Render the protocol slots of a message: those that the definition declares, and those that the application sets.

Spec: docs/semantics.md R21-R26, D2, D24, D28-D34
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wirebook.bindings import Timestamp, Uuid
from wirebook.bindings.percent import decode_value
from wirebook.definitions.build.rendering import Rendering, application_value
from wirebook.definitions.compile.definition import Constraint, Definition, constraint_of
from wirebook.definitions.compile.slots import (
    AMQP_SECTIONS,
    BARE,
    BARE_SLOTS,
    DEFAULT_METHOD,
    ENTRY_SECTIONS,
    ENVELOPE,
    EVENT_FORMAT,
    Slot,
    amqp_kind,
    bare_slots,
    entry_kind,
    entry_name,
    envelope_attribute,
    family,
)
from wirebook.problems import Problem

Slots = dict[str, Any]
"""Slot values by name, as the writers of `wirebook.bindings` expect them. A section is a map or a list of pairs."""
Supplied = dict[tuple[str, str], list[tuple[str, Any]]]
"""The properties of a request, by section and normalised name, each a list of (name as written, value)."""
CONTENT_TYPE_NAMES = ("datacontenttype", "wire-content-type", EVENT_FORMAT)


def render_slots(definition: Definition, protocol: str, rendering: Rendering) -> Slots:
    """Render all protocol slots, including those that may change from hop to hop (D28)."""
    slots: Slots = {}
    supplied = _supplied_properties(protocol, rendering)
    for constraint in definition.constraints:
        section, name = constraint.slot.section, constraint.slot.name
        if section == ENVELOPE or name in CONTENT_TYPE_NAMES:
            continue
        value = rendering.render(constraint, _take_next(supplied, section, name))
        rendering.require_values([constraint], {name: value})
        if value is not None:
            _set(slots, section, name, value)
    _add_entries(definition, supplied, slots, rendering)
    _add_undeclared(protocol, supplied, slots, rendering)
    if protocol == "HTTP" and "status" not in slots:
        slots.setdefault("method", DEFAULT_METHOD)
    return slots


def carried_attributes(protocol: str, slots: Slots) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the CloudEvents attributes that protocol slots carry (D24), except the content type."""
    protocol_family = family(protocol)
    for section in (*ENTRY_SECTIONS[protocol_family], *AMQP_SECTIONS):
        entries = slots.get(section) or ()
        for name, value in entries.items() if isinstance(entries, dict) else entries:
            attribute = envelope_attribute(protocol_family, section, entry_name(protocol_family, section, name))
            if attribute and attribute != "datacontenttype":
                yield attribute, decode_header(value) if protocol_family in ("HTTP", "NATS") else value


def decode_header(value: Any) -> Any:
    """Percent-decode a header value, if its encoding is valid."""
    try:
        return decode_value(value)[0] if isinstance(value, str) else value
    except UnicodeError:
        return value


def _add_entries(definition: Definition, supplied: Supplied, slots: Slots, rendering: Rendering) -> None:
    """Add headers, query items and user properties in document order.

    Supplied values are used for entries without a declared value first.
    """
    for group in definition.entries:
        by_preference = sorted(group.declared, key=lambda constraint: constraint.fixed)
        values = {id(constraint): _take_next(supplied, group.section, group.name) for constraint in by_preference}
        for constraint in group.declared:
            name = constraint.label.removeprefix(f"protocoloptions.{group.section}.")
            value = rendering.render(constraint, values[id(constraint)])
            rendering.require_values([constraint], {constraint.slot.name: value})
            if value is not None:
                slots.setdefault(group.section, []).append((name, value))


def _set(slots: Slots, section: str, name: str, value: Any) -> None:
    if section == BARE:
        slots["key" if name == "key_base64" else name] = value
    else:
        slots.setdefault(section, {})[name] = value


# -- supplied by the application ------------------------------------------------------------------------------------


def _supplied_properties(protocol: str, rendering: Rendering) -> Supplied:
    protocol_family, supplied = family(protocol), Supplied()
    for key, value in rendering.request.properties.items():
        section, name = _split_key(protocol, key)
        is_entry = section in ENTRY_SECTIONS[protocol_family]
        values = value if is_entry and isinstance(value, (list, tuple)) else [value]
        of_slot = supplied.setdefault((section, entry_name(protocol_family, section, name) if is_entry else name), [])
        for item in map(application_value, values):
            is_text = isinstance(item, (Timestamp, Uuid)) and protocol_family != "AMQP"  # only AMQP has these types
            of_slot.append((name, str(item) if is_text else item))
    return supplied


def _split_key(protocol: str, key: str) -> tuple[str, str]:
    """Split ``headers.X-Trace`` into section and name. A key that names no section of the protocol is a bare slot."""
    key = key.removeprefix("protocoloptions.")
    section, dot, name = key.partition(".")
    return (section, name) if dot and section in _sections_of(protocol) else (BARE, key)


def _take_next(supplied: Supplied, section: str, name: str) -> Any:
    """Remove and return the next value supplied for a slot; None if there is none."""
    values = supplied.get((section, name))
    return values.pop(0)[1] if values else None


def _add_undeclared(protocol: str, supplied: Supplied, slots: Slots, rendering: Rendering) -> None:
    """Add supplied properties that the definition does not declare (D2). They must be slots of the protocol."""
    protocol_family = family(protocol)
    for (section, name), values in supplied.items():
        for name_as_written, value in values:
            constraint = _undeclared_constraint(protocol, section, name, name_as_written)
            if constraint is None:
                known = [*bare_slots(protocol), *(f"{section}.NAME" for section in _sections_of(protocol))]
                message = f"{protocol} has no property '{name_as_written}'; it must be one of {', '.join(known)}"
                slot = f"protocoloptions.{name_as_written}"
                rendering.problems.append(
                    Problem("unknown-slot", message, slot=slot, expected=known, actual=name_as_written)
                )
            elif (rendered := rendering.render(constraint, value)) is None:
                continue
            elif section in ENTRY_SECTIONS[protocol_family]:
                slots.setdefault(section, []).append((name_as_written, rendered))
            else:
                _set(slots, section, name, rendered)


def _undeclared_constraint(protocol: str, section: str, name: str, name_as_written: str) -> Constraint | None:
    """Create a constraint for an undeclared slot; None if the protocol has no such slot.

    Entries and application properties may have any type, other slots their default type.
    """
    protocol_family = family(protocol)
    if section not in _sections_of(protocol) and (section != BARE or name not in bare_slots(protocol)):
        return None
    if section == BARE:
        kind, label = BARE_SLOTS[protocol_family][name], name
    elif section in ENTRY_SECTIONS[protocol_family]:
        kind, label = entry_kind(protocol_family, section, name), f"{section}.{name_as_written}"
    else:
        kind, label = amqp_kind(section, name), f"{section}.{name}"
    type_ = "any" if section in (*ENTRY_SECTIONS[protocol_family], "application-properties") else kind.type
    return constraint_of(Slot(section, name, f"protocoloptions.{label}"), kind, {"type": type_})


def _sections_of(protocol: str) -> tuple[str, ...]:
    """The sections of a protocol. MQTT 3.1.1 has none."""
    protocol_family = family(protocol)
    if protocol == "MQTT/3.1.1":
        return ()
    return (*ENTRY_SECTIONS[protocol_family], *(AMQP_SECTIONS if protocol_family == "AMQP" else ()))
