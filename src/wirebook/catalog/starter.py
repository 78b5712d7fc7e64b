"""The catalogue of `wirebook init`: one message of a web shop, in a chosen protocol, envelope and payload format.

The tables below contain the parts for each choice. Every combination passes lint and builds the example message, which
`tests/catalog/test_starter.py` verifies.
"""

from __future__ import annotations

from typing import Any, Final

SPECVERSION: Final = "1.0-rc4"
MESSAGE: Final = "/messagegroups/orders/messages/shop.order.created"
SCHEMA: Final = "/schemagroups/orders/schemas/order-created"
NONE: Final = "none"
ENVELOPES: Final = ("CloudEvents/1.0", NONE)
CONTEXT: Final = {"shop": "lund", "order": "1001"}
DATA: Final = {"item": "lamp", "quantity": 2, "price": 49.5}

_CLOUDEVENTS: Final = {
    "type": {"value": "shop.order.created"},
    "source": {"type": "uritemplate", "value": "/shops/{shop}"},
    "subject": {"value": "{order}"},
}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "KAFKA": {"topic": "orders", "key": "{order}", "headers": {"shop": {"name": "shop", "value": "{shop}"}}},
    "HTTP": {"method": "POST", "path": "/shops/{shop}/orders/{order}"},
    "MQTT/5.0": {"topic_name": "shops/{shop}/orders/{order}", "qos": 1},
    "AMQP/1.0": {
        "properties": {"subject": {"value": "order.created"}, "group-id": {"value": "{order}"}},
        "application-properties": {"shop": {"value": "{shop}"}},
    },
    "NATS": {"subject": "shops.{shop}.orders.{order}"},
}
_ENDPOINTS: Final[dict[str, dict[str, Any]]] = {
    "KAFKA": {"topic": "orders", "consumergroup": "wirebook", "endpoints": [{"bootstrap.servers": ["localhost:9092"]}]},
    "HTTP": {"endpoints": [{"uri": "http://localhost:8080"}]},
    "MQTT/5.0": {"endpoints": [{"uri": "mqtt://localhost:1883"}]},
    "AMQP/1.0": {"node": "orders", "endpoints": [{"uri": "amqp://localhost:5672"}]},
    "NATS": {"endpoints": [{"uri": "nats://localhost:4222"}]},
}
_PROTO: Final = """syntax = "proto3";

message OrderCreated {
  string item = 1;
  int32 quantity = 2;
  double price = 3;
}
"""
_XSD: Final = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="OrderCreated">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="item" type="xs:string"/>
        <xs:element name="quantity" type="xs:int"/>
        <xs:element name="price" type="xs:double"/>
      </xs:sequence>
    </xs:complexType>
  </xs:element>
</xs:schema>
"""
_SCHEMAS: Final[dict[str, tuple[str, str, Any]]] = {  # by short name: format, suffix of the reference, schema
    "json-schema": (
        "JsonSchema/draft-07",
        "",
        {
            "type": "object",
            "properties": {
                "item": {"type": "string"},
                "quantity": {"type": "integer", "minimum": 1},
                "price": {"type": "number"},
            },
            "required": ["item", "quantity"],
        },
    ),
    "avro": (
        "Avro/1.11.3",
        "",
        {
            "type": "record",
            "name": "OrderCreated",
            "fields": [
                {"name": "item", "type": "string"},
                {"name": "quantity", "type": "int"},
                {"name": "price", "type": "double"},
            ],
        },
    ),
    "protobuf": ("Protobuf/3", ":OrderCreated", _PROTO),
    "xsd": ("XSD/1.0", "", _XSD),
    "json-structure": (
        "JsonStructure/draft-02",
        "",
        {
            "$schema": "https://json-structure.org/meta/core/v0/#",
            "$id": "https://schemas.example.com/order-created",
            "name": "OrderCreated",
            "type": "object",
            "properties": {"item": {"type": "string"}, "quantity": {"type": "int32"}, "price": {"type": "double"}},
            "required": ["item", "quantity"],
        },
    ),
}
PROTOCOLS: Final = (*_OPTIONS, NONE)
FORMATS: Final = (*_SCHEMAS, NONE)


def starter_catalog(protocol: str, envelope: str, format: str) -> dict[str, Any]:
    """Return a catalogue document with one message group, its schema and, if a protocol is chosen, an endpoint.

    A protocol or an envelope is required, because a message without both cannot be recognised.
    """
    message: dict[str, Any] = {"messageid": MESSAGE.rpartition("/")[2]}
    group: dict[str, Any] = {"messagegroupid": "orders", "description": "Orders of a web shop."}
    if envelope != NONE:
        group["envelope"] = envelope
        message |= {"envelope": envelope, "envelopemetadata": _CLOUDEVENTS}
    if protocol != NONE:
        group["protocol"] = protocol
        message |= {"protocol": protocol, "protocoloptions": _OPTIONS[protocol]}
    if format != NONE:
        name, suffix, _ = _SCHEMAS[format]
        message |= {"dataschemaformat": name, "dataschemauri": SCHEMA + suffix}
    document: dict[str, Any] = {"specversion": SPECVERSION, "registryid": "shop"}
    if protocol != NONE:
        document["endpoints"] = {"orders": _endpoint(protocol, envelope)}
    document["messagegroups"] = {"orders": group | {"messages": {message["messageid"]: message}}}
    if format != NONE:
        name, _, schema = _SCHEMAS[format]
        version = {"versionid": "1", "format": name, "schema": schema}
        entity = {"schemaid": "order-created", "format": name, "versions": {"1": version}}
        document["schemagroups"] = {"orders": {"schemagroupid": "orders", "schemas": {"order-created": entity}}}
    return document


def _endpoint(protocol: str, envelope: str) -> dict[str, Any]:
    endpoint: dict[str, Any] = {"endpointid": "orders", "usage": ["consumer"]}
    if envelope != NONE:
        endpoint["envelope"] = envelope
    options = {"protocol": protocol, "protocoloptions": _ENDPOINTS[protocol]}
    return endpoint | options | {"messagegroups": ["/messagegroups/orders"]}
