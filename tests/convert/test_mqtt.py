"""paho-mqtt and aiomqtt: their messages and properties, encoded and decoded by paho."""

from __future__ import annotations

from typing import Any

import aiomqtt
import pytest
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from wirebook.bindings import Base64, KafkaRecord, Mqtt3Publish, Mqtt5Publish, MqttProperties
from wirebook.convert import aiomqtt as by_aiomqtt
from wirebook.convert import paho as by_paho
from wirebook.problems import WirebookError

FULL = Mqtt5Publish(
    topic="ovens/7/é",
    qos=1,
    retain=True,
    payload=Base64(b"\xff\x00"),
    properties=MqttProperties(
        payload_format=0,
        message_expiry_interval=4294967295,
        response_topic="r",
        correlation_data=Base64(b"\xfe"),
        content_type="application/json",
    ),
    user_properties=[("id", "1"), ("id", "2"), ("ü", "")],
)
PLAIN = Mqtt3Publish(topic="a", qos=0, retain=False, payload="x")
SPARSE = Mqtt5Publish(topic="a", qos=2, retain=False, payload="", user_properties=[("type", "t")])


def packed(properties: Properties | None) -> Properties | None:
    """Properties as they are after the packet: written and read by paho."""
    if properties is None:
        return None
    decoded = Properties(PacketTypes.PUBLISH)
    decoded.unpack(properties.pack())
    return decoded


def paho_message(topic: str, payload: Any, qos: int, retain: bool, properties: Any = None) -> MQTTMessage:
    message = MQTTMessage(topic=topic.encode())
    message.payload, message.qos, message.retain, message.properties = payload, qos, retain, packed(properties)
    return message


def aiomqtt_message(topic: str, payload: Any, qos: int, retain: bool, properties: Any = None) -> aiomqtt.Message:
    return aiomqtt.Message(topic, payload, qos, retain, 1, packed(properties))


@pytest.mark.parametrize("wire", [FULL, PLAIN, SPARSE])
def test_message_survives_the_round_trip_by_paho(wire: Any) -> None:
    assert by_paho.record_of(paho_message(**by_paho.arguments_of(wire))) == wire


@pytest.mark.parametrize("wire", [FULL, PLAIN, SPARSE])
def test_message_survives_the_round_trip_by_aiomqtt(wire: Any) -> None:
    assert by_aiomqtt.record_of(aiomqtt_message(**by_aiomqtt.arguments_of(wire))) == wire


def test_version_argument_sets_the_version() -> None:
    message = paho_message("a", b"x", 0, False)
    assert by_paho.record_of(message, "5.0") == Mqtt5Publish(topic="a", qos=0, retain=False, payload="x")
    assert by_aiomqtt.record_of(aiomqtt_message("a", b"x", 0, False), "5.0").protocol == "MQTT/5.0"


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (KafkaRecord(), "not-expressible"),
        (Mqtt3Publish(), "missing-required"),
        (Mqtt5Publish(topic="t", user_properties=[("a", Base64(b"\xff"))]), "not-expressible"),
    ],
)
def test_inexpressible_message_is_rejected(wire: Any, code: str) -> None:
    for module in (by_paho, by_aiomqtt):
        with pytest.raises(WirebookError) as error:
            module.arguments_of(wire)
        assert [problem.code for problem in error.value.problems] == [code]


def test_topic_that_is_not_utf_8_is_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        by_paho.record_of(MQTTMessage(topic=b"\xff"))
    assert [problem.code for problem in error.value.problems] == ["malformed-record"]
