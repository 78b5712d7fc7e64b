"""MQTT by aiomqtt 2 (extra ``aiomqtt``): `aiomqtt.Message`, and what `Client.publish` takes.

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
    """The message that was received; its version as in `wirebook.convert.paho`."""
    payload = message.payload if isinstance(message.payload, bytes) else str(message.payload or "").encode()
    return paho.publish_of(message, str(message.topic), payload, version)


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """What `Client.publish` takes: the same as paho's. Raises: as there."""
    return paho.arguments_of(wire)
