"""Find the undeclared names of a message that are probably typos of names that the definition expects.

Spec: docs/explain.md#slips; docs/semantics.md D24, D30-D34
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from wirebook.definitions.compile.slots import (
    ATTRIBUTE_PREFIXES,
    ATTRIBUTES,
    CONTENT_TYPE_SLOTS,
    ENVELOPE,
    Slot,
    envelope_attribute,
)
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.definitions.match.event_types import unmarked_event


class Typos:
    """The names of a message that are neither in `declared` nor CloudEvents attributes: candidates for typos."""

    def __init__(self, declared: Iterable[Slot], view: MessageView) -> None:
        self.declared = tuple(declared)
        self.view = view

    @cached_property
    def undeclared(self) -> dict[str, list[str]]:
        """Maps each section to its undeclared names."""
        known = {(slot.section, slot.name) for slot in self.declared}
        known |= {(ENVELOPE, name) for name in ATTRIBUTES}
        undeclared: dict[str, list[str]] = {}
        for section, name in self.view.extras():
            attribute = None if section == ENVELOPE else envelope_attribute(self.view.family, section, name)
            if (section, name) not in known and (ENVELOPE, attribute) not in known:
                undeclared.setdefault(section, []).append(name)
        return undeclared

    def name_on_wire(self, slot: Slot) -> str:
        """The name that a sender writes: for an attribute in binary mode, the header or property that carries it."""
        for section, prefix in self._carriers(slot):
            if slot.name != "datacontenttype":
                return prefix + slot.name
            return CONTENT_TYPE_SLOTS.get((self.view.family, section), slot.name)
        if slot.section == ENVELOPE:
            return slot.name
        return slot.label.removeprefix(f"protocoloptions.{slot.section}.").removeprefix("protocoloptions.")

    def nearest(self, slot: Slot) -> str | None:
        """The undeclared name that is most similar to the name of `slot`, or None."""
        for section, prefix in self._carriers(slot):
            if name := _nearest_with_prefix(prefix, slot.name, self.undeclared.get(section, ())):
                return name
        return nearest_name(slot.name, self.undeclared.get(slot.section, ()))

    def nearest_specversion(self) -> tuple[str, str] | None:
        """The undeclared name that is similar to `specversion` as sent, and the correct name; None if there is none."""
        slot = Slot(ENVELOPE, "specversion", "")
        name = self.nearest(slot)
        return (name, self.name_on_wire(slot)) if name else None

    def missing_content_type(self) -> str | None:
        """The remedy for a structured CloudEvent, or a batch over HTTP, without the content type of one; else None."""
        name = next((name for (family, _), name in CONTENT_TYPE_SLOTS.items() if family == self.view.family), None)
        event = unmarked_event(self.view)
        if name is None or event is None or (isinstance(event, list) and self.view.family != "HTTP"):
            return None
        is_batch = isinstance(event, list)
        media_type = f"application/cloudevents{'-batch' if is_batch else ''}+json"
        reason = f"because the payload is {'a batch of CloudEvents' if is_batch else 'a CloudEvent'}"
        if (current := self.view.received.datacontenttype) is not None:
            return f"set {name} to '{media_type}' (now '{current}'), {reason}"
        return f"add {name}: '{media_type}', {reason}"

    def _carriers(self, slot: Slot) -> Iterator[tuple[str, str]]:
        """The sections that carry an attribute in binary mode, each with the prefix of attribute names there."""
        if slot.section != ENVELOPE or self.view.mode in ("structured", "batch"):
            return
        for (family, section), prefixes in ATTRIBUTE_PREFIXES.items():
            if family == self.view.family:
                yield section, prefixes[0]
        if self.view.family == "MQTT":
            yield "user_properties", ""


def _nearest_with_prefix(prefix: str, name: str, choices: Sequence[str]) -> str | None:
    """The most similar choice. Names are compared without the prefix, because it would make all names similar."""
    by_plain_name = {choice.removeprefix(prefix): choice for choice in choices if choice.startswith(prefix)}
    if similar := nearest_name(name, by_plain_name):
        return by_plain_name[similar]
    return nearest_name(prefix + name, [choice for choice in choices if not choice.startswith(prefix)])
