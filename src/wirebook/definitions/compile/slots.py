"""Slots: the places of a message that a definition can constrain, with a table for each protocol.

A slot has a section (``envelope``, ``headers``, ``application-properties``, or ``""`` for bare slots) and a name. The
order of the tables is the slot order, in which problems are listed and placeholders are bound.

Spec: message/spec.md#message-protocols, #cloudevents10; docs/semantics.md D6, D7, D17, D20, D28.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from wirebook.definitions.compile.uritemplate import MQTT_TOPIC, NATS_SUBJECT, PATH, QUERY, TEXT, URI, TemplateContext

ENVELOPE = "envelope"
BARE = ""
DEFAULT_METHOD = "POST"  # of HTTP requests: endpoint/spec.md#http-endpoints
EVENT_FORMAT = "event-format"  # the bare slot of a structured event's content type; binary messages do not have it


@dataclass(frozen=True, slots=True)
class SlotKind:
    """The properties of a slot.

    `type` is the default type. `place` has the rules for placeholders. `integer` is the type that ``integer`` stands
    for in this slot. `transport` slots may change from hop to hop and are not matched by default (D28). `media_type`
    slots are compared as content types (D14). `wire` is the form of values on the wire: ``text`` (canonical text),
    ``octets`` (untyped bytes) or ``native`` (typed).
    """

    type: str = "string"
    place: TemplateContext = TEXT
    integer: str = "integer"
    transport: bool = False
    media_type: bool = False
    wire: Literal["text", "octets", "native"] = "text"


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot. `name` is normalised; `label` is the path in the definition, for reports."""

    section: str
    name: str
    label: str


MAX_SHARED: Final = 4096
"""Size of each cache of slots, slot kinds and constraints. All catalogues of a process share them."""


@lru_cache(maxsize=MAX_SHARED)
def shared_slot(section: str, name: str, label: str) -> Slot:
    """Return a cached slot. Definitions share equal slots, which saves memory, and space when they are pickled."""
    return Slot(section, name, label)


CONTENT_TYPE = SlotKind("ascii", media_type=True)
EVENT_FORMAT_KIND = SlotKind("string", media_type=True)
HOP = SlotKind(transport=True)
EXTENSION = SlotKind()

ATTRIBUTES: dict[str, SlotKind] = {
    "specversion": SlotKind(),
    "id": SlotKind(),
    "type": SlotKind(),
    "source": SlotKind("uritemplate", URI),
    "subject": SlotKind(),
    "time": SlotKind("timestamp"),
    "dataschema": SlotKind("uritemplate", URI),
    "datacontenttype": SlotKind("string", media_type=True),
}
INFERRED_KINDS = {name: replace(ATTRIBUTES[name], type="string") for name in ("datacontenttype", "dataschema")}
"""The kinds of the CloudEvents attributes with inferred values (D12, D13)."""
REQUIRED_ATTRIBUTES = frozenset({"id", "type", "source"})

BARE_SLOTS: dict[str, dict[str, SlotKind]] = {
    "HTTP": {
        "method": SlotKind(),
        "path": SlotKind("uritemplate", PATH),
        "status": SlotKind(wire="native"),
    },
    "AMQP": {},
    "MQTT": {
        "topic_name": SlotKind("uritemplate", MQTT_TOPIC),
        "qos": SlotKind("integer", transport=True, wire="native"),
        "retain": SlotKind("boolean", transport=True, wire="native"),
        "payload_format": SlotKind("integer", wire="native"),
        "message_expiry_interval": SlotKind("integer", integer="uint32", transport=True, wire="native"),
        "response_topic": SlotKind("uritemplate", MQTT_TOPIC),
        "correlation_data": SlotKind("binary", wire="octets"),
        "content_type": CONTENT_TYPE,
    },
    "KAFKA": {
        "topic": SlotKind(),
        "partition": SlotKind("integer", transport=True, wire="native"),
        "key": SlotKind(wire="octets"),
        "key_base64": SlotKind("binary", wire="octets"),
    },
    "NATS": {
        "subject": SlotKind("uritemplate", NATS_SUBJECT),
        "reply-to": SlotKind("uritemplate", NATS_SUBJECT),
    },
}

