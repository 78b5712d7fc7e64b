"""Brokers that keep messages, and producers that fill them: Kafka by librdkafka, JetStream by lines on a socket.

Messages are encoded once, except the time at which they are sent, which is their attribute `time`.
"""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import traffic
from brokers import KafkaBroker, NatsServer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from query import Query, streaming
from traffic import Day, Message

TOPIC: Final = "readings"
PARTITIONS: Final = 2
POOL: Final = 20_000
"""Messages that are encoded once, and sent again and again by `send_for`."""
TICK_SECONDS: Final = 0.02
STREAM_BYTES: Final = 4 << 30
"""What a broker keeps; older messages, which have landed long ago, are deleted."""


class Source(Protocol):
    """An empty topic or path, and how many messages of each definition were sent to it.

    Shape: `usage` and `options` are those of its endpoint, `message_options` those of the definitions. If it `is_kept`,
    a broker keeps the messages, and can have all of them before the first is read.
    """

    name: str
    protocol: str
    usage: str
    options: dict[str, Any]
    message_options: dict[str, Any]
    is_kept: bool
    sent: Counter[str | None]

    def reading(self, document: Path, to: Path, *options: str) -> AbstractContextManager[Query]:
        """Land what is sent, by a catalogue, in Delta tables. The options are those of `wirebook stream`."""

    def encode(self, message: Message) -> Any:
        """A message without its time."""

    def send(self, messages: Iterable[Any]) -> None:
        """Send encoded messages now."""

    def flush(self) -> None:
        """Wait until all messages are acknowledged. Raises: RuntimeError if some are not"""

    def close(self) -> None: ...


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def catalogue(source: Source, definitions: int) -> dict[str, Any]:
    """The catalogue of the benchmarks, for CloudEvents of the protocol of a source, with an endpoint ``e``."""
    document = traffic.catalogue(definitions, events_only=True)
    events = document["messagegroups"]["events"]
    events["protocol"] = source.protocol
    for message in events["messages"].values():
        message |= {"protocol": source.protocol, "protocoloptions": source.message_options}
    endpoint = {
        "usage": [source.usage],
        "protocol": source.protocol,
        "protocoloptions": source.options,
        "messagegroups": ["/messagegroups/events"],
    }
    return document | {"endpoints": {"e": endpoint}}


def fill(source: Source, day: Day) -> None:
    """Send all messages of a day."""
    messages = day.messages()
    while part := list(islice(messages, POOL)):
        source.sent.update(message.definition_xid for message in part)
        source.send(map(source.encode, part))
        source.flush()


def send_for(source: Source, day: Day, rate: float, seconds: float) -> float:
    """Send at a rate, in messages per second, for a time in seconds. Return the rate that was reached."""
    pool = [(source.encode(message), message.definition_xid) for message in islice(day.messages(), POOL)]
    messages, sent, started = cycle(pool), 0, time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        part = list(islice(messages, min(int(elapsed * rate) - sent, int(rate))))  # a slow source ends in time, too
        source.send(encoded for encoded, _ in part)
        source.sent.update(definition for _, definition in part)
        sent += len(part)
        time.sleep(TICK_SECONDS)
    source.flush()
    return sent / (time.monotonic() - started)


def attributes(message: Message) -> dict[str, str]:
    """The headers of a message without `time`."""
    headers = dict(traffic.record(message)["headers"])
    return {name: value for name, value in headers.items() if name != "ce_time"}


