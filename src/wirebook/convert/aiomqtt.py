"""MQTT by aiomqtt 2 (extra ``aiomqtt``): from `aiomqtt.Message`, and to arguments of `Client.publish`.

async for message in client.messages:
    outcome = catalog.match(record_of(message))
await client.publish(**arguments_of(catalog.build(...)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, Mqtt3Publish, Mqtt5Publish
from wirebook.convert import paho
from wirebook.convert.paho import Version

if TYPE_CHECKING:
    from aiomqtt import Message


def record_of(message: Message, version: Version | None = None) -> Mqtt3Publish | Mqtt5Publish:
    """Return the record of a received message. `version` is as in `wirebook.convert.paho.record_of`."""
    payload = message.payload if isinstance(message.payload, bytes) else str(message.payload or "").encode()
    return paho.publish_of(message, str(message.topic), payload, version)


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """Return the arguments of `Client.publish`. Raises: as `wirebook.convert.paho.arguments_of`"""
    return paho.arguments_of(wire)
