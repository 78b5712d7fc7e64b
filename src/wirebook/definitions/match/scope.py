"""Compile an endpoint into the scope of a selector: its candidate definitions, and the constraints of its options.

Spec: endpoint/spec.md#protocoloptions, #envelopeoptions; docs/semantics.md D19, D25, D50, R29-R32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from wirebook.definitions.compile.definition import (
    ENVELOPE_MODES,
    Constraint,
    Entries,
    constraint_of,
    entries_of,
    format_constraints,
)
from wirebook.definitions.compile.slots import BARE, BARE_SLOTS, DEFAULT_METHOD, Slot, family
from wirebook.definitions.compile.uritemplate import has_placeholder
from wirebook.definitions.match.matcher import EndpointConstraints
from wirebook.definitions.match.selection import EndpointScope
from wirebook.definitions.resolve.endpoints import ResolvedEndpoint

OPTION_SLOTS: Final[dict[str, dict[str, str]]] = {
    "HTTP": {"method": "method"},
    "KAFKA": {"topic": "topic", "key": "key"},
    "MQTT": {"topic": "topic_name"},
    "NATS": {"subject": "subject"},
}
"""Maps the options of an endpoint to slots of messages, by protocol."""

OPTION_DEFAULTS: Final[dict[tuple[str, str], str]] = {("HTTP", "method"): DEFAULT_METHOD}
"""The defaults of endpoint options (endpoint/model.json)."""

OPTION_SECTIONS: Final[dict[str, tuple[str, ...]]] = {"HTTP": ("query", "headers"), "KAFKA": ("headers",)}
"""Endpoint options that are sections of a message in which names may repeat."""


def scope_of(endpoint: ResolvedEndpoint) -> EndpointScope:
    """Return the candidates of `endpoint`, and the constraints that it adds to each of them."""
    attributes = endpoint.attributes
    protocol = attributes.get("protocol")
    mode = str(_mapping(attributes.get("envelopeoptions")).get("mode") or "").lower()
    options = _mapping(attributes.get("protocoloptions"))
    protocol_family = family(protocol or "")
    event_format = format_constraints(attributes, mode, "endpoint.envelopeoptions.format")
    constraints = (*event_format, *_bare_constraints(protocol_family, options))
    return EndpointScope(
        members=frozenset(endpoint.messages),
        protocol=protocol,
        constraints=EndpointConstraints(
            mode if mode in ENVELOPE_MODES else None,
            tuple(replace(constraint, ranks=False) for constraint in constraints),
            tuple(_entries(protocol_family, options)),
        ),
        empty=not endpoint.messages and not endpoint.groups and not endpoint.dangling,
    )


def _bare_constraints(protocol_family: str, options: Mapping[str, Any]) -> Iterator[Constraint]:
    for option, name in OPTION_SLOTS.get(protocol_family, {}).items():
        slot = Slot(BARE, name, f"endpoint.protocoloptions.{option}")
        value = options.get(option)
        if value is None or value == "":  # D3
            value = OPTION_DEFAULTS.get((protocol_family, option))
        constraint = constraint_of(slot, BARE_SLOTS[protocol_family][name], value)
        if constraint.fixed:
            yield constraint


def _entries(protocol_family: str, options: Mapping[str, Any]) -> Iterator[Entries]:
    """Yield headers and query items. Any instance of the name in a message can satisfy an entry of the endpoint."""
    for section in OPTION_SECTIONS.get(protocol_family, ()):
        for group in entries_of(protocol_family, section, options.get(section), "endpoint.protocoloptions"):
            entries = tuple(replace(entry, ranks=False) for entry in group.entries if entry.fixed)
            if entries and not has_placeholder(group.name):
                yield replace(group, entries=entries, declared=entries, exclusive=False, optional=True)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
