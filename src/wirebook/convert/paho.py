"""MQTT by paho-mqtt (extra ``mqtt``): `paho.mqtt.client.MQTTMessage`, and what `Client.publish` takes.

    client.on_message = lambda client, userdata, message: handle(catalog.match(record_of(message)))
    client.publish(**arguments_of(catalog.build(...)))

A message says nothing of its version: with properties it is MQTT 5.0, without any 3.1.1, unless `version` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wirebook.bindings import AnyMessage, Mqtt3Publish, Mqtt5Publish, MqttProperties, bytes_of, from_bytes
from wirebook.convert.refusal import needed, refuse, require
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
    """The message that was received. Raises: WirebookError (``malformed-record``) for a topic that is not UTF-8."""
    try:
        return publish_of(message, message.topic, bytes(message.payload), version)
    except UnicodeDecodeError as error:
        raise WirebookError(Problem("malformed-record", f"the topic is not UTF-8: {error.reason}")) from error


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """What `Client.publish` takes. Raises: WirebookError (``not-expressible``, ``missing-required``)."""
    require(wire, NAME, Mqtt3Publish, Mqtt5Publish)
    assert isinstance(wire, Mqtt3Publish | Mqtt5Publish)
    found = {
        "topic": needed(NAME, "protocoloptions.topic_name", wire.topic),
        "payload": bytes_of(wire.payload),
        "qos": wire.qos or 0,
        "retain": bool(wire.retain),
    }
    return found | ({"properties": properties_of(wire)} if isinstance(wire, Mqtt5Publish) else {})


# -- shared with aiomqtt, which has paho's properties -----------------------------------------------------------------


def publish_of(message: Any, topic: str, payload: bytes, version: Version | None) -> Mqtt3Publish | Mqtt5Publish:
    """A PUBLISH packet, of a message that has `qos`, `retain` and paho's `properties`."""
    body, properties = from_bytes(payload), message.properties
    common = {"topic": topic, "qos": message.qos, "retain": bool(message.retain), "payload": body}
    if (version or ("3.1.1" if properties is None else "5.0")) == "3.1.1":
        return Mqtt3Publish(**common)
    pairs = [(name, value) for name, value in getattr(properties, "UserProperty", ())]
    return Mqtt5Publish(**common, properties=_wire_properties(properties), user_properties=pairs or None)


def _wire_properties(properties: Properties | None) -> MqttProperties | None:
    found = {name: getattr(properties, own) for name, own in PROPERTIES.items() if hasattr(properties, own)}
    if "correlation_data" in found:
        found["correlation_data"] = from_bytes(found["correlation_data"])
    return MqttProperties(**found) if found else None


def properties_of(wire: Mqtt5Publish) -> Properties:
    """The properties of a PUBLISH packet, as paho has them."""
    types = library("paho.mqtt.packettypes").PacketTypes
    made: Properties = library("paho.mqtt.properties").Properties(types.PUBLISH)
    for name, value in msgspec.structs.asdict(wire.properties or MqttProperties()).items():
        if value is not None:
            setattr(made, PROPERTIES[name], bytes_of(value) if name == "correlation_data" else value)
    for name, value in wire.user_properties or ():
        if not isinstance(value, str):
            raise refuse(NAME, f"protocoloptions.user_properties.{name}", "a text", bytes_of(value))
        made.UserProperty = (name, value)  # paho appends
    return made
