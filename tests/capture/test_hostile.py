"""Hostile messages through the gateways, with valid ones between them: each that was acknowledged is once in the dead
letters, unchanged, and the valid ones land."""

from __future__ import annotations

import base64
import json
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from brokers import free_port
from killing.sources import STRUCTURED, catalogue, message
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.capture.gateway import GatewayProcess, gateway, lines_in, wait_for_note, wait_until
from tests.capture.mosquitto import mosquitto
from tests.capture.test_http import begin_request, status_of
from tests.capture.test_mqtt import publisher
from tests.spark.hostile import HOSTILE
from wirebook.catalog import Catalog
from wirebook.landing.job import land
from wirebook.landing.runs.local_runner import LocalRunner

pytestmark = pytest.mark.faults
BATCH = "application/cloudevents-batch+json"
EVENT = {"specversion": "1.0", "id": "1", "source": "/plants/p1", "type": "kill.a"}
VALID = [number for number in range(1, 100) if number % 10 and number % 23 and number % 37]
"""The numbers of valid messages."""


class Capture:
    """A gateway for an endpoint, and its segments. `hostile` are the bodies of the messages that were acknowledged and
    that no definition accepts; `landed` is the number of valid messages."""

    def __init__(self, folder: Path, endpoint: dict[str, Any], member: str) -> None:
        self._folder, self._member = folder, member
        self.catalogue, self.segments = folder / "catalogue.json", folder / "captured"
        self.catalogue.write_text(json.dumps(catalogue(endpoint)))
        self.hostile: list[bytes] = []
        self.landed = 0

    @contextmanager
    def running(self) -> Iterator[GatewayProcess]:
        """Run the gateway, until it has captured what was acknowledged in the block."""
        with gateway(self.catalogue, self.segments, "--endpoint", "/endpoints/e") as process:
            yield process
            wait_until(lambda: len(lines_in(self.segments)) >= len(self.hostile) + self.landed)
            assert process.stop()[0] == 0

    def check(self) -> None:
        """Land the segments, and compare."""
        lines = b"".join(file.read_bytes() for file in sorted(self.segments.glob("*.jsonl"))).splitlines()
        assert len(lines) == len(self.hostile) + self.landed
        report = land(self.segments, Catalog.load(self.catalogue), self._folder / "tables", runner=LocalRunner())
        assert report.problems == []
        assert (report.read, report.landed, report.dead_lettered) == (len(lines), self.landed, len(self.hostile))
        tables = self._folder / "tables"
        letters = [row["raw"] for row in pq.read_table(tables / "dead_letters", partitioning=None).to_pylist()]
        assert Counter(map(_bytes, letters)) <= Counter(lines)
        bodies = [_bytes_of(json.loads(letter).get(self._member)) for letter in letters]
        assert Counter(bodies) == Counter(self.hostile)
        values = [
            value
            for file in tables.glob("g__*/*.parquet")
            for value in pq.read_table(file, columns=["n"], partitioning=None)["n"].to_pylist()
        ]
        assert Counter(values) == Counter(VALID[: self.landed])


def _bytes(raw: str | bytes) -> bytes:
    return raw.encode() if isinstance(raw, str) else raw


def _bytes_of(value: Any) -> bytes:
    """A value of bytes in a capture record."""
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else (value or "").encode()


