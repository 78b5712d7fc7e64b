"""Sources that a gateway captures: HTTP, MQTT and AMQP 1.0. Their producers wait for acknowledgements, of the gateway
(HTTP) or of the broker.

`wirebook capture` captures what is sent, and `wirebook land --follow` lands it.
"""

from __future__ import annotations

import select
import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final

from brokers import ArtemisBroker, MosquittoBroker, free_port
from query import Query, following
from sources import TOPIC, attributes, now
from traffic import Message

SECONDS: Final = 60
"""How long an acknowledgement may take."""


class Captured:
    """What the sources of gateways share."""

    is_kept = False
    message_options: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.sent: Counter[str | None] = Counter()
        self.stack = ExitStack()

    def reading(self, document: Path, to: Path, *_: str) -> AbstractContextManager[Query]:
        return following(document, to)

    def flush(self) -> None:
        """Nothing: every message was acknowledged."""

    def close(self) -> None:
        self.stack.close()


class Http(Captured):
    """Requests in binary mode, over connections that stay open."""

    name, protocol, usage = "HTTP", "HTTP", "producer"
    CONNECTIONS: Final = 16

    def __init__(self, _: Path) -> None:
        super().__init__()
        self._port = free_port()
        self.options = {"endpoints": [{"uri": f"http://127.0.0.1:{self._port}/{TOPIC}"}]}
        self._idle: list[socket.socket] = []

    def encode(self, message: Message) -> tuple[bytes, bytes]:
        """The head of a request without the end, and the payload."""
        payload = message.payload.encode()
        headers = {name.replace("ce_", "ce-"): value for name, value in attributes(message).items()}
        lines = [f"POST /{TOPIC} HTTP/1.1", "host: gateway", f"content-length: {len(payload)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode(), payload

    def send(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        waiting, busy = iter(messages), dict[int, socket.socket]()
        if not self._idle:
            self._idle = [self._connect() for _ in range(self.CONNECTIONS)]
        end = f"\r\nce-time: {now()}\r\n\r\n".encode()
        while True:
            for idle, (head, payload) in zip(self._idle[:], waiting, strict=False):
                self._idle.remove(idle)
                is_closed = bool(select.select([idle], (), (), 0)[0])  # it was idle for some seconds
                connection = self._connect() if is_closed else idle
                connection.sendall(head + end + payload)
                busy[connection.fileno()] = connection
            if not busy:
                return
            for number in select.select(busy, (), (), SECONDS)[0]:
                answer = busy[number].recv(4096)
                if not (answer.startswith(b"HTTP/1.1 202 ") and answer.endswith(b"\r\n\r\n")):
                    raise RuntimeError(f"the gateway answered {answer!r}")
                self._idle.append(busy.pop(number))

    def _connect(self) -> socket.socket:
        connection = self.stack.enter_context(socket.create_connection(("127.0.0.1", self._port), SECONDS))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Mqtt(Captured):
    """MQTT 5.0 with QoS 1 by Mosquitto, which lets each client have 20 messages that are not acknowledged."""

    name, protocol, usage = "MQTT", "MQTT/5.0", "subscriber"
    message_options: ClassVar[dict[str, Any]] = {"topic_name": TOPIC}
    IN_FLIGHT: Final = 20
    CLIENTS: Final = 8

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir()
        broker = MosquittoBroker(folder / "mosquitto")
        self.stack.callback(broker.stop)
        self.options = {"topicfilter": TOPIC, "qos": 1, "endpoints": [{"uri": f"mqtt://127.0.0.1:{broker.port}"}]}
        self._clients = [self._connect(broker.port, number) for number in range(self.CLIENTS)]

    def _connect(self, port: int, number: int) -> tuple[socket.socket, BinaryIO]:
        connection = self.stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
        answers = connection.makefile("rb")
        flags_and_keep_alive, properties = b"\x05\x02\x00\x00", b"\x00"  # version 5, a new session
        connection.sendall(_packet(0x10, _text("MQTT") + flags_and_keep_alive + properties + _text(f"p{number}")))
        _read_answer(answers, 0x20)
        return connection, answers

    def encode(self, message: Message) -> tuple[bytes, bytes]:
        """The properties without the time, and the payload."""
        values = {name.removeprefix("ce_"): value for name, value in attributes(message).items()}
        content_type = b"\x03" + _text(values.pop("content-type"))
        return content_type + b"".join(_user_property(*pair) for pair in values.items()), message.payload.encode()

    def send(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        waiting, time_property = iter(messages), _user_property("time", now())
        while parts := [part for _ in self._clients if (part := list(islice(waiting, self.IN_FLIGHT)))]:
            for (connection, _), part in zip(self._clients, parts, strict=False):
                numbered = enumerate(part, 1)
                connection.sendall(b"".join(_publication(*message, time_property) for message in numbered))
            for (_, answers), part in zip(self._clients, parts, strict=False):
                for _ in part:
                    _read_answer(answers, 0x40)


def _publication(number: int, message: tuple[bytes, bytes], time_property: bytes) -> bytes:
    properties, payload = message[0] + time_property, message[1]
    return _packet(0x32, _text(TOPIC) + number.to_bytes(2) + _variable(len(properties)) + properties + payload)


def _read_answer(answers: BinaryIO, kind: int) -> None:
    """Read an answer, which is shorter than 128 bytes."""
    found, size = answers.read(2)
    answers.read(size)
    if found != kind:
        raise RuntimeError(f"Mosquitto sent a packet of type {found:#x} instead of {kind:#x}")


def _packet(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _variable(len(content)) + content


def _variable(number: int) -> bytes:
    """A variable byte integer."""
    encoded = b""
    while number > 127:
        encoded, number = encoded + bytes([number % 128 + 128]), number // 128
    return encoded + bytes([number])


def _text(text: str) -> bytes:
    return len(text.encode()).to_bytes(2) + text.encode()


def _user_property(name: str, value: str) -> bytes:
    return b"\x26" + _text(name) + _text(value)


class Amqp(Captured):
    """A queue of Artemis, which accepts a message when it is stored."""

    name, protocol, usage = "AMQP", "AMQP/1.0", "consumer"

    def __init__(self, folder: Path) -> None:
        from proton.utils import BlockingConnection  # noqa: PLC0415 (built by `./run`)

        super().__init__()
        folder.mkdir()
        broker = ArtemisBroker(folder)
        broker.start()
        self.stack.callback(broker.kill)
        self.options = {"node": TOPIC, "endpoints": [{"uri": f"amqp://{broker.plain}"}]}
        self._connection = BlockingConnection(f"amqp://{broker.plain}", SECONDS, allowed_mechs="ANONYMOUS")
        self.stack.callback(self._connection.close)
        self._link = self._connection.create_sender(TOPIC).link

    def encode(self, message: Message) -> tuple[dict[str, str], str, bytes]:
        """Application properties without the time, content type and payload."""
        values = attributes(message)
        content_type = values.pop("content-type")
        named = {name.replace("ce_", "cloudEvents:"): value for name, value in values.items()}
        return named, content_type, message.payload.encode()

    def send(self, messages: Iterable[tuple[dict[str, str], str, bytes]]) -> None:
        from proton import Message as AmqpMessage  # noqa: PLC0415

        sent_at, deliveries = {"cloudEvents:time": now()}, []
        for values, content_type, payload in messages:
            if not self._link.credit:
                self._connection.wait(lambda: self._link.credit)
            message = AmqpMessage(payload, properties=values | sent_at, content_type=content_type)
            message.durable = message.inferred = True
            deliveries.append(self._link.send(message))
        for delivery in deliveries:
            self._connection.wait(lambda delivery=delivery: delivery.settled)
            if delivery.remote_state != delivery.ACCEPTED:
                raise RuntimeError(f"Artemis answered {delivery.remote_state}")