AMQP_PROPERTIES: dict[str, SlotKind] = {
    "message-id": SlotKind("any", wire="native"),
    "user-id": SlotKind("binary", wire="native"),
    "to": SlotKind("uritemplate", URI),
    "subject": SlotKind(),
    "reply-to": SlotKind("uritemplate", URI),
    "correlation-id": SlotKind("any", wire="native"),
    "content-type": CONTENT_TYPE,
    "content-encoding": SlotKind("ascii"),
    "absolute-expiry-time": SlotKind("timestamp", wire="native"),
    "creation-time": SlotKind("timestamp", wire="native"),
    "group-id": SlotKind(),
    "group-sequence": SlotKind("integer", integer="uint32", wire="native"),
    "reply-to-group-id": SlotKind("uritemplate"),
}
AMQP_HEADER: dict[str, SlotKind] = {
    "durable": SlotKind("boolean", transport=True, wire="native"),
    "priority": SlotKind("integer", transport=True, wire="native"),
    "ttl": SlotKind("integer", integer="uint32", transport=True, wire="native"),
    "first-acquirer": SlotKind("boolean", transport=True, wire="native"),
    "delivery-count": SlotKind("integer", integer="uint32", transport=True, wire="native"),
}
AMQP_SECTIONS: dict[str, dict[str, SlotKind]] = {
    "properties": AMQP_PROPERTIES,
    "application-properties": {},
    "message-annotations": {},
    "delivery-annotations": {},
    "header": AMQP_HEADER,
    "footer": {},
}
HOP_SECTIONS = frozenset({"delivery-annotations", "header", "footer"})
ANNOTATION = SlotKind(integer="number", wire="native")

HOP_BY_HOP_HEADERS = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade",
})  # fmt: skip

# Sections in which names may repeat. On the wire they are lists of (name, value).
ENTRY_SECTIONS: dict[str, tuple[str, ...]] = {
    "HTTP": ("query", "headers"),
    "AMQP": (),
    "MQTT": ("user_properties",),
    "KAFKA": ("headers",),
    "NATS": ("headers",),
}


def family(protocol: str) -> str:
    """The protocol without its version: ``MQTT`` for ``MQTT/5.0``."""
    return protocol.partition("/")[0].upper()


def bare_slots(protocol: str) -> dict[str, SlotKind]:
    """The slots of a protocol that are in no section. MQTT 3.1.1 has only three of the slots of MQTT 5.0 (D32)."""
    kinds = BARE_SLOTS.get(family(protocol), {})
    if not is_mqtt_3(protocol):
        return kinds
    return {name: kind for name, kind in kinds.items() if name in ("topic_name", "qos", "retain")}


def is_mqtt_3(protocol: str) -> bool:
    return protocol.upper() == "MQTT/3.1.1"


def attribute_kind(name: str) -> SlotKind:
    return ATTRIBUTES.get(name, EXTENSION)


@lru_cache(maxsize=MAX_SHARED)
def amqp_kind(section: str, name: str) -> SlotKind:
    kind = AMQP_SECTIONS[section].get(name, ANNOTATION)
    return replace(kind, transport=True) if section in HOP_SECTIONS else kind


def folds_case(protocol_family: str, section: str) -> bool:
    """Whether all names of a section are case-insensitive, as HTTP and NATS headers are (D30, D34)."""
    return section == "headers" and protocol_family in ("HTTP", "NATS")


def entry_name(protocol_family: str, section: str, name: str) -> str:
    """The normalised name of an entry (D30, D32-D34). In Kafka, only ``ce_...`` and ``content-type`` ignore case."""
    lowered = name.lower()
    if folds_case(protocol_family, section):
        return lowered
    if protocol_family == "KAFKA" and (lowered.startswith("ce_") or lowered == "content-type"):
        return lowered
    return name


@lru_cache(maxsize=MAX_SHARED)
def entry_kind(protocol_family: str, section: str, name: str) -> SlotKind:
    """The kind of a header, query item or user property. `name` is normalised."""
    if section == "query":
        return SlotKind(place=QUERY)
    if section == "headers" and name == "content-type":
        return SlotKind("string", media_type=True)
    if protocol_family == "HTTP" and name in HOP_BY_HOP_HEADERS:
        return HOP
    attribute = envelope_attribute(protocol_family, section, name)
    if attribute:
        return replace(attribute_kind(attribute), type="string")
    return SlotKind(wire="octets" if protocol_family == "KAFKA" else "text")


def envelope_attribute(protocol_family: str, section: str, name: str) -> str | None:
    """The CloudEvents attribute that a wire slot carries in binary mode, or None (D24).

    Spec: the ``Metadata Headers`` section of each protocol binding of CloudEvents.
    """
    if name == CONTENT_TYPE_SLOTS.get((protocol_family, section)):
        return "datacontenttype"
    prefixes = ATTRIBUTE_PREFIXES.get((protocol_family, section), ())
    attribute = next((name[len(prefix) :] for prefix in prefixes if name.startswith(prefix)), None)
    if (protocol_family, section) == ("MQTT", "user_properties"):
        return name if name in ATTRIBUTES else None
    return attribute or None


CONTENT_TYPE_SLOTS: dict[tuple[str, str], str] = {
    ("HTTP", "headers"): "content-type",
    ("KAFKA", "headers"): "content-type",
    ("MQTT", BARE): "content_type",
    ("AMQP", "properties"): "content-type",
}
ATTRIBUTE_PREFIXES: dict[tuple[str, str], tuple[str, ...]] = {
    ("HTTP", "headers"): ("ce-",),
    ("KAFKA", "headers"): ("ce_",),
    ("NATS", "headers"): ("ce-",),
    ("AMQP", "application-properties"): ("cloudEvents:", "cloudEvents_"),
}