def test_http(tmp_path: Path) -> None:
    """What is no request of HTTP is not captured."""
    url = f"http://127.0.0.1:{(port := free_port())}/hooks"
    options = {"endpoints": [{"uri": url}]}
    capture = Capture(tmp_path, {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": options}, "body")
    event = [(f"ce-{name}", value) for name, value in EVENT.items()]
    forms: list[list[tuple[Any, Any]]] = [
        [],
        [*event, ("content-type", "application/json")],
        [*event, ("content-type", "application/json"), ("content-encoding", "gzip")],
        [("content-type", STRUCTURED)],
        [("content-type", BATCH)],
        [*event[:3], ("ce-type", b"\xff"), ("ce-time", "9" * 10_000), ("content-type", "/;=")],
        [*event[:3], ("ce-type", "x" * 30_000)],
        [(f"x{number}", b"\xff") for number in range(3000)],
        [("content-type", STRUCTURED)] * 100,
    ]
    with capture.running(), httpx.Client(trust_env=False, timeout=60) as client:
        for form in forms:
            for body in HOSTILE:
                assert client.post(url, content=body, headers=form).status_code == 202
                capture.hostile.append(body)
            valid = message(VALID[capture.landed])
            assert client.post(url, content=valid, headers={"content-type": STRUCTURED}).status_code == 202
            capture.landed += 1
        for status, header, body in (
            (400, "x: \0", b""),
            (400, "x y: 1", b""),
            (400, "Content-Length: 1e3", b""),
            (400, "Transfer-Encoding: chunked", b"no number\r\n"),
            (431, f"x: {'x' * 200_000}", b""),
        ):
            assert status_of(begin_request(port, header, body)) == status, header[:20]
    capture.check()


def is_accepted(port: int, topic: bytes) -> bool:
    """Whether the broker accepts a message for a topic, which clients may refuse to send, or closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
        wire.sendall(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01h")
        assert wire.recv(4) == b"\x20\x02\x00\x00"
        packet = len(topic).to_bytes(2, "big") + topic + b"\x00\x01{}"
        wire.sendall(b"\x32" + bytes([len(packet)]) + packet)
        return bool(wire.recv(4))


def test_mqtt(tmp_path: Path) -> None:
    """The broker takes no topics that are not valid UTF-8, and none with wildcards or a null character."""

    def properties(content_type: str | None, *pairs: tuple[str, str]) -> Properties:
        made = Properties(PacketTypes.PUBLISH)
        if content_type is not None:
            made.ContentType = content_type
        made.UserProperty = [*pairs, ("", "")]
        return made

    attributes = [*EVENT.items()]
    text = properties(None)
    text.PayloadFormatIndicator = 1  # a claim that the payload is UTF-8, which some are not
    text.CorrelationData, text.ResponseTopic = b"\xff" * 60_000, "x/" * 100
    forms = [
        properties(None),
        text,
        properties("application/json", *attributes),
        properties(STRUCTURED),
        properties(BATCH),
        properties("/;=\u200b", *attributes[:3], ("type", "x" * 60_000), ("time", "9" * 10_000)),
        properties(None, *((f"x{number}", "v") for number in range(5000))),
    ]
    topics = ["plants/p1", "/" * 100, "\U0001f331\u200b", "x" * 60_000]
    with mosquitto(tmp_path / "broker") as broker:
        options = {"topicfilter": "#", "qos": 1, "endpoints": [{"uri": f"mqtt://127.0.0.1:{broker.port}"}]}
        endpoint = {"usage": ["subscriber"], "protocol": "MQTT/5.0", "protocoloptions": options}
        capture = Capture(tmp_path, endpoint, "payload")
        with capture.running() as process:
            wait_for_note(process, "receiving '")
            with publisher(broker.port) as client:
                for form in forms:
                    for number, body in enumerate(HOSTILE):
                        client.publish(topics[number % len(topics)], body, 1, properties=form).wait_for_publish(60)
                        capture.hostile.append(body)
                    valid = message(VALID[capture.landed])
                    client.publish("plants/p1", valid, 1, properties=properties(STRUCTURED)).wait_for_publish(60)
                    capture.landed += 1
            assert is_accepted(broker.port, b"plants/p2")
            capture.hostile.append(b"{}")
            for topic in (b"", b"\xff", b"\xed\xa0\x80", b"a\x00", b"plants/+", b"#"):
                assert not is_accepted(broker.port, topic), topic
        capture.check()


def test_amqp(tmp_path: Path) -> None:
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton, which is built with a C compiler")
    from tests.brokers.artemis import Encoded, running_artemis, send

    symbol, ulong = proton.symbol, proton.ulong

    def sections(content_type: str | None, encoding: str | None, applied: dict[Any, Any], *body: Any) -> Any:
        sent = [(0x73, [None] * 6 + [content_type and symbol(content_type), encoding and symbol(encoding)])]
        return Encoded((0x70, [True]), *sent, (0x74, applied), *body)

    attributes = {f"cloudEvents:{name}": value for name, value in EVENT.items()}
    odd = {"": None, "deep": None, "char": proton.char("\uffff"), "binary": b"\xff" * 1000, "nan": float("nan")}
    forms: list[tuple[str | None, str | None, dict[Any, Any]]] = [
        (None, None, {}),
        (None, None, odd),
        ("application/json", None, attributes),
        ("application/json", "gzip", attributes),
        (STRUCTURED, None, {}),
        (BATCH, None, {}),
        ("/;=", "\x00", attributes | {"cloudEvents:type": "x" * 60_000, "cloudEvents:time": ulong(2**64 - 1)}),
        (None, None, {f"x{number}": "v" for number in range(5000)}),
    ]
    (tmp_path / "broker").mkdir()
    with running_artemis(tmp_path / "broker") as broker:
        options = {"node": "plants", "endpoints": [{"uri": f"amqp://{broker.plain}"}]}
        endpoint = {"usage": ["consumer"], "protocol": "AMQP/1.0", "protocoloptions": options}
        capture = Capture(tmp_path, endpoint, "body")
        with capture.running() as process:
            wait_for_note(process, "receiving '")
            for form in forms:
                half = [(body[: len(body) // 2], body[len(body) // 2 :]) for body in HOSTILE]
                messages = [sections(*form, (0x75, body)) for body in HOSTILE]
                messages += [sections(*form, (0x75, first), (0x75, second)) for first, second in half]
                messages += [sections(*form, (0x77, body)) for body in HOSTILE]
                valid = message(VALID[capture.landed])
                send(broker, "plants", *messages, sections(STRUCTURED, None, {}, (0x75, valid)))
                capture.hostile += [*HOSTILE, *HOSTILE, *HOSTILE]
                capture.landed += 1
        capture.check()