class Kafka:
    """A topic with two partitions, filled by librdkafka."""

    name, protocol, usage, is_kept = "Kafka", "KAFKA", "consumer", True
    message_options: ClassVar[dict[str, Any]] = {"topic": TOPIC}
    reading = staticmethod(streaming)

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._broker = KafkaBroker(folder)
        self._broker.start()
        self.options = {"topic": TOPIC, "endpoints": [{"bootstrap.servers": [self._broker.plain]}]}
        self.sent: Counter[str | None] = Counter()
        limits = {"retention.bytes": str(STREAM_BYTES // PARTITIONS), "segment.bytes": str(64 << 20)}
        admin = AdminClient({"bootstrap.servers": self._broker.plain})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=limits)])[TOPIC].result()
        settings = {"bootstrap.servers": self._broker.plain, "linger.ms": 5, "acks": "all", "log_level": 0}
        self._producer = Producer(settings | {"queue.buffering.max.messages": 10 * POOL})
        self._number = 0

    def encode(self, message: Message) -> tuple[bytes, bytes, list[tuple[str, bytes]]]:
        headers = [(name, value.encode()) for name, value in attributes(message).items()]
        return message.values["unit"].encode(), message.payload.encode(), headers

    def send(self, messages: Iterable[tuple[bytes, bytes, list[tuple[str, bytes]]]]) -> None:
        sent = ("ce_time", now().encode())
        for key, value, headers in messages:
            self._number += 1
            partition = self._number % PARTITIONS
            self._producer.produce(TOPIC, value, key, partition, headers=[*headers, sent])
        self._producer.poll(0)

    def flush(self) -> None:
        if left := self._producer.flush(60):  # the rows of the tables show whether Kafka has every message
            raise RuntimeError(f"Kafka did not take {left} messages")

    def close(self) -> None:
        self._broker.kill()


class JetStream:
    """A stream in files. The last message of each part that is sent asks for an acknowledgement, which has its sequence
    number: so all before it have been kept."""

    name, protocol, usage, is_kept = "JetStream", "NATS", "consumer", True
    message_options: ClassVar[dict[str, Any]] = {"subject": TOPIC}
    reading = staticmethod(streaming)
    PART: Final = 2_000
    """The server drops messages if more than 10,000 wait for a stream."""

    def __init__(self, folder: Path) -> None:
        self._server = NatsServer("--jetstream", "--store_dir", str(folder))
        self.options = {"subject": TOPIC, "endpoints": [{"uri": f"nats://127.0.0.1:{self._server.port}"}]}
        self.sent: Counter[str | None] = Counter()
        self._number = 0
        self._socket = socket.create_connection(("127.0.0.1", self._server.port))
        self._answers = self._socket.makefile("rb")
        self._answers.readline()  # INFO
        self._socket.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB acks 1\r\n')
        settings = {"name": "READINGS", "subjects": [TOPIC], "retention": "limits", "storage": "file"}
        self._request("$JS.API.STREAM.CREATE.READINGS", settings | {"max_bytes": STREAM_BYTES, "discard": "old"})

    def encode(self, message: Message) -> tuple[bytes, bytes]:
        """Headers and payload."""
        named = {name.replace("ce_", "ce-"): value for name, value in attributes(message).items()}
        named["ce-datacontenttype"] = named.pop("content-type")
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return f"NATS/1.0\r\n{lines}".encode(), message.payload.encode()

    def send(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        waiting = iter(messages)
        while part := list(islice(waiting, self.PART)):
            self._send(part)

    def _send(self, part: Sequence[tuple[bytes, bytes]]) -> None:
        time_line, lines = f"ce-time: {now()}\r\n\r\n".encode(), []
        for place, (headers, payload) in enumerate(part, 1):
            size = len(headers) + len(time_line)
            reply = b" acks" if place == len(part) else b""
            lines.append(b"HPUB %b%b %d %d\r\n" % (TOPIC.encode(), reply, size, size + len(payload)))
            lines += [headers, time_line, payload, b"\r\n"]
        self._socket.sendall(b"".join(lines))
        self._number += len(part)
        if (answer := self._answer()).get("seq") != self._number:
            raise RuntimeError(f"JetStream did not take all messages: {self._number} were sent, {answer}")

    def _request(self, subject: str, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self._socket.sendall(f"PUB {subject} acks {len(data)}\r\n".encode() + data + b"\r\n")
        if "error" in (answer := self._answer()):
            raise RuntimeError(f"JetStream: {answer['error']}")

    def _answer(self) -> dict[str, Any]:
        """The next message to the inbox. The server also sends PING."""
        while not (line := self._answers.readline()).startswith(b"MSG "):
            if not line:
                raise RuntimeError("NATS has closed the connection")
            if line.startswith(b"PING"):
                self._socket.sendall(b"PONG\r\n")
        answer: dict[str, Any] = json.loads(self._answers.read(int(line.split()[-1]) + 2))
        return answer

    def flush(self) -> None:
        """Nothing: every part was acknowledged."""

    def close(self) -> None:
        self._socket.close()
        self._server.kill()
