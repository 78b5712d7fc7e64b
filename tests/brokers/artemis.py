"""Apache Artemis for tests, and clients that send to it. Imports of this module need python-qpid-proton."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import ArtemisBroker
from proton import Data, Described, Message, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection

from wirebook.problems import WirebookError

SECONDS = 60


@contextlib.contextmanager
def running_artemis(folder: Path) -> Iterator[ArtemisBroker]:
    """Run a broker in a folder; skips the test if that is not possible on this machine."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl on the PATH")
    try:
        broker = ArtemisBroker(folder, tls=True)
    except WirebookError as error:
        pytest.skip(f"needs Artemis and Java: {error}")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


class Encoded:
    """A message as bytes: proton has no footers, and no bodies of several sections. A section is a descriptor and its
    value."""

    def __init__(self, *sections: tuple[int, Any]) -> None:
        self._bytes = b"".join(map(_encoded, sections))

    def send(self, sender: Any, tag: Any = None) -> Any:
        """Send it (called by proton)."""
        delivery = sender.delivery(tag or sender.delivery_tag())
        sender.stream(self._bytes)
        sender.advance()
        return delivery


def _encoded(section: tuple[int, Any]) -> bytes:
    data = Data()
    data.put_object(Described(ulong(section[0]), section[1]))
    return bytes(data.encode())


def send(broker: ArtemisBroker, node: str, *messages: Any, options: LinkOption | None = None) -> None:
    """Send messages one after the other, and return after the broker has accepted them."""
    connection = BlockingConnection(f"amqp://{broker.plain}", SECONDS, allowed_mechs="ANONYMOUS")
    try:
        sender = connection.create_sender(node, options=options)
        for message in messages:
            sender.send(message)
    finally:
        connection.close()


def receive(broker: ArtemisBroker, node: str) -> Any:
    """Receive a message."""
    connection = BlockingConnection(f"amqp://{broker.plain}", SECONDS, allowed_mechs="ANONYMOUS")
    try:
        receiver = connection.create_receiver(node)
        message = receiver.receive(SECONDS)
        receiver.accept()
        return message
    finally:
        connection.close()


class Publisher(MessagingHandler):
    """Sends numbered events until it is stopped, and remembers which the broker accepted.
    It connects again after the broker was away."""

    def __init__(self, broker: ArtemisBroker, node: str) -> None:
        super().__init__()
        self.accepted, self.sent = set[str](), 0
        self._url, self._node, self._sender = f"amqp://{broker.plain}", node, None
        self._open: dict[Any, str] = {}
        self._latest = float("inf")  # what is not accepted soon after the end does not count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=Container(self).run)
        self._thread.start()

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(self._url, allowed_mechs="ANONYMOUS")
        event.container.create_sender(connection, self._node)
        event.container.schedule(0.05, self)

    def on_sendable(self, event: Any) -> None:
        self._sender = event.sender
        self._send()

    def on_timer_task(self, event: Any) -> None:
        if self._stop.is_set():
            self._latest = min(self._latest, time.monotonic() + 10)
            if not self._open or time.monotonic() > self._latest:
                event.container.stop()
                return
        self._send()
        event.container.schedule(0.01, self)

    def _send(self) -> None:
        sender: Any = self._sender
        while sender is not None and sender.credit and len(self._open) < 100 and not self._stop.is_set():
            self.sent += 1
            body = f"{self.sent}.{'x' * random.randrange(500)}"
            attributes = {"specversion": "1.0", "id": str(self.sent), "source": "/o", "type": "oven.baked"}
            properties = {f"cloudEvents:{name}": value for name, value in attributes.items()}
            message = Message(body.encode(), durable=True, inferred=True, properties=properties)
            self._open[sender.send(message).tag] = body

    def on_accepted(self, event: Any) -> None:
        body = self._open.pop(event.delivery.tag, None)
        if body is not None:
            self.accepted.add(body)

    def on_disconnected(self, _: Any) -> None:
        self._sender = None
        self._open.clear()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
