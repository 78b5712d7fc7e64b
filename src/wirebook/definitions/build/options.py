"""The protocol slots of a message that is built: declared ones, and those that only the application gives.

Spec: docs/semantics.md R21-R26, D2, D24, D28-D34
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wirebook.bindings import Timestamp, Uuid
from wirebook.bindings.percent import decode_value
from wirebook.definitions.build.rendering import Filling, plain
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
    entry_kind,
    entry_name,
    envelope_attribute,
    family,
)
from wirebook.problems import Problem

Slots = dict[str, Any]
Given = dict[tuple[str, str], list[tuple[str, Any]]]
CONTENT_TYPES = ("datacontenttype", "wire-content-type", EVENT_FORMAT)
MQTT_3_SLOTS = ("topic_name", "qos", "retain")


def filled_slots(definition: Definition, protocol: str, filling: Filling) -> Slots:
    """Protocol slots by name, as the bindings' writers take them; hop-dependent ones too (D28)."""
    slots: Slots = {}
    given = _given(protocol, filling)
    for constraint in definition.constraints:
        section, name = constraint.slot.section, constraint.slot.name
        if section == ENVELOPE or name in CONTENT_TYPES:
            continue
        value = filling.value(constraint, _next(given, section, name))
        filling.add_missing([constraint], {name: value})
        if value is not None:
            _put(slots, section, name, value)
    _add_entries(definition, given, slots, filling)
    _add_rest(protocol, given, slots, filling)
    if protocol == "HTTP" and "status" not in slots:
        slots.setdefault("method", DEFAULT_METHOD)
    return slots


def carried_attributes(protocol: str, slots: Slots) -> Iterator[tuple[str, Any]]:
    """The CloudEvents attributes that protocol slots say, where the definition has them there (D24)."""
    kin = family(protocol)
    for section in (*ENTRY_SECTIONS[kin], *AMQP_SECTIONS):
        found = slots.get(section) or ()
        for name, value in found.items() if isinstance(found, dict) else found:
            attribute = envelope_attribute(kin, section, entry_name(kin, section, name))
            if attribute and attribute != "datacontenttype":
                yield attribute, decoded(value) if kin in ("HTTP", "NATS") else value


def decoded(value: Any) -> Any:
    """A header's value without its percent-encoding, where it has a valid one."""
    try:
        return decode_value(value)[0] if isinstance(value, str) else value
    except UnicodeError:
        return value


# -- declared ---------------------------------------------------------------------------------------------------------


def _add_entries(definition: Definition, given: Given, slots: Slots, filling: Filling) -> None:
    """Entries in the order of the document; what the application gives is for those that are left open first."""
    for group in definition.entries:
        open_first = sorted(group.declared, key=lambda each: each.fixed)
        taken = {id(each): _next(given, group.section, group.name) for each in open_first}
        for constraint in group.declared:
            shown = constraint.label.removeprefix(f"protocoloptions.{group.section}.")
            value = filling.value(constraint, taken[id(constraint)])
            filling.add_missing([constraint], {constraint.slot.name: value})
            if value is not None:
                slots.setdefault(group.section, []).append((shown, value))


def _put(slots: Slots, section: str, name: str, value: Any) -> None:
    if section == BARE:
        slots["key" if name == "key_base64" else name] = value
    else:
        slots.setdefault(section, {})[name] = value


# -- given by the application -----------------------------------------------------------------------------------------


def _given(protocol: str, filling: Filling) -> Given:
    """The request's properties by section and by name as it compares; each with the name as given, in order."""
    kin, found = family(protocol), Given()
    for key, value in filling.request.properties.items():
        section, name = split_key(protocol, key)
        repeats = section in ENTRY_SECTIONS[kin] and isinstance(value, (list, tuple))
        place = section, entry_name(kin, section, name) if section in ENTRY_SECTIONS[kin] else name
        found.setdefault(place, []).extend((name, _native(kin, each)) for each in (value if repeats else [value]))
    return found


def _native(kin: str, value: Any) -> Any:
    """A given value as the protocol has it: times and UUIDs are texts in all but AMQP."""
    found = plain(value)
    return str(found) if isinstance(found, (Timestamp, Uuid)) and kin != "AMQP" else found


def split_key(protocol: str, key: str) -> tuple[str, str]:
    """``headers.X-Trace`` as section and name; what has no section of the protocol is a bare slot."""
    key = key.removeprefix("protocoloptions.")
    section, dot, name = key.partition(".")
    return (section, name) if dot and section in sections_of(protocol) else (BARE, key)


def _next(given: Given, section: str, name: str) -> Any:
    """The next value given for a slot, taken; None when there is none left."""
    waiting = given.get((section, name))
    return waiting.pop(0)[1] if waiting else None


def _add_rest(
    protocol: str, given: Mapping[tuple[str, str], list[tuple[str, Any]]], slots: Slots, filling: Filling
) -> None:
    """Properties that the definition does not declare: allowed (D2), if the protocol has such a slot."""
    kin = family(protocol)
    for (section, name), values in given.items():
        for shown, value in values:
            constraint = _undeclared(protocol, section, name, shown)
            if constraint is None:
                filling.problems.append(_unknown(protocol, shown))
            elif (kept := filling.value(constraint, value)) is None:
                continue
            elif section in ENTRY_SECTIONS[kin]:
                slots.setdefault(section, []).append((shown, kept))
            else:
                _put(slots, section, name, kept)


def _undeclared(protocol: str, section: str, name: str, shown: str) -> Constraint | None:
    kin = family(protocol)
    if section not in sections_of(protocol) and (section != BARE or name not in bare_names(protocol)):
        return None
    if section == BARE:
        kind, label = BARE_SLOTS[kin][name], name
    elif section in ENTRY_SECTIONS[kin]:
        kind, label = entry_kind(kin, section, name), f"{section}.{shown}"
    else:
        kind, label = amqp_kind(section, name), f"{section}.{name}"
    type_ = "any" if section in (*ENTRY_SECTIONS[kin], "application-properties") else kind.type
    return constraint_of(Slot(section, name, f"protocoloptions.{label}"), kind, {"type": type_})


def bare_names(protocol: str) -> list[str]:
    """The slots of a protocol that are in no section."""
    names = BARE_SLOTS[family(protocol)]
    return [name for name in names if protocol != "MQTT/3.1.1" or name in MQTT_3_SLOTS]


def sections_of(protocol: str) -> tuple[str, ...]:
    """The sections of a protocol; MQTT 3.1.1 has none."""
    kin = family(protocol)
    return () if protocol == "MQTT/3.1.1" else (*ENTRY_SECTIONS[kin], *(AMQP_SECTIONS if kin == "AMQP" else ()))


def _unknown(protocol: str, name: str) -> Problem:
    known = [*bare_names(protocol), *(f"{section}.NAME" for section in sections_of(protocol))]
    text = f"{protocol} has no property '{name}'; it has {', '.join(known)}"
    return Problem("unknown-slot", text, slot=f"protocoloptions.{name}", expected=known, actual=name)
