"""What an endpoint allows: its candidates, and the constraints of its own options.

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

# Endpoint option to the slot of a message that carries it.
OPTION_SLOTS: Final[dict[str, dict[str, str]]] = {
    "HTTP": {"method": "method"},
    "KAFKA": {"topic": "topic", "key": "key"},
    "MQTT": {"topic": "topic_name"},
    "NATS": {"subject": "subject"},
}
# What an option is when the endpoint does not have it. A registry writes it out: endpoint/model.json.
OPTION_DEFAULTS: Final[dict[tuple[str, str], str]] = {("HTTP", "method"): DEFAULT_METHOD}
# Endpoint options that are sections of a message, whose names repeat.
OPTION_SECTIONS: Final[dict[str, tuple[str, ...]]] = {"HTTP": ("query", "headers"), "KAFKA": ("headers",)}


def scope_of(endpoint: ResolvedEndpoint) -> EndpointScope:
    """The candidates of `endpoint`, and what it adds to each."""
    attributes = endpoint.attributes
    protocol = attributes.get("protocol")
    mode = str(_mapping(attributes.get("envelopeoptions")).get("mode") or "").lower()
    options = _mapping(attributes.get("protocoloptions"))
    kin = family(protocol or "")
    format_ = format_constraints(attributes, mode, "endpoint.envelopeoptions.format")
    return EndpointScope(
        members=frozenset(endpoint.messages),
        protocol=protocol,
        constraints=EndpointConstraints(
            mode if mode in ENVELOPE_MODES else None,
            tuple(replace(each, ranks=False) for each in (*format_, *_bare_constraints(kin, options))),
            tuple(_entries(kin, options)),
        ),
        empty=not endpoint.messages and not endpoint.groups and not endpoint.dangling,
    )


def _bare_constraints(kin: str, options: Mapping[str, Any]) -> Iterator[Constraint]:
    for option, name in OPTION_SLOTS.get(kin, {}).items():
        slot = Slot(BARE, name, f"endpoint.protocoloptions.{option}")
        value = options.get(option)
        if value is None or value == "":  # D3
            value = OPTION_DEFAULTS.get((kin, option))
        constraint = constraint_of(slot, BARE_SLOTS[kin][name], value)
        if constraint.fixed:
            yield constraint


def _entries(kin: str, options: Mapping[str, Any]) -> Iterator[Entries]:
    """Headers and query items. A message may have the name more often than the endpoint: any instance satisfies."""
    for section in OPTION_SECTIONS.get(kin, ()):
        for group in entries_of(kin, section, options.get(section), "endpoint.protocoloptions"):
            entries = tuple(replace(entry, ranks=False) for entry in group.entries if entry.fixed)
            if entries and not has_placeholder(group.name):
                yield replace(group, entries=entries, declared=entries, each=False, optional=True)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
