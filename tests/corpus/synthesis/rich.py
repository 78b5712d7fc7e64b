"""A catalogue for each payload format, with a schema that uses every type of the format.

Each schema is used over every protocol, bare and as a CloudEvent, and once more where the content type says JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "rich json-schema": (("Every", "every.schema.json", "JsonSchema/draft-07"),),
    "rich json-structure": (("Every", "every.struct.json", "JsonStructure/draft-02"),),
    "rich avro": (("Every", "every.avsc", "Avro/1.12"), ("Inner", "every.avsc", "Avro/1.11")),
    "rich protobuf": (
        ("All", "every3.proto", "Protobuf/3"),
        ("Inner", "every3.proto", "Protobuf/3"),
        ("Flat", "every3.proto", "Protobuf/3"),
        ("Two", "every2.proto", "Protobuf/2"),
    ),
    "rich xsd": (("Order", "every.xsd", "XMLSchema/1.1"), ("Line", "every.xsd", "XMLSchema/1.0")),
}
"""Name of the catalogue to (part of the schema, its file, its format)."""
HAS_JSON_BESIDE = ("Avro", "Protobuf")


def rich_catalogue(name: str) -> dict[str, Any]:
    """The catalogue as a document."""
    schemas, messages = {}, {}
    for part, file, format_ in PARTS[name]:
        schemas[part] = {"versions": {"1": {"format": format_, "schema": (SCHEMAS / file).read_text(encoding="utf-8")}}}
        for key, message in _messages(part, format_).items():
            reference = (
                f"/schemagroups/g/schemas/{part}:{part}" if "Json" not in format_ else f"/schemagroups/g/schemas/{part}"
            )
            messages[f"{part}-{key}"] = message | {"dataschemaformat": format_, "dataschemauri": reference}
    return {
        "specversion": "1.0-rc4",
        "schemagroups": {"g": {"schemas": schemas}},
        "messagegroups": {"g": {"messages": messages}},
    }


def _messages(part: str, format_: str) -> dict[str, dict[str, Any]]:
    """A definition for each protocol and for events; `type`, path, topic and subject tell them apart."""
    event = {"source": {"value": "/s/{station}", "type": "uritemplate"}}
    messages: dict[str, dict[str, Any]] = {
        "event": {"envelope": "CloudEvents/1.0", "envelopemetadata": event | {"type": {"value": f"{part}.event"}}},
        "http": {"protocol": "HTTP", "protocoloptions": {"method": "POST", "path": f"/{part}/{{station}}"}},
        "kafka": {"protocol": "KAFKA", "protocoloptions": {"topic": part, "key": "{station}"}},
        "mqtt5": {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": f"{part}/{{station}}"}},
        "mqtt3": {"protocol": "MQTT/3.1.1", "protocoloptions": {"topic_name": f"{part}/{{station}}"}},
        "amqp": {"protocol": "AMQP/1.0", "protocoloptions": {"properties": {"subject": {"value": f"{part}/{{station}}"}}}},
        "nats": {"protocol": "NATS", "protocoloptions": {"subject": f"{part}.{{station}}"}},
    }  # fmt: skip
    if format_.partition("/")[0] in HAS_JSON_BESIDE:
        stated = {"type": {"value": f"{part}.json"}, "datacontenttype": {"value": "application/json"}}
        messages["json"] = {"envelope": "CloudEvents/1.0", "envelopemetadata": event | stated}
    return messages
