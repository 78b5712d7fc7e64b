"""Endpoints of brokers that a gateway receives from, and functions that send to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.capture.mosquitto import mosquitto
from tests.capture.test_mqtt import publisher


class BrokerEndpoint(NamedTuple):
    """An endpoint. `member` is the member of a capture record that has the text of a message. `send` returns after the
    broker has accepted the messages."""

    endpoint: dict[str, Any]
    member: str
    send: Callable[[list[str]], None]


@contextmanager
def mqtt_endpoint(folder: Path) -> Iterator[BrokerEndpoint]:
    """A topic of Mosquitto, with QoS 1."""
    with mosquitto(folder / "broker") as broker:
        options = {"topicfilter": "plants/#", "qos": 1, "endpoints": [{"uri": f"mqtt://127.0.0.1:{broker.port}"}]}
        endpoint = {"usage": ["subscriber"], "protocol": "MQTT/5.0", "protocoloptions": options}

        def send(bodies: list[str]) -> None:
            with publisher(broker.port) as client:
                for body in bodies:
                    client.publish("plants/1", body, 1).wait_for_publish(60)

        yield BrokerEndpoint(endpoint, "payload", send)


@contextmanager
def amqp_endpoint(folder: Path) -> Iterator[BrokerEndpoint]:
    """A queue of Artemis."""
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton, which is built with a C compiler")
    from tests.brokers.artemis import running_artemis, send

    (folder / "broker").mkdir()
    with running_artemis(folder / "broker") as broker:
        options = {"node": "plants", "endpoints": [{"uri": f"amqp://{broker.plain}"}]}
        endpoint = {"usage": ["consumer"], "protocol": "AMQP/1.0", "protocoloptions": options}

        def send_all(bodies: list[str]) -> None:
            send(broker, "plants", *(proton.Message(body.encode(), durable=True, inferred=True) for body in bodies))

        yield BrokerEndpoint(endpoint, "body", send_all)


BROKER_ENDPOINTS = {"mqtt": mqtt_endpoint, "amqp": amqp_endpoint}
