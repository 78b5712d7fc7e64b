"""The kinds of messages in the made-up company's traffic: one row for each, and how many there are on a page."""

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
from wirebook.demo.moulds import SEVERITY, WAVE, Mould, mark
from wirebook.demo.payloads import MessageDraft, Moment

CATALOGUE: Final = Path(str(files("wirebook.demo") / "catalogue"))
JSON, AVRO = "application/json", "application/vnd.apache.avro"


@dataclass(frozen=True)
class Kind:
    """One kind of message.

    Shape: `per_page` of every 200 messages are of this kind. `extras` are attributes and `properties` further slots
    that the definition leaves open. `file` is the capture it goes to.
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
        return ".kestrel." in f".{self.definition.rpartition('/')[2]}"


def _kind(name: str, definition: str, endpoint: str, file: str, per_page: int, **rest: Any) -> Kind:
    group, _, message = definition.partition(" ")
    xid = f"/messagegroups/{group}/messages/{message}" if message else definition
    return Kind(name, xid, f"/endpoints/{endpoint}", file, per_page, getattr(payloads, name), **rest)


ORDERS, PAYMENTS, SOLAR = "kafka-orders.jsonl", "kafka-payments.parquet", "kafka-forecasts.jsonl"
WEBHOOKS, VANS, SITES = "http-webhooks.jsonl", "mqtt-vans.jsonl.gz", "mqtt-sites.jsonl"
QUEUES, DISPATCH = "amqp-queues.jsonl", "nats-dispatch.jsonl"
BINARY: Final = {"mode": "binary"}

KINDS: Final = (
    _kind("placed", "kestrel.orders kestrel.orders.placed", "orders", ORDERS, 8, **BINARY),
    _kind("packed", "kestrel.orders kestrel.orders.packed", "orders", ORDERS, 7, **BINARY),
    _kind("cancelled", "kestrel.orders kestrel.orders.cancelled", "orders", ORDERS, 1, **BINARY),
    _kind("customer_changed", "kestrel.customers kestrel.customers.changed", "orders", ORDERS, 2, **BINARY),
    _kind("received", "stock received", "stock", ORDERS, 5),
    _kind("issued", "stock issued", "stock", ORDERS, 20),
    _kind(
        "captured", "kestrel.payments kestrel.payments.captured", "payments", PAYMENTS, 6, content_type=AVRO, **BINARY
    ),
    _kind(
        "settled",
        "kestrel.settlements kestrel.settlements.settled",
        "webhooks",
        WEBHOOKS,
        1,
        properties={"headers.X-Kestrel-Signature": mark("signature")},
        **BINARY,
    ),
    _kind("position", "fleet.mqtt kestrel.fleet.position", "vans", VANS, 61, **BINARY),
    _kind("delivered", "fleet.amqp kestrel.fleet.delivered", "deliveries", QUEUES, 7, **BINARY),
    _kind(
        "assigned",
        "kestrel.dispatch kestrel.dispatch.assigned",
        "dispatch",
        DISPATCH,
        3,
        extras={"wave": WAVE},
        **BINARY,
    ),
    _kind("temperature", "coldrooms temperature", "coldrooms", SITES, 44),
    _kind("alarm", "alarms.amqp kestrel.alarms.coldroom", "alarms", QUEUES, 1, extras={"severity": SEVERITY}, **BINARY),
    _kind("metered", "kestrel.energy kestrel.energy.metered", "energy", SITES, 24, **BINARY),
    _kind(
        "forecast",
        "kestrel.solar kestrel.solar.forecast",
        "forecasts",
        SOLAR,
        1,
        extras={"model": mark("model")},
        mode="structured",
    ),
    _kind(
        "charger",
        "/endpoints/chargers/messages/status",
        "chargers",
        SITES,
        9,
        properties={"user_properties.firmware": mark("firmware")},
    ),
)
PER_PAGE: Final = sum(kind.per_page for kind in KINDS)
BY_NAME: Final = {kind.name: kind for kind in KINDS}
FILES: Final = tuple(dict.fromkeys(kind.file for kind in KINDS))


class Forms:
    """The moulds and payload encoders of all kinds, made from the shipped catalogue."""

    def __init__(self) -> None:
        self.catalog = Catalog.load(CATALOGUE)
        self.moulds = {kind.name: self._mould(kind) for kind in KINDS}

    def _mould(self, kind: Kind) -> Mould:
        return Mould(
            self.catalog.definitions[kind.definition],
            endpoint=kind.endpoint,
            mode=kind.mode,
            attributes=kind.extras,
            properties=kind.properties,
            content_type=kind.content_type,
        )

    @cached_property
    def _avro(self) -> Any:
        group = self.catalog.registry.document["schemagroups"]["kestrel.payments"]
        return fastavro.parse_schema(group["schemas"]["captured"]["versions"]["1"]["schema"])

    def encode(self, kind: Kind, data: Any) -> bytes | None:
        if data is None:
            return None
        return orjson.dumps(data) if kind.content_type == JSON else self._encode_avro(data)

    def _encode_avro(self, data: dict[str, Any]) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, self._avro, data | {"amount": Decimal(data["amount"]).scaleb(-2)})
        return buffer.getvalue()
