"""The message types in the traffic of the fictional company: one row per type, with its share of the traffic."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import fastavro
import orjson

from wirebook.bindings.write import WriteMode
from wirebook.catalog import Catalog
from wirebook.demo import payloads
from wirebook.demo.payloads import MessageDraft, Moment
from wirebook.demo.templates import SEVERITY, WAVE, LineTemplate, marker

CATALOGUE: Final = Path(str(files("wirebook.demo") / "catalogue"))
JSON, AVRO = "application/json", "application/vnd.apache.avro"


@dataclass(frozen=True)
class MessageType:
    """One type of message.

    Shape: `per_page` of every 200 messages are of this type. `extras` are attributes and `properties` are slots that
    the definition leaves open. `file` is the capture that the messages are written to.
    """

    name: str
    definition: str
    endpoint: str
    file: str
    per_page: int
    make: Callable[[Moment], MessageDraft]
    mode: WriteMode | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = JSON

    @property
    def is_event(self) -> bool:
        """Whether the messages are CloudEvents."""
        return ".kestrel." in f".{self.definition.rpartition('/')[2]}"


def _message_type(name: str, definition: str, endpoint: str, file: str, per_page: int, **rest: Any) -> MessageType:
    group, _, message = definition.partition(" ")
    xid = f"/messagegroups/{group}/messages/{message}" if message else definition
    return MessageType(name, xid, f"/endpoints/{endpoint}", file, per_page, getattr(payloads, name), **rest)


ORDERS, PAYMENTS, SOLAR = "kafka-orders.jsonl", "kafka-payments.parquet", "kafka-forecasts.jsonl"
WEBHOOKS, VANS, SITES = "http-webhooks.jsonl", "mqtt-vans.jsonl.gz", "mqtt-sites.jsonl"
QUEUES, DISPATCH = "amqp-queues.jsonl", "nats-dispatch.jsonl"
BINARY: Final = {"mode": "binary"}

MESSAGE_TYPES: Final = (
    _message_type("placed", "kestrel.orders kestrel.orders.placed", "orders", ORDERS, 8, **BINARY),
    _message_type("packed", "kestrel.orders kestrel.orders.packed", "orders", ORDERS, 7, **BINARY),
    _message_type("cancelled", "kestrel.orders kestrel.orders.cancelled", "orders", ORDERS, 1, **BINARY),
    _message_type("customer_changed", "kestrel.customers kestrel.customers.changed", "orders", ORDERS, 2, **BINARY),
    _message_type("received", "stock received", "stock", ORDERS, 5),
    _message_type("issued", "stock issued", "stock", ORDERS, 20),
    _message_type(
        "captured", "kestrel.payments kestrel.payments.captured", "payments", PAYMENTS, 6, content_type=AVRO, **BINARY
    ),
    _message_type(
        "settled",
        "kestrel.settlements kestrel.settlements.settled",
        "webhooks",
        WEBHOOKS,
        1,
        properties={"headers.X-Kestrel-Signature": marker("signature")},
        **BINARY,
    ),
    _message_type("position", "fleet.mqtt kestrel.fleet.position", "vans", VANS, 61, **BINARY),
    _message_type("delivered", "fleet.amqp kestrel.fleet.delivered", "deliveries", QUEUES, 7, **BINARY),
    _message_type(
        "assigned",
        "kestrel.dispatch kestrel.dispatch.assigned",
        "dispatch",
        DISPATCH,
        3,
        extras={"wave": WAVE},
        **BINARY,
    ),
    _message_type("temperature", "coldrooms temperature", "coldrooms", SITES, 44),
    _message_type(
        "alarm", "alarms.amqp kestrel.alarms.coldroom", "alarms", QUEUES, 1, extras={"severity": SEVERITY}, **BINARY
    ),
    _message_type("metered", "kestrel.energy kestrel.energy.metered", "energy", SITES, 24, **BINARY),
    _message_type(
        "forecast",
        "kestrel.solar kestrel.solar.forecast",
        "forecasts",
        SOLAR,
        1,
        extras={"model": marker("model")},
        mode="structured",
    ),
    _message_type(
        "charger",
        "/endpoints/chargers/messages/status",
        "chargers",
        SITES,
        9,
        properties={"user_properties.firmware": marker("firmware")},
    ),
)
PER_PAGE: Final = sum(message_type.per_page for message_type in MESSAGE_TYPES)
BY_NAME: Final = {message_type.name: message_type for message_type in MESSAGE_TYPES}
FILES: Final = tuple(dict.fromkeys(message_type.file for message_type in MESSAGE_TYPES))


class MessageTemplates:
    """The line templates and payload encoders of all message types, made from the shipped catalogue."""

    def __init__(self) -> None:
        self.catalog = Catalog.load(CATALOGUE)
        self.templates = {
            message_type.name: LineTemplate(
                self.catalog.definitions[message_type.definition],
                endpoint=message_type.endpoint,
                mode=message_type.mode,
                attributes=message_type.extras,
                properties=message_type.properties,
                content_type=message_type.content_type,
            )
            for message_type in MESSAGE_TYPES
        }

    @cached_property
    def _avro(self) -> Any:
        group = self.catalog.registry.document["schemagroups"]["kestrel.payments"]
        return fastavro.parse_schema(group["schemas"]["captured"]["versions"]["1"]["schema"])

    def encode(self, message_type: MessageType, data: Any) -> bytes | None:
        """Return the payload bytes of a message; None without data."""
        if data is None:
            return None
        if message_type.content_type == JSON:
            return orjson.dumps(data)
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, self._avro, data | {"amount": Decimal(data["amount"]).scaleb(-2)})
        return buffer.getvalue()
