"""MQTT by paho-mqtt (extra ``mqtt``): from `paho.mqtt.client.MQTTMessage`, and to arguments of `Client.publish`.

    client.on_message = lambda client, userdata, message: handle(catalog.match(record_of(message)))
    client.publish(**arguments_of(catalog.build(...)))

Messages do not state their MQTT version. Unless `version` is set, a message with properties is MQTT 5.0, else 3.1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wirebook.bindings import AnyMessage, Mqtt3Publish, Mqtt5Publish, MqttProperties, bytes_of, from_bytes
from wirebook.convert.checks import not_expressible, of_protocol, required
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage
    from paho.mqtt.properties import Properties

NAME = "paho-mqtt"
Version = Literal["3.1.1", "5.0"]
PROPERTIES = {
    "payload_format": "PayloadFormatIndicator",
    "message_expiry_interval": "MessageExpiryInterval",
    "response_topic": "ResponseTopic",
    "correlation_data": "CorrelationData",
    "content_type": "ContentType",
}


def record_of(message: MQTTMessage, version: Version | None = None) -> Mqtt3Publish | Mqtt5Publish:
    """Return the record of a received message. Raises: WirebookError (``malformed-record``) for an invalid topic"""
    try:
        return publish_of(message, message.topic, bytes(message.payload), version)
    except UnicodeDecodeError as error:
        raise WirebookError(Problem("malformed-record", f"the topic is not valid UTF-8: {error.reason}")) from error


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """Return the arguments of `Client.publish`. Raises: WirebookError (``not-expressible``, ``missing-required``)"""
    publish = of_protocol(wire, NAME, Mqtt3Publish, Mqtt5Publish)
    arguments = {
        "topic": required(NAME, "protocoloptions.topic_name", publish.topic),
        "payload": bytes_of(publish.payload),
        "qos": publish.qos or 0,
        "retain": bool(publish.retain),
    }
    return arguments | ({"properties": properties_of(publish)} if isinstance(publish, Mqtt5Publish) else {})


# -- shared with aiomqtt, which uses paho's properties -----------------------------------------------------------------


def publish_of(message: Any, topic: str, payload: bytes, version: Version | None) -> Mqtt3Publish | Mqtt5Publish:
    """Return the PUBLISH packet of a message with `qos`, `retain` and paho's `properties`."""
    body, properties = from_bytes(payload), message.properties
    common = {"topic": topic, "qos": message.qos, "retain": bool(message.retain), "payload": body}
    if (version or ("3.1.1" if properties is None else "5.0")) == "3.1.1":
        return Mqtt3Publish(**common)
    values = {name: getattr(properties, own) for name, own in PROPERTIES.items() if hasattr(properties, own)}
    if "correlation_data" in values:
        values["correlation_data"] = from_bytes(values["correlation_data"])
    pairs = [(name, value) for name, value in getattr(properties, "UserProperty", ())]
    return Mqtt5Publish(
        **common, properties=MqttProperties(**values) if values else None, user_properties=pairs or None
    )


def properties_of(wire: Mqtt5Publish) -> Properties:
    """Return the properties of a PUBLISH packet as a `Properties` object of paho."""
    types = library("paho.mqtt.packettypes").PacketTypes
    properties: Properties = library("paho.mqtt.properties").Properties(types.PUBLISH)
    for name, value in msgspec.structs.asdict(wire.properties or MqttProperties()).items():
        if value is not None:
            setattr(properties, PROPERTIES[name], bytes_of(value) if name == "correlation_data" else value)
    for name, value in wire.user_properties or ():
        if not isinstance(value, str):
            raise not_expressible(NAME, f"protocoloptions.user_properties.{name}", "a string", bytes_of(value))
        properties.UserProperty = (name, value)  # paho appends
    return properties
