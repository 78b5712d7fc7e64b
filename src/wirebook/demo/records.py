"""Read and change capture records. Their attributes and payload are in different members for each protocol."""

from __future__ import annotations

import base64
from typing import Any, Final

import orjson

Record = dict[str, Any]

PAYLOAD: Final = {
    "HTTP": "body",
    "KAFKA": "value",
    "MQTT/3.1.1": "payload",
    "MQTT/5.0": "payload",
    "AMQP/1.0": "body",
    "NATS": "data",
}
# The member with the attributes of an event in binary mode, and the prefix of their names.
ATTRIBUTES: Final = {
    "HTTP": ("headers", "ce-"),
    "KAFKA": ("headers", "ce_"),
    "MQTT/5.0": ("user_properties", ""),
    "AMQP/1.0": ("application-properties", "cloudEvents_"),
    "NATS": ("headers", "ce-"),
}


def payload_of(record: Record) -> Any:
    """Return the payload in the form of the record: a string, an object with base64, or None."""
    return record.get(PAYLOAD[record["protocol"]])


def set_payload(record: Record, value: Any) -> None:
    """Replace the payload."""
    record[PAYLOAD[record["protocol"]]] = value


def bytes_of(record: Record) -> bytes:
    """The payload as bytes."""
    value = payload_of(record)
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode()


def set_bytes(record: Record, raw: bytes) -> None:
    """Replace the payload: a string, or base64 if it is not UTF-8."""
    try:
        set_payload(record, raw.decode())
    except UnicodeDecodeError:
        set_payload(record, {"base64": base64.b64encode(raw).decode()})


def is_structured(record: Record) -> bool:
    """Whether the record is an event in structured mode."""
    return any(name == "content-type" and "cloudevents" in value for name, value in record.get("headers", ()))


def attribute(record: Record, name: str) -> Any:
    """The value of an attribute."""
    if is_structured(record):
        return orjson.loads(payload_of(record)).get(name)
    member, prefix = ATTRIBUTES[record["protocol"]]
    pairs = record[member].items() if isinstance(record[member], dict) else record[member]
    return next((value for key, value in pairs if key == prefix + name), None)


def set_attribute(record: Record, name: str, value: str | None) -> None:
    """Change an attribute; None removes it."""
    if is_structured(record):
        event = orjson.loads(payload_of(record)) | {name: value}
        set_payload(record, orjson.dumps({k: v for k, v in event.items() if v is not None}).decode())
        return
    member, prefix = ATTRIBUTES[record["protocol"]]
    set_pair(record, member, prefix + name, value)


def set_pair(record: Record, member: str, name: str, value: str | None) -> None:
    """Change a header or property in place; None removes it."""
    pairs = record[member].items() if isinstance(record[member], dict) else record[member]
    changed = [[key, value if key == name else old] for key, old in pairs if key != name or value is not None]
    record[member] = dict(changed) if isinstance(record[member], dict) else changed


def data_of(record: Record) -> Any:
    """The JSON value of the payload."""
    value = orjson.loads(payload_of(record))
    return value["data"] if is_structured(record) else value


def set_data(record: Record, data: Any) -> None:
    """Replace the JSON value of the payload."""
    value = orjson.loads(payload_of(record)) | {"data": data} if is_structured(record) else data
    set_payload(record, orjson.dumps(value).decode())
