"""Slips in names: what the message has and nobody declares, for what the definition asks for and does not find.

Spec: docs/explain.md#slips; docs/semantics.md D24, D30-D34
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from wirebook.definitions.compile.slots import (
    ATTRIBUTE_PREFIXES,
    ATTRIBUTES,
    CONTENT_TYPE_SLOTS,
    ENVELOPE,
    Slot,
    envelope_attribute,
)
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.alignment import nearest_name
from wirebook.text.json import JsonError, parse_json

MAX_BYTES: Final = 1 << 20


class Slips:
    """The names of a message that neither CloudEvents nor one of the `declared` slots knows."""

    def __init__(self, declared: Iterable[Slot], view: MessageView) -> None:
        self.declared = tuple(declared)
        self.view = view

    @cached_property
    def undeclared(self) -> dict[str, list[str]]:
        """Section to names."""
        known = {(slot.section, slot.name) for slot in self.declared}
        known |= {(ENVELOPE, name) for name in ATTRIBUTES}
        found: dict[str, list[str]] = {}
        for section, name in self.view.extras():
            attribute = None if section == ENVELOPE else envelope_attribute(self.view.family, section, name)
            if (section, name) not in known and (ENVELOPE, attribute) not in known:
                found.setdefault(section, []).append(name)
        return found

    def spelled(self, slot: Slot) -> str:
        """The slot's name as a sender writes it: of an attribute the property that carries it in binary mode."""
        for section, prefix in self._carriers(slot):
            if slot.name != "datacontenttype":
                return prefix + slot.name
            return CONTENT_TYPE_SLOTS.get((self.view.family, section), slot.name)
        if slot.section == ENVELOPE:
            return slot.name
        return slot.label.removeprefix(f"protocoloptions.{slot.section}.").removeprefix("protocoloptions.")

    def nearest(self, slot: Slot) -> str | None:
        """The name in the message that is most likely a slip for this slot's."""
        for section, prefix in self._carriers(slot):
            if found := _nearest_carrier(prefix, slot.name, self.undeclared.get(section, ())):
                return found
        return nearest_name(slot.name, self.undeclared.get(slot.section, ()))

    def nearest_marker(self) -> tuple[str, str] | None:
        """What was probably meant to say that the message is a CloudEvent, and how that is written."""
        marker = Slot(ENVELOPE, "specversion", "")
        found = self.nearest(marker)
        return (found, self.spelled(marker)) if found else None

    def missing_content_type(self) -> str | None:
        """What marks the message as a structured CloudEvent, if its payload is one and its content type is not."""
        name = next((name for (family, _), name in CONTENT_TYPE_SLOTS.items() if family == self.view.family), None)
        event = unmarked_event(self.view)
        if name is None or event is None or (isinstance(event, list) and self.view.family != "HTTP"):
            return None
        is_batch = isinstance(event, list)
        media_type = f"application/cloudevents{'-batch' if is_batch else ''}+json"
        reason = f"as the payload is {'a batch of CloudEvents' if is_batch else 'a CloudEvent'}"
        if (present := self.view.received.datacontenttype) is not None:
            return f"set {name} to '{media_type}' (now '{present}'), {reason}"
        return f"add {name}: '{media_type}', {reason}"

    def _carriers(self, slot: Slot) -> Iterator[tuple[str, str]]:
        """The sections that carry an attribute in binary mode, each with the prefix of its names."""
        if slot.section != ENVELOPE or self.view.mode in ("structured", "batch"):
            return
        for (family, section), prefixes in ATTRIBUTE_PREFIXES.items():
            if family == self.view.family:
                yield section, prefixes[0]
        if self.view.family == "MQTT":
            yield "user_properties", ""


def unmarked_event(view: MessageView) -> dict[str, Any] | list[Any] | None:
    """The CloudEvent, or the batch, in the JSON payload of a message that is no CloudEvent; None if there is none."""
    payload = view.received.payload
    if view.is_cloudevent or payload is None or payload.raw is None or len(payload.raw) > MAX_BYTES:
        return None
    try:
        value = parse_json(payload.raw)
    except JsonError:
        return None
    events = value if isinstance(value, list) else [value]
    is_event = bool(events) and all(
        isinstance(event, dict) and {"specversion", "type"} <= event.keys() for event in events
    )
    return value if is_event else None


def _nearest_carrier(prefix: str, name: str, choices: Sequence[str]) -> str | None:
    """Names with the prefix are compared without it: it would make all of them alike."""
    plain = {choice.removeprefix(prefix): choice for choice in choices if choice.startswith(prefix)}
    if found := nearest_name(name, plain):
        return plain[found]
    return nearest_name(prefix + name, [choice for choice in choices if not choice.startswith(prefix)])
