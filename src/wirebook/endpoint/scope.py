"""What an endpoint allows: its candidates, its content mode, and the placeholders of its own options.

Spec: endpoint/spec.md#protocoloptions, #envelopeoptions; docs/semantics.md D19, D25, D50, R29-R32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from wirebook.endpoint.resolution import ResolvedEndpoint
from wirebook.message.definition import ENVELOPE_MODES, Constraint, constraint_of
from wirebook.message.selection import Scope
from wirebook.message.slots import BARE, BARE_SLOTS, Slot, family

# Endpoint option to the slot of a message that carries it.
OPTION_SLOTS: Final[dict[str, dict[str, str]]] = {
    "KAFKA": {"topic": "topic", "key": "key"},
    "MQTT": {"topic": "topic_name"},
    "NATS": {"subject": "subject"},
}


def scope_of(endpoint: ResolvedEndpoint) -> Scope:
    """The candidates of `endpoint`, and what it adds to each."""
    attributes = endpoint.attributes
    protocol = attributes.get("protocol")
    mode = str(_mapping(attributes.get("envelopeoptions")).get("mode") or "").lower()
    return Scope(
        members=frozenset(endpoint.messages),
        protocol=protocol,
        mode=mode if mode in ENVELOPE_MODES else None,
        templates=tuple(_templates(protocol or "", _mapping(attributes.get("protocoloptions")))),
        empty=not endpoint.messages and not endpoint.groups and not endpoint.dangling,
    )


def _templates(protocol: str, options: Mapping[str, Any]) -> Iterator[Constraint]:
    """The options that have placeholders, as constraints on the slots they show in."""
    kin = family(protocol)
    for option, name in OPTION_SLOTS.get(kin, {}).items():
        slot = Slot(BARE, name, f"endpoint.protocoloptions.{option}")
        constraint = constraint_of(slot, BARE_SLOTS[kin][name], options.get(option))
        if constraint.template is not None:
            yield constraint


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
